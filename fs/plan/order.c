/* Order version 1: a swap-or-not shuffle (Hoang, Morris, Rogaway, CRYPTO 2012) per epoch.
 *
 * Each round pairs every x with (mirror - x) mod n and swaps the two if the coin of the pair says
 * so. A round is its own inverse, any n works as well as any other (no cycle walking, no rounding
 * up to a power of two), and odd permutations are reached. docs/spec/order.md has the definition,
 * and what 48 rounds achieve. */
#include "fs/plan/order.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/mix64.h"

enum {
    LANE_WHOLE = 0,
    LANE_BLOCKS = 1,
    LANE_GROUPS = 2, /* + the number of the group */
};

/* The highest bit of mix(z), which its last step does not change. */
static inline uint64_t highest_of_mix(uint64_t z)
{
    z ^= z >> 30;
    z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    z *= UINT64_C(0x94d049bb133111eb);
    return z >> 63;
}

uint64_t order_key(uint64_t seed, uint64_t epoch, uint64_t lane, uint64_t n)
{
    return mix64_key(seed, epoch, lane, n);
}

/* floor(x * n / 2^64), a number below n */
static inline uint64_t scale_to(uint64_t x, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)((u128)x * n >> 64);
}

/* x mod n without a division: inverse is floor((2^64 - 1) / n), so the quotient is at most one too
 * small. */
static inline uint64_t modulo(uint64_t x, uint64_t n, uint64_t inverse)
{
    uint64_t remainder = x - scale_to(x, inverse) * n;

    return remainder - (remainder >= n ? n : 0);
}

static inline uint64_t swap_or_not(uint64_t n, uint64_t mirror, uint64_t coin, uint64_t x)
{
    uint64_t y = mirror - x, larger;

    /* Without branches: the outcomes are random by design, so jumps would be mispredicted half the
     * time. */
    y += n & -(uint64_t)(mirror < x);
    larger = x > y ? x : y;
    return x ^ ((x ^ y) & -highest_of_mix(larger ^ coin));
}

static inline uint64_t permutation_round(const struct permutation *p, unsigned r, uint64_t x)
{
    return swap_or_not(p->n, p->mirror[r], p->coin[r], x);
}

/* The keys of round r of the permutation of n numbers with key s. inverse: see modulo(). */
static inline uint64_t mirror_of(uint64_t s, unsigned r, uint64_t n, uint64_t inverse)
{
    return modulo(mix64(s + (2 * r + 1) * MIX64_GOLDEN), n, inverse);
}

static inline uint64_t coin_of(uint64_t s, unsigned r)
{
    return mix64(s + (2 * r + 2) * MIX64_GOLDEN);
}

void permutation_init(struct permutation *ret, uint64_t seed, uint64_t epoch, uint64_t lane,
                      uint64_t n)
{
    uint64_t s = order_key(seed, epoch, lane, n), inverse = n ? UINT64_MAX / n : 0;

    ret->n = n;
    for (unsigned r = 0; r < ORDER_ROUNDS; r++) {
        ret->mirror[r] = n ? mirror_of(s, r, n, inverse) : 0;
        ret->coin[r] = coin_of(s, r);
    }
}

/* The same, n > 0; returns x sent back through it. The keys of later rounds are made while earlier
 * ones wait for each other. */
static uint64_t permutation_init_back(struct permutation *ret, uint64_t seed, uint64_t epoch,
                                      uint64_t lane, uint64_t n, uint64_t x)
{
    uint64_t s = order_key(seed, epoch, lane, n), inverse = UINT64_MAX / n;

    ret->n = n;
    for (unsigned r = ORDER_ROUNDS; r-- > 0;) {
        ret->mirror[r] = mirror_of(s, r, n, inverse);
        ret->coin[r] = coin_of(s, r);
        x = permutation_round(ret, r, x);
    }
    return x;
}

static uint64_t permutation_forward(const struct permutation *p, uint64_t x)
{
    for (unsigned r = 0; r < ORDER_ROUNDS; r++)
        x = permutation_round(p, r, x);
    return x;
}

static uint64_t permutation_backward(const struct permutation *p, uint64_t x)
{
    for (unsigned r = ORDER_ROUNDS; r-- > 0;)
        x = permutation_round(p, r, x);
    return x;
}

/* Positions side by side, so that the processor works on several chains of rounds at once. */
#define LANES 8

/* Map LANES numbers through the permutation; backward: through its inverse. Inline, so that each
 * direction has a loop of its own. */
static inline void send_lanes(const struct permutation *p, bool backward, uint64_t *x)
{
    uint64_t lane[LANES];

    for (unsigned i = 0; i < LANES; i++)
        lane[i] = x[i];
    for (unsigned r = 0; r < ORDER_ROUNDS; r++)
        for (unsigned i = 0; i < LANES; i++)
            lane[i] = permutation_round(p, backward ? ORDER_ROUNDS - 1 - r : r, lane[i]);
    for (unsigned i = 0; i < LANES; i++)
        x[i] = lane[i];
}

#ifdef __x86_64__
#define WIDE    32 /* numbers, in */
#define VECTORS 4  /* vectors side by side */
/* With the alignment of numbers: a frame of AddressSanitizer has no more. */
typedef uint64_t vector __attribute__((vector_size(64), aligned(8)));
typedef int64_t vector_signed __attribute__((vector_size(64), aligned(8)));

/* A round for eight numbers, n < 2^63. */
static inline __attribute__((target("avx512f,avx512dq"), always_inline)) vector
vector_round(const struct permutation *p, unsigned r, vector x)
{
    vector y = p->mirror[r] - x, is_larger, z;

    y += (vector)((vector_signed)y < 0) & p->n;
    is_larger = (vector)((vector_signed)x > (vector_signed)y);
    z = ((x & is_larger) | (y & ~is_larger)) ^ p->coin[r];
    z ^= z >> 30; /* as highest_of_mix() */
    z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    z *= UINT64_C(0x94d049bb133111eb);
    return x ^ ((x ^ y) & (vector)((vector_signed)z < 0));
}

/* Map as many of the numbers as are multiples of WIDE; returns how many. It is
 * three times as fast as numbers one by one; AVX-512 has a multiplication of 64 bits. */
static __attribute__((target("avx512f,avx512dq"))) size_t
send_wide(const struct permutation *p, bool backward, size_t count, uint64_t *x)
{
    size_t done = count / WIDE * WIDE;

    for (size_t i = 0; i < done; i += WIDE) {
        vector lane[VECTORS];

        memcpy(lane, x + i, sizeof(lane));
        for (unsigned r = 0; r < ORDER_ROUNDS; r++)
            for (unsigned k = 0; k < VECTORS; k++)
                lane[k] = vector_round(p, backward ? ORDER_ROUNDS - 1 - r : r, lane[k]);
        memcpy(x + i, lane, sizeof(lane));
    }
    return done;
}

static size_t send_fast(const struct permutation *p, bool backward, size_t count, uint64_t *x)
{
    return count >= WIDE && p->n <= INT64_MAX && __builtin_cpu_supports("avx512dq")
               ? send_wide(p, backward, count, x)
               : 0;
}
#else
static size_t send_fast(const struct permutation *p, bool backward, size_t count, uint64_t *x)
{
    (void)p;
    (void)backward;
    (void)count;
    (void)x;
    return 0;
}
#endif

/* The same for count numbers. Without the attribute, gcc makes one slower function for both
 * directions. */
static inline __attribute__((always_inline)) void send_all(const struct permutation *p,
                                                           bool backward, size_t count, uint64_t *x)
{
    size_t i = send_fast(p, backward, count, x);

    for (; count - i >= LANES; i += LANES)
        send_lanes(p, backward, x + i);
    for (; i < count; i++)
        x[i] = backward ? permutation_backward(p, x[i]) : permutation_forward(p, x[i]);
}

void order_init(struct order *ret, uint64_t seed, uint64_t epoch, uint64_t n, uint64_t window)
{
    ret->seed = seed;
    ret->epoch = epoch;
    ret->n = n;
    ret->window = window;
    ret->blocks = 0;
    ret->short_slot = 0;
    ret->short_missing = 0;
    if (!window) {
        permutation_init(&ret->whole, seed, epoch, LANE_WHOLE, n);
        return;
    }
    ret->blocks = ceil_div(n, window);
    ret->short_missing = n ? ret->blocks * window - n : 0;
    if (!ret->short_missing) {
        permutation_init(&ret->whole, seed, epoch, LANE_BLOCKS, ret->blocks);
        return;
    }
    ret->short_slot =
        permutation_init_back(&ret->whole, seed, epoch, LANE_BLOCKS, ret->blocks, ret->blocks - 1);
}

/* The number of samples before slot in a window shuffle. */
static uint64_t slot_start(const struct order *o, uint64_t slot)
{
    return slot * o->window - (slot > o->short_slot ? o->short_missing : 0);
}

/* The slot that holds sample number place of the list of blocks, before groups are mixed. */
static uint64_t slot_at(const struct order *o, uint64_t place)
{
    uint64_t slot = place / o->window;

    /* After the short block everything comes short_missing places earlier. */
    if (slot >= o->short_slot && place >= slot_start(o, o->short_slot + 1))
        slot = (place + o->short_missing) / o->window;
    return slot;
}

/* A group of a window shuffle: blocks whose samples are mixed. */
struct group {
    uint64_t start; /* its first place */
    uint64_t end;   /* after its last place */
    uint64_t lane;
    bool is_set_up; /* the permutation is */
    struct permutation permutation;
    unsigned known;                      /* bits: the slots of which the */
    uint64_t sample[ORDER_GROUP_BLOCKS]; /* first sample is known */
};

/* Make *ret the group of place; it may be that group already. */
static void group_at(const struct order *o, uint64_t place, struct group *ret)
{
    uint64_t number, last;

    if (place >= ret->start && place < ret->end)
        return;
    number = slot_at(o, place) / ORDER_GROUP_BLOCKS;
    last = min_u64((number + 1) * ORDER_GROUP_BLOCKS, o->blocks);
    ret->start = slot_start(o, number * ORDER_GROUP_BLOCKS);
    ret->end = slot_start(o, last);
    ret->known = 0;
    ret->lane = LANE_GROUPS + number;
    ret->is_set_up = false;
}

/* One number through the permutation of a group, or back, without setting it up. */
static uint64_t send_once(const struct order *o, const struct group *group, bool backward,
                          uint64_t x)
{
    uint64_t n = group->end - group->start, s = order_key(o->seed, o->epoch, group->lane, n);
    uint64_t inverse = UINT64_MAX / n;

    for (unsigned i = 0; i < ORDER_ROUNDS; i++) {
        unsigned r = backward ? ORDER_ROUNDS - 1 - i : i;

        x = swap_or_not(n, mirror_of(s, r, n, inverse), coin_of(s, r), x);
    }
    return x;
}

/* Numbers of a group, from its start on. */
static void send_group(const struct order *o, struct group *group, bool backward, size_t count,
                       uint64_t *x)
{
    if (count == 1 && !group->is_set_up) {
        *x = send_once(o, group, backward, *x);
        return;
    }
    if (!group->is_set_up)
        permutation_init(&group->permutation, o->seed, o->epoch, group->lane,
                         group->end - group->start);
    group->is_set_up = true;
    send_all(&group->permutation, backward, count, x);
}

/* The first sample of the block that a slot of the group holds. */
static uint64_t slot_sample(const struct order *o, uint64_t slot, struct group *group)
{
    unsigned i = slot % ORDER_GROUP_BLOCKS;

    if (!(group->known >> i & 1)) {
        group->sample[i] = permutation_forward(&o->whole, slot) * o->window;
        group->known |= 1u << i;
    }
    return group->sample[i];
}

/* The sample at a place of the list of blocks, in this group. */
static uint64_t order_place_sample(const struct order *o, uint64_t place, struct group *group)
{
    uint64_t slot = slot_at(o, place);

    return slot_sample(o, slot, group) + (place - slot_start(o, slot));
}

void permutation_send(const struct permutation *p, size_t count, uint64_t *x)
{
    send_all(p, false, count, x);
}

void permutation_back(const struct permutation *p, size_t count, uint64_t *x)
{
    send_all(p, true, count, x);
}

/* ---- families ---- */

void family_init(struct permutation_family *ret, uint64_t seed, uint64_t epoch, uint64_t lane)
{
    uint64_t s = order_key(seed, epoch, lane, 0);

    for (unsigned r = 0; r < ORDER_ROUNDS; r++) {
        ret->mirror[r] = mix64(s + (2 * r + 1) * MIX64_GOLDEN);
        ret->coin[r] = mix64(s + (2 * r + 2) * MIX64_GOLDEN);
    }
}

struct permutation_member family_member(uint64_t a, uint64_t b, uint64_t n)
{
    uint64_t s = mix64(mix64(a + MIX64_GOLDEN) ^ b);

    return (struct permutation_member){
        .n = n, .mirror = mix64(s + MIX64_GOLDEN), .coin = mix64(s + 2 * MIX64_GOLDEN)};
}

static inline uint64_t family_round(const struct permutation_family *f,
                                    const struct permutation_member *m, unsigned r, uint64_t x)
{
    return swap_or_not(m->n, scale_to(f->mirror[r] + m->mirror, m->n), f->coin[r] ^ m->coin, x);
}

static inline __attribute__((always_inline)) void family_all(const struct permutation_family *f,
                                                             const struct permutation_member *m,
                                                             bool backward, size_t count,
                                                             uint64_t *x)
{
    size_t i = 0;

    for (; count - i >= LANES; i += LANES)
        for (unsigned r = 0; r < ORDER_ROUNDS; r++)
#pragma GCC unroll 8
            for (unsigned k = 0; k < LANES; k++)
                x[i + k] =
                    family_round(f, &m[i + k], backward ? ORDER_ROUNDS - 1 - r : r, x[i + k]);
    for (unsigned r = 0; r < ORDER_ROUNDS; r++) /* the rest, also side by side */
        for (size_t k = i; k < count; k++)
            x[k] = family_round(f, &m[k], backward ? ORDER_ROUNDS - 1 - r : r, x[k]);
}

void family_send_each(const struct permutation_family *f, const struct permutation_member *m,
                      size_t count, uint64_t *x)
{
    family_all(f, m, false, count, x);
}

void family_back_each(const struct permutation_family *f, const struct permutation_member *m,
                      size_t count, uint64_t *x)
{
    family_all(f, m, true, count, x);
}

/* The samples at positions x[0 .. count - 1], mostly of one group. */
static void window_samples(const struct order *o, size_t count, uint64_t *x)
{
    struct group group;

    group.start = group.end = 0;
    while (count) {
        size_t n = 0;

        group_at(o, x[0], &group);
        for (; n < count && x[n] >= group.start && x[n] < group.end; n++)
            x[n] -= group.start;
        send_group(o, &group, false, n, x);
        for (size_t i = 0; i < n; i++)
            x[i] = order_place_sample(o, group.start + x[i], &group);
        x += n;
        count -= n;
    }
}

void order_map(const struct order *o, size_t count, uint64_t *x)
{
    if (o->window)
        window_samples(o, count, x);
    else
        send_all(&o->whole, false, count, x);
}

#define RUNS 64

/* Find the slots of the blocks of the first samples, those of neighbours of one block once: at most
 * RUNS. Returns how many. */
static size_t find_slots(const struct order *o, size_t count, const uint64_t *x,
                         uint64_t ret[static RUNS])
{
    uint64_t block = 0;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (n && x[i] / o->window == block)
            continue;
        if (n == RUNS)
            break;
        ret[n++] = block = x[i] / o->window;
    }
    send_all(&o->whole, true, n, ret);
    return n;
}

/* Neighbouring samples share a block, and a block belongs to one group; those of one block are sent
 * back together. */
static void window_unmap(const struct order *o, size_t count, uint64_t *x)
{
    uint64_t slot[RUNS];
    struct group group;

    group.start = group.end = 0;
    while (count) {
        size_t runs = find_slots(o, count, x, slot);

        for (size_t k = 0; k < runs; k++) {
            uint64_t block = x[0] / o->window, start = slot_start(o, slot[k]);
            size_t n = 0;

            group_at(o, start, &group);
            for (; n < count && x[n] / o->window == block; n++)
                x[n] = start + x[n] % o->window - group.start;
            send_group(o, &group, true, n, x);
            for (size_t i = 0; i < n; i++)
                x[i] += group.start;
            x += n;
            count -= n;
        }
    }
}

void order_unmap(const struct order *o, size_t count, uint64_t *x)
{
    if (o->window)
        window_unmap(o, count, x);
    else
        send_all(&o->whole, true, count, x);
}
