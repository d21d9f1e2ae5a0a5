/* Spans: the ranges of the inode numbers of samples and batches. docs/internals/a-read.md has the
 * layout. */
#ifndef EPOCHFS_FS_TREE_SPAN_H
#define EPOCHFS_FS_TREE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/tree/tree.h"

/* Slot 0 of a plan's span is for its folders: <enc>/ number i is (i, 0), the folders below are
 * (span_self_folder(), one of these). */
enum span_self { SELF_EPOCH = 1, SELF_PLAN, SELF_LINK };
unsigned span_self_folder(const struct catalog_item *item);

struct span {
    uint64_t base;       /* of a span to be found: its hash */
    unsigned bits;       /* of its size */
    unsigned epoch_bits; /* of the epoch's place in it */
    unsigned slot_bits;
    const struct catalog_item *item;
    struct plan_entry *plan; /* NULL: samples */
    uint64_t epoch_high;     /* epoch >> epoch_bits */
};

/* All spans of a tree; the tree's lock guards them. */
struct spans {
    struct span *span; /* sorted by base */
    size_t n;
    size_t max;
};

/* What an inode number means within its span. */
struct span_place {
    uint64_t epoch, slot;
    unsigned folder, file;
};

/* The span for the samples of a dataset; the span for a plan and the epochs around epoch. */
struct span span_of_samples(const struct catalog_item *item);
struct span span_of_plan(struct plan_entry *entry, uint64_t epoch);

uint64_t span_ino(const struct span *s, const struct span_place *place);
void span_place_of(const struct span *s, uint64_t ino, struct span_place *ret);

/* The inode number of a file, from that of its <enc>/ folder, whose slot is 0. */
uint64_t span_file_ino(const struct catalog_item *item, uint64_t folder_ino, uint64_t slot,
                       unsigned file);

/* Find the span that wanted describes. 0 or -ENOENT. */
int spans_find(const struct spans *spans, const struct span *wanted, struct span *ret);

/* The same, but add the span if it is not there. Also -ENFILE (max reached, or no place for it),
 * -ENOMEM. */
int spans_take(struct spans *spans, const struct span *wanted, struct span *ret);

/* The span that ino is in. 0 or -ESTALE. */
int spans_of_ino(const struct spans *spans, uint64_t ino, struct span *ret);

#endif
