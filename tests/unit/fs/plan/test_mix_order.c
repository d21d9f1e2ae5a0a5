/* The order of mixes: vectors of the reference in Python, and the way back against all positions.
 */
#include "fs/plan/mix_order.h"
#include "fs/plan/mix_text.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"

#define SOURCES_MOST 8
#define EPOCH_MOST   512

/* A mix and the order that it gives. */
struct made {
    struct mix_spec spec;
    struct mix *mix;
    struct mix_order *order;
    struct order_spec own;
    uint64_t samples;
};

/* text: of -o mix=; sizes: of the datasets. */
static void make(const char *text, const uint64_t *sizes, struct made *ret)
{
    uint64_t passes[SOURCES_MOST];
    struct diag d = DIAG_INIT;
    unsigned source;

    memset(ret, 0, sizeof(*ret));
    if (mix_spec_parse(text, &ret->spec, &d) < 0)
        fail_msg("%s: %s", text, d.text);
    assert_int_equal(
        mix_new(ret->spec.weights, ret->spec.n_stretches, ret->spec.n_sources, &ret->mix), 0);
    ret->order = calloc(1, sizeof(*ret->order) + ret->spec.n_sources * sizeof(struct mix_list));
    assert_non_null(ret->order);
    ret->order->mix = ret->mix;
    ret->order->n = ret->spec.n_sources;
    for (unsigned i = 0; i < ret->order->n; i++) {
        struct mix_list *list = &ret->order->list[i];

        list->first = ret->samples;
        list->samples = sizes[i];
        ret->samples += sizes[i];
        schedule_init(&list->schedule, &ret->spec.source[i].plan, sizes[i], NULL);
        passes[i] = list->schedule.positions;
    }
    assert_int_equal(
        mix_length(ret->mix, passes, ret->spec.end, ret->spec.length, &ret->order->length, &source),
        0);
    mix_order_set(ret->order, &ret->own);
}

static void made_release(struct made *made)
{
    mix_free(made->mix);
    free(made->order);
    mix_spec_release(&made->spec);
}

static void schedule_of(const struct made *made, const char *name, struct plan *plan,
                        struct schedule *ret)
{
    struct diag d = DIAG_INIT;

    if (plan_parse(name, strlen(name), ',', plan, &d) < 0)
        fail_msg("%s: %s", name, d.text);
    schedule_init_data(ret, plan,
                       &(struct plan_data){.samples = made->samples, .dataset_order = &made->own});
    assert_int_equal(schedule_check(ret, &d), 0);
}

/* ---- vectors ---- */

struct vector {
    char text[256], seed[32];
    uint64_t size[SOURCES_MOST], length, epoch, window, position, source, place;
};

static uint64_t take_number(char **at, char stop)
{
    uint64_t ret = strtoull(*at, at, 10);

    assert_int_equal(**at, stop);
    (*at)++;
    return ret;
}

static void take_word(char **at, char *ret, size_t capacity)
{
    size_t len = strcspn(*at, " ");

    assert_true(len < capacity);
    memcpy(ret, *at, len);
    ret[len] = '\0';
    *at += len + 1;
}

static void parse_vector(char *line, struct vector *ret)
{
    unsigned n = 0;

    take_word(&line, ret->text, sizeof(ret->text));
    for (;; line++) {
        ret->size[n++] = strtoull(line, &line, 10);
        if (*line != ',')
            break;
    }
    line++;
    ret->length = take_number(&line, ' ');
    take_word(&line, ret->seed, sizeof(ret->seed));
    ret->epoch = take_number(&line, ' ');
    ret->window = take_number(&line, ' ');
    ret->position = take_number(&line, ' ');
    ret->source = take_number(&line, ' ');
    ret->place = take_number(&line, '\n');
}

static void check_vector(const struct vector *v)
{
    char text[300], name[128];
    AUTO(made_release) struct made made;
    struct plan plan;
    struct schedule s;
    struct epoch_order order;
    uint64_t sample;

    snprintf(text, sizeof(text), "m=%s", v->text);
    make(text, v->size, &made);
    assert_int_equal(made.order->length, v->length);
    if (*v->seed == '-')
        snprintf(name, sizeof(name), "batch=1");
    else
        snprintf(name, sizeof(name), "batch=1,seed=%s", v->seed);
    schedule_of(&made, name, &plan, &s);
    plan.window = v->window; /* some are larger than a plan's may be */
    s.order.window = v->window;
    schedule_order(&s, v->epoch, &order);
    schedule_elements(&s, &order, v->position, 1, &sample);
    assert_int_equal(sample, made.order->list[v->source].first + v->place);
    assert_int_equal(schedule_find(&s, &order, sample, sample, v->position), v->position);
}

UNIT_TEST(test_mix_order__vectors__right)
{
    FILE *file = fopen(VECTORS, "re");
    char line[1024];
    unsigned n = 0;

    assert_non_null(file);
    for (; fgets(line, sizeof(line), file); n++) {
        struct vector v;

        parse_vector(line, &v);
        check_vector(&v);
    }
    fclose(file);
    assert_true(n > 900);
}

/* ---- both ways ---- */

static const struct {
    const char *text;
    uint64_t size[SOURCES_MOST];
} mixes[] = {
    {"m=a*7+b*3", {50, 20}},
    {"m=a*7+b*3/23", {50, 4}},
    {"m=a*1+b*9+c*1/120", {1, 3, 40}},
    {"m=a:take=5:25*2+a:split=1@9:1*1+b:part=1of3+take=10%:90%*1", {30, 30, 50}},
    {"m=a*9+b*1@13:a*1+b*1+c*2@30:c*1+b*3/20", {40, 7, 9}},
    {"m=a*2+a*1/all", {11, 11}},
};

static const char *const plans[] = {
    "batch=1",
    "batch=3,seed=7",
    "batch=4,rank=1of3,seed=7,shuffle=window:4,tail=wrap",
    "batch=2,rank=2of3,seed=1,limit=17",
};

/* The elements of an epoch, one by one. */
static uint64_t list_epoch(const struct schedule *s, const struct epoch_order *order,
                           uint64_t ret[static EPOCH_MOST])
{
    assert_true(s->elements <= EPOCH_MOST);
    for (uint64_t e = 0; e < s->elements; e++)
        schedule_elements(s, order, e, 1, &ret[e]);
    return s->elements;
}

/* Each sample's next element from each element on, and its last. */
static void check_back(const struct made *made, const struct schedule *s,
                       const struct epoch_order *order)
{
    uint64_t sample[EPOCH_MOST], again[EPOCH_MOST], n = list_epoch(s, order, sample);

    schedule_elements(s, order, 0, (size_t)n, again);
    assert_memory_equal(sample, again, n * sizeof(*sample));
    for (uint64_t x = 0; x < made->samples; x++) {
        uint64_t next = SCHEDULE_NONE, last = SCHEDULE_NONE;

        for (uint64_t e = n; e-- > 0;) {
            if (sample[e] == x) {
                next = e;
                last = last == SCHEDULE_NONE ? e : last;
            }
            assert_int_equal(schedule_find(s, order, x, x, e), next);
        }
        if (s->wraps) /* then it may be larger */
            assert_true(last == SCHEDULE_NONE || schedule_last(s, order, x, x) >= last);
        else
            assert_int_equal(schedule_last(s, order, x, x), last);
    }
}

/* All positions of neighbouring samples, in small pieces: each once. */
static void check_positions(const struct made *made, const struct schedule *s,
                            const struct epoch_order *order)
{
    for (size_t room = 1; room <= 70; room += 23) {
        struct order_walk walk = {.place = 0, .last = made->samples - 1};
        uint64_t found[70], n = 0;
        uint32_t whose[70];
        bool seen[EPOCH_MOST] = {false};

        assert_true(made->order->length <= EPOCH_MOST);
        while (walk.place <= walk.last) {
            size_t some = s->order.ops->positions(&s->order, order, 1, &walk, room, found, whose);

            for (size_t i = 0; i < some; i++, n++) {
                assert_true(found[i] < made->order->length && !seen[found[i]]);
                seen[found[i]] = true;
            }
        }
        assert_int_equal(n, made->order->length);
    }
}

UNIT_TEST(test_mix_order__small_mixes__both_ways)
{
    static const uint64_t epochs[] = {0, 1, 2, 77, UINT64_MAX};

    for (size_t i = 0; i < ARRAY_LEN(mixes); i++) {
        AUTO(made_release) struct made made;

        make(mixes[i].text, mixes[i].size, &made);
        for (size_t k = 0; k < ARRAY_LEN(plans); k++) {
            struct plan plan;
            struct schedule s;
            struct epoch_order order;

            schedule_of(&made, plans[k], &plan, &s);
            for (size_t e = 0; e < (plan.seeded ? ARRAY_LEN(epochs) : 1); e++) {
                schedule_order(&s, epochs[e], &order);
                check_back(&made, &s, &order);
                check_positions(&made, &s, &order);
            }
        }
    }
}

/* Ranks together read what one reads: so a job may go on with another number of them. */
UNIT_TEST(test_mix_order__ranks__same_global_batches)
{
    AUTO(made_release) struct made made;
    uint64_t all[EPOCH_MOST], own[EPOCH_MOST];
    struct plan plan;
    struct schedule s;
    struct epoch_order order;

    make("m=a*5+b*3+c*2/120", (const uint64_t[]){30, 11, 4}, &made);
    schedule_of(&made, "batch=12,seed=3", &plan, &s);
    schedule_order(&s, 5, &order);
    assert_int_equal(list_epoch(&s, &order, all), 120);
    for (unsigned ranks = 1; ranks <= 4; ranks++)
        for (unsigned rank = 0; rank < ranks; rank++) {
            char name[64];

            snprintf(name, sizeof(name), "batch=%u,rank=%uof%u,seed=3", 12 / ranks, rank, ranks);
            schedule_of(&made, name, &plan, &s);
            for (uint64_t e = 0; e < list_epoch(&s, &order, own); e++)
                assert_int_equal(own[e], all[e * ranks + rank]);
        }
}
