/* What stat() shows of a file or folder: type, owner, size and time. */
#include "fs/engine/engine.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"

static struct timespec attributes_time(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

mode_t engine_type(const struct node *node)
{
    if (node->type == NODE_PLAN_LINK)
        return S_IFLNK;
    return node_is_folder(node) ? S_IFDIR : S_IFREG;
}

/* Is anything hidden from some users? */
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

/* With allow_other, users may read what a dataset shows if they may read its source files, and list
 * a folder of the source if they may list that one. The texts about the mount count and name all of
 * it, so everybody may read them only if nothing is hidden from anybody. Without allow_other, only
 * the user who mounted gets here. */
static void attributes_add_owner(const struct engine *e, const struct node *node, struct stat *st)
{
    struct access access = {geteuid(), getegid(), 0444};
    bool is_source_folder = false;

    if (e->setup.options->allow_other) {
        const struct access *of_folder = tree_access(node);

        is_source_folder = of_folder != NULL;
        if (of_folder)
            access = *of_folder;
        else if (node->item)
            catalog_item_access(node->item, &access);
        else if (node->type == NODE_LIVE && hides_something(e->setup.catalog))
            access.mode = 0400;
    }
    st->st_uid = access.uid;
    st->st_gid = access.gid;
    if (S_ISDIR(st->st_mode) && !is_source_folder)
        access.mode |= (access.mode & 0444) >> 2;
    st->st_mode |= S_ISLNK(st->st_mode) ? 0777 : access.mode;
}

static struct timespec attributes_time_of(const struct engine *e, const struct node *node)
{
    const struct dataset *ds = node->item ? node->item->ds : NULL;
    struct timespec latest = {.tv_sec = e->status.started};

    if (node->type == NODE_BATCHES || node->type == NODE_PLAN)
        return attributes_time(atomic_load_explicit(&e->changed, memory_order_relaxed));
    for (unsigned i = 0; ds && i < ds->n_blobs; i++) {
        const struct timespec *t = &ds->blob[i]->mtime;

        if (!i || t->tv_sec > latest.tv_sec ||
            (t->tv_sec == latest.tv_sec && t->tv_nsec > latest.tv_nsec))
            latest = *t;
    }
    return latest;
}

int engine_stat(struct read_context *rc, struct engine *e, const struct node *node,
                struct stat *ret, struct diag *d)
{
    struct stat st = {.st_ino = node->ino, .st_mode = engine_type(node), .st_nlink = 1};
    struct timespec time = attributes_time_of(e, node);
    uint64_t size = 0;
    int64_t time_ns;
    int r = 0;

    if (S_ISDIR(st.st_mode))
        st.st_nlink = 2;
    else if (S_ISLNK(st.st_mode))
        size = strlen(node->plan->name);
    else if (node->type != NODE_LIVE)
        r = view_size(rc, e->open_files, node, &size, d);
    else if (!(r = status_snapshot_stat(&e->status, (enum live)node->number, node->snapshot, &size,
                                        &time_ns)))
        time = attributes_time(time_ns);
    if (r < 0)
        return r;
    attributes_add_owner(e, node, &st);
    st.st_mtim = st.st_ctim = st.st_atim = time;
    st.st_size = (off_t)size;
    st.st_blocks = (blkcnt_t)ceil_div(size, 512);
    st.st_blksize = 4096;
    *ret = st;
    return 0;
}
