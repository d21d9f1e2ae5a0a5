/* What all layouts of a folder of files have: the bytes of a collection, and what is not in it. */
#ifndef EPOCHFS_FORMAT_FILES_SOURCE_H
#define EPOCHFS_FORMAT_FILES_SOURCE_H

#include "base/text.h"
#include "format/core/extents.h"
#include "format/files/claim/claim.h"

struct files_source {
    struct blob *blob; /* owned, and has members */
    const struct members *members;
    char *root;
    char *aside;     /* files below the root that are in no sample, by kind: text */
    size_t n_unread; /* files that cannot be read, */
    char *unread;    /* and why the first cannot; NULL: there are none */
};

/* Take over blob, and what c and its claim own, also on error. 0 or -ENOMEM. */
int files_source_take(struct files_source *ret, struct collection *c, struct blob *blob,
                      const struct members *members);
void files_source_release(struct files_source *source); /* of one that starts as {0} */

/* The bytes of a member; false: it has none. */
bool files_source_extent(const struct files_source *source, size_t member, struct extent *ret);

/* The path of a member, for messages; false: it is too long. */
bool files_source_path(const struct files_source *source, size_t member, char *ret, size_t size);

/* The same, owned by the caller; NULL: no memory. */
char *files_source_name(const struct files_source *source, size_t member);

/* For struct record_format: locate(), and the first parts of note() and describe(). */
void files_source_locate(const struct files_source *source, const struct extent *e, struct text *t);
void files_source_note(const struct files_source *source, struct text *t);
void files_source_describe(const struct files_source *source, const char *indent, struct text *t);

#endif
