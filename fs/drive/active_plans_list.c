/* What other rooms see of the active plans. Staging sees where each reader is and what it reads
 * next; people see how far each one is. */
#include "fs/drive/active_plans_parts.h"

#include <math.h>
#include <stdlib.h>

/* The element where the cursor begins. It goes back only if pushed units are pushed again. */
static uint64_t element_of(struct active_plan *active, bool pushes)
{
    uint64_t front = pushes ? max_u64(active->at, active->pushed) : active->at, unit = front;

    for (unsigned i = 0; i < OPEN_MOST; i++) {
        const struct open_unit *open = &active->open[i];

        if (open->is_open && open->unit + SLACK > front)
            unit = min_u64(unit, open->unit);
    }
    active->reported = max_u64(active->reported, unit);
    return min_u64(active->reported, active->units) * active->samples;
}

size_t active_plans_cursors(struct active_plans *active_plans,
                            struct active_cursor ret[static ACTIVE_PLANS_MAX])
{
    int64_t now = active_plans->options.now(), latest = 0;
    size_t n = 0;
    LOCK_SCOPE(&active_plans->lock);

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++)
        latest =
            active_plans->active[i].last_ns > latest ? active_plans->active[i].last_ns : latest;
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!active_plan_is_live(active) ||
            (active->folder && active_plan_is_quiet(active, now) && active->last_ns < latest))
            continue;
        ret[n++] = (struct active_cursor){
            .id = active->id,
            .jumps = active->jumps,
            .plan = active->plan,
            .item = active->item,
            .folder = active->folder,
            .kinds = active->kinds,
            .is_samples = active->is_samples,
            .is_last = active->epoch >= active_plans->options.last_epoch,
            .epoch = active->epoch,
            .at = active->folder ? element_of(active, active_plans->options.ahead > 0) : 0,
            .speed = (uint64_t)(active->units_per_s * (double)active->samples),
        };
    }
    return n;
}

static int compare_recent(const void *a, const void *b)
{
    const struct active_info *x = a, *y = b;

    return (x->quiet_s > y->quiet_s) - (x->quiet_s < y->quiet_s);
}

size_t active_plans_list(struct active_plans *active_plans,
                         struct active_info ret[static ACTIVE_PLANS_MAX])
{
    int64_t now = active_plans->options.now();
    size_t n = 0;

    lock_take(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];
        bool was_read = active->first_ns != 0;
        bool is_over = active->came && (active->ended & active->came) == active->came;

        if (!active_plan_is_live(active))
            continue;
        ret[n++] = (struct active_info){
            .plan = active->plan,
            .item = active->item,
            .folder = active->folder,
            .is_samples = active->is_samples,
            .epoch = active->epoch,
            .was_read = was_read,
            .unit = is_over ? active->units : active->at,
            .units = active->units,
            .pushed = was_read ? active->pushed : 0,
            .samples = active->samples,
            .units_per_s = active->units_per_s,
            .wait_s = (double)active->wait_ns / NS_PER_S,
            .since_s = was_read ? (double)(now - active->first_ns) / NS_PER_S : 0,
            .quiet_s = was_read ? (double)(now - active->last_ns) / NS_PER_S : INFINITY,
            .at = active->folder ? element_of(active, active_plans->options.ahead > 0) : 0,
        };
    }
    lock_drop(&active_plans->lock);
    qsort(ret, n, sizeof(*ret), compare_recent);
    return n;
}
