#include "format/labels/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/blob.h"

#define STORE_TYPE "labels"

static void drop_file(struct labels *l)
{
    mapped_file_close(&l->map);
    label_making_free(l->making);
    l->making = NULL;
    if (l->file.fd > 0)
        kept_file_release(&l->file);
    l->file = (struct kept_file){.fd = -1};
    free(l->tables);
    l->tables = NULL;
    if (l->held)
        atomic_fetch_sub(&l->memory->used, l->held);
    l->held = 0;
}

void labels_release(struct labels *l)
{
    drop_file(l);
}

/* Map the file, which is whole, and check it. 0; -EBADMSG; or another -errno. */
static int use_file(struct labels *l)
{
    int r = mapped_file_open(l->file.fd, l->file.size, &l->map);

    if (r == 0)
        r = label_file_check(l->map.bytes, l->map.size, l->type, l->input->n, &l->arrays,
                             &l->tables);
    if (r == 0 && mapped_file_is_lost(&l->map))
        r = -EBADMSG;
    if (r == 0)
        l->state = LABELS_READY;
    return r;
}

/* ---- where it is made ---- */

static int no_memory_for(const struct labels *l, uint64_t bytes, struct diag *d)
{
    return diag_set(d, -EFBIG,
                    "%s: its index takes %llu bytes, and cannot be kept: %s; expected at most %llu "
                    "bytes of memory for such indexes; cache_dir=DIR gives it a disk",
                    l->input->name, (unsigned long long)bytes, diag_text(&l->why, -EOPNOTSUPP),
                    (unsigned long long)l->memory->limit);
}

/* A file that is in memory. */
static int begin_in_memory(struct labels *l, struct diag *d)
{
    uint64_t bytes = label_file_size(l->type, l->input->n, 0);
    uint64_t used = atomic_fetch_add(&l->memory->used, bytes);

    l->held = bytes;
    if (bytes > l->memory->limit || used > l->memory->limit - bytes)
        return no_memory_for(l, bytes, d);
    l->file.fd = memfd_create("epochfs labels", MFD_CLOEXEC);
    return l->file.fd < 0 ? -errno : 0;
}

/* Begin to make it, unless it is kept. 0: begun; 1: kept; -EAGAIN: another process makes it; or
 * -errno. */
static int begin_in_store(struct labels *l)
{
    int r;

    l->file.fd = -1;
    if (index_store_open(l->keep, STORE_TYPE, l->identity, &l->file) == 0)
        return 1;
    r = index_store_begin(l->keep, STORE_TYPE, l->identity, l->source, &l->file, &l->why);
    return r < 0 ? r : !l->file.making;
}

static int labels_begin(struct labels *l, struct diag *d)
{
    int r = l->not_kept ? 0 : begin_in_store(l);

    if (r == 1) {
        r = use_file(l);
        if (r == 0)
            return 1;
        drop_file(l);
        if (r != -EBADMSG)
            return r;
        index_store_remove(l->keep, STORE_TYPE, l->identity);
        return 0;
    }
    if (r < 0 && r != -EAGAIN && r != -ENOMEM) {
        diag_set(&l->why, r, "%s", strerror(-r));
        l->not_kept = true;
        r = 0;
    }
    if (r == 0 && l->not_kept)
        r = begin_in_memory(l, d);
    if (r == 0)
        r = label_making_new(l->type, l->input, &l->file, &l->making);
    if (r == 0)
        l->state = LABELS_MAKING;
    return r;
}

/* ---- making ---- */

static int labels_finish(struct labels *l, struct diag *d)
{
    int r = kept_file_commit(&l->file, d);

    if (r < 0)
        return r;
    label_making_free(l->making);
    l->making = NULL;
    r = use_file(l);
    /* The disk gives back other bytes than were written. */
    return r == -EBADMSG ? -EIO : r < 0 ? r : 1;
}

static bool may_pass(int r)
{
    return r == -EREMOTEIO || r == -EINTR || r == -ENOMEM || r == -EAGAIN || r == -EMFILE ||
           r == -ENFILE;
}

/* An error of the file that it is made in: it may have a place in memory. */
static bool is_of_file(const struct labels *l, int r)
{
    return !l->not_kept && (r == -ENOSPC || r == -EIO || r == -EDQUOT || r == -EFBIG);
}

static int labels_go_on(struct labels *l, struct read_context *rc)
{
    int r;

    if (l->state == LABELS_NEW) {
        r = labels_begin(l, &l->reason);
        if (r < 0 || l->state == LABELS_NEW)
            return r;
        if (r == 1)
            return 1;
    }
    r = label_making_step(l->making, rc, &l->reason);
    atomic_store_explicit(&l->done, label_making_done(l->making), memory_order_relaxed);
    return r == 1 ? labels_finish(l, &l->reason) : r;
}

int labels_step(struct labels *l, struct read_context *rc, struct diag *d)
{
    int r;

    if (l->state == LABELS_READY)
        return 1;
    if (l->state == LABELS_FAILED)
        return diag_set(d, l->failed, "%s", l->reason.text);
    r = labels_go_on(l, rc);
    if (r >= 0)
        return r;
    drop_file(l);
    l->state = LABELS_NEW;
    if (is_of_file(l, r)) {
        diag_set(&l->why, r, "%s", diag_text(&l->reason, r));
        l->reason.set = false;
        l->not_kept = true;
        return 0;
    }
    diag_set(d, r, "%s", diag_text(&l->reason, r));
    if (may_pass(r)) {
        l->reason.set = false;
        return r;
    }
    l->failed = r;
    diag_set(&l->reason, r, "%s: %s", l->input->name, strerror(-r));
    l->state = LABELS_FAILED;
    return r;
}
