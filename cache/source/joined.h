/* A joined blob: many files of SOURCE as one, whose bytes are the files one after another in the
 * order of a table (base/members.h). A folder of a million pictures is one source file for all that
 * is above: one index, one staged file, one forecast.
 *
 * It is bound to the versions in the table. Each read finds the members that it touches and
 * compares their versions: if one has changed, has grown or is gone, a read that touches it returns
 * -ESTALE, with its name in d. Reads of other members go on. So blob_check() has nothing to add: it
 * is 0.
 *
 * The identity of the blob is a hash of the whole table. The blob owns the table. */
#ifndef EPOCHFS_CACHE_SOURCE_JOINED_H
#define EPOCHFS_CACHE_SOURCE_JOINED_H

#include <sys/stat.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/members.h"

struct source;
struct remote_version;

/* What holds for all members of a joined blob. */
struct joined_head {
    const char *name;      /* of the blob, in messages: its folder relative to SOURCE */
    struct timespec mtime; /* of the latest member */
    unsigned mode;         /* permission bits that all members have */
    unsigned uid, gid;
};

/* Make a joined blob of files of a source, and take members over, also on error. The files are not
 * looked at. 0; -EOPNOTSUPP: this kind of source joins no files; or -errno with the reason in d.
 *
 * Local paths are read in place; through a stage, the transport splits ranges of the joined file
 * into files. */
int source_join(const struct source *source, const struct joined_head *head,
                struct members *members, struct blob **ret, struct diag *d);

/* The members of a joined blob that source_join() made, for code that has the blob. */
const struct members *joined_members(const struct blob *blob);

/* Is it a joined blob? */
bool joined_is(const struct blob *blob);

/* The identity of the table as text: the SHA-256 of all that tells its files apart, and of `where`,
 * a text: "" for the table alone. The caller frees it. 0 or -ENOMEM. */
int joined_identity(const struct members *members, const char *where, char **ret);

/* Set the version of a local file in a table, with `more`: its two times of change in nanoseconds,
 * inode and device. */
void joined_version_of_stat(const struct stat *st, struct member *ret);

/* Is it the file that is number i in the table? */
bool joined_version_is(const struct members *m, size_t i, const struct stat *st);

/* Does a remote's file have a time that may differ while the ETag stays the same?
 * An MD5 in the ETag, or the time itself, as nginx has it, suffices. */
bool joined_version_needs_time(const struct remote_version *version);

/* Set the version of file i of a table, of a remote, all but its size. Two files of different
 * versions have different member.version. 0 or an error of members_set_more(). */
int joined_version_set(struct members *m, size_t i, const struct remote_version *version);

/* Get it again, with the size. The table may be one that was kept, and have anything in it. false:
 * it has no such version: it is unknown, or not a version. */
bool joined_version_get(const struct members *m, size_t i, struct remote_version *ret);

#endif
