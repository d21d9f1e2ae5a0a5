/* Uses the text alone, and omits what is not in it, so that mounts of other versions are shown
 * as well as possible. */
#include "fs/cli/status_show.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/cli/progress.h"
#include "fs/cli/status_values.h"

#define NAME_SIZE 2048
#define QUIET_S   30 /* seconds without a read: the job rests, or has ended */
#define UNSEEN    64 /* batches at most from the page cache until a read reaches the daemon */

static bool shown_text(const json_t *json, const char *path, char *ret, size_t capacity)
{
    bool found = status_string(json, path, ret, capacity);

    text_plain(ret, "");
    return found;
}

static void status_show_add_mount(const json_t *json, struct text *t)
{
    int64_t since = now_ns() / 1000000000 - (int64_t)status_number(json, "started");
    char source[PATH_MAX], where[PATH_MAX], ago[HUMAN_SIZE];

    shown_text(json, "source", source, sizeof(source));
    shown_text(json, "mountpoint", where, sizeof(where));
    text_add(t, "source    %s\nmounted   on %s, %s ago, pid %llu\n", source, where,
             human_seconds(since > 0 ? (uint64_t)since : 0, ago),
             (unsigned long long)status_number(json, "pid"));
}

/* How files are opened is shown only where the kernel reads some itself. */
static void add_open(const json_t *json, struct text *t)
{
    char mode[16];

    if (status_string(json, "open.mode", mode, sizeof(mode)) && !strcmp(mode, "pass"))
        text_add(
            t,
            "open      pass: %llu opens of files that the kernel reads itself; their bytes are "
            "not counted\n",
            (unsigned long long)status_number(json, "open.passed"));
}

static void status_show_add_datasets(const json_t *json, struct text *t)
{
    uint64_t unusable = status_number(json, "unusable_files");
    uint64_t done = status_number(json, "index_bytes_done");
    uint64_t total = status_number(json, "index_bytes_total");

    text_add(t, "datasets  %llu of %llu ready",
             (unsigned long long)status_number(json, "datasets_ready"),
             (unsigned long long)status_number(json, "datasets"));
    if (done < total)
        text_add(t, ", %u %% indexed", percent_of(done, total));
    if (unusable)
        text_add(t, "; %llu file%s not usable", (unsigned long long)unusable,
                 unusable > 1 ? "s" : "");
    text_add(t, "\n");
}

/* Add " (12 MB/s)", if the time between the looks is known. */
static void add_rate(uint64_t now, uint64_t before, int64_t ns, struct text *t)
{
    char rate[HUMAN_SIZE];

    if (ns > 0 && now >= before)
        text_add(t, " (%s)",
                 human_rate((uint64_t)((double)(now - before) / (double)ns * 1e9), rate));
}

static void status_show_add_error(const json_t *json, const char *path, const char *label,
                                  struct text *t)
{
    char reason[4096];

    if (shown_text(json, path, reason, sizeof(reason)) && *reason)
        text_add(t, "%-9s %s\n", label, reason);
}

static void add_reads(const json_t *json, const struct status_look *last, int64_t ns,
                      struct text *t)
{
    uint64_t served = status_number(json, "bytes_served");
    uint64_t errors = status_number(json, "read_errors");
    uint64_t zeroed = status_number(json, "pictures.zeroed");
    char bytes[HUMAN_SIZE];

    text_add(t, "reads     %s", human_bytes(served, bytes));
    add_rate(served, last->served, ns, t);
    text_add(t, ", %llu failed", (unsigned long long)errors);
    if (zeroed)
        text_add(t, ", %llu times a picture of zeros", (unsigned long long)zeroed);
    text_add(t, "\n");
    if (errors)
        status_show_add_error(json, "last_read_error", "  last", t);
    status_show_add_error(json, "last_broken_promise", "promise", t);
    status_show_add_error(json, "last_refused_name", "refused", t);
}

static uint64_t status_show_fetched_bytes(const json_t *json)
{
    return status_number(json, "remote.demand_bytes") +
           status_number(json, "remote.background_bytes");
}

static void add_fetched(const json_t *json, const struct status_look *last, int64_t ns,
                        struct text *t)
{
    uint64_t staged = status_number(json, "remote.staged_bytes");
    uint64_t total = status_number(json, "remote.total_bytes");
    uint64_t fetched = status_show_fetched_bytes(json),
             distinct = status_number(json, "remote.distinct_bytes");
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    text_add(t, "staged    %s of %s (%u %%)\n", human_bytes(staged, a), human_bytes(total, b),
             percent_of(staged, total));
    text_add(t, "fetched   %s", human_bytes(fetched, a));
    add_rate(fetched, last->fetched, ns, t);
    text_add(t, ", %s of it because a read waited",
             human_bytes(status_number(json, "remote.demand_bytes"), a));
    if (distinct)
        text_add(t, "; each byte %.2f times", (double)fetched / (double)distinct);
    text_add(t, "\n");
}

static void add_remote(const json_t *json, const struct status_look *last, int64_t ns,
                       struct text *t)
{
    uint64_t hits = status_number(json, "remote.hits"),
             misses = status_number(json, "remote.misses");
    uint64_t limit = status_number(json, "remote.cache_limit_bytes");
    uint64_t refused = status_number(json, "remote.refused_inserts");
    char used[HUMAN_SIZE], most[HUMAN_SIZE], peers[NAME_SIZE];

    add_fetched(json, last, ns, t);
    if (hits + misses)
        text_add(t, "hits      %u %% of %llu reads\n", percent_of(hits, hits + misses),
                 (unsigned long long)(hits + misses));
    text_add(t, "waits     %llu, %.1f s in all\n",
             (unsigned long long)status_number(json, "remote.waits"),
             status_real(json, "remote.wait_seconds"));
    text_add(t, "errors    %llu, after %llu retries; %llu bad blocks, %llu bad files\n",
             (unsigned long long)status_number(json, "remote.errors"),
             (unsigned long long)status_number(json, "remote.retries"),
             (unsigned long long)status_number(json, "remote.bad_blocks"),
             (unsigned long long)status_number(json, "remote.bad_files"));
    text_add(t, "cache     %s", human_bytes(status_number(json, "remote.cache_used_bytes"), used));
    if (limit)
        text_add(t, " of %s (cache_size=; default: 80 %% of its disk)", human_bytes(limit, most));
    if (refused)
        text_add(t, "; full: %llu blocks were not kept", (unsigned long long)refused);
    text_add(t, "\n");
    if (shown_text(json, "remote.peers_url", peers, sizeof(peers)) && *peers)
        text_add(t, "peers     %s from %s\n",
                 human_bytes(status_number(json, "remote.peers_bytes"), used), peers);
    status_show_add_error(json, "remote.space_note", "note", t);
    status_show_add_error(json, "remote.peers_trouble", "  fail", t);
    status_show_add_error(json, "remote.last_error", "trouble", t);
}

/* ---- active plans ---- */

/* One element of "plans" in status.json. */
struct plan_line {
    char dataset[NAME_SIZE], plan[NAME_SIZE / 4], encoding[32];
    uint64_t epoch, batch, batches, samples, pushed;
    double rate, wait_s, quiet_s, left_s; /* left_s < 0: not known */
    unsigned staged, waits;               /* percent */
    bool is_samples;                      /* not batches */
    bool was_read;
};

static unsigned percent_at(const json_t *at, const char *name)
{
    double share = status_real(at, name);

    return share > 0 && share < 1 ? percent_of((uint64_t)(share * 1e6), 1000000)
           : share >= 1           ? 100
                                  : 0;
}

/* Is it a number? */
static bool status_show_is_known(const json_t *at, const char *name)
{
    return json_is_number(status_value(at, name));
}

static void plan_line_init(struct plan_line *ret, const json_t *at)
{

    *ret = (struct plan_line){
        .epoch = status_number(at, "epoch"),
        .batch = status_number(at, "batch"),
        .batches = status_number(at, "batches"),
        .samples = status_number(at, "samples_per_batch"),
        .pushed = status_number(at, "pushed_batches"),
        .rate = status_real(at, "batches_per_second"),
        .wait_s = status_real(at, "wait_seconds"),
        .quiet_s = status_real(at, "seconds_since_last_read"),
        .left_s = status_show_is_known(at, "seconds_left") ? status_real(at, "seconds_left") : -1,
        .staged = percent_at(at, "staged_share"),
        .waits = percent_at(at, "wait_share"),
        .was_read = !json_is_null(status_value(at, "seconds_since_last_read")),
    };
    shown_text(at, "dataset", ret->dataset, sizeof(ret->dataset));
    shown_text(at, "encoding", ret->encoding, sizeof(ret->encoding));
    ret->is_samples = !shown_text(at, "plan", ret->plan, sizeof(ret->plan));
}

/* "train batch=128,seed=7 epoch 3 npz" */
static void add_plan_name(const struct plan_line *p, struct text *t)
{
    text_add(t, "%s %s", p->dataset, p->is_samples ? "samples" : p->plan);
    if (!p->is_samples)
        text_add(t, " epoch %llu", (unsigned long long)p->epoch);
    if (*p->encoding)
        text_add(t, " %s", p->encoding);
}

/* "4.5 batches", "1540 batches": three significant digits, never an exponent; slower than one in
 * 100 s: "1 batch in 2 min 5 s". */
static void add_speed(double rate, const char *one, const char *many, struct text *t)
{
    char time[HUMAN_SIZE];

    if (rate < 0.01)
        text_add(t, ", 1 %s in %s", one,
                 human_seconds(rate > 1e-15 ? (uint64_t)(1 / rate) : UINT64_MAX, time));
    else
        text_add(t, rate < 999.5 ? ", %.3g %s/s" : ", %.0f %s/s", rate, many);
}

/* Has no read come although one should have? What was pushed is read unseen, up to the next mark.
 */
static bool is_quiet(const struct plan_line *p)
{
    uint64_t unseen = p->pushed > p->batch ? p->pushed - p->batch : 0;

    unseen = min_u64(unseen, UNSEEN);
    return p->quiet_s >= QUIET_S + (p->rate > 0 ? (double)unseen / p->rate : 0);
}

/* "batch 100 of 469 (21 %), 4.5 batches/s (576 samples/s), 1 min 22 s left" */
static void add_plan_place(const struct plan_line *p, struct text *t)
{
    const char *one = p->is_samples ? "sample" : "batch";
    char left[HUMAN_SIZE];

    if (!p->was_read) {
        text_add(t, "not read yet, %llu %s", (unsigned long long)p->batches,
                 p->is_samples ? "samples" : "batches");
        return;
    }
    if (p->batch >= p->batches)
        text_add(t, "finished: %llu of %llu %s", (unsigned long long)p->batch,
                 (unsigned long long)p->batches, p->is_samples ? "samples" : "batches");
    else
        text_add(t, "%s %llu of %llu (%u %%)", one, (unsigned long long)p->batch,
                 (unsigned long long)p->batches, percent_of(p->batch, p->batches));
    if (p->rate > 0)
        add_speed(p->rate, one, p->is_samples ? "samples" : "batches", t);
    if (p->rate > 0 && !p->is_samples)
        text_add(t, " (%.0f samples/s)", p->rate * (double)p->samples);
    if (is_quiet(p) && p->batch < p->batches)
        text_add(t, ", no read for %s",
                 human_seconds(p->quiet_s < 1e15 ? (uint64_t)p->quiet_s : UINT64_MAX, left));
    else if (p->left_s >= 0 && p->batch < p->batches)
        text_add(t, ", %s left",
                 human_seconds(p->left_s < 1e15 ? (uint64_t)(p->left_s + 0.5) : UINT64_MAX, left));
}

void status_show_place(const json_t *plan, struct text *ret)
{
    struct plan_line p;

    plan_line_init(&p, plan);
    add_plan_place(&p, ret);
}

static void status_show_add_plans(const json_t *json, struct text *t)
{
    const json_t *plans = status_value(json, "plans");
    const char *label = "plans";

    for (size_t i = 0; i < json_array_size(plans); i++) {
        struct plan_line p;

        plan_line_init(&p, json_array_get(plans, i));
        text_add(t, "%-9s ", label);
        add_plan_name(&p, t);
        text_add(t, "\n          ");
        add_plan_place(&p, t);
        text_add(t, "\n          %u %% staged, waited %.1f s (%u %%)\n", p.staged, p.wait_s,
                 p.waits);
        label = "";
    }
}

/* ---- what is asked for ---- */

void status_look_init(struct status_look *ret, const char *text, int64_t now)
{
    AUTO_JSON json_t *json = status_parse(text);

    *ret = (struct status_look){
        .ns = now,
        .served = status_number(json, "bytes_served"),
        .fetched = status_show_fetched_bytes(json),
        .len = strlen(text),
    };
}

void status_show_page(const char *text, const struct status_look *last, int64_t now,
                      struct text *ret)
{
    AUTO_JSON json_t *json = status_parse(text);
    int64_t ns = last->ns ? now - last->ns : 0;

    status_show_add_mount(json, ret);
    status_show_add_datasets(json, ret);
    add_open(json, ret);
    status_show_add_plans(json, ret);
    add_reads(json, last, ns, ret);
    if (status_value(json, "remote"))
        add_remote(json, last, ns, ret);
}

/* "2026-11-21T21:56:06Z " */
static void status_show_add_time(int64_t ns, struct text *t)
{
    time_t s = (time_t)(ns / 1000000000);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&s, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    text_add(t, "%s ", text);
}

void status_show_event(int64_t real, const char *event, struct text *ret)
{
    status_show_add_time(real, ret);
    text_add(ret, "%s\n", event);
}

/* Was the line with that key shown at the last look? Then it is not shown again. */
static bool is_old(const struct status_lines *lines, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = lines->keys.data; at && (at = strstr(at, key)); at += len)
        if (at[len] == '\n' && (at == lines->keys.data || at[-1] == '\n'))
            return true;
    return false;
}

static void add_from_remote(const json_t *json, const struct status_look *last, int64_t ns,
                            struct text *t)
{
    char rate[HUMAN_SIZE];
    uint64_t fetched = status_show_fetched_bytes(json);

    if (status_value(json, "remote") && ns > 0 && fetched >= last->fetched)
        text_add(
            t, "; remote %s",
            human_rate((uint64_t)((double)(fetched - last->fetched) / (double)ns * 1e9), rate));
}

/* Add the line of a mount where no plan is read. Our own looks are reads as well: they do not count
 * as a change. */
static void add_mount_line(const json_t *json, const struct status_look *last, int64_t ns,
                           struct status_lines *lines, struct text *key, struct text *t)
{
    uint64_t served = status_number(json, "bytes_served"), own_reads = last->ns ? last->len : 0;
    uint64_t total = status_number(json, "remote.total_bytes");
    uint64_t staged = status_number(json, "remote.staged_bytes");
    char a[HUMAN_SIZE], b[HUMAN_SIZE];

    if (!last->ns || served > last->served + own_reads)
        lines->served = served;
    text_add(t, "reads %s", human_bytes(served, a));
    add_rate(served, last->served, ns, t);
    if (status_value(json, "remote"))
        text_add(t, ", staged %s of %s (%u %%)", human_bytes(staged, a), human_bytes(total, b),
                 percent_of(staged, total));
    text_add(key, "reads %llu %llu %llu", (unsigned long long)lines->served,
             (unsigned long long)staged, (unsigned long long)status_show_fetched_bytes(json));
}

/* Show a line if its key is new; the key is remembered. */
static void status_show_add_line(const struct status_lines *lines, int64_t real,
                                 const struct text *key, const struct text *line, struct text *keys,
                                 struct text *ret)
{
    if (key->failed || line->failed || !key->data)
        return;
    text_add(keys, "%s\n", key->data);
    if (is_old(lines, key->data))
        return;
    status_show_add_time(real, ret);
    text_add(ret, "%s\n", line->data);
}

void status_show_lines(const char *text, const struct status_look *last, int64_t now, int64_t real,
                       struct status_lines *lines, struct text *ret)
{
    int64_t ns = last->ns ? now - last->ns : 0;
    AUTO_JSON json_t *json = status_parse(text);
    const json_t *plans = status_value(json, "plans");
    AUTO_TEXT struct text keys = {0};
    size_t i = 0;

    do {
        const json_t *at = json_array_get(plans, i);
        AUTO_TEXT struct text key = {0};
        AUTO_TEXT struct text line = {0};
        struct plan_line p;

        if (at) {
            plan_line_init(&p, at);
            add_plan_name(&p, &line);
            text_add(&key, "%s %llu %u %u", line.data ? line.data : "", (unsigned long long)p.batch,
                     p.staged, (unsigned)p.wait_s);
            text_add(&line, ": ");
            add_plan_place(&p, &line);
            text_add(&line, ", %u %% staged, waited %.1f s (%u %%)", p.staged, p.wait_s, p.waits);
        } else {
            add_mount_line(json, last, ns, lines, &key, &line);
        }
        add_from_remote(json, last, ns, &line);
        status_show_add_line(lines, real, &key, &line, &keys, ret);
    } while (++i < json_array_size(plans));
    text_release(&lines->keys);
    lines->keys = keys;
    keys = (struct text){0};
}

void status_lines_release(struct status_lines *lines)
{
    text_release(&lines->keys);
}
