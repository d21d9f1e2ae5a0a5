/* Kaldi objects as text: where they end, and their arrays. The parsers are in text_matrix.c and
 * text_lines.c of this folder.
 *
 * An object ends where Kaldi stops reading: the end of the line after `]` belongs to it, but not
 * after `[]` and the `]` of sparse objects. Real numbers are read as float, except for DOUBLE and
 * for arrays requested as double; Kaldi would round the numbers of sparse objects, pairs and
 * posteriors to float first. */
#include "format/kaldi/object/text.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"

static int (*const parsers[N_KALDI_TYPES])(struct kaldi_text *t) = {
    [KALDI_MATRIX] = kaldi_text_matrix,           [KALDI_VECTOR] = kaldi_text_vector,
    [KALDI_PACKED] = kaldi_text_packed,           [KALDI_INT] = kaldi_text_one_int,
    [KALDI_FLOAT] = kaldi_text_one_real,          [KALDI_DOUBLE] = kaldi_text_one_double,
    [KALDI_BOOL] = kaldi_text_one_bool,           [KALDI_INTS] = kaldi_text_ints,
    [KALDI_INT_LISTS] = kaldi_text_int_lists,     [KALDI_INT_PAIRS] = kaldi_text_int_pairs,
    [KALDI_FLOAT_PAIRS] = kaldi_text_float_pairs, [KALDI_POSTERIOR] = kaldi_text_posterior,
    [KALDI_GAUSS_POST] = kaldi_text_gauss_post,   [KALDI_TOKEN] = kaldi_text_token,
    [KALDI_TOKENS] = kaldi_text_tokens,
};

/* The dim[] of the object that was parsed. */
static void dims_of(const struct kaldi_text *t, uint64_t dim[static KALDI_DIMS])
{
    memset(dim, 0, KALDI_DIMS * sizeof(*dim));
    switch (t->type) {
    case KALDI_MATRIX:
        dim[0] = t->rows;
        dim[1] = t->columns;
        break;
    case KALDI_VECTOR:
    case KALDI_PACKED:
    case KALDI_INTS:
        dim[0] = t->n[ARRAY_ONLY];
        break;
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        dim[0] = t->n[ARRAY_ONLY] / 2;
        break;
    case KALDI_GAUSS_POST:
        dim[2] = t->n[ARRAY_GAUSS_VALUES];
        __attribute__((fallthrough));
    case KALDI_INT_LISTS:
    case KALDI_POSTERIOR:
        dim[0] = t->n[ARRAY_COUNTS];
        dim[1] = t->n[ARRAY_LIST_VALUES];
        break;
    default:
        break;
    }
}

/* The number of elements of an array. False: more than memory can hold. */
static bool elements_of(const struct kaldi_object *object, unsigned array, uint64_t *ret)
{
    const uint64_t *dim = object->dim;

    switch (object->type) {
    case KALDI_MATRIX:
        return checked_mul(dim[0], dim[1], ret) && *ret <= UINT64_MAX / 8;
    case KALDI_INT:
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
    case KALDI_BOOL:
        *ret = 1;
        return true;
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        return checked_mul(dim[0], 2, ret) && *ret <= UINT64_MAX / 8;
    default: /* counts, the counted entries, the values of those */
        *ret = dim[(array + 1) / 2];
        return *ret <= UINT64_MAX / 8;
    }
}

int kaldi_text_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want,
                       struct kaldi_object *ret, struct diag *d)
{
    struct kaldi_text t = {
        .type = want,
        .d = d,
    };
    uint8_t buffer[KALDI_SCAN_BUFFER];
    int r;

    if (!parsers[want])
        return kaldi_bad(in, at, d, "expected an object that can be written as text");
    kaldi_scan_blob(&t.s, buffer, in, at);
    r = parsers[want](&t);
    if (r == 0 && in->error)
        r = kaldi_text_fail(&t, "more bytes");
    if (r < 0)
        return r;
    *ret = (struct kaldi_object){.type = want, .store = KALDI_TEXT, .start = at};
    ret->len = kaldi_scan_at(&t.s) - at;
    dims_of(&t, ret->dim);
    return 0;
}

int kaldi_text_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                      enum dtype dtype, uint8_t *dst, const char *name, struct diag *d)
{
    struct kaldi_text t = {
        .type = object->type,
        .name = name,
        .start = object->start,
        .d = d,
        .wide = dtype == DTYPE_F8,
        .array = i,
        .dst = dst,
    };
    uint8_t buffer[KALDI_SCAN_BUFFER];
    uint64_t dim[KALDI_DIMS];
    int r;

    assert(i < KALDI_ARRAYS_MAX && parsers[object->type]);
    kaldi_scan_memory(&t.s, buffer, bytes, object->len);
    if (!elements_of(object, i, &t.capacity))
        return kaldi_text_fail(&t, "an array that fits into memory");
    r = parsers[object->type](&t);
    if (r < 0)
        return r;
    dims_of(&t, dim);
    if (memcmp(dim, object->dim, sizeof(dim)) != 0 || kaldi_scan_at(&t.s) != object->len)
        return kaldi_text_fail(&t, "the object that was measured to end here");
    return 0;
}

void kaldi_text_trim(const uint8_t *bytes, uint64_t len, uint64_t *ret_at, uint64_t *ret_len)
{
    uint64_t at = 0;

    while (at < len && kaldi_is_blank(bytes[at]))
        at++;
    while (len > at && kaldi_is_blank(bytes[len - 1]))
        len--;
    *ret_at = at;
    *ret_len = len - at;
}
