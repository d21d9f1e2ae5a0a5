/* Joined blobs, and those of local files that are read in place. */
#include "cache/source/joined.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined_blob.h"
#include "cache/source/kept_list.h"
#include "cache/source/source.h"

/* ---- any joined blob ---- */

int joined_blob_init(struct joined_blob *ret, const struct joined_head *head,
                     struct members *members)
{
    ret->members = *members;
    *members = (struct members){0};
    ret->blob.name = strdup(*head->name ? head->name : ".");
    ret->blob.size = members_end(&ret->members);
    ret->blob.mtime = head->mtime;
    ret->blob.mode = head->mode;
    ret->blob.uid = head->uid;
    ret->blob.gid = head->gid;
    return ret->blob.name ? 0 : -ENOMEM;
}

void joined_blob_release(struct joined_blob *joined)
{
    free(joined->blob.name);
    free(joined->blob.source);
    members_release(&joined->members);
}

const struct members *joined_members(const struct blob *blob)
{
    const struct members *staged = stage_parts(blob);

    return staged ? staged : &((const struct joined_blob *)blob)->members;
}

static const struct blob_ops local_ops;

bool joined_is(const struct blob *blob)
{
    return blob->ops == &local_ops || stage_parts(blob);
}

int joined_blob_identity(const struct blob *blob, char **ret)
{
    return joined_identity(joined_members(blob), blob_source(blob), ret);
}

int source_join(const struct source *source, const struct joined_head *head,
                struct members *members, struct blob **ret, struct diag *d)
{
    int r = -EOPNOTSUPP;

    if (source->remote->join || source->remote->far)
        r = (source->remote->join ? source->remote->join : joined_staged)(source, head, members,
                                                                          ret, d);
    members_release(members);
    return r;
}

/* ---- local files, read in place ---- */

struct local_joined {
    struct joined_blob joined;
    const struct source *source; /* which outlives it */
    int root;                    /* its folder, open */
    atomic_bool forgotten;       /* a member had changed, so the kept listing was dropped */
};

/* Open a member. The kernel follows no link that leaves the folder; a link that does, or has an
 * absolute path, is judged by where it leads (cache/source/within.h). */
static int open_member(const struct local_joined *local, const char *path, int *ret_fd)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    AUTO_CLOSE int fd = (int)syscall(SYS_openat2, local->root, path, &how, sizeof(how));
    char whole[PATH_MAX];
    struct stat st;
    int r;

    if (fd < 0 && errno != EXDEV && errno != ENOSYS && errno != EPERM && errno != EAGAIN)
        return -errno;
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
static int joined_take_member(struct local_joined *local, size_t i, void *buf, size_t len,
                              uint64_t off, int *ret_fd, struct diag *d)
{
    const struct members *m = &local->joined.members;
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
        if (!atomic_exchange(&local->forgotten, true))
            kept_list_forget(local->source);
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

static int read_member(struct local_joined *local, size_t i, void *buf, size_t len, uint64_t off,
                       struct diag *d)
{
    AUTO_CLOSE int fd = -1;

    return joined_take_member(local, i, buf, len, off, &fd, d);
}

static int joined_local_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                                  struct diag *d)
{
    struct local_joined *local = (struct local_joined *)(uintptr_t)blob; /* for `forgotten` */
    const struct members *m = &local->joined.members;
    size_t i = members_find(m, off);

    if (off != m->member[i].place || len != members_size(m, i))
        return -EOPNOTSUPP;
    return joined_take_member(local, i, NULL, 0, 0, ret_fd, d);
}

static int joined_local_pread(struct read_context *rc, const struct blob *blob, void *buf,
                              size_t len, uint64_t off, struct diag *d)
{
    struct local_joined *local = (struct local_joined *)(uintptr_t)blob; /* for `forgotten` */
    const struct members *m = &local->joined.members;
    size_t i = members_find(m, off);

    (void)rc;
    for (uint8_t *at = buf; len; i++) {
        uint64_t in = off - m->member[i].place;
        size_t n = (size_t)min_u64(len, members_size(m, i) - in);
        int r = n ? read_member(local, i, at, n, in, d) : 0;

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

static int joined_local_check(const struct blob *blob)
{
    (void)blob;
    return 0;
}

static void joined_local_free(struct blob *blob)
{
    struct local_joined *local = (struct local_joined *)blob;

    scope_close(&local->root);
    joined_blob_release(&local->joined);
    free(local);
}

static const struct blob_ops local_ops = {.pread = joined_local_pread,
                                          .check = joined_local_check,
                                          .identity = joined_blob_identity,
                                          .free = joined_local_free,
                                          .in_files = local_in_files,
                                          .open_file = joined_local_open_file};

int joined_local(const struct source *source, const struct joined_head *head,
                 struct members *members, struct blob **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    struct local_joined *local = calloc(1, sizeof(*local));

    if (!local)
        return -ENOMEM;
    blob = &local->joined.blob;
    blob->ops = &local_ops;
    local->source = source;
    local->root = open(source->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (local->root < 0)
        return diag_set(d, -errno, "%s: %s", source->root, strerror(errno));
    if (joined_blob_init(&local->joined, head, members) < 0 ||
        text_print(&blob->source, "%s%s%s", source->root, *head->name ? "/" : "", head->name) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(blob);
    return 0;
}
