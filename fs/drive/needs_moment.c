/* The cursors of one moment: made again from the active plans, held by the threads that use them.
 */
#include <stdlib.h>

#include "fs/drive/needs_parts.h"

#define FRESH_NS (4 * 1000 * 1000) /* how long when() uses the same cursors */

struct cursors *needs_hold_cursors(struct needs *needs)
{
    LOCK_SCOPE(&needs->lock);

    needs->cursors->users++;
    return needs->cursors;
}

static struct cursors *needs_moment_let_go_locked(struct needs *needs, struct cursors *cursors)
{
    lock_assert_held(&needs->lock);
    if (--cursors->users)
        return NULL;
    if (needs->spare_cursors)
        return cursors;
    needs->spare_cursors = cursors;
    return NULL;
}

void needs_let_go_of_cursors(struct needs *needs, struct cursors *cursors)
{
    lock_take(&needs->lock);
    cursors = needs_moment_let_go_locked(needs, cursors);
    lock_drop(&needs->lock);
    free(cursors);
}

/* May this thread make the cursors again? One thread at a time may. must: wait for its turn;
 * otherwise return false at once. */
static bool begin_refresh(struct needs *needs, bool must, struct cursors **ret_before,
                          struct cursors **ret)
{
    LOCK_SCOPE(&needs->lock);

    while (needs->refreshing && must)
        lock_wait(&needs->lock, &needs->refreshed);
    if (needs->refreshing)
        return false;
    needs->refreshing = true;
    *ret_before = needs->cursors;
    (*ret_before)->users++;
    *ret = needs->spare_cursors;
    needs->spare_cursors = NULL;
    return true;
}

static void end_refresh(struct needs *needs, struct cursors *before, struct cursors *cursors)
{
    struct cursors *old = NULL, *unused = NULL;

    lock_take(&needs->lock);
    if (cursors) {
        cursors->users = 1;
        old = needs_moment_let_go_locked(needs, needs->cursors);
        needs->cursors = cursors;
    }
    unused = needs_moment_let_go_locked(needs, before);
    needs->refreshing = false;
    pthread_cond_broadcast(&needs->refreshed);
    lock_drop(&needs->lock);
    free(old);
    free(unused);
}

void needs_refresh(struct needs *needs, bool must)
{
    struct active_cursor active[ACTIVE_PLANS_MAX];
    struct cursors *before, *cursors;

    if (!must && clock_monotonic(needs->clock) -
                         atomic_load_explicit(&needs->refreshed_at, memory_order_relaxed) <
                     FRESH_NS)
        return;
    if (!begin_refresh(needs, must, &before, &cursors))
        return;
    if (!cursors)
        cursors = malloc(sizeof(*cursors));
    if (cursors)
        cursors_make(before, active, active_plans_cursors(needs->active_plans, active), cursors);
    atomic_store_explicit(&needs->refreshed_at, clock_monotonic(needs->clock),
                          memory_order_relaxed);
    end_refresh(needs, before, cursors);
}
