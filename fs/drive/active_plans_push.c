/* The push: which file goes into the page cache ahead of its reader, and which files that readers
 * have passed are dropped from it.
 *
 * Each active plan makes one file at a time. The plan with the least pushed ahead of its reader
 * comes first. All plans that are read have equal shares of what may be pushed. */
#include "fs/drive/active_plans_parts.h"

#include <errno.h>

#include "base/blob.h"

#define FAIL_REST_NS INT64_C(1000000000)

static uint64_t share_locked(const struct active_plans *active_plans, int64_t now)
{
    uint64_t n = 0;

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        n += active_plan_is_live(active) && active->folder && !active_plan_is_quiet(active, now);
    }
    return min_u64(active_plans->options.ahead, active_plans->capacity) / max_u64(n, 1);
}

/* Units that may be pushed ahead of the reader: at least one, provided that it fits the share. */
static uint64_t window_of(const struct active_plan *active, uint64_t share)
{
    return min_u64(active->window, max_u64(share / max_u64(active->unit_bytes, PAGE), 1));
}

static bool may_push(const struct active_plan *active, uint64_t share, int64_t now)
{
    return active_plan_is_live(active) && active->folder && !active->being_made &&
           !active->waits_for_move && now >= active->rest_until && active->pushed < active->units &&
           active->pushed - active->at <= window_of(active, share);
}

/* A unit is dropped once the reader has passed it for certain: by SLACK units. */
static bool may_drop(const struct active_plans *active_plans, const struct active_plan *active)
{
    return active_plans->options.drops && active_plan_is_live(active) && active->folder &&
           !active->being_made && active->dropped + SLACK < active->at;
}

static unsigned next_kind(const struct active_plan *active, unsigned from)
{
    uint64_t left = from < KINDS_MAX ? active->kinds >> from : 0;

    return left ? from + (unsigned)__builtin_ctzll(left) : KINDS_MAX;
}

static uint64_t last_mark(const struct active_plan *active)
{
    return active->n_marks ? active->mark[(active->n_marks - 1) % MARKS] : active->at;
}

/* Is the next unit marked? Then all of its files are: a reader of several kinds may come for one
 * kind only, because the page cache has the others from before. */
static bool marks_next(const struct active_plan *active, uint64_t window)
{
    uint64_t every = min_u64(max_u64(window / 2, 1), MARK_MOST);

    /* The last unit is marked because its read shows that the epoch is over. */
    return active->pushed >= last_mark(active) + every || active->pushed + 1 == active->units;
}

static void take_push(struct active_plan *active, uint64_t share, struct push_file *ret)
{
    unsigned kind = next_kind(active, active->kind);

    *ret = (struct push_file){.ticket = active->id};
    node_sibling(&active->node, active->pushed, kind, &ret->node);
    if (!active->this_bytes && !active_plan_is_marked(active, active->pushed) &&
        marks_next(active, window_of(active, share)))
        active->mark[active->n_marks++ % MARKS] = active->pushed;
    ret->is_marked = active_plan_is_marked(active, active->pushed);
    active->being_made = true;
}

static void take_drop(struct active_plan *active, struct push_file *ret)
{
    *ret = (struct push_file){.ticket = active->id};
    node_sibling(&active->node, active->dropped, next_kind(active, active->drop_kind), &ret->node);
    active->drop_kind = node_kind(&ret->node) + 1;
    if (next_kind(active, active->drop_kind) < KINDS_MAX)
        return;
    active->drop_kind = 0;
    active->dropped++;
}

enum push_what active_plans_next_push(struct active_plans *active_plans, uint64_t capacity,
                                      struct push_file *ret)
{
    int64_t now = active_plans->options.now();
    struct active_plan *best = NULL;
    uint64_t share;
    LOCK_SCOPE(&active_plans->lock);

    active_plans->capacity = capacity;
    active_plans->looked = now;
    share = share_locked(active_plans, now);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (may_drop(active_plans, active)) {
            take_drop(active, ret);
            return PUSH_DROP;
        }
        if (may_push(active, share, now) &&
            (!best || active->pushed - active->at < best->pushed - best->at))
            best = active;
    }
    if (!best)
        return PUSH_NOTHING;
    take_push(best, share, ret);
    return PUSH_STORE;
}

/* The file is made: go on to the next kind, or to the next unit. */
static void made(struct active_plan *active, const struct push_file *file, uint64_t bytes)
{
    active->this_bytes += active_plan_pages(bytes);
    active->kind = node_kind(&file->node) + 1;
    if (next_kind(active, active->kind) < KINDS_MAX)
        return;
    active->unit_bytes =
        max_u64((active->unit_bytes * 7 + active->this_bytes) / 8, active->this_bytes);
    active->this_bytes = 0;
    active->kind = 0;
    active->pushed++;
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

    return active && active->pushed == file->node.number ? active : NULL;
}

bool active_plans_may_store(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t size)
{
    int64_t now = active_plans->options.now();
    const struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = due_locked(active_plans, file);
    return active && (active->pushed - active->at - 1) * active->unit_bytes + active->this_bytes +
                             active_plan_pages(size) <=
                         share_locked(active_plans, now);
}

static struct used_file *used_file(struct active_plan *active, const struct node *node)
{
    return &active->used[(active_plan_unit(node) * KINDS_MAX + node_kind(node)) % USED_MOST];
}

bool active_plans_is_due(struct active_plans *active_plans, const struct push_file *file)
{
    LOCK_SCOPE(&active_plans->lock);

    return due_locked(active_plans, file);
}

bool active_plans_push_uses(struct active_plans *active_plans, const struct push_file *file,
                            uint64_t off, uint64_t len)
{
    struct active_plan *active;
    struct used_file *used;
    LOCK_SCOPE(&active_plans->lock);

    active = due_locked(active_plans, file);
    if (!active)
        return false;
    used = used_file(active, &file->node);
    if (used->unit != file->node.number || used->kind != node_kind(&file->node))
        *used = (struct used_file){file->node.number, node_kind(&file->node), 0};
    if (off + len <= used->end) /* it was made before */
        return false;
    used->end = off + len;
    return true;
}

bool active_plans_push_used(struct active_plans *active_plans, const struct node *node,
                            uint64_t off, uint64_t len)
{
    uint64_t unit = active_plan_unit(node);
    const struct used_file *used;
    const struct open_unit *open;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    if (!active)
        return false;
    used = used_file(active, node);
    if (used->unit == unit && used->kind == node_kind(node) && used->end)
        return off + len <= used->end;
    open = &active->open[unit % OPEN_MOST];
    return unit < active->pushed && !active_plan_is_marked(active, unit) &&
           !(open->unit == unit && (open->is_open || open->was_open));
}

static void failed(struct active_plans *active_plans, struct active_plan *active, int64_t error)
{
    if (error == -ENOENT || error == -EFBIG)
        active->waits_for_move = true;
    else
        active->rest_until = active_plans->options.now() + FAIL_REST_NS;
}

void active_plans_made(struct active_plans *active_plans, const struct push_file *file,
                       int64_t result)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = of_ticket_locked(active_plans, file);
    if (!active)
        return;
    active->being_made = false;
    if (active->pushed != file->node.number)
        return; /* the reader has passed it, or is elsewhere */
    if (result >= 0) {
        made(active, file, (uint64_t)result);
        return;
    }
    if (result == -ENOENT || result == -EFBIG || blob_says_nothing((int)result)) {
        failed(active_plans, active, result);
        return;
    }
    made(active, file, 0); /* a file that cannot be read is left to its reader */
    active->stored = file->node.number + 1;
}

void active_plans_stored(struct active_plans *active_plans, const struct push_file *file,
                         int64_t result)
{
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
    if (active && result >= 0 &&
        active_plan_is_open(active, unit)) /* its reader gets the rest from the page cache */
        active->open[unit % OPEN_MOST].is_open = false;
    if (!active || unit < active->done || unit >= active->pushed)
        return;
    if (result >= 0) {
        active->done = unit + 1;
        return;
    }
    active_plan_push_from(active, unit);
    failed(active_plans, active, result);
}

int64_t active_plans_next_look(struct active_plans *active_plans)
{
    int64_t next = INT64_MAX;
    LOCK_SCOPE(&active_plans->lock);

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        if (active_plan_is_live(active) && active->rest_until > active_plans->looked &&
            active->rest_until < next)
            next = active->rest_until;
    }
    return next;
}
