#include "format/records/record_items.h"

#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

/* ---- one content of one record ---- */

uint64_t record_bytes(const struct record_content *c, const uint64_t *dim)
{
    uint64_t bytes = dtype_info(c->dtype)->bytes;

    for (unsigned i = 0; i < c->ndim; i++)
        bytes *= dim[i];
    return bytes;
}

int record_dims(const struct record_items *items, uint64_t sample,
                uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    return items->content->ops->dims(items->ds, items->content, sample, ret_dim, d);
}

int record_read_padded(struct record_items *items, uint64_t sample, uint64_t bytes, uint8_t pad,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_content *c = items->content;
    size_t n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;

    memset(dst + n, pad, len - n);
    return n ? c->ops->read(items->rc, items->ds, c, sample, off, n, dst, d) : 0;
}

/* ---- walks ---- */

void record_items_init(struct record_items *items, struct read_context *rc,
                       const struct dataset *ds, const struct field *f, const struct selection *sel)
{
    *items = (struct record_items){.rc = rc,
                                   .ds = ds,
                                   .content = f->impl,
                                   .sel = sel,
                                   .reason = sel->reason,
                                   .window.sel = sel};
}

uint64_t record_items_sample(struct record_items *items, uint64_t place)
{
    return sample_window_at(&items->window, place);
}

/* The memo's key contains the address of number(), which distinguishes it from other sums over the
 * same content. */
int record_items_sums(struct record_items *items, sums_fn *number, struct sums *ret)
{
    const uint64_t *id = items->sel->id;
    const void *owner = items->content ? (const void *)items->content : (const void *)items->ds;
    const struct memo_key key = {
        {(uintptr_t)owner, id[0], id[1], id[2], (uintptr_t)number, items->extra}};

    return sums_open(ret, items->ds->memo, &key, items->sel, number, items);
}

int record_items_read(struct record_items *items, sums_fn *number, uint64_t unit,
                      record_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before, after;
    uint64_t place = 0;
    int r, all = 0;

    items->reason = d;
    r = record_items_sums(items, number, &sums);
    if (r == 0 && len)
        r = sums_find(&sums, off / unit, &place, &before);
    for (; r == 0 && len; place++, before = after) {
        uint64_t end;
        size_t n;

        r = sums_after(&sums, place, &before, &after);
        end = after.size * unit;
        if (r < 0 || end <= off)
            continue;
        n = (size_t)min_u64(len, end - off);
        if (!missing_go_on(items->rc,
                           item(items, record_items_sample(items, place), &before,
                                off - before.size * unit, n, dst, d),
                           &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return r < 0 ? r : all;
}

int record_items_read_even(struct record_items *items, uint64_t each, record_item_fn *item,
                           uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    int all = 0;

    while (len) {
        size_t n = (size_t)min_u64(len, each - off % each);
        uint64_t sample = record_items_sample(items, off / each);

        if (!missing_go_on(items->rc, item(items, sample, NULL, off % each, n, dst, d), &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

int record_items_form(struct record_items *items, sums_fn *number, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    int r = record_items_sums(items, number, &sums);

    if (r < 0)
        return r;
    ret->ndim = 1;
    ret->dim[0] = sums_total(&sums).size;
    return 0;
}
