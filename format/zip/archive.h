/* A ZIP archive as a folder of files. The names in it are a table of files (base/members.h), in
 * which format/files finds datasets as in a folder of SOURCE; what it finds is read through a view,
 * a blob whose bytes are the contents of files of the archive, one after another. */
#ifndef EPOCHFS_FORMAT_ZIP_ARCHIVE_H
#define EPOCHFS_FORMAT_ZIP_ARCHIVE_H

#include <stdatomic.h>

#include "base/blob.h"
#include "base/members.h"
#include "base/text.h"
#include "format/core/format.h"
#include "format/zip/archive/zip.h"

/* Where the content of a file is. */
struct zip_place {
    uint64_t header, end; /* of its local header; of its packed bytes at most */
    uint64_t packed_size;
    uint32_t crc, name; /* name: where it is in names[] of the archive, as it is stored */
    uint16_t name_len, method;
    _Atomic(uint32_t) skip; /* bytes from the header to the packed bytes; 0: not known yet */
};

struct zip_archive {
    struct blob *blob; /* owned */
    const struct format_setup *setup;
    uint64_t number; /* no other archive has it: what the memo keeps may outlive the archive */
    struct members listing;  /* sorted; version[0] of a file is its number in place[] */
    struct zip_place *place; /* [n] */
    char *names;
    size_t n;
    uint64_t n_aside; /* members that are no files of the listing, and why the first is none */
    char *aside;      /* NULL: there are none */
    unsigned users;   /* views, and its maker; one thread makes them, and one ends them at a time */
};

/* Read the directory of blob, which it takes over, also on error. The files are below the folder
 * `top`, relative to SOURCE; stem: a folder of that name that holds all members is `top` itself. 0
 * or -errno with the reason in d. */
int zip_archive_open(struct blob *blob, const char *top, const char *stem,
                     const struct format_setup *setup, struct zip_archive **ret, struct diag *d);
void zip_archive_drop(struct zip_archive *archive); /* one user less: the last one frees it */
#define AUTO_ZIP_ARCHIVE AUTO(zip_archive_scope_end)
static inline void zip_archive_scope_end(struct zip_archive **archive)
{
    if (*archive)
        zip_archive_drop(*archive);
}

/* ---- listing.c ---- */

/* Make the listing of the archive and its places. 0, -EBADMSG: two members cannot be files of one
 * folder, or another -errno, with the reason in d. */
int zip_list(struct zip_archive *archive, const struct zip *zip, const char *top, const char *stem,
             struct diag *d);

/* ---- view.c ---- */

/* A blob of n files of the listing, below its folder root, and the table of them, which lives as
 * long. Large deflated files are unpacked into the cache folder now, which waits. 0 or -errno with
 * the reason in d. */
int zip_view_new(struct zip_archive *archive, const char *root, const uint32_t *file, size_t n,
                 struct blob **ret, const struct members **ret_members, struct diag *d);

/* Read the first bytes of a file of the listing, at most size. How many there are, or -errno. */
int zip_view_head(const struct zip_archive *archive, size_t file, uint8_t *ret, size_t size);

#endif
