/* .npy files as objects of Kaldi tables (matrix/numpy-array.cc).
 *
 * Kaldi reads format 1 and later with float or double, C order, one or two axes; the header and the
 * bytes before it must be a multiple of 64 bytes. Kaldi also reads byte-swapped files; epochfs does
 * not. */
#include "format/kaldi/object/walk.h"

#include "base/checked.h"
#include "base/number.h"

#define HEADER_MOST 65536 /* bytes; Kaldi's writer makes one of 54 or 118 */

/* The text of a header. */
struct header {
    const char *at, *end;
};

static void kaldi_numpy_skip_blanks(struct header *h)
{
    while (h->at < h->end && *h->at == ' ')
        h->at++;
}

/* Skip to the value: past "'name':" and white space. */
static bool find_value(struct header *h, const char *name)
{
    const char *found = memmem(h->at, (size_t)(h->end - h->at), name, strlen(name));

    if (!found)
        return false;
    h->at = found + strlen(name);
    kaldi_numpy_skip_blanks(h);
    return true;
}

static bool kaldi_numpy_take_text(struct header *h, const char *text)
{
    if ((size_t)(h->end - h->at) < strlen(text) || memcmp(h->at, text, strlen(text)) != 0)
        return false;
    h->at += strlen(text);
    return true;
}

/* "(7,)", "(7, 3)" or "(7, 3,)". *ret_axes: 1 or 2. */
static bool parse_shape(struct header h, uint64_t dim[2], unsigned *ret_axes)
{
    unsigned axes = 0;

    if (!find_value(&h, "'shape':") || !kaldi_numpy_take_text(&h, "("))
        return false;
    do {
        size_t used;

        kaldi_numpy_skip_blanks(&h);
        if (axes && kaldi_numpy_take_text(&h, ")"))
            break;
        used = axes < 2 ? number_parse(h.at, (size_t)(h.end - h.at), INT32_MAX, &dim[axes]) : 0;
        if (!used)
            return false;
        axes++;
        h.at += used;
        kaldi_numpy_skip_blanks(&h);
    } while (kaldi_numpy_take_text(&h, ","));
    *ret_axes = axes;
    return true;
}

/* Parse type, store and dims. NULL, or what was expected. */
static const char *kaldi_numpy_parse(struct header h, struct kaldi_object *o)
{
    struct header value = h;
    unsigned axes = 0;

    if (!find_value(&value, "'descr':"))
        return "'descr' in the header of .npy";
    if (kaldi_numpy_take_text(&value, "'<f8'"))
        o->store = KALDI_NPY8;
    else if (!kaldi_numpy_take_text(&value, "'<f4'"))
        return "'descr': '<f4' or '<f8' in the header of .npy";
    value = h;
    if (!find_value(&value, "'fortran_order':") || !kaldi_numpy_take_text(&value, "False"))
        return "'fortran_order': False in the header of .npy";
    if (!parse_shape(h, o->dim, &axes))
        return "'shape' of one or two axes in the header of .npy";
    o->type = axes == 1 ? KALDI_VECTOR : KALDI_MATRIX;
    return NULL;
}

/* Take the version, and the length of the text that follows. */
static int kaldi_numpy_take_length(struct kaldi_walk *w, size_t *ret)
{
    const uint8_t *p;
    size_t before = 10, len; /* before: 6 of them are already taken */
    int r = kaldi_take(w, 4, "the version and length of .npy", &p);

    if (r < 0)
        return r;
    if (p[0] < 1 || p[0] > 3 || p[1])
        return kaldi_bad(w->in, w->at - 4, w->diag,
                         "expected .npy of version 1.0 to 3.0, got %u.%u", p[0], p[1]);
    len = load_le16(p + 2);
    if (p[0] > 1) {
        before = 12;
        r = kaldi_take(w, 2, "the length of .npy", &p);
        if (r < 0)
            return r;
        len |= (size_t)load_le16(p) << 16;
    }
    if ((before + len) % 64 || len > HEADER_MOST)
        return kaldi_bad(
            w->in, w->at, w->diag,
            "expected a header of .npy that ends at a multiple of 64 bytes, of at most %u "
            "bytes, got %zu + %zu bytes",
            HEADER_MOST, before, len);
    *ret = len;
    return 0;
}

int kaldi_numpy_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    const uint8_t *text;
    const char *want;
    size_t len = 0;
    int r = kaldi_numpy_take_length(w, &len);

    if (r == 0)
        r = kaldi_take(w, len, "the header of .npy", &text);
    if (r < 0)
        return r;
    want = kaldi_numpy_parse((struct header){(const char *)text, (const char *)text + len}, o);
    if (want)
        return kaldi_bad(w->in, w->at - len, w->diag, "expected %s, got \"%.*s\"", want,
                         (int)min_u64(len, 100), (const char *)text);
    return kaldi_skip(w, o->dim[0] * (o->type == KALDI_MATRIX ? o->dim[1] : 1),
                      kaldi_plain_width(o), "the values of .npy");
}
