/* The blocks that are needed latest, of those on disk and in memory: victims for
 * cache/stage/retention.c.
 *
 * One thread at a time calls these, with no lock held; latest_times() and latest_by_place(): any.
 */
#ifndef EPOCHFS_CACHE_STAGE_LATEST_H
#define EPOCHFS_CACHE_STAGE_LATEST_H

#include "cache/stage/parts.h"

#define LATEST_TOGETHER 64 /* blocks asked for together */

struct victim {
    struct file *file;
    uint64_t block, when;
    bool in_memory; /* otherwise on disk */
};

/* Count the blocks on disk. files: the first of a list; files that this process has not looked at
 * are looked at. */
size_t latest_count(struct file *files);

/* List the capacity >= 1 blocks that are needed latest, the latest first. remembered: how many
 * blocks are on disk; 0: ask for all times anew. Returns how many are listed. */
size_t latest_find(struct stage *stage, const struct stage_needs *needs, struct file *files,
                   size_t remembered, struct victim *ret, size_t capacity);

/* Ask for the times of n <= LATEST_TOGETHER blocks. */
void latest_times(const struct stage_needs *needs, size_t n, const struct victim *v,
                  uint64_t ret[static LATEST_TOGETHER]);

/* <0, 0, >0: by file, then by block. */
int latest_by_place(const struct victim *a, const struct victim *b);

#endif
