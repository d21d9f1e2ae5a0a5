/* bzip2 by libbz2: any number of streams, zero padding after each. libbz2 compares the checksums of
 * blocks and streams. */
#include <bzlib.h>
#include <errno.h>
#include <string.h>

#include "cache/pack/streams.h"

struct bzip2 {
    bz_stream z;
    bool inside; /* a stream */
};

static int bzip2_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    struct bzip2 *b = ctx;

    (void)d;
    if (*head->bytes != 'B')
        return 0;
    b->z = (bz_stream){0};
    if (BZ2_bzDecompressInit(&b->z, 0, 0) != BZ_OK)
        return -ENOMEM;
    b->inside = true;
    return 1;
}

static void bzip2_end(struct bzip2 *b)
{
    if (b->inside)
        BZ2_bzDecompressEnd(&b->z);
    b->inside = false;
}

static int bzip2_step(void *ctx, struct stream_step *step)
{
    struct bzip2 *b = ctx;
    int code;

    b->z.next_in = (char *)(uintptr_t)step->in;
    b->z.avail_in = (unsigned)step->in_len;
    b->z.next_out = (char *)step->out;
    b->z.avail_out = (unsigned)step->out_len;
    code = BZ2_bzDecompress(&b->z);
    step->used = step->in_len - b->z.avail_in;
    step->made = step->out_len - b->z.avail_out;
    step->end = code == BZ_STREAM_END;
    if (step->end)
        bzip2_end(b);
    if (code == BZ_MEM_ERROR)
        return -ENOMEM;
    return code == BZ_OK || code == BZ_STREAM_END ? 0 : -EBADMSG;
}

static const struct stream_codec bzip2_codec = {"bzip2", "another stream (42 5a 68) or zeros",
                                                bzip2_begin, bzip2_step};

static int bzip2_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    struct bzip2 b = {0};
    int r = streams_unpack(&bzip2_codec, &b, in, sink, d);

    bzip2_end(&b);
    return r;
}

/* "BZh" and a digit, then a block, or the end of a stream without one. */
static bool bzip2_is_it(const uint8_t *head, size_t len, bool whole)
{
    (void)whole;
    return len >= 10 && head[3] >= '1' && head[3] <= '9' &&
           (!memcmp(head + 4, "\x31\x41\x59\x26\x53\x59", 6) ||
            !memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6));
}

const struct unpacker unpacker_bzip2 = {"bzip2", ".bz2",      {'B', 'Z', 'h'},
                                        3,       bzip2_is_it, bzip2_run};
