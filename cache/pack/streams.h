/* Packed files that are streams, one after the other, with zeros as padding after each: the loop
 * that gzip, bzip2 and zstd share. It reads, writes and reports; a codec knows one stream. */
#ifndef EPOCHFS_CACHE_PACK_STREAMS_H
#define EPOCHFS_CACHE_PACK_STREAMS_H

#include "cache/pack/unpack.h"

#define STREAM_HEAD 18 /* bytes */

/* Where a stream may begin. */
struct stream_head {
    const char *file;
    const uint8_t *bytes; /* not 0, unless it is the first stream */
    size_t len;           /* STREAM_HEAD, or fewer at the end of the file */
    uint64_t at, left;    /* offset in the file, and bytes from there to its end */
    struct entry_sink *sink;
    uint64_t skip; /* set by begin(): no stream, but as many bytes without content */
};

struct stream_step {
    const uint8_t *in; /* the caller moves on by used */
    uint8_t *out;
    size_t in_len, out_len;
    size_t used, made; /* bytes of in and out; both 0: it needs more bytes */
    bool end;          /* of the stream */
    const char *why;   /* what is wrong, with -EBADMSG; NULL: no more is known */
};

struct stream_codec {
    const char *name;
    const char *another; /* what may follow a stream */
    /* 1: a stream begins, or bytes to skip; 0: neither; or -errno with the reason in d. */
    int (*begin)(void *ctx, struct stream_head *head, struct diag *d);
    /* Unpack some. 0, -ENOMEM, or -EBADMSG: damage. */
    int (*step)(void *ctx, struct stream_step *step);
};

/* Unpack all of in, as unpacker.run(). */
int streams_unpack(const struct stream_codec *codec, void *ctx, const struct unpack_input *in,
                   struct entry_sink *sink, struct diag *d);

/* The error of a file that ends inside. */
int streams_cut(const char *name, const char *file, uint64_t size, struct diag *d);

#endif
