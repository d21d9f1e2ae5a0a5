#include "format/parquet/decode/values.h"

#include <errno.h>
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
    free(v->bad);
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
        r = values_grow(&v->end, &v->end_capacity, v->n + n, sizeof(*v->end));
    return r;
}

int values_mark_bad(struct values *v, size_t i)
{
    size_t had = v->bad_n;
    int r = values_grow(&v->bad, &v->bad_n, i + 1, 1);

    if (r < 0)
        return r;
    if (v->bad_n > had)
        memset(v->bad + had, 0, v->bad_n - had);
    v->bad[i] = 1;
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

int values_append_zeros(struct values *v, size_t n)
{
    int r = values_reserve(v, n, (uint64_t)n * v->width);

    if (r < 0)
        return r;
    if (v->width)
        memset(v->bytes + v->len, 0, n * v->width);
    for (size_t i = 0; i < n && !v->width; i++)
        v->end[v->n + i] = (uint32_t)v->len;
    v->len += n * v->width;
    v->n += n;
    return 0;
}

int values_append(struct values *v, const struct values *other)
{
    int r = values_reserve(v, other->n, other->len);

    if (r < 0)
        return r;
    for (size_t i = 0; i < other->n && !v->width; i++)
        v->end[v->n + i] = (uint32_t)v->len + other->end[i];
    for (size_t i = 0; i < other->n && r == 0; i++)
        if (values_is_bad(other, i))
            r = values_mark_bad(v, v->n + i);
    if (r < 0)
        return r;
    if (other->len)
        memcpy(v->bytes + v->len, other->bytes, other->len);
    v->len += other->len;
    v->n += other->n;
    return 0;
}

int values_append_bytes(struct values *v, const uint8_t *bytes, size_t len)
{
    int r = values_reserve(v, len / v->width, len);

    if (r < 0 || !len)
        return r;
    memcpy(v->bytes + v->len, bytes, len);
    v->len += len;
    v->n += len / v->width;
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
    if (!hybrid_decode_levels(d->bytes + 4, len, 1, d->n, d->v->bytes + d->v->len))
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
            continue;
        }
        r = values_mark_bad(v, v->n);
        memset(v->bytes + v->len, 0, v->width);
        v->len += v->width;
        if (!v->width)
            v->end[v->n] = (uint32_t)v->len;
        v->n++;
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
    if (d->n && (!d->len || !hybrid_decode(d->bytes + 1, d->len - 1, width, d->n, id)))
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

bool values_knows(enum parquet_type type, uint64_t encoding)
{
    bool is_integer = type == TYPE_INT32 || type == TYPE_INT64;

    switch (encoding) {
    case ENCODING_PLAIN:
    case ENCODING_PLAIN_DICTIONARY:
    case ENCODING_RLE_DICTIONARY:
        return true;
    case ENCODING_RLE:
        return type == TYPE_BOOLEAN;
    case ENCODING_DELTA_BINARY_PACKED:
        return is_integer;
    case ENCODING_DELTA_LENGTH_BYTE_ARRAY:
        return type == TYPE_BYTE_ARRAY;
    case ENCODING_DELTA_BYTE_ARRAY:
        return type == TYPE_BYTE_ARRAY || type == TYPE_FIXED;
    case ENCODING_BYTE_STREAM_SPLIT:
        return is_integer || type == TYPE_FLOAT || type == TYPE_DOUBLE || type == TYPE_FIXED;
    default:
        return false;
    }
}

int values_decode(struct values *v, enum parquet_type type, uint64_t encoding, const uint8_t *bytes,
                  size_t len, size_t n, const struct values *dictionary, const char **ret_why)
{
    struct decoding d = {v, type, bytes, len, n, dictionary, "it cannot be decoded"};
    size_t had = v->n, had_len = v->len;
    int r;

    if (!values_knows(type, encoding))
        r = values_fail(&d, "expected an encoding that is read, got another");
    else if (encoding == ENCODING_PLAIN)
        r = values_plain(&d);
    else if (encoding == ENCODING_RLE)
        r = values_rle(&d);
    else if (encoding == ENCODING_DELTA_BINARY_PACKED)
        r = values_delta(&d);
    else if (encoding == ENCODING_DELTA_LENGTH_BYTE_ARRAY)
        r = values_delta_length(&d);
    else if (encoding == ENCODING_DELTA_BYTE_ARRAY)
        r = values_delta_bytes(&d);
    else if (encoding == ENCODING_BYTE_STREAM_SPLIT)
        r = values_split(&d);
    else
        r = values_dictionary(&d);
    if (r < 0) {
        v->n = had;
        v->len = had_len;
        if (v->bad_n > had)
            memset(v->bad + had, 0, v->bad_n - had);
    }
    *ret_why = d.why;
    return r;
}
