/* The versions of files in a table of members. */
#include <stdio.h>
#include <xxhash.h>

#include "cache/source/entries.h"
#include "cache/source/joined.h"
#include "cache/stage/transport.h"

void joined_version_of_stat(const struct stat *st, uint64_t ret[static 2])
{
    ret[0] = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
    ret[1] = st->st_ino;
}

void joined_version_of_entry(const struct source_entry *entry, uint64_t ret[static 2])
{
    const struct remote_version *version = entry->version;
    char text[sizeof(version->etag) + 64];
    XXH128_hash_t hash;
    int n;

    if (*version->etag)
        n = snprintf(text, sizeof(text), "etag %s", version->etag);
    else
        n = snprintf(text, sizeof(text), "time %lld.%09ld", (long long)version->mtime.tv_sec,
                     version->mtime.tv_nsec);
    hash = XXH3_128bits(text, (size_t)n);
    ret[0] = hash.low64;
    ret[1] = hash.high64;
}
