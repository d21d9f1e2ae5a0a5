#include "base/yield.h"

#define NS_PER_MS  INT64_C(1000000)
#define FREE_FIRST (250 * NS_PER_MS) /* doubled by each look that finds idle time */
#define FREE_MOST  (1000 * NS_PER_MS)
#define REST_FIRST (100 * NS_PER_MS) /* doubled by each look that finds none */
#define REST_MOST  (400 * NS_PER_MS)
#define IDLE_SHARE 2 /* one part in so many of one processor must be idle for work to go on */

static int64_t twice(int64_t ns, int64_t most)
{
    return 2 * ns < most ? 2 * ns : most;
}

void yield_init(struct yield *y)
{
    *y = (struct yield){.state = YIELD_FREE, .free_ns = FREE_FIRST, .rest_ns = REST_FIRST};
}

bool yield_looks(const struct yield *y, int64_t now, size_t under_way)
{
    switch (y->state) {
    case YIELD_FREE:
        return !y->has_begun || (under_way && now >= y->until);
    case YIELD_QUIET:
        return !under_way;
    case YIELD_RESTING:
        return now >= y->until;
    default:
        return false;
    }
}

static void yield_watch(struct yield *y, enum yield_state state, int64_t now, uint64_t idle,
                        int64_t ns)
{
    y->state = state;
    y->since = now;
    y->until = now + ns;
    y->idle = idle;
    y->has_begun = true;
}

static bool was_idle(const struct yield *y, int64_t now, uint64_t idle)
{
    int64_t need = (now - y->since) / IDLE_SHARE;

    return idle >= y->idle && idle - y->idle >= (uint64_t)(need > 0 ? need : 0);
}

bool yield_look(struct yield *y, int64_t now, uint64_t idle)
{
    if (idle == UINT64_MAX) {
        yield_watch(y, YIELD_FREE, now, 0, FREE_MOST);
        return false;
    }
    switch (y->state) {
    case YIELD_FREE:
        if (!y->has_begun)
            yield_watch(y, YIELD_FREE, now, idle, y->free_ns);
        else if (was_idle(y, now, idle))
            yield_watch(y, YIELD_FREE, now, idle, y->free_ns = twice(y->free_ns, FREE_MOST));
        else
            y->state = YIELD_QUIET;
        return false;
    case YIELD_QUIET:
        yield_watch(y, YIELD_RESTING, now, idle, y->rest_ns);
        return true;
    case YIELD_RESTING:
        if (was_idle(y, now, idle)) {
            y->rest_ns = REST_FIRST;
            yield_watch(y, YIELD_FREE, now, idle, y->free_ns = twice(y->free_ns, FREE_MOST));
        } else {
            y->free_ns = FREE_FIRST;
            y->rest_ns = twice(y->rest_ns, REST_MOST);
            y->state = YIELD_ONE;
        }
        return false;
    default:
        return false;
    }
}

bool yield_may(const struct yield *y, size_t under_way)
{
    return y->state == YIELD_FREE || (y->state == YIELD_ONE && !under_way);
}

bool yield_is_taken(const struct yield *y)
{
    return y->state == YIELD_ONE || (y->state != YIELD_FREE && y->rest_ns > REST_FIRST);
}

void yield_begun(struct yield *y)
{
    if (y->state == YIELD_ONE)
        y->state = YIELD_QUIET;
}

int64_t yield_next(const struct yield *y, size_t under_way)
{
    bool waits = y->state == YIELD_RESTING || (y->state == YIELD_FREE && y->has_begun && under_way);

    return waits ? y->until : INT64_MAX;
}
