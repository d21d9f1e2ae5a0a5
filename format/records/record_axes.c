#include "format/records/record_axes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"

#define FEW        32   /* samples of a selection whose axes are found again each time */
#define LOOK_EVERY 4096 /* samples of a walk between two looks whether its reader still waits */

/* What a walk over a selection finds. */
struct axes {
    bool differs, has_rows;
    uint64_t of_rows[RECORD_AXES]; /* those of the first array that has rows */
    uint64_t most[RECORD_AXES];
};

void record_axes_set(struct record_items *items, const uint64_t *dim)
{
    memcpy(items->axis, dim, sizeof(items->axis));
    items->tail = 1;
    for (unsigned i = 1; i < items->content->ndim; i++)
        items->tail *= dim[i];
    items->has_tail = true;
}

/* ---- the axes of a selection ---- */

static void record_axes_add_array(const struct record_content *c, const uint64_t *dim,
                                  struct axes *axes)
{
    for (unsigned i = 0; i < c->ndim; i++) {
        axes->most[i] = max_u64(axes->most[i], dim[i]);
        axes->differs |= i && dim[0] && axes->has_rows && dim[i] != axes->of_rows[i];
    }
    if (dim[0] && !axes->has_rows) {
        memcpy(axes->of_rows, dim, sizeof(axes->of_rows));
        axes->has_rows = true;
    }
}

static int record_axes_walk(struct record_items *items, struct axes *ret)
{
    *ret = (struct axes){0};
    for (uint64_t place = 0; place < items->sel->count; place++) {
        uint64_t dim[RECORD_AXES] = {0};
        int r = record_dims(items, record_items_sample(items, place), dim, items->reason);

        if (r < 0)
            return r;
        record_axes_add_array(items->content, dim, ret);
        if (place % LOOK_EVERY == LOOK_EVERY - 1 && read_cancelled(items->sel->rc))
            return -EINTR;
    }
    return 0;
}

static int make_axes(void *ctx, void **ret, size_t *ret_size)
{
    AUTO_FREE struct axes *axes = malloc(sizeof(*axes));
    int r = axes ? record_axes_walk(ctx, axes) : -ENOMEM;

    if (r < 0)
        return r;
    *ret = TAKE_PTR(axes);
    *ret_size = sizeof(*axes);
    return 0;
}

/* As the sums over the selection, they are remembered. */
static int find_axes(struct record_items *items, struct axes *ret)
{
    const struct selection *sel = items->sel;
    const struct memo_key key = {{(uintptr_t)items->content, sel->id[0], sel->id[1], sel->id[2],
                                  (uintptr_t)make_axes, items->extra}};
    const struct memo_maker maker = {make_axes, items, sel->rc};
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r;

    if (sel->count <= FEW)
        return record_axes_walk(items, ret);
    r = memo_get(items->ds->memo, &key, &maker, &thing);
    if (r == 0)
        *ret = *(const struct axes *)memo_bytes(thing);
    return r;
}

int record_axes_find(struct record_items *items)
{
    const struct record_content *c = items->content;
    bool varies = false;
    struct axes axes;
    int r = 0;

    for (unsigned i = 1; i < c->ndim; i++)
        varies = varies || c->dim[i] == DIM_VARIES;
    if (!varies) {
        record_axes_set(items, c->dim);
        return 0;
    }
    if (c->pads_axes) {
        r = find_axes(items, &axes);
        if (r < 0)
            return r;
        items->differs = axes.differs;
        memcpy(items->most, axes.most, sizeof(items->most));
        record_axes_set(items, axes.has_rows ? axes.of_rows : axes.most);
        return 0;
    }
    for (uint64_t place = 0; place < items->sel->count && !items->has_tail && r == 0; place++) {
        uint64_t dim[RECORD_AXES];

        r = record_dims(items, record_items_sample(items, place), dim, items->reason);
        if (r == 0 && dim[0])
            record_axes_set(items, dim);
    }
    return r;
}

/* ---- padded along each axis ---- */

/* An array and its padded copy, by rows of their last axis. */
struct padding {
    unsigned ndim;
    const uint64_t *most, *dim;
    uint64_t width;
};

uint64_t record_axes_padded(const struct record_items *items)
{
    uint64_t n = 1;

    for (unsigned i = 0; i < items->content->ndim; i++)
        n *= items->most[i];
    return n;
}

/* The row of the array that row `row` of the padded one has; false: it has only zeros. */
static bool record_axes_find_row(const struct padding *p, uint64_t row, uint64_t *ret)
{
    uint64_t at[RECORD_AXES], result = 0;

    for (unsigned i = p->ndim - 1; i-- > 0; row /= p->most[i])
        at[i] = row % p->most[i];
    for (unsigned i = 0; i + 1 < p->ndim; i++) {
        if (at[i] >= p->dim[i])
            return false;
        result = result * p->dim[i] + at[i];
    }
    *ret = result;
    return p->dim[p->ndim - 1] > 0;
}

/* Bytes of the array that are in the padded one from byte *at on, before `end`: *ret_from, so many
 * are returned; *at moves behind their row. 0: none of that row. */
static size_t next_piece(const struct padding *p, uint64_t *at, uint64_t end, uint64_t *ret_at,
                         uint64_t *ret_from)
{
    uint64_t padded = p->most[p->ndim - 1] * p->width, has = p->dim[p->ndim - 1] * p->width;
    uint64_t row = *at / padded, skip = *at % padded, from;
    size_t n;

    *ret_at = *at;
    *at = min_u64((row + 1) * padded, end);
    if (skip >= has || !record_axes_find_row(p, row, &from))
        return 0;
    n = (size_t)min_u64(has - skip, end - *ret_at);
    *ret_from = from * has + skip;
    return n;
}

/* Rows keep their order, so the bytes that are needed lie between the first and the last. */
int record_axes_read(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_content *c = items->content;
    uint64_t dim[RECORD_AXES], at, place, from, first = 0, last = 0;
    struct padding p = {c->ndim, items->most, dim, dtype_info(c->dtype)->bytes};
    AUTO_FREE uint8_t *bytes = NULL;
    int r = record_dims(items, sample, dim, d);

    (void)before;
    if (r < 0)
        return r;
    memset(dst, 0, len);
    for (at = off; at < off + len;) {
        size_t n = next_piece(&p, &at, off + len, &place, &from);

        if (!n)
            continue;
        first = last ? first : from;
        last = from + n;
    }
    if (!last)
        return 0;
    bytes = malloc((size_t)(last - first));
    if (!bytes)
        return -ENOMEM;
    r = c->ops->read(items->rc, items->ds, c, sample, first, (size_t)(last - first), bytes, d);
    for (at = off; at < off + len && r == 0;) {
        size_t n = next_piece(&p, &at, off + len, &place, &from);

        if (n)
            memcpy(dst + (place - off), bytes + (from - first), n);
    }
    return r;
}
