/* Which folders are datasets of files, judged by names alone. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_CLAIM_H
#define EPOCHFS_FORMAT_FILES_CLAIM_CLAIM_H

#include "base/members.h"
#include "format/annotations/value_columns.h"
#include "format/core/format.h"
#include "format/core/numbered.h"
#include "format/files/claim/names.h"

enum files_layout {
    LAYOUT_CLASSES, /* each folder of the root is a class */
    LAYOUT_FLAT,    /* there are no classes by folder */
};

/* A dataset of a collection: which samples, and what tables and annotations say of them. */
struct files_view {
    char *name;       /* '/' and the path that it is shown by; NULL: that of the collection */
    uint32_t *sample; /* [n] numbers of samples, in order; NULL: all n */
    size_t n;
    int64_t *label;    /* [n]; NULL: the class folder, or there is none */
    char **class_name; /* [n_classes] of these labels */
    size_t n_classes;
    struct value_columns values; /* a row for each sample */
};

/* What a claim knows besides the names: the impl of struct collection. Its files are those of the
 * samples, one sample after another, and then annotations that are read when values are. */
struct files_claim {
    enum files_layout layout;
    enum files_media media; /* what its samples have */

    uint32_t *first; /* [n_samples + 1] each sample's first file, by place in the collection */
    size_t n_samples;
    uint8_t *role; /* [first[n_samples]] 0: a field by its extension; otherwise role_name[role - 1];
                    * NULL: all are 0 */
    char **role_name; /* [n_roles] */
    size_t n_roles;
    char *top;         /* path of the folder that keys omit, and whose folders are classes */
    char **class_name; /* [n_classes] of LAYOUT_CLASSES: names of folders of top, sorted */
    size_t n_classes;
    struct files_view *view; /* [n_views] at least one */
    size_t n_views;
    const struct box_format *boxes; /* NULL; or how files of boxes_role are read, of each sample,
                                     * for views that have no boxes otherwise */
    unsigned boxes_role;            /* 0: files with the extension boxes_ext */
    char boxes_ext[16];
    struct blob **annotation; /* [n_annotations] owned: parts of values are read from these */
    size_t n_annotations;
    char *rule;  /* which rule has found it, for people */
    char *notes; /* for people: lines */
    char *about; /* members of dataset.json, each with ",\n" behind */

    char *aside; /* files below the root that are in no sample, by kind: text */

    /* Where the rows of a table are the samples, in one view: */
    char *table;            /* its path below SOURCE; NULL: there is none */
    const char *table_word; /* for people: "metadata" or "manifest" */
    bool pictures_only;     /* as MindSpore has manifests: samples whose file does not begin like a
                             * picture are dropped, and tar has no lists of labels */
    struct value_columns keys; /* one column: the key of each sample */
    struct files_lost {
        uint64_t sample;
        char *field; /* of columns <field><extension>, "" included */
        char *why;   /* for people */
    } * lost;        /* [n_lost] names of files that are not there, by sample */
    size_t n_lost;
};

/* Is it of the column of members of that name? */
bool files_lost_has(const struct files_lost *lost, const char *column);

struct box_format;
struct kept;

/* Is it of names alone: were no files read, which say something of samples? Such a claim can be
 * kept, */
bool claim_is_of_names(const struct files_claim *claim);
/* written and read again (format/index/kept.h): *claim is NULL then, and what is read is hostile.
 * It is of the files of m. */
void claim_keep(struct kept *k, struct files_claim **claim, const struct members *m);

/* The files of a sample of a view, by their places in the collection, whose members m has. */
void claim_sample(const struct members *m, const struct files_claim *claim,
                  const struct files_view *view, uint64_t row, struct sample_files *ret);

/* claim_names() of struct format. */
int files_claim_names(const struct members *listing, struct claims *ret);

/* Are files of boxes read for a view: are there some, and has it no boxes of COCO? */
bool view_reads_boxes(const struct files_claim *claim, const struct files_view *view);

void claim_release_view(struct files_view *view);

/* The place of a text among n names in the order of bytes; n: it is none of them. */
size_t class_name_find(char *const *name, size_t n, const char *text, size_t len);

/* The class of the files of a folder at top or below, of LAYOUT_CLASSES; n_classes: they have none.
 */
size_t claim_class_of(const struct files_claim *claim, const char *folder);

/* free_claim() of struct format. */
void files_free_claim(void *impl);

/* Is a folder of that name no class of that kind, nor in any dataset? */
bool is_skipped_folder(enum files_media media, const char *name);

#endif
