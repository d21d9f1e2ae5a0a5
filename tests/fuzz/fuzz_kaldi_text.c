/* Bytes as a Kaldi object in text. The first byte chooses the type, from 'a' on in the order of
 * enum kaldi_type; a capital letter starts with a tiny window.
 *
 * What was measured can be decoded, whatever its dims; so can any part of its bytes, or it is
 * refused. Nothing may be read or written outside. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/kaldi/object/object.h"
#include "fuzz.h"
#include "support/memory_blob.h"

#define LARGE (16 << 20) /* bytes of an array that is not made */
#define TYPES (KALDI_TOKENS - KALDI_MATRIX + 1)

static unsigned n_arrays(enum kaldi_type type)
{
    switch (type) {
    case KALDI_TOKEN:
    case KALDI_TOKENS:
        return 0;
    case KALDI_INT_LISTS:
        return 2;
    case KALDI_POSTERIOR:
        return 3;
    case KALDI_GAUSS_POST:
        return 4;
    default:
        return 1;
    }
}

/* Bytes of array i: elements x bytes of one. */
static uint64_t array_bytes(const struct kaldi_object *object, unsigned i, enum dtype dtype)
{
    bool real = i + 1 == n_arrays(object->type);
    uint64_t each = 4, n;

    switch (object->type) {
    case KALDI_MATRIX:
        FUZZ_CHECK(checked_mul(object->dim[0], object->dim[1], &n));
        break;
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        n = 2 * object->dim[0];
        break;
    case KALDI_INT:
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
    case KALDI_BOOL:
        n = 1;
        break;
    default:
        n = object->dim[i == 3 ? 2 : i > 0];
    }
    if (object->type == KALDI_BOOL)
        each = 1;
    else if (real && dtype == DTYPE_F8 && object->type != KALDI_INT && object->type != KALDI_INTS &&
             object->type != KALDI_INT_LISTS && object->type != KALDI_INT_PAIRS)
        each = 8;
    return n > LARGE ? LARGE + 1 : n * each;
}

/* Into memory of its very size, from memory of its very size. */
static int decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                  enum dtype dtype, struct diag *d)
{
    uint64_t capacity = array_bytes(object, i, dtype);
    uint8_t *copy, *dst;
    int r = -ENOMEM;

    if (capacity > LARGE)
        return r;
    copy = malloc(object->len);
    dst = malloc(capacity);
    memcpy(copy, bytes, object->len);
    r = kaldi_decode(object, copy, i, dtype, dst, "x.ark", d);
    fuzz_saw(&r, sizeof(r));
    if (r == 0)
        fuzz_saw(dst, capacity);
    free(copy);
    free(dst);
    return r;
}

/* Bytes of another object where this one was. */
static void decode_others(const struct kaldi_object *object, const uint8_t *bytes, size_t rest)
{
    struct kaldi_object other = *object;

    for (size_t shift = 1; shift <= rest && shift < 4; shift++)
        for (unsigned i = 0; i < n_arrays(object->type); i++) {
            struct diag d = DIAG_INIT;
            int r = decode(object, bytes + shift, i, DTYPE_F4, &d);

            FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOMEM);
            FUZZ_CHECK((r == -EBADMSG) == d.set);
        }
    other.len /= 2;
    for (unsigned k = 0; k < KALDI_DIMS; k++)
        other.dim[k] /= 2;
    for (unsigned i = 0; i < n_arrays(object->type); i++)
        decode(&other, bytes, i, DTYPE_F8, NULL);
}

static void check_object(const struct kaldi_object *object, const uint8_t *bytes, size_t len)
{
    FUZZ_CHECK(object->store == KALDI_TEXT && object->len <= len);
    for (unsigned i = 0; i < n_arrays(object->type); i++) {
        struct diag d = DIAG_INIT;
        int narrow = decode(object, bytes, i, DTYPE_F4, &d);
        int wide = decode(object, bytes, i, DTYPE_F8, &d);

        FUZZ_CHECK((narrow == 0 || narrow == -ENOMEM) && (wide == 0 || wide == -ENOMEM));
    }
    decode_others(object, bytes, len - object->len);
    if (object->type == KALDI_TOKEN || object->type == KALDI_TOKENS)
        FUZZ_CHECK(object->dim[1] <= object->len && object->dim[0] <= object->len - object->dim[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kaldi_in in;
    struct blob *blob;
    struct kaldi_object object;
    struct diag d = DIAG_INIT;
    enum kaldi_type type;
    int r;

    if (!len)
        return 0;
    type = (enum kaldi_type)(KALDI_MATRIX + (uint8_t)((data[0] | 0x20) - 'a') % TYPES);
    blob = memory_blob_new("x.ark", data, len, len, NULL);
    kaldi_in_init(&in, blob);
    if (!(data[0] & 0x20))
        in.window.least = 3;
    r = kaldi_measure(&in, 1, type, &object, &d);
    FUZZ_CHECK(r == 0 || r == -EBADMSG);
    FUZZ_CHECK((r < 0) == d.set);
    fuzz_saw(&r, sizeof(r));
    if (r == 0)
        fuzz_saw(object.dim, sizeof(object.dim));
    if (r == 0) {
        FUZZ_CHECK(object.type == type && object.start == 1);
        check_object(&object, data + 1, len - 1);
    }
    kaldi_in_release(&in);
    blob_free(blob);
    return 0;
}
