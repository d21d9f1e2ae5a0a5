/* The pictures of all sets by name, for tables that name them. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PICTURES_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PICTURES_H

#include "format/annotations/picture_names.h"
#include "format/files/claim/parts.h"

/* Sample i of a set has the number base + i. A text means the picture whose name it is, or whose
 * name without extension, or the end of whose path, or the other way round: that it is the end of.
 */
struct pictures {
    struct picture_names names;
    const struct search *s;
    uint32_t *file; /* [n] of each sample, the picture */
    size_t n;
    /* Hash tables of stems, and of stems with the folder in front: 1 + numbers. */
    struct picture_table_of {
        uint32_t *slot; /* [mask + 1] */
        uint32_t *next; /* [n] 1 + the next picture with the same hash; 0: none */
    } by_stem, by_folder;
    size_t mask;

    /* Only these are looked for: those in a folder, and in those in it, */
    uint32_t scope;
    /* and in sets whose name has that word for a split, if it is not empty. */
    const char *split;
};

/* 0 or -ENOMEM. */
int pictures_init(struct pictures *ret, struct search *s);

/* The samples of one set alone, numbered from 0. 0 or -ENOMEM. */
int pictures_init_set(struct pictures *ret, struct search *s, const struct set *set);
void pictures_release(struct pictures *pictures);
#define AUTO_PICTURES AUTO(pictures_release)

/* The set of a picture. */
struct set *pictures_set(const struct pictures *pictures, uint32_t picture);

/* The picture of a path in a file that may be of another machine: the longest end of it that is
 * one. PICTURE_NONE, PICTURE_SEVERAL. */
uint32_t pictures_find_end(const struct pictures *pictures, const char *path);

#endif
