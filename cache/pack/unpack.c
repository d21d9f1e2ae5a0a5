/* The id of an unpacked file is computed from device, inode, size and time of last change of the
 * packed file, so a new version of that file gives another entry. */
#include "cache/pack/unpack.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cache/disk/local_blob.h"
#include "cache/pack/streams.h"

extern const struct unpacker unpacker_bzip2, unpacker_gzip, unpacker_zlib, unpacker_zstd;
#ifdef HAVE_LZMA
extern const struct unpacker unpacker_xz;
#else
/* Names must not depend on the build, so every build knows the suffix. */
static const struct unpacker unpacker_xz = {
    .name = "xz", .suffix = ".xz", .magic = {0xfd, '7', 'z', 'X', 'Z', 0}, .magic_len = 6};
#endif

static const struct unpacker *const unpackers[] = {&unpacker_gzip, &unpacker_zlib, &unpacker_xz,
                                                   &unpacker_zstd, &unpacker_bzip2};

const char *packed_suffix(size_t i)
{
    if (!i)
        return "";
    for (size_t k = 0; k < ARRAY_LEN(unpackers); k++)
        if (unpackers[k]->suffix && !--i)
            return unpackers[k]->suffix;
    return NULL;
}

size_t unpacked_name_len(const char *name)
{
    size_t len = strlen(name);
    const char *suffix;

    for (size_t i = 1; (suffix = packed_suffix(i)); i++) {
        size_t n = strlen(suffix);

        if (len > n && !strcmp(name + len - n, suffix))
            return len - n;
    }
    return len;
}

/* NULL: it is not packed. 0, or -errno of a part that cannot be read: then it is unknown. */
static int unpacker_of(const struct blob *blob, const struct unpacker **ret, struct diag *d)
{
    size_t len = (size_t)min_u64(blob->size, UNPACK_HEAD);
    uint8_t head[UNPACK_HEAD];
    int r = len ? blob_read(READ_WAITS, blob, head, len, 0, d) : 0;

    if (r < 0)
        return r;
    *ret = NULL;
    for (size_t i = 0; i < ARRAY_LEN(unpackers) && !*ret; i++) {
        const struct unpacker *u = unpackers[i];

        if (len >= u->magic_len && !memcmp(head, u->magic, u->magic_len) &&
            (!u->is_it || u->is_it(head, len, len == blob->size)))
            *ret = u;
    }
    return 0;
}

struct unpacking {
    const struct unpacker *unpacker;
    const struct blob *packed;
    struct unpack_watch *watch;
};

#define NOT_PACKED (-ENOEXEC)

static int run_unpacker(void *ctx, struct entry_sink *sink, struct diag *d)
{
    struct unpacking *u = ctx;
    int r = u->unpacker ? 0 : unpacker_of(u->packed, &u->unpacker, d);

    if (r < 0)
        return r;
    if (!u->unpacker)
        return NOT_PACKED;
    if (!u->unpacker->step)
        return diag_set(
            d, -EOPNOTSUPP,
            "%s: expected a packing of this build, got %s data; unpack it, or build epochfs "
            "with liblzma",
            blob_name(u->packed), u->unpacker->name);
    if (u->watch)
        u->watch->progress(u->watch, u->packed, 0);
    r = streams_unpack(u->unpacker, u->packed, u->watch, sink, d);
    return r < 0 ? r : blob_verify(u->packed, d);
}

int unpack_content(const struct blob *packed, int fd, const char *name, uint64_t size,
                   struct blob **ret)
{
    AUTO_BLOB struct blob *content = NULL;
    int r = local_blob_new(fd, name, size, true, &content);

    if (r < 0)
        return r;
    if (text_copy(packed->source, &content->source) < 0)
        return -ENOMEM;
    content->mtime = packed->mtime;
    content->mode = packed->mode;
    content->uid = packed->uid;
    content->gid = packed->gid;
    *ret = TAKE_PTR(content);
    return 0;
}

/* Replace the blob by its content, open as fd. */
static int replace_blob(struct blob **blob, int fd, uint64_t size)
{
    struct blob *content;
    int r = unpack_content(*blob, fd, blob_name(*blob), size, &content);

    if (r < 0)
        return r;
    content->etag = TAKE_PTR((*blob)->etag);
    blob_done(*blob);
    blob_free(*blob);
    *blob = content;
    return 0;
}

int unpack_entry(const struct blob *blob, const char *part, const char *shown,
                 const struct cache_folder *cache, struct entry *ret, struct diag *d)
{
    AUTO_FREE char *identity = NULL, *whole = NULL;
    struct diag reason = DIAG_INIT;
    int r = blob_identity(blob, &whole);

    if (r == 0)
        r = text_print(&identity, "%s%s", whole, part);
    if (r == 0)
        r = entry_init(ret, cache, "unpacked", identity, blob_source(blob), &reason);
    return r < 0 ? diag_set(d, r, "%s: %s", shown, diag_text(&reason, r)) : 0;
}

int unpack_find(struct blob **blob, const struct cache_folder *cache, struct diag *d)
{
    struct entry entry;
    uint64_t size = 0;
    int fd = -1, r = unpack_entry(*blob, "", blob_name(*blob), cache, &entry, d);

    if (r == 0)
        r = entry_open_checked(&entry, &fd, &size);
    return r < 0 ? r : replace_blob(blob, fd, size);
}

/* No byte of such a file is read before we know that no other process unpacks it: at the end, the
 * process that unpacks drops all its blocks. */
static bool looks_packed(const struct blob *blob)
{
    const char *name = blob_name(blob);

    return blob->ops->fetch && unpacked_name_len(name) < strlen(name);
}

bool unpack_is_done(const struct blob *blob, const struct cache_folder *cache)
{
    AUTO_CLOSE int fd = -1;
    struct entry entry;
    uint64_t size;

    return looks_packed(blob) && unpack_entry(blob, "", "", cache, &entry, NULL) == 0 &&
           entry_open(&entry, &fd, &size) == 0;
}

int unpack_blob(struct blob **blob, const struct cache_folder *cache, struct unpack_watch *watch,
                struct diag *d)
{
    struct unpacking u = {.packed = *blob, .watch = watch};
    struct diag reason = DIAG_INIT;
    struct entry entry;
    uint64_t size = 0;
    int fd = -1, r;

    /* No byte of a remote file is fetched if the file was unpacked before. */
    if ((*blob)->ops->fetch) {
        r = unpack_find(blob, cache, d);
        if (r != -ENOENT)
            return r;
    }
    if (!looks_packed(*blob)) {
        r = unpacker_of(*blob, &u.unpacker, d);
        if (r < 0 || !u.unpacker)
            return r;
    }
    r = unpack_entry(*blob, "", blob_name(*blob), cache, &entry, d);
    if (r < 0)
        return r;
    r = entry_open_checked(&entry, &fd, &size);
    if (r == -ENOENT)
        r = entry_make(&entry, true, run_unpacker, &u, &fd, &size, &reason);
    if (r == NOT_PACKED)
        return 0;
    if (r < 0 && !u.unpacker) { /* not begun: does the file need unpacking? */
        int read = unpacker_of(*blob, &u.unpacker, d);

        if (read < 0 || !u.unpacker)
            return read;
    }
    if (r < 0 && r != -ENOSPC && reason.set) /* the reason already names the file */
        return diag_set(d, r, "%s", reason.text);
    if (r < 0)
        return diag_set(d, r, "%s: unpacking %s into %s: %s", blob_name(*blob), u.unpacker->name,
                        entry.folder, diag_text(&reason, r));
    return replace_blob(blob, fd, size);
}
