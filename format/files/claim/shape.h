/* Sets as patterns of a recipe. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SHAPE_H

#include "base/json.h"
#include "base/text.h"
#include "format/files/claim/parts.h"

/* Add a text to a list of distinct ones. false: there are too many. */
bool shape_add_distinct(struct search *s, json_t *list, struct text *t);

/* A list as a recipe has it: its only text, or all of it. */
json_t *shape_one_or_list(json_t *list);

/* Add to a dataset which files its samples are. word: NULL, or that of patterns which says what the
 * folders of the top are, if no pictures are next to them: the label, or the split. */
void shape_make(struct search *s, const struct set *set, const struct files_view *view,
                const char *word, json_t *ret);

/* Add a part of a path to a pattern: bytes that patterns give a meaning become a star. */
void shape_add_plain(struct text *t, const char *text);

#endif
