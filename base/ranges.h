/* Ranges of numbers that may overlap, found by what they overlap: a treap in order of `first`, in
 * which each node knows the largest `end` below it. All operations take O(log n), each further
 * range of a search as well.
 *
 * A range is embedded in the struct that it represents; nothing is allocated. No locks: the owner's
 * lock guards them. */
#ifndef EPOCHFS_BASE_RANGES_H
#define EPOCHFS_BASE_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t first, end; /* [first, end); an empty one overlaps nothing */
    /* For ranges.c: */
    struct range *left, *right, *parent;
    uint64_t reach; /* the largest end of this one and those below */
    uint32_t weight;
};

struct ranges {
    struct range *root;
    size_t n;
    uint64_t weights; /* state of the generator */
    uint64_t steps;   /* nodes visited so far, for tests */
};

/* Set range->first and ->end before. Ranges with the same first are in any order. */
void ranges_add(struct ranges *ranges, struct range *range);
void ranges_remove(struct ranges *ranges, struct range *range);

/* Change a range that is in ranges. */
void ranges_move(struct ranges *ranges, struct range *range, uint64_t first, uint64_t end);

/* The first range that overlaps [first, end), and the next one behind `range`, which must be in
 * ranges; NULL: none. Get the next range before you remove this one. */
struct range *ranges_first(struct ranges *ranges, uint64_t first, uint64_t end);
struct range *ranges_next(struct ranges *ranges, const struct range *range, uint64_t first,
                          uint64_t end);

/* The range with the smallest first, empty or not; NULL: there is none. */
struct range *ranges_least(struct ranges *ranges);

#endif
