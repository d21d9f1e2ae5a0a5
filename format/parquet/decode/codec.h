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

#endif
