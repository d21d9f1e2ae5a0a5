/* The plans and epochs that were opened: the only memory that the tree takes while it serves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/scope.h"
#include "fs/tree/mixes.h"
#include "fs/tree/parts.h"

int tree_schedule(const struct catalog *catalog, const struct dataset *ds, const struct plan *plan,
                  struct schedule *ret, const struct list_label **ret_label, struct diag *d)
{
    struct plan_data data = {.samples = ds->samples};
    struct plan_range part;
    int r = 0;

    if (ds->ops && ds->ops->share) {
        ds->ops->share(ds, plan->part, plan->parts, &part.start, &part.length);
        data.part = &part;
    }
    if (ret_label)
        *ret_label = NULL;
    if (plan->only[0] && catalog->tools)
        r = named_lists_get(&catalog->tools->lists, ds, plan->only, &data.only, d);
    if (r == 0 && catalog->tools)
        r = list_labels_get(&catalog->tools->labels, ds, plan, &data, ret_label, d);
    if (r < 0)
        return r;
    schedule_init_data(ret, plan, &data);
    return schedule_check(ret, d);
}

int tree_schedule_item(const struct catalog *catalog, const struct catalog_item *item,
                       const struct plan *plan, struct schedule *ret,
                       const struct list_label **ret_label, struct diag *d)
{
    int r;

    if (!item->mixture)
        return tree_schedule(catalog, item->ds, plan, ret, ret_label, d);
    *ret_label = NULL;
    r = mixture_check_plan(item->mixture, plan, d);
    if (r < 0)
        return r;
    schedule_init_data(
        ret, plan, &(struct plan_data){.samples = item->ds->samples, .own = &item->mixture->own});
    return schedule_check(ret, d);
}

static int plan_entry_init(struct plan_entry *ret, const struct catalog *catalog,
                           const struct catalog_item *item, const struct plan *plan, struct diag *d)
{
    *ret = (struct plan_entry){.item = item, .plan = *plan};
    plan_name(plan, ret->name);
    return tree_schedule_item(catalog, item, &ret->plan, &ret->schedule, &ret->label, d);
}

/* Make entry the next plan of its dataset and give it a span. */
static int plan_add_locked(struct tree *tree, struct plan_entry *entry)
{
    struct item_plans *plans = &tree->plans[entry->item - tree->catalog->item];
    struct span want = span_of_plan(entry, 0), span;
    int r;

    lock_assert_held(&tree->lock);
    if (array_capacity(&plans->entry, plans->n, sizeof(struct plan_entry *)) < 0)
        return -ENOMEM;
    r = spans_take(&tree->spans, &want, &span);
    if (r < 0)
        return r;
    entry->ino = span_ino(
        &span, &(struct span_place){.folder = span_self_folder(entry->item), .file = SELF_PLAN});
    plans->entry[plans->n++] = entry;
    tree->n_plans++;
    return 0;
}

int tree_open_plan(struct tree *tree, const struct catalog_item *item, const struct plan *plan,
                   struct plan_entry **ret, bool *ret_new, struct diag *d)
{
    AUTO_FREE struct plan_entry *entry = calloc(1, sizeof(*entry));
    struct span want, span;
    bool is_new;
    int r;

    if (!entry)
        return -ENOMEM;
    r = plan_entry_init(entry, tree->catalog, item, plan, d);
    if (r < 0)
        return r;
    want = span_of_plan(entry, 0);
    lock_take(&tree->lock);
    r = spans_find(&tree->spans, &want, &span);
    is_new = r == -ENOENT;
    if (is_new)
        r = plan_add_locked(tree, entry);
    lock_drop(&tree->lock);
    if (r < 0)
        return r;
    *ret = is_new ? TAKE_PTR(entry) : span.plan;
    *ret_new = is_new;
    return 0;
}

static bool epoch_is_listed(const struct plan_entry *entry, uint64_t epoch)
{
    if (epoch < entry->listed_epochs)
        return true;
    for (size_t i = 0; i < entry->n_epochs; i++)
        if (entry->epoch[i] == epoch)
            return true;
    return false;
}

int tree_open_epoch(struct tree *tree, struct plan_entry *entry, uint64_t epoch,
                    struct span *ret_span, bool *ret_new)
{
    struct span want = span_of_plan(entry, epoch);
    bool is_new = false;
    int r;

    lock_take(&tree->lock);
    r = spans_take(&tree->spans, &want, ret_span);
    /* Without memory the epoch is opened, but not listed. */
    if (r == 0 && tree->n_epochs < PLANS_MAX && !epoch_is_listed(entry, epoch) &&
        array_capacity(&entry->epoch, entry->n_epochs, sizeof(epoch)) == 0) {
        entry->epoch[entry->n_epochs++] = epoch;
        tree->n_epochs++;
        is_new = true;
    }
    lock_drop(&tree->lock);
    if (r == 0)
        *ret_new = is_new;
    return r;
}

const struct plan_entry *tree_unannounced(struct tree *tree, const struct catalog_item *item)
{
    const struct item_plans *plans = &tree->plans[item - tree->catalog->item];
    LOCK_SCOPE(&tree->lock);

    for (size_t i = 0; i < plans->n; i++) {
        if (plans->entry[i]->of_options != PLAN_UNANNOUNCED)
            continue;
        plans->entry[i]->of_options = PLAN_ANNOUNCED;
        return plans->entry[i];
    }
    return NULL;
}

/* At most: an array that grows has up to twice as many places as elements. */
static uint64_t bytes_of(size_t plans, size_t spans, size_t epochs)
{
    return plans * (sizeof(struct plan_entry) + 2 * sizeof(struct plan_entry *)) +
           2 * spans * sizeof(struct span) + 2 * epochs * sizeof(uint64_t);
}

struct memory_held tree_plans_held(void *owner)
{
    struct tree *tree = owner;
    LOCK_SCOPE(&tree->lock);

    return (struct memory_held){.bytes = bytes_of(tree->n_plans, tree->spans.n, tree->n_epochs),
                                .limit = bytes_of(PLANS_MAX, tree->spans.max, PLANS_MAX)};
}
