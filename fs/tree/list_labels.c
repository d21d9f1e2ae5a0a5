#include "fs/tree/list_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "cache/disk/sha256.h"
#include "fs/tree/list_labels_parts.h"

#define MEMORY_SHARE 8 /* of the machine's memory, for indexes that cannot be kept */
#define AGAIN_NS     INT64_C(50000000)

/* ---- memory ---- */

void list_labels_init(struct list_labels *ret, const struct format_setup *setup)
{
    *ret = (struct list_labels){.setup = setup, .memory.limit = memory_total() / MEMORY_SHARE};
    lock_init(&ret->lock);
}

static void label_free(struct list_label *l)
{
    labels_release(&l->labels);
    run_classes_release(&l->classes);
    free(l->starts);
    run_weights_release(&l->weights);
    free(l->identity);
    free(l->name);
    free(l);
}

void list_labels_release(struct list_labels *all)
{
    for (struct list_label *l = all->first, *next; l; l = next) {
        next = l->next;
        label_free(l);
    }
    for (struct dataset_label *w = all->datasets, *next; w; w = next) {
        next = w->next;
        labels_release(&w->labels);
        field_input_release(&w->input);
        free(w->identity);
        free(w);
    }
    lock_release(&all->lock);
    *all = (struct list_labels){0};
}

struct memory_held list_labels_held(void *owner)
{
    struct list_labels *all = owner;

    return (struct memory_held){.bytes = atomic_load(&all->memory.used),
                                .limit = all->memory.limit};
}

/* ---- the index of a dataset ---- */

static int input_init(struct field_input *ret, const struct dataset *ds, const char *field,
                      enum label_purpose type, struct diag *d)
{
    return type == LABEL_LENGTHS ? length_input_init(ret, ds, field, d)
                                 : field_input_init(ret, ds, field, type, d);
}

static int whole_new(struct list_labels *all, const struct dataset *ds, const char *field,
                     enum label_purpose type, struct dataset_label **ret, struct diag *d)
{
    AUTO_FREE struct dataset_label *w = calloc(1, sizeof(*w));
    AUTO_TEXT struct text t = {0};
    int r = w ? input_init(&w->input, ds, field, type, d) : -ENOMEM;

    if (r == 0)
        r = field_input_identity(&w->input, type, &all->setup->options, &t);
    if (r == 0)
        r = text_finish(&t, &w->identity, NULL);
    if (r < 0)
        return r;
    w->labels = (struct labels){.type = type,
                                .input = &w->input.input,
                                .keep = all->setup->keep,
                                .identity = w->identity,
                                .source = blob_source(ds->blob[0]),
                                .memory = &all->memory};
    snprintf(w->asked, sizeof(w->asked), "%s", field);
    w->next = all->datasets;
    *ret = all->datasets = TAKE_PTR(w);
    return 0;
}

static int whole_of(struct list_labels *all, const struct dataset *ds, const char *field,
                    enum label_purpose type, struct dataset_label **ret, struct diag *d)
{
    for (struct dataset_label *w = all->datasets; w; w = w->next) {
        if (w->input.ds == ds && w->labels.type == type && !strcmp(w->asked, field)) {
            *ret = w;
            return 0;
        }
    }
    return whole_new(all, ds, field, type, ret, d);
}

/* ---- lists that are no runs ---- */

static bool is_run(const struct schedule *s)
{
    return !s->only && !s->plan->splits;
}

#define PIECE 4096 /* places that a thread looks up at once */
#define AHEAD 16   /* places whose memory is asked for before it is read */

/* Values of neighbouring places of the list. */
struct places {
    const struct list_label *l;
    uint64_t first;
    size_t count;
    uint64_t *ret; /* [count] a sample's number, then its value */
};

/* Ask for the memory where the value of a sample begins. */
static void ask_for(const struct list_label *l, const struct label_arrays *a, uint64_t sample)
{
    if (l->type == LABEL_WEIGHTS)
        __builtin_prefetch(&a->sum[sample]);
    else
        __builtin_prefetch(&a->where[sample]);
}

/* The samples of a split are anywhere in the arrays. */
static void list_labels_read_piece(void *ctx, unsigned number)
{
    const struct places *p = ctx;
    const struct label_arrays *a = &p->l->whole->labels.arrays;
    size_t from = (size_t)number * PIECE, n = (size_t)min_u64(p->count - from, PIECE);
    uint64_t *sample = p->ret + from;

    schedule_list(&p->l->schedule, p->first + from, n, sample);
    for (size_t i = 0; i < n; i++)
        sample[i] = min_u64(sample[i], a->n - 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t s = sample[i];

        ask_for(p->l, a, sample[min_u64(i + AHEAD, n - 1)]);
        if (p->l->type == LABEL_WEIGHTS)
            sample[i] = a->sum[s + 1] - a->sum[s];
        else
            ((int64_t *)sample)[i] = list_labels_value_of(a, s);
    }
}

/* Values of places of the list, from the index of the dataset; on all processors, as most of the
 * time is that of the split's permutation. */
static int read_places(const struct label_input *input, struct read_context *rc, uint64_t first,
                       size_t count, void *ret, struct diag *d)
{
    const struct list_label *l =
        (const struct list_label *)(const void *)((const char *)input -
                                                  offsetof(struct list_label, input));
    struct places places = {.l = l, .first = first, .count = count, .ret = ret};

    if (read_cancelled(rc))
        return -EINTR;
    pool_run(l->all->setup->pool, (unsigned)ceil_div(count, PIECE), list_labels_read_piece,
             &places);
    return labels_are_lost(&l->whole->labels)
               ? diag_set(d, -EIO, "%s: its index was cut short", l->whole->input.name)
               : 0;
}

static void name_place(const struct label_input *input, uint64_t place, char *ret, size_t size)
{
    (void)input;
    snprintf(ret, size, "place %llu of the list", (unsigned long long)place);
}

static int add_list(const struct plan_list *only, struct text *t)
{
    AUTO_DIGEST struct digest *digest = NULL;
    uint8_t bytes[DIGEST_BYTES];
    char text[DIGEST_TEXT_SIZE];
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, only->sample, 4 * only->n);
    if (r == 0)
        r = digest_finish(digest, bytes);
    if (r < 0)
        return r;
    digest_text(bytes, text);
    text_add(t, " only %s", text);
    return 0;
}

static int begin_list(struct list_label *l)
{
    const struct schedule *s = &l->schedule;
    AUTO_TEXT struct text t = {0};
    int r = s->only ? add_list(s->only, &t) : 0;

    text_add(&t, " list %llu+%llu %llu+%llu split %d of %s", (unsigned long long)s->taken.start,
             (unsigned long long)s->taken.length, (unsigned long long)s->offset,
             (unsigned long long)s->length, s->plan->splits > 0, l->whole->identity);
    if (r == 0)
        r = text_finish(&t, &l->identity, NULL);
    if (r == 0 && asprintf(&l->name, "%s of the list", l->whole->input.name) < 0) {
        l->name = NULL;
        r = -ENOMEM;
    }
    if (r < 0)
        return r;
    l->input = (struct label_input){.n = s->length,
                                    .are_sums = l->type == LABEL_WEIGHTS,
                                    .read = read_places,
                                    .where = name_place,
                                    .name = l->name};
    l->labels = (struct labels){.type = l->type,
                                .input = &l->input,
                                .keep = l->all->setup->keep,
                                .identity = l->identity,
                                .source = l->whole->labels.source,
                                .memory = &l->all->memory};
    return 0;
}

int list_label_identity(const struct list_label *l, const struct plan_list *only, struct text *t)
{
    int r = only ? add_list(only, t) : 0;

    text_add(t, " of %s", l->whole->identity);
    return r < 0 ? r : t->failed ? -ENOMEM : 0;
}

/* ---- steps ---- */

static int list_labels_finish(struct list_label *l, const struct label_arrays *arrays,
                              uint64_t first)
{
    uint64_t length = l->schedule.length, held = 0;
    int r = l->type == LABEL_CLASSES ? run_classes_init(&l->classes, arrays, first, length, &held)
                                     : run_weights_init(&l->weights, arrays, first, length, &held);

    if (r == -EDOM)
        return diag_set(&l->reason, r,
                        "%s: expected a weight above 0 in the list, got 0 in all %llu",
                        l->whole->input.name, (unsigned long long)length);
    l->held = held;
    atomic_fetch_add(&l->all->memory.used, held);
    return r < 0 ? r : 1;
}

static int list_labels_advance(struct list_label *l, struct read_context *rc)
{
    enum label_purpose type = l->type == LABEL_UNITS ? LABEL_CLASSES : l->type;
    int r = l->whole ? 0 : whole_of(l->all, l->ds, l->field, type, &l->whole, &l->reason);

    if (r == 0)
        r = labels_step(&l->whole->labels, rc, &l->reason);
    if (r == 1 && l->type == LABEL_UNITS)
        return list_labels_make_units(l, &l->whole->labels.arrays);
    if (r == 1 && l->type == LABEL_LENGTHS) {
        l->lengths = (struct mapped_lengths){
            {&list_labels_lengths_ops, l->whole->input.word, l->whole->input.is_micro},
            &l->whole->labels.arrays};
        return 1;
    }
    if (r == 1 && is_run(&l->schedule))
        return list_labels_finish(l, &l->whole->labels.arrays, l->schedule.taken.start);
    if (r == 1 && !l->identity)
        r = begin_list(l);
    else if (r == 1)
        r = labels_step(&l->labels, rc, &l->reason);
    return r == 1 ? list_labels_finish(l, &l->labels.arrays, 0) : r;
}

/* May it be better the next time? */
static bool list_labels_may_pass(int r)
{
    return r == -EREMOTEIO || r == -EINTR || r == -ENOMEM || r == -EIO || r == -EMFILE ||
           r == -ENFILE;
}

/* r: of its last step. */
static void list_labels_settle(struct list_label *l, int r)
{
    LOCK_SCOPE(&l->all->lock);

    atomic_fetch_sub(&l->all->wanted, 1);
    l->state = r == 1 ? READY : list_labels_may_pass(r) ? IDLE : REFUSED;
}

/* The next one that is wanted, in turn. NULL: none is. */
static struct list_label *next_wanted(struct list_labels *all)
{
    LOCK_SCOPE(&all->lock);
    struct list_label *l = all->latest ? all->latest->next : NULL;

    for (unsigned i = 0; i <= all->n; i++) {
        l = l ? l : all->first;
        if (!l || l->state == WANTED)
            break;
        l = l->next;
    }
    return l && l->state == WANTED ? l : NULL;
}

int list_labels_step(struct list_labels *all, struct read_context *rc,
                     const struct dataset **ret_ds, struct diag *d)
{
    struct list_label *l = next_wanted(all);
    int r;

    if (!l)
        return -ENOENT;
    all->latest = l;
    r = list_labels_advance(l, rc);
    if (r < 0 && r != -EAGAIN)
        diag_set(&l->reason, r, "%s: %s", l->field, strerror(-r));
    if (r < 0 && list_labels_may_pass(r))
        diag_set(d, r, "%s", l->reason.text);
    if (r == 0 || list_labels_may_pass(r) || r == -EAGAIN)
        l->reason.set = false;
    if (r == 0 || r == -EAGAIN)
        return r;
    *ret_ds = l->ds;
    list_labels_settle(l, r);
    return list_labels_may_pass(r) ? r : 1;
}

bool list_labels_wanted(struct list_labels *all, const struct dataset *ds)
{
    LOCK_SCOPE(&all->lock);

    for (const struct list_label *l = all->first; l; l = l->next)
        if (l->ds == ds && l->state == WANTED)
            return true;
    return false;
}

bool list_labels_any_wanted(const struct list_labels *all)
{
    return atomic_load(&all->wanted) > 0;
}

/* ---- questions ---- */

static bool list_labels_is_of(const struct list_label *l, const struct dataset *ds,
                              const char *field, enum label_purpose type, const struct schedule *s)
{
    const struct schedule *schedule = &l->schedule;

    return l->ds == ds && l->type == type && schedule->only == s->only &&
           schedule->taken.start == s->taken.start && schedule->taken.length == s->taken.length &&
           schedule->offset == s->offset && schedule->length == s->length &&
           !schedule->plan->splits == !s->plan->splits && !strcmp(l->field, field);
}

static struct list_label *list_labels_find_locked(struct list_labels *all, const struct dataset *ds,
                                                  const char *field, enum label_purpose type,
                                                  const struct schedule *s)
{
    struct list_label *l = all->first;

    lock_assert_held(&all->lock);
    while (l && !list_labels_is_of(l, ds, field, type, s))
        l = l->next;
    return l;
}

static int list_labels_add_locked(struct list_labels *all, const struct dataset *ds,
                                  const char *field, enum label_purpose type,
                                  const struct schedule *s, struct list_label **ret, struct diag *d)
{
    struct list_label *l = all->n < LIST_LABELS_MAX ? calloc(1, sizeof(*l)) : NULL;

    lock_assert_held(&all->lock);
    if (all->n == LIST_LABELS_MAX)
        return diag_set(d, -ENFILE,
                        "this mount has classes or weights of %d lists of samples, and cannot have "
                        "more; mount it again",
                        LIST_LABELS_MAX);
    if (!l)
        return -ENOMEM;
    *l = (struct list_label){
        .all = all, .ds = ds, .type = type, .plan = *s->plan, .schedule = *s, .state = IDLE};
    l->schedule.plan = &l->plan;
    snprintf(l->field, sizeof(l->field), "%s", field);
    *(all->last ? &all->last->next : &all->first) = l;
    all->last = l;
    all->n++;
    *ret = l;
    return 0;
}

static int answer_locked(struct list_label *l, struct plan_data *data, struct diag *d)
{
    lock_assert_held(&l->all->lock);
    switch (l->state) {
    case READY:
        if (l->type == LABEL_UNITS)
            data->units = &l->units;
        else if (l->type == LABEL_LENGTHS)
            data->lengths = &l->lengths.lengths;
        else if (l->type == LABEL_CLASSES)
            data->classes = &l->classes.classes;
        else
            data->weights = &l->weights.weights;
        return 0;
    case REFUSED:
        return diag_set(d, -EINVAL, "%s", l->reason.text);
    case IDLE:
        l->state = WANTED;
        atomic_fetch_add(&l->all->wanted, 1);
        return -EAGAIN;
    default:
        return -EAGAIN;
    }
}

static int get_label(struct list_labels *all, const struct dataset *ds, const char *field,
                     enum label_purpose type, const struct schedule *s, struct plan_data *data,
                     const struct list_label **ret_label, struct diag *d)
{
    struct list_label *l;
    struct field_input input;
    int r = input_init(&input, ds, field, type == LABEL_UNITS ? LABEL_CLASSES : type, d);

    if (r < 0)
        return r;
    lock_take(&all->lock);
    l = list_labels_find_locked(all, ds, field, type, s);
    if (!l)
        r = list_labels_add_locked(all, ds, field, type, s, &l, d);
    if (r == 0)
        r = answer_locked(l, data, d);
    lock_drop(&all->lock);
    if (r == 0 && ret_label)
        *ret_label = l;
    return r;
}

int list_labels_get(struct list_labels *all, const struct dataset *ds, const struct plan *plan,
                    struct plan_data *data, const struct list_label **ret_label, struct diag *d)
{
    bool by_classes;
    const char *field = plan_field(plan, ds->label, &by_classes);
    struct schedule s;
    int r;

    if (ret_label)
        *ret_label = NULL;
    if (!field)
        return 0;
    schedule_init_data(&s, plan, data);
    r = schedule_check_list(&s, d);
    if (r == 0 && !s.length)
        r = diag_set(d, -EINVAL, "draw: expected a list that has samples, got none");
    return r < 0 ? r
                 : get_label(all, ds, field, by_classes ? LABEL_CLASSES : LABEL_WEIGHTS, &s, data,
                             ret_label, d);
}

/* The stored order: every sample once, without a list. */
static int get_stored(struct list_labels *all, const struct dataset *ds, const char *field,
                      enum label_purpose type, struct plan_data *data,
                      const struct list_label **ret_label, struct diag *d)
{
    static const struct plan stored_order = {.batch = 1, .parts = 1, .ranks = 1};
    struct schedule s;

    schedule_init(&s, &stored_order, ds->samples, NULL);
    return get_label(all, ds, field, type, &s, data, ret_label, d);
}

int list_labels_units(struct list_labels *all, const struct dataset *ds, const char *field,
                      struct plan_data *data, const struct list_label **ret_label, struct diag *d)
{
    return get_stored(all, ds, field, LABEL_UNITS, data, ret_label, d);
}

int list_labels_lengths(struct list_labels *all, const struct dataset *ds, const char *word,
                        struct plan_data *data, const struct list_label **ret_label, struct diag *d)
{
    return get_stored(all, ds, word, LABEL_LENGTHS, data, ret_label, d);
}

bool list_label_is_lost(const struct list_label *l)
{
    return labels_are_lost(&l->whole->labels) || labels_are_lost(&l->labels);
}

/* ---- commands ---- */

/* Another process is making it. */
static void wait_a_while(void)
{
    pthread_cond_t never;
    struct lock lock;

    lock_init(&lock);
    condition_init(&never);
    lock_take(&lock);
    clock_wait(clock_or_real(NULL), &lock, &never, monotonic_ns() + AGAIN_NS);
    lock_drop(&lock);
    pthread_cond_destroy(&never);
    lock_release(&lock);
}

int list_labels_go_on(struct list_labels *all, struct diag *d)
{
    const struct dataset *ds;
    int r = list_labels_step(all, NULL, &ds, d);

    if (r == -EAGAIN)
        wait_a_while();
    return r < 0 && r != -EAGAIN ? r : 0;
}
