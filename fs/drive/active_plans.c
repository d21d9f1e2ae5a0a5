/* Reads: which active plan a read belongs to, whether it continues or jumps, and what that means
 * for the push. The invariants are in fs/drive/active_plans_parts.h. */
#include "fs/drive/active_plans_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/plan/plan.h"

#define SURE           3 /* samples in sequence that make an active plan */
#define SURE_GAP       8
#define WINDOW_START   4 /* units of the first window */
#define OVERTAKEN_MOST 8 /* in a row; after more, the reader is faster than the push, */
#define REST_NS        INT64_C(20000000) /* which then rests this long, doubled each time, */
#define RESTS_MOST     6                 /* at most this often */
#define LOST_MOST      3 /* in a row, each at most LOST_GAP units after the one before */
#define LOST_GAP       4

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
           active->is_samples == (node->kind == NODE_SAMPLE);
}

/* May the reader at `at` read the unit now? */
static bool is_close(uint64_t at, uint64_t until, uint64_t unit)
{
    return unit + SLACK >= at && unit <= max_u64(at, until) + SLACK;
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
        if (active_plan_is_open(active, unit) || is_close(active->at, active->pushed, unit))
            return active;
        if (!other || active->last_ns > other->last_ns)
            other = active;
    }
    return other;
}

/* A free slot, or that of the active plan read longest ago. */
static struct active_plan *place_locked(struct active_plans *active_plans)
{
    struct active_plan *oldest = &active_plans->active[0];

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!active->id)
            return active;
        if (active->last_ns < oldest->last_ns)
            oldest = active;
    }
    return oldest;
}

/* Has its reader come to the end, as far as is known? It may have read all that is pushed. */
static bool is_at_end(const struct active_plan *active)
{
    return max_u64(active->at, active->pushed) + 1 + SLACK >= active->units;
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
        if (!active->folder || active->is_stray ||
            (active->folder == now->folder && active->epoch != now->epoch && is_at_end(active))) {
            goes_on = goes_on || (active->folder && active->epoch + 1 == now->epoch);
            active->id = 0;
        }
    }
    return goes_on && now->at <= SLACK;
}

void active_plan_push_from(struct active_plan *active, uint64_t unit)
{
    while (active->n_marks && active->mark[(active->n_marks - 1) % MARKS] >= unit)
        active->n_marks--;
    active->pushed = active->done = active->stored = unit;
    active->kind = 0;
    active->this_bytes = 0;
    active->reported = min_u64(active->reported, unit);
}

/* Open the units from `from` to this one, which is being read: other workers will read the earlier
 * ones. */
static void open_units(struct active_plan *active, uint64_t from, uint64_t unit)
{
    for (uint64_t u = max_u64(from, unit - min_u64(unit, SLACK)); u <= unit; u++)
        if (u == unit || active->open[u % OPEN_MOST].unit != u ||
            !(active->open[u % OPEN_MOST].is_open || active->open[u % OPEN_MOST].was_open))
            active->open[u % OPEN_MOST] = (struct open_unit){.is_open = true, .unit = u};
}

static void go_to(struct active_plan *active, uint64_t unit)
{
    active->at = unit;
    active->came = active->ended = 0;
    active->reported = 0;
    active_plan_push_from(active, unit + 1);
    memset(active->open, 0, sizeof(active->open));
    open_units(active, unit < SLACK ? 0 : unit, unit);
    active->dropped = unit;
    active->drop_kind = 0;
    active->window = WINDOW_START;
    active->n_marks = 0;
    active->in_sequence = 1;
    active->overtaken = active->rests = active->lost = 0;
    active->waits_for_move = false;
}

static struct active_plan *begin_locked(struct active_plans *active_plans, const struct node *node)
{
    struct active_plan *active = place_locked(active_plans);
    const bool samples = node->kind == NODE_SAMPLE;

    *active = (struct active_plan){
        .id = ++active_plans->ids,
        .plan = node->plan,
        .item = node->item,
        .folder = node->folder,
        .is_samples = samples,
        .epoch = node->epoch,
        .node = *node,
        .units = node_units(node),
        .samples = samples ? 1 : node->plan->schedule.batch,
        .ghost = UINT64_MAX,
    };
    go_to(active, active_plan_unit(node));
    return active;
}

void active_plans_announce(struct active_plans *active_plans, const struct plan_entry *plan)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = place_locked(active_plans);
    if (active->id || !plan->schedule.elements)
        return; /* plans that are read come first */
    *active = (struct active_plan){
        .id = ++active_plans->ids,
        .plan = plan,
        .item = plan->item,
        .units = plan->schedule.batches,
        .samples = plan->schedule.batch,
        .ghost = UINT64_MAX,
    };
}

/* ---- reads ---- */

bool active_plan_is_marked(const struct active_plan *active, uint64_t unit)
{
    uint64_t last = active->n_marks, first = last - min_u64(last, MARKS);

    while (last > first && active->mark[(last - 1) % MARKS] > unit)
        last--;
    return last > first && active->mark[(last - 1) % MARKS] == unit;
}

static void note_rate(struct active_plan *active, uint64_t units, int64_t now)
{
    double seconds = (double)(now - active->moved_ns) / NS_PER_S, rate;

    if (seconds <= 0)
        return;
    rate = (double)units / seconds;
    active->units_per_s = active->units_per_s > 0 ? active->units_per_s * 0.8 + rate * 0.2 : rate;
}

/* The reader has reached a unit before it was pushed: the push continues after that unit. If that
 * happens too often the push rests, because a push that is always late only takes processor time.
 * What happens during a rest does not count. */
static void note_overtaken(struct active_plans *active_plans, struct active_plan *active,
                           uint64_t unit, int64_t now)
{
    open_units(active, active->done, unit);
    active_plan_push_from(active, unit + 1);
    if (now < active->rest_until || ++active->overtaken <= OVERTAKEN_MOST)
        return;
    active_plan_count(&active_plans->counters.overtaken, 1);
    active->rest_until = now + (REST_NS << min_u64(active->rests, RESTS_MOST));
    active->rests++;
    active->overtaken = 0;
}

/* The reader is further on. lost: it has read a unit that had been pushed. */
static void move(struct active_plans *active_plans, struct active_plan *active, uint64_t unit,
                 bool lost, int64_t now)
{
    bool sought = unit >= active->done;

    note_rate(active, unit - active->at, now);
    active->at = unit;
    active->waits_for_move = false;
    active->is_stray = false;
    active->in_sequence += active->in_sequence < SURE;
    active->moved_ns = now;
    if (sought) {
        note_overtaken(active_plans, active, unit, now);
        return;
    }
    active->overtaken = active->rests = 0;
    if (lost)
        return;
    active->lost = 0;
    active->window = min_u64(active->window * 2, WINDOW_MOST);
}

/* Was this a read of stored bytes, so that the kernel has dropped them? After LOST_MOST such units
 * in a row the kernel has dropped everything, and the push begins again from there. A page here and
 * there is left to reads; so are all losses of a reader that takes only units far apart. */
static bool note_lost(struct active_plans *active_plans, struct active_plan *active,
                      const struct node *node)
{
    uint64_t unit = active_plan_unit(node);

    if (unit >= active->done || unit < active->stored || active_plan_is_marked(active, unit) ||
        !(active->kinds >> node_kind(node) & 1))
        return false;
    active_plan_count(&active_plans->counters.lost, 1);
    active->window = max_u64(active->window / 2, WINDOW_START);
    if (unit <= active->at)
        return true;
    active->lost = unit <= active->lost_unit + LOST_GAP ? active->lost + 1 : 1;
    active->lost_unit = unit;
    if (active->lost == LOST_MOST) {
        active_plan_push_from(active, unit + 1);
        active->lost = 0;
    }
    return true;
}

/* The reader is elsewhere. If another one continues where this one was before, there are two
 * readers. */
static struct active_plan *jump_locked(struct active_plans *active_plans,
                                       struct active_plan *active, const struct node *node)
{
    uint64_t unit = active_plan_unit(node);

    lock_assert_held(&active_plans->lock);
    if (!active->is_samples || active->in_sequence >= SURE) {
        active_plan_count(&active_plans->counters.jumps, 1);
        if (active->ghost != UINT64_MAX && is_close(active->ghost, active->ghost, unit)) {
            active->ghost = UINT64_MAX;
            active->is_stray = active->in_sequence == 1;
            return begin_locked(active_plans, node);
        }
        active->ghost = active->at;
    }
    active->jumps++;
    active->is_stray = false;
    active->node = *node;
    go_to(active, unit);
    return active;
}

static bool is_jump(const struct active_plan *active, uint64_t unit)
{
    if (active->is_samples && active->in_sequence < SURE)
        return unit < active->at || unit > active->at + SURE_GAP;
    if (active_plan_is_open(active, unit)) /* a worker that waited long continues */
        return false;
    return !is_close(active->at, active->pushed, unit);
}

bool active_plan_is_live(const struct active_plan *active)
{
    return active->id && !active->is_stray && (!active->is_samples || active->in_sequence >= SURE);
}

/* Note a kind that is read. If it is a new one, what was pushed lacks it. */
static void note_kind(struct active_plan *active, unsigned kind)
{
    const uint64_t bit = UINT64_C(1) << kind;

    if (active->kinds && !(active->kinds & bit))
        active_plan_push_from(active, active->at + 1);
    active->kinds |= bit;
    active->came |= bit;
}

unsigned active_plans_read(struct active_plans *active_plans, const struct node *node, uint64_t end)
{
    uint64_t unit = active_plan_unit(node);
    int64_t now = active_plans->options.now();
    struct active_plan *active;
    unsigned result = 0;
    bool was_live;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    was_live = active && active_plan_is_live(active);
    if (!active) {
        active = begin_locked(active_plans, node);
        active->moved_ns = now;
        result = retire_others_locked(active_plans, active) ? ACTIVE_MOVED : ACTIVE_JUMPED;
    } else if (is_jump(active, unit)) {
        active = jump_locked(active_plans, active, node);
        active->moved_ns = now;
        result = ACTIVE_JUMPED;
    } else {
        bool lost = note_lost(active_plans, active, node);

        if (unit > active->at) {
            move(active_plans, active, unit, lost, now);
            result = was_live ? ACTIVE_MOVED : ACTIVE_JUMPED;
        }
    }
    active->first_ns = active->first_ns ? active->first_ns : now;
    active->last_ns = now;
    note_kind(active, node_kind(node));
    if (!active->unit_bytes)
        active->unit_bytes = active_plan_pages(end);
    return active_plan_is_live(active) ? result : 0;
}

void active_plans_given(struct active_plans *active_plans, const struct node *node, uint64_t off,
                        uint64_t bytes, uint64_t size)
{
    const uint64_t bit = UINT64_C(1) << node_kind(node);
    struct open_unit *open;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    if (active && active_plan_unit(node) + 1 == active->units && off + bytes >= size)
        active->ended |= bit;
    if (!active || !active_plan_is_open(active, active_plan_unit(node)))
        return;
    open = &active->open[active_plan_unit(node) % OPEN_MOST];
    if (size != UINT64_MAX && !(open->kinds & bit)) {
        open->kinds |= bit;
        open->bytes += size;
    }
    open->given += bytes;
    open->is_open = (open->kinds & active->kinds) != active->kinds || open->given < open->bytes;
    open->was_open = true;
}

void active_plans_waited(struct active_plans *active_plans, const struct node *node, int64_t ns)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = active_plan_find_locked(active_plans, node);
    if (active)
        active->wait_ns += ns;
}
