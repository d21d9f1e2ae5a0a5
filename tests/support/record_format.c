/* A format of records, as small as one can be: what the core asks of a format, and what it gives.
 * docs/internals/formats.md walks through it. Only the tests' epochfs has it.
 *
 * A file is "TESTREC1" and records, all little-endian:
 *
 *     u16 bytes of the key, u32 rows of points, u32 bytes of blob, u32 bytes of text
 *     key, i32 label, f32 box[2][3], i16 points[rows][2], blob, text */
#include "support/record_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/core/record_set.h"
#include "format/encode/encode.h"

#define MAGIC       "TESTREC"
#define MAGIC_BYTES 8
#define HEAD_BYTES  14
#define LABEL_BYTES 4
#define BOX_BYTES   24
#define POINT_BYTES 4
#define STEP        1000 /* records of a step of preparing */

/* ---- a file: its index ---- */

/* Numbers of a row of the index. */
enum { AT, ROWS, BLOB, TEXT, N_NUMBERS };

struct file {
    struct blob *blob;
    const struct index_store *keep;
    unsigned users;
    uint64_t at; /* of the next record */
    struct index_builder *builder;
    struct kept_index kept;
    struct index index;
    bool is_ready;
    _Atomic uint64_t seen;
};

static void file_drop(void *p)
{
    struct file *file = p;

    if (!file || --file->users)
        return;
    index_builder_free(file->builder);
    kept_index_release(&file->kept);
    blob_free(file->blob);
    free(file);
}

static int file_open(struct blob *blob, const struct format_setup *setup, void **ret,
                     struct diag *d)
{
    struct file *file = calloc(1, sizeof(*file));
    uint8_t magic[MAGIC_BYTES];
    int r = file ? blob_read(READ_WAITS, blob, magic, sizeof(magic), 0, d) : -ENOMEM;

    if (r == 0 && magic[MAGIC_BYTES - 1] != '1')
        r = diag_set(d, -EBADMSG, "%s: byte 7: want version '1', found '%c'", blob_name(blob),
                     magic[MAGIC_BYTES - 1]);
    if (r < 0) {
        free(file);
        blob_free(blob);
        return r;
    }
    *file = (struct file){.blob = blob, .keep = setup->keep, .users = 1, .at = MAGIC_BYTES};
    *ret = file;
    return 0;
}

static int add_record(struct file *file, struct diag *d)
{
    uint64_t left = file->blob->size - file->at, number[N_NUMBERS];
    uint8_t head[HEAD_BYTES], key[KEY_MAX];
    uint64_t bytes = HEAD_BYTES;
    size_t key_len;
    int r = 0;

    if (left >= HEAD_BYTES)
        r = blob_read(READ_WAITS, file->blob, head, HEAD_BYTES, file->at, d);
    if (r < 0)
        return r;
    if (left >= HEAD_BYTES) {
        key_len = load_le16(head);
        number[AT] = file->at + HEAD_BYTES + key_len;
        number[ROWS] = load_le32(head + 2);
        number[BLOB] = load_le32(head + 6);
        number[TEXT] = load_le32(head + 10);
        bytes += key_len + LABEL_BYTES + BOX_BYTES + number[ROWS] * POINT_BYTES + number[BLOB] +
                 number[TEXT];
    }
    if (left < bytes || !key_len || key_len > KEY_MAX)
        return diag_set(d, -EBADMSG, "%s: byte %llu: want a record, found %llu bytes",
                        blob_name(file->blob), (unsigned long long)file->at,
                        (unsigned long long)left);
    r = blob_read(READ_WAITS, file->blob, key, key_len, file->at + HEAD_BYTES, d);
    if (r == 0)
        r = index_add(file->builder, key, key_len, number);
    if (r == 0)
        file->at += bytes;
    return r;
}

static bool take_kept(struct file *file, const char *identity)
{
    if (index_store_load(file->keep, "rows", identity, &file->kept) < 0)
        return false;
    if (index_open(file->kept.bytes, file->kept.size, &file->index) == 0 &&
        file->index.shape.columns == N_NUMBERS && file->index.shape.has_keys)
        return true;
    kept_index_release(&file->kept);
    index_store_remove(file->keep, "rows", identity);
    return false;
}

static int finish(struct file *file, const char *identity)
{
    const uint64_t end[N_NUMBERS] = {[AT] = file->at};
    struct iovec pieces[INDEX_PIECES];
    int r = index_finish(file->builder, end, NULL, NULL, &file->index);

    if (r == 0)
        r = index_bytes(file->builder, NULL, 0, &file->index, pieces);
    if (r == 0) /* not kept: the next mount makes it again */
        index_store_save(file->keep, "rows", identity, blob_source(file->blob), pieces,
                         INDEX_PIECES, &file->kept, NULL);
    return r;
}

static int file_prepare(void *p, struct diag *d)
{
    static const struct index_shape shape = {
        .columns = N_NUMBERS, .rising = 1u << AT, .has_keys = true};
    AUTO_FREE char *blob_id = NULL, *identity = NULL;
    struct file *file = p;
    int r;

    if (file->is_ready)
        return 1;
    r = blob_identity(file->blob, &blob_id);
    if (r == 0 && asprintf(&identity, "testrec 1 %s", blob_id) < 0)
        r = -ENOMEM;
    if (r == 0 && !file->builder) {
        file->is_ready = take_kept(file, identity);
        r = file->is_ready ? 1 : index_builder_new(&shape, &file->builder);
    }
    for (unsigned i = 0; i < STEP && r == 0 && file->at < file->blob->size; i++)
        r = add_record(file, d);
    if (r == 0 && file->at == file->blob->size) {
        r = finish(file, identity);
        file->is_ready = r == 0;
        r = r < 0 ? r : 1;
    }
    atomic_store(&file->seen, file->is_ready ? file->blob->size : file->at);
    return r;
}

static const struct blob *file_blob(const void *file)
{
    return ((const struct file *)file)->blob;
}

static uint64_t file_seen(const void *file)
{
    return atomic_load(&((const struct file *)file)->seen);
}

static uint64_t file_records(const void *file)
{
    return ((const struct file *)file)->index.rows;
}

static void file_share(void *file)
{
    ((struct file *)file)->users++;
}

static const struct index *file_index(const void *file)
{
    return &((const struct file *)file)->index;
}

/* ---- the contents of a record ---- */

enum { LABEL, BOX, POINTS, IMAGE, WORDS, N_COLUMNS };

static const struct record_column columns[N_COLUMNS] = {
    [LABEL] = {"label", RECORD_NUMBERS, .dtype = DTYPE_I4},
    [BOX] = {"box", RECORD_NUMBERS, .dtype = DTYPE_F4, .ndim = 2, .dim = {2, 3}},
    [POINTS] = {"points", RECORD_NUMBERS, .dtype = DTYPE_I2, .ndim = 2, .dim = {DIM_VARIES, 2}},
    [IMAGE] = {"image", RECORD_BYTES, "jpg"},
    [WORDS] = {"words", RECORD_TEXT},
};

static uint64_t file_length(const void *file, uint64_t row, unsigned column)
{
    static const unsigned number[] = {[POINTS] = ROWS, [IMAGE] = BLOB, [WORDS] = TEXT};

    return index_number(file_index(file), row, number[column]);
}

static uint64_t file_place(const void *file, uint64_t row, unsigned column)
{
    uint64_t number[N_NUMBERS], at[N_COLUMNS];

    index_row(file_index(file), row, number);
    at[LABEL] = number[AT];
    at[BOX] = at[LABEL] + LABEL_BYTES;
    at[POINTS] = at[BOX] + BOX_BYTES;
    at[IMAGE] = at[POINTS] + number[ROWS] * POINT_BYTES;
    at[WORDS] = at[IMAGE] + number[BLOB];
    return at[column];
}

static const struct record_format records = {
    .format = &format_records,
    .file = {file_prepare, file_blob, file_seen, file_records, NULL, file_drop},
    .open = file_open,
    .share = file_share,
    .index = file_index,
    .add_folders = dataset_add_folders,
    .column = columns,
    .n_columns = N_COLUMNS,
    .length = file_length,
    .place = file_place,
};

/* ---- the format: its files ---- */

static enum claim probe(const struct probed_file *file)
{
    bool is_ours = file->len >= MAGIC_BYTES && !memcmp(file->head, MAGIC, MAGIC_BYTES - 1);

    return is_ours ? CLAIM_STRONG : CLAIM_NONE;
}

static int open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                       struct finds *finds)
{
    return record_set_open_folder(&records, files, n, setup, finds);
}

static void example(const struct dataset *ds, struct text *t)
{
    (void)ds;
    text_add(t, "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n");
}

const struct format format_records = {
    .name = "records",
    .probe = probe,
    .open_folder = open_folder,
    .title = "records of the tests",
    .start = "TESTREC1",
    .example = example,
};
