/* xz by liblzma: any number of streams, zero padding after each. */
#include <lzma.h>

#include "cache/pack/streams.h"

#define MEMORY_LIMIT (UINT64_C(256) << 20) /* of the decoder; `xz -9` needs 65 MiB */

static void *xz_open(void)
{
    return calloc(1, sizeof(lzma_stream)); /* LZMA_STREAM_INIT is zeros */
}

static void xz_close(void *ctx)
{
    lzma_end(ctx);
    free(ctx);
}

static int xz_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    (void)d;
    if (*head->bytes != 0xfd)
        return 0;
    return lzma_stream_decoder(ctx, MEMORY_LIMIT, 0) == LZMA_OK ? 1 : -ENOMEM;
}

static int xz_step(void *ctx, struct stream_step *step)
{
    lzma_stream *z = ctx;
    lzma_ret code;

    z->next_in = step->in;
    z->avail_in = step->in_len;
    z->next_out = step->out;
    z->avail_out = step->out_len;
    code = lzma_code(z, LZMA_RUN);
    step->used = step->in_len - z->avail_in;
    step->made = step->out_len - z->avail_out;
    step->end = code == LZMA_STREAM_END;
    if (code == LZMA_MEMLIMIT_ERROR)
        step->why = "one whose decoder needs more than 256 MiB";
    if (code == LZMA_MEM_ERROR)
        return -ENOMEM;
    return code == LZMA_OK || code == LZMA_STREAM_END || code == LZMA_BUF_ERROR ? 0 : -EBADMSG;
}

const struct unpacker unpacker_xz = {.name = "xz",
                                     .suffix = ".xz",
                                     .magic = {0xfd, '7', 'z', 'X', 'Z', 0},
                                     .magic_len = 6,
                                     .another = "another stream (fd 37 7a 58 5a) or zeros",
                                     .open = xz_open,
                                     .close = xz_close,
                                     .begin = xz_begin,
                                     .step = xz_step};
