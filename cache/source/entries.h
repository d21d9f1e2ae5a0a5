/* Lists of the files of a source. */
#ifndef EPOCHFS_CACHE_SOURCE_ENTRIES_H
#define EPOCHFS_CACHE_SOURCE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct remote_version;

/* The bytes of a path before its last '/', and the name after it. */
size_t path_folder_len(const char *path);
const char *path_name(const char *path);

/* A file of the source. */
struct source_entry {
    char *folder; /* relative to SOURCE, "" for SOURCE itself; no '/' at either end */
    char *name;   /* within that folder */
    char *path;   /* in a list: where the file is; NULL: below SOURCE under its name */
    char *error;  /* why it cannot be read, a text; NULL: it can */
    int failure;  /* with error: its -errno */
    /* For a remote; otherwise NULL: */
    char *url;                      /* percent-encoded, with its query */
    struct remote_version *version; /* NULL: unknown, and then error is set */
    uint8_t *sha256;                /* 32 bytes, of SHA256SUMS; NULL: unknown */
};

/* Sorted by folder, then by name; a list of local files keeps the order of its elements. */
struct source_list {
    size_t n;
    struct source_entry *entry;
};

/* Add an entry; strings are copied. below: its folder and name, relative to SOURCE. error, with
 * failure, and path may be NULL. The caller sets the fields of a remote as well, in
 * list->entry[list->n - 1]. 0 or -ENOMEM. */
int source_list_add(struct source_list *list, const char *below, const char *path,
                    const char *error, int failure);

/* Copy an entry; the caller releases it. 0 or -ENOMEM. */
int source_entry_copy(const struct source_entry *from, struct source_entry *ret);

/* Add an entry, and take it over, also on error. 0 or -ENOMEM. */
int source_list_take(struct source_list *list, struct source_entry *entry);

/* Sort by folder, then by name. */
void source_list_sort(struct source_list *list);
int source_entry_compare(const void *a, const void *b);

/* Find the entry with that path, relative to SOURCE, in a sorted list; NULL: none. */
struct source_entry *source_list_find(const struct source_list *list, const char *path);

void source_entry_release(struct source_entry *entry);
void source_list_release(struct source_list *list);

#define AUTO_SOURCE_LIST  AUTO(source_list_release)
#define AUTO_SOURCE_ENTRY AUTO(source_entry_release)

#endif
