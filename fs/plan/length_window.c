#include "fs/plan/length_window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "fs/plan/plan.h"

#define AT_ONCE    512 /* samples whose lengths are looked up together */
#define DIGIT_BITS 11  /* of the radix sort */

static uint64_t length_window_places(const struct length_cutter *c, uint64_t w)
{
    return min_u64(c->window, c->n - w * c->window);
}

/* Keys rise as lengths fall, and those of one length with the place. */
static uint32_t length_of_key(uint64_t key)
{
    return UINT32_MAX - (uint32_t)(key >> 32);
}

static void length_window_keys(const struct length_cutter *c, const struct epoch_order *order,
                               uint64_t w, uint64_t n, uint64_t *ret)
{
    uint64_t sample[AT_ONCE];
    uint32_t length[AT_ONCE];

    for (uint64_t i = 0, some; i < n; i += some) {
        some = min_u64(AT_ONCE, n - i);
        schedule_elements(c->places, order, w * c->window + i, (size_t)some, sample);
        c->lengths->ops->get(c->lengths, (size_t)some, sample, length);
        for (uint64_t k = 0; k < some; k++) {
            uint32_t l = length[k] ? length[k] : 1;

            ret[i + k] = (uint64_t)(UINT32_MAX - l) << 32 | (i + k);
        }
    }
}

/* Sort by the lengths alone: places rise already, and a radix sort is stable. */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *spare, uint64_t n)
{
    uint64_t differ = 0;

    for (uint64_t i = 1; i < n; i++)
        differ |= (keys[i] ^ keys[0]) >> 32;
    for (unsigned shift = 32; shift < 64; shift += DIGIT_BITS) {
        uint32_t count[(1 << DIGIT_BITS) + 1] = {0};
        const uint64_t mask = (1 << DIGIT_BITS) - 1;
        uint64_t *sorted = spare;

        if (!(differ >> (shift - 32) & mask))
            continue;
        for (uint64_t i = 0; i < n; i++)
            count[(keys[i] >> shift & mask) + 1]++;
        for (unsigned i = 1; i <= mask; i++)
            count[i] += count[i - 1];
        for (uint64_t i = 0; i < n; i++)
            sorted[count[keys[i] >> shift & mask]++] = keys[i];
        spare = keys;
        keys = sorted;
    }
    return keys;
}

/* A budget counts a length as so much; it cannot overflow, as a length is below 2^32. */
static uint64_t cost_of(const struct length_cutter *c, uint32_t length)
{
    uint64_t l = length;

    return l + (c->quad ? l * l / c->quad : 0);
}

/* How many samples a batch has that begins with this one of n. */
static uint64_t cut_of(const struct length_cutter *c, const uint64_t *keys, uint64_t at, uint64_t n)
{
    uint64_t most = c->most;

    if (c->budget != UINT64_MAX)
        most = min_u64(most, max_u64(c->budget / cost_of(c, length_of_key(keys[at])), 1));
    return min_u64(most, n - at);
}

/* Without the short batch that tail=drop omits. */
static uint64_t cut_end(const struct length_cutter *c, uint64_t n)
{
    return c->drops_short ? n - n % c->most : n;
}

int length_sort(const struct length_cutter *c, const struct epoch_order *order, uint64_t w,
                struct sorted_window *ret)
{
    uint64_t n = length_window_places(c, w);

    ret->memory = malloc(2 * (size_t)n * sizeof(*ret->memory));
    if (!ret->memory)
        return -ENOMEM;
    ret->places = n;
    ret->end = cut_end(c, n);
    length_window_keys(c, order, w, n, ret->memory);
    ret->keys = sort_keys(ret->memory, ret->memory + n, n);
    return 0;
}

uint32_t length_count_cuts(const struct length_cutter *c, const struct sorted_window *s)
{
    uint32_t cuts = 0;

    for (uint64_t at = 0; at < s->end; cuts++)
        at += cut_of(c, s->keys, at, s->end);
    return cuts;
}

/* ---- windows ---- */

/* Write which cut is shown at each place. Runs of `group` cuts begin at numbers that it divides. */
static void show_cuts(const struct length_cutter *c, uint64_t epoch, uint64_t w,
                      const struct length_window *window, uint32_t *ret)
{
    uint64_t cuts = window->cuts, group = c->group;
    uint64_t head = min_u64((group - window->before % group) % group, cuts);
    uint64_t runs = (cuts - head) / group;
    struct permutation p;

    for (uint64_t i = 0; i < cuts; i++)
        ret[i] = (uint32_t)i;
    if (!c->places->plan->seeded)
        return;
    permutation_init(&p, c->places->plan->seed, epoch, LANE_WINDOWS + w, runs);
    for (uint64_t i = 0; i < head; i++)
        ret[i] = (uint32_t)(runs * group + i);
    for (uint64_t q = 0; q < runs; q++) {
        uint64_t run = q;

        permutation_send(&p, 1, &run);
        for (uint64_t x = 0; x < group; x++)
            ret[head + q * group + x] = (uint32_t)(run * group + x);
    }
}

static void fill_window(const struct length_cutter *c, uint64_t epoch, uint64_t w,
                        const struct sorted_window *s, struct length_window *ret)
{
    uint32_t *start = ret->number + ret->places, *cut = start + ret->cuts + 1;
    uint32_t *shown = cut + ret->cuts, at = 0;

    for (uint32_t i = 0; i < ret->places; i++)
        ret->number[i] = (uint32_t)s->keys[i];
    for (uint32_t i = 0; i < ret->cuts; i++) {
        start[i] = at;
        at += (uint32_t)cut_of(c, s->keys, at, s->end);
    }
    start[ret->cuts] = at;
    show_cuts(c, epoch, w, ret, cut);
    at = 0;
    for (uint32_t i = 0; i < ret->cuts; i++) {
        shown[i] = at;
        at += start[cut[i] + 1] - start[cut[i]];
    }
    shown[ret->cuts] = at;
}

void length_measure(const struct length_cutter *c, const struct sorted_window *s,
                    struct length_fill *ret)
{
    for (uint64_t at = 0, n; at < s->end; at += n) {
        uint64_t longest = length_of_key(s->keys[at]);

        n = cut_of(c, s->keys, at, s->end);
        ret->area += (double)longest * (double)n;
        for (uint64_t i = at; i < at + n; i++)
            ret->used += length_of_key(s->keys[i]);
        ret->samples += n;
        ret->batches++;
        ret->alone += longest > c->budget;
    }
}

size_t length_window_size(uint64_t places, uint64_t cuts)
{
    return sizeof(struct length_window) + 4 * (size_t)(places + 3 * cuts + 2);
}

int length_window_new(const struct length_cutter *c, const struct epoch_order *order, uint64_t w,
                      uint64_t before, void **ret, size_t *ret_size)
{
    struct length_window *window;
    struct sorted_window s;
    uint32_t cuts;
    int r = length_sort(c, order, w, &s);

    if (r < 0)
        return r;
    cuts = length_count_cuts(c, &s);
    *ret_size = length_window_size(s.places, cuts);
    window = malloc(*ret_size);
    if (window) {
        window->places = (uint32_t)s.places;
        window->cuts = cuts;
        window->before = before;
        fill_window(c, order->epoch, w, &s, window);
    }
    free(s.memory);
    *ret = window;
    return window ? 0 : -ENOMEM;
}
