/* Entries and attributes as the kernel gets them, and the error that it sees. */
#include "fs/serve/parts.h"

#include <errno.h>

int serve_errno(int r)
{
    switch (r) {
    case -ENOENT:
    case -ENOTDIR:
    case -EACCES:
    case -ENODATA:
    case -ERANGE:
    case -E2BIG:
    case -EFBIG:
    case -EINTR:
    case -ENOMEM:
    case -ENFILE:
    case -ESTALE:
    case -EINVAL:
    case -EOPNOTSUPP:
    case -ENOSYS:
        return -r;
    default:
        return EIO;
    }
}

double serve_timeout(const struct node *node)
{
    return node->type == NODE_LIVE ? 0 : FOREVER;
}

int serve_entry(struct read_context *rc, struct server *s, const struct node *node,
                struct fuse_entry_param *ret, struct diag *d)
{
    struct stat st;
    int r = engine_stat(rc, &s->engine, node, &st, d);

    if (r < 0)
        return r;
    *ret = (struct fuse_entry_param){.ino = node->snapshot ? tree_snapshot_ino(node, node->snapshot)
                                                           : node->ino,
                                     .attr = st,
                                     .attr_timeout = serve_timeout(node),
                                     .entry_timeout = serve_timeout(node)};
    return 0;
}

void serve_reply_attribute(fuse_req_t req, const struct text *t, size_t size)
{
    if (t->failed)
        fuse_reply_err(req, ENOMEM);
    else if (!size)
        fuse_reply_xattr(req, t->len);
    else if (t->len > size)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, t->data, t->len);
}
