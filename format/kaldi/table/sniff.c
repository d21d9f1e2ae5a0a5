/* Finding out the type of a table's objects.
 *
 * Matrices, vectors and waves state it. Other binary objects do not: the sniffer tries all
 * candidates and takes the only type as which the objects can be read; if several remain, only the
 * user knows. Text can be read as many types: it takes the most specific one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/kaldi/table/table.h"

#define BINARY_MOST (64u << 20) /* bytes of an archive to examine */
#define TEXT_MOST   (1u << 20)
#define FST_LOOK    65536 /* bytes of an object that are looked at, */
#define FST_SEEN    8192  /* and so many need not have its end */
#define OBJECT_MOST 65536 /* bytes of an object whose values it examines */

static const enum kaldi_type binary_types[] = {
    KALDI_INT,       KALDI_FLOAT,     KALDI_DOUBLE,      KALDI_BOOL,      KALDI_INTS,
    KALDI_INT_LISTS, KALDI_INT_PAIRS, KALDI_FLOAT_PAIRS, KALDI_POSTERIOR, KALDI_GAUSS_POST,
};

/* What the objects must have to count as the type. */
enum need { NEED_NOTHING, NEED_LINES, NEED_SEMICOLON, NEED_BRACKET };

/* The most specific first. */
static const struct text_type {
    enum kaldi_type type;
    enum need need; /* in at least one object */
} text_types[] = {
    {KALDI_MATRIX, NEED_LINES},          {KALDI_VECTOR, NEED_NOTHING},
    {KALDI_POSTERIOR, NEED_BRACKET},     {KALDI_MATRIX, NEED_NOTHING},
    {KALDI_INT_LISTS, NEED_SEMICOLON},   {KALDI_INT_PAIRS, NEED_SEMICOLON},
    {KALDI_FLOAT_PAIRS, NEED_SEMICOLON}, {KALDI_INT, NEED_NOTHING},
    {KALDI_DOUBLE, NEED_NOTHING},        {KALDI_BOOL, NEED_NOTHING},
    {KALDI_INTS, NEED_NOTHING},          {KALDI_GAUSS_POST, NEED_BRACKET},
    {KALDI_TOKEN, NEED_NOTHING},         {KALDI_TOKENS, NEED_NOTHING}, /* the last two */
};

/* An attempt to read the objects as one type. */
struct attempt {
    const struct blob *blob;
    bool is_whole; /* the object is all of its file */
    enum kaldi_type type;
    enum need need;
    uint64_t most;
    bool has_need;
    bool has_integer; /* a word that is hardly meant as a float, and */
    bool has_real;    /* one that is hardly meant as an integer */
    uint64_t reached; /* the end of the last readable object; 0: none */
};

/* Has the attempt found what its type needs? */
static bool is_likely(const struct attempt *try)
{
    return !try->need || try->has_need;
}

/* Are the real numbers of the archive more likely integers? Integer 5 read as a float is 7e-45. */
static bool is_odd(const struct attempt *try)
{
    return try->has_integer && !try->has_real;
}

/* Judge a word of 4 bytes. Small integers would be denormal floats, and negative ones a NaN that no
 * arithmetic makes (it makes 0xffc00000). Zero, and an integer that is a float below 1e-33, fit
 * both. */
static void look_at_word(struct attempt *try, uint32_t word)
{
    if ((word && word < UINT32_C(1) << 23) || word > UINT32_C(0xffc00000))
        try->has_integer = true;
    else if (word >= UINT32_C(1) << 27)
        try->has_real = true;
}

/* 0 or -ENOMEM. */
static int look_at_reals(struct attempt *try, const struct kaldi_object *object,
                         const uint8_t *bytes)
{
    const struct kaldi_type_info *info = &kaldi_types[object->type];
    unsigned i = info->n_arrays - 1; /* the values come last */
    AUTO_FREE uint8_t *values = NULL;
    uint64_t size;

    if (object->store != KALDI_BINARY || !info->n_arrays || !info->array[i].real ||
        !kaldi_array_bytes(object, i, DTYPE_F4, &size) || size > OBJECT_MOST)
        return 0;
    values = malloc(size + 1);
    if (!values)
        return -ENOMEM;
    if (kaldi_decode(object, bytes, i, DTYPE_F4, values, "", NULL) < 0)
        return 0;
    for (uint64_t at = 0; at + 4 <= size; at += 4)
        look_at_word(try, load_le32(values + at));
    return 0;
}

static bool has_need(enum need need, const struct kaldi_object *object, const uint8_t *bytes)
{
    const uint8_t *end = memrchr(bytes, ']', object->len);

    switch (need) {
    case NEED_LINES:
        return end && memchr(bytes, '\n', (size_t)(end - bytes));
    case NEED_SEMICOLON:
        return memchr(bytes, ';', object->len);
    case NEED_BRACKET:
        return end;
    default:
        return true;
    }
}

/* How many bytes at the start are those of a text. The types for words accept anything that fits no
 * other type. */
static size_t text_span(const uint8_t *bytes, uint64_t len)
{
    size_t n = 0;

    while (n < len && (kaldi_is_blank(bytes[n]) || (bytes[n] > ' ' && bytes[n] != 0x7f)))
        n++;
    return n;
}

/* Does the store fit the type? A float of 8 bytes is a double. */
static bool store_fits(const struct kaldi_object *object)
{
    if (object->type == KALDI_FLOAT)
        return object->store != KALDI_BINARY8;
    return object->type != KALDI_DOUBLE || object->store != KALDI_BINARY;
}

/* Read an object as the attempt's type. 0, or -EBADMSG or another -errno. */
static int try_object(struct attempt *try, struct kaldi_in *in, uint64_t at,
                      struct kaldi_object *ret, struct diag *d)
{
    const uint8_t *bytes;
    size_t have;
    int r = kaldi_measure(in, at, try->type, ret, d);

    if (r < 0)
        return r;
    if (!store_fits(ret))
        return -EBADMSG;
    if (ret->len > OBJECT_MOST && try->need != NEED_LINES)
        return 0;
    bytes = kaldi_in_at(in, ret->start, (size_t)min_u64(ret->len, OBJECT_MOST), &have);
    if (!bytes)
        return in->error;
    if ((try->type == KALDI_TOKEN || try->type == KALDI_TOKENS) &&
        text_span(bytes, ret->len) < ret->len)
        return -EBADMSG;
    if (have < ret->len) { /* a matrix: its start shows the lines */
        try->has_need = try->has_need || memchr(bytes, '\n', have);
        return 0;
    }
    try->has_need = try->has_need || has_need(try->need, ret, bytes);
    return look_at_reals(try, ret, bytes);
}

/* Kaldi takes a key without an object for the end of an archive. Is the text after the last object
 * empty, or a plausible key? */
static int ends_sanely(const struct attempt *try, struct kaldi_in *in, uint64_t at)
{
    while (at < in->size && at < try->most) {
        size_t have = 0;
        const uint8_t *tail = kaldi_in_at(in, at, KEY_MAX, &have);

        if (!tail)
            return in->error;
        if (text_span(tail, have) < have)
            return -EBADMSG;
        at += have;
    }
    return 0;
}

/* Try all objects of the file, or of its first bytes. 0: all can be read this way; -EBADMSG: not.
 * After a wrong guess numbers are taken for keys, and those mostly have control bytes. */
static int try_objects(struct attempt *try, struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object object = {0};
    uint8_t key[KEY_MAX];
    uint64_t at = 0;
    bool is_plain;
    size_t len = 0;
    int r = 1;

    kaldi_in_init(&in, try->blob);
    while (at < try->most) {
        if (!try->is_whole)
            r = kaldi_next_key(&in, &at, 0, key, &len, &is_plain, d);
        if (r == 0) {
            r = ends_sanely(try, &in, at);
            if (r < 0)
                return r;
            break;
        }
        if (r == 1 && text_span(key, len) < len)
            return -EBADMSG;
        if (r == 1)
            r = try_object(try, &in, at, &object, d);
        if (r < 0)
            return r;
        at = object.start + object.len;
        if (try->is_whole)
            return at == in.size && is_likely(try) ? 0 : -EBADMSG;
        try->reached = at;
    }
    return try->reached && is_likely(try) ? 0 : -EBADMSG;
}

/* How far an attempt got; r: what it returned. */
static uint64_t reach(const struct attempt *try, int r)
{
    /* The start of a truncated matrix, "FM ", reads as a false and a key. */
    if (r < 0 && try->type == KALDI_BOOL)
        return 0;
    return r == 0 ? UINT64_MAX : is_likely(try) ? try->reached : 0;
}

/* Choose among the attempts. Keep those that reached the end, or, if the archive breaks off, got
 * furthest; of these keep the ones with plausible numbers, if there are any. */
static int sniff_binary(const struct blob *blob, bool is_whole, enum kaldi_type *ret,
                        struct diag *d)
{
    struct attempt try[ARRAY_LEN(binary_types)];
    uint64_t furthest = 1;
    enum kaldi_type found = KALDI_UNKNOWN;
    AUTO_TEXT struct text names = {0};
    unsigned n = 0;
    bool all_odd = true;

    for (size_t i = 0; i < ARRAY_LEN(binary_types); i++) {
        int r;

        try[i] = (struct attempt){blob, is_whole, binary_types[i], .most = BINARY_MOST};
        r = try_objects(&try[i], NULL);
        if (r < 0 && r != -EBADMSG)
            return r;
        try[i].reached = reach(&try[i], r);
        furthest = max_u64(furthest, try[i].reached);
    }
    for (size_t i = 0; i < ARRAY_LEN(binary_types); i++)
        all_odd = all_odd && (try[i].reached < furthest || is_odd(&try[i]));
    for (size_t i = 0; i < ARRAY_LEN(binary_types); i++) {
        if (try[i].reached < furthest || (is_odd(&try[i]) && !all_odd))
            continue;
        found = n ? found : try[i].type;
        text_add(&names, "%s%s", n++ ? " or " : "", kaldi_types[try[i].type].name);
    }
    if (n == 1) {
        *ret = found;
        return 0;
    }
    if (!n)
        return -EBADMSG;
    return diag_set(
        d, -EBADMSG,
        "%s: expected objects that say what they are, got bytes that can be read as %s; "
        "mount with -o kaldi_type=<one of them>",
        blob_name(blob), names.data ? names.data : "");
}

/* brackets: the first object begins with a bracket, so it is no list of words. */
static int sniff_text(const struct blob *blob, bool is_whole, bool brackets, enum kaldi_type *ret,
                      struct diag *d)
{
    size_t n = ARRAY_LEN(text_types) - (brackets ? 2 : 0);
    enum kaldi_type best = KALDI_UNKNOWN; /* the first attempt of those that got furthest */
    uint64_t furthest = 0;
    struct diag first = DIAG_INIT;

    for (size_t i = 0; i < n; i++) {
        struct attempt try = {blob, is_whole, text_types[i].type, text_types[i].need,
                              .most = TEXT_MOST};
        int r = try_objects(&try, &first);

        if (r == 0)
            *ret = try.type;
        if (r != -EBADMSG)
            return r;
        if (reach(&try, r) > furthest) {
            furthest = reach(&try, r);
            best = try.type;
        }
    }
    if (best) {
        *ret = best;
        return 0;
    }
    return diag_set(d, -EBADMSG, "%s%s", first.set ? first.text : blob_name(blob),
                    first.set ? "" : ": expected objects as text, got bytes that are none");
}

/* How many bytes at the start of the text are one of these characters. */
static size_t strspn_of(const uint8_t *text, size_t len, const char *characters)
{
    size_t n = 0;

    while (n < len && text[n] && strchr(characters, text[n]))
        n++;
    return n;
}

/* Do objects of that type state it? If the user asks for such a type, no other is tried. */
static bool says_itself(enum kaldi_type type)
{
    return type == KALDI_MATRIX || type == KALDI_VECTOR || type == KALDI_PACKED ||
           type == KALDI_WAVE || type == KALDI_OPAQUE;
}

/* As text: no object in the line of the key, then lines of two states and labels, and a line
 * without text at the end, if that is seen. In binary it has OpenFst's magic, without Kaldi's
 * header. */
bool kaldi_is_fst(const uint8_t *object, size_t len)
{
    size_t states = 0;
    const uint8_t *end = object + len, *at = object + strspn_of(object, len, " \t\r");

    if (len >= 4 && load_le32(object) == UINT32_C(0x7eb2fdd6))
        return true;
    if (at == end || *at++ != '\n')
        return false;
    for (; states < 2; states++) {
        size_t digits = strspn_of(at, (size_t)(end - at), "0123456789");

        at += digits;
        if (!digits || at == end || (*at != ' ' && *at != '\t'))
            return false;
        at += strspn_of(at, (size_t)(end - at), " \t");
    }
    return len >= FST_SEEN || memmem(at, (size_t)(end - at), "\n\n", 2) ||
           memmem(at, (size_t)(end - at), "\n\r\n", 3);
}

int kaldi_sniff(const struct blob *blob, uint64_t at, enum kaldi_type asked, enum kaldi_type *ret,
                struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct diag reason = DIAG_INIT;
    struct kaldi_object object;
    const uint8_t *start;
    size_t have, before;
    int r;

    kaldi_in_init(&in, blob);
    start = kaldi_in_at(&in, at, FST_LOOK, &have);
    if (!start)
        return kaldi_bad(&in, at, d, "cannot be read");
    if (!asked && kaldi_is_fst(start, have))
        return diag_set(
            d, -EBADMSG,
            "%s: lattices or FSTs, which epochfs does not read. Write what you need of "
            "them as a table of words, such as: lattice-best-path ark:LATTICES ark,t:text",
            blob_name(blob));
    if (have && start[0] != 0 && start[0] != 'R') {
        before = strspn_of(start, have, " \t\n\r");
        if (!asked)
            return sniff_text(blob, !at, before < have && start[before] == '[', ret, d);
        *ret = asked;
        return 0;
    }
    r = kaldi_measure(&in, at, KALDI_UNKNOWN, &object, &reason);
    if (r == 0 || (r == -EBADMSG && asked)) {
        *ret = r == 0 && !says_itself(asked) ? object.type : asked;
        return 0;
    }
    if (r == -EBADMSG && have && start[0] == 'R')
        r = sniff_text(blob, !at, false, ret, NULL);
    else if (r == -EBADMSG && have >= 2 && start[1] == 'B')
        r = sniff_binary(blob, !at, ret, d);
    return r < 0 ? diag_set(d, r, "%s", reason.text) : r;
}
