/* With an argument, writes a page to that file, for a browser: tests/mount/cli/case-status-page.py.
 */
#include "fs/cli/status_html.h"
#include "support/unit.h"

#include <stdio.h>

#define REAL (INT64_C(1790000000) * 1000000000)

/* A mount of hostile names that has served for an hour. */
static void make_status(struct text *t)
{
    text_add(
        t, "{\"version\": \"1.0\", \"pid\": 77, \"source\": "
           "\"https://host/<script>alert(1)</script>&\\\"'\\u0007/a-very-long-path-of-many-words\","
           " \"mountpoint\": \"/mnt/<b>x\", \"started\": 1789990000, \"datasets\": 2,"
           " \"datasets_ready\": 1, \"bytes_served\": 123456789, \"read_errors\": 1,"
           " \"last_read_error\": \"a < b\", \"memory\": {\"resident_bytes\": 10485760},"
           " \"plans\": [");
    for (unsigned i = 0; i < 3; i++)
        text_add(t,
                 "%s{\"dataset\": \"train\", \"plan\": %s, \"epoch\": %u, \"batch\": %u,"
                 " \"batches\": 469, \"batches_per_second\": 4.5, \"seconds_left\": 82.4,"
                 " \"wait_share\": 0.1, \"staged_share\": 0.25}",
                 i ? ", " : "", i == 2 ? "null" : "\"batch=128,seed=7\"", i, 100 * i);
    text_add(t, "], \"remote\": {\"demand_bytes\": 1000, \"background_bytes\": 2000,"
                " \"distinct_bytes\": 3000, \"hits\": 90, \"misses\": 10, \"waits\": 5,"
                " \"wait_seconds\": 2.5, \"staged_bytes\": 3000, \"total_bytes\": 6000}}");
    assert_false(t->failed);
}

static void make_history(unsigned samples, struct text *t)
{
    text_add(t, "{\"interval_seconds\": 10, \"samples\": [");
    for (unsigned i = 0; i < samples; i++)
        text_add(t,
                 "%s{\"time\": %u, \"served_bytes\": %u, \"staged_bytes\": %u,"
                 " \"total_bytes\": 6000, \"hits\": %u, \"misses\": %u, \"wait_seconds\": %u.5,"
                 " \"batches_per_second\": %u.25}",
                 i ? ", " : "", 1789996400 + 10 * i + (i > 200 ? 600 : 0), i * 1000000, i * 16,
                 i * 9, i / 3, i / 7, i % 50);
    text_add(t, "]}");
    assert_false(t->failed);
}

static void make_page(unsigned samples, struct text *t)
{
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text history = {0};

    make_status(&json);
    make_history(samples, &history);
    status_html(json.data, history.data, REAL, t);
    assert_false(t->failed);
}

static void assert_has(const struct text *t, const char *want)
{
    if (!strstr(t->data, want))
        fail_msg("expected %s in the page", want);
}

static size_t count(const struct text *t, const char *what)
{
    size_t n = 0;

    for (const char *s = t->data; (s = strstr(s, what)); s++)
        n++;
    return n;
}

static void test_status_html__names_are_text(void **state)
{
    AUTO_TEXT struct text page = {0};

    (void)state;
    make_page(360, &page);
    assert_has(&page, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'?/a-very");
    assert_has(&page, "<title>epochfs /mnt/&lt;b&gt;x</title>");
    assert_has(&page, "a &lt; b");
    assert_int_equal(count(&page, "<script"), 0);
    assert_int_equal(count(&page, "http"), 1); /* the source: nothing is fetched */
}

static void test_status_html__drawings(void **state)
{
    AUTO_TEXT struct text page = {0};
    AUTO_TEXT struct text few = {0};
    AUTO_TEXT struct text none = {0};

    (void)state;
    make_page(360, &page);
    assert_int_equal(count(&page, "<svg"), 5);
    assert_int_equal(count(&page, "<polyline"), 2 * 5); /* the pause breaks each line */
    assert_has(&page, "<polyline points=\"");
    assert_int_equal(count(&page, "nan"), 0);
    assert_int_equal(count(&page, "class=\"plan\""), 3);
    assert_has(&page, "width:21%");
    assert_has(&page, "samples, one after another");
    make_page(1, &few);
    assert_int_equal(count(&few, "<svg"), 0);
    status_html("{}", NULL, REAL, &none);
    assert_int_equal(count(&none, "<svg"), 0);
    assert_has(&none, "None is read.");
}

/* As epochfs status says it: no exponents, and a plan without readers has no time left.
 */
static void test_status_html__figures(void **state)
{
    AUTO_TEXT struct text page = {0};

    (void)state;
    status_html(
        "{\"plans\": ["
        "{\"plan\": \"batch=256\", \"batch\": 36, \"batches\": 79, \"samples_per_batch\": 256,"
        " \"batches_per_second\": 1235.97, \"seconds_left\": 0.03,"
        " \"seconds_since_last_read\": 738.5},"
        "{\"plan\": \"batch=256\", \"batch\": 0, \"batches\": 79, \"seconds_since_last_read\": "
        "null}],"
        " \"remote\": {}}",
        "{\"samples\": ["
        "{\"time\": 1789999980, \"hits\": 0, \"batches_per_second\": 0},"
        "{\"time\": 1789999990, \"hits\": 5, \"batches_per_second\": 13238.93},"
        "{\"time\": 1790000000, \"hits\": 5, \"batches_per_second\": 1235.97}]}",
        REAL, &page);
    assert_has(&page, "batch 36 of 79 (45 %), 1236 batches/s (316408 samples/s), "
                      "no read for 12 min 18 s;");
    assert_has(&page, "not read yet, 79 batches;");
    assert_int_equal(count(&page, " left"), 0);
    assert_has(&page, "Batches per second</span><b>1236</b></figcaption><small>13239</small>");
    assert_has(&page, "(hit share)</span></figcaption>"); /* no read, no share */
    assert_int_equal(count(&page, "e+"), 0);
}

/* What was before a clock was set back has no place on the axis. */
static void test_status_html__clock_set_back(void **state)
{
    AUTO_TEXT struct text page = {0};

    (void)state;
    status_html("{}",
                "{\"samples\": ["
                "{\"time\": 1790003600, \"batches_per_second\": 7777},"
                "{\"time\": 1790003610, \"batches_per_second\": 7777},"
                "{\"time\": 1789999990, \"batches_per_second\": 3},"
                "{\"time\": 1790000000, \"batches_per_second\": 5},"
                "{\"time\": 1790000010, \"batches_per_second\": 5}]}",
                REAL, &page);
    assert_has(&page, "<span>20 s ago</span>");
    assert_has(&page, "<polyline points=\"500.0,0.0 1000.0,0.0 \"/>");
    assert_int_equal(count(&page, "7777"), 0);
}

/* More samples than a page draws, and texts that end anywhere. */
static void test_status_html__any_text(void **state)
{
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text history = {0};
    AUTO_TEXT struct text page = {0};

    (void)state;
    make_page(3000, &page);
    make_status(&json);
    make_history(3, &history);
    for (size_t cut = 0; cut < history.len; cut++) {
        AUTO_TEXT struct text part = {0};
        char *piece = strndup(history.data, cut);

        assert_non_null(piece);
        status_html(json.data, piece, REAL, &part);
        assert_false(part.failed);
        free(piece);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_html__names_are_text),
        cmocka_unit_test(test_status_html__drawings),
        cmocka_unit_test(test_status_html__figures),
        cmocka_unit_test(test_status_html__clock_set_back),
        cmocka_unit_test(test_status_html__any_text),
    };
    AUTO_TEXT struct text page = {0};
    FILE *out;

    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    make_page(360, &page);
    out = fopen(argv[1], "w");
    return !out || fwrite(page.data, 1, page.len, out) != page.len || fclose(out) != 0;
}
