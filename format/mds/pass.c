/* The pass over a shard, and what is kept of it: where samples are, sizes and shapes. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/mds/mds.h"

#define STEP        1000 /* samples of a step of preparing */
#define WINDOW      4096
#define WINDOW_MOST (256 * 1024)
#define HASH_PIECE  (256 * 1024)
#define ABOUT_BYTES (5 + 8 * RECORD_AXES) /* of a value, in what is kept with the rows */

/* ---- a row ---- */

uint64_t mds_place(const struct mds_spec *spec, const uint64_t *number, unsigned value,
                   uint64_t *ret_size)
{
    uint64_t at = number[MDS_AT] + UINT64_C(4) * spec->n_varying;

    for (unsigned i = 0;; i++) {
        const struct mds_value *v = &spec->value[i];
        uint64_t size = v->size ? v->size : number[v->number + MDS_SIZE];

        if (i == value) {
            *ret_size = size;
            return at;
        }
        at += size;
    }
}

/* Are numbers of the file, which may be those of a kept index, inside of it and of one another? */
static bool mds_row_is_good(const struct mds_file *file, const uint64_t *number)
{
    uint64_t size = file->base.blob->size, total = UINT64_C(4) * file->spec->n_varying;

    if (number[MDS_FAULT])
        return number[MDS_FAULT] < N_MDS_FAULTS;
    for (unsigned i = 0; i < file->spec->n; i++) {
        const struct mds_value *v = &file->spec->value[i];
        const uint64_t *numbers = number + v->number;
        uint64_t bytes = v->size ? v->size : numbers[MDS_SIZE];
        const struct mds_learned *learned = &file->learned[i];
        uint64_t product = dtype_info((enum dtype)learned->dtype)->bytes;

        if (!checked_add(total, bytes, &total) || total > size)
            return false;
        if (v->form == MDS_LIST &&
            (bytes < v->head + 4u || numbers[MDS_SKIP] > (bytes - v->head - 4) / 4))
            return false;
        if ((v->form != MDS_ARRAY && v->form != MDS_PICTURE) || !learned->ndim)
            continue;
        for (unsigned k = 0; k < learned->ndim; k++)
            if (!checked_mul(product, numbers[MDS_DIM + k], &product))
                return false;
        if (numbers[MDS_SKIP] > bytes || product != bytes - numbers[MDS_SKIP])
            return false;
    }
    return number[MDS_AT] <= size && total <= size - number[MDS_AT];
}

/* ---- values ---- */

/* Bytes [at, at + len) of the value at byte place, which has size bytes. NULL: it has not as many.
 */
static int mds_look(struct mds_file *file, uint64_t place, uint64_t size, uint64_t at, uint64_t len,
                    const uint8_t **ret, struct diag *d)
{
    *ret = NULL;
    if (at > size || len > size - at)
        return 0;
    return pass_window_at(&file->window, file->base.blob, place + at, len, file->base.blob->size,
                          ret, d);
}

/* The first sample says the type and number of axes of a column. If others differ, or there are no
 * axes, all are shown as bytes: ndim is 0 then. */
static void mds_learn_shape(struct mds_learned *learned, enum dtype dtype, unsigned ndim,
                            const uint64_t *dim)
{
    if (!learned->known) {
        learned->known = 1;
        learned->dtype = (uint8_t)dtype;
        learned->ndim = (uint8_t)ndim;
        memcpy(learned->dim, dim, ndim * sizeof(*dim));
    }
    if (learned->dtype != dtype || learned->ndim != ndim)
        learned->ndim = 0;
    learned->varies |= memcmp(learned->dim, dim, learned->ndim * sizeof(*dim)) != 0;
}

/* The type of an array, by its code: 8 * width, the lowest bits are its kind. */
static bool mds_code_dtype(uint8_t code, enum dtype *ret)
{
    static const struct {
        uint8_t code;
        enum dtype dtype;
    } codes[] = {{8, DTYPE_U1},  {9, DTYPE_I1},  {16, DTYPE_U2}, {17, DTYPE_I2},
                 {18, DTYPE_F2}, {32, DTYPE_U4}, {33, DTYPE_I4}, {34, DTYPE_F4},
                 {64, DTYPE_U8}, {65, DTYPE_I8}, {66, DTYPE_F8}};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code) {
            *ret = codes[i].dtype;
            return true;
        }
    return false;
}

static int mds_look_at_array(struct mds_file *file, const struct mds_value *v,
                             struct mds_learned *learned, uint64_t place, uint64_t size,
                             uint64_t *numbers, enum mds_fault *fault, struct diag *d)
{
    enum dtype dtype = v->dtype;
    uint64_t product, skip = v->typed ? 0 : 1, dim[RECORD_AXES];
    unsigned ndim, log2;
    const uint8_t *b;
    int r = mds_look(file, place, size, 0, skip + 1, &b, d);

    *fault = MDS_SHAPE;
    if (r < 0 || !b)
        return r;
    if (!v->typed && !mds_code_dtype(b[0], &dtype)) {
        *fault = MDS_TYPE;
        return 0;
    }
    ndim = b[skip] >> 2;
    log2 = b[skip] & 3;
    skip++;
    if (!ndim || ndim > RECORD_AXES)
        return 0;
    r = mds_look(file, place, size, skip, (uint64_t)ndim << log2, &b, d);
    if (r < 0 || !b)
        return r;
    product = dtype_info(dtype)->bytes;
    for (unsigned i = 0; i < ndim; i++) {
        dim[i] = 0;
        for (unsigned k = 1u << log2; k-- > 0;)
            dim[i] = dim[i] << 8 | b[((size_t)i << log2) + k];
        if (!checked_mul(product, dim[i], &product))
            return 0;
    }
    skip += (uint64_t)ndim << log2;
    if (product != size - skip)
        return 0;
    numbers[MDS_SKIP] = skip;
    memcpy(numbers + MDS_DIM, dim, ndim * sizeof(*dim));
    *fault = MDS_GOOD;
    mds_learn_shape(learned, dtype, ndim, dim);
    return 0;
}

/* u32 width, height, length of the mode; the mode; pixels. */
static int mds_look_at_picture(struct mds_file *file, struct mds_learned *learned, uint64_t place,
                               uint64_t size, uint64_t *numbers, enum mds_fault *fault,
                               struct diag *d)
{
    static const char *const modes[] = {"", "L", "", "RGB", "RGBA"}; /* by bytes of a pixel */
    uint64_t dim[3], mode_len;
    unsigned bytes = 0;
    const uint8_t *b;
    int r = mds_look(file, place, size, 0, 12, &b, d);

    *fault = MDS_SHAPE;
    if (r < 0 || !b)
        return r;
    dim[0] = load_le32(b + 4);
    dim[1] = load_le32(b);
    mode_len = load_le32(b + 8);
    if (mode_len > 16)
        return 0;
    r = mds_look(file, place, size, 12, mode_len, &b, d);
    if (r < 0 || !b)
        return r;
    for (unsigned i = 0; i < ARRAY_LEN(modes); i++)
        if (*modes[i] && strlen(modes[i]) == mode_len && !memcmp(modes[i], b, mode_len))
            bytes = i;
    if (mode_len == 4 && !memcmp(b, "CMYK", 4))
        bytes = 4;
    dim[2] = bytes;
    if (!bytes) { /* a mode that is no array */
        *fault = MDS_GOOD;
        mds_learn_shape(learned, DTYPE_U1, 0, dim);
        return 0;
    }
    if (dim[0] * dim[1] > UINT64_MAX / 4 || dim[0] * dim[1] * bytes != size - 12 - mode_len)
        return 0;
    numbers[MDS_SKIP] = 12 + mode_len;
    memcpy(numbers + MDS_DIM, dim, sizeof(dim));
    *fault = MDS_GOOD;
    mds_learn_shape(learned, DTYPE_U1, bytes > 1 ? 3 : 2, dim);
    return 0;
}

/* The lengths of the files must be all that follows them. */
static int mds_look_at_list(struct mds_file *file, const struct mds_value *v, uint64_t place,
                            uint64_t size, uint64_t *numbers, enum mds_fault *fault, struct diag *d)
{
    uint64_t n, sum = 0, at = v->head + UINT64_C(4);
    const uint8_t *b;
    int r = mds_look(file, place, size, v->head, 4, &b, d);

    *fault = MDS_LENGTHS;
    if (r < 0 || !b)
        return r;
    n = load_le32(b);
    if (n > (size - at) / 4)
        return 0;
    for (uint64_t i = 0; i < n; i++) {
        r = mds_look(file, place, size, at + 4 * i, 4, &b, d);
        if (r < 0 || !b)
            return r;
        sum += load_le32(b);
    }
    if (sum != size - at - 4 * n)
        return 0;
    numbers[MDS_SKIP] = n;
    *fault = MDS_GOOD;
    return 0;
}

static int mds_look_at_bytes(struct mds_file *file, struct mds_learned *learned, uint64_t place,
                             uint64_t size, struct diag *d)
{
    const uint8_t *b;
    int r;

    if (learned->known || !size)
        return 0;
    r = mds_look(file, place, size, 0, min_u64(size, BYTES_KIND_HEAD), &b, d);
    if (r == 0 && b) {
        learned->known = 1;
        learned->bytes_type = (uint8_t)bytes_kind_of(b, size);
    }
    return r;
}

static int mds_look_at(struct mds_file *file, unsigned i, uint64_t *number, enum mds_fault *fault,
                       struct diag *d)
{
    const struct mds_value *v = &file->spec->value[i];
    struct mds_learned *learned = &file->learned[i];
    uint64_t size, place = mds_place(file->spec, number, i, &size);

    switch (v->form) {
    case MDS_ARRAY:
        return mds_look_at_array(file, v, learned, place, size, number + v->number, fault, d);
    case MDS_PICTURE:
        return mds_look_at_picture(file, learned, place, size, number + v->number, fault, d);
    case MDS_LIST:
        return mds_look_at_list(file, v, place, size, number + v->number, fault, d);
    case MDS_BYTES:
        return mds_look_at_bytes(file, learned, place, size, d);
    default:
        return 0;
    }
}

/* ---- samples ---- */

/* The sizes in front of a sample must be all of it. */
static int mds_read_sizes(struct mds_file *file, uint64_t start, uint64_t end, uint64_t *number,
                          enum mds_fault *fault, struct diag *d)
{
    uint64_t total = UINT64_C(4) * file->spec->n_varying, at = 0;
    const uint8_t *b;
    int r = mds_look(file, start, end - start, 0, total, &b, d);

    *fault = MDS_SIZES;
    if (r < 0 || !b)
        return r;
    for (unsigned i = 0; i < file->spec->n; i++) {
        const struct mds_value *v = &file->spec->value[i];

        if (!v->size) {
            number[v->number + MDS_SIZE] = load_le32(b + at);
            at += 4;
        }
        total += v->size ? v->size : number[v->number + MDS_SIZE];
    }
    if (total == end - start)
        *fault = MDS_GOOD;
    return 0;
}

static int mds_add_sample(struct mds_file *file, uint64_t *number, struct diag *d)
{
    uint64_t start = file->offset[file->row], end = file->offset[file->row + 1];
    uint64_t head = 4 + 4 * (file->samples + 1);
    enum mds_fault fault = MDS_GOOD;
    int r = 0;

    memset(number, 0, file->spec->numbers * sizeof(*number));
    number[MDS_AT] = start;
    if (start < head || end < start || end > file->base.blob->size)
        fault = MDS_OFFSETS;
    if (!fault)
        r = mds_read_sizes(file, start, end, number, &fault, d);
    for (unsigned i = 0; i < file->spec->n && r == 0 && !fault; i++)
        r = mds_look_at(file, i, number, &fault, d);
    if (r < 0)
        return r;
    if (fault) {
        memset(number, 0, file->spec->numbers * sizeof(*number));
        number[MDS_FAULT] = fault;
        for (unsigned i = 0; i < file->spec->n; i++)
            file->learned[i].varies = 1; /* so that each sample is asked for its axes */
    }
    return index_add(file->base.prepared.builder, NULL, 0, number);
}

static int mds_compare_hashes(const struct blob *blob, const json_t *hashes, struct diag *d)
{
    static const char *const known[] = {"md5", "sha1", "sha224", "sha256", "sha384", "sha512"};
    AUTO_FREE uint8_t *piece = malloc(HASH_PIECE);
    int r = piece ? 0 : -ENOMEM;

    for (size_t i = 0; i < ARRAY_LEN(known) && r == 0; i++) {
        const char *expected = json_string_value(json_object_get(hashes, known[i]));
        EVP_MD_CTX *md = expected ? EVP_MD_CTX_new() : NULL;
        uint8_t sum[EVP_MAX_MD_SIZE];
        char got[2 * EVP_MAX_MD_SIZE + 1] = "";
        unsigned len = 0;

        if (!expected)
            continue;
        r = md && EVP_DigestInit_ex(md, EVP_get_digestbyname(known[i]), NULL) ? 0 : -ENOMEM;
        for (uint64_t at = 0; at < blob->size && r == 0; at += HASH_PIECE) {
            size_t n = (size_t)min_u64(HASH_PIECE, blob->size - at);

            r = blob_read(READ_WAITS, blob, piece, n, at, d);
            if (r == 0 && !EVP_DigestUpdate(md, piece, n))
                r = -ENOMEM;
        }
        if (r == 0 && !EVP_DigestFinal_ex(md, sum, &len))
            r = -ENOMEM;
        EVP_MD_CTX_free(md);
        for (unsigned k = 0; k < len; k++)
            snprintf(got + (size_t)2 * k, 3, "%02x", sum[k]);
        if (r == 0 && strcmp(got, expected) != 0)
            r = blob_bad(blob, d, "expected %s %.128s of index.json, got %s", known[i], expected,
                         got);
    }
    return r;
}

/* Compare hashes of a shard that was unpacked, then read the offsets: the file has all of them. */
static int mds_begin(struct mds_file *file, struct diag *d)
{
    const struct blob *blob = file->base.blob;
    uint64_t bytes = 4 * (file->samples + 1);
    int r = file->hashes ? mds_compare_hashes(blob, file->hashes, d) : 0;

    if (r == 0 && file->packed && !file->packed->ops->fetch)
        r = mds_compare_hashes(file->packed, file->packed_hashes, d);
    if (r < 0)
        return r;
    file->offset = malloc(bytes);
    if (!file->offset)
        return -ENOMEM;
    file->window.least = WINDOW;
    file->window.most = WINDOW_MOST;
    r = blob_read(READ_WAITS, blob, file->offset, bytes, 4, d);
    for (uint64_t i = 0; i <= file->samples && r == 0; i++)
        file->offset[i] = load_le32((const uint8_t *)&file->offset[i]);
    if (r == 0)
        r = index_builder_columns(file->base.prepared.builder, file->spec->numbers);
    if (r < 0) {
        free(file->offset);
        file->offset = NULL;
    }
    return r;
}

static int mds_step(void *impl, struct diag *d)
{
    struct mds_file *file = impl;
    uint64_t *number = calloc(file->spec->numbers, sizeof(*number));
    int r = !number ? -ENOMEM : file->offset ? 0 : mds_begin(file, d);

    for (unsigned i = 0; i < STEP && r == 0 && file->row < file->samples; i++) {
        r = mds_add_sample(file, number, d);
        file->row += r == 0;
    }
    free(number);
    if (file->row)
        atomic_store(&file->base.prepared.seen,
                     min_u64(file->offset[file->row], file->base.blob->size));
    if (r < 0 || file->row < file->samples)
        return r;
    r = blob_verify(file->base.blob, d);
    return r < 0 ? r : 1;
}

/* ---- what is kept ---- */

static int mds_identity(void *impl, struct text *ret)
{
    text_add(ret, "%s", ((const struct mds_file *)impl)->spec->text);
    return ret->failed ? -ENOMEM : 0;
}

static int mds_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct mds_file *file = impl;

    (void)index;
    (void)d;
    for (unsigned i = 0; i < file->spec->n; i++) {
        const struct mds_learned *l = &file->learned[i];
        uint8_t bytes[ABOUT_BYTES] = {l->known, l->dtype, l->ndim, l->varies, l->bytes_type};

        for (unsigned k = 0; k < RECORD_AXES; k++)
            store_le64(bytes + 5 + 8 * k, l->dim[k]);
        text_add_bytes(ret, (const char *)bytes, sizeof(bytes));
    }
    free(file->offset);
    file->offset = NULL;
    pass_window_release(&file->window);
    return ret->failed ? -ENOMEM : 0;
}

static int mds_load(void *impl, const struct index *index)
{
    struct mds_file *file = impl;
    AUTO_FREE uint64_t *number = NULL;

    if (index->rows != file->samples || index->shape.columns != file->spec->numbers ||
        index->about_len != (size_t)file->spec->n * ABOUT_BYTES)
        return -EBADMSG;
    for (unsigned i = 0; i < file->spec->n; i++) {
        const uint8_t *b = index->about + (size_t)i * ABOUT_BYTES;
        struct mds_learned *l = &file->learned[i];

        *l = (struct mds_learned){b[0], b[1], b[2], b[3], b[4], {0}};
        for (unsigned k = 0; k < RECORD_AXES; k++)
            l->dim[k] = load_le64(b + 5 + 8 * k);
        if (l->dtype >= N_DTYPES || l->ndim > RECORD_AXES || l->bytes_type >= N_BYTES_KINDS)
            return -EBADMSG;
    }
    number = calloc(file->spec->numbers, sizeof(*number));
    if (!number)
        return -ENOMEM;
    for (uint64_t row = 0; row < index->rows; row++) {
        index_row(index, row, number);
        if (!mds_row_is_good(file, number))
            return -EBADMSG;
    }
    return 0;
}

/* How a value is shown. */
static struct record_column mds_column(const struct mds_value *v, const struct mds_learned *l)
{
    struct record_column c = {.name = v->name,
                              .shown = RECORD_BYTES,
                              .dtype = DTYPE_U1,
                              .ndim = 1,
                              .dim = {DIM_VARIES},
                              .ext = v->ext};

    if (v->form == MDS_TEXT) {
        c.shown = RECORD_TEXT;
    } else if (v->form == MDS_NUMBERS) {
        c.shown = RECORD_NUMBERS;
        c.dtype = v->dtype;
        c.ndim = v->ndim;
        memcpy(c.dim, v->dim, sizeof(c.dim));
    } else if (l->ndim) {
        c.shown = RECORD_NUMBERS;
        c.dtype = (enum dtype)l->dtype;
        c.ndim = l->ndim;
        memcpy(c.dim, l->dim, sizeof(c.dim));
        if (l->varies)
            c.dim[0] = DIM_VARIES;
    } else if (!v->ext) {
        c.ext_is_first = v->form == MDS_BYTES;
        c.ext = v->form == MDS_BYTES ? bytes_kind_ext((enum bytes_kind)l->bytes_type) : "bin";
    }
    return c;
}

static int mds_ready(void *impl, struct diag *d)
{
    struct mds_file *file = impl;
    const struct mds_spec *spec = file->spec;
    unsigned n = 0;

    (void)d;
    file->shows = calloc((size_t)spec->n * 2, sizeof(*file->shows));
    file->column = calloc((size_t)spec->n * 2, sizeof(*file->column));
    if (!file->shows || !file->column)
        return -ENOMEM;
    for (unsigned i = 0; i < spec->n && file->samples; i++) {
        const struct mds_value *v = &spec->value[i];
        char name[RECORD_NAME_MAX + 8];

        file->shows[n].value = i;
        file->column[n++] = mds_column(v, &file->learned[i]);
        if (v->form != MDS_LIST)
            continue;
        snprintf(name, sizeof(name), "%s_sizes", v->name);
        record_name(name, strlen(name), RECORD_NAME_MAX, file->shows[n].name);
        file->shows[n].value = i;
        file->shows[n].sizes = true;
        file->column[n] = (struct record_column){.name = file->shows[n].name,
                                                 .shown = RECORD_NUMBERS,
                                                 .dtype = DTYPE_U4,
                                                 .ndim = 1,
                                                 .dim = {DIM_VARIES}};
        n++;
    }
    file->base.column = file->column;
    file->base.n_columns = n;
    return 0;
}

static void mds_release(void *p)
{
    struct mds_file *file = p;

    mds_spec_drop(file->spec);
    blob_free(file->packed);
    json_decref(file->hashes);
    json_decref(file->packed_hashes);
    free(file->learned);
    free(file->offset);
    pass_window_release(&file->window);
    free(file->shows);
    free(file->column);
}

const struct record_file_ops mds_file_ops = {
    .size = sizeof(struct mds_file),
    .index = {.version = "mds 1",
              .identity = mds_identity,
              .load = mds_load,
              .step = mds_step,
              .about = mds_about,
              .ready = mds_ready},
    .shape = {.columns = MDS_FIXED, .learns = true},
    .side_by_side = true,
    .release = mds_release,
};
