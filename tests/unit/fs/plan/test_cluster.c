#include "fs/plan/cluster.h"
#include "support/unit.h"

#include <math.h>

#define MB 1e6

/* 10,000 samples of 100 KB, 1 GB, a shuffled rank of 8; links of 400 MB/s, the origin's of 100. */
static struct cluster_task task;

static int setup(void **state)
{
    (void)state;
    task = (struct cluster_task){
        .plan = {.bytes = 1000 * MB,
                 .samples = 10000,
                 .list = 10000,
                 .elements = 1250,
                 .batch = 10,
                 .batches = 125,
                 .is_shuffled = true,
                 .block = 1,
                 .compute = 0.01,
                 .epochs = 10},
        .ranks = 8,
        .nodes = 8,
        .node_rate = 400 * MB,
        .origin_rate = 100 * MB,
    };
    return 0;
}

static struct cluster make(void)
{
    struct cluster c;

    cluster_make(&task, &c);
    return c;
}

static void assert_reads(struct cluster_reads found, double disk, double peers, double origin)
{
    assert_near(found.disk, disk, 1e-4);
    assert_near(found.peers, peers, 1e-4);
    assert_near(found.origin, origin, 1e-4);
}

/* Each byte once by the origin's link; 95 % of a link's bytes are data. */
UNIT_TEST_WITH(test_cluster__ranks__origin_sends_once, setup, NULL)
{
    struct cluster c = make();

    assert_near(c.once, 1000 * MB, 1e-3);
    assert_near(c.origin, 1000 * MB, 1e-3);
    assert_near(c.reads, 125 * MB, 1e-3);
    assert_near(c.staging, 1000 / 95.0, 1e-3);
    assert_true(c.by_origin);
    assert_near(c.share, 125 * MB, 1e-3);
    assert_reads(c.first, 0, 0, 1);
    assert_reads(c.later, 1 / 8.0, 7 / 8.0, 0);
    /* What it keeps of the first epoch, and what it reads of the others. */
    assert_near(c.link, 125 * MB + 125 * MB * 7 / 8, 1e-3);
    assert_near(c.link_later, 125 * MB * 7 / 8, 1e-3);
    /* Ten epochs of random eighths, on eight nodes. */
    assert_near(c.alone, 8000 * MB * (1 - pow(7 / 8.0, 10)), 1e-3);
    /* After x of the epoch 1 - (1 - x) ^ 11.49 of the slices are needed: a slice has bytes of 11.49
     * samples. */
    assert_near(c.first_epoch, c.staging * (1 - pow(1 - 0.353, 11.48576)) + 1.25 * (1 - 0.353),
                0.01);
    assert_near(c.later_epoch, 1.25, 1e-6);
}

UNIT_TEST_WITH(test_cluster__each_reads_all__links_carry_it, setup, NULL)
{
    struct cluster c;

    task.ranks = 1;
    task.plan.elements = 10000;
    task.plan.batches = 1000;
    c = make();
    assert_near(c.once, 1000 * MB, 1e-3);
    assert_near(c.reads, 1000 * MB, 1e-3);
    assert_near(c.alone, 8000 * MB, 1e-3);
    assert_near(c.link, 1000 * MB, 1e-3);
    assert_true(c.by_origin);
    assert_reads(c.first, 7 / 64.0, 49 / 64.0, 1 / 8.0);
    /* Eight orders: after x of it 1 - (1 - x) ^ (8 * 11.49). */
    assert_near(c.first_epoch, c.staging * (1 - pow(1 - 0.049, 8 * 11.48576)) + 10 * (1 - 0.049),
                0.005);
    /* The stored order is the same on all nodes: slices come as they are read. */
    task.plan.is_shuffled = false;
    c = make();
    assert_near(c.first_epoch, c.first_batch + 10, 0.001);
    task.plan.is_shuffled = true;
    /* Links of the nodes that are slower than the origin's decide. */
    task.node_rate = 50 * MB;
    c = make();
    assert_false(c.by_origin);
    assert_near(c.staging, 1000 / 47.5, 1e-3);
    assert_near(c.later_epoch, 875 / 47.5, 1e-3);
}

/* The first slices of all nodes come together: 8 a node, or those of the first batch. */
UNIT_TEST_WITH(test_cluster__first_batch, setup, NULL)
{
    assert_near(make().first_batch, 1000 / 95.0 * (1 - pow(1 - 0.008, 11.48576)), 0.01);
    task.plan.batch = 1;
    task.plan.batches = 1250;
    assert_near(make().first_batch, 64 * 1048576 / (95 * MB), 0.2);
}

/* A dead node takes its share along: the origin sends that again, in one epoch. */
UNIT_TEST_WITH(test_cluster__dead_nodes__their_share_again, setup, NULL)
{
    struct cluster c;

    task.dead = 2;
    c = make();
    assert_near(c.once, 1000 * MB, 1e-3);
    assert_near(c.origin, 1250 * MB, 1e-3);
    assert_near(c.share_after, 1000 * MB / 6, 1e-3);
    assert_reads(c.after, 0.75 / 6, 0.75 * 5 / 6, 0.25);
    assert_reads(c.later, 1 / 8.0, 7 / 8.0, 0);
    task.dead = 7;
    c = make();
    assert_near(c.share_after, 1000 * MB, 1e-3);
    assert_reads(c.after, 1 / 8.0, 0, 7 / 8.0);
}

UNIT_TEST_WITH(test_cluster__ranks_on_a_node__add_up, setup, NULL)
{
    struct cluster c;

    task.nodes = 4;
    c = make();
    assert_near(c.reads, 250 * MB, 1e-3);
    assert_near(c.share, 250 * MB, 1e-3);
    assert_near(c.once, 1000 * MB, 1e-3);
}

/* A thousand nodes, 100 TB, 10 Gbit/s each and 20 Gbit/s of origin, one in a hundred dead. */
UNIT_TEST_WITH(test_cluster__thousand_nodes, setup, NULL)
{
    struct cluster c;

    task.plan.bytes = 1e14;
    task.plan.samples = task.plan.list = 1000000000;
    task.plan.elements = 1000000;
    task.plan.batch = 1;
    task.plan.batches = 1000000;
    task.plan.compute = -1;
    task.ranks = task.nodes = 1000;
    task.dead = 10;
    task.node_rate = 1.25e9;
    task.origin_rate = 2.5e9;
    c = make();
    assert_near(c.origin, 1.01e14, 1e-3);
    assert_near(c.staging, 1e14 / 2.375e9, 1e-3);
    assert_near(c.share, 1e11, 1e-3);
    assert_near(c.share_after, 1e14 / 990, 1e-3);
    assert_near(c.first_batch, 8000 * 1048576.0 / 2.375e9, 1e-3);
    assert_reads(c.after, 0.99 / 990, 0.99 - 0.99 / 990, 0.01);
    assert_true(isnan(c.first_epoch) && isnan(c.later_epoch));
}
