/* Numbers in byte buffers of a given order, on hosts of any order and any alignment. */
#ifndef EPOCHFS_BASE_BYTES_H
#define EPOCHFS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load_be64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
}

static inline uint16_t load_le16(const uint8_t *p)
{
    return (uint16_t)(p[1] << 8 | p[0]);
}

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
}

static inline uint32_t load_le32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
    v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
    memcpy(p, &v, sizeof(v));
}

static inline void store_le32(uint8_t *p, uint32_t v)
{
    v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void store_le16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* A number of 7 bits a byte, the lowest first, as Thrift and protobuf have it; *p goes behind it.
 * false: the bytes end before, or it has more than 64 bits. */
static inline bool load_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        *ret = v;
        return shift < 63 || byte <= 1;
    }
    return false;
}

/* What such a number is if its lowest bit is the sign. */
static inline int64_t zigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* The bytes of a byte order mark of UTF-8 that the text begins with: 3 or 0. */
static inline size_t utf8_mark(const void *text, size_t len)
{
    return len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* Write the next of numbers of `width` bytes, 8 at most, that are made one by one, little-endian:
 * from byte *off of them on, *len bytes at most. All move behind it. */
static inline void store_le_part(uint64_t number, unsigned width, uint64_t *off, size_t *len,
                                 uint8_t **dst)
{
    size_t skip = (size_t)(*off % width), n = *len < width - skip ? *len : width - skip;
    uint8_t bytes[8];

    store_le64(bytes, number);
    memcpy(*dst, bytes + skip, n);
    *dst += n;
    *off += n;
    *len -= n;
}

#endif
