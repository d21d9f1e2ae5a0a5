/* rows[] has the names of each number of the stage in both texts; each text takes all numbers from
 * one snapshot. Counts of waiting times are cumulative, as in Prometheus: the waits that took at
 * most that long. */
#include "fs/status/remote.h"

#include <stdio.h>
#include <string.h>

#include "cache/stage/stage.h"
#include "fs/status/metrics.h"

static const struct metrics_row status_remote_rows[] = {
#define AT(member) offsetof(struct stage_counters, member)
    {"demand_bytes", "epochfs_remote_bytes_total{why=\"demand\"}",
     "Bytes received from the remote because a read waited, or in the background.",
     AT(demand_bytes)},
    {"background_bytes", "epochfs_remote_bytes_total{why=\"background\"}", NULL,
     AT(background_bytes)},
    {"distinct_bytes", "epochfs_remote_distinct_bytes_total",
     "Bytes of blocks that were fetched at least once. Received / distinct = 1.00: no block was "
     "fetched twice.",
     AT(distinct_bytes)},
    {"served_bytes", "epochfs_remote_served_bytes_total",
     "Bytes of source files that were served to readers.", AT(served_bytes)},
    {"hits", "epochfs_remote_hits_total", "Reads whose bytes were all staged.", AT(hits)},
    {"misses", "epochfs_remote_misses_total", "Reads whose bytes were not all staged.", AT(misses)},
    {"waits", NULL, "Times that a read waited for bytes.", AT(waits)},
    {"requests", "epochfs_remote_requests_total", "Transfers that were begun.", AT(requests)},
    {"retries", "epochfs_remote_retries_total", "Transfers that were repeated after a failure.",
     AT(retries)},
    {"errors", "epochfs_remote_errors_total",
     "Readers that got an error because the remote failed.", AT(errors)},
    {"evictions", "epochfs_remote_evictions_total", "Blocks that were dropped from the cache.",
     AT(evictions)},
    {"held_drops", "epochfs_remote_held_drops_total",
     "Drops that were refused because the kernel itself reads the file.", AT(held)},
    {"refused_inserts", "epochfs_remote_refused_inserts_total",
     "Blocks that were not kept because the cache was full.", AT(refused)},
    {"bad_blocks", "epochfs_remote_bad_blocks_total",
     "Blocks with a wrong checksum, which are fetched again.", AT(bad_blocks)},
    {"bad_files", "epochfs_remote_bad_files_total", "Files that differ from SHA256SUMS.",
     AT(bad_files)},
    {"rests", "epochfs_remote_rests_total",
     "Pauses of background transfers, because no processor was idle.", AT(rests)},
    {"staged_bytes", "epochfs_remote_staged_bytes",
     "Bytes of the source that are staged. It falls when blocks are dropped.", AT(staged_bytes)},
    {"total_bytes", "epochfs_remote_source_bytes", "Bytes of the source.", AT(total_bytes)},
#undef AT
};

/* How many waits took at most as long as each class. */
static void sum_waits(const struct stage_counters *c,
                      unsigned long long ret[static STAGE_WAIT_CLASSES + 1])
{
    unsigned long long sum = 0;

    for (unsigned i = 0; i <= STAGE_WAIT_CLASSES; i++)
        ret[i] = sum += atomic_load_explicit(&c->wait_class[i], memory_order_relaxed);
}

static double wait_seconds(const struct stage_counters *c)
{
    return (double)atomic_load_explicit(&c->wait_ns, memory_order_relaxed) / 1e9;
}

void status_add_reason(struct text *t, const char *reason)
{
    char cut[STATUS_REASON_SIZE];

    snprintf(cut, sizeof(cut), "%s", reason);
    text_add_json(t, cut);
}

/* What peers do (-o via=); all is 0 and "" if there are none. */
static void report_peers(struct stage *stage, struct transport_peers *ret)
{
    *ret = (struct transport_peers){.url = "", .answer = true};
    stage_peers(stage, ret);
}

static void add_peers(struct stage *stage, struct text *t)
{
    struct transport_peers peers;

    report_peers(stage, &peers);
    json_add_text(t, "    ", "peers_url", peers.url);
    json_add_number(t, "    ", "peers_bytes", peers.bytes);
    json_add_text(t, "    ", "peers_trouble", peers.why);
}

#define MIB(bytes) ((double)(bytes) / (1 << 20))
#define SPARE      32 /* part of the source that records and rests of blocks take, at most */

void status_space(const struct stage_space *s, uint64_t could_free, struct text *t)
{
    uint64_t others = s->others - min_u64(could_free, s->others);
    uint64_t left = s->limit > others ? s->limit - others : 0;

    if (!s->limit || s->total <= left || s->staged + s->total / SPARE >= s->total ||
        s->keep == STAGE_ONCE || (s->keep == STAGE_PLAN && others <= s->limit / SPARE))
        return;
    text_add(t, "cache folder %s: ", s->folder);
    if (others > s->limit / SPARE)
        text_add(t, "other files in use take %.1f MiB of its limit of %.1f MiB, so ", MIB(others),
                 MIB(s->limit));
    else
        text_add(t, "its limit of %.1f MiB is small, so ", MIB(s->limit));
    text_add(
        t,
        "only %.1f of the %.1f MiB of the source remain cached, and the rest is fetched in every "
        "epoch. ",
        MIB(left), MIB(s->total));
    if (s->keep == STAGE_PIN)
        text_add(t, "Use a larger cache_size=, or evict=plan to keep what a plan needs soonest");
    else
        text_add(t, "Use a larger cache_size=");
}

static void add_space_note(struct stage *stage, struct text *t)
{
    AUTO_TEXT struct text note = {0};
    struct stage_space space;

    stage_space(stage, &space);
    if (space.is_refused)
        status_space(&space, 0, &note);
    text_add(t, "    \"space_note\": ");
    status_add_reason(t, note.data ? note.data : "");
    text_add(t, ",\n");
}

void status_remote_json(struct stage *stage, struct text *t)
{
    const struct stage_counters *c = stage_counters(stage);
    unsigned long long waits[STAGE_WAIT_CLASSES + 1];
    char trouble[STATUS_REASON_SIZE];

    text_add(t, "{\n");
    metrics_rows_json(t, status_remote_rows, ARRAY_LEN(status_remote_rows), c);
    text_add(t, ",\n    \"wait_seconds\": %.6f,\n    \"wait_histogram\": [\n", wait_seconds(c));
    sum_waits(c, waits);
    for (unsigned i = 0; i < STAGE_WAIT_CLASSES; i++)
        text_add(t, "      {\"le_ms\": %u, \"count\": %llu},\n", stage_wait_ms[i], waits[i]);
    text_add(t, "      {\"le_ms\": null, \"count\": %llu}\n    ],\n", waits[STAGE_WAIT_CLASSES]);
    text_add(t, "    \"cache_used_bytes\": %llu,\n    \"cache_limit_bytes\": %llu,\n",
             (unsigned long long)quota_used(stage_quota(stage)),
             (unsigned long long)quota_limit(stage_quota(stage)));
    add_space_note(stage, t);
    add_peers(stage, t);
    stage_trouble(stage, trouble, sizeof(trouble));
    text_add(t, "    \"last_error\": ");
    status_add_reason(t, trouble);
    text_add(t, "\n  }");
}

static void add_histogram(const struct stage_counters *c, struct text *t)
{
    static const char name[] = "epochfs_remote_wait_seconds";
    unsigned long long waits[STAGE_WAIT_CLASSES + 1];

    sum_waits(c, waits);
    metrics_begin(t, name, "histogram", "How long reads waited for the remote.");
    for (unsigned i = 0; i < STAGE_WAIT_CLASSES; i++)
        text_add(t, "%s_bucket{le=\"%g\"} %llu\n", name, stage_wait_ms[i] / 1e3, waits[i]);
    text_add(t, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name,
             waits[STAGE_WAIT_CLASSES], name, wait_seconds(c), name, waits[STAGE_WAIT_CLASSES]);
}

void status_remote_metrics(struct stage *stage, struct text *t)
{
    const struct stage_counters *c = stage_counters(stage);
    struct transport_peers peers;
    char trouble[2];

    metrics_add_rows(t, status_remote_rows, ARRAY_LEN(status_remote_rows), c);
    add_histogram(c, t);
    metrics_add(t, "epochfs_cache_used_bytes",
                "Disk space that the cache directory takes, with the files of other mounts.",
                quota_used(stage_quota(stage)));
    metrics_add(t, "epochfs_cache_limit_bytes",
                "Disk space that the cache directory may take; 0: no limit.",
                quota_limit(stage_quota(stage)));
    report_peers(stage, &peers);
    metrics_add(t, "epochfs_remote_peers_bytes_total", "Bytes that came from peers (peers=).",
                peers.bytes);
    metrics_add(t, "epochfs_remote_peers_failing",
                "1 while the peers fail and the remote is read in their place, otherwise 0.",
                !peers.answer);
    stage_trouble(stage, trouble, sizeof(trouble));
    metrics_add(t, "epochfs_remote_failing", "1 while the remote fails, otherwise 0.",
                *trouble != '\0');
}
