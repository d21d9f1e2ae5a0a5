/* The directory of a ZIP archive (PKWARE's APPNOTE 6.3.9, 4.3 to 4.5), which is at its end. It is
 * hostile: what it says is inside of the archive, and no two members overlap. It is kept as it is
 * stored, and an entry is parsed whenever it is asked for. */
#ifndef EPOCHFS_FORMAT_ZIP_ARCHIVE_ZIP_H
#define EPOCHFS_FORMAT_ZIP_ARCHIVE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
    const char *folder, *name; /* [name_len] any bytes, in the directory; folder: where it is, for
                                * messages; NULL: its name says it */
    size_t name_len;
    const uint8_t *extra; /* [extra_len] fields, in the directory */
    size_t extra_len;
    unsigned method, flags;
    unsigned maker, mode; /* the system that made it; of Unix: what stat(2) calls st_mode, or 0 */
    uint32_t crc;         /* of its content */
    uint64_t packed_size; /* bytes in the archive, from at on */
    uint64_t size;        /* bytes of its content */
    uint64_t header;      /* offset of its local header, which has */
    uint16_t local_len;   /* a name of so many bytes, */
    uint32_t local_crc;   /* with that CRC-32, */
    uint16_t room;        /* and at most so many bytes of fields, before the next member begins */
    uint64_t at;          /* of its bytes; 0: not known yet, see zip_locate() */
};

struct zip {
    uint8_t *bytes;     /* of the directory; owned */
    uint64_t directory; /* its offset: members end before it */
    uint32_t *entry;    /* [n] where each is in bytes; owned */
    uint16_t *room;     /* [n] owned */
    size_t n;
};

/* Read the directory, and check it as a whole: no member is encrypted, or of a size that it cannot
 * have; none is packed in another way than deflate, except with foreign, for a caller that ignores
 * those. 0, -EBADMSG or another -errno, with the reason in d. */
int zip_read(const struct blob *blob, bool foreign, struct zip *ret, struct diag *d);
void zip_release(struct zip *zip);
#define AUTO_ZIP AUTO(zip_release)

/* A member, in the order of the directory. */
struct zip_member zip_member(const struct zip *zip, size_t i);

/* -EBADMSG with "member <name>: " and the reason in d. */
int zip_bad(const struct blob *blob, const struct zip_member *m, struct diag *d, const char *format,
            ...) __attribute__((format(printf, 4, 5)));

/* The name of the member's packing, if it is neither stored nor deflated; NULL: it is. */
const char *zip_foreign_method(const struct zip_member *m);

/* A field of the member's extra field, and its length; NULL: it has none. */
const uint8_t *zip_extra(const struct zip_member *m, unsigned id, size_t *ret_len);

/* Are its method and sizes those of a member that can be read? With foreign, also one that is
 * packed in another way than deflate. 0 or -EBADMSG. */
int zip_check(const struct blob *blob, const struct zip_member *m, bool foreign, struct diag *d);

/* Does the name of the first member, in the first len bytes of an archive, end so, in small letters
 * or capitals? */
bool zip_first_ends(const uint8_t *head, size_t len, const char *end);

/* Where the member's bytes end, if its local header is no longer than usual; at most where the next
 * member, or the directory, begins. */
uint64_t zip_end(const struct zip_member *m);

/* Set `at`, by the member's local header, unless it is known. 0 or -errno. */
int zip_locate(struct read_context *rc, const struct blob *blob, struct zip_member *m,
               struct diag *d);

/* Read bytes [off, off + len) of the member as they are stored, and its local header if need be; if
 * that is missing (-EAGAIN), so are they, as far as is known. */
int zip_pread(struct read_context *rc, const struct blob *blob, struct zip_member *m, uint64_t off,
              void *buf, size_t len, struct diag *d);

/* Read the first len bytes of the member's content, at most its size, which are unpacked for that.
 * All of a deflated member is compared with its CRC-32. 0 or -errno. */
int zip_content(struct read_context *rc, const struct blob *blob, struct zip_member *m, void *ret,
                size_t len, struct diag *d);

/* ---- writing an archive of stored members ---- */

/* Times are 1980-01-01, so that the same members give the same bytes everywhere; ZIP64 is used only
 * where needed. A member has its name, size, header, and for writing crc.
 *
 * Bytes of its local header, of its entry in the directory, and of the end after a directory at
 * that byte. */
size_t zip_local_size(const struct zip_member *m);
size_t zip_entry_size(const struct zip_member *m);
size_t zip_end_size(uint64_t directory);

/* Write them; each returns the byte after what it writes. size: of the directory of n members. */
uint8_t *zip_put_local(uint8_t *at, const struct zip_member *m);
uint8_t *zip_put_entry(uint8_t *at, const struct zip_member *m);
uint8_t *zip_put_end(uint8_t *at, unsigned n, uint64_t directory, uint64_t size);

#endif
