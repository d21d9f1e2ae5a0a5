#include "fs/status/remote.h"
#include "support/unit.h"

#include <stdio.h>

#include "cache/stage/stage.h"

/* A stage that is only its counters. */
static struct stage_counters counters;
static const char *trouble;

const unsigned stage_wait_ms[STAGE_WAIT_CLASSES] = {1,   3,    10,   30,    100,   300,
                                                    500, 1000, 3000, 10000, 30000, 60000};

struct stage_counters *stage_counters(struct stage *stage)
{
    (void)stage;
    return &counters;
}

struct quota *stage_quota(struct stage *stage)
{
    (void)stage;
    return NULL;
}

uint64_t quota_used(struct quota *quota)
{
    (void)quota;
    return 4096;
}

uint64_t quota_limit(const struct quota *quota)
{
    (void)quota;
    return 1 << 20;
}

void stage_space(struct stage *stage, struct stage_space *ret)
{
    (void)stage;
    *ret = (struct stage_space){.folder = "/cache"};
}

void stage_trouble(struct stage *stage, char *ret, size_t capacity)
{
    (void)stage;
    snprintf(ret, capacity, "%s", trouble);
}

bool stage_peers(struct stage *stage, struct transport_peers *ret)
{
    (void)stage;
    (void)ret;
    return false;
}

static int setup(void **state)
{
    (void)state;
    counters = (struct stage_counters){
        .demand_bytes = 11,
        .background_bytes = 22,
        .waits = 6,
        .wait_ns = 1500000000,
        .wait_class = {1, 2, [STAGE_WAIT_CLASSES] = 3},
        .refused = 33,
        .total_bytes = 44,
    };
    trouble = "";
    return 0;
}

static void assert_has(const struct text *t, const char *piece)
{
    assert_false(t->failed);
    if (!strstr(t->data, piece))
        fail_msg("expected \"%s\" in:\n%s", piece, t->data);
}

UNIT_TEST_WITH(test_status_remote_json__numbers__under_their_names, setup, NULL)
{
    AUTO_TEXT struct text t = {0};

    status_remote_json(NULL, &t);
    assert_has(&t, "\"demand_bytes\": 11,");
    assert_has(&t, "\"background_bytes\": 22,");
    assert_has(&t, "\"refused_inserts\": 33,");
    assert_has(&t, "\"total_bytes\": 44,");
    assert_has(&t, "\"wait_seconds\": 1.500000,");
    assert_has(&t, "{\"le_ms\": 1, \"count\": 1},");
    assert_has(&t, "{\"le_ms\": 3, \"count\": 3},");
    assert_has(&t, "{\"le_ms\": 60000, \"count\": 3},");
    assert_has(&t, "{\"le_ms\": null, \"count\": 6}\n");
    assert_has(&t, "\"cache_used_bytes\": 4096,");
    assert_has(&t, "\"cache_limit_bytes\": 1048576,");
}

UNIT_TEST_WITH(test_status_remote_json__longest_reason__cut, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    char longest[3 * STATUS_REASON_SIZE];

    memset(&counters, 0xff, sizeof(counters));
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    trouble = longest;
    status_remote_json(NULL, &t);
    assert_has(&t, "\"demand_bytes\": 18446744073709551615,");
    longest[STATUS_REASON_SIZE - 1] = '\0';
    assert_int_equal(strspn(strstr(t.data, "xxx"), "x"), strlen(longest));
}

UNIT_TEST_WITH(test_status_remote_metrics__all__named_once_each, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    char *first;

    trouble = "the server is gone";
    status_remote_metrics(NULL, &t);
    assert_has(&t, "# TYPE epochfs_remote_bytes_total counter\n"
                   "epochfs_remote_bytes_total{why=\"demand\"} 11\n"
                   "epochfs_remote_bytes_total{why=\"background\"} 22\n");
    assert_has(&t, "# TYPE epochfs_remote_staged_bytes gauge\n");
    assert_has(&t, "# TYPE epochfs_remote_wait_seconds histogram\n"
                   "epochfs_remote_wait_seconds_bucket{le=\"0.001\"} 1\n"
                   "epochfs_remote_wait_seconds_bucket{le=\"0.003\"} 3\n");
    assert_has(&t, "epochfs_remote_wait_seconds_bucket{le=\"+Inf\"} 6\n"
                   "epochfs_remote_wait_seconds_sum 1.500000\n"
                   "epochfs_remote_wait_seconds_count 6\n");
    assert_has(&t, "epochfs_remote_failing 1\n");
    first = strstr(t.data, "# HELP epochfs_remote_bytes_total ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "# HELP epochfs_remote_bytes_total "));
}
