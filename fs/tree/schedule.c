/* A plan applied to a dataset of the catalog: with its lists, and with the labels that it needs. */
#include "fs/tree/tree.h"

#include <errno.h>

int plan_labels_check(const struct plan_labels *labels, const struct plan *plan, struct diag *d)
{
    char name[PLAN_NAME_SIZE];
    bool is_lost = false;

    for (unsigned i = 0; i < labels->n; i++)
        is_lost = is_lost || list_label_is_lost(labels->label[i]);
    for (unsigned i = 0; i < labels->n_sources; i++)
        is_lost = is_lost || list_label_is_lost(labels->of_source[i]);
    if (!is_lost)
        return 0;
    plan_name(plan, name);
    return diag_set(d, -EIO,
                    "plan %s: the index of its labels in the cache folder was cut short; "
                    "mount again",
                    name);
}

/* r: of what has set the label after the last one. */
static int plan_labels_add(struct plan_labels *labels, int r)
{
    labels->n += r == 0 && labels->label[labels->n];
    return r;
}

/* Where the next label goes. */
static const struct list_label **plan_labels_next(struct plan_labels *labels)
{
    return &labels->label[labels->n];
}

static int tree_set_cuts(const struct catalog *catalog, const struct dataset *ds,
                         const struct plan *plan, struct plan_data *data,
                         struct plan_labels *ret_labels, struct diag *d)
{
    struct list_labels *labels = &catalog->tools->labels;
    const struct list_label **label = plan_labels_next(ret_labels);
    int r = data->units ? list_labels_units(labels, ds, plan->unit, data, label, d)
                        : list_labels_lengths(labels, ds, plan->length, data, label, d);

    if (plan_labels_add(ret_labels, r) < 0)
        return r;
    if (data->units)
        data->lengths = &data->units->lengths;
    return length_plans_get(&catalog->tools->lengths, ds, plan, data,
                            &(struct length_source){label, &data->only, 1, ""}, d);
}

/* What length= says. A list that was made with an index that is cut short does not count. */
static int tree_set_ranges(const struct catalog *catalog, const struct dataset *ds,
                           const struct plan *plan, struct plan_data *data,
                           struct plan_labels *ret_labels, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = plan_labels_add(ret_labels, list_labels_lengths(&catalog->tools->labels, ds,
                                                            plan_range_length(plan), data,
                                                            plan_labels_next(ret_labels), d));

    if (r < 0)
        return r;
    r = length_plans_list(&catalog->tools->lengths, ds, plan, data, &reason);
    if (plan_labels_check(ret_labels, plan, d) < 0)
        return -EIO;
    return reason.set ? diag_set(d, r, "%s", reason.text) : r;
}

int tree_schedule(const struct catalog *catalog, const struct dataset *ds, const struct plan *plan,
                  struct schedule *ret, struct plan_labels *ret_labels, struct diag *d)
{
    struct plan_data data = {.samples = ds->samples};
    struct list_labels *labels = catalog->tools ? &catalog->tools->labels : NULL;
    struct plan_range part;
    int r = 0;

    *ret_labels = (struct plan_labels){0};
    if (ds->ops && ds->ops->share) {
        ds->ops->share(ds, plan->part, plan->parts, &part.start, &part.length);
        data.part = &part;
    }
    if (labels && plan->only[0])
        r = named_lists_get(&catalog->tools->lists, ds, plan->only, &data.only, d);
    if (r == 0 && labels && plan->unit[0])
        r = plan_labels_add(ret_labels, list_labels_units(labels, ds, plan->unit, &data,
                                                          plan_labels_next(ret_labels), d));
    if (r == 0 && labels && plan->ranges)
        r = tree_set_ranges(catalog, ds, plan, &data, ret_labels, d);
    if (r == 0 && labels && !plan->unit[0])
        r = plan_labels_add(
            ret_labels, list_labels_get(labels, ds, plan, &data, plan_labels_next(ret_labels), d));
    if (r == 0 && labels && plan_is_by_length(plan))
        r = tree_set_cuts(catalog, ds, plan, &data, ret_labels, d);
    if (r < 0)
        return r;
    schedule_init_data(ret, plan, &data);
    return schedule_check(ret, d);
}
