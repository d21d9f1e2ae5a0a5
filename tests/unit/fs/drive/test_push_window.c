/* The window: how far it reaches, where marks are, and what makes it larger, smaller or rest. */
#include <errno.h>

#include "fs/drive/push_window.h"
#include "fs/drive/reader.h"
#include "support/unit.h"

#define PAGE UINT64_C(4096)
#define MS   INT64_C(1000000)
#define MUCH UINT64_MAX /* share */
#define LAST UINT64_C(100000)

static struct push_window w;

/* A reader at unit 0 that reads one kind of file, of a page. */
static void start(void)
{
    w = (struct push_window){0};
    push_window_start(&w, 0);
    push_window_sees(&w, 10);
}

/* Make and store units while the window allows it; returns how many were marked. */
static unsigned push_all(uint64_t at, uint64_t share)
{
    unsigned marked = 0;

    while (push_window_may_push(&w, at, LAST, share, 0)) {
        uint64_t unit = w.pushed;
        bool is_marked;

        assert_int_equal(push_window_take(&w, at, LAST, 1, share, &is_marked), 0);
        assert_false(push_window_may_push(&w, at, LAST, share, 0)); /* one at a time */
        w.is_making = false;
        push_window_made(&w, 0, 1, 10);
        push_window_stored(&w, unit);
        marked += is_marked;
        assert_true(push_window_is_marked(&w, unit) == is_marked);
    }
    return marked;
}

UNIT_TEST(test_window__marks_read__doubles_up_to_the_share)
{
    uint64_t size;

    start();
    assert_true(push_all(0, MUCH) >= 1);
    size = w.pushed;
    push_window_grows(&w);
    push_all(0, MUCH);
    assert_int_equal(w.pushed - 1, (size - 1) * 2);
    start();
    for (int i = 0; i < 20; i++)
        push_window_grows(&w);
    push_all(0, 100 * PAGE);
    assert_int_equal(w.pushed, 101);
    assert_true(push_window_fits(&w, 1, PAGE, 100 * PAGE));
    assert_false(push_window_fits(&w, 1, PAGE + 1, 100 * PAGE));
}

UNIT_TEST(test_window__large__a_mark_each_stride)
{
    unsigned marked;

    start();
    for (int i = 0; i < 20; i++)
        push_window_grows(&w);
    assert_int_equal(w.size, PUSH_WINDOW_MAX);
    marked = push_all(0, MUCH);
    assert_int_equal(marked, w.pushed / PUSH_WINDOW_STRIDE);
}

UNIT_TEST(test_window__last_unit__marked)
{
    bool is_marked;

    start();
    push_window_take(&w, 0, 2, 1, MUCH, &is_marked);
    assert_true(is_marked);
}

UNIT_TEST(test_window__two_kinds__a_unit_when_both_are_made)
{
    bool first, second;

    start();
    w.size = 8; /* so that unit 1 has no mark */
    assert_int_equal(push_window_take(&w, 0, LAST, 5, MUCH, &first), 0);
    push_window_made(&w, 0, 5, 10);
    assert_int_equal(w.pushed, 1);
    w.size = 2; /* by itself that would make it marked */
    assert_int_equal(push_window_take(&w, 0, LAST, 5, MUCH, &second), 2);
    assert_int_equal(first, second);
    push_window_made(&w, 2, 5, PAGE + 1);
    assert_int_equal(w.pushed, 2);
    assert_int_equal(w.unit_bytes, 3 * PAGE);
}

UNIT_TEST(test_window__from__marks_from_there_are_forgotten)
{
    start();
    push_all(0, MUCH);
    assert_true(push_window_is_marked(&w, 2));
    push_window_from(&w, 2);
    assert_false(push_window_is_marked(&w, 2));
    assert_int_equal(w.pushed, 2);
    assert_false(push_window_has(&w, 1)); /* what was stored before is another's */
}

UNIT_TEST(test_window__overtaken__rests_longer_each_time)
{
    int64_t now = 0, rest[2];
    uint64_t unit = 0;

    start();
    for (int i = 0; i < 2; i++) {
        unsigned n = 1;

        while (!push_window_overtaken(&w, ++unit, now))
            n++;
        assert_int_equal(n, i ? 2 : 9); /* the second rest begins soon */
        assert_int_equal(w.pushed, unit + 1);
        rest[i] = w.rest_until - now;
        assert_false(push_window_may_push(&w, unit, LAST, MUCH, w.rest_until - 1));
        for (int j = 0; j < 20; j++) /* what happens during a rest does not count */
            assert_false(push_window_overtaken(&w, ++unit, w.rest_until - 1));
        assert_true(push_window_may_push(&w, unit, LAST, MUCH, w.rest_until));
        now = w.rest_until;
    }
    assert_int_equal(rest[1], 2 * rest[0]);
    push_window_keeps_up(&w);
    while (!push_window_overtaken(&w, ++unit, now)) {
    }
    assert_int_equal(w.rest_until - now, rest[0]);
}

/* The next unit and column that is made ready; LAST: none. */
static uint64_t ready_next(uint64_t at, unsigned want_column)
{
    uint64_t unit;

    if (!push_window_may_ready(&w, at, LAST, w.rest_until - 1))
        return LAST;
    assert_int_equal(push_window_take_ready(&w, at, 5, &unit), want_column);
    assert_false(push_window_may_ready(&w, at, LAST, w.rest_until - 1)); /* one at a time */
    push_window_readied(&w, unit, want_column, 5);
    return unit;
}

UNIT_TEST(test_window__rests__the_next_units_are_made_ready)
{
    uint64_t unit = 0;

    start();
    assert_int_equal(ready_next(0, 0), LAST); /* it does not rest */
    while (!push_window_overtaken(&w, ++unit, 0)) {
    }
    for (uint64_t next = unit + 1; next <= unit + 2; next++) {
        assert_int_equal(ready_next(unit, 0), next);
        assert_int_equal(ready_next(unit, 2), next);
    }
    assert_int_equal(ready_next(unit, 0), LAST);
    assert_int_equal(ready_next(unit + 1, 0), unit + 3);
    assert_int_equal(ready_next(unit + 10, 0), unit + 11); /* what the reader has passed is not */
    assert_false(push_window_may_ready(&w, unit + 20, LAST, w.rest_until));
    assert_false(push_window_may_ready(&w, LAST - 1, LAST, w.rest_until - 1));
}

/* The three states of a unit that is read: stored, made and about to be stored, not made. */
UNIT_TEST(test_window__read_before_it_is_stored__what_is_made_is_kept)
{
    uint64_t pushed;
    bool is_marked;

    start();
    w.size = 8;
    push_all(0, MUCH);
    pushed = w.pushed;
    assert_true(pushed > 6);
    w.done = 3; /* units 3 and later are made, and are about to be stored, */
    push_window_take(&w, 2, LAST, 1, MUCH, &is_marked); /* and the next one is being made */
    assert_false(push_window_overtaken(&w, 4, 0));
    assert_int_equal(w.pushed, pushed);
    assert_int_equal(w.done, 5);
    assert_true(w.is_making);
    assert_false(push_window_has(&w, 3)); /* its reader asks again for the rest of it */
    assert_false(push_window_has(&w, 4));
    push_window_stored(&w, 5);
    assert_true(push_window_has(&w, 5));
    assert_false(push_window_overtaken(&w, pushed, 0)); /* the one that is being made */
    assert_int_equal(w.pushed, pushed + 1);
    assert_int_equal(w.done, pushed + 1);
    assert_false(push_window_is_marked(&w, pushed + 1));
    /* A push that is always late rests, in either state. */
    for (unsigned i = 3; i <= 8; i++)
        assert_false(push_window_overtaken(&w, w.pushed, 0));
    w.pushed = w.done + 2;
    assert_true(push_window_overtaken(&w, w.done, 0));
}

UNIT_TEST(test_window__loses__halved_and_three_in_a_row_begin_anew)
{
    start();
    w.size = 64;
    assert_false(push_window_loses(&w, 5, 10)); /* behind the reader */
    assert_int_equal(w.size, 32);
    assert_false(push_window_loses(&w, 6, 10));
    assert_false(push_window_loses(&w, 7, 10));
    assert_false(push_window_loses(&w, 11, 10));
    assert_false(push_window_loses(&w, 20, 11)); /* far from the one before */
    assert_false(push_window_loses(&w, 21, 20));
    assert_true(push_window_loses(&w, 25, 21));
    assert_int_equal(w.size, 4);
    assert_false(push_window_loses(&w, 26, 25));
}

UNIT_TEST(test_window__has__what_is_stored_and_not_marked)
{
    start();
    w.size = 8;
    push_all(0, MUCH);
    assert_false(push_window_has(&w, 0));
    assert_true(push_window_has(&w, 1));
    assert_false(push_window_has(&w, 4)); /* the mark */
    assert_false(push_window_has(&w, w.done));
}

UNIT_TEST(test_window__fails__rests_or_waits)
{
    start();
    push_window_failed(&w, -EIO, 5 * MS);
    assert_false(push_window_may_push(&w, 0, LAST, MUCH, 1004 * MS));
    assert_true(push_window_may_push(&w, 0, LAST, MUCH, 1005 * MS));
    push_window_failed(&w, -ENOENT, 5 * MS);
    assert_false(push_window_may_push(&w, 0, LAST, MUCH, INT64_MAX));
    push_window_start(&w, 7);
    assert_true(push_window_may_push(&w, 7, LAST, MUCH, INT64_MAX));
}

UNIT_TEST(test_window__cannot_be_read__left_out)
{
    start();
    push_window_leaves(&w, 0, 1);
    assert_int_equal(w.pushed, 2);
    w.size = 8;
    push_all(0, MUCH);
    assert_false(push_window_has(&w, 1));
    assert_true(push_window_has(&w, 2));
}

UNIT_TEST(test_window__drops__each_kind_once_slack_behind)
{
    uint64_t unit;
    unsigned kind;

    start();
    assert_false(push_window_may_drop(&w, READER_SLACK));
    assert_true(push_window_may_drop(&w, READER_SLACK + 1));
    push_window_take_drop(&w, 5, &unit, &kind);
    assert_int_equal(unit, 0);
    assert_int_equal(kind, 0);
    push_window_take_drop(&w, 5, &unit, &kind);
    assert_int_equal(unit, 0);
    assert_int_equal(kind, 2);
    assert_false(push_window_may_drop(&w, READER_SLACK + 1));
}
