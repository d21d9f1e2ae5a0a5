#include "fs/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"

#define SECOND  INT64_C(1000000000)
#define REWRITE (SECOND / 5)
#define BAR     24 /* characters */

/* units: of step, step^2 and so on; the last is "". end: follows the unit. */
static const char *progress_number(uint64_t bytes, double step, const char *const *units,
                                   const char *end, char ret[static HUMAN_SIZE])
{
    double v = (double)bytes / step;

    if (v < 1) {
        snprintf(ret, HUMAN_SIZE, "%u B%s", (unsigned)bytes, end);
        return ret;
    }
    for (; v >= step - 0.5 && *units[1]; units++)
        v /= step;
    snprintf(ret, HUMAN_SIZE, "%.*f %s%s", v < 99.95, v, *units, end);
    return ret;
}

const char *human_bytes(uint64_t bytes, char ret[static HUMAN_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", ""};

    return progress_number(bytes, 1024, units, "", ret);
}

const char *human_rate(uint64_t bytes_per_s, char ret[static HUMAN_SIZE])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB", ""};

    return progress_number(bytes_per_s, 1000, units, "/s", ret);
}

const char *human_seconds(uint64_t s, char ret[static HUMAN_SIZE])
{
    unsigned long long v = s;

    if (s < 60)
        snprintf(ret, HUMAN_SIZE, "%llu s", v);
    else if (s < 3600)
        snprintf(ret, HUMAN_SIZE, "%llu min %llu s", v / 60, v % 60);
    else if (s < 86400)
        snprintf(ret, HUMAN_SIZE, "%llu h %llu min", v / 3600, v / 60 % 60);
    else
        snprintf(ret, HUMAN_SIZE, "%llu d %llu h", v / 86400, v / 3600 % 24);
    return ret;
}

unsigned percent_of(uint64_t done, uint64_t total)
{
    if (done >= total)
        return 100;
    return (unsigned)min_u64(99, (uint64_t)((double)done / (double)total * 100));
}

void progress_line(const char *what, uint64_t done, uint64_t total, uint64_t rate, bool bar,
                   char *ret, size_t capacity)
{
    char part[HUMAN_SIZE], all[HUMAN_SIZE], speed[HUMAN_SIZE], left[HUMAN_SIZE],
        drawn[BAR + 4] = "";
    unsigned percent = percent_of(done, total);
    int n;

    if (bar) {
        snprintf(drawn, sizeof(drawn), "[%*s] ", BAR, "");
        memset(drawn + 1, '#', percent * BAR / 100);
    }
    n = snprintf(ret, capacity, "%s%3u %%  %s %s of %s", drawn, percent, what,
                 human_bytes(done, part), human_bytes(total, all));
    if (rate && n > 0 && (size_t)n < capacity)
        n += snprintf(ret + n, capacity - (size_t)n, ", %s", human_rate(rate, speed));
    if (rate && done < total && n > 0 && (size_t)n < capacity)
        snprintf(ret + n, capacity - (size_t)n, ", %s left",
                 human_seconds(ceil_div(total - done, rate), left));
}

void progress_init(struct progress *ret, const char *what, bool asked_for)
{
    bool terminal = isatty(STDERR_FILENO);

    *ret = (struct progress){.what = what, .shown = terminal || asked_for, .rewrites = terminal};
}

/* Take a sample once a second; returns the rate since the oldest sample. */
static uint64_t take_rate(struct progress *p, uint64_t done, int64_t now)
{
    unsigned newest = (p->n + PROGRESS_SAMPLES - 1) % PROGRESS_SAMPLES, oldest;
    int64_t ns;

    if (!p->n || now - p->at_ns[newest] >= SECOND) {
        p->at_ns[p->n % PROGRESS_SAMPLES] = now;
        p->at[p->n % PROGRESS_SAMPLES] = done;
        p->n++;
    }
    oldest = p->n < PROGRESS_SAMPLES ? 0 : p->n % PROGRESS_SAMPLES;
    ns = now - p->at_ns[oldest];
    if (ns < SECOND / 2 || done <= p->at[oldest])
        return 0;
    return (uint64_t)((double)(done - p->at[oldest]) / (double)ns * 1e9);
}

static void progress_draw(struct progress *p, uint64_t done, uint64_t total, uint64_t rate)
{
    char line[160];

    progress_line(p->what, done, total, rate, p->rewrites, line, sizeof(line));
    fprintf(stderr, p->rewrites ? "\r%s\033[K" : "%s\n", line);
    fflush(stderr);
    p->line_is_open = p->rewrites;
}

void progress_show(struct progress *p, uint64_t done, uint64_t total)
{
    int64_t now = monotonic_ns();
    uint64_t rate;

    if (!p->shown)
        return;
    rate = take_rate(p, done, now);
    if (now - p->last_ns < (p->rewrites ? REWRITE : SECOND))
        return;
    p->last_ns = now;
    progress_draw(p, done, total, rate);
}

void progress_end(struct progress *p, uint64_t done, uint64_t total)
{
    if (!p->shown)
        return;
    progress_draw(p, done, total, take_rate(p, done, monotonic_ns()));
    if (p->line_is_open)
        fputc('\n', stderr);
    p->line_is_open = false;
}
