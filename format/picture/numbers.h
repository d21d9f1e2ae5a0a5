/* The random numbers of augmented pictures. Each follows from what it is for: the seed, the epoch,
 * the number of the sample, its position in the epoch, the recipe's salt, the word, and a number
 * j. So they are the same on every machine, and no state is kept. They never change. Integers
 * only. */
#ifndef EPOCHFS_FORMAT_PICTURE_NUMBERS_H
#define EPOCHFS_FORMAT_PICTURE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Words of a recipe that have numbers; their values are part of the definition. */
enum augment_word {
    AUGMENT_CROP, /* rrc and crop */
    AUGMENT_FLIP,
    AUGMENT_VFLIP,
    AUGMENT_POLICY, /* auto, rand and trivial */
    AUGMENT_JITTER,
    AUGMENT_GRAY,
    AUGMENT_ERASE,
};

/* The numbers of one sample of an epoch. */
struct augment_numbers {
    uint64_t state; /* constant */
};

struct augment_numbers augment_numbers_of(uint64_t seed, uint64_t epoch, uint64_t index,
                                          uint64_t position, uint64_t salt);

/* Number j of a word, j < 256: any of 2^64. */
uint64_t augment_u64(const struct augment_numbers *n, enum augment_word word, unsigned j);

/* The same as one of 0 to most - 1; most > 0. */
uint64_t augment_below(const struct augment_numbers *n, uint64_t most, enum augment_word word,
                       unsigned j);

/* Does it happen, with a chance of p / 2^32? 0: never, 2^32: always. */
bool augment_chance(const struct augment_numbers *n, uint64_t p, enum augment_word word,
                    unsigned j);

/* A decimal with six digits behind its point, as a fixed-point number with that many bits behind
 * it, half up: millionths 2^bits / 10^6. millionths < 2^24, bits <= 32. */
uint64_t augment_fixed(uint64_t millionths, unsigned bits);

/* floor(sqrt(v)) */
uint64_t augment_square_root(uint64_t v);

#endif
