#include "fs/tree/arrays.h"

#include <errno.h>
#include <stdlib.h>

#include "base/read_context.h"
#include "format/core/plan_fields.h"
#include "fs/tree/view.h"

/* Add the array of a field, unless this selection needs none. */
static int arrays_add(struct batch_arrays *a, const struct dataset *ds, const struct field *f)
{
    struct batch_array *array = &a->array[a->n];
    int r = field_form(ds, f, &a->samples.sel, &array->form, &array->bytes);

    if (r == -ENODATA)
        return 0;
    array->field = f;
    a->n += r == 0;
    return r;
}

int batch_arrays_init(struct read_context *rc, struct batch_arrays *a, struct open_files *files,
                      const struct node *node, const struct array_choice *choice, struct diag *d)
{
    const struct dataset *ds = node->item->ds;
    bool makes = node->plan->makes_pictures;
    const struct field *units = plan_unit_field(node->plan);
    unsigned n = plan_fields_count(ds, makes, units);
    int r;

    *a = (struct batch_arrays){0};
    a->array = malloc((n + 1) * sizeof(*a->array));
    if (!a->array)
        return -ENOMEM;
    r = open_files_samples(files, node, &a->samples);
    a->samples.sel.rc = rc;
    a->samples.sel.reason = d;
    for (unsigned i = 0; i < n && r == 0; i++) {
        const struct field *f = plan_fields_at(ds, makes, units, i);

        if (f && field_is_in(f, choice->in) && (!choice->chosen || choice->chosen(choice->ctx, f)))
            r = arrays_add(a, ds, f);
    }
    a->samples.sel.rc = NULL;
    a->samples.sel.reason = NULL;
    return r;
}

void batch_arrays_release(struct batch_arrays *a)
{
    if (a->array)
        file_samples_release(&a->samples);
    free(a->array);
    *a = (struct batch_arrays){0};
}

int batch_arrays_read(struct read_context *rc, struct batch_arrays *a, uint8_t *const *dst,
                      struct diag *d)
{
    const struct node *node = &a->samples.node;
    struct diag first = DIAG_INIT;
    int all = 0, changed;

    a->samples.sel.rc = rc;
    if (rc)
        rc->checks_late = true; /* below */
    for (size_t i = 0; i < a->n; i++) {
        const struct batch_array *array = &a->array[i];

        if (dst[i] && array->bytes &&
            !missing_go_on(rc,
                           array->field->ops->read(rc, node->item->ds, array->field,
                                                   &a->samples.sel, 0, (size_t)array->bytes, dst[i],
                                                   &first),
                           &all))
            break;
    }
    if (rc)
        rc->checks_late = false;
    a->samples.sel.rc = NULL;
    changed = view_check_sources(node, d);
    if (changed == 0)
        changed = blob_verify_used(rc, d);
    if (changed == 0 && all == 0)
        changed = view_check_labels(node, d);
    if (changed < 0 || all == 0 || all == -EAGAIN)
        return changed < 0 ? changed : all;
    return first.set ? diag_set(d, all, "%s", first.text) : all;
}
