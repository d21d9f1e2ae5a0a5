/* Blocks in memory: which are kept, which bytes are given, and when whole blocks count as a waste.
 */
#include <string.h>

#include "base/scope.h"
#include "cache/stage/overflow.h"
#include "tests/support/unit.h"

#define LEN    64 /* bytes of a block: each is a 64th */
#define PLACES 20 /* blocks that memory has space for */
#define ENOUGH 32 /* dropped ones are enough to judge */

static const char owner[2]; /* two files */

static uint8_t byte_of(uint64_t block, size_t i)
{
    return (uint8_t)(block * 7 + i + 1);
}

/* Add bytes [from, to) of a block of the first file; all of it unless is_part. */
static void add(struct overflow *o, uint64_t block, size_t from, size_t to, bool is_part)
{
    uint8_t bytes[LEN];

    for (size_t i = 0; i < LEN; i++)
        bytes[i] = byte_of(block, i);
    overflow_add(o, &owner[0], block, bytes + from, from, to - from, is_part);
}

static void add_many(struct overflow *o, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        add(o, first + i, 0, LEN, false);
}

static bool gives(struct overflow *o, uint64_t block, size_t from, size_t to)
{
    uint8_t got[LEN] = {0};
    bool found = overflow_read(o, &owner[0], block, got, from, to - from);

    assert_int_equal(overflow_covers(o, &owner[0], block, from, to - from), found);
    for (size_t i = from; found && i < to; i++)
        assert_int_equal(got[i - from], byte_of(block, i));
    return found;
}

/* The whole blocks that are there are [first, end), the oldest first. */
static void expect_blocks(struct overflow *o, uint64_t first, uint64_t end)
{
    AUTO_FREE struct overflow_place *place = NULL;

    assert_int_equal(overflow_count(o), end - first);
    assert_int_equal(overflow_list(o, &place), end - first);
    for (uint64_t b = first; b < end; b++) {
        assert_ptr_equal(place[b - first].owner, &owner[0]);
        assert_int_equal(place[b - first].block, b);
        assert_true(overflow_has(o, &owner[0], b) && !overflow_has(o, &owner[1], b));
    }
    assert_false(overflow_has(o, &owner[0], end) ||
                 (first && overflow_has(o, &owner[0], first - 1)));
}

/* Half of the memory is for whole blocks until it is known how much of them is read. */
UNIT_TEST(test_overflow__blocks__the_latest_stay)
{
    struct overflow *o = overflow_new(PLACES * LEN);

    assert_int_equal(overflow_most(o), PLACES * LEN);
    expect_blocks(o, 0, 0);
    assert_false(gives(o, 0, 0, 1));
    add_many(o, 0, PLACES / 2 - 1);
    assert_int_equal(overflow_left(o), LEN);
    add_many(o, PLACES / 2 - 1, 1);
    expect_blocks(o, 0, PLACES / 2);
    assert_int_equal(overflow_left(o), 0);
    add_many(o, PLACES / 2, 3);
    expect_blocks(o, 3, PLACES / 2 + 3);
    assert_int_equal(overflow_held(o).bytes, PLACES / 2 * LEN);
    assert_int_equal(overflow_held(o).limit, PLACES * LEN);
    assert_true(gives(o, 3, 0, LEN) && gives(o, 12, LEN - 1, LEN) && !gives(o, 2, 0, 1));
    overflow_remove(o, &owner[0], 3);
    overflow_remove(o, &owner[0], 3);
    overflow_remove(o, &owner[1], 4);
    expect_blocks(o, 4, PLACES / 2 + 3);
    assert_int_equal(overflow_left(o), LEN);
    add_many(o, 4, 1); /* again: it is the latest, and takes no more */
    assert_int_equal(overflow_count(o), PLACES / 2 - 1);
    overflow_remove(o, &owner[0], 4);
    expect_blocks(o, 5, PLACES / 2 + 3);
    overflow_free(o);
    overflow_free(NULL);
}

/* The other half is for parts, however many there are of a block. */
UNIT_TEST(test_overflow__parts__their_bytes_and_no_others)
{
    struct overflow *o = overflow_new(PLACES * LEN);

    add(o, 3, 10, 30, true);
    assert_true(gives(o, 3, 10, 30) && gives(o, 3, 10, 11) && gives(o, 3, 29, 30));
    assert_false(gives(o, 3, 9, 11) || gives(o, 3, 29, 31));
    expect_blocks(o, 0, 0);
    add(o, 3, 40, LEN, true);
    assert_true(gives(o, 3, 10, 30) && gives(o, 3, 40, LEN) && !gives(o, 3, 10, 41));
    assert_int_equal(overflow_held(o).bytes, 20 + 24);
    add_many(o, 3, 1);
    assert_true(gives(o, 3, 0, LEN));
    expect_blocks(o, 3, 4);
    overflow_remove(o, &owner[0], 3);
    assert_true(gives(o, 3, 10, 30) && !gives(o, 3, 0, LEN));
    add(o, 4, 0, 5, true);
    overflow_remove(o, &owner[0], 4); /* which is not here as a whole */
    assert_true(gives(o, 4, 0, 5));
    for (uint64_t b = 100; b < 100 + PLACES; b++)
        add(o, b, 0, LEN, true);
    assert_false(gives(o, 3, 10, 30) || gives(o, 109, 0, 1));
    assert_true(gives(o, 110, 0, LEN) && gives(o, 119, 0, LEN));
    assert_int_equal(overflow_held(o).bytes, PLACES / 2 * LEN);
    assert_int_equal(overflow_left(o), PLACES / 2 * LEN);
    overflow_free(o);
}

/* One that is larger than all of the memory is there until the next comes. */
UNIT_TEST(test_overflow__larger_than_memory__alone)
{
    struct overflow *o = overflow_new(LEN / 2);

    for (unsigned is_part = 0; is_part < 2; is_part++)
        for (uint64_t b = 1; b < 3; b++) {
            add(o, b, 0, LEN, is_part);
            assert_true(gives(o, b, 0, LEN) && !gives(o, b - 1, 0, LEN));
            assert_int_equal(overflow_left(o), is_part ? LEN / 4 : 0);
        }
    overflow_free(o);
}

/* What is read of dropped blocks decides how the memory is used. */
UNIT_TEST(test_overflow__dropped__judged_by_what_was_read)
{
    static const struct {
        unsigned dropped;
        size_t from, middle, to; /* bytes of each that are read, in two reads */
        bool is_wasteful;
        unsigned kept; /* whole blocks */
    } cases[] = {
        {ENOUGH - 1, 0, 0, 0, false, PLACES / 2},    {ENOUGH, 0, 0, 0, true, PLACES / 2},
        {ENOUGH, 0, 47, 47, true, PLACES / 2},       {ENOUGH, 0, 48, 48, false, PLACES},
        {ENOUGH, 16, 20, LEN, false, PLACES},        {ENOUGH, 17, 20, LEN, true, PLACES / 2},
        {ENOUGH - 1, 0, LEN, LEN, false, PLACES / 2}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct overflow *o = overflow_new(PLACES * LEN);

        for (uint64_t b = 0; b < cases[i].dropped; b++) {
            add_many(o, b, 1);
            if (cases[i].middle > cases[i].from)
                assert_true(gives(o, b, cases[i].from, cases[i].middle));
            if (cases[i].to > cases[i].middle)
                assert_true(gives(o, b, cases[i].middle, cases[i].to));
            assert_false(overflow_is_wasteful(o));
            overflow_remove(o, &owner[0], b);
        }
        assert_int_equal(overflow_is_wasteful(o), cases[i].is_wasteful);
        assert_int_equal(overflow_left(o), cases[i].kept * LEN);
        add_many(o, 100, cases[i].kept);
        expect_blocks(o, 100, 100 + cases[i].kept);
        overflow_free(o);
    }
}

/* Parts take their place from blocks that are worth it. The last 64 dropped ones count. */
UNIT_TEST(test_overflow__parts_beside_blocks__share)
{
    struct overflow *o = overflow_new(PLACES * LEN);

    for (uint64_t b = 0; b < 1000; b++) {
        add_many(o, b, 1);
        assert_true(gives(o, b, 0, LEN));
        overflow_remove(o, &owner[0], b);
    }
    add_many(o, 0, PLACES);
    add(o, 100, 0, LEN, true);
    expect_blocks(o, 1, PLACES);
    add(o, 101, 0, LEN, true);
    add(o, 102, 0, LEN, true);
    add(o, 20, 0, LEN, false);
    expect_blocks(o, 4, PLACES + 1);
    assert_int_equal(overflow_left(o), 0);
    for (uint64_t b = 4; b <= PLACES; b++) { /* (63/64)^19 is less than 3/4 */
        overflow_remove(o, &owner[0], b);
        assert_int_equal(overflow_is_wasteful(o), b + 1 >= 19);
    }
    overflow_free(o);
}
