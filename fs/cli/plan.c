/* epochfs plan: what staging will take, before a job.
 *
 * Asks the source what it has, the cache what of it is here, and, unless it is told, the remote how
 * fast it is; the arithmetic is forecast.c's. What is fetched to find out goes into the cache as
 * ever, so that nothing is fetched in vain. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/values.h"
#include "format/core/extents.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/log/log.h"
#include "fs/plan/forecast.h"
#include "fs/tree/tree.h"

#define MEASURE_NS INT64_C(2000000000)
#define WARM_NS    INT64_C(300000000)  /* of them, until connections have got going */
#define PREPARE_NS INT64_C(2000000000) /* that datasets may take to be ready */
#define WAIT_MS    50
#define LOOKED_AT  1000 /* samples whose places are looked at, at most */
#define EPOCHS     10   /* default of --epochs= */
#define LABEL      9    /* width of the first column */

struct plan_call {
    bool json;
    uint64_t rate;  /* 0: not given */
    double compute; /* < 0: not given */
    uint64_t epochs;
    const char *source;
};

enum rate_from { RATE_UNKNOWN, RATE_GIVEN, RATE_OPTION, RATE_MEASURED };

static const char *const rate_names[] = {
    [RATE_GIVEN] = "--rate", [RATE_OPTION] = "rate", [RATE_MEASURED] = "measured"};

/* What is the same for all plans. */
struct planning {
    const struct plan_call *call;
    const struct options *options;
    struct opened opened;
    char shown[PATH_MAX]; /* SOURCE */
    struct stage *stage;  /* NULL: it is read in place */
    /* Of a stage: */
    uint64_t bytes, here; /* of the source */
    uint64_t used, limit; /* of the cache folder */
    uint64_t disk_free;
    uint64_t capacity; /* bytes that the cache can take more */
    uint64_t rate;     /* bytes per second; 0: RATE_UNKNOWN */
    enum rate_from rate_from;
    uint64_t measured; /* bytes */
    double measured_s;
};

/* One plan of one dataset. */
struct planned {
    const struct planning *all;
    const struct catalog_item *item;
    const struct plan *plan;
    char name[PLAN_NAME_SIZE];
    struct schedule schedule;
    struct forecast_task task;
    struct forecast f;
};

/* What is planned if -o plan= is not given. */
static const struct plan default_plan = {.batch = 128, .parts = 1, .ranks = 1};

static void print_help(void)
{
    printf("usage: epochfs plan [--json] [--rate=SIZE] [--compute=SECONDS] [--epochs=N]\n"
           "                    [-o OPTIONS] SOURCE\n\n"
           "Predicts what staging will take: for each plan of -o plan= (without one, for\n"
           "batch=128 in stored order) the bytes of an epoch, how many of them are staged,\n"
           "whether the cache can hold them, and how long the transfer takes.\n\n"
           "--rate=SIZE: bytes per second of the remote, such as 100M. If neither it nor\n"
           "-o rate= is given, it is measured: for about two seconds bytes are fetched into\n"
           "the cache, and stay there. --compute=SECONDS: how long the job computes on a\n"
           "batch, such as 0.25. With it the command also predicts whether staging hides\n"
           "behind the computing, how long epochs take, and how long they would take after\n"
           "copying everything first, or without staging. --epochs=N: of the job\n"
           "(default %d). --json: for programs.\n\n"
           "OPTIONS as for `epochfs mount`.\n",
           EPOCHS);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- what is asked ---- */

static void look_at_cache(struct planning *p)
{
    const struct stage_counters *c = stage_counters(p->stage);
    struct statvfs fs;

    stage_count(p->stage);
    p->bytes = load(&c->total_bytes);
    p->here = load(&c->staged_bytes);
    p->used = stage_quota_used(p->stage);
    p->limit = stage_quota_limit(p->stage);
    p->disk_free = UINT64_MAX;
    if (statvfs(p->opened.cache.path, &fs) == 0)
        p->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    p->capacity = p->limit > p->used ? p->limit - p->used : 0;
    p->capacity = min_u64(p->limit ? p->capacity : UINT64_MAX, p->disk_free);
}

static uint64_t fetched_bytes(const struct planning *p)
{
    const struct stage_counters *c = stage_counters(p->stage);

    return load(&c->background_bytes) + load(&c->demand_bytes);
}

/* How fast the remote is: let the stage work for a while. It ends early if all has come, or if
 * there is no more room. EXIT_DONE or the exit code of the program. */
static int measure(struct planning *p)
{
    uint64_t before = fetched_bytes(p), warm = before, now_bytes = before;
    int64_t began = monotonic_ns(), warm_at = began, now = began;
    struct diag d = DIAG_INIT;
    int r = 0;

    stage_begin(p->stage);
    while (r == 0 && (now - began < MEASURE_NS || now_bytes == warm)) {
        r = stage_wait(p->stage, WAIT_MS, &d);
        now = monotonic_ns();
        now_bytes = fetched_bytes(p);
        if (warm == before && now - began >= WARM_NS) {
            warm = now_bytes;
            warm_at = now;
        }
    }
    stage_end(p->stage);
    stage_rest(p->stage); /* until all that was under way has ended */
    if (r < 0 && r != -ENOSPC)
        return fail(is_cache_error(r) ? EXIT_CACHE : EXIT_SOURCE, "%s: %s", p->shown,
                    diag_text(&d, r));
    if (now - warm_at < WARM_NS || now_bytes == warm) { /* it was over so soon that all counts */
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

/* Needs the cache to be known. */
static int find_rate(struct planning *p)
{
    uint64_t most = p->options->source.stage.rate;

    if (p->call->rate) {
        p->rate = most ? min_u64(p->call->rate, most) : p->call->rate;
        p->rate_from = p->rate == p->call->rate ? RATE_GIVEN : RATE_OPTION;
    } else if (most) {
        p->rate = most;
        p->rate_from = RATE_OPTION;
    } else if (p->here < p->bytes) {
        return measure(p);
    }
    return EXIT_DONE;
}

/* ---- a plan ---- */

/* The same by where samples stand, of some of them. False: that cannot be told. */
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

/* Bytes of the source files of a dataset, and what of them is here. Of a file that only says where
 * others are it is those; if they cannot be told, all of the source. */
static void find_bytes(const struct planning *p, const struct dataset *ds, uint64_t *ret_bytes,
                       uint64_t *ret_here)
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

/* Bytes of a block of the files that count. */
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
    switch (o->source.stage.keep) {
    case STAGE_ONCE:
        return FORECAST_ONCE;
    case STAGE_PLAN:
        return FORECAST_PLAN;
    default:
        return FORECAST_PIN;
    }
}

static void planned_init(struct planned *ret, const struct planning *p,
                         const struct catalog_item *item, const struct plan *plan)
{
    const struct dataset *ds = item->ds;
    uint64_t start, length, bytes, here;

    *ret = (struct planned){.all = p, .item = item, .plan = plan};
    plan_name(plan, ret->name);
    if (ds->ops && ds->ops->share)
        ds->ops->share(ds, plan->part, plan->parts, &start, &length);
    else
        plan_share(plan->part, plan->parts, ds->samples, &start, &length);
    schedule_init(&ret->schedule, plan, start, length);
    find_bytes(p, ds, &bytes, &here);
    ret->task = (struct forecast_task){
        .bytes = (double)bytes,
        .here = (double)here,
        .samples = max_u64(ds->samples, 1),
        .list = length,
        .elements = ret->schedule.elements,
        .batch = ret->schedule.batch,
        .batches = ret->schedule.batches,
        .is_shuffled = plan->seeded,
        .window = plan->window,
        .block = p->stage ? find_block(p, ds) : 1,
        .capacity = p->stage ? (double)p->capacity : 0,
        .keep = keep_of(p->options),
        .ahead = !p->stage || p->options->source.stage.background,
        .rate = (double)p->rate,
        .compute = p->call->compute,
        .epochs = p->call->epochs,
    };
    forecast_make(&ret->task, &ret->f);
    /* A copy has to fit on the disk. */
    if (p->stage && (double)bytes > (double)p->disk_free + (double)here)
        ret->f.copy = NAN;
}

/* ---- for people ---- */

/* "0.425 s", "12 s", "2 min 5 s". */
static const char *shown_time(double s, char ret[static HUMAN_SIZE])
{
    if (isnan(s))
        snprintf(ret, HUMAN_SIZE, "not known");
    else if (s < 9.95)
        snprintf(ret, HUMAN_SIZE, "%.3g s", s < 0.0005 ? 0 : s);
    else
        human_seconds(s < 1e18 ? (uint64_t)(s + 0.5) : UINT64_MAX, ret);
    return ret;
}

static const char *shown_bytes(double bytes, char ret[static HUMAN_SIZE])
{
    return human_bytes(bytes < 1.8e19 ? (uint64_t)(bytes + 0.5) : UINT64_MAX, ret);
}

static unsigned percent(double share)
{
    return percent_of((uint64_t)(fmax(share, 0) * 1e6 + 0.5), 1000000);
}

static void print_label(const char *label)
{
    printf("    %-*s", LABEL, label);
}

static void print_rate(const struct planning *p)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE], c[HUMAN_SIZE];

    print_label("rate");
    if (p->rate_from == RATE_UNKNOWN && p->here < p->bytes)
        printf("not known: nothing could be fetched to measure it; see --rate=\n");
    else if (p->rate_from == RATE_UNKNOWN)
        printf("not needed: all is staged\n");
    else if (p->rate_from == RATE_MEASURED)
        printf("%s/s, measured: %s were fetched in %s\n", human_bytes(p->rate, a),
               human_bytes(p->measured, b), shown_time(p->measured_s, c));
    else
        printf("%s/s, by %s=\n", human_bytes(p->rate, a),
               p->rate_from == RATE_GIVEN ? "--rate" : "-o rate");
}

static void print_source(const struct planning *p)
{
    uint64_t missing = p->bytes > p->here ? p->bytes - p->here : 0;
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    printf("%s\n", p->shown);
    print_label("cache");
    if (!p->stage) {
        printf("none: the source is read in place, nothing is staged (see cache=)\n");
        return;
    }
    printf("%s\n", p->opened.cache.path);
    print_label("");
    printf("%s in use", human_bytes(p->used, a));
    if (p->limit)
        printf(" of %s", human_bytes(p->limit, a));
    printf(", %s free on its disk\n", human_bytes(p->disk_free, a));
    print_label("staged");
    if (!p->bytes) {
        printf("all: the files are packed, and have been unpacked here\n");
        return;
    }
    printf("%s of %s (%u %%); ", human_bytes(p->here, a), human_bytes(p->bytes, b),
           percent_of(p->here, p->bytes));
    if (!missing)
        printf("nothing is missing\n");
    else if (missing <= p->capacity)
        printf("the cache can hold all\n");
    else
        printf("the cache can hold %s more\n", human_bytes(p->capacity, a));
    print_rate(p);
}

static void print_samples(const struct planned *x)
{
    const struct schedule *s = &x->schedule;

    print_label("samples");
    printf("%llu", (unsigned long long)s->elements);
    if (s->elements != x->item->ds->samples)
        printf(" of %llu", (unsigned long long)x->item->ds->samples);
    printf(" an epoch: %llu batch%s of %llu\n", (unsigned long long)s->batches,
           s->batches == 1 ? "" : "es", (unsigned long long)s->batch);
}

static void print_staging(const struct planned *x)
{
    const struct forecast *f = &x->f;
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    print_label("epoch");
    if (!x->all->stage) {
        printf("%s\n", shown_bytes(f->read, a));
        return;
    }
    printf("%s in blocks, %s of it staged", shown_bytes(f->epoch, a), shown_bytes(f->here, b));
    if (f->all_epochs > 1.01 * f->epoch)
        printf("; other samples in each epoch: %s in all", shown_bytes(f->all_epochs, a));
    printf("\n");
    print_label("staging");
    printf("%s for %s; the first batch is here after %s\n", shown_time(f->staging, a),
           shown_bytes(f->first.fetched, b), shown_time(f->first_batch, (char[HUMAN_SIZE]){0}));
    if (f->fits)
        return;
    print_label("room");
    printf("for %s of %s: later epochs find %u %% in the cache (keep=plan: %u %%)\n",
           shown_bytes(f->holds, a), shown_bytes(f->all_epochs, b), percent(f->pin),
           percent(f->plan));
}

static void print_hiding(const struct planned *x)
{
    const struct forecast *f = &x->f;
    char a[HUMAN_SIZE];

    print_label("hides");
    if (f->first.fetched <= 0)
        printf("yes: nothing is missing\n");
    else if (!x->task.ahead)
        printf("no: with stage=off bytes are fetched when they are read\n");
    else if (f->hides)
        printf("yes: the job waits only for the first batch\n");
    else if (isnan(f->compute))
        printf("if a batch takes %s to compute (see --compute=)\n", shown_time(f->hides_at, a));
    else
        printf("no: a batch would have to take %s to compute\n", shown_time(f->hides_at, a));
}

static void print_epoch(const char *label, const struct forecast_epoch *e)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    print_label(label);
    printf("%s, waits for %s of it (%u %%)", shown_time(e->seconds, a), shown_time(e->wait, b),
           e->seconds > 0 ? percent(e->wait / e->seconds) : 0);
    if (e->fetched >= 1)
        printf("; %s fetched", shown_bytes(e->fetched, a));
    printf("\n");
}

static void print_times(const struct planned *x)
{
    const struct forecast *f = &x->f;
    char a[HUMAN_SIZE], b[HUMAN_SIZE], c[HUMAN_SIZE];

    if (x->all->stage)
        print_hiding(x);
    if (isnan(f->compute))
        return;
    print_label("compute");
    printf("%s an epoch, %s for %llu epochs\n", shown_time(f->compute, a),
           shown_time(f->compute * (double)x->task.epochs, b), (unsigned long long)x->task.epochs);
    if (!x->all->stage)
        return;
    print_epoch("first", &f->first);
    print_epoch("later", &f->later);
    print_label("total");
    printf("%s for %llu epochs; copy first, then train: %s; no staging: %s\n",
           shown_time(f->total, a), (unsigned long long)x->task.epochs, shown_time(f->copy, b),
           shown_time(f->direct, c));
}

static void print_planned(const struct planned *x, bool is_default)
{
    char path[TREE_NAME_SIZE * 4];

    item_path(x->item, path, sizeof(path));
    text_plain(path, "");
    printf("%s, plan %s%s\n", path, x->name, is_default ? " (no -o plan= was given)" : "");
    print_samples(x);
    print_staging(x);
    print_times(x);
}

/* ---- for programs ---- */

static void json_seconds(struct text *t, const char *name, double v)
{
    text_add(t, ", \"%s\": ", name);
    if (isnan(v))
        text_add(t, "null");
    else
        text_add(t, "%.6f", v);
}

static void json_bytes(struct text *t, const char *name, double v)
{
    text_add(t, ", \"%s\": %.0f", name, v);
}

static void json_epoch(struct text *t, const char *name, const struct forecast_epoch *e)
{
    text_add(t, ",\n     \"%s\": {\"fetched_bytes\": %.0f", name, e->fetched);
    json_seconds(t, "seconds", e->seconds);
    json_seconds(t, "wait_seconds", e->wait);
    json_seconds(t, "wait_share", e->seconds > 0 ? e->wait / e->seconds : e->wait);
    text_add(t, "}");
}

static void json_staging(struct text *t, const struct forecast *f)
{
    text_add(t, ",\n     \"fits\": %s", f->fits ? "true" : "false");
    json_bytes(t, "epoch_block_bytes", f->epoch);
    json_bytes(t, "staged_bytes", f->here);
    json_bytes(t, "missing_bytes", f->missing);
    json_bytes(t, "all_epochs_bytes", f->all_epochs);
    json_bytes(t, "cache_holds_bytes", f->holds);
    json_seconds(t, "cache_share_pin", f->pin);
    json_seconds(t, "cache_share_plan", f->plan);
    json_seconds(t, "staging_seconds", f->staging);
    json_seconds(t, "first_batch_seconds", f->first_batch);
    json_seconds(t, "hides_at_compute_seconds", f->hides_at);
    text_add(t, ", \"hides\": %s", isnan(f->first.wait) ? "null" : f->hides ? "true" : "false");
    json_epoch(t, "first_epoch", &f->first);
    json_epoch(t, "later_epoch", &f->later);
    json_seconds(t, "copy_first_seconds", f->copy);
    json_seconds(t, "no_staging_seconds", f->direct);
}

static void json_planned(struct text *t, const struct planned *x)
{
    char path[TREE_NAME_SIZE * 4];

    item_path(x->item, path, sizeof(path));
    text_add(t, "\n    {\"dataset\": ");
    text_add_json(t, path);
    text_add(t, ", \"plan\": \"%s\", \"samples\": %llu, \"epoch_samples\": %llu", x->name,
             (unsigned long long)x->item->ds->samples, (unsigned long long)x->schedule.elements);
    text_add(t, ", \"batch\": %llu, \"batches\": %llu", (unsigned long long)x->schedule.batch,
             (unsigned long long)x->schedule.batches);
    json_bytes(t, "dataset_bytes", x->task.bytes);
    json_bytes(t, "epoch_bytes", x->f.read);
    json_seconds(t, "compute_seconds", x->f.compute);
    if (x->all->stage)
        json_staging(t, &x->f);
    text_add(t, ", \"epochs\": %llu", (unsigned long long)x->task.epochs);
    json_seconds(t, "total_seconds", x->f.total);
    text_add(t, "}");
}

static void json_cache(const struct planning *p, struct text *t)
{
    if (!p->stage) {
        text_add(t, ",\n  \"cache\": null, \"rate\": null");
        return;
    }
    text_add(t, ",\n  \"cache\": {\"folder\": ");
    text_add_json(t, p->opened.cache.path);
    text_add(t,
             ", \"used_bytes\": %llu, \"limit_bytes\": %llu, \"disk_free_bytes\": %llu, "
             "\"room_bytes\": %llu, \"source_bytes\": %llu, \"staged_bytes\": %llu}",
             (unsigned long long)p->used, (unsigned long long)p->limit,
             (unsigned long long)p->disk_free, (unsigned long long)p->capacity,
             (unsigned long long)p->bytes, (unsigned long long)p->here);
    if (p->rate_from == RATE_UNKNOWN) {
        text_add(t, ",\n  \"rate\": null");
        return;
    }
    text_add(t, ",\n  \"rate\": {\"bytes_per_second\": %llu, \"from\": \"%s\"",
             (unsigned long long)p->rate, rate_names[p->rate_from]);
    text_add(t, ", \"measured_bytes\": %llu, \"measured_seconds\": %.3f}",
             (unsigned long long)p->measured, p->measured_s);
}

/* ---- all of it ---- */

static const char *why_not(const struct catalog_item *item)
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

static void show_planned(const struct planning *p, const struct catalog_item *item, bool *any,
                         struct text *json)
{
    bool is_default = !p->options->n_plans;
    const struct plan *plan = is_default ? &default_plan : p->options->plan;

    for (size_t i = 0; i < (is_default ? 1 : p->options->n_plans); i++) {
        struct planned x;

        planned_init(&x, p, item, &plan[i]);
        text_add(json, "%s", *any ? "," : "");
        *any = true;
        if (p->call->json)
            json_planned(json, &x);
        else
            print_planned(&x, is_default);
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
        text_add(json, "%s\n    {\"name\": ", any ? "," : "");
        text_add_json(json, path);
        text_add(json, ", \"reason\": ");
        text_add_json(json, why_not(item));
        text_add(json, "}");
        any = true;
        text_plain(path, "");
        if (!p->call->json)
            printf("%s\n    not planned: %s\n", path, why_not(item));
    }
}

static int show_all(const struct planning *p)
{
    const struct catalog *catalog = &p->opened.catalog;
    AUTO_TEXT struct text t = {0};
    bool any = false;

    text_add(&t, "{\n  \"source\": ");
    text_add_json(&t, p->shown);
    json_cache(p, &t);
    text_add(&t, ",\n  \"default_plan\": %s,\n  \"plans\": [",
             p->options->n_plans ? "false" : "true");
    if (!p->call->json)
        print_source(p);
    for (size_t i = 0; i < catalog->n; i++)
        if (is_ready(&catalog->item[i]))
            show_planned(p, &catalog->item[i], &any, &t);
    text_add(&t, "\n  ],\n  \"not_planned\": [");
    show_others(p, &t);
    text_add(&t, "\n  ]\n}\n");
    if (t.failed)
        return fail(EXIT_SOURCE, "%s", strerror(ENOMEM));
    if (p->call->json)
        fputs(t.data, stdout);
    return any ? EXIT_DONE : fail(EXIT_SOURCE, "%s: no dataset could be planned", p->shown);
}

static int plan_source(const struct plan_call *call, const struct options *options)
{
    struct planning p = {.call = call, .options = options};
    struct options how = *options; /* its texts stay the other's */
    struct diag d = DIAG_INIT;
    int code;

    how.source.stage.background = true; /* it is what measures */
    shown_source(call->source, p.shown);
    code = open_catalog(call->source, &how, &p.opened, &d);
    if (code == EXIT_DONE) {
        log_source_note(p.opened.source);
        catalog_prepare(&p.opened.catalog, monotonic_ns() + PREPARE_NS);
        p.stage = p.opened.source->stage;
        if (p.stage) {
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
        return diag_set(d, -EINVAL, "option --compute=%s: want seconds, such as 0.25", value);
    *ret = v;
    return 0;
}

int command_plan(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    struct plan_call call = {.compute = -1, .epochs = EPOCHS};
    const char *rate = NULL, *compute = NULL, *epochs = NULL;
    const struct command_line line = {"plan",
                                      "SOURCE",
                                      print_help,
                                      &options,
                                      {{"json", .set = &call.json},
                                       {"rate", .text = &rate},
                                       {"compute", .text = &compute},
                                       {"epochs", .text = &epochs}}};
    struct diag d = DIAG_INIT;
    int code, r = 0;

    options_init(&options);
    code = parse_command(argc, argv, &line, &call.source);
    if (code >= 0)
        return code;
    if (rate)
        r = value_size("--rate", rate, &call.rate, &d);
    if (compute && r == 0)
        r = parse_seconds(compute, &call.compute, &d);
    if (epochs && r == 0)
        r = value_count("--epochs", epochs, 1, 1000000, &call.epochs, &d);
    if (r < 0)
        return fail(EXIT_USAGE, "%s", diag_text(&d, r));
    log_set_level(options.log_level);
    return plan_source(&call, &options);
}
