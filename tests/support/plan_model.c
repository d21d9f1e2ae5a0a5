/* Everything here is slow and obvious. Only the permutations are those of fs/plan/order.c, which
 * tests/order_vectors.txt holds. */
#include "support/plan_model.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "support/order_each.h"
#include "support/test_labels.h"
#include "support/unit.h"

__extension__ typedef unsigned __int128 u128;

#define LIST_SIZE 1024

struct model {
    uint64_t positions;
    uint64_t batches;
    uint64_t count[LIST_SIZE];  /* of each batch */
    uint64_t sample[LIST_SIZE]; /* batch after batch */
};

/* The share, counted out one sample at a time. */
static void model_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                        uint64_t *ret_length)
{
    uint64_t length[64] = {0};

    for (uint64_t i = 0; i < n; i++)
        length[i % parts]++;
    *ret_start = 0;
    for (uint64_t p = 0; p < part; p++)
        *ret_start += length[p];
    *ret_length = length[part];
}

/* The list, written out: only, take, split, part. Returns its length. */
static uint64_t model_list(const struct plan *p, const struct model_data *data, uint64_t *ret)
{
    uint64_t n = p->only[0] ? data->only->n : data->samples;
    uint64_t from = 0, to = n, sum = 0, below = 0, start, length;
    struct permutation fixed;

    if (p->takes) {
        from = p->take_from.is_percent ? n * p->take_from.n / 100 : p->take_from.n;
        to = p->take_to.is_percent ? n * p->take_to.n / 100 : p->take_to.n;
        from = min_u64(from, n);
        to = max_u64(min_u64(to, n), from);
    }
    for (uint64_t i = from; i < to; i++)
        ret[i - from] = p->only[0] ? data->only->sample[i] : i;
    n = to - from;
    if (p->splits) {
        uint64_t shuffled[LIST_SIZE], count = 0;

        permutation_init(&fixed, 0, 0, ORDER_LANES, n);
        for (unsigned i = 0; i < p->splits; i++) {
            below += i < p->split ? p->weight[i] : 0;
            sum += p->weight[i];
        }
        for (uint64_t x = n * below / sum; x < n * (below + p->weight[p->split]) / sum; x++) {
            shuffled[count] = x;
            permutation_send(&fixed, 1, &shuffled[count]);
            shuffled[count] = ret[shuffled[count]];
            count++;
        }
        memcpy(ret, shuffled, count * sizeof(*ret));
        n = count;
    }
    model_share(p->part, p->parts, n, &start, &length);
    memmove(ret, ret + start, length * sizeof(*ret));
    return length;
}

/* ---- orders: each writes out the places of an epoch and returns how many ---- */

static uint64_t order_plain(const struct plan *p, uint64_t n, uint64_t epoch, uint64_t *ret)
{
    struct order order;

    order_init(&order, p->seed, epoch, n, p->window);
    for (uint64_t i = 0; i < n; i++)
        ret[i] = p->seeded ? order_sample(&order, i) : i;
    return n;
}

/* Is numerator y / n before the end of a place on the line? */
static bool is_before_end(const struct plan *p, const struct test_labels *l, u128 y, uint64_t place)
{
    uint64_t class = 0, member = 0;

    if (p->draw == DRAW_UNIFORM)
        return y < (u128)(place + 1) * p->draws;
    if (p->draw == DRAW_WEIGHTS)
        return y < (u128)l->sum[place + 1] * p->draws;
    while (l->place[class][member] != place)
        if (++member == l->count[class]) {
            class ++;
            member = 0;
        }
    /* y / n < 2^32 (class + (member + 1) / count) */
    return y * l->count[class] < ((u128) class * l->count[class] + member + 1) * p->draws << 32;
}

static uint64_t order_drawn(const struct plan *p, const struct test_labels *l, uint64_t n,
                            uint64_t epoch, uint64_t *ret)
{
    uint64_t line = p->draw == DRAW_UNIFORM   ? n
                    : p->draw == DRAW_WEIGHTS ? l->weights.total
                                              : l->classes.n << 32;
    uint64_t offset = line / 2, drawn[LIST_SIZE];
    struct order order;

    if (!n || !p->draws)
        return 0;
    if (p->seeded)
        offset = (uint64_t)((u128)order_key(p->seed, epoch, LANE_DRAW, p->draws) * line >> 64);
    for (uint64_t x = 0; x < p->draws; x++) {
        /* The places in the order of the line. */
        for (uint64_t i = 0, class = 0, member = 0;; i++) {
            uint64_t place = i;

            if (p->draw == DRAW_BALANCED) {
                place = l->place[class][member];
                if (++member == l->count[class]) {
                    class ++;
                    member = 0;
                }
            }
            drawn[x] = place;
            if (is_before_end(p, l, (u128)x * line + offset, place))
                break;
        }
    }
    order_init(&order, p->seed, epoch, p->draws, p->window);
    for (uint64_t i = 0; i < p->draws; i++)
        ret[i] = drawn[p->seeded ? order_sample(&order, i) : i];
    return p->draws;
}

/* The next element of the endless list of a class. */
static uint64_t next_of_class(const struct plan *p, const struct test_labels *l, uint64_t class,
                              const struct permutation_family *family, uint64_t *shown)
{
    uint64_t n = l->count[class], x = *shown % n;
    struct permutation_member m = family_member(class, *shown / n, n);

    ++*shown;
    if (p->seeded)
        x = family_send_one(family, m, x);
    return l->place[class][x];
}

static uint64_t order_by_class(const struct plan *p, const struct test_labels *l, uint64_t epoch,
                               uint64_t *ret)
{
    uint64_t classes = l->classes.n, batches = classes / p->batch_classes, n = 0, start = 0;
    uint64_t rounds = ceil_div(l->classes.most, p->of_class), shown[LIST_SIZE] = {0};
    struct permutation_family family;

    family_init(&family, p->seed, epoch, LANE_CLASSES);
    for (uint64_t r = 0; r < rounds; r++) {
        struct permutation_member m = family_member(UINT64_MAX, r, classes);

        for (uint64_t i = 0; i < classes; i++) {
            uint64_t class = p->seeded ? i : (start + i) % classes;

            if (p->seeded)
                class = family_send_one(&family, m, class);
            for (uint64_t k = 0; k < p->of_class; k++) {
                uint64_t place = next_of_class(p, l, class, &family, &shown[class]);

                if (i < batches * p->batch_classes) /* else the class rests */
                    ret[n++] = place;
            }
        }
        start += batches * p->batch_classes;
    }
    return n;
}

static uint64_t model_order(const struct plan *p, const struct test_labels *l, uint64_t n,
                            uint64_t epoch, uint64_t *ret)
{
    if (p->draw)
        return order_drawn(p, l, n, epoch, ret);
    if (p->of_class)
        return order_by_class(p, l, epoch, ret);
    return order_plain(p, n, epoch, ret);
}

/* ---- batches ---- */

/* The elements of the rank: the positions are dealt in rounds, a unit to each rank. */
static uint64_t deal(const struct plan *p, const uint64_t *list, uint64_t n, uint64_t *ret)
{
    uint64_t unit = p->of_class ? p->batch_classes * p->of_class : 1, len = 0;

    for (uint64_t round = 0; round * p->ranks * unit < n; round++) {
        uint64_t start = (round * p->ranks + p->rank) * unit;
        bool all = (round + 1) * p->ranks * unit <= n;

        for (uint64_t place = start; place < start + unit; place++)
            if (p->tail == TAIL_KEEP ? place < n : p->tail == TAIL_DROP ? all : true)
                ret[len++] = list[place % n];
    }
    return len;
}

static void model_make(const struct plan *p, const struct model_data *data,
                       const struct test_labels *l, uint64_t epoch, struct model *ret)
{
    uint64_t whole[LIST_SIZE], place[LIST_SIZE], list[LIST_SIZE], rank[LIST_SIZE], len, at = 0;
    uint64_t n = model_order(p, l, model_list(p, data, whole), epoch, place), each;

    for (uint64_t i = 0; i < n; i++)
        list[i] = whole[place[i]];
    n = p->limits ? min_u64(n, p->limit) : n;
    len = deal(p, list, n, rank);
    *ret = (struct model){.positions = n};
    if (!p->batch) {
        ret->batches = 1;
        ret->count[0] = len;
        memcpy(ret->sample, rank, len * sizeof(*rank));
        return;
    }
    while (at < len) {
        each = p->batch;
        if (len - at < each && p->tail == TAIL_DROP)
            break;
        if (len - at < each && p->tail == TAIL_KEEP)
            each = len - at;
        for (uint64_t i = 0; i < each; i++) /* whole batches except units of one element */
            ret->sample[at + i] =
                at + i < len ? rank[at + i] : list[((at + i) * p->ranks + p->rank) % n];
        ret->count[ret->batches++] = each;
        at += each;
    }
}

/* ---- the schedule next to it ---- */

static void init(const struct plan *p, const struct model_data *data, struct test_labels *l,
                 struct schedule *ret)
{
    struct plan_data of = {.samples = data->samples, .only = data->only};
    uint64_t label[LIST_SIZE], weight[LIST_SIZE], sample;

    schedule_init_data(ret, p, &of);
    if (!data->label)
        return;
    for (uint64_t i = 0; i < ret->length; i++) {
        schedule_list(ret, i, 1, &sample);
        label[i] = data->label[sample];
        weight[i] = data->weight[sample];
    }
    test_labels_make(l, ret->length, label, weight);
    of.classes = &l->classes;
    of.weights = &l->weights;
    schedule_init_data(ret, p, &of);
}

static void check_plan(const struct plan *p, const struct model_data *data, uint64_t epoch)
{
    uint64_t got[LIST_SIZE], at = 0;
    static struct test_labels labels;
    struct schedule s;
    struct epoch_order order;
    struct model m;

    init(p, data, &labels, &s);
    model_make(p, data, &labels, epoch, &m);
    schedule_order(&s, epoch, &order);
    if (s.batches != m.batches) {
        char name[PLAN_NAME_SIZE];

        plan_name(p, name);
        fail_msg("%s of %d: %d batches, expected %d", name, (int)data->samples, (int)s.batches,
                 (int)m.batches);
    }
    for (uint64_t b = 0; b < m.batches; b++) {
        struct schedule_batch batch;

        assert_int_equal(schedule_batch_init(&s, epoch, b, &batch), 0);
        assert_int_equal(batch.count, m.count[b]);
        schedule_samples(&s, &order, &batch, 0, m.count[b], got);
        for (uint64_t i = 0; i < m.count[b]; i++) {
            uint64_t one = 0;

            assert_int_equal(got[i], m.sample[at + i]);
            schedule_samples(&s, &order, &batch, i, 1, &one);
            assert_int_equal(one, got[i]);
        }
        at += m.count[b];
    }
}

/* Many ranges of samples at once, as one by one. */
static void check_find_each(const struct schedule *s, const struct epoch_order *order, uint64_t n)
{
    struct plan_samples wanted[3 * LIST_SIZE];
    uint64_t from = s->elements / 3, got[3 * LIST_SIZE];
    size_t asked = 0;

    for (uint64_t i = 0; i < n && asked < ARRAY_LEN(wanted); i++)
        for (uint64_t last = i; last < i + 3 && asked < ARRAY_LEN(wanted); last++)
            wanted[asked++] = (struct plan_samples){n - 1 - i, n - 1 - i + (last - i)};
    schedule_find_each(s, order, asked, wanted, from, got);
    for (size_t i = 0; i < asked; i++)
        assert_int_equal(got[i], schedule_find(s, order, wanted[i].first, wanted[i].last, from));
}

/* The way back: for every range of samples, and from every element on. */
static void check_find(const struct plan *p, const struct model_data *data, uint64_t epoch)
{
    static struct test_labels labels;
    uint64_t n = data->samples, length, sample[LIST_SIZE];
    struct schedule s;
    struct epoch_order order;

    init(p, data, &labels, &s);
    schedule_order(&s, epoch, &order);
    check_find_each(&s, &order, n);
    length = s.positions;
    for (uint64_t e = 0; length && e < s.elements; e++)
        schedule_elements(&s, &order, e, 1, &sample[e]);
    for (uint64_t first = 0; first < n; first++) {
        for (uint64_t last = first; last < n && last < first + 3; last++) {
            uint64_t from = (first * 5 + last) % (s.elements + 1), want = from, end = s.elements;

            while (want < s.elements && length && (sample[want] < first || sample[want] > last))
                want++;
            want = want < s.elements && length ? want : SCHEDULE_NONE;
            assert_int_equal(schedule_find(&s, &order, first, last, from), want);
            while (end && length && (sample[end - 1] < first || sample[end - 1] > last))
                end--;
            want = end && length ? end - 1 : SCHEDULE_NONE;
            if (s.wraps) /* then it may be later */
                assert_true(schedule_last(&s, &order, first, last) + 1 >= want + 1);
            else
                assert_int_equal(schedule_last(&s, &order, first, last), want);
        }
    }
}

void model_check(const struct plan *p, const struct model_data *data, uint64_t epoch)
{
    check_plan(p, data, epoch);
    check_find(p, data, epoch);
}
