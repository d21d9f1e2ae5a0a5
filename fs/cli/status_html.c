/* The page is plain HTML with drawings in SVG. A drawing is stretched to the width of its column
 * and has no text of its own: labels are HTML next to it, so they stay readable at any width. */
#include "fs/cli/status_html.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/scope.h"
#include "fs/cli/progress.h"
#include "fs/cli/status_show.h"
#include "fs/cli/status_values.h"

#define NAME_SIZE    2048
#define SAMPLES_MOST 1000 /* that are drawn */
#define WIDTH        1000 /* of a drawing's own scale */
#define HEIGHT       100
#define GAP_S        45 /* seconds without a sample: the line is broken */

typedef unsigned long long ull;

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6575;--line:#d5dae2;--back:#f6f7f9;"
    "--card:#fff;--mark:#2f6fbf;--bad:#b3261e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#a3adbb;--line:#38414f;"
    "--back:#14181f;--card:#1c222b;--mark:#6aa5ee;--bad:#ff8a80}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);"
    "font:16px/1.45 system-ui,sans-serif}main{max-width:1100px;margin:0 auto;padding:20px 16px}\n"
    "h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:28px 0 10px}"
    "p{margin:6px 0;overflow-wrap:anywhere}.soft{color:var(--soft)}small,.axis{font-size:.875rem;"
    "color:var(--soft)}\n"
    ".tiles,.charts{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(min(100%,"
    "var(--least)),1fr))}.tiles{--least:150px;margin:16px 0}.charts{--least:320px}\n"
    ".tiles div,figure,.plan{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:10px 14px;margin:0}.tiles b{display:block;font-size:1.35rem;"
    "font-variant-numeric:tabular-nums}\n"
    "figcaption{display:flex;justify-content:space-between;gap:8px;flex-wrap:wrap}"
    "svg{display:block;width:100%;height:110px;margin:6px 0 4px;border-bottom:1px solid "
    "var(--line);border-top:1px dotted var(--line)}"
    "polyline{fill:none;stroke:var(--mark);stroke-width:2;vector-effect:non-scaling-stroke}"
    "circle{fill:var(--mark)}.axis{display:flex;justify-content:space-between}\n"
    ".plan{margin-bottom:10px}.bar{height:10px;border-radius:5px;background:var(--line);margin:8px "
    "0;overflow:hidden}.bar i{display:block;height:100%;background:var(--mark)}"
    ".bar,.bar i{-webkit-print-color-adjust:exact;print-color-adjust:exact}" /* also on paper */
    ".bad{color:var(--bad)}\n";

/* ---- text ---- */

static void add_safe(struct text *t, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            text_add(t, "&amp;");
            break;
        case '<':
            text_add(t, "&lt;");
            break;
        case '>':
            text_add(t, "&gt;");
            break;
        case '"':
            text_add(t, "&quot;");
            break;
        default:
            text_add_bytes(t, s, 1);
        }
    }
}

/* The string with this path; "" and false: there is none. */
static bool status_html_add_value(const json_t *json, const char *path, struct text *t)
{
    char value[NAME_SIZE];
    bool found = status_string(json, path, value, sizeof(value));

    text_plain(value, "");
    add_safe(t, value);
    return found && *value;
}

static void status_html_add_time(int64_t seconds, struct text *t)
{
    time_t at = (time_t)seconds;
    char shown[64];
    struct tm tm;

    if (localtime_r(&at, &tm) && strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M:%S %Z", &tm))
        add_safe(t, shown);
}

/* ---- samples of the history ---- */

struct moment {
    int64_t at;
    double served, staged, total, hits, misses, wait_s, speed;
};

struct moments {
    struct moment at[SAMPLES_MOST];
    size_t n;
};

static struct moment moment_of(const json_t *sample)
{
    return (struct moment){(int64_t)status_number(sample, "time"),
                           status_real(sample, "served_bytes"),
                           status_real(sample, "staged_bytes"),
                           status_real(sample, "total_bytes"),
                           status_real(sample, "hits"),
                           status_real(sample, "misses"),
                           status_real(sample, "wait_seconds"),
                           status_real(sample, "batches_per_second")};
}

/* For moments before the clock was set back their time is unknown: they are omitted. */
static void read_history(const json_t *history, struct moments *ret)
{
    const json_t *samples = status_value(history, "samples");

    ret->n = 0;
    for (size_t i = 0; i < json_array_size(samples) && ret->n < SAMPLES_MOST; i++) {
        struct moment now = moment_of(json_array_get(samples, i));

        if (ret->n && now.at <= ret->at[ret->n - 1].at)
            ret->n = 0;
        ret->at[ret->n++] = now;
    }
}

/* ---- drawings: a value for each moment; NAN: none ---- */

static double share_staged(const struct moment *before, const struct moment *now)
{
    (void)before;
    return now->total > 0 ? 100 * fmin(now->staged / now->total, 1) : NAN;
}

static double seconds_between(const struct moment *before, const struct moment *now)
{
    return now->at > before->at ? (double)(now->at - before->at) : NAN;
}

static double share_waiting(const struct moment *before, const struct moment *now)
{
    return fmax(now->wait_s - before->wait_s, 0) / seconds_between(before, now);
}

static double share_hit(const struct moment *before, const struct moment *now)
{
    double hits = now->hits - before->hits, all = hits + now->misses - before->misses;

    return all > 0 ? 100 * hits / all : NAN;
}

static double status_html_speed_of(const struct moment *before, const struct moment *now)
{
    (void)before;
    return now->speed;
}

static double served_of(const struct moment *before, const struct moment *now)
{
    return fmax(now->served - before->served, 0) / 1e6 / seconds_between(before, now);
}

static const struct drawing {
    const char *title, *unit;
    double top; /* of the scale; 0: as the values need */
    bool of_remote;
    double (*value)(const struct moment *before, const struct moment *now);
} drawings[] = {
    {"Staged share of the source", " %", 100, true, share_staged},
    {"Reads whose bytes were staged (hit share)", " %", 100, true, share_hit},
    {"Readers that wait for the remote", "", 0, true, share_waiting},
    {"Batches per second", "", 0, false, status_html_speed_of},
    {"Megabytes served per second", "", 0, false, served_of},
};

/* Values of a drawing, and what its scale must hold. The first moment has no value. */
static double values_of(const struct drawing *d, const struct moments *m,
                        double ret[static SAMPLES_MOST])
{
    double top = d->top;

    for (size_t i = 0; i < m->n; i++) {
        bool goes_on = i && m->at[i].at - m->at[i - 1].at <= GAP_S;

        ret[i] = goes_on ? d->value(&m->at[i - 1], &m->at[i]) : NAN;
        if (isfinite(ret[i]))
            top = fmax(top, ret[i]);
    }
    return top > 0 ? top : 1;
}

static void status_html_add_lines(const struct moments *m, const double *value, double top,
                                  struct text *t)
{
    double from = (double)m->at[0].at, span = (double)m->at[m->n - 1].at - from;
    bool open = false;

    for (size_t i = 0; i < m->n; i++) {
        if (!isfinite(value[i]) || span <= 0) {
            text_add(t, "%s", open ? "\"/>" : "");
            open = false;
            continue;
        }
        text_add(t, "%s%.1f,%.1f ", open ? "" : "<polyline points=\"",
                 ((double)m->at[i].at - from) / span * WIDTH, HEIGHT - value[i] / top * HEIGHT);
        open = true;
    }
    text_add(t, "%s", open ? "\"/>" : "");
}

/* Three significant digits, never an exponent. */
static void add_figure(double value, const char *unit, struct text *t)
{
    text_add(t, value >= 999.5 ? "%.0f%s" : "%.3g%s", value, unit);
}

static void add_drawing(const struct drawing *d, const struct moments *m, struct text *t)
{
    double value[SAMPLES_MOST], top = values_of(d, m, value), now = value[m->n - 1];
    char age[HUMAN_SIZE];

    text_add(t, "<figure><figcaption><span>%s</span>", d->title);
    if (isfinite(now)) {
        text_add(t, "<b>");
        add_figure(now, d->unit, t);
        text_add(t, "</b>");
    }
    text_add(t, "</figcaption><small>");
    add_figure(top, d->unit, t);
    text_add(t,
             "</small><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"%s\">",
             WIDTH, HEIGHT, d->title);
    status_html_add_lines(m, value, top, t);
    text_add(t, "</svg><div class=\"axis\"><span>%s ago</span><span>now</span></div></figure>\n",
             human_seconds((uint64_t)(m->at[m->n - 1].at - m->at[0].at), age));
}

static void add_drawings(const json_t *json, const struct moments *m, struct text *t)
{
    bool is_remote = status_value(json, "remote") != NULL;

    text_add(t, "<h2>The last hour</h2>\n");
    if (m->n < 2) {
        text_add(t, "<p class=\"soft\">There is a sample each ten seconds; wait for the second "
                    "one.</p>\n");
        return;
    }
    text_add(t, "<div class=\"charts\">\n");
    for (size_t i = 0; i < ARRAY_LEN(drawings); i++)
        if (is_remote || !drawings[i].of_remote)
            add_drawing(&drawings[i], m, t);
    text_add(t, "</div>\n");
}

/* ---- the present ---- */

static void add_tile(const char *what, const char *value, const char *more, struct text *t)
{
    text_add(t, "<div><small>%s</small><b>%s</b>", what, value);
    if (*more)
        text_add(t, "<small>%s</small>", more);
    text_add(t, "</div>\n");
}

static void add_remote_tiles(const json_t *json, struct text *t)
{
    uint64_t staged = status_number(json, "remote.staged_bytes");
    uint64_t total = status_number(json, "remote.total_bytes");
    uint64_t hits = status_number(json, "remote.hits");
    uint64_t misses = status_number(json, "remote.misses");
    char value[64], more[160], a[HUMAN_SIZE], b[HUMAN_SIZE];

    snprintf(value, sizeof(value), "%u %%", percent_of(staged, total));
    snprintf(more, sizeof(more), "%s of %s", human_bytes(staged, a), human_bytes(total, b));
    add_tile("staged", value, more, t);
    snprintf(value, sizeof(value), "%u %%", percent_of(hits, hits + misses));
    snprintf(more, sizeof(more), "%llu of %llu", (ull)hits, (ull)(hits + misses));
    add_tile("reads without a wait", value, more, t);
    snprintf(value, sizeof(value), "%llu", (ull)status_number(json, "remote.waits"));
    snprintf(more, sizeof(more), "%.1f s in all", status_real(json, "remote.wait_seconds"));
    add_tile("waits for the remote", value, more, t);
    snprintf(value, sizeof(value), "%s",
             human_bytes(status_number(json, "remote.demand_bytes") +
                             status_number(json, "remote.background_bytes"),
                         a));
    snprintf(more, sizeof(more), "%s of them distinct",
             human_bytes(status_number(json, "remote.distinct_bytes"), b));
    add_tile("received", value, more, t);
}

static void add_tiles(const json_t *json, struct text *t)
{
    char value[64], more[160], a[HUMAN_SIZE];

    text_add(t, "<div class=\"tiles\">\n");
    snprintf(value, sizeof(value), "%llu of %llu", (ull)status_number(json, "datasets_ready"),
             (ull)status_number(json, "datasets"));
    add_tile("datasets ready", value, "", t);
    if (status_value(json, "remote"))
        add_remote_tiles(json, t);
    add_tile("served", human_bytes(status_number(json, "bytes_served"), a),
             "the kernel's page cache serves more", t);
    snprintf(value, sizeof(value), "%llu", (ull)status_number(json, "read_errors"));
    add_tile("reads that failed", value, "", t);
    snprintf(value, sizeof(value), "%s",
             human_bytes(status_number(json, "memory.resident_bytes"), a));
    snprintf(more, sizeof(more), "pid %llu", (ull)status_number(json, "pid"));
    add_tile("memory of the daemon", value, more, t);
    text_add(t, "</div>\n");
}

static void add_trouble(const json_t *json, const char *path, const char *label, struct text *t)
{
    AUTO_TEXT struct text reason = {0};

    if (status_html_add_value(json, path, &reason))
        text_add(t, "<p><span class=\"bad\">%s:</span> %s</p>\n", label, reason.data);
}

static void add_plan(const json_t *plan, struct text *t)
{
    uint64_t batch = status_number(plan, "batch"), batches = status_number(plan, "batches");

    text_add(t, "<div class=\"plan\"><p><b>");
    status_html_add_value(plan, "dataset", t);
    text_add(t, "</b> ");
    if (!status_html_add_value(plan, "plan", t))
        text_add(t, "samples, one after another");
    text_add(t, ", epoch %llu</p><div class=\"bar\"><i style=\"width:%u%%\"></i></div><small>",
             (ull)status_number(plan, "epoch"), percent_of(batch, batches));
    status_show_place(plan, t);
    text_add(t, "; waited %.3g %% of the time, %.3g %% of the dataset staged</small></div>\n",
             100 * status_real(plan, "wait_share"), 100 * status_real(plan, "staged_share"));
}

static void status_html_add_plans(const json_t *json, struct text *t)
{
    const json_t *plans = status_value(json, "plans");

    text_add(t, "<h2>Plans</h2>\n");
    if (!json_array_size(plans))
        text_add(t, "<p class=\"soft\">None is read.</p>\n");
    for (size_t i = 0; i < json_array_size(plans); i++)
        add_plan(json_array_get(plans, i), t);
}

void status_html(const char *status, const char *history, int64_t real, struct text *ret)
{
    AUTO_JSON json_t *json = status_parse(status), *samples = status_parse(history);
    int64_t now = real / 1000000000, started = (int64_t)status_number(json, "started");
    AUTO_FREE struct moments *m = calloc(1, sizeof(*m));
    char age[HUMAN_SIZE];

    if (!m) {
        ret->failed = true;
        return;
    }
    read_history(samples, m);
    text_add(ret, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<title>epochfs ");
    status_html_add_value(json, "mountpoint", ret);
    text_add(ret, "</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>", style);
    status_html_add_value(json, "source", ret);
    text_add(ret, "</h1>\n<p>mounted on ");
    status_html_add_value(json, "mountpoint", ret);
    text_add(ret, " for %s</p>\n<p class=\"soft\">epochfs ",
             human_seconds(now > started ? (uint64_t)(now - started) : 0, age));
    status_html_add_value(json, "version", ret);
    text_add(ret, ", seen ");
    status_html_add_time(now, ret);
    text_add(ret, "</p>\n");
    add_tiles(json, ret);
    add_trouble(json, "last_read_error", "The last read that failed", ret);
    add_trouble(json, "remote.last_error", "The remote fails", ret);
    add_trouble(json, "last_refused_name", "The last name that was refused", ret);
    status_html_add_plans(json, ret);
    add_drawings(json, m, ret);
    text_add(ret, "</main></body></html>\n");
}
