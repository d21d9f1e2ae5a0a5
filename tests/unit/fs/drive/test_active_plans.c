/* Active plans over nodes of a hand-made tree, with a clock that the tests turn; and what nodes
 * know of their folder (fs/tree/node.c). */
#include <errno.h>
#include <stdio.h>

#include "base/checked.h"
#include "fs/drive/active_plans.h"
#include "support/idx_make.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define MS      TEST_MS
#define PAGE    UINT64_C(4096)
#define SAMPLES 4000
#define NO_SIZE UINT64_MAX /* of memory: all there is */

static struct test_clock the_clock;

static char *page(const struct catalog_item *item)
{
    (void)item;
    return strdup("{}");
}

static void add_dataset(struct catalog *c, const char *name)
{
    struct blob *blob[] = {
        idx_blob_zeros("a-images-idx3-ubyte", 8, 3, (uint32_t[]){SAMPLES, 1, 2}, NULL),
        idx_blob_zeros("a-labels-idx1-ubyte", 8, 1, (uint32_t[]){SAMPLES}, NULL)};
    struct found found;

    assert_int_equal(idx_open(blob, 2, &(struct format_options){.classes = 10}, &found), 0);
    c->item = realloc(c->item, (c->n + 1) * sizeof(*c->item));
    c->item[c->n++] = (struct catalog_item){
        .folder = strdup(""), .name = strdup(name), .ds = TAKE_PTR(found.item[0].ds)};
    c->n_datasets++;
    found_release(&found);
}

/* A mount as the active plans see it. */
struct world {
    struct catalog catalog;
    struct tree *tree;
    struct active_plans *active_plans;
};

static void world_start(struct world *w, uint64_t ahead, bool drops)
{
    const struct active_plans_options options = {.ahead = ahead,
                                                 .drops = drops,
                                                 .processors = 2,
                                                 .last_epoch = 4,
                                                 .clock = &the_clock.clock};
    const struct tree_options none = {0};

    *w = (struct world){0};
    test_clock_init(&the_clock);
    add_dataset(&w->catalog, "train");
    assert_int_equal(tree_new(&w->catalog, &none, strdup("read me"), page, &w->tree), 0);
    assert_int_equal(active_plans_new(&options, &w->active_plans), 0);
}

static void world_end(struct world *w)
{
    active_plans_free(w->active_plans);
    tree_free(w->tree);
    catalog_release(&w->catalog);
    test_clock_release(&the_clock);
}

static struct node node_at(struct world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct node node_at(struct world *w, const char *format, ...)
{
    char path[1024];
    struct node node;
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    assert_int_equal(tree_node(w->tree, TREE_ROOT, &node), 0);
    for (char *at = path, *end; *at; at = end) {
        struct node parent = node;
        int r;

        end = at + strcspn(at, "/");
        if (*end)
            *end++ = '\0';
        r = tree_lookup(w->tree, &parent, at, TREE_OWNER, &node, NULL, NULL);
        if (r < 0)
            fail_msg("%s: %s", at, strerror(-r));
    }
    return node;
}

/* A unit of a folder, given any file of it. */
static struct node unit_of(const struct node *first, uint64_t unit)
{
    struct node node;

    node_sibling(first, unit, node_column(first), &node);
    return node;
}

static unsigned read_unit(struct world *w, const struct node *first, uint64_t unit)
{
    struct node node = unit_of(first, unit);

    test_clock_turn(&the_clock, MS);
    return active_plans_read(w->active_plans, &node, PAGE);
}

static enum push_what next(struct world *w, struct push_file *file)
{
    return active_plans_next_push(w->active_plans, NO_SIZE, file);
}

/* Report the result of pushing a file. */
static void pushed(struct world *w, const struct push_file *file, int64_t result)
{
    if (result == -EFBIG || result == -EREMOTEIO || result == -EBADMSG) {
        active_plans_made(w->active_plans, file, result);
        return;
    }
    active_plans_made(w->active_plans, file, result < 0 ? (int64_t)PAGE : result);
    active_plans_stored(w->active_plans, file, result);
}

/* The content of the page cache: a bit per unit and kind; and the units that have a mark. */
struct pages {
    uint64_t has[SAMPLES];
    bool is_marked[SAMPLES];
    uint64_t last_mark;
    unsigned n;
    bool marks_are_out; /* also of has */
};

/* Push every file that may be pushed, each of size bytes. Returns how many were stored. */
static unsigned push_all(struct world *w, uint64_t size, struct pages *pages)
{
    struct push_file file;
    unsigned n = 0;

    while (next(w, &file) == PUSH_STORE) {
        uint64_t unit = file.node.number, bit = UINT64_C(1) << node_column(&file.node);

        if (!active_plans_may_store(w->active_plans, &file, size)) {
            pushed(w, &file, -EFBIG);
            continue;
        }
        assert_in_range(unit, 0, SAMPLES - 1);
        pages->has[unit] |= file.is_marked && pages->marks_are_out ? 0 : bit;
        pages->is_marked[unit] |= file.is_marked;
        pushed(w, &file, (int64_t)size);
        n++;
    }
    pages->n += n;
    return n;
}

/* Does the daemon see a read of that kind of a unit? */
static bool is_asked(const struct pages *pages, uint64_t unit, unsigned kind)
{
    return !(pages->has[unit] >> kind & 1) || pages->is_marked[unit];
}

static uint64_t counter(struct world *w, _Atomic uint64_t *of)
{
    (void)w;
    return atomic_load(of);
}

#define COUNTER(w, name) counter(w, &active_plans_counters((w)->active_plans)->name)

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
    struct node folder = node_at(w, "%s", path), first, listed, looked_up, sibling;
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
    struct world w;

    world_start(&w, PAGE, false);
    check_folder(&w, "train/samples/npy");
    check_folder(&w, "train/samples/npz");
    check_folder(&w, "train/batches/batch=7/npy");
    check_folder(&w, "train/batches/batch=all/png");
    check_folder(&w, "train/batches/batch=3,rank=1of2,seed=9,tail=wrap/epoch=0/npy");
    check_folder(&w, "train/batches/batch=100,seed=9/epoch=18446744073709551615/tar");
    check_folder(&w, "train/batches/batch=100,seed=9/epoch=65536/idx");
    world_end(&w);
}

/* ---- reading in sequence ---- */

UNIT_TEST(test_active__sequence__all_is_pushed_but_marks)
{
    struct pages pages = {0};
    unsigned asked = 0;
    struct world w;
    struct node first;

    world_start(&w, 256 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < SAMPLES; unit++) {
        if (!is_asked(&pages, unit, node_column(&first)))
            continue;
        asked++;
        assert_int_not_equal(read_unit(&w, &first, unit), 0);
        push_all(&w, PAGE, &pages);
    }
    assert_in_range(asked, SAMPLES / 64, SAMPLES / 64 + 20);
    assert_int_equal(COUNTER(&w, overtaken), 0);
    assert_int_equal(COUNTER(&w, lost), 0);
    assert_int_equal(COUNTER(&w, jumps), 0);
    assert_int_equal(n_active_plans(&w), 1);
    assert_int_equal(COUNTER(&w, pushed_files), pages.n);
    world_end(&w);
}

static struct active_cursor cursor_of(struct world *w)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];

    assert_int_equal(active_plans_cursors(w->active_plans, cursor), 1);
    return cursor[0];
}

static bool give_unit(struct world *w, const struct node *first, uint64_t unit)
{
    struct node node = unit_of(first, unit);

    read_unit(w, first, unit);
    return active_plans_given(w->active_plans, &node, 0, 100, 100);
}

/* What was not pushed counts as read once it was given; a unit that was skipped does not. */
UNIT_TEST(test_read__not_pushed__what_was_given)
{
    struct node first;
    struct world w;

    world_start(&w, 0, true);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    assert_int_equal(cursor_of(&w).read, 0);
    assert_true(give_unit(&w, &first, 0));
    assert_int_equal(cursor_of(&w).from, 0);
    give_unit(&w, &first, 2);
    assert_int_equal(cursor_of(&w).read, 1);
    assert_true(give_unit(&w, &first, 1));
    assert_int_equal(cursor_of(&w).read, 3);
    give_unit(&w, &first, 1000); /* a jump: what it skipped is not read */
    assert_int_equal(cursor_of(&w).from, 1000);
    assert_int_equal(cursor_of(&w).read, 1001);
    world_end(&w);
}

/* The reader may still have to read 32 of the pushed units; at the end of the epoch it has read
 * all. */
UNIT_TEST(test_read__pushed__what_workers_have_passed)
{
    struct push_file file;
    struct node first, last;
    uint64_t mark = 0;
    struct world w;

    world_start(&w, 4096 * PAGE, true);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    give_unit(&w, &first, 0);
    while (mark < 200) { /* only the reads of marks reach us */
        enum push_what what = next(&w, &file);

        if (what == PUSH_STORE) {
            mark = file.is_marked ? file.node.number : mark;
            pushed(&w, &file, PAGE);
        } else if (what == PUSH_NOTHING) {
            read_unit(&w, &first, mark);
        }
    }
    read_unit(&w, &first, mark);
    assert_true(cursor_of(&w).at > mark);
    assert_int_equal(cursor_of(&w).read, mark - 32);
    read_unit(&w, &first, SAMPLES - 1);
    last = unit_of(&first, SAMPLES - 1);
    assert_true(active_plans_given(w.active_plans, &last, 0, 100, 100));
    assert_int_equal(cursor_of(&w).read, SAMPLES);
    world_end(&w);
}

UNIT_TEST(test_active__any_share__marks_close_and_bytes_bounded)
{
    static const uint64_t aheads[] = {1, 2, 3, 5, 16, 63, 64, 127, 128, 1000, 100000};

    for (size_t i = 0; i < ARRAY_LEN(aheads); i++) {
        struct pages pages = {0};
        uint64_t last_mark = 0, last = 0, half = max_u64(min_u64(aheads[i], 128) / 2, 1);
        struct push_file file;
        struct world w;
        struct node first;

        world_start(&w, aheads[i] * PAGE, false);
        first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
        for (uint64_t unit = 0; unit < SAMPLES; unit++) {
            if (!is_asked(&pages, unit, node_column(&first)))
                continue;
            read_unit(&w, &first, unit);
            last = max_u64(last, unit);
            while (next(&w, &file) == PUSH_STORE) {
                if (!active_plans_may_store(w.active_plans, &file, 100)) {
                    pushed(&w, &file, -EFBIG);
                    continue;
                }
                assert_int_equal(file.node.number, last + 1);
                last++;
                assert_in_range(last - unit, 1, aheads[i]);
                pages.has[last] = UINT64_MAX;
                pages.is_marked[last] = file.is_marked;
                if (file.is_marked)
                    last_mark = last;
                assert_in_range(last - max_u64(last_mark, unit), 0, 63);
                if (unit > 1000) /* the window has all its width */
                    assert_in_range(last - max_u64(last_mark, unit), 0, half);
                pushed(&w, &file, 100);
            }
        }
        assert_int_equal(last, SAMPLES - 1);
        assert_int_equal(COUNTER(&w, lost), 0);
        world_end(&w);
    }
}

/* Files that turn out larger than what the first reads said. */
UNIT_TEST(test_active__large_files__never_beyond_ahead)
{
    static const uint64_t sizes[] = {100 * PAGE, 5 * PAGE, PAGE, 17 * PAGE, 18 * PAGE, 2};
    struct push_file file;
    uint64_t used = 0, at = 0, stored = 0;
    struct world w;
    struct node first;

    world_start(&w, 17 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 600; unit++) {
        if (unit <= at && unit)
            continue;
        read_unit(&w, &first, unit);
        used = 0;
        at = unit;
        while (next(&w, &file) == PUSH_STORE) {
            uint64_t size = sizes[file.node.number / 3 % ARRAY_LEN(sizes)];

            if (!active_plans_may_store(w.active_plans, &file, size)) {
                pushed(&w, &file, -EFBIG);
                continue;
            }
            if (file.node.number == unit + 1) /* nothing is ahead but this */
                assert_true(size <= 17 * PAGE);
            used += ceil_div(size, PAGE) * PAGE;
            stored++;
            pushed(&w, &file, (int64_t)size);
        }
        assert_in_range(used, 0, 17 * PAGE);
    }
    assert_true(stored > 200); /* a large one does not stop what follows */
    world_end(&w);
}

UNIT_TEST(test_active__workers_out_of_order__one_reader)
{
    uint64_t random = RANDOM_SEED, queue[8];
    struct pages pages = {0};
    struct world w;
    struct node first;

    world_start(&w, 256 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t i = 0; i < 8; i++)
        queue[i] = i;
    for (uint64_t n = 8, i; n < SAMPLES + 8; n++) {
        i = random_below(&random, 8);
        if (queue[i] < SAMPLES && is_asked(&pages, queue[i], node_column(&first)))
            read_unit(&w, &first, queue[i]);
        queue[i] = n;
        push_all(&w, PAGE, &pages);
        if (n % 7 == 0) /* no reader is more than 32 behind */
            for (i = 0; i < 8; i++)
                if (queue[i] + 25 < n) {
                    if (is_asked(&pages, queue[i], node_column(&first)))
                        read_unit(&w, &first, queue[i]);
                    queue[i] = n++;
                }
    }
    assert_int_equal(COUNTER(&w, jumps), 0);
    assert_int_equal(COUNTER(&w, lost), 0);
    assert_int_equal(n_active_plans(&w), 1);
    world_end(&w);
}

UNIT_TEST(test_active__three_kinds__pushed_in_turn)
{
    struct pages pages = {0};
    unsigned asked = 0, kinds;
    struct world w;
    struct node first, node;

    world_start(&w, 300 * PAGE, false);
    first = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/npy/000000.image.npy");
    kinds = node_columns(&first);
    assert_true(kinds >= 3);
    for (uint64_t unit = 0; unit < SAMPLES / 4; unit++)
        for (unsigned kind = 0; kind < kinds; kind += 2) {
            bool known = pages.has[unit] >> kind & 1;

            if (known && !pages.is_marked[unit])
                continue;
            asked++;
            node_sibling(&first, unit, kind, &node);
            test_clock_turn(&the_clock, MS);
            active_plans_read(w.active_plans, &node, PAGE);
            push_all(&w, PAGE, &pages);
        }
    assert_in_range(asked, 2 * SAMPLES / 4 / 64, 2 * 60); /* a marked unit for each of its files */
    assert_int_equal(COUNTER(&w, lost), 0);
    for (uint64_t unit = 0; unit < SAMPLES / 4; unit++)
        for (unsigned kind = 1; kind < kinds; kind += 2)
            assert_false(pages.has[unit] >> kind & 1);
    world_end(&w);
}

/* A marked file is stored without its last page; it counts in full. */
UNIT_TEST(test_active__marked_files__count_in_full)
{
    struct pages pages = {0};
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 256 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < SAMPLES; unit++) {
        if (!is_asked(&pages, unit, node_column(&first)))
            continue;
        read_unit(&w, &first, unit);
        while (next(&w, &file) == PUSH_STORE) {
            const uint64_t size = (13 - file.is_marked) * PAGE;

            if (!active_plans_may_store(w.active_plans, &file, size)) {
                pushed(&w, &file, -EFBIG);
                continue;
            }
            pages.has[file.node.number] = UINT64_MAX;
            pages.is_marked[file.node.number] = file.is_marked;
            assert_in_range((file.node.number - unit) * 13, 0, 256);
            pushed(&w, &file, (int64_t)size);
        }
    }
    world_end(&w);
}

/* ---- readers that go elsewhere ---- */

UNIT_TEST(test_active__jumps__pushes_from_there)
{
    struct pages pages = {0};
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    read_unit(&w, &first, 1);
    push_all(&w, PAGE, &pages);
    assert_int_equal(read_unit(&w, &first, 2000), ACTIVE_JUMPED);
    assert_int_equal(COUNTER(&w, jumps), 1);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 2001);
    pushed(&w, &file, PAGE);
    assert_int_equal(read_unit(&w, &first, 900), ACTIVE_JUMPED);
    assert_int_equal(COUNTER(&w, jumps), 2);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 901);
    /* What was being pushed when it jumped changes nothing. */
    assert_int_equal(read_unit(&w, &first, 3000), ACTIVE_JUMPED);
    pushed(&w, &file, PAGE);
    assert_int_equal(first_active(&w).pushed, 3001);
    assert_int_equal(first_active(&w).unit, 3000);
    world_end(&w);
}

/* Two readers at different places of one folder count as two from the second change on. */
UNIT_TEST(test_active__two_readers_in_a_folder__two_active_plans)
{
    struct pages pages = {0};
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t i = 0; i < 1000; i++)
        for (uint64_t start = 0; start <= 2000; start += 2000) {
            if (!is_asked(&pages, start + i, node_column(&first)))
                continue;
            read_unit(&w, &first, start + i);
            push_all(&w, PAGE, &pages);
        }
    assert_int_equal(n_active_plans(&w), 2);
    assert_in_range(COUNTER(&w, jumps), 1, 3);
    assert_in_range(COUNTER(&w, pushed_files), 1900, 2200);
    world_end(&w);
}

UNIT_TEST(test_active__ranks_that_drift_apart__each_is_pushed)
{
    struct pages pages[2] = {0};
    struct node first[2];
    struct world w;

    world_start(&w, 256 * PAGE, false);
    for (unsigned rank = 0; rank < 2; rank++)
        first[rank] = node_at(
            &w, "train/batches/batch=1,rank=%uof2,seed=1/epoch=0/raw/000000.image.raw", rank);
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t unit[2] = {i, i / 4}; /* one is four times as fast */

        for (unsigned rank = 0; rank < 2; rank++)
            if (is_asked(&pages[rank], unit[rank], node_column(&first[rank])))
                read_unit(&w, &first[rank], unit[rank]);
        for (struct push_file file; next(&w, &file) == PUSH_STORE;) {
            unsigned rank = file.node.plan == first[1].plan;

            pages[rank].has[file.node.number] = UINT64_MAX;
            pages[rank].is_marked[file.node.number] = file.is_marked;
            pushed(&w, &file, PAGE);
            if (i > 300) /* half of the bytes for each */
                assert_in_range(file.node.number, 0, unit[rank] + 128);
        }
    }
    assert_int_equal(n_active_plans(&w), 2);
    assert_int_equal(COUNTER(&w, jumps), 0);
    assert_int_equal(COUNTER(&w, lost), 0);
    world_end(&w);
}

UNIT_TEST(test_active__several_plans__share_ahead)
{
    struct pages pages = {0};
    struct node first[4];
    struct world w;

    world_start(&w, 64 * PAGE, false);
    for (unsigned i = 0; i < 4; i++) {
        first[i] = node_at(&w, "train/batches/batch=1,seed=%u/epoch=0/raw/000000.image.raw", i);
        for (uint64_t unit = 0; unit < 8; unit++)
            read_unit(&w, &first[i], unit);
    }
    for (unsigned round = 0; round < 10; round++) {
        uint64_t furthest[4] = {0};

        for (struct push_file file; next(&w, &file) == PUSH_STORE;) {
            for (unsigned i = 0; i < 4; i++)
                if (file.node.plan == first[i].plan)
                    furthest[i] = file.node.number;
            pushed(&w, &file, PAGE);
        }
        for (unsigned i = 0; i < 4; i++)
            assert_in_range(furthest[i], 0, 7 + 16 * round + 16);
        for (unsigned i = 0; i < 4; i++)
            read_unit(&w, &first[i], 7 + 16 * (round + 1));
    }
    /* A reader that has not read for long leaves its share to the others. */
    test_clock_turn(&the_clock, 120 * 1000 * MS);
    for (uint64_t unit = 300; unit < 600; unit++)
        if (is_asked(&pages, unit, node_column(&first[0]))) {
            read_unit(&w, &first[0], unit);
            push_all(&w, PAGE, &pages);
        }
    assert_int_equal(first_active(&w).pushed, first_active(&w).unit + 64 + 1);
    world_end(&w);
}

/* ---- epochs ---- */

UNIT_TEST(test_active__end_of_epoch__nothing_behind_it)
{
    struct pages pages = {0};
    struct push_file file;
    struct world w;
    struct node first, second;

    world_start(&w, 4096 * PAGE, false);
    first = node_at(&w, "train/batches/batch=100,seed=1/epoch=0/raw/000000.image.raw");
    second = node_at(&w, "train/batches/batch=100,seed=1/epoch=1/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 40; unit++) {
        if (is_asked(&pages, unit, node_column(&first)))
            read_unit(&w, &first, unit);
        push_all(&w, PAGE, &pages);
    }
    assert_int_equal(pages.has[40], 0);
    read_unit(&w, &first, 39);
    assert_int_equal(next(&w, &file), PUSH_NOTHING);
    assert_int_equal(n_active_plans(&w), 1);
    /* The next epoch takes its place, and all goes on. */
    assert_int_equal(read_unit(&w, &second, 0), ACTIVE_MOVED);
    assert_int_equal(n_active_plans(&w), 1);
    assert_int_equal(first_active(&w).epoch, 1);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 1);
    assert_int_equal(file.node.epoch, 1);
    world_end(&w);
}

/* A pass over all units, of one kind: reads of pages outside the page cache reach the daemon. */
static void pass(struct world *w, const struct node *first, struct pages *pages, uint64_t units)
{
    for (uint64_t unit = 0; unit < units; unit++) {
        struct node node = unit_of(first, unit);
        const uint64_t bit = UINT64_C(1) << node_column(&node);

        if (!(pages->has[unit] & bit)) {
            read_unit(w, first, unit);
            active_plans_given(w->active_plans, &node, 0, PAGE, PAGE);
            push_all(w, PAGE, pages);
            pages->has[unit] |= bit; /* the mark has also come with that read */
        }
    }
}

UNIT_TEST(test_active__end_of_epoch__known_whichever_kind_is_read)
{
    struct pages pages = {0};
    struct world w;
    struct node image, label;

    world_start(&w, 4096 * PAGE, false);
    image = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/npy/000000.image.npy");
    label = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/npy/000000.label.npy");
    pages.marks_are_out = true;
    pass(&w, &image, &pages, 999);
    assert_in_range(first_active(&w).unit, 998 - 64, 998);
    pass(&w, &image, &pages, 1000);
    assert_int_equal(first_active(&w).unit, 1000);
    pass(&w, &label, &pages, 1);
    assert_int_equal(first_active(&w).unit, 0);
    pass(&w, &label, &pages, 950);
    assert_in_range(first_active(&w).unit, 950 - 64, 949);
    pass(&w, &label, &pages, 1000);
    assert_int_equal(first_active(&w).unit, 1000);
    world_end(&w);
}

UNIT_TEST(test_active__end_pushed_and_not_asked_for__next_epoch_goes_on)
{
    struct pages pages = {0};
    struct world w;
    struct node first, second;

    world_start(&w, 4096 * PAGE, false);
    first = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/raw/000000.image.raw");
    second = node_at(&w, "train/batches/batch=4,seed=1/epoch=1/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 950; unit++) {
        if (is_asked(&pages, unit, node_column(&first)))
            read_unit(&w, &first, unit);
        push_all(&w, PAGE, &pages);
    }
    assert_true(first_active(&w).unit + 33 < 1000);
    assert_int_equal(first_active(&w).pushed, 1000);
    assert_int_equal(read_unit(&w, &second, 0), ACTIVE_MOVED);
    assert_int_equal(n_active_plans(&w), 1);
    world_end(&w);
}

UNIT_TEST(test_active__other_epoch_in_the_middle__both)
{
    struct world w;
    struct node first, second;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=10,seed=1/epoch=0/raw/000000.image.raw");
    second = node_at(&w, "train/batches/batch=10,seed=1/epoch=1/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 100; unit++) {
        read_unit(&w, &first, unit);
        read_unit(&w, &second, unit);
    }
    assert_int_equal(n_active_plans(&w), 2);
    world_end(&w);
}

UNIT_TEST(test_active__announced__active_until_it_is_read)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    active_plans_announce(w.active_plans, first.plan);
    assert_int_equal(n_active_plans(&w), 1);
    assert_int_equal(active_plans_cursors(w.active_plans, cursor), 1);
    assert_ptr_equal(cursor[0].plan, first.plan);
    assert_null(cursor[0].folder);
    assert_int_equal(cursor[0].at, 0);
    assert_false(first_active(&w).was_read);
    assert_int_equal(next(&w, &file), PUSH_NOTHING); /* of which files? */
    read_unit(&w, &first, 3);
    assert_int_equal(n_active_plans(&w), 1);
    assert_int_equal(active_plans_cursors(w.active_plans, cursor), 1);
    assert_ptr_equal(cursor[0].folder, first.folder);
    assert_int_equal(cursor[0].at, 0); /* others may read those before it */
    assert_int_equal(cursor[0].columns, UINT64_C(1) << node_column(&first));
    world_end(&w);
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

static void give(struct world *w, const struct node *first, uint64_t unit, uint64_t bytes)
{
    struct node node = unit_of(first, unit);

    active_plans_given(w->active_plans, &node, 0, bytes, 3 * PAGE);
}

/* The kernel requests a large file in parts, and a reader with several workers reads several
 * files. */
UNIT_TEST(test_active__read_bit_by_bit__needed_until_all_was_given)
{
    struct pages pages = {0};
    struct world w;
    struct node first;
    uint64_t at;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 3);
    assert_int_equal(cursor_at(&w), 0);
    for (uint64_t unit = 0; unit < 3; unit++) { /* by other workers */
        read_unit(&w, &first, unit);
        give(&w, &first, unit, 3 * PAGE);
    }
    assert_int_equal(cursor_at(&w), 3);
    give(&w, &first, 3, PAGE); /* its end, perhaps, where a directory is */
    read_unit(&w, &first, 3);
    give(&w, &first, 3, PAGE);
    assert_int_equal(cursor_at(&w), 3);
    read_unit(&w, &first, 5);
    read_unit(&w, &first, 4);
    assert_int_equal(cursor_at(&w), 3);
    give(&w, &first, 3, PAGE);
    assert_int_equal(cursor_at(&w), 4);
    give(&w, &first, 5, 3 * PAGE);
    assert_int_equal(cursor_at(&w), 4);
    give(&w, &first, 4, 3 * PAGE);
    assert_int_equal(cursor_at(&w), 6);
    push_all(&w, PAGE, &pages); /* what is pushed has been read */
    at = cursor_at(&w);
    assert_true(at > 6);
    read_unit(&w, &first, 6);
    assert_true(cursor_at(&w) >= at);
    assert_int_equal(COUNTER(&w, jumps), 0);
    world_end(&w);
}

/* A reader may leave a file half read: the plan forgets the file once the reader is further on. */
UNIT_TEST(test_active__read_in_part__needed_for_a_while)
{
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 100; unit++) {
        uint64_t at;

        read_unit(&w, &first, unit);
        give(&w, &first, unit, PAGE);
        at = cursor_at(&w);
        assert_true(at <= unit && at + 32 >= unit);
    }
    read_unit(&w, &first, 10); /* a worker that waited long */
    assert_int_equal(COUNTER(&w, jumps), 0);
    read_unit(&w, &first, 300);
    assert_int_equal(COUNTER(&w, jumps), 1);
    assert_int_equal(cursor_at(&w), 300);
    give(&w, &first, 99, 2 * PAGE);
    assert_int_equal(cursor_at(&w), 300);
    world_end(&w);
}

/* A lost page is read very late: it becomes a second reader only if reads continue there. */
UNIT_TEST(test_active__one_late_read__no_cursor_of_its_own)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
    struct world w;
    struct node first;
    uint64_t unit = 0;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    for (; unit < 100; unit++) {
        read_unit(&w, &first, unit);
        give(&w, &first, unit, 3 * PAGE);
    }
    read_unit(&w, &first, 20);
    for (; unit < 110; unit++) {
        read_unit(&w, &first, unit);
        give(&w, &first, unit, 3 * PAGE);
    }
    assert_int_equal(cursor_at(&w), 110);
    read_unit(&w, &first, 21);
    assert_int_equal(active_plans_cursors(w.active_plans, cursor), 2);
    world_end(&w);
}

/* A file in the making when its reader comes is stored, and read from the page cache. */
UNIT_TEST(test_active__stored_under_its_reader__not_needed)
{
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    give(&w, &first, 0, 3 * PAGE);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 1);
    read_unit(&w, &first, 1);
    give(&w, &first, 1, PAGE);
    assert_int_equal(cursor_at(&w), 1);
    pushed(&w, &file, 3 * PAGE);
    assert_int_equal(cursor_at(&w), 2);
    world_end(&w);
}

UNIT_TEST(test_active__two_kinds__needed_until_both_were_given)
{
    struct node image, label;
    struct world w;

    world_start(&w, 64 * PAGE, false);
    image = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.image.raw");
    label = node_at(&w, "train/batches/batch=8,seed=1/epoch=0/raw/000000.label.raw");
    for (uint64_t unit = 0; unit < 20; unit++) {
        struct node node = unit_of(&image, unit);

        read_unit(&w, &image, unit);
        active_plans_given(w.active_plans, &node, 0, PAGE, UINT64_MAX); /* its end gives its size */
        assert_int_equal(cursor_at(&w), unit);
        give(&w, &image, unit, 2 * PAGE);
        assert_int_equal(cursor_at(&w), unit ? unit : 1); /* unknown for the first unit */
        read_unit(&w, &label, unit);
        give(&w, &label, unit, 3 * PAGE);
        assert_int_equal(cursor_at(&w), unit + 1);
    }
    world_end(&w);
}

/* ---- what goes wrong ---- */

UNIT_TEST(test_active__reader_faster_than_push__rests_and_tries_again)
{
    struct pages pages = {0};
    struct push_file file;
    uint64_t unit = 0, stored;
    int64_t rested = 0;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (; unit < 200; unit++) { /* each is read before it is pushed */
        if (next(&w, &file) == PUSH_STORE) {
            assert_int_equal(read_unit(&w, &first, file.node.number), ACTIVE_MOVED);
            unit = file.node.number;
            pushed(&w, &file, PAGE);
        } else {
            rested++;
            read_unit(&w, &first, unit);
        }
    }
    assert_true(COUNTER(&w, overtaken) >= 1);
    assert_true(rested > 20);
    /* It slows down: reads that come in a rest do not make it longer. */
    assert_true(active_plans_next_look(w.active_plans) != INT64_MAX);
    for (stored = 0; stored == 0 && unit < 1000; unit++) {
        test_clock_turn(&the_clock, 4 * MS);
        read_unit(&w, &first, unit);
        stored = push_all(&w, PAGE, &pages);
    }
    assert_true(stored > 0);
    assert_in_range(unit, 200, 200 + 2000 / 5);
    world_end(&w);
}

UNIT_TEST(test_active__as_many_fast_readers_as_processors__nothing_is_made_ready)
{
    struct push_file file;
    struct world w;

    world_start(&w, 64 * PAGE, false);
    for (unsigned i = 0; i < 2; i++) {
        struct node first =
            node_at(&w, "train/batches/batch=1,seed=%u/epoch=0/raw/000000.image.raw", i);

        for (uint64_t unit = 0; COUNTER(&w, overtaken) == i; unit++)
            read_unit(&w, &first, unit);
        assert_int_equal(next(&w, &file), i ? PUSH_NOTHING : PUSH_READY);
    }
    active_plans_readied(w.active_plans, &file);
    test_clock_turn(&the_clock, 15 * MS); /* the first rest is over */
    assert_int_equal(next(&w, &file), PUSH_READY);
    assert_int_equal(file.node.plan->plan.seed, 1);
    world_end(&w);
}

/* The store thread is behind: what it has is not made again when a reader comes for it. */
UNIT_TEST(test_active__made_and_not_stored__made_once)
{
    struct push_file file, made[3];
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    read_unit(&w, &first, 1);
    for (unsigned i = 0; i < ARRAY_LEN(made); i++) {
        assert_int_equal(next(&w, &made[i]), PUSH_STORE);
        active_plans_made(w.active_plans, &made[i], PAGE);
    }
    assert_int_equal(made[0].node.number, 2);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 5);
    read_unit(&w, &first, 2);
    read_unit(&w, &first, 3);
    assert_true(active_plans_is_due(w.active_plans, &file)); /* still being made */
    active_plans_made(w.active_plans, &file, PAGE);
    for (unsigned i = 0; i < ARRAY_LEN(made); i++)
        active_plans_stored(w.active_plans, &made[i], PAGE);
    active_plans_stored(w.active_plans, &file, PAGE);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 6);
    assert_int_equal(COUNTER(&w, lost), 0);
    world_end(&w);
}

UNIT_TEST(test_active__kernel_does_not_know__waits_for_the_reader)
{
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    pushed(&w, &file, PAGE);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 2);
    assert_true(file.is_marked);
    pushed(&w, &file, -ENOENT);
    assert_int_equal(next(&w, &file), PUSH_NOTHING);
    read_unit(&w, &first, 1);
    /* A mark that was not stored is none: the next is half a window from the reader. */
    do {
        assert_int_equal(next(&w, &file), PUSH_STORE);
        pushed(&w, &file, PAGE);
    } while (!file.is_marked);
    assert_int_equal(file.node.number, 1 + 8 / 2);
    assert_int_equal(COUNTER(&w, unknown_files), 1);
    world_end(&w);
}

UNIT_TEST(test_active__store_fails__rests_a_second)
{
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    pushed(&w, &file, -EREMOTEIO);
    assert_int_equal(next(&w, &file), PUSH_NOTHING);
    assert_int_equal(active_plans_next_look(w.active_plans),
                     clock_monotonic(&the_clock.clock) + 1000 * MS);
    test_clock_turn(&the_clock, 1000 * MS);
    /* The time has passed since the last look: due now. */
    assert_true(active_plans_next_look(w.active_plans) <= clock_monotonic(&the_clock.clock));
    assert_int_equal(next(&w, &file), PUSH_STORE);
    pushed(&w, &file, PAGE);
    assert_int_equal(active_plans_next_look(w.active_plans), INT64_MAX);
    world_end(&w);
}

UNIT_TEST(test_active__file_cannot_be_read__left_to_its_reader)
{
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    read_unit(&w, &first, 0);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 1);
    pushed(&w, &file, -EBADMSG);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, 2);
    pushed(&w, &file, PAGE);
    read_unit(&w, &first, 1);
    assert_int_equal(COUNTER(&w, lost), 0);
    world_end(&w);
}

/* Start a reader with a large window. Returns the unit that it read last. */
static uint64_t with_large_window(struct world *w, struct node *first, struct pages *pages)
{
    uint64_t last = 0;

    world_start(w, 1024 * PAGE, false);
    *first = node_at(w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 1000; unit++)
        if (is_asked(pages, unit, node_column(first))) {
            read_unit(w, first, unit);
            push_all(w, PAGE, pages);
            last = unit;
        }
    assert_int_equal(first_active(w).pushed, last + 1024 + 1);
    return last;
}

UNIT_TEST(test_active__lost_pages__smaller_window)
{
    struct pages pages = {0};
    uint64_t unit, before, lost = 0;
    struct world w;
    struct node first;

    unit = with_large_window(&w, &first, &pages);
    before = first_active(&w).pushed;
    while (lost < 20) { /* two, then a mark, and so on */
        bool is_mark = pages.is_marked[++unit];

        if (!is_mark && unit % 64 > 2)
            continue;
        read_unit(&w, &first, unit);
        lost += !is_mark;
        assert_int_equal(COUNTER(&w, lost), lost);
    }
    assert_int_equal(push_all(&w, PAGE, &pages), 0);
    assert_int_equal(first_active(&w).pushed, before);
    world_end(&w);
}

UNIT_TEST(test_active__all_pages_lost__pushed_again)
{
    struct pages pages = {0};
    struct push_file file;
    uint64_t unit;
    struct world w;
    struct node first;

    unit = with_large_window(&w, &first, &pages);
    for (unsigned i = 0; i < 3; i++)
        read_unit(&w, &first, ++unit);
    assert_int_equal(COUNTER(&w, lost), 3);
    assert_int_equal(next(&w, &file), PUSH_STORE);
    assert_int_equal(file.node.number, unit + 1);
    pushed(&w, &file, PAGE);
    world_end(&w);
}

/* The push begins again, and the page cache has what was pushed before all the same: the next read
 * that reaches us is of the unit behind that. The reader has passed all before it. */
UNIT_TEST(test_active__few_pages_lost__goes_on_behind_the_others)
{
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
    struct pages pages = {0};
    uint64_t unit, before;
    struct world w;
    struct node first;

    unit = with_large_window(&w, &first, &pages);
    before = first_active(&w).pushed;
    for (unsigned i = 0; i < 3; i++)
        read_unit(&w, &first, ++unit);
    assert_true(first_active(&w).pushed < before);
    read_unit(&w, &first, before);
    assert_int_equal(COUNTER(&w, jumps), 0);
    assert_int_equal(active_plans_cursors(w.active_plans, cursor), 1);
    assert_int_equal(cursor[0].from, 0);
    world_end(&w);
}

/* One page of every tenth unit is lost. */
UNIT_TEST(test_active__page_lost_now_and_then__not_pushed_again)
{
    struct pages pages = {0};
    uint64_t unit, before, lost = 0;
    struct world w;
    struct node first;

    unit = with_large_window(&w, &first, &pages);
    before = first_active(&w).pushed;
    for (; lost < 50; unit += 10) {
        lost += !pages.is_marked[unit + 10];
        read_unit(&w, &first, unit + 10);
    }
    assert_int_equal(COUNTER(&w, lost), lost);
    push_all(&w, PAGE, &pages);
    assert_true(first_active(&w).pushed >= before);
    world_end(&w);
}

UNIT_TEST(test_active__memory_short__nothing_until_there_is_some)
{
    struct push_file file;
    unsigned n = 0;
    struct world w;
    struct node first;

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=1,seed=1/epoch=0/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < 20; unit++) {
        read_unit(&w, &first, unit);
        while (active_plans_next_push(w.active_plans, 0, &file) == PUSH_STORE) {
            assert_false(active_plans_may_store(w.active_plans, &file, PAGE));
            pushed(&w, &file, -EFBIG);
        }
    }
    for (uint64_t unit = 20; unit < 60; unit++) {
        read_unit(&w, &first, unit);
        while (active_plans_next_push(w.active_plans, 3 * PAGE, &file) == PUSH_STORE) {
            pushed(&w, &file, PAGE);
            n++;
        }
        assert_in_range(first_active(&w).pushed, unit + 1, unit + 1 + 3);
    }
    assert_in_range(n, 10, 40);
    world_end(&w);
}

/* ---- keep=once ---- */

UNIT_TEST(test_active__drops__what_was_passed_each_kind_once)
{
    uint64_t dropped[SAMPLES] = {0};
    struct push_file file;
    struct world w;
    struct node first, node;

    world_start(&w, 64 * PAGE, true);
    first = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/npy/000000.image.npy");
    for (uint64_t unit = 0; unit < 1000; unit++) {
        enum push_what what;

        for (unsigned kind = 0; kind < 4; kind += 3) {
            node_sibling(&first, unit, kind, &node);
            test_clock_turn(&the_clock, MS);
            active_plans_read(w.active_plans, &node, PAGE);
        }
        while ((what = next(&w, &file)) != PUSH_NOTHING) {
            if (what == PUSH_STORE) {
                pushed(&w, &file, PAGE);
                continue;
            }
            assert_in_range(file.node.number + 32, 0, unit);
            assert_false(dropped[file.node.number] >> node_column(&file.node) & 1);
            dropped[file.node.number] |= UINT64_C(1) << node_column(&file.node);
        }
    }
    for (uint64_t unit = 0; unit < 960; unit++)
        assert_int_equal(dropped[unit], 1 | 8);
    world_end(&w);
}

UNIT_TEST(test_active__exceeds__drops_until_it_no_longer_does)
{
    struct push_file file;
    struct world w;
    struct node first, node;
    uint64_t n_dropped[3] = {0};

    world_start(&w, 64 * PAGE, false);
    first = node_at(&w, "train/batches/batch=4,seed=1/epoch=0/npy/000000.image.npy");
    for (uint64_t unit = 0; unit < 600; unit++) {
        enum push_what what;

        active_plans_exceed(w.active_plans, unit / 200 == 1);
        node_sibling(&first, unit, 0, &node);
        test_clock_turn(&the_clock, MS);
        active_plans_read(w.active_plans, &node, PAGE);
        while ((what = next(&w, &file)) != PUSH_NOTHING) {
            n_dropped[unit / 200] += what == PUSH_DROP;
            if (what == PUSH_STORE)
                pushed(&w, &file, PAGE);
        }
    }
    assert_int_equal(n_dropped[0], 0);
    assert_in_range(n_dropped[1], 300, 400); /* also those before */
    assert_int_equal(n_dropped[2], 0);
    world_end(&w);
}

/* ---- samples ---- */

UNIT_TEST(test_active__samples_in_sequence__pushed)
{
    struct pages pages = {0};
    unsigned asked = 0;
    struct world w;
    struct node first;

    world_start(&w, 256 * PAGE, false);
    first = node_at(&w, "train/samples/raw/000000.image.raw");
    for (uint64_t unit = 0; unit < SAMPLES; unit++)
        if (is_asked(&pages, unit, node_column(&first))) {
            asked++;
            read_unit(&w, &first, unit);
            push_all(&w, PAGE, &pages);
        }
    assert_in_range(asked, SAMPLES / 64, SAMPLES / 64 + 20);
    assert_true(first_active(&w).is_samples);
    assert_null(first_active(&w).plan);
    world_end(&w);
}

UNIT_TEST(test_active__samples_at_random__nothing)
{
    uint64_t random = RANDOM_SEED;
    struct pages pages = {0};
    struct world w;
    struct node first;

    world_start(&w, 256 * PAGE, false);
    first = node_at(&w, "train/samples/raw/000000.image.raw");
    for (unsigned i = 0; i < 20000; i++) {
        /* Three in sequence by chance come once in 4000 / 8 squared reads. */
        read_unit(&w, &first, random_below(&random, SAMPLES));
        push_all(&w, PAGE, &pages);
    }
    assert_in_range(pages.n, 0, 60);
    world_end(&w);
}

/* ---- many ---- */

UNIT_TEST(test_active__table_full__the_oldest_goes)
{
    struct active_info info[ACTIVE_PLANS_MAX];
    struct push_file file;
    struct world w;
    struct node first;

    world_start(&w, 4096 * PAGE, false);
    for (unsigned i = 0; i < 3 * ACTIVE_PLANS_MAX; i++) {
        first = node_at(&w, "train/batches/batch=4,seed=%u/epoch=0/raw/000000.image.raw", i);
        if (i % 3 == 0)
            active_plans_announce(w.active_plans, first.plan);
        read_unit(&w, &first, 0);
        /* One plan is removed while it is pushed. */
        if (i == 5)
            assert_int_equal(next(&w, &file), PUSH_STORE);
    }
    pushed(&w, &file, PAGE);
    assert_false(active_plans_may_store(w.active_plans, &file, 1));
    assert_int_equal(active_plans_list(w.active_plans, info), ACTIVE_PLANS_MAX);
    for (unsigned i = 0; i < ACTIVE_PLANS_MAX; i++) {
        assert_non_null(info[i].folder);
        assert_int_equal(info[i].plan->plan.seed, 3 * ACTIVE_PLANS_MAX - 1 - i);
    }
    world_end(&w);
}
