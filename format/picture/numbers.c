/* Counter-based random numbers of augmented pictures. */
#include "format/picture/numbers.h"

#include <math.h>

#include "base/mix64.h"

#define AUGMENT_LANE      ((UINT64_C(1) << 63) + 4) /* among those of docs/spec/order.md */
#define NUMBERS_OF_A_WORD 256u
#define MILLION           1000000u

struct augment_numbers augment_numbers_of(uint64_t seed, uint64_t epoch, uint64_t index,
                                          uint64_t position, uint64_t salt)
{
    uint64_t key = mix64_key(seed, epoch, AUGMENT_LANE, index);

    return (struct augment_numbers){mix64_with(mix64_with(key, position), salt)};
}

uint64_t augment_u64(const struct augment_numbers *n, enum augment_word word, unsigned j)
{
    return mix64(n->state + ((uint64_t)NUMBERS_OF_A_WORD * word + j + 1) * MIX64_GOLDEN);
}

uint64_t augment_below(const struct augment_numbers *n, uint64_t most, enum augment_word word,
                       unsigned j)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)((u128)augment_u64(n, word, j) * most >> 64);
}

bool augment_chance(const struct augment_numbers *n, uint64_t p, enum augment_word word, unsigned j)
{
    return augment_u64(n, word, j) >> 32 < p;
}

uint64_t augment_fixed(uint64_t millionths, unsigned bits)
{
    return ((millionths << bits) + MILLION / 2) / MILLION;
}

/* The float is only where the search begins: the result is exact on every machine. */
uint64_t augment_square_root(uint64_t v)
{
    double about = sqrt((double)v);
    uint64_t root = about < UINT32_MAX ? (uint64_t)about : UINT32_MAX;

    while (root * root > v)
        root--;
    while (root < UINT32_MAX && (root + 1) * (root + 1) <= v)
        root++;
    return root;
}
