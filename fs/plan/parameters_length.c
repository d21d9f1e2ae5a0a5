/* Parameters of plans that have to do with how long samples are: how they are read and written. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/parameters_parts.h"

#define PLAN_MICRO      1000000
#define PLAN_MICRO_MOST UINT64_C(1000000000000)

bool plan_parse_number(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
    return len && number_parse(s, len, max, ret) == len;
}

bool plan_is_word(const char *s, size_t len)
{
    if (!len || len >= PLAN_WORD_SIZE || s[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)s[i]) || strchr(",+/:;&=", s[i]))
            return false;
    return true;
}

bool plan_parse_word(const char *s, size_t len, char ret[static PLAN_WORD_SIZE])
{
    if (!plan_is_word(s, len))
        return false;
    memcpy(ret, s, len);
    ret[len] = '\0';
    return true;
}

/* A decimal number above 0 with up to 6 digits behind the point, in millionths. */
static bool parse_micro(const char *s, size_t len, uint64_t *ret)
{
    size_t used = number_parse(s, len, PLAN_MICRO_MOST, ret), digits = 0;
    uint64_t unit = PLAN_MICRO;

    if (!used)
        return false;
    *ret *= PLAN_MICRO;
    if (used < len && s[used] == '.')
        for (used++; used < len && isdigit((unsigned char)s[used]) && digits < 6; digits++) {
            unit /= 10;
            *ret += unit * (uint64_t)(s[used++] - '0');
        }
    return used == len && *ret && s[len - 1] != '.';
}

static int print_micro(uint64_t micro, char *buf, size_t capacity)
{
    int digits = 6;
    uint64_t fraction = micro % PLAN_MICRO;

    for (; fraction && fraction % 10 == 0; digits--)
        fraction /= 10;
    return fraction
               ? snprintf(buf, capacity, "%llu.%0*llu", (unsigned long long)(micro / PLAN_MICRO),
                          digits, (unsigned long long)fraction)
               : snprintf(buf, capacity, "%llu", (unsigned long long)(micro / PLAN_MICRO));
}

/* HOW:N or HOW:N:MOST. */
static bool parse_budget(struct plan *plan, const char *s, size_t len, const char *colon)
{
    size_t how = (size_t)(colon - s), left = len - how - 1;
    const char *n = colon + 1, *most = memchr(n, ':', left);
    size_t n_len = most ? (size_t)(most - n) : left;

    plan->batch = 0;
    return plan_parse_word(s, how, plan->length) && parse_micro(n, n_len, &plan->budget) &&
           (!most ||
            (plan_parse_number(most + 1, left - n_len - 1, PLAN_NUMBER_MAX, &plan->batch) &&
             plan->batch));
}

bool plan_parse_batch(struct plan *plan, const char *s, size_t len)
{
    const char *colon = memchr(s, ':', len);

    if (colon)
        return parse_budget(plan, s, len, colon);
    if (len == 3 && !memcmp(s, "all", 3)) {
        plan->batch = 0;
        return true;
    }
    return plan_parse_number(s, len, PLAN_NUMBER_MAX, &plan->batch) && plan->batch > 0;
}

int plan_print_batch(const struct plan *plan, char *buf, size_t capacity)
{
    char n[32], most[32] = "";

    if (plan->budget) {
        print_micro(plan->budget, n, sizeof(n));
        if (plan->batch)
            snprintf(most, sizeof(most), ":%llu", (unsigned long long)plan->batch);
        return snprintf(buf, capacity, "%s:%s%s", plan->length, n, most);
    }
    if (!plan->batch)
        return snprintf(buf, capacity, "all");
    return snprintf(buf, capacity, "%llu", (unsigned long long)plan->batch);
}

/* A:B or A:B:HOW; A may be 0. */
bool plan_parse_range(struct plan *plan, const char *s, size_t len)
{
    const char *b = memchr(s, ':', len), *how;
    size_t a_len, b_len;

    if (!b++)
        return false;
    a_len = (size_t)(b - s) - 1;
    how = memchr(b, ':', len - a_len - 1);
    b_len = how ? (size_t)(how - b) : len - a_len - 1;
    plan->ranges = true;
    plan->length_from = 0;
    return ((a_len == 1 && *s == '0') || parse_micro(s, a_len, &plan->length_from)) &&
           parse_micro(b, b_len, &plan->length_to) && plan->length_from < plan->length_to &&
           (!how || plan_parse_word(how + 1, len - a_len - b_len - 2, plan->range_length));
}

int plan_print_range(const struct plan *plan, char *buf, size_t capacity)
{
    char a[32], b[32];

    if (!plan->ranges)
        return 0;
    print_micro(plan->length_from, a, sizeof(a));
    print_micro(plan->length_to, b, sizeof(b));
    return snprintf(buf, capacity, "%s:%s%s%s", a, b, *plan->range_length ? ":" : "",
                    plan->range_length);
}

bool plan_parse_bucket(struct plan *plan, const char *s, size_t len)
{
    return plan_parse_number(s, len, LENGTH_BATCHES_BUCKET_MOST, &plan->bucket) && plan->bucket;
}

int plan_print_bucket(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->bucket && (!plan->budget || plan->bucket != LENGTH_BATCHES_BUCKET)
               ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->bucket)
               : 0;
}

int plan_check_bucket(const struct plan *plan, struct diag *d)
{
    if (plan->budget || (plan->batch && plan->bucket % plan->batch == 0))
        return 0;
    if (!plan->batch)
        return diag_set(d, -EINVAL, "bucket: expected batch=HOW:N, or batch=B, got batch=all");
    return diag_set(d, -EINVAL, "bucket: expected a multiple of batch=%llu, got %llu",
                    (unsigned long long)plan->batch, (unsigned long long)plan->bucket);
}

bool plan_parse_quad(struct plan *plan, const char *s, size_t len)
{
    return parse_micro(s, len, &plan->quad);
}

int plan_print_quad(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->quad ? print_micro(plan->quad, buf, capacity) : 0;
}

bool plan_parse_group(struct plan *plan, const char *s, size_t len)
{
    return plan_parse_number(s, len, LENGTH_BATCHES_BUCKET_MOST, &plan->group) && plan->group;
}

int plan_print_group(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->group > 1 ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->group) : 0;
}

/* Without a budget it would change nothing. */
int plan_check_quad(const struct plan *plan, struct diag *d)
{
    return plan->budget ? 0
                        : diag_set(d, -EINVAL,
                                   "quad= is for batches by length with a budget: expected "
                                   "batch=HOW:N");
}

int plan_check_grouping(const struct plan *plan, struct diag *d)
{
    return plan->budget || plan->bucket
               ? 0
               : diag_set(d, -EINVAL,
                          "group= is for batches by length: expected batch=HOW:N, or bucket=");
}
