/* A mix: one sequence of positions without an end, shared by several sources in proportion to their
 * weights. Arithmetic only: which source is at a position, which of its elements, and back.
 *
 * The weights w of a stretch make a period of W = sum of w positions, which is a table: the jobs
 * (source, j), j < w[source], released at floor(j W / w) and due at ceil((j + 1) W / w), earliest
 * deadline first. So after any n positions of the stretch a source has had more than n w / W - 1 of
 * them and less than n w / W + 1. docs/spec/order.md has the definition and the proof.
 *
 * Positions and elements have 128 bits: epochs are cut from the sequence, and any epoch opens.
 * A struct mix is constant; any thread. */
#ifndef EPOCHFS_FS_PLAN_MIX_H
#define EPOCHFS_FS_PLAN_MIX_H

#include <stdbool.h>
#include <stdint.h>

#define MIX_PERIOD_MAX    65536 /* W */
#define MIX_SOURCES_MAX   256
#define MIX_STRETCHES_MAX 64
#define MIX_POSITION_MAX  (UINT64_C(1) << 48) /* a start of a stretch, a length of an epoch */

__extension__ typedef unsigned __int128 mix_number;

/* The weights from a position on, up to the next stretch. */
struct mix_weights {
    uint64_t start;                   /* the first position: 0, then rising */
    uint32_t weight[MIX_SOURCES_MAX]; /* [sources] 0: the source rests; MIX_PERIOD_MAX in sum */
};

/* a / b, and the remainder. Nearly always a fits in 64 bits. */
static inline mix_number mix_divide(mix_number a, uint64_t b, uint64_t *ret_rest)
{
    mix_number q;

    if (a <= UINT64_MAX) {
        *ret_rest = (uint64_t)a % b;
        return (uint64_t)a / b;
    }
    q = a / b;
    *ret_rest = (uint64_t)(a - q * b);
    return q;
}

struct mix;

/* weights: [stretches], at least one; not used afterwards. Each source has a weight in some
 * stretch. 0 or -ENOMEM. */
int mix_new(const struct mix_weights *weights, unsigned stretches, unsigned sources,
            struct mix **ret);
void mix_free(struct mix *mix); /* takes NULL */

/* The source at a position, and which of its elements: each is at one position. */
unsigned mix_at(const struct mix *mix, mix_number position, mix_number *ret_element);

/* The position of an element of a source. false: the source rests for ever before it comes. */
bool mix_position(const struct mix *mix, unsigned source, mix_number element, mix_number *ret);

/* How many elements of a source come before a position. */
mix_number mix_count(const struct mix *mix, unsigned source, mix_number position);

/* The same, quickly: not more than that, and at most one less. */
mix_number mix_count_least(const struct mix *mix, unsigned source, mix_number position);

/* Where an epoch ends. */
enum mix_end {
    MIX_SUM,    /* as many positions as all sources have elements in a pass */
    MIX_FIRST,  /* before the first source begins again */
    MIX_ALL,    /* when each source has shown all its elements */
    MIX_LENGTH, /* as many as given */
};

/* The length of an epoch. passes: [sources] the elements of a pass of each, at least 1. fixed: for
 * MIX_LENGTH. 0; -ERANGE: it is more than MIX_POSITION_MAX; -EDOM: a source, *ret_source, rests for
 * ever before all its elements were shown. */
int mix_length(const struct mix *mix, const uint64_t *passes, enum mix_end end, uint64_t fixed,
               uint64_t *ret, unsigned *ret_source);

/* ---- weights ---- */

/* n weights, none 0, divided by what all are multiples of. true: their sum is at most
 * MIX_PERIOD_MAX. false: it is not, and ret has the nearest ones whose sum is MIX_PERIOD_MAX, by
 * the largest remainder, none 0. n <= MIX_SOURCES_MAX. */
bool mix_reduce(const uint64_t *weight, unsigned n, uint32_t *ret);

#endif
