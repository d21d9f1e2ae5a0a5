/* Counts, one entry for each sample number, in memory that is taken where it is written: a plan of
 * a thousand samples of a dataset of 10^9 costs what a thousand cost. */
#include "fs/audit/tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/checked.h"

#define FAULTS_SHOWN 3
#define ROUNDING     1e-6  /* of a share: weights become whole numbers */
#define EXACT        1e-12 /* of a share: doubles are not exact */

struct entry {
    uint64_t listed; /* how often it is in the list */
    uint64_t seen;   /* how often it is in the epoch */
    double value;    /* of the field */
    uint8_t digest[DIGEST_BYTES];
};

/* A value of the field, and how many places of the list have it. */
struct class_size {
    double value;
    uint64_t places;
};

struct audit_tally {
    struct entry *entry; /* [samples] mapped */
    uint64_t samples;
    uint64_t places, elements;
    uint64_t faults;
    struct text shown; /* of the first ones */
    struct digest *digest;
};

int audit_tally_new(uint64_t samples, struct audit_tally **ret)
{
    AUTO_AUDIT_TALLY struct audit_tally *t = calloc(1, sizeof(*t));
    uint64_t bytes;
    void *at;

    if (!t || digest_new(&t->digest) < 0 ||
        !checked_mul(max_u64(samples, 1), sizeof(struct entry), &bytes))
        return -ENOMEM;
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
              0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    t->entry = at;
    t->samples = samples;
    *ret = TAKE_PTR(t);
    return 0;
}

void audit_tally_free(struct audit_tally *t)
{
    if (!t)
        return;
    if (t->entry)
        munmap(t->entry, max_u64(t->samples, 1) * sizeof(*t->entry));
    digest_free(t->digest);
    text_release(&t->shown);
    free(t);
}

uint64_t audit_tally_places(const struct audit_tally *t)
{
    return t->places;
}

uint64_t audit_tally_elements(const struct audit_tally *t)
{
    return t->elements;
}

void audit_tally_fault(struct audit_tally *t, const char *line)
{
    if (t->faults++ < FAULTS_SHOWN)
        text_add(&t->shown, "%s\n", line);
}

#define FAULT(t, ...)                                                                              \
    do {                                                                                           \
        if ((t)->faults++ < FAULTS_SHOWN)                                                          \
            text_add(&(t)->shown, __VA_ARGS__);                                                    \
    } while (0)

typedef unsigned long long ull;
__extension__ typedef unsigned __int128 u128;

int audit_tally_list(struct audit_tally *t, const struct audit_batch *batch, const char *name)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct entry *e = batch->number[i] < t->samples ? &t->entry[batch->number[i]] : NULL;

        t->places++;
        if (!e)
            FAULT(t, "%s: place %zu: expected a sample below %llu, got %llu\n", name, i,
                  (ull)t->samples, (ull)batch->number[i]);
        else if (e->listed++ && memcmp(e->digest, batch->digest[i], DIGEST_BYTES) != 0)
            FAULT(t, "%s: place %zu: sample %llu is not what it was before\n", name, i,
                  (ull)batch->number[i]);
        if (!e)
            continue;
        e->value = batch->value[i];
        memcpy(e->digest, batch->digest[i], DIGEST_BYTES);
    }
    return t->shown.failed ? -ENOMEM : 0;
}

int audit_tally_epoch(struct audit_tally *t, const struct audit_batch *batch, const char *name)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct entry *e = batch->number[i] < t->samples ? &t->entry[batch->number[i]] : NULL;

        t->elements++;
        if (digest_add(t->digest, batch->digest[i], DIGEST_BYTES) < 0)
            return -ENOMEM;
        if (!e || !e->listed)
            FAULT(t, "%s: place %zu: sample %llu is not in the plan's list\n", name, i,
                  (ull)batch->number[i]);
        else if (memcmp(e->digest, batch->digest[i], DIGEST_BYTES) != 0)
            FAULT(t, "%s: place %zu: sample %llu differs from the stored order\n", name, i,
                  (ull)batch->number[i]);
        if (e)
            e->seen++;
    }
    return t->shown.failed ? -ENOMEM : 0;
}

static int audit_tally_by_number(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int audit_tally_runs(struct audit_tally *t, const struct audit_batch *batch, const char *name,
                     uint64_t classes, uint64_t each)
{
    AUTO_FREE double *class = calloc(batch->n / each + 1, sizeof(*class));
    size_t n = 0;

    if (!class)
        return -ENOMEM;
    for (size_t i = 0; i < batch->n; i++) {
        if (i % each == 0)
            class[n++] = batch->value[i];
        else if (batch->value[i] != batch->value[i - 1])
            FAULT(t,
                  "%s: place %zu: expected a run of %llu samples of a class, got another class\n",
                  name, i, (ull)each);
    }
    qsort(class, n, sizeof(*class), audit_tally_by_number);
    for (size_t i = 1; i < n; i++)
        if (class[i] == class[i - 1])
            FAULT(t, "%s: expected %llu different classes, got %g again\n", name, (ull)classes,
                  class[i]);
    return t->shown.failed ? -ENOMEM : 0;
}

/* ---- how often ---- */

static int audit_tally_by_value(const void *a, const void *b)
{
    const struct class_size *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* How many places each value has, in the order of the values. */
static int audit_tally_find_classes(const struct audit_tally *t, struct class_size **ret,
                                    size_t *ret_n)
{
    struct class_size *class = NULL;
    size_t n = 0, kept = 0;

    for (uint64_t i = 0; i < t->samples; i++) {
        if (!t->entry[i].listed)
            continue;
        if (array_capacity(&class, n, sizeof(*class)) < 0) {
            free(class);
            return -ENOMEM;
        }
        class[n++] = (struct class_size){t->entry[i].value, t->entry[i].listed};
    }
    if (n)
        qsort(class, n, sizeof(*class), audit_tally_by_value);
    for (size_t i = 0; i < n; i++) {
        if (kept && !audit_tally_by_value(&class[kept - 1], &class[i]))
            class[kept - 1].places += class[i].places;
        else
            class[kept++] = class[i];
    }
    *ret = class;
    *ret_n = kept;
    return 0;
}

int audit_tally_classes(const struct audit_tally *t, uint64_t *ret_n, uint64_t *ret_most)
{
    AUTO_FREE struct class_size *class = NULL;
    size_t n;
    int r = audit_tally_find_classes(t, &class, &n);

    if (r < 0)
        return r;
    *ret_n = n;
    *ret_most = 0;
    for (size_t i = 0; i < n; i++)
        *ret_most = max_u64(*ret_most, class[i].places);
    return 0;
}

static double sum_of_values(const struct audit_tally *t)
{
    double sum = 0;

    for (uint64_t i = 0; i < t->samples; i++)
        sum += (double)t->entry[i].listed * t->entry[i].value;
    return sum;
}

/* What is needed to say how often a sample should come. */
struct shares {
    const struct audit_rule *rule;
    struct class_size *class; /* [n] owned */
    size_t n;
    double sum; /* of all values */
};

static void shares_release(struct shares *s)
{
    free(s->class);
}

/* How often each place of e should come among the promised positions, perhaps not a whole number.
 */
static double audit_tally_share_of(const struct shares *s, const struct entry *e)
{
    double promised = (double)s->rule->promised;
    struct class_size wanted = {.value = e->value}, *found;

    switch (s->rule->promise) {
    case AUDIT_BALANCED:
        found = bsearch(&wanted, s->class, s->n, sizeof(wanted), audit_tally_by_value);
        return found ? promised / ((double)s->n * (double)found->places) : 0;
    case AUDIT_WEIGHTS:
        return s->sum > 0 ? promised * e->value / s->sum : 0;
    default:
        return s->rule->places ? promised / (double)s->rule->places : 0;
    }
}

/* How often it may come at least and at most: each of its places floor or ceil of its share. */
static void bounds_of(const struct shares *s, const struct entry *e, double *ret_least,
                      double *ret_most)
{
    const struct audit_rule *rule = s->rule;
    double share = audit_tally_share_of(s, e), whole = nearbyint(share);
    uint64_t passes = rule->positions ? rule->elements / rule->positions : 0;
    bool more = rule->positions && rule->elements % rule->positions;

    if (rule->promise == AUDIT_WEIGHTS) {
        *ret_least = fmax(0, floor(share - ROUNDING * (share + 1)));
        *ret_most = ceil(share + ROUNDING * share);
    } else if (fabs(share - whole) < EXACT * (share + 1)) {
        *ret_least = *ret_most = whole;
    } else {
        *ret_least = floor(share);
        *ret_most = ceil(share);
    }
    *ret_least *= (double)(passes * e->listed);
    *ret_most *= (double)((passes + more) * e->listed);
    if (rule->positions < rule->promised || rule->read < rule->elements)
        *ret_least = 0;
    if (rule->promise == AUDIT_MEMBERS) {
        *ret_least = 0;
        *ret_most = INFINITY;
    }
}

/* A source's elements in an epoch are a run of its passes, so a sample may come once more or less
 * than the passes that are whole. With tail=wrap all of that comes again, and again in part. */
static void compare_source(struct audit_tally *t, const struct audit_rule *rule,
                           const struct audit_source *source)
{
    uint64_t seen = 0, places = 0, least = 0, most = source->most;
    uint64_t times = rule->positions ? rule->elements / rule->positions : 0;
    bool more = rule->positions && rule->elements % rule->positions;

    for (uint64_t i = source->first; i < source->first + source->count; i++) {
        seen += t->entry[i].seen;
        places += t->entry[i].listed;
    }
    if (!places)
        return;
    if (rule->read == rule->elements && rule->elements == rule->positions &&
        (seen < source->least || seen > source->most))
        FAULT(
            t,
            "samples from %llu on: expected %llu to %llu of their source in the epoch, got %llu\n",
            (ull)source->first, (ull)source->least, (ull)source->most, (ull)seen);
    if (rule->read == rule->elements && source->least / places)
        least = (source->least / places - 1) * times;
    if (most > 1)
        most = (most - 2) / places + 2;
    for (uint64_t i = source->first; i < source->first + source->count; i++) {
        const struct entry *e = &t->entry[i];
        u128 from = (u128)least * e->listed, to = (u128)most * (times + more) * e->listed;

        if (e->seen < from || e->seen > to)
            FAULT(t, "sample %llu: expected %llu to %llu times in the epoch, got %llu times\n",
                  (ull)i, (ull)from, (ull)to, (ull)e->seen);
    }
}

int audit_tally_compare(struct audit_tally *t, const struct audit_rule *rule)
{
    AUTO(shares_release) struct shares s = {.rule = rule, .sum = sum_of_values(t)};

    if (t->places != rule->places)
        FAULT(t, "expected %llu samples in the list, got %llu\n", (ull)rule->places,
              (ull)t->places);
    if (t->elements != rule->read)
        FAULT(t, "expected %llu samples in the epoch, got %llu\n", (ull)rule->read,
              (ull)t->elements);
    if (rule->promise == AUDIT_BALANCED && audit_tally_find_classes(t, &s.class, &s.n) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < rule->n_sources; i++)
        compare_source(t, rule, &rule->source[i]);
    for (uint64_t i = 0; i < t->samples && !rule->n_sources; i++) {
        const struct entry *e = &t->entry[i];
        double least, most;

        if (!e->listed)
            continue;
        bounds_of(&s, e, &least, &most);
        if ((double)e->seen < least || (double)e->seen > most)
            FAULT(t, "sample %llu: expected %.0f to %.0f times in the epoch, got %llu times\n",
                  (ull)i, least, most, (ull)e->seen);
    }
    return t->shown.failed ? -ENOMEM : 0;
}

int audit_tally_result(struct audit_tally *t, struct audit_result *ret)
{
    uint8_t digest[DIGEST_BYTES];

    if (digest_finish(t->digest, digest) < 0)
        return -ENOMEM;
    *ret = (struct audit_result){.faults = t->faults, .least = UINT64_MAX};
    ret->first = t->shown.data ? t->shown.data : "";
    for (uint64_t i = 0; i < t->samples; i++) {
        const struct entry *e = &t->entry[i];

        if (!e->listed)
            continue;
        ret->seen += e->seen > 0;
        ret->least = min_u64(ret->least, e->seen);
        ret->most = max_u64(ret->most, e->seen);
    }
    if (ret->least == UINT64_MAX)
        ret->least = 0;
    digest_text(digest, ret->sha256);
    return 0;
}
