/* The fields of Kaldi tables. A sample's array has a length of its own, so a batch shows it padded,
 * with the lengths, or one behind another, with the offsets; and as objects: an archive, its scp
 * file, the bytes as stored; and text and audio. */
#include "format/kaldi_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/encoder.h"
#include "format/sums.h"

#define FIELDS_OF_COLUMN (4 * KALDI_ARRAYS_MAX + 6) /* at most */
#define FIELDS_OF_SET    3                          /* index, key, key lines */
#define RUN_BYTES        (4u << 20)                 /* of an archive, read at once */

/* What of the cells a file is made of. */
struct work {
    const struct kaldi_set *set;
    const struct kaldi_field *of; /* NULL: the keys */
    const struct dataset *ds;
    const struct selection *sel;
    uint64_t tail;       /* elements of a row of each array; 0: not known yet */
    size_t file_len;     /* bytes of the name of an archive, in front of the offset */
    char suffix[80];     /* of that name */
    struct diag *reason; /* while sums are made */
};

static unsigned axes_of(const struct kaldi_column *c, unsigned array)
{
    if (c->table->type == KALDI_WAVE)
        return c->is_mono ? 1 : 2;
    return kaldi_types[c->table->type].array[array].ndim;
}

static void work_init(struct work *w, const struct dataset *ds, const struct field *f,
                      const struct selection *sel)
{
    *w = (struct work){.set = kaldi_set_of(ds), .of = f->own, .ds = ds, .sel = sel};
    w->reason = sel->reason;
}

static int cell_of(const struct work *w, uint64_t sample, struct kaldi_cell *ret, struct diag *d)
{
    return kaldi_cell(w->set, w->of->column, sample, ret, d);
}

/* ---- sums ---- */

/* Each kind of sum has an address of its own, which tells it from others of the same cells. */
static int open_sums(struct work *w, sums_fn *number, struct sums *ret)
{
    const uint64_t *id = w->sel->id;
    const struct memo_key key = {{(uintptr_t)(w->of ? (const void *)w->of : (const void *)w->ds),
                                  id[0], id[1], id[2], (uintptr_t)number, w->file_len}};

    return sums_open(ret, w->set->memo, &key, w->sel, number, w);
}

/* Rows of the array; its other axis is that of all. */
static int count_rows(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct work *w = ctx;
    struct kaldi_cell cell;
    uint64_t dim[2];
    int r = cell_of(w, sample, &cell, w->reason);

    (void)before;
    if (r < 0)
        return r;
    kaldi_cell_form(&cell, w->of->array, dim);
    ret->size = dim[0];
    if (!dim[0])
        return 0;
    if (!w->tail)
        w->tail = dim[1];
    if (dim[1] != w->tail)
        return diag_set(w->reason, -EBADMSG,
                        "%s: row %llu: want %llu columns, as others of the batch have, found %llu; "
                        "they cannot be one array",
                        blob_name(cell.table->blob), (unsigned long long)cell.number + 1,
                        (unsigned long long)w->tail, (unsigned long long)dim[1]);
    return 0;
}

static int count_entry(void *ctx, uint64_t sample, const struct sums_pair *before,
                       struct sums_pair *ret)
{
    struct work *w = ctx;
    struct kaldi_cell cell;
    uint8_t key[KEY_ROOM];
    int r = cell_of(w, sample, &cell, w->reason);

    (void)before;
    if (r == 0)
        ret->size = dataset_key(w->ds, sample, key) + 1 + kaldi_cell_size(&cell, KALDI_AS_ENTRY);
    return r;
}

/* A line of the scp file: the sums of the other number are those of the archive. */
static int count_script(void *ctx, uint64_t sample, const struct sums_pair *before,
                        struct sums_pair *ret)
{
    struct work *w = ctx;
    struct kaldi_cell cell;
    uint8_t key[KEY_ROOM];
    size_t len = dataset_key(w->ds, sample, key);
    int r = cell_of(w, sample, &cell, w->reason);

    if (r < 0)
        return r;
    ret->other = len + 1 + kaldi_cell_size(&cell, KALDI_AS_ENTRY);
    ret->size = len + 1 + w->file_len + 1 + decimal_digits(before->other + len + 1) + 1;
    return 0;
}

static int count_line(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct work *w = ctx;
    struct kaldi_cell cell;
    int r = cell_of(w, sample, &cell, w->reason);

    (void)before;
    if (r == 0)
        ret->size = kaldi_cell_size(&cell, KALDI_AS_LINE);
    return r;
}

static int count_key(void *ctx, uint64_t sample, const struct sums_pair *before,
                     struct sums_pair *ret)
{
    struct work *w = ctx;
    uint8_t key[KEY_ROOM];

    (void)before;
    ret->size = dataset_key(w->ds, sample, key) + 1;
    return 0;
}

/* ---- walks over a file ---- */

/* Bytes [off, off + len) of what one sample is in the file. */
typedef int item_fn(struct work *w, uint64_t sample, const struct sums_pair *before, uint64_t off,
                    size_t len, uint8_t *dst, struct diag *d);

/* A file of items of differing sizes, one behind another; unit: bytes of one that is summed up. */
static int read_summed(struct work *w, sums_fn *number, uint64_t unit, item_fn *item, uint64_t off,
                       size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before, after;
    uint64_t place = 0;
    int r;

    w->reason = d;
    r = open_sums(w, number, &sums);
    if (r == 0 && len)
        r = sums_find(&sums, off / unit, &place, &before);
    for (; r == 0 && len; place++, before = after) {
        uint64_t sample, end;
        size_t n;

        r = sums_before(&sums, place + 1, &after);
        end = after.size * unit;
        if (r < 0 || end <= off)
            continue;
        w->sel->samples(w->sel, place, 1, &sample);
        n = (size_t)min_u64(len, end - off);
        r = item(w, sample, &before, off - before.size * unit, n, dst, d);
        dst += n;
        off += n;
        len -= n;
    }
    return r;
}

/* A file of items of one size. */
static int read_even(struct work *w, uint64_t each, item_fn *item, uint64_t off, size_t len,
                     uint8_t *dst, struct diag *d)
{
    int r = 0;

    while (r == 0 && len) {
        size_t n = (size_t)min_u64(len, each - off % each);
        uint64_t sample;

        w->sel->samples(w->sel, off / each, 1, &sample);
        r = item(w, sample, NULL, off % each, n, dst, d);
        dst += n;
        off += n;
        len -= n;
    }
    return r;
}

/* ---- arrays ---- */

static int array_item(struct work *w, uint64_t sample, const struct sums_pair *before, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    int r = cell_of(w, sample, &cell, d);
    const struct kaldi_column *c = &w->set->column[w->of->column];
    const struct kaldi_array *array = &kaldi_types[c->table->type].array[w->of->array];

    (void)before;
    return r < 0 ? r
                 : kaldi_cell_array(w->set, &cell, w->of->array,
                                    array->real ? c->real : array->dtype, off, len, dst, d);
}

/* The second axis of the arrays of a selection; 1 where they have one. */
static int find_tail(struct work *w)
{
    const struct kaldi_column *c = &w->set->column[w->of->column];
    int r = 0;

    if (axes_of(c, w->of->array) < 2) {
        w->tail = 1;
    } else if (kaldi_types[c->table->type].n_arrays && c->table->type != KALDI_MATRIX) {
        w->tail = 2; /* pairs */
    } else if (!c->varies) {
        w->tail = c->tail;
    } else {
        for (uint64_t place = 0; place < w->sel->count && !w->tail && r == 0; place++) {
            struct kaldi_cell cell;
            uint64_t sample, dim[2];

            w->sel->samples(w->sel, place, 1, &sample);
            r = cell_of(w, sample, &cell, w->reason);
            if (r == 0)
                kaldi_cell_form(&cell, w->of->array, dim);
            if (r == 0 && dim[0])
                w->tail = dim[1];
        }
    }
    return r;
}

static int one_form(struct work *w, struct form *ret)
{
    struct kaldi_cell cell;
    uint64_t sample;
    int r;

    w->sel->samples(w->sel, 0, 1, &sample);
    r = cell_of(w, sample, &cell, w->reason);
    if (r == 0)
        ret->ndim = kaldi_cell_form(&cell, w->of->array, ret->dim);
    return r;
}

/* [first] and the second axis, if there is one. */
static void add_axes(const struct work *w, uint64_t first, struct form *ret)
{
    ret->dim[ret->ndim++] = first;
    if (axes_of(&w->set->column[w->of->column], w->of->array) > 1)
        ret->dim[ret->ndim++] = w->tail;
}

static int ragged_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    if (sel->single)
        return one_form(&w, ret);
    ret->ndim = 0;
    r = find_tail(&w);
    if (r == 0)
        r = open_sums(&w, count_rows, &sums);
    if (r == 0)
        add_axes(&w, sums_total(&sums).size, ret);
    return r;
}

static int ragged_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;
    uint64_t sample;
    int r;

    work_init(&w, ds, f, sel);
    if (sel->single) {
        sel->samples(sel, 0, 1, &sample);
        return array_item(&w, sample, NULL, off, len, dst, d);
    }
    w.reason = d;
    r = find_tail(&w);
    if (r < 0 || !w.tail)
        return r;
    return read_summed(&w, count_rows, w.tail * f->width, array_item, off, len, dst, d);
}

static int padded_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    ret->ndim = 0;
    ret->dim[ret->ndim++] = sel->count;
    r = find_tail(&w);
    if (r == 0)
        r = open_sums(&w, count_rows, &sums);
    if (r == 0)
        add_axes(&w, sums_most(&sums), ret);
    return r;
}

/* An array, then zeros. */
static int padded_item(struct work *w, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct kaldi_column *c = &w->set->column[w->of->column];
    const struct kaldi_array *array = &kaldi_types[c->table->type].array[w->of->array];
    unsigned width = c->table->type == KALDI_WAVE ? 2
                     : array->real                ? dtype_info(c->real)->bytes
                                                  : dtype_info(array->dtype)->bytes;
    struct kaldi_cell cell;
    uint64_t dim[2], bytes;
    size_t n;
    int r = cell_of(w, sample, &cell, d);

    (void)before;
    if (r < 0)
        return r;
    kaldi_cell_form(&cell, w->of->array, dim);
    bytes = dim[0] * dim[1] * width;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, 0, len - n);
    return n ? array_item(w, sample, NULL, off, n, dst, d) : 0;
}

static int padded_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    w.reason = d;
    r = find_tail(&w);
    if (r == 0)
        r = open_sums(&w, count_rows, &sums);
    if (r < 0 || !len)
        return r;
    return read_even(&w, sums_most(&sums) * w.tail * f->width, padded_item, off, len, dst, d);
}

/* int64 numbers, made one by one; count: of them. */
static int read_numbers(struct work *w, bool lengths, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before = {0}, after = {0};
    int r;

    w->reason = d;
    r = find_tail(w);
    if (r == 0)
        r = open_sums(w, count_rows, &sums);
    if (r == 0 && len)
        r = sums_before(&sums, off / 8, &before);
    while (r == 0 && len) {
        uint64_t place = off / 8;
        size_t skip = (size_t)(off % 8), n = (size_t)min_u64(len, 8 - skip);
        uint8_t bytes[8];

        if (place < w->sel->count)
            r = sums_before(&sums, place + 1, &after);
        store_le64(bytes, lengths ? after.size - before.size : before.size);
        memcpy(dst, bytes + skip, n);
        before = after;
        dst += n;
        off += n;
        len -= n;
    }
    return r;
}

static int lengths_read(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_numbers(&w, true, off, len, dst, d);
}

static int offsets_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    (void)ds;
    (void)f;
    ret->ndim = 1;
    ret->dim[0] = sel->count + 1;
    return 0;
}

static int offsets_read(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_numbers(&w, false, off, len, dst, d);
}

/* A sample that cannot be read has no file; of a batch that is found out when it is read. */
static int value_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    struct kaldi_cell cell;
    struct work w;
    uint64_t sample;

    work_init(&w, ds, f, sel);
    ret->ndim = 0;
    if (!sel->single) {
        ret->dim[ret->ndim++] = sel->count;
        return 0;
    }
    sel->samples(sel, 0, 1, &sample);
    return cell_of(&w, sample, &cell, sel->reason);
}

static int value_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_even(&w, f->width, array_item, off, len, dst, d);
}

/* The samples a second of audio. */
static int rate_item(struct work *w, uint64_t sample, const struct sums_pair *before, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    uint8_t bytes[4];
    int r = cell_of(w, sample, &cell, d);

    (void)before;
    if (r < 0)
        return r;
    store_le32(bytes, (uint32_t)cell.row.object.dim[2]);
    memcpy(dst, bytes + off, len);
    return 0;
}

static int rate_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_even(&w, 4, rate_item, off, len, dst, d);
}

/* ---- objects and text ---- */

static int cell_bytes(struct work *w, enum kaldi_bytes way, uint64_t sample, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    int r = cell_of(w, sample, &cell, d);

    return r < 0 ? r : kaldi_cell_bytes(w->set, &cell, way, off, len, dst, d);
}

static int line_item(struct work *w, uint64_t sample, const struct sums_pair *before, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    (void)before;
    return cell_bytes(w, KALDI_AS_LINE, sample, off, len, dst, d);
}

/* The size of a file that sums tell. */
static int summed_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       sums_fn *number, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    r = open_sums(&w, number, &sums);
    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = sums_total(&sums).size;
    return 0;
}

static int line_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret)
{
    return summed_form(ds, f, sel, count_line, ret);
}

static int line_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_summed(&w, count_line, 1, line_item, off, len, dst, d);
}

/* The bytes of one sample alone. */
static int alone_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      enum kaldi_bytes way, struct form *ret)
{
    struct kaldi_cell cell;
    struct work w;
    uint64_t sample;
    int r;

    work_init(&w, ds, f, sel);
    sel->samples(sel, 0, 1, &sample);
    r = cell_of(&w, sample, &cell, sel->reason);
    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = kaldi_cell_size(&cell, way);
    return 0;
}

static int alone_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      enum kaldi_bytes way, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;
    uint64_t sample;

    work_init(&w, ds, f, sel);
    sel->samples(sel, 0, 1, &sample);
    return cell_bytes(&w, way, sample, off, len, dst, d);
}

static int object_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    return alone_form(ds, f, sel, KALDI_AS_STORED, ret);
}

static int object_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    return alone_read(ds, f, sel, KALDI_AS_STORED, off, len, dst, d);
}

static int audio_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    return alone_form(ds, f, sel, KALDI_AS_WAV, ret);
}

static int audio_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    return alone_read(ds, f, sel, KALDI_AS_WAV, off, len, dst, d);
}

/* ---- archives ---- */

static int archive_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    return summed_form(ds, f, sel, count_entry, ret);
}

static int archive_item(struct work *w, uint64_t sample, const struct sums_pair *before,
                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t head[KEY_ROOM + 1];
    size_t room = dataset_key(w->ds, sample, head);

    (void)before;
    head[room++] = ' ';
    if (off < room) {
        size_t n = (size_t)min_u64(len, room - off);

        memcpy(dst, head + off, n);
        dst += n;
        off += n;
        len -= n;
    }
    return len ? cell_bytes(w, KALDI_AS_ENTRY, sample, off - room, len, dst, d) : 0;
}

/* Is the key the one that stands in the archive? A table may be joined by speaker, and a key that
 * stands twice is shown with ~ and a number. */
static bool has_own_key(const struct kaldi_cell *cell, const uint8_t *key, size_t len)
{
    uint8_t own[KEY_MAX];

    return !(cell->table->index.renamed && memchr(key, '~', len)) &&
           key_index_key(&cell->table->index, cell->number, own) == len && !memcmp(own, key, len);
}

/* Where an entry stands in its file as it is shown. false: nowhere. */
static bool entry_place(const struct work *w, uint64_t place, const struct blob **ret_blob,
                        uint64_t *ret_start, uint64_t *ret_end)
{
    struct kaldi_cell cell;
    uint8_t key[KEY_ROOM];
    uint64_t sample;
    size_t len;

    w->sel->samples(w->sel, place, 1, &sample);
    if (cell_of(w, sample, &cell, NULL) < 0 || !cell.row.is_plain || !kaldi_cell_is_stored(&cell))
        return false;
    len = dataset_key(w->ds, sample, key) + 1;
    if (cell.row.object.start < len || !has_own_key(&cell, key, len - 1))
        return false;
    *ret_blob = cell.row.blob;
    *ret_start = cell.row.object.start - len;
    *ret_end = cell.row.object.start + cell.row.object.len;
    return true;
}

/* How many bytes from byte off of the file on, at place, stand in the source just so: entries that
 * follow each other there, too. *ret_at: where. */
static size_t run_of_entries(const struct work *w, uint64_t place, uint64_t skip, size_t len,
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

static int read_run(const struct blob *blob, uint64_t at, size_t len, uint8_t *dst, struct diag *d)
{
    int r = blob_pread(blob, dst, len, at);

    if (r == 0)
        r = blob_check(blob);
    return r < 0 ? diag_set(d, r, "%s: %zu bytes at %llu: %s", blob_name(blob), len,
                            (unsigned long long)at, strerror(-r))
                 : 0;
}

static int archive_read(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    const struct blob *blob = NULL;
    struct sums_pair before;
    uint64_t place, at = 0;
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    w.reason = d;
    r = open_sums(&w, count_entry, &sums);
    while (r == 0 && len) {
        size_t n;

        r = sums_find(&sums, off, &place, &before);
        if (r < 0)
            break;
        n = run_of_entries(&w, place, off - before.size, (size_t)min_u64(len, RUN_BYTES), &blob,
                           &at);
        if (n) {
            r = read_run(blob, at, n, dst, d);
        } else {
            struct sums_pair after;
            uint64_t sample;

            r = sums_before(&sums, place + 1, &after);
            if (r < 0)
                break;
            n = (size_t)min_u64(len, after.size - off);
            sel->samples(sel, place, 1, &sample);
            r = archive_item(&w, sample, &before, off - before.size, n, dst, d);
        }
        dst += n;
        off += n;
        len -= n;
    }
    return r;
}

/* ---- scp files ---- */

/* The archive that the scp file is of, as it is named beside it. */
static void name_archive(struct work *w, const struct field *f)
{
    snprintf(w->suffix, sizeof(w->suffix), "%s%s.ark", f->unnamed ? "" : ".",
             f->unnamed ? "" : f->name);
    w->file_len = strlen(w->sel->file ? w->sel->file : "") + strlen(w->suffix);
}

static int script_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    name_archive(&w, f);
    r = open_sums(&w, count_script, &sums);
    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = sums_total(&sums).size;
    return 0;
}

static int script_item(struct work *w, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_FREE uint8_t *line = malloc(KEY_ROOM + w->file_len + 32);
    size_t n;

    (void)d;
    if (!line)
        return -ENOMEM;
    n = dataset_key(w->ds, sample, line);
    snprintf((char *)line + n, w->file_len + 32, " %s%s:%llu\n", w->sel->file ? w->sel->file : "",
             w->suffix, (unsigned long long)(before->other + n + 1));
    memcpy(dst, line + off, len);
    return 0;
}

static int script_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    name_archive(&w, f);
    return read_summed(&w, count_script, 1, script_item, off, len, dst, d);
}

/* ---- keys, and text as an element a sample ---- */

/* Elements as wide as the longest. */
static int string_form_of(const struct dataset *ds, const struct field *f,
                          const struct selection *sel, sums_fn *number, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct work w;
    int r;

    work_init(&w, ds, f, sel);
    r = open_sums(&w, number, &sums);
    if (r < 0)
        return r;
    ret->ndim = 0;
    if (!sel->single)
        ret->dim[ret->ndim++] = sel->count;
    ret->width = max_u64(sums_most(&sums), 2) - 1;
    return 0;
}

/* Bytes of a text, then zeros. */
static int string_item(struct work *w, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    uint64_t bytes;
    size_t n;
    int r = cell_of(w, sample, &cell, d);

    (void)before;
    if (r < 0)
        return r;
    bytes = kaldi_cell_size(&cell, KALDI_AS_LINE) - 1;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, 0, len - n);
    return kaldi_cell_bytes(w->set, &cell, KALDI_AS_LINE, off, n, dst, d);
}

static int key_item(struct work *w, uint64_t sample, const struct sums_pair *before, uint64_t off,
                    size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t key[KEY_ROOM];
    size_t bytes = dataset_key(w->ds, sample, key), n;

    (void)before;
    (void)d;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, 0, len - n);
    if (n)
        memcpy(dst, key + off, n);
    return 0;
}

static int read_strings(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, sums_fn *number, item_fn *item, uint64_t off,
                        size_t len, uint8_t *dst, struct diag *d)
{
    struct form form;
    struct work w;
    int r = string_form_of(ds, f, sel, number, &form);

    work_init(&w, ds, f, sel);
    return r < 0 ? r : read_even(&w, form.width, item, off, len, dst, d);
}

static int string_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    return string_form_of(ds, f, sel, count_line, ret);
}

static int string_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    return read_strings(ds, f, sel, count_line, string_item, off, len, dst, d);
}

static int key_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                    struct form *ret)
{
    return string_form_of(ds, f, sel, count_key, ret);
}

static int key_read(const struct dataset *ds, const struct field *f, const struct selection *sel,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    return read_strings(ds, f, sel, count_key, key_item, off, len, dst, d);
}

static int key_lines_form(const struct dataset *ds, const struct field *f,
                          const struct selection *sel, struct form *ret)
{
    return summed_form(ds, f, sel, count_key, ret);
}

static int key_line_item(struct work *w, uint64_t sample, const struct sums_pair *before,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t line[KEY_ROOM + 1];

    (void)before;
    (void)d;
    line[dataset_key(w->ds, sample, line)] = '\n';
    memcpy(dst, line + off, len);
    return 0;
}

static int key_lines_read(const struct dataset *ds, const struct field *f,
                          const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d)
{
    struct work w;

    work_init(&w, ds, f, sel);
    return read_summed(&w, count_key, 1, key_line_item, off, len, dst, d);
}

/* ---- the fields ---- */

static const struct field_ops ragged_ops = {ragged_read, ragged_form};
static const struct field_ops padded_ops = {padded_read, padded_form};
static const struct field_ops lengths_ops = {lengths_read, NULL};
static const struct field_ops offsets_ops = {offsets_read, offsets_form};
static const struct field_ops value_ops = {value_read, value_form};
static const struct field_ops rate_ops = {rate_read, value_form};
static const struct field_ops string_ops = {string_read, string_form};
static const struct field_ops line_ops = {line_read, line_form};
static const struct field_ops object_ops = {object_read, object_form};
static const struct field_ops audio_ops = {audio_read, audio_form};
static const struct field_ops archive_ops = {archive_read, archive_form};
static const struct field_ops script_ops = {script_read, script_form};
static const struct field_ops key_ops = {key_read, key_form};
static const struct field_ops key_lines_ops = {key_lines_read, key_lines_form};

static void add_field(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                      enum field_role role, const struct field_ops *ops, enum dtype dtype)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    struct field *f = &ds->field[ds->n_fields++];

    *f = (struct field){.role = role, .ops = ops, .dtype = dtype, .own = of};
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    f->unnamed = of && set->column[of->column].is_alone;
    snprintf(f->name, sizeof(f->name), "%s%s", of ? set->column[of->column].table->name : "",
             suffix);
}

/* An array of cells that differ in length, in all its forms. */
static void add_array(struct dataset *ds, const struct kaldi_field *of, const char *suffix,
                      enum field_role role, enum dtype dtype)
{
    char name[FIELD_NAME_ROOM];

    add_field(ds, of, suffix, role, &ragged_ops, dtype);
    add_field(ds, of, suffix, FIELD_PADDED, &padded_ops, dtype);
    snprintf(name, sizeof(name), "%s_len", suffix);
    add_field(ds, of, name, FIELD_LENGTHS, &lengths_ops, DTYPE_I8);
    snprintf(name, sizeof(name), "%s_offsets", suffix);
    add_field(ds, of, name, FIELD_OFFSETS, &offsets_ops, DTYPE_I8);
}

static unsigned count_waves(const struct kaldi_set *set)
{
    unsigned n = 0;

    for (unsigned i = 0; i < set->n_columns; i++)
        n += set->column[i].table->type == KALDI_WAVE;
    return n;
}

static void add_column(struct dataset *ds, unsigned column, struct kaldi_field *of)
{
    enum kaldi_type type = kaldi_set_of(ds)->column[column].table->type;
    const struct kaldi_type_info *info = &kaldi_types[type];

    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        of[i] = (struct kaldi_field){.column = column, .array = i};
    for (unsigned i = 0; i < info->n_arrays; i++) {
        const struct kaldi_array *array = &info->array[i];
        enum dtype dtype = type == KALDI_BOOL ? DTYPE_BOOL : array->dtype;

        if (array->ndim)
            add_array(ds, &of[i], array->suffix, FIELD_RAGGED, dtype);
        else
            add_field(ds, &of[i], array->suffix, FIELD_VALUE, &value_ops, dtype);
    }
    if (type == KALDI_WAVE) {
        add_array(ds, of, "", FIELD_DECODED, DTYPE_I2);
        add_field(ds, of, "_rate", FIELD_PARSED, &rate_ops, DTYPE_I4);
        add_field(ds, of, "", FIELD_AUDIO, &audio_ops, DTYPE_U1);
        ds->field[ds->n_fields - 1].unnamed = count_waves(kaldi_set_of(ds)) == 1;
    }
    if (type == KALDI_TOKEN || type == KALDI_TOKENS) {
        add_field(ds, of, "", FIELD_STRING, &string_ops, DTYPE_TEXT);
        add_field(ds, of, "", FIELD_LINE, &line_ops, DTYPE_U1);
    }
    add_field(ds, of, "", FIELD_OBJECT, &object_ops, DTYPE_U1);
    add_field(ds, of, "", FIELD_ARCHIVE, &archive_ops, DTYPE_U1);
    add_field(ds, of, "", FIELD_SCRIPT, &script_ops, DTYPE_U1);
}

int kaldi_fields_init(struct dataset *ds)
{
    struct kaldi_set *set = ds->own;
    unsigned n = set->n_columns;

    ds->field = calloc((size_t)n * FIELDS_OF_COLUMN + FIELDS_OF_SET, sizeof(*ds->field));
    set->field = calloc((size_t)n * KALDI_ARRAYS_MAX, sizeof(*set->field));
    if (!ds->field || !set->field)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        add_column(ds, i, &set->field[i * KALDI_ARRAYS_MAX]);
    add_field(ds, NULL, "key", FIELD_KEY_LINES, &key_lines_ops, DTYPE_U1);
    dataset_add_numbering(ds);
    ds->field[ds->n_fields - 1].ops = &key_ops;
    return 0;
}

/* The axes of an item, for people: those that differ are marked so. */
static int set_axes(struct field *f, const struct kaldi_column *c, unsigned array)
{
    f->ndim = axes_of(c, array);
    f->dim = calloc(2, sizeof(*f->dim));
    if (!f->dim)
        return -ENOMEM;
    f->dim[0] = DIM_VARIES;
    f->dim[1] = c->table->type != KALDI_MATRIX && c->table->type != KALDI_WAVE ? 2
                : c->varies                                                    ? DIM_VARIES
                                                                               : c->tail;
    return 0;
}

int kaldi_fields_finish(struct dataset *ds)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    int r = 0;

    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        struct field *f = &ds->field[i];
        const struct kaldi_field *of = f->own;
        const struct kaldi_column *c = of ? &set->column[of->column] : NULL;
        const struct kaldi_type_info *info = c ? &kaldi_types[c->table->type] : NULL;

        if (f->role == FIELD_KEY)
            f->width = f->item_bytes = max_u64(set->keys->key_most, 1);
        if (!c)
            continue;
        if (f->role == FIELD_RAGGED || f->role == FIELD_PADDED || f->role == FIELD_VALUE)
            if (info->n_arrays && info->array[of->array].real)
                f->dtype = c->real;
        if (f->role == FIELD_RAGGED || f->role == FIELD_DECODED)
            r = set_axes(f, c, of->array);
        f->width = f->item_bytes = dtype_info(f->dtype)->bytes;
    }
    return r;
}
