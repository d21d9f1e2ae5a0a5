/* Binary objects of Kaldi tables: the bytes after 00 'B'.
 *
 * Matrices, vectors and packed matrices begin with a token that names their store. No other type
 * states what it is: the caller wants one of them, and the bytes fit it or do not.
 *
 * Invariants:
 *   1. Measuring checks every byte that is not a value, so len and dim are those that Kaldi would
 *      read.
 *   2. The code uses no count from the file before it has checked that the counted bytes exist.
 *   3. Decoding first measures the bytes in memory. If that gives the same object, its dims are
 *      those of the bytes, and the decoders need no checks. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/kaldi/object/walk.h"

#define TOKEN_MOST 40 /* bytes of a token that a message shows; in the window with 00 'B' */

/* ---- stores with a token ---- */

/* Kaldi accepts a matrix with rows and columns, or with neither. */
static int check_shape(const struct kaldi_walk *w, uint64_t rows, uint64_t columns)
{
    if (!rows == !columns)
        return 0;
    return kaldi_bad(w->in, w->at, w->diag,
                     "expected rows and columns, or neither, got %llu rows of %llu columns",
                     (unsigned long long)rows, (unsigned long long)columns);
}

static int measure_dense(struct kaldi_walk *w, struct kaldi_object *o)
{
    int r = kaldi_take_count(w, "rows", &o->dim[0]);

    if (r == 0)
        r = kaldi_take_count(w, "columns", &o->dim[1]);
    if (r == 0)
        r = check_shape(w, o->dim[0], o->dim[1]);
    if (r < 0)
        return r;
    return kaldi_skip(w, o->dim[0] * o->dim[1], kaldi_plain_width(o), "a matrix");
}

static int kaldi_binary_measure_vector(struct kaldi_walk *w, struct kaldi_object *o)
{
    int r = kaldi_take_count(w, "elements", &o->dim[0]);

    return r < 0 ? r : kaldi_skip(w, o->dim[0], kaldi_plain_width(o), "a vector");
}

static int measure_packed(struct kaldi_walk *w, struct kaldi_object *o)
{
    uint64_t rows;
    int r = kaldi_take_count(w, "rows", &rows);

    if (r < 0)
        return r;
    o->dim[0] = rows * (rows + 1) / 2;
    return kaldi_skip(w, o->dim[0], kaldi_plain_width(o), "a packed matrix");
}

static const struct named {
    const char *token;
    enum kaldi_type type;
    enum kaldi_store store;
    int (*measure)(struct kaldi_walk *w, struct kaldi_object *o);
} named[] = {
    {"FM ", KALDI_MATRIX, KALDI_FM, measure_dense},
    {"DM ", KALDI_MATRIX, KALDI_DM, measure_dense},
    {"CM ", KALDI_MATRIX, KALDI_CM, kaldi_compressed_measure},
    {"CM2 ", KALDI_MATRIX, KALDI_CM2, kaldi_compressed_measure},
    {"CM3 ", KALDI_MATRIX, KALDI_CM3, kaldi_compressed_measure},
    {"SM ", KALDI_MATRIX, KALDI_SM, kaldi_sparse_measure},
    {"FV ", KALDI_VECTOR, KALDI_FV, kaldi_binary_measure_vector},
    {"DV ", KALDI_VECTOR, KALDI_DV, kaldi_binary_measure_vector},
    {"SV ", KALDI_VECTOR, KALDI_SV, kaldi_sparse_measure},
    {"FP ", KALDI_PACKED, KALDI_FP, measure_packed},
    {"DP ", KALDI_PACKED, KALDI_DP, measure_packed},
    {"\x93NUMPY", KALDI_MATRIX, KALDI_NPY, kaldi_numpy_measure},
};

/* Skip the token of a store; NULL, and skip nothing, if there is none. */
static const struct named *take_named(struct kaldi_walk *w)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        size_t len = strlen(named[i].token);

        if (w->have >= len && !memcmp(w->p, named[i].token, len)) {
            w->p += len;
            w->have -= len;
            w->at += len;
            return &named[i];
        }
    }
    return NULL;
}

static const char *type_text(enum kaldi_type type)
{
    return type ? kaldi_types[type].name : "an object that says its type";
}

/* Report bytes that are neither the wanted type nor any other known one. */
static int bad_start(const struct kaldi_walk *w, enum kaldi_type want)
{
    char token[TOKEN_MOST + 1] = "";
    size_t n = 0;

    if (!w->have)
        return kaldi_bad(w->in, w->at, w->diag, "expected %s, got the end of the file",
                         type_text(want));
    while (n < w->have && n < TOKEN_MOST && w->p[n] > ' ' && w->p[n] < 0x7f) {
        token[n] = (char)w->p[n];
        n++;
    }
    if (n && w->at + n == w->in->size)
        return kaldi_bad(w->in, w->at, w->diag, "expected %s, got \"%s\" and the end of the file",
                         type_text(want), token);
    if (n >= 2 && (want || (*token != 'T' && *token != 'F')))
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected %s, got \"%s\", which is opaque: where its end is, only the "
                         "program that wrote it knows",
                         type_text(want), token);
    if (!want)
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected %s, got byte %02x, as a number or a list of numbers; "
                         "-o kaldi_type= names it",
                         type_text(want), *w->p);
    return kaldi_bad(w->in, w->at, w->diag, "expected %s, got byte %02x", type_text(want), *w->p);
}

static int bad_type(const struct kaldi_walk *w, const struct named *found, enum kaldi_type want,
                    const struct kaldi_object *o)
{
    size_t len = strlen(found->token);

    if (o->store == KALDI_NPY || o->store == KALDI_NPY8)
        return kaldi_bad(w->in, o->start + 2, w->diag, "expected %s, got a .npy file, of type %s",
                         type_text(want), type_text(o->type));
    return kaldi_bad(w->in, o->start + 2, w->diag, "expected %s, got %.*s, of type %s",
                     type_text(want), (int)len - 1, found->token, type_text(found->type));
}

static int kaldi_binary_measure_named(struct kaldi_walk *w, const struct named *found,
                                      enum kaldi_type want, struct kaldi_object *o)
{
    int r;

    o->type = found->type;
    o->store = found->store;
    if (want && want != o->type && o->store != KALDI_NPY)
        return bad_type(w, found, want, o);
    r = found->measure(w, o);
    if (r == 0 && want && want != o->type) /* the shape of .npy decides */
        return bad_type(w, found, want, o);
    return r;
}

/* ---- types without a token ---- */

static int measure_bool(struct kaldi_walk *w)
{
    const uint8_t *p;
    int r = kaldi_take(w, 1, "bool", &p);

    if (r < 0)
        return r;
    if (*p != 'T' && *p != 'F')
        return kaldi_bad(w->in, w->at - 1, w->diag, "expected bool ('T' or 'F'), got byte %02x",
                         *p);
    return 0;
}

static int measure_unnamed(struct kaldi_walk *w, struct kaldi_object *o)
{
    bool wide = false;
    int32_t ignored;
    int r;

    o->store = KALDI_BINARY;
    switch (o->type) {
    case KALDI_BOOL:
        return measure_bool(w);
    case KALDI_INT:
        return kaldi_take_int(w, "int", &ignored);
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
        r = kaldi_skip_real(w, &wide);
        o->store = wide ? KALDI_BINARY8 : KALDI_BINARY;
        return r;
    default:
        return kaldi_lists_measure(w, o);
    }
}

static bool has_token(enum kaldi_type type)
{
    return !type || type == KALDI_MATRIX || type == KALDI_VECTOR || type == KALDI_PACKED;
}

static int measure_any(struct kaldi_walk *w, enum kaldi_type want, struct kaldi_object *o)
{
    const struct named *found;

    if (want == KALDI_TOKEN || want == KALDI_TOKENS)
        return kaldi_bad(w->in, o->start, w->diag,
                         "expected %s, which is always text, got a binary object (00 'B')",
                         kaldi_types[want].name);
    if (want == KALDI_BOOL) /* the 'F' of a bool may precede a key "M" */
        return measure_unnamed(w, o);
    found = take_named(w);
    if (found)
        return kaldi_binary_measure_named(w, found, want, o);
    if (has_token(want) || !w->have || (*w->p != 4 && *w->p != 8))
        return bad_start(w, want);
    return measure_unnamed(w, o);
}

int kaldi_binary_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want,
                         struct kaldi_object *ret, struct diag *d)
{
    struct kaldi_object o = {.type = want, .start = at};
    struct kaldi_walk w = {
        .in = in, .diag = d, .at = at, .p = (const uint8_t *)"", .expected = TOKEN_MOST};
    const uint8_t *p;
    int r;

    assert(want != KALDI_WAVE);
    r = kaldi_take(&w, 2, "00 'B'", &p);
    if (r == 0)
        r = measure_any(&w, want, &o);
    if (r < 0)
        return r;
    o.len = w.at - at;
    *ret = o;
    return 0;
}

/* ---- decoding ---- */

/* Is it the same object as when it was measured? */
static int measure_again(const struct kaldi_object *object, const uint8_t *bytes, const char *name,
                         struct diag *d)
{
    struct blob blob = {.name = (char *)name, .size = object->start + object->len};
    struct kaldi_in in = {.blob = &blob,
                          .size = blob.size,
                          .buffer = (uint8_t *)bytes, /* has all bytes: never read into */
                          .start = object->start,
                          .have = (size_t)object->len};
    struct kaldi_object now;
    int r = object->len < 2 || memcmp(bytes, "\0B", 2)
                ? -EBADMSG
                : kaldi_binary_measure(&in, object->start, object->type, &now, d);

    if (r == 0 && now.store == object->store && now.len == object->len &&
        !memcmp(now.dim, object->dim, sizeof(now.dim)))
        return 0;
    return kaldi_bad(&in, object->start, d,
                     "expected the object that was there before, got another");
}

int kaldi_binary_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                        enum dtype dtype, uint8_t *dst, const char *name, struct diag *d)
{
    unsigned width = kaldi_plain_width(object);
    int r = measure_again(object, bytes, name, d);

    if (r < 0)
        return r;
    if (object->type == KALDI_BOOL) {
        *dst = bytes[object->len - 1] == 'T';
    } else if (object->type == KALDI_INT) {
        memcpy(dst, bytes + object->len - 4, 4);
    } else if (width) {
        uint64_t n = 0;

        kaldi_array_bytes(object, i, width == 8 ? DTYPE_F8 : DTYPE_F4, &n);
        kaldi_put_reals(dst, dtype, bytes + object->len - n, n / width, width == 8);
    } else if (object->store == KALDI_SM || object->store == KALDI_SV) {
        kaldi_sparse_decode(object, bytes, dtype, dst);
    } else if (object->type == KALDI_MATRIX) {
        kaldi_compressed_decode(object, bytes, dtype, dst);
    } else {
        kaldi_lists_decode(object, bytes, i, dtype, dst);
    }
    return 0;
}
