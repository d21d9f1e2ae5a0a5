/* .npy files as objects of Kaldi tables (matrix/numpy-array.cc).
 *
 * Kaldi reads format 1 and later with float or double, C order, one or two axes; the header and the
 * bytes before it must be a multiple of 64 bytes. Kaldi also reads byte-swapped files; epochfs does
 * not. */
#include "format/kaldi/object/walk.h"

#include "base/checked.h"
#include "format/core/npy_head.h"

#define MAGIC 6 /* bytes, behind which the walk is */

/* The header of .npy, with its magic. */
static int numpy_header(struct kaldi_walk *w, const uint8_t **ret, size_t *ret_len)
{
    uint64_t start = w->at - MAGIC;
    int r;

    kaldi_walk_to(w, start);
    r = kaldi_walk_bytes(w, NPY_HEAD_START, "the version and length of .npy", ret);
    if (r < 0)
        return r;
    *ret_len = npy_head_bytes(*ret, NPY_HEAD_START);
    if (!*ret_len || *ret_len % 64)
        return kaldi_bad(w->in, start + MAGIC, w->diag,
                         "expected .npy of version 1.0 to 3.0, and a header that ends at a "
                         "multiple of 64 bytes, of at most %u, got version %u.%u and %zu bytes",
                         NPY_HEAD_MAX, (*ret)[MAGIC], (*ret)[MAGIC + 1], *ret_len);
    kaldi_walk_to(w, start);
    return kaldi_walk_bytes(w, *ret_len, "the header of .npy", ret);
}

int kaldi_numpy_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    struct npy_head head = {0};
    const char *wrong, *expected = NULL;
    const uint8_t *text;
    size_t len = 0, before;
    int r = numpy_header(w, &text, &len);

    if (r < 0)
        return r;
    wrong = npy_head_parse(text, len, UINT64_MAX, &head, NULL);
    if (wrong)
        return kaldi_bad(w->in, w->at - len, w->diag, "%s", wrong);
    if (head.big_endian || (head.dtype != DTYPE_F4 && head.dtype != DTYPE_F8))
        expected = "'descr': '<f4' or '<f8'";
    else if (head.fortran)
        expected = "'fortran_order': False";
    else if (!head.ndim || head.ndim > 2 || head.dim[0] > INT32_MAX || head.dim[1] > INT32_MAX)
        expected = "'shape' of one or two axes, below 2^31";
    before = text[MAGIC] > 1 ? 12 : 10;
    if (expected)
        return kaldi_bad(w->in, w->at - len, w->diag,
                         "expected %s in the header of .npy, got \"%.*s\"", expected,
                         (int)min_u64(len - before, 100), (const char *)text + before);
    o->type = head.ndim == 1 ? KALDI_VECTOR : KALDI_MATRIX;
    o->store = head.dtype == DTYPE_F8 ? KALDI_NPY8 : KALDI_NPY;
    memcpy(o->dim, head.dim, head.ndim * sizeof(*o->dim));
    return kaldi_walk_skip(w, o->dim[0] * (head.ndim == 2 ? o->dim[1] : 1), kaldi_plain_width(o),
                           "the values of .npy");
}
