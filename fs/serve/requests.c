/* What makes reading fast is that the kernel need not ask: the tree never changes, so entries and
 * attributes are valid for ever; open and opendir are answered ENOSYS once, after which the
 * kernel opens without a request and keeps pages and listings; READDIRPLUS brings attributes with
 * the names. What does change is told: a listing that has grown by fuse_lowlevel_notify_inval_
 * inode(), the live texts by timeouts of 0 and an inode number of its own for each lookup.
 *
 * Handlers are short: find the node, ask the tree or the view, reply once. */
#include "fs/serve/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/stage/stage.h"
#include "fs/log/log.h"

#define FOREVER        1e9 /* seconds */
#define REPORTED_BAD   20  /* read errors of a dataset that are logged: of samples; others */
#define REPORTED_OTHER 2

static struct server *server_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* What the kernel is told: only what a reader of files can make sense of. */
static int kernel_errno(int r)
{
    switch (r) {
    case -ENOENT:
    case -ENOTDIR:
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

static struct timespec time_of_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* ---- attributes ---- */

static mode_t type_of(const struct node *node)
{
    if (node->kind == NODE_PLAN_LINK)
        return S_IFLNK;
    return node_is_folder(node) ? S_IFDIR : S_IFREG;
}

/* Is there anything of which not everybody may know? */
static bool hides_something(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++) {
        const struct catalog_item *item = &catalog->item[i];

        if (item->is_hidden ||
            (item->ds && dataset_state(item->ds) == DATASET_READY && item->ds->denied & 0004))
            return true;
    }
    return false;
}

/* With allow_other, what a dataset shows may be read by those who may read its source files, a
 * folder of the source be listed by those who may list that, and the texts about the mount, which
 * count and name all of it, by everybody only if nothing is hidden from anybody. Else only the user
 * who mounted comes here at all. */
static void stat_owner(const struct server *s, const struct node *node, struct stat *st)
{
    struct access access = {geteuid(), getegid(), 0444};
    bool is_source_folder = false;

    if (s->setup.options->allow_other) {
        const struct access *of_folder = tree_access(node);

        is_source_folder = of_folder != NULL;
        if (of_folder)
            access = *of_folder;
        else if (node->item)
            catalog_item_access(node->item, &access);
        else if (node->kind == NODE_LIVE && hides_something(s->setup.catalog))
            access.mode = 0400;
    }
    st->st_uid = access.uid;
    st->st_gid = access.gid;
    if (S_ISDIR(st->st_mode) && !is_source_folder)
        access.mode |= (access.mode & 0444) >> 2;
    st->st_mode |= S_ISLNK(st->st_mode) ? 0777 : access.mode;
}

static struct timespec time_of(const struct server *s, const struct node *node)
{
    const struct dataset *ds = node->item ? node->item->ds : NULL;
    struct timespec latest = {.tv_sec = s->status.started};

    if (node->kind == NODE_BATCHES || node->kind == NODE_PLAN)
        return time_of_ns(atomic_load_explicit(&s->changed, memory_order_relaxed));
    for (unsigned i = 0; ds && i < ds->n_blobs; i++) {
        const struct timespec *t = &ds->blob[i]->mtime;

        if (!i || t->tv_sec > latest.tv_sec ||
            (t->tv_sec == latest.tv_sec && t->tv_nsec > latest.tv_nsec))
            latest = *t;
    }
    return latest;
}

static int node_stat(struct server *s, const struct node *node, const struct view_cancel *deadline,
                     struct stat *ret, struct diag *d)
{
    struct timespec time = time_of(s, node);
    uint64_t size = 0;
    int64_t time_ns;
    int r = 0;

    *ret = (struct stat){.st_ino = node->ino, .st_mode = type_of(node), .st_nlink = 1};
    if (S_ISDIR(ret->st_mode))
        ret->st_nlink = 2;
    else if (S_ISLNK(ret->st_mode))
        size = strlen(node->plan->name);
    else if (node->kind != NODE_LIVE)
        r = view_size(s->view, node, deadline, &size, d);
    else if (!(r = status_look_stat(&s->status, (enum live)node->number, node->look, &size,
                                    &time_ns)))
        time = time_of_ns(time_ns);
    stat_owner(s, node, ret);
    ret->st_mtim = ret->st_ctim = ret->st_atim = time;
    ret->st_size = (off_t)size;
    ret->st_blocks = (blkcnt_t)ceil_div(size, 512);
    ret->st_blksize = 4096;
    return r;
}

static double timeout_of(const struct node *node)
{
    return node->kind == NODE_LIVE ? 0 : FOREVER;
}

/* 0 and the entry, or the error to reply. */
static int node_entry(struct server *s, const struct node *node, const struct view_cancel *deadline,
                      struct fuse_entry_param *ret, struct diag *d)
{
    *ret =
        (struct fuse_entry_param){.ino = node->look ? tree_look_ino(node, node->look) : node->ino,
                                  .attr_timeout = timeout_of(node),
                                  .entry_timeout = timeout_of(node)};
    return node_stat(s, node, deadline, &ret->attr, d);
}

/* ---- patience ---- */

/* How long a request may go on. */
struct deadline {
    struct view_cancel view;
    struct server *server;
    fuse_req_t req;
    int64_t until; /* monotonic_ns() */
    bool spent;
    struct missing_ranges *missing; /* bytes that it needs and that are not here; NULL: all are */
    enum missing_used used;         /* what was given to the reader */
};

static bool deadline_ends(void *ctx)
{
    struct deadline *deadline = ctx;

    if (fuse_req_interrupted(deadline->req) || deadline->server->slow.ending)
        return true;
    deadline->spent = monotonic_ns() > deadline->until;
    return deadline->spent;
}

static void deadline_init(struct deadline *ret, struct server *s, fuse_req_t req, int64_t until)
{
    *ret = (struct deadline){.server = s, .req = req, .until = until};
    ret->view = (struct view_cancel){.ends = deadline_ends, .ctx = ret};
}

/* Park a request that ended with r, if that is for want of time or of a dataset, item. */
static bool park(struct deadline *deadline, const struct call *call,
                 const struct catalog_item *item, int r)
{
    if (r == -EAGAIN && deadline->missing && (deadline->missing->n || !item))
        slow_wait(deadline->server, deadline->req, call, deadline->missing);
    else if (r == -EAGAIN && item)
        slow_park(deadline->server, deadline->req, call, item);
    else if (r == -EINTR && deadline->spent)
        slow_park(deadline->server, deadline->req, call, NULL);
    else
        return false;
    return true;
}

/* A request of the kernel: what a serving thread does in a short time it does at once. */
static void serve_first(fuse_req_t req, const struct call *call)
{
    static const enum request counted[N_CALLS] = {
        [CALL_LOOKUP] = REQUEST_LOOKUP,     [CALL_GETATTR] = REQUEST_GETATTR,
        [CALL_READ] = REQUEST_READ,         [CALL_LIST] = REQUEST_READDIR,
        [CALL_LIST_PLUS] = REQUEST_READDIR, [CALL_GETXATTR] = REQUEST_GETXATTR,
    };
    struct server *s = server_of(req);

    status_count(&s->status, counted[call->kind]);
    serve_call(s, req, call, monotonic_ns() + ANSWER_NS);
}

/* ---- failures ---- */

/* The first failures in a dataset are errors; what follows is for debugging, for a job reads on,
 * thousands of times. Bad samples differ, so more of them are told than of what fails as a whole.
 */
static enum log_level failure_level(struct server *s, const struct node *node, int r)
{
    bool of_samples = r == -EBADMSG || r == -EDOM;
    unsigned most = of_samples ? REPORTED_BAD : REPORTED_OTHER, reported;

    if (!node->item)
        return LOG_LEVEL_ERROR;
    reported = atomic_fetch_add(&s->reported[node->item - s->setup.catalog->item][of_samples], 1);
    if (reported + 1 == most && most > 1)
        log_info("%s: further read errors of it are logged only with log=debug", node->item->name);
    return reported < most ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG;
}

/* A read, or the look at a file that cannot be read, has failed. */
static void fail(struct server *s, const struct node *node, int r, const struct diag *d)
{
    char path[TREE_NAME_SIZE * 4] = "";

    if (r == -EINTR)
        return;
    status_read_error(&s->status, diag_text(d, r));
    if (node->item)
        item_path(node->item, path, sizeof(path));
    /* A dataset of one file is called like it. */
    if (!strncmp(diag_text(d, r), path, strlen(path)))
        path[0] = '\0';
    log_line(failure_level(s, node, r), "read failed: %s%s%s", path, *path ? ": " : "",
             diag_text(d, r));
}

/* ---- requests ---- */

static void serve_init(void *userdata, struct fuse_conn_info *conn)
{
    struct server *s = userdata;
    const unsigned want = FUSE_CAP_READDIRPLUS | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_READ |
                          FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
                          FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;

    conn->want |= conn->capable & want;
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->max_readahead = READ_MAX;
    conn->max_background = 64;
    s->no_open = conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
    s->parallel = conn->capable & FUSE_CAP_PARALLEL_DIROPS;
    if (s->setup.ready)
        s->setup.ready(s->setup.ctx);
}

void serve_tell_changed(struct server *s, uint64_t ino)
{
    if (!ino)
        return;
    atomic_store_explicit(&s->changed, now_ns(), memory_order_relaxed);
    fuse_lowlevel_notify_inval_inode(s->session, ino, 0, 0);
}

static void answer_lookup(struct server *s, fuse_req_t req, const struct call *call,
                          struct deadline *deadline)
{
    struct fuse_entry_param entry = {.entry_timeout = FOREVER};
    struct diag d = DIAG_INIT, size_reason = DIAG_INIT;
    struct node parent = {0}, node = {0};
    uint64_t changed = 0;
    int r = tree_node(s->tree, call->ino, &parent);

    if (r == 0)
        r = tree_lookup(s->tree, &parent, call->name, &node, &changed, &d);
    if (r == 0 && node.kind == NODE_LIVE)
        r = status_look_new(&s->status, (enum live)node.number, &node.look);
    if (r == 0)
        r = node_entry(s, &node, &deadline->view, &entry, &size_reason);
    if (r == -ENOENT && d.set && parent.item)
        refused_name(s, &parent, call->name, &d);
    else if (r < 0 && d.set)
        log_debug("%s: %s", call->name, d.text);
    if (r == -ENFILE)
        log_error("%s: this mount has opened %d plans and ranges of epochs, and cannot open more; "
                  "mount it again",
                  call->name, PLANS_MAX);
    /* Before the reply, so that a listing by whoever waits for it is new. */
    if (changed)
        atomic_fetch_add_explicit(&s->status.plans_opened, 1, memory_order_relaxed);
    serve_tell_changed(s, changed);
    if (park(deadline, call, parent.item, r))
        return;
    if (r < 0 && size_reason.set)
        fail(s, &node, r, &size_reason);
    if (r == -EDOM)
        refused_file(s, &node, &size_reason);
    /* What is not there will never be: the kernel may remember that, too. */
    if (r == 0 || r == -ENOENT)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, kernel_errno(r));
}

static void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    serve_first(req, &(struct call){.kind = CALL_LOOKUP, .ino = parent, .name = name});
}

static void answer_getattr(struct server *s, fuse_req_t req, const struct call *call,
                           struct deadline *deadline)
{
    struct diag d = DIAG_INIT;
    struct node node = {0};
    struct stat st;
    int r = tree_node(s->tree, call->ino, &node);

    if (r == 0)
        r = node_stat(s, &node, &deadline->view, &st, &d);
    if (r == 0) {
        fuse_reply_attr(req, &st, timeout_of(&node));
    } else if (!park(deadline, call, NULL, r)) {
        if (d.set)
            fail(s, &node, r, &d);
        fuse_reply_err(req, kernel_errno(r));
    }
}

static void serve_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.kind = CALL_GETATTR, .ino = ino});
}

static void serve_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct server *s = server_of(req);
    struct node node;
    int r;

    status_count(&s->status, REQUEST_READLINK);
    r = tree_node(s->tree, ino, &node);
    if (r < 0 || node.kind != NODE_PLAN_LINK)
        fuse_reply_err(req, r < 0 ? kernel_errno(r) : EINVAL);
    else
        fuse_reply_readlink(req, node.plan->name);
}

/* Only asked by a kernel that cannot do without, or for the first file. */
static void serve_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct server *s = server_of(req);
    struct node node;
    int r;

    status_count(&s->status, REQUEST_OPEN);
    if (s->no_open) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    r = tree_node(s->tree, ino, &node);
    if (r < 0) {
        fuse_reply_err(req, kernel_errno(r));
        return;
    }
    fi->keep_cache = node.kind != NODE_LIVE;
    fi->direct_io = node.kind == NODE_LIVE;
    fuse_reply_open(req, fi);
}

static void serve_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct server *s = server_of(req);

    (void)ino;
    status_count(&s->status, REQUEST_OPEN);
    if (s->no_open) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    fi->keep_cache = 1;
    fi->cache_readdir = 1;
    fuse_reply_open(req, fi);
}

/* The reading thread's own buffer, NULL without memory. */
static uint8_t *thread_buffer(struct server *s)
{
    uint8_t *buffer = pthread_getspecific(s->buffer);

    if (buffer)
        return buffer;
    buffer = malloc(READ_MAX);
    if (buffer && pthread_setspecific(s->buffer, buffer) != 0) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

/* A read says how far the reader of a plan is; told before it waits for anything. */
static void tell_read(struct server *s, const struct node *node, uint64_t end)
{
    unsigned what;

    if (node->kind != NODE_BATCH && node->kind != NODE_SAMPLE)
        return;
    what = active_plans_read(s->active_plans, node, end);
    if (!what)
        return;
    push_kick(s->push);
    if (s->needs)
        stage_needs_changed(s->setup.stage, what & ACTIVE_JUMPED);
}

/* Is it a file of the last batch or sample? */
static bool is_last(const struct node *node)
{
    return node->number + 1 == node_units(node);
}

/* Bytes of a file were read: when that was all of it they are free to go, and with the last file
 * the epoch is over. */
static void tell_given(struct server *s, const struct node *node, uint64_t off, size_t n,
                       size_t asked)
{
    const struct view_cancel none = {0};
    uint64_t size = n < asked ? off + n : UINT64_MAX;

    if ((node->kind != NODE_BATCH && node->kind != NODE_SAMPLE) || (!s->needs && !is_last(node)))
        return;
    if (view_size_is_near(node) && view_size(s->view, node, &none, &size, NULL) < 0)
        return;
    active_plans_given(s->active_plans, node, off, n, size);
}

/* With keep=once: what was pushed has been used with that. */
static enum missing_used how_used(const struct deadline *deadline, const struct node *node,
                                  uint64_t off, uint64_t len)
{
    if (!deadline->missing || !deadline->missing->uses)
        return MISSING_UNUSED;
    return (node->kind == NODE_BATCH || node->kind == NODE_SAMPLE) &&
                   active_plans_push_used(deadline->server->active_plans, node, off, len)
               ? MISSING_USED_AGAIN
               : MISSING_USED;
}

void serve_announce(struct server *s, const struct catalog_item *item)
{
    const struct plan_entry *plan;

    if (!item->ds || dataset_state(item->ds) != DATASET_READY)
        return;
    for (size_t i = 0; i < s->setup.options->n_plans && (plan = tree_plan(s->tree, item, i)); i++)
        active_plans_announce(s->active_plans, plan);
    if (s->needs && s->setup.options->n_plans)
        stage_needs_changed(s->setup.stage, false);
}

static void answer_read(struct server *s, fuse_req_t req, const struct call *call,
                        struct deadline *deadline)
{
    size_t len = (size_t)min_u64(call->size, READ_MAX), n = 0;
    uint8_t *buffer = thread_buffer(s);
    uint64_t off = (uint64_t)call->off;
    struct diag d = DIAG_INIT;
    struct node node = {0};
    int r = buffer && call->off >= 0 ? tree_node(s->tree, call->ino, &node) : -ENOMEM;

    if (r == 0 && !call->rounds)
        tell_read(s, &node, off + len);
    if (r == 0 && (node_is_folder(&node) || node.kind == NODE_PLAN_LINK))
        r = -EINVAL;
    else if (r == 0 && node.kind == NODE_LIVE)
        r = status_read(&s->status, (enum live)node.number, node.look, off, len, buffer, &n);
    else if (r == 0)
        r = view_read(s->view, &node, off, len, buffer, &n, &deadline->view, &d);
    if (park(deadline, call, NULL, r))
        return;
    if (r < 0) {
        fail(s, &node, r, &d);
        fuse_reply_err(req, kernel_errno(r));
        return;
    }
    atomic_fetch_add_explicit(&s->status.bytes_served, n, memory_order_relaxed);
    deadline->used = how_used(deadline, &node, off, n);
    tell_given(s, &node, off, n, len);
    if (!off)
        promises_read(s->promises, s->view, &node, &s->status);
    fuse_reply_buf(req, (const char *)buffer, n);
}

static void serve_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.kind = CALL_READ, .ino = ino, .size = size, .off = off});
}

/* Entry number index of a listing: ".", "..", then what is there. */
static int list_entry(struct server *s, const struct node *folder, uint64_t index, struct node *ret,
                      char ret_name[static TREE_NAME_SIZE])
{
    if (index >= 2)
        return tree_list(s->tree, folder, index - 2, ret, ret_name);
    snprintf(ret_name, TREE_NAME_SIZE, "%s", index ? ".." : ".");
    *ret = *folder;
    return 0;
}

/* Add one entry to the reply, with its attributes if they are at hand. Returns the bytes it takes;
 * more than room: it does not fit. */
static size_t put_entry(fuse_req_t req, const struct node *node, const char *name, char *buffer,
                        size_t capacity, uint64_t next, bool plus)
{
    const struct stat bare = {.st_ino = node->ino, .st_mode = type_of(node)};
    struct fuse_entry_param entry = {.attr = bare};
    struct server *s = server_of(req);
    bool is_dots = name[0] == '.' && (!name[1] || !strcmp(name, ".."));

    if (!plus)
        return fuse_add_direntry(req, buffer, capacity, name, &bare, (off_t)next);
    if (!is_dots && tree_is_open(s->tree, node) && view_size_is_near(node) &&
        node_entry(s, node, NULL, &entry, NULL) < 0)
        entry = (struct fuse_entry_param){.attr = bare};
    return fuse_add_direntry_plus(req, buffer, capacity, name, &entry, (off_t)next);
}

static void answer_list(struct server *s, fuse_req_t req, const struct call *call,
                        struct deadline *deadline)
{
    size_t capacity = (size_t)min_u64(call->size, READ_MAX), used = 0;
    char *buffer = (char *)thread_buffer(s), name[TREE_NAME_SIZE];
    struct node folder = {0}, node;
    int r = buffer ? tree_node(s->tree, call->ino, &folder) : -ENOMEM;

    if (r == 0 && !node_is_folder(&folder))
        r = -ENOTDIR;
    for (uint64_t index = (uint64_t)call->off; r == 0; index++) {
        size_t n;

        r = list_entry(s, &folder, index, &node, name);
        if (r == 0)
            r = refused_in_list(s, &node, used > 0, &deadline->view);
        if (r < 0)
            break;
        if (r > 0) { /* the next one */
            r = 0;
            continue;
        }
        n = put_entry(req, &node, name, buffer + used, capacity - used, index + 1,
                      call->kind == CALL_LIST_PLUS);
        if (n > capacity - used)
            break;
        used += n;
    }
    /* "." and ".." are there at once, and what is known; the rest is asked for again. */
    if ((r == -EAGAIN || (r == -EINTR && deadline->spent)) && used)
        r = 0;
    if (park(deadline, call, folder.item, r))
        return;
    if (r < 0 && r != -ENOENT)
        fuse_reply_err(req, kernel_errno(r));
    else
        fuse_reply_buf(req, buffer, used);
}

static void serve_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                          struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.kind = CALL_LIST, .ino = ino, .size = size, .off = off});
}

static void serve_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                              struct fuse_file_info *fi)
{
    (void)fi;
    serve_first(req, &(struct call){.kind = CALL_LIST_PLUS, .ino = ino, .size = size, .off = off});
}

static void serve_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct server *s = server_of(req);
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};
    const struct catalog *catalog = s->setup.catalog;
    uint64_t bytes = 0;

    (void)ino;
    status_count(&s->status, REQUEST_OTHER);
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;
        bool counts = ds && !ds->shares_blobs;

        for (unsigned k = 0; counts && k < ds->n_blobs; k++)
            bytes += ds->blob[k]->size;
    }
    st.f_blocks = ceil_div(bytes, 4096);
    fuse_reply_statfs(req, &st);
}

static int find_attribute(struct server *s, const struct node *node, const char *name,
                          const struct view_cancel *deadline, struct text *ret)
{
    /* ls asks each file for these; told that nobody here has them, it stops. */
    if (!strncmp(name, "system.", 7) || !strncmp(name, "security.", 9))
        return -EOPNOTSUPP;
    for (unsigned i = 0; i < N_ATTRIBUTES; i++)
        if (!strcmp(name, attribute_names[i]))
            return view_attribute(s->view, node, (enum attribute)i, deadline, ret);
    return -ENODATA;
}

/* The two-step protocol of getxattr and listxattr: size 0 asks how long it is. */
static void reply_attribute(fuse_req_t req, const struct text *t, size_t size)
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

static void answer_getxattr(struct server *s, fuse_req_t req, const struct call *call,
                            struct deadline *deadline)
{
    AUTO_TEXT struct text t = {0};
    struct node node;
    int r = tree_node(s->tree, call->ino, &node);

    if (r == 0)
        r = find_attribute(s, &node, call->name, &deadline->view, &t);
    if (r == 0)
        reply_attribute(req, &t, call->size);
    else if (!park(deadline, call, NULL, r))
        fuse_reply_err(req, kernel_errno(r));
}

static void serve_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    serve_first(req, &(struct call){.kind = CALL_GETXATTR, .ino = ino, .name = name, .size = size});
}

static void serve_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct server *s = server_of(req);
    AUTO_TEXT struct text t = {0};
    struct node node;
    int r;

    status_count(&s->status, REQUEST_LISTXATTR);
    r = tree_node(s->tree, ino, &node);
    for (unsigned i = 0; r == 0 && i < N_ATTRIBUTES; i++)
        if (view_has_attribute(&node, (enum attribute)i))
            text_add_bytes(&t, attribute_names[i], strlen(attribute_names[i]) + 1);
    if (r < 0)
        fuse_reply_err(req, kernel_errno(r));
    else
        reply_attribute(req, &t, size);
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
    status_count(&server_of(req)->status, REQUEST_IOCTL);
    fuse_reply_err(req, ENOTTY);
}

void serve_call(struct server *s, fuse_req_t req, const struct call *call, int64_t until)
{
    static void (*const answers[N_CALLS])(struct server * s, fuse_req_t req,
                                          const struct call *call, struct deadline *deadline) = {
        [CALL_LOOKUP] = answer_lookup,  [CALL_GETATTR] = answer_getattr,
        [CALL_READ] = answer_read,      [CALL_LIST] = answer_list,
        [CALL_LIST_PLUS] = answer_list, [CALL_GETXATTR] = answer_getxattr,
    };
    struct deadline deadline;
    struct missing_ranges missing, *before;

    deadline_init(&deadline, s, req, until);
    if (!s->setup.stage) {
        answers[call->kind](s, req, call, &deadline);
        return;
    }
    missing_init(&missing, call->rounds < ROUNDS_MOST);
    missing.again = call->rounds > 0;
    missing.uses = call->kind == CALL_READ && s->setup.options->source.stage.keep == STAGE_ONCE;
    missing.cancelled = deadline_ends;
    missing.ctx = &deadline;
    deadline.missing = &missing;
    before = missing_set(&missing);
    answers[call->kind](s, req, call, &deadline);
    missing_set(before);
    missing_use(&missing, deadline.used);
    missing_release(&missing);
}

void serve_failed(struct server *s, fuse_req_t req, const struct call *call, int error,
                  const struct diag *reason)
{
    struct node node;

    if (tree_node(s->tree, call->ino, &node) == 0)
        fail(s, &node, error, reason);
    fuse_reply_err(req, kernel_errno(error));
}

const struct fuse_lowlevel_ops serve_operations = {
    .init = serve_init,
    .lookup = serve_lookup,
    .getattr = serve_getattr,
    .readlink = serve_readlink,
    .open = serve_open,
    .read = serve_read,
    .opendir = serve_opendir,
    .readdir = serve_readdir,
    .readdirplus = serve_readdirplus,
    .statfs = serve_statfs,
    .getxattr = serve_getxattr,
    .listxattr = serve_listxattr,
    .ioctl = serve_ioctl,
};
