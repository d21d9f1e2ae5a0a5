/* Which file of a listing is meant by a path that a table has. Tables are hostile: nothing is
 * opened, and a path that has ".." means none. m->n: there is no such file. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_LOOKUP_H
#define EPOCHFS_FORMAT_FILES_CLAIM_LOOKUP_H

#include "base/members.h"

/* Is it a relative path that stays in its folder, and no URL? */
bool lookup_is_below(const char *path, size_t len);

/* The member at a path below a folder. */
size_t lookup_path(const struct members *m, const char *folder, const char *path);

/* The member at the longest end of a path that is below one of n folders, the first of these. */
size_t lookup_end(const struct members *m, const char *const *folder, size_t n, const char *path);

/* The member that a source means: the path below `folder`, that of the manifest, or the longest
 * end of it that is below root. m->n: there is none. */
size_t manifest_find(const struct members *m, const char *root, const char *folder,
                     const char *source);

#endif
