#include "format/kaldi/set/segments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"

#define LOOK          64   /* lines between two readings of the clock */
#define SEGMENT_LEAST 0.1f /* seconds: min-segment-length */
#define SEGMENT_OVER  0.5f /* max-overshoot: seconds past the end of the recording */

int kaldi_segments_init(struct kaldi_segments *ret, struct blob *blob)
{
    *ret = (struct kaldi_segments){.blob = blob};
    kaldi_in_init(&ret->in, blob);
    return index_builder_new(&(struct index_shape){.columns = 2, .has_keys = true}, &ret->builder);
}

void kaldi_segments_release(struct kaldi_segments *s)
{
    kaldi_in_release(&s->in);
    index_builder_free(s->builder);
    blob_free(s->blob);
    *s = (struct kaldi_segments){0};
}

/* Add the utterance of a line, and where the text after it is, to the index. Kaldi skips lines that
 * it cannot use. A line that is too long takes several calls. */
static int index_line(struct kaldi_segments *s)
{
    uint64_t from = s->at;
    bool is_piece = s->is_in_long, ended = false;
    size_t len = 0, key, key_len;
    const uint8_t *text = kaldi_in_line(&s->in, &s->at, KEY_MAX + SEGMENT_LINE, &len, &ended);

    if (!text)
        return s->in.error;
    s->is_in_long = !ended;
    if (is_piece)
        return 0;
    key = utf8_mark(text, len);
    while (key < len && memchr(" \t\r", text[key], 3))
        key++;
    for (key_len = key; key_len < len && !memchr(" \t\r", text[key_len], 3);)
        key_len++;
    key_len -= key;
    if (!key_len || key_len > KEY_MAX)
        return 0;
    return index_add(s->builder, text + key, key_len,
                     (uint64_t[]){from + key + key_len, len - key - key_len});
}

int kaldi_segments_step(struct kaldi_segments *s, int64_t until)
{
    int r = 0;

    if (s->is_ready)
        return 1;
    for (unsigned i = 1; s->at < s->blob->size && r == 0; i++) {
        r = index_line(s);
        if (i % LOOK == 0 && monotonic_ns() > until)
            return r;
    }
    if (r == 0)
        r = index_finish(s->builder, NULL, NULL, NULL, &s->index);
    s->is_ready = r == 0;
    return r < 0 ? r : 1;
}

static bool parse_time(const char *text, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return *text && !*end && isfinite(*ret) && strspn(text, "0123456789+-.eE") == strlen(text);
}

/* Parse the rest of a line, after the utterance. NULL, or what is wrong. Changes text. */
static const char *parse_line(char *text, struct kaldi_segment *ret)
{
    char *word[5] = {NULL}, *left = text, *end;
    size_t n = 0;

    for (char *w; (w = strsep(&left, " \t\r"));) {
        if (!*w)
            continue;
        if (n == ARRAY_LEN(word))
            return "expected at most a recording, two times and a channel, got more";
        word[n++] = w;
    }
    if (n != 3 && n != 4)
        return "expected a recording, two times and perhaps a channel";
    ret->recording = word[0];
    ret->channel = -1;
    if (!parse_time(word[1], &ret->start) || !parse_time(word[2], &ret->end))
        return "expected times in seconds";
    if (ret->start < 0 || (ret->end != -1 && ret->end <= 0) ||
        (ret->end > 0 && ret->start >= ret->end))
        return "expected a start that is not negative and an end after it, or -1";
    if (n == 4) {
        long channel = strtol(word[3], &end, 10);

        if (*end || channel < 0 || channel > 65535)
            return "expected a channel of 0 or more";
        ret->channel = (int)channel;
    }
    return NULL;
}

const char *kaldi_segment_cut(const struct kaldi_segment *segment, const struct kaldi_row *wave,
                              uint64_t ret[static 3])
{
    uint64_t samples = wave->object.dim[0], channels = wave->object.dim[1], last;
    float rate = (float)wave->object.dim[2], length = (float)samples / rate;
    double end = segment->end;

    if (!(segment->start <= (double)length)) /* not ">": a rate of 0 may make length NaN */
        return "it starts after the end of the recording";
    if (end > (double)(length + SEGMENT_OVER))
        return "it ends more than 0.5 s after the end of the recording";
    if (end < 0 || end > (double)length)
        end = (double)length;
    if (end - segment->start < (double)SEGMENT_LEAST)
        return "it is shorter than 0.1 s";
    if (segment->channel < 0 && channels != 1)
        return "the recording has several channels: expected a channel after the times";
    if (segment->channel >= 0 && (uint64_t)segment->channel >= channels)
        return "the recording has no such channel";
    ret[0] = min_u64((uint64_t)(segment->start * (double)rate + 0.5), samples);
    last = min_u64((uint64_t)(end * (double)rate + 0.5), samples);
    if (last <= ret[0])
        return "it has no sample";
    ret[1] = last - ret[0];
    ret[2] = channels == 1 ? 0 : (uint64_t)segment->channel + 1;
    return NULL;
}

const char *kaldi_segments_line(struct kaldi_segments *s, uint64_t row,
                                char text[static SEGMENT_LINE], struct kaldi_segment *ret)
{
    uint64_t number[INDEX_COLUMNS];
    const uint8_t *line;
    size_t have = 0, len;

    index_row(&s->index, row, number);
    if (number[1] >= SEGMENT_LINE)
        return "expected a line of less than 4096 bytes";
    len = (size_t)number[1];
    line = kaldi_in_at(&s->in, number[0], len, &have);
    if (!line || have < len)
        return "cannot be read";
    memcpy(text, line, len);
    text[len] = '\0';
    return parse_line(text, ret);
}
