/* Packed parts of source files, such as deflated members of a ZIP archive, unpacked once into the
 * cache folder. */
#ifndef EPOCHFS_CACHE_PACK_PART_H
#define EPOCHFS_CACHE_PACK_PART_H

#include "base/opener.h"
#include "cache/disk/folder.h"

struct unpack_watch;

/* Unpack a part of blob unless that was done before: *ret is its content, with the times and the
 * owner of blob, and the name `<name of blob>/<name of the part>`. watch may be NULL. As
 * opener_unpack(). */
int unpack_part(const struct blob *blob, const struct packed_part *part,
                const struct cache_folder *cache, struct unpack_watch *watch, struct blob **ret,
                struct diag *d);

#endif
