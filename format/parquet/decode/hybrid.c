#include "format/parquet/decode/hybrid.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

void bits_unpack(const uint8_t *bytes, size_t len, unsigned width, size_t first, size_t n,
                 uint64_t *ret)
{
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t bit = (uint64_t)first * width;
    size_t i = 0;

    for (; i < n && width <= 57 && bit / 8 + 8 <= len; i++, bit += width)
        ret[i] = load_le64(bytes + bit / 8) >> bit % 8 & mask;
    for (; i < n; i++, bit += width) { /* those of 9 bytes, and near the end */
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

/* The next values, at most n: of a run, which are all h->value (*ret_run); or HYBRID_SOME at most
 * in ret. Returns how many; 0: there are none. */
static size_t hybrid_piece(struct hybrid *h, size_t n, uint32_t *ret, bool *ret_run)
{
    uint64_t some[HYBRID_SOME];

    if (!h->width)
        h->run = SIZE_MAX;
    while (!h->run && !h->packed)
        if (!hybrid_next(h))
            return 0;
    *ret_run = h->run > 0;
    n = (size_t)min_u64(n, h->run ? h->run : min_u64(h->packed, HYBRID_SOME));
    if (h->run) {
        h->run -= n;
        return n;
    }
    bits_unpack(h->group, h->group_len, h->width, h->unpacked, n, some);
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint32_t)some[i];
    h->unpacked += n;
    h->packed -= n;
    return n;
}

size_t hybrid_some(struct hybrid *h, size_t n, uint32_t ret[static HYBRID_SOME])
{
    size_t at = 0;
    bool is_run;

    n = (size_t)min_u64(n, HYBRID_SOME);
    for (size_t k; at < n && (k = hybrid_piece(h, n - at, ret + at, &is_run)); at += k)
        for (size_t i = 0; i < k && is_run; i++)
            ret[at + i] = h->value;
    return at;
}

int hybrid_levels(const uint8_t *bytes, size_t len, unsigned max, size_t n, uint8_t *ret,
                  size_t *ret_full)
{
    struct hybrid h = {.p = bytes, .end = bytes + len, .width = bit_width(max)};
    uint32_t some[HYBRID_SOME];
    bool is_run;

    *ret_full = 0;
    for (size_t k; n; n -= k, ret += k) {
        k = hybrid_piece(&h, n, some, &is_run);
        if (!k)
            return -ENODATA;
        if (is_run && h.value > max)
            return -ERANGE;
        if (is_run) { /* mostly one for all of a page */
            memset(ret, (int)h.value, k);
            *ret_full += h.value == max ? k : 0;
        }
        for (size_t i = 0; i < k && !is_run; i++) {
            if (some[i] > max)
                return -ERANGE;
            ret[i] = (uint8_t)some[i];
            *ret_full += some[i] == max;
        }
    }
    return 0;
}
