/* What the node of a sample or batch alone determines. */
#include <stdio.h>
#include <string.h>

#include "fs/tree/span.h"
#include "fs/tree/tree.h"

unsigned node_columns(const struct node *node)
{
    return node->folder->n_kinds[node_scope(node)];
}

unsigned node_column(const struct node *node)
{
    return (unsigned)(node->file - node->folder->files[node_scope(node)]);
}

uint64_t node_units(const struct node *node)
{
    uint64_t units = node->item->ds->samples;

    if (node->type != NODE_SAMPLE)
        schedule_batches(&node->plan->schedule, node->epoch, &units);
    return units;
}

int node_batch(const struct node *node, struct schedule_batch *ret)
{
    return schedule_batch_init(&node->plan->schedule, node->epoch, node->number, ret);
}

bool node_is_hole(const struct node *node)
{
    return node->type == NODE_SAMPLE && node->file->field &&
           !dataset_has(node->item->ds, node->number, node->file->field);
}

void node_sibling(const struct node *node, uint64_t number, unsigned column, struct node *ret)
{
    uint64_t first = span_file_ino(node->item, node->ino, 0 - node->number, 0) - node_column(node);

    *ret = *node;
    ret->number = number;
    ret->file = &node->folder->files[node_scope(node)][column];
    ret->ino = span_file_ino(node->item, first, number, column);
}

void node_folder_path(const struct node *node, char *ret, size_t capacity)
{
    char path[TREE_NAME_SIZE * 4], epoch[32] = "";

    item_path(node->item, path, sizeof(path));
    if (node->plan && node->plan->plan.seeded)
        snprintf(epoch, sizeof(epoch), "/epoch=%llu", (unsigned long long)node->epoch);
    if (node->type == NODE_SAMPLE)
        snprintf(ret, capacity, "%s/samples/%s", path, node->folder->name);
    else
        snprintf(ret, capacity, "%s/batches/%s%s/%s", path, node->plan->name, epoch,
                 node->folder->name);
}

uint64_t node_list_place(const struct node *node)
{
    return 2 + node->number * node_columns(node) + node_column(node);
}
