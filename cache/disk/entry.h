/* Entries of the cache folder: files that are whole or not there.
 *
 * The name of an entry is an id: the SHA-256 of its kind and of the identity of what it was made
 * from. The holder of the lock of <id>.part writes the entry there; a trailer at its end repeats
 * the id and the size, and is compared when the entry is opened. The entry gets its final name when
 * it is whole: docs/spec/cache-format.md. */
#ifndef EPOCHFS_CACHE_DISK_ENTRY_H
#define EPOCHFS_CACHE_DISK_ENTRY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "cache/disk/folder.h"
#include "cache/disk/sha256.h"

#define ENTRY_ID_SIZE DIGEST_TEXT_SIZE

#define ENTRY_SOURCE_MAX 1024 /* bytes; a longer source is cut, and ends in "..." */

struct entry {
    char folder[PATH_MAX];
    char id[ENTRY_ID_SIZE];
    char source[ENTRY_SOURCE_MAX + 1]; /* what it is made from, for people */
    struct quota *quota; /* of the cache folder, taken before anything is written; NULL: no limit */
    struct cache_group group; /* that shares the cache folder */
};

/* The entry of DIR/sub for an identity: a text that differs wherever the contents may differ.
 * source: where they come from, for people: a path, a URL without credentials, a command; "" if the
 * caller will not make the entry. Makes the folder. 0, or -errno with the reason in d. */
int entry_init(struct entry *ret, const struct cache_folder *cache, const char *sub,
               const char *identity, const char *source, struct diag *d);

/* Open an entry that is whole. *ret_size: bytes of its content. 0, -ENOENT: there is none, or
 * -errno. The caller closes *ret_fd. */
int entry_open(const struct entry *entry, int *ret_fd, uint64_t *ret_size);

/* The same of the file at path, for tools that maintain the folder. -EBADMSG: it is damaged;
 * -EPROTO: another version of epochfs made it. */
int entry_inspect(const struct cache_group *group, const char *path, int *ret_fd,
                  uint64_t *ret_size);

/* The same as entry_open(), but only if the content is what was written: contents of up to
 * ENTRY_CHECKED bytes are compared with their checksum. If it does not match, the entry is removed:
 * -ENOENT. */
#define ENTRY_CHECKED (UINT64_C(1) << 30)
int entry_open_checked(const struct entry *entry, int *ret_fd, uint64_t *ret_size);

/* The source named in a whole entry with size bytes of content. The file may hold any bytes there.
 * 0, -EBADMSG: not a text of at most ENTRY_SOURCE_MAX bytes; or -errno. */
int entry_source(int fd, uint64_t size, char ret[static ENTRY_SOURCE_MAX + 1]);

/* Compare the content, of size bytes, and the source of a whole entry with the checksum in its
 * trailer. 0, -EBADMSG or -errno. */
int entry_check(int fd, uint64_t size);

/* Remove an entry whose content turned out to be damaged. Processes that have it open can go on. */
void entry_remove(const struct entry *entry);

/* The path of the entry's file with suffix; "": of the whole entry. */
void entry_path(const struct entry *entry, const char *suffix, char ret[static PATH_MAX]);

/* Begin to make an entry. 0: *ret_fd is an empty, locked file; what any process writes to it
 * becomes the content of the entry. 1: another process was first; *ret_fd and *ret_size are as from
 * entry_open(). -EAGAIN: another process is making it, and wait is false; or -errno, perhaps with
 * the reason in d. Waits for makers that get on, or for 10 s: then the file has no name, and serves
 * this process only. The caller closes *ret_fd. */
int entry_begin(const struct entry *entry, bool wait, int *ret_fd, uint64_t *ret_size,
                struct diag *d);

/* Bytes that follow the content: the source and the trailer. */
uint64_t entry_tail(const struct entry *entry);

/* The content is whole: publish the entry. 0, or -errno and nothing of it remains. sync: see
 * entry_make(). a: what the caller took for content and tail; the rest is given back. */
struct allowance;
int entry_commit(const struct entry *entry, int fd, bool sync, struct allowance *a,
                 uint64_t *ret_size);

/* Give up an entry that was begun: remove its file, and give back what was taken for it. */
void entry_abandon(const struct entry *entry, int fd, struct allowance *a);

/* Makes the content of an entry: appends it with entry_write(), or entry_room() and entry_made(),
 * and returns their error if they fail. 0 or -errno. */
struct entry_sink;
typedef int entry_make_fn(void *ctx, struct entry_sink *sink, struct diag *d);

/* Append bytes. They are written later: their error may come from a later call, or from
 * entry_make(). 0; -ENOSPC: the disk is full or the quota refuses; or -errno. */
int entry_write(struct entry_sink *sink, const void *bytes, size_t len);

/* The same without a copy: the caller puts its bytes at *ret, which has *ret_len bytes, at least
 * 1; entry_made() appends the first len of them. */
int entry_room(struct entry_sink *sink, uint8_t **ret, size_t *ret_len);
void entry_made(struct entry_sink *sink, size_t len);

/* len bytes more will be written, says the source: -ENOSPC if that is beyond the quota's limit. It
 * takes nothing and removes no file, as the source may lie. */
int entry_expect(struct entry_sink *sink, uint64_t len);

/* Make the entry unless another process was first, and open it. Blocks while another process makes
 * it. An empty folder at its path is removed; one that is not empty is -EISDIR. On error nothing of
 * the entry remains; if there was no space, d has the numbers. sync: the entry must be whole even
 * after a power cut; only content with a checksum of its own can do without. */
int entry_make(const struct entry *entry, bool sync, entry_make_fn *make, void *ctx, int *ret_fd,
               uint64_t *ret_size, struct diag *d);

#endif
