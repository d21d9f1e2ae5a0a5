/* What was found, as a recipe. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PRINT_H
#define EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PRINT_H

#include "base/text.h"
#include "format/files/claim/shape.h"

struct recipe_print {
    struct text datasets; /* members of "datasets", with commas between them */
    struct texts names;   /* theirs */
    struct texts leave;
    struct printed_classes {
        size_t at;   /* where they belong in `datasets` */
        char *names; /* a JSON list */
        bool *has;   /* [n] it has samples of the class */
        size_t n;
    } * classes; /* [n_classes] of datasets with class folders */
    size_t n_classes;
    bool has_recipes; /* some datasets are of recipes */
};

/* Add the sets that are not collections yet. */
void recipe_print_sets(struct recipe_print *print, struct search *s);

/* Files that are in no sample may be datasets of their own: they are left. *ret: the recipe; the
 * caller frees it. */
void recipe_print_end(struct recipe_print *print, struct search *s, char **ret);
void recipe_print_release(struct recipe_print *print); /* of one that starts as {0} */
#define AUTO_RECIPE_PRINT AUTO(recipe_print_release)

#endif
