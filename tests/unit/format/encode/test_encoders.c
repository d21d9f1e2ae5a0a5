/* Every encoder over small datasets of every type and many shapes: the size fits the bytes, any
 * byte range equals the slice of the whole, and the whole equals an independent model. */
#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/read_context.h"
#include "base/text.h"
#include "format/idx/header.h"
#include "support/idx_make.h"
#include "support/render.h"
#include "support/unit.h"

static const uint8_t types[] = {0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e};

/* ---- checks of a file's content ---- */

static void check_same(const struct bytes *got, struct bytes *want)
{
    assert_int_equal(got->len, want->len);
    assert_memory_equal(got->at, want->at, want->len);
    free(want->at);
}

static void check_raw(const struct file_kind *kind, const struct selection *sel,
                      const struct bytes *got)
{
    struct bytes want;

    model_stored(kind->field, sel, &want);
    check_same(got, &want);
}

static void check_npy(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      const struct bytes *got)
{
    struct bytes want;

    model_npy(ds, f, sel, &want);
    check_same(got, &want);
}

static void check_cls(const struct field *f, const struct selection *sel, const struct bytes *got)
{
    struct bytes want;

    model_cls(f, sel, &want);
    check_same(got, &want);
}

/* An IDX file that format_idx accepts, with the same elements as the source. */
static void check_idx(const struct file_kind *kind, const struct selection *sel,
                      const struct bytes *got)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("x", got->at, got->len, got->len, NULL);
    const struct field *f = kind->field;
    struct diag d = DIAG_INIT;
    struct idx_header h;
    struct bytes items;

    if (idx_header_read(blob, &h, &d) < 0)
        fail_msg("%s", d.text);
    assert_int_equal(h.dtype, f->stored_dtype);
    assert_int_equal(h.axes, f->ndim + 1);
    assert_int_equal(h.dim[0], sel->count);
    for (unsigned i = 0; i < f->ndim; i++)
        assert_int_equal(h.dim[i + 1], field_stored_dim(f, i));
    model_stored(f, sel, &items);
    assert_int_equal(got->len, h.payload + items.len);
    assert_memory_equal(got->at + h.payload, items.at, items.len);
    free(items.at);
}

static uint64_t octal(const uint8_t *at, size_t capacity)
{
    uint64_t v = 0;

    for (size_t i = 0; i < capacity - 1; i++) {
        assert_true(at[i] >= '0' && at[i] <= '7');
        v = v * 8 + (uint64_t)(at[i] - '0');
    }
    assert_true(at[capacity - 1] == '\0' || at[capacity - 1] == ' ');
    return v;
}

static void check_tar_header(const uint8_t *h, const char *name, uint64_t size)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    assert_int_equal(octal(h + 148, 7), sum);
    assert_string_equal((const char *)h, name);
    assert_int_equal(octal(h + 124, 12), size);
    assert_int_equal(h[156], '0');
    assert_memory_equal(h + 257, "ustar\00000", 8);
    assert_int_equal(octal(h + 136, 12), 0); /* time */
}

/* again: the text after the key of a sample that follows itself. */
static uint64_t check_tar_member(const struct dataset *ds, const struct field *f, uint64_t sample,
                                 const char *again, const struct bytes *got, uint64_t at)
{
    struct one_sample one;
    struct bytes want;
    char name[256], key[KEY_NAME_SIZE];
    uint64_t padded;

    one_sample_init(&one, sample);
    if (field_is_scalar_integer(f))
        model_cls(f, &one.sel, &want);
    else
        model_npy(ds, f, &one.sel, &want);
    padded = ceil_div(want.len, 512) * 512;
    dataset_name(ds, sample, false, key);
    snprintf(name, sizeof(name), "%s%s.%s.%s", key, again, f->name,
             field_is_scalar_integer(f) ? "cls" : "npy");
    assert_true(at + 512 + padded <= got->len);
    check_tar_header(got->at + at, name, want.len);
    assert_memory_equal(got->at + at + 512, want.at, want.len);
    for (uint64_t i = want.len; i < padded; i++)
        assert_int_equal(got->at[at + 512 + i], 0);
    free(want.at);
    return at + 512 + padded;
}

static void check_tar(const struct dataset *ds, const struct selection *sel,
                      const struct bytes *got)
{
    uint64_t at = 0, last = UINT64_MAX;

    for (uint64_t i = 0; i < sel->count; i++) {
        uint64_t sample;
        char again[32] = "";

        selection_samples(sel, i, 1, &sample);
        if (sample == last)
            snprintf(again, sizeof(again), "~%llu", (unsigned long long)i);
        last = sample;
        for (unsigned k = 0; k < ds->n_fields; k++)
            if (field_is_in(&ds->field[k], IN_RAW))
                at = check_tar_member(ds, &ds->field[k], sample, again, got, at);
    }
    assert_int_equal(got->len, at + 1024);
    for (; at < got->len; at++)
        assert_int_equal(got->at[at], 0);
}

/* The pixels of the contact sheet, row after row, each with lead bytes before it; one black pixel
 * if there are no samples. */
static void model_sheet(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t lead, uint64_t *ret_w,
                        uint64_t *ret_h, struct bytes *ret)
{
    uint64_t columns = 1, rows, w = sel->count ? f->dim[1] : 1, h = sel->count ? f->dim[0] : 1;
    uint64_t stride;
    struct bytes items;

    while (columns * columns < sel->count)
        columns++;
    rows = sel->count ? (sel->count + columns - 1) / columns : 1;
    stride = lead + columns * w;
    ret->len = stride * rows * h;
    ret->at = calloc(1, ret->len);
    model_items(ds, f, sel, &items);
    for (uint64_t i = 0; i < sel->count; i++)
        for (uint64_t y = 0; y < h; y++)
            memcpy(ret->at + (i / columns * h + y) * stride + lead + i % columns * w,
                   items.at + i * w * h + y * w, w);
    free(items.at);
    *ret_w = columns * w;
    *ret_h = rows * h;
}

static void check_pgm(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      const struct bytes *got)
{
    struct bytes sheet;
    char header[64];
    uint64_t w, h;
    size_t n;

    model_sheet(ds, f, sel, 0, &w, &h, &sheet);
    n = (size_t)snprintf(header, sizeof(header), "P5\n%d %d\n255\n", (int)w, (int)h);
    assert_int_equal(got->len, n + sheet.len);
    assert_memory_equal(got->at, header, n);
    assert_memory_equal(got->at + n, sheet.at, sheet.len);
    free(sheet.at);
}

/* The length of the chunk at byte at; its type and CRC must be right. */
static uint64_t check_chunk(const struct bytes *png, uint64_t at, const char *type)
{
    uint64_t len;

    assert_true(at + 12 <= png->len);
    len = load_be32(png->at + at);
    assert_true(at + 12 + len <= png->len);
    assert_memory_equal(png->at + at + 4, type, 4);
    assert_int_equal(load_be32(png->at + at + 8 + len),
                     crc32_z(0, png->at + at + 4, (size_t)len + 4));
    return len;
}

static void check_png(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      const struct bytes *got)
{
    struct bytes sheet;
    uint64_t w, h, len, at = 8;
    uLongf inflated;
    uint8_t *pixels;

    model_sheet(ds, f, sel, 1, &w, &h, &sheet);
    assert_true(got->len > 8);
    assert_memory_equal(got->at, "\x89PNG\r\n\x1a\n", 8);
    len = check_chunk(got, at, "IHDR");
    assert_int_equal(len, 13);
    assert_int_equal(load_be32(got->at + at + 8), w);
    assert_int_equal(load_be32(got->at + at + 12), h);
    assert_memory_equal(got->at + at + 16, "\x08\0\0\0\0", 5);
    at += 12 + len;
    len = check_chunk(got, at, "IDAT");
    inflated = sheet.len + 1; /* one more, so that surplus bytes show */
    pixels = malloc(inflated);
    assert_int_equal(uncompress(pixels, &inflated, got->at + at + 8, len), Z_OK);
    assert_int_equal(inflated, sheet.len);
    assert_memory_equal(pixels, sheet.at, sheet.len);
    at += 12 + len;
    assert_int_equal(check_chunk(got, at, "IEND"), 0);
    assert_int_equal(at + 12, got->len);
    free(pixels);
    free(sheet.at);
}

static void model_varint(struct text *t, uint64_t v)
{
    for (; v > 127; v >>= 7)
        text_add_bytes(t, &(const char){(char)(v | 0x80)}, 1);
    text_add_bytes(t, &(const char){(char)v}, 1);
}

/* A message as a field of another; it is empty then. */
static void model_message(struct text *t, unsigned number, struct text *inner)
{
    model_varint(t, number << 3 | 2);
    model_varint(t, inner->len);
    text_add_bytes(t, inner->len ? inner->data : "", inner->len);
    text_release(inner);
}

static void model_feature(struct text *t, const struct dataset *ds, const struct field *f,
                          const struct selection *sel)
{
    unsigned kind = f->dtype == DTYPE_TEXT || (f->dtype == DTYPE_U1 && f->ndim > 1) ? 1
                    : dtype_info(f->dtype)->letter == 'f'                           ? 2
                                                                                    : 3;
    struct text value = {0}, list = {0}, feature = {0}, entry = {0}, name = {0};
    struct bytes items;

    model_items(ds, f, sel, &items);
    for (uint64_t at = 0; at < items.len; at += f->width) {
        float single = (float)dtype_real(f->dtype, items.at + at);

        if (kind == 1)
            text_add_bytes(&value, (const char *)items.at + at, f->width);
        else if (kind == 2)
            text_add_bytes(&value, (const char *)&single, 4);
        else
            model_varint(&value, (uint64_t)dtype_integer(f->dtype, false, items.at + at));
    }
    free(items.at);
    if (kind == 1 || value.len)
        model_message(&list, 1, &value);
    model_message(&feature, kind, &list);
    text_add(&name, "%s", f->name);
    model_message(&entry, 1, &name);
    model_message(&entry, 2, &feature);
    model_message(t, 1, &entry);
}

static int by_names(const void *a, const void *b)
{
    return strcmp((*(const struct field *const *)a)->name, (*(const struct field *const *)b)->name);
}

static void check_tfrecord(const struct dataset *ds, const struct selection *sel,
                           const struct bytes *got)
{
    const struct field *sorted[16];
    uint64_t at = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].numbering || field_is_in(&ds->field[i], IN_NPZ_SAMPLES))
            sorted[n++] = &ds->field[i];
    qsort(sorted, n, sizeof(*sorted), by_names);
    for (uint64_t i = 0; i < sel->count; i++) {
        AUTO_TEXT struct text example = {0}, features = {0};
        struct one_sample one;
        uint64_t sample;
        uint32_t crc;

        selection_samples(sel, i, 1, &sample);
        one_sample_init(&one, sample);
        for (unsigned k = 0; k < n; k++)
            model_feature(&features, ds, sorted[k], &one.sel);
        model_message(&example, 1, &features);
        assert_true(got->len - at >= 16 + example.len);
        assert_int_equal(load_le64(got->at + at), example.len);
        crc = crc32c_tables(0, got->at + at, 8);
        assert_int_equal(load_le32(got->at + at + 8), crc32c_masked(crc));
        assert_memory_equal(got->at + at + 12, example.data, example.len);
        crc = crc32c_tables(0, example.data, example.len);
        assert_int_equal(load_le32(got->at + at + 12 + example.len), crc32c_masked(crc));
        at += 16 + example.len;
    }
    assert_int_equal(at, got->len);
}

static void check_content(const struct dataset *ds, const struct file_kind *kind,
                          const struct selection *sel, const struct bytes *got)
{
    const char *name = kind->folder, *ext = strrchr(kind->suffix, '.');

    if (!strcmp(name, "raw"))
        check_raw(kind, sel, got);
    else if (!strcmp(name, "npy"))
        check_npy(ds, kind->field, sel, got);
    else if (!strcmp(name, "idx"))
        check_idx(kind, sel, got);
    else if (!strcmp(name, "tar"))
        check_tar(ds, sel, got);
    else if (!strcmp(ext, ".cls"))
        check_cls(kind->field, sel, got);
    else if (!strcmp(name, "pgm"))
        check_pgm(ds, kind->field, sel, got);
    else if (!strcmp(name, "png"))
        check_png(ds, kind->field, sel, got);
    else if (!strcmp(name, "tfrecord"))
        check_tfrecord(ds, sel, got);
    else
        assert_string_equal(name, "npz"); /* format/encode/test_npz.c */
}

/* ---- all files of a dataset ---- */

static void check_file(const struct dataset *ds, const struct file_kind *kind,
                       const struct selection *sel, unsigned ranges)
{
    struct bytes whole;

    assert_int_equal(render(READ_WAITS, ds, kind, sel, NULL, &whole), 0);
    check_content(ds, kind, sel, &whole);
    if (!ranges_agree(ds, kind, sel, &whole, ranges))
        fail_msg("%s of %d samples: a range differs", kind->suffix, (int)sel->count);
    free(whole.at);
}

static void check_scope(const struct dataset *ds, enum scope scope, const struct selection *sel,
                        unsigned ranges)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++)
            check_file(ds, &ds->folder[i].files[scope][k], sel, ranges);
}

/* Selections of a dataset: one sample, all, repeated and unordered ones, none. */
static void check_dataset(const struct dataset *ds, unsigned ranges)
{
    const uint64_t last = ds->samples - 1;
    const uint64_t mixed[] = {last, 1, 1, 2, 0, last, last, 0, 1, 2};
    const uint64_t sorted[] = {0, 1, 2};
    struct list_selection list;
    struct one_sample one;

    one_sample_init(&one, 0);
    check_scope(ds, SCOPE_SAMPLES, &one.sel, ranges);
    one_sample_init(&one, last);
    check_scope(ds, SCOPE_SAMPLES, &one.sel, ranges);
    list_selection_init(&list, mixed, ARRAY_LEN(mixed));
    check_scope(ds, SCOPE_BATCHES, &list.sel, ranges);
    list_selection_init(&list, sorted, ARRAY_LEN(sorted));
    check_scope(ds, SCOPE_BATCHES, &list.sel, ranges);
    list_selection_init(&list, mixed, 1);
    check_scope(ds, SCOPE_BATCHES, &list.sel, ranges);
    list_selection_init(&list, mixed, 0);
    check_scope(ds, SCOPE_BATCHES, &list.sel, ranges);
}

static void check_blobs(struct blob **blob, size_t n, const struct format_options *options,
                        unsigned ranges)
{
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, n, options, &found), 0);
    assert_int_equal(found.n, 1);
    assert_non_null(found.item[0].ds);
    check_dataset(found.item[0].ds, ranges);
}

static const struct format_options no_options;

UNIT_TEST(test_encoders__every_type_and_shape__as_the_model)
{
    static const uint32_t shapes[][4] = {{4}, {4, 3}, {4, 2, 3}, {4, 2, 1, 3}};

    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        for (unsigned axes = 1; axes <= 4; axes++) {
            struct blob *blob = idx_blob("x", types[t], axes, shapes[axes - 1], NULL);

            check_blobs(&blob, 1, &no_options, 30);
        }
    }
}

UNIT_TEST(test_encoders__255_dimensions__as_the_model)
{
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        uint32_t dim[IDX_AXES_MAX];
        struct blob *blob;

        for (unsigned i = 0; i < IDX_AXES_MAX; i++)
            dim[i] = i == 0 ? 4 : i == 7 ? 3 : i == 254 ? 2 : 1;
        blob = idx_blob("x", types[t], IDX_AXES_MAX, dim, NULL);
        check_blobs(&blob, 1, &no_options, 15);
    }
}

UNIT_TEST(test_encoders__empty_items__as_the_model)
{
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct blob *blob = idx_blob("x", types[t], 3, (uint32_t[]){4, 0, 28}, NULL);

        check_blobs(&blob, 1, &no_options, 40);
    }
}

UNIT_TEST(test_encoders__pairs_with_labels_of_every_type__as_the_model)
{
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){5, 3, 2}, NULL),
                               idx_blob("x-labels", types[t], 1, (uint32_t[]){5}, NULL)};

        check_blobs(blob, 2, &no_options, 30);
    }
}

UNIT_TEST(test_encoders__transpose__as_the_model)
{
    const struct format_options options = {.transpose = true};

    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct blob *blob = idx_blob("x-images", types[t], 3, (uint32_t[]){4, 3, 5}, NULL);

        check_blobs(&blob, 1, &options, 60);
    }
}

/* More samples than are looked up at once, and more bytes than are converted at once. */
UNIT_TEST(test_encoders__long_selection__as_the_model)
{
    struct blob *blob[] = {idx_blob("x-images", 0x0b, 2, (uint32_t[]){700, 31}, NULL),
                           idx_blob("x-labels", 0x08, 1, (uint32_t[]){700}, NULL)};
    uint64_t sample[700];
    struct list_selection list;
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &no_options, &found), 0);
    for (uint64_t i = 0; i < 700; i++)
        sample[i] = i < 300 ? i : i * 263 % 700;
    list_selection_init(&list, sample, 700);
    check_scope(found.item[0].ds, SCOPE_BATCHES, &list.sel, 20);
}

UNIT_TEST(test_encoders__large_items__as_the_model)
{
    struct blob *blob = idx_blob("x", 0x0e, 3, (uint32_t[]){3, 30, 100}, NULL);

    check_blobs(&blob, 1, &no_options, 15);
}

/* Pixels that exceed one stored block of 65535 bytes, and that just fill it. */
UNIT_TEST(test_encoders__large_pictures__as_the_model)
{
    static const uint32_t shapes[][3] = {
        {10, 100, 100}, {3, 1, 65534}, {3, 1, 65535}, {3, 5, 13106}};

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct blob *blob = idx_blob("x", 0x08, 3, shapes[i], NULL);

        check_blobs(&blob, 1, &no_options, 6);
    }
}

/* ---- what numpy itself writes ---- */

static void check_header(uint8_t type, unsigned axes, const uint32_t *dim, bool single,
                         uint64_t count, const char *want)
{
    struct blob *blob = idx_blob_zeros("x-images", type, axes, dim, NULL);
    uint64_t sample[8] = {0};
    struct list_selection list;
    struct one_sample one;
    const struct file_kind *kind;
    AUTO(found_release) struct found found;
    struct bytes got;

    assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
    kind = find_file_kind(found.item[0].ds, single ? SCOPE_SAMPLES : SCOPE_BATCHES, "npy",
                          ".image.npy");
    assert_non_null(kind);
    one_sample_init(&one, 0);
    list_selection_init(&list, sample, count);
    assert_int_equal(
        render(READ_WAITS, found.item[0].ds, kind, single ? &one.sel : &list.sel, NULL, &got), 0);
    assert_true(got.len >= 128);
    assert_memory_equal(got.at, "\x93NUMPY\x01\x00v\x00", 10);
    assert_memory_equal(got.at + 10, want, strlen(want));
    for (size_t i = 10 + strlen(want); i < 127; i++)
        assert_int_equal(got.at[i], ' ');
    assert_int_equal(got.at[127], '\n');
    free(got.at);
}

UNIT_TEST(test_npy__headers__as_numpy_1_24_writes_them)
{
    check_header(0x0d, 2, (uint32_t[]){9, 4}, false, 3,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
    check_header(0x08, 3, (uint32_t[]){9, 28, 28}, true, 1,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }");
    check_header(0x08, 1, (uint32_t[]){9}, true, 1,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (), }");
    check_header(0x0c, 1, (uint32_t[]){9}, false, 5,
                 "{'descr': '<i4', 'fortran_order': False, 'shape': (5,), }");
    check_header(0x0e, 4, (uint32_t[]){9, 2, 3, 4}, false, 1,
                 "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3, 4), }");
    check_header(0x0b, 2, (uint32_t[]){9, 7}, true, 1,
                 "{'descr': '<i2', 'fortran_order': False, 'shape': (7,), }");
    check_header(0x09, 1, (uint32_t[]){9}, false, 0,
                 "{'descr': '|i1', 'fortran_order': False, 'shape': (0,), }");
}

/* Headers of every length: each further axis adds "1, ", and 64 of them all remainders of 64. */
UNIT_TEST(test_npy__headers_of_every_length__padded_as_the_model)
{
    for (unsigned axes = 1; axes <= 70; axes++) {
        uint32_t dim[70];
        const uint64_t sample[] = {1, 0};
        struct list_selection list;
        const struct file_kind *kind;
        AUTO(found_release) struct found found;
        struct blob *blob;
        struct bytes got;

        for (unsigned i = 0; i < axes; i++)
            dim[i] = i ? 1 : 2;
        blob = idx_blob("x-images", 0x08, axes, dim, NULL);
        assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
        kind = find_file_kind(found.item[0].ds, SCOPE_BATCHES, "npy", ".image.npy");
        for (uint64_t n = 0; n <= 2; n++) {
            list_selection_init(&list, sample, n);
            assert_int_equal(render(READ_WAITS, found.item[0].ds, kind, &list.sel, NULL, &got), 0);
            check_npy(found.item[0].ds, kind->field, &list.sel, &got);
            free(got.at);
        }
    }
}

UNIT_TEST(test_cls__values_of_both_signs__text)
{
    struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){3, 1, 1}, NULL), NULL};
    const uint64_t all[] = {0, 1, 2};
    const struct file_kind *kind;
    struct list_selection list;
    struct one_sample one;
    AUTO(found_release) struct found found;
    struct bytes got;

    blob[1] = memory_blob_new(
        "x-labels", "\0\0\x0c\x01\0\0\0\x03\x80\0\0\0\x7f\xff\xff\xff\0\0\0\x05", 20, 20, NULL);
    assert_int_equal(idx_open(blob, 2, &no_options, &found), 0);
    kind = find_file_kind(found.item[0].ds, SCOPE_BATCHES, "png", ".label.cls");
    assert_non_null(kind);
    list_selection_init(&list, all, 3);
    assert_int_equal(render(READ_WAITS, found.item[0].ds, kind, &list.sel, NULL, &got), 0);
    assert_int_equal(got.len, 36);
    assert_memory_equal(got.at, "-2147483648\n 2147483647\n          5\n", 36);
    free(got.at);
    one_sample_init(&one, 2);
    assert_int_equal(render(READ_WAITS, found.item[0].ds, kind, &one.sel, NULL, &got), 0);
    assert_int_equal(got.len, 12);
    assert_memory_equal(got.at, "5\n\n\n\n\n\n\n\n\n\n\n", 12);
    free(got.at);
}

/* ---- offers ---- */

UNIT_TEST(test_offers__pair__suffixes)
{
    static const struct {
        const char *encoder, *suffix;
        bool samples, batches;
    } cases[] = {
        {"raw", ".image.raw", true, true},     {"raw", ".label.raw", true, true},
        {"npy", ".image.npy", true, true},     {"npy", ".label.npy", true, true},
        {"npy", ".image01.npy", true, true},   {"npy", ".label1h.npy", true, true},
        {"npy", ".index.npy", false, true},    {"npy", ".key.npy", false, false},
        {"npz", ".npz", true, true},           {"tar", ".tar", true, true},
        {"png", ".image.png", true, true},     {"png", ".label.cls", true, true},
        {"png", ".label.png", false, false},   {"pgm", ".image.pgm", true, true},
        {"pgm", ".label.cls", true, true},     {"idx", ".image.idx", true, true},
        {"idx", ".label.idx", true, true},     {"idx", ".index.idx", false, false},
        {"raw", ".image01.raw", false, false},
    };
    struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){3, 2, 2}, NULL),
                           idx_blob("x-labels", 0x08, 1, (uint32_t[]){3}, NULL)};
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &no_options, &found), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool samples =
            find_file_kind(found.item[0].ds, SCOPE_SAMPLES, cases[i].encoder, cases[i].suffix);
        bool batches =
            find_file_kind(found.item[0].ds, SCOPE_BATCHES, cases[i].encoder, cases[i].suffix);

        if (samples != cases[i].samples || batches != cases[i].batches)
            fail_msg("%s%s", cases[i].encoder, cases[i].suffix);
    }
}

UNIT_TEST(test_offers__no_pictures__no_picture_folders)
{
    struct blob *blob = idx_blob("x", 0x0d, 3, (uint32_t[]){3, 2, 2}, NULL);
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
    for (unsigned i = 0; i < found.item[0].ds->n_folders; i++) {
        assert_string_not_equal(found.item[0].ds->folder[i].name, "png");
        assert_string_not_equal(found.item[0].ds->folder[i].name, "pgm");
    }
}

/* ---- the host ---- */

struct test_host {
    struct layout_host host;
    unsigned recalled, remembered;
    bool known[256];
    struct layout_sum value[256];
};

static void test_recall(const struct layout_host *host, const struct layout_range *range,
                        unsigned n, struct layout_sum *ret)
{
    struct test_host *t = (struct test_host *)host;

    for (unsigned i = 0; i < n; i++) {
        if (!t->known[range[i].slot])
            continue;
        t->recalled++;
        ret[i] = t->value[range[i].slot];
    }
}

static void test_remember(const struct layout_host *host, const struct layout_range *range,
                          unsigned n, const struct layout_sum *sum)
{
    struct test_host *t = (struct test_host *)host;

    for (unsigned i = 0; i < n; i++) {
        t->remembered++;
        t->known[range[i].slot] = true;
        t->value[range[i].slot] = sum[i];
    }
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void check_host(const struct dataset *ds, const char *encoder, const char *suffix,
                       unsigned slots)
{
    const struct file_kind *kind = find_file_kind(ds, SCOPE_BATCHES, encoder, suffix);
    const uint64_t all[] = {0, 1, 2, 3, 3};
    struct test_host t = {.host = {test_recall, test_remember}};
    struct list_selection list;
    struct bytes plain, first, second;
    struct read_context rc;

    assert_non_null(kind);
    list_selection_init(&list, all, 5);
    assert_int_equal(render(READ_WAITS, ds, kind, &list.sel, NULL, &plain), 0);
    assert_int_equal(render(READ_WAITS, ds, kind, &list.sel, &t.host, &first), 0);
    assert_int_equal(t.remembered, slots);
    t.recalled = 0;
    assert_int_equal(render(READ_WAITS, ds, kind, &list.sel, &t.host, &second), 0);
    assert_int_equal(t.remembered, slots);
    if (slots)
        assert_true(t.recalled >= slots);
    assert_memory_equal(first.at, plain.at, plain.len);
    assert_memory_equal(second.at, plain.at, plain.len);
    free(plain.at);
    free(first.at);
    free(second.at);
    t = (struct test_host){.host = {test_recall, test_remember}};
    read_context_init(&rc, false);
    rc.cancelled = at_once;
    assert_int_equal(render(&rc, ds, kind, &list.sel, &t.host, &first), slots ? -EINTR : 0);
    read_context_release(&rc);
    if (!slots)
        free(first.at);
    assert_int_equal(t.remembered, 0);
}

UNIT_TEST(test_host__checksums__made_once)
{
    struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){4, 5, 5}, NULL),
                           idx_blob("x-labels", 0x08, 1, (uint32_t[]){4}, NULL)};
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &no_options, &found), 0);
    check_host(found.item[0].ds, "npz", ".npz", 4);
    check_host(found.item[0].ds, "png", ".image.png", 2);
    check_host(found.item[0].ds, "npy", ".image.npy", 0);
}

/* ---- faults ---- */

UNIT_TEST(test_encoders__read_fails__that_error_and_then_right_again)
{
    struct blob_faults faults = {0};
    struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){4, 2, 3}, &faults),
                           idx_blob("x-labels", 0x0b, 1, (uint32_t[]){4}, &faults)};
    const uint64_t mixed[] = {3, 0, 1, 1};
    struct list_selection list;
    const struct dataset *ds;
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &(struct format_options){.classes = 60000}, &found), 0);
    ds = found.item[0].ds;
    list_selection_init(&list, mixed, 4);
    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_BATCHES]; k++) {
            const struct file_kind *kind = &ds->folder[i].files[SCOPE_BATCHES][k];

            if (!strcmp(kind->suffix, ".label1h.npy"))
                continue;
            for (uint64_t n = 1;; n++) {
                struct bytes got;
                int r;

                faults.reads = 0;
                faults.fail_read = n;
                r = render(READ_WAITS, ds, kind, &list.sel, NULL, &got);
                if (faults.reads < n) {
                    assert_int_equal(r, 0);
                    check_content(ds, kind, &list.sel, &got);
                    free(got.at);
                    break;
                }
                assert_int_equal(r, -EIO);
            }
        }
    }
}

UNIT_TEST(test_one_hot__label_outside__ebadmsg)
{
    struct blob *blob = idx_blob_labels("d/l-labels", (uint8_t[]){1, 7, 2}, 3, NULL);
    const struct file_kind *kind;
    struct diag d = DIAG_INIT;
    AUTO_LAYOUT struct layout l = {0};
    struct one_sample one;
    AUTO(found_release) struct found found;
    uint8_t buf[512];

    assert_int_equal(idx_open(&blob, 1, &(struct format_options){.classes = 4}, &found), 0);
    kind = find_file_kind(found.item[0].ds, SCOPE_SAMPLES, "npy", ".label1h.npy");
    one_sample_init(&one, 1);
    layout_init(&l, found.item[0].ds, &one.sel, NULL);
    assert_int_equal(kind->encoder->layout(&l, kind), 0);
    assert_int_equal(layout_read(READ_WAITS, &l, 0, (size_t)l.size, buf, &d), -EBADMSG);
    assert_diag_has(&d, "d/l-labels: label of sample 1: expected 0 to 3, got 7");
    layout_release(&l);
}

UNIT_TEST(test_layout__too_large__efbig)
{
    AUTO_LAYOUT struct layout l = {0};
    struct one_sample one;

    one_sample_init(&one, 0);
    layout_init(&l, NULL, &one.sel, NULL);
    assert_int_equal(layout_add_zeros(&l, INT64_MAX), 0);
    assert_int_equal(l.size, INT64_MAX);
    assert_int_equal(layout_add_zeros(&l, 1), -EFBIG);
    assert_int_equal(layout_add_zeros(&l, UINT64_MAX), -EFBIG);
    assert_int_equal(layout_add_bytes(&l, malloc(4), 4), -EFBIG);
    assert_int_equal(layout_add_bytes(&l, NULL, 4), -ENOMEM);
    assert_int_equal(l.size, INT64_MAX);
}

/* Selections with files too large for a 64-bit size, and pictures too large for PNG. */
UNIT_TEST(test_encoders__huge_selections__efbig_or_a_size)
{
    struct blob *blob = idx_blob_zeros("x-images", 0x08, 3, (uint32_t[]){4, 65536, 65536}, NULL);
    const uint64_t counts[] = {1, 4, 1000000, UINT32_MAX, UINT64_C(1) << 40, UINT64_MAX};
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
    for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
        struct list_selection list;

        list_selection_init(&list, NULL, counts[c]);
        for (unsigned i = 0; i < found.item[0].ds->n_folders; i++) {
            const struct folder *folder = &found.item[0].ds->folder[i];

            for (unsigned k = 0; k < folder->n_kinds[SCOPE_BATCHES]; k++) {
                const struct file_kind *kind = &folder->files[SCOPE_BATCHES][k];
                AUTO_LAYOUT struct layout l = {0};
                int r;

                if (kind->encoder->reads && counts[c] <= 1000000)
                    continue; /* it looks at samples, which the list lacks */
                layout_init(&l, found.item[0].ds, &list.sel, NULL);
                r = kind->encoder->layout(&l, kind);
                assert_true(r == 0 || r == -EFBIG);
                if (r == 0 && kind->field && field_is_in(kind->field, IN_RAW))
                    assert_true(l.size / counts[c] >= kind->field->stored_bytes);
                if (!strcmp(kind->folder, "png"))
                    assert_int_equal(r, -EFBIG);
                if (counts[c] == UINT64_MAX)
                    assert_int_equal(r, -EFBIG);
            }
        }
    }
}
