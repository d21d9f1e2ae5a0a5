#include "format/kaldi/object/wave.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define PCM        1
#define EXTENSIBLE 0xfffe
#define FMT        16 /* bytes of the chunk of PCM */
#define FMT_LONG   40 /* and of EXTENSIBLE */
#define BITS       16

struct reader {
    struct kaldi_in *in;
    struct diag *d;
    uint64_t at; /* byte of the blob, <= in->size */
    bool big_endian;
};

/* Do the sizes in the headers mean "to the end of the file"? */
static bool is_endless(uint32_t riff, uint32_t data)
{
    return !riff || riff == UINT32_MAX || !data || data == UINT32_MAX ||
           data == 0x7ffff000; /* SoX */
}

static uint16_t kaldi_wave_get16(const struct reader *r, const uint8_t *p)
{
    return r->big_endian ? load_be16(p) : load_le16(p);
}

static uint32_t kaldi_wave_get32(const struct reader *r, const uint8_t *p)
{
    return r->big_endian ? load_be32(p) : load_le32(p);
}

/* The next n bytes, valid until the next call; NULL, with a message: the file ends before them. */
static const uint8_t *kaldi_wave_take(struct reader *r, size_t n, const char *what)
{
    uint64_t left = r->in->size - r->at;
    const uint8_t *p = NULL;
    size_t have;

    if (n <= left)
        p = kaldi_in_at(r->in, r->at, n, &have);
    if (!p) {
        kaldi_bad(r->in, r->at, r->d, "expected %zu bytes of %s, got %llu", n, what,
                  (unsigned long long)left);
        return NULL;
    }
    r->at += n;
    return p;
}

static int failed(const struct reader *r)
{
    return r->in->error ? r->in->error : -EBADMSG;
}

/* Skip to the next chunk of that name, and past its name and size. Like Kaldi, skips exactly the
 * bytes that a chunk states: there is no pad byte. */
static int find_chunk(struct reader *r, const char *name, uint32_t *ret_size)
{
    char what[16];

    snprintf(what, sizeof(what), "chunk \"%s\"", name);
    for (;;) {
        const uint8_t *p = kaldi_wave_take(r, 8, what);

        if (!p)
            return failed(r);
        *ret_size = kaldi_wave_get32(r, p + 4);
        if (!memcmp(p, name, 4))
            return 0;
        if (*ret_size > r->in->size - r->at)
            return kaldi_bad(r->in, r->at - 4, r->d,
                             "expected %s, got one of %u bytes and the end of the file", what,
                             *ret_size);
        r->at += *ret_size;
    }
}

/* fmt: [FMT_LONG] */
static bool is_pcm_guid(const struct reader *r, const uint8_t *fmt)
{
    return kaldi_wave_get32(r, fmt + 24) == 0x00000001 &&
           kaldi_wave_get32(r, fmt + 28) == 0x00100000 &&
           kaldi_wave_get32(r, fmt + 32) == 0xaa000080 &&
           kaldi_wave_get32(r, fmt + 36) == 0x719b3800;
}

static int check_format(const struct reader *r, const uint8_t *fmt, uint32_t size)
{
    uint64_t at = r->at - FMT;
    unsigned format = kaldi_wave_get16(r, fmt);

    if (format != PCM && format != EXTENSIBLE)
        return kaldi_bad(r->in, at, r->d, "expected PCM (format 1), got format %u%s", format,
                         format == 3                  ? ", float"
                         : format == 6 || format == 7 ? ", a-law or mu-law"
                                                      : "");
    if (size < (format == PCM ? FMT : FMT_LONG))
        return kaldi_bad(r->in, at, r->d, "expected a chunk \"fmt \" of at least %u bytes, got %u",
                         format == PCM ? FMT : FMT_LONG, size);
    return 0;
}

/* Check channels, rate and the numbers that depend on them. */
static int check_numbers(const struct reader *r, const uint8_t *fmt, struct kaldi_wave *wave)
{
    uint64_t at = r->at - FMT;
    uint32_t channels = kaldi_wave_get16(r, fmt + 2), rate = kaldi_wave_get32(r, fmt + 4),
             bits = kaldi_wave_get16(r, fmt + 14);

    if (!channels)
        return kaldi_bad(r->in, at + 2, r->d, "expected channels, got none");
    if (bits != BITS)
        return kaldi_bad(r->in, at + 14, r->d, "expected samples of 16 bits, got %u", bits);
    /* In 32 bits, as in Kaldi. */
    if (kaldi_wave_get32(r, fmt + 8) != rate * BITS / 8 * channels)
        return kaldi_bad(r->in, at + 8, r->d, "expected %u bytes per second, got %u",
                         rate * BITS / 8 * channels, kaldi_wave_get32(r, fmt + 8));
    if (kaldi_wave_get16(r, fmt + 12) != channels * BITS / 8)
        return kaldi_bad(r->in, at + 12, r->d, "expected %u bytes for all channels, got %u",
                         channels * BITS / 8, kaldi_wave_get16(r, fmt + 12));
    wave->channels = channels;
    wave->rate = rate;
    return 0;
}

/* The chunk "fmt ": r is past its size. */
static int read_format(struct reader *r, uint32_t size, struct kaldi_wave *wave)
{
    const uint8_t *fmt = kaldi_wave_take(r, FMT, "chunk \"fmt \"");
    uint64_t end = r->at - FMT + size;
    int bad;

    if (!fmt)
        return failed(r);
    bad = check_format(r, fmt, size);
    if (bad == 0)
        bad = check_numbers(r, fmt, wave);
    if (bad < 0)
        return bad;
    if (kaldi_wave_get16(r, fmt) == EXTENSIBLE) {
        r->at -= FMT;
        fmt = kaldi_wave_take(r, FMT_LONG, "chunk \"fmt \"");
        if (!fmt)
            return failed(r);
        if (kaldi_wave_get16(r, fmt + 16) < 22 || !is_pcm_guid(r, fmt))
            return kaldi_bad(r->in, r->at - FMT_LONG, r->d,
                             "expected PCM, got another kind of WAVE_FORMAT_EXTENSIBLE");
    }
    if (end > r->in->size)
        return kaldi_bad(r->in, r->at, r->d, "expected a chunk \"fmt \" of %u bytes, got %llu",
                         size, (unsigned long long)(r->in->size - (end - size)));
    r->at = end;
    return 0;
}

/* The chunk "data": r is past its size. */
static int kaldi_wave_read_data(struct reader *r, uint32_t riff, uint32_t size,
                                struct kaldi_wave *wave)
{
    uint64_t left = r->in->size - r->at, frame = wave->channels * BITS / 8, bytes = left;

    if (!is_endless(riff, size))
        bytes = min_u64(left, size / frame * frame);
    if (bytes < frame)
        return kaldi_bad(r->in, r->at, r->d, "expected samples, got %llu bytes of data",
                         (unsigned long long)bytes);
    wave->frames = bytes / frame;
    wave->data = r->at;
    wave->end = r->at + bytes;
    return 0;
}

int kaldi_wave_measure(struct kaldi_in *in, uint64_t at, struct kaldi_wave *ret, struct diag *d)
{
    struct reader r = {.in = in, .d = d, .at = min_u64(at, in->size)};
    struct kaldi_wave wave = {0};
    uint32_t riff, size = 0;
    const uint8_t *p = kaldi_wave_take(&r, 12, "a wave");
    int bad;

    if (!p)
        return failed(&r);
    wave.big_endian = r.big_endian = !memcmp(p, "RIFX", 4);
    if ((!wave.big_endian && memcmp(p, "RIFF", 4) != 0) || memcmp(p + 8, "WAVE", 4) != 0)
        return kaldi_bad(
            in, at, d, "expected \"RIFF\" or \"RIFX\", and \"WAVE\" 4 bytes after it, got others");
    riff = kaldi_wave_get32(&r, p + 4);
    bad = find_chunk(&r, "fmt ", &size);
    if (bad == 0)
        bad = read_format(&r, size, &wave);
    if (bad == 0)
        bad = find_chunk(&r, "data", &size);
    if (bad == 0)
        bad = kaldi_wave_read_data(&r, riff, size, &wave);
    if (bad == 0)
        *ret = wave;
    return bad;
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
