/* A waiter that a test waits for. */
#ifndef EPOCHFS_TESTS_SUPPORT_EVENT_H
#define EPOCHFS_TESTS_SUPPORT_EVENT_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/read_context.h"

struct event {
    struct waiter waiter; /* first: give it to blob_fetch() or missing_fetch() */
    struct lock lock;
    pthread_cond_t changed;
    const struct clock *clock; /* set after event_init(); NULL: no time is noted */
    bool over;                 /* guarded by lock, and so is the time when it was over */
    int64_t at;
};

void event_init(struct event *event);

/* Is the waiter done by now? */
bool event_is_over(struct event *event);

/* Wait until the waiter is done, and release the event: 0, or the waiter's -errno. Once. */
int event_wait(struct event *event);

#endif
