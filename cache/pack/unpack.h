/* Compressed source files, and packed parts of files, unpacked once into the cache folder and
 * served from there.
 *
 * An unpacked file is published by renaming: a file under its final name is whole. Its last 64
 * bytes say what it is. Two processes that need the same file take turns; the second finds it done.
 * The format is in docs/spec/cache-format.md. */
#ifndef EPOCHFS_CACHE_PACK_UNPACK_H
#define EPOCHFS_CACHE_PACK_UNPACK_H

#include "base/blob.h"
#include "base/diag.h"
#include "base/opener.h"
#include "cache/disk/entry.h"

/* Gets reports of the progress, from the thread that unpacks. */
struct unpack_watch {
    /* So far, `bytes` of packed have been read: 0 at first, all at the end unless unpacking fails.
     */
    void (*progress)(struct unpack_watch *watch, const struct blob *packed, uint64_t bytes);
};

/* Replace *blob by its content if that was unpacked before. Reads nothing of *blob. 0, -ENOENT: it
 * was not unpacked, or -errno. */
int unpack_find(struct blob **blob, const struct cache_folder *cache, struct diag *d);

/* Was the blob unpacked before, by any process? */
bool unpack_is_done(const struct blob *blob, const struct cache_folder *cache);

/* If *blob is packed, replace it by a blob of its content with the name, times and owner of the
 * packed file. 0, or -errno with the reason in d and *blob as it was. Blocks while it unpacks.
 * watch may be NULL. */
int unpack_blob(struct blob **blob, const struct cache_folder *cache, struct unpack_watch *watch,
                struct diag *d);

/* The entry for the content of blob, or of a part of it (a text; "": all of it), whether it exists
 * or not. shown: for messages. 0, or -errno with the reason in d. */
int unpack_entry(const struct blob *blob, const char *part, const char *shown,
                 const struct cache_folder *cache, struct entry *ret, struct diag *d);

/* Unpack a part of blob, such as a deflated member of a ZIP archive, unless that was done before:
 * *ret is its content, with the times and the owner of blob, and the name `<name of blob>/<name of
 * the part>`. watch may be NULL. As opener_unpack(). */
int unpack_part(const struct blob *blob, const struct packed_part *part,
                const struct cache_folder *cache, struct unpack_watch *watch, struct blob **ret,
                struct diag *d);

/* What may follow the name of a file: number 0 is "", a file that is not packed, then the suffix of
 * each packing. NULL: no more. */
const char *packed_suffix(size_t i);

/* The length of name without the suffix of a packed file, if it has one. */
size_t unpacked_name_len(const char *name);

#endif
