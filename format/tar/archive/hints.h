/* DALI's index of a shard (wds2idx) as hints: where headers are. They are asked for ahead, many at
 * once, while the walk goes from header to header as ever and checks each: an index that is wrong,
 * or older than its shard, costs requests, and nothing else. */
#ifndef EPOCHFS_FORMAT_TAR_ARCHIVE_HINTS_H
#define EPOCHFS_FORMAT_TAR_ARCHIVE_HINTS_H

#include "base/blob.h"

struct tar_hints {
    uint64_t *at; /* [n] of headers, in order; owned */
    size_t n;
    size_t passed, asked; /* the walk's: before these */
    unsigned misses;      /* headers in a row that none pointed to */
};

/* Is a file of that name and with that start such an index? */
bool tar_hints_are_in(const char *name, const void *head, size_t len);

/* Is it called like one? */
bool tar_hints_are_called(const char *name);

/* The name of a shard before its last dot: its length. */
size_t tar_hints_stem(const char *shard);

/* Is an index of that name the shard's: <stem>.idx, or <name>.idx? */
bool tar_hints_are_of(const char *name, const char *shard);

/* Read an index of a shard of size bytes. None come of one that cannot be read, or whose members
 * are so near to each other that all is better read. 0 or -ENOMEM. */
int tar_hints_read(const struct blob *index, uint64_t size, struct tar_hints *ret);
void tar_hints_release(struct tar_hints *hints); /* of one that starts as {0} */

/* The walk is at that byte: ask for headers behind it. Hints that prove wrong are dropped. */
void tar_hints_follow(struct tar_hints *hints, const struct blob *shard, uint64_t at);

#endif
