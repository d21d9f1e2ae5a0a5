/* An index that is being made, for the files that make it: index_make.c and index_learned.c. */
#ifndef EPOCHFS_FORMAT_INDEX_INDEX_BUILDER_H
#define EPOCHFS_FORMAT_INDEX_INDEX_BUILDER_H

#include "format/index/index_bytes.h"

struct memory {
    uint8_t *bytes; /* owned */
    size_t len, capacity;
};

struct index_builder {
    struct index_shape shape;
    unsigned fixed;   /* columns at the start */
    unsigned slots;   /* of the entries of groups: no fewer than columns; in the end those packed */
    uint8_t *learned; /* in the end: the slots of learned columns */
    uint64_t rows, renamed, key_bytes;
    size_t key_most;
    uint64_t (*number)[GROUP_ROWS]; /* [slots] of the group being filled */
    uint64_t *hash;                 /* [rows] of the keys */
    uint8_t last[KEY_MAX];          /* the previous key of the same block */
    size_t last_len;
    uint8_t header[HEADER_BYTES];
    uint8_t *about;
    size_t about_len;
    struct memory part[N_PARTS];
};

/* Give slots to the columns that need them; all groups have been packed. 0 or -ENOMEM. */
int index_learned_pack(struct index_builder *b);

#endif
