#include "format/records/record_slabs.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "format/core/format.h"

#define SLAB_BYTES  (1u << 20)
#define AHEAD_SLABS 8 /* that are read at once, and their bytes: */
#define AHEAD_BYTES (4u << 20)

void record_slabs_init(struct record_slabs *ret, const struct format_setup *setup, uint64_t bytes)
{
    *ret = (struct record_slabs){.memo = setup->memo, .pool = setup->pool};
    if (!setup->memo || !bytes || bytes > SLAB_BYTES)
        return;
    ret->bytes = (size_t)bytes;
    ret->count = (unsigned)min_u64(SLAB_RECORDS, SLAB_BYTES / bytes);
}

struct work {
    struct read_context *rc;
    const struct record_items *items;
    uint64_t block;
    struct diag *d;
};

static const struct record_slabs *slabs_of(const struct record_items *items)
{
    return items->content->slabs;
}

static struct memo_key record_slabs_key_of(const struct record_items *items, uint64_t block)
{
    const uint64_t *id = items->sel->id;

    return (struct memo_key){{(uintptr_t)slabs_of(items), id[0], id[1], id[2], block}};
}

static int record_slabs_make_slab(void *ctx, void **ret, size_t *ret_size)
{
    const struct work *w = ctx;
    const struct record_slabs *slabs = slabs_of(w->items);
    const struct selection *sel = w->items->sel;
    uint64_t first = w->block * slabs->count, record[SLAB_RECORDS];
    unsigned n = (unsigned)min_u64(slabs->count, sel->count - first);
    uint8_t *bytes = malloc(n * slabs->bytes);
    int r;

    if (!bytes)
        return -ENOMEM;
    selection_samples(sel, first, n, record);
    r = slabs->read(w->rc, w->items->ds, record, n, bytes, w->d);
    if (r < 0) {
        free(bytes);
        return r;
    }
    *ret = bytes;
    *ret_size = n * slabs->bytes;
    return 0;
}

/* ---- ahead ---- */

struct ahead {
    struct read_context *rc;
    const struct record_items *items;
    uint64_t block;
    _Atomic unsigned missing; /* bit i: of block + i */
};

static void read_one(void *ctx, unsigned i)
{
    struct ahead *ahead = ctx;
    const struct memo_key key = record_slabs_key_of(ahead->items, ahead->block + i);
    struct work w = {.rc = ahead->rc, .items = ahead->items, .block = ahead->block + i};
    AUTO_MEMO struct memo_thing *thing = NULL;

    /* Who needs a slab that cannot be read gets its error then. */
    if (memo_get(slabs_of(ahead->items)->memo, &key,
                 &(const struct memo_maker){.make = record_slabs_make_slab, .ctx = &w},
                 &thing) == -EAGAIN)
        atomic_fetch_or(&ahead->missing, 1u << i);
}

/* Read several slabs at once, from this one on, which the memo does not have. Returns those with
 * missing bytes, which are noted: bit i: block + i. */
static unsigned record_slabs_read_together(struct record_items *items, uint64_t block)
{
    const struct record_slabs *slabs = slabs_of(items);
    struct ahead ahead = {items->rc, items, block, 0};
    uint64_t left = ceil_div(items->sel->count, slabs->count) - block, sample;
    unsigned n = (unsigned)min_u64(left, AHEAD_BYTES / (slabs->count * slabs->bytes));

    if (n < 2)
        return 0;
    /* The first call must not run in the pool's threads. */
    selection_samples(items->sel, block * slabs->count, 1, &sample);
    pool_run(slabs->pool, (unsigned)min_u64(n, AHEAD_SLABS), read_one, &ahead);
    return ahead.missing;
}

/* ---- reading ---- */

/* Copy bytes [off, off + len) of the items of a block: its slab has them column by column. */
static void copy_items(const struct record_items *items, const uint8_t *slab, uint64_t block,
                       uint64_t off, size_t len, uint8_t *dst)
{
    const struct record_slabs *slabs = slabs_of(items);
    uint64_t n = min_u64(slabs->count, items->sel->count - block * slabs->count);

    memcpy(dst, slab + items->content->slab_at * n + off, len);
}

int record_slabs_read(struct record_items *items, uint64_t each, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    const struct record_slabs *slabs = slabs_of(items);
    const uint64_t block_bytes = each * slabs->count;
    uint64_t tried = UINT64_MAX;
    unsigned missing = 0;
    int all = 0;

    while (len) {
        uint64_t block = off / block_bytes;
        size_t n = (size_t)min_u64(len, block_bytes - off % block_bytes);
        const struct memo_key key = record_slabs_key_of(items, block);
        struct work w = {.rc = items->rc, .items = items, .block = block, .d = d};
        const struct memo_maker maker = {record_slabs_make_slab, &w, items->rc};
        AUTO_MEMO struct memo_thing *thing = NULL;
        int r = 0;

        if (!memo_has(slabs->memo, &key) && (tried == UINT64_MAX || block - tried >= AHEAD_SLABS)) {
            tried = block;
            missing = record_slabs_read_together(items, block);
        }
        if (tried != UINT64_MAX && block - tried < AHEAD_SLABS && missing >> (block - tried) & 1)
            r = -EAGAIN;
        else
            r = memo_get(slabs->memo, &key, &maker, &thing);
        if (r == 0)
            copy_items(items, memo_bytes(thing), block, off % block_bytes, n, dst);
        if (!missing_go_on(items->rc, r, &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}
