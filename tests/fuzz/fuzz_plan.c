/* Bytes as the name of a plan, in a path and in an option. A good one has a canonical name that
 * means the same, and schedules whose samples are those of the dataset. */
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "fs/plan/schedule.h"
#include "fuzz.h"

static void check_batch(const struct schedule *s, const struct epoch_order *order, uint64_t number)
{
    uint64_t count = schedule_count(s, number), sample[16];
    size_t some = (size_t)min_u64(count, ARRAY_LEN(sample));

    FUZZ_CHECK(count <= s->batch);
    FUZZ_CHECK(count > 0 || !s->plan->batch);
    schedule_samples(s, order, number, 0, some, sample);
    for (size_t i = 0; i < some; i++)
        FUZZ_CHECK(sample[i] >= s->taken.start && sample[i] - s->taken.start < s->taken.length);
    if (some)
        schedule_samples(s, order, number, count - some, some, sample);
    for (size_t i = 0; i < some; i++)
        FUZZ_CHECK(sample[i] >= s->taken.start && sample[i] - s->taken.start < s->taken.length);
}

static void check_schedule(const struct plan *plan, uint64_t n)
{
    struct schedule s;
    struct epoch_order order;
    struct diag d = DIAG_INIT;

    schedule_init(&s, plan, n, NULL);
    FUZZ_CHECK(s.taken.start <= n && s.taken.length <= n - s.taken.start);
    FUZZ_CHECK(s.positions <= s.length && s.length <= s.taken.length);
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
    FUZZ_CHECK(plan.window == again.window);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        check_schedule(&plan, sizes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    check_name((const char *)data, len, ',');
    check_name((const char *)data, len, '+');
    return 0;
}
