/* Objects of Kaldi tables: the choice of the parser that measures or decodes an object. */
#include "format/kaldi/object/object.h"

#include <assert.h>
#include <string.h>

#include "base/scope.h"
#include "format/index/index.h"
#include "format/kaldi/object/walk.h"

#define OPAQUE_LOOK 65536          /* bytes that are searched at a time */
#define OPAQUE_MOST (256ull << 20) /* of an object: a line of an scp file reads no more */

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

/* Does the file end at byte at, or an object follow there, after its key, whose class ends with the
 * len bytes at end, "</Token> "? 1, 0, or -errno. */
static int opaque_ends(struct kaldi_in *in, uint64_t at, const uint8_t *end, size_t len)
{
    size_t have = 0, n = 0;
    const uint8_t *p = kaldi_in_at(in, at, KEY_MAX + 4 + len, &have);

    if (!p)
        return in->error;
    while (n < have && n < KEY_MAX && p[n] > ' ')
        n++;
    return !have || (n && have - n >= 2 + len && !memcmp(p + n, " \0B<", 4) &&
                     !memcmp(p + n + 4, end + 2, len - 2));
}

int kaldi_opaque_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    uint8_t end[KALDI_TOKEN_SHOWN + 2] = "</";
    size_t have = 0, len = 0;
    const uint8_t *p = kaldi_in_at(w->in, w->at, KALDI_TOKEN_SHOWN + 1, &have), *found;
    int r = 0;

    o->type = KALDI_OPAQUE;
    o->store = KALDI_BINARY;
    while (p && len < have && len < KALDI_TOKEN_SHOWN && p[len] > ' ' && p[len] < 0x7f)
        len++;
    if (!p || !len || *p != '<' || len == have || p[len] != ' ')
        return kaldi_bad(w->in, w->at, w->diag, "expected a token in <>, such as <Nnet3Eg>");
    memcpy(end + 2, p + 1, len++);
    w->at = o->start ? w->at + len : w->in->size;
    while (o->start && r == 0 && w->at < w->in->size) {
        p = kaldi_in_at(w->in, w->at, OPAQUE_LOOK, &have);
        found = p ? memmem(p, have, end, len + 1) : NULL;
        if (w->at - o->start > OPAQUE_MOST)
            return kaldi_bad(w->in, w->at, w->diag,
                             "expected %.*s after at most %llu bytes of an object", (int)len,
                             (const char *)end, OPAQUE_MOST);
        w->at += found ? (size_t)(found - p) + len + 1 : have > len ? have - len : have;
        if (!p || found)
            r = p ? opaque_ends(w->in, w->at, end, len + 1) : w->in->error;
    }
    w->have = 0;
    if (r < 0 || (o->start && !r))
        return kaldi_bad(w->in, w->at, w->diag,
                         "expected %.*s and then the end of the file, or a key and another object "
                         "of its class, got the end of the file",
                         (int)len, (const char *)end);
    return 0;
}

static int measure_text(struct kaldi_in *in, enum kaldi_type type,
                        const struct kaldi_values *values, struct kaldi_object *o, struct diag *d)
{
    size_t have = 0;
    const uint8_t *p = kaldi_in_at(in, o->start, 5, &have);
    const char *start = p ? kaldiio_start(p, have) : NULL;

    o->type = type;
    if (start && type != KALDI_TOKEN && type != KALDI_TOKENS)
        return kaldi_bad(in, o->start, d,
                         "expected %s, got \"%s\": an object of kaldiio, which Kaldi cannot read "
                         "either",
                         type ? kaldi_types[type].name : "an object", start);
    if (!type)
        return kaldi_bad(
            in, o->start, d,
            "expected an object that says its type, got text; -o kaldi_type= names it");
    if (type == KALDI_OPAQUE)
        return kaldi_bad(in, o->start, d, "expected 00 'B' of an opaque object, got text");
    return kaldi_text_measure(in, values, o, d);
}

/* As kaldi_measure(), and store the values of an array. */
static int measure(struct kaldi_in *in, uint64_t at, enum kaldi_type type,
                   const struct kaldi_values *values, struct kaldi_object *ret, struct diag *d)
{
    struct kaldi_walk w = {
        .in = in, .diag = d, .at = at, .expected = 2 + KALDI_TOKEN_SHOWN, .values = *values};
    struct kaldi_object o = {.start = at};
    size_t have = 0;
    const uint8_t *p = kaldi_in_at(in, at, 5, &have);
    int r;

    if (!p)
        return kaldi_bad(in, at, d, "expected an object");
    if (!have)
        return kaldi_bad(in, at, d, "expected an object, got the end of the file");
    if (type == KALDI_WAVE ||
        (!type && have >= 4 && (!memcmp(p, "RIFF", 4) || !memcmp(p, "RIFX", 4)))) {
        o.type = KALDI_WAVE;
        r = kaldi_wave_measure(&w, &o);
    } else if (*p) {
        r = measure_text(in, type, values, &o, d);
        w.at = at + o.len;
    } else if (have < 2) {
        return kaldi_bad(in, at, d, "expected 00 'B', got 00 and the end of the file");
    } else if (p[1] != 'B') {
        return kaldi_bad(in, at, d, "expected 00 'B', got 00 %02x", p[1]);
    } else {
        bool is_opaque = type == KALDI_OPAQUE || (!type && have > 2 && p[2] == '<');

        r = kaldi_walk_bytes(&w, 2, "00 'B'", &p);
        if (r == 0 && is_opaque)
            r = kaldi_opaque_measure(&w, &o);
        else if (r == 0)
            r = kaldi_binary_measure(&w, type, &o);
        if (r == 0 && o.store >= KALDI_BINARY)
            kaldi_values_dims(&w.values, o.type, o.dim);
    }
    if (r < 0)
        return r;
    o.len = w.at - at;
    *ret = o;
    return 0;
}

int kaldi_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type type, struct kaldi_object *ret,
                  struct diag *d)
{
    return measure(in, at, type, &(struct kaldi_values){0}, ret, d);
}

int kaldi_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                 enum dtype dtype, uint8_t *dst, const char *name, struct diag *d)
{
    struct blob blob = {.name = (char *)name, .size = object->start + object->len};
    /* The window has all bytes, so it never reads. */
    struct kaldi_in in = {
        .blob = &blob,
        .size = blob.size,
        .window = {.bytes = (uint8_t *)bytes, .start = object->start, .have = (size_t)object->len}};
    const struct kaldi_array *array = &kaldi_types[object->type].array[i];
    struct kaldi_values values = {.array = i, .wide = dtype == DTYPE_F8, .dst = dst};
    unsigned width = kaldi_plain_width(object);
    struct kaldi_object now;
    uint64_t size;
    int r;

    assert(i < kaldi_types[object->type].n_arrays);
    if (!kaldi_array_bytes(object, i, dtype, &size))
        return kaldi_bad(&in, object->start, d, "expected an array that fits into memory");
    values.capacity =
        size / (array->real ? (values.wide ? 8 : 4) : dtype_info(array->dtype)->bytes);
    r = measure(&in, object->start, object->type, &values, &now, d);
    if (r < 0)
        return r;
    if (now.store != object->store || now.len != object->len ||
        memcmp(now.dim, object->dim, sizeof(now.dim)) != 0)
        return kaldi_bad(&in, object->start, d,
                         "expected the object that was there before, got another");
    if (object->store >= KALDI_CM && object->store <= KALDI_CM3)
        kaldi_compressed_decode(object, bytes, dtype, dst);
    else if (width && object->store != KALDI_BINARY && object->store != KALDI_BINARY8) {
        uint64_t n = size / (values.wide ? 8 : 4);

        kaldi_store_reals(dst, values.wide, bytes + object->len - n * width, n, width);
    }
    return 0;
}
