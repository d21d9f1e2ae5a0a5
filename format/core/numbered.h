/* Distinct texts, numbered in the order in which they come, such as names of classes. One thread
 * adds; then they are constant. */
#ifndef EPOCHFS_FORMAT_CORE_NUMBERED_H
#define EPOCHFS_FORMAT_CORE_NUMBERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"
#include "base/text.h"

/* Starts as {0}. */
struct numbered {
    size_t n;
    struct text bytes; /* of all, each ended by NUL */
    uint64_t *end;     /* [n] where each ends in them, behind its NUL */
    uint32_t *slot;    /* [slots] number + 1; 0: free */
    uint64_t slots;    /* a power of two, or 0 */
    uint32_t *place;   /* [n] the place of each in the order of bytes; NULL: not sorted yet */
    uint32_t *sorted;  /* [n] the way back */
};

/* Two texts in the order of bytes: negative, 0 or positive. */
int text_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* The number of a text, which is added if it is new. 0 or -ENOMEM. */
int numbered_add(struct numbered *t, const char *text, size_t len, uint32_t *ret);

/* The number of a text; t->n: it is none of them. */
size_t numbered_find(const struct numbered *t, const char *text, size_t len);

/* The text of a number, until the next is added. ret_len: NULL, or its bytes without the NUL. */
const char *numbered_text(const struct numbered *t, size_t number, size_t *ret_len);

/* Set place and sorted, unless that is done and none was added since. 0 or -ENOMEM. */
int numbered_sort(struct numbered *t);

/* Copies of them, the caller's also on error, as they are numbered or as they are sorted. 0 or
 * -ENOMEM. */
int numbered_names(const struct numbered *t, bool sorted, char ***ret, size_t *ret_n);

void numbered_release(struct numbered *t);
#define AUTO_NUMBERED AUTO(numbered_release)

#endif
