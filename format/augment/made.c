/* As format/records/record_pictures.c remembers decoded pictures, with the place in the selection
 * in the key: a made picture belongs to one place of one epoch of one plan. Small pictures of an
 * array are read, made and remembered several at once, as a block. */
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

struct picture_array augment_layout(bool is_planar, unsigned channels, uint32_t height,
                                    uint32_t width, const uint8_t *bytes)
{
    size_t pixel = is_planar ? 1 : channels, colour = is_planar ? (size_t)height * width : 1;

    return (struct picture_array){.bytes = bytes,
                                  .height = height,
                                  .width = width,
                                  .row_step = width * pixel,
                                  .pixel_step = pixel,
                                  .colour_step = channels > 1 ? colour : 0};
}

static size_t made_bytes(const struct augment_impl *impl, const struct picture_plan *plan)
{
    return (size_t)plan->height * plan->width * impl->channels;
}

/* From a picture of a block to the next. */
static size_t made_step(size_t bytes)
{
    return (sizeof(struct made_picture) + bytes + 7) / 8 * 8;
}

/* ---- one block ---- */

struct making {
    const struct made_walk *walk;
    struct read_context *rc;
    uint64_t place;                     /* the first */
    unsigned n;                         /* 1 of files */
    const uint64_t *sample, *position;  /* [n] */
    const struct made_picture *picture; /* whose mask it is; NULL: it is a picture */
    struct diag *d;
    bool is_read;
    uint8_t *bytes; /* [len] the file, or the items; owned; NULL: it is bad already: */
    size_t len;
    struct picture_base base; /* owned; without pixels: the file is decoded */
    struct diag reason;
};

/* Is it a file that is bad for good, which is remembered? */
static bool making_is_bad(const struct making *m, int r)
{
    return m->walk->impl->files && (r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP);
}

/* Are the planes of an item read as they are stored, and joined while they are cut? */
static bool made_reads_planes(const struct augment_impl *impl)
{
    return impl->array->ops == &field_planes;
}

static int making_read(struct making *m)
{
    const struct augment_impl *impl = m->walk->impl;
    const struct dataset *ds = m->walk->ds;
    const struct field *array = impl->array;
    int r = -ENOMEM;

    if (impl->files) {
        r = impl->files->read(m->rc, ds, *m->sample, m->picture, &m->bytes, &m->len, &m->reason);
    } else {
        uint64_t off = m->place * array->item_bytes;

        m->len = (size_t)array->item_bytes * m->n;
        m->bytes = malloc(m->len);
        if (m->bytes && made_reads_planes(impl))
            r = field_read_stored(m->rc, array, m->walk->sel, off, m->len, m->bytes, &m->reason);
        else if (m->bytes)
            r = array->ops->read(m->rc, ds, array, m->walk->sel, off, m->len, m->bytes, &m->reason);
    }
    if (r < 0) {
        free(m->bytes);
        m->bytes = NULL;
    }
    m->is_read = r == 0 || making_is_bad(m, r);
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
    for (size_t c = 0; c < impl->channels; c++)
        for (size_t i = 0; i < pixels; i++)
            *ret++ = rgb[i * NORMALIZE_CHANNELS + c];
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
           m->walk->impl->files->kept(m->rc, m->walk->ds, *m->sample,
                                      m->walk->sel->pictures->recipe.base, &m->base);
}

/* Make picture i of the block. */
static int making_pixels(struct making *m, unsigned i, const struct pixels *pixels,
                         struct augment_done *done)
{
    const struct augment_impl *impl = m->walk->impl;
    const struct picture_plan *plan = m->walk->sel->pictures;
    struct augment_numbers n = augment_numbers_of(plan->seed, m->walk->sel->epoch,
                                                  dataset_number(m->walk->ds, m->sample[i]),
                                                  m->position[i], plan->recipe.salt);
    AUTO_TEXT struct text where = {0};
    struct picture_array array;
    int r;

    if (!impl->files) {
        const uint64_t *dim = impl->array->dim + impl->is_planar;

        array = augment_layout(impl->is_planar || made_reads_planes(impl), impl->channels,
                               (uint32_t)dim[0], (uint32_t)dim[1],
                               m->bytes + i * impl->array->item_bytes);
        return augment_array(&array, plan, &n, pixels, done, &m->reason);
    }
    if (m->base.rgb)
        return augment_base(&m->base, plan, &n, pixels, done);
    impl->files->where(m->walk->ds, *m->sample, false, &where);
    r = augment_file(&(struct picture_file){where.data ? where.data : "picture", m->bytes, m->len},
                     plan, &n, pixels, done, making_keeps(m) ? &m->base : NULL, &m->reason);
    if (r == 0 && m->base.rgb)
        impl->files->keep(m->walk->ds, *m->sample, plan->recipe.base, &m->base);
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
    impl->files->where(m->walk->ds, *m->sample, true, &where);
    r = mask_make(&(struct picture_file){where.data ? where.data : "mask", m->bytes, m->len}, plan,
                  &m->picture->done, impl->mask_channels, made->bytes, &m->reason);
    if (r < 0)
        return making_is_bad(m, r) ? making_bad(m, ret, ret_size) : r;
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
    size_t count = (size_t)plan->height * plan->width, step = made_step(made_bytes(impl, plan));
    AUTO_FREE uint8_t *block = NULL, *rgb = NULL, *scratch = NULL;
    bool is_direct = impl->channels == NORMALIZE_CHANNELS && !impl->is_planar;
    int r;

    if (!m->is_read && !making_find_kept(m))
        return -ENODATA;
    if (m->is_read && !m->bytes)
        return making_bad(m, ret, ret_size);
    if (m->picture)
        return making_make_mask(m, ret, ret_size);
    block = malloc(step * m->n);
    scratch = malloc(count * NORMALIZE_CHANNELS);
    if (!is_direct)
        rgb = malloc(count * NORMALIZE_CHANNELS);
    if (!block || !scratch || (!is_direct && !rgb))
        return -ENOMEM;
    for (unsigned i = 0; i < m->n; i++) {
        struct made_picture *made = (void *)(block + i * step);
        const struct pixels pixels = {.rgb = is_direct ? made->bytes : rgb,
                                      .scratch = scratch,
                                      .height = plan->height,
                                      .width = plan->width};

        *made = (struct made_picture){0};
        r = making_pixels(m, i, &pixels, &made->done);
        if (r < 0)
            return making_is_bad(m, r) ? making_bad(m, ret, ret_size)
                   : m->reason.set     ? diag_set(m->d, r, "%s", m->reason.text)
                                       : r;
        if (!is_direct)
            made_lay_out(impl, rgb, count, made->bytes);
    }
    *ret = TAKE_PTR(block);
    *ret_size = step * m->n;
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

/* The block from that place on, which is looked up. */
static struct making made_walk_making(const struct made_walk *w, uint64_t place,
                                      struct read_context *rc, struct diag *d)
{
    return (struct making){.walk = w,
                           .rc = rc,
                           .place = place,
                           .n = (unsigned)min_u64(w->each, w->sel->count - place),
                           .sample = w->sample + (place - w->first),
                           .position = w->position + (place - w->first),
                           .d = d};
}

struct made_together {
    struct made_walk *walk;
    struct read_context *peek; /* notes what comes next, which nothing waits for */
    _Atomic bool is_missing;
};

static void made_one(void *ctx, unsigned i)
{
    struct made_together *t = ctx;
    struct made_walk *w = t->walk;
    bool is_needed = i * w->each < w->n_needed;
    struct making m =
        made_walk_making(w, w->first + i * w->each, is_needed ? w->rc : t->peek, NULL);
    AUTO_MEMO struct memo_thing *thing = NULL;

    if (!is_needed && atomic_load(&t->is_missing))
        return;
    if (making_get(&m, &thing) == -EAGAIN && is_needed)
        atomic_store(&t->is_missing, true);
}

void made_walk_init(struct made_walk *w, struct read_context *rc, const struct dataset *ds,
                    const struct augment_impl *impl, const struct selection *sel, bool masks)
{
    uint64_t bytes = made_bytes(impl, sel->pictures);

    *w =
        (struct made_walk){.rc = rc, .ds = ds, .impl = impl, .sel = sel, .masks = masks, .each = 1};
    if (!impl->files)
        w->each = block_pictures(max_u64(bytes, impl->array->item_bytes));
}

void made_walk_release(struct made_walk *w)
{
    memo_let_go(w->thing);
}

/* Look up the samples from the block of a place on, and make what is needed of them with what comes
 * next. */
static int made_walk_go_on(struct made_walk *w, uint64_t place, uint64_t needed)
{
    uint64_t at_once = min_u64(MAKE_BYTES / made_bytes(w->impl, w->sel->pictures), MADE_AT_ONCE);
    const struct memo_key key = made_key(w, place - place % w->each, w->masks);
    struct read_context peek;
    struct made_together together = {w, &peek, false};

    w->first = place - place % w->each;
    w->n = (unsigned)min_u64(max_u64(at_once / w->each, 1) * w->each, w->sel->count - w->first);
    w->n_needed = (unsigned)min_u64(place - w->first + needed, w->n);
    selection_samples(w->sel, w->first, w->n, w->sample);
    w->sel->positions(w->sel, w->first, w->n, w->position);
    if (w->n <= w->each || memo_has(w->impl->memo, &key))
        return 0;
    read_context_peek(&peek, w->rc);
    pool_run(w->impl->pool, (unsigned)ceil_div(w->n, w->each), made_one, &together);
    read_context_release(&peek);
    if (!together.is_missing)
        return 0;
    w->missing = w->first + w->n_needed;
    return -EAGAIN;
}

int made_walk_at(struct made_walk *w, uint64_t place, uint64_t needed,
                 const struct made_picture **ret, struct diag *d)
{
    uint64_t first = place - place % w->each;
    int r = 0;

    if (place < w->missing)
        return -EAGAIN;
    if (place < w->first || place >= w->first + w->n)
        r = made_walk_go_on(w, place, needed);
    if (r == 0 && (!w->thing || w->thing_first != first)) {
        struct making m = made_walk_making(w, first, w->rc, d);

        made_walk_release(w);
        w->thing = NULL;
        w->thing_first = first;
        r = making_get(&m, &w->thing);
    }
    if (r == 0)
        *ret = (const void *)((const uint8_t *)memo_bytes(w->thing) +
                              (place - first) * made_step(made_bytes(w->impl, w->sel->pictures)));
    return r;
}
