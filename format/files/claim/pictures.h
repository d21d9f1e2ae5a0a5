/* The pictures of all sets by name, for tables that name them. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PICTURES_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PICTURES_H

#include "format/annotations/picture_names.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* Those of all sets without a recipe: sample i of a set has the number base + i. Or those of one
 * set, from 0. A text means the picture whose name it is, or whose name without extension, or the
 * end of whose path. Or the other way round, the one whose path, with a folder, it ends with: the
 * path below SOURCE, or below the scope if the text is absolute. */
struct pictures {
    struct picture_names names;
    const struct search *s;
    uint32_t *file; /* [n] of each sample, the picture */
    size_t n;

    /* Only those in a folder, and in those in it, */
    uint32_t scope;
    /* and in sets whose name has that word for a split, if it is not empty. */
    struct name_piece split;

    /* Private: a hash table of stems, and of stems with the folder in front: 1 + 2 x the number of
     * a picture, + 1 for those with the folder. */
    uint32_t *slot; /* [2 n + 1] */
    uint32_t *next; /* [2 n] the next one with the same hash; 0: none */
};

/* only: the set; NULL: all without a recipe. If memory runs out, the search has failed. */
void pictures_init(struct pictures *ret, struct search *s, const struct set *only);
void pictures_release(struct pictures *pictures);

/* Look in a folder only, and for those of the split that the name of a file has, if it has one:
 * true; then pictures_of_all_splits() may be called. */
bool pictures_aim(struct pictures *pictures, uint32_t scope, const char *name);

static inline void pictures_of_all_splits(struct pictures *pictures)
{
    pictures->split = (struct name_piece){0};
}

/* The set of a picture. */
struct set *pictures_set(const struct pictures *pictures, uint32_t picture);

/* The picture of a path in a file that may be of another machine: the longest end of it that is
 * one. PICTURE_NONE, PICTURE_SEVERAL. */
uint32_t pictures_find_end(const struct pictures *pictures, const char *path);

#endif
