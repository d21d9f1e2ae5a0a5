/* Stored files are read in place. Deflated ones are unpacked as a whole, with their CRC-32
 * compared: into the memo, or, if they are large, into the cache folder when the view is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"
#include "format/zip/archive.h"

#define IN_MEMORY                                                                                  \
    (UINT64_C(64) << 20) /* bytes of a deflated file; a larger one is unpacked to disk */
#define LOCAL_BYTES 30u  /* of a local header, before the name */
#define LOCAL_EXTRA 64u  /* bytes that its extra field usually has at most */

struct zip_view {
    struct blob blob;
    struct zip_archive *archive;
    struct members members;
    struct blob **unpacked; /* [members.n] of large files, others NULL; NULL: there are none */
};

static const struct zip_view *zip_view_of(const struct blob *blob)
{
    return (const struct zip_view *)blob;
}

static struct zip_place *zip_place_of(const struct zip_archive *archive, const struct members *m,
                                      size_t i)
{
    return &archive->place[m->member[i].version[0]];
}

static struct zip_member zip_member_of(const struct zip_archive *archive,
                                       const struct zip_place *place, uint64_t size)
{
    return (struct zip_member){.name = archive->names + place->name,
                               .name_len = place->name_len,
                               .method = place->method,
                               .crc = place->crc,
                               .packed_size = place->packed_size,
                               .size = size,
                               .header = place->header};
}

/* ---- reading ---- */

/* Find where packed bytes begin. */
static int zip_find_bytes(struct read_context *rc, const struct zip_archive *archive,
                          struct zip_place *place, uint64_t *ret, struct diag *d)
{
    uint32_t skip = atomic_load_explicit(&place->skip, memory_order_relaxed);
    struct zip_member m = zip_member_of(archive, place, 0);
    int r;

    if (!skip) {
        r = zip_locate(rc, archive->blob, &m, place->end, d);
        if (r < 0)
            return r;
        skip = (uint32_t)(m.at - place->header);
        atomic_store_explicit(&place->skip, skip, memory_order_relaxed);
    }
    *ret = place->header + skip;
    return 0;
}

/* Read packed bytes. Where the local header is not here yet, they are missed with it. */
static int zip_read_packed(struct read_context *rc, const struct zip_archive *archive,
                           struct zip_place *place, uint64_t off, void *buf, size_t len,
                           struct diag *d)
{
    const struct blob *blob = archive->blob;
    uint64_t at = 0;
    int r = zip_find_bytes(rc, archive, place, &at, d);

    if (r == -EAGAIN)
        blob_pread(rc, blob, buf, len, place->header + LOCAL_BYTES + place->name_len + off);
    return r < 0 ? r : blob->ops->pread(rc, blob, buf, len, at + off, d);
}

struct zip_unpacking {
    struct read_context *rc;
    const struct zip_archive *archive;
    struct zip_place *place;
    uint64_t size;
    struct diag *d;
};

static int zip_bad_content(const struct zip_unpacking *u, const char *fault)
{
    return blob_bad(
        u->archive->blob, u->d,
        "member %.*s: expected %llu bytes with CRC-32 %08x in its deflated data, got %s",
        (int)min_u64(u->place->name_len, 100), u->archive->names + u->place->name,
        (unsigned long long)u->size, u->place->crc, fault ? fault : "others");
}

static int zip_make_content(void *ctx, void **ret, size_t *ret_size)
{
    const struct zip_unpacking *u = ctx;
    size_t n = (size_t)u->place->packed_size, size = (size_t)u->size;
    AUTO_FREE uint8_t *packed = malloc(n + 1), *content = malloc(size + 1);
    struct zip_inflated made = {0};
    int r = !packed || !content ? -ENOMEM
                                : zip_read_packed(u->rc, u->archive, u->place, 0, packed, n, u->d);

    if (r < 0)
        return r;
    r = zip_inflate(packed, n, content, size + 1, &made); /* one more would be seen */
    if (r == -ENOMEM)
        return r;
    if (r < 0 || !made.is_whole || made.used != n || made.len != size ||
        crc32_z(0, content, size) != u->place->crc)
        return zip_bad_content(u, made.fault);
    *ret = TAKE_PTR(content);
    *ret_size = size;
    return 0;
}

static int zip_read_deflated(struct zip_unpacking *u, void *buf, size_t len, uint64_t off)
{
    const struct memo_key key = {{(uintptr_t)u->archive, (uintptr_t)u->place, u->archive->number}};
    const struct memo_maker maker = {zip_make_content, u, u->rc};
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = memo_get(u->archive->setup->memo, &key, &maker, &thing);

    if (r == 0)
        memcpy(buf, (const uint8_t *)memo_bytes(thing) + off, len);
    return r;
}

/* Read bytes of the content of member i. */
static int zip_read_member(struct read_context *rc, const struct zip_view *view, size_t i,
                           void *buf, size_t len, uint64_t off, struct diag *d)
{
    struct zip_place *place = zip_place_of(view->archive, &view->members, i);
    struct zip_unpacking u = {rc, view->archive, place, members_size(&view->members, i), d};

    if (view->unpacked && view->unpacked[i])
        return blob_read(rc, view->unpacked[i], buf, len, off, d);
    if (place->method == ZIP_STORED)
        return zip_read_packed(rc, view->archive, place, off, buf, len, d);
    return zip_read_deflated(&u, buf, len, off);
}

static int zip_view_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                          uint64_t off, struct diag *d)
{
    const struct zip_view *view = zip_view_of(blob);
    size_t i = len ? members_find(&view->members, off) : 0;
    bool missing = false;
    uint8_t *to = buf;

    while (len) {
        uint64_t in = off - view->members.member[i].place;
        size_t n = (size_t)min_u64(len, members_size(&view->members, i) - in);
        int r = n ? zip_read_member(rc, view, i, to, n, in, d) : 0;

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
    const struct members *m = &zip_view_of(blob)->members;
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

    for (size_t i = members_find(&view->members, off);
         i < view->members.n && view->members.member[i].place < end; i++) {
        const struct zip_place *place = zip_place_of(view->archive, &view->members, i);
        uint64_t last = min_u64(place->end, place->header + LOCAL_BYTES + place->name_len +
                                                LOCAL_EXTRA + place->packed_size);

        if (!waiter)
            blob_fetch(archive, place->header, last - place->header, NULL);
        from = min_u64(from, place->header);
        to = last > to ? last : to;
    }
    if (waiter)
        blob_fetch(archive, from, to - from, waiter);
}

static void zip_view_free(struct blob *blob)
{
    struct zip_view *view = (struct zip_view *)blob;

    for (size_t i = 0; view->unpacked && i < view->members.n; i++)
        blob_free(view->unpacked[i]);
    free(view->unpacked);
    members_release(&view->members);
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
static const struct blob_ops zip_far_ops = {
    .pread = zip_view_pread,
    .check = zip_view_check,
    .identity = zip_view_identity,
    .free = zip_view_free,
    .fetch = zip_view_fetch,
};

/* ---- making ---- */

/* Unpack files that are too large for memory into the cache folder. */
static int zip_unpack_large(struct zip_view *view, struct diag *d)
{
    const struct zip_archive *archive = view->archive;
    const struct members *m = &view->members;
    int r = 0;

    for (size_t i = 0; i < m->n && r == 0; i++) {
        struct zip_place *place = zip_place_of(archive, m, i);
        struct packed_part part = {.name = members_name(m, i),
                                   .len = place->packed_size,
                                   .size = members_size(m, i),
                                   .crc = place->crc};

        if (place->method == ZIP_STORED || max_u64(part.size, part.len) <= IN_MEMORY)
            continue;
        if (!view->unpacked)
            view->unpacked = calloc(m->n, sizeof(*view->unpacked));
        r = view->unpacked ? zip_find_bytes(READ_WAITS, archive, place, &part.off, d) : -ENOMEM;
        if (r == 0)
            r = opener_unpack(archive->setup->opener, archive->blob, &part, &view->unpacked[i], d);
    }
    return r;
}

int zip_view_new(struct zip_archive *archive, const char *root, const uint32_t *file, size_t n,
                 struct blob **ret, const struct members **ret_members, struct diag *d)
{
    const struct blob *from = archive->blob;
    struct zip_view *view = calloc(1, sizeof(*view));
    AUTO_BLOB struct blob *blob = (struct blob *)view;
    int r;

    if (!view)
        return -ENOMEM;
    *blob = (struct blob){.ops = from->ops->fetch ? &zip_far_ops : &zip_view_ops,
                          .name = strdup(blob_name(from)),
                          .source = strdup(blob_source(from)),
                          .etag = from->etag ? strdup(from->etag) : NULL,
                          .mtime = from->mtime,
                          .mode = from->mode,
                          .uid = from->uid,
                          .gid = from->gid};
    view->archive = archive;
    archive->users++;
    r = members_pick(&archive->listing, root, file, n, &view->members);
    if (r < 0 || !blob->name || !blob->source || (from->etag && !blob->etag))
        return r < 0 ? r : -ENOMEM;
    blob->size = members_end(&view->members);
    r = zip_unpack_large(view, d);
    if (r < 0)
        return r;
    *ret_members = &view->members;
    *ret = TAKE_PTR(blob);
    return 0;
}

int zip_view_head(const struct zip_archive *archive, size_t file, uint8_t *ret, size_t size)
{
    const struct members *m = &archive->listing;
    struct zip_place *place = zip_place_of(archive, m, file);
    struct zip_member member = zip_member_of(archive, place, members_size(m, file));
    size_t len = 0;
    int r = zip_find_bytes(READ_WAITS, archive, place, &member.at, NULL);

    if (r == 0)
        r = zip_peek(archive->blob, &member, ret, (size_t)min_u64(size, member.size), &len, NULL);
    return r < 0 ? r : (int)len;
}
