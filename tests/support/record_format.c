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
#include "format/records/record_set.h"

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
    struct record_file base;
    uint64_t at; /* of the next record, while the index is made */
};

static int testrec_add(struct file *file, struct diag *d)
{
    uint64_t left = file->base.blob->size - file->at, number[N_NUMBERS];
    uint8_t head[HEAD_BYTES], key[KEY_MAX];
    uint64_t bytes = HEAD_BYTES;
    size_t key_len = 0;
    int r = 0;

    if (left >= HEAD_BYTES)
        r = blob_read(READ_WAITS, file->base.blob, head, HEAD_BYTES, file->at, d);
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
        return diag_set(d, -EBADMSG, "%s: byte %llu: expected a record, got %llu bytes",
                        blob_name(file->base.blob), (unsigned long long)file->at,
                        (unsigned long long)left);
    r = blob_read(READ_WAITS, file->base.blob, key, key_len, file->at + HEAD_BYTES, d);
    if (r == 0)
        r = index_add(file->base.prepared.builder, key, key_len, number);
    if (r == 0)
        file->at += bytes;
    return r;
}

/* The numbers of a kept index are hostile: no record may end after the file. */
static int testrec_take(void *impl, const struct index *index)
{
    uint64_t size = ((const struct file *)impl)->base.blob->size, number[N_NUMBERS];

    for (uint64_t row = 0; row < index->rows; row++) {
        uint64_t left = size;

        index_row(index, row, number);
        for (unsigned i = 0; i < N_NUMBERS; i++) {
            uint64_t bytes = i == ROWS ? number[i] * POINT_BYTES : number[i];

            if (number[i] > size || bytes > left)
                return -EBADMSG;
            left -= bytes;
        }
        if (left < LABEL_BYTES + BOX_BYTES)
            return -EBADMSG;
    }
    return 0;
}

static int testrec_step(void *impl, struct diag *d)
{
    struct file *file = impl;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0 && file->at < file->base.blob->size; i++)
        r = testrec_add(file, d);
    atomic_store(&file->base.prepared.seen, file->at);
    if (r < 0 || file->at < file->base.blob->size)
        return r;
    file->base.prepared.end[AT] = file->at;
    return 1;
}

static int testrec_open(void *p, const struct record_source *source, struct diag *d)
{
    struct file *file = p;
    struct blob *blob = file->base.blob;
    uint8_t magic[MAGIC_BYTES];
    int r = blob_read(READ_WAITS, blob, magic, sizeof(magic), 0, d);

    (void)source;
    if (r == 0 && memcmp(magic, MAGIC "1", MAGIC_BYTES) != 0) /* format=records asks no probe() */
        r = diag_set(d, -EBADMSG, "%s: byte 0: expected " MAGIC "1, got '%.*s'", blob_name(blob),
                     MAGIC_BYTES, (const char *)magic);
    file->at = MAGIC_BYTES;
    return r;
}

static const struct record_file_ops testrec_ops = {
    .size = sizeof(struct file),
    .index = {.version = "testrec 1", .load = testrec_take, .step = testrec_step},
    .shape = {.columns = N_NUMBERS, .rising = 1u << AT, .has_keys = true},
    .open = testrec_open,
};

/* ---- the contents of a record ---- */

enum { LABEL, BOX, POINTS, IMAGE, WORDS, N_COLUMNS };

static const struct record_column testrec_columns[N_COLUMNS] = {
    [LABEL] = {"label", RECORD_NUMBERS, .dtype = DTYPE_I4},
    [BOX] = {"box", RECORD_NUMBERS, .dtype = DTYPE_F4, .ndim = 2, .dim = {2, 3}},
    [POINTS] = {"points", RECORD_NUMBERS, .dtype = DTYPE_I2, .ndim = 2, .dim = {DIM_VARIES, 2}},
    [IMAGE] = {"image", RECORD_BYTES, "jpg"},
    [WORDS] = {"words", RECORD_TEXT},
};

static uint64_t testrec_length(const void *file, uint64_t row, unsigned column)
{
    static const unsigned number[] = {[POINTS] = ROWS, [IMAGE] = BLOB, [WORDS] = TEXT};

    return index_number(&((const struct file *)file)->base.prepared.index, row, number[column]);
}

static uint64_t testrec_place(const void *file, uint64_t row, unsigned column)
{
    uint64_t number[N_NUMBERS], at[N_COLUMNS];

    index_row(&((const struct file *)file)->base.prepared.index, row, number);
    at[LABEL] = number[AT];
    at[BOX] = at[LABEL] + LABEL_BYTES;
    at[POINTS] = at[BOX] + BOX_BYTES;
    at[IMAGE] = at[POINTS] + number[ROWS] * POINT_BYTES;
    at[WORDS] = at[IMAGE] + number[BLOB];
    return at[column];
}

static const struct record_format testrec = {
    .format = &format_records,
    .file = &testrec_ops,
    .column = testrec_columns,
    .n_columns = N_COLUMNS,
    .length = testrec_length,
    .place = testrec_place,
};

/* ---- the format: its files ---- */

static enum claim testrec_probe(const struct probed_file *file)
{
    bool is_ours = file->len >= MAGIC_BYTES && !memcmp(file->head, MAGIC, MAGIC_BYTES - 1);

    return is_ours ? CLAIM_STRONG : CLAIM_NONE;
}

const struct format format_records = {
    .name = "records",
    .probe = testrec_probe,
    .records = &testrec,
    .title = "records of the tests",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n",
};
