/* SOURCE: where the files of a mount are, and their blobs.
 *
 * remotes[] is the registry of the kinds of source; the scheme of SOURCE chooses. A local path is
 * the one kind without a scheme. */
#ifndef EPOCHFS_CACHE_SOURCE_H
#define EPOCHFS_CACHE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/blob.h"
#include "base/diag.h"

struct source;
struct roots;
struct cache_folder;

/* A file of the source. */
struct source_entry {
    char *folder; /* relative to SOURCE, "" for SOURCE itself; no '/' at either end */
    char *name;   /* within that folder */
    char *path;   /* of a list: where the file is; NULL: below SOURCE under its name */
    char *error;  /* why it cannot be read, for people; NULL: it can */
};

/* Sorted by folder, then by name; a list in the order of its elements. */
struct source_list {
    size_t n;
    struct source_entry *entry;
};

/* How a kind of source works. */
struct remote {
    const char *scheme; /* "file://"; "" takes what no other scheme does */

    /* Does it take SOURCE? NULL: if it starts with the scheme. */
    bool (*takes)(const char *spec);

    /* rest: SOURCE without the scheme. */
    int (*make)(const struct remote *remote, const char *rest, struct source **ret, struct diag *d);
    bool ordered; /* list() gives the files in their order */

    /* Every file below the source, in any order. sides: see source_list(). */
    int (*list)(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d);
    int (*open)(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d);

    /* Add the folders on this machine that its files are in. NULL: none. 0 or -errno. */
    int (*roots)(const struct source *source, struct roots *ret);
};

struct source {
    const struct remote *remote;
    char *root;      /* a path or URL without its scheme's sugar; of a local file: its folder; of
                        a list: all of it */
    char *spelled;   /* of a local path: as the user gave it */
    char *only_file; /* SOURCE is this one file of root; NULL: it is a folder */
};

/* spec: as the user gave it. 0; -ENOENT and others with the reason in d. */
int source_open(const char *spec, struct source **ret, struct diag *d);
void source_free(struct source *source); /* takes NULL */

/* SOURCE as it is shown: absolute. The caller frees it; NULL: no memory. */
char *source_name(const struct source *source);

/* All files, recursively. Unreadable ones are listed with their error. Where SOURCE names files,
 * those beside them are listed, too, whose name is one of theirs and one of sides, suffixes ended
 * by NULL; either may be packed. */
int source_list(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d);
void source_list_release(struct source_list *list);

/* The bytes of a file as blob, unpacked: .gz and .xz are recognised by content and unpacked once
 * into the cache folder. The caller frees *ret_blob. */
int source_blob(const struct source *source, const struct source_entry *entry,
                struct cache_folder *cache, struct blob **ret_blob, struct diag *d);

static inline void source_scope_end(struct source **source)
{
    source_free(*source);
}
#define AUTO_SOURCE      AUTO(source_scope_end)
#define AUTO_SOURCE_LIST AUTO(source_list_release)

/* Add an entry; strings are copied. error and path may be NULL. 0 or -ENOMEM. */
int source_list_add(struct source_list *list, const char *folder, const char *name,
                    const char *path, const char *error);

/* Add the side files of the file called name in folder, a path; list_paths: with their paths. */
int local_add_sides(const char *folder, const char *name, const char *const *sides, bool list_paths,
                    struct source_list *ret);

/* Open the file at path as a blob called name. 0, or -errno with the reason in d. */
int local_blob_open(const char *path, const char *name, struct blob **ret, struct diag *d);

/* A blob of an open file, of which it takes the descriptor over (also on error). Its first size
 * bytes count; the rest of the file is not shown. may_be_removed: the file is ours, that it has
 * lost its name says nothing of its content. */
int local_blob_new(int fd, const char *name, uint64_t size, bool may_be_removed, struct blob **ret);

#endif
