/* When background work yields the processors. The test turns the clock and sets how idle they
 * are. */
#include "base/processors.h"
#include "base/yield.h"
#include "support/unit.h"

#define MS INT64_C(1000000)

/* Processors with a given idle time, and the work on them. */
struct world {
    struct yield yield;
    int64_t now;
    uint64_t idle;
    unsigned resting,
        working; /* idle time, per cent of one processor, without the work and during it */
    size_t under_way;
    unsigned pieces, rests;
};

static void pass(struct world *w, int64_t ns)
{
    w->now += ns;
    w->idle += (uint64_t)ns * (w->under_way ? w->working : w->resting) / 100;
}

/* Begin as many pieces of 1 ms as allowed, up to three at once, for ns. */
static void work(struct world *w, int64_t ns)
{
    for (int64_t end = w->now + ns; w->now < end;) {
        if (yield_looks(&w->yield, w->now, w->under_way))
            w->rests += yield_look(&w->yield, w->now, w->idle);
        while (w->under_way < 3 && yield_may(&w->yield, w->under_way)) {
            w->under_way++;
            w->pieces++;
            yield_begun(&w->yield);
        }
        pass(w, MS);
        w->under_way -= w->under_way > 0;
    }
}

static struct world start(unsigned resting, unsigned working)
{
    struct world w = {.now = 77 * MS, .resting = resting, .working = working};

    yield_init(&w.yield);
    return w;
}

UNIT_TEST(test_yield__idle_beside_the_work__never_rests)
{
    struct world w = start(150, 60);

    work(&w, 10000 * MS);
    assert_int_equal(w.rests, 0);
    assert_true(w.pieces >= 9990);
    assert_false(yield_is_taken(&w.yield));
}

/* The work itself takes the free time: it rests now and then, for a tenth of the time. */
UNIT_TEST(test_yield__idle_when_it_rests__goes_on)
{
    struct world w = start(100, 0);

    work(&w, 10000 * MS);
    assert_in_range(w.rests, 5, 20);
    assert_true(w.pieces > 8000);
    assert_true(w.yield.free_ns == 1000 * MS);
}

/* No processor is idle: the work goes on with one piece after each rest, and rests end. */
UNIT_TEST(test_yield__taken__one_piece_for_each_rest)
{
    struct world w = start(20, 0);
    unsigned before;

    work(&w, 1000 * MS);
    assert_true(yield_is_taken(&w.yield));
    before = w.pieces;
    work(&w, 10000 * MS);
    assert_in_range(w.pieces - before, 20, 30);
    assert_true(w.yield.state != YIELD_FREE);
}

UNIT_TEST(test_yield__taken_then_idle__works_on_at_once)
{
    struct world w = start(0, 0);
    unsigned before;

    work(&w, 5000 * MS);
    assert_true(yield_is_taken(&w.yield));
    w.resting = 200;
    w.working = 100;
    work(&w, 900 * MS); /* a rest that had begun may count as busy */
    before = w.pieces;
    work(&w, 1000 * MS);
    assert_true(w.pieces - before >= 990);
    assert_false(yield_is_taken(&w.yield));
}

/* A rest begins when nothing is under way: pieces are never interrupted. */
UNIT_TEST(test_yield__something_under_way__waits_for_its_end)
{
    struct world w = start(0, 0);
    struct yield *y = &w.yield;

    assert_true(yield_looks(y, w.now, 2));
    yield_look(y, w.now, 0);
    w.now += 250 * MS;
    assert_int_equal(yield_next(y, 2), w.now);
    assert_true(yield_next(y, 0) == INT64_MAX); /* idle work need not wake */
    yield_look(y, w.now, 0);
    assert_false(yield_may(y, 2));
    assert_false(yield_looks(y, w.now + 10000 * MS, 1));
    assert_true(yield_looks(y, w.now + 10000 * MS, 0));
    assert_true(yield_look(y, w.now, 0));
    assert_false(yield_may(y, 0));
}

UNIT_TEST(test_yield__idle_not_known__never_rests)
{
    struct yield y;

    yield_init(&y);
    for (int64_t now = 0; now < 10000 * MS; now += MS) {
        if (yield_looks(&y, now, 1))
            assert_false(yield_look(&y, now, UINT64_MAX));
        assert_true(yield_may(&y, 1));
    }
}

/* A processor that is removed (hotplug, another affinity) makes the sum smaller. */
UNIT_TEST(test_yield__idle_goes_back__counts_as_none)
{
    struct yield y;

    yield_init(&y);
    yield_look(&y, 0, (uint64_t)5000 * MS);
    yield_look(&y, 250 * MS, (uint64_t)4000 * MS);
    assert_false(yield_may(&y, 1));
}

UNIT_TEST(test_processors__are_reported_and_grow)
{
    uint64_t before = processors_idle_ns(), after = processors_idle_ns();

    assert_true(before != UINT64_MAX && after >= before);
}
