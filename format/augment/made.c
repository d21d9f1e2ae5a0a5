/* As format/records/record_pictures.c remembers decoded pictures, with the place in the selection
 * in the key: a made picture belongs to one place of one epoch of one plan. */
#include "format/augment/made.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "format/picture/mask.h"

#define MAKE_BYTES (UINT64_C(4) << 20) /* of arrays that are made at once */

struct made_shape augment_shape(const struct augment_impl *impl, const struct picture_plan *plan)
{
    const struct field *array = impl->array;

    if (impl->is_planar)
        return (struct made_shape){3, {NORMALIZE_CHANNELS, plan->height, plan->width}};
    return (struct made_shape){array ? array->ndim : 3,
                               {plan->height, plan->width, impl->channels}};
}

struct picture_array augment_layout(const struct augment_impl *impl, uint32_t height,
                                    uint32_t width, const uint8_t *bytes)
{
    struct picture_array a = {.bytes = bytes,
                              .height = height,
                              .width = width,
                              .row_step = (size_t)width * impl->channels,
                              .pixel_step = impl->channels,
                              .colour_step = impl->channels > 1};

    if (impl->is_planar) {
        a.row_step = width;
        a.pixel_step = 1;
        a.colour_step = (size_t)height * width;
    }
    return a;
}

static size_t made_bytes(const struct augment_impl *impl, const struct picture_plan *plan)
{
    return (size_t)plan->height * plan->width * impl->channels;
}

/* ---- one picture ---- */

struct making {
    const struct made_walk *walk;
    struct read_context *rc;
    uint64_t place, sample, position;
    const struct made_picture *picture; /* whose mask it is; NULL: it is a picture */
    struct diag *d;
    bool is_read;
    uint8_t *bytes; /* [len] the file, or the item; owned; NULL: it is bad already: */
    size_t len;
    struct picture_base base; /* owned; without pixels: the file is decoded */
    struct diag reason;
};

static bool made_is_bad(int r)
{
    return r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP;
}

static int making_read(struct making *m)
{
    const struct augment_impl *impl = m->walk->impl;
    const struct dataset *ds = m->walk->ds;
    struct one_sample one;
    int r;

    if (impl->files) {
        r = impl->files->read(m->rc, ds, m->sample, m->picture, &m->bytes, &m->len, &m->reason);
    } else {
        one_sample_init(&one, m->sample);
        m->len = (size_t)impl->array->item_bytes;
        m->bytes = malloc(m->len);
        r = m->bytes ? impl->array->ops->read(m->rc, ds, impl->array, &one.sel, 0, m->len, m->bytes,
                                              &m->reason)
                     : -ENOMEM;
    }
    if (r < 0) {
        free(m->bytes);
        m->bytes = NULL;
    }
    m->is_read = r == 0 || made_is_bad(r);
    if (m->is_read) /* what is made of it is remembered */
        return blob_verify_used(m->rc, m->d);
    return m->reason.set ? diag_set(m->d, r, "%s", m->reason.text) : r;
}

static int making_bad(const struct making *m, void **ret, size_t *ret_size)
{
    const char *why = diag_text(&m->reason, -EBADMSG);
    size_t n = strlen(why) + 1;
    struct made_picture *made = calloc(1, sizeof(*made) + n);

    if (!made)
        return -ENOMEM;
    made->is_bad = true;
    made->is_mask = m->picture;
    memcpy(made->bytes, why, n);
    *ret = made;
    *ret_size = sizeof(*made) + n;
    return 0;
}

/* From rows of three colors to the layout of the field. */
static void made_lay_out(const struct augment_impl *impl, const uint8_t *rgb, size_t pixels,
                         uint8_t *ret)
{
    for (size_t i = 0; i < pixels; i++, rgb += NORMALIZE_CHANNELS) {
        if (impl->channels == 1)
            ret[i] = rgb[0];
        else
            for (size_t c = 0; c < NORMALIZE_CHANNELS; c++)
                ret[c * pixels + i] = rgb[c];
    }
}

/* Are pictures kept whose short side the recipe scales? */
static bool making_keeps(const struct making *m)
{
    const struct picture_source *files = m->walk->impl->files;

    return files && files->keep && m->walk->sel->pictures->recipe.base && !m->picture;
}

static bool making_find_kept(struct making *m)
{
    return making_keeps(m) &&
           m->walk->impl->files->kept(m->rc, m->walk->ds, m->sample,
                                      m->walk->sel->pictures->recipe.base, &m->base);
}

static int making_pixels(struct making *m, const struct pixels *pixels, struct augment_done *done)
{
    const struct augment_impl *impl = m->walk->impl;
    const struct picture_plan *plan = m->walk->sel->pictures;
    struct augment_numbers n =
        augment_numbers_of(plan->seed, m->walk->sel->epoch, dataset_number(m->walk->ds, m->sample),
                           m->position, plan->recipe.salt);
    AUTO_TEXT struct text where = {0};
    struct picture_array array;
    int r;

    if (!impl->files) {
        bool planar = impl->is_planar;

        array = augment_layout(impl, (uint32_t)impl->array->dim[planar],
                               (uint32_t)impl->array->dim[planar + 1], m->bytes);
        return augment_array(&array, plan, &n, pixels, done);
    }
    if (m->base.rgb)
        return augment_base(&m->base, plan, &n, pixels, done);
    impl->files->where(m->walk->ds, m->sample, false, &where);
    r = augment_file(&(struct picture_file){where.data ? where.data : "picture", m->bytes, m->len},
                     plan, &n, pixels, done, making_keeps(m) ? &m->base : NULL, &m->reason);
    if (r == 0 && m->base.rgb)
        impl->files->keep(m->walk->ds, m->sample, plan->recipe.base, &m->base);
    return r;
}

static int making_make_mask(struct making *m, void **ret, size_t *ret_size)
{
    const struct augment_impl *impl = m->walk->impl;
    const struct picture_plan *plan = m->walk->sel->pictures;
    size_t size = (size_t)plan->height * plan->width * impl->mask_channels;
    AUTO_FREE struct made_picture *made = calloc(1, sizeof(*made) + size);
    AUTO_TEXT struct text where = {0};
    int r;

    if (!made)
        return -ENOMEM;
    impl->files->where(m->walk->ds, m->sample, true, &where);
    r = mask_make(&(struct picture_file){where.data ? where.data : "mask", m->bytes, m->len}, plan,
                  &m->picture->done, impl->mask_channels, made->bytes, &m->reason);
    if (r < 0)
        return made_is_bad(r) ? making_bad(m, ret, ret_size) : r;
    *ret = TAKE_PTR(made);
    *ret_size = sizeof(struct made_picture) + size;
    return 0;
}

/* -ENODATA: its bytes are to be read first. */
static int making_make(void *ctx, void **ret, size_t *ret_size)
{
    struct making *m = ctx;
    const struct augment_impl *impl = m->walk->impl;
    const struct picture_plan *plan = m->walk->sel->pictures;
    size_t count = (size_t)plan->height * plan->width, size = made_bytes(impl, plan);
    AUTO_FREE struct made_picture *made = NULL;
    AUTO_FREE uint8_t *rgb = NULL, *scratch = NULL;
    bool is_direct = impl->channels == NORMALIZE_CHANNELS && !impl->is_planar;
    struct pixels pixels;
    int r;

    if (!m->is_read && !making_find_kept(m))
        return -ENODATA;
    if (m->is_read && !m->bytes)
        return making_bad(m, ret, ret_size);
    if (m->picture)
        return making_make_mask(m, ret, ret_size);
    made = calloc(1, sizeof(*made) + size);
    scratch = malloc(count * NORMALIZE_CHANNELS);
    if (!is_direct)
        rgb = malloc(count * NORMALIZE_CHANNELS);
    if (!made || !scratch || (!is_direct && !rgb))
        return -ENOMEM;
    pixels = (struct pixels){.rgb = is_direct ? made->bytes : rgb,
                             .scratch = scratch,
                             .height = plan->height,
                             .width = plan->width};
    r = making_pixels(m, &pixels, &made->done);
    if (r < 0)
        return made_is_bad(r) ? making_bad(m, ret, ret_size) : r;
    if (!is_direct)
        made_lay_out(impl, rgb, count, made->bytes);
    *ret = TAKE_PTR(made);
    *ret_size = sizeof(struct made_picture) + size;
    return 0;
}

static struct memo_key made_key(const struct made_walk *w, uint64_t place, bool mask)
{
    const uint64_t *id = w->sel->id;

    return (struct memo_key){{(uintptr_t)w->impl, id[0], id[1], id[2], place, 1 + mask}};
}

static int making_get_one(struct making *m, struct memo_thing **ret)
{
    const struct memo_key key = made_key(m->walk, m->place, m->picture);
    const struct memo_maker maker = {making_make, m, m->rc};
    struct memo *memo = m->walk->impl->memo;
    int r = memo_get(memo, &key, &maker, ret);

    if (r == -ENODATA) {
        r = making_read(m);
        if (r == 0)
            r = memo_get(memo, &key, &maker, ret);
        free(m->bytes);
    }
    free(m->base.rgb);
    return r;
}

/* What the walk is over. The mask of a bad picture is that bad picture. */
static int making_get(struct making *m, struct memo_thing **ret)
{
    AUTO_MEMO struct memo_thing *thing = NULL;
    struct making mask = *m;
    int r = making_get_one(m, &thing);

    if (r < 0)
        return r;
    mask.picture = memo_bytes(thing);
    if (m->walk->masks && !mask.picture->is_bad)
        return making_get_one(&mask, ret);
    *ret = TAKE_PTR(thing);
    return 0;
}

/* ---- several at once ---- */

struct made_together {
    struct made_walk *walk;
    struct read_context *peek; /* notes what comes next, which nothing waits for */
    _Atomic bool is_missing;
};

static void made_one(void *ctx, unsigned i)
{
    struct made_together *t = ctx;
    bool is_needed = i < t->walk->n_needed;
    struct making m = {.walk = t->walk,
                       .rc = is_needed ? t->walk->rc : t->peek,
                       .place = t->walk->first + i,
                       .sample = t->walk->sample[i],
                       .position = t->walk->position[i]};
    AUTO_MEMO struct memo_thing *thing = NULL;

    if (!is_needed && atomic_load(&t->is_missing))
        return;
    if (making_get(&m, &thing) == -EAGAIN && is_needed)
        atomic_store(&t->is_missing, true);
}

void made_walk_init(struct made_walk *w, struct read_context *rc, const struct dataset *ds,
                    const struct augment_impl *impl, const struct selection *sel, bool masks)
{
    w->masks = masks;
    w->rc = rc;
    w->ds = ds;
    w->impl = impl;
    w->sel = sel;
    w->first = w->missing = 0;
    w->n = w->n_needed = 0;
}

/* Look up the samples from a place on, and make what is needed of them with what comes next. */
static int made_walk_go_on(struct made_walk *w, uint64_t place, uint64_t needed)
{
    uint64_t at_once = MAKE_BYTES / made_bytes(w->impl, w->sel->pictures);
    const struct memo_key key = made_key(w, place, w->masks);
    struct read_context peek;
    struct made_together together = {w, &peek, false};

    w->first = place;
    w->n = (unsigned)min_u64(max_u64(min_u64(at_once, MADE_AT_ONCE), 1), w->sel->count - place);
    w->n_needed = (unsigned)min_u64(needed, w->n);
    selection_samples(w->sel, place, w->n, w->sample);
    w->sel->positions(w->sel, place, w->n, w->position);
    if (w->n < 2 || memo_has(w->impl->memo, &key))
        return 0;
    read_context_init(&peek, true);
    if (w->rc) {
        peek.cancelled = w->rc->cancelled;
        peek.ctx = w->rc->ctx;
        peek.clock = w->rc->clock;
    }
    pool_run(w->impl->pool, w->n, made_one, &together);
    read_context_release(&peek);
    if (!together.is_missing)
        return 0;
    w->missing = place + w->n_needed;
    return -EAGAIN;
}

int made_walk_at(struct made_walk *w, uint64_t place, uint64_t needed, struct memo_thing **ret,
                 struct diag *d)
{
    struct making m = {.walk = w, .rc = w->rc, .place = place, .d = d};
    int r;

    if (place < w->missing)
        return -EAGAIN;
    if (place < w->first || place >= w->first + w->n) {
        r = made_walk_go_on(w, place, needed);
        if (r < 0)
            return r;
    }
    m.sample = w->sample[place - w->first];
    m.position = w->position[place - w->first];
    return making_get(&m, ret);
}
