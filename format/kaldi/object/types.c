/* The types of Kaldi objects and their arrays; the arrays that an object holds byte for byte as
 * files show them; and the values that parsers find. */
#include "format/kaldi/object/object.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "format/kaldi/object/walk.h"

#define INTEGERS(suffix, ndim, ...)                                                                \
    {                                                                                              \
        suffix, DTYPE_I4, false, ndim,                                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define REALS(ndim, ...)                                                                           \
    {                                                                                              \
        "", DTYPE_F4, true, ndim,                                                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct kaldi_type_info kaldi_types[N_KALDI_TYPES] = {
    [KALDI_UNKNOWN] = {.name = ""},
    [KALDI_MATRIX] = {"matrix", 1, {REALS(2, 0, 1)}},
    [KALDI_VECTOR] = {"vector", 1, {REALS(1, 0)}},
    [KALDI_PACKED] = {"packed", 1, {REALS(1, 0)}},
    [KALDI_INT] = {"int", 1, {INTEGERS("", 0, 0)}},
    [KALDI_FLOAT] = {"float", 1, {REALS(0, 0)}},
    [KALDI_DOUBLE] = {"double", 1, {{"", DTYPE_F8, true, 0, {0}}}},
    [KALDI_BOOL] = {"bool", 1, {{"", DTYPE_U1, false, 0, {0}}}},
    [KALDI_INTS] = {"int-vector", 1, {INTEGERS("", 1, 0)}},
    [KALDI_INT_LISTS] = {"int-vectors", 2, {INTEGERS("_counts", 1, 0), INTEGERS("", 1, 1)}},
    [KALDI_INT_PAIRS] = {"int-pairs", 1, {INTEGERS("", 2, 0, KALDI_DIM_TWO)}},
    [KALDI_FLOAT_PAIRS] = {"float-pairs", 1, {REALS(2, 0, KALDI_DIM_TWO)}},
    [KALDI_POSTERIOR] = {"posterior",
                         3,
                         {INTEGERS("_counts", 1, 0), INTEGERS("_index", 1, 1), REALS(1, 1)}},
    [KALDI_GAUSS_POST] = {"gauss-posterior",
                          4,
                          {INTEGERS("_counts", 1, 0), INTEGERS("_index", 1, 1),
                           INTEGERS("_dims", 1, 1), REALS(1, 2)}},
    [KALDI_TOKEN] = {.name = "token"},
    [KALDI_TOKENS] = {.name = "tokens"},
    [KALDI_WAVE] = {.name = "wave"},
    [KALDI_OPAQUE] = {.name = "opaque"},
};

static enum dtype shown_as(const struct kaldi_array *array, enum dtype dtype)
{
    return array->real ? dtype : array->dtype;
}

bool kaldi_array_bytes(const struct kaldi_object *object, unsigned i, enum dtype dtype,
                       uint64_t *ret)
{
    const struct kaldi_array *array = &kaldi_types[object->type].array[i];
    uint64_t bytes = dtype_info(shown_as(array, dtype))->bytes;

    assert(i < kaldi_types[object->type].n_arrays);
    for (unsigned k = 0; k < array->ndim; k++)
        if (!checked_mul(bytes, array->dim[k] == KALDI_DIM_TWO ? 2 : object->dim[array->dim[k]],
                         &bytes))
            return false;
    if (bytes > INT64_MAX)
        return false;
    *ret = bytes;
    return true;
}

/* Bytes of a value as stored; of the stores from KALDI_FM on whose values are not one array, about
 * that many. */
static const uint8_t kaldi_store_bytes[N_KALDI_STORES] = {
    [KALDI_FM] = 4,   [KALDI_DM] = 8,     [KALDI_CM] = 1,      [KALDI_CM2] = 2,  [KALDI_CM3] = 1,
    [KALDI_FV] = 4,   [KALDI_DV] = 8,     [KALDI_FP] = 4,      [KALDI_DP] = 8,   [KALDI_NPY] = 4,
    [KALDI_NPY8] = 8, [KALDI_BINARY] = 5, [KALDI_BINARY8] = 9, [KALDI_RIFF] = 2, [KALDI_RIFX] = 2,
};

uint64_t kaldi_len_estimate(const struct kaldi_object *o)
{
    bool has_rows = o->type == KALDI_MATRIX || o->type == KALDI_WAVE;

    /* May wrap around: it only must be the same each time. */
    return o->dim[0] * (has_rows ? max_u64(o->dim[1], 1) : 1) * kaldi_store_bytes[o->store];
}

unsigned kaldi_plain_width(const struct kaldi_object *o)
{
    if (o->store == KALDI_BINARY || o->store == KALDI_BINARY8)
        return o->type == KALDI_INT || o->type == KALDI_FLOAT || o->type == KALDI_DOUBLE
                   ? kaldi_store_bytes[o->store] - 1u
                   : 0;
    return (o->store >= KALDI_CM && o->store <= KALDI_CM3) || o->store >= KALDI_BINARY
               ? 0
               : kaldi_store_bytes[o->store];
}

bool kaldi_is_wide(const struct kaldi_object *o)
{
    if (o->store == KALDI_SM || o->store == KALDI_SV)
        return o->dim[2];
    return o->store == KALDI_TEXT ? o->type == KALDI_DOUBLE : kaldi_store_bytes[o->store] >= 8;
}

bool kaldi_plain(const struct kaldi_object *object, unsigned i, enum dtype dtype, uint64_t *ret)
{
    unsigned width = kaldi_plain_width(object);
    uint64_t bytes;

    if (!width || width != dtype_info(shown_as(&kaldi_types[object->type].array[i], dtype))->bytes)
        return false;
    if (!kaldi_array_bytes(object, i, dtype, &bytes) || bytes > object->len)
        return false;
    *ret = object->len - bytes; /* they are at its end */
    return true;
}

/* ---- values ---- */

void kaldi_values_dims(const struct kaldi_values *v, enum kaldi_type type,
                       uint64_t dim[static KALDI_DIMS])
{
    for (unsigned i = 0; i < kaldi_types[type].n_arrays; i++) {
        const struct kaldi_array *array = &kaldi_types[type].array[i];

        if (array->ndim)
            dim[array->dim[0]] = array->ndim == 2 ? v->n[i] / 2 : v->n[i];
    }
}

void kaldi_values_clear(struct kaldi_values *v)
{
    if (v->capacity)
        memset(v->dst, 0, (size_t)v->capacity * (v->wide ? 8 : 4));
}

/* ---- types ---- */

enum kaldi_type kaldi_type_called(const char *name, size_t len)
{
    unsigned i = KALDI_UNKNOWN + 1;

    while (i < N_KALDI_TYPES &&
           (strlen(kaldi_types[i].name) != len || memcmp(kaldi_types[i].name, name, len) != 0))
        i++;
    return i < N_KALDI_TYPES ? (enum kaldi_type)i : KALDI_UNKNOWN;
}
