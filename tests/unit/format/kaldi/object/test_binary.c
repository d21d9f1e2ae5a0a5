/* Binary objects of Kaldi tables of every kind: measured between other objects through windows of
 * any size, decoded, written again, truncated at every byte, changed after they were measured. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "support/kaldi_make.h"
#include "support/memory_blob.h"
#include "support/random.h"
#include "support/unit.h"

/* ---- measuring ---- */

static void assert_object(const struct kaldi_object *found, const struct kaldi_object *want,
                          uint64_t start)
{
    assert_int_equal(found->type, want->type);
    assert_int_equal(found->store, want->store);
    assert_int_equal(found->start, start);
    assert_int_equal(found->len, want->len);
    for (unsigned i = 0; i < KALDI_DIMS; i++)
        assert_int_equal(found->dim[i], want->dim[i]);
}

static bool names_itself(const struct kaldi_object *o)
{
    return o->type == KALDI_MATRIX || o->type == KALDI_VECTOR || o->type == KALDI_PACKED;
}

/* Measure it between other objects of its file, through windows of any size. */
static void check_measure(const struct kaldi_made *m)
{
    AUTO_TEXT struct text file = {0};

    kaldi_put_text(&file, "key ");
    kaldi_put(&file, m->bytes.data, m->bytes.len);
    kaldi_put(&file, "\4\4\4\4\4\4\4\4", 8);
    for (size_t window = 0; window < 50; window++) {
        struct kaldi_object found;
        struct diag d = DIAG_INIT;

        if (kaldi_measure_bytes(&file, file.len - window % 8, 4, m->object.type, window, &found,
                                &d) < 0)
            fail_msg("%s", d.text);
        assert_object(&found, &m->object, 4);
        if (!names_itself(&m->object))
            continue;
        assert_int_equal(kaldi_measure_bytes(&file, file.len, 4, KALDI_UNKNOWN, window, &found, &d),
                         0);
        assert_object(&found, &m->object, 4);
    }
}

/* ---- decoding ---- */

#define GUARD 16

/* Decode an array from bytes that may differ from the measured ones. NULL: -EBADMSG. */
static uint8_t *decode(const struct kaldi_object *object, const char *bytes, unsigned i,
                       enum dtype dtype, uint64_t *ret_len)
{
    uint8_t *dst;
    struct diag d = DIAG_INIT;
    int r;

    assert_true(kaldi_array_bytes(object, i, dtype, ret_len));
    dst = malloc((size_t)*ret_len + GUARD);
    assert_non_null(dst);
    memset(dst, 0xa5, (size_t)*ret_len + GUARD);
    r = kaldi_decode(object, (const uint8_t *)bytes, i, dtype, dst, "b.ark", &d);
    for (unsigned k = 0; k < GUARD; k++)
        assert_int_equal(dst[*ret_len + k], 0xa5);
    if (r == 0)
        return dst;
    assert_int_equal(r, -EBADMSG);
    assert_diag_has(&d, "b.ark: byte ");
    free(dst);
    return NULL;
}

/* The double at element k of array i as float. */
static uint32_t as_float(const struct text *array, size_t k)
{
    double v;
    float f;
    uint32_t bits;

    memcpy(&v, array->data + 8 * k, 8);
    f = (float)v;
    memcpy(&bits, &f, 4);
    return bits;
}

/* Bytes of a value, of objects whose values follow one another at their end; 0: of others. */
static unsigned plain_width(const struct kaldi_object *o)
{
    bool is_one = o->type == KALDI_INT || o->type == KALDI_FLOAT || o->type == KALDI_DOUBLE;

    switch (o->store) {
    case KALDI_FM:
    case KALDI_FV:
    case KALDI_FP:
    case KALDI_NPY:
        return 4;
    case KALDI_DM:
    case KALDI_DV:
    case KALDI_DP:
    case KALDI_NPY8:
        return 8;
    case KALDI_BINARY:
        return is_one ? 4 : 0;
    default:
        return is_one ? 8 : 0;
    }
}

static void check_array(const struct kaldi_made *m, unsigned i, enum dtype dtype)
{
    bool real = kaldi_types[m->object.type].array[i].real;
    uint64_t len, at;
    AUTO_FREE uint8_t *found = decode(&m->object, m->bytes.data, i, dtype, &len);

    assert_non_null(found);
    if (real && dtype == DTYPE_F4) {
        assert_int_equal(len * 2, m->array[i].len);
        for (size_t k = 0; k < len / 4; k++) {
            uint32_t v;

            memcpy(&v, found + 4 * k, 4);
            assert_int_equal(v, as_float(&m->array[i], k));
        }
    } else {
        assert_int_equal(len, m->array[i].len);
        if (len)
            assert_memory_equal(found, m->array[i].data, len);
    }
    assert_int_equal(kaldi_plain(&m->object, i, dtype, &at),
                     plain_width(&m->object) == (real && dtype == DTYPE_F8 ? 8 : 4));
    if (kaldi_plain(&m->object, i, dtype, &at)) {
        assert_true(at + len <= m->bytes.len);
        assert_memory_equal(found, m->bytes.data + at, len);
    }
}

static void check_decode(const struct kaldi_made *m)
{
    bool is_sparse = m->object.store == KALDI_SM || m->object.store == KALDI_SV;

    assert_int_equal(kaldi_is_wide(&m->object),
                     is_sparse ? m->object.dim[2]
                               : plain_width(&m->object) == 8 || m->object.store == KALDI_BINARY8);
    for (unsigned i = 0; i < kaldi_types[m->object.type].n_arrays; i++) {
        check_array(m, i, DTYPE_F4);
        check_array(m, i, DTYPE_F8);
    }
}

/* ---- writing ---- */

/* A number as text of 7 digits has it. */
static double in_text(double v, bool wide)
{
    char text[32];

    snprintf(text, sizeof(text), "%.7g", v);
    return wide ? strtod(text, NULL) : (double)strtof(text, NULL);
}

/* Round the real numbers of an array as its text does. */
static void round_array(uint8_t *array, uint64_t len, bool wide)
{
    for (uint64_t at = 0; at < len; at += wide ? 8 : 4) {
        AUTO_TEXT struct text t = {0};
        double v = 0;
        float f;

        memcpy(&v, array + at, wide ? 8 : 4);
        memcpy(&f, array + at, 4);
        kaldi_put_value(&t, in_text(wide ? v : (double)f, wide), wide);
        memcpy(array + at, t.data, t.len);
    }
}

/* Does Kaldi write an object of that store, and such numbers, byte for byte as it is? */
static bool is_written_so(const struct kaldi_object *o, bool wide)
{
    return o->store == KALDI_BINARY ? !wide
                                    : o->store < KALDI_NPY && plain_width(o) == (wide ? 8 : 4);
}

/* What is written is the same object. */
static void check_written(const struct kaldi_made *m, bool as_text, bool wide)
{
    const unsigned n = kaldi_types[m->object.type].n_arrays;
    const enum dtype dtype = wide ? DTYPE_F8 : DTYPE_F4;
    struct kaldi_written w = {.type = m->object.type, .as_text = as_text, .wide = wide};
    AUTO_TEXT struct text file = {0};
    AUTO_FREE uint8_t *bytes = NULL;
    uint8_t *array[KALDI_ARRAYS_MAX];
    uint64_t len[KALDI_ARRAYS_MAX], found_len;
    struct kaldi_object found;
    struct diag d = DIAG_INIT;
    size_t size;

    memcpy(w.dim, m->object.dim, sizeof(w.dim));
    for (unsigned i = 0; i < n; i++)
        w.array[i] = array[i] = decode(&m->object, m->bytes.data, i, dtype, &len[i]);
    assert_int_equal(kaldi_write(&w, 3, &bytes, &size), 0);
    if (!as_text && is_written_so(&m->object, wide)) {
        assert_int_equal(size, m->bytes.len);
        assert_memory_equal(bytes + 3, m->bytes.data, size);
    }
    kaldi_put(&file, bytes + 3, size);
    if (kaldi_measure_bytes(&file, size, 0, w.type, 0, &found, &d) < 0)
        fail_msg("%s", d.text);
    for (unsigned i = 0; i < (m->object.type == KALDI_GAUSS_POST ? 3 : 2); i++)
        assert_int_equal(found.dim[i], m->object.dim[i]);
    for (unsigned i = 0; i < n; i++) {
        AUTO_FREE uint8_t *again = decode(&found, file.data, i, dtype, &found_len);

        assert_non_null(again);
        if (as_text && kaldi_types[w.type].array[i].real)
            round_array(array[i], len[i], wide);
        assert_int_equal(found_len, len[i]);
        assert_memory_equal(again, array[i], len[i]);
        free(array[i]);
    }
}

UNIT_TEST(test_objects__any_kind__measured_and_decoded)
{
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < N_KALDI_KINDS; i++) {
        for (unsigned round = 0; round < 20; round++) {
            AUTO_KALDI_MADE struct kaldi_made m;

            kaldi_make(&m, &kaldi_kinds[i], &random);
            check_measure(&m);
            check_decode(&m);
            for (unsigned way = 0; way < 4; way++)
                check_written(&m, way & 1, way & 2);
        }
    }
}

/* ---- what an index has instead of lengths ---- */

UNIT_TEST(test_len_estimate__as_ever)
{
    static const struct {
        struct kaldi_object object;
        uint64_t want;
    } rows[] = {
        {{KALDI_MATRIX, KALDI_FM, .dim = {3, 5}}, 60},
        {{KALDI_MATRIX, KALDI_DM, .dim = {3, 5}}, 120},
        {{KALDI_MATRIX, KALDI_CM, .dim = {3, 5}}, 15},
        {{KALDI_MATRIX, KALDI_CM2, .dim = {3, 5}}, 30},
        {{KALDI_MATRIX, KALDI_CM3, .dim = {3, 0}}, 3},
        {{KALDI_MATRIX, KALDI_SM, .dim = {3, 5, 1}}, 0},
        {{KALDI_VECTOR, KALDI_DV, .dim = {3, 5}}, 24},
        {{KALDI_INTS, KALDI_BINARY, .dim = {3}}, 15},
        {{KALDI_FLOAT_PAIRS, KALDI_BINARY8, .dim = {3}}, 27},
        {{KALDI_WAVE, KALDI_RIFX, .dim = {3, 2, 8000}}, 12},
        {{KALDI_VECTOR, KALDI_TEXT, .dim = {3}}, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(kaldi_len_estimate(&rows[i].object), rows[i].want);
}

UNIT_TEST(test_type_called__each_name)
{
    for (unsigned i = KALDI_UNKNOWN; i < N_KALDI_TYPES; i++) {
        const char *name = kaldi_types[i].name;

        assert_int_equal(kaldi_type_called(name, strlen(name)), i);
        assert_int_equal(kaldi_type_called(name, strlen(name) + 1), KALDI_UNKNOWN);
    }
    assert_int_equal(kaldi_type_called("int-vectorS", 11), KALDI_UNKNOWN);
}

UNIT_TEST(test_objects__cut_at_any_byte__ebadmsg)
{
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < N_KALDI_KINDS * 3; i++) {
        AUTO_KALDI_MADE struct kaldi_made m;

        kaldi_make(&m, &kaldi_kinds[i / 3], &random);
        for (uint64_t size = 0; size < m.bytes.len; size++) {
            struct kaldi_object found = {.len = 77};
            struct diag d = DIAG_INIT;

            assert_int_equal(
                kaldi_measure_bytes(&m.bytes, size, 0, m.object.type, i % 7, &found, &d), -EBADMSG);
            assert_diag_has(&d, "expected ");
            assert_diag_has(&d, "got ");
            assert_int_equal(found.len, 77);
        }
    }
}

/* Decode objects with bytes changed after they were measured. */
UNIT_TEST(test_decode__any_byte_changed__no_byte_outside)
{
    static const uint8_t masks[] = {0x01, 0x04, 0x0c, 0x80, 0xff};
    uint64_t random = RANDOM_SEED, len;
    unsigned bad = 0;

    for (size_t i = 0; i < N_KALDI_KINDS; i++) {
        AUTO_KALDI_MADE struct kaldi_made m;

        kaldi_make(&m, &kaldi_kinds[i], &random);
        for (size_t at = 0; at < m.bytes.len * ARRAY_LEN(masks); at++) {
            for (unsigned k = 0; k < kaldi_types[m.object.type].n_arrays; k++) {
                /* Memory of exactly that size, so that ASan finds any access past the end. */
                AUTO_FREE char *bytes = malloc(m.bytes.len);
                uint8_t *array;

                memcpy(bytes, m.bytes.data, m.bytes.len);
                bytes[at / ARRAY_LEN(masks)] ^= (char)masks[at % ARRAY_LEN(masks)];
                array = decode(&m.object, bytes, k, DTYPE_F8, &len);
                bad += !array;
                free(array);
            }
        }
    }
    assert_true(bad > 1000);
}

UNIT_TEST(test_decode__another_good_object__ebadmsg)
{
    AUTO_TEXT struct text one = {0}, other = {0};
    struct kaldi_object object;
    struct diag d = DIAG_INIT;
    uint64_t len;

    kaldi_put_start(&one, "FM ");
    kaldi_put_int(&one, 2);
    kaldi_put_int(&one, 3);
    kaldi_put(&other, one.data, one.len - 10);
    kaldi_put_int(&other, 3);
    kaldi_put_int(&other, 2);
    for (unsigned i = 0; i < 6; i++) {
        kaldi_put_value(&one, i, false);
        kaldi_put_value(&other, i, false);
    }
    assert_int_equal(kaldi_measure_bytes(&one, one.len, 0, KALDI_MATRIX, 0, &object, &d), 0);
    assert_null(decode(&object, other.data, 0, DTYPE_F4, &len));
    assert_int_equal(kaldi_decode(&object, (const uint8_t *)other.data, 0, DTYPE_F4, NULL, "b", &d),
                     -EBADMSG);
    assert_diag_has(&d, "b: byte 0: expected the object that was there before, got another");
}

UNIT_TEST(test_measure__read_fails__its_error)
{
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < N_KALDI_KINDS; i++) {
        AUTO_KALDI_MADE struct kaldi_made m;
        int r = -EIO;

        kaldi_make(&m, &kaldi_kinds[i], &random);
        for (uint64_t fail = 1; r < 0; fail++) {
            struct blob_faults faults = {.fail_read = fail};
            AUTO_BLOB struct blob *blob =
                memory_blob_new("a.ark", m.bytes.data, m.bytes.len, m.bytes.len, &faults);
            AUTO_KALDI_IN struct kaldi_in in = {0};
            struct kaldi_object found;
            struct diag d = DIAG_INIT;

            kaldi_in_init(&in, blob);
            in.window.least = 1;
            r = kaldi_measure(&in, 0, m.object.type, &found, &d);
            assert_true(r == 0 || r == -EIO);
            assert_int_equal(d.set, r < 0);
        }
    }
}

/* ---- compressed matrices ---- */

struct vector {
    enum kaldi_store store;
    float min, range;
    uint16_t quartile[4];
    size_t n;
    uint16_t v[12];
    uint32_t value[12]; /* computed with numpy's float32, operation by operation */
};

static const struct vector vectors[] = {
    {KALDI_CM,
     -9.6f,
     123466.39f,
     {5, 6, 1234, 65535},
     12,
     {0, 1, 33, 64, 65, 100, 191, 192, 193, 201, 254, 255},
     {0xbe387100, 0xbe1a4c3c, 0x3f4a9311, 0x3fda1800, 0x419e39de, 0x44231876, 0x450f9270,
      0x4510b3a1, 0x458470df, 0x46994a54, 0x47ed5ef4, 0x47f12065}},
    {KALDI_CM,
     0.1f,
     -0.3f,
     {0, 20001, 40003, 65534},
     12,
     {0, 1, 33, 64, 65, 100, 191, 192, 193, 201, 254, 255},
     {0x3dcccccd, 0x3dc9dec0, 0x3d583a5e, 0x3c0a4d50, 0x3bfd29ef, 0xbc8dcf92, 0xbda8c4d4,
      0xbdaa3bdf, 0xbdae087f, 0xbdcc6d7e, 0xbe4ae54c, 0xbe4ccb9c}},
    {KALDI_CM2,
     -1.7f,
     33.3f,
     {0},
     6,
     {0, 1, 255, 256, 32768, 65535},
     {0xbfd9999a, 0xbfd988f4, 0xbfc903ca, 0xbfc8f323, 0x416f343d, 0x41fccccc}},
    {KALDI_CM3,
     -1.7f,
     33.3f,
     {0},
     6,
     {0, 1, 2, 127, 200, 255},
     {0xbfd9999a, 0xbfc8e27c, 0xbfb82b5f, 0x416e27c1, 0x41c35757, 0x41fccccc}},
    /* Values that another precision, order, or part of the column would change. */
    {KALDI_CM,
     -7.737259f,
     48.484005f,
     {5701, 16600, 25865, 39533},
     9,
     {0, 18, 64, 65, 111, 193, 207, 219, 255},
     {0xc061405e, 0xbfa03988, 0x40916639, 0x40931ce7, 0x40e1f04e, 0x4138f03c, 0x415ce441,
      0x417bb56a, 0x41ac1473}},
    {KALDI_CM,
     -4.234352f,
     35.396816f,
     {8108, 51993, 6499, 28977},
     7,
     {0, 64, 65, 191, 192, 193, 255},
     {0x3e146d20, 0x41bec903, 0x41bd3fdb, 0xbf083a20, 0xbf395f20, 0xbf080987, 0x4136aaec}},
    {KALDI_CM2,
     -12.493102f,
     40.12489f,
     {0},
     5,
     {0, 1, 3930, 3668, 5764},
     {0xc147e3bf, 0xc147e13d, 0xc12163eb, 0xc123f4fa, 0xc10f6c88}},
    {KALDI_CM3,
     -8.843122f,
     30.476023f,
     {0},
     5,
     {0, 1, 2, 23, 21},
     {0xc10d7d6d, 0xc10b93e6, 0xc109aa5e, 0xc0c3048a, 0xc0caaaa6}},
};

/* K-2 */
UNIT_TEST(test_compressed__known_values__bit_for_bit)
{
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const struct vector *v = &vectors[i];
        AUTO_KALDI_MADE struct kaldi_made m = {
            .object = {.type = KALDI_MATRIX, .store = v->store, .dim = {v->n, 1}}};

        kaldi_put_start(&m.bytes, v->store == KALDI_CM    ? "CM "
                                  : v->store == KALDI_CM2 ? "CM2 "
                                                          : "CM3 ");
        kaldi_put_value(&m.bytes, (double)v->min, false);
        kaldi_put_value(&m.bytes, (double)v->range, false);
        kaldi_put_raw(&m.bytes, v->n, 4);
        kaldi_put_raw(&m.bytes, 1, 4);
        for (unsigned k = 0; k < 4 && v->store == KALDI_CM; k++)
            kaldi_put_raw(&m.bytes, v->quartile[k], 2);
        for (size_t k = 0; k < v->n; k++) {
            float f;

            kaldi_put_raw(&m.bytes, v->v[k], v->store == KALDI_CM2 ? 2 : 1);
            memcpy(&f, &v->value[k], 4);
            kaldi_put_value(&m.array[0], (double)f, true);
        }
        m.object.len = m.bytes.len;
        check_measure(&m);
        check_decode(&m);
    }
}

UNIT_TEST(test_compressed__many_rows_and_columns__each_in_its_place)
{
    static const uint16_t shapes[][2] = {{1, 1},   {1, 300}, {300, 1}, {500, 40},
                                         {97, 16}, {95, 17}, {3, 15},  {130, 33}};
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < ARRAY_LEN(shapes) * 3; i++) {
        uint64_t rows = shapes[i / 3][0], columns = shapes[i / 3][1];
        AUTO_KALDI_MADE struct kaldi_made m = {
            .object = {.type = KALDI_MATRIX,
                       .store = (enum kaldi_store[]){KALDI_CM, KALDI_CM2, KALDI_CM3}[i % 3],
                       .dim = {rows, columns}}};

        kaldi_make_compressed(&m, rows, columns, &random);
        m.object.len = m.bytes.len;
        check_measure(&m);
        check_decode(&m);
    }
}
