/* Pictures as arrays of one size: what they are made of and how. That they are remembered and kept
 * is in record_made.c. */
#include "format/records/record_pictures_parts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/picture/magic.h"
#include "format/picture/picture.h"
#include "format/records/record_bases.h"

static int picture_dims(const struct record_made *m, const struct dataset *ds, uint64_t record,
                        uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_pictures *p = (const struct record_pictures *)m;

    (void)ds;
    (void)record;
    (void)d;
    ret_dim[0] = p->height;
    ret_dim[1] = p->width;
    ret_dim[2] = CHANNELS;
    return 0;
}

static int picture_make(const struct record_made *m, uint64_t record,
                        const struct record_made_file *file, uint8_t *ret, unsigned *ret_what,
                        struct diag *d)
{
    const struct record_pictures *p = (const struct record_pictures *)m;

    (void)record;
    *ret_what = picture_format_of(file->bytes, file->len);
    return picture_decode(&(struct picture_file){file->where, file->bytes, file->len}, p->height,
                          p->width, ret, d);
}

static void picture_name_all(const struct record_made *m, struct text *t)
{
    const struct record_pictures *p = (const struct record_pictures *)m;

    text_add(t, "pictures 1 %ux%u ", p->height, p->width);
    picture_add_versions(t);
}

static const struct record_maker record_pictures_maker = {
    .one = "a picture",
    .many = "pictures",
    .most_bytes = PICTURE_MAX_BYTES,
    .dims = picture_dims,
    .make = picture_make,
    .name = picture_name_all,
};

int record_pictures_new(const struct format_setup *setup, uint32_t height, uint32_t width,
                        const struct record_content *const *source, unsigned n,
                        struct record_pictures **ret)
{
    struct record_pictures *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    record_made_init(&p->made, setup);
    p->made.maker = &record_pictures_maker;
    p->height = height;
    p->width = width;
    p->made.unit_bytes = (uint64_t)height * width * CHANNELS;
    p->made.n = n;
    memcpy(p->made.source, source, n * sizeof(*source));
    *ret = p;
    return 0;
}

struct record_content record_pictures_like(const struct record_pictures *p, bool has_holes)
{
    return (struct record_content){.dtype = DTYPE_U1,
                                   .ndim = 3,
                                   .dim = {has_holes ? DIM_VARIES : p->height, p->width, CHANNELS}};
}

int record_pictures_add(struct dataset *ds, const struct format_setup *setup, const char *name,
                        const struct record_pictures_source *source, struct record_pictures **ret)
{
    const struct format_options *o = &setup->options;
    struct record_pictures *p;
    struct record_content like;
    int r = record_pictures_new(setup, o->picture_height, o->picture_width, source->content,
                                source->n, &p);

    if (r < 0)
        return r;
    p->made.counts = setup->counts;
    p->made.store = setup->made;
    p->made.keeps = setup->made;
    p->made.identity = source->identity;
    p->made.fills = o->bad_rows == BAD_ROWS_ZERO;
    like = record_pictures_like(p, source->has_holes);
    record_made_add(ds, &p->made, &like, p->made.unit_bytes, name);
    *ret = p;
    return 0;
}

/* ---- for plans ---- */

static const struct record_pictures *plan_pictures(const struct dataset *ds)
{
    return (const struct record_pictures *)((const char *)ds->pictures -
                                            offsetof(struct record_pictures, plan_source));
}

/* The content of a sample's mask or picture; NULL: it has none. */
static const struct record_content *record_pictures_plan_source(const struct dataset *ds,
                                                                uint64_t sample, bool mask)
{
    const struct record_pictures *p = plan_pictures(ds);

    return mask ? p->mask : record_made_source(&p->made, ds, sample);
}

static int record_pictures_plan_read(struct read_context *rc, const struct dataset *ds,
                                     uint64_t sample, bool mask, uint8_t **ret, size_t *ret_len,
                                     struct diag *d)
{
    struct made_counts *counts = plan_pictures(ds)->plan_counts;
    int r = record_made_read_file(rc, ds, &record_pictures_maker,
                                  record_pictures_plan_source(ds, sample, mask), sample, ret,
                                  ret_len, d);

    if (r == 0 && counts && !mask)
        record_made_count(&counts->decoded);
    return r;
}

static void record_pictures_plan_where(const struct dataset *ds, uint64_t sample, bool mask,
                                       struct text *t)
{
    const struct record_content *source = record_pictures_plan_source(ds, sample, mask);
    char where[RECORD_WHERE];

    if (!source)
        source = plan_pictures(ds)->made.source[0];
    record_made_name(ds, source, sample, where);
    text_add(t, "%s", where);
}

static unsigned record_pictures_plan_extents(const struct dataset *ds, uint64_t sample,
                                             struct extent *ret)
{
    unsigned n = 0;

    for (unsigned mask = 0; mask < PICTURE_EXTENTS; mask++) {
        const struct record_content *source = record_pictures_plan_source(ds, sample, mask);

        n += source && source->ops->extent(ds, source, sample, &ret[n]);
    }
    return n;
}

static bool record_pictures_plan_kept(struct read_context *rc, const struct dataset *ds,
                                      uint64_t sample, uint32_t side, struct picture_base *ret)
{
    return record_bases_get(plan_pictures(ds)->bases, rc, ds, sample, side, ret);
}

static void record_pictures_plan_keep(const struct dataset *ds, uint64_t sample, uint32_t side,
                                      const struct picture_base *base)
{
    record_bases_put(plan_pictures(ds)->bases, ds, sample, side, base);
}

int record_pictures_offer(struct dataset *ds, struct record_pictures *p,
                          const struct format_setup *setup,
                          const struct record_pictures_offered *offered)
{
    p->plan_counts = setup->counts;
    p->mask = offered->mask;
    p->plan_source = (struct picture_source){.has_holes = offered->has_holes,
                                             .has_pairs = offered->has_pairs,
                                             .has_masks = offered->mask,
                                             .zeros_bad = setup->options.bad_rows == BAD_ROWS_ZERO,
                                             .read = record_pictures_plan_read,
                                             .where = record_pictures_plan_where,
                                             .extents = record_pictures_plan_extents};
    snprintf(p->plan_source.name, sizeof(p->plan_source.name), "%s", offered->name);
    ds->pictures = &p->plan_source;
    if (!setup->made)
        return 0;
    p->plan_source.kept = record_pictures_plan_kept;
    p->plan_source.keep = record_pictures_plan_keep;
    return record_bases_new(setup, &p->made, offered->identity, &p->bases);
}

void record_pictures_free(struct record_pictures *p)
{
    if (!p)
        return;
    record_bases_free(p->bases);
    record_made_release(&p->made);
    free(p);
}

void record_pictures_describe(const struct record_pictures *p, const char *indent, struct text *t)
{
    AUTO_TEXT struct text versions = {0};

    picture_add_versions(&versions);
    json_open(t, indent, "picture", "{");
    json_add_number(t, NULL, "height", p->height);
    json_add_number(t, NULL, "width", p->width);
    json_add_text(t, NULL, "decoders", versions.data ? versions.data : "");
    json_close(t, indent, "}");
    t->failed = t->failed || versions.failed;
}
