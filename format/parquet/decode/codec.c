/* Snappy: format_description.txt of google/snappy. LZ4: lz4_Block_format.md of lz4/lz4. Both are a
 * few lines, so no library is needed for them. */
#include "format/parquet/decode/codec.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/scope.h"

const char *codec_refused(enum parquet_codec codec)
{
    static const char *const why[N_CODECS] = {
        [CODEC_LZO] = "its codec LZO is not read",
        [CODEC_BROTLI] = "its codec Brotli is not read",
        [CODEC_LZ4_HADOOP] = "its codec LZ4 of Hadoop is not read; LZ4_RAW is"};

    return why[codec];
}

/* What is read from, and what is written. */
struct unpacking {
    const uint8_t *p, *end;
    uint8_t *dst, *dst_at, *dst_end;
};

static bool codec_literal(struct unpacking *u, size_t len)
{
    if (len > (size_t)(u->end - u->p) || len > (size_t)(u->dst_end - u->dst_at))
        return false;
    if (len)
        memcpy(u->dst_at, u->p, len);
    u->p += len;
    u->dst_at += len;
    return true;
}

/* Repeat len bytes from back bytes before; both may overlap. */
static bool codec_copy(struct unpacking *u, size_t back, size_t len)
{
    if (!back || back > (size_t)(u->dst_at - u->dst) || len > (size_t)(u->dst_end - u->dst_at))
        return false;
    if (back >= len) {
        memcpy(u->dst_at, u->dst_at - back, len);
        u->dst_at += len;
        return true;
    }
    for (; len; len--, u->dst_at++)
        *u->dst_at = *(u->dst_at - back);
    return true;
}

static bool codec_little(struct unpacking *u, unsigned bytes, size_t *ret)
{
    size_t v = 0;

    if ((size_t)(u->end - u->p) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        v |= (size_t)*u->p++ << 8 * i;
    *ret = v;
    return true;
}

/* ---- Snappy ---- */

static bool snappy_element(struct unpacking *u)
{
    uint8_t tag = *u->p++;
    size_t len = (size_t)(tag >> 2) + 1, back = 0;

    switch (tag & 3) {
    case 0:
        if (len > 60) {
            if (!codec_little(u, (unsigned)len - 60, &len))
                return false;
            len++;
        }
        return codec_literal(u, len);
    case 1:
        len = (size_t)(tag >> 2 & 7) + 4;
        if (!codec_little(u, 1, &back))
            return false;
        return codec_copy(u, back | (size_t)(tag >> 5) << 8, len);
    default:
        return codec_little(u, (tag & 3) == 2 ? 2 : 4, &back) && codec_copy(u, back, len);
    }
}

static bool snappy_unpack(struct unpacking *u)
{
    uint64_t size;

    if (!load_varint(&u->p, u->end, &size) || size != (uint64_t)(u->dst_end - u->dst))
        return false;
    while (u->p < u->end)
        if (!snappy_element(u))
            return false;
    return u->dst_at == u->dst_end;
}

/* ---- LZ4 block ---- */

static bool lz4_length(struct unpacking *u, size_t *len)
{
    uint8_t byte = 255;

    if (*len != 15)
        return true;
    while (byte == 255) {
        if (u->p == u->end)
            return false;
        byte = *u->p++;
        *len += byte;
    }
    return true;
}

static bool lz4_unpack(struct unpacking *u)
{
    while (u->p < u->end) {
        uint8_t token = *u->p++;
        size_t len = token >> 4, match = token & 15, back;

        if (!lz4_length(u, &len) || !codec_literal(u, len))
            return false;
        if (u->p == u->end) /* the last literals have no match */
            break;
        if (!codec_little(u, 2, &back) || !lz4_length(u, &match) || !codec_copy(u, back, match + 4))
            return false;
    }
    return u->dst_at == u->dst_end;
}

/* ---- gzip ---- */

static void codec_free_gzip(struct libdeflate_decompressor **d)
{
    libdeflate_free_decompressor(*d);
}

/* Members follow each other. */
static int gzip_unpack(struct unpacking *u)
{
    AUTO(codec_free_gzip) struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();

    if (!d)
        return -ENOMEM;
    while (u->p < u->end) {
        size_t in = 0, out = 0;

        if (libdeflate_gzip_decompress_ex(d, u->p, (size_t)(u->end - u->p), u->dst_at,
                                          (size_t)(u->dst_end - u->dst_at), &in,
                                          &out) != LIBDEFLATE_SUCCESS)
            return -EBADMSG;
        u->p += in;
        u->dst_at += out;
    }
    return u->dst_at == u->dst_end ? 0 : -EBADMSG;
}

int codec_unpack(enum parquet_codec codec, const uint8_t *bytes, size_t len, uint8_t *dst,
                 size_t size)
{
    struct unpacking u = {bytes, bytes + len, dst, dst, dst + size};

    switch (codec) {
    case CODEC_NONE:
        return len == size && codec_literal(&u, len) ? 0 : -EBADMSG;
    case CODEC_SNAPPY:
        return snappy_unpack(&u) ? 0 : -EBADMSG;
    case CODEC_GZIP:
        return gzip_unpack(&u);
    case CODEC_ZSTD:
        return ZSTD_decompress(dst, size, bytes, len) == size ? 0 : -EBADMSG;
    case CODEC_LZ4:
        return lz4_unpack(&u) ? 0 : -EBADMSG;
    default:
        return -EBADMSG;
    }
}
