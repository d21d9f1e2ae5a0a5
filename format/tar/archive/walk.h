/* A walk through an archive, from header to header. Content is not read, except small members,
 * where reading on takes less time than a hop; of a remote, that is members of less than 1 MiB. It
 * can be gone on with after an error that says nothing of the file. One thread. */
#ifndef EPOCHFS_FORMAT_TAR_ARCHIVE_WALK_H
#define EPOCHFS_FORMAT_TAR_ARCHIVE_WALK_H

#include "base/blob.h"
#include "format/index/pass_window.h"
#include "format/tar/archive/header.h"
#include "format/tar/archive/hints.h"

#define TAR_EXTRA_MAX (1u << 20) /* bytes of the data of a pax or long-name header, at most */

struct tar_member {
    enum tar_entry_type
        type;          /* up to TAR_SPARSE; headers that describe the next member have no name */
    uint64_t start;    /* of its first header */
    uint64_t at, size; /* of its content */
    uint8_t *name;     /* [name_len] the caller may change it; valid until the next call */
    size_t name_len;
    bool is_cut; /* the file ends in its content: tar_walk_next() has returned -EBADMSG */
};

struct tar_walk {
    const struct blob *blob;
    uint64_t at;   /* of the next header */
    uint64_t end;  /* the first block of the end; the size of the blob: it has none */
    uint8_t *name; /* [TAR_NAME_MAX] */
    struct tar_hints
        *hints; /* where headers may be, which the caller sets and owns; NULL: unknown */

    /* Private: */
    uint64_t start; /* of the headers of the next member */
    struct tar_header header;
    struct tar_pax *local, *global;
    uint8_t *long_name; /* [TAR_NAME_MAX] */
    size_t long_len;
    unsigned seen;             /* headers that describe the next member */
    uint64_t near_reads;       /* reads since the last one that was far from the one before */
    uint64_t fetched;          /* bytes before it were asked for */
    struct pass_window window; /* but its rc, which the caller may set */
};

/* 0 or -ENOMEM. */
int tar_walk_init(struct tar_walk *ret, const struct blob *blob);
void tar_walk_release(struct tar_walk *w); /* of one that starts as {0} */

/* One header further. 1: *ret is a member, or describes one; 0: the end; or -errno with the reason
 * in d: -EBADMSG is for good. Sizes and places that it returns are inside the blob. */
int tar_walk_next(struct tar_walk *w, struct tar_member *ret, struct diag *d);

/* Bytes [at, at + len) of the blob, which are inside it; len <= TAR_EXTRA_MAX. Valid until the next
 * call. 0 or -errno with the reason in d. */
int tar_walk_bytes(struct tar_walk *w, uint64_t at, size_t len, const uint8_t **ret,
                   struct diag *d);

/* At the end: is there something but zeros after it, or more than 1 MiB, which is not looked at? 1
 * with its place, 0 or -errno. */
int tar_walk_rest(struct tar_walk *w, uint64_t *ret_at, struct diag *d);

/* At the end: is the mark of it missing, two blocks of zeros? */
static inline bool tar_walk_is_open(const struct tar_walk *w)
{
    return w->blob->size - w->end < (uint64_t)2 * TAR_BLOCK;
}

#endif
