/* gzip by zlib: any number of members, zero padding after the last. RFC 1952. And zlib streams,
 * RFC 1950: one, with the same padding. TFRecord files are packed so. */
#include <errno.h>
#include <zlib.h>

#include "base/checked.h"
#include "cache/pack/streams.h"

static int gzip_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    (void)d;
    return (!head->at || *head->bytes == 0x1f) && inflateReset(ctx) == Z_OK;
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

static const struct stream_codec gzip_codec = {"gzip", "another member (1f 8b) or zeros",
                                               gzip_begin, gzip_step},
                                 zlib_codec = {"zlib", "zeros", zlib_begin, gzip_step};

/* window: of inflateInit2(). */
static int inflate_all(const struct stream_codec *codec, int window, const struct unpack_input *in,
                       struct entry_sink *sink, struct diag *d)
{
    z_stream z = {0};
    int r;

    if (inflateInit2(&z, window) != Z_OK)
        return -ENOMEM;
    r = streams_unpack(codec, &z, in, sink, d);
    inflateEnd(&z);
    return r;
}

static int gzip_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    return inflate_all(&gzip_codec, 15 + 16, in, sink, d);
}

const struct unpacker unpacker_gzip = {"gzip", ".gz", {0x1f, 0x8b}, 2, NULL, gzip_run};

static int zlib_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    return inflate_all(&zlib_codec, 15, in, sink, d);
}

/* A zlib stream has no magic but a check of its first two bytes, which text and lengths can pass.
 * So it must unpack: without a fault as far as the head goes, and to its end if that is all. */
static bool zlib_is_it(const uint8_t *head, size_t len, bool whole)
{
    uint8_t out[4096];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)head, .avail_in = (uInt)len};
    int r = Z_OK;

    if (len < 2 || (head[0] << 8 | head[1]) % 31 || inflateInit2(&z, 15) != Z_OK)
        return false;
    while (r == Z_OK) {
        z.next_out = out;
        z.avail_out = sizeof(out);
        r = inflate(&z, Z_NO_FLUSH);
    }
    inflateEnd(&z);
    return r == Z_STREAM_END || (r == Z_BUF_ERROR && !whole && z.total_out);
}

const struct unpacker unpacker_zlib = {"zlib", NULL, {0x78}, 1, zlib_is_it, zlib_run};
