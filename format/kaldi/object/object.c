/* Objects of Kaldi tables: the types and their arrays, and the choice of the function that measures
 * or decodes an object. */
#include "format/kaldi/object/object.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/kaldi/object/walk.h"
#include "format/kaldi/object/wave.h"

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
};

static int measure_wave(struct kaldi_in *in, uint64_t at, struct kaldi_object *ret, struct diag *d)
{
    struct kaldi_wave wave;
    int r = kaldi_wave_measure(in, at, &wave, d);

    if (r < 0)
        return r;
    *ret = (struct kaldi_object){.type = KALDI_WAVE,
                                 .store = wave.big_endian ? KALDI_RIFX : KALDI_RIFF,
                                 .start = at,
                                 .len = wave.end - at,
                                 .dim = {wave.frames, wave.channels, wave.rate}};
    return 0;
}

/* The marker that kaldiio writes before objects unknown to Kaldi; text never begins with it. NULL:
 * no such marker. */
static const char *kaldiio_start(const uint8_t *p, size_t have)
{
    static const char *const starts[] = {"NPY", "AUDIO", "PKL", "fLaC"};

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (have >= strlen(starts[i]) && !memcmp(p, starts[i], strlen(starts[i])))
            return starts[i];
    return NULL;
}

static int measure_text(struct kaldi_in *in, uint64_t at, enum kaldi_type want, const uint8_t *p,
                        size_t have, struct kaldi_object *ret, struct diag *d)
{
    const char *start = kaldiio_start(p, have);

    if (want == KALDI_TOKEN || want == KALDI_TOKENS)
        return kaldi_text_measure(in, at, want, ret, d);
    if (start)
        return kaldi_bad(in, at, d,
                         "want %s, found \"%s\": an object of kaldiio, which Kaldi cannot read "
                         "either",
                         want ? kaldi_types[want].name : "an object", start);
    if (!want)
        return kaldi_bad(in, at, d,
                         "want an object that says its type, found text; -o kaldi_type= names it");
    return kaldi_text_measure(in, at, want, ret, d);
}

int kaldi_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want, struct kaldi_object *ret,
                  struct diag *d)
{
    const uint8_t *p;
    size_t have = 0;

    if (at >= in->size)
        return kaldi_bad(in, at, d, "want an object, found the end of the file");
    p = kaldi_in_at(in, at, 5, &have);
    if (!p)
        return kaldi_bad(in, at, d, "want an object");
    if (want == KALDI_WAVE ||
        (!want && have >= 4 && (!memcmp(p, "RIFF", 4) || !memcmp(p, "RIFX", 4))))
        return measure_wave(in, at, ret, d);
    if (*p)
        return measure_text(in, at, want, p, have, ret, d);
    if (have < 2)
        return kaldi_bad(in, at, d, "want 00 'B', found 00 and the end of the file");
    if (p[1] != 'B')
        return kaldi_bad(in, at, d, "want 00 'B', found 00 %02x", p[1]);
    return kaldi_binary_measure(in, at, want, ret, d);
}

static uint64_t axis(const struct kaldi_object *object, const struct kaldi_array *array, unsigned k)
{
    return array->dim[k] == KALDI_DIM_TWO ? 2 : object->dim[array->dim[k]];
}

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
        if (!checked_mul(bytes, axis(object, array, k), &bytes))
            return false;
    if (bytes > INT64_MAX)
        return false;
    *ret = bytes;
    return true;
}

int kaldi_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                 enum dtype dtype, uint8_t *dst, const char *name, struct diag *d)
{
    assert(i < kaldi_types[object->type].n_arrays);
    if (object->store == KALDI_TEXT)
        return kaldi_text_decode(object, bytes, i, dtype, dst, name, d);
    return kaldi_binary_decode(object, bytes, i, dtype, dst, name, d);
}

unsigned kaldi_plain_width(const struct kaldi_object *object)
{
    bool one =
        object->type == KALDI_INT || object->type == KALDI_FLOAT || object->type == KALDI_DOUBLE;

    switch (object->store) {
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
        return one ? 4 : 0;
    case KALDI_BINARY8:
        return one ? 8 : 0;
    default:
        return 0;
    }
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
