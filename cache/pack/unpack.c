/* The id of an unpacked file is computed from device, inode, size and time of last change of the
 * packed file, so a new version of that file gives another entry. */
#include "cache/pack/unpack.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
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

/* A blob of the first size bytes of content that is open as fd, which is taken over; with the
 * source, times and owner of the packed blob. 0 or -errno. */
static int unpack_content(const struct blob *packed, int fd, const char *name, uint64_t size,
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

/* ---- parts ----
 *
 * The id of an entry is computed from the identity of the blob and the place of the part. What it
 * holds has had its size and CRC-32 compared. */

#define PART_CHUNK (256u * 1024)

struct part_job {
    const struct blob *blob;
    const struct packed_part *part;
    struct unpack_watch *watch;
    z_stream z;
    bool ready;       /* inflateInit2() has succeeded */
    uint64_t written; /* bytes of the content */
    uint32_t crc;
    uint8_t in[PART_CHUNK];
};

static void part_job_free(struct part_job **job)
{
    if (*job && (*job)->ready)
        inflateEnd(&(*job)->z);
    free(*job);
}

static int too_much(const struct part_job *job, struct diag *d)
{
    return diag_set(d, -EBADMSG, "%s: member %s: expected %llu bytes unpacked, got more",
                    blob_name(job->blob), job->part->name, (unsigned long long)job->part->size);
}

/* Inflate what is in z until it is used up or the stream ends. */
static int inflate_some(struct part_job *job, struct entry_sink *sink, bool *ret_end,
                        struct diag *d)
{
    int state = Z_OK;

    while (state == Z_OK && (job->z.avail_in || !job->z.avail_out)) {
        uint8_t *room;
        size_t len, n;
        int r = entry_room(sink, &room, &len);

        if (r < 0)
            return r;
        job->z.next_out = room;
        job->z.avail_out = (uInt)len;
        state = inflate(&job->z, Z_NO_FLUSH);
        if (state == Z_MEM_ERROR)
            return -ENOMEM;
        if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
            return diag_set(d, -EBADMSG, "%s: member %s: deflated data: %s", blob_name(job->blob),
                            job->part->name,
                            job->z.msg ? job->z.msg : "expected a valid stream, got damage");
        n = len - job->z.avail_out;
        if (n > job->part->size - job->written)
            return too_much(job, d);
        job->crc = (uint32_t)crc32_z(job->crc, room, n);
        job->written += n;
        entry_made(sink, n);
    }
    *ret_end = state == Z_STREAM_END;
    return 0;
}

static int check_end(const struct part_job *job, bool ended, uint64_t read, struct diag *d)
{
    const struct packed_part *part = job->part;

    if (!ended || read != part->len || job->z.avail_in || job->written != part->size)
        return diag_set(
            d, -EBADMSG,
            "%s: member %s: expected %llu bytes unpacked from %llu, got %llu from %llu%s",
            blob_name(job->blob), part->name, (unsigned long long)part->size,
            (unsigned long long)part->len, (unsigned long long)job->written,
            (unsigned long long)(read - job->z.avail_in), ended ? "" : " and no end");
    if (job->crc != part->crc)
        return diag_set(
            d, -EBADMSG, "%s: member %s: CRC-32 of its %llu bytes: expected %08x, got %08x",
            blob_name(job->blob), part->name, (unsigned long long)part->size, part->crc, job->crc);
    return blob_verify(job->blob, d);
}

static int run_part(void *ctx, struct entry_sink *sink, struct diag *d)
{
    struct part_job *job = ctx;
    uint64_t at = 0;
    bool ended = false;
    int r = 0;

    while (r == 0 && !ended && at < job->part->len) {
        size_t n = (size_t)min_u64(PART_CHUNK, job->part->len - at);

        r = blob_read(READ_WAITS, job->blob, job->in, n, job->part->off + at, d);
        if (r < 0)
            return r;
        at += n;
        if (job->watch)
            job->watch->progress(job->watch, job->blob,
                                 min_u64(job->part->off + at, job->blob->size - 1));
        job->z.next_in = job->in;
        job->z.avail_in = (uInt)n;
        r = inflate_some(job, sink, &ended, d);
    }
    return r < 0 ? r : check_end(job, ended, at, d);
}

int unpack_part(const struct blob *blob, const struct packed_part *part,
                const struct cache_folder *cache, struct unpack_watch *watch, struct blob **ret,
                struct diag *d)
{
    AUTO(part_job_free) struct part_job *job = calloc(1, sizeof(*job));
    AUTO_FREE char *place = NULL, *shown = NULL, *name = NULL;
    struct diag reason = DIAG_INIT;
    struct entry entry;
    uint64_t size = 0;
    int fd = -1, r;

    if (!job || inflateInit2(&job->z, -15) != Z_OK)
        return -ENOMEM;
    job->ready = true;
    job->blob = blob;
    job->part = part;
    job->watch = watch;
    if (text_print(&place, " part %llu+%llu=%llu %08x", (unsigned long long)part->off,
                   (unsigned long long)part->len, (unsigned long long)part->size, part->crc) < 0 ||
        text_print(&shown, "%s: member %s", blob_name(blob), part->name) < 0 ||
        text_print(&name, "%s/%s", blob_name(blob), part->name) < 0)
        return -ENOMEM;
    r = unpack_entry(blob, place, shown, cache, &entry, d);
    if (r < 0)
        return r;
    r = entry_open_checked(&entry, &fd, &size);
    if (r == -ENOENT)
        r = entry_make(&entry, true, run_part, job, &fd, &size, &reason);
    if (r < 0 && r != -ENOSPC && reason.set) /* the reason already names the file */
        return diag_set(d, r, "%s", reason.text);
    if (r < 0)
        return diag_set(d, r, "%s: unpacking member %s into %s: %s", blob_name(blob), part->name,
                        entry.folder, diag_text(&reason, r));
    if (size == part->size)
        return unpack_content(blob, fd, name, size, ret);
    close(fd);
    return diag_set(d, -EBADMSG, "%s: the cache holds %llu bytes of it, expected %llu", shown,
                    (unsigned long long)size, (unsigned long long)part->size);
}
