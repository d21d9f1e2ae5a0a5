#include "fs/tree/length_plans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/index_store.h"
#include "format/core/format.h"
#include "fs/plan/length_batches.h"
#include "fs/tree/list_labels.h"

#define KIND         "batches"
#define SUMS_MAGIC   "epochsum"
#define SUMS_VERSION 1
#define SUMS_ORDER   UINT32_C(0x01020304) /* numbers are in the order of the machine */

struct length_plan {
    struct length_plan *next;
    const struct dataset *ds;
    const struct format_setup *setup;
    char name[PLAN_NAME_SIZE]; /* without what does not matter for the batches of all ranks */
    char *identity;            /* without the epoch; owned */
    struct length_batches *cuts;
};

/* The start of kept sums; the sums follow. docs/cache-format.md has the bytes. */
struct sums_head {
    uint8_t magic[8];
    uint32_t version, order;
    uint64_t n;
    uint32_t crc; /* CRC-32C of the sums */
    uint32_t zero;
};

void length_plans_init(struct length_plans *ret, const struct format_setup *setup)
{
    *ret = (struct length_plans){.setup = setup};
    lock_init(&ret->lock);
}

static void length_plan_free(struct length_plan *p)
{
    length_batches_free(p->cuts);
    free(p->identity);
    free(p);
}

void length_plans_release(struct length_plans *all)
{
    for (struct length_plan *p = all->first, *next; p; p = next) {
        next = p->next;
        length_plan_free(p);
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

/* What cannot be kept is counted again by the next mount. */
static void save_sums(void *ctx, uint64_t epoch, size_t n, const uint32_t *sums)
{
    const struct length_plan *p = ctx;
    AUTO_TEXT struct text identity = {0};
    struct sums_head head = {
        .version = SUMS_VERSION, .order = SUMS_ORDER, .n = n, .crc = crc32c(0, sums, 4 * n)};
    const struct iovec pieces[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)sums, 4 * n}};
    struct kept_index kept;
    struct diag d = DIAG_INIT;

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
                           const struct list_label *label, struct length_plan **ret, struct diag *d)
{
    struct length_plan *p = calloc(1, sizeof(*p));
    AUTO_TEXT struct text t = {0};
    int r;

    if (!p)
        return -ENOMEM;
    p->ds = ds;
    p->setup = all->setup;
    plan_name(plan, p->name);
    text_add(&t, "length batches %d %s %llu", LENGTH_BATCHES_VERSION, p->name,
             (unsigned long long)data->samples);
    r = list_label_identity(label, data->only, &t);
    if (r == 0)
        r = text_finish(&t, &p->identity, NULL);
    if (r == 0)
        r = length_batches_new(plan, data, all->setup->pool, &p->cuts, d);
    if (r < 0) {
        length_plan_free(p);
        return r;
    }
    length_batches_keep(p->cuts, &(struct length_keeper){load_sums, save_sums, p});
    *ret = p;
    return 0;
}

int length_plans_get(struct length_plans *all, const struct dataset *ds, const struct plan *plan,
                     struct plan_data *data, const struct list_label *label, struct diag *d)
{
    struct length_plan *p = NULL;
    char name[PLAN_NAME_SIZE];
    struct plan whole;
    int r = 0;
    LOCK_SCOPE(&all->lock);

    without_rank(plan, &whole);
    plan_name(&whole, name);
    p = length_plans_find_locked(all, ds, name);
    if (!p && all->n == LENGTH_PLANS_MAX)
        return diag_set(d, -ENFILE,
                        "this mount has batches by length of %d plans, and cannot have more; mount "
                        "it again",
                        LENGTH_PLANS_MAX);
    if (!p) {
        r = length_plan_new(all, ds, &whole, data, label, &p, d);
        if (r < 0)
            return r;
        p->next = all->first;
        all->first = p;
        all->n++;
    }
    data->cuts = length_batches_cuts(p->cuts);
    return 0;
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
    for (struct length_plan *p = length_plans_first(all); p; p = p->next) {
        int r;

        if (!length_batches_wants(p->cuts))
            continue;
        r = length_batches_step(p->cuts);
        *ret_ds = p->ds;
        return r == 1 ? 0 : r;
    }
    return -ENOENT;
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
    struct memory_held all = {0};

    for (struct length_plan *p = length_plans_first(owner); p; p = p->next) {
        struct memory_held held = length_batches_held(p->cuts);

        all.bytes += held.bytes;
        all.limit += held.limit;
    }
    return all;
}
