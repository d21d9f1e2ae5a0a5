/* How many files of which kind: what a source has that is in no dataset, in a line for people. */
#ifndef EPOCHFS_BASE_KINDS_H
#define EPOCHFS_BASE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define KINDS_COUNTED 64 /* extensions that are told apart, at most: those that come first */
#define KINDS_SHOWN   8

struct kind_count {
    char ext[16]; /* with its dot, as the first file has it; "" if there is none, or a longer one */
    const char *first; /* the name of the first file; not owned */
    uint64_t n;
};

/* Zeroed: no files. */
struct kinds {
    struct kind_count count[KINDS_COUNTED];
    unsigned n;
    uint64_t others;
};

/* Count a file by the extension of its name, in any case. The name lives as long as k is used. */
void kinds_add(struct kinds *k, const char *name);

/* Does a file of that name count to the kind? */
bool kind_has(const struct kind_count *kind, const char *name);

/* "40 .c, 3 .h, 1 without an extension, 7 others": the most frequent ones first; of as many, the
 * one that came first. With names: "40 .c (a.c and 39 more)". Nothing if there are no files. Sorts
 * k. */
void kinds_show(struct kinds *k, bool names, struct text *t);

#endif
