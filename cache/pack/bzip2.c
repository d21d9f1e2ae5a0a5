/* bzip2 by libbz2: any number of streams, zero padding after each. libbz2 compares the checksums of
 * blocks and streams. */
#include <bzlib.h>
#include <errno.h>
#include <string.h>

#include "cache/pack/streams.h"

static void *bzip2_open(void)
{
    return calloc(1, sizeof(bz_stream));
}

static void bzip2_close(void *ctx)
{
    BZ2_bzDecompressEnd(ctx); /* an error outside of streams */
    free(ctx);
}

static int bzip2_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    (void)d;
    if (*head->bytes != 'B')
        return 0;
    return BZ2_bzDecompressInit(ctx, 0, 0) == BZ_OK ? 1 : -ENOMEM;
}

static int bzip2_step(void *ctx, struct stream_step *step)
{
    bz_stream *z = ctx;
    int code;

    z->next_in = (char *)(uintptr_t)step->in;
    z->avail_in = (unsigned)step->in_len;
    z->next_out = (char *)step->out;
    z->avail_out = (unsigned)step->out_len;
    code = BZ2_bzDecompress(z);
    step->used = step->in_len - z->avail_in;
    step->made = step->out_len - z->avail_out;
    step->end = code == BZ_STREAM_END;
    if (step->end)
        BZ2_bzDecompressEnd(z);
    if (code == BZ_MEM_ERROR)
        return -ENOMEM;
    return code == BZ_OK || code == BZ_STREAM_END ? 0 : -EBADMSG;
}

/* "BZh" and a digit, then a block, or the end of a stream without one. */
static bool bzip2_is_it(const uint8_t *head, size_t len, bool whole)
{
    (void)whole;
    return len >= 10 && head[3] >= '1' && head[3] <= '9' &&
           (!memcmp(head + 4, "\x31\x41\x59\x26\x53\x59", 6) ||
            !memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6));
}

const struct unpacker unpacker_bzip2 = {.name = "bzip2",
                                        .suffix = ".bz2",
                                        .magic = {'B', 'Z', 'h'},
                                        .magic_len = 3,
                                        .is_it = bzip2_is_it,
                                        .another = "another stream (42 5a 68) or zeros",
                                        .open = bzip2_open,
                                        .close = bzip2_close,
                                        .begin = bzip2_begin,
                                        .step = bzip2_step};
