/* Numbers without a state: any number is mixed from what it stands for. docs/spec/order.md defines
 * both functions, and they never change: orders and random numbers of a path follow from them. */
#ifndef EPOCHFS_BASE_MIX64_H
#define EPOCHFS_BASE_MIX64_H

#include <stdint.h>

#define MIX64_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* The finalizer of splitmix64, a bijection of the 64-bit integers. */
static inline uint64_t mix64(uint64_t z)
{
    z ^= z >> 30;
    z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    z *= UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return z;
}

/* s with another word in it. */
static inline uint64_t mix64_with(uint64_t s, uint64_t word)
{
    return mix64((s ^ word) + MIX64_GOLDEN);
}

/* key(seed, epoch, lane, n) */
static inline uint64_t mix64_key(uint64_t seed, uint64_t epoch, uint64_t lane, uint64_t n)
{
    uint64_t s = mix64(seed + MIX64_GOLDEN);

    return mix64_with(mix64_with(mix64_with(s, epoch), lane), n);
}

#endif
