/* Values of options: numbers, sizes, words. Each is checked as a whole; a message names the option,
 * what was wanted and what was found. */
#ifndef EPOCHFS_BASE_VALUES_H
#define EPOCHFS_BASE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* A number from least to most. 0, or -EINVAL with the reason in d. */
int value_count(const char *name, const char *value, uint64_t least, uint64_t most, uint64_t *ret,
                struct diag *d);

/* Bytes, at least 1: a whole number, perhaps followed by K, M, G or T, powers of 1024. 0, or
 * -EINVAL with the reason in d. */
int value_size(const char *name, const char *value, uint64_t *ret, struct diag *d);

/* Is the word, of len bytes, one of these names? | separates them: the first is the name, the
 * others are synonyms, which are taken and shown nowhere. */
bool value_names(const char *names, const char *word, size_t len);

/* The number of value among n words, each with its synonyms. 0, or -EINVAL with the reason in d. */
int value_word(const char *name, const char *value, const char *const *words, unsigned n,
               unsigned *ret, struct diag *d);

/* Replace *text by a copy of value, which must not be empty. expected: what the value must be, in
 * words. 0, -EINVAL with the reason in d, or -ENOMEM. */
int value_text(const char *name, const char *value, const char *expected, const char **text,
               struct diag *d);

/* The same for a path, which is made absolute; one that begins with ~ is refused. */
int value_path(const char *name, const char *value, const char *expected, const char **text,
               struct diag *d);

/* Edits that turn the word a into b: insertions, deletions, replacements. For "is it ...?". */
size_t edit_distance(const char *a, const char *b);

/* The name that a wrong name probably means. */
struct guess {
    const char *wrong;
    const char *name; /* NULL: none is similar */
    size_t distance;
};

void guess_init(struct guess *ret, const char *wrong);
void guess_at(struct guess *guess, const char *name); /* name: one of the valid names */

#endif
