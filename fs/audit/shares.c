/* Between two showings of a source its due share grows in a straight line. So it is furthest off
 * just before it is shown, or just after. */
#include "fs/audit/shares.h"

#include <stdio.h>

#include "base/checked.h"

__extension__ typedef unsigned __int128 u128;

static void audit_shares_enter(struct audit_shares *s)
{
    while (s->at + 1 < s->n_stretches && s->stretch[s->at + 1].start <= s->position)
        s->at++;
    s->n = 0;
    s->slack = s->position == s->stretch[s->at].start ? 1 : 2;
    for (unsigned i = 0; i < s->n_sources; i++)
        s->shown[i] = 0;
}

void audit_shares_bounds(const struct audit_shares *s, unsigned source, uint64_t from,
                         uint64_t positions, uint64_t *ret_least, uint64_t *ret_most)
{
    uint64_t end = from + min_u64(positions, AUDIT_POSITION_MAX);

    *ret_least = *ret_most = 0;
    for (unsigned i = 0; i < s->n_stretches; i++) {
        const struct audit_stretch *stretch = &s->stretch[i];
        uint64_t begin = max_u64(from, stretch->start);
        uint64_t stop = i + 1 < s->n_stretches ? min_u64(end, stretch[1].start) : end;
        u128 due = begin < stop ? (u128)(stop - begin) * stretch->weight[source] : 0;
        /* Less than one off at both ends, but exact where the stretch begins. */
        uint64_t whole = (uint64_t)(due / stretch->sum), slack = due && begin > stretch->start;

        *ret_least += whole - min_u64(whole, slack);
        *ret_most += whole + (due % stretch->sum > 0) + slack;
    }
}

void audit_shares_begin(struct audit_shares *s, uint64_t position, uint64_t positions)
{
    s->position = position;
    s->left = positions;
    s->at = 0;
    audit_shares_enter(s);
}

/* Is it less than slack off? Shown * sum against n * weight. */
static bool audit_shares_is_due(const struct audit_shares *s, uint64_t source)
{
    const struct audit_stretch *stretch = &s->stretch[s->at];
    u128 shown = (u128)s->shown[source] * stretch->sum, due = (u128)s->n * stretch->weight[source];
    u128 off = shown > due ? shown - due : due - shown;

    return off < (u128)s->slack * stretch->sum;
}

void audit_shares_note(struct audit_shares *s, const struct audit_batch *batch, const char *name,
                       struct audit_tally *tally)
{
    char line[400];

    for (size_t i = 0; i < batch->n && s->left; i++, s->left--, s->position++) {
        uint64_t source = batch->source[i];
        bool good = source < s->n_sources;

        if (s->at + 1 < s->n_stretches && s->stretch[s->at + 1].start == s->position)
            audit_shares_enter(s);
        good = good && audit_shares_is_due(s, source);
        s->n++;
        if (source < s->n_sources)
            s->shown[source]++;
        if (good && audit_shares_is_due(s, source))
            continue;
        snprintf(line, sizeof(line),
                 "%.300s: place %zu: source %llu has not the share of its weight", name, i,
                 (unsigned long long)source);
        audit_tally_fault(tally, line);
    }
}
