/* The samples of a walk, one at a time: right wherever the walk goes, and computed together where
 * it goes forward. */
#include "base/checked.h"
#include "format/core/sample_window.h"
#include "support/random.h"
#include "support/unit.h"

#define COUNT 10000

/* A selection that counts its calls. */
struct counted {
    struct selection sel;
    uint64_t calls, samples;
};

static uint64_t sample_at(uint64_t place)
{
    return place * 7919 % 104729;
}

static void samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    struct counted *c = (struct counted *)(uintptr_t)sel;

    assert_true(n && first < sel->count && n <= sel->count - first && n <= SAMPLE_WINDOW);
    c->calls++;
    c->samples += n;
    for (size_t i = 0; i < n; i++)
        ret[i] = sample_at(first + i);
}

static struct counted counted_of(uint64_t count)
{
    return (struct counted){.sel = {.count = count, .samples = samples}};
}

static void check_at(struct sample_window *w, uint64_t place)
{
    assert_int_equal(sample_window_at(w, place), sample_at(place));
}

UNIT_TEST(test_sample_window__walk_forward__asked_for_together)
{
    struct counted c = counted_of(COUNT);
    struct sample_window w = {.sel = &c.sel};

    for (uint64_t place = 0; place < COUNT; place++)
        check_at(&w, place);
    assert_in_range(c.calls, 1, COUNT / SAMPLE_WINDOW + 8);
    assert_in_range(c.samples, COUNT, COUNT + 2 * c.calls);
}

/* The pattern of reading archives, which also looks at the following sample. */
UNIT_TEST(test_sample_window__walk_that_looks_ahead__asked_for_together)
{
    struct counted c = counted_of(COUNT);
    struct sample_window w = {.sel = &c.sel};

    for (uint64_t place = 0; place + 1 < COUNT; place++) {
        check_at(&w, place);
        check_at(&w, place + 1);
        check_at(&w, place);
    }
    assert_in_range(c.calls, 1, COUNT / SAMPLE_WINDOW + 8);
}

UNIT_TEST(test_sample_window__jumps__each_asked_for_alone)
{
    struct counted c = counted_of(COUNT);
    struct sample_window w = {.sel = &c.sel};
    uint64_t n = 0;

    for (uint64_t place = COUNT - 1; place >= 3; place -= 3, n++)
        check_at(&w, place);
    assert_int_equal(c.calls, n);
    assert_int_equal(c.samples, n);
}

UNIT_TEST(test_sample_window__any_walk__right)
{
    uint64_t rng = RANDOM_SEED;

    for (uint64_t count = 1; count < 2000; count += 1 + count / 3) {
        struct counted c = counted_of(count);
        struct sample_window w = {.sel = &c.sel};
        uint64_t place = 0;

        for (unsigned i = 0; i < 5000; i++) {
            check_at(&w, place);
            switch (random_below(&rng, 16)) {
            case 0:
                place = random_below(&rng, count);
                break;
            case 1:
                place -= place ? 1 : 0;
                break;
            default:
                place = (place + 1) % count;
                break;
            }
        }
    }
}

/* A selection that knows its samples asks no source. */
UNIT_TEST(test_selection__in_order_or_listed__not_asked)
{
    static const uint64_t list[] = {9, 2, 2, 5};
    const struct selection in_order = {.count = 100, .in_order = true, .first = 40};
    const struct selection listed = {.count = 4, .list = list};
    uint64_t found[3];

    selection_samples(&in_order, 7, 3, found);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(found[i], 47 + i);
    selection_samples(&listed, 1, 3, found);
    assert_memory_equal(found, &list[1], sizeof(found));
    selection_samples(&(struct selection){0}, 0, 0, found);
}
