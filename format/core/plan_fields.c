#include "format/core/plan_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

void plan_fields_free(struct plan_fields *fields)
{
    if (fields)
        free(fields->impl);
    free(fields);
}

unsigned plan_fields_count(const struct dataset *ds, bool makes_pictures, const struct field *units)
{
    return ds->n_fields + (makes_pictures && ds->plan_fields ? ds->plan_fields->n : 0) +
           (units != NULL);
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

const struct field *plan_fields_at(const struct dataset *ds, bool makes_pictures,
                                   const struct field *units, unsigned i)
{
    unsigned n = makes_pictures && ds->plan_fields ? ds->plan_fields->n : 0;
    const struct field *f;

    if (i < n)
        return &ds->plan_fields->field[i];
    if (i - n == ds->n_fields)
        return units;
    f = &ds->field[i - n];
    return n && plan_fields_replace(ds, f) ? NULL : f;
}

/* ---- units ---- */

static int units_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    (void)ds;
    (void)f;
    ret->ndim = 1;
    ret->dim[0] = sel->units + 1;
    return 0;
}

static int units_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    (void)rc;
    (void)ds;
    (void)f;
    (void)d;
    while (len) /* the first begins at 0 */
        store_le_part(off < 8 ? 0 : sel->unit_end[off / 8 - 1], 8, &off, &len, &dst);
    return 0;
}

void plan_fields_units(const struct dataset *ds, const char *name, struct field *ret)
{
    static const struct field_ops ops = {units_read, units_form};

    *ret = (struct field){.ops = &ops,
                          .in = IN_NPZ_BATCHES | IN_COLUMNS,
                          .form = FORM_WHOLE,
                          .derived = true,
                          .dtype = DTYPE_I8,
                          .width = 8,
                          .item_bytes = 8};
    snprintf(ret->name, sizeof(ret->name), "%.*s_offsets", FIELD_NAME_SIZE - 9, name);
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, ret->name))
            snprintf(ret->name, sizeof(ret->name), "unit_offsets");
}

bool plan_field_is(const struct dataset *ds, const struct field *f)
{
    const struct plan_fields *fields = ds->plan_fields;

    return fields && f >= fields->field && f < fields->field + fields->n;
}
