/* Binary objects of Kaldi tables: the bytes after 00 'B'.
 *
 * Matrices, vectors and packed matrices begin with a token that names their store. No other type
 * states what it is: the caller wants one of them, and the bytes fit it or do not.
 *
 * Invariants:
 *   1. Measuring checks every byte that is not a value, so len and dim are those that Kaldi would
 *      read.
 *   2. The code uses no count from the file before it has checked that the counted bytes exist.
 *   3. Decoding measures the bytes in memory again (object.c). */
#include <assert.h>
#include <string.h>

#include "base/scope.h"
#include "format/kaldi/object/walk.h"

/* ---- stores with a token ---- */

/* The sizes, then the values. */
static int measure_dense(struct kaldi_walk *w, struct kaldi_object *o)
{
    bool is_matrix = o->type == KALDI_MATRIX, is_vector = o->type == KALDI_VECTOR;
    uint64_t *dim = o->dim;
    int r = kaldi_walk_count(w, is_vector ? "elements" : "rows", &dim[0]);

    if (r == 0 && is_matrix)
        r = kaldi_walk_count(w, "columns", &dim[1]);
    if (r < 0)
        return r;
    if (is_matrix && !dim[0] != !dim[1]) /* as Kaldi does */
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected rows and columns, or neither, got %llu rows of %llu columns",
                         (unsigned long long)dim[0], (unsigned long long)dim[1]);
    if (o->type == KALDI_PACKED)
        dim[0] = dim[0] * (dim[0] + 1) / 2;
    return kaldi_walk_skip(w, dim[0] * (is_matrix ? dim[1] : 1), kaldi_plain_width(o),
                           is_matrix   ? "a matrix"
                           : is_vector ? "a vector"
                                       : "a packed matrix");
}

static const struct store {
    const char *token;
    enum kaldi_type type;
    enum kaldi_store store;
    int (*measure)(struct kaldi_walk *w, struct kaldi_object *o);
} stores[] = {
    {"FM ", KALDI_MATRIX, KALDI_FM, measure_dense},
    {"DM ", KALDI_MATRIX, KALDI_DM, measure_dense},
    {"CM ", KALDI_MATRIX, KALDI_CM, kaldi_compressed_measure},
    {"CM2 ", KALDI_MATRIX, KALDI_CM2, kaldi_compressed_measure},
    {"CM3 ", KALDI_MATRIX, KALDI_CM3, kaldi_compressed_measure},
    {"SM ", KALDI_MATRIX, KALDI_SM, kaldi_sparse_measure},
    {"FV ", KALDI_VECTOR, KALDI_FV, measure_dense},
    {"DV ", KALDI_VECTOR, KALDI_DV, measure_dense},
    {"SV ", KALDI_VECTOR, KALDI_SV, kaldi_sparse_measure},
    {"FP ", KALDI_PACKED, KALDI_FP, measure_dense},
    {"DP ", KALDI_PACKED, KALDI_DP, measure_dense},
    {"\x93NUMPY", KALDI_MATRIX, KALDI_NPY, kaldi_numpy_measure},
};

/* Skip the token of a store; NULL, and skip nothing, if there is none. */
static const struct store *skip_token(struct kaldi_walk *w)
{
    for (size_t i = 0; i < ARRAY_LEN(stores); i++) {
        size_t len = strlen(stores[i].token);

        if (w->have >= len && !memcmp(w->p, stores[i].token, len)) {
            kaldi_walk_skip(w, len, 1, stores[i].token);
            return &stores[i];
        }
    }
    return NULL;
}

static const char *type_text(enum kaldi_type type)
{
    return type ? kaldi_types[type].name : "an object that says its type";
}

/* Report bytes that are neither the askeded type nor any other known one. */
static int bad_start(const struct kaldi_walk *w, enum kaldi_type asked)
{
    char token[KALDI_TOKEN_SHOWN + 1] = "";
    size_t n = 0;

    if (!w->have)
        return kaldi_bad(w->in, w->at, w->diag, "expected %s, got the end of the file",
                         type_text(asked));
    while (n < w->have && n < KALDI_TOKEN_SHOWN && w->p[n] > ' ' && w->p[n] < 0x7f) {
        token[n] = (char)w->p[n];
        n++;
    }
    if (n && w->at + n == w->in->size)
        return kaldi_bad(w->in, w->at, w->diag, "expected %s, got \"%s\" and the end of the file",
                         type_text(asked), token);
    if (n >= 2 && (asked || (*token != 'T' && *token != 'F')))
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected %s, got \"%s\", which is opaque: where its end is, only the "
                         "program that wrote it knows",
                         type_text(asked), token);
    if (!asked)
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected %s, got byte %02x, as a number or a list of numbers; "
                         "-o kaldi_type= names it",
                         type_text(asked), *w->p);
    return kaldi_bad(w->in, w->at, w->diag, "expected %s, got byte %02x", type_text(asked), *w->p);
}

static int bad_type(const struct kaldi_walk *w, const struct store *found, enum kaldi_type asked,
                    const struct kaldi_object *o)
{
    size_t len = strlen(found->token);

    if (o->store == KALDI_NPY || o->store == KALDI_NPY8)
        return kaldi_bad(w->in, o->start + 2, w->diag, "expected %s, got a .npy file, of type %s",
                         type_text(asked), type_text(o->type));
    return kaldi_bad(w->in, o->start + 2, w->diag, "expected %s, got %.*s, of type %s",
                     type_text(asked), (int)len - 1, found->token, type_text(found->type));
}

static int measure_named(struct kaldi_walk *w, const struct store *found, enum kaldi_type asked,
                         struct kaldi_object *o)
{
    int r;

    o->type = found->type;
    o->store = found->store;
    if (asked && asked != o->type && o->store != KALDI_NPY)
        return bad_type(w, found, asked, o);
    r = found->measure(w, o);
    if (r == 0 && asked && asked != o->type) /* the shape of .npy decides */
        return bad_type(w, found, asked, o);
    return r;
}

/* ---- types without a token ---- */

static int measure_bool(struct kaldi_walk *w)
{
    const uint8_t *p;
    int r = kaldi_walk_bytes(w, 1, "bool", &p);

    if (r < 0)
        return r;
    if (*p != 'T' && *p != 'F')
        return kaldi_bad(w->in, w->at - 1, w->diag, "expected bool ('T' or 'F'), got byte %02x",
                         *p);
    kaldi_put_byte(&w->values, *p == 'T');
    return 0;
}

static int measure_unnamed(struct kaldi_walk *w, struct kaldi_object *o)
{
    const uint8_t *p;
    unsigned width;
    int32_t v;
    int r;

    o->store = KALDI_BINARY;
    switch (o->type) {
    case KALDI_BOOL:
        return measure_bool(w);
    case KALDI_INT:
        r = kaldi_walk_int(w, "int", &v);
        if (r == 0)
            kaldi_put_int32(&w->values, 0, v);
        return r;
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
        r = kaldi_walk_real(w, &p, &width);
        if (r < 0)
            return r;
        kaldi_put_reals(&w->values, 0, p, 1, width);
        o->store = width == 8 ? KALDI_BINARY8 : KALDI_BINARY;
        return 0;
    default:
        return kaldi_lists_measure(w, o);
    }
}

int kaldi_binary_measure(struct kaldi_walk *w, enum kaldi_type asked, struct kaldi_object *o)
{
    const struct store *found;

    assert(asked != KALDI_WAVE);
    o->type = asked;
    if (asked == KALDI_TOKEN || asked == KALDI_TOKENS)
        return kaldi_bad(w->in, o->start, w->diag,
                         "expected %s, which is always text, got a binary object (00 'B')",
                         kaldi_types[asked].name);
    if (asked == KALDI_BOOL) /* the 'F' of a bool may precede a key "M" */
        return measure_unnamed(w, o);
    found = skip_token(w);
    if (found)
        return measure_named(w, found, asked, o);
    if (asked <= KALDI_PACKED || !w->have || (*w->p != 4 && *w->p != 8))
        return bad_start(w, asked);
    return measure_unnamed(w, o);
}
