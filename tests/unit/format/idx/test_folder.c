/* The datasets that format_idx makes from the files of a folder: the pairs of files, and their
 * fields. */
#include "support/idx_make.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

static const struct format_options no_options;

struct file {
    const char *name;
    uint8_t type;
    unsigned axes;
    uint32_t dim[4];
};

static void open_files(const struct file *file, size_t n, const struct format_options *options,
                       struct found *ret)
{
    struct blob *blob[8];

    for (size_t i = 0; i < n; i++) {
        blob[i] = idx_blob(file[i].name, file[i].type, file[i].axes, file[i].dim, NULL);
        assert_non_null(blob[i]);
    }
    assert_int_equal(idx_open(blob, n, options, ret), 0);
}

#define IMAGES(name, n)                                                                            \
    {                                                                                              \
        (name), 0x08, 3,                                                                           \
        {                                                                                          \
            (n), 2, 3                                                                              \
        }                                                                                          \
    }
#define LABELS(name, n)                                                                            \
    {                                                                                              \
        (name), 0x08, 1,                                                                           \
        {                                                                                          \
            (n)                                                                                    \
        }                                                                                          \
    }
#define QMNIST_LABELS(name, n)                                                                     \
    {                                                                                              \
        (name), 0x0c, 2,                                                                           \
        {                                                                                          \
            (n), 8                                                                                 \
        }                                                                                          \
    }

static const struct dataset *dataset_at(const struct found *found, const char *name)
{
    int i = found_find(found, name);

    if (i < 0 || !found->item[i].ds)
        fail_msg("no dataset '%s'", name);
    return found->item[i].ds;
}

/* Both files become one dataset of that name. */
static void check_pair(const char *images, const char *labels, const char *name)
{
    const struct file files[] = {IMAGES(images, 4), LABELS(labels, 4)};
    const struct dataset *ds;
    AUTO(found_release) struct found found;

    open_files(files, 2, &no_options, &found);
    if (found.n != 1)
        fail_msg("%s and %s are no pair", images, labels);
    ds = dataset_at(&found, name);
    assert_int_equal(ds->samples, 4);
    assert_int_equal(ds->n_blobs, 2);
    assert_non_null(dataset_field(ds, "image"));
    assert_non_null(dataset_field(ds, "label"));
    assert_null(dataset_field(ds, "data"));
    assert_true(ds->n_folders > 0);
}

UNIT_TEST(test_idx_folder__names_of_the_family__pairs)
{
    check_pair("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train");
    check_pair("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte", "t10k");
    check_pair("t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte", "t10k");
    check_pair("train-images-idx3-ubyte", "train-labels.idx1-ubyte", "train");
    check_pair("emnist-byclass-train-images-idx3-ubyte", "emnist-byclass-train-labels-idx1-ubyte",
               "emnist-byclass-train");
    check_pair("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "train");
    check_pair("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", "train");
    check_pair("train-images-idx3-ubyte", "train-labels-idx1-ubyte.xz", "train");
    check_pair("xnist-images-idx3-ubyte.xz", "xnist-labels-idx2-int.xz", "xnist");
    check_pair("images-idx3-ubyte", "labels-idx1-ubyte", "images-idx3-ubyte");
    check_pair("a_images_idx3_ubyte", "a_labels_idx1_ubyte", "a");
    check_pair("train-images-idx3-ubyte.v2", "train-labels-idx1-ubyte.v2", "train.v2");
    check_pair("images/x-images", "images/x-labels", "x");
    check_pair("labels-images-idx3-ubyte", "labels-labels-idx1-ubyte", "labels");
    check_pair("images.x", "labels.x", "images.x");
    check_pair("a.b-images", "a.b-labels", "a.b");
    check_pair("x-images-idx", "x-labels-idx", "x-idx");
    check_pair("x-images-idx3-u8", "x-labels-idx10", "x");
    check_pair("x-_images", "x-_labels", "x");
}

/* Each file becomes a dataset of its own. */
static void check_no_pair(const char *a, const char *b)
{
    const struct file files[] = {IMAGES(a, 4), LABELS(b, 4)};
    AUTO(found_release) struct found found;

    open_files(files, 2, &no_options, &found);
    assert_int_equal(found.n, 2);
    assert_int_equal(dataset_at(&found, a)->n_blobs, 1);
    assert_int_equal(dataset_at(&found, b)->n_blobs, 1);
}

UNIT_TEST(test_idx_folder__other_names__alone)
{
    check_no_pair("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    check_no_pair("train-images-idx3-ubyte", "train2-labels-idx1-ubyte");
    check_no_pair("train-images-idx3-ubyte", "train-labels-idx1-ubyte.old");
    check_no_pair("train-images-idx3-ubyte", "train_labels-idx1-ubyte");
    check_no_pair("train-Images-idx3-ubyte", "train-labels-idx1-ubyte");
    check_no_pair("one", "two");
    check_no_pair("a-images", "b-images");
    check_no_pair("a-labels", "b-labels");
}

UNIT_TEST(test_idx_folder__qmnist__int_labels)
{
    const struct file files[] = {IMAGES("qmnist-train-images-idx3-ubyte", 5),
                                 QMNIST_LABELS("qmnist-train-labels-idx2-int", 5)};
    const struct dataset *ds;
    const struct field *label;
    AUTO(found_release) struct found found;

    open_files(files, 2, &no_options, &found);
    assert_int_equal(found.n, 1);
    ds = dataset_at(&found, "qmnist-train");
    label = dataset_field(ds, "label");
    assert_int_equal(label->dtype, DTYPE_I4);
    assert_int_equal(label->ndim, 1);
    assert_int_equal(label->dim[0], 8);
    assert_int_equal(label->item_bytes, 32);
    assert_null(dataset_field(ds, "label1h")); /* a vector is no class */
}

UNIT_TEST(test_idx_folder__two_label_files__first_pairs_second_alone)
{
    const struct file files[] = {IMAGES("qmnist-test-images-idx3-ubyte", 5),
                                 LABELS("qmnist-test-labels-idx1-ubyte", 5),
                                 QMNIST_LABELS("qmnist-test-labels-idx2-int", 5)};
    AUTO(found_release) struct found found;

    open_files(files, 3, &no_options, &found);
    assert_int_equal(found.n, 2);
    assert_int_equal(dataset_field(dataset_at(&found, "qmnist-test"), "label")->ndim, 0);
    assert_int_equal(dataset_at(&found, "qmnist-test-labels-idx2-int")->n_blobs, 1);
}

UNIT_TEST(test_idx_folder__two_label_files__equal_count_pairs)
{
    const struct file files[] = {IMAGES("a-images-idx3-ubyte", 5), LABELS("a-labels-idx1-ubyte", 4),
                                 QMNIST_LABELS("a-labels-idx2-int", 5)};
    AUTO(found_release) struct found found;

    open_files(files, 3, &no_options, &found);
    assert_int_equal(found.n, 2);
    assert_int_equal(dataset_field(dataset_at(&found, "a"), "label")->ndim, 1);
    assert_int_equal(dataset_at(&found, "a-labels-idx1-ubyte")->samples, 4);
}

UNIT_TEST(test_idx_folder__same_name_packed_and_not__both_there)
{
    const struct file files[] = {IMAGES("train-images-idx3-ubyte", 4),
                                 IMAGES("train-images-idx3-ubyte.gz", 4),
                                 LABELS("train-labels-idx1-ubyte", 4)};
    AUTO(found_release) struct found found;
    size_t datasets = 0, blobs = 0;

    open_files(files, 3, &no_options, &found);
    for (size_t i = 0; i < found.n; i++) {
        datasets += found.item[i].ds != NULL;
        blobs += found.item[i].ds ? found.item[i].ds->n_blobs : 0;
    }
    assert_int_equal(datasets, 2);
    assert_int_equal(blobs, 3);
    assert_int_equal(dataset_at(&found, "train")->n_blobs, 2);
}

UNIT_TEST(test_idx_folder__counts_differ__error_and_both_alone)
{
    const struct file files[] = {IMAGES("d/train-images-idx3-ubyte", 60),
                                 LABELS("d/train-labels-idx1-ubyte", 59)};
    AUTO(found_release) struct found found;
    struct diag d = {.set = true};
    int i;

    open_files(files, 2, &no_options, &found);
    assert_int_equal(found.n, 3);
    i = found_find(&found, "train");
    assert_true(i >= 0);
    assert_null(found.item[i].ds);
    snprintf(d.text, sizeof(d.text), "%s", found.item[i].reason);
    assert_diag_has(&d, "d/train-images-idx3-ubyte has 60");
    assert_diag_has(&d, "d/train-labels-idx1-ubyte has 59");
    assert_diag_has(&d, "byte 4");
    assert_int_equal(dataset_at(&found, "train-images-idx3-ubyte")->samples, 60);
    assert_int_equal(dataset_at(&found, "train-labels-idx1-ubyte")->samples, 59);
    assert_non_null(dataset_field(dataset_at(&found, "train-labels-idx1-ubyte"), "label"));
}

UNIT_TEST(test_idx_folder__bad_file__error_and_the_rest_works)
{
    AUTO(found_release) struct found found;
    struct blob *blob[3];
    struct diag d = {.set = true};
    int i;

    blob[0] = idx_blob("train-images-idx3-ubyte", 8, 3, (uint32_t[]){4, 2, 3}, NULL);
    blob[1] = memory_blob_new("train-labels-idx1-ubyte.gz",
                              "\0\0\x08\x01\0\0\0\x04"
                              "abc",
                              11, 11, NULL);
    blob[2] = idx_blob("x", 8, 1, (uint32_t[]){4}, NULL);
    assert_int_equal(idx_open(blob, 3, &no_options, &found), 0);
    assert_int_equal(found.n, 3);
    i = found_find(&found, "train-labels-idx1-ubyte.gz"); /* under its own name, with .gz */
    assert_true(i >= 0);
    assert_null(found.item[i].ds);
    snprintf(d.text, sizeof(d.text), "%s", found.item[i].reason);
    assert_diag_has(&d, "byte 8: expected 4 bytes, got 3");
    assert_int_equal(dataset_at(&found, "train-images-idx3-ubyte")->samples, 4);
    assert_int_equal(dataset_at(&found, "x")->samples, 4);
}

UNIT_TEST(test_idx_folder__no_files__nothing)
{
    struct found found;

    assert_int_equal(idx_open(NULL, 0, &no_options, &found), 0);
    assert_int_equal(found.n, 0);
}

/* The role of a single file: by its name, otherwise by the two familiar magics. */
UNIT_TEST(test_idx_folder__one_file__role)
{
    static const struct {
        struct file file;
        const char *field;
    } cases[] = {
        {IMAGES("x", 3), "image"},
        {LABELS("x", 3), "label"},
        {{"x", 0x08, 2, {3, 4}}, "data"},
        {{"x", 0x08, 4, {3, 4, 2, 2}}, "data"},
        {{"x", 0x09, 1, {3}}, "data"},
        {{"x", 0x0d, 3, {3, 2, 2}}, "data"},
        {QMNIST_LABELS("x", 3), "data"},
        {{"x-images", 0x0d, 2, {3, 2}}, "image"},
        {{"x-labels", 0x0e, 3, {3, 2, 2}}, "label"},
        {LABELS("images", 3), "image"},
        {IMAGES("labels", 3), "label"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(found_release) struct found found;
        const struct dataset *ds;

        open_files(&cases[i].file, 1, &no_options, &found);
        assert_int_equal(found.n, 1);
        ds = dataset_at(&found, cases[i].file.name);
        assert_string_equal(ds->field[0].name, cases[i].field);
        assert_true(field_is_in(&ds->field[0], IN_RAW));
        assert_int_equal(ds->field[0].ndim, cases[i].file.axes - 1);
        for (unsigned k = 1; k < cases[i].file.axes; k++)
            assert_int_equal(ds->field[0].dim[k - 1], cases[i].file.dim[k]);
        assert_non_null(dataset_field(ds, "index"));
        assert_non_null(dataset_field(ds, "key"));
    }
}

UNIT_TEST(test_idx_folder__images_u1__image01)
{
    const struct file files[] = {IMAGES("u-images", 3), {"f-images", 0x0d, 3, {3, 2, 3}}};
    const struct field *unit;
    AUTO(found_release) struct found found;

    open_files(files, 2, &no_options, &found);
    unit = dataset_field(dataset_at(&found, "u-images"), "image01");
    assert_non_null(unit);
    assert_true(unit->derived);
    assert_int_equal(unit->dtype, DTYPE_F4);
    assert_int_equal(unit->ndim, 2);
    assert_int_equal(unit->dim[0], 2);
    assert_int_equal(unit->dim[1], 3);
    assert_int_equal(unit->item_bytes, 24);
    assert_null(dataset_field(dataset_at(&found, "f-images"), "image01"));
}

/* The width of label1h; 0 if there is no such field. */
static uint64_t one_hot_width(struct blob *labels, uint64_t classes)
{
    const struct format_options options = {.classes = classes};
    const struct field *f;
    struct found found;
    uint64_t width = 0;

    assert_int_equal(idx_open(&labels, 1, &options, &found), 0);
    assert_int_equal(found.n, 1);
    assert_non_null(found.item[0].ds);
    f = dataset_field(found.item[0].ds, "label1h");
    if (f) {
        assert_int_equal(f->ndim, 1);
        assert_int_equal(f->dtype, DTYPE_F4);
        assert_int_equal(f->item_bytes, f->dim[0] * 4);
        width = f->dim[0];
    }
    found_release(&found);
    return width;
}

static struct blob *typed_labels(const char *header, const char *payload, size_t len)
{
    char bytes[64];

    memcpy(bytes, header, 8);
    memcpy(bytes + 8, payload, len);
    return memory_blob_new("x-labels", bytes, 8 + len, 8 + len, NULL);
}

UNIT_TEST(test_idx_folder__one_hot__largest_label_plus_1)
{
    assert_int_equal(one_hot_width(idx_blob_labels("l", (uint8_t[]){3, 9, 0}, 3, NULL), 0), 10);
    assert_int_equal(one_hot_width(idx_blob_labels("l", (uint8_t[]){0}, 1, NULL), 0), 1);
    assert_int_equal(one_hot_width(idx_blob_labels("l", (uint8_t[]){255}, 1, NULL), 0), 256);
    assert_int_equal(
        one_hot_width(typed_labels("\0\0\x0b\x01\0\0\0\x02", "\x01\x02\x00\x07", 4), 0), 0x103);
    assert_int_equal(one_hot_width(typed_labels("\0\0\x0c\x01\0\0\0\x01", "\0\0\xff\xff", 4), 0),
                     65536);
}

UNIT_TEST(test_idx_folder__one_hot__none_where_it_makes_no_sense)
{
    assert_int_equal(one_hot_width(idx_blob_labels("l", NULL, 0, NULL), 0), 0);
    assert_int_equal(one_hot_width(typed_labels("\0\0\x09\x01\0\0\0\x02", "\x05\xff", 2), 0), 0);
    assert_int_equal(one_hot_width(typed_labels("\0\0\x0c\x01\0\0\0\x01", "\0\x01\0\0", 4), 0), 0);
    assert_int_equal(one_hot_width(typed_labels("\0\0\x0d\x01\0\0\0\x01", "\0\0\0\0", 4), 0), 0);
}

UNIT_TEST(test_idx_folder__classes__width)
{
    assert_int_equal(one_hot_width(idx_blob_labels("l", (uint8_t[]){3, 9, 0}, 3, NULL), 62), 62);
    assert_int_equal(one_hot_width(idx_blob_labels("l", (uint8_t[]){3, 9, 0}, 3, NULL), 2), 2);
    assert_int_equal(one_hot_width(idx_blob_labels("l", NULL, 0, NULL), 4), 4);
}

UNIT_TEST(test_idx_folder__labels_longer_than_a_scan__largest_found)
{
    const uint32_t n = 65536 * 2 + 7; /* and no multiple of a chunk */
    AUTO_FREE uint8_t *label = calloc(1, n);

    label[n - 1] = 77;
    assert_int_equal(one_hot_width(idx_blob_labels("l", label, n, NULL), 0), 78);
    label[n - 1] = 0;
    label[65536] = 76;
    assert_int_equal(one_hot_width(idx_blob_labels("l", label, n, NULL), 0), 77);
    label[65536] = 0;
    label[65535] = 75;
    assert_int_equal(one_hot_width(idx_blob_labels("l", label, n, NULL), 0), 76);
}

UNIT_TEST(test_idx_folder__transpose__axes_exchanged)
{
    const struct format_options options = {.transpose = true};
    const struct file files[] = {IMAGES("a-images", 3),
                                 {"b-images", 0x0b, 3, {3, 2, 5}},
                                 {"c-images", 0x08, 4, {3, 2, 5, 1}},
                                 {"d", 0x0d, 3, {3, 2, 5}}};
    const struct field *f;
    AUTO(found_release) struct found found;

    open_files(files, 4, &options, &found);
    f = dataset_field(dataset_at(&found, "a-images"), "image");
    assert_int_equal(f->dim[0], 3);
    assert_int_equal(f->dim[1], 2);
    f = dataset_field(dataset_at(&found, "a-images"), "image01");
    assert_int_equal(f->dim[0], 3);
    assert_int_equal(f->dim[1], 2);
    f = dataset_field(dataset_at(&found, "b-images"), "image");
    assert_int_equal(f->dim[0], 5);
    assert_int_equal(f->dim[1], 2);
    f = dataset_field(dataset_at(&found, "c-images"), "image"); /* not a picture of two axes */
    assert_int_equal(f->dim[0], 2);
    f = dataset_field(dataset_at(&found, "d"), "data"); /* no image */
    assert_int_equal(f->dim[0], 2);
}

UNIT_TEST(test_idx_folder__read_fails__error_or_the_whole)
{
    for (uint64_t n = 1;; n++) {
        struct blob_faults faults = {.fail_read = n};
        struct found found;
        struct blob *blob[] = {
            idx_blob("a-images-idx3-ubyte", 8, 3, (uint32_t[]){4, 2, 3}, &faults),
            idx_blob("a-labels-idx1-ubyte", 8, 1, (uint32_t[]){4}, &faults)};

        assert_int_equal(idx_open(blob, 2, &no_options, &found), 0);
        if (faults.reads < n) {
            assert_int_equal(found.n, 1);
            assert_non_null(found.item[0].ds);
            found_release(&found);
            assert_true(n > 3); /* both headers, the labels */
            return;
        }
        assert_true(found.n >= 1);
        assert_null(found.item[0].ds);
        assert_non_null(strstr(found.item[0].reason, strerror(EIO)));
        found_release(&found);
    }
}

UNIT_TEST(test_idx_folder__keys__six_digits_or_more)
{
    static const struct {
        uint32_t n;
        const char *last;
    } cases[] = {{1, "000000"},
                 {999999, "999998"},
                 {1000000, "999999"},
                 {1000001, "1000000"},
                 {UINT32_MAX, "4294967294"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct blob *blob = idx_blob_zeros("x", 8, 2, (uint32_t[]){cases[i].n, 2}, NULL);
        const struct dataset *ds;
        AUTO(found_release) struct found found;
        char key[KEY_NAME_SIZE];
        uint64_t sample = 0;

        assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
        ds = dataset_at(&found, "x");
        dataset_name(ds, ds->samples - 1, false, key);
        assert_string_equal(key, cases[i].last);
        assert_true(dataset_find(ds, key, strlen(key), &sample));
        assert_int_equal(sample, ds->samples - 1);
        dataset_name(ds, ds->samples, false, key);
        assert_false(dataset_find(ds, key, strlen(key), &sample));
    }
}

/* The other half of a pair cannot be read now: no pair, and what has another name is alone. */
UNIT_TEST(test_idx_folder__half_unread__error)
{
    static const struct {
        const char *here, *unread, *error, *alone; /* NULL: none */
    } rows[] = {
        {"a-images-idx3-ubyte", "!a-labels-idx1-ubyte", "a", "a-images-idx3-ubyte"},
        {"a-labels-idx1-ubyte", "!a-images-idx3-ubyte", "a", "a-labels-idx1-ubyte"},
        {"images-idx3-ubyte", "!labels-idx1-ubyte", "images-idx3-ubyte", NULL},
        {"a-images-idx3-ubyte", "!b-labels-idx1-ubyte", NULL, "a-images-idx3-ubyte"},
        {"a-images-idx3-ubyte", "!a-images-idx1-ubyte", NULL, "a-images-idx3-ubyte"},
        {"a-images-idx3-ubyte", "!README", NULL, "a-images-idx3-ubyte"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct file files[] = {IMAGES(rows[i].here, 4), LABELS(rows[i].unread, 4)};
        AUTO(found_release) struct found found;

        open_files(files, 2, &no_options, &found);
        assert_int_equal(found.n, !!rows[i].error + !!rows[i].alone);
        if (rows[i].error) {
            assert_string_equal(found.item[0].name, rows[i].error);
            assert_non_null(strstr(found.item[0].reason, "it is marked"));
        }
        if (rows[i].alone)
            assert_int_equal(dataset_at(&found, rows[i].alone)->samples, 4);
    }
}

/* Labels that are there are not those of the images, if others may be. */
UNIT_TEST(test_idx_folder__one_of_two_label_files_unread__error)
{
    const struct file files[] = {IMAGES("a-images-idx3-ubyte", 4),
                                 QMNIST_LABELS("a-labels-idx2-int", 4),
                                 LABELS("!a-labels-idx1-ubyte", 4)};
    AUTO(found_release) struct found found;

    open_files(files, 3, &no_options, &found);
    assert_int_equal(found.n, 3);
    assert_null(found.item[found_find(&found, "a")].ds);
    assert_int_equal(dataset_at(&found, "a-images-idx3-ubyte")->n_blobs, 1);
    assert_int_equal(dataset_at(&found, "a-labels-idx2-int")->n_blobs, 1);
}

UNIT_TEST(test_idx_folder__large_items__no_image01)
{
    static const uint32_t axes[][3] = {{0, UINT32_C(1) << 31, UINT32_C(1) << 31},
                                       {0, UINT32_C(1) << 31, (UINT32_C(1) << 31) - 1}};

    for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
        struct blob *blob = idx_blob_zeros("a-images", 8, 3, axes[i], NULL);
        AUTO(found_release) struct found found;

        assert_int_equal(idx_open(&blob, 1, &no_options, &found), 0);
        assert_int_equal(!dataset_field(dataset_at(&found, "a-images"), "image01"), !i);
    }
}

static bool probe_as(const char *name, const char *head, size_t len, bool tokens)
{
    const struct format_options options = {.tokens_given = tokens};
    const struct probed_file file = {.name = name,
                                     .head = (const uint8_t *)head,
                                     .len = len,
                                     .size = len,
                                     .whole = true,
                                     .options = &options};

    return format_idx.probe(&file);
}

static bool probe(const char *head, size_t len)
{
    return probe_as("x", head, len, false);
}

UNIT_TEST(test_idx_probe__heads__right)
{
    assert_true(probe("\0\0\x08\x01", 4));
    assert_true(probe("\0\0", 2)); /* bad, but an IDX file */
    assert_false(probe("\0", 1));
    assert_false(probe("", 0));
    assert_false(probe("\x1f\x8b", 2));
    assert_false(probe("\0\1", 2));
    assert_false(probe("\0\0\0\0", 4)); /* zeros, but with such a name: bad */
    assert_true(probe_as("x-idx1", "\0\0\0\0", 4, false));
    assert_true(probe_as("x.ubyte", "\0\0\0\0", 4, false));
    assert_true(probe("\0\0\0\1", 4));
    assert_true(probe("\0\0\1\0", 4));
    assert_false(probe_as("t.bin", "\0\0\1\0", 4, false)); /* tokens 0, 1 of uint16 */
    assert_false(probe_as("t.bin", "\0\0\0\1", 4, false));
    assert_false(probe_as("t.bin", "\0\0\x07\1", 4, false));
    assert_false(probe_as("t.bin", "\0\0\x0f\1", 4, false));
    assert_false(probe_as("t.bin", "\0\0\x08\0", 4, false));
    assert_true(probe_as("t.bin", "\0\0\x0e\1", 4, false));
    assert_true(probe_as("x-idx1.bin", "\0\0\0\1", 4, false));
    assert_true(probe("\0\0\x0a\1", 4));
    assert_true(probe_as("x", "\0\0\x08\1\0\0\0\1z", 9, true));
    assert_false(probe_as("x", "\0\0\x08\1\0\0\0\2z", 9, true));
    assert_true(probe_as("x", "\0\0\x08\1\0\0\0\2z", 9, false));
}
