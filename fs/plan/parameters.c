/* The parameters of plans: how each is read and written. What they do is in fs/plan/schedule.c. */
#include "fs/plan/parameters.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/scope.h"

static bool parse_number(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
    return len && number_parse(s, len, max, ret) == len;
}

static bool parse_batch(struct plan *plan, const char *s, size_t len)
{
    if (len == 3 && !memcmp(s, "all", 3)) {
        plan->batch = 0;
        return true;
    }
    return parse_number(s, len, PLAN_NUMBER_MAX, &plan->batch) && plan->batch > 0;
}

static int print_batch(const struct plan *plan, char *buf, size_t capacity)
{
    if (!plan->batch)
        return snprintf(buf, capacity, "all");
    return snprintf(buf, capacity, "%llu", (unsigned long long)plan->batch);
}

/* KofN with K < N. */
static bool parse_share(const char *s, size_t len, uint64_t *ret_k, uint64_t *ret_n)
{
    size_t used = number_parse(s, len, PLAN_NUMBER_MAX, ret_k);

    if (!used || len - used < 3 || memcmp(s + used, "of", 2) != 0)
        return false;
    used += 2;
    return parse_number(s + used, len - used, PLAN_NUMBER_MAX, ret_n) && *ret_k < *ret_n;
}

/* The whole is the default. */
static int print_share(uint64_t k, uint64_t n, char *buf, size_t capacity)
{
    return n == 1 ? 0
                  : snprintf(buf, capacity, "%lluof%llu", (unsigned long long)k,
                             (unsigned long long)n);
}

static bool parse_part(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->part, &plan->parts);
}

static int print_part(const struct plan *plan, char *buf, size_t capacity)
{
    return print_share(plan->part, plan->parts, buf, capacity);
}

static bool parse_rank(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->rank, &plan->ranks);
}

static int print_rank(const struct plan *plan, char *buf, size_t capacity)
{
    return print_share(plan->rank, plan->ranks, buf, capacity);
}

static bool parse_seed(struct plan *plan, const char *s, size_t len)
{
    plan->seeded = true;
    return parse_number(s, len, UINT64_MAX, &plan->seed);
}

static int print_seed(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->seeded ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->seed) : 0;
}

static bool parse_shuffle(struct plan *plan, const char *s, size_t len)
{
    static const char window[] = "window:";
    const size_t prefix = sizeof(window) - 1;

    if (len == 4 && !memcmp(s, "full", 4)) {
        plan->window = 0;
        return true;
    }
    return len > prefix && !memcmp(s, window, prefix) &&
           parse_number(s + prefix, len - prefix, PLAN_NUMBER_MAX, &plan->window) &&
           plan->window > 0;
}

static int print_shuffle(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->window ? snprintf(buf, capacity, "window:%llu", (unsigned long long)plan->window)
                        : 0;
}

static const char *const tail_words[] = {
    [TAIL_KEEP] = "keep",
    [TAIL_DROP] = "drop",
    [TAIL_WRAP] = "wrap",
};

static bool parse_tail(struct plan *plan, const char *s, size_t len)
{
    for (unsigned i = 0; i < ARRAY_LEN(tail_words); i++) {
        if (len == strlen(tail_words[i]) && !memcmp(s, tail_words[i], len)) {
            plan->tail = (enum plan_tail)i;
            return true;
        }
    }
    return false;
}

static int print_tail(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->tail == TAIL_KEEP ? 0 : snprintf(buf, capacity, "%s", tail_words[plan->tail]);
}

const struct plan_parameter plan_parameters[] = {
    {
        .word = "batch",
        .syntax = "<n|all>",
        .want = "a number of samples from 1, or all",
        .help = "samples of a batch",
        .is_required = true,
        .parse = parse_batch,
        .print = print_batch,
    },
    {
        .word = "part",
        .syntax = "KofN",
        .want = "KofN with K from 0 to N-1",
        .help = "share K of N of the stored order, before the shuffle",
        .parse = parse_part,
        .print = print_part,
    },
    {
        .word = "rank",
        .syntax = "KofN",
        .want = "KofN with K from 0 to N-1",
        .help = "every Nth sample from K on, after the shuffle",
        .parse = parse_rank,
        .print = print_rank,
    },
    {
        .word = "seed",
        .syntax = "S",
        .want = "a number from 0 to 2^64-1",
        .help = "shuffled, differently in every epoch=<E>",
        .parse = parse_seed,
        .print = print_seed,
    },
    {
        .word = "shuffle",
        .syntax = "full|window:M",
        .want = "full or window:M",
        .help = "shuffled as a whole (the default), or in blocks of M neighbours",
        .needs = "seed",
        .parse = parse_shuffle,
        .print = print_shuffle,
    },
    {
        .word = "tail",
        .syntax = "keep|drop|wrap",
        .want = "keep, drop or wrap",
        .help = "a short last batch, none, or one filled up from the start",
        .parse = parse_tail,
        .print = print_tail,
    },
};
const unsigned n_plan_parameters = ARRAY_LEN(plan_parameters);
static_assert(ARRAY_LEN(plan_parameters) <= 32, "plan_parse() has a bit for each");
