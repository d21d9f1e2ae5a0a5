#include "fs/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const request_names[N_REQUESTS] = {
    [REQUEST_LOOKUP] = "lookup",     [REQUEST_GETATTR] = "getattr",
    [REQUEST_READLINK] = "readlink", [REQUEST_OPEN] = "open",
    [REQUEST_READ] = "read",         [REQUEST_READDIR] = "readdir",
    [REQUEST_GETXATTR] = "getxattr", [REQUEST_LISTXATTR] = "listxattr",
    [REQUEST_IOCTL] = "ioctl",       [REQUEST_OTHER] = "other",
};

static unsigned long long value(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* How much of the sources has been gone through, of those that need it. */
static void sum_progress(const struct status *s, uint64_t *ret_done, uint64_t *ret_total)
{
    *ret_done = *ret_total = 0;
    for (size_t i = 0; i < s->catalog->n; i++) {
        const struct dataset *ds = s->catalog->item[i].ds;
        uint64_t done, total;

        if (!ds || !ds->ops || !ds->ops->progress || ds->shares_blobs)
            continue;
        ds->ops->progress(ds, &done, &total);
        *ret_done += done;
        *ret_total += total;
    }
}

static size_t count_ready(const struct status *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->catalog->n; i++)
        n += s->catalog->item[i].ds && dataset_state(s->catalog->item[i].ds) == DATASET_READY;
    return n;
}

void status_read_error(struct status *s, const char *reason)
{
    LOCK_SCOPE(&s->lock);

    atomic_fetch_add_explicit(&s->read_errors, 1, memory_order_relaxed);
    snprintf(s->last_error, sizeof(s->last_error), "%s", reason);
}

void status_promise(struct status *s, const char *format, ...)
{
    va_list args;
    LOCK_SCOPE(&s->lock);

    va_start(args, format);
    vsnprintf(s->last_promise, sizeof(s->last_promise), format, args);
    va_end(args);
}

static void add_last(struct status *s, const char *reason, struct text *t)
{
    LOCK_SCOPE(&s->lock);

    status_add_reason(t, reason);
}

/* Measured at the first look, then the same. */
static struct status_plans_room plans_room(struct status *s)
{
    LOCK_SCOPE(&s->lock);

    if (!s->plans_room.json)
        s->plans_room = status_plans_room(s->catalog);
    return s->plans_room;
}

static void add_plans(struct status *s, enum live which, struct text *t)
{
    const struct status_plans_room room = plans_room(s);

    if (which == LIVE_METRICS) {
        status_plans_metrics(s->actives, &room, t);
        return;
    }
    text_add(t, ",\n  ");
    status_plans_json(s->actives, &room, t);
}

static void add_json(struct status *s, struct text *t)
{
    uint64_t done, total;

    sum_progress(s, &done, &total);
    text_add(t, "{\n  \"version\": \"%s\",\n  \"pid\": %10ld,\n  \"source\": ", EPOCHFS_VERSION,
             (long)getpid());
    text_add_json(t, s->source);
    text_add(t, ",\n  \"mountpoint\": ");
    text_add_json(t, s->mountpoint);
    text_add(t, ",\n  \"started\": %20lld,\n  \"datasets\": %10zu,\n  \"unusable_files\": %10zu,\n",
             (long long)s->started, s->catalog->n_datasets, s->catalog->n - s->catalog->n_datasets);
    text_add(t,
             "  \"datasets_ready\": %10zu,\n  \"index_bytes_done\": %20llu,\n"
             "  \"index_bytes_total\": %20llu,\n",
             count_ready(s), (unsigned long long)done, (unsigned long long)total);
    text_add(t, "  \"plans_opened\": %20llu,\n  \"requests\": {\n", value(&s->plans_opened));
    for (unsigned i = 0; i < N_REQUESTS; i++)
        text_add(t, "    \"%s\": %20llu%s\n", request_names[i], value(&s->request[i]),
                 i + 1 < N_REQUESTS ? "," : "");
    text_add(t, "  },\n  \"bytes_served\": %20llu,\n  \"read_errors\": %20llu,\n",
             value(&s->bytes_served), value(&s->read_errors));
    text_add(t, "  \"last_read_error\": ");
    add_last(s, s->last_error, t);
    text_add(t, ",\n  \"read_twice\": %20llu,\n  \"read_backwards\": %20llu,\n",
             value(&s->read_twice), value(&s->read_backwards));
    text_add(t, "  \"last_broken_promise\": ");
    add_last(s, s->last_promise, t);
    if (s->actives)
        add_plans(s, LIVE_STATUS, t);
    if (s->stage) {
        text_add(t, ",\n  \"remote\": ");
        status_remote_json(s->stage, t);
    }
    text_add(t, "\n}\n");
}

static void add_metric(struct text *t, const char *name, const char *type, const char *help)
{
    text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_metrics(struct status *s, struct text *t)
{
    uint64_t done, total;

    sum_progress(s, &done, &total);
    add_metric(t, "epochfs_requests_total", "counter",
               "Requests of the kernel; warm reads do not cause any.");
    for (unsigned i = 0; i < N_REQUESTS; i++)
        text_add(t, "epochfs_requests_total{type=\"%s\"} %20llu\n", request_names[i],
                 value(&s->request[i]));
    add_metric(t, "epochfs_served_bytes_total", "counter", "Bytes given to the kernel by reads.");
    text_add(t, "epochfs_served_bytes_total %20llu\n", value(&s->bytes_served));
    add_metric(t, "epochfs_read_errors_total", "counter", "Reads that failed.");
    text_add(t, "epochfs_read_errors_total %20llu\n", value(&s->read_errors));
    add_metric(t, "epochfs_read_twice_total", "counter",
               "Utterances read twice in an epoch, against kaldi=o.");
    text_add(t, "epochfs_read_twice_total %20llu\n", value(&s->read_twice));
    add_metric(t, "epochfs_read_backwards_total", "counter",
               "Utterances read behind a greater key, against kaldi=cs.");
    text_add(t, "epochfs_read_backwards_total %20llu\n", value(&s->read_backwards));
    add_metric(t, "epochfs_plans_opened_total", "counter", "Plans and epochs that were opened.");
    text_add(t, "epochfs_plans_opened_total %20llu\n", value(&s->plans_opened));
    add_metric(t, "epochfs_datasets", "gauge", "Datasets of the mount.");
    text_add(t, "epochfs_datasets %zu\n", s->catalog->n_datasets);
    add_metric(t, "epochfs_datasets_ready", "gauge", "Datasets whose samples are known.");
    text_add(t, "epochfs_datasets_ready %10zu\n", count_ready(s));
    add_metric(t, "epochfs_index_bytes", "gauge", "Bytes of text that have an index to be made.");
    text_add(t, "epochfs_index_bytes %20llu\n", (unsigned long long)total);
    add_metric(t, "epochfs_indexed_bytes", "gauge", "Bytes of text that have been indexed.");
    text_add(t, "epochfs_indexed_bytes %20llu\n", (unsigned long long)done);
    add_metric(t, "epochfs_start_time_seconds", "gauge", "When the mount was made, Unix time.");
    text_add(t, "epochfs_start_time_seconds %lld\n", (long long)s->started);
    if (s->actives)
        add_plans(s, LIVE_METRICS, t);
    if (s->stage)
        status_remote_metrics(s->stage, t);
}

void status_text(struct status *s, enum live which, struct text *ret)
{
    if (which == LIVE_STATUS)
        add_json(s, ret);
    else
        add_metrics(s, ret);
}
