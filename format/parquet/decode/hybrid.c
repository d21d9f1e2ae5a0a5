#include "format/parquet/decode/hybrid.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define CHUNK 256 /* values that are unpacked together */

void bits_unpack(const uint8_t *bytes, size_t len, unsigned width, size_t first, size_t n,
                 uint64_t *ret)
{
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t bit = (uint64_t)first * width;

    for (size_t i = 0; i < n; i++, bit += width) {
        size_t at = (size_t)(bit / 8);
        unsigned shift = bit % 8;
        uint8_t few[9] = {0};
        const uint8_t *p = bytes + at;
        uint64_t v;

        if (len - at < sizeof(few)) {
            memcpy(few, p, len - at);
            p = few;
        }
        v = load_le64(p) >> shift;
        if (shift + width > 64)
            v |= (uint64_t)p[8] << (64 - shift);
        ret[i] = v & mask;
    }
}

struct hybrid {
    const uint8_t *p, *end;
    unsigned width;
    size_t run, packed; /* values that are left of a run, or of groups */
    uint32_t value;     /* of the run */
    const uint8_t *group;
    size_t group_len, unpacked; /* bytes of the groups; values that were unpacked */
};

/* The next run or groups. */
static bool hybrid_next(struct hybrid *h)
{
    unsigned bytes = (h->width + 7) / 8;
    uint64_t header;

    if (!load_varint(&h->p, h->end, &header) || header > UINT32_MAX)
        return false;
    if (header & 1) {
        uint64_t groups = header >> 1, len = groups * h->width;

        h->group = h->p;
        h->group_len = (size_t)min_u64(len, (uint64_t)(h->end - h->p));
        h->packed = (size_t)min_u64(groups * 8, (uint64_t)h->group_len * 8 / h->width);
        h->unpacked = 0;
        h->p += h->group_len;
        return h->packed > 0 || !groups;
    }
    if ((size_t)(h->end - h->p) < bytes)
        return false;
    h->run = (size_t)(header >> 1);
    h->value = 0;
    for (unsigned i = 0; i < bytes; i++)
        h->value |= (uint32_t)*h->p++ << 8 * i;
    return true;
}

/* Up to n next values, of a run (*ret_run) or unpacked to ret. Returns how many; 0: there are no
 * more. */
static size_t hybrid_some(struct hybrid *h, size_t n, uint64_t ret[static CHUNK], bool *ret_run)
{
    while (!h->run && !h->packed)
        if (!hybrid_next(h))
            return 0;
    *ret_run = h->run > 0;
    n = (size_t)min_u64(n, *ret_run ? h->run : min_u64(h->packed, CHUNK));
    if (*ret_run) {
        h->run -= n;
        return n;
    }
    bits_unpack(h->group, h->group_len, h->width, h->unpacked, n, ret);
    h->unpacked += n;
    h->packed -= n;
    return n;
}

bool hybrid_decode(const uint8_t *bytes, size_t len, unsigned width, size_t n, uint32_t *ret,
                   uint8_t *level)
{
    struct hybrid h = {.p = bytes, .end = bytes + len, .width = width};
    uint64_t some[CHUNK];

    if (!width)
        h.run = n;
    for (size_t at = 0, k; at < n; at += k) {
        bool is_run;

        k = hybrid_some(&h, n - at, some, &is_run);
        if (!k)
            return false;
        if (level && is_run)
            memset(level + at, (int)min_u64(h.value, UINT8_MAX), k);
        for (size_t i = 0; level && !is_run && i < k; i++)
            level[at + i] = (uint8_t)some[i];
        for (size_t i = 0; ret && i < k; i++)
            ret[at + i] = is_run ? h.value : (uint32_t)some[i];
    }
    return true;
}
