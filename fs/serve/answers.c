/* Answers of the requests that may take long or have to wait: lookup, getattr, read, listings,
 * getxattr. A serving thread tries for a short time. A request that is not answered by then is
 * parked, see fs/serve/slow.c, and answered again from the start.
 *
 * An answer either replies once or parks its request: after that the request is not ours. */
#include "fs/serve/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "fs/log/log.h"

#define REPORTED_BAD   20 /* read errors of samples that are logged as errors, per dataset; */
#define REPORTED_OTHER 2  /* of other read errors */

/* ---- deadlines ---- */

/* How long a request may take, and what it has found missing. */
struct deadline {
    struct server *server;
    fuse_req_t req;
    int64_t until; /* monotonic_ns() */
    bool spent;
    struct read_context rc; /* ends with the deadline; with a stage it collects missing ranges */
};

static bool deadline_ends(void *ctx)
{
    struct deadline *deadline = ctx;

    if (fuse_req_interrupted(deadline->req) || deadline->server->slow.ending)
        return true;
    deadline->spent = monotonic_ns() > deadline->until;
    return deadline->spent;
}

static void deadline_init(struct deadline *ret, struct server *s, fuse_req_t req,
                          const struct call *call, int64_t until)
{
    *ret = (struct deadline){.server = s, .req = req, .until = until};
    read_context_init(&ret->rc, s->setup.stage && call->rounds < ROUNDS_MOST);
    ret->rc.again = call->rounds > 0;
    ret->rc.cancelled = deadline_ends;
    ret->rc.ctx = ret;
}

/* Park a request that ended with r, if it lacked time, bytes or its dataset, item. False: it lacked
 * none of them. */
static bool park(struct deadline *deadline, const struct call *call,
                 const struct catalog_item *item, int r)
{
    if (r == -EAGAIN && deadline->server->setup.stage && (deadline->rc.n || !item))
        slow_wait(deadline->server, deadline->req, call, &deadline->rc);
    else if (r == -EAGAIN && item)
        slow_park(deadline->server, deadline->req, call, item);
    else if (r == -EINTR && deadline->spent)
        slow_park(deadline->server, deadline->req, call, NULL);
    else
        return false;
    return true;
}

/* ---- failures ---- */

/* The first failures in a dataset are logged as errors, later ones for debugging: a job reads on,
 * thousands of times. Bad samples differ from each other, so more of them are logged as errors than
 * failures of a whole dataset. */
static enum log_level failure_level(struct server *s, const struct node *node, int r)
{
    bool of_samples = r == -EBADMSG || r == -EDOM;
    unsigned most = of_samples ? REPORTED_BAD : REPORTED_OTHER, reported;

    if (!node->item)
        return LOG_LEVEL_ERROR;
    reported = atomic_fetch_add(&s->reported[node->item - s->setup.catalog->item][of_samples], 1);
    if (reported + 1 == most && most > 1)
        log_info("%s: further read errors of it are logged only with log_level=debug",
                 node->item->name);
    return reported < most ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG;
}

/* Report that a read, or a look at a file that cannot be read, has failed. */
static void answers_fail(struct server *s, const struct node *node, int r, const struct diag *d)
{
    char path[TREE_NAME_SIZE * 4] = "";

    if (r == -EINTR)
        return;
    status_read_error(&s->engine.status, diag_text(d, r));
    if (node->item)
        item_path(node->item, path, sizeof(path));
    /* A dataset of one file has that file's name. */
    if (!strncmp(diag_text(d, r), path, strlen(path)))
        path[0] = '\0';
    log_line(failure_level(s, node, r), "read failed: %s%s%s", path, *path ? ": " : "",
             diag_text(d, r));
}

/* Report once that pictures are zeros: that is no failure, but a training should not learn them. */
static void note_zeros(struct server *s)
{
    const struct made_counts *pictures = s->engine.status.pictures;

    if (pictures && atomic_load_explicit(&pictures->zeroed, memory_order_relaxed) &&
        !atomic_exchange(&s->said_zeros, true))
        log_warning("batches have pictures of zeros for files that cannot be decoded, as "
                    "on_error=zero says: image_ok is false for them. epochfs info --check lists "
                    "the files; epochfs status counts");
}

/* ---- answers ---- */

static int answers_look_up(struct server *s, fuse_req_t req, const struct node *parent,
                           const char *name, struct node *ret, struct diag *d,
                           uint64_t *ret_changed)
{
    uid_t user = fuse_req_ctx(req)->uid;
    int r = tree_lookup(s->engine.tree, parent, name, user && user != geteuid() ? user : TREE_OWNER,
                        ret, ret_changed, d);

    if (r == -ENFILE)
        diag_set(d, r,
                 "this mount has opened %d plans and ranges of epochs, and cannot open more; mount "
                 "it again",
                 PLANS_MAX);
    /* Before the reply, so that a reader that waits for it gets a new listing. */
    if (*ret_changed)
        atomic_fetch_add_explicit(&s->engine.status.plans_opened, 1, memory_order_relaxed);
    return r;
}

static void answer_lookup(struct server *s, fuse_req_t req, const struct call *call,
                          struct deadline *deadline)
{
    struct fuse_entry_param entry = {.entry_timeout = FOREVER};
    struct diag d = DIAG_INIT, size_reason = DIAG_INIT;
    struct node parent = {0}, node = {0};
    uint64_t changed = 0;
    bool is_meant = false;
    int r = tree_node(s->engine.tree, call->ino, &parent);

    if (r == 0)
        r = answers_look_up(s, req, &parent, call->name, &node, &d, &changed);
    if (r == 0 && node.type == NODE_LIVE)
        r = status_snapshot_new(&s->engine.status, (enum live)node.number, &node.snapshot);
    if (r == 0)
        r = serve_entry(&deadline->rc, s, &node, &entry, &size_reason);
    if ((r == -ENOENT || r == -ENFILE) && d.set && parent.item)
        is_meant = refused_name(s, &parent, call->name, r, &d);
    else if (r < 0 && d.set)
        log_debug("%s: %s", call->name, d.text);
    if (r == 0 && changed && (node.type == NODE_PLAN || node.type == NODE_PLAN_LINK))
        engine_note_plan(&s->engine, node.plan);
    engine_grown(&s->engine, changed);
    if (park(deadline, call, parent.item, r))
        return;
    if (r < 0 && size_reason.set)
        answers_fail(s, &node, r, &size_reason);
    if (r == -EDOM)
        engine_refused_file(&s->engine, &node, &size_reason);
    /* A name that is missing stays missing, and the kernel may remember that; but who mistypes a
     * plan again finds the reason in the status again. */
    if (r == 0 || (r == -ENOENT && !is_meant))
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, serve_errno(r));
}

static void answer_getattr(struct server *s, fuse_req_t req, const struct call *call,
                           struct deadline *deadline)
{
    struct diag d = DIAG_INIT;
    struct node node = {0};
    struct stat st;
    int r = tree_node(s->engine.tree, call->ino, &node);

    if (r == 0)
        r = engine_stat(&deadline->rc, &s->engine, &node, &st, &d);
    if (r == 0) {
        fuse_reply_attr(req, &st, serve_timeout(&node));
    } else if (!park(deadline, call, NULL, r)) {
        if (d.set)
            answers_fail(s, &node, r, &d);
        fuse_reply_err(req, serve_errno(r));
    }
}

/* The serving thread's own buffer; NULL: no memory. */
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
    if (buffer)
        atomic_fetch_add(&s->n_buffers, 1);
    return buffer;
}

/* Report how far the reader of a plan is, before its read waits for anything. */
static void answers_read_begins(struct server *s, const struct node *node, uint64_t end)
{
    if (engine_read_begins(&s->engine, node, end))
        push_kick(s->push);
}

static void answer_read(struct server *s, fuse_req_t req, const struct call *call,
                        struct deadline *deadline)
{
    size_t len = (size_t)min_u64(call->size, READ_MAX);
    uint8_t *buffer = thread_buffer(s);
    struct view_loan loan = {.bytes = buffer};
    uint64_t off = (uint64_t)call->off;
    struct diag d = DIAG_INIT;
    struct node node = {0};
    int r = buffer && call->off >= 0 ? tree_node(s->engine.tree, call->ino, &node) : -ENOMEM;

    if (r == 0 && !call->rounds)
        answers_read_begins(s, &node, off + len);
    if (r == 0 && (node_is_folder(&node) || node.type == NODE_PLAN_LINK))
        r = -EINVAL;
    else if (r == 0 && node.type == NODE_LIVE)
        r = status_read(&s->engine.status, (enum live)node.number, node.snapshot, off, len, buffer,
                        &loan.len);
    else if (r == 0)
        r = view_lend(&deadline->rc, s->engine.open_files, &node, off, len, buffer, &loan, &d);
    if (park(deadline, call, NULL, r))
        return;
    if (r < 0) {
        answers_fail(s, &node, r, &d);
        fuse_reply_err(req, serve_errno(r));
        return;
    }
    atomic_fetch_add_explicit(&s->engine.status.bytes_served, loan.len, memory_order_relaxed);
    note_zeros(s);
    engine_read_ends(&s->engine, &node, off, loan.len, len);
    if (!off)
        promises_read(s->promises, s->engine.open_files, &node, &s->engine.status);
    fuse_reply_buf(req, (const char *)loan.bytes, loan.len);
    view_give_back(&loan);
}

/* Entry number index of a listing: ".", "..", then what the folder has. */
static int list_entry(struct server *s, const struct node *folder, uint64_t index, struct node *ret,
                      char ret_name[static TREE_NAME_SIZE])
{
    if (index >= 2)
        return tree_list(s->engine.tree, folder, index - 2, ret, ret_name);
    snprintf(ret_name, TREE_NAME_SIZE, "%s", index ? ".." : ".");
    *ret = *folder;
    return 0;
}

/* Add one entry to the reply, with its attributes if they are at hand. Returns the bytes it takes;
 * more than capacity: it does not fit. */
static size_t put_entry(fuse_req_t req, const struct node *node, const char *name, char *buffer,
                        size_t capacity, uint64_t next, bool plus)
{
    const struct stat bare = {.st_ino = node->ino, .st_mode = engine_type(node)};
    struct fuse_entry_param entry = {.attr = bare};
    struct server *s = server_of(req);
    bool is_dots = name[0] == '.' && (!name[1] || !strcmp(name, ".."));

    if (!plus)
        return fuse_add_direntry(req, buffer, capacity, name, &bare, (off_t)next);
    if (!is_dots && tree_is_open(s->engine.tree, node) && view_size_is_near(node) &&
        serve_entry(READ_WAITS, s, node, &entry, NULL) < 0)
        entry = (struct fuse_entry_param){.attr = bare};
    return fuse_add_direntry_plus(req, buffer, capacity, name, &entry, (off_t)next);
}

static void answer_list(struct server *s, fuse_req_t req, const struct call *call,
                        struct deadline *deadline)
{
    size_t capacity = (size_t)min_u64(call->size, READ_MAX), used = 0;
    char *buffer = (char *)thread_buffer(s), name[TREE_NAME_SIZE];
    struct node folder = {0}, node;
    int r = buffer ? tree_node(s->engine.tree, call->ino, &folder) : -ENOMEM;

    if (r == 0 && !node_is_folder(&folder))
        r = -ENOTDIR;
    for (uint64_t index = (uint64_t)call->off; r == 0; index++) {
        size_t n;

        r = list_entry(s, &folder, index, &node, name);
        if (r == 0)
            r = engine_refused_in_list(&deadline->rc, &s->engine, &node, used > 0);
        if (r < 0)
            break;
        if (r > 0) { /* leave this one out */
            r = 0;
            continue;
        }
        n = put_entry(req, &node, name, buffer + used, capacity - used, index + 1,
                      call->type == CALL_LIST_PLUS);
        if (n > capacity - used)
            break;
        used += n;
    }
    /* Reply at once what is known, if only "." and ".."; the kernel asks for the rest again. */
    if ((r == -EAGAIN || (r == -EINTR && deadline->spent)) && used)
        r = 0;
    if (park(deadline, call, folder.item, r))
        return;
    if (r < 0 && r != -ENOENT)
        fuse_reply_err(req, serve_errno(r));
    else
        fuse_reply_buf(req, buffer, used);
}

/* Why a name in that folder is refused, for programs: the status has only the last one. */
static int find_reason(struct server *s, fuse_req_t req, const struct node *folder,
                       const char *name, struct text *ret)
{
    struct diag d = DIAG_INIT;
    uint64_t changed = 0;
    struct node node;
    int r = answers_look_up(s, req, folder, name, &node, &d, &changed);

    engine_grown(&s->engine, changed);
    if (r == 0 || (r != -EAGAIN && !d.set))
        return -ENODATA;
    if (r == -EAGAIN)
        return r;
    text_add(ret, "%s", d.text);
    return ret->failed ? -ENOMEM : 0;
}

static int find_attribute(struct read_context *rc, struct server *s, fuse_req_t req,
                          const struct node *node, const char *name, struct text *ret)
{
    /* ls asks each file for these; after one EOPNOTSUPP it stops. */
    if (!strncmp(name, "system.", 7) || !strncmp(name, "security.", 9))
        return -EOPNOTSUPP;
    for (unsigned i = 0; i < N_ATTRIBUTES; i++)
        if (!strcmp(name, attribute_names[i]))
            return view_attribute(rc, s->engine.open_files, node, (enum attribute)i, ret);
    if (!strncmp(name, ATTRIBUTE_WHY, strlen(ATTRIBUTE_WHY)) &&
        (node->type == NODE_BATCHES || node->type == NODE_PLAN))
        return find_reason(s, req, node, name + strlen(ATTRIBUTE_WHY), ret);
    return -ENODATA;
}

static void answer_getxattr(struct server *s, fuse_req_t req, const struct call *call,
                            struct deadline *deadline)
{
    AUTO_TEXT struct text t = {0};
    struct node node = {0};
    int r = tree_node(s->engine.tree, call->ino, &node);

    if (r == 0)
        r = find_attribute(&deadline->rc, s, req, &node, call->name, &t);
    if (r == 0)
        serve_reply_attribute(req, &t, call->size);
    else if (!park(deadline, call, node.type == NODE_BATCHES ? node.item : NULL, r))
        fuse_reply_err(req, serve_errno(r));
}

/* A file that the kernel reads by itself: all of it is about to be read, as far as anybody knows.
 */
static void tell_passed(struct server *s, const struct node *node)
{
    uint64_t size;

    if (view_size(READ_WAITS, s->engine.open_files, node, &size, NULL) < 0)
        return;
    answers_read_begins(s, node, size);
    engine_read_ends(&s->engine, node, 0, (size_t)size, (size_t)size + 1);
    promises_read(s->promises, s->engine.open_files, node, &s->engine.status);
}

static void answer_open(struct server *s, fuse_req_t req, const struct call *call,
                        struct deadline *deadline)
{
    struct diag d = DIAG_INIT;
    struct node node = {0};
    bool counts = false;
    int backing = 0, r = tree_node(s->engine.tree, call->ino, &node);

    (void)deadline;
    if (r == 0 && pass_is_on(&s->pass))
        r = pass_opened(&s->pass, &node, &backing, &counts, &d);
    if (r == 0) {
        if (backing)
            tell_passed(s, &node);
        r = kernel_pass_reply(req, backing, counts, node.type == NODE_LIVE);
        if (r < 0 && counts) /* the call was interrupted: no close will come */
            pass_closed(&s->pass, node.ino);
        return;
    }
    if (d.set)
        answers_fail(s, &node, r, &d);
    fuse_reply_err(req, r == -ENOSYS ? ENOSYS : serve_errno(r));
}

void serve_call(struct server *s, fuse_req_t req, const struct call *call, int64_t until)
{
    static void (*const answers[N_CALLS])(struct server * s, fuse_req_t req,
                                          const struct call *call, struct deadline *deadline) = {
        [CALL_LOOKUP] = answer_lookup,  [CALL_GETATTR] = answer_getattr,
        [CALL_READ] = answer_read,      [CALL_LIST] = answer_list,
        [CALL_LIST_PLUS] = answer_list, [CALL_GETXATTR] = answer_getxattr,
        [CALL_OPEN] = answer_open,
    };
    struct deadline deadline;

    deadline_init(&deadline, s, req, call, until);
    answers[call->type](s, req, call, &deadline);
    read_context_release(&deadline.rc);
}

void serve_failed(struct server *s, fuse_req_t req, const struct call *call, int error,
                  const struct diag *reason)
{
    struct node node;

    if (tree_node(s->engine.tree, call->ino, &node) == 0)
        answers_fail(s, &node, error, reason);
    fuse_reply_err(req, serve_errno(error));
}

const struct slow_ends serve_parked = {.answer = serve_call, .fail = serve_failed};
