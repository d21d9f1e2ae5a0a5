/* Active plans over nodes of a hand-made tree, with a clock that the tests turn; and what nodes
 * know of their folder (fs/tree/node.c). */
#include <errno.h>
#include <stdio.h>

#include "base/checked.h"
#include "fs/drive/active_plans.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/tree_make.h"
#include "support/unit.h"

#define MS      TEST_MS
#define PAGE    UINT64_C(4096)
#define SAMPLES 4000
#define NO_SIZE UINT64_MAX /* of memory: all there is */

static struct test_clock the_clock;

/* The content of the page cache: a bit per unit and kind; and the units that have a mark. */
struct pages {
    uint64_t has[SAMPLES];
    bool is_marked[SAMPLES];
    unsigned n;
    bool marks_are_out; /* also of has */
};

/* A mount as the active plans see it, with a reader of one folder. */
struct world {
    struct catalog catalog;
    struct tree *tree;
    struct active_plans *active_plans;
    struct node first; /* file of the folder */
    struct push_file file;
    struct pages pages;
};

static struct world *world_make(uint64_t ahead, bool drops, const char *first)
{
    const struct active_plans_options options = {.ahead = ahead,
                                                 .drops = drops,
                                                 .processors = 2,
                                                 .last_epoch = 4,
                                                 .clock = &the_clock.clock};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    test_clock_init(&the_clock);
    catalog_add(&w->catalog, "", "train", SAMPLES);
    w->tree = tree_make(&w->catalog, NULL);
    assert_int_equal(active_plans_new(&options, &w->active_plans), 0);
    if (first)
        w->first = tree_node_at(w->tree, "train/%s", first);
    return w;
}

/* first: the first file of the reader's folder; NULL: none. */
static struct world *world_new(uint64_t ahead, const char *first)
{
    return world_make(ahead, false, first);
}

/* With keep=once. */
static struct world *world_dropping(uint64_t ahead, const char *first)
{
    return world_make(ahead, true, first);
}

static void world_free(struct world **w)
{
    active_plans_free((*w)->active_plans);
    tree_free((*w)->tree);
    catalog_release(&(*w)->catalog);
    test_clock_release(&the_clock);
    free(*w);
}

#define AUTO_WORLD AUTO(world_free)
#define NPY        "batches/batch=4,seed=1/epoch=0/npy/000000.image.npy"
#define BATCHES(n) "batches/batch=" #n ",seed=1/epoch=0/raw/000000.image.raw"

/* A unit of a folder, given any file of it. */
static struct node unit_of(const struct node *first, uint64_t unit)
{
    struct node node;

    node_sibling(first, unit, node_column(first), &node);
    return node;
}

static unsigned read_unit_of(struct world *w, const struct node *first, uint64_t unit)
{
    struct node node = unit_of(first, unit);

    test_clock_turn(&the_clock, MS);
    return active_plans_read(w->active_plans, &node, PAGE);
}

static unsigned read_unit(struct world *w, uint64_t unit)
{
    return read_unit_of(w, &w->first, unit);
}

static enum push_what next(struct world *w)
{
    return active_plans_next_push(w->active_plans, NO_SIZE, &w->file);
}

#define assert_push(w, unit)                                                                       \
    do {                                                                                           \
        assert_int_equal(next(w), PUSH_STORE);                                                     \
        assert_int_equal((w)->file.node.number, unit);                                             \
    } while (0)

static bool may_store(struct world *w, uint64_t size)
{
    return active_plans_may_store(w->active_plans, &w->file, size);
}

/* Report the result of pushing a file. */
static void pushed(struct world *w, int64_t result)
{
    active_plans_made(w->active_plans, &w->file, result == -ENOENT ? (int64_t)PAGE : result);
    if (result >= 0 || result == -ENOENT)
        active_plans_stored(w->active_plans, &w->file, result);
}

/* The next file that may be stored with that size. */
static bool next_that_fits(struct world *w, uint64_t size)
{
    while (next(w) == PUSH_STORE) {
        if (may_store(w, size))
            return true;
        pushed(w, -EFBIG);
    }
    return false;
}

/* Push every file that may be pushed, each of size bytes. Returns how many were stored. */
static unsigned push_all(struct world *w, uint64_t size)
{
    struct pages *pages = &w->pages;
    unsigned n = 0;

    for (; next_that_fits(w, size); n++) {
        const struct push_file *file = &w->file;
        uint64_t unit = file->node.number, bit = UINT64_C(1) << node_column(&file->node);

        assert_in_range(unit, 0, SAMPLES - 1);
        pages->has[unit] |= file->is_marked && pages->marks_are_out ? 0 : bit;
        pages->is_marked[unit] |= file->is_marked;
        pushed(w, (int64_t)size);
    }
    pages->n += n;
    return n;
}

/* Does the daemon see a read of that kind of a unit? */
static bool is_asked_of(const struct pages *pages, uint64_t unit, unsigned kind)
{
    return !(pages->has[unit] >> kind & 1) || pages->is_marked[unit];
}

static bool is_asked(const struct world *w, uint64_t unit)
{
    return is_asked_of(&w->pages, unit, node_column(&w->first));
}

/* Returns whether the daemon sees the read; it pushes after it. */
static bool read_and_push(struct world *w, uint64_t unit)
{
    if (!is_asked(w, unit))
        return false;
    read_unit(w, unit);
    push_all(w, PAGE);
    return true;
}

#define COUNTER(w, name) atomic_load(&active_plans_counters((w)->active_plans)->name)

static size_t n_active_plans(struct world *w)
{
    struct active_info info[ACTIVE_PLANS_MAX];

    return active_plans_list(w->active_plans, info);
}

static struct active_info first_active(struct world *w)
{
    struct active_info info[ACTIVE_PLANS_MAX];

    assert_true(active_plans_list(w->active_plans, info) >= 1);
    return info[0];
}

/* ---- nodes ---- */

static void check_folder(struct world *w, const char *path)
{
    struct node folder = tree_node_at(w->tree, "%s", path), first, listed, looked_up, sibling;
    char name[TREE_NAME_SIZE], below[NODE_PATH_SIZE];
    uint64_t n = 0;

    assert_int_equal(tree_list(w->tree, &folder, 0, &first, name), 0);
    node_folder_path(&first, below, sizeof(below));
    assert_string_equal(below, path);
    for (; tree_list(w->tree, &folder, n, &listed, name) == 0; n++) {
        assert_int_equal(tree_lookup(w->tree, &folder, name, TREE_OWNER, &looked_up, NULL, NULL),
                         0);
        assert_int_equal(node_list_place(&looked_up), n + 2); /* behind "." and ".." */
        node_sibling(&first, looked_up.number, node_column(&looked_up), &sibling);
        assert_memory_equal(&sibling, &looked_up, sizeof(sibling));
        node_sibling(&looked_up, first.number, node_column(&first), &sibling);
        assert_memory_equal(&sibling, &first, sizeof(sibling));
    }
    assert_int_equal(n, node_units(&first) * node_columns(&first));
}

UNIT_TEST(test_node__sibling_and_place__as_the_tree_has_them)
{
    AUTO_WORLD struct world *w = world_new(PAGE, NULL);

    check_folder(w, "train/samples/npy");
    check_folder(w, "train/samples/npz");
    check_folder(w, "train/batches/batch=7/npy");
    check_folder(w, "train/batches/batch=all/png");
    check_folder(w, "train/batches/batch=3,rank=1of2,seed=9,tail=wrap/epoch=0/npy");
    check_folder(w, "train/batches/batch=100,seed=9/epoch=18446744073709551615/tar");
    check_folder(w, "train/batches/batch=100,seed=9/epoch=65536/idx");
}

/* ---- reading in sequence ---- */

UNIT_TEST(test_active__sequence__all_is_pushed_but_marks)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, BATCHES(1));
    unsigned asked = 0;

    for (uint64_t unit = 0; unit < SAMPLES; unit++) {
        if (!is_asked(w, unit))
            continue;
        asked++;
        assert_int_not_equal(read_unit(w, unit), 0);
        push_all(w, PAGE);
    }
    assert_in_range(asked, SAMPLES / 64, SAMPLES / 64 + 20);
    assert_int_equal(COUNTER(w, overtaken), 0);
    assert_int_equal(COUNTER(w, lost), 0);
    assert_int_equal(COUNTER(w, jumps), 0);
    assert_int_equal(n_active_plans(w), 1);
    assert_int_equal(COUNTER(w, pushed_files), w->pages.n);
}

static struct active_cursor cursor_of(struct world *w)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];

    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    return cursor[0];
}

static bool give_unit(struct world *w, uint64_t unit)
{
    struct node node = unit_of(&w->first, unit);

    read_unit(w, unit);
    return active_plans_given(w->active_plans, &node, 0, 100, 100);
}

/* What was not pushed counts as read once it was given; a unit that was skipped does not. */
UNIT_TEST(test_read__not_pushed__what_was_given)
{
    AUTO_WORLD struct world *w = world_dropping(0, BATCHES(1));

    read_unit(w, 0);
    assert_int_equal(cursor_of(w).read, 0);
    assert_true(give_unit(w, 0));
    assert_int_equal(cursor_of(w).from, 0);
    give_unit(w, 2);
    assert_int_equal(cursor_of(w).read, 1);
    assert_true(give_unit(w, 1));
    assert_int_equal(cursor_of(w).read, 3);
    give_unit(w, 1000); /* a jump: what it skipped is not read */
    assert_int_equal(cursor_of(w).from, 1000);
    assert_int_equal(cursor_of(w).read, 1001);
}

/* The reader may still have to read 32 of the pushed units; at the end of the epoch it has read
 * all. */
UNIT_TEST(test_read__pushed__what_workers_have_passed)
{
    AUTO_WORLD struct world *w = world_dropping(4096 * PAGE, BATCHES(1));
    struct node last;
    uint64_t mark = 0;

    give_unit(w, 0);
    while (mark < 200) { /* only the reads of marks reach us */
        enum push_what what = next(w);

        if (what == PUSH_STORE) {
            mark = w->file.is_marked ? w->file.node.number : mark;
            pushed(w, PAGE);
        } else if (what == PUSH_NOTHING) {
            read_unit(w, mark);
        }
    }
    read_unit(w, mark);
    assert_true(cursor_of(w).at > mark);
    assert_int_equal(cursor_of(w).read, mark - 32);
    read_unit(w, SAMPLES - 1);
    last = unit_of(&w->first, SAMPLES - 1);
    assert_true(active_plans_given(w->active_plans, &last, 0, 100, 100));
    assert_int_equal(cursor_of(w).read, SAMPLES);
}

UNIT_TEST(test_active__any_share__marks_close_and_bytes_bounded)
{
    static const uint64_t aheads[] = {1, 2, 3, 5, 16, 63, 64, 127, 128, 1000, 100000};

    for (size_t i = 0; i < ARRAY_LEN(aheads); i++) {
        AUTO_WORLD struct world *w = world_new(aheads[i] * PAGE, BATCHES(1));
        uint64_t last_mark = 0, last = 0, half = max_u64(min_u64(aheads[i], 128) / 2, 1);

        for (uint64_t unit = 0; unit < SAMPLES; unit++) {
            if (!is_asked(w, unit))
                continue;
            read_unit(w, unit);
            last = max_u64(last, unit);
            while (next_that_fits(w, 100)) {
                assert_int_equal(w->file.node.number, ++last);
                assert_in_range(last - unit, 1, aheads[i]);
                w->pages.has[last] = UINT64_MAX;
                w->pages.is_marked[last] = w->file.is_marked;
                if (w->file.is_marked)
                    last_mark = last;
                assert_in_range(last - max_u64(last_mark, unit), 0, 63);
                if (unit > 1000) /* the window has all its width */
                    assert_in_range(last - max_u64(last_mark, unit), 0, half);
                pushed(w, 100);
            }
        }
        assert_int_equal(last, SAMPLES - 1);
        assert_int_equal(COUNTER(w, lost), 0);
    }
}

/* Files that turn out larger than what the first reads said. */
UNIT_TEST(test_active__large_files__never_beyond_ahead)
{
    AUTO_WORLD struct world *w = world_new(17 * PAGE, "batches/batch=1/raw/000000.image.raw");
    static const uint64_t sizes[] = {100 * PAGE, 5 * PAGE, PAGE, 17 * PAGE, 18 * PAGE, 2};
    uint64_t used = 0, at = 0, stored = 0;

    for (uint64_t unit = 0; unit < 600; unit++) {
        if (unit <= at && unit)
            continue;
        read_unit(w, unit);
        used = 0;
        at = unit;
        while (next(w) == PUSH_STORE) {
            uint64_t size = sizes[w->file.node.number / 3 % ARRAY_LEN(sizes)];

            if (!may_store(w, size)) {
                pushed(w, -EFBIG);
                continue;
            }
            if (w->file.node.number == unit + 1) /* nothing is ahead but this */
                assert_true(size <= 17 * PAGE);
            used += ceil_div(size, PAGE) * PAGE;
            stored++;
            pushed(w, (int64_t)size);
        }
        assert_in_range(used, 0, 17 * PAGE);
    }
    assert_true(stored > 200); /* a large one does not stop what follows */
}

UNIT_TEST(test_active__workers_out_of_order__one_reader)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, BATCHES(1));
    uint64_t random = RANDOM_SEED, queue[8];

    for (uint64_t i = 0; i < 8; i++)
        queue[i] = i;
    for (uint64_t n = 8, i; n < SAMPLES + 8; n++) {
        i = random_below(&random, 8);
        if (queue[i] < SAMPLES && is_asked(w, queue[i]))
            read_unit(w, queue[i]);
        queue[i] = n;
        push_all(w, PAGE);
        if (n % 7 == 0) /* no reader is more than 32 behind */
            for (i = 0; i < 8; i++)
                if (queue[i] + 25 < n) {
                    if (is_asked(w, queue[i]))
                        read_unit(w, queue[i]);
                    queue[i] = n++;
                }
    }
    assert_int_equal(COUNTER(w, jumps), 0);
    assert_int_equal(COUNTER(w, lost), 0);
    assert_int_equal(n_active_plans(w), 1);
}

UNIT_TEST(test_active__three_kinds__pushed_in_turn)
{
    AUTO_WORLD struct world *w = world_new(300 * PAGE, NPY);
    unsigned asked = 0, kinds = node_columns(&w->first);
    struct node node;

    assert_true(kinds >= 3);
    for (uint64_t unit = 0; unit < SAMPLES / 4; unit++)
        for (unsigned kind = 0; kind < kinds; kind += 2) {
            if (!is_asked_of(&w->pages, unit, kind))
                continue;
            asked++;
            node_sibling(&w->first, unit, kind, &node);
            test_clock_turn(&the_clock, MS);
            active_plans_read(w->active_plans, &node, PAGE);
            push_all(w, PAGE);
        }
    assert_in_range(asked, 2 * SAMPLES / 4 / 64, 2 * 60); /* a marked unit for each of its files */
    assert_int_equal(COUNTER(w, lost), 0);
    for (uint64_t unit = 0; unit < SAMPLES / 4; unit++)
        for (unsigned kind = 1; kind < kinds; kind += 2)
            assert_false(w->pages.has[unit] >> kind & 1);
}

/* A marked file is stored without its last page; it counts in full. */
UNIT_TEST(test_active__marked_files__count_in_full)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, BATCHES(1));

    for (uint64_t unit = 0; unit < SAMPLES; unit++) {
        if (!is_asked(w, unit))
            continue;
        read_unit(w, unit);
        while (next(w) == PUSH_STORE) {
            const uint64_t size = (13 - w->file.is_marked) * PAGE;

            if (!may_store(w, size)) {
                pushed(w, -EFBIG);
                continue;
            }
            w->pages.has[w->file.node.number] = UINT64_MAX;
            w->pages.is_marked[w->file.node.number] = w->file.is_marked;
            assert_in_range((w->file.node.number - unit) * 13, 0, 256);
            pushed(w, (int64_t)size);
        }
    }
}

/* ---- readers that go elsewhere ---- */

UNIT_TEST(test_active__jumps__pushes_from_there)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));

    read_unit(w, 0);
    read_unit(w, 1);
    push_all(w, PAGE);
    assert_int_equal(read_unit(w, 2000), ACTIVE_JUMPED);
    assert_int_equal(COUNTER(w, jumps), 1);
    assert_push(w, 2001);
    pushed(w, PAGE);
    assert_int_equal(read_unit(w, 900), ACTIVE_JUMPED);
    assert_int_equal(COUNTER(w, jumps), 2);
    assert_push(w, 901);
    /* What was being pushed when it jumped changes nothing. */
    assert_int_equal(read_unit(w, 3000), ACTIVE_JUMPED);
    pushed(w, PAGE);
    assert_int_equal(first_active(w).pushed, 3001);
    assert_int_equal(first_active(w).unit, 3000);
}

/* Two readers at different places of one folder count as two from the second change on. */
UNIT_TEST(test_active__two_readers_in_a_folder__two_active_plans)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));

    for (uint64_t i = 0; i < 1000; i++)
        for (uint64_t start = 0; start <= 2000; start += 2000)
            read_and_push(w, start + i);
    assert_int_equal(n_active_plans(w), 2);
    assert_in_range(COUNTER(w, jumps), 1, 3);
    assert_in_range(COUNTER(w, pushed_files), 1900, 2200);
}

UNIT_TEST(test_active__ranks_that_drift_apart__each_is_pushed)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, NULL);
    struct pages pages[2] = {0};
    struct node first[2];

    for (unsigned rank = 0; rank < 2; rank++)
        first[rank] = tree_node_at(
            w->tree, "train/batches/batch=1,rank=%uof2,seed=1/epoch=0/raw/000000.image.raw", rank);
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t unit[2] = {i, i / 4}; /* one is four times as fast */

        for (unsigned rank = 0; rank < 2; rank++)
            if (is_asked_of(&pages[rank], unit[rank], node_column(&first[rank])))
                read_unit_of(w, &first[rank], unit[rank]);
        while (next(w) == PUSH_STORE) {
            unsigned rank = w->file.node.plan == first[1].plan;

            pages[rank].has[w->file.node.number] = UINT64_MAX;
            pages[rank].is_marked[w->file.node.number] = w->file.is_marked;
            pushed(w, PAGE);
            if (i > 300) /* half of the bytes for each */
                assert_in_range(w->file.node.number, 0, unit[rank] + 128);
        }
    }
    assert_int_equal(n_active_plans(w), 2);
    assert_int_equal(COUNTER(w, jumps), 0);
    assert_int_equal(COUNTER(w, lost), 0);
}

UNIT_TEST(test_active__several_plans__share_ahead)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, NULL);
    struct node first[4];

    for (unsigned i = 0; i < 4; i++) {
        first[i] =
            tree_node_at(w->tree, "train/batches/batch=1,seed=%u/epoch=0/raw/000000.image.raw", i);
        for (uint64_t unit = 0; unit < 8; unit++)
            read_unit_of(w, &first[i], unit);
    }
    for (unsigned round = 0; round < 10; round++) {
        uint64_t furthest[4] = {0};

        while (next(w) == PUSH_STORE) {
            for (unsigned i = 0; i < 4; i++)
                if (w->file.node.plan == first[i].plan)
                    furthest[i] = w->file.node.number;
            pushed(w, PAGE);
        }
        for (unsigned i = 0; i < 4; i++)
            assert_in_range(furthest[i], 0, 7 + 16 * round + 16);
        for (unsigned i = 0; i < 4; i++)
            read_unit_of(w, &first[i], 7 + 16 * (round + 1));
    }
    /* A reader that has not read for long leaves its share to the others. */
    test_clock_turn(&the_clock, 120 * 1000 * MS);
    w->first = first[0];
    for (uint64_t unit = 300; unit < 600; unit++)
        read_and_push(w, unit);
    assert_int_equal(first_active(w).pushed, first_active(w).unit + 64 + 1);
}

/* ---- epochs ---- */

UNIT_TEST(test_active__end_of_epoch__nothing_behind_it)
{
    AUTO_WORLD struct world *w = world_new(4096 * PAGE, BATCHES(100));
    struct node second =
        tree_node_at(w->tree, "train/batches/batch=100,seed=1/epoch=1/raw/000000.image.raw");

    for (uint64_t unit = 0; unit < 40; unit++) {
        if (is_asked(w, unit))
            read_unit(w, unit);
        push_all(w, PAGE);
    }
    assert_int_equal(w->pages.has[40], 0);
    read_unit(w, 39);
    assert_int_equal(next(w), PUSH_NOTHING);
    assert_int_equal(n_active_plans(w), 1);
    /* The next epoch takes its place, and all goes on. */
    assert_int_equal(read_unit_of(w, &second, 0), ACTIVE_MOVED);
    assert_int_equal(n_active_plans(w), 1);
    assert_int_equal(first_active(w).epoch, 1);
    assert_push(w, 1);
    assert_int_equal(w->file.node.epoch, 1);
}

/* A pass over all units, of one kind: reads of pages outside the page cache reach the daemon. */
static void pass(struct world *w, const struct node *first, uint64_t units)
{
    for (uint64_t unit = 0; unit < units; unit++) {
        struct node node = unit_of(first, unit);
        const uint64_t bit = UINT64_C(1) << node_column(&node);

        if (!(w->pages.has[unit] & bit)) {
            read_unit_of(w, first, unit);
            active_plans_given(w->active_plans, &node, 0, PAGE, PAGE);
            push_all(w, PAGE);
            w->pages.has[unit] |= bit; /* the mark has also come with that read */
        }
    }
}

UNIT_TEST(test_active__end_of_epoch__known_whichever_kind_is_read)
{
    AUTO_WORLD struct world *w = world_new(4096 * PAGE, NPY);
    struct node label =
        tree_node_at(w->tree, "train/batches/batch=4,seed=1/epoch=0/npy/000000.label.npy");

    w->pages.marks_are_out = true;
    pass(w, &w->first, 999);
    assert_in_range(first_active(w).unit, 998 - 64, 998);
    pass(w, &w->first, 1000);
    assert_int_equal(first_active(w).unit, 1000);
    pass(w, &label, 1);
    assert_int_equal(first_active(w).unit, 0);
    pass(w, &label, 950);
    assert_in_range(first_active(w).unit, 950 - 64, 949);
    pass(w, &label, 1000);
    assert_int_equal(first_active(w).unit, 1000);
}

UNIT_TEST(test_active__end_pushed_and_not_asked_for__next_epoch_goes_on)
{
    AUTO_WORLD struct world *w = world_new(4096 * PAGE, BATCHES(4));
    struct node second =
        tree_node_at(w->tree, "train/batches/batch=4,seed=1/epoch=1/raw/000000.image.raw");

    for (uint64_t unit = 0; unit < 950; unit++) {
        if (is_asked(w, unit))
            read_unit(w, unit);
        push_all(w, PAGE);
    }
    assert_true(first_active(w).unit + 33 < 1000);
    assert_int_equal(first_active(w).pushed, 1000);
    assert_int_equal(read_unit_of(w, &second, 0), ACTIVE_MOVED);
    assert_int_equal(n_active_plans(w), 1);
}

UNIT_TEST(test_active__other_epoch_in_the_middle__both)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(10));
    struct node second =
        tree_node_at(w->tree, "train/batches/batch=10,seed=1/epoch=1/raw/000000.image.raw");

    for (uint64_t unit = 0; unit < 100; unit++) {
        read_unit(w, unit);
        read_unit_of(w, &second, unit);
    }
    assert_int_equal(n_active_plans(w), 2);
}

UNIT_TEST(test_active__announced__active_until_it_is_read)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));
    struct active_cursor cursor[ACTIVE_PLANS_MAX];

    active_plans_announce(w->active_plans, w->first.plan);
    assert_int_equal(n_active_plans(w), 1);
    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    assert_ptr_equal(cursor[0].plan, w->first.plan);
    assert_null(cursor[0].folder);
    assert_int_equal(cursor[0].at, 0);
    assert_false(first_active(w).was_read);
    assert_int_equal(next(w), PUSH_NOTHING); /* of which files? */
    read_unit(w, 3);
    assert_int_equal(n_active_plans(w), 1);
    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    assert_ptr_equal(cursor[0].folder, w->first.folder);
    assert_int_equal(cursor[0].at, 0); /* others may read those before it */
    assert_int_equal(cursor[0].columns, UINT64_C(1) << node_column(&w->first));
}

/* ---- the bytes still needed ---- */

/* The unit at which the only cursor begins. */
static uint64_t cursor_at(struct world *w)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];

    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    assert_int_equal(cursor[0].at % 8, 0);
    return cursor[0].at / 8;
}

static void give_of(struct world *w, const struct node *first, uint64_t unit, uint64_t bytes)
{
    struct node node = unit_of(first, unit);

    active_plans_given(w->active_plans, &node, 0, bytes, 3 * PAGE);
}

static void give(struct world *w, uint64_t unit, uint64_t bytes)
{
    give_of(w, &w->first, unit, bytes);
}

/* The kernel requests a large file in parts, and a reader with several workers reads several
 * files. */
UNIT_TEST(test_active__read_bit_by_bit__needed_until_all_was_given)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));
    uint64_t at;

    read_unit(w, 3);
    assert_int_equal(cursor_at(w), 0);
    for (uint64_t unit = 0; unit < 3; unit++) { /* by other workers */
        read_unit(w, unit);
        give(w, unit, 3 * PAGE);
    }
    assert_int_equal(cursor_at(w), 3);
    give(w, 3, PAGE); /* its end, perhaps, where a directory is */
    read_unit(w, 3);
    give(w, 3, PAGE);
    assert_int_equal(cursor_at(w), 3);
    read_unit(w, 5);
    read_unit(w, 4);
    assert_int_equal(cursor_at(w), 3);
    give(w, 3, PAGE);
    assert_int_equal(cursor_at(w), 4);
    give(w, 5, 3 * PAGE);
    assert_int_equal(cursor_at(w), 4);
    give(w, 4, 3 * PAGE);
    assert_int_equal(cursor_at(w), 6);
    push_all(w, PAGE); /* what is pushed has been read */
    at = cursor_at(w);
    assert_true(at > 6);
    read_unit(w, 6);
    assert_true(cursor_at(w) >= at);
    assert_int_equal(COUNTER(w, jumps), 0);
}

/* A reader may leave a file half read: the plan forgets the file once the reader is further on. */
UNIT_TEST(test_active__read_in_part__needed_for_a_while)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));

    for (uint64_t unit = 0; unit < 100; unit++) {
        uint64_t at;

        read_unit(w, unit);
        give(w, unit, PAGE);
        at = cursor_at(w);
        assert_true(at <= unit && at + 32 >= unit);
    }
    read_unit(w, 10); /* a worker that waited long */
    assert_int_equal(COUNTER(w, jumps), 0);
    read_unit(w, 300);
    assert_int_equal(COUNTER(w, jumps), 1);
    assert_int_equal(cursor_at(w), 300);
    give(w, 99, 2 * PAGE);
    assert_int_equal(cursor_at(w), 300);
}

/* A lost page is read very late: it becomes a second reader only if reads continue there. */
UNIT_TEST(test_active__one_late_read__no_cursor_of_its_own)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
    uint64_t unit = 0;

    for (; unit < 100; unit++) {
        read_unit(w, unit);
        give(w, unit, 3 * PAGE);
    }
    read_unit(w, 20);
    for (; unit < 110; unit++) {
        read_unit(w, unit);
        give(w, unit, 3 * PAGE);
    }
    assert_int_equal(cursor_at(w), 110);
    read_unit(w, 21);
    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 2);
}

/* A file in the making when its reader comes is stored, and read from the page cache. */
UNIT_TEST(test_active__stored_under_its_reader__not_needed)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));

    read_unit(w, 0);
    give(w, 0, 3 * PAGE);
    assert_push(w, 1);
    read_unit(w, 1);
    give(w, 1, PAGE);
    assert_int_equal(cursor_at(w), 1);
    pushed(w, 3 * PAGE);
    assert_int_equal(cursor_at(w), 2);
}

UNIT_TEST(test_active__two_kinds__needed_until_both_were_given)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(8));
    struct node label =
        tree_node_at(w->tree, "train/batches/batch=8,seed=1/epoch=0/raw/000000.label.raw");

    for (uint64_t unit = 0; unit < 20; unit++) {
        struct node node = unit_of(&w->first, unit);

        read_unit(w, unit);
        active_plans_given(w->active_plans, &node, 0, PAGE,
                           UINT64_MAX); /* its end gives its size */
        assert_int_equal(cursor_at(w), unit);
        give(w, unit, 2 * PAGE);
        assert_int_equal(cursor_at(w), unit ? unit : 1); /* unknown for the first unit */
        read_unit_of(w, &label, unit);
        give_of(w, &label, unit, 3 * PAGE);
        assert_int_equal(cursor_at(w), unit + 1);
    }
}

/* ---- what goes wrong ---- */

UNIT_TEST(test_active__reader_faster_than_push__rests_and_tries_again)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));
    uint64_t unit = 0, stored;
    int64_t rested = 0;

    for (; unit < 200; unit++) { /* each is read before it is pushed */
        if (next(w) == PUSH_STORE) {
            assert_int_equal(read_unit(w, w->file.node.number), ACTIVE_MOVED);
            unit = w->file.node.number;
            pushed(w, PAGE);
        } else {
            rested++;
            read_unit(w, unit);
        }
    }
    assert_true(COUNTER(w, overtaken) >= 1);
    assert_true(rested > 20);
    /* It slows down: reads that come in a rest do not make it longer. */
    assert_true(active_plans_next_look(w->active_plans) != INT64_MAX);
    for (stored = 0; stored == 0 && unit < 1000; unit++) {
        test_clock_turn(&the_clock, 4 * MS);
        read_unit(w, unit);
        stored = push_all(w, PAGE);
    }
    assert_true(stored > 0);
    assert_in_range(unit, 200, 200 + 2000 / 5);
}

UNIT_TEST(test_active__as_many_fast_readers_as_processors__nothing_is_made_ready)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, NULL);

    for (unsigned i = 0; i < 2; i++) {
        struct node first =
            tree_node_at(w->tree, "train/batches/batch=1,seed=%u/epoch=0/raw/000000.image.raw", i);

        for (uint64_t unit = 0; COUNTER(w, overtaken) == i; unit++)
            read_unit_of(w, &first, unit);
        assert_int_equal(next(w), i ? PUSH_NOTHING : PUSH_READY);
    }
    active_plans_readied(w->active_plans, &w->file);
    test_clock_turn(&the_clock, 15 * MS); /* the first rest is over */
    assert_int_equal(next(w), PUSH_READY);
    assert_int_equal(w->file.node.plan->plan.seed, 1);
}

/* The store thread is behind: what it has is not made again when a reader comes for it. */
UNIT_TEST(test_active__made_and_not_stored__made_once)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));
    struct push_file made[3];

    read_unit(w, 0);
    read_unit(w, 1);
    for (unsigned i = 0; i < ARRAY_LEN(made); i++) {
        assert_push(w, 2 + i);
        made[i] = w->file;
        active_plans_made(w->active_plans, &made[i], PAGE);
    }
    assert_push(w, 5);
    read_unit(w, 2);
    read_unit(w, 3);
    assert_true(active_plans_is_due(w->active_plans, &w->file)); /* still being made */
    active_plans_made(w->active_plans, &w->file, PAGE);
    for (unsigned i = 0; i < ARRAY_LEN(made); i++)
        active_plans_stored(w->active_plans, &made[i], PAGE);
    active_plans_stored(w->active_plans, &w->file, PAGE);
    assert_push(w, 6);
    assert_int_equal(COUNTER(w, lost), 0);
}

UNIT_TEST(test_active__kernel_does_not_know__waits_for_the_reader)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));

    read_unit(w, 0);
    assert_int_equal(next(w), PUSH_STORE);
    pushed(w, PAGE);
    assert_push(w, 2);
    assert_true(w->file.is_marked);
    pushed(w, -ENOENT);
    assert_int_equal(next(w), PUSH_NOTHING);
    read_unit(w, 1);
    /* A mark that was not stored is none: the next is half a window from the reader. */
    do {
        assert_int_equal(next(w), PUSH_STORE);
        pushed(w, PAGE);
    } while (!w->file.is_marked);
    assert_int_equal(w->file.node.number, 1 + 8 / 2);
    assert_int_equal(COUNTER(w, unknown_files), 1);
}

UNIT_TEST(test_active__store_fails__rests_a_second)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));

    read_unit(w, 0);
    assert_int_equal(next(w), PUSH_STORE);
    pushed(w, -EREMOTEIO);
    assert_int_equal(next(w), PUSH_NOTHING);
    assert_int_equal(active_plans_next_look(w->active_plans),
                     clock_monotonic(&the_clock.clock) + 1000 * MS);
    test_clock_turn(&the_clock, 1000 * MS);
    /* The time has passed since the last look: due now. */
    assert_true(active_plans_next_look(w->active_plans) <= clock_monotonic(&the_clock.clock));
    assert_int_equal(next(w), PUSH_STORE);
    pushed(w, PAGE);
    assert_int_equal(active_plans_next_look(w->active_plans), INT64_MAX);
}

UNIT_TEST(test_active__file_cannot_be_read__left_to_its_reader)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));

    read_unit(w, 0);
    assert_push(w, 1);
    pushed(w, -EBADMSG);
    assert_push(w, 2);
    pushed(w, PAGE);
    read_unit(w, 1);
    assert_int_equal(COUNTER(w, lost), 0);
}

/* A reader with a large window; ret_last: the unit that it read last. */
static struct world *with_large_window(uint64_t *ret_last)
{
    struct world *w = world_new(1024 * PAGE, BATCHES(1));

    for (uint64_t unit = 0; unit < 1000; unit++)
        if (read_and_push(w, unit))
            *ret_last = unit;
    assert_int_equal(first_active(w).pushed, *ret_last + 1024 + 1);
    return w;
}

UNIT_TEST(test_active__lost_pages__smaller_window)
{
    uint64_t unit, lost = 0;
    AUTO_WORLD struct world *w = with_large_window(&unit);
    const uint64_t before = first_active(w).pushed;

    while (lost < 20) { /* two, then a mark, and so on */
        bool is_mark = w->pages.is_marked[++unit];

        if (!is_mark && unit % 64 > 2)
            continue;
        read_unit(w, unit);
        lost += !is_mark;
        assert_int_equal(COUNTER(w, lost), lost);
    }
    assert_int_equal(push_all(w, PAGE), 0);
    assert_int_equal(first_active(w).pushed, before);
}

UNIT_TEST(test_active__all_pages_lost__pushed_again)
{
    uint64_t unit;
    AUTO_WORLD struct world *w = with_large_window(&unit);

    for (unsigned i = 0; i < 3; i++)
        read_unit(w, ++unit);
    assert_int_equal(COUNTER(w, lost), 3);
    assert_push(w, unit + 1);
    pushed(w, PAGE);
}

/* The push begins again, and the page cache has what was pushed before all the same: the next read
 * that reaches us is of the unit behind that. The reader has passed all before it. */
UNIT_TEST(test_active__few_pages_lost__goes_on_behind_the_others)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
    uint64_t unit;
    AUTO_WORLD struct world *w = with_large_window(&unit);
    const uint64_t before = first_active(w).pushed;

    for (unsigned i = 0; i < 3; i++)
        read_unit(w, ++unit);
    assert_true(first_active(w).pushed < before);
    read_unit(w, before);
    assert_int_equal(COUNTER(w, jumps), 0);
    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    assert_int_equal(cursor[0].from, 0);
}

/* One page of every tenth unit is lost. */
UNIT_TEST(test_active__page_lost_now_and_then__not_pushed_again)
{
    uint64_t unit, lost = 0;
    AUTO_WORLD struct world *w = with_large_window(&unit);
    const uint64_t before = first_active(w).pushed;

    for (; lost < 50; unit += 10) {
        lost += !w->pages.is_marked[unit + 10];
        read_unit(w, unit + 10);
    }
    assert_int_equal(COUNTER(w, lost), lost);
    push_all(w, PAGE);
    assert_true(first_active(w).pushed >= before);
}

UNIT_TEST(test_active__memory_short__nothing_until_there_is_some)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, BATCHES(1));
    unsigned n = 0;

    for (uint64_t unit = 0; unit < 20; unit++) {
        read_unit(w, unit);
        while (active_plans_next_push(w->active_plans, 0, &w->file) == PUSH_STORE) {
            assert_false(may_store(w, PAGE));
            pushed(w, -EFBIG);
        }
    }
    for (uint64_t unit = 20; unit < 60; unit++) {
        read_unit(w, unit);
        while (active_plans_next_push(w->active_plans, 3 * PAGE, &w->file) == PUSH_STORE) {
            pushed(w, PAGE);
            n++;
        }
        assert_in_range(first_active(w).pushed, unit + 1, unit + 1 + 3);
    }
    assert_in_range(n, 10, 40);
}

/* ---- keep=once ---- */

UNIT_TEST(test_active__drops__what_was_passed_each_kind_once)
{
    AUTO_WORLD struct world *w = world_dropping(64 * PAGE, NPY);
    uint64_t dropped[SAMPLES] = {0};
    struct node node;

    for (uint64_t unit = 0; unit < 1000; unit++) {
        enum push_what what;

        for (unsigned kind = 0; kind < 4; kind += 3) {
            node_sibling(&w->first, unit, kind, &node);
            test_clock_turn(&the_clock, MS);
            active_plans_read(w->active_plans, &node, PAGE);
        }
        while ((what = next(w)) != PUSH_NOTHING) {
            if (what == PUSH_STORE) {
                pushed(w, PAGE);
                continue;
            }
            assert_in_range(w->file.node.number + 32, 0, unit);
            assert_false(dropped[w->file.node.number] >> node_column(&w->file.node) & 1);
            dropped[w->file.node.number] |= UINT64_C(1) << node_column(&w->file.node);
        }
    }
    for (uint64_t unit = 0; unit < 960; unit++)
        assert_int_equal(dropped[unit], 1 | 8);
}

UNIT_TEST(test_active__exceeds__drops_until_it_no_longer_does)
{
    AUTO_WORLD struct world *w = world_new(64 * PAGE, NPY);
    struct node node;
    uint64_t n_dropped[3] = {0};

    for (uint64_t unit = 0; unit < 600; unit++) {
        enum push_what what;

        active_plans_exceed(w->active_plans, unit / 200 == 1);
        node_sibling(&w->first, unit, 0, &node);
        test_clock_turn(&the_clock, MS);
        active_plans_read(w->active_plans, &node, PAGE);
        while ((what = next(w)) != PUSH_NOTHING) {
            n_dropped[unit / 200] += what == PUSH_DROP;
            if (what == PUSH_STORE)
                pushed(w, PAGE);
        }
    }
    assert_int_equal(n_dropped[0], 0);
    assert_in_range(n_dropped[1], 300, 400); /* also those before */
    assert_int_equal(n_dropped[2], 0);
}

/* ---- samples ---- */

UNIT_TEST(test_active__samples_in_sequence__pushed)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, "samples/raw/000000.image.raw");
    unsigned asked = 0;

    for (uint64_t unit = 0; unit < SAMPLES; unit++)
        asked += read_and_push(w, unit);
    assert_in_range(asked, SAMPLES / 64, SAMPLES / 64 + 20);
    assert_true(first_active(w).is_samples);
    assert_null(first_active(w).plan);
}

UNIT_TEST(test_active__samples_at_random__nothing)
{
    AUTO_WORLD struct world *w = world_new(256 * PAGE, "samples/raw/000000.image.raw");
    uint64_t random = RANDOM_SEED;

    for (unsigned i = 0; i < 20000; i++) {
        /* Three in sequence by chance come once in 4000 / 8 squared reads. */
        read_unit(w, random_below(&random, SAMPLES));
        push_all(w, PAGE);
    }
    assert_in_range(w->pages.n, 0, 60);
}

/* ---- many ---- */

UNIT_TEST(test_active__table_full__the_oldest_goes)
{
    AUTO_WORLD struct world *w = world_new(4096 * PAGE, NULL);
    struct active_info info[ACTIVE_PLANS_MAX];

    for (unsigned i = 0; i < 3 * ACTIVE_PLANS_MAX; i++) {
        w->first =
            tree_node_at(w->tree, "train/batches/batch=4,seed=%u/epoch=0/raw/000000.image.raw", i);
        if (i % 3 == 0)
            active_plans_announce(w->active_plans, w->first.plan);
        read_unit(w, 0);
        /* One plan is removed while it is pushed. */
        if (i == 5)
            assert_int_equal(next(w), PUSH_STORE);
    }
    pushed(w, PAGE);
    assert_false(may_store(w, 1));
    assert_int_equal(active_plans_list(w->active_plans, info), ACTIVE_PLANS_MAX);
    for (unsigned i = 0; i < ACTIVE_PLANS_MAX; i++) {
        assert_non_null(info[i].folder);
        assert_int_equal(info[i].plan->plan.seed, 3 * ACTIVE_PLANS_MAX - 1 - i);
    }
}
