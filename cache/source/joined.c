/* Joined blobs: of local files that are read in place, and those that come through a stage. */
#include "cache/source/joined.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file_io.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined_transport.h"
#include "cache/source/remote.h"
#include "cache/source/sha256sums.h"
#include "cache/source/source.h"

/* A joined blob that is read in place; the others are blobs of a stage. */
struct local_joined {
    struct blob blob;
    struct members members;      /* owned */
    const struct source *source; /* which outlives it */
    int root;                    /* its folder, open */
};

/* ---- any joined blob ---- */

const struct members *joined_members(const struct blob *blob)
{
    const struct members *staged = stage_parts(blob);

    return staged ? staged : &((const struct local_joined *)blob)->members;
}

static const struct blob_ops local_ops;

bool joined_is(const struct blob *blob)
{
    return blob->ops == &local_ops || stage_parts(blob);
}

/* ---- local files, read in place ---- */

/* Open a member. The kernel follows no link that leaves the folder; a link that does, or has an
 * absolute path, is judged by where it leads (cache/source/within.h). */
static int open_member(const struct local_joined *local, const char *path, int *ret_fd)
{
    AUTO_CLOSE int fd = within_openat2(local->root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    char whole[PATH_MAX];
    struct stat st;
    int r;

    if (fd < 0 && fd != -EXDEV && fd != -ENOSYS && fd != -EPERM && fd != -EAGAIN)
        return fd;
    if (fd < 0) {
        if (snprintf(whole, sizeof(whole), "%s/%s", local->source->root, path) >=
            (int)sizeof(whole))
            return -ENAMETOOLONG;
        r = file_open(whole, &fd, &st);
        if (r == 0)
            r = within_check(&local->source->within, fd, whole, path, NULL);
        if (r < 0)
            return r;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Open a member, read a part of it (len 0: none), and give its descriptor to the caller. The
 * version is compared after the read: what was read before a change is of the version in the table.
 */
static int joined_take_member(const struct local_joined *local, size_t i, void *buf, size_t len,
                              uint64_t off, int *ret_fd, struct diag *d)
{
    const struct members *m = &local->members;
    AUTO_CLOSE int fd = -1;
    char path[PATH_MAX];
    struct stat st;
    int r = members_path(m, i, path, sizeof(path));

    if (r == 0)
        r = open_member(local, path, &fd);
    if (r == 0 && len)
        r = file_pread(fd, buf, len, off);
    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    if (r == 0 && (!st.st_nlink || !joined_version_is(m, i, &st)))
        r = -ESTALE;
    if (r == -ESTALE || r == -ENOENT || r == -ENOTDIR || r == -EXDEV || r == -ELOOP ||
        r == -EISDIR || r == -ESPIPE || r == -ENXIO) {
        source_forget((void *)(uintptr_t)local->source);
        return diag_set(d, -ESTALE,
                        "%s: the file was changed, replaced or removed; mount again to read it as "
                        "it is now",
                        path);
    }
    if (r < 0)
        return diag_set(d, r, "%s: %s", path, strerror(-r));
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int joined_local_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                                  struct diag *d)
{
    const struct local_joined *local = (const struct local_joined *)blob;
    const struct members *m = &local->members;
    size_t i = members_find(m, off);

    if (off != m->member[i].place || len != members_size(m, i))
        return -EOPNOTSUPP;
    return joined_take_member(local, i, NULL, 0, 0, ret_fd, d);
}

static int joined_local_pread(struct read_context *rc, const struct blob *blob, void *buf,
                              size_t len, uint64_t off, struct diag *d)
{
    const struct local_joined *local = (const struct local_joined *)blob;
    const struct members *m = &local->members;
    size_t i = members_find(m, off);

    (void)rc;
    for (uint8_t *at = buf; len; i++) {
        uint64_t in = off - m->member[i].place;
        size_t n = (size_t)min_u64(len, members_size(m, i) - in);
        AUTO_CLOSE int fd = -1;
        int r = n ? joined_take_member(local, i, at, n, in, &fd, d) : 0;

        if (r < 0)
            return r;
        at += n;
        off += n;
        len -= n;
    }
    return 0;
}

static uint64_t local_in_files(const struct blob *blob, uint64_t least)
{
    const struct members *m = joined_members(blob);
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n; i++)
        sum += members_size(m, i) >= least ? members_size(m, i) : 0;
    return sum;
}

static int joined_local_identity(const struct blob *blob, char **ret)
{
    return joined_identity(joined_members(blob), blob_source(blob), ret);
}

static void joined_local_free(struct blob *blob)
{
    struct local_joined *local = (struct local_joined *)blob;

    scope_close(&local->root);
    free(blob->name);
    free(blob->source);
    members_release(&local->members);
    free(local);
}

static const struct blob_ops local_ops = {.pread = joined_local_pread,
                                          .identity = joined_local_identity,
                                          .free = joined_local_free,
                                          .in_files = local_in_files,
                                          .open_file = joined_local_open_file};

/* source_join() of local sources whose files are read in place. */
static int joined_local(const struct source *source, const struct joined_head *head,
                        struct members *members, struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    struct local_joined *local = calloc(1, sizeof(*local));

    if (!local)
        return -ENOMEM;
    local->members = *members;
    *members = (struct members){0};
    blob = &local->blob;
    *blob = (struct blob){.ops = &local_ops,
                          .name = strdup(*head->name ? head->name : "."),
                          .size = members_end(&local->members),
                          .mtime = head->mtime,
                          .mode = head->mode,
                          .uid = head->uid,
                          .gid = head->gid};
    local->source = source;
    local->root = open(source->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (local->root < 0)
        return diag_set(d, -errno, "%s: %s", source->root, strerror(errno));
    if (!blob->name ||
        text_print(&blob->source, "%s%s%s", source->root, *head->name ? "/" : "", head->name) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(blob);
    return 0;
}

/* ---- through a stage ----
 *
 * Files of web servers and S3, and local ones with cache=. The stage has one file for all members;
 * cache/source/joined_transport.c fetches them.
 *
 * The version of that file is the identity of the table of members. So a folder with another
 * listing is another staged file, and none ever has members of two listings. */

struct staged_parts {
    struct joined_parts parts; /* first */
    struct members members;    /* owned */
    uint8_t *sha256;           /* owned, of the members; NULL: unknown */
    const struct source *source;
};

/* For a remote: what was listed. */
static int where_remote(const struct joined_parts *parts, size_t i, char **ret_url,
                        struct remote_version *ret_version)
{
    const struct staged_parts *staged = (const struct staged_parts *)parts;

    if (!joined_version_get(&staged->members, i, ret_version))
        return -ESTALE;
    ret_version->time_counts =
        !staged->source->etag_suffices && joined_version_needs_time(ret_version);
    return known_url(staged->source, &staged->members, i, ret_url);
}

/* For this machine: a member may be a link, or become one. As a file of its own it would be staged
 * under its real path, so that is what is opened here as well. */
static int where_local(const struct joined_parts *parts, size_t i, char **ret_url,
                       struct remote_version *ret_version)
{
    const struct staged_parts *staged = (const struct staged_parts *)parts;
    const struct source *source = staged->source;
    char path[PATH_MAX], whole[PATH_MAX];
    AUTO_FREE char *real = NULL;
    struct file_version version;
    struct stat st;

    if (members_path(&staged->members, i, path, sizeof(path)) < 0 ||
        snprintf(whole, sizeof(whole), "%s/%s", source->root, path) >= (int)sizeof(whole))
        return -ESTALE;
    real = realpath(whole, NULL);
    if (!real && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return -errno;
    if (!real || within_check_real(&source->within, real, path, NULL) < 0)
        return -ESTALE;
    if (stat(real, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
    if (!joined_version_is(&staged->members, i, &st))
        return -ESTALE;
    version = file_version_of(&st);
    *ret_version = (struct remote_version){.size = version.size, .mtime = version.mtime};
    file_version_print(&version, ret_version->etag);
    *ret_url = TAKE_PTR(real);
    return 0;
}

static void parts_free(struct joined_parts *parts)
{
    struct staged_parts *staged = (struct staged_parts *)parts;

    members_release(&staged->members);
    free(staged->sha256);
    free(staged);
}

/* Find the SHA-256 of the members of a remote. 0 or -ENOMEM. */
static int find_sums(const struct source *source, struct staged_parts *staged)
{
    const struct known *known = &source->known;
    const struct members *m = &staged->members;

    if (!source->remote->far || !known->sha256)
        return 0;
    staged->sha256 = calloc(m->n + 1, SHA256_LEN);
    if (!staged->sha256)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        const char *folder = members_folder_of(m, i);
        size_t k = members_lookup(&known->files, folder, strlen(folder), members_name(m, i));

        if (k < known->files.n)
            memcpy(staged->sha256 + i * SHA256_LEN, known->sha256 + k * SHA256_LEN, SHA256_LEN);
    }
    staged->parts.sha256 = staged->sha256;
    return 0;
}

/* Where the joined file is, for the key of the staged file and for people. */
static int key_of(const struct source *source, const char *folder, char **ret)
{
    const char *base = source->base ? source->base : source->root;
    const char *joint = base[strlen(base) - 1] == '/' ? "" : "/";

    return text_print(ret, "%s%s%s%s", base, joint, folder, *folder ? "/" : "");
}

/* Where a group shares the cache folder, others may have staged members that this user may not
 * read: then he has a staged file of his own, with those who may read the same. The version of its
 * file becomes another one. 0 or -ENOMEM. */
static int without_unreadable(const struct staged_parts *staged, struct remote_version *version)
{
    AUTO_DIGEST struct digest *unreadable = NULL;
    uint8_t digest[DIGEST_BYTES];
    char hex[DIGEST_TEXT_SIZE];
    size_t len = strlen(version->etag), n = 0;
    int error = digest_new(&unreadable);

    for (size_t i = 0; i < staged->members.n && error == 0; i++) {
        struct remote_version unused;
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int fd = -1;
        struct stat st;
        int r = where_local(&staged->parts, i, &path, &unused);

        if (r == 0)
            r = file_open(path, &fd, &st);
        if (r == -ENOMEM)
            return r;
        if (r != -EACCES && r != -EPERM)
            continue;
        n++;
        error = digest_add(unreadable, &i, sizeof(i));
    }
    if (error == 0)
        error = digest_finish(unreadable, digest);
    if (error == 0 && n) { /* half of the digits: all of them do not fit */
        digest_text(digest, hex);
        snprintf(version->etag + len, sizeof(version->etag) - len, " without %.32s", hex);
    }
    return error;
}

/* source_join() of sources with a stage: the blob is one of the stage. It may empty *members. */
static int joined_staged(const struct source *source, const struct joined_head *head,
                         struct members *members, struct blob **ret, struct diag *d)
{
    struct staged_parts *staged = calloc(1, sizeof(*staged));
    struct remote_version version = {.size = members_end(members), .mtime = head->mtime};
    AUTO_FREE char *key = NULL, *identity = NULL;
    char url[JOINED_URL_SIZE];
    int r;

    if (!staged || joined_identity(members, "", &identity) < 0 ||
        key_of(source, head->name, &key) < 0) {
        free(staged);
        return -ENOMEM;
    }
    *staged =
        (struct staged_parts){.parts = {.members = &staged->members,
                                        .where = source->remote->far ? where_remote : where_local,
                                        .free = parts_free},
                              .members = *members,
                              .source = source};
    *members = (struct members){0};
    snprintf(version.etag, sizeof(version.etag), "%s", identity);
    r = find_sums(source, staged);
    if (r == 0 && !source->remote->far && source_asks_all(source))
        r = without_unreadable(staged, &version);
    if (r < 0) {
        parts_free(&staged->parts);
        return r;
    }
    r = joined_transport_add(source->joins, &staged->parts, url);
    if (r == 0 && source->remote->far)
        r = known_taken(known_of(source), &staged->members, staged->sha256);
    if (r < 0)
        return r;
    return stage_add(source->stage,
                     &(struct stage_file){.url = url,
                                          .key = key,
                                          .name = *head->name ? head->name : ".",
                                          .version = &version,
                                          .mode = head->mode,
                                          .uid = head->uid,
                                          .gid = head->gid,
                                          .parts = &staged->members},
                     ret, d);
}

/* ---- either ---- */

int source_join(const struct source *source, const struct joined_head *head,
                struct members *members, struct blob **ret, struct diag *d)
{
    int r = source->remote->ordered
                ? -EOPNOTSUPP
                : (source->stage ? joined_staged : joined_local)(source, head, members, ret, d);

    members_release(members);
    return r;
}
