/* A format of records whose columns each file learns, as small as one can be: records have what
 * they like, numbers are read from text, and some contents are decoded. Only the tests' epochfs has
 * it.
 *
 * A file is "TESTLRN1" and records, all little-endian:
 *
 *     u16 bytes of the key, u16 contents, the key; then for each content
 *     u8 bytes of its name, u8 kind, u32 bytes, its name, its bytes
 *
 * Kinds: i int64; h int16 array of [n]; m int16 array of [n][2]; b bytes, named "<name>.<ext>"; x
 * the same, each byte inverted; t text; d an int64 as decimal text. */
#include "support/learned_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/records/column_table.h"
#include "format/records/record_set.h"

#define MAGIC_BYTES 8
#define STEP        1000 /* records of a step of preparing */

/* Columns of the index: where a record begins; of each content its bytes and 1, 0: it has none, and
 * where they are in the record. */
enum { AT, FIXED };
enum { BYTES, PLACE, NUMBERS_EACH };
#define COLUMNS ((INDEX_LEARNED - FIXED) / NUMBERS_EACH)

struct file {
    struct record_file base;
    uint64_t at;               /* of the next record, while the index is made */
    struct column_table names; /* a kind and a name each; number[0]: records; [1], [2]: least and
                                * most bytes */
    uint64_t *number;          /* [INDEX_LEARNED] of the record being added */
};

/* ---- the index ---- */

/* Read len bytes at *at and go on behind them. */
static int take(struct file *file, uint64_t *at, void *ret, size_t len, struct diag *d)
{
    uint64_t left = file->base.blob->size - *at;
    int r = left < len ? diag_set(d, -EBADMSG, "%s: byte %llu: expected %zu bytes, got %llu",
                                  blob_name(file->base.blob), (unsigned long long)*at, len,
                                  (unsigned long long)left)
                       : blob_read(READ_WAITS, file->base.blob, ret, len, *at, d);

    *at += r == 0 ? len : 0;
    return r;
}

static void note_bytes(struct learned_column *column, uint64_t bytes)
{
    column->number[1] = column->number[0] ? min_u64(column->number[1], bytes) : bytes;
    column->number[2] = max_u64(column->number[2], bytes);
    column->number[0]++;
}

static int add_content(struct file *file, uint64_t start, uint64_t *at, struct diag *d)
{
    uint8_t head[6], name[256];
    unsigned i;
    int r = take(file, at, head, sizeof(head), d);

    if (r == 0)
        r = take(file, at, name + 1, head[0], d);
    if (r < 0)
        return r;
    name[0] = head[1];
    if (load_le32(head + 2) > file->base.blob->size - *at)
        return diag_set(d, -EBADMSG, "%s: byte %llu: a content ends after the file",
                        blob_name(file->base.blob), (unsigned long long)*at);
    r = column_table_add(&file->names, name, head[0] + 1u, &i);
    if (r == 0)
        r = index_builder_columns(file->base.prepared.builder,
                                  FIXED + file->names.n * NUMBERS_EACH);
    if (r == 0) {
        file->number[FIXED + i * NUMBERS_EACH + BYTES] = load_le32(head + 2) + UINT64_C(1);
        file->number[FIXED + i * NUMBERS_EACH + PLACE] = *at - start;
        note_bytes(&file->names.column[i], load_le32(head + 2));
    }
    *at += load_le32(head + 2);
    return r == -E2BIG ? 0 : r;
}

static int add_record(struct file *file, struct diag *d)
{
    uint8_t head[4], key[KEY_MAX];
    uint64_t at = file->at;
    int r = take(file, &at, head, sizeof(head), d);

    if (r == 0)
        r = take(file, &at, key, min_u64(load_le16(head), KEY_MAX), d);
    memset(file->number, 0, INDEX_LEARNED * sizeof(*file->number));
    file->number[AT] = file->at;
    for (unsigned i = 0; r == 0 && i < load_le16(head + 2); i++)
        r = add_content(file, file->at, &at, d);
    if (r == 0)
        r = index_add(file->base.prepared.builder, key, load_le16(head), file->number);
    if (r == 0)
        file->at = at;
    return r;
}

static int set_columns(struct file *file)
{
    static const struct {
        enum record_shown shown;
        enum dtype dtype;
        unsigned ndim, bytes;
    } kinds[] = {['i'] = {RECORD_NUMBERS, DTYPE_I8, 0, 8}, ['h'] = {RECORD_NUMBERS, DTYPE_I2, 1, 2},
                 ['m'] = {RECORD_NUMBERS, DTYPE_I2, 2, 4}, ['b'] = {RECORD_BYTES, DTYPE_U1, 1, 1},
                 ['x'] = {RECORD_BYTES, DTYPE_U1, 1, 1},   ['t'] = {RECORD_TEXT, DTYPE_U1, 1, 1},
                 ['d'] = {RECORD_NUMBERS, DTYPE_I8, 0, 0}};
    int r = 0;

    for (unsigned i = 0; i < file->names.n && r == 0; i++) {
        const struct learned_column *learned = &file->names.column[i];
        const char *name = learned->name + 1, *dot = strchr(name, '.');
        size_t len = learned->len - 1;
        unsigned kind = (unsigned)min_u64((uint8_t)learned->name[0], ARRAY_LEN(kinds) - 1);
        char shown[RECORD_NAME_MAX + 1];
        struct record_column column = {.name = shown,
                                       .ext = dot ? dot + 1 : "bin",
                                       .shown = kinds[kind].shown,
                                       .dtype = kinds[kind].dtype,
                                       .ndim = kinds[kind].ndim,
                                       .dim = {DIM_VARIES, 2}};

        record_name(name, dot ? (size_t)(dot - name) : len, RECORD_NAME_MAX, shown);
        column.has_holes = learned->number[0] < file->base.prepared.index.rows;
        if (column.ndim && learned->number[1] == learned->number[2])
            column.dim[0] = learned->number[1] / kinds[kind].bytes;
        r = record_file_add(&file->base, &column);
    }
    return r;
}

/* The numbers of a kept index are hostile: no content may end after the file. */
static int file_take(void *impl, const struct index *index)
{
    const struct file *file = impl;
    uint64_t size = file->base.blob->size, number[INDEX_LEARNED];
    int r = index->shape.columns == FIXED + file->names.n * NUMBERS_EACH ? 0 : -EBADMSG;

    for (uint64_t row = 0; r == 0 && row < index->rows; row++) {
        index_row(index, row, number);
        for (unsigned i = FIXED; i < index->shape.columns; i += NUMBERS_EACH)
            if (number[AT] > size || number[i + PLACE] > size - number[AT] ||
                number[i + BYTES] > size - number[AT] - number[i + PLACE] + 1)
                r = -EBADMSG;
    }
    return r;
}

static int file_step(void *impl, struct diag *d)
{
    struct file *file = impl;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0 && file->at < file->base.blob->size; i++)
        r = add_record(file, d);
    atomic_store(&file->base.prepared.seen, file->at);
    if (r < 0 || file->at < file->base.blob->size)
        return r;
    file->base.prepared.end[AT] = file->at;
    return 1;
}

static void file_keep(void *impl, struct kept *k)
{
    column_table_keep(k, &((struct file *)impl)->names);
}

static int file_ready(void *impl, struct diag *d)
{
    struct file *file = impl;

    (void)d;
    column_table_settle(&file->names);
    return set_columns(file);
}

static int file_open(void *p, const struct record_source *source, struct diag *d)
{
    struct file *file = p;

    (void)source;
    file->number = malloc(INDEX_LEARNED * sizeof(*file->number));
    file->at = MAGIC_BYTES;
    file->names.most = COLUMNS;
    return file->number ? 0 : diag_set(d, -ENOMEM, "no memory");
}

static void file_release(void *p)
{
    struct file *file = p;

    free(file->number);
}

static const struct record_file_ops file_ops = {
    .size = sizeof(struct file),
    .index = {.version = "testlrn 1",
              .keep = file_keep,
              .load = file_take,
              .step = file_step,
              .ready = file_ready},
    .shape = {.columns = FIXED, .rising = 1u << AT, .has_keys = true, .learns = true},
    .open = file_open,
    .release = file_release,
};

/* ---- the contents of a record ---- */

static uint64_t number_of(const struct file *file, uint64_t row, unsigned column, unsigned which)
{
    return index_number(&file->base.prepared.index, row, FIXED + column * NUMBERS_EACH + which);
}

static bool file_has(const void *p, uint64_t row, unsigned column)
{
    return number_of(p, row, column, BYTES) > 0;
}

static bool file_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct file *file = p;

    *ret = (struct extent){file->base.blob,
                           index_number(&file->base.prepared.index, row, AT) +
                               number_of(file, row, column, PLACE),
                           number_of(file, row, column, BYTES) - 1};
    return ret->len > 0;
}

static uint64_t file_length(const void *p, uint64_t row, unsigned column)
{
    const struct file *file = p;
    char kind = file->names.column[column].name[0];

    return (number_of(p, row, column, BYTES) - 1) / (kind == 'h' ? 2 : kind == 'm' ? 4 : 1);
}

/* An int64 as text: at most 20 bytes. */
static int read_decimal(struct read_context *rc, const struct extent *e, uint8_t ret[8],
                        struct diag *d)
{
    char text[24] = "";
    char *end = text;
    long long v = 0;
    int r = e->len < sizeof(text) ? blob_read(rc, e->blob, text, e->len, e->off, d) : 0;

    if (r < 0)
        return r;
    if (e->len < sizeof(text))
        v = strtoll(text, &end, 10);
    if (end == text || *end)
        return diag_set(d, -EIO, "%s: byte %llu: expected a decimal number, got '%s'",
                        blob_name(e->blob), (unsigned long long)e->off, text);
    store_le64(ret, (uint64_t)v);
    return 0;
}

static int file_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct file *file = p;
    char kind = file->names.column[column].name[0];
    uint8_t number[8];
    struct extent e;
    int r;

    file_extent(p, row, column, &e);
    if (kind == 'd') {
        r = read_decimal(rc, &e, number, d);
        if (r == 0)
            memcpy(dst, number + off, len);
        return r;
    }
    r = blob_read(rc, e.blob, dst, len, e.off + off, d);
    for (size_t i = 0; i < len && kind == 'x' && r == 0; i++)
        dst[i] = (uint8_t)~dst[i];
    return r;
}

static void file_note(const void *p, struct text *t)
{
    const struct file *file = p;

    if (file->names.left_out)
        text_add(t, "%s: more than %u fields; left out from '%s' on\n", blob_name(file->base.blob),
                 (unsigned)COLUMNS, file->names.first_out + 1);
}

static const struct record_format learned = {
    .format = &format_learned,
    .file = &file_ops,
    .has = file_has,
    .length = file_length,
    .extent = file_extent,
    .read = file_read,
    .keys_or_numbers = true,
    .note = file_note,
};

/* ---- the format: its files ---- */

static enum claim probe(const struct probed_file *file)
{
    bool is_ours = file->len >= MAGIC_BYTES && !memcmp(file->head, "TESTLRN1", MAGIC_BYTES);

    return is_ours ? CLAIM_STRONG : CLAIM_NONE;
}

const struct format format_learned = {
    .name = "learned",
    .probe = probe,
    .records = &learned,
    .title = "records of the tests, with columns that are learned",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n",
};
