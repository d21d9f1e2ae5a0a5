/* Reading is fast because the kernel rarely asks. The tree never changes, so entries and attributes
 * are valid for ever. open and opendir are answered ENOSYS once; then the kernel opens without a
 * request and keeps pages and listings. READDIRPLUS brings attributes with the names. What does
 * change is reported: fuse_lowlevel_notify_inval_inode() reports a listing that has grown; the live
 * texts have timeouts of 0, and an inode number of its own for each lookup.
 *
 * Handlers are short: find the node, ask the tree or the view, reply once. fs/serve/answers.c
 * answers requests that may take long. */
#include "fs/serve/parts.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/checked.h"

/* Answer a request of the kernel at once, if a serving thread can do so in a short time. */
static void serve_first(fuse_req_t req, const struct call *call)
{
    static const enum request counted[N_CALLS] = {
        [CALL_LOOKUP] = REQUEST_LOOKUP,     [CALL_GETATTR] = REQUEST_GETATTR,
        [CALL_READ] = REQUEST_READ,         [CALL_LIST] = REQUEST_READDIR,
        [CALL_LIST_PLUS] = REQUEST_READDIR, [CALL_GETXATTR] = REQUEST_GETXATTR,
        [CALL_OPEN] = REQUEST_OPEN,
    };
    struct server *s = server_of(req);

    status_count(&s->engine.status, counted[call->type]);
    serve_call(s, req, call, monotonic_ns() + ANSWER_NS);
}

static void serve_init(void *userdata, struct fuse_conn_info *conn)
{
    struct server *s = userdata;
    const unsigned wanted = FUSE_CAP_READDIRPLUS | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_READ |
                            FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
                            FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;

    conn->want |= conn->capable & wanted;
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->max_readahead = READ_MAX;
    conn->max_background = 64;
    s->no_open = conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
    s->no_opendir = conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;
    kernel_pass_negotiate(s, conn);
    s->parallel = conn->capable & FUSE_CAP_PARALLEL_DIROPS;
    if (s->setup.ready)
        s->setup.ready(s->setup.ctx);
}

static void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    serve_first(req, &(struct call){.type = CALL_LOOKUP, .ino = parent, .name = name});
}

static void serve_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.type = CALL_GETATTR, .ino = ino});
}

static void serve_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct server *s = server_of(req);
    struct node node;
    int r;

    status_count(&s->engine.status, REQUEST_READLINK);
    r = tree_node(s->engine.tree, ino, &node);
    if (r < 0 || node.type != NODE_PLAN_LINK)
        fuse_reply_err(req, r < 0 ? serve_errno(r) : EINVAL);
    else
        fuse_reply_readlink(req, node.plan->name);
}

/* The kernel asks only for the first file, unless it always needs open requests. */
static void serve_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct server *s = server_of(req);

    (void)fi;
    if (!s->no_open || pass_is_on(&s->pass)) {
        serve_first(req, &(struct call){.type = CALL_OPEN, .ino = ino});
        return;
    }
    status_count(&s->engine.status, REQUEST_OPEN);
    fuse_reply_err(req, ENOSYS);
}

static void serve_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct server *s = server_of(req);

    status_count(&s->engine.status, REQUEST_RELEASE);
    if (fi->fh)
        pass_closed(&s->pass, ino);
    fuse_reply_err(req, 0);
}

static void serve_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct server *s = server_of(req);

    (void)ino;
    status_count(&s->engine.status, REQUEST_OPEN);
    if (s->no_opendir) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    fi->keep_cache = 1;
    fi->cache_readdir = 1;
    fuse_reply_open(req, fi);
}

static void serve_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.type = CALL_READ, .ino = ino, .size = size, .off = off});
}

static void serve_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                          struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.type = CALL_LIST, .ino = ino, .size = size, .off = off});
}

static void serve_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                              struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.type = CALL_LIST_PLUS, .ino = ino, .size = size, .off = off});
}

static void serve_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct server *s = server_of(req);
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};
    const struct catalog *catalog = s->setup.catalog;
    uint64_t bytes = 0;

    (void)ino;
    status_count(&s->engine.status, REQUEST_OTHER);
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;
        bool counts = ds && !ds->shares_blobs;

        for (unsigned k = 0; counts && k < ds->n_blobs; k++)
            bytes += ds->blob[k]->size;
    }
    st.f_blocks = ceil_div(bytes, 4096);
    fuse_reply_statfs(req, &st);
}

static void serve_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    serve_first(req, &(struct call){.type = CALL_GETXATTR, .ino = ino, .name = name, .size = size});
}

static void serve_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct server *s = server_of(req);
    AUTO_TEXT struct text t = {0};
    struct node node;
    int r;

    status_count(&s->engine.status, REQUEST_LISTXATTR);
    r = tree_node(s->engine.tree, ino, &node);
    for (unsigned i = 0; r == 0 && i < N_ATTRIBUTES; i++)
        if (view_has_attribute(&node, (enum attribute)i))
            text_add_bytes(&t, attribute_names[i], strlen(attribute_names[i]) + 1);
    if (r < 0)
        fuse_reply_err(req, serve_errno(r));
    else
        serve_reply_attribute(req, &t, size);
}

/* Python's open() asks whether a file is a terminal. */
static void serve_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
                        struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                        size_t out_size)
{
    (void)ino;
    (void)command;
    (void)arg;
    (void)fi;
    (void)flags;
    (void)in;
    (void)in_size;
    (void)out_size;
    status_count(&server_of(req)->engine.status, REQUEST_IOCTL);
    fuse_reply_err(req, ENOTTY);
}

const struct fuse_lowlevel_ops serve_operations = {
    .init = serve_init,
    .lookup = serve_lookup,
    .getattr = serve_getattr,
    .readlink = serve_readlink,
    .open = serve_open,
    .read = serve_read,
    .release = serve_release,
    .opendir = serve_opendir,
    .readdir = serve_readdir,
    .readdirplus = serve_readdirplus,
    .statfs = serve_statfs,
    .getxattr = serve_getxattr,
    .listxattr = serve_listxattr,
    .ioctl = serve_ioctl,
};
