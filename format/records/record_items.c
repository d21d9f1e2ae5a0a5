#include "format/records/record_items.h"

#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

#define MANY   1024 /* records that are read together, if they have no order */
#define PIECES 64   /* contents that are read together */

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

int record_padded_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_content *c = items->content;
    uint64_t dim[RECORD_AXES], bytes;
    size_t n;
    int r = record_dims(items, sample, dim, d);

    (void)before;
    if (r < 0)
        return r;
    bytes = record_bytes(c, dim);
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, items->pad, len - n);
    return n ? c->ops->read(items->rc, items->ds, c, sample, off, n, dst, d) : 0;
}

/* ---- walks ---- */

void record_items_init(struct record_items *items, struct read_context *rc,
                       const struct dataset *ds, const struct field *f, const struct selection *sel)
{
    *items = (struct record_items){.rc = rc,
                                   .ds = ds,
                                   .field = f,
                                   .content = f->impl,
                                   .costly = f->form_reads && !sel->single,
                                   .sel = sel,
                                   .reason = sel->reason,
                                   .window.sel = sel};
}

uint64_t record_items_sample(struct record_items *items, uint64_t place)
{
    return sample_window_at(&items->window, place);
}

static int run_as_is(struct record_items *items, uint64_t place, uint64_t skip, size_t len,
                     uint8_t *dst, size_t *ret_n, struct diag *d)
{
    const struct record_content *c = items->content;
    struct blob_piece piece[PIECES];
    const struct blob *blob = NULL;
    struct extent e;
    size_t n = 0, at = 0;
    int r;

    for (; place < items->sel->count && n < PIECES && at < len; place++, skip = 0) {
        if (!c->ops->as_is(items->ds, c, record_items_sample(items, place), &e) || e.len <= skip ||
            (blob && e.blob != blob))
            break;
        blob = e.blob;
        piece[n] =
            (struct blob_piece){dst + at, (size_t)min_u64(e.len - skip, len - at), e.off + skip};
        at += piece[n++].len;
        if (items->ends && at < len)
            dst[at++] = items->pad;
    }
    *ret_n = at;
    r = n ? blob_read_many(items->rc, blob, piece, n, d) : 0;
    return r < 0 || !n ? r : blob_used(items->rc, blob, d);
}

void record_items_read_runs(struct record_items *items, bool ends)
{
    const struct record_content *c = items->content;

    items->run = c && c->ops->as_is && !c->make_at_once ? run_as_is : NULL;
    items->ends = ends;
}

/* Make what item() needs from this place on, where that is costly: a reader mostly needs the
 * following places next, so they are made together. needed: places of this read. */
static int make_items(struct record_items *items, uint64_t place, uint64_t needed)
{
    const struct record_content *c = items->content;
    uint64_t record[RECORD_MAKES];
    unsigned n;

    if (place < items->missing)
        return -EAGAIN;
    if (!c || !c->make_at_once || place < items->made ||
        c->ops->is_made(items->ds, c, record_items_sample(items, place)))
        return 0;
    n = (unsigned)min_u64(c->make_at_once, items->sel->count - place);
    items->made = place + n;
    if (n < 2)
        return 0;
    selection_samples(items->sel, place, n, record);
    needed = min_u64(needed, n);
    if (c->ops->make(items->rc, items->ds, c, record, n, (unsigned)needed) != -EAGAIN)
        return 0;
    items->missing = place + needed;
    return -EAGAIN;
}

/* The memo's key contains the address of number(), which distinguishes it from other sums over the
 * same content. */
int record_items_sums(struct record_items *items, sums_fn *number, struct sums *ret)
{
    const uint64_t *id = items->sel->id;
    const void *owner = items->content ? (const void *)items->content : (const void *)items->ds;
    const struct memo_key key = {
        {(uintptr_t)owner, id[0], id[1], id[2], (uintptr_t)number, items->extra}};

    if (items->known)
        return sums_open_known(ret, items->ds->memo, &key, items->sel, number, items->known, items);
    return sums_open(ret, items->ds->memo, &key, items->sel, number, items->costly, items);
}

int record_items_read(struct record_items *items, sums_fn *number, uint64_t unit,
                      record_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before, after;
    uint64_t place = 0;
    int r, one, all = 0;

    items->reason = d;
    r = record_items_sums(items, number, &sums);
    if (r == 0 && len)
        r = sums_find(&sums, off / unit, &place, &before);
    for (; r == 0 && len; place++, before = after) {
        uint64_t end;
        size_t n, run = 0;

        r = sums_after(&sums, place, &before, &after);
        end = after.size * unit;
        if (r < 0 || end <= off)
            continue;
        n = (size_t)min_u64(len, end - off);
        one = make_items(items, place, 1 + len / (end - before.size * unit));
        if (one == 0 && items->run)
            one = items->run(items, place, off - before.size * unit, len, dst, &run, d);
        if (run)
            n = run;
        else if (one == 0)
            one = item(items, record_items_sample(items, place), &before, off - before.size * unit,
                       n, dst, d);
        if (!missing_go_on(items->rc, one, &all))
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
        int r = make_items(items, off / each, ceil_div(off % each + len, each));

        if (r == 0)
            r = item(items, record_items_sample(items, off / each), NULL, off % each, n, dst, d);
        if (!missing_go_on(items->rc, r, &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

int record_items_read_many(struct record_items *items, uint64_t each, uint64_t off, size_t len,
                           uint8_t *dst, struct diag *d)
{
    const struct record_content *c = items->content;
    uint8_t one[RECORD_MANY_BYTES];
    int all = 0;

    for (size_t bytes; len; dst += bytes, off += bytes, len -= bytes) {
        size_t skip = (size_t)(off % each);
        bool is_part = skip || len < each;
        unsigned most = items->sel->in_order ? UINT_MAX : MANY;
        unsigned n = is_part ? 1 : (unsigned)min_u64(len / each, most);
        int r = c->ops->read_many(items->rc, items->ds, c, items->sel, off / each, n, &n,
                                  is_part ? one : dst, d);

        bytes = is_part ? (size_t)min_u64(len, each - skip) : (size_t)(n * each);
        if (!missing_go_on(items->rc, r, &all))
            break;
        if (r == 0 && is_part)
            memcpy(dst, one + skip, bytes);
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
