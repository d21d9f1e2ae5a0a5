#include "fs/status/plans.h"
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "cache/stage/stage.h"
#include "format/encode/encode.h"
#include "fs/cli/status_values.h"
#include "fs/status/status.h"

/* Active plans that are only a list. */
static struct active_info list[ACTIVE_PLANS_MAX];
static size_t n_list;
static struct active_plans_counters counters;

size_t active_plans_list(struct active_plans *active_plans,
                         struct active_info ret[static ACTIVE_PLANS_MAX])
{
    (void)active_plans;
    memcpy(ret, list, n_list * sizeof(*list));
    return n_list;
}

struct active_plans_counters *active_plans_counters(struct active_plans *active_plans)
{
    (void)active_plans;
    return &counters;
}

/* A quarter of every blob is staged. */
uint64_t stage_staged(const struct blob *blob)
{
    return blob->size / 4;
}

static struct blob blob = {.size = 4000};
static struct blob *blobs[] = {&blob};
static struct dataset dataset = {.n_blobs = 1, .blob = blobs};
static char odd[] = "a\"b\\c\nd\xff";
static struct catalog_item items[] = {
    {.folder = (char *)"sub", .name = (char *)"train", .ds = &dataset},
    {.folder = (char *)"", .name = odd, .ds = &dataset},
};
static const struct catalog catalog = {.n = 2, .item = items, .n_datasets = 2};
static struct plan_entry plans[ACTIVE_PLANS_MAX];
static struct folder folder;

static int setup(void **state)
{
    (void)state;
    folder.name = encoders[0]->name;
    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++)
        snprintf(plans[i].name, sizeof(plans[i].name), "batch=%zu,seed=7", i + 1);
    list[0] = (struct active_info){
        .plan = &plans[0],
        .item = &items[0],
        .folder = &folder,
        .was_read = true,
        .epoch = 3,
        .unit = 100,
        .units = 469,
        .pushed = 164,
        .samples = 128,
        .units_per_s = 4.5,
        .wait_s = 2.5,
        .since_s = 25,
        .quiet_s = 0.5,
    };
    list[1] =
        (struct active_info){.item = &items[1], .units = 10, .samples = 1, .quiet_s = INFINITY};
    n_list = 2;
    counters = (struct active_plans_counters){.pushed_files = 11, .pushed_bytes = 22, .jumps = 33};
    return 0;
}

static void make_json(struct text *t)
{
    text_add(t, "{");
    status_plans_json(NULL, t);
    text_add(t, "}");
    assert_false(t->failed);
}

static void assert_has(const struct text *t, const char *piece)
{
    if (t->failed || !strstr(t->data, piece))
        fail_msg("expected \"%s\" in:\n%s", piece, t->data);
}

UNIT_TEST_WITH(test_status_plans_json__two__under_their_names, setup, NULL)
{
    static const char *const of_reads[] = {"seconds_since_first_read", "seconds_since_last_read",
                                           "seconds_left"};
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *json = NULL;
    char text[64];
    const json_t *at;

    make_json(&t);
    json = status_parse(t.data);
    at = json_array_get(status_value(json, "plans"), 0);
    assert_non_null(at);
    assert_true(status_string(at, "dataset", text, sizeof(text)));
    assert_string_equal(text, "sub/train");
    assert_true(status_string(at, "plan", text, sizeof(text)));
    assert_string_equal(text, "batch=1,seed=7");
    assert_true(status_string(at, "encoding", text, sizeof(text)));
    assert_string_equal(text, encoders[0]->name);
    assert_int_equal(status_number(at, "epoch"), 3);
    assert_int_equal(status_number(at, "batch"), 100);
    assert_int_equal(status_number(at, "batches"), 469);
    assert_int_equal(status_number(at, "samples_per_batch"), 128);
    assert_int_equal(status_number(at, "pushed_batches"), 164);
    assert_true(status_real(at, "batches_per_second") == 4.5);
    assert_true(status_real(at, "wait_seconds") == 2.5);
    assert_true(status_real(at, "wait_share") == 0.1);
    assert_true(status_real(at, "seconds_since_first_read") == 25);
    assert_true(status_real(at, "seconds_since_last_read") == 0.5);
    assert_true(status_real(at, "seconds_left") == 82);
    assert_true(status_real(at, "staged_share") == 0.25);
    at = json_array_get(status_value(json, "plans"), 1);
    assert_non_null(at);
    assert_true(status_string(at, "dataset", text, sizeof(text)));
    assert_string_equal(text, "a\"b\\c\nd\xef\xbf\xbd");
    assert_true(json_is_null(status_value(at, "plan")));
    assert_true(json_is_null(status_value(at, "encoding")));
    for (size_t i = 0; i < ARRAY_LEN(of_reads); i++)
        assert_true(json_is_null(status_value(at, of_reads[i])));
    assert_int_equal(json_array_size(status_value(json, "plans")), 2);
    assert_int_equal(status_number(json, "push.files"), 11);
    assert_int_equal(status_number(json, "push.bytes"), 22);
    assert_int_equal(status_number(json, "push.unknown_files"), 0);
    assert_int_equal(status_number(json, "push.jumps"), 33);
}

/* A list with the longest possible names and numbers, and more plans than are shown. */
UNIT_TEST_WITH(test_status_plans__longest__as_many_as_are_shown, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *json = NULL;

    for (size_t i = 0; i < ACTIVE_PLANS_MAX; i++) {
        memset(plans[i].name, 'a' + (int)(i % 26), sizeof(plans[i].name) - 1);
        list[i] = (struct active_info){
            .plan = &plans[i],
            .item = &items[1],
            .folder = &folder,
            .was_read = true,
            .epoch = UINT64_MAX,
            .unit = UINT64_MAX - 1,
            .units = UINT64_MAX,
            .pushed = UINT64_MAX,
            .samples = UINT64_MAX,
            .units_per_s = i % 2 ? INFINITY : 1e300,
            .wait_s = i % 2 ? 1e300 : (double)NAN,
            .since_s = i % 3 ? 1e-300 : -5,
        };
    }
    n_list = ACTIVE_PLANS_MAX;
    make_json(&t);
    json = status_parse(t.data);
    assert_int_equal(json_array_size(status_value(json, "plans")), STATUS_PLANS_MOST);
}

UNIT_TEST_WITH(test_status_plans__same_plan_twice__shown_once, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *json = NULL;

    list[1] = list[0];
    list[1].unit = 5;
    make_json(&t);
    json = status_parse(t.data);
    assert_int_equal(json_array_size(status_value(json, "plans")), 1);
}

/* Names that differ in bytes that are not UTF-8 have the same labels. */
UNIT_TEST_WITH(test_status_plans_metrics__same_labels__one_series, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    static char other[] = "a\"b\\c\nd\xfe";
    struct catalog_item item = {.folder = (char *)"", .name = other, .ds = &dataset};
    const char *first;

    list[0] = list[1];
    list[1].item = &item;
    status_plans_metrics(NULL, &t);
    assert_false(t.failed);
    first = strstr(t.data, "\nepochfs_plan_batch{");
    assert_non_null(first);
    assert_null(strstr(first + 1, "\nepochfs_plan_batch{"));
}

UNIT_TEST_WITH(test_status_plans_metrics__two__with_labels, setup, NULL)
{
    AUTO_TEXT struct text t = {0};
    char line[400];

    status_plans_metrics(NULL, &t);
    snprintf(line, sizeof(line),
             "# TYPE epochfs_plan_batch gauge\n"
             "epochfs_plan_batch{dataset=\"sub/train\",plan=\"batch=1,seed=7\",epoch=\"3\","
             "encoding=\"%s\"} 100.000000\n"
             "epochfs_plan_batch{dataset=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\",plan=\"\",epoch=\"0\","
             "encoding=\"\"} ",
             encoders[0]->name);
    assert_has(&t, line);
    assert_has(&t, "encoding=\"\"} NaN\n");
    assert_has(&t, "epochfs_plan_quiet_seconds{dataset=\"sub/train\"");
    assert_null(strstr(t.data, "epochfs_plan_quiet_seconds{dataset=\"a"));
    assert_null(strstr(t.data, "epochfs_plan_age_seconds{dataset=\"a"));
    assert_has(&t, "# TYPE epochfs_push_bytes_total counter\n"
                   "epochfs_push_bytes_total 22\n");
    assert_null(strstr(t.data, "\n\n"));
}

/* In the whole of the live texts. */
UNIT_TEST_WITH(test_status_text__plans__in_both_texts, setup, NULL)
{
    AUTO(status_release)
    struct status s = {.catalog = &catalog, .source = "/data", .mountpoint = "/mnt"};
    char text[64];

    status_init(&s);
    for (enum live which = LIVE_METRICS; which < N_LIVES; which++) {
        AUTO_TEXT struct text without = {0};
        AUTO_TEXT struct text t = {0};
        AUTO_JSON json_t *json = NULL;

        s.active_plans = NULL;
        status_text(&s, which, &without);
        assert_null(strstr(without.data, "push"));
        s.active_plans = (struct active_plans *)&counters; /* never dereferenced */
        status_text(&s, which, &t);
        assert_has(&t, which == LIVE_STATUS ? "sub/train" : "dataset=\"sub/train\"");
        if (which == LIVE_METRICS)
            continue;
        json = status_parse(t.data);
        assert_int_equal(status_number(json_array_get(status_value(json, "plans"), 0), "batch"),
                         100);
        assert_int_equal(status_number(json, "push.bytes"), 22);
        assert_true(status_string(json, "last_broken_promise", text, sizeof(text)));
        assert_memory_equal(t.data + t.len - 5, "  }\n}\n" + 1, 5);
    }
}

static void assert_looks(struct status *s, unsigned look, const char *want)
{
    AUTO_FREE char *got = NULL;
    uint64_t size = 0;
    int64_t time_ns;
    size_t n, at = 0;

    assert_int_equal(status_snapshot_stat(s, LIVE_STATUS, look, &size, &time_ns), 0);
    got = calloc(1, size + 1);
    assert_non_null(got);
    do {
        assert_int_equal(status_read(s, LIVE_STATUS, look, at, 64, got + at, &n), 0);
        at += n;
    } while (n);
    assert_int_equal(at, size);
    assert_int_equal(strlen(got), size);
    assert_non_null(strstr(got, want));
}

static void assert_forgotten(struct status *s, unsigned look)
{
    uint64_t size;
    int64_t time_ns;
    char byte;
    size_t n;

    assert_int_equal(status_snapshot_stat(s, LIVE_STATUS, look, &size, &time_ns), -ESTALE);
    assert_int_equal(status_read(s, LIVE_STATUS, look, 0, 1, &byte, &n), -ESTALE);
}

/* Each open file keeps the text of its moment, to the byte, whatever other readers open
 * meanwhile. */
UNIT_TEST_WITH(test_status_read__looks__each_of_one_moment, setup, NULL)
{
    AUTO(status_release)
    struct status s = {.catalog = &catalog, .source = "/data", .mountpoint = "/mnt"};
    unsigned look[2], other;

    status_init(&s);
    assert_int_equal(status_snapshot_new(&s, LIVE_STATUS, &look[0]), 0);
    s.plans_opened = 12345;
    assert_int_equal(status_snapshot_new(&s, LIVE_STATUS, &look[1]), 0);
    assert_int_not_equal(look[0], look[1]);
    assert_looks(&s, look[0], "\"plans_opened\": 0,");
    assert_looks(&s, look[1], "\"plans_opened\": 12345,");
    assert_looks(&s, 0, "\"plans_opened\": 12345,"); /* a listing's */
    for (unsigned i = 2; i < TREE_SNAPSHOTS - 1; i++)
        assert_int_equal(status_snapshot_new(&s, LIVE_STATUS, &other), 0);
    s.snapshot[LIVE_STATUS][look[0]].made_ns = 1; /* long ago */
    assert_looks(&s, look[0], "\"plans_opened\": 0,");
    s.snapshot[LIVE_STATUS][0].made_ns = 1;
    assert_int_equal(status_snapshot_new(&s, LIVE_STATUS, &other), 0);
    assert_int_equal(other, look[0]); /* the oldest */
    assert_looks(&s, look[0], "\"plans_opened\": 12345,");
}

/* Large texts: fewer looks are kept, the latest ones. */
UNIT_TEST_WITH(test_status_read__large_looks__limited, setup, NULL)
{
    AUTO_FREE char *source = calloc(1, 100001);
    AUTO(status_release)
    struct status s = {.catalog = &catalog, .source = source, .mountpoint = "/mnt"};
    unsigned look[40];

    assert_non_null(source);
    memset(source, 'x', 100000);
    status_init(&s);
    for (unsigned i = 0; i < 40; i++) {
        s.plans_opened = i;
        assert_int_equal(status_snapshot_new(&s, LIVE_STATUS, &look[i]), 0);
        assert_true(status_snapshots_held(&s).bytes >= min_u64(i + 1, 20) * 100000);
        assert_true(status_snapshots_held(&s).bytes <= STATUS_SNAPSHOT_BYTES);
    }
    assert_int_equal(status_snapshots_held(&s).limit, N_LIVES * STATUS_SNAPSHOT_BYTES);
    assert_looks(&s, look[39], "\"plans_opened\": 39,");
    assert_looks(&s, look[25], "\"plans_opened\": 25,");
    assert_forgotten(&s, look[3]);
}

static struct memory_held held_of(void *owner)
{
    return *(struct memory_held *)owner;
}

UNIT_TEST_WITH(test_status_text__memory__in_both_texts, setup, NULL)
{
    struct memory_held some = {.bytes = 11, .limit = 100}, others = {.bytes = 22, .limit = 1000};
    AUTO(status_release)
    struct status s = {.catalog = &catalog,
                       .source = "/data",
                       .mountpoint = "/mnt",
                       .holder = {{"some", held_of, &some}, {"others", held_of, &others}},
                       .n_holders = 2};
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text metrics = {0};

    status_init(&s);
    status_text(&s, LIVE_STATUS, &json);
    assert_has(&json, "\"kept_bytes\": 33,");
    assert_has(&json, "\"kept_limit_bytes\": 1100,");
    assert_has(&json, "{\"what\": \"some\", \"bytes\": 11, \"limit_bytes\": 100},");
    assert_has(&json, "{\"what\": \"others\", \"bytes\": 22, \"limit_bytes\": 1000}\n");
    status_text(&s, LIVE_METRICS, &metrics);
    assert_has(&metrics, "epochfs_memory_kept_bytes{what=\"others\"} 22\n");
    assert_has(&metrics, "epochfs_memory_limit_bytes{what=\"some\"} 100\n");
}
