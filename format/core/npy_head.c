/* Magic, version, the length of the text, and the text: a Python dict of three keys in any order.
 * It is parsed by hand: strings, a tuple of integers, True and False. Nothing else is in a header
 * that describes an array of numbers. */
#include "format/core/npy_head.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/text.h"
#include "format/core/dataset.h"

#define TEXT_AT     10 /* after magic, version and length; 12 from version 2.0 on */
#define ALIGN       64
#define GROW_DIGITS 21 /* numpy leaves room for the first axis to grow to that many digits */

struct parser {
    const char *at, *end;
    bool complex; /* numbers are accepted */
    /* The type is none of numbers: its letter, '[' of records, and why it is refused. */
    char other;
    const char *why;
};

size_t npy_head_bytes(const uint8_t *start, size_t len)
{
    size_t text, before = TEXT_AT;

    if (len < NPY_HEAD_START || memcmp(start, NPY_MAGIC, 6) != 0)
        return 0;
    if (start[6] < 1 || start[6] > 3 || start[7])
        return 0;
    text = load_le16(start + 8);
    if (start[6] > 1) {
        before = 12;
        text = load_le32(start + 8);
    }
    return text <= NPY_HEAD_MAX - before ? before + text : 0;
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && strchr(" \t\n\r", *p->at) && *p->at)
        p->at++;
}

static bool npy_head_take(struct parser *p, const char *text)
{
    size_t len = strlen(text);

    skip_space(p);
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, text, len) != 0)
        return false;
    p->at += len;
    return true;
}

/* A string in either quotes, without escapes. */
static bool take_string(struct parser *p, const char **ret, size_t *ret_len)
{
    const char *quote = npy_head_take(p, "'") ? "'" : npy_head_take(p, "\"") ? "\"" : NULL, *end;

    end = quote ? memchr(p->at, *quote, (size_t)(p->end - p->at)) : NULL;
    if (!end || memchr(p->at, '\\', (size_t)(end - p->at)))
        return false;
    *ret = p->at;
    *ret_len = (size_t)(end - p->at);
    p->at = end + 1;
    return true;
}

static bool npy_head_is_text(const char *at, size_t len, const char *expected)
{
    return len == strlen(expected) && !memcmp(at, expected, len);
}

/* "f4", "c16" */
static bool is_short(const char *text, size_t len, const struct dtype_info *info)
{
    uint64_t bytes;

    return len > 1 && text[0] == info->letter &&
           number_parse(text + 1, len - 1, 16, &bytes) == len - 1 && bytes == info->bytes;
}

/* Why an array of that type is refused. */
static const char *other_type(const char *text, size_t len)
{
    switch (len ? *text : 0) {
    case 'O':
        return "expected numbers or bool in .npy, got Python objects: a pickle, which is never "
               "read; "
               "make the rows as long as each other, and save numpy.array(rows.tolist())";
    case 'U':
    case 'S':
    case 'a':
        return "expected numbers or bool in .npy, got strings; labels are numbers by "
               "numpy.unique(labels, return_inverse=True)[1]";
    case 'M':
    case 'm':
        return "expected numbers or bool in .npy, got dates or times; convert with astype('int64')";
    case 'c':
        return "expected numbers or bool in .npy, got complex numbers";
    case 'V':
        return "expected numbers or bool in .npy, got raw bytes (V); bfloat16 is saved so: convert "
               "with astype('float32')";
    default:
        return "expected numbers or bool in .npy, got another type";
    }
}

/* The type is none of numbers; what follows it is parsed all the same. */
static const char *take_other(struct parser *p, char type, const char *why)
{
    p->other = type;
    p->why = why;
    return NULL;
}

/* The list of a type of records: "[('x', '<f4', (3,)), ('y', '<i4')]". */
static const char *take_list(struct parser *p)
{
    unsigned depth = 0;

    do {
        const char *text;
        size_t len;

        skip_space(p);
        if (p->at == p->end)
            return "expected the end of a list of types in the header of .npy, got none";
        if (take_string(p, &text, &len))
            continue;
        depth += *p->at == '[';
        depth -= *p->at == ']';
        p->at++;
    } while (depth);
    return take_other(
        p, '[',
        "expected 'descr': one type of numbers in .npy, got a list: records of several "
        "fields; save each field as an array of its own");
}

/* "<f4", ">i2", "|u1", "=f8", "f4", "float32". */
static const char *npy_head_take_type(struct parser *p, struct npy_head *ret)
{
    static const enum dtype dtypes[] = {DTYPE_BOOL, DTYPE_U1, DTYPE_U2, DTYPE_U4, DTYPE_U8,
                                        DTYPE_I1,   DTYPE_I2, DTYPE_I4, DTYPE_I8, DTYPE_F2,
                                        DTYPE_F4,   DTYPE_F8, DTYPE_C8, DTYPE_C16};
    size_t n = ARRAY_LEN(dtypes) - (p->complex ? 0 : 2);
    const char *text;
    size_t len;

    if (!take_string(p, &text, &len))
        return p->at < p->end && *p->at == '['
                   ? take_list(p)
                   : "expected 'descr': a type in the header of .npy, got none that is a string";
    ret->big_endian = len && *text == '>';
    if (len && strchr("<>|=", *text)) {
        text++;
        len--;
    }
    for (size_t i = 0; i < n; i++) {
        const struct dtype_info *info = dtype_info(dtypes[i]);

        if (npy_head_is_text(text, len, info->name) || is_short(text, len, info)) {
            ret->dtype = dtypes[i];
            ret->big_endian = ret->big_endian && info->bytes > 1;
            return NULL;
        }
    }
    return take_other(p, len ? *text : '?', other_type(text, len));
}

static const char *take_order(struct parser *p, struct npy_head *ret)
{
    ret->fortran = npy_head_take(p, "True");
    if (ret->fortran || npy_head_take(p, "False"))
        return NULL;
    return "expected 'fortran_order': True or False in the header of .npy, got neither";
}

/* "()", "(7,)", "(7, 3)", "(7, 3,)"; Python 2 wrote 7L. */
static const char *take_shape(struct parser *p, struct npy_head *ret)
{
    static const char wrong[] =
        "expected 'shape': a tuple of numbers in the header of .npy, got none";

    if (!npy_head_take(p, "("))
        return wrong;
    for (ret->ndim = 0; !npy_head_take(p, ")"); ret->ndim++) {
        size_t used;

        if (ret->ndim == NPY_AXES)
            return "expected at most 8 axes in the header of .npy, got more";
        skip_space(p);
        used = number_parse(p->at, (size_t)(p->end - p->at), INT64_MAX, &ret->dim[ret->ndim]);
        if (!used)
            return wrong;
        p->at += used;
        npy_head_take(p, "L");
        if (!npy_head_take(p, ",") && (!ret->ndim || p->at == p->end || *p->at != ')'))
            return wrong;
    }
    return NULL;
}

static const char *npy_head_take_member(struct parser *p, struct npy_head *ret, unsigned *seen)
{
    static const struct {
        const char *key;
        const char *(*parse)(struct parser *p, struct npy_head *ret);
    } members[] = {
        {"descr", npy_head_take_type}, {"fortran_order", take_order}, {"shape", take_shape}};
    const char *key;
    size_t len;

    if (take_string(p, &key, &len) && npy_head_take(p, ":"))
        for (unsigned i = 0; i < ARRAY_LEN(members); i++)
            if (npy_head_is_text(key, len, members[i].key) && !(*seen & 1u << i)) {
                *seen |= 1u << i;
                return members[i].parse(p, ret);
            }
    return "expected 'descr', 'fortran_order' and 'shape' in the header of .npy, got something "
           "else";
}

static const char *take_dict(struct parser *p, struct npy_head *ret)
{
    static const char wrong[] = "expected a dict of three members in the header of .npy, got none";
    unsigned seen = 0;

    if (!npy_head_take(p, "{"))
        return wrong;
    while (!npy_head_take(p, "}")) {
        const char *member = npy_head_take_member(p, ret, &seen);

        if (member)
            return member;
        if (!npy_head_take(p, ",") && (p->at == p->end || *p->at != '}'))
            return wrong;
    }
    skip_space(p);
    return seen == 7 && p->at == p->end ? NULL : wrong;
}

const char *npy_head_parse(const uint8_t *head, size_t len, uint64_t size, struct npy_head *ret,
                           char *ret_other)
{
    struct parser p = {.at = (const char *)head + (head[6] > 1 ? 12 : 10),
                       .end = (const char *)head + len,
                       .complex = ret_other};
    const char *wrong = take_dict(&p, ret);
    unsigned long_axes = 0;

    if (ret_other)
        *ret_other = wrong ? '\0' : p.other;
    if (wrong || p.other)
        return wrong ? wrong : p.why;
    ret->bytes = len;
    ret->array_bytes = dtype_info(ret->dtype)->bytes;
    for (unsigned i = 0; i < ret->ndim; i++) {
        long_axes += ret->dim[i] > 1;
        if (!checked_mul(ret->array_bytes, ret->dim[i], &ret->array_bytes))
            return "expected a shape that memory can hold in .npy, got a larger one";
    }
    if (ret->array_bytes > size - len)
        return "expected the array that the header of .npy describes, got fewer bytes";
    ret->fortran = ret->fortran && long_axes > 1 && ret->array_bytes;
    return NULL;
}

int npy_head_write(const struct form *form, uint8_t **ret, size_t *ret_len)
{
    AUTO_TEXT struct text t = {0};
    char descr[DTYPE_DESCR_SIZE];
    char *bytes;
    size_t len;
    int r;

    dtype_descr(form->dtype, form->width, false, descr);
    text_add(&t, NPY_MAGIC "%c%c%c%c", 1, 1, 1, 1); /* the last four are set below */
    text_add(&t, "{'descr': '%s', 'fortran_order': False, 'shape': ", descr);
    form_shape_text(form, &t);
    text_add(&t, ", }");
    if (form->ndim)
        text_add(&t, "%*s", (int)(GROW_DIGITS - decimal_digits(form->dim[0])), "");
    text_add(&t, "%*s\n", (int)(ALIGN - (t.len + 1) % ALIGN), "");
    r = text_finish(&t, &bytes, &len);
    if (r < 0)
        return r;
    bytes[6] = 1;
    bytes[7] = 0;
    store_le16((uint8_t *)bytes + 8, (uint16_t)(len - TEXT_AT));
    *ret = (uint8_t *)bytes;
    *ret_len = len;
    return 0;
}
