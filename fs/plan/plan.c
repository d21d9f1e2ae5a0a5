#include "fs/plan/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/text.h"
#include "base/values.h"

/* One parameter: its word, how its value is read, and when and how it is written. */
struct parameter {
    const char *word;
    const char *form; /* for messages */
    bool (*parse)(struct plan *plan, const char *value, size_t len);
    bool (*is_default)(const struct plan *plan);
    int (*print)(const struct plan *plan, char *buf, size_t capacity);
};

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

static bool never_default(const struct plan *plan)
{
    (void)plan;
    return false;
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

static int print_share(uint64_t k, uint64_t n, char *buf, size_t capacity)
{
    return snprintf(buf, capacity, "%lluof%llu", (unsigned long long)k, (unsigned long long)n);
}

static bool parse_part(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->part, &plan->parts);
}

static bool default_part(const struct plan *plan)
{
    return plan->parts == 1;
}

static int print_part(const struct plan *plan, char *buf, size_t capacity)
{
    return print_share(plan->part, plan->parts, buf, capacity);
}

static bool parse_rank(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->rank, &plan->ranks);
}

static bool default_rank(const struct plan *plan)
{
    return plan->ranks == 1;
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

static bool default_seed(const struct plan *plan)
{
    return !plan->seeded;
}

static int print_seed(const struct plan *plan, char *buf, size_t capacity)
{
    return snprintf(buf, capacity, "%llu", (unsigned long long)plan->seed);
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

static bool default_shuffle(const struct plan *plan)
{
    return !plan->window;
}

static int print_shuffle(const struct plan *plan, char *buf, size_t capacity)
{
    return snprintf(buf, capacity, "window:%llu", (unsigned long long)plan->window);
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

static bool default_tail(const struct plan *plan)
{
    return plan->tail == TAIL_KEEP;
}

static int print_tail(const struct plan *plan, char *buf, size_t capacity)
{
    return snprintf(buf, capacity, "%s", tail_words[plan->tail]);
}

/* In canonical order. */
static const struct parameter parameters[] = {
    {"batch", "a number of samples from 1, or all", parse_batch, never_default, print_batch},
    {"part", "KofN with K from 0 to N-1", parse_part, default_part, print_part},
    {"rank", "KofN with K from 0 to N-1", parse_rank, default_rank, print_rank},
    {"seed", "a number from 0 to 2^64-1", parse_seed, default_seed, print_seed},
    {"shuffle", "full or window:M", parse_shuffle, default_shuffle, print_shuffle},
    {"tail", "keep, drop or wrap", parse_tail, default_tail, print_tail},
};

static const struct parameter *parameter_find(const char *word, size_t len, unsigned *ret_bit)
{
    for (unsigned i = 0; i < ARRAY_LEN(parameters); i++) {
        if (len == strlen(parameters[i].word) && !memcmp(word, parameters[i].word, len)) {
            *ret_bit = 1u << i;
            return &parameters[i];
        }
    }
    return NULL;
}

bool plan_has_parameter(const char *word)
{
    unsigned bit;

    return parameter_find(word, strlen(word), &bit) != NULL;
}

/* Parse one "word=value"; seen has a bit for each earlier parameter. */
static int parse_one(const char *item, size_t len, unsigned *seen, struct plan *plan,
                     struct diag *d)
{
    const char *equals = memchr(item, '=', len);
    size_t word_len = equals ? (size_t)(equals - item) : len;
    unsigned bit;
    const struct parameter *p = parameter_find(item, word_len, &bit);

    if (!p)
        return diag_set(d, -EINVAL,
                        "'%.*s' is not a parameter of a plan; want batch, part, rank, seed, "
                        "shuffle or tail",
                        (int)word_len, item);
    if (*seen & bit)
        return diag_set(d, -EINVAL, "%s is given twice", p->word);
    *seen |= bit;
    if (!equals || !p->parse(plan, equals + 1, len - word_len - 1))
        return diag_set(d, -EINVAL, "%s: want %s, found '%.*s'", p->word, p->form,
                        equals ? (int)(len - word_len - 1) : 0, equals ? equals + 1 : "");
    return 0;
}

int plan_parse(const char *name, size_t len, char separator, struct plan *ret, struct diag *d)
{
    struct plan plan = {.parts = 1, .ranks = 1, .tail = TAIL_KEEP};
    unsigned seen = 0;
    size_t start = 0;

    for (;;) {
        const char *end = memchr(name + start, separator, len - start);
        size_t item_len = end ? (size_t)(end - name) - start : len - start;
        int r = parse_one(name + start, item_len, &seen, &plan, d);

        if (r < 0)
            return r;
        if (!end)
            break;
        start += item_len + 1;
    }
    if (!(seen & 1))
        return diag_set(d, -EINVAL, "batch= is missing");
    if ((seen & 1u << 4) && !plan.seeded)
        return diag_set(d, -EINVAL, "shuffle= needs seed=");
    *ret = plan;
    return 0;
}

/* The parameter whose word this is, or nearly is; NULL: none. */
static const char *guess_word(const char *item, size_t len)
{
    char word[32];
    struct guess guess;

    if (len >= sizeof(word))
        return NULL;
    for (size_t i = 0; i < len; i++)
        word[i] = (char)tolower((unsigned char)item[i]);
    word[len] = '\0';
    guess_init(&guess, word);
    for (unsigned i = 0; i < ARRAY_LEN(parameters); i++)
        guess_at(&guess, parameters[i].word);
    return guess.name;
}

bool plan_guess(const char *name, char ret[static PLAN_NAME_SIZE])
{
    AUTO_TEXT struct text meant = {0};
    struct plan plan;

    while (*name) {
        size_t len = strcspn(name, ",+;& "), word_len = strcspn(name, "=");
        const char *word = word_len < len ? guess_word(name, word_len) : NULL;

        if (!word)
            return false;
        text_add(&meant, "%s%s%.*s", meant.len ? "," : "", word, (int)(len - word_len),
                 name + word_len);
        name += len + (name[len] != '\0');
    }
    if (meant.failed || !meant.len || plan_parse(meant.data, meant.len, ',', &plan, NULL) < 0)
        return false;
    plan_name(&plan, ret);
    return true;
}

void plan_name(const struct plan *plan, char ret[static PLAN_NAME_SIZE])
{
    size_t len = 0;

    for (unsigned i = 0; i < ARRAY_LEN(parameters); i++) {
        const struct parameter *p = &parameters[i];

        if (p->is_default(plan))
            continue;
        len += (size_t)snprintf(ret + len, PLAN_NAME_SIZE - len, "%s%s=", i ? "," : "", p->word);
        len += (size_t)p->print(plan, ret + len, PLAN_NAME_SIZE - len);
    }
}

void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length)
{
    uint64_t each = n / parts, larger = n % parts;

    *ret_start = part * each + min_u64(part, larger);
    *ret_length = each + (part < larger);
}

void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t start, uint64_t length)
{
    uint64_t ranks = plan->ranks;
    uint64_t elements;

    *ret = (struct schedule){.plan = plan, .start = start, .length = length};
    switch (plan->tail) {
    case TAIL_KEEP:
        elements = plan->rank < length ? ceil_div(length - plan->rank, ranks) : 0;
        break;
    case TAIL_DROP:
        elements = length / ranks;
        break;
    default:
        elements = ceil_div(length, ranks);
        break;
    }
    if (!plan->batch) {
        ret->batch = ret->elements = elements;
        ret->batches = 1;
        return;
    }
    ret->batch = plan->batch;
    ret->batches =
        plan->tail == TAIL_DROP ? elements / plan->batch : ceil_div(elements, plan->batch);
    ret->elements = plan->tail == TAIL_KEEP ? elements : ret->batches * plan->batch;
}

uint64_t schedule_count(const struct schedule *s, uint64_t number)
{
    return min_u64(s->batch, s->elements - number * s->batch);
}

/* (a * b + c) mod n where the product may not fit in 64 bits. */
static uint64_t mul_add_mod(uint64_t a, uint64_t b, uint64_t c, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)(((u128)a * b + c) % n);
}

bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first)
{
    const struct plan *plan = s->plan;
    uint64_t first = number * s->batch;

    *ret_first = s->start + first;
    /* A last batch that is filled up continues at the start. */
    return !plan->seeded && plan->ranks == 1 && first + schedule_count(s, number) <= s->length;
}

void schedule_samples(const struct schedule *s, const struct order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret)
{
    const struct plan *plan = s->plan;
    uint64_t element = number * s->batch + first;
    uint64_t position, stride;

    if (!count)
        return;
    position = mul_add_mod(element, plan->ranks, plan->rank, s->length);
    stride = plan->ranks % s->length;
    if (order) {
        order_samples(order, position, count, stride, ret);
        for (size_t i = 0; i < count; i++)
            ret[i] += s->start;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = s->start + position;
        position =
            position >= s->length - stride ? position - (s->length - stride) : position + stride;
    }
}
