/* What was found, as a recipe. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PRINT_H
#define EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PRINT_H

#include "base/json.h"
#include "format/files/claim/parts.h"

/* The recipe that is shown. */
struct recipe_print {
    json_t *datasets, *leave;
    json_t *by_folder; /* a list of those of them with classes of folders or tables, */
    json_t *has;       /* and an object of the classes that have samples */
    bool has_recipes;  /* some datasets are of recipes */
};

/* Begin one; recipe_print_release() ends it. */
void recipe_print_begin(struct recipe_print *print, struct search *s);
void recipe_print_release(struct recipe_print *print);
#define AUTO_RECIPE_PRINT AUTO(recipe_print_release)

/* Add the datasets of all recipes; then the sets that are not collections yet. */
void recipe_print_recipes(struct recipe_print *print, struct search *s);
void recipe_print_sets(struct recipe_print *print, struct search *s);

/* Files that are in no sample may be datasets of their own: they are left. *ret: the recipe; the
 * caller frees it. */
void recipe_print_end(struct recipe_print *print, struct search *s, char **ret);

#endif
