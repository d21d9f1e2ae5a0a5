/* Waves as Kaldi reads them (K-n: case numbers), the header that it writes, and every truncation
 * and changed byte in both byte orders. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"
#include "base/text.h"
#include "format/kaldi/object/object.h"
#include "support/memory_blob.h"
#include "support/unit.h"

/* ---- a writer ---- */

struct writer {
    struct text t;
    bool big_endian;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    text_add_bytes(&w->t, bytes, n);
}

static void put_number(struct writer *w, uint32_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        put(w, &(uint8_t){(uint8_t)(v >> 8 * (w->big_endian ? bytes - 1 - i : i))}, 1);
}

static void put_chunk(struct writer *w, const char *name, uint32_t size)
{
    put(w, name, 4);
    put_number(w, size, 4);
}

/* The numbers of a header. */
struct head {
    uint32_t riff, fmt, format, channels, rate, byte_rate, align, bits, extra, guid, data;
};

static const struct head mono = {.riff = 36 + 8,
                                 .fmt = 16,
                                 .format = 1,
                                 .channels = 1,
                                 .rate = 8000,
                                 .byte_rate = 16000,
                                 .align = 2,
                                 .bits = 16,
                                 .extra = 22,
                                 .guid = 1,
                                 .data = 8};

static void put_riff(struct writer *w, const struct head *h)
{
    put_chunk(w, w->big_endian ? "RIFX" : "RIFF", h->riff);
    put(w, "WAVE", 4);
}

static void put_fmt(struct writer *w, const struct head *h)
{
    put_chunk(w, "fmt ", h->fmt);
    put_number(w, h->format, 2);
    put_number(w, h->channels, 2);
    put_number(w, h->rate, 4);
    put_number(w, h->byte_rate, 4);
    put_number(w, h->align, 2);
    put_number(w, h->bits, 2);
    if (h->format != 0xfffe)
        return;
    put_number(w, h->extra, 2);
    put_number(w, 16, 2);
    put_number(w, 3, 4);
    put_number(w, h->guid, 4);
    put_number(w, 0x00100000, 4);
    put_number(w, 0xaa000080, 4);
    put_number(w, 0x719b3800, 4);
}

/* Header, then a chunk "data" with n bytes. */
static struct text wave(const struct head *h, bool big_endian, size_t n)
{
    struct writer w = {.big_endian = big_endian};

    put_riff(&w, h);
    put_fmt(&w, h);
    put_chunk(&w, "data", h->data);
    for (size_t i = 0; i < n; i++)
        put(&w, "s", 1);
    return w.t;
}

/* ---- measuring ---- */

/* What a wave is: its samples and its end as bytes of the file. */
struct kaldi_wave {
    bool big_endian;
    uint64_t channels, rate, frames, data, end;
};

/* Measure in a file that has the bytes, then zeros up to size. window: bytes from at on that the
 * window already holds, from which it then grows; 0: none. */
static int measure_in(const struct text *bytes, uint64_t size, uint64_t at, size_t window,
                      struct kaldi_wave *ret, struct diag *d)
{
    size_t len = (size_t)min_u64(size, bytes->len);
    AUTO_BLOB struct blob *blob = memory_blob_new("a.wav", bytes->data, len, size, NULL);
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object o;
    int r;

    assert_non_null(blob);
    kaldi_in_init(&in, blob);
    if (window && at < len) {
        in.window.have = in.window.capacity = (size_t)min_u64(window, len - at);
        in.window.start = at;
        in.window.least = 1;
        in.window.bytes = malloc(in.window.capacity);
        memcpy(in.window.bytes, bytes->data + at, in.window.capacity);
    }
    r = kaldi_measure(&in, at, KALDI_WAVE, &o, d);
    if (r < 0)
        return r;
    assert_int_equal(o.type, KALDI_WAVE);
    *ret = (struct kaldi_wave){o.store == KALDI_RIFX, o.dim[1],  o.dim[2], o.dim[0],
                               at + o.data,           at + o.len};
    return 0;
}

/* Takes the bytes. */
static struct kaldi_wave measured(struct text bytes)
{
    struct kaldi_wave found = {0};
    struct diag d = DIAG_INIT;

    for (size_t window = 0; window < 50; window++)
        if (measure_in(&bytes, bytes.len, 0, window, &found, &d) < 0)
            fail_msg("%s", d.text);
    text_release(&bytes);
    return found;
}

#define assert_wave(bytes, n_frames, data_at, end_at)                                              \
    do {                                                                                           \
        struct kaldi_wave found_wave = measured(bytes);                                            \
                                                                                                   \
        assert_int_equal(found_wave.frames, n_frames);                                             \
        assert_int_equal(found_wave.data, data_at);                                                \
        assert_int_equal(found_wave.end, end_at);                                                  \
    } while (0)

/* Takes the bytes. */
#define assert_bad(bytes, piece)                                                                   \
    do {                                                                                           \
        struct text bad = bytes;                                                                   \
        struct kaldi_wave untouched = {.end = 77};                                                 \
        struct diag d_ = DIAG_INIT;                                                                \
                                                                                                   \
        assert_int_equal(measure_in(&bad, bad.len, 0, 0, &untouched, &d_), -EBADMSG);              \
        assert_diag_has(&d_, piece);                                                               \
        assert_diag_has(&d_, "a.wav: byte ");                                                      \
        assert_int_equal(untouched.end, 77);                                                       \
        text_release(&bad);                                                                        \
    } while (0)

UNIT_TEST(test_wave__plain__measured)
{
    struct head stereo = mono;
    struct kaldi_wave found;

    stereo.channels = 2;
    stereo.byte_rate = 32000;
    stereo.align = 4;
    found = measured(wave(&stereo, false, 8));
    assert_false(found.big_endian);
    assert_int_equal(found.channels, 2);
    assert_int_equal(found.rate, 8000);
    assert_int_equal(found.frames, 2);
    found = measured(wave(&mono, true, 8));
    assert_true(found.big_endian);
    assert_int_equal(found.channels, 1);
    assert_int_equal(found.rate, 8000);
    assert_int_equal(found.frames, 4);
    assert_wave(wave(&mono, true, 8), 4, 44, 52);
}

UNIT_TEST(test_wave__in_an_archive__measured_from_there)
{
    AUTO_TEXT struct text t = wave(&mono, false, 8);
    AUTO_TEXT struct text file = {0};
    struct kaldi_wave found;
    struct kaldi_object object;
    struct diag d = DIAG_INIT;

    text_add(&file, "key ");
    text_add_bytes(&file, t.data, t.len);
    text_add(&file, "key2 ");
    assert_int_equal(measure_in(&file, file.len, 4, 3, &found, &d), 0);
    assert_int_equal(found.data, 48);
    assert_int_equal(found.end, 56);

    AUTO_BLOB struct blob *blob = memory_blob_new("a.ark", file.data, file.len, file.len, NULL);
    AUTO_KALDI_IN struct kaldi_in in = {0};

    kaldi_in_init(&in, blob);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(kaldi_measure(&in, 4, k ? KALDI_WAVE : KALDI_UNKNOWN, &object, &d), 0);
        assert_int_equal(object.type, KALDI_WAVE);
        assert_int_equal(object.store, KALDI_RIFF);
        assert_int_equal(object.start, 4);
        assert_int_equal(object.len, 52);
        assert_int_equal(object.dim[0], 4);
        assert_int_equal(object.dim[1], 1);
        assert_int_equal(object.dim[2], 8000);
    }
}

/* K-80, K-82, K-83 */
UNIT_TEST(test_wave__sizes_that_do_not_fit)
{
    struct head h = mono;

    assert_wave(wave(&mono, false, 20), 4, 44, 52); /* others follow */
    assert_wave(wave(&mono, false, 8), 4, 44, 52);
    assert_wave(wave(&mono, false, 5), 2, 44, 49); /* shorter than it states */
    assert_bad(wave(&mono, false, 1), "byte 44: expected samples, got 1 bytes of data");
    assert_bad(wave(&mono, false, 0), "expected samples, got 0 bytes of data");
    h.data = 9; /* a sample and a half at its end */
    assert_wave(wave(&h, false, 20), 4, 44, 52);
    h.data = 1;
    assert_bad(wave(&h, false, 20), "expected samples, got 0 bytes of data");
    h.data = 0xfffffffe;
    assert_wave(wave(&h, false, 20), 10, 44, 64);
    h = mono;
    h.riff = 5;
    assert_wave(wave(&h, false, 20), 4, 44, 52);
}

/* K-81 */
UNIT_TEST(test_wave__endless__to_the_end_of_the_file)
{
    static const uint32_t riff[] = {0, 0xffffffff}, data[] = {0, 0xffffffff, 0x7ffff000};
    struct head h;

    for (size_t i = 0; i < ARRAY_LEN(riff); i++) {
        h = mono;
        h.riff = riff[i];
        assert_wave(wave(&h, i, 21), 10, 44, 65);
        assert_bad(wave(&h, i, 0), "expected samples, got 0 bytes");
    }
    for (size_t i = 0; i < ARRAY_LEN(data); i++) {
        h = mono;
        h.data = data[i];
        assert_wave(wave(&h, i, 21), 10, 44, 65);
    }
}

/* The size that SoX writes if it does not know it. */
UNIT_TEST(test_wave__sox_size_in_a_larger_file__to_its_end)
{
    struct head h = mono;
    struct kaldi_wave found;

    h.data = 0x7ffff000;
    AUTO_TEXT struct text t = wave(&h, false, 0);
    assert_int_equal(measure_in(&t, UINT64_C(1) << 33, 0, 0, &found, NULL), 0);
    assert_int_equal(found.end, UINT64_C(1) << 33);
    t.data[40] = 4; /* one byte of its size */
    assert_int_equal(measure_in(&t, UINT64_C(1) << 33, 0, 0, &found, NULL), 0);
    assert_int_equal(found.end, 44 + 0x7ffff004);
}

UNIT_TEST(test_wave__other_chunks__skipped_without_pad)
{
    struct head h = mono;
    struct writer w = {0};

    h.fmt = 19; /* 3 bytes more than it needs */
    put_riff(&w, &h);
    put_chunk(&w, "JUNK", 3);
    put(&w, "123", 3);
    put_fmt(&w, &h);
    put(&w, "123", 3);
    put_chunk(&w, "fact", 4);
    put(&w, "1234", 4);
    put_chunk(&w, "LIST", 0);
    put_chunk(&w, "data", 8);
    put(&w, "12345678", 8);
    assert_wave(w.t, 4, 78, 86);
    w = (struct writer){0};
    put_riff(&w, &mono);
    put_chunk(&w, "JUNK", 3);
    put(&w, "123\0", 4); /* a pad byte, which Kaldi does not know */
    put_fmt(&w, &mono);
    put_chunk(&w, "data", 8);
    put(&w, "12345678", 8);
    assert_bad(w.t, "expected chunk \"fmt \", got one of");
}

UNIT_TEST(test_wave__chunk_missing__ebadmsg)
{
    struct writer w = {0};

    put_riff(&w, &mono);
    assert_bad(w.t, "byte 12: expected 8 bytes of chunk \"fmt \", got 0");
    w = (struct writer){0};
    put_riff(&w, &mono);
    put_fmt(&w, &mono);
    put_chunk(&w, "LIST", 0xffffffff);
    assert_bad(w.t, "byte 40: expected chunk \"data\", got one of 4294967295 bytes");
    w = (struct writer){0};
    put_riff(&w, &mono);
    put_chunk(&w, "fmt ", 16);
    put(&w, "123", 3);
    assert_bad(w.t, "expected 16 bytes of chunk \"fmt \", got 3");
    w = (struct writer){0};
    put_riff(&w, &mono);
    put_fmt(&w, &(struct head){1, 99, 1, 1, 8000, 16000, 2, 16, 0, 0, 0});
    put(&w, "123", 3);
    assert_bad(w.t, "expected a chunk \"fmt \" of 99 bytes, got 19");
}

UNIT_TEST(test_wave__no_wave__ebadmsg)
{
    static const char *const starts[] = {"RIFF1234AVI ", "riff1234WAVE", "RIFG1234WAVE",
                                         "OggS1234WAVE"};

    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        struct text t = {0};

        text_add_bytes(&t, starts[i], 12);
        assert_bad(t, "byte 0: expected \"RIFF\" or \"RIFX\"");
    }
}

/* K-84 */
UNIT_TEST(test_wave__not_16_bit_pcm__ebadmsg)
{
    const struct {
        size_t field; /* of head */
        uint32_t value;
        const char *piece;
    } cases[] = {
        {offsetof(struct head, format), 3, "expected PCM (format 1), got format 3, float"},
        {offsetof(struct head, format), 6, "got format 6, a-law or mu-law"},
        {offsetof(struct head, format), 7, "got format 7, a-law or mu-law"},
        {offsetof(struct head, format), 17, "got format 17"},
        {offsetof(struct head, fmt), 14, "byte 20: expected a chunk \"fmt \" of at least 16 bytes"},
        {offsetof(struct head, bits), 8, "byte 34: expected samples of 16 bits, got 8"},
        {offsetof(struct head, bits), 24, "expected samples of 16 bits, got 24"},
        {offsetof(struct head, channels), 0, "byte 22: expected channels, got none"},
        {offsetof(struct head, channels), 2, "byte 28: expected 32000 bytes per second, got 16000"},
        {offsetof(struct head, byte_rate), 1, "expected 16000 bytes per second, got 1"},
        {offsetof(struct head, align), 4, "byte 32: expected 2 bytes for all channels, got 4"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct head h = mono;

        memcpy((char *)&h + cases[i].field, &cases[i].value, 4);
        assert_bad(wave(&h, false, 8), cases[i].piece);
        assert_bad(wave(&h, true, 8), cases[i].piece);
    }
}

UNIT_TEST(test_wave__extensible)
{
    struct head h = mono;

    h.format = 0xfffe;
    h.fmt = 40;
    assert_wave(wave(&h, false, 8), 4, 68, 76);
    assert_wave(wave(&h, true, 8), 4, 68, 76);
    h.guid = 3; /* float */
    assert_bad(wave(&h, false, 8), "expected PCM, got another kind of WAVE_FORMAT_EXTENSIBLE");
    h.guid = 1;
    h.extra = 21;
    assert_bad(wave(&h, false, 8), "another kind of WAVE_FORMAT_EXTENSIBLE");
    h.extra = 22;
    h.fmt = 39;
    assert_bad(wave(&h, false, 8), "expected a chunk \"fmt \" of at least 40 bytes, got 39");
}

UNIT_TEST(test_wave__cut_or_changed__never_outside)
{
    struct head h = mono;

    h.format = 0xfffe;
    h.fmt = 40;
    AUTO_TEXT struct text t = wave(&h, false, 8);
    for (size_t size = 0; size < t.len; size++) {
        struct kaldi_wave found;
        struct diag d = DIAG_INIT;
        int r = measure_in(&t, size, 0, 1, &found, &d);

        assert_int_equal(r, size < 70 ? -EBADMSG : 0);
        if (r < 0)
            assert_diag_has(&d, "got ");
    }
    for (size_t at = 0; at < t.len * 8; at++) {
        struct kaldi_wave found;
        struct diag d = DIAG_INIT;

        t.data[at / 8] ^= (char)(1 << at % 8);
        if (measure_in(&t, t.len, 0, 1, &found, &d) == 0) {
            assert_true(found.frames > 0 && found.end <= t.len);
            assert_true(found.data + found.frames * found.channels * 2 <= found.end);
        }
        t.data[at / 8] ^= (char)(1 << at % 8);
    }
}

/* K-85 */
UNIT_TEST(test_header__as_kaldi_writes_it)
{
    AUTO_TEXT struct text t = wave(&mono, false, 8);
    uint8_t header[KALDI_WAVE_HEADER];

    kaldi_wave_header(1, 8000, 4, header);
    assert_memory_equal(header, t.data, sizeof(header));
}

UNIT_TEST(test_header__stereo__reads_back)
{
    struct text t = {0};
    uint8_t header[KALDI_WAVE_HEADER];
    struct kaldi_wave found;

    kaldi_wave_header(2, 44100, 3, header);
    text_add_bytes(&t, (char *)header, sizeof(header));
    text_add_bytes(&t, "123456789abcdefgh", 17);
    found = measured(t);
    assert_int_equal(found.channels, 2);
    assert_int_equal(found.rate, 44100);
    assert_int_equal(found.frames, 3);
    assert_int_equal(found.end, 56);
}

UNIT_TEST(test_header__too_long__endless)
{
    static const uint64_t frames[] = {2147483630, UINT64_C(1) << 40, UINT64_MAX};
    uint8_t header[KALDI_WAVE_HEADER];

    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        kaldi_wave_header(1, 8000, frames[i], header);
        assert_memory_equal(header + 4, "\xff\xff\xff\xff", 4);
        assert_memory_equal(header + 40, "\xff\xff\xff\xff", 4);
    }
    kaldi_wave_header(1, 8000, 2147483629, header);
    assert_memory_equal(header + 4, "\xfe\xff\xff\xff", 4);
    assert_memory_equal(header + 40, "\xda\xff\xff\xff", 4);
}
