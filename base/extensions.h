/* How many files have which extension: what a source has that is in no dataset, in a line for
 * people. */
#ifndef EPOCHFS_BASE_EXTENSIONS_H
#define EPOCHFS_BASE_EXTENSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define EXTENSIONS_COUNTED 64 /* extensions that are told apart, at most: those that come first */
#define EXTENSIONS_SHOWN   8

struct extension_count {
    char ext[16]; /* with its dot, as the first file has it; "" if there is none, or a longer one */
    const char *first; /* the name of the first file; not owned */
    uint64_t n;
};

/* Zeroed: no files. */
struct extensions {
    struct extension_count count[EXTENSIONS_COUNTED];
    unsigned n;
    uint64_t others;
};

/* Count a file by the extension of its name, in any case. The name lives as long as k is used. */
void extensions_add(struct extensions *k, const char *name);

/* Is a file of that name counted there? */
bool extension_has(const struct extension_count *count, const char *name);

/* "40 .c, 3 .h, 1 without an extension, 7 others": the most frequent ones first; of as many, the
 * one that came first. With names: "40 .c (a.c and 39 more)". Nothing if there are no files. Sorts
 * k. */
void extensions_show(struct extensions *k, bool names, struct text *t);

#endif
