/* A handle: calls that begin and end, their errors, and the paths that they name. */
#include "fs/library/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

/* ---- errors ---- */

static size_t handle_message_size(const struct epochfs_error *error)
{
    const size_t start = offsetof(struct epochfs_error, message);

    return error->size > start ? (size_t)min_u64(error->size - start, sizeof(error->message)) : 0;
}

int library_fail(struct epochfs_error *error, int code, const char *format, ...)
{
    va_list args;

    if (!error || error->size < offsetof(struct epochfs_error, message))
        return -1;
    error->code = code;
    if (handle_message_size(error)) {
        va_start(args, format);
        vsnprintf(error->message, handle_message_size(error), format, args);
        va_end(args);
        text_plain(error->message, "");
    }
    return -1;
}

int library_fail_for(struct epochfs_error *error, int r, const struct diag *d, const char *what)
{
    if (r == -EINTR) /* only closing cancels */
        return library_fail(error, ESHUTDOWN, "%s: the source was closed meanwhile",
                            what ? what : "read");
    if (d->set || !what)
        return library_fail(error, -r, "%s", diag_text(d, r));
    return library_fail(error, -r, "%s: %s", what, strerror(-r));
}

/* ---- shells ---- */

/* A shell whose source is closed, and that nothing points to but callers that are mistaken. */
void handle_free(struct epochfs *fs)
{
    if (!fs)
        return;
    pthread_cond_destroy(&fs->wake);
    lock_release(&fs->lock);
    free(fs);
}

void library_unref(struct epochfs *fs)
{
    static _Atomic(struct epochfs *) closed[CLOSED_KEPT];
    static _Atomic unsigned next;
    bool is_last;

    lock_take(&fs->lock);
    is_last = --fs->refs == 0;
    lock_drop(&fs->lock);
    if (is_last)
        handle_free(atomic_exchange(&closed[atomic_fetch_add(&next, 1) % CLOSED_KEPT], fs));
}

int library_enter(struct epochfs *fs, struct epochfs_error *error)
{
    bool is_mistake;

    if (!fs)
        return library_fail(error, EINVAL,
                            "expected a source that epochfs_open() has opened, got "
                            "NULL");
    if (fs->pid != getpid())
        return library_fail(error, ECHILD,
                            "this source was opened by process %ld, and this is its child, or a "
                            "child of that: open it here",
                            (long)fs->pid);
    lock_take(&fs->lock);
    if (!fs->closing) {
        fs->calls++;
        lock_drop(&fs->lock);
        return 0;
    }
    /* Another thread cannot know that it is late. */
    is_mistake = fs->is_closed && pthread_equal(fs->closer, pthread_self());
    lock_drop(&fs->lock);
    assert(!is_mistake && "a source is used after epochfs_close()");
    (void)is_mistake; /* without assertions */
    return library_fail(error, ESHUTDOWN, "the source is closed");
}

void library_leave(struct epochfs *fs)
{
    LOCK_SCOPE(&fs->lock);

    if (!--fs->calls && fs->closing)
        pthread_cond_broadcast(&fs->wake);
}

bool library_is_closing(void *ctx)
{
    return atomic_load_explicit(&((struct epochfs *)ctx)->closing, memory_order_relaxed);
}

/* ---- paths ---- */

/* Wait until the preparing thread answers those that wait for the item. 0 or its error. */
int handle_wait(struct epochfs *fs, const struct catalog_item *item, struct diag *d)
{
    struct library_answer *answer = &fs->answer[item - fs->opened.catalog.item];
    uint64_t turn;
    int r = 0;

    lock_take(&fs->lock);
    turn = answer->turn;
    if (!fs->has_preparer && !fs->closing)
        r = preparer_start(&fs->engine.preparer);
    fs->has_preparer = fs->has_preparer || r == 0;
    lock_drop(&fs->lock);
    if (r < 0)
        return r;
    preparer_ask(&fs->engine.preparer, item);
    lock_take(&fs->lock);
    while (!fs->closing && answer->turn == turn)
        lock_wait(&fs->lock, &fs->wake);
    r = fs->closing ? -EINTR : answer->error;
    if (r < 0 && r != -EINTR)
        diag_set(d, r, "%s", answer->reason.text);
    lock_drop(&fs->lock);
    return r;
}

int library_find(struct epochfs *fs, const char *path, struct node *ret, struct diag *d)
{
    int r;

    while ((r = engine_find(&fs->engine, path, ret, d)) == -EAGAIN && ret->item) {
        r = handle_wait(fs, ret->item, d);
        if (r < 0)
            return r;
    }
    return r;
}
