/* Objects of Kaldi tables: the choice of the function that measures or decodes an object. */
#include "format/kaldi/object/object.h"

#include <assert.h>
#include <string.h>

#include "base/scope.h"
#include "format/kaldi/object/walk.h"
#include "format/kaldi/object/wave.h"

static int measure_wave(struct kaldi_in *in, uint64_t at, struct kaldi_object *ret, struct diag *d)
{
    struct kaldi_wave wave;
    int r = kaldi_wave_measure(in, at, &wave, d);

    if (r < 0)
        return r;
    *ret = (struct kaldi_object){.type = KALDI_WAVE,
                                 .store = wave.big_endian ? KALDI_RIFX : KALDI_RIFF,
                                 .start = at,
                                 .len = wave.end - at,
                                 .dim = {wave.frames, wave.channels, wave.rate}};
    return 0;
}

/* The marker that kaldiio writes before objects unknown to Kaldi; text never begins with it. NULL:
 * no such marker. */
static const char *kaldiio_start(const uint8_t *p, size_t have)
{
    static const char *const starts[] = {"NPY", "AUDIO", "PKL", "fLaC"};

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (have >= strlen(starts[i]) && !memcmp(p, starts[i], strlen(starts[i])))
            return starts[i];
    return NULL;
}

static int measure_text(struct kaldi_in *in, uint64_t at, enum kaldi_type want, const uint8_t *p,
                        size_t have, struct kaldi_object *ret, struct diag *d)
{
    const char *start = kaldiio_start(p, have);

    if (want == KALDI_TOKEN || want == KALDI_TOKENS)
        return kaldi_text_measure(in, at, want, ret, d);
    if (start)
        return kaldi_bad(in, at, d,
                         "expected %s, got \"%s\": an object of kaldiio, which Kaldi cannot read "
                         "either",
                         want ? kaldi_types[want].name : "an object", start);
    if (!want)
        return kaldi_bad(
            in, at, d, "expected an object that says its type, got text; -o kaldi_type= names it");
    return kaldi_text_measure(in, at, want, ret, d);
}

int kaldi_measure(struct kaldi_in *in, uint64_t at, enum kaldi_type want, struct kaldi_object *ret,
                  struct diag *d)
{
    const uint8_t *p;
    size_t have = 0;

    if (at >= in->size)
        return kaldi_bad(in, at, d, "expected an object, got the end of the file");
    p = kaldi_in_at(in, at, 5, &have);
    if (!p)
        return kaldi_bad(in, at, d, "expected an object");
    if (want == KALDI_WAVE ||
        (!want && have >= 4 && (!memcmp(p, "RIFF", 4) || !memcmp(p, "RIFX", 4))))
        return measure_wave(in, at, ret, d);
    if (*p)
        return measure_text(in, at, want, p, have, ret, d);
    if (have < 2)
        return kaldi_bad(in, at, d, "expected 00 'B', got 00 and the end of the file");
    if (p[1] != 'B')
        return kaldi_bad(in, at, d, "expected 00 'B', got 00 %02x", p[1]);
    return kaldi_binary_measure(in, at, want, ret, d);
}

int kaldi_decode(const struct kaldi_object *object, const uint8_t *bytes, unsigned i,
                 enum dtype dtype, uint8_t *dst, const char *name, struct diag *d)
{
    assert(i < kaldi_types[object->type].n_arrays);
    if (object->store == KALDI_TEXT)
        return kaldi_text_decode(object, bytes, i, dtype, dst, name, d);
    return kaldi_binary_decode(object, bytes, i, dtype, dst, name, d);
}
