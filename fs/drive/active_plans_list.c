/* What other rooms see of the active plans. Staging sees where each reader is and what it reads
 * next; people see how far each one is. */
#include "fs/drive/active_plans_parts.h"

#include <stdlib.h>

#include "base/checked.h"

#define NS_PER_S 1e9

/* The element where the cursor begins. It goes back only if pushed units are pushed again. */
static uint64_t active_plans_list_element_of(struct active_plan *active, bool pushes)
{
    uint64_t at = active->reader.at, front = pushes ? max_u64(at, active->window.pushed) : at;

    if (!active->folder)
        return 0;
    return min_u64(open_units_first(&active->open, front), active->units) * active->samples;
}

/* The units before this one its reader has read for certain. For pushed units it reads in the page
 * cache, and of marks, we hear late: workers may be READER_SLACK units apart. */
static uint64_t read_before(const struct active_plan *active)
{
    const uint64_t at = active->reader.at, stored = active->window.stored;
    uint64_t front = at + 1;

    if (!active->folder)
        return 0;
    if (reader_is_over(&active->reader))
        front = active->units;
    else if (at >= stored)
        front = max_u64(stored, at - min_u64(at, READER_SLACK));
    return min_u64(open_units_oldest(&active->open, front), active->units);
}

size_t active_plans_cursors(struct active_plans *active_plans,
                            struct active_cursor ret[static ACTIVE_PLANS_MAX])
{
    int64_t now = clock_monotonic(active_plans->options.clock), latest = 0;
    size_t n = 0;
    LOCK_SCOPE(&active_plans->lock);

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++)
        if (active_plans->active[i].speed.last_ns > latest)
            latest = active_plans->active[i].speed.last_ns;
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!active_plan_is_live(active) ||
            (active->folder && active_plan_is_quiet(active, now) && active->speed.last_ns < latest))
            continue;
        ret[n++] = (struct active_cursor){
            .id = active->id,
            .jumps = active->reader.jumps,
            .plan = active->plan,
            .item = active->item,
            .folder = active->folder,
            .columns = active->columns,
            .is_samples = active->is_samples,
            .is_last = active->epoch >= active_plans->options.last_epoch,
            .epoch = active->epoch,
            .at = active_plans_list_element_of(active, active_plans->options.ahead > 0),
            .from = active->reader.from * active->samples,
            .read = read_before(active) * active->samples,
            .speed = active->speed.units_per_s * (double)active->samples,
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
    int64_t now = clock_monotonic(active_plans->options.clock);
    size_t n = 0;

    lock_take(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];
        bool was_read = active->speed.first_ns != 0;

        if (!active_plan_is_live(active))
            continue;
        ret[n++] = (struct active_info){
            .plan = active->plan,
            .item = active->item,
            .folder = active->folder,
            .is_samples = active->is_samples,
            .epoch = active->epoch,
            .was_read = was_read,
            .unit = reader_is_over(&active->reader) ? active->units : active->reader.at,
            .units = active->units,
            .pushed = was_read ? active->window.pushed : 0,
            .samples = active->samples,
            .units_per_s = active->speed.units_per_s,
            .wait_s = (double)active->speed.wait_ns / NS_PER_S,
            .since_s = reader_speed_since(&active->speed, now),
            .quiet_s = reader_speed_quiet(&active->speed, now),
            .at = active_plans_list_element_of(active, active_plans->options.ahead > 0),
        };
    }
    lock_drop(&active_plans->lock);
    for (size_t i = 0; i < n; i++) /* they may be counted by now */
        if (ret[i].plan && !ret[i].is_samples && ret[i].plan->schedule.cuts &&
            ret[i].units != ret[i].unit)
            schedule_batches(&ret[i].plan->schedule, ret[i].epoch, &ret[i].units);
    qsort(ret, n, sizeof(*ret), compare_recent);
    return n;
}
