/* epochfs-bench-pass: what the kernel gives a mount at most.
 *
 *   epochfs-bench-pass FOLDER MOUNTPOINT [reply]
 *
 * Shows the files of FOLDER whose names are numbers of five digits and ".jpg", until it is
 * unmounted. It checks nothing and counts nothing. The kernel reads the files itself (FUSE
 * passthrough): an open opens the file, gives it to the kernel and replies. So nothing that serves
 * each open and close with a request can be faster. With `reply` each read is answered, with bytes
 * of one buffer that stay in the processor's cache. So nothing that replies to reads can be
 * faster. */
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common.h"

#define INIT_PASSTHROUGH (UINT32_C(1) << 5) /* of flags2 */
#define OPEN_PASSTHROUGH (UINT32_C(1) << 7)
#define FIRST            2 /* inode number of file 0; the folder has 1 */

enum { THREADS = 10, REPLY_MAX = 1 << 20 };

/* The same bytes for each version of libfuse and of Linux' headers, see fs/serve/kernel_pass.c. */
struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct open_out {
    uint64_t handle; /* the number of the backing file */
    uint32_t flags;
    int32_t backing;
};

/* Set by main(), then constant; init_replied: by the first reply. */
static struct fuse_session *session;
static int folder = -1;
static bool init_replied;
static bool replies;
static char buffer[REPLY_MAX];

static void file_name(char name[NAME_SIZE], uint64_t ino)
{
    snprintf(name, NAME_SIZE, "%05u.jpg", (unsigned)(ino - FIRST));
}

static int stat_of(fuse_ino_t ino, struct stat *ret)
{
    char name[NAME_SIZE];
    int r;

    if (ino == FUSE_ROOT_ID) {
        r = fstat(folder, ret);
    } else {
        file_name(name, ino);
        r = fstatat(folder, name, ret, 0);
    }
    ret->st_ino = ino;
    return r < 0 ? errno : 0;
}

static void serve_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;
    int error = stat_of(ino, &st);

    (void)fi;
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_attr(req, &st, 1e9);
}

static void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {
        .ino = strtoull(name, NULL, 10) + FIRST, .attr_timeout = 1e9, .entry_timeout = 1e9};
    int error = stat_of(entry.ino, &entry.attr);

    (void)parent;
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_entry(req, &entry);
}

static void serve_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct backing_map map = {0};
    struct open_out reply = {.flags = OPEN_PASSTHROUGH | FOPEN_NOFLUSH};
    char name[NAME_SIZE];

    (void)fi;
    if (replies) { /* the kernel opens files without a request from now on */
        fuse_reply_err(req, ENOSYS);
        return;
    }
    file_name(name, ino);
    map.fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (map.fd < 0) {
        fuse_reply_err(req, errno);
        return;
    }
    reply.backing = ioctl(fuse_session_fd(session), BACKING_OPEN, &map);
    if (reply.backing <= 0)
        die("the kernel does not keep the file", errno);
    close(map.fd);
    reply.handle = (uint64_t)reply.backing;
    fuse_reply_buf(req, (const char *)&reply, sizeof(reply));
}

static void serve_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)ino;
    (void)off;
    (void)fi;
    fuse_reply_buf(req, buffer, size < REPLY_MAX ? size : REPLY_MAX);
}

static void serve_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    uint32_t backing = (uint32_t)fi->fh;

    (void)ino;
    ioctl(fuse_session_fd(session), BACKING_CLOSE, &backing);
    fuse_reply_err(req, 0);
}

/* The reply to INIT is the first: ask for passthrough in it. */
static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (!replies && !init_replied && count == 2 && iov[1].iov_len >= sizeof(struct fuse_init_out)) {
        struct fuse_init_out *reply = iov[1].iov_base;
        const uint32_t depth = 1;

        init_replied = true;
        reply->flags |= FUSE_INIT_EXT;
        reply->flags2 |= INIT_PASSTHROUGH;
        memcpy((char *)&reply->flags2 + sizeof(reply->flags2), &depth, sizeof(depth));
    }
    return writev(fd, iov, count);
}

static ssize_t read_request(int fd, void *buffer, size_t len, void *userdata)
{
    (void)userdata;
    return read(fd, buffer, len);
}

int main(int argc, char **argv)
{
    const struct fuse_lowlevel_ops operations = {
        .lookup = serve_lookup,
        .getattr = serve_getattr,
        .open = serve_open,
        .read = serve_read,
        .release = serve_release,
    };
    const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};
    char *options[] = {(char *)"epochfs-bench-pass", (char *)"-oro,default_permissions", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(2, options);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int r;

    if (argc < 3 || !config)
        die("FOLDER MOUNTPOINT [reply]", EINVAL);
    replies = argc > 3;
    folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        die(argv[1], errno);
    session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (!session || fuse_session_mount(session, argv[2]) != 0 ||
        fuse_session_custom_io(session, &io, fuse_session_fd(session)) != 0)
        die(argv[2], EIO);
    fuse_loop_cfg_set_max_threads(config, THREADS);
    fuse_loop_cfg_set_idle_threads(config, THREADS);
    puts("mounted");
    fflush(stdout);
    r = fuse_session_loop_mt(session, config);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    fuse_loop_cfg_destroy(config);
    return r ? 1 : 0;
}
