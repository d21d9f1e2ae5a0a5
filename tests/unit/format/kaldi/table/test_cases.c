/* The known cases of binary objects of Kaldi tables (K-n: case numbers), and the messages about bad
 * ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/index/index.h"
#include "support/kaldi_make.h"
#include "support/memory_blob.h"
#include "support/unit.h"

static int measure(const struct text *bytes, enum kaldi_type want, struct kaldi_object *ret,
                   struct diag *d)
{
    return kaldi_measure_bytes(bytes, bytes->len, 0, want, 0, ret, d);
}

/* The object cannot be read, and the message has the piece. Takes ownership of the bytes. */
#define assert_bad(bytes, want, piece)                                                             \
    do {                                                                                           \
        struct kaldi_object untouched = {.len = 77};                                               \
        struct diag bad_diag = DIAG_INIT;                                                          \
                                                                                                   \
        assert_int_equal(measure(bytes, want, &untouched, &bad_diag), -EBADMSG);                   \
        assert_diag_has(&bad_diag, piece);                                                         \
        assert_diag_has(&bad_diag, "a.ark: byte ");                                                \
        assert_int_equal(untouched.len, 77);                                                       \
        text_release(bytes);                                                                       \
    } while (0)

/* The object has that length and those dims. Takes ownership of the bytes. */
#define assert_good(bytes, want, object_len, dim0, dim1)                                           \
    do {                                                                                           \
        struct kaldi_object good = {0};                                                            \
        struct diag good_diag = DIAG_INIT;                                                         \
                                                                                                   \
        if (measure(bytes, want, &good, &good_diag) < 0)                                           \
            fail_msg("%s", good_diag.text);                                                        \
        assert_int_equal(good.len, object_len);                                                    \
        assert_int_equal(good.dim[0], dim0);                                                       \
        assert_int_equal(good.dim[1], dim1);                                                       \
        text_release(bytes);                                                                       \
    } while (0)

/* ---- compressed matrices ---- */

static struct text compressed(const char *token, int64_t rows, int64_t columns)
{
    struct text t = {0};

    kaldi_put_start(&t, token);
    kaldi_put_value(&t, -1, false);
    kaldi_put_value(&t, 2, false);
    kaldi_put_raw(&t, (uint64_t)rows, 4);
    kaldi_put_raw(&t, (uint64_t)columns, 4);
    return t;
}

/* K-8, K-9 */
UNIT_TEST(test_compressed__no_columns__empty)
{
    static const struct {
        const char *token;
        int64_t rows;
    } cases[] = {{"CM ", 0}, {"CM ", 3}, {"CM ", -3}, {"CM2 ", 0}, {"CM3 ", 7}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct text t = compressed(cases[i].token, cases[i].rows, 0);
        size_t len = t.len;

        kaldi_put(&t, "\0\0\0\0b ", 6); /* the writer's 4 bytes too many, and the next key */
        assert_good(&t, KALDI_MATRIX, len, 0, 0);
    }
}

UNIT_TEST(test_compressed__bad_shape__ebadmsg)
{
    struct text t;

    t = compressed("CM ", 0, 5);
    assert_bad(&t, KALDI_MATRIX, "got 0 and 5");
    t = compressed("CM2 ", -1, 5);
    assert_bad(&t, KALDI_MATRIX,
               "byte 14: expected rows and columns of a compressed matrix, got -1");
    t = compressed("CM3 ", 5, -1);
    assert_bad(&t, KALDI_UNKNOWN, "got 5 and -1");
    t = compressed("CM ", 2, 3);
    kaldi_put(&t, "0123456789abcdef01234567", 24);
    kaldi_put(&t, "uvwxy", 5);
    assert_bad(&t, KALDI_MATRIX, "byte 45: expected 6 bytes of a compressed matrix, got 5");
    t = compressed("CM ", INT32_MAX, INT32_MAX);
    assert_bad(&t, KALDI_MATRIX, "expected 17179869176 bytes of the columns");
    t = compressed("CM4 ", 1, 1);
    assert_bad(&t, KALDI_MATRIX, "got \"CM4\", which is opaque");
}

/* K-10: Kaldi counts in 32 bits. */
UNIT_TEST(test_compressed__more_than_4_gib__measured)
{
    AUTO_TEXT struct text t = compressed("CM3 ", 70000, 70000);
    struct kaldi_object found;
    struct diag d = DIAG_INIT;
    uint64_t len = t.len + UINT64_C(4900000000), bytes;

    assert_int_equal(kaldi_measure_bytes(&t, len + 9, 0, KALDI_MATRIX, 0, &found, &d), 0);
    assert_int_equal(found.len, len);
    assert_true(kaldi_array_bytes(&found, 0, DTYPE_F8, &bytes));
    assert_int_equal(bytes, UINT64_C(39200000000));
    assert_int_equal(kaldi_measure_bytes(&t, len - 1, 0, KALDI_MATRIX, 0, &found, &d), -EBADMSG);
    assert_diag_has(&d, "expected 4900000000 bytes of a compressed matrix, got 4899999999");
}

/* ---- matrices and vectors ---- */

static struct text dense(const char *token, int64_t rows, int64_t columns)
{
    struct text t = {0};

    kaldi_put_start(&t, token);
    kaldi_put_int(&t, rows);
    kaldi_put_int(&t, columns);
    return t;
}

/* K-4, K-5 */
UNIT_TEST(test_matrix__shapes)
{
    struct text t;

    t = dense("FM ", 0, 0);
    assert_good(&t, KALDI_MATRIX, 15, 0, 0);
    t = dense("FM ", 0, 5);
    assert_bad(&t, KALDI_MATRIX, "got 0 rows of 5 columns");
    t = dense("DM ", 5, 0);
    assert_bad(&t, KALDI_UNKNOWN, "got 5 rows of 0 columns");
    t = dense("FM ", -1, 5);
    assert_bad(&t, KALDI_MATRIX, "byte 6: expected rows of 0 or more, got -1");
    t = dense("FM ", 5, INT32_MIN);
    assert_bad(&t, KALDI_MATRIX, "byte 11: expected columns of 0 or more, got -2147483648");
    t = dense("DM ", INT32_MAX, INT32_MAX); /* 2^65 bytes */
    assert_bad(&t, KALDI_MATRIX, "got 0 bytes");
}

/* K-6 */
UNIT_TEST(test_matrix__wrong_integer__ebadmsg)
{
    struct text t = dense("FM ", 1, 1);

    kaldi_put_value(&t, 1, false);
    t.data[5] = 8;
    assert_bad(&t, KALDI_MATRIX, "byte 5: expected rows as int32 (byte 04), got byte 08");
    t = dense("FM ", 1, 1);
    t.data[10] = (char)0xfc;
    kaldi_put_value(&t, 1, false);
    assert_bad(&t, KALDI_MATRIX, "byte 10: expected columns as int32 (byte 04), got byte fc");
    t = dense("FV ", 2, 0);
    t.data[5] = 1;
    assert_bad(&t, KALDI_VECTOR, "byte 5: expected elements as int32");
}

/* K-7 */
UNIT_TEST(test_matrix__cut__says_where)
{
    struct text t = dense("FM ", 3, 4);

    kaldi_put(&t, "0123456789", 10);
    assert_bad(&t, KALDI_MATRIX, "byte 15: expected 48 bytes of a matrix, got 10");
    t = dense("FM ", 3, 4);
    t.len -= 3;
    assert_bad(&t, KALDI_MATRIX, "byte 10: expected 5 bytes of columns, got 2");
}

/* K-3 */
UNIT_TEST(test_named__another_type__ebadmsg)
{
    struct text t;

    t = dense("FM ", 0, 0);
    assert_bad(&t, KALDI_VECTOR, "byte 2: expected vector, got FM, of type matrix");
    t = dense("FV ", 3, 0); /* cut too */
    assert_bad(&t, KALDI_MATRIX, "expected matrix, got FV, of type vector");
    t = dense("DP ", 0, 0);
    assert_bad(&t, KALDI_MATRIX, "expected matrix, got DP, of type packed");
    t = dense("SV ", 0, 0);
    assert_bad(&t, KALDI_PACKED, "expected packed, got SV, of type vector");
    t = compressed("CM2 ", 0, 0);
    assert_bad(&t, KALDI_INTS, "expected int-vector, got CM2, of type matrix");
    t = dense("FM ", 0, 0);
    assert_bad(&t, KALDI_TOKENS, "expected tokens, which is always text, got a binary object");
    t = dense("FM ", 0, 0);
    assert_bad(&t, KALDI_TOKEN, "expected token, which is always text");
    t = dense("FM", 0, 0);
    assert_bad(&t, KALDI_MATRIX, "expected matrix, got \"FM\", which is opaque");
}

UNIT_TEST(test_packed__many_rows__ebadmsg)
{
    struct text t = dense("DP ", INT32_MAX, 0);

    assert_bad(&t, KALDI_PACKED, "expected 18446744065119617024 bytes of a packed matrix, got 5");
    t = dense("FP ", -1, 0);
    assert_bad(&t, KALDI_PACKED, "expected rows of 0 or more, got -1");
}

UNIT_TEST(test_plain__native_dtype__where_it_stands)
{
    AUTO_TEXT struct text t = dense("FM ", 1, 1);
    struct kaldi_object o;
    struct diag d = DIAG_INIT;
    uint64_t at;

    kaldi_put_value(&t, 1, false);
    assert_int_equal(measure(&t, KALDI_MATRIX, &o, &d), 0);
    assert_true(kaldi_plain(&o, 0, DTYPE_F4, &at));
    assert_int_equal(at, 15);
    assert_false(kaldi_plain(&o, 0, DTYPE_F8, &at));
    t.len = 0;
    kaldi_put_start(&t, "");
    kaldi_put_real(&t, 1, true);
    assert_int_equal(measure(&t, KALDI_FLOAT, &o, &d), 0);
    assert_false(kaldi_plain(&o, 0, DTYPE_F4, &at));
    assert_true(kaldi_plain(&o, 0, DTYPE_F8, &at));
    assert_int_equal(at, 3);
    t.len = 0;
    kaldi_put_start(&t, "");
    kaldi_put_int(&t, 7);
    assert_int_equal(measure(&t, KALDI_INT, &o, &d), 0);
    assert_true(kaldi_plain(&o, 0, DTYPE_F8, &at));
    assert_int_equal(at, 3);
    assert_int_equal(measure(&t, KALDI_FLOAT, &o, &d), 0); /* a denormal number */
    t.data[3] = 0;
    assert_int_equal(measure(&t, KALDI_INTS, &o, &d), 0);
    assert_false(kaldi_plain(&o, 0, DTYPE_F4, &at));
}

UNIT_TEST(test_array_bytes__too_many__false)
{
    struct kaldi_object o = {.type = KALDI_MATRIX, .dim = {1 << 30, INT32_MAX}};
    uint64_t bytes = 5;

    assert_true(kaldi_array_bytes(&o, 0, DTYPE_F4, &bytes));
    assert_int_equal(bytes, UINT64_C(4) * (1 << 30) * INT32_MAX);
    bytes = 5;
    assert_false(kaldi_array_bytes(&o, 0, DTYPE_F8, &bytes));
    o.dim[1]++;
    assert_false(kaldi_array_bytes(&o, 0, DTYPE_F4, &bytes));
    o.dim[0] = o.dim[1] = UINT64_C(1) << 32;
    assert_false(kaldi_array_bytes(&o, 0, DTYPE_F4, &bytes));
    assert_int_equal(bytes, 5);
}

/* ---- sparse ---- */

static struct text sparse_entry(int64_t elements, int64_t entries, int64_t index)
{
    struct text t = {0};

    kaldi_put_start(&t, "SV ");
    kaldi_put_int(&t, elements);
    kaldi_put_int(&t, entries);
    kaldi_put_int(&t, index);
    kaldi_put_real(&t, 1, false);
    return t;
}

UNIT_TEST(test_sparse__bad)
{
    struct text t;

    t = sparse_entry(3, 1, 2);
    assert_good(&t, KALDI_VECTOR, 25, 3, 0);
    t = sparse_entry(3, 1, 3);
    assert_bad(&t, KALDI_VECTOR, "byte 16: expected an index below 3, got 3");
    t = sparse_entry(3, 1, -1);
    assert_bad(&t, KALDI_VECTOR, "expected an index below 3, got -1");
    t = sparse_entry(1, 2, 0);
    assert_bad(&t, KALDI_VECTOR, "byte 11: expected at most 1 entries, got 2");
    t = sparse_entry(9, 3, 0);
    assert_bad(&t, KALDI_VECTOR, "byte 15: expected 30 bytes of entries, got 10");
    t = sparse_entry(3, 1, 0);
    t.data[20] = 5;
    assert_bad(&t, KALDI_VECTOR, "expected a real number (byte 04 or 08), got byte 05");
}

/* A sparse matrix with rows of that many elements, all zero. */
static struct text sparse_rows(int64_t rows, int64_t first, int64_t second)
{
    struct text t = {0};

    kaldi_put_start(&t, "SM ");
    kaldi_put_int(&t, rows);
    kaldi_put_text(&t, "SV ");
    kaldi_put_int(&t, first);
    kaldi_put_int(&t, 0);
    kaldi_put_text(&t, "SV ");
    kaldi_put_int(&t, second);
    kaldi_put_int(&t, 0);
    return t;
}

UNIT_TEST(test_sparse__bad_rows__ebadmsg)
{
    struct text t;
    struct kaldi_object o;
    struct diag d = DIAG_INIT;

    t = sparse_rows(2, 4, 4);
    assert_good(&t, KALDI_MATRIX, 36, 2, 4);
    t = sparse_rows(0, 4, 4);
    assert_good(&t, KALDI_MATRIX, 10, 0, 0);
    t = sparse_rows(2, 4, 5);
    assert_bad(&t, KALDI_MATRIX, "byte 23: expected a row of 4 elements as row 0, got 5");
    t = sparse_rows(2, 0, 0);
    assert_bad(&t, KALDI_MATRIX, "got 2 rows of none");
    t = sparse_rows(2, 4, 4);
    t.data[23] = 'F';
    assert_bad(&t, KALDI_MATRIX, "byte 23: expected a row (SV), got bytes 46 56 20");
    t = sparse_rows(3, 4, 4);
    assert_bad(&t, KALDI_MATRIX, "expected 39 bytes of rows, got 26");
    t = sparse_rows(10000000, 4, 4);
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 40, 0, KALDI_MATRIX, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(&d, "byte 6: expected at most 9999999 rows");
    text_release(&t);
    t = sparse_rows(9999999, 4, 4);
    d = DIAG_INIT;
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 40, 0, KALDI_MATRIX, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(&d, "byte 36: expected a row (SV), got bytes 00 00 00");
    text_release(&t);
}

/* ---- types that do not say what they are ---- */

UNIT_TEST(test_unnamed__same_bytes__any_type)
{
    static const enum kaldi_type types[] = {KALDI_INT,         KALDI_FLOAT,     KALDI_DOUBLE,
                                            KALDI_INTS,        KALDI_INT_LISTS, KALDI_INT_PAIRS,
                                            KALDI_FLOAT_PAIRS, KALDI_POSTERIOR, KALDI_GAUSS_POST};
    struct text t;

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        t = (struct text){0};
        kaldi_put_start(&t, "");
        kaldi_put_int(&t, 0);
        assert_good(&t, types[i], 7, 0, 0);
        t = (struct text){0};
        kaldi_put_start(&t, "<Nnet3Eg> ");
        assert_bad(&t, types[i], "got \"<Nnet3Eg>\", which is opaque");
        t = (struct text){0};
        kaldi_put_start(&t, "\3\4\4\4\4\4\4\4");
        assert_bad(&t, types[i], "got byte 03");
    }
    t = (struct text){0};
    kaldi_put_start(&t, "");
    kaldi_put_real(&t, 1, true);
    assert_bad(&t, KALDI_INT, "byte 2: expected int as int32 (byte 04), got byte 08");
    t = (struct text){0};
    kaldi_put_start(&t, "");
    kaldi_put_int(&t, -1);
    assert_bad(&t, KALDI_INTS, "byte 3: expected elements of 0 or more, got -1");
}

UNIT_TEST(test_unnamed__nothing_wanted__ebadmsg)
{
    struct text t = {0};

    kaldi_put_start(&t, "");
    kaldi_put_int(&t, 0);
    assert_bad(&t, KALDI_UNKNOWN, "got byte 04, as a number or a list of numbers; -o kaldi_type=");
    t = (struct text){0};
    kaldi_put_start(&t, "Tkey ");
    assert_bad(&t, KALDI_UNKNOWN, "got byte 54");
    t = (struct text){0};
    kaldi_put_start(&t, "<Nnet3Eg> <NumIo> ");
    assert_bad(
        &t, KALDI_MATRIX,
        "byte 2: expected matrix, got \"<Nnet3Eg>\", which is opaque: where its end is, only "
        "the program that wrote it knows");
    t = (struct text){0};
    kaldi_put_start(&t, "");
    assert_bad(&t, KALDI_UNKNOWN, "got the end of the file");
}

UNIT_TEST(test_bool__before_a_key_m__false)
{
    struct text t = {0};

    kaldi_put_start(&t, "FM ");
    assert_good(&t, KALDI_BOOL, 3, 0, 0);
    kaldi_put_start(&t, "X");
    assert_bad(&t, KALDI_BOOL, "byte 2: expected bool ('T' or 'F'), got byte 58");
}

UNIT_TEST(test_ints__a_bad_one_anywhere__named)
{
    static const uint32_t n = 70000;
    static const uint32_t bad[] = {0, 1, 13106, 13107, 13108, 69999};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct text t = {0};
        char place[40];

        kaldi_put_start(&t, "");
        kaldi_put_int(&t, n);
        for (uint32_t k = 0; k < n; k++)
            kaldi_put_int(&t, k);
        t.data[7 + 5 * bad[i]] = 5;
        snprintf(place, sizeof(place), "byte %u: expected integers as int32", 7 + 5 * bad[i]);
        assert_bad(&t, KALDI_INTS, place);
    }
}

UNIT_TEST(test_ints__an_alignment__few_reads)
{
    AUTO_TEXT struct text t = {0};
    struct blob_faults faults = {0};
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object o;

    kaldi_put_start(&t, "");
    kaldi_put_int(&t, 2000);
    for (unsigned k = 0; k < 2000; k++)
        kaldi_put_int(&t, 4);
    AUTO_BLOB struct blob *blob = memory_blob_new("a", t.data, t.len, t.len, &faults);
    kaldi_in_init(&in, blob);
    assert_int_equal(kaldi_measure(&in, 0, KALDI_INTS, &o, NULL), 0);
    assert_true(faults.reads <= 2);
}

UNIT_TEST(test_lists__too_many__ebadmsg)
{
    AUTO_TEXT struct text t = {0};
    struct kaldi_object o;
    struct diag d = DIAG_INIT;

    kaldi_put_start(&t, "");
    kaldi_put_int(&t, 10000001);
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 40, 0, KALDI_POSTERIOR, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(
        &d, "byte 3: expected at most 10000000 frames of a posterior, as Kaldi does, got 10000001");
    d = DIAG_INIT;
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 40, 0, KALDI_GAUSS_POST, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(&d, "byte 7: expected entries as int32");
    d = DIAG_INIT;
    assert_int_equal(kaldi_measure_bytes(&t, 1000, 0, KALDI_INT_LISTS, 0, &o, &d), -EBADMSG);
    assert_diag_has(&d, "byte 7: expected 50000005 bytes of lists, got 993");
    t.data[3]--; /* as many as there may be */
    d = DIAG_INIT;
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 40, 0, KALDI_POSTERIOR, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(&d, "byte 7: expected entries as int32");
}

UNIT_TEST(test_gauss__no_vector__ebadmsg)
{
    struct text t = {0};

    kaldi_put_start(&t, "");
    kaldi_put_int(&t, 1);
    kaldi_put_int(&t, 1);
    kaldi_put_int(&t, 1);
    kaldi_put_text(&t, "FM ");
    kaldi_put_int(&t, 0);
    assert_bad(&t, KALDI_GAUSS_POST, "byte 17: expected a vector (FV or DV), got bytes 46 4d 20");
}

/* ---- .npy ---- */

#define NPY(descr, order, shape)                                                                   \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static struct text npy(const char *header, size_t total)
{
    struct text t = {0};

    kaldi_put_npy_header(&t, 1, header, total);
    kaldi_put(&t, "0123456789abcdef01234567", 24);
    return t;
}

UNIT_TEST(test_npy__as_kaldi_takes_it)
{
    struct text t;

    t = npy(NPY("'<f4'", "False", "(3, 2)"), 128);
    assert_good(&t, KALDI_UNKNOWN, 2 + 128 + 24, 3, 2);
    t = npy("{'shape':(6,),'descr':'<f4','fortran_order':False}", 64);
    assert_good(&t, KALDI_VECTOR, 2 + 64 + 24, 6, 0);
    t = npy(NPY("'<f8'", "False", "(1, 3,)"), 192);
    assert_good(&t, KALDI_MATRIX, 2 + 192 + 24, 1, 3);
    t = npy(NPY("'<f8'", "False", "(0, 3)"), 128);
    assert_good(&t, KALDI_MATRIX, 2 + 128, 0, 3);
    t = npy(NPY("'<f8'", "False", "(0, 2147483647)"), 128);
    assert_good(&t, KALDI_MATRIX, 2 + 128, 0, INT32_MAX);
}

UNIT_TEST(test_npy__bad_header__ebadmsg)
{
    static const struct {
        const char *header, *piece;
    } cases[] = {
        {NPY("'>f4'", "False", "(3, 2)"), "expected 'descr': '<f4' or '<f8'"},
        {NPY("'<i4'", "False", "(3, 2)"), "got \"{'descr': '<i4'"},
        {NPY("'<f4'", "True", "(3, 2)"), "expected 'fortran_order': False"},
        {NPY("'<f4'", "False", "()"), "expected 'shape' of one or two axes"},
        {NPY("'<f4'", "False", "(1, 3, 2)"), "expected 'shape' of one or two axes"},
        {NPY("'<f4'", "False", "(-1, 3)"), "expected 'shape': a tuple of numbers"},
        {NPY("'<f4'", "False", "3"), "expected 'shape': a tuple of numbers"},
        {NPY("'<f4'", "False", "(2147483648,)"), "expected 'shape' of one or two axes"},
        {NPY("'<f4'", "False", "(7,)"),
         "byte 130: expected 28 bytes of the values of .npy, got 24"},
        {"{'fortran_order': False, 'shape': (3, 2)}",
         "expected a dict of three members in the header"},
        {"{'descr': '<f4', 'shape': (3, 2)}", "expected a dict of three members"},
        {"{'descr': '<f4', 'fortran_order': False}", "expected a dict of three members"},
    };
    struct text t;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        t = npy(cases[i].header, 128);
        assert_bad(&t, KALDI_UNKNOWN, cases[i].piece);
    }
    t = npy(NPY("'<f4'", "False", "(3, 2)"), 100);
    assert_bad(&t, KALDI_UNKNOWN, "a multiple of 64 bytes");
    t = npy(NPY("'<f4'", "False", "(3, 2)"), 128);
    t.data[8] = 4;
    assert_bad(&t, KALDI_UNKNOWN, "got version 4.0");
    t = npy(NPY("'<f4'", "False", "(3, 2)"), 128);
    assert_bad(&t, KALDI_VECTOR, "byte 2: expected vector, got a .npy file, of type matrix");
    t = npy(NPY("'<f4'", "False", "(3,)"), 128);
    assert_bad(&t, KALDI_MATRIX, "expected matrix, got a .npy file, of type vector");
    t = (struct text){0};
    kaldi_put_npy_header(&t, 2, NPY("'<f4'", "False", "(3, 2)"), 65536 * 2);
    assert_bad(&t, KALDI_UNKNOWN, "of at most 65536, got version 2.0");
}

/* ---- lines ---- */

/* A line is found whole, whatever the window has of it, up to the longest that is wanted. */
UNIT_TEST(test_line__of_any_length__whole)
{
    for (size_t len = 0; len < 5000; len += len % 256 < 3 || len % 256 > 252 ? 1 : 50) {
        AUTO_TEXT struct text t = {0};
        AUTO_KALDI_IN struct kaldi_in in = {0};
        AUTO_BLOB struct blob *blob = NULL;
        uint64_t at = 1;
        size_t found = 0;
        bool ended = false;

        text_add(&t, "k%*s\nnext", (int)len, "");
        blob = memory_blob_new("a", t.data, t.len, t.len, NULL);
        kaldi_in_init(&in, blob);
        in.window.least = 1;
        assert_non_null(kaldi_in_line(&in, &at, 4096, &found, &ended));
        assert_int_equal(found, ended ? len : min_u64(found, len));
        assert_int_equal(at, 1 + found + ended);
        assert_true(ended || len > 4096);
    }
}

/* ---- what is no object that we know ---- */

#define COUNT(n)  "\4" n "\0\0\0"
#define MINUS_ONE "\4\377\377\377\377"
#define FLOAT_0   "\4\0\0\0\0"
#define ENTRY     "\0B" COUNT("\1") COUNT("\1") /* a list of one, and in it a list of one */

UNIT_TEST(test_measure__not_binary__ebadmsg)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum kaldi_type want;
        const char *piece;
    } cases[] = {
#define BAD(type, bytes, piece) {bytes, sizeof(bytes) - 1, type, piece}
        BAD(KALDI_INT, "\0BT", "byte 2: expected int, got \"T\" and the end of the file"),
        BAD(KALDI_INT, "\0BT ", "byte 2: expected int, got byte 54"),
        BAD(KALDI_INT, "\0BTx ", "expected int, got \"Tx\", which is opaque"),
        BAD(KALDI_UNKNOWN, "\0BFx ", "got byte 46, as a number"),
        BAD(KALDI_PACKED, "\0B" COUNT("\0"), "byte 2: expected packed, got byte 04"),
        BAD(KALDI_VECTOR, "\0B012345678901234567890123456789012345678912 ",
            "got \"0123456789012345678901234567890123456789\", which is opaque"),
        BAD(KALDI_FLOAT, "\0B\10\0\0\0\0",
            "byte 2: expected 9 bytes of a real number of 8 bytes, got 5"),
        BAD(KALDI_DOUBLE, "\0B\4\0\0\0", "byte 2: expected 5 bytes of a real number, got 4"),
        BAD(KALDI_VECTOR, "\0BDV " COUNT("\2") "123456789012345",
            "byte 10: expected 16 bytes of a vector, got 15"),
        BAD(KALDI_PACKED, "\0BFP " COUNT("\3") "12345678901234567890123",
            "byte 10: expected 24 bytes of a packed matrix, got 23"),
        BAD(KALDI_MATRIX, "\0BCM 123456789012345",
            "byte 5: expected 16 bytes of the header of a compressed matrix, got 15"),
        BAD(KALDI_MATRIX, "\0BCM2 12345678\1\0\0\0\2\0\0\0abc",
            "byte 22: expected 4 bytes of a compressed matrix, got 3"),
        BAD(KALDI_MATRIX, "\0BCM3 12345678\1\0\0\0\2\0\0\0a",
            "byte 22: expected 2 bytes of a compressed matrix, got 1"),
        BAD(KALDI_INT_LISTS, "\0B" COUNT("\1") MINUS_ONE,
            "byte 8: expected elements of 0 or more, got -1"),
        BAD(KALDI_INT_PAIRS, "\0B" COUNT("\1") COUNT("\1"),
            "byte 7: expected 10 bytes of integers, got 5"),
        BAD(KALDI_FLOAT_PAIRS, "\0B" COUNT("\1") "123456789",
            "byte 7: expected 10 bytes of pairs, got 9"),
        BAD(KALDI_FLOAT_PAIRS, "\0B" COUNT("\1") FLOAT_0 "\6\0\0\0\0",
            "byte 12: expected a real number (byte 04 or 08), got byte 06"),
        BAD(KALDI_POSTERIOR, ENTRY "123456789", "byte 12: expected 10 bytes of entries, got 9"),
        BAD(KALDI_POSTERIOR, ENTRY "\5\0\0\0\0" FLOAT_0,
            "byte 12: expected an integer as int32 (byte 04), got byte 05"),
        BAD(KALDI_GAUSS_POST, ENTRY "123456789012",
            "byte 12: expected 13 bytes of entries, got 12"),
        BAD(KALDI_GAUSS_POST, ENTRY COUNT("\7") "XV " COUNT("\0"), "got bytes 58 56 20"),
        BAD(KALDI_GAUSS_POST, ENTRY COUNT("\7") "FVx" COUNT("\0"), "got bytes 46 56 78"),
        BAD(KALDI_GAUSS_POST, ENTRY COUNT("\7") "FV " MINUS_ONE,
            "byte 21: expected elements of 0 or more, got -1"),
        BAD(KALDI_GAUSS_POST, ENTRY COUNT("\7") "FV " COUNT("\2") "1234",
            "byte 25: expected 8 bytes of a vector, got 4"),
#undef BAD
        {"\0C", 2, KALDI_MATRIX, "byte 0: expected 00 'B', got 00 43"},
        {"\0", 1, KALDI_MATRIX, "expected 00 'B', got 00 and the end of the file"},
        {"\0BFM", 4, KALDI_MATRIX, "byte 2: expected matrix, got \"FM\" and the end of the file"},
        {"", 0, KALDI_MATRIX, "expected an object, got the end of the file"},
        {" [ 1 ]\n", 7, KALDI_UNKNOWN, "got text; -o kaldi_type="},
        {" [ 1 ]\n", 7, KALDI_OPAQUE, "expected 00 'B' of an opaque object, got text"},
        {"NPY\1\x80", 5, KALDI_UNKNOWN, "got \"NPY\": an object of kaldiio, which Kaldi cannot"},
        {"AUDIO\1\x80", 7, KALDI_WAVE, "expected "},
        {"AUDIO\1\x80", 7, KALDI_MATRIX, "expected matrix, got \"AUDIO\": an object of kaldiio"},
        {"PKL\x80", 4, KALDI_INTS, "expected int-vector, got \"PKL\": an object of kaldiio"},
        {"fLaC\0\0\0", 7, KALDI_UNKNOWN, "got \"fLaC\": an object of kaldiio"},
        {"\0BRIFF", 6, KALDI_WAVE, "expected "}, /* K-84 */
        {"\0BRIFF    ", 10, KALDI_UNKNOWN, "got \"RIFF\", which is opaque"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct text t = {0};

        kaldi_put(&t, cases[i].bytes, cases[i].len);
        assert_bad(&t, cases[i].want, cases[i].piece);
    }
}

/* Objects of a class end with its last token, where the file ends or another object begins. */
UNIT_TEST(test_opaque__ends__where_an_object_follows)
{
    static const struct {
        const char *behind; /* the first "</A> " */
        size_t len;
        uint64_t more; /* bytes of it that belong to the object; UINT64_MAX: it has no end */
    } cases[] = {
        {"", 0, 0},
        {"k \0B<A> x", 9, 0},
        {"x</A> ", 6, 6},
        {"\0B<A> </A> ", 11, 11},
        {"k \0B<B> </A> ", 13, 13},
        {"k  \0B<A> </A> k \0B<A> ", 22, 14},
        {" k \0B<A> </A> ", 14, 14},
        {"k \0B<A>", 8, UINT64_MAX},
        {"x", 1, UINT64_MAX},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        struct kaldi_object o;
        int r;

        kaldi_put_text(&t, "k ");
        kaldi_put_start(&t, "<A> \4abc</A> ");
        kaldi_put(&t, cases[i].behind, cases[i].len);
        r = kaldi_measure_bytes(&t, t.len, 2, KALDI_UNKNOWN, 0, &o, &d);
        assert_int_equal(r, cases[i].more == UINT64_MAX ? -EBADMSG : 0);
        if (r < 0)
            continue;
        assert_int_equal(o.type, KALDI_OPAQUE);
        if (o.len != 15 + cases[i].more)
            fail_msg("case %zu: %llu bytes", i, (unsigned long long)o.len);
    }
}

/* A token of 40 bytes, in windows that end anywhere; one of 41 is too long. */
UNIT_TEST(test_opaque__long_token__taken)
{
    for (size_t i = 0; i < 2 * 60; i++) {
        static const char name[] = "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHI";
        const int len = i % 2 ? 39 : 38;
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        struct kaldi_object o;

        kaldi_put_text(&t, "k ");
        kaldi_put_start(&t, "");
        text_add(&t, "<%.*s> </%.*s> ", len, name, len, name);
        assert_int_equal(kaldi_measure_bytes(&t, t.len, 2, KALDI_OPAQUE, i / 2, &o, &d),
                         i % 2 ? -EBADMSG : 0);
        if (i % 2)
            assert_diag_has(&d, "byte 4: expected a token in <>");
        else
            assert_int_equal(o.len, t.len - 2);
    }
}

/* The key of the object after it has 1024 bytes at most. */
UNIT_TEST(test_opaque__long_key_after_it__ends_or_not)
{
    for (int len = KEY_MAX; len <= KEY_MAX + 1; len++) {
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        struct kaldi_object o;
        char key[KEY_MAX + 1];

        memset(key, 'k', sizeof(key));
        kaldi_put_text(&t, "k ");
        kaldi_put_start(&t, "<A> </A> ");
        text_add(&t, "%.*s ", len, key);
        kaldi_put_start(&t, "<A> </A> ");
        assert_int_equal(kaldi_measure_bytes(&t, t.len, 2, KALDI_OPAQUE, 0, &o, &d), 0);
        assert_int_equal(o.len, len == KEY_MAX ? 11 : t.len - 2);
    }
}

/* Its end is found wherever pieces of the search end. */
UNIT_TEST(test_opaque__long__found)
{
    static const char zeros[65536 + 8];

    for (size_t n = 65536 - 8; n < sizeof(zeros); n++) {
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        struct kaldi_object o;

        kaldi_put_text(&t, "k ");
        kaldi_put_start(&t, "<A> ");
        kaldi_put(&t, zeros, n);
        kaldi_put_text(&t, "</A> ");
        assert_int_equal(kaldi_measure_bytes(&t, t.len, 2, KALDI_UNKNOWN, 1, &o, &d), 0);
        assert_int_equal(o.len, t.len - 2);
    }
}

/* A line of an scp file reads a part of its archive, however large it is. */
UNIT_TEST(test_opaque__no_end_in_256_mib__ebadmsg)
{
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    struct kaldi_object o;

    kaldi_put_text(&t, "k ");
    kaldi_put_start(&t, "<A> ");
    assert_int_equal(kaldi_measure_bytes(&t, UINT64_C(1) << 33, 2, KALDI_UNKNOWN, 0, &o, &d),
                     -EBADMSG);
    assert_diag_has(&d, "expected </A> after at most 268435456 bytes of an object");
}

UNIT_TEST(test_types__named)
{
    static const char *const names[] = {"",           "matrix",          "vector",    "packed",
                                        "int",        "float",           "double",    "bool",
                                        "int-vector", "int-vectors",     "int-pairs", "float-pairs",
                                        "posterior",  "gauss-posterior", "token",     "tokens",
                                        "wave",       "opaque"};

    assert_int_equal(ARRAY_LEN(names), N_KALDI_TYPES);
    for (unsigned i = 0; i < N_KALDI_TYPES; i++)
        assert_string_equal(kaldi_types[i].name, names[i]);
}
