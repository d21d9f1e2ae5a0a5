/* The forecast of needs against explicit lists of epochs. */
#include "fs/drive/needs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/mix64.h"
#include "format/core/extents.h"
#include "fs/drive/extent_map.h"
#include "fs/plan/length_batches.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/unit.h"
#include "support/worlds.h"

#ifdef SLOW_BUILD
#define STEP 5 /* through the places that are asked for */
#else
#define STEP 1
#endif
#define SAMPLES   1000
#define IMAGE     (28 * 28)
#define LIST_MOST 4096

/* Active plans that a test sets. */
struct active_plans {
    struct lock lock;
    size_t n;
    struct active_cursor cursor[ACTIVE_PLANS_MAX];
};

size_t active_plans_cursors(struct active_plans *active_plans,
                            struct active_cursor ret[static ACTIVE_PLANS_MAX])
{
    LOCK_SCOPE(&active_plans->lock);

    memcpy(ret, active_plans->cursor, sizeof(active_plans->cursor));
    return active_plans->n;
}

/* ---- allocations that fail ---- */

static bool is_counted;
static long count, fail_at;

static bool fails(void)
{
    return is_counted && ++count == fail_at;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__real_calloc(size_t n, size_t each);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_calloc(size_t n, size_t each)
{
    return fails() ? NULL : __real_calloc(n, each);
}

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

/* ---- a mount ---- */

struct fixture {
    struct found found;
    struct catalog_item item;
    struct catalog catalog;
    struct active_plans active_plans;
    struct test_clock clock;
    struct needs *needs;
    const struct stage_needs *g;
    const struct dataset *ds;
};

static void use_dataset(struct fixture *f, struct dataset *ds)
{
    f->ds = ds;
    f->item = (struct catalog_item){.ds = ds};
    f->catalog = (struct catalog){.n = 1, .item = &f->item, .n_datasets = 1};
    test_clock_init(&f->clock);
    lock_init(&f->active_plans.lock);
    assert_int_equal(needs_new(&f->active_plans, &f->catalog, &f->clock.clock, &f->needs), 0);
    f->g = needs_for_stage(f->needs);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct blob *blob[] = {
        idx_blob_zeros("x-images", 0x08, 3, (uint32_t[]){SAMPLES, 28, 28}, NULL),
        idx_blob_zeros("x-labels", 0x08, 1, (uint32_t[]){SAMPLES}, NULL),
    };

    assert_int_equal(idx_open(blob, 2, &(struct format_options){0}, &f->found), 0);
    use_dataset(f, f->found.item[0].ds);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    needs_free(f->needs);
    test_clock_release(&f->clock);
    lock_release(&f->active_plans.lock);
    found_release(&f->found);
    free(f);
    return 0;
}

static void plan_init(struct plan_entry *ret, const struct fixture *f, const char *name)
{
    struct diag d = DIAG_INIT;

    *ret = (struct plan_entry){.item = &f->item};
    assert_int_equal(plan_parse(name, strlen(name), ',', &ret->plan, &d), 0);
    plan_name(&ret->plan, ret->name);
    schedule_init(&ret->schedule, &ret->plan, f->ds->samples, NULL);
}

/* Set cursor number i, of batches or of samples in stored order (NULL). */
static struct active_cursor *cursor_init(struct fixture *f, size_t i, const struct plan_entry *plan,
                                         uint64_t epoch, uint64_t at)
{
    f->active_plans.n = max_u64(f->active_plans.n, i + 1);
    f->active_plans.cursor[i] = (struct active_cursor){.id = 100 + i,
                                                       .plan = plan,
                                                       .item = &f->item,
                                                       .is_samples = !plan,
                                                       .epoch = epoch,
                                                       .at = at};
    return &f->active_plans.cursor[i];
}

static void look(const struct fixture *f)
{
    assert_int_equal(f->g->next(f->g->ctx, NULL, 0), 0);
}

/* ---- the model ---- */

/* The samples that a reader reads from `at` on: the rest of its epoch, and the next epoch. */
struct list {
    uint64_t n, this_epoch;
    uint64_t elements, at;
    uint64_t reach; /* those that next() reports */
    uint64_t sample[2 * LIST_MOST];
};

static void list_init(struct list *ret, const struct fixture *f, const struct active_cursor *c)
{
    const struct plan_entry *plan = c->plan;
    uint64_t elements = plan ? plan->schedule.elements : f->ds->samples;

    assert_true(elements <= LIST_MOST);
    *ret = (struct list){.elements = elements, .at = c->at, .this_epoch = elements - c->at};
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        struct epoch_order order;

        if (plan)
            schedule_order(&plan->schedule, c->epoch + epoch, &order);
        for (uint64_t e = epoch ? 0 : c->at; e < elements; e++, ret->n++) {
            if (plan)
                schedule_elements(&plan->schedule, &order, e, 1, &ret->sample[ret->n]);
            else
                ret->sample[ret->n] = e;
        }
    }
    ret->reach = elements;
    if (plan && plan->plan.seeded && elements < plan->schedule.length)
        ret->reach = ret->n; /* the next epoch has others */
}

/* The distance of the first element that reads bytes of [off, off + len); UINT64_MAX: none. */
static uint64_t list_distance(const struct list *list, const struct fixture *f,
                              const struct field *only, const struct blob *blob, uint64_t off,
                              uint64_t len)
{
    for (uint64_t i = 0; i < list->n; i++) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(f->ds, list->sample[i], only, extent);

        for (unsigned k = 0; k < n; k++)
            if (extent[k].blob == blob && extent[k].off < off + len &&
                off < extent[k].off + extent[k].len)
                return i;
    }
    return UINT64_MAX;
}

/* ---- next ---- */

static const char *const plans[] = {
    "batch=128",
    "batch=all",
    "batch=128,seed=7",
    "batch=300,seed=7,tail=drop",
    "batch=300,seed=7,tail=wrap",
    "batch=32,tail=wrap",
    "batch=all,seed=3",
    "batch=64,seed=5,shuffle=window:50",
    "batch=10,part=1of3,seed=5",
    "batch=10,part=2of3",
    "batch=32,rank=1of3,seed=9",
    "batch=32,rank=2of3,seed=9,tail=drop",
    "batch=32,rank=0of3,seed=9,tail=wrap",
    "batch=32,rank=2of3,tail=wrap",
    "batch=7,part=1of4,rank=3of5,seed=9,shuffle=window:9,tail=wrap",
    "batch=1000,part=99of100,rank=1of3,seed=9,tail=wrap",
    "batch=7,part=1of4,rank=3of5,shuffle=full,seed=1,tail=drop",
    "batch=1,seed=1",
};

/* What next() has reported about one field of a cursor. */
struct reported {
    uint64_t n;                  /* elements */
    bool element[2 * LIST_MOST]; /* by distance */
};

/* The distance of the end of the turn that contains the element at that distance. */
static uint64_t turn_end(const struct list *list, const struct plan_entry *plan, uint64_t distance)
{
    uint64_t unit = plan ? plan->schedule.batch : 1;
    uint64_t element = (list->at + distance) % list->elements;
    uint64_t start = distance < list->this_epoch ? 0 : list->this_epoch;

    if (unit > 1)
        start = distance - min_u64(element % unit, distance);
    else
        start += (distance - start) / 256 * 256;
    return min_u64(start + (unit > 1 ? unit - (list->at + start) % list->elements % unit : 256),
                   distance + list->elements - element);
}

/* Record a need: it reports the elements, not yet reported, that read those samples, within one
 * turn from its time on. */
static void tell(struct reported *reported, const struct list *list, const struct field *field,
                 const struct stage_need *need, const struct plan_entry *plan)
{
    uint64_t first = (need->off - field->offset) / field->stored_bytes;
    uint64_t n = need->len / field->stored_bytes, from = need->when;

    assert_int_equal((need->off - field->offset) % field->stored_bytes, 0);
    assert_int_equal(need->len % field->stored_bytes, 0);
    assert_true(from < list->reach);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t again = 0;

        for (uint64_t d = from; d < min_u64(turn_end(list, plan, from), list->reach); d++) {
            if (list->sample[d] != first + i || reported->element[d])
                continue;
            reported->element[d] = true;
            reported->n++;
            again++;
        }
        if (!again)
            fail_msg("sample %llu told at %llu: not needed then, or told before",
                     (unsigned long long)(first + i), (unsigned long long)need->when);
    }
}

static void check_next(struct fixture *f, const struct active_cursor *c, size_t capacity)
{
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    AUTO_FREE struct reported *reported = calloc(2, sizeof(*reported));
    struct stage_need need[50];
    uint64_t before = 0;
    size_t n;

    list_init(list, f, c);
    while ((n = f->g->next(f->g->ctx, need, capacity)) > 0) {
        assert_true(n <= capacity);
        for (size_t i = 0; i < n; i++) {
            unsigned k = need[i].blob != f->ds->field[0].blob;

            assert_true(need[i].when >= before);
            before = need[i].when;
            tell(&reported[k], list, &f->ds->field[k], &need[i], c->plan);
        }
    }
    for (uint64_t d = 0; d < list->reach; d++)
        for (unsigned k = 0; k < 2; k++)
            if (!reported[k].element[d])
                fail_msg("element %llu: field %u was not told", (unsigned long long)d, k);
    assert_int_equal(f->g->next(f->g->ctx, need, capacity), 0);
}

UNIT_TEST_WITH(test_next__plans__every_element_once, setup, teardown)
{
    struct fixture *f = *state;

    for (size_t i = 0; i <= ARRAY_LEN(plans); i++) {
        for (unsigned k = 0; k < 4; k++) {
            struct plan_entry plan;
            struct active_cursor *c;
            uint64_t elements = SAMPLES;

            if (i < ARRAY_LEN(plans)) {
                plan_init(&plan, f, plans[i]);
                elements = plan.schedule.elements;
            }
            needs_free(f->needs);
            use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
            c = cursor_init(f, 0, i < ARRAY_LEN(plans) ? &plan : NULL, k, elements * k / 3);
            check_next(f, c, k ? 50 : 7);
        }
    }
}

/* ---- batches by length ---- */

static void get_lengths(const struct plan_lengths *lengths, size_t n, const uint64_t *sample,
                        uint32_t *ret)
{
    (void)lengths;
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint32_t)(1 + mix64(sample[i]) % 40);
}

static struct length_batches *cut_plan(struct plan_entry *plan, const struct fixture *f)
{
    static const struct plan_lengths_ops ops = {.get = get_lengths};
    static const struct plan_lengths lengths = {.ops = &ops, .word = "bytes"};
    struct plan_data data = {.samples = f->ds->samples, .lengths = &lengths};
    struct length_batches *b;

    assert_int_equal(length_batches_new(&plan->plan, &data, NULL, &b, NULL), 0);
    data.cuts = length_batches_cuts(b);
    schedule_init_data(&plan->schedule, &plan->plan, &data);
    return b;
}

/* The samples of the rank's batches from number `from` on. */
static uint64_t list_cut(const struct plan_entry *plan, uint64_t epoch, uint64_t from,
                         uint64_t *ret)
{
    struct epoch_order order;
    uint64_t n = 0;

    schedule_order(&plan->schedule, epoch, &order);
    for (uint64_t k = from; schedule_has(&plan->schedule, epoch, k) == 0; k++) {
        AUTO(schedule_batch_release) struct schedule_batch batch;

        assert_int_equal(schedule_batch_init(&plan->schedule, epoch, k, &batch), 0);
        schedule_samples(&plan->schedule, &order, &batch, 0, batch.count, ret + n);
        n += batch.count;
    }
    return n;
}

/* Whole windows are told in the order in which their batches are read, and when() is not late. */
UNIT_TEST_WITH(test_next__batches_by_length__those_of_the_rank, setup, teardown)
{
    static const char *const names[] = {"batch=bytes:400,bucket=64,seed=7",
                                        "batch=bytes:400,bucket=64,rank=1of3,seed=7",
                                        "batch=8,bucket=64,rank=2of3,seed=7"};
    struct fixture *f = *state;
    const struct field *field = &f->ds->field[0];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        uint64_t sample[SAMPLES], n, told = 0;
        struct stage_need need[50];
        struct length_batches *cuts;
        struct plan_entry plan;
        size_t some;

        plan_init(&plan, f, names[i]);
        cuts = cut_plan(&plan, f);
        needs_free(f->needs);
        use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
        cursor_init(f, 0, &plan, 2, 3)->is_last = true;
        n = list_cut(&plan, 2, 3, sample);
        while ((some = f->g->next(f->g->ctx, need, ARRAY_LEN(need))) > 0)
            for (size_t k = 0; k < some; k++)
                told += need[k].blob == field->blob ? need[k].len / field->stored_bytes : 0;
        assert_int_equal(told, n);
        for (uint64_t e = 0; e < n; e++) {
            uint64_t when =
                stage_when(f->g, field->blob, field->offset + sample[e] * field->stored_bytes, 1);

            assert_true(when <= plan.plan.ranks * (e + 128));
        }
        f->active_plans.n = 0;
        length_batches_free(cuts);
    }
}

/* Units that have more samples than one turn of a cursor. */
UNIT_TEST_WITH(test_next__units__each_sample_once, setup, teardown)
{
    static const uint32_t starts[] = {0, 1, 2500, 2600, 3000};
    const struct plan_units units = {.n = ARRAY_LEN(starts) - 1, .start = starts};
    const struct plan_data data = {.samples = starts[units.n], .units = &units};
    struct blob *blob[] = {
        idx_blob_zeros("x-images", 0x08, 3, (uint32_t[]){starts[units.n], 2, 2}, NULL),
        idx_blob_zeros("x-labels", 0x08, 1, (uint32_t[]){starts[units.n]}, NULL),
    };
    struct fixture *f = *state;
    struct stage_need need[50];
    struct plan_entry plan;
    uint8_t told[3000] = {0};
    size_t some;

    needs_free(f->needs);
    found_release(&f->found);
    assert_int_equal(idx_open(blob, 2, &(struct format_options){0}, &f->found), 0);
    use_dataset(f, f->found.item[0].ds);
    plan_init(&plan, f, "batch=3,seed=1,unit=label");
    schedule_init_data(&plan.schedule, &plan.plan, &data);
    cursor_init(f, 0, &plan, 0, 0)->is_last = true;
    while ((some = f->g->next(f->g->ctx, need, ARRAY_LEN(need))) > 0)
        for (size_t i = 0; i < some; i++)
            for (uint64_t k = 0; need[i].blob == f->ds->field[1].blob && k < need[i].len; k++)
                told[need[i].off - f->ds->field[1].offset + k]++;
    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        assert_int_equal(told[i], 1);
}

static uint64_t tell_all(const struct fixture *f, struct stage_need *ret, size_t capacity)
{
    size_t n = 0, some;

    while ((some = f->g->next(f->g->ctx, ret + n, min_u64(capacity - n, 100))) > 0)
        n += some;
    return n;
}

/* In stored order a batch is one range of each file. */
UNIT_TEST_WITH(test_next__stored_order__merged, setup, teardown)
{
    struct fixture *f = *state;
    const struct field *image = &f->ds->field[0];
    struct stage_need need[100];
    struct plan_entry plan;

    plan_init(&plan, f, "batch=100");
    cursor_init(f, 0, &plan, 0, 130);
    assert_int_equal(tell_all(f, need, 100), 2 * 11);
    for (unsigned i = 0; i < 22; i++) {
        uint64_t first = i < 2 ? 130 : i / 2 * 100 + 100, n = i < 2 ? 70 : i < 20 ? 100 : 30;

        assert_int_equal(need[i].when, i < 2 ? 0 : first - 130);
        if (need[i].blob != image->blob)
            continue;
        assert_int_equal(need[i].off, image->offset + first % SAMPLES * IMAGE);
        assert_int_equal(need[i].len, n * IMAGE);
    }
}

/* Reports only the fields whose files are read. */
UNIT_TEST_WITH(test_next__files_of_one_field__only_that, setup, teardown)
{
    struct fixture *f = *state;
    struct stage_need need[4 * SAMPLES];
    struct active_cursor *c;
    struct plan_entry plan;
    size_t n;

    plan_init(&plan, f, "batch=100,seed=1");
    c = cursor_init(f, 0, &plan, 0, 0);
    for (unsigned i = 0; i < f->ds->n_folders && !c->folder; i++)
        if (!strcmp(f->ds->folder[i].name, "npy"))
            c->folder = &f->ds->folder[i];
    for (unsigned i = 0; i < c->folder->n_kinds[SCOPE_BATCHES]; i++)
        if (!strcmp(c->folder->files[SCOPE_BATCHES][i].suffix, ".label1h.npy") ||
            !strcmp(c->folder->files[SCOPE_BATCHES][i].suffix, ".index.npy"))
            c->columns |= UINT64_C(1) << i;
    n = tell_all(f, need, ARRAY_LEN(need));
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(need[i].blob, f->ds->field[1].blob);
    assert_int_equal(stage_when(f->g, f->ds->field[0].blob, 0, UINT64_C(1) << 20), STAGE_NEVER);
    assert_int_equal(stage_when(f->g, f->ds->field[1].blob, 0, UINT64_C(1) << 20), 0);
}

/* ---- cursors that move ---- */

UNIT_TEST_WITH(test_next__reader_moves__goes_on, setup, teardown)
{
    struct fixture *f = *state;
    struct active_cursor *c;
    struct stage_need need[100];
    struct plan_entry plan;

    plan_init(&plan, f, "batch=100");
    c = cursor_init(f, 0, &plan, 0, 0);
    assert_int_equal(tell_all(f, need, 100), 20);
    assert_int_equal(tell_all(f, need, 100), 0);
    c->at = 100;
    assert_int_equal(tell_all(f, need, 100), 2);
    assert_int_equal(need[0].when, SAMPLES); /* the first batch, in the next round */
    c->at = 350;
    assert_int_equal(tell_all(f, need, 100), 6);
    assert_int_equal(need[0].when, SAMPLES + 100);
    assert_int_equal(need[4].when, SAMPLES + 300);
    assert_int_equal(need[4].len + need[5].len, 50 * (IMAGE + 1));
    c->at = 30; /* the next round; the first batches are known */
    assert_int_equal(tell_all(f, need, 100), 2 * 8);
    assert_int_equal(need[0].when, SAMPLES + 350);
}

UNIT_TEST_WITH(test_place__readers__what_they_still_need, setup, teardown)
{
    const uint64_t all = SAMPLES * (IMAGE + 1);
    struct fixture *f = *state;
    struct active_cursor *c;
    struct needs_place place = needs_place(f->needs);
    struct plan_entry plan;
    uint64_t version;

    assert_null(place.ds);
    assert_int_equal(place.left, 0);
    plan_init(&plan, f, "batch=100");
    c = cursor_init(f, 0, &plan, 0, SAMPLES / 2);
    place = needs_place(f->needs);
    version = place.version;
    assert_ptr_equal(place.ds, f->ds);
    assert_in_range(place.bytes, all, all + 100);
    assert_in_range(place.left, all / 2, all / 2 + 100);
    c->at += 100;
    assert_int_equal(needs_place(f->needs).now, place.now + 100);
    assert_int_equal(needs_place(f->needs).version, version);
    cursor_init(f, 1, &plan, 0, 0); /* another reader of the same sources */
    place = needs_place(f->needs);
    assert_in_range(place.bytes, all, all + 100);
    assert_true(place.left > all);
    c->jumps++;
    assert_int_not_equal(needs_place(f->needs).version, version);
}

UNIT_TEST_WITH(test_next__reader_overtakes__never_behind_it, setup, teardown)
{
    struct fixture *f = *state;
    struct active_cursor *c;
    struct stage_need need[100];
    struct plan_entry plan;

    plan_init(&plan, f, "batch=100");
    c = cursor_init(f, 0, &plan, 0, 0);
    assert_int_equal(f->g->next(f->g->ctx, need, 2), 2);
    c->at = 500;
    assert_int_equal(f->g->next(f->g->ctx, need, 2), 2);
    assert_int_equal(need[0].when, 500);
    assert_int_equal(min_u64(need[0].off, need[1].off), f->ds->field[1].offset + 500);
}

/* The rest of a turn that the reader has passed is not reported; the rest of the turn that it reads
 * is. */
UNIT_TEST_WITH(test_next__reader_passes_a_turn__the_rest_of_it_goes, setup, teardown)
{
    struct fixture *f = *state;
    struct active_cursor *c;
    struct stage_need need[20];
    struct plan_entry plan;

    plan_init(&plan, f, "batch=100,seed=1");
    c = cursor_init(f, 0, &plan, 0, 0);
    assert_int_equal(f->g->next(f->g->ctx, need, 20), 20);
    c->at = 50;
    assert_int_equal(f->g->next(f->g->ctx, need, 20), 20);
    assert_true(need[19].when < 100);
    for (uint64_t at = 100; at <= 300; at += 200) {
        c->at = at;
        assert_int_equal(f->g->next(f->g->ctx, need, 1), 1);
        assert_true(need[0].when >= at && need[0].when < at + 100);
    }
}

UNIT_TEST_WITH(test_next__jump__begins_anew, setup, teardown)
{
    struct fixture *f = *state;
    struct active_cursor *c;
    struct stage_need need[5000];
    struct plan_entry plan;
    uint64_t latest;

    plan_init(&plan, f, "batch=100,seed=1");
    c = cursor_init(f, 0, &plan, 0, 0);
    assert_true(f->g->next(f->g->ctx, need, 150) == 150); /* some of a turn is left */
    latest = need[149].when;
    c->at = 50;
    c->jumps = 1;
    assert_int_equal(f->g->next(f->g->ctx, need, 1), 1);
    assert_true(need[0].when <= latest);
    needs_free(f->needs); /* from there on everything, as from a new forecast of needs */
    use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
    check_next(f, c, 50);
    c->jumps = 2; /* back */
    c->at = 0;
    assert_true(tell_all(f, need, ARRAY_LEN(need)) > SAMPLES);
    c->id = 7; /* another reader */
    assert_true(tell_all(f, need, ARRAY_LEN(need)) > SAMPLES);
    assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 0);
}

/* The stage forgets earlier reports when a reader jumps. */
UNIT_TEST_WITH(test_next__another_jumps__reported_again, setup, teardown)
{
    struct fixture *f = *state;
    struct stage_need need[200];
    struct active_cursor *jumper;
    struct plan_entry plan[2];

    plan_init(&plan[0], f, "batch=100,part=0of2");
    plan_init(&plan[1], f, "batch=100,part=1of2");
    cursor_init(f, 0, &plan[0], 0, 0);
    jumper = cursor_init(f, 1, &plan[1], 0, 0);
    assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 2 * 10);
    assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 0);
    jumper->jumps++;
    jumper->at = 400;
    assert_int_equal(f->g->next(f->g->ctx, need, 1), 1);
    jumper->jumps++; /* while some of a turn is left */
    assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 2 * 10);
}

/* An epoch that does not show all samples, and the next one, which shows others: both are reported
 * before the reader has moved, and no sample of a third. */
UNIT_TEST_WITH(test_next__epochs_of_some_samples__the_next_one_too, setup, teardown)
{
    static const char *const names[] = {
        "batch=10,seed=3,limit=60", "batch=10,seed=3,draw=60:uniform", "batch=10,rank=2of9,seed=3"};
    struct fixture *f = *state;
    const struct field *image = &f->ds->field[0];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stage_need need[2000];
        struct plan_entry plan;
        uint64_t images = 0;
        size_t n;

        needs_free(f->needs);
        use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
        plan_init(&plan, f, names[i]);
        cursor_init(f, 0, &plan, 5, 0);
        n = tell_all(f, need, ARRAY_LEN(need));
        for (size_t k = 0; k < n; k++) {
            assert_true(need[k].when < 2 * plan.schedule.elements);
            images += need[k].blob == image->blob ? need[k].len / IMAGE : 0;
        }
        assert_int_equal(images, 2 * plan.schedule.elements);
        assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 0);
    }
}

/* Needs of many ranges of bytes at once, of images, labels and nothing, some asked for before; of
 * two readers, one of which is near the end of its epoch. */
UNIT_TEST_WITH(test_when__many_ranges__as_one_by_one, setup, teardown)
{
    struct fixture *f = *state;
    const struct blob *images = f->ds->field[0].blob, *labels = f->ds->field[1].blob;
    struct stage_need need[333];
    struct plan_entry plan[2];

    plan_init(&plan[0], f, "batch=100,seed=1,rank=1of3");
    plan_init(&plan[1], f, "batch=7,seed=2,split=0@1:2");
    cursor_init(f, 0, &plan[0], 4, 300);
    cursor_init(f, 1, &plan[1], 0, 11);
    for (uint64_t i = 0; i < ARRAY_LEN(need); i++) {
        need[i] = (struct stage_need){images, 16 + i * 3 * IMAGE, IMAGE * (i % 4), 0};
        if (i % 5 == 0)
            need[i] = (struct stage_need){labels, 8 + i * 3, 1 + i % 3, 0};
        if (i % 7 == 0)
            need[i].when = stage_when(f->g, need[i].blob, need[i].off, need[i].len);
    }
    f->g->when(f->g->ctx, ARRAY_LEN(need), need);
    for (uint64_t i = 0; i < ARRAY_LEN(need); i++) {
        const struct blob *blob = need[i].blob;
        uint64_t len = need[i].len, one = blob == images ? 1 : 0; /* the same samples again */

        assert_int_equal(stage_when(f->g, blob, need[i].off, len), need[i].when);
        if (len > one)
            assert_int_equal(stage_when(f->g, blob, need[i].off + one, len - one), need[i].when);
    }
}

/* The needs of the next epoch are reported before it begins, and not again then. */
UNIT_TEST_WITH(test_next__epoch_ends__not_reported_again, setup, teardown)
{
    struct fixture *f = *state;
    const struct blob *images = f->ds->field[0].blob;
    struct stage_need need[5000];
    struct active_cursor *c;
    struct plan_entry plan;
    uint64_t when[10];

    plan_init(&plan, f, "batch=100,seed=1");
    c = cursor_init(f, 0, &plan, 4, 900);
    check_next(f, c, 50);
    for (uint64_t i = 0; i < ARRAY_LEN(when); i++)
        when[i] = stage_when(f->g, images, 16 + i * IMAGE, 1);
    c->at = 1000;
    assert_true(tell_all(f, need, ARRAY_LEN(need)) > 0);
    c->id = 7;
    c->epoch = 5;
    c->at = 0;
    assert_int_equal(tell_all(f, need, ARRAY_LEN(need)), 0);
    for (uint64_t i = 0; i < ARRAY_LEN(when); i++)
        if (when[i] >= 100) /* otherwise the epoch before needed it */
            assert_int_equal(stage_when(f->g, images, 16 + i * IMAGE, 1), when[i]);
    c->at = 100;
    assert_true(tell_all(f, need, ARRAY_LEN(need)) > 0);
    assert_int_equal(need[0].when, 100 + 1000);
}

/* If the next epoch already has a reader, that reader's cursor reports its needs. */
UNIT_TEST_WITH(test_next__next_epoch_is_read__not_reported_twice, setup, teardown)
{
    struct fixture *f = *state;
    struct stage_need need[5000];
    struct plan_entry plan;
    uint64_t bytes = 0;
    size_t n;

    plan_init(&plan, f, "batch=100,seed=1,tail=drop");
    cursor_init(f, 0, &plan, 4, 900);
    cursor_init(f, 1, &plan, 5, 0);
    n = tell_all(f, need, ARRAY_LEN(need));
    for (size_t i = 0; i < n; i++)
        bytes += need[i].len;
    assert_int_equal(bytes, (100 + SAMPLES) * (IMAGE + 1));
}

/* ---- several ---- */

UNIT_TEST_WITH(test_next__several__soonest_first, setup, teardown)
{
    struct fixture *f = *state;
    AUTO_FREE struct list *list = malloc(2 * sizeof(*list));
    AUTO_FREE struct reported *reported = calloc(2, sizeof(*reported));
    struct plan_entry plan[2];
    uint64_t sooner = 0;

    for (unsigned speeds = 0; speeds < 2; speeds++) {
        const uint64_t scale[2] = {1, speeds ? 10 : 1};
        struct stage_need need;

        needs_free(f->needs);
        use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
        memset(reported, 0, 2 * sizeof(*reported));
        plan_init(&plan[0], f, "batch=40,part=0of2,seed=1");
        plan_init(&plan[1], f, "batch=30,part=1of2,seed=2");
        for (unsigned i = 0; i < 2; i++) {
            struct active_cursor *c = cursor_init(f, i, &plan[i], 3, 20 * i);

            /* a single known speed counts as none */
            c->speed = speeds ? 0.9 / (double)scale[i] : i;
            list_init(&list[i], f, c);
        }
        while (f->g->next(f->g->ctx, &need, 1)) {
            unsigned i = (need.off - 16) / IMAGE >= SAMPLES / 2;

            if (need.blob != f->ds->field[0].blob)
                continue;
            need.when /= scale[i];
            tell(&reported[i], &list[i], &f->ds->field[0], &need, &plan[i]);
            /* The other cursor is as far, up to one turn. */
            if (reported[!i].n < list[!i].elements)
                assert_true(need.when * scale[i] <=
                            reported[!i].n * scale[!i] + (i ? 30 : 40) * scale[i]);
            sooner += reported[0].n < list[0].elements && reported[1].n > list[1].elements / 2;
        }
        assert_int_equal(reported[0].n, list[0].elements);
        assert_int_equal(reported[1].n, list[1].elements);
        assert_true(speeds ? sooner == 0 : sooner > 0);
        sooner = 0;
    }
}

/* Readers of unknown speed: none is forgotten. */
UNIT_TEST_WITH(test_when__slow_reader__clock_follows, setup, teardown)
{
    struct fixture *f = *state;
    const struct blob *images = f->ds->field[0].blob;
    struct active_cursor *fast, *slow;
    struct plan_entry plan[2];
    uint64_t when;

    plan_init(&plan[0], f, "batch=40,part=0of2");
    plan_init(&plan[1], f, "batch=40,part=1of2");
    fast = cursor_init(f, 0, &plan[0], 0, 0);
    slow = cursor_init(f, 1, &plan[1], 0, 0);
    look(f);
    for (unsigned round = 0; round < 40; round++) {
        fast->at = (fast->at + 450) % 500;
        look(f);
    }
    when = stage_when(f->g, images, 16 + (500 + 10) * IMAGE, 1);
    assert_int_equal(when, 40 * 450 - 4096 + 10);
    slow->at = 5;
    look(f);
    assert_int_equal(stage_when(f->g, images, 16 + (500 + 10) * IMAGE, 1), when);
    assert_int_equal(stage_when(f->g, images, 16 + 499 * IMAGE, 1), 40 * 450 + 499 - fast->at);
}

/* ---- when ---- */

static void check_when(const struct fixture *f, const struct list *list, uint64_t clock,
                       const struct blob *blob, uint64_t off, uint64_t len)
{
    uint64_t want = list_distance(list, f, NULL, blob, off, len);
    uint64_t got = stage_when(f->g, blob, off, len);

    want = want == UINT64_MAX ? STAGE_NEVER : clock + want;
    if (got != want)
        fail_msg("%s, %s, %llu+%llu: %llu, expected %llu",
                 f->active_plans.cursor[0].plan ? f->active_plans.cursor[0].plan->name : "",
                 blob_name(blob), (unsigned long long)off, (unsigned long long)len,
                 (unsigned long long)got, (unsigned long long)want);
}

UNIT_TEST_WITH(test_when__plans__as_listed, setup, teardown)
{
    struct fixture *f = *state;
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    uint64_t rng = RANDOM_SEED;

    for (size_t i = 0; i <= ARRAY_LEN(plans); i++) {
        struct plan_entry plan;
        struct active_cursor *c;
        uint64_t elements = SAMPLES;

        if (i < ARRAY_LEN(plans)) {
            plan_init(&plan, f, plans[i]);
            elements = plan.schedule.elements;
        }
        needs_free(f->needs);
        use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
        c = cursor_init(f, 0, i < ARRAY_LEN(plans) ? &plan : NULL, 2, 0);
        for (unsigned k = 0; k < 7; k++) {
            c->at = elements * k / 6;
            look(f);
            list_init(list, f, c);
            for (unsigned n = 0; n < 60; n += STEP) {
                const struct blob *blob = f->ds->field[n % 2].blob;
                uint64_t off = random_below(&rng, blob->size);

                check_when(f, list, c->at, blob, off, 1);
                check_when(f, list, c->at, blob, off,
                           1 + random_below(&rng, 10000) % (blob->size - off));
                check_when(f, list, c->at, blob, 0, 1 + n % 30); /* the header, mostly */
                check_when(f, list, c->at, blob, 0, n < 40 ? 40000 : blob->size); /* again */
            }
        }
    }
}

UNIT_TEST_WITH(test_when__two_cursors__the_sooner, setup, teardown)
{
    struct fixture *f = *state;
    AUTO_FREE struct list *list = malloc(2 * sizeof(*list));
    const struct blob *blob = f->ds->field[0].blob, *other = memory_blob_new("y", "", 0, 99, NULL);
    struct plan_entry plan[2];

    plan_init(&plan[0], f, "batch=10,seed=1");
    plan_init(&plan[1], f, "batch=20,seed=2,shuffle=window:30");
    assert_int_equal(stage_when(f->g, blob, 0, 1000), STAGE_NEVER);
    list_init(&list[0], f, cursor_init(f, 0, &plan[0], 0, 100));
    list_init(&list[1], f, cursor_init(f, 1, &plan[1], 0, 700));
    look(f);
    for (uint64_t off = 0; off < blob->size; off += 3000) {
        uint64_t a = list_distance(&list[0], f, NULL, blob, off, 3000);
        uint64_t b = list_distance(&list[1], f, NULL, blob, off, 3000);

        assert_int_equal(stage_when(f->g, blob, off, 3000), min_u64(a, b));
    }
    assert_int_equal(stage_when(f->g, other, 0, 99), STAGE_NEVER);
    f->active_plans.n = 0;
    look(f);
    assert_int_equal(stage_when(f->g, blob, 0, 1000), STAGE_NEVER);
    blob_free((struct blob *)(uintptr_t)other);
}

/* ---- last ---- */

/* The last element of this epoch that reads bytes of [off, off + len), plus one; 0: none. */
static uint64_t list_end(const struct list *list, const struct fixture *f, const struct blob *blob,
                         uint64_t off, uint64_t len)
{
    for (uint64_t i = list->this_epoch; i; i--) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(f->ds, list->sample[i - 1], NULL, extent);

        for (unsigned k = 0; k < n; k++)
            if (extent[k].blob == blob && extent[k].off < off + len &&
                off < extent[k].off + extent[k].len)
                return i;
    }
    return 0;
}

/* With one cursor times are elements. */
UNIT_TEST_WITH(test_last__plans__over_when_all_was_read, setup, teardown)
{
    static const char *const names[] = {"batch=128", "batch=128,seed=7",
                                        "batch=64,seed=5,shuffle=window:50",
                                        "batch=10,part=1of3,seed=5", "batch=32,rank=1of3,seed=9"};
    struct fixture *f = *state;
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    uint64_t rng = RANDOM_SEED, version, again;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct plan_entry plan;
        struct active_cursor *c;

        plan_init(&plan, f, names[i]);
        needs_free(f->needs);
        use_dataset(f, (struct dataset *)(uintptr_t)f->ds);
        c = cursor_init(f, 0, &plan, 2, 0);
        c->is_last = true;
        list_init(list, f, c);
        assert_int_equal(f->g->now(f->g->ctx, &version), 1);
        for (unsigned k = 1; k < 7; k++) {
            uint64_t now;

            c->at = plan.schedule.elements * k / 6;
            c->read = c->at * k / 6; /* the rest was pushed */
            now = f->g->now(f->g->ctx, &again);
            assert_int_equal(again, version);
            assert_int_equal(now, max_u64(c->read, 1));
            for (unsigned n = 0; n < 60; n += STEP) {
                const struct blob *blob = f->ds->field[n % 2].blob;
                uint64_t off = random_below(&rng, blob->size);
                uint64_t len = 1 + random_below(&rng, 10000) % (blob->size - off);
                uint64_t end = list_end(list, f, blob, off, len);
                uint64_t last = f->g->last(f->g->ctx, blob, off, len);

                assert_int_equal(last, !end ? STAGE_NEVER : end <= c->read ? 0 : end);
            }
        }
    }
}

/* What the reader skipped by a jump it has not read, and what the next epoch needs is not over. */
UNIT_TEST_WITH(test_last__not_read__not_over, setup, teardown)
{
    struct fixture *f = *state;
    const struct blob *blob = f->ds->field[0].blob;
    const uint64_t image = f->ds->field[0].stored_bytes, off = f->ds->field[0].offset;
    struct active_cursor *c, *other;
    struct plan_entry plan;
    uint64_t version, jumped;

    plan_init(&plan, f, "batch=10");
    c = cursor_init(f, 0, &plan, 0, 100);
    c->is_last = true;
    c->from = 50;
    c->read = 100;
    f->g->now(f->g->ctx, &version);
    assert_int_equal(f->g->last(f->g->ctx, blob, off + 49 * image, image), STAGE_NEVER);
    assert_int_equal(f->g->last(f->g->ctx, blob, off + 50 * image, image), 0);
    assert_int_equal(f->g->last(f->g->ctx, blob, off + 99 * image, image), 0);
    assert_true(f->g->last(f->g->ctx, blob, off + 99 * image, image + 1) > 0);
    c->is_last = false;
    c->jumps++;
    f->g->now(f->g->ctx, &jumped);
    assert_int_not_equal(jumped, version);
    assert_true(f->g->last(f->g->ctx, blob, off + 50 * image, image) > 0);
    c->is_last = true;
    other = cursor_init(f, 1, &plan, 0, 0); /* another reader comes to them */
    other->is_last = true;
    f->g->now(f->g->ctx, &version);
    assert_true(f->g->last(f->g->ctx, blob, off + 50 * image, image) > 0);
    f->active_plans.n = 0;
    f->g->now(f->g->ctx, &version);
    assert_int_equal(f->g->last(f->g->ctx, blob, off + 50 * image, image), STAGE_NEVER);
}

/* ---- samples that are not all alike ---- */

UNIT_TEST(test_when__rows_of_text__by_a_map)
{
    AUTO(source_release) struct world_source s = {.n = 0};
    AUTO_WORLD struct world w = {.troubles = 0};
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    struct fixture own = {.needs = NULL}, *f = &own;
    struct stage_need need[100];
    struct active_cursor *c;
    const struct blob *blob;
    struct plan_entry plan;

    source_libsvm(&s, true);
    world_open(&w, &s, false);
    use_dataset(f, w.found.item[0].ds);
    assert_int_equal(f->ds->samples, 1500);
    blob = f->ds->blob[0];
    plan_init(&plan, f, "batch=100,seed=5,shuffle=window:20");
    c = cursor_init(f, 0, &plan, 0, 300);
    look(f);
    assert_int_equal(stage_when(f->g, blob, blob->size - 9, 1), 0); /* not known: now */
    while (f->g->next(f->g->ctx, need, ARRAY_LEN(need)) > 0)
        continue;
    list_init(list, f, c);
    assert_true(blob->size > 3 << 16);
    for (uint64_t off = 0; off < blob->size; off += 1 << 16) {
        uint64_t end = min_u64(off + (1 << 16), blob->size), want;

        want = list_distance(list, f, NULL, blob, off, end - off);
        assert_int_equal(stage_when(f->g, blob, off, end - off), want);
        assert_int_equal(stage_when(f->g, blob, off + 1000, 1), want); /* of its 64 KiB */
    }
    assert_int_equal(
        stage_when(f->g, blob, blob->size - 9, 1),
        list_distance(list, f, NULL, blob, (blob->size - 1) & ~UINT64_C(0xffff), 1 << 16));
    assert_int_equal(stage_when(f->g, f->ds->blob[1], 0, 1), STAGE_NEVER); /* a side file */
    needs_free(f->needs);
    lock_release(&f->active_plans.lock);
}

#define MAP_BLOBS   100
#define MAP_SAMPLES 3000

/* A sample has bytes in two of many blobs. */
static struct blob map_blob[MAP_BLOBS];

static unsigned map_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                            struct extent *ret)
{
    uint64_t rng = RANDOM_SEED + sample * 977;

    (void)ds;
    (void)only;
    random_next(&rng);
    for (unsigned i = 0; i < 2; i++) {
        const struct blob *blob = &map_blob[random_below(&rng, MAP_BLOBS)];
        uint64_t len = 1 + random_below(&rng, 100000);

        ret[i] = (struct extent){blob, random_below(&rng, blob->size - len), len};
    }
    return 2;
}

UNIT_TEST(test_extent_map__many_blobs__as_extents_say)
{
    const struct dataset_ops ops = {.extents = map_extents};
    const struct dataset ds = {.ops = &ops, .samples = MAP_SAMPLES};
    struct extent_map *map = NULL;
    uint64_t rng = RANDOM_SEED;
    unsigned steps = 1, none = 0;

    for (unsigned i = 0; i < MAP_BLOBS; i++)
        map_blob[i].size = 150000 + i * 10000;
    assert_int_equal(extent_map_new(&ds, &map), 0);
    while (!extent_map_step(map, 300))
        steps++;
    assert_int_equal(steps, 10);
    for (unsigned i = 0; i < 1000; i++) {
        const struct blob *blob = &map_blob[random_below(&rng, MAP_BLOBS)];
        uint64_t first = UINT64_MAX, last = 0, got_first = UINT64_MAX, got_last = 0;
        uint64_t off = random_below(&rng, blob->size), len = 1 + random_below(&rng, 100000);
        uint64_t from = off / EXTENT_MAP_PIECE;
        uint64_t to = (min_u64(off + len, blob->size) - 1) / EXTENT_MAP_PIECE;

        for (uint64_t sample = 0; sample < MAP_SAMPLES; sample++) {
            struct extent extent[2];

            map_extents(&ds, sample, NULL, extent);
            for (unsigned k = 0; k < 2; k++) {
                if (extent[k].blob != blob || extent[k].off / EXTENT_MAP_PIECE > to ||
                    (extent[k].off + extent[k].len - 1) / EXTENT_MAP_PIECE < from)
                    continue;
                first = min_u64(first, sample);
                last = max_u64(last, sample);
            }
        }
        none += first > last;
        assert_int_equal(extent_map_find(map, blob, off, len, &got_first, &got_last),
                         first <= last);
        assert_int_equal(got_first, first);
        assert_int_equal(got_last, last);
    }
    assert_true(none < 1000);
    assert_false(extent_map_find(map, &(struct blob){.size = 9}, 0, 9, &rng, &rng));
    assert_false(extent_map_find(map, &map_blob[0], map_blob[0].size, 9, &rng, &rng));
    extent_map_free(map);
}

/* Unordered objects in several files: the time is never later than the need. */
UNIT_TEST(test_when__objects__not_too_late)
{
    AUTO(source_release) struct world_source s = {.n = 0};
    AUTO_WORLD struct world w = {.troubles = 0};
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    struct fixture own = {.needs = NULL}, *f = &own;
    struct stage_need need[100];
    struct active_cursor *c;
    struct plan_entry plan;

    source_directory(&s);
    world_open(&w, &s, false);
    use_dataset(f, w.found.item[found_find(&w.found, "all")].ds);
    plan_init(&plan, f, "batch=10,seed=5");
    c = cursor_init(f, 0, &plan, 0, 0);
    while (f->g->next(f->g->ctx, need, ARRAY_LEN(need)) > 0)
        continue;
    list_init(list, f, c);
    for (uint64_t sample = 0; sample < f->ds->samples; sample++) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(f->ds, sample, NULL, extent);

        assert_true(n > 2);
        for (unsigned i = 0; i < n; i++) {
            const struct extent *e = &extent[i];
            uint64_t got = stage_when(f->g, e->blob, e->off, e->len);

            assert_true(got <= list_distance(list, f, NULL, e->blob, e->off, e->len));
        }
    }
    needs_free(f->needs);
    lock_release(&f->active_plans.lock);
}

/* ---- size ---- */

/* The forecast keeps nothing per sample, and never walks over all samples. */
UNIT_TEST(test_guide__hundred_million__at_once)
{
    const uint32_t dim[] = {100000000, 100};
    struct blob *blob = idx_blob_zeros("big", 0x08, 2, dim, NULL);
    struct fixture own = {.needs = NULL}, *f = &own;
    struct stage_need need[500];
    struct active_cursor *c;
    struct plan_entry plan;

    assert_int_equal(idx_open(&blob, 1, &(struct format_options){0}, &f->found), 0);
    use_dataset(f, f->found.item[0].ds);
    blob = f->ds->blob[0];
    plan_init(&plan, f, "batch=all,seed=5");
    c = cursor_init(f, 0, &plan, 0, 99999000);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(f->g->next(f->g->ctx, need, ARRAY_LEN(need)), ARRAY_LEN(need));
    for (uint64_t off = 0; off < blob->size - (1 << 20); off += blob->size / 50) {
        uint64_t when = stage_when(f->g, blob, off, 1 << 20); /* of 10,486: some */

        if (when >= 20000000)
            fail_msg("%llu: %llu", (unsigned long long)off, (unsigned long long)when);
        assert_int_equal(stage_when(f->g, blob, off, 1 << 20), when);
    }
    c->at = 0;
    c->jumps++;
    look(f);
    assert_true(stage_when(f->g, blob, 0, 100000) < 1000000);
    c->jumps++; /* to where only sample numbers are read, which takes no walk either */
    for (unsigned i = 0; i < f->ds->n_folders && !c->folder; i++)
        if (!strcmp(f->ds->folder[i].name, "npy"))
            c->folder = &f->ds->folder[i];
    for (unsigned i = 0; i < c->folder->n_kinds[SCOPE_BATCHES]; i++)
        if (c->folder->files[SCOPE_BATCHES][i].field->ops == &field_number)
            c->columns |= UINT64_C(1) << i;
    assert_true(c->columns != 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(f->g->next(f->g->ctx, need, ARRAY_LEN(need)), 0);
    assert_int_equal(stage_when(f->g, blob, 0, 100000), STAGE_NEVER);
    needs_free(f->needs);
    lock_release(&f->active_plans.lock);
    found_release(&f->found);
}

/* ---- without memory ---- */

/* Without memory the forecast knows less, and leaks nothing. */
UNIT_TEST(test_guide__no_memory__no_wrong_time)
{
    AUTO(source_release) struct world_source s = {.n = 0};
    AUTO_WORLD struct world w = {.troubles = 0};
    AUTO_FREE struct list *list = malloc(sizeof(*list));
    struct fixture own = {.needs = NULL}, *f = &own;
    struct stage_need need[100];
    struct active_cursor *c;
    struct plan_entry plan;
    unsigned guides = 0;

    source_libsvm(&s, true);
    world_open(&w, &s, false);
    use_dataset(f, w.found.item[0].ds);
    needs_free(f->needs);
    plan_init(&plan, f, "batch=100,seed=5,shuffle=window:20");
    c = cursor_init(f, 0, &plan, 0, 300);
    list_init(list, f, c);
    count = fail_at = 0;
    while (count >= fail_at) {
        struct needs *needs = NULL;
        const struct stage_needs *g;
        uint64_t want, got = 0;

        count = 0;
        fail_at++;
        is_counted = true;
        if (needs_new(&f->active_plans, &f->catalog, &f->clock.clock, &needs) == 0) {
            g = needs_for_stage(needs);
            g->next(g->ctx, need, ARRAY_LEN(need));
            stage_when(g, f->ds->blob[0], 70000, 1 << 16);
            while (g->next(g->ctx, need, ARRAY_LEN(need)) > 0)
                continue;
            got = stage_when(g, f->ds->blob[0], 1 << 16, 1 << 16);
            guides++;
        }
        is_counted = false;
        want = list_distance(list, f, NULL, f->ds->blob[0], 1 << 16, 1 << 16);
        if (count < fail_at)
            assert_int_equal(got, want);
        else
            assert_true(got == 0 || got == want);
        needs_free(needs);
    }
    assert_true(fail_at > 10 && guides > 5);
    lock_release(&f->active_plans.lock);
}

/* ---- threads ---- */

struct asking {
    struct fixture *f;
    _Atomic bool ends;
};

static void *ask(void *arg)
{
    struct asking *asking = arg;
    const struct fixture *f = asking->f;
    uint64_t rng = RANDOM_SEED, before[100] = {0}, i = 0;

    for (; !atomic_load(&asking->ends) || i < 1000; i++) {
        uint64_t k = random_below(&rng, 100);
        uint64_t when = stage_when(f->g, f->ds->field[0].blob, 16 + k * 10 * IMAGE, IMAGE);

        /* Times of one cursor only grow. */
        if (when < before[k])
            return arg;
        before[k] = when;
    }
    return NULL;
}

UNIT_TEST_WITH(test_guide__threads__times_only_grow, setup, teardown)
{
    struct fixture *f = *state;
    struct asking asking = {.f = f};
    struct stage_need need[100];
    struct active_cursor *c;
    pthread_t thread[2];
    struct plan_entry plan;

    plan_init(&plan, f, "batch=10,seed=5");
    c = cursor_init(f, 0, &plan, 0, 0);
    look(f);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &asking), 0);
    for (unsigned i = 0; i < 3000; i++) {
        lock_take(&f->active_plans.lock);
        c->at++;
        if (c->at == SAMPLES) {
            c->at = 0;
            c->epoch++;
            c->id++;
        }
        lock_drop(&f->active_plans.lock);
        f->g->next(f->g->ctx, need, ARRAY_LEN(need));
    }
    atomic_store(&asking.ends, true);
    for (unsigned i = 0; i < 2; i++) {
        void *wrong;

        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
}
