/* The order of an epoch: a permutation that is computed, not stored.
 *
 * Order version 1 of docs/spec/order.md, which is the definition; it never changes. Position to
 * sample and back cost the same for any n up to 2^48 and need no memory beyond struct order. */
#ifndef EPOCHFS_FS_PLAN_ORDER_H
#define EPOCHFS_FS_PLAN_ORDER_H

#include <stddef.h>
#include <stdint.h>

#define ORDER_VERSION      1
#define ORDER_ROUNDS       48
#define ORDER_GROUP_BLOCKS 8 /* blocks of a window shuffle whose samples are mixed */
#define ORDER_MAX          (UINT64_C(1) << 48)

/* The keys of one permutation of 0..n-1. */
struct permutation {
    uint64_t n;
    uint64_t mirror[ORDER_ROUNDS]; /* < n: x is paired with mirror - x mod n */
    uint64_t coin[ORDER_ROUNDS];
};

/* Permutations other than those of version 1 have lanes from here on; docs/spec/order.md lists
 * them. */
#define ORDER_LANES  (UINT64_C(1) << 63)
#define LANE_SPLIT   ORDER_LANES
#define LANE_DRAW    (ORDER_LANES + 1)
#define LANE_CLASSES (ORDER_LANES + 2)
#define LANE_MIX     (ORDER_LANES + 3)
#define LANE_WINDOWS (UINT64_C(1) << 62) /* + the number of a window of length batches */

/* key(seed, epoch, lane, n) of docs/spec/order.md. */
uint64_t order_key(uint64_t seed, uint64_t epoch, uint64_t lane, uint64_t n);

/* The permutation with key(seed, epoch, lane, n) of docs/spec/order.md. */
void permutation_init(struct permutation *ret, uint64_t seed, uint64_t epoch, uint64_t lane,
                      uint64_t n);

/* Send count numbers, all < n, through it, or back. */
void permutation_send(const struct permutation *p, size_t count, uint64_t *x);
void permutation_back(const struct permutation *p, size_t count, uint64_t *x);

/* Any number of permutations with the keys of one: member (a, b) costs two rounds of mixing to set
 * up instead of a hundred, and no memory. See "A family of permutations" in docs/spec/order.md. */
struct permutation_family {
    uint64_t mirror[ORDER_ROUNDS];
    uint64_t coin[ORDER_ROUNDS];
};

struct permutation_member {
    uint64_t n; /* > 0, at most ORDER_MAX */
    uint64_t mirror, coin;
};

/* The family with key(seed, epoch, lane, 0). */
void family_init(struct permutation_family *ret, uint64_t seed, uint64_t epoch, uint64_t lane);

/* Its permutation (a, b) of 0..n-1, such as that of pass b of class a. */
struct permutation_member family_member(uint64_t a, uint64_t b, uint64_t n);

/* Send count numbers through members of it, or back: x[i] < m[i].n through m[i]. */
void family_send_each(const struct permutation_family *f, const struct permutation_member *m,
                      size_t count, uint64_t *x);
void family_back_each(const struct permutation_family *f, const struct permutation_member *m,
                      size_t count, uint64_t *x);

struct order {
    uint64_t seed, epoch;
    uint64_t n;               /* samples */
    uint64_t window;          /* samples of a block; 0: full shuffle */
    uint64_t blocks;          /* of a window shuffle */
    uint64_t short_slot;      /* the slot of the last, perhaps short, block */
    uint64_t short_missing;   /* how many samples that block lacks */
    struct permutation whole; /* of the samples, or of the blocks of a window shuffle */
};

/* n from 0 to ORDER_MAX; window 0 = full. Any seed, any epoch. */
void order_init(struct order *ret, uint64_t seed, uint64_t epoch, uint64_t n, uint64_t window);

/* The samples at count positions, all < n, in their place. Neighbours of a window shuffle should be
 * neighbours in x. */
void order_map(const struct order *o, size_t count, uint64_t *x);

/* The positions of count samples, all < n, in their place. */
void order_unmap(const struct order *o, size_t count, uint64_t *x);

#endif
