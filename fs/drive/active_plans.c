/* Reads: which active plan a read belongs to, whether it continues or jumps, and what that means
 * for its parts. */
#include "fs/drive/active_plans_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "fs/plan/plan.h"

int active_plans_new(const struct active_plans_options *options, struct active_plans **ret)
{
    struct active_plans *active_plans = calloc(1, sizeof(*active_plans));

    if (!active_plans)
        return -ENOMEM;
    active_plans->options = *options;
    active_plans->capacity = UINT64_MAX;
    lock_init(&active_plans->lock);
    *ret = active_plans;
    return 0;
}

void active_plans_free(struct active_plans *active_plans)
{
    if (!active_plans)
        return;
    lock_release(&active_plans->lock);
    free(active_plans);
}

struct active_plans_counters *active_plans_counters(struct active_plans *active_plans)
{
    return &active_plans->counters;
}

/* ---- finding ---- */

static bool is_like(const struct active_plan *active, const struct node *node)
{
    return active->id && active->item == node->item && active->plan == node->plan &&
           active->epoch == node->epoch && active->folder == node->folder &&
           active->is_samples == (node->type == NODE_SAMPLE);
}

struct active_plan *active_plan_find_locked(struct active_plans *active_plans,
                                            const struct node *node)
{
    uint64_t unit = active_plan_unit(node);
    struct active_plan *other = NULL;

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!is_like(active, node))
            continue;
        if (open_units_has(&active->open, unit) ||
            reader_is_close(active->reader.at, push_window_until(&active->window), unit))
            return active;
        if (!other || active->speed.last_ns > other->speed.last_ns)
            other = active;
    }
    return other;
}

/* A free slot, or that of the active plan read longest ago. */
static struct active_plan *active_plans_place_locked(struct active_plans *active_plans)
{
    struct active_plan *oldest = &active_plans->active[0];

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!active->id)
            return active;
        if (active->speed.last_ns < oldest->speed.last_ns)
            oldest = active;
    }
    return oldest;
}

/* Has its reader come to the end, as far as is known? It may have read all that is pushed. */
static bool is_at_end(const struct active_plan *active)
{
    return max_u64(active->reader.at, push_window_until(&active->window)) + 1 + READER_SLACK >=
           active->units;
}

/* A reader reads the epochs of a plan one after another. So active plans of the same plan that were
 * only announced, are strays, or are at the end of another epoch are over. True: this one begins
 * where the epoch before it has ended. */
static bool retire_others_locked(struct active_plans *active_plans, const struct active_plan *now)
{
    bool goes_on = false;

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (active == now || !active->id || active->plan != now->plan || !now->plan)
            continue;
        if (!active->folder || active->reader.is_stray ||
            (active->folder == now->folder && active->epoch != now->epoch && is_at_end(active))) {
            goes_on = goes_on || (active->folder && active->epoch + 1 == now->epoch);
            active->id = 0;
        }
    }
    return goes_on && now->reader.at <= READER_SLACK;
}

/* The reader begins there, or has jumped there. */
static void go_to(struct active_plan *active, uint64_t unit)
{
    push_window_start(&active->window, unit);
    open_units_start(&active->open, unit);
}

/* units: node_units(node), which may read a file, so the caller asks before it takes the lock. */
static struct active_plan *begin_locked(struct active_plans *active_plans, const struct node *node,
                                        uint64_t units)
{
    struct active_plan *active = active_plans_place_locked(active_plans);
    const bool samples = node->type == NODE_SAMPLE;

    lock_assert_held(&active_plans->lock);
    *active = (struct active_plan){
        .id = ++active_plans->ids,
        .plan = node->plan,
        .item = node->item,
        .folder = node->folder,
        .is_samples = samples,
        .epoch = node->epoch,
        .node = *node,
        .units = units,
        .samples = samples ? 1 : node->plan->schedule.batch,
    };
    reader_start(&active->reader, samples, active_plan_unit(node));
    go_to(active, active_plan_unit(node));
    return active;
}

void active_plans_announce(struct active_plans *active_plans, const struct plan_entry *plan)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plans_place_locked(active_plans);
    if (active->id || !plan->schedule.elements)
        return; /* plans that are read come first */
    *active = (struct active_plan){
        .id = ++active_plans->ids,
        .plan = plan,
        .item = plan->item,
        .units = plan->schedule.batches,
        .samples = plan->schedule.batch,
    };
    reader_start(&active->reader, false, 0);
}

/* ---- reads ---- */

/* The reader is further on. lost: it has read a unit that had been pushed. */
static void move(struct active_plans *active_plans, struct active_plan *active, uint64_t unit,
                 bool lost, int64_t now)
{
    uint64_t done = active->window.done, pushed = active->window.pushed;

    reader_speed_moved(&active->speed, unit - active->reader.at, now);
    reader_moves(&active->reader, unit);
    active->window.waits_for_move = false;
    if (unit >= done) { /* it was not stored yet */
        open_units_reach(&active->open, done, unit);
        if (unit >= pushed)
            open_units_back(&active->open, unit + 1);
        if (push_window_overtaken(&active->window, unit, now))
            active_plan_count(&active_plans->counters.overtaken, 1);
        return;
    }
    push_window_keeps_up(&active->window);
    if (!lost)
        push_window_grows(&active->window);
}

/* Was this a read of stored bytes, so that the kernel has dropped them? */
static bool note_lost(struct active_plans *active_plans, struct active_plan *active,
                      const struct node *node)
{
    uint64_t unit = active_plan_unit(node);

    if (!push_window_has(&active->window, unit) || !(active->columns >> node_column(node) & 1))
        return false;
    active_plan_count(&active_plans->counters.lost, 1);
    if (push_window_loses(&active->window, unit, active->reader.at))
        active_plan_push_from(active, unit + 1);
    return true;
}

/* The reader is elsewhere. If another one continues where this one was before, there are two
 * readers. */
static struct active_plan *jump_locked(struct active_plans *active_plans,
                                       struct active_plan *active, const struct node *node,
                                       uint64_t units)
{
    uint64_t unit = active_plan_unit(node);

    lock_assert_held(&active_plans->lock);
    if (reader_is_sure(&active->reader))
        active_plan_count(&active_plans->counters.jumps, 1);
    if (reader_splits(&active->reader, unit))
        return begin_locked(active_plans, node, units);
    active->node = *node;
    go_to(active, unit);
    return active;
}

/* Is the reader elsewhere? A unit that is open is read by a worker that waited long. */
static bool is_jump(const struct active_plan *active, uint64_t unit)
{
    if (reader_is_sure(&active->reader) && open_units_has(&active->open, unit))
        return false;
    return reader_is_jump(&active->reader, push_window_until(&active->window), unit);
}

/* Note a column that is read. If it is a new one, what was pushed lacks it. */
static void note_column(struct active_plan *active, unsigned column)
{
    const uint64_t bit = UINT64_C(1) << column;

    if (active->columns && !(active->columns & bit))
        active_plan_push_from(active, active->reader.at + 1);
    active->columns |= bit;
    reader_comes(&active->reader, column);
}

unsigned active_plans_read(struct active_plans *active_plans, const struct node *node, uint64_t end)
{
    uint64_t unit = active_plan_unit(node), units = node_units(node);
    int64_t now = clock_monotonic(active_plans->options.clock);
    struct active_plan *active;
    unsigned result = 0;
    bool was_live;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    was_live = active && active_plan_is_live(active);
    if (active)
        active->units = units; /* they may be counted by now */
    if (!active) {
        active = begin_locked(active_plans, node, units);
        reader_speed_jumped(&active->speed, now);
        result = retire_others_locked(active_plans, active) ? ACTIVE_MOVED : ACTIVE_JUMPED;
    } else if (is_jump(active, unit)) {
        active = jump_locked(active_plans, active, node, units);
        reader_speed_jumped(&active->speed, now);
        result = ACTIVE_JUMPED;
    } else {
        bool lost = note_lost(active_plans, active, node);

        if (unit > active->reader.at) {
            move(active_plans, active, unit, lost, now);
            result = was_live ? ACTIVE_MOVED : ACTIVE_JUMPED;
        }
    }
    reader_speed_read(&active->speed, now);
    note_column(active, node_column(node));
    push_window_sees(&active->window, end);
    return active_plan_is_live(active) ? result : 0;
}

bool active_plans_given(struct active_plans *active_plans, const struct node *node, uint64_t off,
                        uint64_t bytes, uint64_t size)
{
    uint64_t unit = active_plan_unit(node);
    struct active_plan *active;
    bool ends = false;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    if (!active)
        return false;
    if (unit + 1 == active->units && off + bytes >= size) {
        reader_ends(&active->reader, node_column(node));
        ends = reader_is_over(&active->reader);
    }
    return open_units_given(&active->open, unit, node_column(node), active->columns, bytes, size) ||
           ends;
}

void active_plans_waited(struct active_plans *active_plans, const struct node *node, int64_t ns)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    if (active)
        active->speed.wait_ns += ns;
}
