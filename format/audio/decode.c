/* Files of audio by libsndfile, and mp3 by libmpg123. libsndfile would have mp3 decoded by code
 * that it chooses for the processor, whose numbers differ in the last bits. */
#include <dlfcn.h>
#include <errno.h>
#include <mpg123.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/audio/parts.h"

#define BLOCK   4096 /* bytes that are read at once while a header is looked at */
#define LOG     2048
#define SKIPPED 4096      /* numbers that are decoded at once to be skipped */
#define CHUNKS  64        /* of a WAV file before its data, at most */
#define DECODER "generic" /* of libmpg123: the same on every processor */

struct audio_reader {
    struct audio_file file;
    uint64_t at;
    int failed; /* an error of read() */
    struct diag *d;
    uint8_t block[BLOCK]; /* [n_block] from byte block_at on */
    uint64_t block_at;
    size_t n_block;
    uint64_t endless_at; /* of a size in the header that is shown as 2^32 - 1; 0: none */
    uint32_t channels;
    bool has_format, has_ended; /* of mp3 */
    bool begins_anywhere;       /* a frame does not depend on those before it */
    SNDFILE *sound;             /* or: */
    mpg123_handle *mp3;
};

/* ---- bytes ---- */

/* Read up to n bytes at the place; fewer at the end. */
static int64_t reader_bytes(struct audio_reader *reader, void *dst, int64_t n)
{
    uint64_t len = min_u64(n > 0 ? (uint64_t)n : 0, reader->file.size - reader->at), done = 0;
    int r = reader->failed;

    while (done < len && r == 0) {
        uint64_t at = reader->at + done, off = at - reader->block_at;

        if (at >= reader->block_at && off < reader->n_block) {
            size_t some = (size_t)min_u64(len - done, reader->n_block - off);

            memcpy((uint8_t *)dst + done, reader->block + off, some);
            done += some;
        } else if (len - done >= BLOCK) {
            r = reader->file.read(reader->file.ctx, at, (uint8_t *)dst + done, len - done,
                                  reader->d);
            done = len;
        } else {
            reader->block_at = at;
            reader->n_block = (size_t)min_u64(BLOCK, reader->file.size - at);
            r = reader->file.read(reader->file.ctx, at, reader->block, reader->n_block, reader->d);
        }
    }
    reader->failed = r;
    if (r < 0)
        reader->n_block = 0;
    if (r < 0)
        return 0;
    for (uint64_t at = reader->endless_at; at && at < reader->endless_at + 4; at++)
        if (at >= reader->at && at - reader->at < len)
            ((uint8_t *)dst)[at - reader->at] = 0xff;
    reader->at += len;
    return (int64_t)len;
}

static int64_t reader_seek(struct audio_reader *reader, int64_t off, int whence)
{
    int64_t base = whence == SEEK_CUR   ? (int64_t)reader->at
                   : whence == SEEK_END ? (int64_t)reader->file.size
                                        : 0;

    if (off < -base || off > (int64_t)reader->file.size - base)
        return -1;
    reader->at = (uint64_t)(base + off);
    return (int64_t)reader->at;
}

static sf_count_t sound_size(void *ctx)
{
    return (sf_count_t)((const struct audio_reader *)ctx)->file.size;
}

static sf_count_t sound_seek(sf_count_t off, int whence, void *ctx)
{
    return reader_seek(ctx, off, whence);
}

static sf_count_t sound_read(void *dst, sf_count_t n, void *ctx)
{
    return reader_bytes(ctx, dst, n);
}

static sf_count_t sound_tell(void *ctx)
{
    return (sf_count_t)((const struct audio_reader *)ctx)->at;
}

static ssize_t mp3_read(void *ctx, void *dst, size_t n)
{
    struct audio_reader *reader = ctx;
    int64_t done = reader_bytes(reader, dst, (int64_t)n);

    return reader->failed ? -1 : (ssize_t)done;
}

static off_t mp3_seek(void *ctx, off_t off, int whence)
{
    return reader_seek(ctx, off, whence);
}

/* ---- open ---- */

#define EXPECTED "expected WAV, AIFF, AU, SPHERE, FLAC, Ogg Vorbis, Opus or mp3"

static int reader_refuse(const struct audio_reader *reader, const char *got, struct diag *d)
{
    if (reader->failed)
        return reader->failed;
    return diag_set(d, -EBADMSG, "%s: " EXPECTED ", got %s", reader->file.where, got);
}

/* A size of 0 that a pipe has left stands for all that follows, as for Kaldi; libsndfile takes it
 * for no frames. Where another chunk follows, the data is empty. */
static void sound_find_endless(struct audio_reader *reader)
{
    uint8_t head[12] = "", next[8];
    uint64_t at = sizeof(head);
    bool big;

    reader_bytes(reader, head, sizeof(head));
    big = !memcmp(head, "RIFX", 4);
    for (unsigned i = 0; i < CHUNKS && (big || !memcmp(head, "RIFF", 4)); i++) {
        uint32_t size;

        reader->at = at;
        if (at >= reader->file.size || reader_bytes(reader, head + 4, 8) < 8)
            break;
        size = big ? load_be32(head + 8) : load_le32(head + 8);
        at += 8;
        if (memcmp(head + 4, "data", 4) != 0) {
            at += (uint64_t)size + (size & 1);
            continue;
        }
        if (!size && at < reader->file.size) {
            bool is_chunk = reader_bytes(reader, next, 8) == 8;

            size = big ? load_be32(next + 4) : load_le32(next + 4);
            for (unsigned k = 0; k < 4; k++)
                is_chunk = is_chunk && next[k] >= ' ' && next[k] <= '~';
            if (!is_chunk || size > reader->file.size - at - 8)
                reader->endless_at = at - 4;
        }
        break;
    }
    reader->at = 0;
}

static bool sound_is_read(int format)
{
    switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV:
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_RF64:
    case SF_FORMAT_AIFF:
    case SF_FORMAT_AU:
    case SF_FORMAT_NIST:
    case SF_FORMAT_FLAC:
    case SF_FORMAT_OGG:
        return true;
    default:
        return false;
    }
}

/* All but codecs of blocks that overlap, or that go on with what the block before has left. */
static bool sound_begins_anywhere(int format)
{
    int coding = format & SF_FORMAT_SUBMASK;

    return (coding >= SF_FORMAT_PCM_S8 && coding <= SF_FORMAT_DOUBLE) || coding == SF_FORMAT_ULAW ||
           coding == SF_FORMAT_ALAW;
}

/* Does a header say that there are more bytes? libsndfile's log has what it reads, and behind it
 * what it should be. A size near 2^31 or 2^32 was written before the end was known. */
static bool sound_is_cut(SNDFILE *sound)
{
    char log[LOG];
    int n = sf_command(sound, SFC_GET_LOG_INFO, log, sizeof(log));

    for (const char *at = log; n > 0 && (at = strstr(at, "(should be ")); at++) {
        const char *number = at;
        unsigned long long says, is = strtoull(at + strlen("(should be "), NULL, 10);

        while (number > log && number[-1] != ':' && number[-1] != '\n')
            number--;
        says = strtoull(number, NULL, 10);
        if (says > is && (says & INT32_MAX) < 0x7ffff000)
            return true;
    }
    return false;
}

/* The same of SPHERE, of which the log says nothing. */
static bool sphere_is_cut(struct audio_reader *reader, uint64_t frames)
{
    static const char name[] = "\nsample_count -i ";
    char head[1025] = "";
    uint64_t at = reader->at;
    const char *found;

    reader->at = 0;
    reader_bytes(reader, head, sizeof(head) - 1);
    reader->at = at;
    found = strstr(head, name);
    return found && strtoull(found + sizeof(name) - 1, NULL, 10) > frames;
}

static int open_sound(struct audio_reader *reader, struct audio_info *ret, struct diag *d)
{
    static SF_VIRTUAL_IO io = {sound_size, sound_seek, sound_read, NULL, sound_tell};
    SF_INFO info = {0};
    uint8_t head[4] = {0};

    reader_bytes(reader, head, sizeof(head));
    reader->at = 0;
    if (!audio_begins(head)) /* libsndfile would try formats that few need */
        return reader_refuse(reader, "a file that begins in another way", d);
    sound_find_endless(reader);
    reader->sound = sf_open_virtual(&io, SFM_READ, &info, reader);
    if (!reader->sound)
        return reader_refuse(reader, sf_strerror(NULL), d);
    if (!sound_is_read(info.format))
        return reader_refuse(reader, "another format", d);
    if (reader->failed)
        return reader->failed;
    reader->begins_anywhere = sound_begins_anywhere(info.format);
    ret->frames =
        info.frames < 0 || info.frames == SF_COUNT_MAX ? UINT64_MAX : (uint64_t)info.frames;
    ret->rate = info.samplerate > 0 ? (uint32_t)info.samplerate : 0;
    ret->channels = info.channels > 0 ? (uint32_t)info.channels : 0;
    ret->is_cut =
        sound_is_cut(reader->sound) || ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_NIST &&
                                        sphere_is_cut(reader, ret->frames));
    return reader->failed;
}

static int open_mp3(struct audio_reader *reader, bool is_whole, struct audio_info *ret,
                    struct diag *d)
{
    const long flags = MPG123_QUIET | MPG123_SKIP_ID3V2 | MPG123_FORCE_FLOAT | MPG123_GAPLESS;
    const long *rates;
    size_t n_rates;
    long rate;
    int channels, encoding, r;
    off_t frames;

    reader->mp3 = mpg123_new(DECODER, &r);
    if (!reader->mp3)
        return -ENOMEM;
    mpg123_param(reader->mp3, MPG123_ADD_FLAGS, flags, 0);
    mpg123_param(reader->mp3, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
    mpg123_format_none(reader->mp3);
    mpg123_rates(&rates, &n_rates);
    for (size_t i = 0; i < n_rates; i++)
        mpg123_format(reader->mp3, rates[i], MPG123_MONO | MPG123_STEREO, MPG123_ENC_FLOAT_32);
    mpg123_replace_reader_handle(reader->mp3, mp3_read, mp3_seek, NULL);
    r = mpg123_open_handle(reader->mp3, reader);
    if (r == MPG123_OK)
        r = mpg123_getformat(reader->mp3, &rate, &channels, &encoding);
    if (r != MPG123_OK)
        return reader_refuse(reader, mpg123_strerror(reader->mp3), d);
    if (encoding != MPG123_ENC_FLOAT_32)
        return reader_refuse(reader, "mp3 of another encoding", d);
    frames = is_whole ? mpg123_length(reader->mp3) : -1;
    ret->frames = frames < 0 ? UINT64_MAX : (uint64_t)frames;
    ret->rate = rate > 0 ? (uint32_t)rate : 0;
    ret->channels = channels > 0 ? (uint32_t)channels : 0;
    ret->is_cut = false;
    return reader->failed;
}

int audio_open(const struct audio_file *file, struct audio_reader **ret,
               struct audio_info *ret_info, struct diag *d)
{
    struct audio_reader *reader = calloc(1, sizeof(*reader));
    struct audio_info info = {0};
    enum audio_container container;
    uint64_t start;
    int r;

    if (!reader)
        return -ENOMEM;
    reader->file = *file;
    reader->d = d;
    r = audio_find_container(file, &container, &start, d);
    if (r == 0 && container == AUDIO_MP3) {
        int whole = audio_mp3_is_whole(file, start, d);

        r = whole < 0 && whole != -EBADMSG ? whole : open_mp3(reader, whole == 1, &info, d);
    } else if (r == 0) {
        r = open_sound(reader, &info, d);
    }
    if (r == 0 && (!info.rate || info.rate > AUDIO_RATE_MAX || !info.channels ||
                   info.channels > AUDIO_CHANNELS_MAX))
        r = diag_set(d, -EOPNOTSUPP,
                     "%s: expected 1 to %u channels of 1 to %u frames per second, got %u of %u",
                     file->where, AUDIO_CHANNELS_MAX, AUDIO_RATE_MAX, info.channels, info.rate);
    reader->channels = info.channels;
    if (r < 0) {
        audio_close(reader);
        return r;
    }
    *ret = reader;
    *ret_info = info;
    return 0;
}

void audio_close(struct audio_reader *reader)
{
    if (!reader)
        return;
    if (reader->sound)
        sf_close(reader->sound);
    if (reader->mp3)
        mpg123_delete(reader->mp3);
    free(reader);
}

/* ---- frames ---- */

static int64_t mp3_frames(struct audio_reader *reader, float *ret, size_t n)
{
    size_t width = reader->channels * sizeof(*ret), done = 0, bytes = n * width;
    int r = MPG123_OK;

    while (done < bytes && r == MPG123_OK && !reader->has_ended) {
        size_t some = 0;

        r = mpg123_read(reader->mp3, (unsigned char *)ret + done, bytes - done, &some);
        done += some;
        if (r == MPG123_NEW_FORMAT && !reader->has_format && !done)
            r = MPG123_OK; /* that of all that follow: at another, the array ends */
        reader->has_format = true;
        reader->has_ended = r != MPG123_OK;
    }
    return (int64_t)(done / width);
}

int64_t audio_read(struct audio_reader *reader, float *ret, size_t n)
{
    int64_t done = reader->mp3 ? mp3_frames(reader, ret, n)
                               : sf_readf_float(reader->sound, ret, (sf_count_t)n);

    return reader->failed ? reader->failed : (done > 0 ? done : 0);
}

int audio_seek(struct audio_reader *reader, uint64_t frame)
{
    float skipped[SKIPPED];
    int64_t n = 1;

    if (reader->begins_anywhere)
        n = sf_seek(reader->sound, (sf_count_t)frame, SEEK_SET);
    for (; frame && n > 0 && !reader->begins_anywhere; frame -= (uint64_t)n)
        n = audio_read(reader, skipped, min_u64(frame, SKIPPED / reader->channels));
    return reader->failed ? reader->failed : n <= 0;
}

/* Those of its codecs are of libraries that libsndfile uses, and that are not linked here. */
void audio_reader_versions(struct text *t)
{
    static const char *const version[] = {"mpg123_distversion", "opus_get_version_string",
                                          "vorbis_version_string"};
    char name[128] = "";

    sf_command(NULL, SFC_GET_LIB_VERSION, name, sizeof(name));
    text_add(t, "%s, ", name);
    for (size_t i = 0; i < ARRAY_LEN(version); i++) {
        const char *(*get)(const void *, const void *, const void *) = NULL;
        void *found = dlsym(RTLD_DEFAULT, version[i]);

        memcpy(&get, &found, sizeof(get));
        if (!i)
            text_add(t, "libmpg123 %s " DECODER ", ", get ? get(NULL, NULL, NULL) : MPG123_BUILT);
        else if (get)
            text_add(t, "%s, ", get(NULL, NULL, NULL));
    }
}
