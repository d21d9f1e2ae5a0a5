/* Entries of the cache folder: files that are whole or not there.
 *
 * An entry is named by an id that follows from the identity of what it was made from. It is
 * written under <id>.part by the holder of that file's lock, ends with a trailer that repeats the
 * id and the size, and gets its name when it is whole: docs/cache-format.md. */
#ifndef EPOCHFS_CACHE_DISK_ENTRY_H
#define EPOCHFS_CACHE_DISK_ENTRY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "cache/disk/folder.h"

#define ENTRY_ID_SIZE 33 /* 32 hexadecimal digits and the NUL */

#define ENTRY_SOURCE_MAX 1024 /* bytes; a longer one is cut, and ends in "..." */

struct entry {
    char folder[PATH_MAX];
    char id[ENTRY_ID_SIZE];
    char source[ENTRY_SOURCE_MAX + 1]; /* what it is made from, for people */
    struct quota *quota; /* of the cache folder: what is made takes room first; NULL: no limit */
};

/* The entry of DIR/sub for that identity: a text that differs where the contents may. source: where
 * they come from, for people: a path, a URL without credentials, a command; "" where nothing will
 * be made. Makes the folder. 0, or -errno with the reason in d. */
int entry_init(struct entry *ret, const struct cache_folder *cache, const char *sub,
               const char *identity, const char *source, struct diag *d);

/* An entry that is whole, and the bytes of its content. 0, -ENOENT where there is none, or
 * -errno. The caller closes *ret_fd. */
int entry_open(const struct entry *entry, int *ret_fd, uint64_t *ret_size);

/* The same for people who look after the folder: -EBADMSG: there is something, but it is damaged;
 * -EPROTO: it was made by another version of epochfs. */
int entry_inspect(const struct entry *entry, int *ret_fd, uint64_t *ret_size);

/* The same as entry_open(), if the content is what was written: at most ENTRY_CHECKED bytes are
 * compared with their checksum; who finds it wrong removes the entry, and -ENOENT. */
#define ENTRY_CHECKED (UINT64_C(1) << 30)
int entry_open_checked(const struct entry *entry, int *ret_fd, uint64_t *ret_size);

/* The source that a whole entry with size bytes of content names. Whoever made the file may have
 * put any bytes there. 0, -EBADMSG: it is no text of at most ENTRY_SOURCE_MAX bytes; or -errno. */
int entry_source(int fd, uint64_t size, char ret[static ENTRY_SOURCE_MAX + 1]);

/* Compare the content, of size bytes, and the source of a whole entry with the checksum in its
 * trailer. 0, -EBADMSG or -errno. */
int entry_check(int fd, uint64_t size);

/* Remove an entry whose content turned out to be damaged. Who has it open may go on. */
void entry_remove(const struct entry *entry);

/* The path of its file: "" gives that of the whole entry. 0 or -ENAMETOOLONG. */
int entry_path(const struct entry *entry, const char *suffix, char ret[static PATH_MAX]);

/* Begin to make an entry. 0 and an empty file, locked, that ends up as the entry: whatever is
 * written to *ret_fd, by whomever, is the content. 1: another process was first; *ret_fd and
 * *ret_size are as from entry_open(). -EAGAIN: another process makes it, and wait is false; or
 * -errno. The caller closes *ret_fd. */
int entry_begin(const struct entry *entry, bool wait, int *ret_fd, uint64_t *ret_size);

/* The bytes that are written behind the content: the source and the trailer. */
uint64_t entry_tail(const struct entry *entry);

/* The content that was begun is whole: publish it. 0, or -errno and nothing of it stays. sync: see
 * entry_make(). Takes no room: that is up to who writes. */
int entry_commit(const struct entry *entry, int fd, bool sync, uint64_t *ret_size);

/* Nothing comes of it: remove the file that was begun. */
void entry_abandon(const struct entry *entry, int fd);

/* What makes an entry: append with entry_write(). 0 or -errno; where that has found no room, or
 * has failed, what it has returned. */
struct entry_sink;
typedef int entry_make_fn(void *ctx, struct entry_sink *sink, struct diag *d);

/* 0; -ENOSPC: also if the cache folder has no room; or -errno. */
int entry_write(struct entry_sink *sink, const void *bytes, size_t len);

/* Make the entry unless another process was first, and open it. Blocks while another process makes
 * it. An empty folder in its place is removed; one that is not is -EISDIR. On error nothing of it
 * stays; no room is told in d with the numbers. sync: it must be whole
 * even after a power cut; without, only what has a checksum of its own. */
int entry_make(const struct entry *entry, bool sync, entry_make_fn *make, void *ctx, int *ret_fd,
               uint64_t *ret_size, struct diag *d);

#endif
