/* Which samples have bytes in a piece of a blob: the other way round than dataset_extents(). For
 * formats whose samples are not all alike.
 *
 * Per piece, the smallest and the largest such sample: 16 bytes for 64 KiB of a source. It is made
 * by one pass over the samples, in steps, by one thread; then it is constant, and any thread may
 * read it. */
#ifndef EPOCHFS_FS_DRIVE_EXTENT_MAP_H
#define EPOCHFS_FS_DRIVE_EXTENT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "format/core/dataset.h"

#define EXTENT_MAP_PIECE (UINT64_C(64) << 10) /* bytes */

struct extent_map;

/* ds must be ready and outlive it. 0 or -ENOMEM. */
int extent_map_new(const struct dataset *ds, struct extent_map **ret);
void extent_map_free(struct extent_map *map); /* takes NULL */

/* Look at so many samples more. 1: it is complete, 0: not yet, or -ENOMEM, and then it is good for
 * nothing. No source is read. */
int extent_map_step(struct extent_map *map, uint64_t samples);

/* Samples first .. last: all that have bytes in [off, off + len) of the blob are among them. false:
 * there are none. */
bool extent_map_find(const struct extent_map *map, const struct blob *blob, uint64_t off,
                     uint64_t len, uint64_t *ret_first, uint64_t *ret_last);

#endif
