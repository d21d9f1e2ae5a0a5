#include "fs/library/batches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/plan_fields.h"

/* ---- which arrays ---- */

/* Do all names name an array? */
static int batches_check_fields(const struct epochfs_batches *b, struct diag *d)
{
    const struct dataset *ds = b->node.item->ds;
    bool makes = b->node.plan->makes_pictures;
    const struct field *units = plan_unit_field(b->node.plan);
    unsigned n = plan_fields_count(ds, makes, units);
    AUTO_TEXT struct text names = {0};

    for (const char *name = b->fields; name && *name; name += strlen(name) + 1) {
        bool has = false;

        for (unsigned i = 0; i < n; i++) {
            const struct field *f = plan_fields_at(ds, makes, units, i);

            has = has || (f && field_is_in(f, b->in) && !strcmp(f->name, name));
        }
        if (has)
            continue;
        for (unsigned i = 0; i < n; i++) {
            const struct field *f = plan_fields_at(ds, makes, units, i);

            if (f && field_is_in(f, b->in))
                text_add(&names, "%s%s", names.len ? ", " : "", f->name);
        }
        return diag_set(d, -ENOENT, "field %s: expected one of %s", name,
                        names.data ? names.data : "none");
    }
    return 0;
}

/* "image,label" as names, each with its NUL, and an empty one. */
static int batches_set_fields(struct epochfs_batches *b, const char *fields)
{
    size_t len = fields ? strlen(fields) : 0;

    if (!fields)
        return 0;
    b->fields = calloc(len + 2, 1);
    if (!b->fields)
        return -ENOMEM;
    memcpy(b->fields, fields, len);
    for (size_t i = 0; i < len; i++)
        if (b->fields[i] == ',')
            b->fields[i] = '\0';
    return 0;
}

/* ---- opening ---- */

static int batches_set_encoding(struct epochfs_batches *b, const char *encoding, struct diag *d)
{
    b->in = !strcmp(encoding, "npz")         ? IN_NPZ_BATCHES
            : !strcmp(encoding, "npy")       ? IN_NPY_BATCHES
            : !strcmp(encoding, "csc")       ? IN_CSC
            : !strcmp(encoding, "csc_value") ? IN_CSC_VALUE
                                             : 0;
    return b->in
               ? 0
               : diag_set(d, -EINVAL, "encoding %s: expected npz, npy, csc or csc_value", encoding);
}

/* The first file of the folder. */
static int batches_first_file(struct epochfs_batches *b, const char *path, struct diag *d)
{
    char name[TREE_NAME_SIZE];
    struct node folder;
    int r = library_find(b->fs, path, &folder, d);

    while (r == 0 && (r = tree_list(b->fs->engine.tree, &folder, 0, &b->node, name)) == -EAGAIN)
        r = handle_wait(b->fs, folder.item, d); /* batches that have to be counted */
    if (r >= 0 && b->node.type == NODE_BATCH)
        return 0;
    return diag_set(d, r < 0 ? r : -ENOENT, "%s: the plan has no batches", path);
}

static int batches_find_plan(struct epochfs_batches *b, const struct epochfs_plan *plan,
                             struct diag *d)
{
    const char *encoding = plan->encoding ? plan->encoding : "npz";
    AUTO_TEXT struct text path = {0};
    struct node node;
    int r = batches_set_encoding(b, encoding, d);

    if (r < 0)
        return r;
    if (strchr(plan->plan, '/'))
        return diag_set(d, -EINVAL, "plan %s: expected a plan, such as batch=128,seed=7",
                        plan->plan);
    text_add(&path, "%s/batches/%s", plan->dataset, plan->plan);
    if (path.failed)
        return -ENOMEM;
    r = library_find(b->fs, path.data, &node, d);
    if (r < 0)
        return diag_set(d, r, "%s: %s", path.data, r == -ENOENT ? "no such plan" : strerror(-r));
    if (node.type != NODE_PLAN)
        return diag_set(d, -EINVAL, "%s: expected a plan", path.data);
    if (node.plan->plan.seeded)
        text_add(&path, "/epoch=%llu", (unsigned long long)plan->epoch);
    text_add(&path, "/%s", encoding);
    if (path.failed)
        return -ENOMEM;
    r = batches_first_file(b, path.data, d);
    if (r < 0)
        return r;
    b->count = node_units(&b->node);
    return batches_check_fields(b, d);
}

static void batches_free(struct epochfs_batches *b)
{
    buffers_close(b->buffers);
    pthread_cond_destroy(&b->wake);
    lock_release(&b->lock);
    free(b->fields);
    free(b);
}

static void batches_link(struct epochfs_batches *b)
{
    LOCK_SCOPE(&b->fs->lock);

    b->next = b->fs->batches;
    b->fs->batches = b;
    b->fs->refs++;
}

/* A struct of the caller, as far as it has one. */
static struct epochfs_plan batches_plan(const struct epochfs_plan *plan)
{
    struct epochfs_plan ret = {0};

    memcpy(&ret, plan, (size_t)min_u64(plan->size, sizeof(ret)));
    return ret;
}

static int batches_open(struct epochfs_batches *b, const struct epochfs_plan *plan, struct diag *d)
{
    int r = batches_set_fields(b, plan->fields);

    if (r == 0)
        r = buffers_new(&b->buffers);
    if (r == 0)
        r = batches_find_plan(b, plan, d);
    if (r == 0)
        batches_link(b);
    return r;
}

PUBLIC struct epochfs_batches *epochfs_batches_open(struct epochfs *fs,
                                                    const struct epochfs_plan *plan,
                                                    struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    const struct epochfs_plan how = plan ? batches_plan(plan) : (struct epochfs_plan){0};
    struct epochfs_batches *b;
    struct diag d = DIAG_INIT;
    int r;

    if (!how.dataset || !how.plan) {
        library_fail(error, EINVAL, "expected a dataset and a plan, got none");
        return NULL;
    }
    if (library_enter(fs, error) < 0)
        return NULL;
    b = calloc(1, sizeof(*b));
    r = b ? 0 : -ENOMEM;
    if (b) {
        b->fs = fs;
        b->stride = 1;
        lock_init(&b->lock);
        condition_init(&b->wake);
        r = batches_open(b, &how, &d);
    }
    library_leave(fs);
    if (r == 0)
        return b;
    library_fail_for(error, r, &d, how.plan);
    if (b)
        batches_free(b);
    return NULL;
}

/* Take it off the list of fs. false: it is not on it any more. */
static bool batches_unlink_locked(struct epochfs *fs, struct epochfs_batches *b)
{
    struct epochfs_batches **at = &fs->batches;

    lock_assert_held(&fs->lock);
    while (*at && *at != b)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = b->next;
    return true;
}

static void batches_end(struct epochfs_batches *b)
{
    atomic_store(&b->is_stopping, true);
    batches_stop(b);
}

void library_batches_end(struct epochfs *fs)
{
    struct epochfs_batches *b;

    lock_take(&fs->lock);
    while ((b = fs->batches)) {
        fs->batches = b->next;
        lock_drop(&fs->lock);
        batches_end(b);
        lock_take(&fs->lock);
        b->is_over = true;
        pthread_cond_broadcast(&fs->wake);
    }
    lock_drop(&fs->lock);
}

PUBLIC void epochfs_batches_close(struct epochfs_batches *b)
{
    struct epochfs *fs = b ? b->fs : NULL;
    bool is_mine;

    if (!b || fs->pid != getpid())
        return;
    lock_take(&fs->lock);
    is_mine = batches_unlink_locked(fs, b);
    fs->calls += is_mine; /* epochfs_close() of another thread waits until its makers have ended */
    while (!is_mine && !b->is_over)
        lock_wait(&fs->lock, &fs->wake);
    lock_drop(&fs->lock);
    if (is_mine) {
        batches_end(b);
        library_leave(fs);
    }
    batches_free(b);
    library_unref(fs);
}

/* ---- batches ---- */

PUBLIC uint64_t epochfs_batches_count(const struct epochfs_batches *b)
{
    return b ? b->count : 0;
}

/* A call begins that is about batch k. */
static int batches_enter(struct epochfs_batches *b, uint64_t k, struct epochfs_error *error)
{
    if (!b)
        return library_fail(error, EINVAL, "expected batches that are open, got NULL");
    if (library_enter(b->fs, error) < 0)
        return -1;
    if (k < b->count)
        return 0;
    library_leave(b->fs);
    return library_fail(error, ERANGE, "batch %llu: expected one below %llu", (unsigned long long)k,
                        (unsigned long long)b->count);
}

/* A call has ended with r. 0 or -1. */
static int batches_leave(struct epochfs_batches *b, uint64_t k, int r, const struct diag *d,
                         struct epochfs_error *error)
{
    char what[64];

    if (r < 0 && r != -EINTR)
        status_read_error(&b->fs->engine.status, diag_text(d, r));
    library_leave(b->fs);
    snprintf(what, sizeof(what), "batch %llu", (unsigned long long)k);
    return r < 0 ? library_fail_for(error, r, d, what) : 0;
}

PUBLIC int epochfs_batches_arrays(struct epochfs_batches *b, uint64_t k,
                                  int (*each)(void *ctx, const struct epochfs_array *array),
                                  void *ctx, struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    AUTO_BATCH_ARRAYS struct batch_arrays arrays = {0};
    struct epochfs_batch *batch = NULL;
    struct diag d = DIAG_INIT;
    int r;

    if (!each)
        return library_fail(error, EINVAL, "expected a function, got NULL");
    if (batches_enter(b, k, error) < 0)
        return -1;
    r = batches_find_arrays(b, k, &arrays, &d);
    if (r == 0)
        r = buffers_describe(&arrays, &batch);
    for (size_t i = 0; r == 0 && i < batch->n; i++) {
        struct epochfs_array array = {.size = sizeof(array)};

        epochfs_batch_array(batch, i, &array);
        if (each(ctx, &array))
            break;
    }
    buffers_give(batch);
    return batches_leave(b, k, r, &d, error);
}

/* Is the memory of the caller large enough? */
static int batches_check_memory(const struct batch_arrays *arrays, void *const *memory,
                                const size_t *size, size_t n, struct diag *d)
{
    if (n != arrays->n)
        return diag_set(d, -ERANGE, "expected memory for %zu arrays, got %zu", arrays->n, n);
    for (size_t i = 0; i < n; i++)
        if (memory[i] && size[i] < arrays->array[i].bytes)
            return diag_set(d, -ERANGE, "%s: expected %llu bytes of memory, got %zu",
                            arrays->array[i].field->name,
                            (unsigned long long)arrays->array[i].bytes, size[i]);
    return 0;
}

PUBLIC int epochfs_batches_read(struct epochfs_batches *b, uint64_t k, void *const *memory,
                                const size_t *size, size_t n, struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    AUTO_BATCH_ARRAYS struct batch_arrays arrays = {0};
    struct diag d = DIAG_INIT;
    int r;

    if (n && (!memory || !size))
        return library_fail(error, EINVAL, "expected memory and its sizes, got NULL");
    if (batches_enter(b, k, error) < 0)
        return -1;
    r = batches_find_arrays(b, k, &arrays, &d);
    if (r == 0)
        r = batches_check_memory(&arrays, memory, size, n, &d);
    if (r == 0)
        r = batches_read_arrays(b, &arrays, (uint8_t *const *)memory, &d);
    return batches_leave(b, k, r, &d, error);
}

PUBLIC struct epochfs_batch *epochfs_batches_take(struct epochfs_batches *b, uint64_t k,
                                                  struct epochfs_error *error)
{
    C_LOCALE_SCOPE();
    struct epochfs_batch *batch = NULL;
    struct diag d = DIAG_INIT;
    int r;

    if (batches_enter(b, k, error) < 0)
        return NULL;
    r = batches_take(b, k, &batch, &d);
    return batches_leave(b, k, r, &d, error) < 0 ? NULL : batch;
}

PUBLIC void epochfs_batch_give(struct epochfs_batch *batch)
{
    buffers_give(batch);
}

PUBLIC size_t epochfs_batch_count(const struct epochfs_batch *batch)
{
    return batch ? batch->n : 0;
}

PUBLIC int epochfs_batch_array(const struct epochfs_batch *batch, size_t i,
                               struct epochfs_array *ret)
{
    const struct batch_member *member;
    struct epochfs_array found;

    if (!batch || !ret || i >= batch->n)
        return -1;
    member = &batch->member[i];
    found = (struct epochfs_array){
        .size = (size_t)min_u64(ret->size, sizeof(found)),
        .name = member->name,
        .descr = member->descr,
        .shape = member->shape,
        .ndim = member->ndim,
        .bytes = member->bytes,
        .data = member->data,
    };
    memcpy(ret, &found, found.size);
    return 0;
}
