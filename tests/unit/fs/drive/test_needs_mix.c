/* The forecast of needs for a mix, whose samples come several times, against the list of its
 * epochs: what is needed next, and when these bytes are needed. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "format/core/extents.h"
#include "fs/drive/needs.h"
#include "fs/tree/folder_scan.h"
#include "fs/tree/mixes.h"
#include "fs/tree/tree.h"
#include "support/idx_make.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define LIST_MOST 1024

struct active_plans {
    struct lock lock;
    struct active_cursor cursor;
};

size_t active_plans_cursors(struct active_plans *active_plans,
                            struct active_cursor ret[static ACTIVE_PLANS_MAX])
{
    LOCK_SCOPE(&active_plans->lock);

    ret[0] = active_plans->cursor;
    return 1;
}

struct fixture {
    struct options options;
    struct catalog_tools tools;
    struct catalog catalog;
    const struct catalog_item *mix;
    struct active_plans active_plans;
    struct test_clock clock;
    struct needs *needs;
    const struct stage_needs *g;
    struct plan_entry plan;
    /* Needs of this epoch from `at` on, then of the next: */
    uint64_t n, sample[2 * LIST_MOST];
};

static void add_idx(struct fixture *f, const char *name, uint32_t n)
{
    AUTO(found_release) struct found found;
    struct blob *blob = idx_blob_zeros(name, 0x08, 3, (uint32_t[]){n, 60, 60}, NULL);

    assert_int_equal(idx_open(&blob, 1, &(struct format_options){0}, &found), 0);
    assert_int_equal(folder_scan_add(&f->catalog, NULL, "", name, found.item[0].ds, NULL), 0);
    found.item[0].ds = NULL;
}

/* One dataset twice, one that an epoch shows several times, and one of which it shows a part. */
static void setup_mix(struct fixture *f, const char *name, uint64_t epoch, uint64_t at)
{
    struct diag d = DIAG_INIT;
    struct epoch_order order;

    options_init(&f->options);
    f->catalog.tools = &f->tools;
    add_idx(f, "a", 200);
    add_idx(f, "b", 9);
    add_idx(f, "c", 400);
    assert_int_equal(options_parse(&f->options, "mix=m=a*3+b*2+c*1+a*1/240", &d), 0);
    if (mixes_add(&f->catalog, &f->options, &d) < 0)
        fail_msg("%s", d.text);
    mixes_number_items(&f->catalog);
    f->mix = &f->catalog.item[f->catalog.n - 1];
    assert_non_null(f->mix->mixture);
    f->plan.item = f->mix;
    assert_int_equal(plan_parse(name, strlen(name), ',', &f->plan.plan, &d), 0);
    assert_int_equal(tree_schedule_item(&f->catalog, f->mix, &f->plan.plan, &f->plan.schedule,
                                        &f->plan.labels, &d),
                     0);
    test_clock_init(&f->clock);
    lock_init(&f->active_plans.lock);
    f->active_plans.cursor =
        (struct active_cursor){.id = 1, .plan = &f->plan, .item = f->mix, .epoch = epoch, .at = at};
    assert_int_equal(needs_new(&f->active_plans, &f->catalog, &f->clock.clock, &f->needs), 0);
    f->g = needs_for_stage(f->needs);
    for (unsigned i = 0; i < 2; i++) {
        schedule_order(&f->plan.schedule, epoch + i, &order);
        for (uint64_t e = i ? 0 : at; e < f->plan.schedule.elements; e++)
            schedule_elements(&f->plan.schedule, &order, e, 1, &f->sample[f->n++]);
    }
    assert_int_equal(f->g->next(f->g->ctx, NULL, 0), 0);
}

static void teardown_mix(struct fixture *f)
{
    needs_free(f->needs);
    test_clock_release(&f->clock);
    lock_release(&f->active_plans.lock);
    f->catalog.tools = NULL;
    catalog_release(&f->catalog);
    options_release(&f->options);
    free(f);
}

static bool touches(const struct fixture *f, uint64_t sample, const struct blob *blob, uint64_t off,
                    uint64_t len)
{
    struct extent extent[EXTENTS_MOST];
    unsigned n = dataset_extents(f->mix->ds, sample, NULL, extent);

    for (unsigned k = 0; k < n; k++)
        if (extent[k].blob == blob && extent[k].off < off + len &&
            off < extent[k].off + extent[k].len)
            return true;
    return false;
}

/* The first need of each 4 KiB of each source. */
static void check_when(const struct fixture *f)
{
    for (unsigned k = 0; k < f->mix->ds->n_blobs; k++) {
        const struct blob *blob = f->mix->ds->blob[k];
        uint64_t base = UINT64_MAX;

        for (uint64_t off = 0; off < blob->size; off += 4096) {
            uint64_t len = min_u64(4096, blob->size - off), at = 0;
            uint64_t when = stage_when(f->g, blob, off, len);

            while (at < f->n && !touches(f, f->sample[at], blob, off, len))
                at++;
            if (at == f->n) {
                assert_true(when == STAGE_NEVER);
                continue;
            }
            base = base == UINT64_MAX ? when - at : base;
            assert_int_equal(when, base + at);
        }
    }
}

/* All needs together are the bytes of the samples; what is needed sooner comes sooner. */
static void check_next(struct fixture *f)
{
    struct stage_need need[64];
    uint64_t last = 0, bytes = 0, samples = 0;
    bool seen[1024] = {false};
    size_t n;

    while ((n = f->g->next(f->g->ctx, need, ARRAY_LEN(need))) > 0)
        for (size_t i = 0; i < n; i++) {
            assert_true(need[i].when + f->plan.schedule.batch > last);
            last = max_u64(last, need[i].when);
            bytes += need[i].len;
        }
    assert_true(bytes > 0);
    for (uint64_t i = 0; i < f->n && i < f->plan.schedule.elements; i++) {
        assert_true(f->sample[i] < f->mix->ds->samples && f->mix->ds->samples <= ARRAY_LEN(seen));
        samples += !seen[f->sample[i]];
        seen[f->sample[i]] = true;
    }
    assert_true(bytes >= samples * 3600);
    assert_true(bytes <= f->n * 3600);
}

UNIT_TEST(test_needs__mixes__as_the_lists_say)
{
    static const struct {
        const char *plan;
        uint64_t epoch, at;
    } rows[] = {
        {"batch=16,seed=7", 0, 0},
        {"batch=16,seed=7", 5, 100},
        {"batch=8,rank=1of3,seed=2", 1, 8},
        {"batch=16,seed=7,shuffle=window:4", 2, 32},
        {"batch=32", 0, 64},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        setup_mix(f, rows[i].plan, rows[i].epoch, rows[i].at);
        check_when(f);
        check_next(f);
        teardown_mix(f);
    }
}
