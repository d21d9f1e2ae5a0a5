#include "format/core/sample_window.h"

#include "base/checked.h"

#define GROWTH 4 /* factor by which each used-up window grows */

static bool has(const struct sample_window *w, uint64_t place)
{
    return place >= w->first && place - w->first < w->n;
}

/* A walk that continues gets a larger window, which includes the place before: it may look back by
 * one. */
static void sample_window_fill(struct sample_window *w, uint64_t place)
{
    bool goes_on = place && place == w->next;
    uint64_t first = goes_on ? place - 1 : place;
    uint64_t n = goes_on ? min_u64(GROWTH * w->n, SAMPLE_WINDOW) : 1;

    w->n = (size_t)min_u64(n, w->sel->count - first);
    w->first = first;
    selection_samples(w->sel, first, w->n, w->sample);
}

uint64_t sample_window_at(struct sample_window *w, uint64_t place)
{
    if (!has(w, place))
        sample_window_fill(w, place);
    w->next = place + 1;
    return w->sample[place - w->first];
}
