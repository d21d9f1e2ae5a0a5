/* Files of audio that libsndfile writes here: lengths, arrays, rates; those that are cut, and those
 * that are none. */
#include <errno.h>
#include <math.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/audio/audio.h"
#include "support/unit.h"

#define MOST (UINT64_C(1) << 21)

struct bytes {
    uint8_t data[MOST];
    uint64_t size, at, reads;
};

static sf_count_t size_of(void *ctx)
{
    return (sf_count_t)((struct bytes *)ctx)->size;
}

static sf_count_t seek(sf_count_t off, int whence, void *ctx)
{
    struct bytes *b = ctx;

    b->at = (uint64_t)(off + (whence == SEEK_CUR   ? (sf_count_t)b->at
                              : whence == SEEK_END ? (sf_count_t)b->size
                                                   : 0));
    return (sf_count_t)b->at;
}

static sf_count_t tell(void *ctx)
{
    return (sf_count_t)((struct bytes *)ctx)->at;
}

static sf_count_t get(void *dst, sf_count_t n, void *ctx)
{
    struct bytes *b = ctx;
    uint64_t some = min_u64((uint64_t)n, b->size - min_u64(b->at, b->size));

    memcpy(dst, b->data + b->at, some);
    b->at += some;
    return (sf_count_t)some;
}

static sf_count_t put(const void *src, sf_count_t n, void *ctx)
{
    struct bytes *b = ctx;

    assert_true(b->at + (uint64_t)n <= MOST);
    memcpy(b->data + b->at, src, (size_t)n);
    b->at += (uint64_t)n;
    b->size = max_u64(b->size, b->at);
    return n;
}

static int get_bytes(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d)
{
    struct bytes *b = ctx;

    (void)d;
    assert_true(off <= b->size && len <= b->size - off);
    memcpy(dst, b->data + off, len);
    b->reads += len;
    return 0;
}

static float wave(uint64_t frame, int channel)
{
    return (float)(0.4 * sin((double)frame * 0.03 * (channel + 1)) +
                   0.1 * cos((double)frame * 0.7));
}

static void write_sound(struct bytes *b, int format, int rate, int channels, int frames)
{
    SF_VIRTUAL_IO io = {size_of, seek, get, put, tell};
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    SNDFILE *sound;

    b->size = b->at = b->reads = 0;
    sound = sf_open_virtual(&io, SFM_WRITE, &info, b);
    assert_non_null(sound);
    for (int i = 0; i < frames; i++) {
        float x[8];

        for (int c = 0; c < channels; c++)
            x[c] = wave((uint64_t)i, c);
        assert_int_equal(sf_writef_float(sound, x, 1), 1);
    }
    sf_close(sound);
}

static struct audio_file file_of(struct bytes *b)
{
    return (struct audio_file){"a file", b->size, get_bytes, b};
}

/* The array of a file, which the caller frees. */
static float *make(struct bytes *b, const char *text, struct audio_info *info, uint64_t *ret_made)
{
    struct audio_file file = file_of(b);
    struct audio_spec spec;
    struct diag d = DIAG_INIT;
    float *array;

    assert_true(audio_spec_parse(text, &spec));
    assert_int_equal(audio_measure(&file, info, &d), 0);
    *ret_made = audio_made_frames(&spec, info->frames, info->rate);
    array = calloc(*ret_made * info->channels + 1, sizeof(*array));
    assert_int_equal(
        audio_make(&file, &spec, info, &(struct audio_part){0, info->frames, 0}, array, &d), 0);
    return array;
}

UNIT_TEST(test_spec__texts)
{
    static const struct {
        const char *text;
        bool good;
        struct audio_spec spec;
    } row[] = {
        {"16000", true, {16000, false, false}},
        {"16000:mono", true, {16000, true, false}},
        {"8000:mono:medium", true, {8000, true, true}},
        {"44100:medium", true, {44100, false, true}},
        {"native", true, {0, false, false}},
        {"native:mono", true, {0, true, false}},
        {"native:medium", false, {0}},
        {"native:mono:medium", false, {0}},
        {"999", false, {0}},
        {"384001", false, {0}},
        {"016000", false, {0}},
        {"16k", false, {0}},
        {"", false, {0}},
        {":mono", false, {0}},
        {"16000:mono:", false, {0}},
        {"16000:monofast", false, {0}},
        {"4294983296", false, {0}},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct audio_spec spec = {0};

        assert_int_equal(audio_spec_parse(row[i].text, &spec), row[i].good);
        assert_memory_equal(&spec, &row[i].spec, sizeof(spec));
    }
}

UNIT_TEST(test_make__formats)
{
    static const struct {
        int format, rate, channels, frames;
        float within;
    } row[] = {
        {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 3520, 2.0f / 32768},
        {SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 8000, 2, 999, 2.0f / 128},
        {SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 1, 100, 0},
        {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 0, 0},
        {SF_FORMAT_AIFF | SF_FORMAT_PCM_24, 44100, 2, 4410, 1e-6f},
        {SF_FORMAT_AU | SF_FORMAT_PCM_16, 8000, 1, 4000, 2.0f / 32768},
        {SF_FORMAT_NIST | SF_FORMAT_PCM_16, 16000, 1, 1600, 2.0f / 32768},
        {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 48000, 2, 20000, 2.0f / 32768},
        {SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 1, 44100, 0.1f},
        {SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 1, 48000, 1.0f},
    };
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct audio_info info;
        uint64_t made;
        float *array, *mono;

        write_sound(b, row[i].format, row[i].rate, row[i].channels, row[i].frames);
        array = make(b, "native", &info, &made);
        assert_int_equal(made, row[i].frames);
        assert_int_equal(info.rate, row[i].rate);
        assert_int_equal(info.channels, row[i].channels);
        assert_false(info.is_cut);
        mono = make(b, "native:mono", &info, &made);
        for (uint64_t k = 0; k < made; k++) {
            double sum = 0;

            for (int c = 0; c < row[i].channels; c++) {
                float x = array[(uint64_t)c * made + k];

                assert_true(fabsf(x - wave(k, c)) <= row[i].within + 1e-7f);
                sum += (double)x;
            }
            assert_true(mono[k] == (float)(sum / row[i].channels));
        }
        free(array);
        free(mono);
    }
    free(b);
}

/* What is read of a long file for its length is little. */
UNIT_TEST(test_measure__reads_ends)
{
    static const int format[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                 SF_FORMAT_FLAC | SF_FORMAT_PCM_16};
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(format); i++) {
        struct audio_file file;
        struct audio_info info;

        write_sound(b, format[i], 16000, 1, 400000);
        file = file_of(b);
        assert_int_equal(audio_measure(&file, &info, NULL), 0);
        assert_int_equal(info.frames, 400000);
        assert_in_range(b->reads, 1, 100000);
    }
    free(b);
}

/* src_simple() alone, as docs/spec/audio.md has it. */
static float *resampled(const float *in, uint64_t frames, uint32_t rate, uint32_t to, uint64_t made)
{
    uint64_t zeros = 64 + rate / to;
    float *padded = calloc(frames + zeros, sizeof(*padded)), *ret = calloc(made, sizeof(*ret));
    SRC_DATA data = {.data_in = padded,
                     .data_out = ret,
                     .input_frames = (long)(frames + zeros),
                     .output_frames = (long)made,
                     .src_ratio = (double)to / rate};

    memcpy(padded, in, frames * sizeof(*in));
    assert_int_equal(src_simple(&data, SRC_SINC_BEST_QUALITY, 1), 0);
    free(padded);
    return ret;
}

/* Equal bit by bit, also where it is made in parts. */
UNIT_TEST(test_make__rates)
{
    static const struct {
        int rate, frames;
        const char *to;
        uint64_t made;
    } row[] = {
        {22050, 44100, "16000:mono", 32000},  {44100, 1, "16000:mono", 1},
        {8000, 2400, "16000:mono", 4800},     {48000, 3000, "16000:mono", 1000},
        {48000, 100001, "16000:mono", 33334}, {48000, 96000, "8000:mono", 16000},
        {32000, 40000, "16000:mono", 20000},  {16000, 500, "16000:mono", 500},
    };
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        uint32_t to = (uint32_t)strtoul(row[i].to, NULL, 10);
        struct audio_info info;
        uint64_t made, frames;
        float *array, *native, *reference;

        write_sound(b, SF_FORMAT_WAV | SF_FORMAT_PCM_16, row[i].rate, 1, row[i].frames);
        native = make(b, "native:mono", &info, &frames);
        array = make(b, row[i].to, &info, &made);
        assert_int_equal(made, row[i].made);
        if (to != info.rate) {
            reference = resampled(native, frames, info.rate, to, made);
            assert_memory_equal(array, reference, made * sizeof(*array));
            free(reference);
        }
        free(array);
        free(native);
    }
    free(b);
}

/* A part is that part of the whole, whatever comes before it, and one channel of it. Where a
 * decoder can begin anywhere, little else is read. */
UNIT_TEST(test_make__part)
{
    static const struct {
        int format, rate, channels;
        bool begins_anywhere;
    } rows[] = {
        {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, true},
        {SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 16000, 2, true},
        {SF_FORMAT_WAV | SF_FORMAT_PCM_24, 16000, 2, true},
        {SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 3, true},
        {SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 8000, 1, true},
        {SF_FORMAT_WAV | SF_FORMAT_GSM610, 8000, 1, false},
        {SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, 2, false},
        {SF_FORMAT_OGG | SF_FORMAT_OPUS, 16000, 1, false},
        {SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 44100, 2, false},
        {SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 16000, 1, false},
    };
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct audio_spec spec = {0};
        struct audio_info info;
        struct audio_file file;
        uint64_t made;
        float *all, some[3 * 100];

        write_sound(b, rows[i].format, rows[i].rate, rows[i].channels,
                    rows[i].begins_anywhere ? 150000 : 60000);
        all = make(b, "native", &info, &made);
        file = file_of(b);
        for (uint64_t first = 1; first < 59000; first += 7919)
            for (uint32_t channel = 0; channel <= info.channels; channel++) {
                struct audio_info found = {.rate = info.rate,
                                           .channels = channel ? 1 : info.channels};
                struct audio_part part = {first, 100, channel};

                b->reads = 0;
                assert_int_equal(audio_make(&file, &spec, &found, &part, some, NULL), 0);
                for (uint32_t c = 0; c < found.channels; c++)
                    if (memcmp(some + c * 100, all + (channel ? channel - 1 : c) * made + first,
                               100 * sizeof(*some)) != 0)
                        fail_msg("row %zu, frame %llu, channel %u", i, (unsigned long long)first,
                                 channel);
                if (rows[i].begins_anywhere && b->reads > b->size / 2)
                    fail_msg("row %zu: %llu of %llu bytes are read", i,
                             (unsigned long long)b->reads, (unsigned long long)b->size);
            }
        free(all);
    }
    free(b);
}

/* A part that the file has not: its end is missing, or another channel, or another rate. */
UNIT_TEST(test_make__no_such_part)
{
    static const struct {
        struct audio_part part;
        uint32_t rate, channels;
    } rows[] = {
        {{29950, 100, 0}, 8000, 2}, {{30000, 1, 0}, 8000, 2}, {{1 << 30, 1, 0}, 8000, 2},
        {{0, 100, 3}, 8000, 1},     {{0, 100, 1}, 16000, 1},  {{0, 100, 0}, 8000, 1},
    };
    static const int formats[] = {SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                                  SF_FORMAT_OGG | SF_FORMAT_VORBIS};
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(formats); i++) {
        size_t row = i % ARRAY_LEN(rows);
        struct audio_info info = {.rate = rows[row].rate, .channels = rows[row].channels};
        struct audio_spec spec = {0};
        struct audio_file file;
        float some[200];

        write_sound(b, formats[i / ARRAY_LEN(rows)], 8000, 2, 30000);
        file = file_of(b);
        if (audio_make(&file, &spec, &info, &rows[row].part, some, NULL) != -EBADMSG)
            fail_msg("row %zu", i);
    }
    free(b);
}

/* The frames that can be decoded, and that it is cut. */
UNIT_TEST(test_measure__cut)
{
    static const struct {
        int format, frames;
    } row[] = {
        {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 3520},   {SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 3520},
        {SF_FORMAT_AU | SF_FORMAT_PCM_16, 3520},    {SF_FORMAT_NIST | SF_FORMAT_PCM_16, 3520},
        {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 60000}, {SF_FORMAT_OGG | SF_FORMAT_VORBIS, 200000},
    };
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct audio_info info;
        uint64_t made;

        write_sound(b, row[i].format, 16000, 1, row[i].frames);
        b->size = b->size * 3 / 4;
        free(make(b, "native", &info, &made)); /* all of them can be decoded */
        assert_true(info.is_cut);
        assert_in_range(info.frames, row[i].frames / 4, row[i].frames * 3 / 4);
    }
    free(b);
}

/* A size of 0 that a pipe has left stands for all that follows, except other chunks. */
UNIT_TEST(test_measure__wav_data_of_size_0)
{
    static const struct {
        uint32_t riff;
        const char *data;
        uint64_t frames;
    } row[] = {
        {0, NULL, 1000},
        {36 + 2000, NULL, 1000},
        {0, "LIST\4\0\0\0abcd", 0},
        {0, "LIST\5\0\0\0abcd", 6}, /* no chunk of this file */
        {0, "LIST", 2},
    };
    struct bytes *b = malloc(sizeof(*b));

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct audio_info info;
        uint64_t made;

        write_sound(b, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 1000);
        store_le32(b->data + 4, row[i].riff);
        store_le32(b->data + 40, 0);
        if (row[i].data) {
            b->size = 44 + (row[i].frames ? row[i].frames * 2 : 12);
            memcpy(b->data + 44, row[i].data, b->size - 44);
        }
        free(make(b, "native", &info, &made));
        assert_int_equal(made, row[i].frames);
        assert_false(info.is_cut);
    }
    free(b);
}

/* Foreign bytes after the pages, more than are looked at, say nothing about the sound. */
UNIT_TEST(test_measure__ogg_with_a_long_end__is_whole)
{
    struct bytes *b = malloc(sizeof(*b));
    struct audio_info info;
    uint64_t made;

    write_sound(b, SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, 1, 20000);
    memset(b->data + b->size, 'x', 200000);
    b->size += 200000;
    free(make(b, "native", &info, &made));
    assert_int_equal(info.frames, 20000);
    assert_false(info.is_cut);
    free(b);
}

/* A header of an mp3 that says more frames than its bytes can be; silence. */
UNIT_TEST(test_measure__mp3_says_too_many)
{
    enum { FRAME = 104, FRAMES = 10 };
    struct bytes *b = calloc(1, sizeof(*b));
    uint8_t *tag = b->data + 4 + 17;

    for (uint64_t said = FRAMES; said <= 100 * FRAMES; said *= 100) {
        struct audio_info info;
        uint64_t made;

        b->size = (FRAMES + 1) * FRAME;
        for (uint64_t i = 0; i <= FRAMES; i++)
            memcpy(b->data + i * FRAME, "\xff\xfb\x10\xc4", 4);
        memcpy(tag, "Xing\0\0\0\3", 8);
        store_be32(tag + 8, (uint32_t)said);
        store_be32(tag + 12, (uint32_t)b->size);
        free(make(b, "native", &info, &made));
        assert_in_range(info.frames, (FRAMES - 1) * 1152,
                        FRAMES * 1152); /* but the decoder's delay */
        assert_int_equal(info.is_cut, said > FRAMES);
    }
    free(b);
}

UNIT_TEST(test_make__rates_too_far_apart)
{
    struct bytes *b = malloc(sizeof(*b));
    struct diag d = DIAG_INIT;
    const struct audio_spec spec = {16000, true, false};
    struct audio_file file;
    struct audio_info info;
    AUTO_FREE float *array = NULL;

    write_sound(b, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 40, 1, 100);
    file = file_of(b);
    assert_int_equal(audio_measure(&file, &info, &d), 0);
    array = calloc(audio_made_frames(&spec, info.frames, info.rate), sizeof(*array));
    assert_int_equal(
        audio_make(&file, &spec, &info, &(struct audio_part){0, info.frames, 0}, array, &d),
        -EOPNOTSUPP);
    assert_diag_has(&d, "a file: expected a rate from 1/256 to 256 times 16000, got 40");
    free(b);
}

UNIT_TEST(test_measure__sizes_of_a_pipe)
{
    struct bytes *b = malloc(sizeof(*b));
    struct audio_info info;
    uint64_t made;

    write_sound(b, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 1000);
    store_le32(b->data + 4, UINT32_MAX);
    store_le32(b->data + 40, UINT32_MAX);
    free(make(b, "native", &info, &made));
    assert_int_equal(made, 1000);
    assert_false(info.is_cut);
    free(b);
}

UNIT_TEST(test_measure__no_audio)
{
    static const char *const text[] = {"",
                                       "text",
                                       "RIFF",
                                       "RIFF....WAVEfmt ",
                                       "fLaC",
                                       "OggS",
                                       "\xff\xfb\x90\x64",
                                       "ID3\x04",
                                       "....ftypM4A ...."};

    for (size_t i = 0; i < ARRAY_LEN(text); i++) {
        struct bytes b = {.size = strlen(text[i])};
        struct audio_file file = file_of(&b);
        struct diag d = DIAG_INIT;
        struct audio_info info;

        memcpy(b.data, text[i], b.size);
        assert_int_equal(audio_measure(&file, &info, &d), -EBADMSG);
        assert_diag_has(&d, "a file: expected WAV");
    }
}

static int fail_read(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d)
{
    (void)ctx;
    (void)off;
    (void)dst;
    (void)len;
    return diag_set(d, -EREMOTEIO, "no server");
}

UNIT_TEST(test_measure__read_fails)
{
    struct audio_file file = {"a file", 5000, fail_read, NULL};
    struct audio_info info;

    assert_int_equal(audio_measure(&file, &info, NULL), -EREMOTEIO);
}
