/* Each stretch has its table of one period, the way back, and how many elements of each source came
 * before it. A table is made by a simulation of its period: at most one job of a source waits, for
 * a job follows its predecessor, and releases and deadlines of a source rise. */
#include "fs/plan/mix.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"

/* What is at a place of a period. */
struct entry {
    uint16_t source, job;
};

struct stretch {
    uint64_t start;      /* position */
    uint32_t period;     /* W */
    uint32_t *weight;    /* [sources] */
    uint32_t *first;     /* [sources] where in place[] those of a source begin */
    mix_number *before;  /* [sources] its elements before the stretch */
    struct entry *entry; /* [period] */
    uint16_t *place;     /* [period] of jobs 0, 1, ... of source 0, then of source 1, ... */
};

struct mix {
    unsigned sources, stretches;
    struct stretch stretch[];
};

/* ---- a period ---- */

/* At each place the job that is due first, of those that are released: one always is, as there are
 * as many jobs as places, and all end in time. */
static void mix_make_table(struct stretch *s, unsigned sources)
{
    uint32_t released[MIX_SOURCES_MAX], due[MIX_SOURCES_MAX], next[MIX_SOURCES_MAX] = {0};
    uint64_t period = s->period, w;

    for (unsigned d = 0; d < sources; d++) {
        w = s->weight[d];
        released[d] = w ? 0 : UINT32_MAX;
        due[d] = w ? (uint32_t)((period + w - 1) / w) : 0;
    }
    for (uint32_t n = 0; n < period; n++) {
        uint32_t least = UINT32_MAX, j;
        unsigned first = 0;

        for (unsigned d = 0; d < sources; d++)
            if (released[d] <= n && due[d] < least) {
                least = due[d];
                first = d;
            }
        j = next[first]++;
        s->entry[n] = (struct entry){(uint16_t)first, (uint16_t)j};
        s->place[s->first[first] + j] = (uint16_t)n;
        w = s->weight[first];
        released[first] = j + 1 < w ? (uint32_t)((j + 1) * period / w) : UINT32_MAX;
        due[first] = (uint32_t)(((j + 2) * period + w - 1) / w);
    }
}

static int stretch_init(struct stretch *s, const struct mix_weights *weights, unsigned sources)
{
    s->start = weights->start;
    s->weight = calloc(sources, sizeof(*s->weight));
    s->first = calloc(sources, sizeof(*s->first));
    s->before = calloc(sources, sizeof(*s->before));
    if (!s->weight || !s->first || !s->before)
        return -ENOMEM;
    for (unsigned d = 0; d < sources; d++) {
        s->weight[d] = weights->weight[d];
        s->first[d] = s->period;
        s->period += weights->weight[d];
    }
    s->entry = calloc(s->period, sizeof(*s->entry));
    s->place = calloc(s->period, sizeof(*s->place));
    if (!s->entry || !s->place)
        return -ENOMEM;
    mix_make_table(s, sources);
    return 0;
}

/* ---- positions and elements ---- */

/* How many elements of a source come before a place of the period. */
static uint32_t count_in_period(const struct stretch *s, unsigned source, uint64_t place)
{
    const uint16_t *places = s->place + s->first[source];

    return (uint32_t)SEARCH(s->weight[source], i, places[i] < place);
}

static mix_number count_before(const struct stretch *s, unsigned source, mix_number position)
{
    uint64_t remainder;
    mix_number periods = mix_divide(position - s->start, s->period, &remainder);

    return s->before[source] + periods * s->weight[source] + count_in_period(s, source, remainder);
}

static const struct stretch *stretch_at(const struct mix *mix, mix_number position)
{
    unsigned i = mix->stretches - 1;

    while (mix->stretch[i].start > position)
        i--;
    return &mix->stretch[i];
}

unsigned mix_at(const struct mix *mix, mix_number position, mix_number *ret_element)
{
    const struct stretch *s = stretch_at(mix, position);
    uint64_t remainder;
    mix_number periods = mix_divide(position - s->start, s->period, &remainder);
    const struct entry *e = &s->entry[remainder];

    *ret_element = s->before[e->source] + periods * s->weight[e->source] + e->job;
    return e->source;
}

bool mix_position(const struct mix *mix, unsigned source, mix_number element, mix_number *ret)
{
    unsigned i = mix->stretches - 1;
    const struct stretch *s;
    mix_number periods;
    uint64_t job;

    while (mix->stretch[i].before[source] > element)
        i--;
    s = &mix->stretch[i];
    if (!s->weight[source]) /* then it is the last stretch */
        return false;
    periods = mix_divide(element - s->before[source], s->weight[source], &job);
    *ret = s->start + periods * s->period + s->place[s->first[source] + job];
    return true;
}

mix_number mix_count(const struct mix *mix, unsigned source, mix_number position)
{
    return count_before(stretch_at(mix, position), source, position);
}

/* By the bound: a source has had its share, rounded down, at least, and at most one more. */
mix_number mix_count_least(const struct mix *mix, unsigned source, mix_number position)
{
    const struct stretch *s = stretch_at(mix, position);
    uint64_t remainder;
    mix_number periods = mix_divide(position - s->start, s->period, &remainder);

    return s->before[source] + periods * s->weight[source] +
           remainder * s->weight[source] / s->period;
}

int mix_new(const struct mix_weights *weights, unsigned stretches, unsigned sources,
            struct mix **ret)
{
    struct mix *mix = calloc(1, sizeof(*mix) + stretches * sizeof(*mix->stretch));

    if (!mix)
        return -ENOMEM;
    mix->sources = sources;
    for (; mix->stretches < stretches; mix->stretches++) {
        struct stretch *s = &mix->stretch[mix->stretches];

        if (stretch_init(s, &weights[mix->stretches], sources) < 0) {
            mix->stretches++;
            mix_free(mix);
            return -ENOMEM;
        }
        for (unsigned d = 0; d < sources && mix->stretches; d++)
            s->before[d] = count_before(s - 1, d, s->start);
    }
    *ret = mix;
    return 0;
}

void mix_free(struct mix *mix)
{
    for (unsigned i = 0; mix && i < mix->stretches; i++) {
        free(mix->stretch[i].weight);
        free(mix->stretch[i].first);
        free(mix->stretch[i].before);
        free(mix->stretch[i].entry);
        free(mix->stretch[i].place);
    }
    free(mix);
}

/* ---- epochs ---- */

/* The position of element `element` of each source: the least, or the largest. */
static int find_end(const struct mix *mix, const uint64_t *passes, bool first, mix_number *ret,
                    unsigned *ret_source)
{
    bool any = false;

    for (unsigned d = 0; d < mix->sources; d++) {
        mix_number at;

        if (!mix_position(mix, d, passes[d] - !first, &at)) {
            *ret_source = d;
            if (!first)
                return -EDOM;
            continue;
        }
        at += !first;
        if (!any || (first ? at < *ret : at > *ret))
            *ret = at;
        any = true;
    }
    return any ? 0 : -EDOM;
}

int mix_length(const struct mix *mix, const uint64_t *passes, enum mix_end end, uint64_t fixed,
               uint64_t *ret, unsigned *ret_source)
{
    mix_number length = end == MIX_LENGTH ? fixed : 0;
    int r = 0;

    for (unsigned d = 0; d < mix->sources && end == MIX_SUM; d++)
        length += passes[d];
    if (end == MIX_FIRST || end == MIX_ALL)
        r = find_end(mix, passes, end == MIX_FIRST, &length, ret_source);
    if (r < 0)
        return r;
    if (length > MIX_POSITION_MAX)
        return -ERANGE;
    *ret = (uint64_t)length;
    return 0;
}

/* ---- weights ---- */

/* Shares of MIX_PERIOD_MAX by the largest remainder; a share of 0 becomes 1, which the largest
 * gives. */
static void nearest(const uint64_t *weight, unsigned n, mix_number sum, uint32_t *ret)
{
    mix_number remainder[MIX_SOURCES_MAX];
    uint32_t left = MIX_PERIOD_MAX;

    for (unsigned d = 0; d < n; d++) {
        mix_number share = (mix_number)weight[d] * MIX_PERIOD_MAX;

        ret[d] = (uint32_t)(share / sum);
        remainder[d] = share % sum;
        left -= ret[d];
    }
    for (; left; left--) {
        unsigned best = 0;

        for (unsigned d = 1; d < n; d++)
            best = remainder[d] > remainder[best] ? d : best;
        ret[best]++;
        remainder[best] = 0;
    }
    for (unsigned d = 0; d < n; d++) {
        unsigned largest = 0;

        for (unsigned k = 1; k < n && !ret[d]; k++)
            largest = ret[k] > ret[largest] ? k : largest;
        ret[largest] -= !ret[d];
        ret[d] += !ret[d];
    }
}

bool mix_reduce(const uint64_t *weight, unsigned n, uint32_t *ret)
{
    uint64_t divisor = 0;
    mix_number sum = 0;

    for (unsigned d = 0; d < n; d++) {
        divisor = common_divisor(weight[d], divisor);
        sum += weight[d];
    }
    if (sum / divisor > MIX_PERIOD_MAX) {
        nearest(weight, n, sum, ret);
        return false;
    }
    for (unsigned d = 0; d < n; d++)
        ret[d] = (uint32_t)(weight[d] / divisor);
    return true;
}
