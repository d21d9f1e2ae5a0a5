/* epochfs plan --nodes: what the nodes of a job take that are one cache. fs/plan/cluster.c does the
 * arithmetic. */
#include "fs/cli/plan_nodes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/values.h"
#include "fs/cli/commands.h"
#include "fs/cli/plan_show.h"
#include "fs/plan/cluster.h"

#define SAMPLE 131072.0 /* bytes, of data that is not looked at */

/* ---- arguments ---- */

int plan_nodes_rate(const char *name, const char *value, uint64_t *ret, struct diag *d)
{
    static const struct {
        const char *word;
        uint64_t bytes;
    } units[] = {{"Mbit", 1000000 / 8}, {"Gbit", 1000000000 / 8}, {"Tbit", 1000000000000 / 8}};
    size_t n = strspn(value, "0123456789");
    struct diag ignored = DIAG_INIT;
    uint64_t v = 0;

    for (unsigned i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(value + n, units[i].word) != 0)
            continue;
        if (n && number_parse(value, n, UINT64_MAX, &v) == n && v &&
            checked_mul(v, units[i].bytes, ret))
            return 0;
        break;
    }
    if (value_size(name, value, ret, &ignored) == 0)
        return 0;
    return diag_set(
        d, -EINVAL,
        "option %s=%s: expected bytes per second, such as 500M, or bits, such as 10Gbit", name,
        value);
}

static int plan_nodes_check_together(const struct plan_nodes_text *text, bool each, bool source,
                                     struct diag *d)
{
    const char *alone = text->dead          ? "--dead"
                        : text->node_rate   ? "--node-rate"
                        : text->origin_rate ? "--origin-rate"
                        : text->bytes       ? "--bytes"
                        : each              ? "--each"
                                            : NULL;

    if (!text->nodes && alone)
        return diag_set(d, -EINVAL, "option %s: requires --nodes=N", alone);
    if (text->nodes && !text->node_rate)
        return diag_set(d, -EINVAL,
                        "option --nodes: requires --node-rate=, the rate of a "
                        "node's link, such as 10Gbit");
    if (text->bytes && source)
        return diag_set(d, -EINVAL, "option --bytes: stands in for SOURCE, so it takes none");
    if (!text->bytes && !source)
        return diag_set(d, -EINVAL, "expected SOURCE, or --bytes=; see `epochfs plan --help`");
    if (text->bytes && !text->origin_rate)
        return diag_set(d, -EINVAL, "option --bytes: requires --origin-rate=");
    if (each && source)
        return diag_set(d, -EINVAL,
                        "option --each: takes no SOURCE; a plan without "
                        "rank= is what each node reads");
    return 0;
}

int plan_nodes_parse(const struct plan_nodes_text *text, bool each, bool source,
                     struct plan_nodes *ret, struct diag *d)
{
    struct plan_nodes v = {.each = each};
    int r = plan_nodes_check_together(text, each, source, d);

    if (r == 0 && text->nodes)
        r = value_count("--nodes", text->nodes, NODES_LEAST, NODES_MOST, &v.nodes, d);
    if (r == 0 && text->dead)
        r = value_count("--dead", text->dead, 0, v.nodes - 1, &v.dead, d);
    if (r == 0 && text->node_rate)
        r = plan_nodes_rate("--node-rate", text->node_rate, &v.node_rate, d);
    if (r == 0 && text->origin_rate)
        r = plan_nodes_rate("--origin-rate", text->origin_rate, &v.origin_rate, d);
    if (r == 0 && text->bytes)
        r = value_size("--bytes", text->bytes, &v.bytes, d);
    if (r == 0)
        *ret = v;
    return r;
}

/* ---- a plan ---- */

static int plan_nodes_make(const struct plan_nodes *nodes, const struct forecast_task *plan,
                           uint64_t ranks, struct cluster *ret, struct diag *d)
{
    struct cluster_task task = {.plan = *plan,
                                .ranks = ranks,
                                .nodes = nodes->nodes,
                                .dead = nodes->dead,
                                .node_rate = (double)nodes->node_rate,
                                .origin_rate = (double)nodes->origin_rate};

    if (ranks > 1 && ranks < nodes->nodes)
        return diag_set(d, -EINVAL, "expected a rank for each of %llu nodes, got rank=KofN of %llu",
                        (unsigned long long)nodes->nodes, (unsigned long long)ranks);
    cluster_make(&task, ret);
    return 0;
}

static void print_reads(const char *when, const struct cluster_reads *r)
{
    printf("%s: %.2f %% from its own disk, %.2f %% from peers, %.2f %% from the origin\n", when,
           100 * r->disk, 100 * r->peers, 100 * r->origin);
}

int plan_nodes_print(const struct plan_nodes *nodes, const struct forecast_task *plan,
                     uint64_t ranks, struct diag *d)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE];
    struct cluster c;
    int r = plan_nodes_make(nodes, plan, ranks, &c, d);

    if (r < 0)
        return r;
    plan_print_label("nodes");
    printf("%llu, as peers; a link of %s each", (unsigned long long)nodes->nodes,
           human_rate(nodes->node_rate, a));
    printf(", the origin's %s\n", human_rate(nodes->origin_rate, a));
    plan_print_label("");
    if (nodes->dead)
        printf("%llu of them die after the first epoch\n", (unsigned long long)nodes->dead);
    else
        printf("none of them dies (see --dead=)\n");
    plan_print_label("origin");
    printf("sends %s in %llu epochs", plan_shown_bytes(c.origin, a),
           (unsigned long long)plan->epochs);
    printf("; to nodes with caches of their own %s\n", plan_shown_bytes(c.alone, a));
    plan_print_label("staging");
    printf("%s, by the %s; the first batches arrive after %s\n", plan_shown_time(c.staging, a),
           c.by_origin ? "origin's link" : "links of the nodes", plan_shown_time(c.first_batch, b));
    if (!isnan(c.first_epoch)) {
        plan_print_label("epochs");
        printf("the first %s, later ones %s\n", plan_shown_time(c.first_epoch, a),
               plan_shown_time(c.later_epoch, b));
    }
    plan_print_label("disk");
    printf("%s of a node for its share", plan_shown_bytes(c.share, a));
    if (nodes->dead)
        printf(", %s when nodes have died", plan_shown_bytes(c.share_after, a));
    printf("\n");
    plan_print_label("reads");
    printf("%s of a node in an epoch\n", plan_shown_bytes(c.reads, a));
    plan_print_label("");
    print_reads("first epoch", &c.first);
    if (nodes->dead) {
        plan_print_label("");
        print_reads("the next one", &c.after);
    }
    plan_print_label("");
    print_reads("later ones", &c.later);
    return 0;
}

static void json_reads(struct text *t, const char *name, const struct cluster_reads *r)
{
    text_add(t, ", \"%s\": {\"disk_share\": %.6f, \"peers_share\": %.6f, \"origin_share\": %.6f}",
             name, r->disk, r->peers, r->origin);
}

int plan_nodes_json(const struct plan_nodes *nodes, const struct forecast_task *plan,
                    uint64_t ranks, struct text *t, struct diag *d)
{
    struct cluster c;
    int r = plan_nodes_make(nodes, plan, ranks, &c, d);

    if (r < 0)
        return r;
    text_add(t, "\"nodes\": {\"nodes\": %llu, \"dead\": %llu, \"node_bytes_per_second\": %llu",
             (unsigned long long)nodes->nodes, (unsigned long long)nodes->dead,
             (unsigned long long)nodes->node_rate);
    text_add(t, ", \"origin_bytes_per_second\": %llu", (unsigned long long)nodes->origin_rate);
    plan_json_bytes(t, "first_epoch_origin_bytes", c.once);
    plan_json_bytes(t, "origin_bytes", c.origin);
    plan_json_bytes(t, "own_caches_origin_bytes", c.alone);
    plan_json_bytes(t, "node_epoch_bytes", c.reads);
    plan_json_bytes(t, "node_disk_bytes", c.share);
    plan_json_bytes(t, "node_disk_bytes_after_deaths", c.share_after);
    plan_json_bytes(t, "node_link_bytes_first_epoch", c.link);
    plan_json_bytes(t, "node_link_bytes_later_epoch", c.link_later);
    plan_json_seconds(t, "staging_seconds", c.staging);
    text_add(t, ", \"staging_limit\": \"%s\"", c.by_origin ? "origin" : "nodes");
    plan_json_seconds(t, "first_batch_seconds", c.first_batch);
    plan_json_seconds(t, "first_epoch_seconds", c.first_epoch);
    plan_json_seconds(t, "later_epoch_seconds", c.later_epoch);
    json_reads(t, "first_epoch", &c.first);
    json_reads(t, "epoch_after_deaths", &c.after);
    json_reads(t, "later_epoch", &c.later);
    text_add(t, "}");
    return 0;
}

/* ---- data of which only the size is known ---- */

int plan_nodes_alone(const struct plan_nodes *nodes, uint64_t epochs, bool json)
{
    uint64_t samples = max_u64((uint64_t)((double)nodes->bytes / SAMPLE), 1);
    uint64_t ranks = nodes->each ? 1 : nodes->nodes;
    const struct forecast_task plan = {.bytes = (double)nodes->bytes,
                                       .samples = samples,
                                       .list = samples,
                                       .elements = max_u64(samples / ranks, 1),
                                       .batch = 1,
                                       .batches = max_u64(samples / ranks, 1),
                                       .is_shuffled = true,
                                       .block = 1,
                                       .compute = -1,
                                       .epochs = epochs};
    AUTO_TEXT struct text t = {0};
    char a[HUMAN_SIZE];
    struct diag d = DIAG_INIT;

    if (!json) {
        printf("%s of data; %s\n", human_bytes(nodes->bytes, a),
               nodes->each ? "each node reads all of it in an epoch"
                           : "the nodes share each epoch");
        plan_nodes_print(nodes, &plan, ranks, &d);
        return EXIT_DONE;
    }
    text_add(&t, "{\n  \"source\": null, \"dataset_bytes\": %llu,\n  ",
             (unsigned long long)nodes->bytes);
    plan_nodes_json(nodes, &plan, ranks, &t, &d);
    text_add(&t, "\n}\n");
    if (t.failed)
        return fail(EXIT_SOURCE, "%s", strerror(ENOMEM));
    fputs(t.data, stdout);
    return EXIT_DONE;
}
