/* How far ahead of its reader a plan is pushed. */
#include "fs/drive/push_window.h"

#include <errno.h>

#include "base/checked.h"
#include "format/core/encoder.h"
#include "fs/drive/reader.h"

#define PAGE           4096
#define START          4                   /* units of the first window */
#define OVERTAKEN_MOST 8                   /* in a row; after more, the reader is faster, */
#define TRIAL_MOST     1                   /* the same after a rest */
#define REST_NS        INT64_C(20000000)   /* and the push rests this long, doubled each time, */
#define RESTS_MOST     6                   /* at most this often */
#define FAIL_REST_NS   INT64_C(1000000000) /* after an error */
#define LOST_MOST      3                   /* in a row, each at most */
#define LOST_GAP       4                   /* units after the one before */
#define READY_MOST     2                   /* units made ready before a reader */

/* The size of the whole pages that hold so many bytes. */
static uint64_t pages(uint64_t bytes)
{
    return ceil_div(max_u64(bytes, 1), PAGE) * PAGE;
}

static unsigned next_column(uint64_t columns, unsigned from)
{
    uint64_t left = from < KINDS_MAX ? columns >> from : 0;

    return left ? from + (unsigned)__builtin_ctzll(left) : KINDS_MAX;
}

uint64_t push_window_until(const struct push_window *window)
{
    return max_u64(window->pushed, window->cached);
}

void push_window_from(struct push_window *window, uint64_t unit)
{
    while (window->n_marks && window->mark[(window->n_marks - 1) % PUSH_WINDOW_MARKS] >= unit)
        window->n_marks--;
    window->cached = push_window_until(window);
    window->pushed = window->done = window->stored = unit;
    window->column = 0;
    window->this_bytes = 0;
}

void push_window_start(struct push_window *window, uint64_t unit)
{
    window->n_marks = 0;
    push_window_from(window, unit + 1);
    window->cached = 0;
    window->dropped = unit;
    window->drop_column = 0;
    window->size = START;
    window->waits_for_move = false;
    window->overtaken = window->rests = window->lost = 0;
    window->ready = 0;
}

bool push_window_is_marked(const struct push_window *window, uint64_t unit)
{
    uint64_t last = window->n_marks, first = last - min_u64(last, PUSH_WINDOW_MARKS);

    while (last > first && window->mark[(last - 1) % PUSH_WINDOW_MARKS] > unit)
        last--;
    return last > first && window->mark[(last - 1) % PUSH_WINDOW_MARKS] == unit;
}

bool push_window_has(const struct push_window *window, uint64_t unit)
{
    return unit < window->done && unit >= window->stored && !push_window_is_marked(window, unit);
}

/* ---- what the reader does ---- */

void push_window_sees(struct push_window *window, uint64_t bytes)
{
    if (!window->unit_bytes)
        window->unit_bytes = pages(bytes);
}

void push_window_grows(struct push_window *window)
{
    window->lost = 0;
    window->size = min_u64(window->size * 2, PUSH_WINDOW_MAX);
}

void push_window_keeps_up(struct push_window *window)
{
    window->overtaken = window->rests = 0;
}

bool push_window_overtaken(struct push_window *window, uint64_t unit, int64_t now)
{
    if (unit < window->pushed)
        window->done = window->stored = unit + 1;
    else
        push_window_from(window, unit + 1);
    if (now < window->rest_until ||
        ++window->overtaken <= (window->rests ? TRIAL_MOST : OVERTAKEN_MOST))
        return false;
    window->rest_until = now + (REST_NS << min_u64(window->rests, RESTS_MOST));
    window->rests++;
    window->overtaken = 0;
    return true;
}

bool push_window_loses(struct push_window *window, uint64_t unit, uint64_t at)
{
    window->size = max_u64(window->size / 2, START);
    if (unit <= at)
        return false;
    window->lost = unit <= window->lost_unit + LOST_GAP ? window->lost + 1 : 1;
    window->lost_unit = unit;
    if (window->lost < LOST_MOST)
        return false;
    window->lost = 0;
    return true;
}

/* ---- what is pushed ---- */

/* Units that may be pushed ahead of the reader: at least one, provided that it fits the share. */
static uint64_t push_window_reach(const struct push_window *window, uint64_t share)
{
    return min_u64(window->size, max_u64(share / max_u64(window->unit_bytes, PAGE), 1));
}

bool push_window_may_push(const struct push_window *window, uint64_t at, uint64_t units,
                          uint64_t share, int64_t now)
{
    return !window->is_making && !window->waits_for_move && now >= window->rest_until &&
           window->pushed < units && window->pushed - at <= push_window_reach(window, share);
}

/* Is unit `pushed` to be marked? */
static bool is_mark_due(const struct push_window *window, uint64_t at, uint64_t units,
                        uint64_t share)
{
    uint64_t every = min_u64(max_u64(push_window_reach(window, share) / 2, 1), PUSH_WINDOW_STRIDE);
    uint64_t last = window->n_marks ? window->mark[(window->n_marks - 1) % PUSH_WINDOW_MARKS] : at;

    /* The last unit is marked because its read shows that the epoch is over. */
    return window->pushed >= last + every || window->pushed + 1 == units;
}

unsigned push_window_take(struct push_window *window, uint64_t at, uint64_t units, uint64_t columns,
                          uint64_t share, bool *ret_marked)
{
    if (!window->this_bytes && !push_window_is_marked(window, window->pushed) &&
        is_mark_due(window, at, units, share))
        window->mark[window->n_marks++ % PUSH_WINDOW_MARKS] = window->pushed;
    window->is_making = true;
    *ret_marked = push_window_is_marked(window, window->pushed);
    return next_column(columns, window->column);
}

bool push_window_fits(const struct push_window *window, uint64_t at, uint64_t size, uint64_t share)
{
    return (window->pushed - at - 1) * window->unit_bytes + window->this_bytes + pages(size) <=
           share;
}

/* Go on to the next column, or to the next unit. */
void push_window_made(struct push_window *window, unsigned column, uint64_t columns, uint64_t bytes)
{
    window->this_bytes += pages(bytes);
    window->column = column + 1;
    if (next_column(columns, window->column) != KINDS_MAX)
        return;
    window->unit_bytes =
        max_u64((window->unit_bytes * 7 + window->this_bytes) / 8, window->this_bytes);
    window->this_bytes = 0;
    window->column = 0;
    window->pushed++;
}

void push_window_leaves(struct push_window *window, unsigned column, uint64_t columns)
{
    uint64_t unit = window->pushed;

    push_window_made(window, column, columns, 0);
    window->stored = unit + 1;
}

void push_window_failed(struct push_window *window, int64_t error, int64_t now)
{
    if (error == -ENOENT || error == -EFBIG)
        window->waits_for_move = true;
    else
        window->rest_until = now + FAIL_REST_NS;
}

bool push_window_rests(const struct push_window *window, int64_t now)
{
    return window->rests && now < window->rest_until;
}

bool push_window_may_ready(const struct push_window *window, uint64_t at, uint64_t units,
                           int64_t now)
{
    uint64_t unit = max_u64(window->ready, at + 1);

    return !window->is_readying && push_window_rests(window, now) && unit < units &&
           unit <= at + READY_MOST;
}

unsigned push_window_take_ready(struct push_window *window, uint64_t at, uint64_t columns,
                                uint64_t *ret_unit)
{
    if (window->ready <= at) {
        window->ready = at + 1;
        window->ready_column = 0;
    }
    window->is_readying = true;
    *ret_unit = window->ready;
    return next_column(columns, window->ready_column);
}

void push_window_readied(struct push_window *window, uint64_t unit, unsigned column,
                         uint64_t columns)
{
    window->is_readying = false;
    if (unit != window->ready)
        return; /* the reader is elsewhere */
    window->ready_column = column + 1;
    if (next_column(columns, window->ready_column) != KINDS_MAX)
        return;
    window->ready_column = 0;
    window->ready++;
}

void push_window_stored(struct push_window *window, uint64_t unit)
{
    window->done = unit + 1;
}

/* ---- what is dropped ---- */

bool push_window_may_drop(const struct push_window *window, uint64_t at)
{
    return !window->is_making && window->dropped + READER_SLACK < at;
}

void push_window_take_drop(struct push_window *window, uint64_t columns, uint64_t *ret_unit,
                           unsigned *ret_column)
{
    unsigned column = next_column(columns, window->drop_column);

    *ret_unit = window->dropped;
    *ret_column = column;
    window->drop_column = column + 1;
    if (next_column(columns, window->drop_column) != KINDS_MAX)
        return;
    window->drop_column = 0;
    window->dropped++;
}
