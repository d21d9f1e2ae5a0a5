/* What `epochfs plan` has found out, as text for people and as JSON for programs. */
#include "fs/cli/plan_show.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "fs/cli/progress.h"

#define LABEL 9 /* width of the first column */

static const char *const rate_names[] = {
    [RATE_GIVEN] = "--rate", [RATE_OPTION] = "rate", [RATE_MEASURED] = "measured"};

/* ---- for people ---- */

/* "0.425 s", "12 s", "2 min 5 s". */
const char *plan_shown_time(double s, char ret[static HUMAN_SIZE])
{
    if (isnan(s))
        snprintf(ret, HUMAN_SIZE, "not known");
    else if (s < 9.95)
        snprintf(ret, HUMAN_SIZE, "%.3g s", s < 0.0005 ? 0 : s);
    else
        human_seconds(s < 1e18 ? (uint64_t)(s + 0.5) : UINT64_MAX, ret);
    return ret;
}

const char *plan_shown_bytes(double bytes, char ret[static HUMAN_SIZE])
{
    return human_bytes(bytes < 1.8e19 ? (uint64_t)(bytes + 0.5) : UINT64_MAX, ret);
}

static unsigned percent(double share)
{
    return percent_of((uint64_t)(fmax(share, 0) * 1e6 + 0.5), 1000000);
}

void plan_print_label(const char *label)
{
    printf("    %-*s", LABEL, label);
}

static void print_rate(const struct planning *p)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE], c[HUMAN_SIZE];

    plan_print_label("rate");
    if (p->rate_from == RATE_UNKNOWN && p->here < p->bytes)
        printf("not known: %s. Give --assume-rate=\n",
               p->call->dry_run ? "--dry-run fetches nothing to measure it"
                                : "the cache has no space for bytes that measure it");
    else if (p->rate_from == RATE_UNKNOWN)
        printf("not needed: all is staged\n");
    else if (p->rate_from == RATE_MEASURED)
        printf("%s, measured: %s were fetched in %s\n", human_rate(p->rate, a),
               human_bytes(p->measured, b), plan_shown_time(p->measured_s, c));
    else
        printf("%s, by %s=\n", human_rate(p->rate, a),
               p->rate_from == RATE_GIVEN ? "--assume-rate" : "-o bwlimit");
}

void plan_print_source(const struct planning *p)
{
    uint64_t missing = p->bytes > p->here ? p->bytes - p->here : 0;
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    printf("%s\n", p->shown);
    plan_print_label("cache");
    if (!p->stage) {
        printf("none: the source is read in place, nothing is staged (see cache_dir=)\n");
        return;
    }
    printf("%s\n", p->opened.cache.path);
    plan_print_label("");
    printf("%s in use", human_bytes(p->used, a));
    if (p->unused)
        printf(" (%s of it unused: it makes place)", human_bytes(p->unused, a));
    if (p->limit)
        printf(", limit %s", human_bytes(p->limit, a));
    printf(", %s free on its disk\n", human_bytes(p->disk_free, a));
    plan_print_label("staged");
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

static double padding_of(const struct length_fill *fill)
{
    return fill->area > 0 ? 1 - fill->used / fill->area : 0;
}

/* The share of the budget that lengths fill; NAN: there is no budget. quad= counts otherwise. */
static double fill_of(const struct planned *x)
{
    const struct plan *plan = x->plan;
    return plan->budget && !plan->quad && x->fill.batches
               ? x->fill.used / ((double)x->fill.batches * x->fill.budget)
               : NAN;
}

/* The first epoch stands for all: others differ little. */
static void print_fill(const struct planned *x)
{
    double fill = fill_of(x);

    plan_print_label("lengths");
    printf("%.1f %% of an epoch's batches is padding", 100 * padding_of(&x->fill));
    if (!isnan(fill))
        printf("; they fill %.1f %% of the budget", 100 * fill);
    if (x->fill.alone)
        printf("; %llu sample%s longer than the budget, alone in a batch",
               (unsigned long long)x->fill.alone, x->fill.alone == 1 ? " is" : "s are");
    printf("\n");
}

static void print_samples(const struct planned *x)
{
    const struct schedule *s = &x->schedule;

    plan_print_label("samples");
    printf("%llu", (unsigned long long)s->elements);
    if (s->elements != x->item->ds->samples)
        printf(" of %llu", (unsigned long long)x->item->ds->samples);
    printf(" an epoch: %llu batch%s of %s%llu\n", (unsigned long long)s->batches,
           s->batches == 1 ? "" : "es", s->cuts ? "about " : "", (unsigned long long)s->batch);
    if (s->cuts)
        print_fill(x);
}

static void print_note(const struct planned *x)
{
    AUTO_TEXT struct text note = {0};

    schedule_note(&x->schedule, &note);
    if (!note.len || note.failed)
        return;
    plan_print_label("note");
    printf("%s\n", note.data);
}

static void print_staging(const struct planned *x)
{
    const struct forecast *f = &x->f;
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    plan_print_label("epoch");
    if (!x->all->stage) {
        printf("%s\n", plan_shown_bytes(f->read, a));
        return;
    }
    printf("%s in blocks, %s of it staged", plan_shown_bytes(f->epoch, a),
           plan_shown_bytes(f->here, b));
    if (f->all_epochs > 1.01 * f->epoch)
        printf("; other samples in each epoch: %s in all", plan_shown_bytes(f->all_epochs, a));
    printf("\n");
    plan_print_label("staging");
    if (isnan(f->staging))
        printf("%s must be fetched, at a rate that is not known\n",
               plan_shown_bytes(f->first.fetched, b));
    else
        printf("%s for %s; the first batch arrives after %s\n", plan_shown_time(f->staging, a),
               plan_shown_bytes(f->first.fetched, b),
               plan_shown_time(f->first_batch, (char[HUMAN_SIZE]){0}));
    if (f->fits)
        return;
    plan_print_label("room");
    printf("for %s of %s: later epochs find %u %% in the cache (evict=plan: %u %%)\n",
           plan_shown_bytes(f->holds, a), plan_shown_bytes(f->all_epochs, b), percent(f->pin),
           percent(f->plan));
}

static void print_hiding(const struct planned *x)
{
    const struct forecast *f = &x->f;
    char a[HUMAN_SIZE];

    plan_print_label("hides");
    if (f->first.fetched <= 0)
        printf("yes: nothing is missing\n");
    else if (!x->task.ahead)
        printf("no: with prefetch=off bytes are fetched when they are read\n");
    else if (isnan(f->hides_at))
        printf("not known, because the rate is not known\n");
    else if (f->hides)
        printf("yes: the job waits only for the first batch\n");
    else if (isnan(f->compute))
        printf("if a batch takes %s to compute (see --compute=)\n",
               plan_shown_time(f->hides_at, a));
    else
        printf("no: a batch would have to take %s to compute\n", plan_shown_time(f->hides_at, a));
}

static void print_epoch(const char *label, const struct forecast_epoch *e)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    plan_print_label(label);
    if (isnan(e->seconds))
        printf("not known, because the rate is not known");
    else
        printf("%s, waits for %s of it (%u %%)", plan_shown_time(e->seconds, a),
               plan_shown_time(e->wait, b), e->seconds > 0 ? percent(e->wait / e->seconds) : 0);
    if (e->fetched >= 1)
        printf("; %s fetched", plan_shown_bytes(e->fetched, a));
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
    plan_print_label("compute");
    printf("%s per epoch, %s for %llu epochs\n", plan_shown_time(f->compute, a),
           plan_shown_time(f->compute * (double)x->task.epochs, b),
           (unsigned long long)x->task.epochs);
    if (!x->all->stage)
        return;
    print_epoch("first", &f->first);
    print_epoch("later", &f->later);
    if (isnan(f->total))
        return;
    plan_print_label("total");
    printf("%s for %llu epochs; copy first, then train: %s; no staging: %s\n",
           plan_shown_time(f->total, a), (unsigned long long)x->task.epochs,
           plan_shown_time(f->copy, b), plan_shown_time(f->direct, c));
}

void plan_print(const struct planned *x, bool is_default)
{
    char path[TREE_NAME_SIZE * 4];

    item_path(x->item, path, sizeof(path));
    text_plain(path, "");
    printf("%s, plan %s%s\n", path, x->name, is_default ? " (no -o plan= was given)" : "");
    print_samples(x);
    print_note(x);
    print_staging(x);
    print_times(x);
}

/* ---- for programs ---- */

void plan_json_seconds(struct text *t, const char *name, double v)
{
    json_add(t, NULL, name, isnan(v) ? "null" : "%.6f", v);
}

void plan_json_bytes(struct text *t, const char *name, double v)
{
    json_add(t, NULL, name, "%.0f", v);
}

static void json_epoch(struct text *t, const char *name, const struct forecast_epoch *e)
{
    text_add(t, ",\n     \"%s\": {\"fetched_bytes\": %.0f", name, e->fetched);
    plan_json_seconds(t, "seconds", e->seconds);
    plan_json_seconds(t, "wait_seconds", e->wait);
    plan_json_seconds(t, "wait_share", e->seconds > 0 ? e->wait / e->seconds : e->wait);
    text_add(t, "}");
}

static void json_staging(struct text *t, const struct forecast *f)
{
    text_add(t, ",\n     \"fits\": %s", f->fits ? "true" : "false");
    plan_json_bytes(t, "epoch_block_bytes", f->epoch);
    plan_json_bytes(t, "staged_bytes", f->here);
    plan_json_bytes(t, "missing_bytes", f->missing);
    plan_json_bytes(t, "all_epochs_bytes", f->all_epochs);
    plan_json_bytes(t, "cache_holds_bytes", f->holds);
    plan_json_seconds(t, "cache_share_pin", f->pin);
    plan_json_seconds(t, "cache_share_plan", f->plan);
    plan_json_seconds(t, "staging_seconds", f->staging);
    plan_json_seconds(t, "first_batch_seconds", f->first_batch);
    plan_json_seconds(t, "hides_at_compute_seconds", f->hides_at);
    text_add(t, ", \"hides\": %s", isnan(f->first.wait) ? "null" : f->hides ? "true" : "false");
    json_epoch(t, "first_epoch", &f->first);
    json_epoch(t, "later_epoch", &f->later);
    plan_json_seconds(t, "copy_first_seconds", f->copy);
    plan_json_seconds(t, "no_staging_seconds", f->direct);
}

void plan_json(struct text *t, const struct planned *x)
{
    AUTO_TEXT struct text note = {0};
    char path[TREE_NAME_SIZE * 4];

    schedule_note(&x->schedule, &note);
    item_path(x->item, path, sizeof(path));
    text_add(t, "\n    {");
    json_add_text(t, NULL, "dataset", path);
    json_add_text(t, NULL, "plan", x->name);
    json_add_number(t, NULL, "samples", x->item->ds->samples);
    json_add_number(t, NULL, "epoch_samples", x->schedule.elements);
    json_add_number(t, NULL, "batch", x->schedule.batch);
    json_add_number(t, NULL, "batches", x->schedule.batches);
    if (x->schedule.cuts) {
        plan_json_seconds(t, "padding", padding_of(&x->fill));
        plan_json_seconds(t, "fill", fill_of(x));
        json_add_number(t, NULL, "longer_than_budget", x->fill.alone);
    }
    json_add_text(t, NULL, "note", note.data ? note.data : "");
    plan_json_bytes(t, "dataset_bytes", x->task.bytes);
    plan_json_bytes(t, "epoch_bytes", x->f.read);
    plan_json_seconds(t, "compute_seconds", x->f.compute);
    if (x->all->stage)
        json_staging(t, &x->f);
    json_add_number(t, NULL, "epochs", x->task.epochs);
    plan_json_seconds(t, "total_seconds", x->f.total);
}

void plan_json_cache(const struct planning *p, struct text *t)
{
    if (!p->stage) {
        text_add(t, ",\n  \"cache\": null, \"rate\": null");
        return;
    }
    text_add(t, ",\n  \"cache\": {");
    json_add_text(t, NULL, "folder", p->opened.cache.path);
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
