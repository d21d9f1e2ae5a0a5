/* The patterns of a set, as a recipe would have them: from folders, and from extensions. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H

#include "format/files/claim/parts.h"

struct text;

#define SHAPE_FOLDERS 10  /* below the top that have words, at most */
#define SHAPE_TEXTS   256 /* of patterns, at most */

/* Distinct texts, in the order in which they come. */
struct texts {
    char **text; /* [n] */
    size_t n;
};

int texts_add(struct texts *t, const char *text); /* 0, -ENOMEM, or -E2BIG: there are SHAPE_TEXTS */
bool texts_have(const struct texts *t, const char *text);
void texts_release(struct texts *t);
#define AUTO_TEXTS AUTO(texts_release)

struct shape {
    const struct search *s;
    const struct set *set;
    bool by_class;  /* the folders of the top are the classes */
    bool has_words; /* other folders have words, for files elsewhere are in folders like them */
    unsigned least, most; /* folders between the top and pictures */
    /* Those with the same name for all pictures: */
    const char *same[SHAPE_FOLDERS];
    size_t same_len[SHAPE_FOLDERS];
    struct texts pictures, except, boxes;
    struct shape_field {
        char *name;
        struct texts patterns;
    } * field; /* [n_fields] */
    size_t n_fields;
    const char *note; /* what no pattern says, for people; NULL: nothing */
};

/* ret starts as {0}. by_class: as above. 0 or -ENOMEM. */
int shape_make(const struct search *s, const struct set *set, bool by_class, struct shape *ret);
void shape_release(struct shape *shape);
#define AUTO_SHAPE AUTO(shape_release)

/* Add a part of a path to a pattern: bytes that patterns give a meaning become a star. */
void shape_add_plain(struct text *t, const char *bytes, size_t len);

#endif
