#include "fs/cli/audit_mix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/cli/status_values.h"

#define WORDS_SIZE 300

void audit_mix_release(struct audit_mix *mix)
{
    for (unsigned i = 0; i < mix->n; i++)
        free(mix->folder[i]);
    *mix = (struct audit_mix){0};
}

/* The folder of the mount that has the mix; its sources are named from there. */
static size_t above(const char *dataset)
{
    const char *slash = strrchr(dataset, '/');

    return slash ? (size_t)(slash - dataset) : 0;
}

static int audit_mix_read_source(const json_t *at, const char *dataset, uint64_t batch,
                                 struct audit_mix *ret)
{
    char name[PATH_MAX], words[WORDS_SIZE], *c;

    if (!status_string(at, "dataset", name, sizeof(name)) ||
        !status_string(at, "words", words, sizeof(words)))
        return -EBADMSG;
    while ((c = strchr(words, '+')))
        *c = ',';
    ret->source[ret->n].first = status_number(at, "first_sample");
    return asprintf(&ret->folder[ret->n], "%.*s/%s/batches/batch=%llu%s%s/npz", (int)above(dataset),
                    dataset, name, (unsigned long long)batch, *words ? "," : "", words) < 0
               ? -ENOMEM
               : 0;
}

static int audit_mix_read_weights(const json_t *at, unsigned n, struct audit_stretch *ret)
{
    const json_t *weights = status_value(at, "weights");

    ret->sum = 0;
    for (unsigned i = 0; i < n; i++) {
        json_int_t weight = json_integer_value(json_array_get(weights, i));

        ret->weight[i] = weight > 0 ? (uint64_t)weight : 0;
        if (!checked_add(ret->sum, ret->weight[i], &ret->sum))
            return -EBADMSG;
    }
    return json_array_size(weights) >= n && ret->sum && ret->sum < UINT32_MAX ? 0 : -EBADMSG;
}

int audit_mix_read(const json_t *json, const char *dataset, uint64_t samples, uint64_t batch,
                   struct audit_mix *ret)
{
    struct audit_shares *shares = &ret->shares;
    const json_t *sources = status_value(json, "mix.sources");
    const json_t *weights = status_value(json, "mix.weights");
    int r = 0;

    *ret = (struct audit_mix){0};
    if (!status_value(json, "mix"))
        return 0;
    ret->epoch_samples = status_number(json, "mix.epoch_samples");
    for (size_t i = 0; i < json_array_size(sources) && r == 0; i++) {
        const json_t *s = json_array_get(sources, i);

        r = ret->n < AUDIT_SOURCES_MAX ? audit_mix_read_source(s, dataset, batch, ret) : -EBADMSG;
        ret->n += r == 0;
    }
    for (unsigned i = 0; i < ret->n && r == 0; i++) {
        uint64_t end = i + 1 < ret->n ? ret->source[i + 1].first : samples;

        r = ret->source[i].first <= end && end <= samples ? 0 : -EBADMSG;
        ret->source[i].count = end - ret->source[i].first;
    }
    shares->n_sources = ret->n;
    for (size_t i = 0; i < json_array_size(weights) && r == 0; i++) {
        const json_t *s = json_array_get(weights, i);
        struct audit_stretch *stretch = &shares->stretch[shares->n_stretches];

        if (shares->n_stretches == AUDIT_STRETCHES_MAX)
            return -EBADMSG;
        stretch->start = status_number(s, "position");
        if (shares->n_stretches ? stretch->start <= stretch[-1].start : stretch->start != 0)
            return -EBADMSG;
        r = audit_mix_read_weights(s, ret->n, stretch);
        shares->n_stretches++;
    }
    return r < 0 || (ret->n && shares->n_stretches && ret->epoch_samples) ? r : -EBADMSG;
}
