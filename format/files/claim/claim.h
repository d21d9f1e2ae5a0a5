/* Which folders are datasets of files, judged by names alone. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_CLAIM_H
#define EPOCHFS_FORMAT_FILES_CLAIM_CLAIM_H

#include "base/members.h"
#include "format/core/format.h"
#include "format/files/claim/names.h"

enum files_layout {
    LAYOUT_CLASSES,  /* each folder of the root is a class */
    LAYOUT_FLAT,     /* the files of the root alone; those with one stem are one sample */
    LAYOUT_MANIFEST, /* manifests in the root or below name pictures of all folders below */
    LAYOUT_TABLE,    /* a table in the root says what the samples are: all files are members */
};

/* What a claim knows besides the names: the impl of struct collection. */
struct files_claim {
    enum files_layout layout;
    enum files_media media; /* what its samples have */
    const char *table;      /* of LAYOUT_TABLE: its name */
    const char *other;      /* NULL; or a second one, of another format: the dataset is refused */
    char *aside;            /* files below the root that are in no sample, by kind: text */
    char **manifest;        /* [n_manifests] of LAYOUT_MANIFEST: their paths relative to SOURCE */
    size_t n_manifests;
};

/* claim_names() of struct format. */
int files_claim_names(const struct members *listing, struct claims *ret);

/* free_claim() of struct format. */
void files_free_claim(void *impl);

/* Is it a folder of a class of the dataset of that kind at root? */
bool is_class_folder(enum files_media media, const char *path, const char *root);

#endif
