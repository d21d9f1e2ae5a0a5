/* Bytes as the name of a plan, in a path and in an option. A good one has a canonical name that
 * means the same, and schedules whose samples are those of the dataset. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/mix64.h"
#include "base/scope.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/schedule.h"
#include "fuzz.h"
#include "support/test_labels.h"
#include "support/test_lists.h"

static bool is_sample(const struct schedule *s, uint64_t sample)
{
    const struct plan_samples wanted = {sample, sample};
    struct plan_entries found;

    if (s->only) {
        plan_list_find(s->only, 1, &wanted, &found);
        return found.begin < found.end;
    }
    return sample >= s->taken.start && sample - s->taken.start < s->taken.length;
}

static void check_batch(const struct schedule *s, const struct epoch_order *order, uint64_t number)
{
    struct schedule_batch batch;
    uint64_t count, sample[16];
    size_t some;

    FUZZ_CHECK(schedule_batch_init(s, order->epoch, number, &batch) == 0);
    count = batch.count;
    some = (size_t)min_u64(count, ARRAY_LEN(sample));
    FUZZ_CHECK(count <= s->batch);
    FUZZ_CHECK(count > 0 || !s->plan->batch);
    schedule_samples(s, order, &batch, 0, some, sample);
    for (size_t i = 0; i < some; i++)
        FUZZ_CHECK(is_sample(s, sample[i]));
    if (some)
        schedule_samples(s, order, &batch, count - some, some, sample);
    for (size_t i = 0; i < some; i++)
        FUZZ_CHECK(is_sample(s, sample[i]));
    /* The way back, where a sample has few positions and the epoch is none that begins again. */
    for (size_t i = 0; i < some && !s->wraps && s->order.length / 64 <= s->order.places; i++) {
        uint64_t element = number * s->batch + count - some + i, one;
        uint64_t found = schedule_find(s, order, sample[i], sample[i], element);

        FUZZ_CHECK(found == element);
        found = schedule_find(s, order, sample[i], sample[i], 0);
        FUZZ_CHECK(found <= element);
        schedule_elements(s, order, found, 1, &one);
        FUZZ_CHECK(one == sample[i]);
    }
}

/* Classes and weights of a short list: every third label is 2, and the last weight is 0. */
static void add_labels(const struct plan *plan, struct plan_data *data, struct test_labels *labels)
{
    uint64_t label[TEST_PLACES_MOST], weight[TEST_PLACES_MOST];
    struct schedule s;

    schedule_init_data(&s, plan, data);
    if (!s.length || s.length > TEST_PLACES_MOST)
        return;
    for (uint64_t i = 0; i < s.length; i++) {
        label[i] = i % 3 ? i % 3 * i % 7 : 2;
        weight[i] = s.length - 1 - i;
    }
    test_labels_make(labels, s.length, label, weight);
    data->classes = &labels->classes;
    data->weights = labels->weights.total ? &labels->weights : NULL;
}

/* ---- batches by length ---- */

static void get_lengths(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                        uint32_t *ret)
{
    (void)lengths;
    for (size_t i = 0; i < count; i++)
        ret[i] = (uint32_t)mix64(sample[i]) >> mix64(sample[i]) % 32;
}

/* Sums as a hostile cache folder keeps them: little but the first is right. */
static int load_sums(void *ctx, uint64_t epoch, size_t n, uint32_t *ret)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        ret[i] = epoch % 2 && i ? (uint32_t)(ret[i - 1] + mix64(epoch + i) % 9) : 0;
    return epoch % 3 ? 0 : -ENOENT;
}

/* Whatever the sums say, a batch has samples of the list, or an error. */
static void check_cut(const struct schedule *s, uint64_t epoch, uint64_t number, bool is_sound)
{
    struct schedule_batch batch;
    struct epoch_order order;
    uint64_t sample[16], begin;
    int r = schedule_batch_init(s, epoch, number, &batch);

    FUZZ_CHECK(r == 0 || (!is_sound && (r == -EIO || r == -ENOENT)));
    if (r < 0)
        return;
    FUZZ_CHECK(batch.count > 0 && batch.count <= s->plan->bucket);
    FUZZ_CHECK(!s->plan->batch || batch.count <= s->plan->batch);
    schedule_order(s, epoch, &order);
    begin = schedule_begin(s, epoch, number);
    FUZZ_CHECK(begin <= s->elements);
    for (uint64_t first = 0, some; first < batch.count; first += some) {
        some = min_u64(batch.count - first, ARRAY_LEN(sample));
        schedule_samples(s, &order, &batch, first, some, sample);
        for (size_t i = 0; i < some; i++)
            FUZZ_CHECK(is_sample(s, sample[i]));
    }
    schedule_elements(s, &order, begin - min_u64(begin, 8), 16, sample);
    schedule_find(s, &order, sample[8], sample[8], begin);
    schedule_batch_release(&batch);
}

static void check_cuts(const struct plan *plan, const struct plan_data *of)
{
    static const struct plan_lengths_ops ops = {.get = get_lengths};
    const struct plan_lengths lengths = {&ops, "tokens", plan->seed % 2};
    struct plan_data data = *of;
    struct length_batches *b;
    struct diag d = DIAG_INIT;
    struct schedule s;
    uint64_t batches;

    schedule_init_data(&s, plan, &data);
    if (s.positions > 100000)
        return;
    data.lengths = &lengths;
    if (length_batches_new(plan, &data, NULL, &b, &d) < 0) {
        FUZZ_CHECK(d.set && *d.text);
        return;
    }
    data.cuts = length_batches_cuts(b);
    length_batches_keep(b, &(struct length_keeper){.load = load_sums});
    schedule_init_data(&s, plan, &data);
    for (uint64_t epoch = 0; epoch < 2 && schedule_check(&s, &d) == 0; epoch++) {
        while (s.cuts->ops->ask(s.cuts, epoch))
            length_batches_step(b);
        FUZZ_CHECK(schedule_batches(&s, epoch, &batches));
        if (!batches)
            continue;
        check_cut(&s, epoch, 0, !epoch);
        check_cut(&s, epoch, batches / 2, !epoch);
        check_cut(&s, epoch, batches - 1, !epoch);
        FUZZ_CHECK(schedule_has(&s, epoch, batches) == -ENOENT);
    }
    length_batches_free(b);
}

static void check_schedule(const struct plan *plan, uint64_t n)
{
    static const uint32_t samples[] = {6, 0, 3, 0, 1};
    static struct plan_list list;
    struct plan_data data = {.samples = n, .only = n > 6 ? &list : NULL};
    static struct test_labels labels;
    struct schedule s;
    struct epoch_order order;
    struct diag d = DIAG_INIT;

    if (!list.n)
        list = test_list(samples, ARRAY_LEN(samples));
    if (plan->ranges) /* as if all were of these lengths */
        data.only = &list;
    add_labels(plan, &data, &labels);
    if (plan_is_by_length(plan))
        check_cuts(plan, &data);
    schedule_init_data(&s, plan, &data);
    n = s.only ? s.only->n : n;
    FUZZ_CHECK(s.taken.start <= n && s.taken.length <= n - s.taken.start);
    FUZZ_CHECK(s.order.places == s.length && s.length <= s.taken.length);
    FUZZ_CHECK(s.positions <= s.order.length);
    FUZZ_CHECK(s.offset <= s.taken.length - s.length);
    if (schedule_check(&s, &d) < 0) {
        FUZZ_CHECK(d.set && *d.text);
        return;
    }
    schedule_order(&s, plan->batch, &order);
    if (!s.batches)
        return;
    check_batch(&s, &order, 0);
    check_batch(&s, &order, s.batches / 2);
    check_batch(&s, &order, s.batches - 1);
}

static void check_name(const char *name, size_t len, char separator)
{
    static const uint64_t sizes[] = {0, 1, 2, 7, 60000, 4294967295, ORDER_MAX};
    struct plan plan, again;
    struct diag d = DIAG_INIT;
    char canonical[PLAN_NAME_SIZE], second[PLAN_NAME_SIZE];

    if (plan_parse(name, len, separator, &plan, &d) < 0) {
        FUZZ_CHECK(d.set && *d.text);
        return;
    }
    plan_name(&plan, canonical);
    FUZZ_CHECK(plan_parse(canonical, strlen(canonical), ',', &again, NULL) == 0);
    plan_name(&again, second);
    FUZZ_CHECK(!strcmp(canonical, second));
    FUZZ_CHECK(plan.batch == again.batch && plan.part == again.part && plan.rank == again.rank);
    FUZZ_CHECK(plan.parts == again.parts && plan.ranks == again.ranks && plan.tail == again.tail);
    FUZZ_CHECK(plan.seeded == again.seeded && plan.seed == again.seed);
    FUZZ_CHECK(plan.window == again.window && !strcmp(plan.only, again.only));
    FUZZ_CHECK(plan.draw == again.draw && plan.draws == again.draws);
    FUZZ_CHECK(plan.batch_classes == again.batch_classes && plan.of_class == again.of_class);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        check_schedule(&plan, sizes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    check_name((const char *)data, len, ',');
    check_name((const char *)data, len, '+');
    return 0;
}
