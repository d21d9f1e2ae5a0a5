/* Archives and their scp files: entries of a key and an object, one after another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/kaldi/set/set.h"
#include "format/records/record_items.h"

#define RUN_BYTES (4u << 20)  /* of an archive, read at once */
#define PAGE      (64u << 10) /* at least the page size of every system */

/* ---- sums ---- */

/* The entry of a sample in an archive. An object that cannot be read has no key there. Instead it
 * has newlines up to the next PAGE boundary, which readers skip, and then one PAGE that cannot be
 * read. So the entries before it share no page with it and stay readable, and the entries after it
 * keep their places. */
struct entry {
    struct kaldi_cell cell;
    struct kaldi_view view; /* of the cell; the caller releases it */
    bool is_bad;
    uint64_t lead; /* bytes before the object: key and space, or the newlines */
    uint64_t size; /* bytes, lead included */
};

static void entry_release(struct entry *entry)
{
    kaldi_view_release(&entry->view);
}
#define AUTO_ENTRY AUTO(entry_release) /* of one that starts as {0} */

static int cell_of(const struct record_items *items, uint64_t sample, struct kaldi_cell *ret,
                   struct diag *d)
{
    return kaldi_cell(kaldi_set_of(items->ds), items->content->column, sample, ret, d);
}

/* The entry that begins at byte at. The file of a single bad sample has no bytes at all. */
static int kaldi_entries_entry_of(const struct record_items *items, uint64_t sample, uint64_t at,
                                  struct entry *ret, struct diag *d)
{
    uint8_t key[KEY_SIZE];
    int r;

    if (cell_of(items, sample, &ret->cell, NULL) == 0) {
        ret->is_bad = false;
        ret->lead = dataset_key(items->ds, sample, key) + 1;
        r = kaldi_view_any(items->rc ? items->rc : items->sel->rc, kaldi_set_of(items->ds),
                           &ret->cell, kaldi_content_way(items->content), &ret->view, d);
        ret->size = ret->lead + kaldi_view_size(&ret->view);
        return r;
    }
    if (items->sel->single || ret->cell.row.object.store != KALDI_BAD ||
        ret->cell.number >= ret->cell.table->base.prepared.index.rows)
        return cell_of(items, sample, &ret->cell, d);
    ret->is_bad = true;
    ret->lead = (PAGE - at % PAGE) % PAGE;
    ret->size = ret->lead + PAGE;
    return 0;
}

/* Entries of a field: an archive, or the lines of its scp file. */
struct entries {
    struct record_items items;
    bool is_script;
    /* For an scp file: */
    size_t file_len; /* bytes of the name of the archive, in front of the offset */
    char suffix[80]; /* of that name */
};

/* Counts the bytes of an archive in size; of an scp file these in other, and those of a line in
 * size. Objects that are written stay in the memo for the reads that follow, if they are not too
 * many. */
static int count_entry(void *ctx, uint64_t sample, const struct sums_pair *before,
                       struct sums_pair *ret)
{
    const struct entries *entries = ctx;
    const struct record_items *items = &entries->items;
    uint64_t at = entries->is_script ? before->other : before->size;
    AUTO_ENTRY struct entry entry = {0};
    uint8_t key[KEY_SIZE];
    int r = kaldi_entries_entry_of(items, sample, at, &entry, items->reason);

    if (r < 0)
        return r;
    ret->size = ret->other = entry.size;
    if (entries->is_script)
        ret->size = dataset_key(items->ds, sample, key) + 1 + entries->file_len + 1 +
                    decimal_digits(at + entry.lead) + 1;
    return 0;
}

/* ---- archives ---- */

static int bad_entry(const struct record_items *items, uint64_t sample, struct entry *entry,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    size_t n = off < entry->lead ? (size_t)min_u64(len, entry->lead - off) : 0;

    memset(dst, '\n', n);
    return n < len ? cell_of(items, sample, &entry->cell, d) : 0;
}

static int archive_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t head[KEY_SIZE + 1];
    AUTO_ENTRY struct entry entry = {0};
    size_t capacity;
    int r = kaldi_entries_entry_of(items, sample, before->size, &entry, d);

    if (r < 0)
        return r;
    if (entry.is_bad)
        return bad_entry(items, sample, &entry, off, len, dst, d);
    capacity = dataset_key(items->ds, sample, head);
    head[capacity++] = ' ';
    if (off < capacity) {
        size_t n = (size_t)min_u64(len, capacity - off);

        memcpy(dst, head + off, n);
        dst += n;
        off += n;
        len -= n;
    }
    return len ? kaldi_view_read(items->rc, kaldi_set_of(items->ds), &entry.view, off - capacity,
                                 len, dst, d)
               : 0;
}

/* Is the key equal to the one in the source archive? It differs if a table is joined by speaker, or
 * if a repeated key got ~ and a number. */
static bool has_stored_key(const struct kaldi_cell *cell, const uint8_t *key, size_t len)
{
    uint8_t stored[KEY_MAX];

    return !(cell->table->base.prepared.index.renamed && memchr(key, '~', len)) &&
           index_key(&cell->table->base.prepared.index, cell->number, stored) == len &&
           !memcmp(stored, key, len);
}

/* Where the source holds an entry byte for byte as shown. false: nowhere. */
static bool entry_place(struct record_items *items, uint64_t place, const struct blob **ret_blob,
                        uint64_t *ret_start, uint64_t *ret_end)
{
    struct kaldi_cell cell;
    struct kaldi_view view;
    uint8_t key[KEY_SIZE];
    uint64_t sample = record_items_sample(items, place);
    size_t len;

    if (cell_of(items, sample, &cell, NULL) < 0 || !cell.row.is_plain ||
        kaldi_is_written(&cell, kaldi_content_way(items->content)))
        return false;
    kaldi_view_bytes(&cell, KALDI_AS_ENTRY, &view);
    if (view.body != VIEW_STORED || view.head_len || view.is_ended)
        return false;
    len = dataset_key(items->ds, sample, key) + 1;
    if (cell.row.object.start < len || !has_stored_key(&cell, key, len - 1))
        return false;
    *ret_blob = cell.row.blob;
    *ret_start = cell.row.object.start - len;
    *ret_end = cell.row.object.start + cell.row.object.len;
    return true;
}

/* run() of struct record_items: entries that are neighbours in the source too. */
static int run_of_entries(struct record_items *items, uint64_t place, uint64_t skip, size_t len,
                          uint8_t *dst, size_t *ret_n, struct diag *d)
{
    uint64_t start, end, next_start, next_end;
    const struct blob *blob, *next;

    if (!entry_place(items, place, &blob, &start, &end))
        return 0;
    start += skip;
    len = (size_t)min_u64(len, RUN_BYTES);
    while (end - start < len && ++place < items->sel->count) {
        if (!entry_place(items, place, &next, &next_start, &next_end) || next != blob ||
            next_start != end)
            break;
        end = next_end;
    }
    *ret_n = (size_t)min_u64(len, end - start);
    return kaldi_read(items->rc, blob, start, *ret_n, dst, d);
}

/* ---- scp files ---- */

static int script_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct entries *entries = (const struct entries *)items;
    AUTO_FREE uint8_t *line = malloc(KEY_SIZE + entries->file_len + 32);
    AUTO_ENTRY struct entry entry = {0};
    size_t n;
    int r = kaldi_entries_entry_of(items, sample, before->other, &entry, d);

    if (r < 0)
        return r;
    if (!line)
        return -ENOMEM;
    n = dataset_key(items->ds, sample, line);
    snprintf((char *)line + n, entries->file_len + 32, " %s%s:%llu\n",
             items->sel->file ? items->sel->file : "", entries->suffix,
             (unsigned long long)(before->other + entry.lead));
    memcpy(dst, line + off, len);
    return 0;
}

/* ---- fields ---- */

static void entries_init(struct entries *ret, struct read_context *rc, const struct dataset *ds,
                         const struct field *f, const struct selection *sel)
{
    record_items_init(&ret->items, rc, ds, f, sel);
    ret->is_script = ret->items.content->what == AS_PLACE;
    if (!ret->is_script) {
        ret->items.run = run_of_entries;
        return;
    }
    snprintf(ret->suffix, sizeof(ret->suffix), "%s%s.ark", f->unnamed ? "" : ".",
             f->unnamed ? "" : f->name);
    ret->file_len = strlen(sel->file ? sel->file : "") + strlen(ret->suffix);
    ret->items.extra = ret->file_len;
}

static int entries_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    struct entries entries;

    entries_init(&entries, NULL, ds, f, sel);
    return record_items_form(&entries.items, count_entry, ret);
}

static int entries_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct entries entries;

    entries_init(&entries, rc, ds, f, sel);
    return record_items_read(&entries.items, count_entry, 1,
                             entries.is_script ? script_item : archive_item, off, len, dst, d);
}

const struct field_ops kaldi_entries_ops = {entries_read, entries_form};
