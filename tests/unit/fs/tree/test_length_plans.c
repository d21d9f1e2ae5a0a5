/* Lists of length=: shared by plans that have the same words, counted, and refused when they take
 * too much memory. */
#include "fs/tree/length_plans.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

#include "format/core/dataset.h"
#include "format/core/format.h"

#define SAMPLES 1000

static void get_lengths(const struct plan_lengths *lengths, size_t n, const uint64_t *sample,
                        uint32_t *ret)
{
    (void)lengths;
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint32_t)sample[i];
}

static int get(struct length_plans *all, const char *name, struct plan_data *ret)
{
    static const struct plan_lengths_ops ops = {.get = get_lengths};
    static const struct plan_lengths lengths = {.ops = &ops, .word = "tokens"};
    static const struct dataset ds = {.samples = SAMPLES};
    struct diag d = DIAG_INIT;
    struct plan plan;

    *ret = (struct plan_data){.samples = SAMPLES, .lengths = &lengths};
    assert_int_equal(plan_parse(name, strlen(name), ',', &plan, &d), 0);
    return length_plans_list(all, &ds, &plan, ret, &d);
}

UNIT_TEST(test_length_lists__many__shared_up_to_the_limit)
{
    const struct format_setup setup = {0};
    AUTO(length_plans_release) struct length_plans all;
    struct plan_data one, same, other;
    uint64_t bytes;

    length_plans_init(&all, &setup);
    assert_int_equal(get(&all, "batch=4,length=100:300:tokens", &one), 0);
    assert_int_equal(one.only->n, 200);
    bytes = length_plans_held(&all).bytes;
    assert_true(bytes >= 200 * sizeof(uint32_t));
    assert_int_equal(get(&all, "batch=8,seed=1,length=100:300:tokens", &same), 0);
    assert_ptr_equal(same.only, one.only);
    assert_int_equal(length_plans_held(&all).bytes, bytes);
    all.list_bytes.limit = bytes + 10;
    assert_int_equal(get(&all, "batch=4,length=100:400:tokens", &other), -ENFILE);
    assert_null(other.only);
    assert_int_equal(get(&all, "batch=4,length=100:300:tokens", &same), 0);
    assert_int_equal(length_plans_held(&all).bytes, bytes);
}
