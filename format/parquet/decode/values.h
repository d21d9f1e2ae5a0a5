/* The values of pages, decoded: Encodings.md of parquet-format. The bytes are hostile. One thread.
 */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_VALUES_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

#define VALUES_BYTES_MAX (UINT32_C(256) << 20) /* of a page */
#define PAGE_VALUES_MAX  (UINT64_C(1) << 26)   /* with nulls */

enum parquet_type {
    TYPE_BOOLEAN,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_INT96,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_BYTE_ARRAY,
    TYPE_FIXED,
    N_PARQUET_TYPES,
};

enum parquet_encoding {
    ENCODING_PLAIN = 0,
    ENCODING_PLAIN_DICTIONARY = 2,
    ENCODING_RLE = 3,
    ENCODING_BIT_PACKED = 4,
    ENCODING_DELTA_BINARY_PACKED = 5,
    ENCODING_DELTA_LENGTH_BYTE_ARRAY = 6,
    ENCODING_DELTA_BYTE_ARRAY = 7,
    ENCODING_RLE_DICTIONARY = 8,
    ENCODING_BYTE_STREAM_SPLIT = 9,
};

enum value_mark {
    VALUE_GOOD,
    VALUE_BAD, /* it is not what the file means */
    VALUE_NULL,
};

/* Memory of its own. */
struct values_memory {
    uint8_t *bytes; /* [capacity]; NULL: none */
    size_t capacity;
};

/* Have at least size bytes there. 0 or -ENOMEM. */
int values_memory_have(struct values_memory *m, size_t size);
void values_memory_release(struct values_memory *m);

/* Where a value is. */
struct values_place {
    uint32_t at, len;
};

/* Values one after another; a boolean is a byte. Starts as {.width}. */
struct values {
    uint32_t width;              /* bytes of each; 0: they differ, and others may be between them */
    size_t n, len;               /* len: bytes of all */
    uint8_t *bytes;              /* [used] in memory */
    size_t used;                 /* more than len, if others are between them */
    struct values_place *place;  /* [n] in bytes, with width 0; its own, like */
    uint8_t *mark;               /* [n_marks] enum value_mark; later ones are good */
    size_t n_marks;              /* 0: all are good */
    struct values_memory memory; /* private, like */
    size_t n_places;
};

static inline enum value_mark values_mark(const struct values *v, size_t i)
{
    return i < v->n_marks ? (enum value_mark)v->mark[i] : VALUE_GOOD;
}

void values_release(struct values *v);
#define AUTO_VALUES AUTO(values_release)

/* Drop all of them, and keep the memory. */
void values_clear(struct values *v);

/* Bytes of a value of that type; 0: they differ. fixed: bytes of TYPE_FIXED. */
uint32_t values_width(enum parquet_type type, uint32_t fixed);

static inline const uint8_t *values_at(const struct values *v, size_t i, size_t *ret_len)
{
    *ret_len = v->width ? v->width : v->place[i].len;
    return v->bytes + (v->width ? i * v->width : v->place[i].at);
}

/* Append n values with a mark, which are zeros or empty; or one value. 0, -ENOMEM, or -EBADMSG:
 * they are too many. */
int values_append_marked(struct values *v, size_t n, enum value_mark mark);
int values_append_one(struct values *v, const void *bytes, size_t len);

/* Drop the first n. */
void values_drop(struct values *v, size_t n);

/* Set the mark of a value. 0 or -ENOMEM. */
int values_set_mark(struct values *v, size_t i, enum value_mark mark);

/* Move the values to one piece of memory, *ret: a struct values that owns nothing, and the text
 * behind it. 0 or -ENOMEM. */
int values_pack(struct values *v, const char *text, void **ret, size_t *ret_size);

static inline const char *values_packed_text(const struct values *packed)
{
    return (const char *)packed->mark + packed->n_marks;
}

/* What values are decoded from: the len bytes of a page. */
struct values_source {
    uint64_t encoding;
    const uint8_t *bytes;
    size_t len, n;                   /* n: values */
    const struct values *dictionary; /* of the chunk; NULL: it has none */
    struct values_memory *memory;    /* that the bytes are in: values may take it; NULL: not */
};

/* Append the values of a page. 0, -ENOMEM; or -EBADMSG, and *ret_why says why, static. */
int values_decode(struct values *v, enum parquet_type type, const struct values_source *from,
                  const char **ret_why);

/* Decode DELTA_BINARY_PACKED of n numbers of bits (32, 64). *ret_used: the bytes that it took. NULL
 * or why it is none. ret: [n]. */
const char *delta_decode(const uint8_t *bytes, size_t len, unsigned bits, size_t n, uint64_t *ret,
                         size_t *ret_used);

#endif
