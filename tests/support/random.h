/* Numbers that look random and are the same in every run. */
#ifndef EPOCHFS_TESTS_SUPPORT_RANDOM_H
#define EPOCHFS_TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

#define RANDOM_SEED UINT64_C(88172645463325252)

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Below n. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return (random_next(state) >> 11) % n;
}

#endif
