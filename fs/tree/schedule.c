/* A plan applied to a dataset of the catalog: with its lists, and with the labels that it needs. */
#include "fs/tree/tree.h"

static int tree_set_cuts(const struct catalog *catalog, const struct dataset *ds,
                         const struct plan *plan, struct plan_data *data,
                         const struct list_label **ret_label, struct diag *d)
{
    struct list_labels *labels = &catalog->tools->labels;
    const struct list_label *label;
    int r = data->units ? list_labels_units(labels, ds, plan->unit, data, &label, d)
                        : list_labels_lengths(labels, ds, plan->length, data, &label, d);

    if (r < 0)
        return r;
    if (ret_label && !*ret_label)
        *ret_label = label;
    if (data->units)
        data->lengths = &data->units->lengths;
    return length_plans_get(&catalog->tools->lengths, ds, plan, data,
                            &(struct length_source){&label, &data->only, 1, ""}, d);
}

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
    if (r == 0 && plan->unit[0] && catalog->tools)
        r = list_labels_units(&catalog->tools->labels, ds, plan->unit, &data, ret_label, d);
    if (r == 0 && plan->ranges && catalog->tools)
        r = list_labels_lengths(&catalog->tools->labels, ds, plan_range_length(plan), &data, NULL,
                                d);
    if (r == 0 && plan->ranges && catalog->tools)
        r = length_plans_list(&catalog->tools->lengths, ds, plan, &data, d);
    if (r == 0 && !plan->unit[0] && catalog->tools)
        r = list_labels_get(&catalog->tools->labels, ds, plan, &data, ret_label, d);
    if (r == 0 && plan_is_by_length(plan) && catalog->tools)
        r = tree_set_cuts(catalog, ds, plan, &data, ret_label, d);
    if (r < 0)
        return r;
    schedule_init_data(ret, plan, &data);
    return schedule_check(ret, d);
}
