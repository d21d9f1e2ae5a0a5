/* The list of a remote's files that lies in `.epochfs/` next to them: the bytes of
 * cache/source/kept_list.h. With it a mount of a million files asks for no page of a listing, and
 * for no version, except those few that show whether it is current.
 *
 * It is looked for where a listing takes many requests. A file that has changed since gives -ESTALE
 * when it is read, for requests name the version; then the list is not used again, until there is
 * another one. */
#ifndef EPOCHFS_CACHE_SOURCE_SHARED_LIST_H
#define EPOCHFS_CACHE_SOURCE_SHARED_LIST_H

#include "cache/source/kept_list.h"

#define SHARED_LIST_WORTH 1000 /* files, or pages, from which a listing takes many requests */

struct source;

/* How it shows whether a list is current. */
struct shared_check {
    /* Does the list fit what this mount has read so far? */
    bool (*fits)(const struct known *list, const struct known *so_far);
    /* The URL of a page that is asked for, by its text. 0; -ENOENT: it shows nothing; -ENOMEM. */
    int (*page_url)(const void *ctx, const char *text, char **ret);
    uint64_t (*page_hash)(const void *page, size_t len);
    const void *ctx;
    bool versions; /* those of some files are asked for as well: pages do not show them */
};

/* Use the list next to the data if it is current; it replaces what is known so far. A few pages
 * that this mount has not read are asked for, to compare. 1; 0: no list is used; -ENOMEM. Blocks.
 */
int shared_list_use(struct source *source, const struct shared_check *check);

/* What is used does not show what exists: later mounts must not use it. Any thread. */
void shared_list_forget(const struct source *source);

/* With `indexes`: keep the list for `.epochfs/`. 0 or -ENOMEM. */
int shared_list_note(struct source *source);

#endif
