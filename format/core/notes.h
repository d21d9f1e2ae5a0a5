/* What people have to know of a dataset that can be used all the same: notes, which are lines, and
 * the parts that it lacks. Both are bounded, and count what they omit. */
#ifndef EPOCHFS_FORMAT_CORE_NOTES_H
#define EPOCHFS_FORMAT_CORE_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define NOTES_MAX         64 /* lines that are kept */
#define NOTE_SIZE         1000 /* bytes of a line; a longer one is cut after a word, and ends in " ..." */
#define MISSING_PARTS_MAX 1000 /* parts that are kept */

/* Starts as {0}. Running out of memory loses notes, and is no error. */
struct notes {
    struct text text; /* the lines that are kept, each with its end */
    size_t n;         /* lines, with those that are omitted */
};

/* Add each line of the text that is not empty. */
void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add the lines to t, with a last one that counts those that are omitted. */
void notes_show(const struct notes *notes, struct text *t);
void notes_release(struct notes *notes);
#define AUTO_NOTES AUTO(notes_release)

/* A part of a set that is not in the dataset of the set, such as a shard. */
struct missing_part {
    char *name, *reason; /* owned */
};

/* Starts as {0}. */
struct missing_parts {
    struct missing_part *part; /* those that are kept: MISSING_PARTS_MAX of n at most; owned */
    size_t n;
};

/* Both texts are copied, and made safe to be shown. 0 or -ENOMEM. */
int missing_parts_add(struct missing_parts *missing, const char *name, const char *reason);

static inline size_t missing_parts_kept(const struct missing_parts *missing)
{
    return missing->n < MISSING_PARTS_MAX ? missing->n : MISSING_PARTS_MAX;
}

/* Add a line "NAME: REASON" for each part, up to most, and one that counts the others. */
void missing_parts_show(const struct missing_parts *missing, size_t most, struct text *t);
void missing_parts_release(struct missing_parts *missing);
#define AUTO_MISSING_PARTS AUTO(missing_parts_release)

#endif
