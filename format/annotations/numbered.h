/* Distinct texts, numbered in the order in which they come, such as names of classes. One thread
 * adds; then they are constant. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_NUMBERED_H
#define EPOCHFS_FORMAT_ANNOTATIONS_NUMBERED_H

#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

/* Starts as {0}. */
struct numbered {
    void *tree; /* of struct numbered_text */
    struct numbered_text {
        const char *text; /* ended by NUL, */
        size_t len;       /* which is not counted */
        uint32_t number;
    } * *text; /* [n] */
    size_t n;
};

/* Two texts in the order of bytes: negative, 0 or positive. */
int text_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* The number of a text, which is added if it is new. 0 or -ENOMEM. */
int numbered_add(struct numbered *t, const char *text, size_t len, uint32_t *ret);

/* The number of a text; t->n: it is none of them. */
size_t numbered_find(const struct numbered *t, const char *text, size_t len);

/* Their places by bytes: (*ret)[number], the caller's. 0 or -ENOMEM. */
int numbered_sort(const struct numbered *t, uint32_t **ret);

/* Copies of them, the caller's also on error; by place[number], or as they are numbered if place is
 * NULL. 0 or -ENOMEM. */
int numbered_names(const struct numbered *t, const uint32_t *place, char ***ret, size_t *ret_n);

void numbered_release(struct numbered *t);
#define AUTO_NUMBERED AUTO(numbered_release)

#endif
