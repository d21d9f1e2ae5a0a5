/* The recipe of a folder, epochfs.json: which files are samples, what belongs to them, and which
 * datasets they are. Where there is one, nothing else is looked for. It is hostile: no path of it
 * leads out of its folder, for all that it names is looked up in the listing. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_H
#define EPOCHFS_FORMAT_FILES_CLAIM_RECIPE_H

#include <jansson.h>
#include <limits.h>

#include "format/core/numbered.h"
#include "format/files/claim/parts.h"

#define RECIPE_NAME     "epochfs.json"
#define RECIPE_BYTES    (1u << 20) /* of a recipe, at most */
#define RECIPE_DATASETS 4096       /* that it makes, at most */

struct pattern_words;

struct recipe {
    json_t *json;
    const char *text, *name; /* its bytes, for the lines of messages; the caller's, */
    char *owned;             /* unless this has them */
    size_t len;
    uint32_t folder;
    bool is_card; /* it was made of a README.md: what is wrong in it is no error of all */
};

/* Read a recipe and see that all of it is known: 0; -ENOMEM; or -EBADMSG with name and line in d.
 */
int recipe_read(struct recipe *ret, const char *name, const char *text, size_t len, struct diag *d);
void recipe_release(struct recipe *recipe);
#define AUTO_RECIPE AUTO(recipe_release)

/* The line of the first text of a recipe that is this one. */
unsigned recipe_line(const struct recipe *recipe, const char *text);

/* The path of a file below the folder of a recipe. false: it is too long. */
bool recipe_path(const struct search *s, const struct recipe *recipe, size_t file,
                 char ret[static PATH_MAX]);

/* A member of a dataset that is one value, or a list of them: the n-th, and the same of patterns.
 * NULL: it has not so many. */
json_t *recipe_item(const json_t *member, size_t n);
const char *recipe_pattern(const json_t *member, size_t n);

/* "NAME, line N: 'at': what", where `at` is a text of the recipe. -EBADMSG. */
int recipe_fault(const struct recipe *recipe, const char *at, struct diag *d, const char *what);

/* Does one of the patterns of a member match? words: NULL, or what its words are; *ret: NULL, or
 * its number. 1, 0, or -EBADMSG with the reason in d. */
int recipe_match(const struct recipe *recipe, const json_t *member, const char *path,
                 struct pattern_words *words, size_t *ret, struct diag *d);

/* Find the recipe of a folder, the one that the user has given or the one in it, and make its sets,
 * which may be one that is refused. false: there is none. */
bool recipe_apply(struct search *s, uint32_t folder);

/* Number the classes that a dataset names. 0, -ENOMEM, or -EEXIST: the next one has a number. */
int recipe_classes(const json_t *classes, struct numbered *ret);

/* Words {label} are labels, before any table is read. Then read lists, tables and boxes that
 * recipes name. */
struct annotating;
void recipe_number_labels(struct annotating *a);
void recipe_annotate(struct annotating *a);

#endif
