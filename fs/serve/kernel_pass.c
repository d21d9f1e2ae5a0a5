/* Passthrough on the wire. libfuse knows it since 3.17, and Linux' headers since 6.9, so what
 * the kernel wants stands here: the same bytes for each libfuse, except the first reply. */
#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/serve/parts.h"

#define INIT_PASSTHROUGH (UINT32_C(1) << 5) /* bit 37 of the flags, so in flags2 */
#define OPEN_PASSTHROUGH (UINT32_C(1) << 7)
#define STACK_DEPTH      1 /* a backing file must lie on a file system that lies on no other one */

struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct open_out {
    uint64_t handle;
    uint32_t flags;
    int32_t backing;
};

static int open_backing(void *ctx, int fd)
{
    const struct server *s = ctx;
    struct backing_map map = {.fd = fd};
    int r = ioctl(fuse_session_fd(s->session), BACKING_OPEN, &map);

    return r < 0 ? -errno : r;
}

static void close_backing(void *ctx, int backing)
{
    const struct server *s = ctx;
    uint32_t id = (uint32_t)backing;

    ioctl(fuse_session_fd(s->session), BACKING_CLOSE, &id);
}

void kernel_pass_init(struct server *s)
{
    s->pass.kernel = (struct pass_kernel){open_backing, close_backing, s};
}

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

void kernel_pass_negotiate(struct server *s, struct fuse_conn_info *conn)
{
    (void)conn;
    pass_offered(&s->pass, s->init_flags2 & INIT_PASSTHROUGH);
}

/* This libfuse takes FUSE_CAP_PARALLEL_DIROPS but does not pass it to the kernel, which then lets
 * one lookup or listing of a folder wait for another: a parked lookup would block all others in its
 * folder, and they could not even be interrupted. So write_reply() completes the reply to INIT, the
 * first of a session (a notification, which is no reply, has no number and may come before it);
 * that of passthrough as well. */
static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    struct server *s = userdata;
    const struct fuse_out_header *head = iov[0].iov_base;

    if (!s->init_replied && head->unique && count == 2 &&
        iov[1].iov_len >= sizeof(struct fuse_init_out)) {
        struct fuse_init_out *reply = iov[1].iov_base;
        const uint32_t depth = STACK_DEPTH;

        s->init_replied = true;
        reply->flags |= s->parallel ? FUSE_PARALLEL_DIROPS : 0;
        if (pass_is_on(&s->pass)) {
            reply->flags |= FUSE_INIT_EXT;
            reply->flags2 |= INIT_PASSTHROUGH;
            memcpy((char *)&reply->flags2 + sizeof(reply->flags2), &depth, sizeof(depth));
        }
    }
    return writev(fd, iov, count);
}

/* The first request is INIT: note the flags that this libfuse does not know. A read that is
 * under way while the mount ends gives ECONNABORTED, which libfuse takes for an error: ENODEV. */
static ssize_t read_request(int fd, void *buffer, size_t len, void *userdata)
{
    struct server *s = userdata;
    ssize_t n = read(fd, buffer, len);
    const struct fuse_in_header *head = buffer;
    const struct fuse_init_in *init = (const struct fuse_init_in *)(head + 1);

    if (!s->init_replied && n >= (ssize_t)(sizeof(*head) + sizeof(*init)) &&
        head->opcode == FUSE_INIT && init->flags & FUSE_INIT_EXT)
        s->init_flags2 = init->flags2;
    if (n < 0 && errno == ECONNABORTED)
        errno = ENODEV;
    return n;
}

int kernel_pass_start(struct server *s)
{
    const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};

    return fuse_session_custom_io(s->session, &io, fuse_session_fd(s->session));
}

#else

void kernel_pass_negotiate(struct server *s, struct fuse_conn_info *conn)
{
    bool wants = s->pass.wanted && fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH);

    if (wants)
        conn->max_backing_stack_depth = STACK_DEPTH - 1; /* libfuse adds the layer that is ours */
    pass_offered(&s->pass, wants);
}

int kernel_pass_start(struct server *s)
{
    (void)s;
    return 0;
}

#endif

int kernel_pass_reply(fuse_req_t req, int backing, bool counts, bool is_live)
{
    const uint32_t how = backing ? OPEN_PASSTHROUGH : is_live ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
    const struct open_out reply = {
        .handle = counts,
        .flags = how | FOPEN_NOFLUSH, /* else each close is a request more */
        .backing = backing,
    };

    return fuse_reply_buf(req, (const char *)&reply, sizeof(reply));
}
