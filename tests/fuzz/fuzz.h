/* What a fuzz target provides. */
#ifndef EPOCHFS_TESTS_FUZZ_FUZZ_H
#define EPOCHFS_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* An assertion that stays in every build. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: want %s\n", __FILE__, __LINE__, #condition);                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
