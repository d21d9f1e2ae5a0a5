#include "format/parquet/decode/values.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/parquet/decode/hybrid.h"

/* ---- memory ---- */

/* Bytes in front of those of the values: for values_pack(). */
#define BEFORE sizeof(struct values)

void values_memory_release(struct values_memory *m)
{
    if (m->bytes)
        free(m->bytes - BEFORE);
    *m = (struct values_memory){0};
}

void values_release(struct values *v)
{
    values_memory_release(&v->memory);
    free(v->place);
    free(v->mark);
    *v = (struct values){.width = v->width};
}

void values_clear(struct values *v)
{
    free(v->mark);
    v->mark = NULL;
    v->n = v->len = v->used = v->n_marks = 0;
    v->bytes = v->memory.bytes;
}

uint32_t values_width(enum parquet_type type, uint32_t fixed)
{
    static const uint8_t widths[] = {[TYPE_BOOLEAN] = 1, [TYPE_INT32] = 4, [TYPE_INT64] = 8,
                                     [TYPE_INT96] = 12,  [TYPE_FLOAT] = 4, [TYPE_DOUBLE] = 8};

    return type == TYPE_FIXED ? fixed : type == TYPE_BYTE_ARRAY ? 0 : widths[type];
}

/* Grow an array with `before` bytes in front of it: a little more, for the next one. */
static int values_grow(void *array, size_t *capacity, size_t n, size_t each, size_t before)
{
    uint8_t **at = array;
    size_t more = n + n / 4 + 64;
    uint8_t *grown;

    if (*at && n <= *capacity)
        return 0;
    grown = realloc(*at ? *at - before : NULL, before + more * each);
    if (!grown)
        return -ENOMEM;
    *at = grown + before;
    *capacity = more;
    return 0;
}

int values_memory_have(struct values_memory *m, size_t size)
{
    return values_grow(&m->bytes, &m->capacity, size, 1, BEFORE);
}

/* Make space for n more values of `bytes` together. */
static int values_reserve(struct values *v, size_t n, uint64_t bytes)
{
    size_t first = v->bytes ? (size_t)(v->bytes - v->memory.bytes) : 0;
    int r;

    if (bytes > 4 * (uint64_t)VALUES_BYTES_MAX - v->used)
        return -EBADMSG;
    r = values_memory_have(&v->memory, first + v->used + (size_t)bytes);
    v->bytes = v->memory.bytes + first;
    if (r == 0 && !v->width)
        r = values_grow(&v->place, &v->n_places, v->n + n, sizeof(*v->place), 0);
    return r;
}

int values_set_mark(struct values *v, size_t i, enum value_mark mark)
{
    size_t had = v->n_marks;
    int r = values_grow(&v->mark, &v->n_marks, i + 1, 1, 0);

    if (r < 0)
        return r;
    memset(v->mark + had, VALUE_GOOD, v->n_marks - had);
    v->mark[i] = (uint8_t)mark;
    return 0;
}

/* Count n values of `bytes` that were written. */
static void values_count(struct values *v, size_t n, size_t bytes)
{
    v->n += n;
    v->len += bytes;
    v->used += bytes;
}

/* Append a value; there is space. */
static void values_add(struct values *v, const uint8_t *bytes, size_t len)
{
    if (len)
        memcpy(v->bytes + v->used, bytes, len);
    if (!v->width)
        v->place[v->n] = (struct values_place){(uint32_t)v->used, (uint32_t)len};
    values_count(v, 1, len);
}

int values_append_marked(struct values *v, size_t n, enum value_mark mark)
{
    int r = values_reserve(v, n, (uint64_t)n * v->width);

    for (size_t i = 0; mark && i < n && r == 0; i++)
        r = values_set_mark(v, v->n + i, mark);
    if (r < 0)
        return r;
    memset(v->bytes + v->used, 0, n * v->width);
    for (size_t i = 0; i < n && !v->width; i++)
        v->place[v->n + i] = (struct values_place){(uint32_t)v->used, 0};
    values_count(v, n, n * v->width);
    return 0;
}

int values_append_one(struct values *v, const void *bytes, size_t len)
{
    int r = len > VALUES_BYTES_MAX ? -EBADMSG : values_reserve(v, 1, len);

    if (r == 0)
        values_add(v, bytes, len);
    return r;
}

void values_drop(struct values *v, size_t n)
{
    size_t marks = n < v->n_marks ? v->n_marks - n : 0;
    size_t start = v->width ? n * v->width : n < v->n ? v->place[n].at : v->used;

    if (v->n_marks) {
        memmove(v->mark, v->mark + v->n_marks - marks, marks);
        memset(v->mark + marks, VALUE_GOOD, v->n_marks - marks);
    }
    v->n -= n;
    v->used -= start;
    if (v->used)
        memmove(v->bytes, v->bytes + start, v->used);
    v->len = v->width ? v->used : 0;
    for (size_t i = 0; i < v->n && !v->width; i++) {
        v->place[i] = v->place[i + n];
        v->place[i].at -= (uint32_t)start;
        v->len += v->place[i].len;
    }
}

int values_pack(struct values *v, const char *text, void **ret, size_t *ret_size)
{
    size_t marks = v->n_marks < v->n ? v->n_marks : v->n, text_len = strlen(text) + 1;
    size_t first = v->bytes ? (size_t)(v->bytes - v->memory.bytes) : 0;
    size_t places = v->width ? 0 : v->n * sizeof(*v->place);
    size_t places_at = ceil_div(first + v->used, 8) * 8;
    size_t size = BEFORE + places_at + places + marks + text_len;
    struct values *made = realloc(v->memory.bytes ? v->memory.bytes - BEFORE : NULL, size);
    uint8_t *bytes = (uint8_t *)made + BEFORE, *at = bytes + places_at;

    if (!made)
        return -ENOMEM;
    v->memory.bytes = NULL;
    *made = (struct values){.width = v->width,
                            .n = v->n,
                            .len = v->len,
                            .bytes = bytes + first,
                            .used = v->used,
                            .n_marks = marks};
    made->place = memcpy(at, places ? (const void *)v->place : "", places);
    made->mark = memcpy(at + places, marks ? (const void *)v->mark : "", marks);
    memcpy(at + places + marks, text, text_len);
    values_release(v);
    *ret = made;
    *ret_size = size;
    return 0;
}

/* ---- encodings ---- */

#define NO_ID "expected an id for each value, got the end of the page"

/* Values that are decoded: they are appended to v. */
struct decoding {
    struct values *v;
    size_t had_len, had_used; /* of v */
    struct values_source from;
    const char *why;
};

static int values_fail(struct decoding *d, const char *why)
{
    d->why = why;
    return -EBADMSG;
}

/* Make space for n more values of `bytes` together. */
static int values_room(struct decoding *d, size_t n, uint64_t bytes)
{
    int r = bytes > VALUES_BYTES_MAX - min_u64(d->v->len - d->had_len, VALUES_BYTES_MAX)
                ? -EBADMSG
                : values_reserve(d->v, n, bytes);

    return r == -EBADMSG ? values_fail(d, "expected values of 256 MiB at most, got more") : r;
}

/* Append the first len bytes of the page, which n values are in: take the memory that they are in
 * for that of v, or copy them. */
static int values_hold(struct decoding *d, size_t len)
{
    struct values *v = d->v;
    struct values_memory before = v->memory;
    bool takes = d->from.memory && !v->n;
    int r = !takes     ? values_room(d, d->from.n, len)
            : v->width ? 0
                       : values_grow(&v->place, &v->n_places, d->from.n, sizeof(*v->place), 0);

    if (r < 0)
        return r;
    if (takes) {
        v->memory = *d->from.memory;
        *d->from.memory = before;
        v->bytes = v->memory.bytes + (d->from.bytes - v->memory.bytes);
    } else {
        memcpy(v->bytes + v->used, d->from.bytes, len);
    }
    v->used += len;
    return 0;
}

/* Encodings of values of one size: they write all of them to dst. */

static int values_bits(struct decoding *d, uint8_t *dst)
{
    for (size_t i = 0; i < d->from.n; i++)
        dst[i] = d->from.bytes[i / 8] >> i % 8 & 1;
    return 0;
}

/* Booleans as runs. */
static int values_rle(struct decoding *d, uint8_t *dst)
{
    size_t len = d->from.len < 4 ? 0 : load_le32(d->from.bytes);
    size_t ones;
    int r;

    if (d->from.len < 4 || len > d->from.len - 4)
        return values_fail(d, "expected the length of runs inside the page, got a larger one");
    r = hybrid_levels(d->from.bytes + 4, len, 1, d->from.n, dst, &ones);
    return r < 0 ? values_fail(d, r == -ENODATA
                                      ? "expected a run for each boolean, got the end of the page"
                                      : "expected booleans of 0 and 1, got another number")
                 : 0;
}

/* Numbers that are packed as deltas, from byte *at on. */
static int values_deltas(struct decoding *d, size_t *at, unsigned bits, uint64_t **ret)
{
    size_t used = 0;

    *ret = malloc((d->from.n + 1) * sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    d->why = delta_decode(d->from.bytes + *at, d->from.len - *at, bits, d->from.n, *ret, &used);
    *at += used;
    return d->why ? -EBADMSG : 0;
}

static int values_delta(struct decoding *d, uint8_t *dst)
{
    AUTO_FREE uint64_t *number = NULL;
    size_t at = 0;
    int r = values_deltas(d, &at, d->v->width * 8, &number);

    for (size_t i = 0; i < d->from.n && r == 0; i++)
        if (d->v->width == 4)
            store_le32(dst + 4 * i, (uint32_t)number[i]);
        else
            store_le64(dst + 8 * i, number[i]);
    return r;
}

static int values_split(struct decoding *d, uint8_t *dst)
{
    size_t width = d->v->width;

    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < d->from.n; i++)
            dst[i * width + k] = d->from.bytes[k * d->from.n + i];
    return 0;
}

/* Others: they append them themselves. */

static int values_plain(struct decoding *d)
{
    size_t len = d->from.n * d->v->width;
    int r = values_hold(d, len);

    if (r < 0)
        return r;
    d->v->n += d->from.n;
    d->v->len += len;
    return 0;
}

/* Their lengths are in front. */
static int values_plain_bytes(struct decoding *d)
{
    struct values *v = d->v;
    size_t at = v->used, end = at + d->from.len;
    int r = values_hold(d, d->from.len);

    for (size_t i = 0; i < d->from.n && r == 0; i++) {
        size_t left = end - at, len = left < 4 ? 0 : load_le32(v->bytes + at);

        if (left < 4 || len > left - 4)
            return values_fail(d, "expected a length inside the page, got a larger one");
        v->place[v->n++] = (struct values_place){(uint32_t)at + 4, (uint32_t)len};
        v->len += len;
        at += 4 + len;
    }
    return r;
}

/* Append the entries with those ids, of one size and all known; there is space. */
static void values_gather_even(struct values *v, const uint8_t *entry, const uint32_t *id, size_t n)
{
    size_t width = v->width;
    uint8_t *dst = v->bytes + v->used;

    for (size_t i = 0; i < n; i++, dst += width)
        if (width == 4) /* sizes that are constants make a copy of one instruction */
            memcpy(dst, entry + (size_t)4 * id[i], 4);
        else if (width == 8)
            memcpy(dst, entry + (size_t)8 * id[i], 8);
        else
            memcpy(dst, entry + width * id[i], width);
    values_count(v, n, n * width);
}

static int values_gather(struct decoding *d, const uint32_t *id, size_t n)
{
    const struct values *entries = d->from.dictionary;
    struct values *v = d->v;
    uint64_t bytes = (uint64_t)n * v->width;
    uint32_t most = 0;
    size_t len;
    int r;

    for (size_t i = 0; i < n; i++)
        most = id[i] > most ? id[i] : most;
    for (size_t i = 0; i < n && !v->width; i++)
        if (id[i] < entries->n) {
            values_at(entries, id[i], &len);
            bytes += len;
        }
    r = values_room(d, n, bytes);
    if (r == 0 && v->width && most < entries->n) {
        values_gather_even(v, entries->bytes, id, n);
        return 0;
    }
    for (size_t i = 0; i < n && r == 0; i++) {
        const uint8_t *entry;

        if (id[i] >= entries->n) {
            r = values_append_marked(v, 1, VALUE_BAD);
            continue;
        }
        entry = values_at(entries, id[i], &len);
        values_add(v, entry, len);
    }
    return r;
}

static int values_dictionary(struct decoding *d)
{
    struct hybrid h = {.width = d->from.len ? d->from.bytes[0] : 0};
    uint32_t id[HYBRID_SOME];
    int r;

    if (!d->from.dictionary)
        return values_fail(d, "expected a dictionary page before, got none");
    if (h.width > 32)
        return values_fail(d, "expected ids of at most 32 bits, got wider ones");
    if (!d->from.len)
        return values_fail(d, NO_ID);
    h.p = d->from.bytes + 1;
    h.end = d->from.bytes + d->from.len;
    r = values_room(d, d->from.n, (uint64_t)d->from.n * d->v->width);
    for (size_t left = d->from.n, n; left && r == 0; left -= n) {
        n = hybrid_some(&h, left, id);
        r = n ? values_gather(d, id, n) : values_fail(d, NO_ID);
    }
    return r;
}

/* Each value is a beginning of the one before, and a suffix; or, of DELTA_LENGTH_BYTE_ARRAY, that
 * alone. */
static int values_delta_bytes(struct decoding *d)
{
    AUTO_FREE uint64_t *prefix = NULL, *suffix = NULL;
    bool has_prefix = d->from.encoding == ENCODING_DELTA_BYTE_ARRAY;
    struct values *v = d->v;
    size_t at = 0, last = v->used, last_len = 0;
    uint64_t prefixes = 0, suffixes = 0;
    int r = has_prefix ? values_deltas(d, &at, 32, &prefix) : 0;

    if (r == 0)
        r = values_deltas(d, &at, 32, &suffix);
    for (size_t i = 0; i < d->from.n && r == 0; i++) { /* as int32, which they are */
        if (((has_prefix ? prefix[i] : 0) | suffix[i]) & UINT64_C(0x80000000))
            return values_fail(d, "expected lengths of 0 or more, got a negative one");
        prefixes += has_prefix ? (uint32_t)prefix[i] : 0;
        suffixes += (uint32_t)suffix[i];
    }
    if (r == 0)
        r = suffixes > d->from.len - at
                ? values_fail(d, has_prefix
                                     ? "expected a prefix of the value before and a suffix inside "
                                       "the page, got longer ones"
                                     : "expected a length inside the page, got a larger one")
                : values_room(d, d->from.n, prefixes + suffixes);
    for (size_t i = 0; i < d->from.n && r == 0; i++) {
        size_t start = v->used, before = has_prefix ? (uint32_t)prefix[i] : 0;
        size_t len = (uint32_t)suffix[i];

        if (before > last_len)
            return values_fail(d, "expected a prefix of the value before and a suffix inside the "
                                  "page, got longer ones");
        if (v->width && before + len != v->width)
            return values_fail(d, "expected values of the column's size, got another");
        memmove(v->bytes + start, v->bytes + last, before);
        memcpy(v->bytes + start + before, d->from.bytes + at, len);
        if (!v->width)
            v->place[v->n] = (struct values_place){(uint32_t)start, (uint32_t)(before + len)};
        values_count(v, 1, before + len);
        at += len;
        last = start;
        last_len = before + len;
    }
    return r;
}

/* ---- all of them ---- */

enum { /* a bit for each type that may have an encoding */
       BOOLEANS = 1 << TYPE_BOOLEAN,
       INTEGERS = 1 << TYPE_INT32 | 1 << TYPE_INT64,
       FIXED = 1 << TYPE_FIXED,
       BYTES = 1 << TYPE_BYTE_ARRAY,
       REALS = 1 << TYPE_FLOAT | 1 << TYPE_DOUBLE,
       ALL = (1 << N_PARQUET_TYPES) - 1
};

#define WHOLE UINT_MAX

static const struct decoder {
    uint64_t encoding;
    unsigned types;
    unsigned least; /* bits that a value has at least; WHOLE: all of its bytes */
    int (*fill)(struct decoding *d, uint8_t *dst); /* of values of one size; NULL: */
    int (*add)(struct decoding *d);
} values_decoders[] = {
    {ENCODING_PLAIN, BOOLEANS, 1, .fill = values_bits},
    {ENCODING_PLAIN, BYTES, 32, .add = values_plain_bytes},
    {ENCODING_PLAIN, ALL, WHOLE, .add = values_plain},
    {ENCODING_PLAIN_DICTIONARY, ALL, 0, .add = values_dictionary},
    {ENCODING_RLE, BOOLEANS, 0, .fill = values_rle},
    {ENCODING_DELTA_BINARY_PACKED, INTEGERS, 0, .fill = values_delta},
    {ENCODING_DELTA_LENGTH_BYTE_ARRAY, BYTES, 0, .add = values_delta_bytes},
    {ENCODING_DELTA_BYTE_ARRAY, BYTES | FIXED, 0, .add = values_delta_bytes},
    {ENCODING_RLE_DICTIONARY, ALL, 0, .add = values_dictionary},
    {ENCODING_BYTE_STREAM_SPLIT, INTEGERS | REALS | FIXED, WHOLE, .fill = values_split},
};

static int values_append_by(const struct decoder *decoder, struct decoding *d)
{
    struct values *v = d->v;
    uint64_t least = decoder->least == WHOLE ? UINT64_C(8) * v->width : decoder->least;
    int r;

    if (!d->from.n) /* nulls only: writers differ in what follows their levels */
        return 0;
    if (d->from.n > PAGE_VALUES_MAX || d->from.n * least > (uint64_t)d->from.len * 8)
        return values_fail(d, "expected the bytes of all values, got the end of the page");
    if (decoder->add)
        return decoder->add(d);
    r = values_room(d, d->from.n, (uint64_t)d->from.n * v->width);
    if (r == 0)
        r = decoder->fill(d, v->bytes + v->used);
    if (r == 0)
        values_count(v, d->from.n, d->from.n * v->width);
    return r;
}

int values_decode(struct values *v, enum parquet_type type, const struct values_source *from,
                  const char **ret_why)
{
    struct decoding d = {v, v->len, v->used, *from, "it cannot be decoded"};
    size_t had = v->n;
    int r = values_fail(&d, "expected an encoding that is read, got another");

    for (size_t i = 0; i < ARRAY_LEN(values_decoders); i++)
        if (values_decoders[i].encoding == from->encoding && values_decoders[i].types >> type & 1) {
            r = values_append_by(&values_decoders[i], &d);
            break;
        }
    if (r < 0) {
        v->n = had;
        v->len = d.had_len;
        v->used = d.had_used;
        if (v->n_marks > had)
            memset(v->mark + had, VALUE_GOOD, v->n_marks - had);
    }
    *ret_why = d.why;
    return r;
}
