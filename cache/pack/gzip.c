/* gzip by zlib: any number of members, zero padding behind the last. RFC 1952. And zlib streams,
 * RFC 1950: one, with the same padding. TFRecord files are packed so. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "cache/pack/unpack.h"

#ifndef GZIP_CHUNK
#define GZIP_CHUNK (256 * 1024)
#endif

struct gzip {
    z_stream z;
    const char *name; /* of the packing, for messages */
    bool is_zlib;
    bool ready; /* inflateInit2() has succeeded */
    uint8_t in[GZIP_CHUNK];
    uint8_t out[GZIP_CHUNK];
};

static void gzip_free(struct gzip **g)
{
    if (*g && (*g)->ready)
        inflateEnd(&(*g)->z);
    free(*g);
}

/* The offset in the file of the next byte that zlib would take. */
static uint64_t gzip_place(const struct gzip *g, uint64_t read_to)
{
    return read_to - g->z.avail_in;
}

/* Inflate what is in z until it is used up or the member ends. */
static int inflate_some(struct gzip *g, struct entry_sink *sink, const char *name, uint64_t read_to,
                        bool *ret_end, struct diag *d)
{
    int z = Z_OK;

    while (z != Z_STREAM_END && (g->z.avail_in || !g->z.avail_out)) {
        int r;

        g->z.next_out = g->out;
        g->z.avail_out = GZIP_CHUNK;
        z = inflate(&g->z, Z_NO_FLUSH);
        if (z == Z_MEM_ERROR)
            return -ENOMEM;
        if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
            return diag_set(d, -EBADMSG, "%s: %s data near byte %llu: %s", name, g->name,
                            (unsigned long long)gzip_place(g, read_to),
                            g->z.msg ? g->z.msg : "expected a valid stream, got damage");
        r = entry_write(sink, g->out, GZIP_CHUNK - g->z.avail_out);
        if (r < 0)
            return r;
    }
    *ret_end = z == Z_STREAM_END;
    return 0;
}

/* After a member: zeros are padding, a new member may follow directly, anything else is damage.
 * Returns 1: a member starts, 0: more input is needed. */
static int next_member(struct gzip *g, const char *name, uint64_t read_to, struct diag *d)
{
    while (g->z.avail_in && !*g->z.next_in) {
        g->z.next_in++;
        g->z.avail_in--;
    }
    if (!g->z.avail_in)
        return 0;
    if (g->is_zlib)
        return diag_set(d, -EBADMSG, "%s: byte %llu, after the zlib data: expected zeros, got %02x",
                        name, (unsigned long long)gzip_place(g, read_to), *g->z.next_in);
    if (*g->z.next_in != 0x1f)
        return diag_set(d, -EBADMSG,
                        "%s: byte %llu, after the gzip data: expected another member (1f 8b) or "
                        "zeros, got %02x",
                        name, (unsigned long long)gzip_place(g, read_to), *g->z.next_in);
    inflateReset(&g->z);
    return 1;
}

static int inflate_all(const struct unpack_input *in, bool is_zlib, struct entry_sink *sink,
                       struct diag *d)
{
    const struct blob *packed = in->packed;
    AUTO(gzip_free) struct gzip *g = calloc(1, sizeof(*g));
    bool inside = true; /* inside a member */
    uint64_t at = 0;

    if (!g || inflateInit2(&g->z, is_zlib ? 15 : 15 + 16) != Z_OK)
        return -ENOMEM;
    g->ready = true;
    g->is_zlib = is_zlib;
    g->name = is_zlib ? "zlib" : "gzip";
    while (at < packed->size) {
        size_t n = (size_t)min_u64(GZIP_CHUNK, packed->size - at);
        int r = unpack_read(in, g->in, n, at, d);

        if (r < 0)
            return r;
        at += n;
        g->z.next_in = g->in;
        g->z.avail_in = (uInt)n;
        g->z.avail_out = GZIP_CHUNK;
        while (r == 0 && g->z.avail_in) {
            if (!inside) {
                r = next_member(g, blob_name(packed), at, d);
                if (r < 0)
                    return r;
                inside = r == 1;
                r = 0;
            } else {
                bool end = false;

                r = inflate_some(g, sink, blob_name(packed), at, &end, d);
                inside = !end;
            }
        }
        if (r < 0)
            return r;
    }
    if (inside)
        return diag_set(d, -EBADMSG,
                        "%s: %s data: expected its end, got the end of the file at byte %llu",
                        blob_name(packed), g->name, (unsigned long long)at);
    return 0;
}

static int gzip_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    return inflate_all(in, false, sink, d);
}

const struct unpacker unpacker_gzip = {"gzip", ".gz", {0x1f, 0x8b}, 2, NULL, gzip_run};

static int zlib_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    return inflate_all(in, true, sink, d);
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
