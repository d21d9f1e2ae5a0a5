/* DELTA_BINARY_PACKED: Encodings.md of parquet-format, "Delta Encoding". */
#include "base/bytes.h"
#include "base/checked.h"
#include "format/parquet/decode/hybrid.h"
#include "format/parquet/decode/values.h"

#define BLOCK_MAX (1u << 20) /* values of a block */

struct delta {
    const uint8_t *p, *end;
    bool failed;
};

static uint64_t delta_varint(struct delta *d)
{
    uint64_t v = 0;

    d->failed |= !load_varint(&d->p, d->end, &v);
    return d->failed ? 0 : v;
}

static uint64_t delta_zigzag(struct delta *d)
{
    return (uint64_t)zigzag(delta_varint(d));
}

/* A miniblock of `size` values, of which n are used: each is the one before, and least, and what
 * is packed. */
static const char *delta_miniblock(struct delta *d, unsigned width, size_t size, size_t n,
                                   uint64_t least, uint64_t *last, uint64_t *ret)
{
    size_t len = size / 8 * width;

    if (len > (size_t)(d->end - d->p)) /* the last one may lack what is not used */
        len = (size_t)(d->end - d->p);
    if ((uint64_t)n * width > (uint64_t)len * 8)
        return "expected packed deltas inside the page, got its end";
    bits_unpack(d->p, len, width, 0, n, ret);
    d->p += len;
    for (size_t i = 0; i < n; i++)
        ret[i] = *last += least + ret[i];
    return NULL;
}

static const char *delta_block(struct delta *d, unsigned bits, size_t block, size_t miniblocks,
                               size_t n, uint64_t *last, uint64_t *ret)
{
    uint64_t least = delta_zigzag(d);
    const uint8_t *widths = d->p;
    size_t size = block / miniblocks;

    if (d->failed || (size_t)(d->end - d->p) < miniblocks)
        return "expected a block of deltas inside the page, got its end";
    d->p += miniblocks;
    for (size_t i = 0; n; i++) {
        size_t some = (size_t)min_u64(n, size);
        const char *why = widths[i] > bits
                              ? "expected a delta width that the type has, got a larger one"
                              : delta_miniblock(d, widths[i], size, some, least, last, ret);

        if (why)
            return why;
        ret += some;
        n -= some;
    }
    return NULL;
}

const char *delta_decode(const uint8_t *bytes, size_t len, unsigned bits, size_t n, uint64_t *ret,
                         size_t *ret_used)
{
    struct delta d = {bytes, bytes + len, false};
    uint64_t block = delta_varint(&d), miniblocks = delta_varint(&d), count = delta_varint(&d);
    uint64_t last = delta_zigzag(&d);

    if (d.failed)
        return "expected the header of deltas, got the end of the page";
    if (!block || block % 128 || block > BLOCK_MAX || !miniblocks || miniblocks > block / 32 ||
        block % miniblocks || block / miniblocks % 32)
        return "expected delta blocks of a multiple of 128 in miniblocks of a multiple of 32, got "
               "others";
    if (count != n)
        return "expected as many deltas as the page has values, got others";
    if (n)
        ret[0] = last;
    for (size_t at = 1, some; at < n; at += some) {
        const char *why;

        some = (size_t)min_u64(n - at, block);
        why = delta_block(&d, bits, (size_t)block, (size_t)miniblocks, some, &last, ret + at);
        if (why)
            return why;
    }
    *ret_used = (size_t)(d.p - bytes);
    return NULL;
}
