/* The texts that a pass has found: distinct byte strings, numbered in the order in which they first
 * came, and then in the order of bytes, as classes have them. */
#ifndef EPOCHFS_FORMAT_LABELS_CLASS_TEXTS_H
#define EPOCHFS_FORMAT_LABELS_CLASS_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define CLASS_TEXT_MAX 256 /* bytes of one */

struct class_texts {
    uint32_t n;
    struct text bytes; /* of all, one after another */
    uint64_t *end;     /* [n] where each ends in them */
    uint32_t *slot;    /* [slots] number + 1; 0: free */
    uint64_t slots;    /* a power of two, or 0 */
    uint32_t *rank;    /* [n] the place of each in the order of bytes; NULL: not sorted yet */
    uint32_t *sorted;  /* [n] the way back */
};

/* Takes a zeroed one. 0; -E2BIG: more than LABEL_CLASSES_MAX; or -ENOMEM. */
int class_texts_add(struct class_texts *t, const uint8_t *bytes, size_t len, uint32_t *ret);

/* Sort them, unless that is done and none was added since. 0 or -ENOMEM. */
int class_texts_sort(struct class_texts *t);

/* The text of that place in the order of bytes, once they are sorted; not ended by NUL. */
const char *class_texts_at(const struct class_texts *t, uint32_t rank, size_t *ret_len);

void class_texts_release(struct class_texts *t);

#endif
