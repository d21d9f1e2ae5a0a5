#include "cache/stage/latest.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"

#define SAMPLES 256 /* blocks asked for to find which times have passed */

static uint64_t when_of(const struct stage_needs *needs, const struct file *file, uint64_t block)
{
    return needs->when(needs->ctx, &file->blob, block * file->block_bytes,
                       file_block_len(file, block));
}

/* Blocks that this process has not looked at may be on disk, and then can be dropped, too. Once per
 * file, by the thread that makes the list. */
static void survey(struct file *file)
{
    if (file->surveyed || !file->blocks || file_take(file, NULL) < 0)
        return;
    file->surveyed = true;
    file_count(file);
    file_put(file);
}

size_t latest_count(struct file *files)
{
    size_t n = 0;

    for (struct file *file = files; file; file = atomic_load(&file->next)) {
        survey(file);
        for (uint64_t b = 0; b < file->blocks; b++)
            n += file_is_on_disk(file, b);
    }
    return n;
}

/* A heap whose first victim is needed soonest: put v in its place, from i downwards. */
static void heap_sink(struct victim *heap, size_t n, size_t i, struct victim v)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1].when < heap[child].when;
        if (heap[child].when >= v.when)
            break;
        heap[i] = heap[child];
    }
    heap[i] = v;
}

static size_t heap_offer(struct victim *heap, size_t n, size_t capacity, struct victim v)
{
    size_t i = n;

    if (n == capacity) {
        if (v.when > heap[0].when)
            heap_sink(heap, n, 0, v);
        return n;
    }
    for (; i && heap[(i - 1) / 2].when > v.when; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = v;
    return n + 1;
}

int latest_by_place(const struct victim *a, const struct victim *b)
{
    if (a->file != b->file)
        return (uintptr_t)a->file < (uintptr_t)b->file ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static int latest_first(const void *a, const void *b)
{
    const struct victim *va = a, *vb = b;

    return va->when != vb->when ? (va->when > vb->when ? -1 : 1) : latest_by_place(va, vb);
}

/* Blocks with remembered times smaller than this must be asked for again. */
static uint64_t passed_before(const struct stage_needs *needs, struct file *files, size_t on_disk)
{
    struct victim sample[SAMPLES];
    size_t step = on_disk / SAMPLES + 1, i = 0, n = 0, low = 0, high;

    for (struct file *file = files; file; file = atomic_load(&file->next))
        for (uint64_t b = 0; b < file->blocks && n < SAMPLES; b++)
            if (file_is_on_disk(file, b) && i++ % step == 0)
                sample[n++] = (struct victim){.file = file, .block = b, .when = file->when[b]};
    qsort(sample, n, sizeof(*sample), latest_first);
    for (high = n; low < high;) { /* unchanged before `low`, changed from `high` on */
        size_t middle = low + (high - low) / 2;
        const struct victim *v = &sample[middle];

        if (when_of(needs, v->file, v->block) == v->when)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? sample[low - 1].when : UINT64_MAX;
}

/* The latest blocks so far, and some whose times have to be asked for. */
struct latest {
    const struct stage_needs *needs;
    uint64_t passed;     /* remembered times below this may have passed */
    struct victim *heap; /* [capacity] */
    size_t n, capacity;
    struct victim asked[LATEST_TOGETHER];
    size_t n_asked;
};

void latest_times(const struct stage_needs *needs, size_t n, const struct victim *v,
                  uint64_t ret[static LATEST_TOGETHER])
{
    struct stage_need need[LATEST_TOGETHER];

    for (size_t i = 0; i < n; i++)
        need[i] = (struct stage_need){.blob = &v[i].file->blob,
                                      .off = v[i].block * v[i].file->block_bytes,
                                      .len = file_block_len(v[i].file, v[i].block)};
    if (needs->when_each)
        needs->when_each(needs->ctx, n, need);
    for (size_t i = 0; i < n; i++)
        ret[i] = needs->when_each ? need[i].when : when_of(needs, v[i].file, v[i].block);
}

static void ask_latest(struct latest *l)
{
    uint64_t when[LATEST_TOGETHER];

    latest_times(l->needs, l->n_asked, l->asked, when);
    for (size_t i = 0; i < l->n_asked; i++) {
        struct victim *v = &l->asked[i];

        v->file->when[v->block] = v->when = when[i];
        l->n = heap_offer(l->heap, l->n, l->capacity, *v);
    }
    l->n_asked = 0;
}

/* Take a block into account; ask for its time only if the remembered one may have passed. */
static void add_latest(struct latest *l, struct victim v)
{
    v.when = v.file->when[v.block];
    if (v.when && v.when >= l->passed && l->passed != UINT64_MAX) {
        l->n = heap_offer(l->heap, l->n, l->capacity, v);
        return;
    }
    l->asked[l->n_asked++] = v;
    if (l->n_asked == LATEST_TOGETHER)
        ask_latest(l);
}

static void add_blocks_in_memory(struct stage *stage, struct latest *l)
{
    AUTO_FREE struct overflow_place *place = NULL;
    size_t places = overflow_list(&stage->overflow, &place);

    for (size_t i = 0; i < places && !atomic_load(&stage->ending); i++)
        add_latest(l, (struct victim){
                          .file = (struct file *)(uintptr_t)place[i].owner,
                          .block = place[i].block,
                          .in_memory = true,
                      });
}

static void look_at_all(struct stage *stage, struct file *files, struct latest *l)
{
    for (struct file *file = files; file; file = atomic_load(&file->next)) {
        if (atomic_load(&stage->ending))
            break;
        for (uint64_t b = 0; b < file->blocks; b++)
            if (file_is_on_disk(file, b))
                add_latest(l, (struct victim){.file = file, .block = b});
    }
    add_blocks_in_memory(stage, l);
    ask_latest(l);
}

size_t latest_find(struct stage *stage, const struct stage_needs *needs, struct file *files,
                   size_t remembered, struct victim *ret, size_t capacity)
{
    struct latest latest = {.needs = needs, .heap = ret, .capacity = capacity};

    latest.passed = remembered ? passed_before(needs, files, remembered) : UINT64_MAX;
    look_at_all(stage, files, &latest);
    qsort(ret, latest.n, sizeof(*ret), latest_first);
    return latest.n;
}
