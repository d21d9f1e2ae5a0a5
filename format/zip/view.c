/* Stored files are read in place. Deflated ones are unpacked as a whole, with their CRC-32
 * compared: into the memo, or, if they are large, into the cache folder when the view is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"
#include "format/zip/archive.h"

#define IN_MEMORY                                                                                  \
    (UINT64_C(64) << 20) /* bytes of a deflated file; a larger one is unpacked to disk */

struct zip_view {
    struct blob blob;
    struct blob_ops ops; /* with fetch if the archive's has it */
    struct zip_archive *archive;
    struct members files;
    _Atomic(uint32_t) *skip; /* [files.n] from the local header of a stored file to its bytes; 0:
                              * not known yet */
    struct blob **unpacked;  /* [files.n] of large files, others NULL; NULL: there are none */
};

static const struct zip_view *zip_view_of(const struct blob *blob)
{
    return (const struct zip_view *)blob;
}

struct zip_unpacking {
    struct read_context *rc;
    const struct zip_archive *archive;
    struct zip_member member;
    struct diag *d;
};

static int zip_make_content(void *ctx, void **ret, size_t *ret_size)
{
    struct zip_unpacking *u = ctx;
    size_t size = (size_t)u->member.size;
    AUTO_FREE uint8_t *content = malloc(size + 1);
    int r =
        content ? zip_content(u->rc, u->archive->blob, &u->member, content, size, u->d) : -ENOMEM;

    if (r < 0)
        return r;
    *ret = TAKE_PTR(content);
    *ret_size = size;
    return 0;
}

static int zip_read_deflated(struct zip_unpacking *u, void *buf, size_t len, uint64_t off)
{
    const struct memo_key key = {{u->member.size, u->member.header, u->archive->number}};
    const struct memo_maker maker = {zip_make_content, u, u->rc};
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = memo_get(u->archive->setup->memo, &key, &maker, &thing);

    if (r == 0)
        memcpy(buf, (const uint8_t *)memo_bytes(thing) + off, len);
    return r;
}

/* Read bytes of the content of file i. */
static int zip_read_file(struct read_context *rc, const struct zip_view *view, size_t i, void *buf,
                         size_t len, uint64_t off, struct diag *d)
{
    struct zip_unpacking u = {rc, view->archive, zip_listed(&view->files, i), d};
    uint32_t skip = atomic_load_explicit(&view->skip[i], memory_order_relaxed);
    int r;

    if (view->unpacked && view->unpacked[i])
        return blob_read(rc, view->unpacked[i], buf, len, off, d);
    r = zip_check(view->archive->blob, &u.member, false, d);
    if (r < 0)
        return r;
    if (u.member.method != ZIP_STORED)
        return zip_read_deflated(&u, buf, len, off);
    u.member.at = skip ? u.member.header + skip : 0;
    r = zip_pread(rc, view->archive->blob, &u.member, off, buf, len, d);
    if (u.member.at)
        atomic_store_explicit(&view->skip[i], (uint32_t)(u.member.at - u.member.header),
                              memory_order_relaxed);
    return r;
}

static int zip_view_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                          uint64_t off, struct diag *d)
{
    const struct zip_view *view = zip_view_of(blob);
    size_t i = len ? members_find(&view->files, off) : 0;
    bool missing = false;
    uint8_t *to = buf;

    while (len) {
        uint64_t in = off - view->files.member[i].place;
        size_t n = (size_t)min_u64(len, members_size(&view->files, i) - in);
        int r = n ? zip_read_file(rc, view, i, to, n, in, d) : 0;

        missing = missing || r == -EAGAIN;
        if (r < 0 && r != -EAGAIN)
            return r;
        to += n;
        off += n;
        len -= n;
        i++;
    }
    return missing ? -EAGAIN : 0;
}

static int zip_view_check(const struct blob *blob)
{
    return blob_check(zip_view_of(blob)->archive->blob);
}

/* The archive's, and which of its files. */
static int zip_view_identity(const struct blob *blob, char **ret)
{
    const struct members *m = &zip_view_of(blob)->files;
    AUTO_FREE char *whole = NULL;
    uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a of the numbers of its files */
    int r = blob_identity(zip_view_of(blob)->archive->blob, &whole);

    for (size_t i = 0; i < m->n; i++)
        sum = (sum ^ m->member[i].version[0]) * UINT64_C(0x100000001b3);
    if (r < 0)
        return r;
    return asprintf(ret, "%s zip %zu files %016llx", whole, m->n, (unsigned long long)sum) < 0
               ? -ENOMEM
               : 0;
}

/* The packed bytes of all files that the range touches: one range for a waiter. */
static void zip_view_fetch(const struct blob *blob, uint64_t off, uint64_t len,
                           struct waiter *waiter)
{
    const struct zip_view *view = zip_view_of(blob);
    const struct blob *archive = view->archive->blob;
    uint64_t end = off + len, from = UINT64_MAX, to = 0;

    for (size_t i = members_find(&view->files, off);
         i < view->files.n && view->files.member[i].place < end; i++) {
        struct zip_member m = zip_listed(&view->files, i);
        uint64_t last = zip_end(&m);

        if (!waiter)
            blob_fetch(archive, m.header, last - m.header, NULL);
        from = min_u64(from, m.header);
        to = last > to ? last : to;
    }
    if (waiter)
        blob_fetch(archive, from, to - from, waiter);
}

static void zip_view_free(struct blob *blob)
{
    struct zip_view *view = (struct zip_view *)blob;

    for (size_t i = 0; view->unpacked && i < view->files.n; i++)
        blob_free(view->unpacked[i]);
    free(view->unpacked);
    free(view->skip);
    members_release(&view->files);
    zip_archive_drop(view->archive);
    free(view->blob.name);
    free(view->blob.source);
    free(view->blob.etag);
    free(view);
}

static const struct blob_ops zip_view_ops = {
    .pread = zip_view_pread,
    .check = zip_view_check,
    .identity = zip_view_identity,
    .free = zip_view_free,
};

/* ---- making ---- */

static bool zip_is_large(const struct members *files, size_t i)
{
    const struct zip_member m = zip_listed(files, i);

    return m.method != ZIP_STORED && max_u64(m.size, m.packed_size) > IN_MEMORY;
}

/* Unpack a large file into the cache folder. */
static int zip_view_unpack(struct zip_view *view, size_t i, struct diag *d)
{
    const struct zip_archive *archive = view->archive;
    struct zip_member m = zip_listed(&view->files, i);
    struct packed_part part = {.name = m.name, .len = m.packed_size, .size = m.size, .crc = m.crc};
    int r = zip_check(archive->blob, &m, false, d);

    if (r < 0)
        return r;
    if (!view->unpacked)
        view->unpacked = calloc(view->files.n, sizeof(*view->unpacked));
    r = view->unpacked ? zip_locate(READ_WAITS, archive->blob, &m, d) : -ENOMEM;
    part.off = m.at;
    return r == 0
               ? opener_unpack(archive->setup->opener, archive->blob, &part, &view->unpacked[i], d)
               : r;
}

int zip_view_new(struct zip_archive *archive, struct members *files, struct blob **ret,
                 const struct members **ret_files, struct diag *d)
{
    const struct blob *from = archive->blob;
    struct zip_view *view = calloc(1, sizeof(*view));
    AUTO_BLOB struct blob *blob = (struct blob *)view;
    int r = 0;

    if (!view) {
        members_release(files);
        return -ENOMEM;
    }
    *blob = (struct blob){.ops = &view->ops,
                          .name = strdup(blob_name(from)),
                          .source = strdup(blob_source(from)),
                          .etag = from->etag ? strdup(from->etag) : NULL,
                          .size = members_end(files),
                          .mtime = from->mtime,
                          .mode = from->mode,
                          .uid = from->uid,
                          .gid = from->gid};
    view->ops = zip_view_ops;
    view->ops.fetch = from->ops->fetch ? zip_view_fetch : NULL;
    view->archive = archive;
    archive->users++;
    view->files = *files;
    *files = (struct members){0};
    view->skip = calloc(view->files.n + 1, sizeof(*view->skip));
    if (!blob->name || !blob->source || (from->etag && !blob->etag) || !view->skip)
        return -ENOMEM;
    for (size_t i = 0; i < view->files.n && r == 0; i++)
        if (zip_is_large(&view->files, i))
            r = zip_view_unpack(view, i, d);
    if (r < 0)
        return r;
    *ret_files = &view->files;
    *ret = TAKE_PTR(blob);
    return 0;
}

/* ---- archives ---- */

int zip_archive_new(struct blob *blob, const struct format_setup *setup, struct zip_archive **ret)
{
    static _Atomic(uint64_t) archives;
    struct zip_archive *archive = malloc(sizeof(*archive));

    if (!archive) {
        blob_free(blob);
        return -ENOMEM;
    }
    *archive = (struct zip_archive){
        .blob = blob, .setup = setup, .number = atomic_fetch_add(&archives, 1) + 1, .users = 1};
    *ret = archive;
    return 0;
}

void zip_archive_drop(struct zip_archive *archive)
{
    if (--archive->users)
        return;
    prepared_release(&archive->found);
    blob_free(archive->blob);
    free(archive);
}
