/* What a pass found out besides the rows, kept with its index (`about`): one function of a format
 * goes through the members of its struct, and so writes them, reads them again, or forgets them. */
#ifndef EPOCHFS_FORMAT_INDEX_KEPT_H
#define EPOCHFS_FORMAT_INDEX_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct kept {
    struct text *out;  /* members are written to it; NULL: */
    const uint8_t *at; /* [left] they are read from there, hostile; NULL: they are forgotten */
    size_t left;
    int error; /* 0; -EBADMSG: the bytes end, or have what cannot be; -ENOMEM. Then they are 0 */
};

/* A number of at most `most`; a forgotten one is 0. */
void kept_number(struct kept *k, uint64_t *v, uint64_t most);

static inline void kept_flag(struct kept *k, bool *v)
{
    uint64_t number = *v;

    kept_number(k, &number, 1);
    *v = number;
}

/* n bytes. */
void kept_bytes(struct kept *k, void *bytes, size_t n);

/* An array of n bytes that is owned, behind which a 0 is read; array: where its pointer is. A
 * forgotten one is NULL. */
void kept_array(struct kept *k, void *array, uint64_t n);

/* A text that is owned; NULL is written as "", and a forgotten one is NULL. */
void kept_text(struct kept *k, char **text);

/* The same of a text that grows. */
void kept_growing(struct kept *k, struct text *text);

#endif
