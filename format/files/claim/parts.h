/* What the files of the claim share: claim.c (counts, judging), take.c (files of samples),
 * manifests.c and classes.c. Only they include this. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H

#include "format/files/claim/claim.h"
#include "format/files/claim/names.h"

/* What names say of a folder. Folders come before those below them, which follow at once. */
struct folder_info {
    uint32_t end; /* the folder after the last one below */
    size_t first, last;
    uint64_t pictures, used, others;             /* of its own files: used have a picture beside */
    uint64_t all_pictures, all_used, all_others; /* and of the folders below */
    uint64_t all_notices;                        /* of all_others */
    uint64_t doubtful;                           /* others that are not neutral */
    bool foreign, kaldi, project;
    uint64_t tables, all_tables; /* of metadata */
    uint64_t manifests, all_manifests;
    bool looked; /* into its files, for manifests */
};

struct search {
    const struct members *m;
    struct folder_info *info; /* [n_folders] */
    struct claims *claims;
    bool manifests_only;  /* most files of SOURCE are something else */
    uint8_t *manifest;    /* [files] 1: it is one */
    unsigned looked;      /* files that were looked into without being called *.manifest, */
    unsigned class_looks; /* and as texts of class folders */
};

static inline uint32_t next_folder(const struct search *s, uint32_t child)
{
    return s->info[child].end;
}

static inline const char *files_path_of(const struct search *s, uint32_t folder)
{
    return members_folder(s->m, folder);
}

/* What no user means: hidden folders, and what macOS adds to archives. */
bool is_skipped(const char *name);

/* The first table of metadata of a folder, or the next after that one: its name in table_names[];
 * NULL: there is none. */
const char *find_table(const struct search *s, uint32_t folder, const char *after);

/* Mark the files of a folder that are in samples, if it is flat: mark[i], from the first on. */
void mark_used(const struct search *s, uint32_t folder, uint8_t *mark);

/* ---- manifests.c ---- */

/* Before folders are counted: set s->manifest by names, and by a look into files called so. 0 or
 * -ENOMEM. */
int look_at_named_manifests(struct search *s);

/* Look into other files of a folder, and of those below that have no pictures; counts them. 0 or
 * -ENOMEM. */
int look_for_manifests(struct search *s, uint32_t folder);

/* The same for the folders of this one, which may be classes, or have manifests of their own. */
int look_into_classes(struct search *s, uint32_t folder);

/* ---- take.c ---- */

/* A collection of that layout: the files of its samples, and what is left aside. 0 or -ENOMEM. */
int take(const struct search *s, uint32_t root, enum files_layout layout, enum files_media media);

/* Does a file beside class folders of sounds or texts stay what it is? */
bool stays_beside(enum files_media media, const char *name);

/* ---- classes.c ---- */

/* Take the class folders of that kind, sounds or texts, that are in no collection yet, nor have
 * files that may be something else. 0 or -ENOMEM. */
int take_classes(struct search *s, enum files_media media);

#endif
