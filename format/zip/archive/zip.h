/* The directory of a ZIP archive (PKWARE's APPNOTE, 4.3), which is at its end. It is hostile: what
 * it says is inside of the archive, and no two members overlap. */
#ifndef EPOCHFS_FORMAT_ZIP_ARCHIVE_ZIP_H
#define EPOCHFS_FORMAT_ZIP_ARCHIVE_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
    const char *name; /* [name_len] any bytes, in the directory */
    size_t name_len;
    const uint8_t *extra; /* [extra_len] fields, in the directory */
    size_t extra_len;
    unsigned method, flags;
    unsigned maker, mode; /* the system that made it; of Unix: what stat(2) calls st_mode, or 0 */
    uint32_t crc;         /* of its content */
    uint64_t packed_size; /* bytes in the archive, from at on */
    uint64_t size;        /* bytes of its content */
    uint64_t header;      /* offset of its local header */
    uint64_t at;          /* of its bytes; set by zip_find() */
};

struct zip {
    struct zip_member *member; /* [n] in the order of the directory; owned */
    size_t n;
    uint64_t directory; /* its offset: members end before it */
    uint8_t *bytes;     /* of the directory; owned */
};

/* Read the directory. 0, -EBADMSG or another -errno, with the reason in d. */
int zip_read(const struct blob *blob, struct zip *ret, struct diag *d);
void zip_release(struct zip *zip);
#define AUTO_ZIP AUTO(zip_release)

/* The name of the member's packing, if it is neither stored nor deflated; NULL: it is. */
const char *zip_foreign_method(const struct zip_member *m);

/* Is the member encrypted, or its name? */
bool zip_is_encrypted(const struct zip_member *m);

/* What can be read of a member: neither encrypted, nor packed in another way than deflate, and of a
 * size that it can have. 0 or -EBADMSG. */
int zip_check(const struct blob *blob, const struct zip_member *m, struct diag *d);

/* Read the local header of a member, which says where its bytes are, and set `at`. They end before
 * byte `end`. 0 or -errno. */
int zip_locate(struct read_context *rc, const struct blob *blob, struct zip_member *m, uint64_t end,
               struct diag *d);

/* Do members overlap, as far as the directory says? For each member the bytes where the next one
 * begins, to ret[n]. 0, -EBADMSG or -ENOMEM. */
int zip_ends(const struct blob *blob, const struct zip *zip, uint64_t *ret, struct diag *d);

/* Find all members, as zip_locate(). */
int zip_find(const struct blob *blob, struct zip *zip, struct diag *d);

/* Unpack deflated bytes to at most size bytes. 0, -ENOMEM; or -EBADMSG: they are none. */
struct zip_inflated {
    size_t used, len;  /* bytes that were read, and made */
    bool is_whole;     /* the data has ended */
    const char *fault; /* static, or NULL */
};
int zip_inflate(uint8_t *packed, size_t len, void *ret, size_t size, struct zip_inflated *made);

/* Read the first bytes of a member's content, at most capacity, which may be unpacked for that. The
 * caller has called zip_check(). 0 or -errno. */
int zip_peek(const struct blob *blob, const struct zip_member *m, uint8_t *ret, size_t capacity,
             size_t *ret_len, struct diag *d);

#endif
