/* The tree: names to nodes and back.
 *
 * Folders, pages and datasets are few and stand in an array. Samples and batches are as many as
 * they like: their inode numbers are computed from what they are, and what they are from the
 * number, so none of them takes memory. docs/internals/a-read.md has the layout of the numbers.
 *
 * A struct node is a small value that says which file or folder is meant; it points into the tree
 * and is valid as long as that. All calls may come from any thread. */
#ifndef EPOCHFS_FS_TREE_TREE_H
#define EPOCHFS_FS_TREE_TREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "format/core/encoder.h"
#include "fs/plan/plan.h"
#include "fs/tree/catalog.h"

#define TREE_ROOT      1 /* the inode number of the root, FUSE's */
#define TREE_NAME_SIZE 320
#define TREE_LOOKS     256   /* at each live text, at once; look 0 is what a listing shows */
#define PLANS_MAX      65536 /* of a mount: plans and epochs that have been opened */

enum node_kind {
    NODE_FOLDER,        /* of the source, the root and .epochfs among them */
    NODE_DATASET,       /* a dataset, or the file that could not be used */
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
    enum node_kind kind;
    uint64_t ino;
    const struct fixed *fixed;       /* kinds up to NODE_SAMPLE_FOLDER */
    const struct catalog_item *item; /* below a dataset */
    const struct plan_entry *plan;   /* below batches/ */
    uint64_t epoch;                  /* below an epoch; 0 without a seed */
    const struct folder *folder;     /* below <enc>/ */
    const struct file_kind *file;    /* NODE_SAMPLE, NODE_BATCH */
    uint64_t number;                 /* sample, batch, blob, or which live text */
    unsigned look;                   /* of a live text, see fs/status/status.h */
};

/* A plan that was opened, with a dataset. Constant but for the epochs. */
struct plan_entry {
    const struct catalog_item *item;
    struct plan plan;
    char name[PLAN_NAME_SIZE]; /* canonical */
    struct schedule schedule;
    uint64_t ino; /* of the plan's folder */
    /* Guarded by the tree's lock: */
    uint64_t listed_epochs; /* 0 .. listed_epochs - 1 are listed, and: */
    uint64_t *epoch;        /* [n_epochs] others that were opened */
    size_t n_epochs;
};

struct tree;

/* With allow_other, of a folder of the source: who may list it and go through it. NULL: the node is
 * something else, or everybody may. */
const struct access *tree_access(const struct node *node);

struct tree_options {
    const struct plan *plan; /* [n_plans] listed from the start in every dataset */
    size_t n_plans;
    uint64_t epochs; /* how many epochs of them are listed */
};

/* The live texts, in the order of .epochfs/. */
enum live { LIVE_METRICS, LIVE_STATUS, N_LIVES };
extern const char *const live_names[N_LIVES];

/* readme: the text of README.txt; page(item): dataset.json or ERROR.txt. Both texts are taken
 * over. The catalog, and the plans of options, must outlive the tree. Datasets that are ready, or
 * never will be, are open; others wait for tree_open_item(). 0 or -errno. */
int tree_new(const struct catalog *catalog, const struct tree_options *options, char *readme,
             char *(*page)(const struct catalog_item *item), struct tree **ret);
void tree_free(struct tree *tree);

/* A dataset has become ready, or has failed: what is in it can be looked up from now on. One
 * thread at a time. 0, -ENFILE, -ENOMEM. */
int tree_open_item(struct tree *tree, const struct catalog_item *item);

/* The inode number of a look at a live text: the kernel has it beside node->ino, which stat
 * shows. */
uint64_t tree_look_ino(const struct node *live, unsigned look);

/* The node of an inode number. 0, or -ESTALE: no such node. */
int tree_node(struct tree *tree, uint64_t ino, struct node *ret);

/* The node called name in parent. 0; -ENOENT (with a reason in d where the name is a malformed
 * plan), -ENOTDIR, -ENFILE (PLANS_MAX reached), -ENOMEM; -EAGAIN: the dataset of parent has to be
 * ready first; -EIO, -ESTALE: it never will, with the reason in d. *ret_changed (may be NULL): the
 * inode number of a folder whose listing has grown by this lookup, else 0. */
int tree_lookup(struct tree *tree, const struct node *parent, const char *name, struct node *ret,
                uint64_t *ret_changed, struct diag *d);

/* The entry at place index of a folder and its name. 0, or -ENOENT: behind the last; -EAGAIN and
 * -EIO as tree_lookup(). Places are stable: entries are only added at the end. */
int tree_list(struct tree *tree, const struct node *parent, uint64_t index, struct node *ret,
              char ret_name[static TREE_NAME_SIZE]);

/* The inode number of an item's batches/, whose listing grows when it is opened; 0: it has none. */
uint64_t tree_batches(const struct tree *tree, const struct catalog_item *item);

/* The plans of an item that have been opened, in that order; those of the options are the first.
 * NULL: behind the last. */
const struct plan_entry *tree_plan(struct tree *tree, const struct catalog_item *item, size_t i);

/* Has the item been opened, or failed to be? */
bool tree_item_is_open(const struct tree *tree, const struct catalog_item *item);

/* Is what the node shows known? false: its dataset has to be ready first. */
bool tree_is_open(const struct tree *tree, const struct node *node);

/* The file of another number, and of kind number kind, in the folder of a NODE_SAMPLE or
 * NODE_BATCH.
 */
void node_sibling(const struct node *node, uint64_t number, unsigned kind, struct node *ret);

/* Files of a NODE_SAMPLE or NODE_BATCH's folder: kinds of them, which of them the node is, and how
 * many there are of each. */
unsigned node_kinds(const struct node *node);
unsigned node_kind(const struct node *node);
uint64_t node_units(const struct node *node);

/* The path of that folder below the root, without a slash in front: for people and for scp files;
 * and where its listing has the node: what lseek() is given. */
#define NODE_PATH_SIZE (5 * TREE_NAME_SIZE + PLAN_NAME_SIZE)
void node_folder_path(const struct node *node, char *ret, size_t capacity);
uint64_t node_list_place(const struct node *node);

/* The pictures that preview.png shows; NULL: the dataset has none, or one of them alone would be
 * too large a sheet. */
#define PREVIEW_MOST 4096 /* pixels, of a side of a picture */
const struct field *tree_preview(const struct dataset *ds);

/* The text of a NODE_PAGE, which is open. */
const char *tree_page(const struct node *node, size_t *ret_len);

static inline bool node_is_folder(const struct node *node)
{
    switch (node->kind) {
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
void item_path(const struct catalog_item *item, char *ret, size_t capacity);

#endif
