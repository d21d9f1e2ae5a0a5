#include "fs/status/metrics.h"
#include "support/unit.h"

#include <string.h>

static void check_label(const char *value, const char *want)
{
    AUTO_TEXT struct text t = {0};
    AUTO_TEXT struct text json = {0};

    metrics_add_label(&t, "x", value);
    assert_false(t.failed);
    assert_string_equal(t.data, want);
    text_add_json(&json, value);
    assert_true(t.len <= strlen("x=") + json.len);
}

UNIT_TEST(test_metrics_add_label)
{
    check_label("", "x=\"\"");
    check_label("a b,{c}=d", "x=\"a b,{c}=d\"");
    check_label("quo\"te", "x=\"quo\\\"te\"");
    check_label("back\\slash\\", "x=\"back\\\\slash\\\\\"");
    check_label("\\u000a", "x=\"\\\\u000a\"");
    check_label("line\nend", "x=\"line\\nend\"");
    check_label("tab\tand\x7f", "x=\"tab\tand\x7f\"");
    check_label("\xc3\xa4", "x=\"\xc3\xa4\"");
    check_label("a\xff", "x=\"a\xef\xbf\xbd\"");
}

static void check_begin(const char *metric, const char *type, const char *want)
{
    AUTO_TEXT struct text t = {0};

    metrics_begin(&t, metric, type, "Words.");
    assert_false(t.failed);
    assert_string_equal(t.data, want);
}

UNIT_TEST(test_metrics_begin)
{
    check_begin("a_total{x=\"y\"}", NULL, "# HELP a_total Words.\n# TYPE a_total counter\n");
    check_begin("_total", NULL, "# HELP _total Words.\n# TYPE _total gauge\n");
    check_begin("a_bytes", NULL, "# HELP a_bytes Words.\n# TYPE a_bytes gauge\n");
    check_begin("a_seconds", "histogram", "# HELP a_seconds Words.\n# TYPE a_seconds histogram\n");
}

static void check_add(const char *name, uint64_t value, const char *want)
{
    AUTO_TEXT struct text t = {0};

    metrics_add(&t, name, "Words.", value);
    assert_false(t.failed);
    assert_string_equal(t.data, want);
}

UNIT_TEST(test_metrics_add)
{
    check_add("a_total", 17,
              "# HELP a_total Words.\n# TYPE a_total counter\n"
              "a_total 17\n");
    check_add("a_bytes", UINT64_MAX,
              "# HELP a_bytes Words.\n# TYPE a_bytes gauge\n"
              "a_bytes 18446744073709551615\n");
}
