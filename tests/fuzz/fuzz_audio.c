/* Bytes as a file of audio: its length is found or it is refused with a reason; then so many frames
 * are made, or not with a reason, and the same ones each time. Arrays are bounded tighter than in
 * the product, so that no input takes long. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/audio/audio.h"
#include "fuzz.h"

/* libsndfile 1.2.0 frees nothing of an Ogg Vorbis stream whose header it refuses. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:vorbis_info_init";
}

struct input {
    const uint8_t *bytes;
    size_t len;
};

static int get(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d)
{
    const struct input *in = ctx;

    (void)d;
    FUZZ_CHECK(off <= in->len && len <= in->len - off);
    memcpy(dst, in->bytes + off, len);
    return 0;
}

static bool is_reason(int r, const struct diag *d)
{
    return d->set && (r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = {data, len};
    struct audio_file file = {"fuzz", len, get, &in};
    struct audio_spec spec = {.rate = 1000, .mono = len % 2};
    struct audio_info info, again;
    struct diag d = DIAG_INIT;
    int r = audio_measure(&file, &info, &d);

    FUZZ_CHECK(r == 0 || is_reason(r, &d));
    if (r == 0) {
        uint64_t made = audio_made_frames(&spec, info.frames, info.rate);
        struct audio_part all = {.frames = info.frames};
        AUTO_FREE float *a = NULL;
        AUTO_FREE float *b = NULL;

        FUZZ_CHECK(info.rate && info.channels && info.channels <= AUDIO_CHANNELS_MAX);
        FUZZ_CHECK(audio_measure(&file, &again, NULL) == 0 && again.frames == info.frames);
        if (made > AUDIO_NUMBERS_MAX / info.channels)
            return 0;
        a = calloc(made * info.channels + 1, sizeof(*a));
        b = calloc(made * info.channels + 1, sizeof(*b));
        if (!a || !b)
            return 0;
        r = audio_make(&file, &spec, &info, &all, a, &d);
        FUZZ_CHECK(r == 0 || is_reason(r, &d));
        FUZZ_CHECK(audio_make(&file, &spec, &info, &all, b, NULL) == r);
        FUZZ_CHECK(r < 0 || !memcmp(a, b, made * (spec.mono ? 1 : info.channels) * sizeof(*a)));
    }
    return 0;
}
