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
#define SHARED_SAMPLES    4    /* pages, and files, that show whether the list is current */

struct source;
struct text;

/* Read the list, or take it from the cache folder. 0; -ENOENT: there is none that may be used.
 * Blocks. */
int shared_list_load(struct source *source, struct kept_list *ret);

/* It is not current: why becomes a note, and it is not used. */
void shared_list_refuse(struct source *source, const char *why);

/* The numbers of some pages of a list, from the first to the last. Returns how many. */
size_t shared_list_sample(size_t n, size_t ret[static SHARED_SAMPLES]);

/* What is used does not show what exists: later mounts must not use it. Any thread. */
void shared_list_forget(const struct source *source);

/* With `indexes`: keep the list for `.epochfs/`. 0 or -ENOMEM. */
int shared_list_note(struct source *source, struct kept_list *pages);

#endif
