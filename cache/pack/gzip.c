/* gzip by zlib: any number of members, zero padding after the last. RFC 1952. And zlib streams,
 * RFC 1950: one, with the same padding. TFRecord files are packed so. */
#include <errno.h>
#include <zlib.h>

#include "base/checked.h"
#include "cache/pack/streams.h"

static void *inflate_open(void)
{
    z_stream *z = calloc(1, sizeof(*z));

    if (z && inflateInit(z) != Z_OK) {
        free(z);
        return NULL;
    }
    return z;
}

static void inflate_close(void *ctx)
{
    inflateEnd(ctx);
    free(ctx);
}

static int gzip_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    (void)d;
    return (!head->at || *head->bytes == 0x1f) && inflateReset2(ctx, 15 + 16) == Z_OK;
}

static int gzip_step(void *ctx, struct stream_step *step)
{
    z_stream *z = ctx;
    int code;

    z->next_in = (Bytef *)(uintptr_t)step->in;
    z->avail_in = (uInt)step->in_len;
    z->next_out = step->out;
    z->avail_out = (uInt)step->out_len;
    code = inflate(z, Z_NO_FLUSH);
    step->used = step->in_len - z->avail_in;
    step->made = step->out_len - z->avail_out;
    step->end = code == Z_STREAM_END;
    step->why = z->msg;
    if (code == Z_MEM_ERROR)
        return -ENOMEM;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? 0 : -EBADMSG;
}

static int zlib_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    (void)ctx;
    (void)d;
    return !head->at;
}

/* A zlib stream has no magic but a check of its first two bytes, which text and lengths can pass.
 * So it must unpack: without a fault as far as the head goes, and to its end if that is all. */
static bool zlib_is_it(const uint8_t *head, size_t len, bool whole)
{
    uint8_t out[4096];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)head, .avail_in = (uInt)len};
    int r = Z_OK;

    if (inflateInit2(&z, 15) != Z_OK)
        return false;
    while (r == Z_OK) {
        z.next_out = out;
        z.avail_out = sizeof(out);
        r = inflate(&z, Z_NO_FLUSH);
    }
    inflateEnd(&z);
    return r == Z_STREAM_END || (r == Z_BUF_ERROR && !whole && z.total_out);
}

const struct unpacker unpacker_gzip = {.name = "gzip",
                                       .suffix = ".gz",
                                       .magic = {0x1f, 0x8b},
                                       .magic_len = 2,
                                       .another = "another member (1f 8b) or zeros",
                                       .open = inflate_open,
                                       .close = inflate_close,
                                       .begin = gzip_begin,
                                       .step = gzip_step},
                      unpacker_zlib = {.name = "zlib",
                                       .magic = {0x78},
                                       .magic_len = 1,
                                       .is_it = zlib_is_it,
                                       .another = "zeros",
                                       .open = inflate_open,
                                       .close = inflate_close,
                                       .begin = zlib_begin,
                                       .step = gzip_step};
