/* Requests that take long, such as a read that needs the checksum of a very large archive, or that
 * have to wait until a dataset is ready.
 *
 * A serving thread works on a request for a short time. A request that needs longer is parked here,
 * and a slow worker finishes it, so that everything else is answered meanwhile. No two requests for
 * one file are worked on at the same time: the second uses what the first has remembered. The
 * preparing thread (fs/engine/preparer.h) finishes the requests that wait for a dataset or labels.
 *
 *  A parked request:  QUEUED -> TAKEN     slow_take(), take_released()   by a thread, which replies
 *                     QUEUED -> released  slow_interrupted()   its reader has gone: EINTR at once
 *                     WAITING -> QUEUED   bytes_came()   the missing bytes are present, or failed
 *                     WAITING -> DEAD     slow_interrupted()   as above; bytes_came() frees it
 *
 * libfuse holds the request's own lock while it calls slow_interrupted(), which takes slow.lock. So
 * slow.lock is never held around fuse_req_interrupt_func(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "fs/serve/parts.h"

enum parked_state { PARKED_NEW, PARKED_QUEUED, PARKED_WAITING, PARKED_DEAD, PARKED_TAKEN };

struct parked {
    struct waiter waiter; /* first: bytes_came() gets its address */
    int64_t since;
    struct parked *next, *previous; /* in the queue */
    struct server *server;
    fuse_req_t req;
    struct call call;                     /* its name is owned */
    const struct catalog_item *waits_for; /* NULL: nothing */
    /* Guarded by slow.lock: */
    enum parked_state state;
    bool interrupted; /* while it was new */
};

static void parked_free(struct parked *parked)
{
    free((char *)(uintptr_t)parked->call.name);
    free(parked);
}

/* NULL: no memory. */
static struct parked *parked_new(struct server *s, fuse_req_t req, const struct call *call,
                                 const struct catalog_item *waits_for)
{
    struct parked *parked = malloc(sizeof(*parked));

    if (!parked)
        return NULL;
    *parked = (struct parked){.server = s, .req = req, .call = *call, .waits_for = waits_for};
    parked->waiter.reason = DIAG_INIT;
    parked->call.name = call->name ? strdup(call->name) : NULL;
    if (call->name && !parked->call.name) {
        free(parked);
        return NULL;
    }
    return parked;
}

/* Take parked out of the queue. slow.lock held. */
static void slow_unlink_locked(struct slow *slow, struct parked *parked)
{
    lock_assert_held(&slow->lock);
    *(parked->previous ? &parked->previous->next : &slow->first) = parked->next;
    *(parked->next ? &parked->next->previous : &slow->last) = parked->previous;
    parked->state = PARKED_TAKEN;
}

static void queue_locked(struct slow *slow, struct parked *parked)
{
    lock_assert_held(&slow->lock);
    parked->next = NULL;
    parked->previous = slow->last;
    *(slow->last ? &slow->last->next : &slow->first) = parked;
    slow->last = parked;
    parked->state = PARKED_QUEUED;
    pthread_cond_broadcast(&slow->wake);
}

static void slow_interrupted(fuse_req_t req, void *data)
{
    struct parked *parked = data;
    struct slow *slow = &parked->server->slow;
    enum parked_state state;

    lock_take(&slow->lock);
    state = parked->state;
    if (state == PARKED_QUEUED)
        slow_unlink_locked(slow, parked);
    else if (state == PARKED_WAITING)
        parked->state = PARKED_DEAD;
    else
        parked->interrupted = true;
    lock_drop(&slow->lock);
    if (state != PARKED_QUEUED && state != PARKED_WAITING)
        return; /* not parked yet, or a slow worker has it and sees the interrupt */
    fuse_reply_err(req, EINTR);
    if (state == PARKED_QUEUED)
        parked_free(parked);
}

/* Reply EINTR to a request that cannot be parked any more. */
static void slow_refuse(struct parked *parked)
{
    fuse_req_interrupt_func(parked->req, NULL, NULL);
    fuse_reply_err(parked->req, EINTR);
    parked_free(parked);
}

void slow_park(struct server *s, fuse_req_t req, const struct call *call,
               const struct catalog_item *waits_for)
{
    struct parked *parked = parked_new(s, req, call, waits_for);
    bool refused;

    if (!parked) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    fuse_req_interrupt_func(req, slow_interrupted, parked);
    lock_take(&s->slow.lock);
    refused = parked->interrupted || s->slow.ending;
    if (!refused) {
        if (waits_for && preparer_has(&s->engine.preparer, waits_for))
            waits_for = parked->waits_for = NULL; /* it has become ready meanwhile */
        queue_locked(&s->slow, parked);
    }
    lock_drop(&s->slow.lock);
    if (refused)
        slow_refuse(parked);
    else if (waits_for)
        preparer_ask(&s->engine.preparer, waits_for);
}

/* Report that a reader of the file has waited for the remote. */
static void tell_wait(struct server *s, fuse_ino_t ino, int64_t ns)
{
    struct node node;

    stage_waited(s->setup.stage, ns);
    if (tree_node(s->engine.tree, ino, &node) == 0 &&
        (node.type == NODE_SAMPLE || node.type == NODE_BATCH))
        active_plans_waited(s->engine.active_plans, &node, ns);
}

/* The missing bytes are present, or could not be fetched. */
static void bytes_came(struct waiter *waiter)
{
    struct parked *parked = (struct parked *)waiter;
    struct server *s = parked->server;
    bool dead;

    tell_wait(s, parked->call.ino, monotonic_ns() - parked->since);
    lock_take(&s->slow.lock);
    dead = parked->state == PARKED_DEAD;
    if (!dead)
        queue_locked(&s->slow, parked);
    s->slow.waiting--;
    pthread_cond_broadcast(&s->slow.wake); /* slow_stop() may wait; the unlock may end s */
    lock_drop(&s->slow.lock);
    if (dead)
        parked_free(parked);
}

void slow_wait(struct server *s, fuse_req_t req, const struct call *call, struct read_context *rc)
{
    struct parked *parked = parked_new(s, req, call, NULL);
    bool refused;

    if (!parked) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    parked->call.rounds++;
    parked->waiter.done = bytes_came;
    parked->since = monotonic_ns();
    fuse_req_interrupt_func(req, slow_interrupted, parked);
    lock_take(&s->slow.lock);
    refused = parked->interrupted || s->slow.ending;
    if (!refused) {
        parked->state = PARKED_WAITING;
        s->slow.waiting++;
    }
    lock_drop(&s->slow.lock);
    if (refused)
        slow_refuse(parked);
    else
        missing_fetch(rc, &parked->waiter);
}

/* The first parked request that can be worked on: what it needs is present, and no other slow
 * worker is at the same file. NULL: none. slow.lock held. */
static struct parked *slow_next_locked(struct slow *slow)
{
    lock_assert_held(&slow->lock);
    for (struct parked *parked = slow->first; parked; parked = parked->next) {
        bool busy = parked->waits_for != NULL ||
                    (parked->call.rounds >= ROUNDS_MOST && slow->n_blocked >= WAITING_MOST);

        for (unsigned i = 0; i < SLOW_THREADS; i++)
            busy = busy || slow->busy[i] == parked->call.ino;
        if (!busy)
            return parked;
    }
    return NULL;
}

/* Wait for work and mark its file as busy. NULL: the server ends. */
static struct parked *slow_take(struct slow *slow, unsigned self)
{
    struct parked *parked = NULL;

    lock_take(&slow->lock);
    while (!slow->ending && !(parked = slow_next_locked(slow)))
        lock_wait(&slow->lock, &slow->wake);
    if (parked) {
        slow_unlink_locked(slow, parked);
        slow->busy[self] = parked->call.ino;
        slow->n_blocked += parked->call.rounds >= ROUNDS_MOST;
    }
    lock_drop(&slow->lock);
    return parked;
}

static void slow_done(struct slow *slow, unsigned self, bool was_blocked)
{
    lock_take(&slow->lock);
    slow->busy[self] = 0;
    slow->n_blocked -= was_blocked;
    pthread_cond_broadcast(&slow->wake);
    lock_drop(&slow->lock);
}

/* Work on a request that has been taken. */
static void slow_finish(struct parked *parked, int64_t until)
{
    const struct slow_ends *ends = parked->server->slow.ends;
    int error = atomic_load(&parked->waiter.error);

    fuse_req_interrupt_func(parked->req, NULL, NULL);
    if (error < 0)
        ends->fail(parked->server, parked->req, &parked->call, error, &parked->waiter.reason);
    else
        ends->answer(parked->server, parked->req, &parked->call, until);
    parked_free(parked);
}

static void *slow_main(void *arg)
{
    struct slow_thread *self = arg;
    struct server *s = self->server;
    struct parked *parked;

    while ((parked = slow_take(&s->slow, self->number))) {
        bool is_blocked = parked->call.rounds >= ROUNDS_MOST;

        slow_finish(parked, INT64_MAX);
        slow_done(&s->slow, self->number, is_blocked);
    }
    return NULL;
}

/* ---- requests that wait for a dataset ---- */

/* A request that waits for the item. NULL: there is none, or the server ends. */
static struct parked *take_released(struct slow *slow, const struct catalog_item *item)
{
    struct parked *parked;

    lock_take(&slow->lock);
    parked = slow->ending ? NULL : slow->first;
    while (parked && parked->waits_for != item)
        parked = parked->next;
    if (parked)
        slow_unlink_locked(slow, parked);
    lock_drop(&slow->lock);
    return parked;
}

static unsigned count_waiting(struct slow *slow, const struct catalog_item *item)
{
    unsigned n = 0;
    LOCK_SCOPE(&slow->lock);

    for (const struct parked *parked = slow->first; parked; parked = parked->next)
        n += parked->waits_for == item;
    return n;
}

/* One that has to wait again is parked again. */
void slow_answer(struct server *s, const struct catalog_item *item, int error,
                 const struct diag *reason)
{
    struct parked *parked;

    for (unsigned n = count_waiting(&s->slow, item); n && (parked = take_released(&s->slow, item));
         n--) {
        if (error < 0) {
            atomic_store(&parked->waiter.error, error);
            parked->waiter.reason = *reason;
        }
        slow_finish(parked, monotonic_ns() + ANSWER_NS);
    }
}

int slow_start(struct server *s, const struct slow_ends *ends)
{
    s->slow.ends = ends;
    for (unsigned i = 0; i < SLOW_THREADS; i++) {
        struct slow_thread *thread = &s->slow.thread[i];

        *thread = (struct slow_thread){.server = s, .number = i};
        if (thread_start(&thread->id, slow_main, thread) < 0)
            return -EAGAIN;
        s->slow.n_threads++;
    }
    return preparer_start(&s->engine.preparer);
}

void slow_stop(struct server *s)
{
    struct slow *slow = &s->slow;

    lock_take(&slow->lock);
    slow->ending = true;
    pthread_cond_broadcast(&slow->wake);
    lock_drop(&slow->lock);
    preparer_end(&s->engine.preparer);
    stage_end(s->setup.stage);
    for (unsigned i = 0; i < slow->n_threads; i++)
        pthread_join(slow->thread[i].id, NULL);
    slow->n_threads = 0;
    preparer_stop(&s->engine.preparer);
    lock_take(&slow->lock);
    while (slow->waiting)
        lock_wait(&slow->lock, &slow->wake);
    while (slow->first) { /* serving threads may still report interrupts */
        struct parked *parked = slow->first;

        slow_unlink_locked(slow, parked);
        lock_drop(&slow->lock);
        slow_refuse(parked);
        lock_take(&slow->lock);
    }
    lock_drop(&slow->lock);
}
