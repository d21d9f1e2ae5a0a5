/* What a fuzz target provides. */
#ifndef EPOCHFS_TESTS_FUZZ_FUZZ_H
#define EPOCHFS_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A hash of an input's bytes: by it libFuzzer's inputs take different ways. */
static inline uint64_t fuzz_hash(const uint8_t *data, size_t len)
{
    uint64_t h = len;

    for (size_t i = 0; i < len; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

/* Does the input of this hash take way i of n? A replay of the corpus takes all. With libFuzzer an
 * input takes one, the same each time: it makes thousands, and all ways of each take too long. */
static inline bool fuzz_takes(uint64_t hash, unsigned i, unsigned n)
{
#ifdef EPOCHFS_FUZZING
    return hash % n == i;
#else
    (void)hash;
    return i < n;
#endif
}

/* Bytes that an input leads to. A replay adds up those of all inputs and compares the sum with that
 * of sums.txt, so that no change of what is shown passes unseen. */
#ifdef EPOCHFS_FUZZING
static inline void fuzz_saw(const void *bytes, size_t len)
{
    (void)bytes;
    (void)len;
}
#else
void fuzz_saw(const void *bytes, size_t len);
#endif

/* An assertion that stays in every build. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
