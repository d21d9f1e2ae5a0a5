/* Paths to nodes, and reads that wait for missing bytes: for callers that have a thread to wait in.
 */
#include "fs/engine/engine.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/read_context.h"

#define ROUNDS_MOST 6 /* then it waits for each piece, and so ends even if blocks are dropped */

static int reads_one_pass(struct engine *e, const struct engine_read *read, unsigned round,
                          struct diag *d)
{
    struct read_context rc;
    struct diag why = DIAG_INIT;
    int64_t since;
    int r;

    read_context_init(&rc, e->setup.stage && round < ROUNDS_MOST);
    rc.again = round > 0;
    rc.cancelled = read->cancelled;
    rc.ctx = read->ctx;
    r = read->pass(&rc, read->what, &why);
    if (r == -EAGAIN && rc.n) {
        since = monotonic_ns();
        r = missing_wait(&rc, read->ahead, &why);
        if (!read->ahead)
            stage_waited(e->setup.stage, monotonic_ns() - since);
        r = r == 0 ? -EAGAIN : r;
    }
    read_context_release(&rc);
    return r < 0 && r != -EAGAIN && why.set ? diag_set(d, r, "%s", why.text) : r;
}

int engine_read_waiting(struct engine *e, const struct engine_read *read, struct diag *d)
{
    unsigned round = 0;
    int r;

    do
        r = reads_one_pass(e, read, round, d);
    while (r == -EAGAIN && round++ < ROUNDS_MOST);
    return r;
}

/* One step: the node called name in at, which becomes it. */
static int reads_step(struct engine *e, struct node *at, const char *name, struct diag *d)
{
    struct node next;
    uint64_t changed = 0;
    int r = tree_lookup(e->tree, at, name, TREE_OWNER, &next, &changed, d);

    if (changed)
        atomic_fetch_add_explicit(&e->status.plans_opened, 1, memory_order_relaxed);
    engine_grown(e, changed);
    if (r == 0 && next.type == NODE_PLAN_LINK)
        r = tree_lookup(e->tree, at, next.plan->name, TREE_OWNER, &next, NULL, d);
    if (r == 0)
        *at = next;
    return r;
}

int engine_find(struct engine *e, const char *path, struct node *ret, struct diag *d)
{
    char name[TREE_NAME_SIZE];
    int r = tree_node(e->tree, TREE_ROOT, ret);

    while (r == 0 && *path) {
        size_t len = strcspn(path, "/");

        if (len >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = '\0';
        if (len && strcmp(name, ".") != 0)
            r = node_is_folder(ret) ? reads_step(e, ret, name, d) : -ENOTDIR;
        path += len + (path[len] == '/');
    }
    return r;
}
