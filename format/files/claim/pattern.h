/* Patterns of paths, as recipes have them: {word} is one or more bytes but '/', as many as
 * possible, and the same word is the same text everywhere; * is any bytes but '/', and ** any
 * folders. All else is as it is. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PATTERN_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/scope.h"

struct text;

#define PATTERN_WORDS  16    /* of a pattern, at most */
#define PATTERN_PIECES 128   /* words, stars, and texts between them */
#define PATTERN_STEPS  65536 /* of a comparison of one path, at most */

/* What words are. */
struct pattern_words {
    struct pattern_word {
        const char *name, *text; /* not ended by NUL; text NULL: it is not known */
        size_t name_len, len;
    } word[PATTERN_WORDS];
    unsigned n;
};

/* The word of that name, or NULL. */
const struct pattern_word *pattern_find(const struct pattern_words *words, const char *name,
                                        size_t len);

/* Set a word; false: there are too many. Texts are the caller's. */
bool pattern_set(struct pattern_words *words, const char *name, size_t name_len, const char *text,
                 size_t len);

/* What is wrong with a pattern, for people; NULL: nothing. */
const char *pattern_fault(const char *pattern);

/* Is the path of that pattern? Words that are known have their texts; those that are not become
 * known, and point into path. 1; 0; or -ELOOP: it can be read in too many ways. */
int pattern_match(const char *pattern, const char *path, struct pattern_words *words);

/* The same of a pattern without words, where ? is a character but '/', and [a-z] or [!a-z] one of a
 * set. */
int pattern_match_sets(const char *pattern, const char *path);

/* Add the pattern with its words as texts: how many it has; -1, and nothing is added: it has one
 * that is not known, or a star. */
int pattern_fill(const char *pattern, const struct pattern_words *words, struct text *ret);

#endif
