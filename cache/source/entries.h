/* Lists of the files of a source. */
#ifndef EPOCHFS_CACHE_SOURCE_ENTRIES_H
#define EPOCHFS_CACHE_SOURCE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct remote_version;

/* A file of the source. */
struct source_entry {
    char *folder; /* relative to SOURCE, "" for SOURCE itself; no '/' at either end */
    char *name;   /* within that folder */
    char *path;   /* of a list: where the file is; NULL: below SOURCE under its name */
    char *error;  /* why it cannot be read, for people; NULL: it can */
    int failure;  /* with error: its -errno */
    /* Of a remote; else NULL: */
    char *url;                      /* percent-encoded, with its query */
    struct remote_version *version; /* NULL: not known, then there is an error */
    uint8_t *sha256;                /* 32 bytes, of SHA256SUMS; NULL: not known */
};

/* Sorted by folder, then by name; a list in the order of its elements. */
struct source_list {
    size_t n;
    struct source_entry *entry;
};

/* Add an entry; strings are copied. error and path may be NULL; an error is -EINVAL until its
 * caller says otherwise. What a remote knows of it is set by the caller, in list->entry[list->n -
 * 1]. 0 or -ENOMEM. */
int source_list_add(struct source_list *list, const char *folder, const char *name,
                    const char *path, const char *error);

/* By folder, then by name. */
void source_list_sort(struct source_list *list);

/* The entry of that path, relative to SOURCE, in a sorted list; NULL: none. */
struct source_entry *source_list_find(const struct source_list *list, const char *path);

void source_entry_release(struct source_entry *entry);
void source_list_release(struct source_list *list);

#define AUTO_SOURCE_LIST AUTO(source_list_release)

#endif
