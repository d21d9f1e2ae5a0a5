/* Plans with the same labels are shown once: no two samples of a metric may have the same labels.
 */
#include "fs/status/plans.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cache/stage/stage.h"
#include "fs/status/metrics.h"

#define NUMBER_MOST 1e12 /* the largest number shown with a fraction */

/* What is shown of a plan. */
struct shown {
    const char *dataset, *plan, *encoding; /* NULL: none */
    uint64_t epoch, batch, batches, samples, pushed;
    double rate, wait_s, wait_share, since_s, quiet_s, staged;
    double left_s; /* NAN: not known */
    bool was_read;
};

/* ---- which plans to show ---- */

static double bounded(double v)
{
    return v >= 0 ? fmin(v, NUMBER_MOST - 1) : 0; /* NAN becomes 0 as well */
}

static double staged_share(const struct dataset *ds)
{
    double here = 0, all = 0;

    for (unsigned i = 0; i < ds->n_blobs; i++) {
        here += (double)stage_staged(ds->blob[i]);
        all += (double)ds->blob[i]->size;
    }
    return all > 0 ? fmin(here / all, 1) : 1;
}

static struct shown shown_of(const struct active_info *info, const char *dataset)
{
    uint64_t left = info->units > info->unit ? info->units - info->unit : 0;
    struct shown s = {
        .dataset = dataset,
        .plan = info->plan ? info->plan->name : NULL,
        .encoding = info->folder ? info->folder->name : NULL,
        .epoch = info->epoch,
        .batch = info->unit,
        .batches = info->units,
        .samples = info->samples,
        .pushed = info->pushed,
        .rate = bounded(info->units_per_s),
        .wait_s = bounded(info->wait_s),
        .since_s = bounded(info->since_s),
        .quiet_s = bounded(info->quiet_s),
        .staged = staged_share(info->item->ds),
        .left_s = NAN,
        .was_read = info->was_read,
    };

    s.wait_share = s.since_s > 0 ? fmin(s.wait_s / s.since_s, 1) : 0;
    if (!left || s.rate > 0)
        s.left_s = left ? bounded((double)left / s.rate) : 0;
    return s;
}

/* Do both have the same labels? Two samples of a metric must not. */
static bool status_plans_is_same(const struct active_info *a, const struct active_info *b)
{
    return a->item == b->item && a->plan == b->plan && a->epoch == b->epoch &&
           a->folder == b->folder;
}

/* List the first plans whose labels differ. */
static size_t status_plans_list_plans(struct active_plans *active_plans,
                                      struct active_info ret[static ACTIVE_PLANS_MAX])
{
    size_t all = active_plans_list(active_plans, ret), n = 0;

    for (size_t i = 0; i < all && n < STATUS_PLANS_MOST; i++) {
        bool is_new = true;

        for (size_t k = 0; k < n; k++)
            is_new = is_new && !status_plans_is_same(&ret[k], &ret[i]);
        if (is_new)
            ret[n++] = ret[i];
    }
    return n;
}

/* ---- status.json ---- */

/* v: seconds; NAN: not known. */
static void json_seconds(struct text *t, const char *name, double v)
{
    json_add(t, NULL, name, isnan(v) ? "null" : "%.6f", v);
}

static void json_plan(const struct shown *s, struct text *t)
{
    text_add(t, "\n    {");
    json_add_text(t, NULL, "dataset", s->dataset);
    json_add_text(t, NULL, "plan", s->plan);
    json_add_text(t, NULL, "encoding", s->encoding);
    text_add(t,
             ",\n     \"epoch\": %llu, \"batch\": %llu, \"batches\": %llu,\n"
             "     \"samples_per_batch\": %llu, \"pushed_batches\": %llu,\n",
             (unsigned long long)s->epoch, (unsigned long long)s->batch,
             (unsigned long long)s->batches, (unsigned long long)s->samples,
             (unsigned long long)s->pushed);
    text_add(t,
             "     \"batches_per_second\": %.6f, \"wait_seconds\": %.6f,\n"
             "     \"wait_share\": %.6f, ",
             s->rate, s->wait_s, s->wait_share);
    json_seconds(t, "seconds_since_first_read", s->was_read ? s->since_s : NAN);
    text_add(t, ",\n     ");
    json_seconds(t, "seconds_since_last_read", s->was_read ? s->quiet_s : NAN);
    json_seconds(t, "seconds_left", s->left_s);
    text_add(t, ", \"staged_share\": %.6f}", s->staged);
}

/* The counters of what is pushed. */
static const struct metrics_row status_plans_counts[] = {
#define AT(member) offsetof(struct active_plans_counters, member)
    {"files", "epochfs_push_files_total", "Files put into the page cache before they were read.",
     AT(pushed_files)},
    {"bytes", "epochfs_push_bytes_total", "Bytes of the pushed files.", AT(pushed_bytes)},
    {"unknown_files", "epochfs_push_unknown_files_total",
     "Files that were not pushed, because the kernel did not know them.", AT(unknown_files)},
    {"overtaken", "epochfs_push_overtaken_total", "Reads that came before the push.",
     AT(overtaken)},
    {"lost", "epochfs_push_lost_total",
     "Reads of pushed bytes that the kernel had dropped because memory was short.", AT(lost)},
    {"jumps", "epochfs_push_jumps_total", "Times that a reader jumped to another place.",
     AT(jumps)},
    {"asked_bytes", "epochfs_push_asked_bytes_total",
     "Bytes of a local source that were requested from the disk before they were read.",
     AT(asked_bytes)},
    {"asked_requests", "epochfs_push_asked_requests_total", "Requests for these bytes.",
     AT(asked_requests)},
    {"sequence_bytes", "epochfs_push_sequence_bytes_total",
     "Bytes of a local source that were requested in the order of the file.", AT(sequence_bytes)},
    {"passed_bytes", "epochfs_push_passed_bytes_total",
     "Bytes of a local source that left the page cache after they were read, because the source "
     "exceeds the memory.",
     AT(passed_bytes)},
#undef AT
};

void status_plans_json(struct active_plans *active_plans, struct text *t)
{
    const struct active_plans_counters *c = active_plans_counters(active_plans);
    struct active_info info[ACTIVE_PLANS_MAX];
    size_t n = status_plans_list_plans(active_plans, info);
    char dataset[TREE_NAME_SIZE * 4];

    text_add(t, "\"plans\": [");
    for (size_t i = 0; i < n; i++) {
        struct shown s;

        item_path(info[i].item, dataset, sizeof(dataset));
        s = shown_of(&info[i], dataset);
        text_add(t, "%s", i ? "," : "");
        json_plan(&s, t);
    }
    text_add(t, "\n  ],\n  \"push\": {\n");
    metrics_rows_json(t, status_plans_counts, ARRAY_LEN(status_plans_counts), c);
    text_add(t, "\n  }");
}

/* ---- metrics ---- */

static const struct gauge {
    const char *metric, *help;
    bool of_reads; /* no value before the first read */
} gauges[] = {
    {"epochfs_plan_batch", "Batch at which the reader is, as far as is known.", false},
    {"epochfs_plan_batches", "Batches of the epoch, or samples if single samples are read.", false},
    {"epochfs_plan_batch_samples", "Samples per batch.", false},
    {"epochfs_plan_pushed_batches", "Batches before this one have been pushed, or read.", false},
    {"epochfs_plan_batches_per_second", "Reading speed; 0: not known.", false},
    {"epochfs_plan_wait_seconds", "Seconds that readers waited for the remote in this epoch.",
     false},
    {"epochfs_plan_wait_ratio",
     "These seconds as a share of the time since the first read, 0 to 1.", false},
    {"epochfs_plan_age_seconds", "Seconds since the first read of this epoch.", true},
    {"epochfs_plan_quiet_seconds", "Seconds since the last read that reached the daemon.", true},
    {"epochfs_plan_left_seconds", "Seconds to the end of the epoch at this speed; NaN: not known.",
     false},
    {"epochfs_plan_staged_ratio", "Share of the dataset's source bytes that are staged.", false},
};

static void gauge_values(const struct shown *s, double ret[static ARRAY_LEN(gauges)])
{
    const double v[ARRAY_LEN(gauges)] = {
        (double)s->batch, (double)s->batches, (double)s->samples, (double)s->pushed,
        s->rate,          s->wait_s,          s->wait_share,      s->since_s,
        s->quiet_s,       s->left_s,          s->staged};

    memcpy(ret, v, sizeof(v));
}

static void status_plans_add_labels(const struct shown *s, struct text *t)
{
    metrics_add_label(t, "dataset", s->dataset);
    text_add(t, ",");
    metrics_add_label(t, "plan", s->plan ? s->plan : "");
    text_add(t, ",epoch=\"%llu\",", (unsigned long long)s->epoch);
    metrics_add_label(t, "encoding", s->encoding ? s->encoding : "");
}

/* A plan in the metrics: labels, and a value for each of gauges[]. */
struct series {
    struct text labels;
    double value[ARRAY_LEN(gauges)];
    bool was_read;
};

struct series_list {
    struct series item[STATUS_PLANS_MOST];
    size_t n;
};

static void series_list_release(struct series_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        text_release(&list->item[i].labels);
}

/* Names that differ only in bytes that are not UTF-8 have the same labels; no two series may. */
static bool is_new_series(const struct series_list *list)
{
    const struct text *last = &list->item[list->n].labels;

    if (last->failed)
        return false;
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->item[i].labels.data, last->data))
            return false;
    return true;
}

static void list_series(struct active_plans *active_plans, struct series_list *ret)
{
    struct active_info info[ACTIVE_PLANS_MAX];
    size_t n = status_plans_list_plans(active_plans, info);
    char dataset[TREE_NAME_SIZE * 4];

    for (size_t i = 0; i < n; i++) {
        struct series *series = &ret->item[ret->n];
        struct shown s;

        item_path(info[i].item, dataset, sizeof(dataset));
        s = shown_of(&info[i], dataset);
        *series = (struct series){0};
        status_plans_add_labels(&s, &series->labels);
        gauge_values(&s, series->value);
        series->was_read = s.was_read;
        if (is_new_series(ret))
            ret->n++;
        else
            text_release(&series->labels);
    }
}

static void status_plans_add_sample(const struct series *series, size_t gauge, struct text *t)
{
    if (gauges[gauge].of_reads && !series->was_read)
        return;
    text_add(t, "%s{%s} ", gauges[gauge].metric, series->labels.data);
    if (isnan(series->value[gauge]))
        text_add(t, "%s\n", "NaN");
    else
        text_add(t, "%.6f\n", series->value[gauge]);
}

void status_plans_metrics(struct active_plans *active_plans, struct text *t)
{
    const struct active_plans_counters *c = active_plans_counters(active_plans);
    AUTO(series_list_release) struct series_list list = {.n = 0};

    list_series(active_plans, &list);
    for (size_t g = 0; g < ARRAY_LEN(gauges); g++) {
        metrics_begin(t, gauges[g].metric, NULL, gauges[g].help);
        for (size_t i = 0; i < list.n; i++)
            status_plans_add_sample(&list.item[i], g, t);
    }
    metrics_add_rows(t, status_plans_counts, ARRAY_LEN(status_plans_counts), c);
}
