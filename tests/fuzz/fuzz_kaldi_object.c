/* Bytes as an object of a Kaldi table: the first says as which type it is read, the second how
 * many bytes are before the object, how many of it are in the window, and with the first which one
 * changes later on.
 *
 * What can be measured can be decoded, inside of what was measured, and stands there plainly where
 * that is said. An object does not depend on what follows it. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/kaldi/object/object.h"
#include "fuzz.h"
#include "support/memory_blob.h"

#define ARRAY_MOST 1048576 /* bytes of an array that is decoded */

struct input {
    const uint8_t *at;
    uint64_t size, start;
    size_t window;
    enum kaldi_type want;
};

static int measure(const struct input *input, uint64_t size, size_t window,
                   struct kaldi_object *ret)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("a", input->at, (size_t)size, size, NULL);
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct diag d = DIAG_INIT;
    int r;

    kaldi_in_init(&in, blob);
    if (window && input->start < size) {
        in.window.have = in.window.capacity = (size_t)min_u64(window, size - input->start);
        in.window.start = input->start;
        in.window.least = 1;
        in.window.bytes = malloc(in.window.capacity);
        memcpy(in.window.bytes, input->at + in.window.start, in.window.capacity);
    }
    r = kaldi_measure(&in, input->start, input->want, ret, &d);
    FUZZ_CHECK(r == 0 || ((r == -EBADMSG || r == -ENOTSUP) && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r == 0) {
        fuzz_saw(&ret->len, sizeof(ret->len));
        fuzz_saw(ret->dim, sizeof(ret->dim));
    }
    return r;
}

static bool same(const struct kaldi_object *a, const struct kaldi_object *b)
{
    return a->type == b->type && a->store == b->store && a->start == b->start && a->len == b->len &&
           !memcmp(a->dim, b->dim, sizeof(a->dim));
}

/* Decode array number i into exactly its bytes. Returns them. */
static uint8_t *decode(const struct kaldi_object *o, const uint8_t *bytes, unsigned i,
                       enum dtype dtype, uint64_t len, bool unchanged)
{
    uint8_t *dst = malloc(len ? (size_t)len : 1);
    struct diag d = DIAG_INIT;
    int r = kaldi_decode(o, bytes, i, dtype, dst, "a", &d);

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && d.set && !unchanged));
    return dst;
}

static void check_array(const struct kaldi_object *o, const uint8_t *bytes, unsigned i,
                        enum dtype dtype, size_t changed)
{
    AUTO_FREE uint8_t *copy = malloc((size_t)o->len);
    AUTO_FREE uint8_t *first = NULL, *second = NULL;
    uint64_t len, plain;

    if (!kaldi_array_bytes(o, i, dtype, &len) || len > ARRAY_MOST)
        return;
    memcpy(copy, bytes, (size_t)o->len);
    first = decode(o, copy, i, dtype, len, true);
    fuzz_saw(first, (size_t)len);
    if (kaldi_plain(o, i, dtype, &plain)) {
        FUZZ_CHECK(plain <= o->len && len <= o->len - plain);
        FUZZ_CHECK(!memcmp(first, bytes + plain, (size_t)len));
    }
    copy[changed % o->len] ^= (uint8_t)(1 << changed % 7);
    second = decode(o, copy, i, dtype, len, false);
}

static void check_object(const struct input *input, const struct kaldi_object *o, size_t changed)
{
    struct kaldi_object again;

    FUZZ_CHECK(o->start == input->start && o->len && o->len <= input->size - o->start);
    FUZZ_CHECK(input->want ? o->type == input->want : o->type != KALDI_UNKNOWN);
    FUZZ_CHECK(measure(input, input->size, 0, &again) == 0 && same(o, &again));
    if (o->type == KALDI_WAVE) {
        FUZZ_CHECK(o->dim[0] && o->dim[1] && o->dim[0] <= o->len / (2 * o->dim[1]));
    } else if (o->store != KALDI_TEXT && (o->type != KALDI_OPAQUE || o->start)) {
        FUZZ_CHECK(measure(input, o->start + o->len, 1, &again) == 0 && same(o, &again));
        FUZZ_CHECK(measure(input, o->start + o->len - 1, 1, &again) < 0);
    }
    for (unsigned i = 0; i < kaldi_types[o->type].n_arrays; i++) {
        check_array(o, input->at + o->start, i, DTYPE_F4, changed);
        check_array(o, input->at + o->start, i, DTYPE_F8, changed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input input;
    struct kaldi_object o;

    if (len < 2)
        return 0;
    input = (struct input){.at = data + 2,
                           .size = len - 2,
                           .start = data[1] & 3,
                           .window = data[1] >> 2,
                           .want = (enum kaldi_type)(data[0] % N_KALDI_TYPES)};
    if (measure(&input, input.size, input.window, &o) == 0)
        check_object(&input, &o, (size_t)data[0] / N_KALDI_TYPES + data[1]);
    return 0;
}
