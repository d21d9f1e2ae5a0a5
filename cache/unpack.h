/* Compressed source files, unpacked once into the cache folder and served from there.
 *
 * Published by renaming: a file under its final name is whole. Its last 64 bytes say what it is.
 * Two processes that need the same file take turns; the second finds it done. The format is in
 * docs/cache-format.md. unpackers[] is the registry. */
#ifndef EPOCHFS_CACHE_UNPACK_H
#define EPOCHFS_CACHE_UNPACK_H

#include "base/blob.h"
#include "base/diag.h"
#include "cache/entry.h"

struct unpacker {
    const char *name; /* for messages */
    const char *suffix;
    uint8_t magic[6];
    size_t magic_len;
    /* Unpack all of packed with entry_write(). 0, -EBADMSG with place, wanted and found in d, or
     * -errno. */
    int (*run)(const struct blob *packed, struct entry_sink *sink, struct diag *d);
};

/* Replace *blob by its content if that was unpacked before. Reads nothing of it. 0, -ENOENT: it was
 * not, or -errno. */
int unpack_find(struct blob **blob, const struct cache_folder *cache, struct diag *d);

/* If *blob is packed, replace it by a blob of its content with the name, times and owner of the
 * packed file. 0, or -errno with the reason in d and *blob as it was. Blocks while it unpacks. */
int unpack_blob(struct blob **blob, const struct cache_folder *cache, struct diag *d);

/* The length of name without a suffix of a packed file. */
size_t unpacked_name_len(const char *name);

#endif
