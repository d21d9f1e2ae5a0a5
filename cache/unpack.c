/* Invariants of DIR/unpacked:
 *  1. A file named <id> is whole: content, then a trailer that repeats its id and size.
 *  2. <id>.part is written by the holder of its flock only; a process that dies frees it, and the
 *     next one starts it anew.
 *  3. The id follows from the device, inode, size and time of last change of the packed file, so a
 *     new version of that file is another id. */
#include "cache/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/bytes.h"
#include "cache/source.h"

extern const struct unpacker unpacker_gzip;
#ifdef HAVE_LZMA
extern const struct unpacker unpacker_xz;
#endif

static const struct unpacker *const unpackers[] = {
    &unpacker_gzip,
#ifdef HAVE_LZMA
    &unpacker_xz,
#endif
};

#define TRAILER_BYTES   64
#define TRAILER_VERSION 1
#define ID_TEXT         33 /* 32 hexadecimal digits and the NUL */

struct unpack_sink {
    int fd;
    uint64_t size; /* written so far */
};

int unpack_write(struct unpack_sink *sink, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    while (len) {
        ssize_t n = write(sink->fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
        sink->size += (uint64_t)n;
    }
    return 0;
}

size_t unpacked_name_len(const char *name)
{
    static const char *const suffixes[] = {".gz", ".xz"};
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);

        if (len > n && !strcmp(name + len - n, suffixes[i]))
            return len - n;
    }
    return len;
}

static const struct unpacker *unpacker_of(const struct blob *blob)
{
    for (size_t i = 0; i < ARRAY_LEN(unpackers); i++) {
        const struct unpacker *u = unpackers[i];
        uint8_t head[sizeof(u->magic)];

        if (blob->size >= u->magic_len && blob_pread(blob, head, u->magic_len, 0) == 0 &&
            !memcmp(head, u->magic, u->magic_len))
            return u;
    }
    return NULL;
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < len; i++) {
        h = (h ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

/* identity: bytes that are equal for two files only if their content is. */
static void make_id(const char *identity, char ret[static ID_TEXT])
{
    size_t len = strlen(identity);

    snprintf(ret, ID_TEXT, "%016llx%016llx",
             (unsigned long long)hash_bytes(UINT64_C(0x243f6a8885a308d3), identity, len),
             (unsigned long long)hash_bytes(UINT64_C(0x13198a2e03707344), identity, len));
}

static void make_trailer(const char *id, uint64_t size, uint8_t ret[static TRAILER_BYTES])
{
    memset(ret, 0, TRAILER_BYTES);
    memcpy(ret, "epochfs", 8);
    store_le32(ret + 8, TRAILER_VERSION);
    store_le64(ret + 16, size);
    memcpy(ret + 24, id, 32);
    store_le32(ret + 60, (uint32_t)crc32_z(0, ret, 60));
}

/* An unpacked file of that id, checked. 0, -ENOENT where there is none that is whole. */
static int open_done(const char *path, const char *id, int *ret_fd, uint64_t *ret_size)
{
    uint8_t found[TRAILER_BYTES], want[TRAILER_BYTES];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? -ENOENT : -errno; /* a link is not ours */
    if (fstat(fd, &st) < 0 || st.st_size < TRAILER_BYTES ||
        pread(fd, found, sizeof(found), st.st_size - TRAILER_BYTES) != TRAILER_BYTES)
        return -ENOENT;
    make_trailer(id, (uint64_t)st.st_size - TRAILER_BYTES, want);
    if (memcmp(found, want, sizeof(want)) != 0)
        return -ENOENT;
    *ret_size = (uint64_t)st.st_size - TRAILER_BYTES;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Lock path for writing; it may be renamed or replaced while we wait, then try again. */
static int lock_part(const char *path, int *ret_fd)
{
    for (;;) {
        AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat ours, there;

        if (fd < 0)
            return -errno;
        while (flock(fd, LOCK_EX) < 0)
            if (errno != EINTR)
                return -errno;
        if (fstat(fd, &ours) < 0)
            return -errno;
        if (stat(path, &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
    }
}

/* Unpack into the locked file and give it its final name. */
static int fill_part(const struct unpacker *u, const struct blob *packed, const char *id, int fd,
                     const char *part, const char *done, struct diag *d)
{
    struct unpack_sink sink = {.fd = fd};
    uint8_t trailer[TRAILER_BYTES];
    int r = ftruncate(fd, 0) < 0 ? -errno : u->run(packed, &sink, d);

    if (r == 0)
        r = blob_check(packed);
    if (r == 0) {
        make_trailer(id, sink.size, trailer);
        r = unpack_write(&sink, trailer, sizeof(trailer));
    }
    if (r == 0 && (fdatasync(fd) < 0 || rename(part, done) < 0))
        r = -errno;
    if (r < 0) {
        int unused = ftruncate(fd, 0); /* give the space back; the name goes with it */

        (void)unused;
        unlink(part);
    }
    return r;
}

static int unpack_into(const struct unpacker *u, const struct blob *packed, const char *folder,
                       const char *id, int *ret_fd, uint64_t *ret_size, struct diag *d)
{
    char part[PATH_MAX], done[PATH_MAX];
    AUTO_CLOSE int fd = -1;
    int r;

    if (snprintf(part, sizeof(part), "%s/%s.part", folder, id) >= (int)sizeof(part))
        return -ENAMETOOLONG;
    snprintf(done, sizeof(done), "%s/%s", folder, id);
    r = open_done(done, id, ret_fd, ret_size);
    if (r != -ENOENT)
        return r;
    r = lock_part(part, &fd);
    if (r < 0)
        return r;
    r = open_done(done, id, ret_fd, ret_size);
    if (r == 0)
        unlink(part); /* another process was first; ours is empty */
    if (r != -ENOENT)
        return r;
    r = fill_part(u, packed, id, fd, part, done, d);
    return r < 0 ? r : open_done(done, id, ret_fd, ret_size);
}

int unpack_blob(struct blob **blob, const struct cache_folder *cache, struct diag *d)
{
    const struct unpacker *u = unpacker_of(*blob);
    char folder[PATH_MAX] = "", id[ID_TEXT];
    AUTO_FREE char *identity = NULL;
    struct diag reason = DIAG_INIT;
    struct blob *content;
    uint64_t size = 0;
    int fd = -1, r;

    if (!u)
        return 0;
    r = blob_identity(*blob, &identity);
    if (r < 0)
        return r;
    make_id(identity, id);
    r = cache_folder_sub(cache, "unpacked", folder, sizeof(folder), &reason);
    if (r < 0)
        return diag_set(d, r, "%s: %s", blob_name(*blob), diag_text(&reason, r));
    r = unpack_into(u, *blob, folder, id, &fd, &size, d);
    if (r < 0)
        return diag_set(d, r, "%s: unpacking %s into %s: %s", blob_name(*blob), u->name, folder,
                        strerror(-r));
    r = local_blob_new(fd, blob_name(*blob), size, true, &content);
    if (r < 0)
        return r;
    content->mtime = (*blob)->mtime;
    content->mode = (*blob)->mode;
    content->uid = (*blob)->uid;
    content->gid = (*blob)->gid;
    blob_free(*blob);
    *blob = content;
    return 0;
}
