/* Arrays in memory as .npy files: where their elements are, their order, and what is refused. */
#include "support/idx_make.h"
#include "support/render.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "format/array/array.h"
#include "format/core/encoder.h"

extern const struct format format_npy;

/* A .npy of elements that are their own numbers, uint16 in that order of bytes; data: bytes of
 * them. */
static struct blob *npy_blob(const char *name, const char *descr, bool fortran, const char *shape,
                             size_t data, struct blob_faults *faults)
{
    uint8_t bytes[4096];
    size_t len = (size_t)snprintf((char *)bytes + 10, 200,
                                  "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
                                  fortran ? "True" : "False", shape);

    memcpy(bytes, "\x93NUMPY\1", 8);
    store_le16(bytes + 8, (uint16_t)len);
    len += 10;
    for (size_t i = 0; i < data; i++) {
        uint8_t pair[2] = {(uint8_t)(i / 2), (uint8_t)(i / 2 >> 8)};

        bytes[len++] = pair[(i & 1) ^ (*descr == '>')];
    }
    return memory_blob_new(name, bytes, len, len, faults);
}

/* The element of a sample of the only dataset. */
static unsigned element(const struct dataset *ds, uint64_t sample, size_t i)
{
    struct one_sample one;
    uint8_t two[2];

    one_sample_init(&one, sample);
    assert_int_equal(ds->field->ops->read(READ_WAITS, ds, ds->field, &one.sel, 2 * i, 2, two, NULL),
                     0);
    return load_le16(two);
}

static void open_one(struct blob *blob, struct found *ret)
{
    const struct format_setup setup = {.made = NULL};

    assert_int_equal(format_open(&format_npy, &blob, 1, &setup, ret), 0);
    assert_true(ret->n == 1 || ret->finds.n_unread);
}

/* element (k, i, j) of (4, 3, 2) is number k + 4 i + 12 j of the file. */
UNIT_TEST(test_fortran__rows_in_c_order)
{
    for (int big = 0; big < 2; big++) {
        AUTO(found_release) struct found found;
        const struct dataset *ds;

        open_one(npy_blob("a.npy", big ? ">u2" : "<u2", true, "(4, 3, 2)", 48, NULL), &found);
        ds = found.item[0].ds;
        assert_non_null(ds);
        assert_int_equal(ds->samples, 4);
        for (unsigned k = 0; k < 4; k++)
            for (unsigned i = 0; i < 3; i++)
                for (unsigned j = 0; j < 2; j++)
                    assert_int_equal(element(ds, k, 2 * i + j), k + 4 * i + 12 * j);
    }
}

/* the bytes in memory are good as long as the file is the one that they were read from. */
UNIT_TEST(test_fortran__file_changes__stale)
{
    struct blob_faults faults = {0};
    AUTO(found_release) struct found found;
    char *identity;

    open_one(npy_blob("a.npy", "<u2", true, "(4, 3)", 24, &faults), &found);
    assert_int_equal(blob_check(found.item[0].ds->field->blob), 0);
    assert_int_equal(blob_identity(found.item[0].ds->field->blob, &identity), 0);
    free(identity);
    faults.stale = true;
    assert_int_equal(blob_check(found.item[0].ds->field->blob), -ESTALE);
    assert_int_equal(blob_check(found.item[0].ds->blob[0]), -ESTALE);
}

UNIT_TEST(test_reads__each_fails__reported)
{
    for (uint64_t n = 1;; n++) {
        struct blob_faults faults = {.fail_read = n};
        struct found found;

        assert_true(n < 100);
        open_one(npy_blob("a.npy", "<u2", true, "(4, 3)", 24, &faults), &found);
        if (found.item[0].ds) {
            assert_true(n > 3); /* the start, the header, the array */
            found_release(&found);
            break;
        }
        assert_non_null(strstr(found.item[0].reason, "a.npy"));
        found_release(&found);
    }
}

UNIT_TEST(test_refused)
{
    static const struct {
        const char *descr;
        bool fortran;
        const char *shape;
        size_t data;
        const char *want;
    } rows[] = {
        {"<u2", false, "()", 2, "a scalar"},                                      /* */
        {"<u2", false, "(4611686018427387904, 4)", 2, "got a larger one"},        /* */
        {"<u2", false, "(0, 4611686018427387904, 4)", 2, "below 2^64"},           /* */
        {"<u2", false, "(4294967296, 0)", 2, "expected at most 4294967295 rows"}, /* */
        {"<u2", false, "(3,)", 5, "expected 6 bytes, got 5 (cut short)"},         /* */
        {"|O", false, "(3,)", 6, "a pickle, which is never read"},                /* */
        {"<V2", false, "(3,)", 6, "bfloat16"},                                    /* */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(found_release) struct found found;

        open_one(
            npy_blob("a.npy", rows[i].descr, rows[i].fortran, rows[i].shape, rows[i].data, NULL),
            &found);
        assert_string_equal(found.item[0].name, "a.npy");
        if (!found.item[0].reason || !strstr(found.item[0].reason, rows[i].want))
            fail_msg("%s: \"%s\"", rows[i].want, found.item[0].reason);
    }
}

/* A file that cannot be read now may be in the set: none is made, and the others are kept. */
UNIT_TEST(test_unread__its_set_is_an_error)
{
    const struct format_setup setup = {.made = NULL};
    struct blob *blob[] = {npy_blob("x_train.npy", "<u2", false, "(3,)", 6, NULL),
                           npy_blob("x_test.npy", "<u2", false, "(2,)", 4, NULL),
                           npy_blob("!y_train.npy", "<u2", false, "(3,)", 6, NULL),
                           npy_blob("!README", "<u2", false, "(3,)", 6, NULL)};
    AUTO(found_release) struct found found;

    assert_int_equal(format_open(&format_npy, blob, ARRAY_LEN(blob), &setup, &found), 0);
    assert_int_equal(found.n, 2);
    assert_null(found.item[found_find(&found, "train")].ds);
    assert_non_null(strstr(found.item[found_find(&found, "train")].reason, "it is marked"));
    assert_non_null(found.item[found_find(&found, "test")].ds);
}
