/* Packings: a packed file is streams, one after the other, with zeros as padding after each. The
 * loop over them reads, writes and reports; an unpacker knows one stream. unpackers[] of unpack.c
 * is the registry. */
#ifndef EPOCHFS_CACHE_PACK_STREAMS_H
#define EPOCHFS_CACHE_PACK_STREAMS_H

#include "cache/pack/unpack.h"

#define STREAM_HEAD 18 /* bytes */
#define UNPACK_HEAD 512

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

struct unpacker {
    const char *name;   /* for messages */
    const char *suffix; /* NULL: none is usual */
    uint8_t magic[6];
    size_t magic_len;
    /* Where there are several magics (magic_len 0), or the magic may be that of another file: is it
     * one of this packing, by its first len bytes, UNPACK_HEAD or those of the whole file? NULL:
     * the magic is enough. */
    bool (*is_it)(const uint8_t *head, size_t len, bool whole);
    const char *another; /* what may follow a stream */
    const char *nothing; /* the error of a file without streams; NULL: its content is empty */
    void *(*open)(void); /* gives the ctx; NULL: no memory */
    void (*close)(void *ctx);
    /* 1: a stream begins, or bytes to skip; 0: neither; or -errno with the reason in d. */
    int (*begin)(void *ctx, struct stream_head *head, struct diag *d);
    /* Unpack some. 0, -ENOMEM, or -EBADMSG: damage. */
    int (*step)(void *ctx, struct stream_step *step);
};

/* Unpack all of packed into the sink. 0, -EBADMSG with place, wanted and found in d, or
 * -errno. watch may be NULL. */
int streams_unpack(const struct unpacker *unpacker, const struct blob *packed,
                   struct unpack_watch *watch, struct entry_sink *sink, struct diag *d);

/* The error of a file that ends inside. */
int streams_cut(const char *name, const char *file, uint64_t size, struct diag *d);

#endif
