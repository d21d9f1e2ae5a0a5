/* One batch: its arrays are found, and read into memory. */
#include "fs/library/batches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

/* ---- which arrays ---- */

static const char *const make_parts[] = {"_offsets", "_shape", "_len"};

/* Is it asked for: by its name, or as a part of a field that is? */
static bool make_chosen(const void *ctx, const struct field *f)
{
    const struct epochfs_batches *b = ctx;

    for (const char *name = b->fields; name && *name; name += strlen(name) + 1) {
        size_t len = strlen(name);

        if (!strcmp(name, f->name))
            return true;
        for (size_t i = 0; i < ARRAY_LEN(make_parts); i++)
            if (!strncmp(f->name, name, len) && !strcmp(f->name + len, make_parts[i]) &&
                !field_is_in(f, IN_PAGES))
                return true;
    }
    return !b->fields;
}

/* ---- reading ---- */

struct make_pass {
    struct epochfs_batches *b;
    struct node node;
    struct batch_arrays *arrays;
    uint8_t *const *dst;
};

static int make_find_pass(struct read_context *rc, void *what, struct diag *d)
{
    struct make_pass *pass = what;
    const struct array_choice choice = {.in = pass->b->in, .chosen = make_chosen, .ctx = pass->b};

    batch_arrays_release(pass->arrays);
    return batch_arrays_init(rc, pass->arrays, pass->b->fs->engine.open_files, &pass->node, &choice,
                             d);
}

static int make_read_pass(struct read_context *rc, void *what, struct diag *d)
{
    struct make_pass *pass = what;

    return batch_arrays_read(rc, pass->arrays, pass->dst, d);
}

static bool make_is_ending(void *ctx)
{
    struct epochfs_batches *b = ctx;

    return library_is_closing(b->fs) || atomic_load_explicit(&b->is_stopping, memory_order_relaxed);
}

static int make_read_waiting(struct make_pass *pass,
                             int (*run)(struct read_context *rc, void *what, struct diag *d),
                             struct diag *d)
{
    const struct engine_read read = {
        .cancelled = make_is_ending, .ctx = pass->b, .pass = run, .what = pass};

    return engine_read_waiting(&pass->b->fs->engine, &read, d);
}

int batches_find_arrays(struct epochfs_batches *b, uint64_t k, struct batch_arrays *ret,
                        struct diag *d)
{
    struct make_pass pass = {.b = b, .arrays = ret};

    node_sibling(&b->node, k, node_column(&b->node), &pass.node);
    *ret = (struct batch_arrays){0};
    return make_read_waiting(&pass, make_find_pass, d);
}

int batches_read_arrays(struct epochfs_batches *b, struct batch_arrays *arrays, uint8_t *const *dst,
                        struct diag *d)
{
    struct make_pass pass = {.b = b, .arrays = arrays, .dst = dst};
    struct engine *engine = &b->fs->engine;
    const struct node *node = &arrays->samples.node;
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < arrays->n; i++)
        bytes += dst[i] ? arrays->array[i].bytes : 0;
    engine_read_begins(engine, node, bytes);
    r = make_read_waiting(&pass, make_read_pass, d);
    if (r < 0)
        return r;
    atomic_fetch_add_explicit(&engine->status.bytes_served, bytes, memory_order_relaxed);
    engine_read_ends(engine, node, 0, (size_t)bytes, (size_t)bytes + 1);
    return 0;
}

static int make_fill(struct epochfs_batches *b, struct batch_arrays *arrays,
                     struct epochfs_batch *batch, struct diag *d)
{
    AUTO_FREE uint8_t **dst = malloc((arrays->n + 1) * sizeof(*dst));

    if (!dst)
        return -ENOMEM;
    for (size_t i = 0; i < arrays->n; i++)
        dst[i] = batch->member[i].data;
    return batches_read_arrays(b, arrays, dst, d);
}

int batches_make(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret, struct diag *d)
{
    AUTO_BATCH_ARRAYS struct batch_arrays arrays = {0};
    struct epochfs_batch *batch = NULL;
    int r = batches_find_arrays(b, k, &arrays, d);

    if (r == 0)
        r = buffers_take(b->buffers, &arrays, &batch);
    if (r == 0)
        r = make_fill(b, &arrays, batch, d);
    if (r < 0) {
        buffers_give(batch);
        return r;
    }
    lock_take(&b->lock);
    b->bytes = max_u64(b->bytes, batch->capacity);
    lock_drop(&b->lock);
    *ret = batch;
    return 0;
}
