/* Invariants of an active plan that is read:
 *
 *  1. at is the furthest unit of which a read has reached us. What lies between at and pushed is in
 *     the page cache, but for marks, or was. So the reader is no further on than the next mark.
 *  2. Bytes that are pushed and, as far as is known, not read yet: (pushed - at) * unit_bytes, no
 *     more than the plan's share of options.ahead.
 *  3. Reads a little behind at, or before their turn, are those of several workers of one reader.
 *     What is further away is a jump, but for who goes on with a unit that is open.
 *  4. A unit that was not pushed is still needed until all of it has been given to its reader: the
 *     kernel asks for a large one bit by bit. It is open until then, and the cursor begins there.
 */
#include "fs/drive/active_plans.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/checked.h"
#include "base/lock.h"
#include "fs/plan/plan.h"

#define SLACK          32 /* units that the workers of one reader may be apart */
#define OPEN_MOST      128
#define USED_MOST      128
#define SURE           3 /* samples in sequence that make an active plan */
#define SURE_GAP       8
#define WINDOW_START   4 /* units that are pushed at first */
#define WINDOW_MOST    65536
#define MARK_MOST      64                             /* units between two marks */
#define MARKS          (WINDOW_MOST / MARK_MOST + 64) /* that are remembered */
#define PAGE           4096
#define QUIET_S        60.0 /* after which a plan may be one that is not read any more */
#define NS_PER_S       1e9
#define OVERTAKEN_MOST 8 /* in a row; then the reader is the faster one, and for a while */
#define REST_NS        INT64_C(20000000) /* nothing is pushed; doubled each time */
#define RESTS_MOST     6                 /* so often */
#define LOST_MOST      3                 /* in a row, so many units apart at most */
#define LOST_GAP       4
#define FAIL_REST_NS   INT64_C(1000000000)

/* A unit that is read and was not pushed. */
struct open_unit {
    bool is_open;
    bool was_open; /* something of it was given */
    uint64_t unit;
    uint64_t kinds; /* bits: the sizes of these are known, */
    uint64_t bytes; /* and this is their sum */
    uint64_t given; /* bytes, of all kinds */
};

/* A file whose bytes before end were used when it was made. */
struct used_file {
    uint64_t unit;
    unsigned kind;
    uint64_t end;
};

struct active_plan {
    uint64_t id; /* 0: free */
    uint64_t jumps;
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: announced, and not read yet */
    bool is_samples;
    uint64_t epoch;
    struct node node; /* one that was read */
    uint64_t kinds;   /* bits */
    uint64_t came;    /* bits: of these kinds, those read since it is here, and not elsewhere; */
    uint64_t ended;   /* of these it has read the last unit's file to its end */
    uint64_t units, samples;
    uint64_t at;
    unsigned in_sequence;
    /* What is pushed: */
    uint64_t pushed;               /* the next unit, */
    uint64_t done;                 /* units before this one have come from stored on */
    uint64_t stored;               /* units from this one to pushed are in the page cache */
    unsigned kind;                 /* and of its kinds those from this one on */
    uint64_t dropped;              /* the next unit to drop, */
    unsigned drop_kind;            /* and of its kinds those from this one on */
    uint64_t unit_bytes;           /* in the page cache */
    uint64_t this_bytes;           /* of the unit that is being pushed */
    uint64_t window;               /* units that may be pushed ahead of at */
    uint64_t mark[MARKS], n_marks; /* ascending */
    int64_t rest_until;
    unsigned overtaken;  /* in a row */
    unsigned rests;      /* in a row */
    unsigned lost;       /* units in a row, */
    uint64_t lost_unit;  /* this one last */
    bool waits_for_move; /* the kernel does not know what is next, or it is too large */
    bool being_made;     /* one file at a time */
    struct open_unit open[OPEN_MOST]; /* unit u: [u % OPEN_MOST] */
    uint64_t reported;                /* the cursor was told to begin at this unit */
    struct used_file used[USED_MOST]; /* that were made last */
    /* Numbers: */
    int64_t first_ns, last_ns; /* reads; 0: none */
    int64_t moved_ns;          /* the last one that was further on */
    double units_per_s;
    int64_t wait_ns;
    uint64_t ghost; /* where the reader was before it jumped; UINT64_MAX: none */
    bool is_stray;  /* another one has gone on there, and this one not yet where it is */
};

struct active_plans {
    struct active_plans_options options;
    struct active_plans_counters counters;
    struct lock lock;
    /* Guarded by lock: */
    struct active_plan active[ACTIVE_PLANS_MAX];
    uint64_t ids;
    uint64_t capacity; /* bytes that may be pushed, and */
    int64_t looked;    /* the time, of active_plans_next_push() */
};

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

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- finding ---- */

static uint64_t in_pages(uint64_t bytes)
{
    return ceil_div(max_u64(bytes, 1), PAGE) * PAGE;
}

static uint64_t unit_of(const struct node *node)
{
    return node->number;
}

static bool is_like(const struct active_plan *active, const struct node *node)
{
    return active->id && active->item == node->item && active->plan == node->plan &&
           active->epoch == node->epoch && active->folder == node->folder &&
           active->is_samples == (node->kind == NODE_SAMPLE);
}

/* Is the unit one that the reader at `at` may read now? */
static bool is_close(uint64_t at, uint64_t until, uint64_t unit)
{
    return unit + SLACK >= at && unit <= max_u64(at, until) + SLACK;
}

static bool is_open(const struct active_plan *active, uint64_t unit)
{
    const struct open_unit *open = &active->open[unit % OPEN_MOST];

    return open->is_open && open->unit == unit;
}

/* The active plan that a read belongs to: the one that has the unit open, or whose reader is close,
 * else any reader of that folder. NULL: none. */
static struct active_plan *find_locked(struct active_plans *active_plans, const struct node *node)
{
    uint64_t unit = unit_of(node);
    struct active_plan *other = NULL;

    lock_assert_held(&active_plans->lock);
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        struct active_plan *active = &active_plans->active[i];

        if (!is_like(active, node))
            continue;
        if (is_open(active, unit) || is_close(active->at, active->pushed, unit))
            return active;
        if (!other || active->last_ns > other->last_ns)
            other = active;
    }
    return other;
}

/* A free place, or that of the one read longest ago. */
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

/* Has its reader come to the end, as far as can be known? What is pushed up to there it may have
 * read. */
static bool is_at_end(const struct active_plan *active)
{
    return max_u64(active->at, active->pushed) + 1 + SLACK >= active->units;
}

/* Of a plan one epoch is read after another: what was announced, and epochs before, are over. True:
 * this one goes on where one of those has ended. */
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

/* Units from that one on are pushed, perhaps again: marks that they had are none, any more. */
static void push_from(struct active_plan *active, uint64_t unit)
{
    while (active->n_marks && active->mark[(active->n_marks - 1) % MARKS] >= unit)
        active->n_marks--;
    active->pushed = active->done = active->stored = unit;
    active->kind = 0;
    active->this_bytes = 0;
    active->reported = min_u64(active->reported, unit);
}

/* Units from `from` to this one, which is read, are open: those before it other workers will read.
 */
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
    push_from(active, unit + 1);
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
    go_to(active, unit_of(node));
    return active;
}

void active_plans_announce(struct active_plans *active_plans, const struct plan_entry *plan)
{
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = place_locked(active_plans);
    if (active->id || !plan->schedule.elements)
        return; /* what is read counts more */
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

static bool is_marked(const struct active_plan *active, uint64_t unit)
{
    uint64_t last = active->n_marks, first = last - min_u64(last, MARKS);

    while (last > first && active->mark[(last - 1) % MARKS] > unit)
        last--;
    return last > first && active->mark[(last - 1) % MARKS] == unit;
}

static uint64_t last_mark(const struct active_plan *active)
{
    return active->n_marks ? active->mark[(active->n_marks - 1) % MARKS] : active->at;
}

static void note_rate(struct active_plan *active, uint64_t units, int64_t now)
{
    double seconds = (double)(now - active->moved_ns) / NS_PER_S, rate;

    if (seconds <= 0)
        return;
    rate = (double)units / seconds;
    active->units_per_s = active->units_per_s > 0 ? active->units_per_s * 0.8 + rate * 0.2 : rate;
}

/* The reader has come to a unit that was to be pushed, and was not: it goes on behind it, and after
 * a while, for who is always too late only takes the processor away. What comes while it rests
 * says nothing. */
static void note_overtaken(struct active_plans *active_plans, struct active_plan *active,
                           uint64_t unit, int64_t now)
{
    open_units(active, active->done, unit);
    push_from(active, unit + 1);
    if (now < active->rest_until || ++active->overtaken <= OVERTAKEN_MOST)
        return;
    count(&active_plans->counters.overtaken, 1);
    active->rest_until = now + (REST_NS << min_u64(active->rests, RESTS_MOST));
    active->rests++;
    active->overtaken = 0;
}

/* The reader is further on. lost: it had been pushed there. */
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

/* Something that had been stored came back as a read: the kernel has dropped it. If it is so again
 * and again it has dropped all, and is given it anew. A page here and there is left to reads; so
 * is all that is dropped of a reader that takes only units far apart. */
static bool note_lost(struct active_plans *active_plans, struct active_plan *active,
                      const struct node *node)
{
    uint64_t unit = unit_of(node);

    if (unit >= active->done || unit < active->stored || is_marked(active, unit) ||
        !(active->kinds >> node_kind(node) & 1))
        return false;
    count(&active_plans->counters.lost, 1);
    active->window = max_u64(active->window / 2, WINDOW_START);
    if (unit <= active->at)
        return true;
    active->lost = unit <= active->lost_unit + LOST_GAP ? active->lost + 1 : 1;
    active->lost_unit = unit;
    if (active->lost == LOST_MOST) {
        push_from(active, unit + 1);
        active->lost = 0;
    }
    return true;
}

/* The reader is somewhere else. If another one has gone on where this one was before, there are
 * two. */
static struct active_plan *jump_locked(struct active_plans *active_plans,
                                       struct active_plan *active, const struct node *node)
{
    uint64_t unit = unit_of(node);

    lock_assert_held(&active_plans->lock);
    if (!active->is_samples || active->in_sequence >= SURE) {
        count(&active_plans->counters.jumps, 1);
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
    if (is_open(active, unit)) /* a worker that waits for long goes on */
        return false;
    return !is_close(active->at, active->pushed, unit);
}

/* Do samples that are read follow one another at all? Batches always count; but one that was read
 * very late, by a worker of a reader that is far ahead, is no reader of its own. */
static bool is_live(const struct active_plan *active)
{
    return active->id && !active->is_stray && (!active->is_samples || active->in_sequence >= SURE);
}

/* A kind that was not read before: what is pushed lacks it. */
static void note_kind(struct active_plan *active, unsigned kind)
{
    const uint64_t bit = UINT64_C(1) << kind;

    if (active->kinds && !(active->kinds & bit))
        push_from(active, active->at + 1);
    active->kinds |= bit;
    active->came |= bit;
}

unsigned active_plans_read(struct active_plans *active_plans, const struct node *node, uint64_t end)
{
    uint64_t unit = unit_of(node);
    int64_t now = active_plans->options.now();
    struct active_plan *active;
    unsigned result = 0;
    bool was_live;
    LOCK_SCOPE(&active_plans->lock);

    active = find_locked(active_plans, node);
    was_live = active && is_live(active);
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
        active->unit_bytes = in_pages(end);
    return is_live(active) ? result : 0;
}

void active_plans_given(struct active_plans *active_plans, const struct node *node, uint64_t off,
                        uint64_t bytes, uint64_t size)
{
    const uint64_t bit = UINT64_C(1) << node_kind(node);
    struct open_unit *open;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = find_locked(active_plans, node);
    if (active && unit_of(node) + 1 == active->units && off + bytes >= size)
        active->ended |= bit;
    if (!active || !is_open(active, unit_of(node)))
        return;
    open = &active->open[unit_of(node) % OPEN_MOST];
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

    active = find_locked(active_plans, node);
    if (active)
        active->wait_ns += ns;
}

/* ---- pushing ---- */

static bool is_quiet(const struct active_plan *active, int64_t now)
{
    double quiet = (double)(now - active->last_ns) / NS_PER_S;
    double expected = active->units_per_s > 0 ? MARK_MOST / active->units_per_s : 0;

    return quiet > QUIET_S + 4 * expected;
}

static uint64_t share_locked(const struct active_plans *active_plans, int64_t now)
{
    uint64_t n = 0;

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        n += is_live(active) && active->folder && !is_quiet(active, now);
    }
    return min_u64(active_plans->options.ahead, active_plans->capacity) / max_u64(n, 1);
}

/* Units that may be pushed ahead of the reader: one at least, if it is no larger than the share. */
static uint64_t window_of(const struct active_plan *active, uint64_t share)
{
    return min_u64(active->window, max_u64(share / max_u64(active->unit_bytes, PAGE), 1));
}

static bool may_push(const struct active_plan *active, uint64_t share, int64_t now)
{
    return is_live(active) && active->folder && !active->being_made && !active->waits_for_move &&
           now >= active->rest_until && active->pushed < active->units &&
           active->pushed - active->at <= window_of(active, share);
}

/* What was passed, for sure, by a whole slack. */
static bool may_drop(const struct active_plans *active_plans, const struct active_plan *active)
{
    return active_plans->options.drops && is_live(active) && active->folder &&
           !active->being_made && active->dropped + SLACK < active->at;
}

static unsigned next_kind(const struct active_plan *active, unsigned from)
{
    uint64_t left = from < KINDS_MAX ? active->kinds >> from : 0;

    return left ? from + (unsigned)__builtin_ctzll(left) : KINDS_MAX;
}

/* Is the next unit marked? All of its files are then: of several kinds its reader may come for one
 * only, the others being in the page cache from before. */
static bool marks_next(const struct active_plan *active, uint64_t window)
{
    uint64_t every = min_u64(max_u64(window / 2, 1), MARK_MOST);

    /* The last one tells when the epoch is over. */
    return active->pushed >= last_mark(active) + every || active->pushed + 1 == active->units;
}

static void take_push(struct active_plan *active, uint64_t share, struct push_file *ret)
{
    unsigned kind = next_kind(active, active->kind);

    *ret = (struct push_file){.ticket = active->id};
    node_sibling(&active->node, active->pushed, kind, &ret->node);
    if (!active->this_bytes && !is_marked(active, active->pushed) &&
        marks_next(active, window_of(active, share)))
        active->mark[active->n_marks++ % MARKS] = active->pushed;
    ret->is_marked = is_marked(active, active->pushed);
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

/* The file is made: the next kind, or the next unit. */
static void made(struct active_plan *active, const struct push_file *file, uint64_t bytes)
{
    active->this_bytes += in_pages(bytes);
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
                             in_pages(size) <=
                         share_locked(active_plans, now);
}

static struct used_file *used_file(struct active_plan *active, const struct node *node)
{
    return &active->used[(unit_of(node) * KINDS_MAX + node_kind(node)) % USED_MOST];
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
    if (off + len <= used->end) /* it is made again */
        return false;
    used->end = off + len;
    return true;
}

bool active_plans_push_used(struct active_plans *active_plans, const struct node *node,
                            uint64_t off, uint64_t len)
{
    uint64_t unit = unit_of(node);
    const struct used_file *used;
    const struct open_unit *open;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    active = find_locked(active_plans, node);
    if (!active)
        return false;
    used = used_file(active, node);
    if (used->unit == unit && used->kind == node_kind(node) && used->end)
        return off + len <= used->end;
    open = &active->open[unit % OPEN_MOST];
    return unit < active->pushed && !is_marked(active, unit) &&
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
        return; /* the reader has passed it, or is somewhere else */
    if (result >= 0) {
        made(active, file, (uint64_t)result);
        return;
    }
    if (result == -ENOENT || result == -EFBIG || blob_says_nothing((int)result)) {
        failed(active_plans, active, result);
        return;
    }
    made(active, file, 0); /* one that cannot be read is left to its reader */
    active->stored = file->node.number + 1;
}

void active_plans_stored(struct active_plans *active_plans, const struct push_file *file,
                         int64_t result)
{
    uint64_t unit = file->node.number;
    struct active_plan *active;
    LOCK_SCOPE(&active_plans->lock);

    if (result >= 0) {
        count(&active_plans->counters.pushed_files, 1);
        count(&active_plans->counters.pushed_bytes, (uint64_t)result);
    } else if (result == -ENOENT) {
        count(&active_plans->counters.unknown_files, 1);
    }
    active = of_ticket_locked(active_plans, file);
    if (active && result >= 0 && is_open(active, unit)) /* its reader has the rest from there */
        active->open[unit % OPEN_MOST].is_open = false;
    if (!active || unit < active->done || unit >= active->pushed)
        return;
    if (result >= 0) {
        active->done = unit + 1;
        return;
    }
    push_from(active, unit);
    failed(active_plans, active, result);
}

int64_t active_plans_next_look(struct active_plans *active_plans)
{
    int64_t next = INT64_MAX;
    LOCK_SCOPE(&active_plans->lock);

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        const struct active_plan *active = &active_plans->active[i];

        if (is_live(active) && active->rest_until > active_plans->looked &&
            active->rest_until < next)
            next = active->rest_until;
    }
    return next;
}

/* ---- what is told of them ---- */

/* Where the cursor begins. It goes back only if what was pushed is pushed again. */
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

size_t actives_cursors(struct active_plans *active_plans,
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

        if (!is_live(active) ||
            (active->folder && is_quiet(active, now) && active->last_ns < latest))
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

        if (!is_live(active))
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
