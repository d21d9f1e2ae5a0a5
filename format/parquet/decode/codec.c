/* Snappy: format_description.txt of google/snappy. LZ4: lz4_Block_format.md of lz4/lz4. Both are a
 * few lines, so no library is needed for them. */
#include "format/parquet/decode/codec.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/checked.h"
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

/* Copy a short piece: 16 bytes are one instruction, and those behind it are written again. */
static bool codec_short(struct unpacking *u, const uint8_t *from, size_t len)
{
    uint8_t piece[16];

    if (len > sizeof(piece) || (size_t)(u->dst_end - u->dst_at) < sizeof(piece))
        return false;
    memcpy(piece, from, sizeof(piece));
    memcpy(u->dst_at, piece, sizeof(piece));
    return true;
}

static bool codec_literal(struct unpacking *u, size_t len)
{
    size_t left = (size_t)(u->end - u->p);

    if (len > left || len > (size_t)(u->dst_end - u->dst_at))
        return false;
    if (len && (left < 16 || !codec_short(u, u->p, len)))
        memcpy(u->dst_at, u->p, len);
    u->p += len;
    u->dst_at += len;
    return true;
}

/* Repeat len bytes from back bytes before. Both may overlap: then what was repeated is again. */
static bool codec_copy(struct unpacking *u, size_t back, size_t len)
{
    if (!back || back > (size_t)(u->dst_at - u->dst) || len > (size_t)(u->dst_end - u->dst_at))
        return false;
    if (back >= len && codec_short(u, u->dst_at - back, len)) {
        u->dst_at += len;
        return true;
    }
    for (size_t some; len; len -= some, back += some) {
        some = len < back ? len : back;
        memcpy(u->dst_at, u->dst_at - back, some);
        u->dst_at += some;
    }
    return true;
}

/* ---- Snappy ---- */

#define HOPS_LEAST 256
#define HOP_BYTES  4096 /* of elements that are hopped over, on average, at least */

/* Read the element that the bytes begin with. Returns how many it takes, without those of a
 * literal; 0: it is none. *ret_back: 0 for a literal. */
static size_t snappy_element(const uint8_t *p, size_t left, size_t *ret_len, size_t *ret_back)
{
    static const uint32_t masks[] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff};
    size_t high = *p >> 2, more = *p & 3;
    uint8_t few[5] = {0};
    uint32_t v;

    if (left < sizeof(few))
        p = memcpy(few, p, left);
    more = !more ? (high < 60 ? 0 : high - 59) : more == 3 ? 4 : more;
    v = load_le32(p + 1) & masks[more];
    *ret_back = v;
    *ret_len = high + 1;
    if (!(*p & 3)) {
        *ret_back = 0;
        *ret_len = (more ? v : high) + (size_t)1;
    } else if ((*p & 3) == 1) {
        *ret_back |= (size_t)(*p >> 5) << 8;
        *ret_len = (high & 7) + 4;
    }
    return left > more && (*ret_back || !(*p & 3)) ? 1 + more : 0;
}

static bool snappy_unpack(struct unpacking *u)
{
    uint64_t size;

    if (!load_varint(&u->p, u->end, &size) || size != (uint64_t)(u->dst_end - u->dst))
        return false;
    while (u->p < u->end) {
        size_t len, back, used = snappy_element(u->p, (size_t)(u->end - u->p), &len, &back);

        u->p += used;
        if (!used || !(back ? codec_copy(u, back, len) : codec_literal(u, len)))
            return false;
    }
    return u->dst_at == u->dst_end;
}

/* Read up to len packed bytes from byte at on. */
static int snappy_bytes(const struct codec_packed *packed, uint64_t at, size_t len,
                        const uint8_t **ret, size_t *ret_len)
{
    *ret_len = at < packed->end ? (size_t)min_u64(len, packed->end - at) : 0;
    return *ret_len ? packed->read(packed->ctx, at, *ret_len, ret) : -EBADMSG;
}

int codec_unpack_part(const struct codec_packed *packed, size_t from, size_t to, uint8_t *dst)
{
    struct unpacking u = {.dst = dst, .dst_at = dst, .dst_end = dst + (to - from)};
    const uint8_t *p, *start;
    size_t left, out = 0, hops = 0;
    uint64_t size, at = packed->at;
    int r = snappy_bytes(packed, at, 10, &p, &left);

    if (r < 0)
        return r;
    start = p;
    if (!load_varint(&p, p + left, &size) || size < to)
        return -EBADMSG;
    for (at += (uint64_t)(p - start); out < to;) {
        size_t len, back, used, before, n;

        if (out < from && ++hops > HOPS_LEAST && out / hops < HOP_BYTES)
            return -ENODATA; /* to unpack all of it is faster */
        r = snappy_bytes(packed, at, 5, &p, &left);
        if (r < 0)
            return r;
        used = snappy_element(p, left, &len, &back);
        if (!used)
            return -EBADMSG;
        at += used;
        before = out < from ? (size_t)min_u64(from - out, len) : 0;
        n = (size_t)min_u64(len, to - out) - before;
        if (n && back && (before || !codec_copy(&u, back, n)))
            return -ENODATA;
        if (n && !back) {
            r = snappy_bytes(packed, at + before, n, &u.p, &left);
            if (r < 0)
                return r;
            u.end = u.p + left;
            if (!codec_literal(&u, n))
                return -EBADMSG;
        }
        at += back ? 0 : len;
        out += len;
    }
    return 0;
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
        if (u->end - u->p < 2)
            return false;
        back = load_le16(u->p);
        u->p += 2;
        if (!lz4_length(u, &match) || !codec_copy(u, back, match + 4))
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
