/* WAVE audio as Kaldi reads it (feat/wave-reader.cc), little- or big-endian: it refuses what Kaldi
 * refuses, and ends where Kaldi does. Others decode audio by format/audio. */
#include "format/kaldi/object/walk.h"

#include <stdio.h>

#include "base/checked.h"

#define PCM        1
#define EXTENSIBLE 0xfffe
#define FMT        16 /* bytes of the chunk of PCM */
#define FMT_LONG   40 /* and of EXTENSIBLE */
#define BITS       16

/* Do the sizes in the headers mean "to the end of the file"? */
static bool is_endless(uint32_t riff, uint32_t data)
{
    return !riff || riff == UINT32_MAX || !data || data == UINT32_MAX ||
           data == 0x7ffff000; /* SoX */
}

static uint16_t wave_get16(const struct kaldi_object *o, const uint8_t *p)
{
    return o->store == KALDI_RIFX ? load_be16(p) : load_le16(p);
}

static uint32_t wave_get32(const struct kaldi_object *o, const uint8_t *p)
{
    return o->store == KALDI_RIFX ? load_be32(p) : load_le32(p);
}

/* Skip to the next chunk of that name, and past its name and size. Like Kaldi, skips exactly the
 * bytes that a chunk states: there is no pad byte. */
static int find_chunk(struct kaldi_walk *w, const struct kaldi_object *o, const char *name,
                      uint32_t *ret_size)
{
    char what[16];
    const uint8_t *p;
    int r;

    snprintf(what, sizeof(what), "chunk \"%s\"", name);
    while ((r = kaldi_walk_bytes(w, 8, what, &p)) == 0) {
        *ret_size = wave_get32(o, p + 4);
        if (!memcmp(p, name, 4))
            return 0;
        if (*ret_size > w->in->size - w->at)
            return kaldi_bad(w->in, w->at - 4, w->diag,
                             "expected %s, got one of %u bytes and the end of the file", what,
                             *ret_size);
        kaldi_walk_skip(w, *ret_size, 1, what);
    }
    return r;
}

/* fmt: the chunk, of that size, at byte at; [FMT], and if the size allows it [FMT_LONG] */
static int check_format(const struct kaldi_walk *w, const struct kaldi_object *o, uint64_t at,
                        const uint8_t *fmt, uint32_t size)
{
    unsigned format = wave_get16(o, fmt);

    if (format != PCM && format != EXTENSIBLE)
        return kaldi_bad(w->in, at, w->diag, "expected PCM (format 1), got format %u%s", format,
                         format == 3                  ? ", float"
                         : format == 6 || format == 7 ? ", a-law or mu-law"
                                                      : "");
    if (size < (format == PCM ? FMT : FMT_LONG))
        return kaldi_bad(w->in, at, w->diag,
                         "expected a chunk \"fmt \" of at least %u bytes, got %u",
                         format == PCM ? FMT : FMT_LONG, size);
    if (size > w->in->size - at)
        return kaldi_bad(w->in, at, w->diag, "expected a chunk \"fmt \" of %u bytes, got %llu",
                         size, (unsigned long long)(w->in->size - at));
    if (format == EXTENSIBLE &&
        (wave_get16(o, fmt + 16) < 22 || wave_get32(o, fmt + 24) != 0x00000001 ||
         wave_get32(o, fmt + 28) != 0x00100000 || wave_get32(o, fmt + 32) != 0xaa000080 ||
         wave_get32(o, fmt + 36) != 0x719b3800))
        return kaldi_bad(w->in, at, w->diag,
                         "expected PCM, got another kind of WAVE_FORMAT_EXTENSIBLE");
    return 0;
}

/* Check channels, rate and the numbers that depend on them. */
static int check_numbers(const struct kaldi_walk *w, struct kaldi_object *o, uint64_t at,
                         const uint8_t *fmt)
{
    uint32_t channels = wave_get16(o, fmt + 2), rate = wave_get32(o, fmt + 4),
             bits = wave_get16(o, fmt + 14);

    if (!channels)
        return kaldi_bad(w->in, at + 2, w->diag, "expected channels, got none");
    if (bits != BITS)
        return kaldi_bad(w->in, at + 14, w->diag, "expected samples of 16 bits, got %u", bits);
    /* In 32 bits, as in Kaldi. */
    if (wave_get32(o, fmt + 8) != rate * BITS / 8 * channels)
        return kaldi_bad(w->in, at + 8, w->diag, "expected %u bytes per second, got %u",
                         rate * BITS / 8 * channels, wave_get32(o, fmt + 8));
    if (wave_get16(o, fmt + 12) != channels * BITS / 8)
        return kaldi_bad(w->in, at + 12, w->diag, "expected %u bytes for all channels, got %u",
                         channels * BITS / 8, wave_get16(o, fmt + 12));
    o->dim[1] = channels;
    o->dim[2] = rate;
    return 0;
}

/* The chunk "fmt ": the walk is past its size. */
static int read_format(struct kaldi_walk *w, struct kaldi_object *o, uint32_t size)
{
    size_t n = size >= FMT_LONG && w->in->size - w->at >= FMT_LONG ? FMT_LONG : FMT;
    uint64_t at = w->at;
    const uint8_t *fmt;
    int r = kaldi_walk_bytes(w, n, "chunk \"fmt \"", &fmt);

    if (r == 0)
        r = check_format(w, o, at, fmt, size);
    if (r == 0)
        r = check_numbers(w, o, at, fmt);
    return r < 0 ? r : kaldi_walk_skip(w, size - n, 1, "chunk \"fmt \"");
}

/* The chunk "data": the walk is past its size. */
static int wave_samples(struct kaldi_walk *w, struct kaldi_object *o, uint32_t riff, uint32_t size)
{
    uint64_t left = w->in->size - w->at, frame = o->dim[1] * BITS / 8, bytes = left;

    if (!is_endless(riff, size))
        bytes = min_u64(left, size / frame * frame);
    if (bytes < frame)
        return kaldi_bad(w->in, w->at, w->diag, "expected samples, got %llu bytes of data",
                         (unsigned long long)bytes);
    o->dim[0] = bytes / frame;
    o->data = w->at - o->start;
    return kaldi_walk_skip(w, bytes, 1, "samples");
}

int kaldi_wave_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    uint64_t at = w->at;
    uint32_t riff, size = 0;
    const uint8_t *p;
    int r = kaldi_walk_bytes(w, 12, "a wave", &p);

    if (r < 0)
        return r;
    o->store = !memcmp(p, "RIFX", 4) ? KALDI_RIFX : KALDI_RIFF;
    if ((o->store == KALDI_RIFF && memcmp(p, "RIFF", 4) != 0) || memcmp(p + 8, "WAVE", 4) != 0)
        return kaldi_bad(
            w->in, at, w->diag,
            "expected \"RIFF\" or \"RIFX\", and \"WAVE\" 4 bytes after it, got others");
    riff = wave_get32(o, p + 4);
    r = find_chunk(w, o, "fmt ", &size);
    if (r == 0)
        r = read_format(w, o, size);
    if (r == 0)
        r = find_chunk(w, o, "data", &size);
    return r < 0 ? r : wave_samples(w, o, riff, size);
}

/* ---- writing ---- */

static void put_chunk(uint8_t *p, const char *name, uint64_t size)
{
    memcpy(p, name, 4);
    store_le32(p + 4, (uint32_t)min_u64(size, UINT32_MAX));
}

void kaldi_wave_header(unsigned channels, uint32_t rate, uint64_t frames,
                       uint8_t ret[static KALDI_WAVE_HEADER])
{
    uint32_t frame = channels * BITS / 8;
    uint64_t data;

    if (!checked_mul(frames, frame, &data) || data > UINT32_MAX - (KALDI_WAVE_HEADER - 8))
        data = UINT32_MAX;
    put_chunk(ret, "RIFF", data + KALDI_WAVE_HEADER - 8);
    memcpy(ret + 8, "WAVE", 4);
    put_chunk(ret + 12, "fmt ", FMT);
    store_le16(ret + 20, PCM);
    store_le16(ret + 22, (uint16_t)channels);
    store_le32(ret + 24, rate);
    store_le32(ret + 28, rate * frame);
    store_le16(ret + 32, (uint16_t)frame);
    store_le16(ret + 34, BITS);
    put_chunk(ret + 36, "data", data);
}
