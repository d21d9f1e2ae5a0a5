/* What the files of the claim share: claim.c (counts, judging), collect.c (files of samples),
 * manifests.c and classes.c. Only they include this. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H

#include "format/files/claim/claim.h"
#include "format/files/claim/names.h"

/* What is counted of the files of a folder. */
enum folder_count {
    COUNT_PICTURES,
    COUNT_USED,    /* pictures, and files that have one next to them */
    COUNT_OTHERS,  /* the others, */
    COUNT_NOTICES, /* those of them that are notices, */
    COUNT_DOUBT,   /* and those that are not neutral */
    COUNT_TABLES,  /* of metadata */
    COUNT_MANIFESTS,
    N_COUNTS_NAMES,
    /* Once class folders of sounds or texts are searched: */
    COUNT_SAMPLES = N_COUNTS_NAMES, /* samples of that medium */
    COUNT_STRAY,                    /* files that are neither in samples nor readmes */
    N_COUNTS,
};

/* What names say of a folder. Folders come before those below them, which follow at once. */
struct folder_info {
    uint32_t end; /* the folder after the last one below */
    size_t first, last;
    uint64_t here[N_COUNTS], all[N_COUNTS]; /* its files; and with those of the folders below */
    bool foreign, kaldi, project;
    bool is_searched; /* its files were looked into, for manifests */
    bool is_skipped;  /* it is in a folder that is no class, and so nothing in it counts */
};

/* What is known of a file. */
enum { FILE_IN_SAMPLE = 1, FILE_MANIFEST = 2 };

struct search {
    const struct members *m;
    struct folder_info *info; /* [n_folders] */
    struct claims *claims;
    bool manifests_only;    /* most files of SOURCE are something else */
    uint8_t *flags;         /* [files] FILE_... */
    enum files_media media; /* of samples that are counted */
    unsigned n_heads;       /* files that were looked into without being called *.manifest, */
    unsigned n_class_heads; /* and as texts of class folders */
};

static inline uint32_t next_folder(const struct search *s, uint32_t child)
{
    return s->info[child].end;
}

static inline const char *claim_path(const struct search *s, uint32_t folder)
{
    return members_folder(s->m, folder);
}

/* What no user means: hidden folders, and what macOS adds to archives. */
bool is_skipped(const char *name);

/* Add up counts from first to before `end` over the folders below each. */
void sum_folders(struct search *s, enum folder_count first, enum folder_count end);

/* Set FILE_IN_SAMPLE of the files of a folder: those of samples of s->media. Returns how many
 * samples there are. by_class: see struct sample_walk. */
uint64_t mark_samples(const struct search *s, uint32_t folder, bool by_class);

/* ---- manifests.c ---- */

/* Before folders are counted: find manifests by names, and by a look into files called so. 0 or
 * -ENOMEM. */
int search_named_manifests(struct search *s);

/* Look into other files of a folder, and of those below that have no pictures; counts them. 0 or
 * -ENOMEM. */
int search_manifests(struct search *s, uint32_t folder);

/* The same for the folders of this one, which may be classes, or have manifests of their own. */
int search_classes_for_manifests(struct search *s, uint32_t folder);

/* ---- collect.c ---- */

/* A collection of that layout: the files of its samples, and what is ignored. 0 or -ENOMEM. */
int collect(const struct search *s, uint32_t root, enum files_layout layout);

/* Does a file next to class folders of sounds or texts stay what it is? */
bool stays_beside(enum files_media media, const char *name);

/* ---- classes.c ---- */

/* Collect the class folders of s->media, sounds or texts, that are in no collection yet, nor have
 * files that may be something else. 0 or -ENOMEM. */
int claim_classes(struct search *s);

#endif
