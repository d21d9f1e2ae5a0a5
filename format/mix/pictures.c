/* Pictures for plans: each is asked of the source that its sample is from. */
#include <string.h>

#include "format/mix/parts.h"

static int mix_picture_read(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                            bool mask, uint8_t **ret, size_t *ret_len, struct diag *d)
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);

    return o.ds->pictures->read(rc, o.ds, o.sample, mask, ret, ret_len, d);
}

static void mix_picture_where(const struct dataset *ds, uint64_t sample, bool mask, struct text *t)
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);

    o.ds->pictures->where(o.ds, o.sample, mask, t);
}

static unsigned mix_picture_extents(const struct dataset *ds, uint64_t sample, struct extent *ret)
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);

    return o.ds->pictures->extents(o.ds, o.sample, ret);
}

static bool mix_picture_kept(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                             uint32_t side, struct picture_base *ret)
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);

    return o.ds->pictures->kept(rc, o.ds, o.sample, side, ret);
}

static void mix_picture_keep(const struct dataset *ds, uint64_t sample, uint32_t side,
                             const struct picture_base *base)
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);

    o.ds->pictures->keep(o.ds, o.sample, side, base);
}

void mix_offer_pictures(struct dataset *ds)
{
    struct mix_set *set = mix_set_of(ds);
    const struct picture_source *first = set->setup.ds[0]->pictures;
    struct picture_source *p = &set->pictures;

    if (!first)
        return;
    *p = *first;
    p->read = mix_picture_read;
    p->where = mix_picture_where;
    p->extents = mix_picture_extents;
    p->kept = first->kept ? mix_picture_kept : NULL;
    p->keep = first->keep ? mix_picture_keep : NULL;
    for (unsigned i = 1; i < set->setup.n; i++) {
        const struct picture_source *source = set->setup.ds[i]->pictures;

        if (!source || strcmp(source->name, p->name) != 0)
            return;
        p->has_holes |= source->has_holes;
        p->has_pairs |= source->has_pairs;
        p->has_masks &= source->has_masks;
    }
    ds->pictures = p;
}
