#include "fs/tree/length_plans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/index_store.h"
#include "base/memory.h"
#include "base/scope.h"
#include "format/core/format.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/list_text.h"
#include "fs/tree/list_labels.h"

#define KIND         "batches"
#define SUMS_MAGIC   "epochsum"
#define SUMS_VERSION 1
#define SUMS_ORDER   UINT32_C(0x01020304) /* numbers are in the order of the machine */
#define LISTS_SHARE  8                    /* of the machine's memory, one: for lists of length= */

struct length_plan {
    struct length_plan *next;
    const struct dataset *ds;
    const struct format_setup *setup;
    char name[PLAN_NAME_SIZE];       /* without what does not matter for the batches of all ranks */
    char *identity;                  /* without the epoch; owned, like: */
    const struct list_label **label; /* [n_labels] of the lengths */
    unsigned n_labels;
    struct length_batches *cuts;
};

/* The start of kept sums; the sums follow. docs/spec/cache-format.md has the bytes. */
struct sums_head {
    uint8_t magic[8];
    uint32_t version, order;
    uint64_t n;
    uint32_t crc; /* CRC-32C of the sums */
    uint32_t zero;
};

/* The samples that length= leaves. */
struct length_list {
    struct length_list *next;
    const struct dataset *ds;
    char name[PLAN_NAME_SIZE]; /* of the plan that has those words alone */
    struct plan_list list;
};

void length_plans_init(struct length_plans *ret, const struct format_setup *setup)
{
    *ret = (struct length_plans){.setup = setup, .list_bytes.limit = memory_total() / LISTS_SHARE};
    lock_init(&ret->lock);
}

static void length_plan_free(struct length_plan *p)
{
    length_batches_free(p->cuts);
    free(p->identity);
    free(p->label);
    free(p);
}

static void length_list_free(struct length_list **l)
{
    if (*l)
        list_release(&(*l)->list);
    free(*l);
}

void length_plans_release(struct length_plans *all)
{
    for (struct length_plan *p = all->first, *next; p; p = next) {
        next = p->next;
        length_plan_free(p);
    }
    for (struct length_list *l = all->lists, *next; l; l = next) {
        next = l->next;
        length_list_free(&l);
    }
    lock_release(&all->lock);
    *all = (struct length_plans){0};
}

/* ---- kept sums ---- */

static int add_epoch(const struct length_plan *p, uint64_t epoch, struct text *t)
{
    text_add(t, "%s epoch %llu", p->identity, (unsigned long long)epoch);
    return t->failed ? -ENOMEM : 0;
}

static int load_sums(void *ctx, uint64_t epoch, size_t n, uint32_t *ret)
{
    const struct length_plan *p = ctx;
    AUTO_TEXT struct text identity = {0};
    struct kept_index kept;
    struct sums_head head;
    int r = add_epoch(p, epoch, &identity);

    if (r == 0)
        r = index_store_load(p->setup->keep, KIND, identity.data, &kept);
    if (r < 0)
        return r;
    r = -EBADMSG;
    if (kept.size == sizeof(head) + 4 * n) {
        memcpy(&head, kept.bytes, sizeof(head));
        memcpy(ret, kept.bytes + sizeof(head), 4 * n);
        if (!memcmp(head.magic, SUMS_MAGIC, sizeof(head.magic)) && head.version == SUMS_VERSION &&
            head.order == SUMS_ORDER && head.n == n && head.crc == crc32c(0, ret, 4 * n))
            r = 0;
    }
    kept_index_release(&kept);
    if (r < 0)
        index_store_remove(p->setup->keep, KIND, identity.data);
    return r;
}

static void remove_sums(void *ctx, uint64_t epoch)
{
    const struct length_plan *p = ctx;
    AUTO_TEXT struct text identity = {0};

    if (add_epoch(p, epoch, &identity) == 0)
        index_store_remove(p->setup->keep, KIND, identity.data);
}

/* What cannot be kept, or was counted with an index that was cut short, is counted again by the
 * next mount. */
static void save_sums(void *ctx, uint64_t epoch, size_t n, const uint32_t *sums)
{
    const struct length_plan *p = ctx;
    AUTO_TEXT struct text identity = {0};
    struct sums_head head = {
        .version = SUMS_VERSION, .order = SUMS_ORDER, .n = n, .crc = crc32c(0, sums, 4 * n)};
    const struct iovec pieces[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)sums, 4 * n}};
    struct kept_index kept;
    struct diag d = DIAG_INIT;

    for (unsigned i = 0; i < p->n_labels; i++)
        if (list_label_is_lost(p->label[i]))
            return;
    memcpy(head.magic, SUMS_MAGIC, sizeof(head.magic));
    if (add_epoch(p, epoch, &identity) == 0 &&
        index_store_save(p->setup->keep, KIND, identity.data, blob_source(p->ds->blob[0]), pieces,
                         2, &kept, &d) == 0)
        kept_index_release(&kept);
}

/* ---- plans ---- */

/* The plan of the batches of all ranks. With a fixed number of samples, tail=drop has one less. */
static void without_rank(const struct plan *plan, struct plan *ret)
{
    *ret = *plan;
    ret->rank = 0;
    ret->ranks = 1;
    if (plan->budget || plan->tail == TAIL_WRAP)
        ret->tail = TAIL_KEEP;
    ret->picture_height = ret->picture_width = ret->picture_side = 0;
    ret->augment[0] = '\0';
}

static struct length_plan *length_plans_find_locked(struct length_plans *all,
                                                    const struct dataset *ds, const char *name)
{
    struct length_plan *p = all->first;

    lock_assert_held(&all->lock);
    while (p && (p->ds != ds || strcmp(p->name, name) != 0))
        p = p->next;
    return p;
}

static int length_plan_new(struct length_plans *all, const struct dataset *ds,
                           const struct plan *plan, const struct plan_data *data,
                           const struct length_source *source, struct length_plan **ret,
                           struct diag *d)
{
    struct length_plan *p = calloc(1, sizeof(*p));
    AUTO_TEXT struct text t = {0};
    int r;

    if (!p)
        return -ENOMEM;
    p->ds = ds;
    p->setup = all->setup;
    plan_name(plan, p->name);
    p->label = malloc(source->n * sizeof(*p->label));
    if (p->label)
        memcpy(p->label, source->label, source->n * sizeof(*p->label));
    p->n_labels = source->n;
    text_add(&t, "length batches %d %s %llu", LENGTH_BATCHES_VERSION, p->name,
             (unsigned long long)data->samples);
    r = t.failed || !p->label ? -ENOMEM : 0;
    text_add(&t, " %s", source->text);
    for (unsigned i = 0; i < source->n && r == 0; i++)
        r = list_label_identity(source->label[i], source->only[i], &t);
    if (r == 0)
        r = text_finish(&t, &p->identity, NULL);
    if (r == 0)
        r = length_batches_new(plan, data, all->setup->pool, &p->cuts, d);
    if (r < 0) {
        length_plan_free(p);
        return r;
    }
    length_batches_keep(p->cuts, &(struct length_keeper){load_sums, save_sums, remove_sums, p});
    *ret = p;
    return 0;
}

static struct length_plan *find_plan(struct length_plans *all, const struct dataset *ds,
                                     const char *name)
{
    LOCK_SCOPE(&all->lock);

    return length_plans_find_locked(all, ds, name);
}

/* Plans are made with no lock held. The one that another thread has made meanwhile, or else this
 * one; NULL: there is no room. */
static struct length_plan *length_plans_add(struct length_plans *all, struct length_plan *p)
{
    LOCK_SCOPE(&all->lock);
    struct length_plan *found = length_plans_find_locked(all, p->ds, p->name);

    if (found || all->n == LENGTH_PLANS_MAX)
        return found;
    p->next = all->first;
    all->first = p;
    all->n++;
    return p;
}

int length_plans_get(struct length_plans *all, const struct dataset *ds, const struct plan *plan,
                     struct plan_data *data, const struct length_source *source, struct diag *d)
{
    struct length_plan *p, *made;
    char name[PLAN_NAME_SIZE];
    struct plan whole;
    int r;

    without_rank(plan, &whole);
    plan_name(&whole, name);
    p = find_plan(all, ds, name);
    if (!p) {
        r = length_plan_new(all, ds, &whole, data, source, &made, d);
        if (r < 0)
            return r;
        p = length_plans_add(all, made);
        if (p != made)
            length_plan_free(made);
    }
    if (!p)
        return diag_set(d, -ENFILE,
                        "this mount has batches by length of %d plans, and cannot have more; mount "
                        "it again",
                        LENGTH_PLANS_MAX);
    data->cuts = length_batches_cuts(p->cuts);
    return 0;
}

/* ---- length= ---- */

#define AT_ONCE 1024

/* Write the samples that are in the range to ret, whose schedule has only= and take=. */
static int select_lengths(const struct schedule *s, const struct plan *plan,
                          const struct plan_lengths *lengths, uint32_t *ret, uint64_t *ret_n,
                          struct diag *d)
{
    uint64_t unit = lengths->is_micro ? 1 : 1000000, sample[AT_ONCE];
    uint64_t from = plan->length_from / unit, to = plan->length_to / unit;
    uint32_t length[AT_ONCE];

    *ret_n = 0;
    if (plan->length_from % unit || plan->length_to % unit)
        return diag_set(d, -EINVAL, "length: expected whole numbers of %s, got a fraction",
                        lengths->word);
    for (uint64_t at = 0, n; at < s->length; at += n) {
        n = min_u64(AT_ONCE, s->length - at);
        schedule_list(s, at, (size_t)n, sample);
        lengths->ops->get(lengths, (size_t)n, sample, length);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t counted = max_u64(length[i], 1);

            if (counted >= from && counted < to)
                ret[(*ret_n)++] = (uint32_t)sample[i];
        }
    }
    return *ret_n ? 0
                  : diag_set(d, -EINVAL,
                             "length: expected a sample of such a length, got none of "
                             "%llu samples",
                             (unsigned long long)s->length);
}

static int length_list_make(const struct plan *plan, const struct plan_data *data,
                            struct plan_list *ret, struct diag *d)
{
    struct plan before = *plan;
    AUTO_FREE uint32_t *kept = NULL;
    uint32_t *fitted;
    struct schedule s;
    uint64_t n;
    int r;

    before.ranges = false;
    schedule_init_data(&s, &before, data);
    kept = s.length < PLAN_LIST_MOST ? malloc((s.length + 1) * sizeof(*kept)) : NULL;
    if (!kept)
        return s.length < PLAN_LIST_MOST
                   ? -ENOMEM
                   : diag_set(d, -EINVAL, "length: expected fewer than 2^32 samples, got %llu",
                              (unsigned long long)s.length);
    r = select_lengths(&s, plan, data->lengths, kept, &n, d);
    if (r < 0)
        return r;
    fitted = memory_array(n, sizeof(*fitted));
    if (!fitted)
        return -ENOMEM;
    memcpy(fitted, kept, n * sizeof(*fitted));
    r = list_make(fitted, n, true, ret);
    if (r < 0)
        free(fitted);
    return r;
}

static const struct length_list *find_list_locked(struct length_plans *all,
                                                  const struct dataset *ds, const char *name)
{
    const struct length_list *l = all->lists;

    lock_assert_held(&all->lock);
    while (l && (l->ds != ds || strcmp(l->name, name) != 0))
        l = l->next;
    return l;
}

static bool has_room_locked(const struct length_plans *all, uint64_t bytes)
{
    lock_assert_held(&all->lock);
    return all->n_lists < LENGTH_PLANS_MAX &&
           bytes <= all->list_bytes.limit - all->list_bytes.bytes;
}

/* The list of that name, if there is one. 0, or -ENFILE: there is none, and no room for another. */
static int find_list(struct length_plans *all, const struct dataset *ds, const char *name,
                     const struct length_list **ret)
{
    LOCK_SCOPE(&all->lock);

    *ret = find_list_locked(all, ds, name);
    return *ret || has_room_locked(all, sizeof(uint32_t)) ? 0 : -ENFILE;
}

/* Make a list, with no lock held, as it looks at all samples. Another thread may make the same one;
 * then the first is kept. */
static int length_plans_make(struct length_plans *all, const struct dataset *ds,
                             const struct plan *words, const char *name,
                             const struct plan_data *data, const struct length_list **ret,
                             struct diag *d)
{
    AUTO(length_list_free) struct length_list *l = calloc(1, sizeof(*l));
    int r = l ? length_list_make(words, data, &l->list, d) : -ENOMEM;
    LOCK_SCOPE(&all->lock);

    if (r < 0)
        return r;
    *ret = find_list_locked(all, ds, name);
    if (*ret)
        return 0;
    if (!has_room_locked(all, list_bytes(&l->list)))
        return -ENFILE;
    l->ds = ds;
    snprintf(l->name, sizeof(l->name), "%s", name);
    l->next = all->lists;
    all->lists = l;
    all->n_lists++;
    all->list_bytes.bytes += list_bytes(&l->list);
    *ret = TAKE_PTR(l);
    return 0;
}

int length_plans_list(struct length_plans *all, const struct dataset *ds, const struct plan *plan,
                      struct plan_data *data, struct diag *d)
{
    struct plan words = {.parts = 1, .ranks = 1};
    const struct length_list *found;
    char name[PLAN_NAME_SIZE];
    int r;

    memcpy(words.only, plan->only, sizeof(words.only));
    memcpy(words.range_length, plan_range_length(plan), sizeof(words.range_length));
    words.takes = plan->takes;
    words.take_from = plan->take_from;
    words.take_to = plan->take_to;
    words.ranges = true;
    words.length_from = plan->length_from;
    words.length_to = plan->length_to;
    plan_name(&words, name);
    r = find_list(all, ds, name, &found);
    if (r == 0 && !found)
        r = length_plans_make(all, ds, &words, name, data, &found, d);
    if (r == -ENFILE)
        return diag_set(d, r,
                        "length: expected at most %d lists of length= in a mount, of %llu MiB "
                        "together, got more; mount it again",
                        LENGTH_PLANS_MAX, (unsigned long long)(all->list_bytes.limit >> 20));
    if (r == 0)
        data->only = &found->list;
    return r;
}

/* ---- counting ---- */

/* Plans are only added, in front. */
static struct length_plan *length_plans_first(struct length_plans *all)
{
    LOCK_SCOPE(&all->lock);

    return all->first;
}

int length_plans_step(struct length_plans *all, const struct dataset **ret_ds)
{
    int r = -ENOENT;

    for (struct length_plan *p = length_plans_first(all); p; p = p->next) {
        int step = length_batches_wants(p->cuts) ? length_batches_step(p->cuts) : -ENOENT;

        if (step == -ENOENT)
            continue;
        *ret_ds = p->ds;
        if (step >= 0)
            return 0;
        r = step; /* another plan may need less memory */
    }
    return r;
}

bool length_plans_wanted(struct length_plans *all, const struct dataset *ds)
{
    for (struct length_plan *p = length_plans_first(all); p; p = p->next)
        if ((!ds || p->ds == ds) && length_batches_wants(p->cuts))
            return true;
    return false;
}

struct memory_held length_plans_held(void *owner)
{
    struct length_plans *plans = owner;
    struct memory_held all;

    lock_take(&plans->lock);
    all = plans->list_bytes;
    lock_drop(&plans->lock);
    for (struct length_plan *p = length_plans_first(plans); p; p = p->next) {
        struct memory_held held = length_batches_held(p->cuts);

        all.bytes += held.bytes;
        all.limit += held.limit;
    }
    return all;
}
