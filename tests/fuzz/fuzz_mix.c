/* Bytes as the text of -o mix=. A good one makes a mix whose positions and elements lead to each
 * other, and whose shares hold at every position that is looked at. */
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "fs/plan/mix_text.h"
#include "fuzz.h"

#define LOOKS 40

static void check_text(const char *text, const struct mix_spec *spec)
{
    FUZZ_CHECK(*spec->name && !strchr(spec->name, '/'));
    FUZZ_CHECK(spec->n_sources && spec->n_sources <= MIX_SOURCES_MAX);
    FUZZ_CHECK(spec->n_stretches && spec->n_stretches <= MIX_STRETCHES_MAX);
    FUZZ_CHECK(strstr(text, spec->text) != NULL);
    for (unsigned i = 0; i < spec->n_stretches; i++) {
        uint64_t sum = 0;

        for (unsigned d = 0; d < spec->n_sources; d++)
            sum += spec->weights[i].weight[d];
        FUZZ_CHECK(sum && sum <= MIX_PERIOD_MAX);
        FUZZ_CHECK(!i == !spec->weights[i].start);
        FUZZ_CHECK(!i || spec->weights[i].start > spec->weights[i - 1].start);
    }
}

/* Positions from `from` on: each is the next element of its source, and the way back leads there.
 */
static void check_positions(const struct mix *mix, unsigned sources, mix_number from)
{
    for (mix_number p = from; p < from + LOOKS; p++) {
        mix_number element, back;
        unsigned source = mix_at(mix, p, &element);

        FUZZ_CHECK(source < sources);
        FUZZ_CHECK(mix_position(mix, source, element, &back) && back == p);
        FUZZ_CHECK(mix_count(mix, source, p) == element);
        FUZZ_CHECK(mix_count(mix, source, p + 1) == element + 1);
    }
}

/* The first stretch: after n positions a source has its share, less than one off. */
static void check_shares(const struct mix *mix, const struct mix_spec *spec)
{
    const struct mix_weights *w = spec->weights;
    uint64_t period = 0, end = spec->n_stretches > 1 ? w[1].start : 1000;

    for (unsigned d = 0; d < spec->n_sources; d++)
        period += w->weight[d];
    for (uint64_t n = 0; n <= min_u64(end, 1000); n += 1 + n / 7)
        for (unsigned d = 0; d < spec->n_sources; d++) {
            mix_number have = mix_count(mix, d, n) * period, want = (mix_number)n * w->weight[d];

            FUZZ_CHECK(have < want + period && want < have + period);
        }
}

static void check_length(const struct mix *mix, const struct mix_spec *spec)
{
    uint64_t passes[MIX_SOURCES_MAX], length;
    unsigned source;

    for (unsigned d = 0; d < spec->n_sources; d++)
        passes[d] = 1 + d * UINT64_C(0x9e3779b97f4a7c15) % 1000;
    if (mix_length(mix, passes, spec->end, spec->length, &length, &source) == 0)
        FUZZ_CHECK(length && length <= MIX_POSITION_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = strndup((const char *)data, len);
    AUTO_MIX_SPEC struct mix_spec spec = {0};
    struct diag d = DIAG_INIT;
    struct mix *mix = NULL;

    if (!text)
        return 0;
    if (mix_spec_parse(text, &spec, &d) < 0) {
        FUZZ_CHECK(d.set && *d.text);
        return 0;
    }
    check_text(text, &spec);
    if (mix_new(spec.weights, spec.n_stretches, spec.n_sources, &mix) < 0)
        return 0;
    check_positions(mix, spec.n_sources, 0);
    for (unsigned i = 0; i < spec.n_stretches; i++)
        check_positions(mix, spec.n_sources, max_u64(spec.weights[i].start, LOOKS) - LOOKS / 2);
    check_positions(mix, spec.n_sources, (mix_number)1 << 110);
    check_shares(mix, &spec);
    check_length(mix, &spec);
    mix_free(mix);
    return 0;
}
