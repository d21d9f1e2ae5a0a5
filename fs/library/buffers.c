#include "fs/library/buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/lock.h"
#include "fs/tree/arrays.h"

struct buffers {
    pid_t pid; /* a child that was forked leaves all as it is: a lock may be held for ever */
    struct lock lock;
    /* Guarded by lock: */
    unsigned refs; /* until buffers_close(), and batches that are out */
    bool is_closed;
    unsigned n;
    struct {
        uint8_t *memory;
        size_t capacity;
    } kept[BUFFERS_KEPT];
};

int buffers_new(struct buffers **ret)
{
    struct buffers *buffers = calloc(1, sizeof(*buffers));

    if (!buffers)
        return -ENOMEM;
    buffers->pid = getpid();
    buffers->refs = 1;
    lock_init(&buffers->lock);
    *ret = buffers;
    return 0;
}

static void buffers_unref(struct buffers *buffers)
{
    bool is_last;

    lock_take(&buffers->lock);
    is_last = --buffers->refs == 0;
    lock_drop(&buffers->lock);
    if (!is_last)
        return;
    lock_release(&buffers->lock);
    free(buffers);
}

void buffers_close(struct buffers *buffers)
{
    if (!buffers)
        return;
    lock_take(&buffers->lock);
    buffers->is_closed = true;
    while (buffers->n)
        free(buffers->kept[--buffers->n].memory);
    lock_drop(&buffers->lock);
    buffers_unref(buffers);
}

/* A kept memory of at least that capacity; otherwise one that is to be freed, or NULL. */
static uint8_t *buffers_find(struct buffers *buffers, size_t size, size_t *ret_capacity)
{
    uint8_t *memory;
    unsigned found;
    LOCK_SCOPE(&buffers->lock);

    buffers->refs++;
    if (!buffers->n)
        return NULL;
    found = buffers->n - 1;
    for (unsigned i = 0; i < buffers->n; i++)
        if (buffers->kept[i].capacity >= size)
            found = i;
    memory = buffers->kept[found].memory;
    *ret_capacity = buffers->kept[found].capacity;
    buffers->kept[found] = buffers->kept[--buffers->n];
    return memory;
}

/* Where array i begins, and after all of them: where they end. false: too large. */
static bool buffers_place(const struct batch_arrays *arrays, size_t i, size_t *at)
{
    uint64_t end;

    if (!checked_add(*at, arrays->array[i].bytes, &end) || end > SIZE_MAX / 2)
        return false;
    *at = (size_t)((end + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN);
    return true;
}

static void buffers_fill_member(struct batch_member *member, const struct batch_array *array,
                                uint64_t *shape, char *name)
{
    memcpy(shape, array->form.dim, array->form.ndim * sizeof(*shape));
    memcpy(name, array->field->name, FIELD_NAME_SIZE);
    *member = (struct batch_member){
        .name = name, .ndim = array->form.ndim, .shape = shape, .bytes = array->bytes};
    dtype_descr(array->form.dtype, array->form.width, false, member->descr);
}

int buffers_describe(const struct batch_arrays *arrays, struct epochfs_batch **ret)
{
    struct epochfs_batch *batch = calloc(1, sizeof(*batch));
    size_t axes = 0;
    uint64_t *shape;
    char *name;

    if (!batch)
        return -ENOMEM;
    for (size_t i = 0; i < arrays->n; i++)
        axes += arrays->array[i].form.ndim;
    batch->member = malloc(arrays->n * (sizeof(struct batch_member) + FIELD_NAME_SIZE) +
                           (axes + 1) * sizeof(*shape));
    if (!batch->member) {
        free(batch);
        return -ENOMEM;
    }
    shape = (uint64_t *)(void *)(batch->member + arrays->n);
    name = (char *)(shape + axes + 1);
    batch->n = arrays->n;
    for (size_t i = 0; i < arrays->n; i++) {
        buffers_fill_member(&batch->member[i], &arrays->array[i], shape, name);
        shape += arrays->array[i].form.ndim;
        name += FIELD_NAME_SIZE;
    }
    *ret = batch;
    return 0;
}

/* Get memory of that size, an old one if it is large enough. */
static int buffers_get(struct buffers *buffers, size_t size, struct epochfs_batch *batch)
{
    void *fresh = NULL;

    batch->memory = buffers_find(buffers, size, &batch->capacity);
    batch->buffers = buffers;
    if (batch->memory && batch->capacity >= size)
        return 0;
    free(batch->memory);
    batch->memory = NULL;
    if (posix_memalign(&fresh, BUFFER_ALIGN, size) != 0)
        return -ENOMEM;
    batch->memory = fresh;
    batch->capacity = size;
    return 0;
}

int buffers_take(struct buffers *buffers, const struct batch_arrays *arrays,
                 struct epochfs_batch **ret)
{
    struct epochfs_batch *batch = NULL;
    size_t size = BUFFER_ALIGN, at = 0;
    int r;

    for (size_t i = 0; i < arrays->n; i++)
        if (!buffers_place(arrays, i, &size))
            return -EFBIG;
    r = buffers_describe(arrays, &batch);
    if (r == 0)
        r = buffers_get(buffers, size, batch);
    if (r < 0) {
        buffers_give(batch);
        return r;
    }
    for (size_t i = 0; i < arrays->n; i++) {
        batch->member[i].data = batch->memory + at;
        buffers_place(arrays, i, &at);
    }
    *ret = batch;
    return 0;
}

static bool buffers_keep(struct buffers *buffers, const struct epochfs_batch *batch)
{
    LOCK_SCOPE(&buffers->lock);

    if (buffers->is_closed || buffers->n == BUFFERS_KEPT || !batch->memory)
        return false;
    buffers->kept[buffers->n].memory = batch->memory;
    buffers->kept[buffers->n++].capacity = batch->capacity;
    return true;
}

void buffers_give(struct epochfs_batch *batch)
{
    if (!batch)
        return;
    if (batch->buffers && batch->buffers->pid != getpid())
        return;
    if (batch->buffers) {
        if (!buffers_keep(batch->buffers, batch))
            free(batch->memory);
        buffers_unref(batch->buffers);
    }
    free(batch->member);
    free(batch);
}
