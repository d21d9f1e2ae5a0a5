#include "cache/pack/streams.h"

#include <errno.h>

#include "base/checked.h"

#ifndef STREAM_CHUNK
#define STREAM_CHUNK (256 * 1024)
#endif

struct streams {
    const struct unpacker *unpacker;
    void *ctx;
    const struct blob *packed;
    struct unpack_watch *watch;
    struct entry_sink *sink;
    bool found;       /* a stream */
    uint64_t at;      /* offset in the file of the next byte */
    size_t pos, held; /* it is packed[pos], if pos < held */
    uint8_t in[STREAM_CHUNK];
};

/* Hold len bytes, or all that are left, from s->at on. */
static int streams_hold(struct streams *s, size_t len, struct diag *d)
{
    uint64_t left = s->packed->size - s->at;
    int r;

    if (s->held - s->pos >= min_u64(len, left))
        return 0;
    s->pos = 0;
    s->held = (size_t)min_u64(STREAM_CHUNK, left);
    r = blob_read(READ_WAITS, s->packed, s->in, s->held, s->at, d);
    if (r == 0 && s->watch)
        s->watch->progress(s->watch, s->packed, s->at + s->held);
    return r;
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
    const char *name = s->unpacker->name, *file = blob_name(s->packed);
    struct stream_step step = {0};
    int r = 0;

    s->found = true;
    while (r == 0 && !step.end) {
        r = streams_hold(s, 1, d);
        step = (struct stream_step){.in = s->in + s->pos, .in_len = s->held - s->pos};
        if (r == 0)
            r = entry_room(s->sink, &step.out, &step.out_len);
        if (r < 0)
            return r;
        r = s->unpacker->step(s->ctx, &step);
        streams_advance(s, step.used);
        if (r == -EBADMSG)
            return diag_set(d, r, "%s: %s data near byte %llu: expected a valid stream, got %s",
                            file, name, (unsigned long long)s->at, step.why ? step.why : "damage");
        if (r == 0 && !step.end && !step.used && !step.made)
            return streams_cut(name, file, s->packed->size, d);
        if (r == 0)
            entry_made(s->sink, step.made);
    }
    return r;
}

/* Unpack, or skip, what begins at s->at. */
static int streams_next(struct streams *s, struct diag *d)
{
    struct stream_head head = {.file = blob_name(s->packed),
                               .bytes = s->in + s->pos,
                               .len = (size_t)min_u64(s->held - s->pos, STREAM_HEAD),
                               .at = s->at,
                               .left = s->packed->size - s->at,
                               .sink = s->sink};
    int r = s->unpacker->begin(s->ctx, &head, d);

    if (r == 0)
        return diag_set(d, -EBADMSG, "%s: byte %llu, after the %s data: expected %s, got %02x",
                        head.file, (unsigned long long)s->at, s->unpacker->name,
                        s->unpacker->another, *head.bytes);
    if (r < 0 || !head.skip)
        return r < 0 ? r : streams_one(s, d);
    streams_advance(s, head.skip - 1);
    r = streams_hold(s, 1, d); /* the watch hears of all bytes */
    streams_advance(s, 1);
    return r;
}

static void streams_free(struct streams **s)
{
    if (*s && (*s)->ctx)
        (*s)->unpacker->close((*s)->ctx);
    free(*s);
}

int streams_unpack(const struct unpacker *unpacker, const struct blob *packed,
                   struct unpack_watch *watch, struct entry_sink *sink, struct diag *d)
{
    AUTO(streams_free) struct streams *s = calloc(1, sizeof(*s));
    int r = 0;

    if (!s)
        return -ENOMEM;
    s->unpacker = unpacker;
    s->ctx = unpacker->open();
    if (!s->ctx)
        return -ENOMEM;
    s->packed = packed;
    s->watch = watch;
    s->sink = sink;
    while (r == 0 && s->at < packed->size) {
        r = streams_hold(s, STREAM_HEAD, d);
        if (r == 0 && s->at && !s->in[s->pos])
            streams_advance(s, 1); /* padding */
        else if (r == 0)
            r = streams_next(s, d);
    }
    if (r == 0 && !s->found && unpacker->nothing)
        return diag_set(d, -EBADMSG, "%s: %s", blob_name(packed), unpacker->nothing);
    return r;
}
