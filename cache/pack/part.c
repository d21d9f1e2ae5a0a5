/* The id of an entry is computed from the identity of the blob and the place of the part, so a new
 * version of the file gives another entry. What it holds has had its size and CRC-32 compared. */
#include "cache/pack/part.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/text.h"
#include "cache/disk/local_blob.h"
#include "cache/pack/unpack.h"

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
