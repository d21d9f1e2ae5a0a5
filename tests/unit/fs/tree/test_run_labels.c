/* Classes and weights of every run of a list of samples, against counting; and what an index says
 * whose file was changed while it is mapped. */
#include "fs/tree/run_labels.h"
#include "support/random.h"
#include "support/test_labels.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

#include "base/scope.h"

#define SAMPLES 40
#define CLASSES 5
#define LARGE   (3 * RUN_TOP + 17)

/* An index as labels.c makes it. */
struct index {
    uint64_t label[SAMPLES], weight[SAMPLES];
    int64_t value[CLASSES];
    uint64_t begin[CLASSES + 1], sum[SAMPLES + 1];
    uint32_t member[SAMPLES], where[SAMPLES];
    struct label_arrays classes, weights;
};

static void index_make(struct index *ret, uint64_t *random)
{
    uint32_t at = 0;

    ret->classes = (struct label_arrays){.type = LABEL_CLASSES,
                                         .n = SAMPLES,
                                         .label = ret->value,
                                         .begin = ret->begin,
                                         .member = ret->member,
                                         .where = ret->where};
    ret->weights = (struct label_arrays){.type = LABEL_WEIGHTS, .n = SAMPLES, .sum = ret->sum};
    ret->sum[0] = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        ret->label[i] = random_below(random, CLASSES);
        ret->weight[i] = random_below(random, 3) ? random_below(random, 9) : 0;
        ret->sum[i + 1] = ret->sum[i] + ret->weight[i];
    }
    for (uint64_t c = 0; c < CLASSES; c++) {
        if (at == ret->begin[ret->classes.classes] || !c)
            ret->begin[ret->classes.classes] = at;
        for (uint32_t i = 0; i < SAMPLES; i++)
            if (ret->label[i] == c) {
                ret->where[i] = at;
                ret->member[at++] = i;
            }
        if (at > ret->begin[ret->classes.classes]) {
            ret->value[ret->classes.classes++] = (int64_t)c;
            ret->begin[ret->classes.classes] = at;
        }
    }
}

static void check_classes(const struct plan_classes *got, const struct plan_classes *want)
{
    assert_int_equal(got->places, want->places);
    assert_int_equal(got->n, want->n);
    assert_int_equal(got->least, want->least);
    assert_int_equal(got->most, want->most);
    for (uint64_t c = 0; c < want->n; c++) {
        assert_int_equal(got->ops->count(got, c), want->ops->count(want, c));
        for (uint64_t i = 0; i < want->ops->count(want, c); i++) {
            uint64_t place = got->ops->place(got, c, i), class, member;

            assert_int_equal(place, want->ops->place(want, c, i));
            got->ops->find(got, place, &class, &member);
            assert_int_equal(class, c);
            assert_int_equal(member, i);
        }
    }
}

static void check_weights(const struct plan_weights *got, const struct plan_weights *want)
{
    assert_int_equal(got->places, want->places);
    assert_int_equal(got->total, want->total);
    for (uint64_t place = 0; place <= want->places; place++)
        assert_int_equal(got->ops->before(got, place), want->ops->before(want, place));
    for (uint64_t value = 0; value < want->total; value++)
        assert_int_equal(got->ops->place(got, value), want->ops->place(want, value));
}

static void check_run(const struct index *index, uint64_t first, uint64_t length)
{
    static struct test_labels want;
    struct run_classes classes;
    struct run_weights weights;
    uint64_t held = 1;

    test_labels_make(&want, length, index->label + first, index->weight + first);
    assert_int_equal(run_classes_init(&classes, &index->classes, first, length, &held), 0);
    assert_int_equal(held > 0, length < SAMPLES);
    check_classes(&classes.classes, &want.classes);
    run_classes_release(&classes);
    if (index->sum[first] == index->sum[first + length]) {
        assert_int_equal(run_weights_init(&weights, &index->weights, first, length, &held), -EDOM);
        return;
    }
    assert_int_equal(run_weights_init(&weights, &index->weights, first, length, &held), 0);
    check_weights(&weights.weights, &want.weights);
    run_weights_release(&weights);
}

UNIT_TEST(test_run_labels__every_run__as_counted)
{
    uint64_t random = RANDOM_SEED;

    for (unsigned i = 0; i < 5; i++) {
        struct index index = {.label = {0}};

        index_make(&index, &random);
        for (uint64_t first = 0; first < SAMPLES; first++)
            for (uint64_t length = 1; first + length <= SAMPLES; length++)
                check_run(&index, first, length);
    }
}

/* Sums that take several pages; zeros between them. */
UNIT_TEST(test_run_weights__many__each_value_its_place)
{
    static uint64_t sum[LARGE + 1];
    const struct label_arrays a = {.type = LABEL_WEIGHTS, .n = LARGE, .sum = sum};
    AUTO(run_weights_release) struct run_weights r;
    uint64_t held;

    for (uint64_t i = 0; i < LARGE; i++)
        sum[i + 1] = sum[i] + i % 3 * (i % RUN_TOP > 5);
    assert_int_equal(run_weights_init(&r, &a, 11, LARGE - 11, &held), 0);
    assert_int_equal(held, 8 * 4);
    for (uint64_t value = 0, place = 0; value < r.weights.total; value++) {
        while (sum[11 + place + 1] - sum[11] <= value)
            place++;
        assert_int_equal(r.weights.ops->place(&r.weights, value), place);
    }
}

/* Whatever the bytes become, an answer is a place of the list and a member of its class. */
UNIT_TEST(test_run_labels__changed_while_used__bounded)
{
    struct index index = {.label = {0}};
    uint64_t random = RANDOM_SEED, held;
    AUTO(run_classes_release) struct run_classes classes;
    AUTO(run_weights_release) struct run_weights weights;

    index_make(&index, &random);
    assert_int_equal(run_classes_init(&classes, &index.classes, 7, 20, &held), 0);
    assert_int_equal(run_weights_init(&weights, &index.weights, 7, 20, &held), 0);
    for (size_t i = 0; i < SAMPLES; i++)
        index.member[i] = index.where[i] = (uint32_t)(i % 2 ? UINT32_MAX - i : 0);
    for (size_t i = 0; i <= SAMPLES; i++)
        index.sum[i] = i % 2 ? UINT64_MAX - i : i;
    for (uint64_t c = 0; c < classes.classes.n; c++)
        for (uint64_t i = 0; i < classes.classes.ops->count(&classes.classes, c); i++)
            assert_true(classes.classes.ops->place(&classes.classes, c, i) < 20);
    for (uint64_t place = 0; place < 20; place++) {
        uint64_t class, member;

        classes.classes.ops->find(&classes.classes, place, &class, &member);
        assert_true(class < classes.classes.n);
        assert_true(member < classes.classes.ops->count(&classes.classes, class));
        assert_true(weights.weights.ops->before(&weights.weights, place) <= weights.weights.total);
    }
    for (uint64_t value = 0; value < weights.weights.total; value++)
        assert_true(weights.weights.ops->place(&weights.weights, value) < 20);
}
