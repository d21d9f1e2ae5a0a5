/* The pass over a shard, which finds sizes, shapes and faults of samples; what is kept of it; and
 * its columns. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
#include "format/core/blob_hash.h"
#include "format/mds/mds.h"
#include "format/records/bytes_format.h"

#define STEP        1000 /* samples of a step of preparing */
#define WINDOW      4096
#define WINDOW_MOST (256 * 1024)

uint64_t mds_place(const struct mds_spec *spec, const uint64_t *number, unsigned value,
                   uint64_t *ret_size)
{
    uint64_t at = number[MDS_AT] + UINT64_C(4) * spec->n_varying;

    for (unsigned i = 0;; i++) {
        const struct mds_value *v = &spec->value[i];

        *ret_size = v->size ? v->size : number[v->number + MDS_SIZE];
        if (i == value)
            return at;
        at += *ret_size;
    }
}

/* ---- values ---- */

/* A value of a sample. Functions that look at it return 0, enum mds_fault, or -errno. */
struct mds_seen {
    struct mds_file *file;
    const struct mds_value *value;
    uint64_t place, size;
    uint64_t *row, *learned; /* numbers of the row; those of the value in the table */
    enum mds_fault fault;    /* if it is not as long as it must be */
    struct diag *d;
};

/* Bytes [at, at + len) of the value. */
static int mds_bytes(struct mds_seen *seen, uint64_t at, uint64_t len, const uint8_t **ret)
{
    const struct blob *blob = seen->file->base.blob;

    if (at > seen->size || len > seen->size - at)
        return (int)seen->fault;
    return pass_window_at(&seen->file->window, blob, seen->place + at, len, blob->size, ret,
                          seen->d);
}

/* Its array follows after head->bytes. If arrays of a column have several types or numbers of axes,
 * or none, all are shown as bytes. */
static int mds_learn_array(struct mds_seen *seen, const struct npy_head *head)
{
    uint64_t product = dtype_info(head->dtype)->bytes;
    const char *wrong = NULL;
    int r = 0;

    for (unsigned i = 0; i < head->ndim; i++)
        if (!checked_mul(product, head->dim[i], &product))
            return MDS_SHAPE;
    if (head->ndim && product != seen->size - head->bytes)
        return MDS_SHAPE;
    if (head->ndim && seen->learned[MEMBER_FORM] == MEMBER_AS_ARRAY)
        r = member_take_array(&seen->file->reader, seen->learned, head, seen->row, &wrong);
    if (!head->ndim || wrong)
        seen->learned[MEMBER_FORM] = MEMBER_AS_BYTES;
    seen->learned[MEMBER_ROWS]++;
    return r;
}

/* A type by its code, 8 * width with its kind in the lowest bits; a byte with the number of axes
 * and their width; axes. */
static int mds_look_at_array(struct mds_seen *seen)
{
    static const uint8_t codes[N_DTYPES] = {
        [DTYPE_U1] = 8,  [DTYPE_I1] = 9,  [DTYPE_U2] = 16, [DTYPE_I2] = 17,
        [DTYPE_F2] = 18, [DTYPE_U4] = 32, [DTYPE_I4] = 33, [DTYPE_F4] = 34,
        [DTYPE_U8] = 64, [DTYPE_I8] = 65, [DTYPE_F8] = 66};
    uint64_t skip = seen->value->typed ? 0 : 1;
    struct npy_head head = {.dtype = skip ? 0 : seen->value->column.dtype};
    unsigned bytes;
    const uint8_t *b;
    int r = mds_bytes(seen, 0, skip + 1, &b);

    if (r)
        return r;
    while (skip && head.dtype < N_DTYPES && codes[head.dtype] != b[0])
        head.dtype++;
    if (head.dtype == N_DTYPES || !codes[head.dtype])
        return MDS_TYPE;
    head.ndim = b[skip] >> 2;
    bytes = 1u << (b[skip] & 3);
    if (!head.ndim || head.ndim > RECORD_AXES)
        return MDS_SHAPE;
    head.bytes = skip + 1 + (size_t)head.ndim * bytes;
    r = mds_bytes(seen, skip + 1, (uint64_t)head.ndim * bytes, &b);
    for (unsigned i = 0; i < head.ndim * bytes && r == 0; i++)
        head.dim[i / bytes] |= (uint64_t)b[i] << 8 * (i % bytes);
    return r ? r : mds_learn_array(seen, &head);
}

/* u32 width, height, length of the mode; the mode; pixels. Those of other modes are no arrays. */
static int mds_look_at_picture(struct mds_seen *seen)
{
    static const char *const modes[] = {[1] = "L", [3] = "RGB", [4] = "RGBA", [5] = "CMYK"};
    struct npy_head head = {.dtype = DTYPE_U1};
    const uint8_t *b;
    uint64_t len;
    int r = mds_bytes(seen, 0, 12, &b);

    if (r)
        return r;
    head.dim[0] = load_le32(b + 4);
    head.dim[1] = load_le32(b);
    len = load_le32(b + 8);
    head.bytes = (size_t)(12 + len);
    if (len > 16)
        return MDS_SHAPE;
    r = mds_bytes(seen, 12, len, &b);
    for (size_t i = 0; i < ARRAY_LEN(modes) && r == 0; i++)
        if (modes[i] && strlen(modes[i]) == len && !memcmp(modes[i], b, len)) {
            head.dim[2] = min_u64(i, 4);
            head.ndim = i > 1 ? 3 : 2;
        }
    return r ? r : mds_learn_array(seen, &head);
}

/* The lengths of the files must be all that follows them. */
static int mds_look_at_list(struct mds_seen *seen)
{
    uint64_t n, sum = 0, at = seen->value->head + UINT64_C(4);
    const uint8_t *b;
    int r = mds_bytes(seen, seen->value->head, 4, &b);

    if (r)
        return r;
    n = load_le32(b);
    if (n > (seen->size - at) / 4)
        return MDS_LENGTHS;
    for (uint64_t i = 0; i < n && r == 0; i++) {
        r = mds_bytes(seen, at + 4 * i, 4, &b);
        sum += r == 0 ? load_le32(b) : 0;
    }
    seen->row[seen->value->number + MDS_SKIP] = at + 4 * n;
    return r ? r : sum == seen->size - at - 4 * n ? 0 : MDS_LENGTHS;
}

static int mds_look_at_bytes(struct mds_seen *seen)
{
    const uint8_t *b;
    int r;

    if (seen->learned[MDS_BYTES_FORMAT] || !seen->size)
        return 0;
    r = mds_bytes(seen, 0, min_u64(seen->size, BYTES_MAGIC_SIZE), &b);
    if (r == 0)
        seen->learned[MDS_BYTES_FORMAT] = 1 + bytes_format_of(b, seen->size);
    return r;
}

/* ---- samples ---- */

/* The sizes in front of a sample must be all of it, which is from start to end. */
static int mds_read_sizes(struct mds_file *file, uint64_t start, uint64_t end, uint64_t *number,
                          struct diag *d)
{
    struct mds_seen seen = {
        .file = file, .place = start, .size = end - start, .fault = MDS_SIZES, .d = d};
    uint64_t total = UINT64_C(4) * file->spec->n_varying;
    const uint8_t *b;
    int r = mds_bytes(&seen, 0, total, &b);

    for (unsigned i = 0; i < file->spec->n && r == 0; i++) {
        const struct mds_value *v = &file->spec->value[i];

        if (!v->size) {
            number[v->number + MDS_SIZE] = load_le32(b);
            b += 4;
        }
        total += v->size ? v->size : number[v->number + MDS_SIZE];
    }
    return r ? r : total == seen.size ? 0 : MDS_SIZES;
}

static int mds_look_at_value(struct mds_file *file, unsigned i, uint64_t *number, struct diag *d)
{
    static int (*const learn[])(struct mds_seen * seen) = {
        [MDS_BYTES] = mds_look_at_bytes,
        [MDS_ARRAY] = mds_look_at_array,
        [MDS_PICTURE] = mds_look_at_picture,
        [MDS_LIST] = mds_look_at_list,
    };
    const struct mds_value *v = &file->spec->value[i];
    struct mds_seen seen = {.file = file,
                            .value = v,
                            .row = number,
                            .learned = file->table.column[i].number,
                            .fault = v->form == MDS_LIST ? MDS_LENGTHS : MDS_SHAPE,
                            .d = d};

    if (v->form <= MDS_NUMBERS)
        return 0;
    seen.place = mds_place(file->spec, number, i, &seen.size);
    return learn[v->form](&seen);
}

/* Add the sample between two offsets. */
static int mds_add_sample(struct mds_file *file, uint64_t start, uint64_t end, uint64_t *number,
                          struct diag *d)
{
    int r = MDS_OFFSETS;

    memset(number, 0, file->reader.columns * sizeof(*number));
    number[MDS_AT] = start;
    if (start >= 4 + 4 * (file->samples + 1) && end >= start && end <= file->base.blob->size)
        r = mds_read_sizes(file, start, end, number, d);
    for (unsigned i = 0; i < file->spec->n && r == 0; i++)
        r = mds_look_at_value(file, i, number, d);
    if (r < 0)
        return r;
    if (r) {
        memset(number, 0, file->reader.columns * sizeof(*number));
        number[MDS_FAULT] = (uint64_t)r;
        file->lost++;
    }
    return index_add(file->base.prepared.builder, NULL, 0, number);
}

/* Compare hashes with a file of the shard. */
static int mds_compare_hashes(json_t *hashes, const struct blob *blob, struct diag *d)
{
    static const char *const names[] = {"md5", "sha1", "sha224", "sha256", "sha384", "sha512"};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
        const char *expected = json_string_value(json_object_get(hashes, names[i]));
        char got[2 * EVP_MAX_MD_SIZE + 1] = "";
        uint8_t sum[EVP_MAX_MD_SIZE];
        unsigned len = 0;

        if (!expected)
            continue;
        r = blob_hash(blob, blob->size, EVP_get_digestbyname(names[i]), sum, &len, d);
        for (unsigned k = 0; k < len; k++)
            snprintf(got + (size_t)2 * k, 3, "%02x", sum[k]);
        if (r == 0 && strcasecmp(got, expected) != 0)
            r = blob_bad(blob, d, "expected %s %.128s of index.json, got %s", names[i], expected,
                         got);
    }
    return r;
}

int mds_check(void *p, struct diag *d)
{
    const struct mds_file *file = p;

    return mds_compare_hashes(file->hashes, file->base.blob, d);
}

/* Compare hashes of a shard that was unpacked, and begin the index. */
static int mds_begin(struct mds_file *file, struct diag *d)
{
    int r = file->packed ? mds_check(file, d) : 0;

    if (r == 0 && file->packed && !file->packed->ops->fetch)
        r = mds_compare_hashes(file->hashes_of_packed, file->packed, d);
    file->reader = (struct member_reader){.builder = file->base.prepared.builder,
                                          .columns = file->spec->numbers};
    if (r == 0)
        r = index_builder_columns(file->reader.builder, file->reader.columns);
    for (unsigned i = 0, k; i < file->spec->n && r == 0; i++) {
        const struct mds_value *v = &file->spec->value[i];

        r = column_table_add(&file->table, v->name, strlen(v->name), &k);
        if (r == 0 && mds_has_arrays(v))
            file->table.column[k].number[MEMBER_FORM] = MEMBER_AS_ARRAY;
    }
    file->window.least = WINDOW;
    file->window.most = WINDOW_MOST;
    file->has_begun = r == 0;
    return r;
}

static int mds_step(void *impl, struct diag *d)
{
    struct mds_file *file = impl;
    AUTO_FREE uint64_t *number = calloc(INDEX_LEARNED, sizeof(*number));
    const struct blob *blob = file->base.blob;
    size_t n = (size_t)min_u64(file->samples - file->row, STEP);
    uint8_t offset[4 * (STEP + 1)];
    int r = !number ? -ENOMEM : file->has_begun ? 0 : mds_begin(file, d);

    if (r == 0) /* the file has all of them */
        r = blob_read(READ_WAITS, blob, offset, 4 * (n + 1), 4 + 4 * file->row, d);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = mds_add_sample(file, load_le32(offset + 4 * i), load_le32(offset + 4 * i + 4), number,
                           d);
        file->row += r == 0;
    }
    if (r == 0 && n)
        atomic_store(&file->base.prepared.seen, min_u64(load_le32(offset + 4 * n), blob->size));
    return r < 0 ? r : file->row == file->samples;
}

/* ---- what is kept ---- */

static void mds_keep(void *impl, struct kept *k)
{
    struct mds_file *file = impl;

    kept_number(k, &file->lost, UINT64_MAX);
    column_table_keep(k, &file->table);
}

/* Numbers of its rows are checked where they are used. */
static int mds_load(void *impl, const struct index *index)
{
    const struct mds_file *file = impl;
    unsigned fixed = file->spec->numbers, columns = index->shape.columns;
    bool good = index->rows == file->samples && columns >= fixed &&
                file->table.n == (file->samples ? file->spec->n : file->table.n);

    for (unsigned i = 0; i < file->table.n; i++)
        good = good && member_numbers_are_good(file->table.column[i].number, fixed, columns) &&
               file->table.column[i].number[MDS_BYTES_FORMAT] <= N_BYTES_FORMATS;
    return good ? 0 : -EBADMSG;
}

/* ---- columns ---- */

/* How a value is shown. */
static struct record_column mds_column(const struct mds_file *file, unsigned i)
{
    const struct mds_value *v = &file->spec->value[i];
    const uint64_t *learned = file->table.column[i].number;
    struct record_column c = v->column;

    if (mds_has_arrays(v) && learned[MEMBER_FORM] == MEMBER_AS_ARRAY && learned[MEMBER_ROWS]) {
        c.shown = RECORD_NUMBERS;
        c.dtype = (enum dtype)learned[MEMBER_TYPE];
        c.ndim = (unsigned)learned[MEMBER_AXES];
        memcpy(c.dim, learned + MEMBER_DIM, sizeof(c.dim));
    } else if (c.shown == RECORD_BYTES && !c.ext) {
        c.ext_is_first = v->form == MDS_BYTES;
        c.ext =
            bytes_format_ext(learned[MDS_BYTES_FORMAT] ? learned[MDS_BYTES_FORMAT] - 1 : BYTES_ANY);
    }
    if (c.shown == RECORD_NUMBERS && c.ndim && file->lost)
        c.dim[0] = DIM_VARIES; /* so that each sample is asked for its axes */
    return c;
}

/* The lengths of a list, whose name has '_' as often as it takes to be no column's. */
static int mds_add_sizes(struct mds_file *file, unsigned i)
{
    char whole[RECORD_NAME_MAX + 24], name[RECORD_NAME_MAX + 1];
    bool is_taken = true;

    for (int more = 0; is_taken && more < 16; more++) {
        snprintf(whole, sizeof(whole), "%s_sizes%.*s", file->spec->value[i].name, more,
                 "________________");
        record_name(whole, strlen(whole), RECORD_NAME_MAX, name);
        is_taken = false;
        for (unsigned k = 0; k < file->spec->n; k++)
            is_taken |= !strcmp(file->spec->value[k].name, name);
    }
    return record_file_add(&file->base, &(struct record_column){.name = name,
                                                                .dtype = DTYPE_U4,
                                                                .ndim = 1,
                                                                .dim = {DIM_VARIES},
                                                                .field = i,
                                                                .part = 1});
}

static int mds_ready(void *impl, struct diag *d)
{
    struct mds_file *file = impl;
    int r = 0;

    (void)d;
    column_table_settle(&file->table);
    for (unsigned i = 0; i < file->spec->n && file->samples && r == 0; i++) {
        struct record_column c = mds_column(file, i);

        r = record_file_add(&file->base, &c);
        if (r == 0 && file->spec->value[i].form == MDS_LIST)
            r = mds_add_sizes(file, i);
    }
    return r;
}

/* ---- the file ---- */

static void mds_release(void *p)
{
    struct mds_file *file = p;

    mds_spec_drop(file->spec);
    blob_free(file->packed);
    json_decref(file->hashes);
    json_decref(file->hashes_of_packed);
    pass_window_release(&file->window);
}

const struct record_file_ops mds_file_ops = {
    .size = sizeof(struct mds_file),
    .index = {.version = "mds 5",
              .keep = mds_keep,
              .load = mds_load,
              .step = mds_step,
              .ready = mds_ready},
    .shape = {.columns = MDS_FIXED, .learns = true},
    .side_by_side = true,
    .release = mds_release,
};
