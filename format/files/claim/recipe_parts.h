/* What the files that make the sets of a recipe share. Only they include this. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PARTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_PARTS_H

#include "format/core/numbered.h"
#include "format/files/claim/pattern.h"
#include "format/files/claim/recipe.h"

/* A picture that a pattern has. */
struct recipe_hit {
    uint32_t file, group, label; /* of the label: UINT32_MAX: it has none */
    uint32_t rank;               /* of its pattern in the list */
    const char *pattern;
    size_t partners; /* where its files of the fields are */
};

/* Files that belong to pictures; boxes: NULL, or how they are read. */
struct recipe_field {
    const char *name;
    const json_t *patterns;
    const struct box_format *boxes;
};

/* A dataset of a recipe while its sets are made. */
struct recipe_making {
    struct search *s;
    const struct recipe *recipe;
    const char *name; /* pattern of names of datasets */
    json_t *dataset;
    struct recipe_hit *hit; /* [n] */
    size_t n;
    struct recipe_field *field; /* [n_fields] */
    size_t n_fields;
    uint32_t *partner; /* [n][n_fields] 1 + the file of a picture; 0: it has none */
    struct numbered groups, labels;
    struct diag *d;
};

/* ---- recipe_find.c ---- */

/* -EBADMSG, with the pattern and its line. */
int recipe_refuse_pattern(const struct recipe_making *t, const char *pattern, const char *what);

/* The files that a pattern below a folder may name: those of the folders that it begins with, and
 * of their names where no folder follows. special: the bytes that are none of a name. */
void recipe_pattern_range(const struct search *s, uint32_t above, const char *pattern,
                          const char *special, size_t *ret_first, size_t *ret_end);

/* Find the files that the patterns of its pictures, or files, name. 0, -EBADMSG or -ENOMEM. */
int recipe_find_files(struct recipe_making *t);

/* ---- recipe_sets.c ---- */

/* Make the sets of all datasets. 0, -EBADMSG or -ENOMEM. */
int recipe_make_sets(struct search *s, const struct recipe *recipe, struct diag *d);

/* ---- recipe_files.c ---- */

/* Hits of files of any format are ordered by dataset, then as the patterns are, then by path; hits
 * [from, to) become a group. 0, -EBADMSG or -ENOMEM. */
int recipe_compare_files(const void *a, const void *b, void *making);
int recipe_make_files(struct recipe_making *t, size_t from, size_t to);

/* A dataset of a card that cannot be made is an error; its others are good all the same. 0 or
 * -ENOMEM. */
int recipe_add_missing(const struct recipe_making *t, const struct diag *d);

/* Leave the folders that are datasets, and show them as those. The same. */
int recipe_take_folders(struct search *s, const struct recipe *recipe, struct diag *d);

/* Ignore all files of the folder that are in no group, nor left, if there are groups. 0 or -ENOMEM.
 */
int recipe_ignore_others(struct search *s, const struct recipe *recipe);

/* ---- card.c ---- */

/* The recipe of a repository of the Hub, from the text of its README.md, and what is odd in it as a
 * note of SOURCE. *ret: JSON, the caller's; NULL: it says nothing of files. 0 or -ENOMEM. */
int card_recipe(struct search *s, const char *text, size_t len, char **ret);

/* ---- recipe_words.c ---- */

/* Add the words of a sample as texts in that row, except those that the pattern of names of its
 * dataset has. 0 or -ENOMEM. */
int recipe_add_words(const char *dataset, struct value_columns *ret, uint64_t row,
                     const struct pattern_words *words);

/* Has the name of a dataset that word? */
bool recipe_name_has_word(const char *name, const struct pattern_word *word);

#endif
