/* epochfs plan: what staging will take, before a job.
 *
 * Asks the source what it has, the cache what of that is present, and, unless the user gives it,
 * the remote how fast it is. fs/plan/forecast.c does the arithmetic. Bytes fetched to find out go
 * into the cache as usual, so nothing is fetched in vain. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/values.h"
#include "cache/disk/quota.h"
#include "format/core/extents.h"
#include "fs/cli/commands.h"
#include "fs/cli/plan_show.h"
#include "fs/log/log.h"
#include "fs/plan/distinct.h"
#include "fs/plan/forecast.h"
#include "fs/tree/mixes.h"
#include "fs/tree/tree.h"

#define MEASURE_NS  INT64_C(2000000000)
#define WARM_NS     INT64_C(300000000)  /* of these, until connections have got going */
#define PREPARE_NS  INT64_C(2000000000) /* that datasets may take to be ready */
#define WAIT_MS     50
#define LOOKED_AT   1000 /* samples whose extents are looked at, at most */
#define EPOCHS      10   /* default of --epochs= */
#define EPOCHS_MOST 1000000

/* The plan if -o plan= is not given. */
static const struct plan default_plan = {.batch = 128, .parts = 1, .ranks = 1};

static uint64_t cli_plan_load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- questions to source, cache and remote ---- */

static void look_at_cache(struct planning *p)
{
    const struct stage_counters *c = stage_counters(p->stage);
    struct stage_options stage;
    struct statvfs fs;

    stage_count(p->stage);
    p->bytes = cli_plan_load(&c->total_bytes);
    p->here = cli_plan_load(&c->staged_bytes);
    p->used = quota_used(stage_quota(p->stage));
    p->limit = quota_limit(stage_quota(p->stage));
    p->disk_free = UINT64_MAX;
    if (statvfs(p->opened.cache.path, &fs) == 0)
        p->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    p->unused = quota_could_free(stage_quota(p->stage));
    p->capacity = p->used - min_u64(p->unused, p->used);
    p->capacity = p->limit > p->capacity ? p->limit - p->capacity : 0;
    p->capacity = min_u64(p->limit ? p->capacity : UINT64_MAX, p->disk_free + p->unused);
    options_stage(p->options, &stage);
    if (stage.own_limit)
        p->capacity = min_u64(p->capacity, stage.own_limit);
}

static uint64_t cli_plan_fetched_bytes(const struct planning *p)
{
    const struct stage_counters *c = stage_counters(p->stage);

    return cli_plan_load(&c->background_bytes) + cli_plan_load(&c->demand_bytes);
}

/* Measure how fast the remote is: let the stage work for a while. It ends early when all bytes have
 * come, or when there is no more space. EXIT_DONE or the exit code of the program. */
static int cli_plan_measure(struct planning *p)
{
    uint64_t before = cli_plan_fetched_bytes(p), warm = before, now_bytes = before;
    int64_t began = monotonic_ns(), warm_at = began, now = began;
    struct diag d = DIAG_INIT;
    int r = 0;

    stage_begin(p->stage);
    while (r == 0 && (now - began < MEASURE_NS || now_bytes == warm)) {
        r = stage_wait(p->stage, WAIT_MS, &d);
        now = monotonic_ns();
        now_bytes = cli_plan_fetched_bytes(p);
        if (warm == before && now - began >= WARM_NS) {
            warm = now_bytes;
            warm_at = now;
        }
    }
    stage_end(p->stage);
    stage_rest(p->stage); /* until all transfers under way have ended */
    if (r < 0 && r != -ENOSPC)
        return fail(is_cache_error(r) ? EXIT_CACHE : EXIT_SOURCE, "%s: %s", p->shown,
                    diag_text(&d, r));
    if (now - warm_at < WARM_NS || now_bytes == warm) { /* it ended so soon that all bytes count */
        warm = before;
        warm_at = began;
    }
    p->measured = now_bytes - before;
    p->measured_s = (double)(now - began) / 1e9;
    if (now_bytes > warm && now > warm_at) {
        p->rate = (uint64_t)((double)(now_bytes - warm) / (double)(now - warm_at) * 1e9);
        p->rate_from = RATE_MEASURED;
    }
    return EXIT_DONE;
}

/* Call it when it is known how much is in the cache. */
static int find_rate(struct planning *p)
{
    uint64_t most = p->options->source.stage.rate;

    if (p->call->rate) {
        p->rate = most ? min_u64(p->call->rate, most) : p->call->rate;
        p->rate_from = p->rate == p->call->rate ? RATE_GIVEN : RATE_OPTION;
    } else if (most) {
        p->rate = most;
        p->rate_from = RATE_OPTION;
    } else if (p->here < p->bytes && !p->call->dry_run) {
        if (!p->call->json)
            fprintf(stderr,
                    "epochfs: measuring the remote for 2 s: what comes stays in the cache. See "
                    "--assume-rate= and --dry-run\n");
        return cli_plan_measure(p);
    }
    return EXIT_DONE;
}

/* ---- a plan ---- */

/* The bytes of a dataset, and what of them is present, by the extents of some samples. False:
 * unknown. */
static bool find_extents(const struct planning *p, const struct dataset *ds, uint64_t *ret_bytes,
                         uint64_t *ret_here)
{
    uint64_t n = min_u64(ds->samples, LOOKED_AT);
    struct extent extent[EXTENTS_MOST];
    double bytes = 0, here = 0;

    for (uint64_t i = 0; i < n; i++) {
        unsigned found = dataset_extents(ds, i * (ds->samples / n), NULL, extent);

        for (unsigned k = 0; k < found; k++) {
            double size = (double)extent[k].blob->size, len = (double)extent[k].len;

            bytes += len;
            here += p->stage ? len * (double)stage_staged(extent[k].blob) / size : len;
        }
    }
    *ret_bytes = n ? (uint64_t)(bytes / (double)n * (double)ds->samples) : 0;
    *ret_here = n ? (uint64_t)(here / (double)n * (double)ds->samples) : 0;
    return bytes > 0;
}

/* The mean bytes of n samples from start on, by the extents of some. */
static double mean_bytes(const struct dataset *ds, uint64_t start, uint64_t n)
{
    uint64_t looked = min_u64(n, LOOKED_AT);
    struct extent extent[EXTENTS_MOST];
    double bytes = 0;

    for (uint64_t i = 0; i < looked; i++) {
        unsigned found = dataset_extents(ds, start + i * (n / looked), NULL, extent);

        for (unsigned k = 0; k < found; k++)
            bytes += (double)extent[k].len;
    }
    return looked ? bytes / (double)looked : 0;
}

/* The bytes of a part of the dataset's samples, whose sizes may differ; 0: unknown. */
static double bytes_of_part(const struct dataset *ds, uint64_t bytes, uint64_t start, uint64_t n)
{
    double all = n < ds->samples ? mean_bytes(ds, 0, ds->samples) : 0;

    if (all <= 0)
        return 0;
    return fmin(mean_bytes(ds, start, n) / all * (double)n / (double)ds->samples, 1) *
           (double)bytes;
}

/* The bytes of the source files of a dataset, and what of them is present. A file that only says
 * where others are counts as those; if they are unknown, as all of the source. */
static void cli_plan_find_bytes(const struct planning *p, const struct dataset *ds,
                                uint64_t *ret_bytes, uint64_t *ret_here)
{
    *ret_bytes = *ret_here = 0;
    for (unsigned i = 0; i < ds->n_blobs; i++) {
        const char *dot = strrchr(blob_name(ds->blob[i]), '.');

        if (dot && !strcmp(dot, ".scp")) {
            if (!find_extents(p, ds, ret_bytes, ret_here)) {
                *ret_bytes = p->bytes;
                *ret_here = p->here;
            }
            return;
        }
        *ret_bytes += ds->blob[i]->size;
        *ret_here += p->stage ? stage_staged(ds->blob[i]) : ds->blob[i]->size;
    }
}

/* The block size of the files that count. */
static double find_block(const struct planning *p, const struct dataset *ds)
{
    uint64_t most = 0;

    if (p->options->source.stage.block)
        return p->options->source.stage.block;
    for (unsigned i = 0; i < ds->n_blobs; i++)
        most = max_u64(most, ds->blob[i]->size);
    return stage_auto_block(most);
}

static enum forecast_keep keep_of(const struct options *o)
{
    struct stage_options stage;

    options_stage(o, &stage);
    switch (stage.keep) {
    case STAGE_ONCE:
        return FORECAST_ONCE;
    case STAGE_PLAN:
        return FORECAST_PLAN;
    default:
        return FORECAST_PIN;
    }
}

/* Epochs of a plan that a mount with these options knows of. Without a seed all are the same one,
 * and it comes again if there are several. */
static uint64_t announced_epochs(const struct options *o, const struct plan *plan)
{
    return plan->seeded || o->epochs < 2 ? o->epochs : UINT64_MAX;
}

/* Count the batches of the first epoch; those of a rank are its share. */
static int planned_fill(struct planned *x)
{
    struct schedule *s = &x->schedule;
    int r = length_batches_fill(length_batches_of(s->cuts), 0, &x->fill);

    if (r < 0)
        return r;
    schedule_batches(s, 0, &s->batches);
    s->elements = min_u64(s->elements, x->fill.samples / s->plan->ranks);
    s->batch = ceil_div(x->fill.samples, max_u64(x->fill.batches, 1));
    return 0;
}

static int planned_init(struct planned *ret, const struct planning *p,
                        const struct catalog_item *item, const struct plan *plan, struct diag *d)
{
    const struct dataset *ds = item->ds;
    const struct schedule *s = &ret->schedule;
    struct plan_distinct distinct;
    struct plan_labels labels;
    uint64_t bytes, here, list;
    int r;

    *ret = (struct planned){.all = p, .item = item, .plan = plan};
    plan_name(plan, ret->name);
    while ((r = tree_schedule_item(&p->opened.catalog, item, plan, &ret->schedule, &labels, d)) ==
               -EAGAIN &&
           (r = list_labels_go_on(&p->opened.catalog.tools->labels, d)) == 0)
        ;
    if (r == 0 && ret->schedule.cuts)
        r = planned_fill(ret);
    if (r < 0)
        return r;
    cli_plan_find_bytes(p, ds, &bytes, &here);
    plan_distinct(s, &distinct);
    list = schedule_has_order(s) ? distinct.span : s->positions;
    ret->task = (struct forecast_task){
        .bytes = (double)bytes,
        .here = (double)here,
        .samples = max_u64(ds->samples, 1),
        .list = list,
        .reach = distinct.span ? distinct.listed / (double)distinct.span : 1,
        .listed = bytes_of_part(ds, bytes, distinct.first, list),
        .elements = ret->schedule.elements,
        .distinct =
            s->only || plan->draw || plan->of_class || distinct.repeats ? distinct.epoch : 0,
        .batch = ret->schedule.batch,
        .batches = ret->schedule.batches,
        .is_shuffled = schedule_has_order(s),
        .is_drawn = plan->draw || plan->of_class,
        .is_even = s->order.ops == &order_draw && !s->order.classes && !s->only && !plan->splits &&
                   plan->ranks == 1 && !plan->limits,
        .window = plan->window,
        .block = p->stage ? find_block(p, ds) : 1,
        .capacity = p->stage ? (double)p->capacity : 0,
        .keep = keep_of(p->options),
        .announced = announced_epochs(p->options, plan),
        .ahead = !p->stage || p->options->source.stage.background,
        .rate = (double)p->rate,
        .compute = p->call->compute,
        .epochs = p->call->epochs,
    };
    if (item->mixture)
        mixture_epoch(item->mixture, s->positions, distinct.part, &ret->task.list,
                      &ret->task.listed, &ret->task.distinct);
    forecast_make(&ret->task, &ret->f);
    /* A copy must fit on the disk. */
    if (p->stage && (double)bytes > (double)p->disk_free + (double)here)
        ret->f.copy = NAN;
    return 0;
}

/* ---- all of it ---- */

static const char *cli_plan_why_not(const struct catalog_item *item)
{
    if (!item->ds)
        return item->error;
    if (dataset_state(item->ds) == DATASET_FAILED)
        return item->ds->reason.text;
    return "its samples are known only after all of it has been read and indexed; `epochfs stage` "
           "it, or mount it, first";
}

static bool is_ready(const struct catalog_item *item)
{
    return item->ds && dataset_state(item->ds) == DATASET_READY;
}

/* The plan on nodes. The origin's link is as fast as was given or measured. */
static int show_nodes(const struct planning *p, const struct planned *x, struct text *json,
                      struct diag *d)
{
    struct plan_nodes nodes = p->call->nodes;

    if (!nodes.origin_rate)
        nodes.origin_rate = p->rate;
    if (!nodes.origin_rate)
        return diag_set(d, -EINVAL, "the rate of the origin is not known: expected --origin-rate=");
    if (!p->call->json)
        return plan_nodes_print(&nodes, &x->task, x->plan->ranks, d);
    text_add(json, ",\n     ");
    return plan_nodes_json(&nodes, &x->task, x->plan->ranks, json, d);
}

static void show_planned(const struct planning *p, const struct catalog_item *item, bool *any,
                         struct text *json, bool *ret_wrong)
{
    bool is_default = !p->options->n_plans;
    const struct plan *plan = is_default ? &default_plan : p->options->plan;

    for (size_t i = 0; i < (is_default ? 1 : p->options->n_plans); i++) {
        struct diag d = DIAG_INIT;
        struct planned x;

        if (planned_init(&x, p, item, &plan[i], &d) < 0) {
            fail(EXIT_SOURCE, "%s: plan=%s: %s", item->name, x.name, d.text);
            *ret_wrong = true;
            continue;
        }
        text_add(json, "%s", *any ? "," : "");
        *any = true;
        if (p->call->json)
            plan_json(json, &x);
        else
            plan_print(&x, is_default);
        if (p->call->nodes.nodes && show_nodes(p, &x, json, &d) < 0) {
            fail(EXIT_SOURCE, "%s: plan=%s: %s", item->name, x.name, d.text);
            *ret_wrong = true;
        }
        text_add(json, "}");
    }
}

static void show_others(const struct planning *p, struct text *json)
{
    const struct catalog *catalog = &p->opened.catalog;
    char path[TREE_NAME_SIZE * 4];
    bool any = false;

    for (size_t i = 0; i < catalog->n; i++) {
        const struct catalog_item *item = &catalog->item[i];

        if (is_ready(item))
            continue;
        item_path(item, path, sizeof(path));
        text_add(json, "%s\n    {", any ? "," : "");
        json_add_text(json, NULL, "name", path);
        json_add_text(json, NULL, "reason", cli_plan_why_not(item));
        text_add(json, "}");
        any = true;
        text_plain(path, "");
        if (!p->call->json)
            printf("%s\n    not planned: %s\n", path, cli_plan_why_not(item));
    }
}

static int show_all(const struct planning *p)
{
    const struct catalog *catalog = &p->opened.catalog;
    AUTO_TEXT struct text t = {0};
    bool any = false, wrong = false;

    text_add(&t, "{\n  \"source\": ");
    text_add_json(&t, p->shown);
    plan_json_cache(p, &t);
    text_add(&t, ",\n  \"default_plan\": %s,\n  \"plans\": [",
             p->options->n_plans ? "false" : "true");
    if (!p->call->json)
        plan_print_source(p);
    for (size_t i = 0; i < catalog->n; i++)
        if (is_ready(&catalog->item[i]))
            show_planned(p, &catalog->item[i], &any, &t, &wrong);
    text_add(&t, "\n  ],\n  \"not_planned\": [");
    show_others(p, &t);
    text_add(&t, "\n  ]\n}\n");
    if (t.failed)
        return fail(EXIT_SOURCE, "%s", strerror(ENOMEM));
    if (p->call->json)
        fputs(t.data, stdout);
    if (!any)
        return fail(EXIT_SOURCE, "%s: no dataset could be planned", p->shown);
    return wrong ? EXIT_SOURCE : check_remote(p->call->source, &p->opened, 1);
}

static int plan_source(const struct plan_call *call, const struct options *options)
{
    struct planning p = {.call = call, .options = options};
    struct options how = *options; /* options still owns its texts */
    struct diag d = DIAG_INIT;
    int code;

    how.source.stage.background = true; /* the background measures the rate */
    how.finds_in_lists = true;          /* to know which samples come twice */
    shown_source(call->source, p.shown);
    code = open_catalog(call->source, &how, &p.opened, &d);
    if (code == EXIT_DONE) {
        log_source_note(p.opened.source);
        catalog_prepare(&p.opened.catalog, true, monotonic_ns() + (call->dry_run ? 0 : PREPARE_NS));
        p.stage = p.opened.source->stage;
        if (source_silent(p.opened.source, NULL)) /* there is nothing to measure */
            code = check_remote(call->source, &p.opened, 1);
        if (p.stage && code == EXIT_DONE) {
            look_at_cache(&p);
            code = find_rate(&p);
        }
        if (p.measured)
            look_at_cache(&p);
        if (code == EXIT_DONE)
            code = show_all(&p);
    } else {
        fail(code, "%s", diag_text(&d, -ENOMEM));
    }
    opened_release(&p.opened);
    return code;
}

/* ---- arguments ---- */

static int parse_seconds(const char *value, double *ret, struct diag *d)
{
    char *end;
    double v = strtod(value, &end);

    if (!*value || strspn(value, "0123456789.") != strlen(value) || *end)
        return diag_set(d, -EINVAL, "option --compute=%s: expected seconds, such as 0.25", value);
    *ret = v;
    return 0;
}

/* What the flags are, as text. */
struct plan_flags {
    const char *rate, *rate_name, *compute;
    struct plan_nodes_text nodes;
    bool each;
};

static int parse_flags(const struct plan_flags *flags, struct plan_call *call, struct diag *d)
{
    char rate_name[32];
    int r = 0;

    snprintf(rate_name, sizeof(rate_name), "--%s", flags->rate_name);
    if (flags->rate)
        r = plan_nodes_rate(rate_name, flags->rate, &call->rate, d);
    if (flags->compute && r == 0)
        r = parse_seconds(flags->compute, &call->compute, d);
    if (r == 0)
        r = plan_nodes_parse(&flags->nodes, flags->each, call->source != NULL, &call->nodes, d);
    if (r == 0 && call->nodes.origin_rate && !call->rate)
        call->rate = min_u64(call->nodes.origin_rate, call->nodes.node_rate);
    return r;
}

static int cli_plan_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    struct plan_call call = {.compute = -1, .epochs = EPOCHS};
    struct plan_flags flags = {.rate_name = ""};
    const struct command_line line = {
        .name = "plan",
        .word = "[SOURCE]",
        .usage = command_plan.usage,
        .about =
            "Estimates staging. For each plan of -o plan= it prints the bytes of an epoch, how "
            "many of them are staged, whether the cache can hold them, and how long the "
            "transfer takes. Without a plan it uses batch=128 in stored order. With --nodes "
            "it also estimates a job on nodes that are one cache (peers).",
        .example = "plan -o plan=batch=128+seed=7 --compute=0.25 s3://bucket/images",
        .options = &options,
        .flag = {
            {"json", .set = &call.json, .help = "print JSON, for programs"},
            {"dry-run", .set = &call.dry_run,
             .help = "fetch only what says which datasets there are, such as lists and headers; "
                     "measure no rate, and make no index"},
            {"assume-rate", "=SIZE", .text = &flags.rate, .old = "rate", .typed = &flags.rate_name,
             .help = "assume that the remote sends this many bytes per second, such as 100M; "
                     "without it and -o bwlimit=, the rate is measured for about two seconds, and "
                     "the fetched bytes stay in the cache"},
            {"compute", "=SECONDS", .text = &flags.compute,
             .help = "also estimate the epochs of a job that computes this long on a batch, such "
                     "as 0.25: with staging, after copying everything first, and without staging"},
            {"epochs", "=N", .number = &call.epochs, .least = 1, .most = EPOCHS_MOST,
             .help = "assume that the job has N epochs"},
            {"nodes", "=N", .text = &flags.nodes.nodes, .least = NODES_LEAST, .most = NODES_MOST,
             .help = "assume N nodes that are one cache; with rank= in the plan they share an "
                     "epoch, otherwise each reads all"},
            {"node-rate", "=RATE", .text = &flags.nodes.node_rate,
             .help = "set the rate of a node's link in bits per second, such as 10Gbit, or in "
                     "bytes per second, such as 500M"},
            {"origin-rate", "=RATE", .text = &flags.nodes.origin_rate,
             .help = "set the rate of the origin's link (default: that of --assume-rate)"},
            {"dead", "=N", .text = &flags.nodes.dead,
             .help = "assume that N nodes die after the first epoch"},
            {"bytes", "=SIZE", .text = &flags.nodes.bytes,
             .help = "estimate data of this size, which is not read, in place of SOURCE; the nodes "
                     "share an epoch"},
            {"each", .set = &flags.each, .help = "with --bytes: each node reads all"}}};
    struct diag d = DIAG_INIT;
    int code, r;

    options_init(&options);
    code = parse_command(argc, argv, &line, &call.source);
    if (code >= 0)
        return code;
    r = parse_flags(&flags, &call, &d);
    if (r < 0)
        return fail(EXIT_USAGE, "%s", diag_text(&d, r));
    if (call.nodes.bytes)
        return plan_nodes_alone(&call.nodes, call.epochs, call.json);
    log_set_level(options.log_level);
    return plan_source(&call, &options);
}

const struct command command_plan = {
    "plan", cli_plan_run,
    "plan [--json] [--dry-run] [--assume-rate=SIZE] [--compute=SECONDS] [--epochs=N] [--nodes=N] "
    "[--node-rate=RATE] [--origin-rate=RATE] [--dead=N] [--bytes=SIZE] [--each] [-o OPTIONS] "
    "[SOURCE]"};
