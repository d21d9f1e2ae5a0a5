/* A waiter that a test waits for. */
#ifndef EPOCHFS_TESTS_SUPPORT_EVENT_H
#define EPOCHFS_TESTS_SUPPORT_EVENT_H

#include <stdbool.h>

#include "base/lock.h"
#include "base/read_context.h"

struct event {
    struct waiter waiter; /* first: give it to blob_fetch() or missing_fetch() */
    struct lock lock;
    pthread_cond_t changed;
    bool over; /* guarded by lock */
};

void event_init(struct event *event);

/* Is the waiter done by now? */
bool event_is_over(struct event *event);

/* Wait until the waiter is done, and release the event: 0, or the waiter's -errno. Once. */
int event_wait(struct event *event);

#endif
