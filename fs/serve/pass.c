#include "fs/serve/pass.h"

#include <errno.h>
#include <linux/capability.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/search.h"
#include "fs/log/log.h"
#include "fs/tree/view.h"

#define LARGE (UINT64_C(1) << 20) /* bytes of a file from which on a request for each open pays */

struct passed_file {
    uint64_t ino; /* first: the key */
    int backing;  /* 0: none, for as long as it is open */
    size_t opens;
};

/* ---- is it worth it? ---- */

bool pass_has_right(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &head, data) == 0 &&
           data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

/* Are at least half of the bytes in samples that are large files of their own? */
static bool has_large_files(const struct catalog *catalog)
{
    uint64_t large = 0, all = 0;

    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;

        for (unsigned k = 0; ds && !ds->shares_blobs && k < ds->n_blobs; k++) {
            all += ds->blob[k]->size;
            large += blob_in_files(ds->blob[k], LARGE);
        }
    }
    return large && large >= all / 2;
}

void pass_init(struct pass *p, enum open_mode mode, const struct catalog *catalog,
               struct open_state *state)
{
    const char *reason = NULL;

    lock_init(&p->lock);
    p->state = state;
    if (mode == OPEN_CACHED)
        reason = "passthrough=off";
    else if (mode == OPEN_AUTO && !has_large_files(catalog))
        reason = "less than half of the bytes are in samples that are local files of 1 MiB or more";
    else if (!pass_has_right())
        reason = "epochfs runs without CAP_SYS_ADMIN";
    p->wanted = !reason;
    atomic_store(&state->reason, reason);
    if (mode == OPEN_PASS && reason)
        log_warning("passthrough=on: all files are read through epochfs: %s", reason);
}

void pass_offered(struct pass *p, bool offered)
{
    if (!p->wanted)
        return;
    atomic_store(&p->state->passes, offered);
    if (offered) {
        log_info("the kernel reads files of this machine itself, where they are shown as they are");
        return;
    }
    atomic_store(&p->state->reason,
                 "the kernel has no passthrough (Linux 6.9 and later, CONFIG_FUSE_PASSTHROUGH)");
    log_info("all files are read through epochfs: %s", atomic_load(&p->state->reason));
}

/* ---- files that are open ---- */

/* Count another open of a file that is open already. False: it is not. */
static bool pass_join(struct pass *p, uint64_t ino, int *ret_backing)
{
    struct passed_file **found;
    LOCK_SCOPE(&p->lock);

    found = tfind(&ino, &p->file, search_compare);
    if (!found)
        return false;
    (*found)->opens++;
    *ret_backing = (*found)->backing;
    return true;
}

/* Count the first open of a file, for which the kernel keeps that backing file. If another thread
 * was faster, the file has that one's. 0 or -ENOMEM. */
static int pass_add(struct pass *p, uint64_t ino, int *backing)
{
    AUTO_FREE struct passed_file *made = calloc(1, sizeof(*made));
    int opened = *backing;
    struct passed_file **place = NULL;

    if (made) {
        LOCK_SCOPE(&p->lock);

        made->ino = ino;
        made->backing = opened;
        place = tsearch(made, &p->file, search_compare);
        if (place) {
            (*place)->opens++;
            *backing = (*place)->backing;
            if (*place == made)
                made = NULL;
        }
    }
    if (opened && (!place || made))
        p->kernel.close(p->kernel.ctx, opened);
    return place ? 0 : -ENOMEM;
}

/* ELOOP is not about links here. */
static const char *refusal_text(int error)
{
    return error == -ELOOP ? "its file system lies on another one" : strerror(-error);
}

/* The kernel keeps no file, or not this one. 0: so the daemon serves it; -ENOSYS: so it serves all.
 */
static int pass_refused(struct pass *p, const struct node *node, int error)
{
    bool all = error == -EPERM || error == -EOPNOTSUPP || error == -ENOTTY || error == -ENOSYS;

    if (all && !atomic_load(&p->state->opens)) {
        atomic_store(&p->state->reason, "the kernel refuses to read files itself");
        if (atomic_exchange(&p->state->passes, false))
            log_info("all files are read through epochfs: the kernel refuses to read them itself: "
                     "%s",
                     strerror(-error));
        return -ENOSYS;
    }
    log_line(atomic_fetch_add(&p->refusals, 1) ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
             "%s: the kernel cannot read it by itself: %s; it is read through epochfs",
             node->item ? node->item->name : "", refusal_text(error));
    return 0;
}

int pass_opened(struct pass *p, const struct node *node, int *ret_backing, bool *ret_counts,
                struct diag *d)
{
    AUTO_CLOSE int fd = -1;
    struct diag reason = DIAG_INIT;
    int backing = 0, r = 0;

    *ret_backing = 0;
    *ret_counts = false;
    if (pass_join(p, node->ino, &backing)) {
        r = view_verify_file(node, &reason);
        if (r == -ESTALE) { /* those that have it open read the old one to its end */
            pass_closed(p, node->ino);
            return diag_set(d, r, "%s", reason.text);
        }
    } else {
        r = view_open_file(node, &fd, &reason);
        if (r == -EOPNOTSUPP) /* it never has one */
            return 0;
        if (r == -ESTALE)
            return diag_set(d, r, "%s", reason.text);
        if (r == 0)
            r = backing = p->kernel.open(p->kernel.ctx, fd);
        if (r < 0) {
            backing = 0; /* also for opens that come while this one is open */
            r = r == -EAGAIN ? 0 : pass_refused(p, node, r);
        }
        r = r < 0 ? r : pass_add(p, node->ino, &backing);
        if (r < 0)
            return r;
    }
    if (backing)
        atomic_fetch_add_explicit(&p->state->opens, 1, memory_order_relaxed);
    *ret_backing = backing;
    *ret_counts = true;
    return 0;
}

void pass_closed(struct pass *p, uint64_t ino)
{
    AUTO_FREE struct passed_file *last = NULL;

    {
        struct passed_file **found;
        LOCK_SCOPE(&p->lock);

        found = tfind(&ino, &p->file, search_compare);
        if (!found || --(*found)->opens)
            return;
        last = *found;
        tdelete(&ino, &p->file, search_compare);
    }
    if (last->backing)
        p->kernel.close(p->kernel.ctx, last->backing);
}

void pass_release(struct pass *p)
{
    while (p->file) {
        struct passed_file *file = *(struct passed_file **)p->file;

        tdelete(file, &p->file, search_compare);
        free(file);
    }
    lock_release(&p->lock);
}
