/* A blob is bound to the state of the file at its opening: its version, and that it has a name.
 * Once any of these differs, the blob serves nothing more (local_blob_check). */
#include "cache/disk/local_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/small_pieces.h"

struct local_blob {
    struct blob blob;
    int fd;
    bool may_be_removed;
    struct file_version version; /* of the whole file; blob.size may be less */
    struct small_pieces small;
};

static int local_blob_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                            uint64_t off, struct diag *d)
{
    (void)rc;
    (void)d;
    return file_pread(((const struct local_blob *)blob)->fd, buf, len, off);
}

static int local_blob_pread_many(struct read_context *rc, const struct blob *blob,
                                 const struct blob_piece *pieces, size_t n)
{
    struct local_blob *local = (struct local_blob *)(uintptr_t)blob;

    (void)rc;
    return small_pieces_read(&local->small, local->fd, blob->size, pieces, n);
}

static int local_blob_check(const struct blob *blob)
{
    const struct local_blob *local = (const struct local_blob *)blob;
    struct stat st;

    if (fstat(local->fd, &st) < 0)
        return -errno;
    return (st.st_nlink || local->may_be_removed) && file_version_is(&local->version, &st)
               ? 0
               : -ESTALE;
}

static int local_identity(const struct blob *blob, char **ret)
{
    return file_version_text(&((const struct local_blob *)blob)->version, ret);
}

static int local_blob_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                                struct diag *d)
{
    const struct local_blob *local = (const struct local_blob *)blob;
    int r = local_blob_check(blob);

    (void)d;
    if (r < 0)
        return r;
    if (off || len != local->version.size)
        return -EOPNOTSUPP;
    *ret_fd = fcntl(local->fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

static int local_memory(const struct blob *blob, enum blob_ask ask, uint64_t off, uint64_t len)
{
    return file_memory(((const struct local_blob *)blob)->fd, ask, off, len);
}

static void local_blob_free(struct blob *blob)
{
    struct local_blob *local = (struct local_blob *)blob;

    small_pieces_release(&local->small);
    scope_close(&local->fd);
    free(blob->name);
    free(blob->source);
    free(blob->etag);
    free(local);
}

static const struct blob_ops local_blob_ops = {.pread = local_blob_pread,
                                               .check = local_blob_check,
                                               .identity = local_identity,
                                               .free = local_blob_free,
                                               .open_file = local_blob_open_file,
                                               .memory = local_memory,
                                               .pread_many = local_blob_pread_many};

int local_blob_new(int fd, const char *name, uint64_t size, bool may_be_removed, struct blob **ret)
{
    struct local_blob *local = calloc(1, sizeof(*local));
    struct stat st;

    if (!local) {
        close(fd);
        return -ENOMEM;
    }
    small_pieces_init(&local->small);
    local->fd = fd;
    local->may_be_removed = may_be_removed;
    local->blob.ops = &local_blob_ops;
    local->blob.name = strdup(name);
    if (!local->blob.name || fstat(fd, &st) < 0) {
        int r = local->blob.name ? -errno : -ENOMEM;

        local_blob_free(&local->blob);
        return r;
    }
    local->version = may_be_removed ? file_version_of_own(&st) : file_version_of(&st);
    file_describe(&st, size, &local->blob);
    *ret = &local->blob;
    return 0;
}
