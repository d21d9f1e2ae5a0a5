#include "fs/tree/file_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define PREVIEW_SAMPLES 100
#define PREVIEW_SIDE    1024 /* pixels, about */

/* Make the keys of the epoch when the first sample is needed; most sizes need none. */
static void make_order(struct file_samples *v)
{
    const struct plan_entry *entry = v->node.plan;

    if (v->has_order || !schedule_has_order(&entry->schedule))
        return;
    schedule_order(&entry->schedule, v->node.epoch, &v->order);
    v->has_order = true;
}

/* An index of labels may be changed while it is mapped: no sample is after the last. */
static void find_samples(const struct file_samples *v, uint64_t first, size_t n, uint64_t *ret)
{
    uint64_t last = v->node.item->ds->samples - 1;

    schedule_samples(&v->node.plan->schedule, &v->order, &v->batch, first, n, ret);
    for (size_t i = 0; i < n && v->node.plan->labels.n; i++)
        ret[i] = min_u64(ret[i], last);
}

static int make_list(void *ctx, void **ret, size_t *ret_size)
{
    struct file_samples *v = ctx;
    size_t n = (size_t)v->sel.count;
    uint64_t *list = malloc(n * sizeof(*list));

    if (!list)
        return -ENOMEM;
    make_order(v);
    find_samples(v, 0, n, list);
    *ret = list;
    *ret_size = n * sizeof(*list);
    return 0;
}

/* Make the list of a shuffled batch, unless it is too long or there is no memory. */
static void list_samples(struct file_samples *v)
{
    const uint64_t *id = v->sel.id;
    const struct memo_key key = {{id[0], id[1], id[2]}};

    if (v->has_no_list || !schedule_has_order(&v->node.plan->schedule) ||
        v->sel.count > LIST_SAMPLES)
        return;
    v->has_no_list =
        memo_get(v->lists, &key, &(struct memo_maker){.make = make_list, .ctx = v}, &v->list) < 0;
    if (v->list)
        v->sel.list = memo_bytes(v->list);
}

static void batch_samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    /* A selection belongs to one thread, and its maker may change it. */
    struct file_samples *v = (struct file_samples *)(uintptr_t)sel;

    list_samples(v);
    if (v->sel.list) {
        memcpy(ret, v->sel.list + first, n * sizeof(*ret));
        return;
    }
    make_order(v);
    find_samples(v, first, n, ret);
}

static void batch_positions(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    const struct file_samples *v = (const struct file_samples *)sel;

    schedule_positions(&v->node.plan->schedule, &v->batch, first, n, ret);
}

/* How many of the first samples make a sheet that fits a screen. */
static uint64_t preview_count(const struct dataset *ds)
{
    const struct field *f = tree_preview(ds);
    uint64_t side = max_u64(f->dim[0], f->dim[1]);
    uint64_t cells = max_u64(PREVIEW_SIDE / side, 1);

    return min_u64(min_u64(ds->samples, PREVIEW_SAMPLES), cells * cells);
}

static int batch_selection(struct file_samples *v)
{
    const struct node *node = &v->node;
    const struct plan_entry *entry = node->plan;
    int r = node_batch(node, &v->batch);

    if (r < 0)
        return r;
    v->sel = (struct selection){
        .count = v->batch.count,
        .id = {entry->ino, node->epoch, node->number},
        .samples = batch_samples,
        .pictures = entry->makes_pictures ? &entry->pictures : NULL,
        .epoch = node->epoch,
        .positions = batch_positions,
        .unit_end = v->batch.end,
        .units = v->batch.units,
        .unit_field = plan_unit_field(entry),
    };
    v->sel.in_order = v->sel.count && schedule_in_order(&entry->schedule, &v->batch, &v->sel.first);
    return 0;
}

void file_samples_release(struct file_samples *v)
{
    memo_let_go(v->list);
    schedule_batch_release(&v->batch);
    free(v->file);
}

/* Make the path of the file, for contents that name it: "/mnt/train/batches/batch=2/ark/000000". */
static int name_file(struct file_samples *v, const char *mountpoint)
{
    char path[NODE_PATH_SIZE], name[KEY_NAME_SIZE];
    int n;

    node_folder_path(&v->node, path, sizeof(path));
    node_name(&v->node, name);
    n = asprintf(&v->file, "%s/%s/%s", mountpoint, path, name);
    if (n < 0)
        v->file = NULL;
    v->sel.file = v->file;
    return n < 0 ? -ENOMEM : 0;
}

int file_samples_init(struct file_samples *v, struct memo *lists, const char *mountpoint,
                      const struct node *node)
{
    int r = 0;

    v->file = NULL;
    v->node = *node;
    v->lists = lists;
    v->list = NULL;
    v->has_no_list = false;
    v->has_order = false;
    v->batch = (struct schedule_batch){0};
    if (node->type == NODE_SAMPLE)
        v->sel = (struct selection){
            .count = 1,
            .single = true,
            .in_order = true,
            .first = node->number,
            .id = {0, node->number, 1},
        };
    else if (node->type == NODE_PREVIEW)
        v->sel = (struct selection){.count = preview_count(node->item->ds), .in_order = true};
    else
        r = batch_selection(v);
    if (r < 0)
        return r;
    return node->file && node->file->field && node->file->field->names_file
               ? name_file(v, mountpoint)
               : 0;
}
