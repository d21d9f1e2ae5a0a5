/* The patterns of a set, as a recipe would have them: from folders, and from extensions. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H

#include <limits.h>

#include "format/files/claim/parts.h"

#define SHAPE_FOLDERS 10  /* below the top that have words, at most */
#define SHAPE_TEXTS   256 /* of patterns, at most */

/* Distinct texts, in the order in which they come. */
struct texts {
    char **text; /* [n] */
    size_t n;
};

/* Add what is in t, which is released. false: there are SHAPE_TEXTS. */
bool texts_add(struct search *s, struct texts *texts, struct text *t);
bool texts_have(const struct texts *t, const char *text);
void texts_release(struct texts *t);

/* The folders on the way to one, from SOURCE on, without it. */
struct folders_on {
    uint32_t folder[PATH_MAX / 2]; /* [n] */
    unsigned n;
};

struct shape {
    struct search *s;
    const struct set *set;
    bool by_class;  /* the folders of the top are the classes */
    bool has_words; /* other folders have words, for files elsewhere are in folders like them */
    unsigned top;   /* folders on the way to the top */
    unsigned least, most;            /* folders between the top and pictures */
    const char *same[SHAPE_FOLDERS]; /* names of those that all pictures have; NULL */
    struct texts pictures, except, boxes;
    struct shape_field {
        char *name;
        struct texts patterns;
    } * field; /* [n_fields] */
    size_t n_fields;
    const char *note; /* what no pattern says, for people; NULL: nothing */
};

/* by_class: as above. The caller releases ret. */
void shape_make(struct search *s, const struct set *set, bool by_class, struct shape *ret);
void shape_release(struct shape *shape);
#define AUTO_SHAPE AUTO(shape_release)

/* Add a part of a path to a pattern: bytes that patterns give a meaning become a star. */
void shape_add_plain(struct text *t, const char *text);

#endif
