/* Which samples have bytes in a piece of a blob: the inverse of dataset_extents(), for formats
 * whose samples differ.
 *
 * A piece has the smallest and the largest such sample: 16 bytes for 64 KiB of a source. One thread
 * makes the map in steps, by one pass over the samples. Then the map is constant, and any thread
 * may read it. */
#ifndef EPOCHFS_FS_DRIVE_EXTENT_MAP_H
#define EPOCHFS_FS_DRIVE_EXTENT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "format/core/dataset.h"

#define EXTENT_MAP_PIECE (UINT64_C(64) << 10) /* bytes */

struct extent_map;

/* ds must be ready and outlive the map. 0 or -ENOMEM. */
int extent_map_new(const struct dataset *ds, struct extent_map **ret);
void extent_map_free(struct extent_map *map); /* takes NULL */

/* Add the next samples to the map, so many at most. 1: it is complete; 0: not yet; -ENOMEM: it is
 * unusable. No source is read. */
int extent_map_step(struct extent_map *map, uint64_t samples);

/* All samples with bytes in [off, off + len) of the blob are among first .. last. false: there are
 * none. */
bool extent_map_find(const struct extent_map *map, const struct blob *blob, uint64_t off,
                     uint64_t len, uint64_t *ret_first, uint64_t *ret_last);

#endif
