/* The catalog: the datasets of a source. Made once at mount, then constant. */
#ifndef EPOCHFS_FS_TREE_CATALOG_H
#define EPOCHFS_FS_TREE_CATALOG_H

#include "base/diag.h"
#include "cache/disk/index_files.h"
#include "cache/disk/made_files.h"
#include "cache/named/opener.h"
#include "cache/source/shared_index.h"
#include "cache/source/source.h"
#include "format/augment/fields.h"
#include "format/core/format.h"
#include "format/labels/label_choice.h"
#include "fs/options/options.h"
#include "fs/tree/length_plans.h"
#include "fs/tree/list_labels.h"
#include "fs/tree/named_lists.h"

/* A dataset, or a file that cannot be used. */
struct catalog_item {
    char *folder;            /* relative to SOURCE, "" for SOURCE itself */
    char *name;              /* unique among the items and folders of folder */
    struct dataset *ds;      /* NULL: */
    char *error;             /* why not, for people */
    struct mixture *mixture; /* of a dataset that is a mix; otherwise NULL. Owned */
    bool is_part;            /* a mix has it as a source, or a dataset of several files its file */
    bool is_folder;          /* it has the name of the folder of SOURCE that it is made of */
    /* With allow_other: */
    struct access access; /* of a file that cannot be used: which users may know why */
    bool is_hidden;       /* some users may not know that it exists, or what is in it */
};

/* What the datasets work with. */
struct catalog_tools {
    struct cache_folder cache;
    struct cache_opener opener;
    struct index_files keep;
    struct shared_index shared; /* before keep */
    struct made_files made;
    struct made_counts counts;
    struct format_setup setup;
    struct named_lists lists;
    struct list_labels labels;
    struct length_plans lengths;
    struct label_choice label;
    struct augment_tools augment;
    struct notices notices;
    const char *revision, *commit; /* of SOURCE; NULL: not known */
};

struct catalog {
    size_t n;
    struct catalog_item *item; /* sorted by folder, then name */
    size_t n_datasets;
    uint64_t found;              /* bit f: formats[f] has taken files */
    struct catalog_tools *tools; /* owned */
    char *recipe; /* what was found in folders of files, as a recipe; NULL: nothing was */
    struct moved_folder *moved; /* [n_moved] folders whose datasets are shown elsewhere */
    size_t n_moved;
    char *note;  /* of SOURCE, for people; NULL: none */
    char *unmet; /* the first rule by which pictures are no dataset; NULL: none */
    const struct source
        *source; /* with allow_other, to ask which users may see what; otherwise NULL */
};

/* List all files of the source, and the side files next to those it names. 0, or -errno with the
 * reason in d. */
int catalog_list(const struct source *source, struct source_list *ret, struct diag *d);

/* Examine all files of the source. 0; -ENODATA: none can be used; or -errno, with the reason in d.
 * Blocks while packed files are unpacked. */
int catalog_open(struct source *source, const struct options *options, struct catalog *ret,
                 struct diag *d);

/* Is it a dataset of several files? Its preparing does them side by side, and the datasets of each
 * of these files are ready with it: so it comes first. */
bool catalog_item_is_joint(const struct catalog_item *item);

/* Prepare datasets until all are ready or have failed, or until monotonic_ns() reaches `until`. A
 * remote that fails for the retry limit ends the call; once: it fails the dataset instead. true:
 * all are ready, or have failed. Called by one thread at a time. */
bool catalog_prepare(struct catalog *catalog, bool once, int64_t until);

/* With allow_other: which users may read what is shown of the item: only those that may read all of
 * its source files. */
void catalog_item_access(const struct catalog_item *item, struct access *ret);

void catalog_release(struct catalog *catalog);
#define AUTO_CATALOG AUTO(catalog_release)

#endif
