#include "support/event.h"

static void event_done(struct waiter *waiter)
{
    struct event *event = (struct event *)waiter;
    LOCK_SCOPE(&event->lock);

    event->over = true;
    event->at = event->clock ? clock_monotonic(event->clock) : 0;
    pthread_cond_signal(&event->changed);
}

void event_init(struct event *event)
{
    *event = (struct event){.waiter.done = event_done};
    lock_init(&event->lock);
    condition_init(&event->changed);
}

bool event_is_over(struct event *event)
{
    LOCK_SCOPE(&event->lock);

    return event->over;
}

int event_wait(struct event *event)
{
    lock_take(&event->lock);
    while (!event->over)
        lock_wait(&event->lock, &event->changed);
    lock_drop(&event->lock);
    pthread_cond_destroy(&event->changed);
    lock_release(&event->lock);
    return atomic_load(&event->waiter.error);
}
