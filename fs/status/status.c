#include "fs/status/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/status/memory.h"
#include "fs/status/metrics.h"

static const char *const request_names[N_REQUESTS] = {
    [REQUEST_LOOKUP] = "lookup",     [REQUEST_GETATTR] = "getattr",
    [REQUEST_READLINK] = "readlink", [REQUEST_OPEN] = "open",
    [REQUEST_READ] = "read",         [REQUEST_READDIR] = "readdir",
    [REQUEST_GETXATTR] = "getxattr", [REQUEST_LISTXATTR] = "listxattr",
    [REQUEST_IOCTL] = "ioctl",       [REQUEST_RELEASE] = "release",
    [REQUEST_OTHER] = "other",
};

static unsigned long long value(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* How much of the sources has been scanned; of those that need it. */
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

static size_t status_count_ready(const struct status *s)
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

bool status_refused(struct status *s, const char *what)
{
    LOCK_SCOPE(&s->lock);
    bool is_new = strncmp(s->last_refused, what, sizeof(s->last_refused) - 1) != 0;

    snprintf(s->last_refused, sizeof(s->last_refused), "%s", what);
    return is_new;
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

static void status_add_plans(struct status *s, enum live which, struct text *t)
{
    if (which == LIVE_METRICS) {
        status_plans_metrics(s->active_plans, t);
        return;
    }
    text_add(t, ",\n  ");
    status_plans_json(s->active_plans, t);
}

static void add_json(struct status *s, struct text *t)
{
    bool passes = atomic_load(&s->open.passes);
    uint64_t done, total;

    sum_progress(s, &done, &total);
    text_add(t, "{\n  \"version\": \"%s\",\n  \"pid\": %ld,\n  \"source\": ", EPOCHFS_VERSION,
             (long)getpid());
    text_add_json(t, s->source);
    text_add(t, ",\n  \"mountpoint\": ");
    text_add_json(t, s->mountpoint);
    text_add(t, ",\n  \"started\": %lld,\n  \"datasets\": %zu,\n  \"unusable_files\": %zu,\n",
             (long long)s->started, s->catalog->n_datasets, s->catalog->n - s->catalog->n_datasets);
    text_add(t,
             "  \"datasets_ready\": %zu,\n  \"index_bytes_done\": %llu,\n"
             "  \"index_bytes_total\": %llu,\n",
             status_count_ready(s), (unsigned long long)done, (unsigned long long)total);
    text_add(t, "  \"plans_opened\": %llu,\n  \"requests\": {\n", value(&s->plans_opened));
    for (unsigned i = 0; i < N_REQUESTS; i++)
        text_add(t, "    \"%s\": %llu%s\n", request_names[i], value(&s->request[i]),
                 i + 1 < N_REQUESTS ? "," : "");
    text_add(t, "  },\n  \"bytes_served\": %llu,\n  \"read_errors\": %llu,\n",
             value(&s->bytes_served), value(&s->read_errors));
    text_add(t, "  \"last_read_error\": ");
    add_last(s, s->last_error, t);
    text_add(t, ",\n  \"read_twice\": %llu,\n  \"read_backwards\": %llu,\n", value(&s->read_twice),
             value(&s->read_backwards));
    text_add(t, "  \"last_broken_promise\": ");
    add_last(s, s->last_promise, t);
    text_add(t, ",\n  \"last_refused_name\": ");
    add_last(s, s->last_refused, t);
    text_add(t, ",\n  \"open\": {\"mode\": \"%s\", \"reason\": ", passes ? "pass" : "cached");
    text_add_json(t, passes ? NULL : atomic_load(&s->open.reason));
    text_add(t, ", \"passed\": %llu},\n", value(&s->open.opens));
    text_add(
        t, "  \"pictures\": {\"decoded\": %llu, \"kept\": %llu, \"zeroed\": %llu},\n  \"memory\": ",
        s->pictures ? value(&s->pictures->decoded) : 0, s->pictures ? value(&s->pictures->kept) : 0,
        s->pictures ? value(&s->pictures->zeroed) : 0);
    status_memory_json(s->holder, s->n_holders, t);
    if (s->active_plans)
        status_add_plans(s, LIVE_STATUS, t);
    if (s->stage) {
        text_add(t, ",\n  \"remote\": ");
        status_remote_json(s->stage, t);
    }
    text_add(t, "\n}\n");
}

/* What never changes: the version, the source and the mountpoint. */
static void add_info(const struct status *s, struct text *t)
{
    metrics_begin(t, "epochfs_info", NULL,
                  "Always 1; its labels are the version, the source and the mountpoint.");
    text_add(t, "epochfs_info{");
    metrics_add_label(t, "version", EPOCHFS_VERSION);
    text_add(t, ",");
    metrics_add_label(t, "source", s->source);
    text_add(t, ",");
    metrics_add_label(t, "mountpoint", s->mountpoint);
    text_add(t, "} 1\n");
}

static void add_metrics(struct status *s, struct text *t)
{
    uint64_t done, total;

    sum_progress(s, &done, &total);
    add_info(s, t);
    metrics_begin(t, "epochfs_requests_total", NULL,
                  "Requests of the kernel, by kind; reads from its page cache cause none.");
    for (unsigned i = 0; i < N_REQUESTS; i++)
        text_add(t, "epochfs_requests_total{type=\"%s\"} %llu\n", request_names[i],
                 value(&s->request[i]));
    metrics_add(t, "epochfs_served_bytes_total", "Bytes that reads returned to the kernel.",
                value(&s->bytes_served));
    metrics_add(t, "epochfs_passed_opens_total", "Opens of files that the kernel then read itself.",
                value(&s->open.opens));
    metrics_add(t, "epochfs_pictures_decoded_total", "Images that were decoded.",
                s->pictures ? value(&s->pictures->decoded) : 0);
    metrics_add(t, "epochfs_pictures_kept_total",
                "Images that were read decoded from the cache directory (decoded_cache=).",
                s->pictures ? value(&s->pictures->kept) : 0);
    metrics_add(t, "epochfs_pictures_zeroed_total",
                "Times that zeros were shown for an image that cannot be decoded (on_error=zero).",
                s->pictures ? value(&s->pictures->zeroed) : 0);
    metrics_add(t, "epochfs_read_errors_total", "Reads that failed.", value(&s->read_errors));
    metrics_add(t, "epochfs_read_twice_total",
                "Utterances that were read twice in an epoch, with kaldi=o.",
                value(&s->read_twice));
    metrics_add(t, "epochfs_read_backwards_total",
                "Utterances that were read after a greater key, with kaldi=cs.",
                value(&s->read_backwards));
    metrics_add(t, "epochfs_plans_opened_total", "Plans and epochs that were opened by their path.",
                value(&s->plans_opened));
    metrics_add(t, "epochfs_datasets", "Datasets of the mount.", s->catalog->n_datasets);
    metrics_add(t, "epochfs_datasets_ready", "Datasets whose samples are known.",
                status_count_ready(s));
    metrics_add(t, "epochfs_index_bytes", "Bytes of text and archives to index.", total);
    metrics_add(t, "epochfs_indexed_bytes", "Bytes of text and archives that have been indexed.",
                done);
    metrics_add(t, "epochfs_start_time_seconds", "Time of the mount, in seconds since 1970.",
                (uint64_t)s->started);
    status_memory_metrics(s->holder, s->n_holders, t);
    if (s->active_plans)
        status_add_plans(s, LIVE_METRICS, t);
    if (s->stage)
        status_remote_metrics(s->stage, t);
}

static void add_history(struct status *s, struct text *t)
{
    history_json(&s->history, t);
}

void status_text(struct status *s, enum live which, struct text *ret)
{
    static void (*const add[N_LIVES])(struct status * s, struct text * t) = {
        [LIVE_HISTORY] = add_history, [LIVE_METRICS] = add_metrics, [LIVE_STATUS] = add_json};

    add[which](s, ret);
}

void status_note(struct status *s)
{
    const struct history_sources sources = {&s->bytes_served, s->stage, s->active_plans};

    history_note(&s->history, &sources, clock_or_real(s->clock));
}

/* ---- snapshots ---- */

void status_init(struct status *s)
{
    lock_init(&s->lock);
    history_init(&s->history);
}

void status_release(struct status *s)
{
    for (unsigned which = 0; which < N_LIVES; which++)
        for (unsigned i = 0; i < TREE_SNAPSHOTS; i++)
            text_release(&s->snapshot[which][i].text);
    history_release(&s->history);
    lock_release(&s->lock);
}

/* Forget the oldest snapshots but that one, until the others take STATUS_SNAPSHOT_BYTES at most. */
static void forget_old_locked(struct status *s, enum live which, unsigned but)
{
    unsigned at = s->last_snapshot[which];

    lock_assert_held(&s->lock);
    for (unsigned i = 1; i < TREE_SNAPSHOTS && s->snapshot_bytes[which] > STATUS_SNAPSHOT_BYTES;
         i++) {
        struct status_snapshot *old;

        at = at % (TREE_SNAPSHOTS - 1) + 1;
        old = &s->snapshot[which][at];
        if (at == but)
            continue;
        s->snapshot_bytes[which] -= old->text.capacity;
        text_release(&old->text);
        *old = (struct status_snapshot){0};
    }
}

/* Keep a text as that snapshot's. *text becomes the snapshot's old text. */
static void status_keep_locked(struct status *s, enum live which, unsigned snapshot,
                               struct text *text)
{
    struct status_snapshot *place = &s->snapshot[which][snapshot];
    struct text before = place->text;

    lock_assert_held(&s->lock);
    text_fit(text);
    s->snapshot_bytes[which] += text->capacity - before.capacity;
    *place =
        (struct status_snapshot){.text = *text, .made_ns = monotonic_ns(), .time_ns = now_ns()};
    *text = before;
    forget_old_locked(s, which, snapshot);
}

struct memory_held status_snapshots_held(void *owner)
{
    struct status *s = owner;
    struct memory_held held = {.limit = N_LIVES * STATUS_SNAPSHOT_BYTES};
    LOCK_SCOPE(&s->lock);

    for (enum live which = 0; which < N_LIVES; which++)
        held.bytes += s->snapshot_bytes[which];
    return held;
}

int status_snapshot_new(struct status *s, enum live which, unsigned *ret_snapshot)
{
    AUTO_TEXT struct text t = {0};

    status_text(s, which, &t);
    if (t.failed)
        return -ENOMEM;
    LOCK_SCOPE(&s->lock);
    *ret_snapshot = s->last_snapshot[which] = s->last_snapshot[which] % (TREE_SNAPSHOTS - 1) + 1;
    status_keep_locked(s, which, *ret_snapshot, &t);
    return 0;
}

/* A snapshot keeps its text: a read at the end makes the kernel ask for the size again, and a text
 * that had grown meanwhile would be read on in its middle. */

/* Renew the text whose size a listing shows, unless it is young. 0 or -ENOMEM. */
static int renew_listed(struct status *s, enum live which)
{
    AUTO_TEXT struct text t = {0};

    {
        const struct status_snapshot *l = &s->snapshot[which][0];
        LOCK_SCOPE(&s->lock);

        if (l->made_ns && monotonic_ns() - l->made_ns < STATUS_SNAPSHOT_NS)
            return 0;
    }
    status_text(s, which, &t);
    if (t.failed)
        return -ENOMEM;
    LOCK_SCOPE(&s->lock);
    status_keep_locked(s, which, 0, &t);
    return 0;
}

int status_snapshot_stat(struct status *s, enum live which, unsigned snapshot, uint64_t *ret_size,
                         int64_t *ret_time_ns)
{
    const struct status_snapshot *l = &s->snapshot[which][snapshot];
    int r = snapshot ? 0 : renew_listed(s, which);

    if (r < 0)
        return r;
    LOCK_SCOPE(&s->lock);
    if (!l->made_ns)
        return -ESTALE;
    *ret_size = l->text.len;
    *ret_time_ns = l->time_ns;
    return 0;
}

int status_read(struct status *s, enum live which, unsigned snapshot, uint64_t off, size_t len,
                void *dst, size_t *ret_len)
{
    const struct status_snapshot *l = &s->snapshot[which][snapshot];
    LOCK_SCOPE(&s->lock);

    if (!l->made_ns)
        return -ESTALE;
    *ret_len = off < l->text.len ? (size_t)min_u64(len, l->text.len - off) : 0;
    if (*ret_len)
        memcpy(dst, l->text.data + off, *ret_len);
    return 0;
}
