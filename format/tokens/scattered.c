/* The sequences of a Megatron file in the order of its index, where the file has them in another:
 * a blob like others, whose bytes are the file's in pieces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/tokens/stream.h"

struct scattered {
    struct blob blob;
    struct blob *bin;
    const struct token_stream *stream;
};

static const struct scattered *scattered_of(const struct blob *blob)
{
    return (const struct scattered *)(const void *)blob;
}

/* The piece of the file that has byte off, and ends where a sequence ends. */
static int find_piece(struct read_context *rc, const struct scattered *s, uint64_t off,
                      uint64_t *ret_at, uint64_t *ret_len, struct diag *d)
{
    const struct token_stream *stream = s->stream;
    uint64_t sequence = search_last_up_to(stream->before, sizeof(*stream->before),
                                          stream->documents.sequences, off / stream->width);
    uint64_t within = off - stream->before[sequence] * stream->width, pointer;
    uint8_t bytes[8];
    int r = blob_read(rc, stream->index, bytes, 8, stream->documents.pointers + 8 * sequence, d);

    if (r < 0)
        return r;
    pointer = load_le64(bytes);
    *ret_len = (stream->before[sequence + 1] - stream->before[sequence]) * stream->width - within;
    if (pointer > s->bin->size || within + *ret_len > s->bin->size - pointer)
        return -ESTALE; /* it was inside when it was checked */
    *ret_at = pointer + within;
    return 0;
}

static int scattered_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                           uint64_t off, struct diag *d)
{
    const struct scattered *s = scattered_of(blob);
    uint8_t *dst = buf;
    int all = 0;

    while (len) {
        uint64_t at, piece;
        int r = find_piece(rc, s, off, &at, &piece, d);
        size_t n;

        if (r < 0)
            return r;
        n = (size_t)min_u64(len, piece);
        if (!missing_go_on(rc, blob_pread(rc, s->bin, dst, n, at), &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int scattered_check(const struct blob *blob)
{
    int r = blob_check(scattered_of(blob)->bin);

    return r < 0 ? r : blob_check(scattered_of(blob)->stream->index);
}

static int scattered_identity(const struct blob *blob, char **ret)
{
    return blob_identity(scattered_of(blob)->bin, ret);
}

static void scattered_free(struct blob *blob)
{
    blob_free(((struct scattered *)(void *)blob)->bin);
    free(blob->name);
    free(blob->source);
    free(blob);
}

int scattered_blob(struct blob *bin, const struct token_stream *stream, struct blob **ret)
{
    static const struct blob_ops ops = {.pread = scattered_pread,
                                        .check = scattered_check,
                                        .identity = scattered_identity,
                                        .free = scattered_free};
    struct scattered *s = calloc(1, sizeof(*s));

    if (!s) {
        blob_free(bin);
        return -ENOMEM;
    }
    s->blob = (struct blob){.ops = &ops,
                            .name = strdup(blob_name(bin)),
                            .source = strdup(blob_source(bin)),
                            .size = stream->tokens * stream->width,
                            .mtime = bin->mtime,
                            .mode = bin->mode,
                            .uid = bin->uid,
                            .gid = bin->gid};
    s->bin = bin;
    s->stream = stream;
    if (!s->blob.name || !s->blob.source) {
        scattered_free(&s->blob);
        return -ENOMEM;
    }
    *ret = &s->blob;
    return 0;
}
