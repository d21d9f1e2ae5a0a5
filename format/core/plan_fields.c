#include "format/core/plan_fields.h"

#include <stdlib.h>
#include <string.h>

void plan_fields_free(struct plan_fields *fields)
{
    if (fields)
        free(fields->impl);
    free(fields);
}

unsigned plan_fields_count(const struct dataset *ds, bool makes_pictures)
{
    return ds->n_fields + (makes_pictures && ds->plan_fields ? ds->plan_fields->n : 0);
}

/* Does a field of the dataset show the pictures in another way? */
static bool plan_fields_replace(const struct dataset *ds, const struct field *f)
{
    const struct plan_fields *fields = ds->plan_fields;

    if (f->base_field && !strcmp(f->base_field->name, fields->replaced))
        return true;
    for (unsigned i = 0; i < fields->n; i++)
        if (!strcmp(fields->field[i].name, f->name))
            return true;
    return false;
}

const struct field *plan_fields_at(const struct dataset *ds, bool makes_pictures, unsigned i)
{
    unsigned n = makes_pictures && ds->plan_fields ? ds->plan_fields->n : 0;
    const struct field *f;

    if (i < n)
        return &ds->plan_fields->field[i];
    f = &ds->field[i - n];
    return n && plan_fields_replace(ds, f) ? NULL : f;
}

bool plan_field_is(const struct dataset *ds, const struct field *f)
{
    const struct plan_fields *fields = ds->plan_fields;

    return fields && f >= fields->field && f < fields->field + fields->n;
}
