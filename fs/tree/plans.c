/* The plans and epochs that were opened: the only memory that the tree takes while it serves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/scope.h"
#include "format/augment/fields.h"
#include "format/core/plan_fields.h"
#include "fs/tree/mix_lengths.h"
#include "fs/tree/mixes.h"
#include "fs/tree/parts.h"

int tree_schedule_item(const struct catalog *catalog, const struct catalog_item *item,
                       const struct plan *plan, struct schedule *ret,
                       struct plan_labels *ret_labels, struct diag *d)
{
    const struct plan_list *only[MIX_SOURCES_MAX];
    struct plan_data data;
    int r;

    if (!item->mixture)
        return tree_schedule(catalog, item->ds, plan, ret, ret_labels, d);
    *ret_labels = (struct plan_labels){0};
    r = mixture_check_plan(item->mixture, plan, d);
    if (r < 0)
        return r;
    data = (struct plan_data){.samples = item->ds->samples,
                              .dataset_order = &item->mixture->dataset_order};
    if (plan_is_by_length(plan) && item->mixture->tools) {
        for (unsigned i = 0; i < item->mixture->order->n; i++)
            only[i] = item->mixture->order->list[i].schedule.only;
        r = mix_lengths_get(item->mixture, plan->length, &data, &ret_labels->of_source, d);
        if (r == 0)
            r = length_plans_get(&catalog->tools->lengths, item->ds, plan, &data,
                                 &(struct length_source){ret_labels->of_source, only,
                                                         item->mixture->spec->n_sources,
                                                         item->mixture->spec->text},
                                 d);
        if (r < 0)
            return r;
        ret_labels->n_sources = item->mixture->spec->n_sources;
    }
    schedule_init_data(ret, plan, &data);
    return schedule_check(ret, d);
}

/* The recipe of that name; NULL: there is none, and d lists all names. */
static const struct recipe *plan_recipe(const struct catalog *catalog, const char *name,
                                        struct diag *d)
{
    const struct augment_options *options = catalog->tools ? catalog->tools->augment.options : NULL;
    AUTO_TEXT struct text names = {0};

    for (size_t i = 0; options && i < options->n; i++) {
        if (!strcmp(options->recipe[i].name, name))
            return &options->recipe[i].recipe;
        text_add(&names, "%s%s", i ? ", " : "", options->recipe[i].name);
    }
    diag_set(d, -EINVAL,
             "augment: expected a recipe that augment=NAME=WORDS gives to the mount%s%s, "
             "got '%s'",
             names.data ? ": " : "", names.data ? names.data : "", name);
    return NULL;
}

/* How its pictures are made. 0, or -EINVAL with the reason in d. */
static int plan_entry_set_pictures(struct plan_entry *entry, const struct catalog *catalog,
                                   struct diag *d)
{
    const struct plan *plan = &entry->plan;
    const struct dataset *ds = entry->item->ds;
    const struct recipe *recipe = NULL;
    struct picture_plan *p = &entry->pictures;

    entry->makes_pictures = true;
    *p = (struct picture_plan){.height = (uint32_t)plan->picture_height,
                               .width = (uint32_t)plan->picture_width,
                               .short_side = (uint32_t)plan->picture_side,
                               .seed = plan->seed};
    memcpy(p->erased, normalize_erased, sizeof(p->erased));
    if (catalog->tools && catalog->tools->augment.options->normalize.channels)
        memcpy(p->erased, catalog->tools->augment.options->normalize.erased, sizeof(p->erased));
    if (!p->height && ds->pictures && catalog->tools) { /* the option's size */
        p->height = catalog->tools->setup.options.picture_height;
        p->width = catalog->tools->setup.options.picture_width;
    }
    if (plan->augment[0]) {
        recipe = plan_recipe(catalog, plan->augment, d);
        if (!recipe)
            return -EINVAL;
        p->recipe = *recipe;
    }
    if (p->short_side && p->recipe.part == RECIPE_RRC)
        return diag_set(d, -EINVAL,
                        "picture: 'of%u' has no meaning with rrc, which scales a part of its own; "
                        "use picture=%ux%u",
                        p->short_side, p->height, p->width);
    return augment_check(ds, p, d);
}

static int plan_entry_init(struct plan_entry *ret, const struct catalog *catalog,
                           const struct catalog_item *item, const struct plan *plan, struct diag *d)
{
    *ret = (struct plan_entry){.item = item, .plan = *plan};
    plan_name(plan, ret->name);
    plan_fields_units(item->ds, plan->unit, &ret->units);
    if (plan_makes_pictures(plan)) {
        int r = plan_entry_set_pictures(ret, catalog, d);

        if (r < 0)
            return r;
    }
    return tree_schedule_item(catalog, item, &ret->plan, &ret->schedule, &ret->labels, d);
}

/* What that user has opened; NULL: nothing yet. */
static struct user_plans *find_user_locked(struct tree *tree, uid_t user)
{
    lock_assert_held(&tree->lock);
    for (size_t i = 0; i < tree->n_users; i++)
        if (tree->user[i].user == user)
            return &tree->user[i];
    return NULL;
}

/* May a user who has so many have one more? A part is kept for each user, and what is left of the
 * others serves them all. */
static bool plans_may_share(const struct shared_plans *shared, size_t has)
{
    const size_t unshared = PLANS_MAX - PLANS_MAX / 4 - PLANS_USERS * PLANS_USER;

    if (has < PLANS_USER)
        return shared->parts < PLANS_USERS * PLANS_USER;
    return has - PLANS_USER < unshared - shared->more;
}

static void plans_share(struct shared_plans *shared, size_t *has)
{
    if ((*has)++ < PLANS_USER)
        shared->parts++;
    else
        shared->more++;
}

/* The user, who is not the owner, added if need be. NULL: no memory. */
static struct user_plans *add_user_locked(struct tree *tree, uid_t user)
{
    struct user_plans *found;

    lock_assert_held(&tree->lock);
    found = find_user_locked(tree, user);
    if (found || array_capacity(&tree->user, tree->n_users, sizeof(*tree->user)) < 0)
        return found;
    tree->user[tree->n_users] = (struct user_plans){.user = user};
    return &tree->user[tree->n_users++];
}

/* spans_take() for a user. */
static int take_span_locked(struct tree *tree, const struct span *wanted, uid_t user,
                            struct span *ret, struct diag *d)
{
    const struct user_plans *had;
    struct user_plans *taken = NULL;
    int r;

    lock_assert_held(&tree->lock);
    r = spans_find(&tree->spans, wanted, ret);
    if (r == 0)
        return 0;
    if (tree->spans.n >= tree->spans.max)
        return -ENFILE;
    had = user == TREE_OWNER ? NULL : find_user_locked(tree, user);
    if (user != TREE_OWNER && !plans_may_share(&tree->spans_shared, had ? had->spans : 0))
        return diag_set(
            d, -ENFILE,
            "user %u has opened %zu plans and ranges of epochs of this mount, and cannot "
            "open more, because the rest is for other users; mount it as that user",
            (unsigned)user, had ? had->spans : 0);
    if (user != TREE_OWNER && !(taken = add_user_locked(tree, user)))
        return -ENOMEM;
    r = spans_take(&tree->spans, wanted, ret);
    if (r == 0 && taken)
        plans_share(&tree->spans_shared, &taken->spans);
    return r;
}

/* Make entry the next plan of its dataset and give it a span. */
static int plan_add_locked(struct tree *tree, struct plan_entry *entry, uid_t user, struct diag *d)
{
    struct item_plans *plans = &tree->plans[entry->item - tree->catalog->item];
    struct span wanted = span_of_plan(entry, 0), span;
    int r;

    lock_assert_held(&tree->lock);
    if (array_capacity(&plans->entry, plans->n, sizeof(struct plan_entry *)) < 0)
        return -ENOMEM;
    r = take_span_locked(tree, &wanted, user, &span, d);
    if (r < 0)
        return r;
    entry->ino = span_ino(
        &span, &(struct span_place){.folder = span_self_folder(entry->item), .file = SELF_PLAN});
    plans->entry[plans->n++] = entry;
    tree->n_plans++;
    return 0;
}

int tree_open_plan(struct tree *tree, const struct catalog_item *item, const struct plan *plan,
                   uid_t user, struct plan_entry **ret, bool *ret_new, struct diag *d)
{
    AUTO_FREE struct plan_entry *entry = calloc(1, sizeof(*entry));
    struct span wanted, span;
    bool is_new;
    int r;

    if (!entry)
        return -ENOMEM;
    r = plan_entry_init(entry, tree->catalog, item, plan, d);
    if (r < 0)
        return r;
    wanted = span_of_plan(entry, 0);
    lock_take(&tree->lock);
    r = spans_find(&tree->spans, &wanted, &span);
    is_new = r == -ENOENT;
    if (is_new)
        r = plan_add_locked(tree, entry, user, d);
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

/* Without memory an epoch is opened, but not listed. */
static bool list_epoch_locked(struct tree *tree, struct plan_entry *entry, uint64_t epoch,
                              uid_t user)
{
    struct user_plans *listed;

    lock_assert_held(&tree->lock);
    listed = user == TREE_OWNER ? NULL : find_user_locked(tree, user);
    if (tree->n_epochs >= PLANS_MAX ||
        (user != TREE_OWNER &&
         !plans_may_share(&tree->epochs_shared, listed ? listed->epochs : 0)) ||
        (user != TREE_OWNER && !(listed = add_user_locked(tree, user))) ||
        array_capacity(&entry->epoch, entry->n_epochs, sizeof(epoch)) < 0)
        return false;
    entry->epoch[entry->n_epochs++] = epoch;
    tree->n_epochs++;
    if (listed)
        plans_share(&tree->epochs_shared, &listed->epochs);
    return true;
}

int tree_open_epoch(struct tree *tree, struct plan_entry *entry, uint64_t epoch, uid_t user,
                    struct span *ret_span, bool *ret_new, struct diag *d)
{
    struct span wanted = span_of_plan(entry, epoch);
    bool is_new = false;
    int r;

    lock_take(&tree->lock);
    r = take_span_locked(tree, &wanted, user, ret_span, d);
    if (r == 0 && !epoch_is_listed(entry, epoch))
        is_new = list_epoch_locked(tree, entry, epoch, user);
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
static uint64_t bytes_of(size_t plans, size_t spans, size_t epochs, size_t users)
{
    return plans * (sizeof(struct plan_entry) + 2 * sizeof(struct plan_entry *)) +
           2 * spans * sizeof(struct span) + 2 * epochs * sizeof(uint64_t) +
           2 * users * sizeof(struct user_plans);
}

struct memory_held tree_plans_held(void *owner)
{
    struct tree *tree = owner;
    LOCK_SCOPE(&tree->lock);

    return (struct memory_held){
        .bytes = bytes_of(tree->n_plans, tree->spans.n, tree->n_epochs, tree->n_users),
        .limit = bytes_of(PLANS_MAX, tree->spans.max, PLANS_MAX, 2 * PLANS_MAX)};
}
