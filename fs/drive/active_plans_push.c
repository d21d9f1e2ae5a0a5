/* The push: which file goes into the page cache ahead of its reader, and which files that readers
 * have passed are dropped from it.
 *
 * Each active plan makes one file at a time. The plan with the least pushed ahead of its reader
 * comes first. All plans that are read have equal shares of what may be pushed. */
#include "fs/drive/active_plans_parts.h"

#include <errno.h>

#include "base/blob.h"
#include "base/checked.h"

static uint64_t active_plans_push_share_locked(const struct active_plans *active_plans, int64_t now)
{
    uint64_t n = 0;

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        n += active_plan_is_live(active) && active->folder && !active_plan_is_quiet(active, now);
    }
    return min_u64(active_plans->options.ahead, active_plans->capacity) / max_u64(n, 1);
}

static bool may_push(const struct active_plan *active, uint64_t share, int64_t now)
{
    return active_plan_is_live(active) && active->folder &&
           push_window_may_push(&active->window, active->reader.at, active->units, share, now);
}

static bool may_drop(const struct active_plans *active_plans, const struct active_plan *active)
{
    bool drops = active_plans->options.drops || active_plans->exceeds;

    return drops && active_plan_is_live(active) && active->folder &&
           push_window_may_drop(&active->window, active->reader.at);
}

static void take_push(struct active_plan *active, uint64_t share, struct push_file *ret)
{
    unsigned column;

    *ret = (struct push_file){.ticket = active->id};
    column = push_window_take(&active->window, active->reader.at, active->units, active->columns,
                              share, &ret->is_marked);
    node_sibling(&active->node, active->window.pushed, column, &ret->node);
}

static void take_drop(struct active_plan *active, struct push_file *ret)
{
    uint64_t unit;
    unsigned column;

    *ret = (struct push_file){.ticket = active->id};
    push_window_take_drop(&active->window, active->columns, &unit, &column);
    node_sibling(&active->node, unit, column, &ret->node);
}

/* Do readers that are faster than the push keep all processors busy? Then making a file
 * before its read saves no time, and the file has left the processor's cache when it is sent. One
 * reader says nothing of that: it may wait for a disk. */
static bool is_busy_locked(const struct active_plans *active_plans, int64_t now)
{
    unsigned n = 0;

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++)
        n += active_plan_is_live(&active_plans->active[i]) &&
             push_window_rests(&active_plans->active[i].window, now);
    return n > 1 && n >= active_plans->options.processors;
}

static bool may_ready(const struct active_plan *active, int64_t now)
{
    return active_plan_is_live(active) && active->folder &&
           push_window_may_ready(&active->window, active->reader.at, active->units, now);
}

static void take_ready(struct active_plan *active, struct push_file *ret)
{
    uint64_t unit;
    unsigned column;

    *ret = (struct push_file){.ticket = active->id};
    column = push_window_take_ready(&active->window, active->reader.at, active->columns, &unit);
    node_sibling(&active->node, unit, column, &ret->node);
}

static uint64_t ahead_of_reader(const struct active_plan *active)
{
    return active->window.pushed - active->reader.at;
}

enum push_what active_plans_next_push(struct active_plans *active_plans, uint64_t capacity,
                                      struct push_file *ret)
{
    int64_t now = clock_monotonic(active_plans->options.clock);
    struct active_plan *best = NULL;
    uint64_t share;
    bool is_busy;
    LOCK_SCOPE(&active_plans->lock);

    active_plans->capacity = capacity;
    active_plans->looked = now;
    share = active_plans_push_share_locked(active_plans, now);
    is_busy = is_busy_locked(active_plans, now);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (may_drop(active_plans, active)) {
            take_drop(active, ret);
            return PUSH_DROP;
        }
        if (!is_busy && may_ready(active, now)) {
            take_ready(active, ret);
            return PUSH_READY;
        }
        if (may_push(active, share, now) &&
            (!best || ahead_of_reader(active) < ahead_of_reader(best)))
            best = active;
    }
    if (!best)
        return PUSH_NOTHING;
    take_push(best, share, ret);
    return PUSH_STORE;
}

void active_plans_exceed(struct active_plans *active_plans, bool exceeds)
{
    LOCK_SCOPE(&active_plans->lock);

    active_plans->exceeds = exceeds;
}

static struct active_plan *of_ticket_locked(struct active_plans *active_plans,
                                            const struct push_file *file)
{
    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++)
        if (active_plans->active[i].id == file->ticket)
            return &active_plans->active[i];
    return NULL;
}

static struct active_plan *due_locked(struct active_plans *active_plans,
                                      const struct push_file *file)
{
    struct active_plan *active = of_ticket_locked(active_plans, file);

    lock_assert_held(&active_plans->lock);
    return active && active->window.pushed == file->node.number ? active : NULL;
}

bool active_plans_may_store(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t size)
{
    int64_t now = clock_monotonic(active_plans->options.clock);
    const struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = due_locked(active_plans, file);
    return active && push_window_fits(&active->window, active->reader.at, size,
                                      active_plans_push_share_locked(active_plans, now));
}

bool active_plans_is_due(struct active_plans *active_plans, const struct push_file *file)
{
    LOCK_SCOPE(&active_plans->lock);

    return due_locked(active_plans, file);
}

void active_plans_made(struct active_plans *active_plans, const struct push_file *file,
                       int64_t result)
{
    const unsigned column = node_column(&file->node);
    int64_t now = clock_monotonic(active_plans->options.clock);
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = of_ticket_locked(active_plans, file);
    if (!active)
        return;
    active->window.is_making = false;
    if (active->window.pushed != file->node.number)
        return; /* the reader has passed it, or is elsewhere */
    if (result >= 0)
        push_window_made(&active->window, column, active->columns, (uint64_t)result);
    else if (result == -ENOENT || result == -EFBIG || blob_says_nothing((int)result))
        push_window_failed(&active->window, result, now);
    else
        push_window_leaves(&active->window, column, active->columns);
}

void active_plans_stored(struct active_plans *active_plans, const struct push_file *file,
                         int64_t result)
{
    int64_t now = clock_monotonic(active_plans->options.clock);
    uint64_t unit = file->node.number;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    if (result >= 0) {
        active_plan_count(&active_plans->counters.pushed_files, 1);
        active_plan_count(&active_plans->counters.pushed_bytes, (uint64_t)result);
    } else if (result == -ENOENT) {
        active_plan_count(&active_plans->counters.unknown_files, 1);
    }
    active = of_ticket_locked(active_plans, file);
    if (active && result >= 0)
        open_units_stored(&active->open, unit);
    if (!active || unit < active->window.done || unit >= active->window.pushed)
        return;
    if (result >= 0) {
        push_window_stored(&active->window, unit);
        return;
    }
    active_plan_push_from(active, unit);
    push_window_failed(&active->window, result, now);
}

void active_plans_readied(struct active_plans *active_plans, const struct push_file *file)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = of_ticket_locked(active_plans, file);
    if (active)
        push_window_readied(&active->window, file->node.number, node_column(&file->node),
                            active->columns);
}

int64_t active_plans_next_look(struct active_plans *active_plans)
{
    int64_t next = INT64_MAX;
    LOCK_SCOPE(&active_plans->lock);

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        if (active_plan_is_live(active) && active->window.rest_until > active_plans->looked &&
            active->window.rest_until < next)
            next = active->window.rest_until;
    }
    return next;
}
