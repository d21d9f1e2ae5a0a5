/* The parts of folder_scan.c: a folder while formats examine its files. */
#ifndef EPOCHFS_FS_TREE_FOLDER_SCAN_PARTS_H
#define EPOCHFS_FS_TREE_FOLDER_SCAN_PARTS_H

#include <limits.h>
#include <string.h>

#include "cache/pack/unpack.h"
#include "format/core/siblings.h"
#include "format/foreign.h"
#include "fs/tree/folder_scan.h"

/* A file of the folder, and what has become of it. */
struct placed_file {
    struct source_file file; /* name and blob are owned; blob: NULL: no format has it */
    unsigned format;
    enum claim claim;
    int error;    /* of a file that no format takes: -errno, and why; 0: there is no such reason */
    char *reason; /* owned */
    bool is_empty;
    bool is_read; /* its format has it; set with folder_scan.siblings */
};

/* A file that is ignored: it is another file of the folder, packed. */
struct packed_twin {
    const struct blob *kept; /* the other one, that is read; for comparison only */
    char *note;              /* owned */
};

/* The files of one folder, while formats examine them. */
struct folder_scan {
    struct finds finds;
    struct catalog *catalog;
    const struct source *source;
    const char *folder;               /* where datasets are shown */
    const struct source_entry *entry; /* [n] those of the folder */
    size_t n;
    const struct named_group *group; /* its files, wherever they are, are one dataset; or NULL */
    char **path;                     /* [n] of a group: '/' and the paths of its files */
    struct placed_file *placed;      /* [n] */
    struct packed_twin *twin;        /* [n_twins]; owned */
    size_t n_twins;
    struct siblings siblings;  /* sets of placed[]; none if all files are of one format for sure */
    struct folder_names names; /* of those files */
    char folder_name[NAME_MAX + 1];     /* the last part of its path */
    const struct source_entry *end;     /* of the entries of all folders */
    const struct source_entry *fetched; /* the heads of the entries before it have been requested */
};

/* The name of a file that formats see: in a group its path, for names may repeat. */
static inline const char *folder_scan_name(const struct folder_scan *scan,
                                           const struct source_entry *entry)
{
    return scan->path ? scan->path[entry - scan->entry] : entry->name;
}

/* The name without .gz or .xz; the caller frees it. NULL: no memory. */
static inline char *unpacked_name(const char *name)
{
    return strndup(name, unpacked_name_len(name));
}

static inline bool is_packed(const struct source_entry *entry)
{
    return unpacked_name_len(entry->name) != strlen(entry->name);
}

static inline struct probed_file probed(const struct folder_scan *scan, const char *name,
                                        const uint8_t *head, size_t len, const struct blob *blob)
{
    return (struct probed_file){.name = name,
                                .head = head,
                                .len = len,
                                .whole = len == blob->size,
                                .size = blob->size,
                                .folder = scan->names,
                                .folder_name = scan->folder_name,
                                .options = &scan->catalog->tools->setup.options};
}

/* ---- folder_finds.c ---- */

/* The three functions of struct finds, of a struct folder_scan. */
int folder_found_dataset(struct finds *finds, const char *name, struct dataset *ds);
int folder_found_error(struct finds *finds, const char *name, const char *reason);
int folder_found_failed(struct finds *finds, const char *file_name, int error, const char *reason);

/* An empty part of a set: nothing is said of it. name: without .gz or .xz. 0 or -ENOMEM. */
int folder_found_empty(struct finds *finds, const char *name);

/* A file that datasets lack. Takes over the texts. 0 or -ENOMEM. */
int folder_leave_out(struct finds *finds, char *name, char *reason);

/* Is it a text that stands for content which is stored elsewhere? No format has it, whatever its
 * name. */
bool folder_is_pointer(const struct probed_file *file);

/* Add why a file that no format takes cannot be used. Returns a -errno that says whether another
 * machine may have the content, as with a pointer. */
int folder_describe_unknown(const struct folder_scan *scan, const struct blob *blob,
                            const struct probed_file *file, struct text *t);

/* ---- folder_siblings.c ---- */

/* Is the file another one of the folder, packed? Then it is ignored, and the datasets of the other
 * have a note. 1: it is; 0: it is not; or -ENOMEM. Files before it have been placed. */
int folder_skip_twin(struct folder_scan *scan, const struct source_entry *entry);

/* All files have been placed. What no format takes, or a format takes for want of a better one,
 * goes to the format of its siblings (format/core/siblings.h), if that reads it. 0 or -ENOMEM. */
int folder_join_siblings(struct folder_scan *scan);

/* To the files that datasets of that format lack, add siblings of its files that are of another
 * format. 0 or -ENOMEM. */
int folder_add_strangers(struct folder_scan *scan, unsigned format);

#endif
