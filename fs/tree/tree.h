/* The tree: names to nodes and back.
 *
 * Folders, pages and datasets are few, and kept in an array. There may be any number of samples and
 * batches: their inode numbers are computed from what they are, and what they are from the number,
 * so none of them takes memory. docs/internals/a-read.md has the layout of the numbers.
 *
 * A struct node is a small value that identifies a file or folder; it points into the tree and is
 * valid as long as the tree is. Any thread may make any call. */
#ifndef EPOCHFS_FS_TREE_TREE_H
#define EPOCHFS_FS_TREE_TREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "base/memory.h"
#include "format/core/encoder.h"
#include "format/picture/augment.h"
#include "fs/plan/schedule.h"
#include "fs/tree/catalog.h"

#define TREE_ROOT      1 /* the inode number of the root, FUSE's */
#define TREE_NAME_SIZE 320
#define TREE_SNAPSHOTS 256   /* of each live text, at a time; snapshot 0 is what a listing shows */
#define PLANS_USER     256   /* of them, that each of PLANS_USERS users but the owner may open */
#define PLANS_USERS    64    /* before any has more; a quarter is kept for the owner and root */
#define PLANS_MAX      65536 /* opened plans and epochs of a mount */
#define TREE_OWNER     ((uid_t)-1) /* the user that has mounted it */

enum node_type {
    NODE_FOLDER,        /* of the source, the root and .epochfs among them */
    NODE_DATASET,       /* a dataset, or a file that cannot be used */
    NODE_PAGE,          /* a constant text */
    NODE_LIVE,          /* a text that changes: number says which */
    NODE_PREVIEW,       /* preview.png */
    NODE_SOURCES,       /* source/ */
    NODE_SOURCE,        /* source/<file>: number is the blob */
    NODE_SAMPLES,       /* samples/ */
    NODE_BATCHES,       /* batches/ */
    NODE_SAMPLE_FOLDER, /* samples/<enc>/ */
    NODE_SAMPLE,        /* samples/<enc>/<key><suffix> */
    NODE_PLAN,          /* batches/<plan>/ */
    NODE_PLAN_LINK,     /* another name of the plan, a symbolic link */
    NODE_EPOCH,         /* batches/<plan>/epoch=<E>/ */
    NODE_BATCH_FOLDER,  /* .../<enc>/ */
    NODE_BATCH,         /* .../<enc>/<batch><suffix> */
};

struct fixed;
struct plan_entry;

struct node {
    enum node_type type;
    uint64_t ino;
    const struct fixed *fixed;       /* types up to NODE_SAMPLE_FOLDER */
    const struct catalog_item *item; /* below a dataset */
    const struct plan_entry *plan;   /* below batches/ */
    uint64_t epoch;                  /* below an epoch; 0 without a seed */
    const struct folder *folder;     /* below <enc>/ */
    const struct file_kind *file;    /* NODE_SAMPLE, NODE_BATCH */
    uint64_t number;                 /* sample, batch, blob, or which live text */
    unsigned snapshot;               /* of a live text, see fs/status/status.h */
};

/* The indexes that a schedule uses. */
struct plan_labels {
    const struct list_label *label[4]; /* [n] of its dataset */
    unsigned n;
    const struct list_label *const *of_source; /* [n_sources] of a mix by length */
    unsigned n_sources;
};

/* Was one cut short, so that what was computed with it does not count? 0, or -EIO with the reason
 * in d. Any thread. */
int plan_labels_check(const struct plan_labels *labels, const struct plan *plan, struct diag *d);

/* Apply a plan, which must outlive it, to a dataset of the catalog that is ready. 0; -EINVAL with
 * the reason in d: the plan's parameters do not hold for it; or as list_labels_get() and
 * plan_labels_check(). */
int tree_schedule(const struct catalog *catalog, const struct dataset *ds, const struct plan *plan,
                  struct schedule *ret, struct plan_labels *ret_labels, struct diag *d);

/* The same for the dataset of an item, which may be a mix. */
int tree_schedule_item(const struct catalog *catalog, const struct catalog_item *item,
                       const struct plan *plan, struct schedule *ret,
                       struct plan_labels *ret_labels, struct diag *d);

/* A plan that was opened, and its dataset. Constant except the epochs. */
struct plan_entry {
    const struct catalog_item *item;
    struct plan plan;
    char name[PLAN_NAME_SIZE]; /* canonical */
    struct schedule schedule;
    struct plan_labels labels;
    uint64_t ino;        /* of the plan's folder */
    bool makes_pictures; /* picture=, augment=: */
    struct picture_plan pictures;
    struct field units; /* of unit=: where they begin */
    /* Guarded by the tree's lock: */
    enum { PLAN_OTHER, PLAN_UNANNOUNCED, PLAN_ANNOUNCED } of_options; /* one of the options */
    uint64_t listed_epochs; /* 0 .. listed_epochs - 1 are listed, and: */
    uint64_t *epoch;        /* [n_epochs] others that were opened */
    size_t n_epochs;
};

static inline const struct field *plan_unit_field(const struct plan_entry *entry)
{
    return entry->plan.unit[0] ? &entry->units : NULL;
}

static inline enum scope plan_scope(const struct plan_entry *entry)
{
    return entry->makes_pictures ? SCOPE_PICTURES : SCOPE_BATCHES;
}

/* Whose files are in a folder <enc>/ of that node, or of that file? */
static inline enum scope node_scope(const struct node *node)
{
    return node->plan ? plan_scope(node->plan) : SCOPE_SAMPLES;
}

struct tree;

/* With allow_other: which users may list and pass through a folder of the source. NULL: the node is
 * not such a folder, or all users may. */
const struct access *tree_access(const struct node *node);

struct tree_options {
    const struct plan *plan; /* [n_plans] listed from the start in every dataset */
    size_t n_plans;
    uint64_t epochs; /* how many epochs of them are listed */
};

/* The live texts, in the order of .epochfs/. */
enum live { LIVE_HISTORY, LIVE_METRICS, LIVE_STATUS, N_LIVES };

/* readme: the text of README.txt; page(item): dataset.json or ERROR.txt. The tree takes over both
 * texts. The catalog, and the plans of options, must outlive the tree. Datasets that are ready, or
 * never will be, are open; others need tree_open_item(). 0 or -errno. */
int tree_new(const struct catalog *catalog, const struct tree_options *options, char *readme,
             char *(*page)(const struct catalog_item *item), struct tree **ret);
void tree_free(struct tree *tree);

/* Report that a dataset is ready, or has failed: its contents can be looked up from now on. Called
 * by one thread at a time. 0, -ENFILE, -ENOMEM. */
int tree_open_item(struct tree *tree, const struct catalog_item *item);

/* Labels of an open item are ready: open the plans of the options that had to wait for them. Called
 * by the thread of tree_open_item(). 0 or as that. */
int tree_open_listed(struct tree *tree, const struct catalog_item *item);

/* A plan of the options that was opened, each once. NULL: there is none any more. */
const struct plan_entry *tree_unannounced(struct tree *tree, const struct catalog_item *item);

/* The inode number of a snapshot of a live text, for the kernel. stat shows node->ino. */
uint64_t tree_snapshot_ino(const struct node *live, unsigned snapshot);

/* The node of an inode number. 0, or -ESTALE: no such node. */
int tree_node(struct tree *tree, uint64_t ino, struct node *ret);

/* The node called name in parent, for a user. 0; -ENOENT (with a reason in d where the name is a
 * malformed plan), -ENOTDIR, -ENFILE (PLANS_MAX reached), -ENOMEM; -EAGAIN: the dataset of parent,
 * or the labels of its samples, must be ready first; -EIO, -ESTALE: it never will be, with the
 * reason in d. *ret_changed (may be NULL): the inode number of a folder whose listing has grown by
 * this lookup, otherwise 0.
 *
 * A user other than TREE_OWNER may open no more plans than are left for others: -ENFILE, with the
 * reason in d. */
int tree_lookup(struct tree *tree, const struct node *parent, const char *name, uid_t user,
                struct node *ret, uint64_t *ret_changed, struct diag *d);

/* The entry at place index of a folder, and its name. 0; 1: listings omit it; -ENOENT: behind
 * the last; -EAGAIN and -EIO
 * as tree_lookup(). Places are stable: entries are only added at the end. */
int tree_list(struct tree *tree, const struct node *parent, uint64_t index, struct node *ret,
              char ret_name[static TREE_NAME_SIZE]);

/* The inode number of an item's folder, whose listing may grow when the item is opened; 0: it does
 * not. */
uint64_t tree_grows(const struct tree *tree, const struct catalog_item *item);

/* The inode number of an item's batches/, whose listing grows when the item is opened; 0: none. */
uint64_t tree_batches(const struct tree *tree, const struct catalog_item *item);

/* What opened plans and epochs take; they are never closed. owner: the struct tree. */
struct memory_held tree_plans_held(void *owner);

/* Was the item opened, or has it failed? */
bool tree_item_is_open(const struct tree *tree, const struct catalog_item *item);

/* Is it known what the node shows? false: its dataset must be ready first. */
bool tree_is_open(const struct tree *tree, const struct node *node);

/* The file with another number, in that column, in the folder of a NODE_SAMPLE or NODE_BATCH. */
void node_sibling(const struct node *node, uint64_t number, unsigned column, struct node *ret);

/* The files in the folder of a NODE_SAMPLE or NODE_BATCH, as a table: a row for each sample or
 * batch, a column for each suffix. How many columns, the column of the node, and how many rows. */
unsigned node_columns(const struct node *node);
unsigned node_column(const struct node *node);
uint64_t node_units(const struct node *node);

/* The batch of a NODE_BATCH: see schedule_batch_init(). */
int node_batch(const struct node *node, struct schedule_batch *ret);

/* Is it the file of a field that its sample has not? Then there is no such file. */
bool node_is_hole(const struct node *node);

/* The path of that folder below the root, without a slash in front: for people and for scp files.
 * And the place of the node in its listing, for lseek(). */
#define NODE_PATH_SIZE (5 * TREE_NAME_SIZE + PLAN_NAME_SIZE)
void node_folder_path(const struct node *node, char *ret, size_t capacity);
uint64_t node_list_place(const struct node *node);

/* The field of the pictures in preview.png; NULL: the dataset has none, or one picture alone is too
 * large for the sheet. */
#define PREVIEW_MOST 4096 /* pixels along a side of a picture */
const struct field *tree_preview(const struct dataset *ds);

/* The text of a NODE_PAGE that is open. */
const char *tree_page(const struct node *node, size_t *ret_len);

static inline bool node_is_folder(const struct node *node)
{
    switch (node->type) {
    case NODE_FOLDER:
    case NODE_DATASET:
    case NODE_SOURCES:
    case NODE_SAMPLES:
    case NODE_BATCHES:
    case NODE_SAMPLE_FOLDER:
    case NODE_PLAN:
    case NODE_EPOCH:
    case NODE_BATCH_FOLDER:
        return true;
    default:
        return false;
    }
}

/* The name of a batch or sample without the suffix, NUL-terminated. */
void node_name(const struct node *node, char ret[static KEY_NAME_SIZE]);

/* The item's relative path: "sub/folder/train". */
static inline void item_path(const struct catalog_item *item, char *ret, size_t capacity)
{
    snprintf(ret, capacity, "%s%s%s", item->folder, *item->folder ? "/" : "", item->name);
}

#endif
