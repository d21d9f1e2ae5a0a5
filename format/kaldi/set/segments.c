#include "format/kaldi/set/segments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define SEGMENT_LEAST 0.1f /* seconds: min-segment-length */
#define SEGMENT_OVER  0.5f /* max-overshoot: seconds past the end of the recording */

static bool parse_time(const char *text, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return *text && !*end && isfinite(*ret) && strspn(text, "0123456789+-.eE") == strlen(text);
}

const char *kaldi_segment_parse(char *text, struct kaldi_segment *ret)
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
        ret->channel = channel;
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
