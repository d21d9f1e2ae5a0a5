/* What an epoch takes on the nodes of a job that are one cache (mount-scripts/peers): the
 * arithmetic of `epochfs plan --nodes`. Nothing is read here.
 *
 * The ring fetches slices, each once, and keeps them, each on one node. So in the first epoch all
 * slices that the job needs come over the origin's link, and a node gets, by its own link, the
 * slices that it keeps and what it reads of those of the others. All links work at the same time:
 * the slowest decides. The origin sends slices in the order in which the nodes need them. A slice
 * holds several samples, and in shuffled orders all nodes need different ones: so nearly all slices
 * have to come before the nodes are far into their epochs, and a node waits. At the start each node
 * asks for CLUSTER_JOBS slices, or for those of its first batch. The origin shares its link among
 * all requests, so they come at the same time: then the first batches begin.
 *
 * The arithmetic assumes links that carry as much in each direction, data that is spread evenly
 * over the nodes, and nodes that read at the same time: where each reads all of it, shuffled, in an
 * order of its own. For the dead nodes it assumes that they die
 * after the first epoch, with what they keep, and that a job whose ranks share the data goes on
 * with as many ranks on fewer nodes. */
#ifndef EPOCHFS_FS_PLAN_CLUSTER_H
#define EPOCHFS_FS_PLAN_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/plan/forecast.h"

#define CLUSTER_SLICE   1048576.0 /* bytes; that of mount-scripts/peers */
#define CLUSTER_JOBS    8         /* transfers of a node at once: jobs=, its default */
#define CLUSTER_PAYLOAD 0.95      /* share of a link's bytes that is data: TCP in frames of 1500 */

struct cluster_task {
    struct forecast_task plan; /* of a rank with an empty cache; the rate does not matter */
    uint64_t ranks;            /* of the plan; 1: each node reads all of it */
    uint64_t nodes, dead;      /* 2 or more; fewer than these */
    double node_rate;          /* of a node's link, bytes per second */
    double origin_rate;        /* of the origin's link */
};

/* Where the bytes come from that nodes read in an epoch: shares, together 1. */
struct cluster_reads {
    double disk;   /* of the node itself */
    double peers;  /* disks of other nodes */
    double origin; /* the origin, through the node itself or another */
};

/* Seconds are NAN if the compute is not known. */
struct cluster {
    double once;   /* bytes that the origin sends in the first epoch */
    double origin; /* the same for all epochs, and for the slices of dead nodes again */
    double alone; /* the same for all epochs if each node has a cache of its own for all it reads */
    double reads; /* bytes of blocks that a node reads in an epoch */
    double staging;     /* seconds until all that the first epoch needs is on the nodes */
    bool by_origin;     /* its link is the slowest */
    double first_batch; /* seconds until the first batches exist */
    double first_epoch, later_epoch; /* seconds */
    double share, share_after;       /* bytes of the ring on a node's disk; when nodes have died */
    double link,
        link_later; /* bytes that come by a node's link in the first epoch, and in later ones */
    struct cluster_reads first, later,
        after; /* after: the epoch in which the slices of dead nodes are fetched again */
};

/* plan.samples and plan.block are not 0. */
void cluster_make(const struct cluster_task *task, struct cluster *ret);

#endif
