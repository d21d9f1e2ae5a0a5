/* A ZIP archive as a folder of files. The names in it are a table of files (base/members.h), in
 * which format/files finds datasets as in a folder of SOURCE; what it finds is read through a view,
 * a blob whose bytes are the contents of files of the archive, one after another. */
#ifndef EPOCHFS_FORMAT_ZIP_ARCHIVE_H
#define EPOCHFS_FORMAT_ZIP_ARCHIVE_H

#include "base/blob.h"
#include "base/members.h"
#include "base/text.h"
#include "format/core/format.h"
#include "format/zip/archive/zip.h"

struct zip_archive {
    struct blob *blob; /* owned */
    const struct format_setup *setup;
    uint64_t number; /* no other archive has it: what the memo keeps may outlive the archive */
    struct zip zip;
    struct members listing; /* sorted; version[0] of a file is its number in the directory */
    uint64_t n_aside;       /* members that are no files of the listing, */
    struct diag aside;      /* and why the first is none; not set: there are none */
    unsigned users; /* views, and its maker; one thread makes them, and one ends them at a time */
};

/* Read the directory of blob, which it takes over, also on error, and list its files: below the
 * folder `top`, relative to SOURCE; stem: a folder of that name that holds all members is `top`
 * itself. 0; -EBADMSG: the archive cannot be read, or two members cannot be files of one folder; or
 * another -errno, with the reason in d. */
int zip_archive_open(struct blob *blob, const char *top, const char *stem,
                     const struct format_setup *setup, struct zip_archive **ret, struct diag *d);
void zip_archive_drop(struct zip_archive *archive); /* one user less: the last one frees it */
#define AUTO_ZIP_ARCHIVE AUTO(zip_archive_scope_end)
static inline void zip_archive_scope_end(struct zip_archive **archive)
{
    if (*archive)
        zip_archive_drop(*archive);
}

/* A file of the listing, or of the members of a view. */
static inline struct zip_member zip_archive_member(const struct zip_archive *archive,
                                                   const struct members *m, size_t i)
{
    return zip_member(&archive->zip, m->member[i].version[0]);
}

/* A blob of n files of the listing, below its folder root, and the table of them, which lives as
 * long. Large deflated files are unpacked into the cache folder now, which waits. 0 or -errno with
 * the reason in d. */
int zip_view_new(struct zip_archive *archive, const char *root, const uint32_t *file, size_t n,
                 struct blob **ret, const struct members **ret_members, struct diag *d);

#endif
