#include "support/test_clock.h"

#include <sched.h>

#include "support/unit.h"

#define HUNG_NS (120 * TEST_S) /* real time after which a test that still waits has failed */
#define POLL_MS 2              /* a test cannot wake a poll(), so its caller looks again */

/* A thread in clock_wait(). */
struct test_clock_wait {
    struct test_clock_wait *next;
    struct lock *lock; /* of its caller */
    pthread_cond_t *condition;
    int64_t until;
    bool woken;
};

static _Thread_local int64_t known; /* the time that this thread has read */

static struct test_clock *test_clock_of(const struct clock *clock)
{
    return (struct test_clock *)clock;
}

static int64_t test_monotonic(const struct clock *clock)
{
    struct test_clock *t = test_clock_of(clock);
    LOCK_SCOPE(&t->lock);

    known = t->monotonic;
    return t->monotonic;
}

static int64_t test_wall(const struct clock *clock)
{
    struct test_clock *t = test_clock_of(clock);
    LOCK_SCOPE(&t->lock);

    return t->wall;
}

static void note_begun(struct test_clock *t)
{
    LOCK_SCOPE(&t->lock);

    t->begun++;
    pthread_cond_broadcast(&t->changed);
}

static bool begin_wait(struct test_clock *t, struct test_clock_wait *wait)
{
    LOCK_SCOPE(&t->lock);

    if (wait->until <= t->monotonic)
        return false;
    wait->next = t->waits;
    t->waits = wait;
    t->begun++;
    pthread_cond_broadcast(&t->changed);
    return true;
}

static void end_wait(struct test_clock *t, struct test_clock_wait *wait)
{
    struct test_clock_wait **at = &t->waits;
    LOCK_SCOPE(&t->lock);

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    pthread_cond_broadcast(&t->changed);
}

static void test_wait(const struct clock *clock, struct lock *l, pthread_cond_t *condition,
                      int64_t until)
{
    struct test_clock_wait wait = {.lock = l, .condition = condition, .until = until};
    struct test_clock *t = test_clock_of(clock);

    if (until == CLOCK_NEVER) {
        note_begun(t);
        lock_wait(l, condition);
    } else if (begin_wait(t, &wait)) {
        lock_wait(l, condition);
        end_wait(t, &wait);
    }
}

static int test_poll_ms(const struct clock *clock, int64_t until)
{
    struct test_clock *t = test_clock_of(clock);
    LOCK_SCOPE(&t->lock);

    t->polled = known;
    t->polls_for_ever = until == CLOCK_NEVER;
    pthread_cond_broadcast(&t->changed);
    if (until == CLOCK_NEVER)
        return -1;
    return until > t->monotonic ? POLL_MS : 0;
}

void test_clock_init(struct test_clock *ret)
{
    *ret = (struct test_clock){
        .clock = {test_monotonic, test_wall, test_wait, test_poll_ms},
        .monotonic = TEST_CLOCK_START,
        .wall = 1000000000 * TEST_S,
    };
    lock_init(&ret->lock);
    condition_init(&ret->changed);
}

void test_clock_release(struct test_clock *clock)
{
    assert_null(clock->waits);
    pthread_cond_destroy(&clock->changed);
    lock_release(&clock->lock);
}

/* Wake a thread whose wait is over. Its lock comes before ours, so it can only be tried; a wait
 * cannot go away meanwhile. False: not yet. */
static bool wake_locked(struct test_clock *t, struct test_clock_wait *wait)
{
    lock_assert_held(&t->lock);
    if (pthread_mutex_trylock(&wait->lock->mutex) != 0)
        return false;
    pthread_cond_broadcast(wait->condition);
    pthread_mutex_unlock(&wait->lock->mutex);
    wait->woken = true;
    return true;
}

static bool wake_all_locked(struct test_clock *t)
{
    bool all = true;

    lock_assert_held(&t->lock);
    for (struct test_clock_wait *wait = t->waits; wait; wait = wait->next)
        if (wait->until <= t->monotonic && !wait->woken)
            all = wake_locked(t, wait) && all;
    return all;
}

/* Wake the threads whose waits are over. The lock is free between two tries, since a thread may
 * hold its own lock and want ours. */
static void wake_all(struct test_clock *t)
{
    bool all = false;

    while (!all) {
        lock_take(&t->lock);
        all = wake_all_locked(t);
        lock_drop(&t->lock);
        if (!all)
            sched_yield();
    }
}

/* wake_all() must follow. */
static void advance_locked(struct test_clock *t, int64_t ns)
{
    lock_assert_held(&t->lock);
    t->monotonic += ns;
    t->wall += ns;
}

void test_clock_turn(struct test_clock *clock, int64_t ns)
{
    lock_take(&clock->lock);
    advance_locked(clock, ns);
    lock_drop(&clock->lock);
    wake_all(clock);
}

static bool is_awaited_locked(struct test_clock *t, int64_t until)
{
    lock_assert_held(&t->lock);
    for (const struct test_clock_wait *wait = t->waits; wait; wait = wait->next)
        if (wait->until == until)
            return true;
    return false;
}

static void await_locked(struct test_clock *t, int64_t ns)
{
    int64_t until = t->monotonic + ns, hung = monotonic_ns() + HUNG_NS;

    lock_assert_held(&t->lock);
    while (!is_awaited_locked(t, until)) {
        if (monotonic_ns() > hung)
            fail_msg("no thread waits for %lld ns", (long long)ns);
        lock_wait_until(&t->lock, &t->changed, hung);
    }
}

void test_clock_await(struct test_clock *clock, int64_t ns)
{
    LOCK_SCOPE(&clock->lock);

    await_locked(clock, ns);
}

void test_clock_await_begun(struct test_clock *clock, uint64_t *begun)
{
    LOCK_SCOPE(&clock->lock);

    while (clock->begun <= *begun)
        lock_wait(&clock->lock, &clock->changed);
    *begun = clock->begun;
}

void test_clock_pass(struct test_clock *clock, int64_t ns)
{
    lock_take(&clock->lock);
    await_locked(clock, ns);
    advance_locked(clock, ns);
    lock_drop(&clock->lock);
    wake_all(clock);
}

void test_clock_turn_polled(struct test_clock *clock, int64_t ns)
{
    int64_t turned;

    lock_take(&clock->lock);
    advance_locked(clock, ns);
    turned = clock->monotonic;
    lock_drop(&clock->lock);
    wake_all(clock);
    lock_take(&clock->lock);
    while (clock->polled < turned && !clock->polls_for_ever)
        lock_wait(&clock->lock, &clock->changed);
    lock_drop(&clock->lock);
}

/* The first end of a wait; CLOCK_NEVER: there is none, or a thread that was woken has not run yet.
 */
static int64_t first_end_locked(struct test_clock *t)
{
    int64_t first = CLOCK_NEVER;

    lock_assert_held(&t->lock);
    for (const struct test_clock_wait *wait = t->waits; wait; wait = wait->next) {
        if (wait->woken)
            return CLOCK_NEVER;
        if (wait->until < first)
            first = wait->until;
    }
    return first;
}

/* Wait for a thread whose wait ends soon, and advance to that. False: the clock stands. */
static bool advance_to_first(struct test_clock *t)
{
    LOCK_SCOPE(&t->lock);

    while (t->runs) {
        int64_t first = first_end_locked(t);

        if (first != CLOCK_NEVER && first - t->monotonic <= t->runs) {
            advance_locked(t, first - t->monotonic);
            return true;
        }
        lock_wait(&t->lock, &t->changed);
    }
    return false;
}

static void *run_main(void *arg)
{
    struct test_clock *t = arg;

    while (advance_to_first(t))
        wake_all(t);
    return NULL;
}

void test_clock_run(struct test_clock *clock, int64_t ns)
{
    LOCK_SCOPE(&clock->lock);

    clock->runs = ns;
    assert_int_equal(pthread_create(&clock->thread, NULL, run_main, clock), 0);
}

void test_clock_stand(struct test_clock *clock)
{
    lock_take(&clock->lock);
    clock->runs = 0;
    pthread_cond_broadcast(&clock->changed);
    lock_drop(&clock->lock);
    pthread_join(clock->thread, NULL);
}
