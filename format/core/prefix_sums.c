#include "format/core/prefix_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/search.h"

#define FEW        32    /* samples of a selection too small for a table */
#define EACH_MOST  65536 /* samples of a selection that has each in its table */
#define BLOCK      256   /* samples per entry of a larger selection's table */
#define LOOK_EVERY 4096  /* samples of a walk between two calls of cancelled() */

struct sums_table {
    uint64_t most;
    uint64_t step; /* places between two entries */
    uint64_t n;    /* entries, without the total */
    struct sums_pair before[];
};

/* Add the numbers of one more sample to *sum. */
static int prefix_sums_count(const struct sums *s, uint64_t sample, struct sums_pair *sum,
                             struct sums_pair *ret_own)
{
    int r = s->number(s->ctx, sample, sum, ret_own);

    if (r < 0)
        return r;
    return checked_add(sum->size, ret_own->size, &sum->size) &&
                   checked_add(sum->other, ret_own->other, &sum->other) && sum->size <= INT64_MAX
               ? 0
               : -EFBIG;
}

/* Walk over places [from, to), starting with sum. */
static int prefix_sums_walk(const struct sums *s, uint64_t from, uint64_t to, struct sums_pair *sum,
                            void (*visit)(void *ctx, uint64_t place, const struct sums_pair *before,
                                          const struct sums_pair *single),
                            void *ctx)
{
    uint64_t samples[BLOCK];
    int all = 0;

    for (uint64_t place = from; place < to;) {
        size_t n = (size_t)min_u64(BLOCK, to - place);

        if (place % LOOK_EVERY < BLOCK && place != from && read_cancelled(s->sel->rc))
            return -EINTR;
        selection_samples(s->sel, place, n, samples);
        for (size_t i = 0; i < n; i++, place++) {
            struct sums_pair single = {0}, before = *sum;
            int r = s->costly && read_cancelled(s->sel->rc)
                        ? -EINTR
                        : prefix_sums_count(s, samples[i], sum, &single);

            if (r == 0 && visit)
                visit(ctx, place, &before, &single);
            if (!missing_go_on(s->sel->rc, r, &all))
                return all;
        }
    }
    return all;
}

static void note(void *ctx, uint64_t place, const struct sums_pair *before,
                 const struct sums_pair *single)
{
    struct sums_table *table = ctx;

    if (place % table->step == 0)
        table->before[place / table->step] = *before;
    table->most = max_u64(table->most, single->size);
}

static int prefix_sums_make_table(void *ctx, void **ret, size_t *ret_size)
{
    const struct sums *s = ctx;
    uint64_t prefix_sums_count = s->sel->count, step = prefix_sums_count <= EACH_MOST ? 1 : BLOCK,
             n = ceil_div(prefix_sums_count, step);
    size_t size = sizeof(struct sums_table) + (n + 1) * sizeof(struct sums_pair);
    struct sums_table *table;
    struct sums_pair sum = {0};
    int r;

    if (n >= SIZE_MAX / sizeof(sum) / 2)
        return -ENOMEM;
    table = malloc(size);
    if (!table)
        return -ENOMEM;
    *table = (struct sums_table){.step = step, .n = n};
    r = prefix_sums_walk(s, 0, prefix_sums_count, &sum, note, table);
    if (r < 0) {
        free(table);
        return r;
    }
    table->before[n] = sum;
    *ret = table;
    *ret_size = size;
    return 0;
}

int sums_open(struct sums *ret, struct memo *memo, const struct memo_key *key,
              const struct selection *sel, sums_fn *number, bool costly, void *ctx)
{
    const struct memo_maker table = {.make = prefix_sums_make_table, .ctx = ret, .rc = sel->rc};
    int r;

    *ret = (struct sums){
        .sel = sel, .number = number, .costly = costly, .ctx = ctx, .window = {.sel = sel}};
    if (sel->count <= FEW && !costly) {
        size_t size;

        r = prefix_sums_make_table(ret, &ret->memory, &size);
        ret->table = ret->memory;
        return r;
    }
    r = memo_get(memo, key, &table, &ret->thing);
    if (r == 0)
        ret->table = memo_bytes(ret->thing);
    return r;
}

int sums_open_known(struct sums *ret, struct memo *memo, const struct memo_key *key,
                    const struct selection *sel, sums_fn *number, sums_known_fn *known, void *ctx)
{
    if (!sel->in_order || !sel->count)
        return sums_open(ret, memo, key, sel, number, true, ctx);
    *ret = (struct sums){.sel = sel, .known = known, .ctx = ctx};
    known(ctx, sel->first, &ret->first);
    return 0;
}

/* The sums before a place of a selection in stored order. */
static struct sums_pair known_before(const struct sums *s, uint64_t place)
{
    struct sums_pair sum;

    s->known(s->ctx, s->sel->first + place, &sum);
    return (struct sums_pair){sum.size - s->first.size, sum.other - s->first.other};
}

void sums_close(struct sums *s)
{
    memo_let_go(s->thing);
    free(s->memory);
    s->thing = NULL;
    s->memory = NULL;
}

struct sums_pair sums_total(const struct sums *s)
{
    return s->known ? known_before(s, s->sel->count) : s->table->before[s->table->n];
}

uint64_t sums_most(const struct sums *s)
{
    return s->table->most;
}

int sums_before(const struct sums *s, uint64_t place, struct sums_pair *ret)
{
    uint64_t entry;

    if (s->known || place == s->sel->count) {
        *ret = s->known ? known_before(s, place) : sums_total(s);
        return 0;
    }
    entry = place / s->table->step;
    *ret = s->table->before[entry];
    return prefix_sums_walk(s, entry * s->table->step, place, ret, NULL, NULL);
}

int sums_after(struct sums *s, uint64_t place, const struct sums_pair *before,
               struct sums_pair *ret)
{
    struct sums_pair single = {0};

    *ret = *before;
    if (s->known)
        return sums_before(s, place + 1, ret);
    if (s->table->step > 1)
        return prefix_sums_count(s, sample_window_at(&s->window, place), ret, &single);
    *ret = s->table->before[place + 1];
    return 0;
}

/* The last place of a block with a sum before it that does not exceed at. */
struct search {
    uint64_t at, place;
    struct sums_pair before;
};

static void prefix_sums_look(void *ctx, uint64_t place, const struct sums_pair *before,
                             const struct sums_pair *single)
{
    struct search *search = ctx;

    (void)single;
    if (before->size > search->at)
        return;
    search->place = place;
    search->before = *before;
}

int sums_find(const struct sums *s, uint64_t at, uint64_t *ret_place, struct sums_pair *ret_before)
{
    const struct sums_table *table = s->table;
    uint64_t low;
    struct search search = {.at = at};
    struct sums_pair sum;
    int r = 0;

    if (s->known) {
        *ret_place = SEARCH_LAST(s->sel->count, i, known_before(s, i).size <= at);
        return sums_before(s, *ret_place, ret_before);
    }
    low = search_last_up_to(&table->before->size, sizeof(*table->before), table->n, at);
    sum = table->before[low];
    search.place = low * table->step;
    search.before = sum;
    if (table->step > 1)
        r = prefix_sums_walk(s, search.place, min_u64(search.place + table->step, s->sel->count),
                             &sum, prefix_sums_look, &search);
    if (r == 0) {
        *ret_place = search.place;
        *ret_before = search.before;
    }
    return r;
}
