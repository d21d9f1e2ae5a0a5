/* Reads that take long, such as the checksum of a very large archive.
 *
 * A serving thread tries for a while; a read that would go on is parked here and finished by one
 * of a few threads of its own, so that everything else is answered meanwhile. Two reads of one
 * file are never worked on at the same time: the second finds the checksum that the first left.
 *
 * A parked read:  QUEUED -> TAKEN     slow_take()         by a slow thread, which replies
 *                 QUEUED -> released  slow_interrupted()  its reader has gone: EINTR at once
 *
 * libfuse holds the request's own lock around slow_interrupted(), which takes slow.lock; so
 * slow.lock is never held around fuse_req_interrupt_func(). */
#include <errno.h>
#include <stdlib.h>

#include "fs/serve_parts.h"

struct parked {
    struct parked *next;
    struct server *server;
    fuse_req_t req;
    fuse_ino_t ino;
    size_t size;
    off_t off;
    /* Guarded by slow.lock: */
    bool queued;
    bool interrupted; /* before it was queued */
};

/* Take parked out of the queue. slow.lock held. */
static void unlink_locked(struct slow *slow, struct parked *parked)
{
    struct parked **at = &slow->first;

    while (*at != parked)
        at = &(*at)->next;
    *at = parked->next;
    parked->queued = false;
}

static void slow_interrupted(fuse_req_t req, void *data)
{
    struct parked *parked = data;
    struct slow *slow = &parked->server->slow;
    bool ours;

    pthread_mutex_lock(&slow->lock);
    ours = parked->queued;
    if (ours)
        unlink_locked(slow, parked);
    else
        parked->interrupted = true;
    pthread_mutex_unlock(&slow->lock);
    if (!ours)
        return; /* not parked yet, or a slow thread has it and sees for itself */
    fuse_reply_err(req, EINTR);
    free(parked);
}

void slow_park(struct server *s, fuse_req_t req, fuse_ino_t ino, size_t size, off_t off)
{
    struct parked *parked = malloc(sizeof(*parked));
    struct parked **at = &s->slow.first;
    bool refused;

    if (!parked) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    *parked = (struct parked){.server = s, .req = req, .ino = ino, .size = size, .off = off};
    fuse_req_interrupt_func(req, slow_interrupted, parked);
    pthread_mutex_lock(&s->slow.lock);
    refused = parked->interrupted || s->slow.ending;
    if (!refused) {
        while (*at)
            at = &(*at)->next;
        *at = parked;
        parked->queued = true;
        pthread_cond_signal(&s->slow.wake);
    }
    pthread_mutex_unlock(&s->slow.lock);
    if (refused) {
        fuse_req_interrupt_func(req, NULL, NULL);
        fuse_reply_err(req, EINTR);
        free(parked);
    }
}

/* The first parked read of a file that no other slow thread reads, NULL: none. slow.lock held. */
static struct parked *next_locked(struct slow *slow)
{
    for (struct parked *parked = slow->first; parked; parked = parked->next) {
        bool busy = false;

        for (unsigned i = 0; i < SLOW_THREADS; i++)
            busy = busy || slow->busy[i] == parked->ino;
        if (!busy)
            return parked;
    }
    return NULL;
}

/* Wait for work and mark its file as busy. NULL: the server ends. */
static struct parked *slow_take(struct slow *slow, unsigned self)
{
    struct parked *parked = NULL;

    pthread_mutex_lock(&slow->lock);
    while (!slow->ending && !(parked = next_locked(slow)))
        pthread_cond_wait(&slow->wake, &slow->lock);
    if (parked) {
        unlink_locked(slow, parked);
        slow->busy[self] = parked->ino;
    }
    pthread_mutex_unlock(&slow->lock);
    return parked;
}

static void slow_done(struct slow *slow, unsigned self)
{
    pthread_mutex_lock(&slow->lock);
    slow->busy[self] = 0;
    pthread_cond_broadcast(&slow->wake);
    pthread_mutex_unlock(&slow->lock);
}

static void *slow_main(void *arg)
{
    struct slow_thread *self = arg;
    struct server *s = self->server;
    struct parked *parked;

    while ((parked = slow_take(&s->slow, self->number))) {
        fuse_req_interrupt_func(parked->req, NULL, NULL);
        serve_read_now(s, parked->req, parked->ino, parked->size, parked->off, INT64_MAX);
        slow_done(&s->slow, self->number);
        free(parked);
    }
    return NULL;
}

int slow_start(struct server *s)
{
    for (unsigned i = 0; i < SLOW_THREADS; i++) {
        struct slow_thread *thread = &s->slow.thread[i];

        *thread = (struct slow_thread){.server = s, .number = i};
        if (pthread_create(&thread->id, NULL, slow_main, thread) != 0)
            return -EAGAIN;
        s->slow.n_threads++;
    }
    return 0;
}

void slow_stop(struct server *s)
{
    struct slow *slow = &s->slow;

    pthread_mutex_lock(&slow->lock);
    slow->ending = true;
    pthread_cond_broadcast(&slow->wake);
    pthread_mutex_unlock(&slow->lock);
    for (unsigned i = 0; i < slow->n_threads; i++)
        pthread_join(slow->thread[i].id, NULL);
    slow->n_threads = 0;
    while (slow->first) {
        struct parked *parked = slow->first;

        slow->first = parked->next;
        fuse_req_interrupt_func(parked->req, NULL, NULL);
        fuse_reply_err(parked->req, EINTR);
        free(parked);
    }
}
