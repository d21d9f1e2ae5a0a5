/* A ZIP archive as a folder of files. The names in it are a table of files (base/members.h), in
 * which format/files finds datasets as in a folder of SOURCE; what it finds is read through a view,
 * a blob whose bytes are the contents of files of the archive, one after another. The table also
 * has where each file is in the archive: once it is made, the directory is not needed. */
#ifndef EPOCHFS_FORMAT_ZIP_ARCHIVE_H
#define EPOCHFS_FORMAT_ZIP_ARCHIVE_H

#include "base/blob.h"
#include "base/members.h"
#include "base/text.h"
#include "format/core/format.h"
#include "format/index/prepared.h"
#include "format/zip/archive/zip.h"

#define ZIP_BYTES_MAX (UINT64_C(1) << 46) /* of an archive: a table has offsets of so many bits */

struct zip_archive {
    struct blob *blob; /* owned */
    const struct format_setup *setup;
    struct prepared found; /* what was found in it: its bytes have tables of views */
    uint64_t number; /* no other archive has it: what the memo keeps may outlive the archive */
    unsigned users;  /* views, and its maker; one thread makes them, and one ends them at a time */
};

/* Takes blob over, also on error. 0 or -ENOMEM. */
int zip_archive_new(struct blob *blob, const struct format_setup *setup, struct zip_archive **ret);
void zip_archive_drop(struct zip_archive *archive); /* one user less: the last one frees it */
#define AUTO_ZIP_ARCHIVE AUTO(zip_archive_scope_end)
static inline void zip_archive_scope_end(struct zip_archive **archive)
{
    if (*archive)
        zip_archive_drop(*archive);
}

struct zip_listing {
    struct members files; /* sorted */
    uint64_t n_aside;     /* members that are no files of the listing, */
    struct diag aside;    /* and why the first is none; not set: there are none */
};

static inline void zip_listing_release(struct zip_listing *list)
{
    members_release(&list->files);
}

/* Read the directory of an archive, and list its files: below the folder `top`, relative to SOURCE;
 * stem: a folder of that name that holds all members is `top` itself. 0; -EBADMSG: the archive
 * cannot be read, or two members cannot be files of one folder; or another -errno, with the reason
 * in d. */
int zip_list(const struct blob *blob, const char *top, const char *stem, struct zip_listing *ret,
             struct diag *d);

/* A file of a listing, or of the table of a view; that of a view may be hostile. */
static inline struct zip_member zip_listed(const struct members *files, size_t i)
{
    const struct member *f = &files->member[i];

    return (struct zip_member){.folder = members_folder_of(files, i),
                               .name = members_name(files, i),
                               .name_len = strlen(members_name(files, i)),
                               .method = f->more & 1 ? ZIP_DEFLATED : ZIP_STORED,
                               .crc = (uint32_t)f->version[1],
                               .packed_size = (f->more & ~MEMBER_TEXT) >> 17,
                               .size = members_size(files, i),
                               .header = f->version[0] >> 16,
                               .local_len = (uint16_t)f->version[0],
                               .local_crc = (uint32_t)(f->version[1] >> 32),
                               .room = (uint16_t)(f->more >> 1)};
}

/* A blob of the files of a table, which it takes over, also on error; *ret_files: where the table
 * lives as long as the blob. The table may be hostile. Large deflated files are unpacked into the
 * cache folder now, which waits. 0 or -errno with the reason in d. */
int zip_view_new(struct zip_archive *archive, struct members *files, struct blob **ret,
                 const struct members **ret_files, struct diag *d);

#endif
