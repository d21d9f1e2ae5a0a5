#include "cache/pack/streams.h"

#include <errno.h>

#include "base/checked.h"

#ifndef STREAM_CHUNK
#define STREAM_CHUNK (256 * 1024)
#endif

struct streams {
    const struct stream_codec *codec;
    void *ctx;
    const struct unpack_input *in;
    struct entry_sink *sink;
    uint64_t at;      /* offset in the file of the next byte */
    size_t pos, held; /* it is packed[pos], if pos < held */
    uint8_t packed[STREAM_CHUNK];
    uint8_t out[STREAM_CHUNK];
};

/* Hold len bytes, or all that are left, from s->at on. */
static int streams_hold(struct streams *s, size_t len, struct diag *d)
{
    uint64_t left = s->in->packed->size - s->at;

    if (s->held - s->pos >= min_u64(len, left))
        return 0;
    s->pos = 0;
    s->held = (size_t)min_u64(STREAM_CHUNK, left);
    return unpack_read(s->in, s->packed, s->held, s->at, d);
}

static void streams_advance(struct streams *s, uint64_t len)
{
    s->at += len;
    s->pos = len < s->held - s->pos ? s->pos + (size_t)len : s->held;
}

int streams_cut(const char *name, const char *file, uint64_t size, struct diag *d)
{
    return diag_set(d, -EBADMSG,
                    "%s: %s data: expected its end, got the end of the file at byte %llu", file,
                    name, (unsigned long long)size);
}

/* Unpack the stream at s->at. */
static int streams_one(struct streams *s, struct diag *d)
{
    const struct blob *packed = s->in->packed;
    struct stream_step step = {0};
    int r = 0;

    while (r == 0 && !step.end) {
        r = streams_hold(s, 1, d);
        if (r < 0)
            return r;
        step = (struct stream_step){.in = s->packed + s->pos,
                                    .in_len = s->held - s->pos,
                                    .out = s->out,
                                    .out_len = STREAM_CHUNK};
        r = s->codec->step(s->ctx, &step);
        streams_advance(s, step.used);
        if (r == -EBADMSG)
            return diag_set(d, r, "%s: %s data near byte %llu: expected a valid stream, got %s",
                            blob_name(packed), s->codec->name, (unsigned long long)s->at,
                            step.why ? step.why : "damage");
        if (r == 0 && !step.end && !step.used && !step.made)
            return streams_cut(s->codec->name, blob_name(packed), packed->size, d);
        if (r == 0)
            r = entry_write(s->sink, s->out, step.made);
    }
    return r;
}

/* Unpack, or skip, what begins at s->at. */
static int streams_next(struct streams *s, struct diag *d)
{
    const struct blob *packed = s->in->packed;
    struct stream_head head = {.file = blob_name(packed),
                               .bytes = s->packed + s->pos,
                               .len = (size_t)min_u64(s->held - s->pos, STREAM_HEAD),
                               .at = s->at,
                               .left = packed->size - s->at,
                               .sink = s->sink};
    int r = s->codec->begin(s->ctx, &head, d);

    if (r == 0)
        return diag_set(d, -EBADMSG, "%s: byte %llu, after the %s data: expected %s, got %02x",
                        head.file, (unsigned long long)s->at, s->codec->name, s->codec->another,
                        *head.bytes);
    if (r < 0 || !head.skip)
        return r < 0 ? r : streams_one(s, d);
    streams_advance(s, head.skip - 1);
    r = streams_hold(s, 1, d); /* the watch hears of all bytes */
    streams_advance(s, 1);
    return r;
}

int streams_unpack(const struct stream_codec *codec, void *ctx, const struct unpack_input *in,
                   struct entry_sink *sink, struct diag *d)
{
    AUTO_FREE struct streams *s = calloc(1, sizeof(*s));
    int r = 0;

    if (!s)
        return -ENOMEM;
    s->codec = codec;
    s->ctx = ctx;
    s->in = in;
    s->sink = sink;
    while (r == 0 && s->at < in->packed->size) {
        r = streams_hold(s, STREAM_HEAD, d);
        if (r == 0 && s->at && !s->packed[s->pos])
            streams_advance(s, 1); /* padding */
        else if (r == 0)
            r = streams_next(s, d);
    }
    return r;
}
