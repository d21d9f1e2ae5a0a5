/* Cells as bytes: objects as stored, archives and their scp files, text, audio, keys. */
#include "format/kaldi/set/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

#define RUN_BYTES (4u << 20)  /* of an archive, read at once */
#define PAGE      (64u << 10) /* at least the page size of every system */

/* ---- sums ---- */

/* The entry of a sample in an archive. An object that cannot be read has no key there. Instead it
 * has newlines up to the next PAGE boundary, which readers skip, and then one PAGE that cannot be
 * read. So the entries before it share no page with it and stay readable, and the entries after it
 * keep their places. */
struct entry {
    struct kaldi_cell cell;
    bool is_bad;
    uint64_t lead; /* bytes before the object: key and space, or the newlines */
    uint64_t size; /* bytes, lead included */
};

/* The entry that begins at byte at. The file of a single bad sample has no bytes at all. */
static int entry_of(const struct kaldi_work *w, uint64_t sample, uint64_t at, struct entry *ret,
                    struct diag *d)
{
    uint8_t key[KEY_SIZE];

    if (kaldi_work_cell(w, sample, &ret->cell, NULL) == 0) {
        ret->is_bad = false;
        ret->lead = dataset_key(w->ds, sample, key) + 1;
        ret->size = ret->lead + kaldi_cell_size(&ret->cell, KALDI_AS_ENTRY);
        return 0;
    }
    if (w->sel->single || ret->cell.row.object.store != KALDI_BAD)
        return kaldi_work_cell(w, sample, &ret->cell, d);
    ret->is_bad = true;
    ret->lead = (PAGE - at % PAGE) % PAGE;
    ret->size = ret->lead + PAGE;
    return 0;
}

static int count_entry(void *ctx, uint64_t sample, const struct sums_pair *before,
                       struct sums_pair *ret)
{
    struct kaldi_work *w = ctx;
    struct entry entry;
    int r = entry_of(w, sample, before->size, &entry, w->reason);

    if (r == 0)
        ret->size = entry.size;
    return r;
}

/* Counts a line of the scp file in size, and the archive's bytes in other. */
static int count_script(void *ctx, uint64_t sample, const struct sums_pair *before,
                        struct sums_pair *ret)
{
    struct kaldi_work *w = ctx;
    struct entry entry;
    uint8_t key[KEY_SIZE];
    int r = entry_of(w, sample, before->other, &entry, w->reason);

    if (r < 0)
        return r;
    ret->other = entry.size;
    ret->size = dataset_key(w->ds, sample, key) + 1 + w->file_len + 1 +
                decimal_digits(before->other + entry.lead) + 1;
    return 0;
}

static int count_line(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct kaldi_work *w = ctx;
    struct kaldi_cell cell;
    int r = kaldi_work_cell(w, sample, &cell, w->reason);

    (void)before;
    if (r == 0)
        ret->size = kaldi_cell_size(&cell, KALDI_AS_LINE);
    return r;
}

static int count_key(void *ctx, uint64_t sample, const struct sums_pair *before,
                     struct sums_pair *ret)
{
    struct kaldi_work *w = ctx;
    uint8_t key[KEY_SIZE];

    (void)before;
    ret->size = dataset_key(w->ds, sample, key) + 1;
    return 0;
}

static int cell_bytes(struct read_context *rc, struct kaldi_work *w, enum kaldi_bytes way,
                      uint64_t sample, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    int r = kaldi_work_cell(w, sample, &cell, d);

    return r < 0 ? r : kaldi_cell_bytes(rc, w->set, &cell, way, off, len, dst, d);
}

/* The form of a file of bytes whose size the sums give. */
static int summed_size(struct kaldi_work *w, sums_fn *number, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    int r = kaldi_work_sums(w, number, &sums);

    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = sums_total(&sums).size;
    return 0;
}

/* ---- the bytes of one sample ---- */

static enum kaldi_bytes way_of(const struct field *f)
{
    return ((const struct kaldi_bytes_ops *)f->ops)->way;
}

static int alone_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    struct kaldi_cell cell;
    struct kaldi_work w;
    uint64_t sample;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    sel->samples(sel, 0, 1, &sample);
    r = kaldi_work_cell(&w, sample, &cell, sel->reason);
    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = kaldi_cell_size(&cell, way_of(f));
    return 0;
}

static int alone_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    struct kaldi_work w;
    uint64_t sample;

    kaldi_work_init(&w, ds, f, sel);
    sel->samples(sel, 0, 1, &sample);
    return cell_bytes(rc, &w, way_of(f), sample, off, len, dst, d);
}

const struct kaldi_bytes_ops kaldi_object_ops = {{alone_read, alone_form}, KALDI_AS_STORED};
const struct kaldi_bytes_ops kaldi_audio_ops = {{alone_read, alone_form}, KALDI_AS_WAV};

/* ---- archives ---- */

static int archive_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return summed_size(&w, count_entry, ret);
}

static int bad_entry(const struct kaldi_work *w, uint64_t sample, struct entry *entry, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    size_t n = off < entry->lead ? (size_t)min_u64(len, entry->lead - off) : 0;

    memset(dst, '\n', n);
    return n < len ? kaldi_work_cell(w, sample, &entry->cell, d) : 0;
}

static int archive_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                        const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    uint8_t head[KEY_SIZE + 1];
    struct entry entry;
    size_t capacity;
    int r = entry_of(w, sample, before->size, &entry, d);

    if (r < 0)
        return r;
    if (entry.is_bad)
        return bad_entry(w, sample, &entry, off, len, dst, d);
    capacity = dataset_key(w->ds, sample, head);
    head[capacity++] = ' ';
    if (off < capacity) {
        size_t n = (size_t)min_u64(len, capacity - off);

        memcpy(dst, head + off, n);
        dst += n;
        off += n;
        len -= n;
    }
    return len ? cell_bytes(rc, w, KALDI_AS_ENTRY, sample, off - capacity, len, dst, d) : 0;
}

/* Is the key equal to the one in the source archive? It differs if a table is joined by speaker, or
 * if a repeated key got ~ and a number. */
static bool has_own_key(const struct kaldi_cell *cell, const uint8_t *key, size_t len)
{
    uint8_t own[KEY_MAX];

    return !(cell->table->index.renamed && memchr(key, '~', len)) &&
           key_index_key(&cell->table->index, cell->number, own) == len && !memcmp(own, key, len);
}

/* Where the source holds an entry byte for byte as shown. false: nowhere. */
static bool entry_place(struct kaldi_work *w, uint64_t place, const struct blob **ret_blob,
                        uint64_t *ret_start, uint64_t *ret_end)
{
    struct kaldi_cell cell;
    uint8_t key[KEY_SIZE];
    uint64_t sample = kaldi_work_sample(w, place);
    size_t len;

    if (kaldi_work_cell(w, sample, &cell, NULL) < 0 || !cell.row.is_plain ||
        !kaldi_cell_is_stored(&cell))
        return false;
    len = dataset_key(w->ds, sample, key) + 1;
    if (cell.row.object.start < len || !has_own_key(&cell, key, len - 1))
        return false;
    *ret_blob = cell.row.blob;
    *ret_start = cell.row.object.start - len;
    *ret_end = cell.row.object.start + cell.row.object.len;
    return true;
}

/* The number of bytes, from byte skip of the entry at place on, that the source holds byte for
 * byte, over entries that are neighbours there too. *ret_at: where. */
static size_t run_of_entries(struct kaldi_work *w, uint64_t place, uint64_t skip, size_t len,
                             const struct blob **ret_blob, uint64_t *ret_at)
{
    uint64_t start, end, next_start, next_end;
    const struct blob *next;

    if (!entry_place(w, place, ret_blob, &start, &end))
        return 0;
    *ret_at = start + skip;
    while (end - *ret_at < len && ++place < w->sel->count) {
        if (!entry_place(w, place, &next, &next_start, &next_end) || next != *ret_blob ||
            next_start != end)
            break;
        end = next_end;
    }
    return (size_t)min_u64(len, end - *ret_at);
}

/* A walk over an archive, at the entry that contains byte off. */
struct archive_walk {
    struct sums sums;
    uint64_t off, place;
    struct sums_pair before, after; /* the sums around the entry */
};

static void archive_walk_release(struct archive_walk *walk)
{
    sums_close(&walk->sums);
}

/* Advance by n bytes. */
static int advance(struct archive_walk *walk, size_t n)
{
    int r = 0;

    walk->off += n;
    while (r == 0 && walk->off >= walk->after.size && walk->place + 1 < walk->sums.sel->count) {
        walk->before = walk->after;
        r = sums_after(&walk->sums, ++walk->place, &walk->before, &walk->after);
    }
    return r;
}

/* Read some of the next len bytes: a run of entries, or one. *ret_n: how many, set even if they are
 * missing. */
static int read_some(struct read_context *rc, struct kaldi_work *w, const struct archive_walk *walk,
                     size_t len, uint8_t *dst, size_t *ret_n, struct diag *d)
{
    uint64_t at = 0, skip = walk->off - walk->before.size;
    const struct blob *blob = NULL;

    *ret_n = run_of_entries(w, walk->place, skip, (size_t)min_u64(len, RUN_BYTES), &blob, &at);
    if (*ret_n)
        return kaldi_read(rc, blob, at, *ret_n, dst, d);
    *ret_n = (size_t)min_u64(len, walk->after.size - walk->off);
    return archive_item(rc, w, kaldi_work_sample(w, walk->place), &walk->before, skip, *ret_n, dst,
                        d);
}

static int archive_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    AUTO(archive_walk_release) struct archive_walk walk = {.off = off};
    struct kaldi_work w;
    int r, all = 0;

    kaldi_work_init(&w, ds, f, sel);
    w.reason = d;
    r = kaldi_work_sums(&w, count_entry, &walk.sums);
    if (r == 0 && len)
        r = sums_find(&walk.sums, off, &walk.place, &walk.before);
    if (r == 0 && len)
        r = sums_after(&walk.sums, walk.place, &walk.before, &walk.after);
    while (r == 0 && len) {
        size_t n = 0;

        if (!missing_go_on(rc, read_some(rc, &w, &walk, len, dst, &n, d), &all))
            break;
        dst += n;
        len -= n;
        if (len)
            r = advance(&walk, n);
    }
    return r < 0 ? r : all;
}

/* ---- scp files ---- */

/* The name of the archive that the scp file belongs to, relative to it. */
static void name_archive(struct kaldi_work *w, const struct field *f)
{
    snprintf(w->suffix, sizeof(w->suffix), "%s%s.ark", f->unnamed ? "" : ".",
             f->unnamed ? "" : f->name);
    w->file_len = strlen(w->sel->file ? w->sel->file : "") + strlen(w->suffix);
}

static int script_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    name_archive(&w, f);
    return summed_size(&w, count_script, ret);
}

static int script_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                       const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    AUTO_FREE uint8_t *line = malloc(KEY_SIZE + w->file_len + 32);
    struct entry entry;
    size_t n;
    int r = entry_of(w, sample, before->other, &entry, d);

    (void)rc;
    if (r < 0)
        return r;
    if (!line)
        return -ENOMEM;
    n = dataset_key(w->ds, sample, line);
    snprintf((char *)line + n, w->file_len + 32, " %s%s:%llu\n", w->sel->file ? w->sel->file : "",
             w->suffix, (unsigned long long)(before->other + entry.lead));
    memcpy(dst, line + off, len);
    return 0;
}

static int script_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    name_archive(&w, f);
    return kaldi_read_summed(rc, &w, count_script, 1, script_item, off, len, dst, d);
}

/* ---- texts: as lines, and as elements of the width of the longest ---- */

static const struct kaldi_text_ops *text_of(const struct field *f)
{
    return (const struct kaldi_text_ops *)f->ops;
}

/* Bytes of a text, then pad. */
static int line_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample, uint8_t pad,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    uint64_t bytes;
    size_t n;
    int r = kaldi_work_cell(w, sample, &cell, d);

    if (r < 0)
        return r;
    bytes = kaldi_cell_size(&cell, KALDI_AS_LINE) - 1;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, pad, len - n);
    return kaldi_cell_bytes(rc, w->set, &cell, KALDI_AS_LINE, off, n, dst, d);
}

static int key_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample, uint8_t pad,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t key[KEY_SIZE];
    size_t bytes = dataset_key(w->ds, sample, key), n;

    (void)rc;
    (void)d;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, pad, len - n);
    if (n)
        memcpy(dst, key + off, n);
    return 0;
}

static int padded_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                       const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    (void)before;
    return w->text->item(rc, w, sample, 0, off, len, dst, d);
}

static int ended_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                      const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    (void)before;
    return w->text->item(rc, w, sample, '\n', off, len, dst, d);
}

static int lines_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return summed_size(&w, text_of(f)->number, ret);
}

static int lines_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    w.text = text_of(f);
    return kaldi_read_summed(rc, &w, w.text->number, 1, ended_item, off, len, dst, d);
}

static int strings_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct kaldi_work w;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    r = kaldi_work_sums(&w, text_of(f)->number, &sums);
    if (r < 0)
        return r;
    ret->ndim = 0;
    if (!sel->single)
        ret->dim[ret->ndim++] = sel->count;
    ret->width = max_u64(sums_most(&sums), 2) - 1;
    return 0;
}

static int strings_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct form form;
    struct kaldi_work w;
    int r = strings_form(ds, f, sel, &form);

    kaldi_work_init(&w, ds, f, sel);
    w.text = text_of(f);
    return r < 0 ? r : kaldi_read_even(rc, &w, form.width, padded_item, off, len, dst, d);
}

const struct kaldi_text_ops kaldi_line_ops = {{lines_read, lines_form}, count_line, line_item};
const struct kaldi_text_ops kaldi_string_ops = {
    {strings_read, strings_form}, count_line, line_item};
const struct kaldi_text_ops kaldi_key_lines_ops = {{lines_read, lines_form}, count_key, key_item};
const struct kaldi_text_ops kaldi_key_ops = {{strings_read, strings_form}, count_key, key_item};

const struct field_ops kaldi_archive_ops = {archive_read, archive_form};
const struct field_ops kaldi_script_ops = {script_read, script_form};
