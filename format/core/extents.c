#include "format/core/extents.h"

#include "format/core/plan_fields.h"

/* Where the bytes of one stored field of a sample are. */
static bool stored_extent(const struct field *f, uint64_t sample, struct extent *ret)
{
    const struct blob *blob;
    uint64_t off;

    if (!f->blob || !f->stored_bytes)
        return false;
    blob = field_place(f, sample, &off);
    if (off > blob->size || f->stored_bytes > blob->size - off)
        return false;
    *ret = (struct extent){blob, off, f->stored_bytes};
    return true;
}

static unsigned stored_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                               struct extent ret[static EXTENTS_MOST])
{
    unsigned n = 0;

    if (only)
        return stored_extent(only, sample, ret);
    for (unsigned i = 0; i < ds->n_fields && n < EXTENTS_MOST; i++)
        if (!ds->field[i].base_field)
            n += stored_extent(&ds->field[i], sample, &ret[n]);
    return n;
}

/* Drop duplicates: two tables may name the same object. */
static unsigned without_doubles(struct extent *extent, unsigned n)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = 0;

        while (k < kept && (extent[k].blob != extent[i].blob || extent[k].off != extent[i].off ||
                            extent[k].len != extent[i].len))
            k++;
        if (k == kept)
            extent[kept++] = extent[i];
    }
    return kept;
}

unsigned dataset_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct extent ret[static EXTENTS_MOST])
{
    unsigned n;

    if (only && plan_field_is(ds, only) && !only->base_field)
        return ds->pictures ? ds->pictures->extents(ds, sample, ret) : 0;
    if (only && only->base_field)
        only = only->base_field;
    if (ds->ops && ds->ops->extents)
        n = ds->ops->extents(ds, sample, only, ret);
    else
        n = stored_extents(ds, sample, only, ret);
    return n > 1 ? without_doubles(ret, n) : n;
}

bool dataset_copy(const struct dataset *ds, uint64_t sample, const struct field *field,
                  struct extent *ret)
{
    if (ds->ops && ds->ops->copy)
        return ds->ops->copy(ds, sample, field, ret);
    return !(ds->ops && ds->ops->extents) && stored_extent(field, sample, ret);
}

bool dataset_copy_of_all(const struct dataset *ds, const struct field *field, struct extent *ret)
{
    return ds->ops && ds->ops->copy_of_all && ds->ops->copy_of_all(ds, field, ret);
}
