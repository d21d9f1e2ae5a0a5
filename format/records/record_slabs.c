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
#define AHEAD_BYTES (4u << 20) /* of slabs that are made at once */

void record_slabs_init(struct record_slabs *ret, const struct format_setup *setup, uint64_t bytes)
{
    *ret = (struct record_slabs){.memo = setup->memo, .pool = setup->pool};
    if (!setup->memo || !bytes || bytes > SLAB_BYTES)
        return;
    ret->bytes = (size_t)bytes;
    ret->count = (unsigned)min_u64(SLAB_RECORDS, SLAB_BYTES / bytes);
}

/* ---- slabs of any kind ---- */

struct work {
    const struct slab_reader *reader;
    uint64_t block;
    struct diag *d;
};

static int make_slab(void *ctx, void **ret, size_t *ret_size)
{
    const struct work *w = ctx;

    return w->reader->make(w->reader, w->block, ret, ret_size, w->d);
}

static struct memo_key slab_key(const struct slab_reader *reader, uint64_t block)
{
    const uint64_t *id = reader->sel->id;

    return (struct memo_key){
        {(uintptr_t)reader->owner, id[0], id[1], id[2], block, reader->places}};
}

struct ahead {
    const struct slab_reader *reader;
    uint64_t block;
    _Atomic unsigned missing; /* bit i: of block + i */
};

static void make_ahead(void *ctx, unsigned i)
{
    struct ahead *ahead = ctx;
    const struct memo_key key = slab_key(ahead->reader, ahead->block + i);
    struct work w = {.reader = ahead->reader, .block = ahead->block + i};
    AUTO_MEMO struct memo_thing *thing = NULL;

    /* Who needs a slab that cannot be made gets its error then. */
    if (memo_get(ahead->reader->memo, &key,
                 &(const struct memo_maker){.make = make_slab, .ctx = &w}, &thing) == -EAGAIN)
        atomic_fetch_or(&ahead->missing, 1u << i);
}

/* Make several slabs at once, from this one on, which the memo does not have. */
static void make_together(struct slab_reader *reader, uint64_t block)
{
    struct ahead ahead = {reader, block, 0};
    uint64_t n = min_u64(reader->together(reader, block), SLABS_AHEAD), sample;

    reader->tried = block;
    reader->n_tried = n;
    if (n > 1) {
        /* The first call must not run in the pool's threads. */
        selection_samples(reader->sel, block * reader->places, 1, &sample);
        pool_run(reader->pool, (unsigned)n, make_ahead, &ahead);
    }
    reader->missing = ahead.missing;
}

int slab_get(struct slab_reader *reader, uint64_t block, struct memo_thing **ret, struct diag *d)
{
    const struct memo_key key = slab_key(reader, block);
    struct work w = {reader, block, d};
    bool was_tried = block >= reader->tried && block - reader->tried < reader->n_tried;

    if (!was_tried && !memo_has(reader->memo, &key)) {
        make_together(reader, block);
        was_tried = true;
    }
    if (was_tried && reader->missing >> (block - reader->tried) & 1)
        return -EAGAIN;
    return memo_get(
        reader->memo, &key,
        &(const struct memo_maker){make_slab, &w, reader->rc ? reader->rc : reader->sel->rc}, ret);
}

/* ---- slabs of numbers ---- */

static const struct record_slabs *slabs_of(const struct record_items *items)
{
    return items->content->slabs;
}

static int make_numbers(const struct slab_reader *reader, uint64_t block, void **ret,
                        size_t *ret_size, struct diag *d)
{
    const struct record_items *items = reader->ctx;
    const struct record_slabs *slabs = slabs_of(items);
    uint64_t first = block * slabs->count, record[SLAB_RECORDS];
    unsigned n = (unsigned)min_u64(slabs->count, reader->sel->count - first);
    uint8_t *bytes = malloc(n * slabs->bytes);
    int r;

    if (!bytes)
        return -ENOMEM;
    selection_samples(reader->sel, first, n, record);
    r = slabs->read(reader->rc, items->ds, record, n, bytes, d);
    if (r < 0) {
        free(bytes);
        return r;
    }
    *ret = bytes;
    *ret_size = n * slabs->bytes;
    return 0;
}

static uint64_t numbers_together(const struct slab_reader *reader, uint64_t block)
{
    const struct record_slabs *slabs = slabs_of(reader->ctx);

    return min_u64(ceil_div(reader->sel->count, slabs->count) - block,
                   AHEAD_BYTES / (slabs->count * slabs->bytes));
}

int record_slabs_read(struct record_items *items, uint64_t each, uint64_t off, size_t len,
                      uint8_t *dst, struct diag *d)
{
    const struct record_slabs *slabs = slabs_of(items);
    const uint64_t block_bytes = each * slabs->count;
    struct slab_reader reader = {.rc = items->rc,
                                 .sel = items->sel,
                                 .memo = slabs->memo,
                                 .pool = slabs->pool,
                                 .owner = slabs,
                                 .ctx = items,
                                 .places = slabs->count,
                                 .make = make_numbers,
                                 .together = numbers_together};
    int all = 0;

    while (len) {
        uint64_t block = off / block_bytes;
        size_t n = (size_t)min_u64(len, block_bytes - off % block_bytes);
        uint64_t count = min_u64(slabs->count, items->sel->count - block * slabs->count);
        AUTO_MEMO struct memo_thing *thing = NULL;
        int r = slab_get(&reader, block, &thing, d);

        if (r == 0) /* column by column */
            memcpy(dst,
                   (const uint8_t *)memo_bytes(thing) + items->content->slab_at * count +
                       off % block_bytes,
                   n);
        if (!missing_go_on(items->rc, r, &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}
