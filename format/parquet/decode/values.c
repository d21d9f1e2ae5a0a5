#include "format/parquet/decode/values.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/parquet/decode/hybrid.h"

/* ---- memory ---- */

void values_release(struct values *v)
{
    free(v->bytes);
    free(v->end);
    free(v->mark);
    *v = (struct values){.width = v->width};
}

uint32_t values_width(enum parquet_type type, uint32_t fixed)
{
    static const uint8_t widths[] = {[TYPE_BOOLEAN] = 1, [TYPE_INT32] = 4, [TYPE_INT64] = 8,
                                     [TYPE_INT96] = 12,  [TYPE_FLOAT] = 4, [TYPE_DOUBLE] = 8};

    return type == TYPE_FIXED ? fixed : type == TYPE_BYTE_ARRAY ? 0 : widths[type];
}

static int values_grow(void *array, size_t *capacity, size_t n, size_t each)
{
    void **at = array;
    size_t more = n + n / 4 + 64;
    void *grown;

    if (*at && n <= *capacity)
        return 0;
    grown = realloc(*at, more * each);
    if (!grown)
        return -ENOMEM;
    *at = grown;
    *capacity = more;
    return 0;
}

/* Make space for n more values of `bytes` together. */
static int values_reserve(struct values *v, size_t n, uint64_t bytes)
{
    int r;

    if (bytes > 4 * (uint64_t)VALUES_BYTES_MAX - v->len)
        return -EBADMSG;
    r = values_grow(&v->bytes, &v->capacity, v->len + (size_t)bytes, 1);
    if (r == 0 && !v->width)
        r = values_grow(&v->end, &v->n_ends, v->n + n, sizeof(*v->end));
    return r;
}

int values_set_mark(struct values *v, size_t i, enum value_mark mark)
{
    size_t had = v->n_marks;
    int r = values_grow(&v->mark, &v->n_marks, i + 1, 1);

    if (r < 0)
        return r;
    memset(v->mark + had, VALUE_GOOD, v->n_marks - had);
    v->mark[i] = (uint8_t)mark;
    return 0;
}

/* Append a value; there is space. */
static void values_add(struct values *v, const uint8_t *bytes, size_t len)
{
    if (len)
        memcpy(v->bytes + v->len, bytes, len);
    v->len += len;
    if (!v->width)
        v->end[v->n] = (uint32_t)v->len;
    v->n++;
}

int values_append_marked(struct values *v, size_t n, enum value_mark mark)
{
    int r = values_reserve(v, n, (uint64_t)n * v->width);

    for (size_t i = 0; mark && i < n && r == 0; i++)
        r = values_set_mark(v, v->n + i, mark);
    if (r < 0)
        return r;
    memset(v->bytes + v->len, 0, n * v->width);
    for (size_t i = 0; i < n && !v->width; i++)
        v->end[v->n + i] = (uint32_t)v->len;
    v->len += n * v->width;
    v->n += n;
    return 0;
}

int values_append_one(struct values *v, const void *bytes, size_t len)
{
    int r = len > VALUES_BYTES_MAX ? -EBADMSG : values_reserve(v, 1, len);

    if (r == 0)
        values_add(v, bytes, len);
    return r;
}

int values_append(struct values *v, const struct values *other)
{
    int r = values_reserve(v, other->n, other->len);

    for (size_t i = 0; i < other->n && i < other->n_marks && r == 0; i++)
        r = values_set_mark(v, v->n + i, values_mark(other, i));
    if (r < 0)
        return r;
    for (size_t i = 0; i < other->n && !v->width; i++)
        v->end[v->n + i] = (uint32_t)v->len + other->end[i];
    if (other->len)
        memcpy(v->bytes + v->len, other->bytes, other->len);
    v->len += other->len;
    v->n += other->n;
    return 0;
}

static void *values_put(uint8_t **at, const void *bytes, size_t n)
{
    void *put = *at;

    if (n)
        memcpy(put, bytes, n);
    *at += n;
    return put;
}

int values_pack(const struct values *v, const char *text, void **ret, size_t *ret_size)
{
    size_t ends = v->width ? 0 : v->n * sizeof(*v->end), len = strlen(text) + 1;
    size_t marks = v->n_marks < v->n ? v->n_marks : v->n;
    struct values *made;
    uint8_t *at;

    *ret_size = sizeof(*made) + ends + v->len + marks + len;
    *ret = made = malloc(*ret_size);
    if (!made)
        return -ENOMEM;
    at = (uint8_t *)(made + 1);
    *made = (struct values){.width = v->width, .n = v->n, .len = v->len, .n_marks = marks};
    made->end = values_put(&at, v->end, ends);
    made->bytes = values_put(&at, v->bytes, v->len);
    made->mark = values_put(&at, v->mark, marks);
    values_put(&at, text, len);
    return 0;
}

/* ---- encodings ---- */

/* The bytes of a page, and what is made of them. */
struct decoding {
    struct values *v;
    enum parquet_type type;
    const uint8_t *bytes;
    size_t len, n;
    const struct values *dictionary;
    const char *why;
};

static int values_fail(struct decoding *d, const char *why)
{
    d->why = why;
    return -EBADMSG;
}

static int values_room(struct decoding *d, uint64_t bytes)
{
    int r = bytes > VALUES_BYTES_MAX ? -EBADMSG : values_reserve(d->v, d->n, bytes);

    return r == -EBADMSG ? values_fail(d, "expected values of 256 MiB at most, got more") : r;
}

static int values_plain_fixed(struct decoding *d)
{
    uint64_t bytes = (uint64_t)d->n * d->v->width;
    int r;

    if (bytes > d->len)
        return values_fail(d, "expected the bytes of all values, got the end of the page");
    r = values_room(d, bytes);
    if (r < 0)
        return r;
    memcpy(d->v->bytes + d->v->len, d->bytes, (size_t)bytes);
    d->v->len += (size_t)bytes;
    d->v->n += d->n;
    return 0;
}

static int values_plain_bytes(struct decoding *d)
{
    size_t at = 0;
    int r = d->n > d->len / 4 ? values_fail(d, "expected the length of each value, got the end")
                              : values_room(d, d->len);

    for (size_t i = 0; i < d->n && r == 0; i++) {
        size_t left = d->len - at, len = left < 4 ? 0 : load_le32(d->bytes + at);

        if (left < 4 || len > left - 4)
            return values_fail(d, "expected a length inside the page, got a larger one");
        values_add(d->v, d->bytes + at + 4, len);
        at += 4 + len;
    }
    return r;
}

static int values_bits(struct decoding *d)
{
    int r = ceil_div(d->n, 8) > d->len
                ? values_fail(d, "expected a bit for each value, got the end of the page")
                : values_room(d, d->n);

    for (size_t i = 0; i < d->n && r == 0; i++)
        d->v->bytes[d->v->len++] = d->bytes[i / 8] >> i % 8 & 1;
    d->v->n += r == 0 ? d->n : 0;
    return r;
}

static int values_plain(struct decoding *d)
{
    return d->type == TYPE_BOOLEAN ? values_bits(d)
           : d->v->width           ? values_plain_fixed(d)
                                   : values_plain_bytes(d);
}

/* Booleans as runs. */
static int values_rle(struct decoding *d)
{
    size_t len = d->len < 4 ? 0 : load_le32(d->bytes);
    int r;

    if (d->len < 4 || len > d->len - 4)
        return values_fail(d, "expected the length of runs inside the page, got a larger one");
    r = values_room(d, d->n);
    if (r < 0)
        return r;
    if (!hybrid_decode(d->bytes + 4, len, 1, d->n, NULL, d->v->bytes + d->v->len))
        return values_fail(d, "expected a run for each boolean, got the end of the page");
    for (size_t i = 0; i < d->n; i++)
        if (d->v->bytes[d->v->len + i] > 1)
            return values_fail(d, "expected booleans of 0 and 1, got another number");
    d->v->len += d->n;
    d->v->n += d->n;
    return 0;
}

/* Numbers of entries; the entries of fixed size are copied without a look at their ends. */
static int values_gather(struct decoding *d, const uint32_t *id)
{
    const struct values *entries = d->dictionary;
    struct values *v = d->v;
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < d->n; i++) {
        size_t len = 0;

        if (id[i] < entries->n)
            values_at(entries, id[i], &len);
        bytes += v->width ? v->width : len;
    }
    r = values_room(d, bytes);
    for (size_t i = 0; i < d->n && r == 0; i++) {
        size_t len;

        if (id[i] < entries->n) {
            const uint8_t *entry = values_at(entries, id[i], &len);

            values_add(v, entry, len);
        } else {
            r = values_append_marked(v, 1, VALUE_BAD);
        }
    }
    return r;
}

static int values_dictionary(struct decoding *d)
{
    unsigned width = d->len ? d->bytes[0] : 0;
    AUTO_FREE uint32_t *id = malloc((d->n + 1) * sizeof(*id));

    if (!id)
        return -ENOMEM;
    if (!d->dictionary)
        return values_fail(d, "expected a dictionary page before, got none");
    if (width > 32)
        return values_fail(d, "expected ids of at most 32 bits, got wider ones");
    if (d->n && (!d->len || !hybrid_decode(d->bytes + 1, d->len - 1, width, d->n, id, NULL)))
        return values_fail(d, "expected an id for each value, got the end of the page");
    return values_gather(d, id);
}

static int values_delta(struct decoding *d)
{
    AUTO_FREE uint64_t *number = malloc((d->n + 1) * sizeof(*number));
    struct values *v = d->v;
    size_t used;
    int r;

    if (!number)
        return -ENOMEM;
    d->why = delta_decode(d->bytes, d->len, v->width * 8, d->n, number, &used);
    r = d->why ? -EBADMSG : values_room(d, (uint64_t)d->n * v->width);
    for (size_t i = 0; i < d->n && r == 0; i++, v->len += v->width)
        if (v->width == 4)
            store_le32(v->bytes + v->len, (uint32_t)number[i]);
        else
            store_le64(v->bytes + v->len, number[i]);
    v->n += r == 0 ? d->n : 0;
    return r;
}

/* Lengths that are packed as deltas; those of DELTA_LENGTH_BYTE_ARRAY are checked by who uses them.
 */
static int values_lengths(struct decoding *d, size_t *at, uint64_t **ret)
{
    size_t used = 0;

    *ret = malloc((d->n + 1) * sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    d->why = delta_decode(d->bytes + *at, d->len - *at, 32, d->n, *ret, &used);
    *at += used;
    for (size_t i = 0; i < d->n && !d->why; i++) {
        (*ret)[i] = (uint32_t)(*ret)[i];
        if ((*ret)[i] > INT32_MAX)
            d->why = "expected lengths of 0 or more, got a negative one";
    }
    return d->why ? -EBADMSG : 0;
}

static int values_delta_length(struct decoding *d)
{
    AUTO_FREE uint64_t *len = NULL;
    size_t at = 0;
    int r = values_lengths(d, &at, &len);

    if (r == 0)
        r = values_room(d, d->len - at);
    for (size_t i = 0; i < d->n && r == 0; i++) {
        if (len[i] > d->len - at)
            return values_fail(d, "expected a length inside the page, got a larger one");
        values_add(d->v, d->bytes + at, (size_t)len[i]);
        at += (size_t)len[i];
    }
    return r;
}

/* Each value is the beginning of the one before, and a suffix. */
static int values_delta_bytes(struct decoding *d)
{
    AUTO_FREE uint64_t *prefix = NULL, *suffix = NULL;
    struct values *v = d->v;
    size_t at = 0, last = v->len, last_len = 0;
    uint64_t bytes = 0;
    int r = values_lengths(d, &at, &prefix);

    if (r == 0)
        r = values_lengths(d, &at, &suffix);
    for (size_t i = 0; i < d->n && r == 0; i++)
        bytes += prefix[i] + suffix[i];
    if (r == 0)
        r = values_room(d, bytes);
    for (size_t i = 0; i < d->n && r == 0; i++) {
        size_t start = v->len;

        if (prefix[i] > last_len || suffix[i] > d->len - at)
            return values_fail(d, "expected a prefix of the value before and a suffix inside the "
                                  "page, got longer ones");
        if (v->width && prefix[i] + suffix[i] != v->width)
            return values_fail(d, "expected values of the column's size, got another");
        memmove(v->bytes + start, v->bytes + last, (size_t)prefix[i]);
        v->len += (size_t)prefix[i];
        values_add(v, d->bytes + at, (size_t)suffix[i]);
        at += (size_t)suffix[i];
        last = start;
        last_len = v->len - start;
    }
    return r;
}

static int values_split(struct decoding *d)
{
    struct values *v = d->v;
    uint64_t bytes = (uint64_t)d->n * v->width;
    int r;

    if (bytes > d->len)
        return values_fail(d, "expected a stream for each byte of a value, got the end");
    r = values_room(d, bytes);
    for (size_t k = 0; k < v->width && r == 0; k++)
        for (size_t i = 0; i < d->n; i++)
            v->bytes[v->len + i * v->width + k] = d->bytes[k * d->n + i];
    v->len += r == 0 ? (size_t)bytes : 0;
    v->n += r == 0 ? d->n : 0;
    return r;
}

int values_decode(struct values *v, enum parquet_type type, uint64_t encoding, const uint8_t *bytes,
                  size_t len, size_t n, const struct values *dictionary, const char **ret_why)
{
    enum {
        INTEGERS = 1 << TYPE_INT32 | 1 << TYPE_INT64,
        FIXED = 1 << TYPE_FIXED,
        BYTES = 1 << TYPE_BYTE_ARRAY,
        REALS = 1 << TYPE_FLOAT | 1 << TYPE_DOUBLE
    };
    static const struct {
        int (*decode)(struct decoding *d);
        unsigned types; /* a bit for each that may have it */
    } encodings[] = {
        [ENCODING_PLAIN] = {values_plain, UINT_MAX},
        [ENCODING_PLAIN_DICTIONARY] = {values_dictionary, UINT_MAX},
        [ENCODING_RLE] = {values_rle, 1 << TYPE_BOOLEAN},
        [ENCODING_DELTA_BINARY_PACKED] = {values_delta, INTEGERS},
        [ENCODING_DELTA_LENGTH_BYTE_ARRAY] = {values_delta_length, BYTES},
        [ENCODING_DELTA_BYTE_ARRAY] = {values_delta_bytes, BYTES | FIXED},
        [ENCODING_RLE_DICTIONARY] = {values_dictionary, UINT_MAX},
        [ENCODING_BYTE_STREAM_SPLIT] = {values_split, INTEGERS | REALS | FIXED},
    };
    struct decoding d = {v, type, bytes, len, n, dictionary, "it cannot be decoded"};
    size_t had = v->n, had_len = v->len;
    int r = encoding < ARRAY_LEN(encodings) && encodings[encoding].types >> type & 1
                ? encodings[encoding].decode(&d)
                : values_fail(&d, "expected an encoding that is read, got another");

    if (r < 0) {
        v->n = had;
        v->len = had_len;
        if (v->n_marks > had)
            memset(v->mark + had, VALUE_GOOD, v->n_marks - had);
    }
    *ret_why = d.why;
    return r;
}
