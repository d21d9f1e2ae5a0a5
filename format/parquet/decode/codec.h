/* The codecs of pages. The bytes are hostile: what they become is exactly size bytes, or an error;
 * nothing is written after them. Any thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_CODEC_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* Compression.md of parquet-format. */
enum parquet_codec {
    CODEC_NONE,
    CODEC_SNAPPY,
    CODEC_GZIP,
    CODEC_LZO,
    CODEC_BROTLI,
    CODEC_LZ4_HADOOP,
    CODEC_ZSTD,
    CODEC_LZ4,
    N_CODECS,
};

/* Why it is not read; NULL: it is. */
const char *codec_refused(enum parquet_codec codec);

/* Unpack len bytes to exactly size bytes. 0, -EBADMSG or -ENOMEM. */
int codec_unpack(enum parquet_codec codec, const uint8_t *bytes, size_t len, uint8_t *dst,
                 size_t size);

/* Packed bytes [at, end) of something that is read in pieces. */
struct codec_packed {
    uint64_t at, end;
    /* Bytes [at, at + len), valid until the next call. 0 or -errno. */
    int (*read)(void *ctx, uint64_t at, size_t len, const uint8_t **ret);
    void *ctx;
};

/* Unpack bytes [from, to) alone, to > from, of Snappy: what is before them is hopped over, and what
 * follows is not read. 0, -EBADMSG, an error of read(); or -ENODATA: they repeat bytes before
 * `from`. Writers begin again each CODEC_BLOCK bytes, so a multiple of that is safe. */
#define CODEC_BLOCK (UINT64_C(64) << 10)
int codec_unpack_part(const struct codec_packed *packed, size_t from, size_t to, uint8_t *dst);

#endif
