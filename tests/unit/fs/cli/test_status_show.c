#include "fs/cli/status_show.h"
#include "support/unit.h"

#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define REAL   (INT64_C(1790000000) * SECOND)

/* The status of a mount with that many plans; the reader of the first is at that batch. */
static void make_status(unsigned plans, unsigned batch, unsigned served, unsigned fetched,
                        struct text *t)
{
    text_add(t,
             "{\"pid\": 5, \"source\": \"s3://b/d\", \"mountpoint\": \"/mnt\", \"datasets\": 1,"
             " \"datasets_ready\": 1, \"bytes_served\":    %u, \"plans\": [",
             served);
    if (plans > 0)
        text_add(t,
                 "{\"dataset\": \"train\", \"plan\": \"batch=128,seed=7\", \"encoding\": \"npz\","
                 " \"epoch\": 3, \"batch\": %u, \"batches\": 469, \"samples_per_batch\": 128,"
                 " \"batches_per_second\": 4.5, \"wait_seconds\": 2.5, \"wait_share\": 0.1,"
                 " \"seconds_left\":    82.4, \"staged_share\": 0.25}",
                 batch);
    if (plans > 1)
        text_add(t, ", {\"dataset\": \"test\", \"plan\": null, \"encoding\": null, \"epoch\": 0,"
                    " \"batch\": 5, \"batches\": 10, \"samples_per_batch\": 1,"
                    " \"seconds_since_last_read\":  75.5, \"batches_per_second\": 300,"
                    " \"seconds_left\":   null, \"staged_share\": 1}");
    text_add(t,
             "   ], \"remote\": {\"demand_bytes\": %u, \"staged_bytes\": 1048576,"
             " \"total_bytes\": 4194304}}",
             fetched);
    assert_false(t->failed);
}

/* A status of one plan with those members about its reader. */
static void assert_place(const char *members, const char *want)
{
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text page = {0};
    const struct status_look none = {0};
    const char *at;

    text_add(&json,
             "{\"plans\": [{\"dataset\": \"train\", \"plan\": \"batch=128\", \"encoding\": \"npz\","
             " \"batches\": 469, \"samples_per_batch\": 128, %s}]}",
             members);
    status_show_page(json.data, &none, SECOND, &page);
    assert_false(page.failed);
    at = strstr(page.data, "npz\n          ");
    assert_non_null(at);
    if (strncmp(at + 14, want, strlen(want)) != 0 || at[14 + strlen(want)] != '\n')
        fail_msg("expected \"%s\" in:\n%s", want, page.data);
}

UNIT_TEST(test_status_show_page__any_place_and_speed__in_words)
{
    assert_place("\"batch\": 0, \"seconds_since_last_read\": null, \"seconds_left\": null",
                 "not read yet, 469 batches");
    assert_place("\"batch\": 468, \"seconds_left\": 0.1", "batch 468 of 469 (99 %), 0 s left");
    assert_place("\"batch\": 469, \"batches_per_second\": 12, \"seconds_since_last_read\": 99",
                 "finished: 469 of 469 batches, 12 batches/s (1536 samples/s)");
    assert_place("\"batch\": 1, \"batches_per_second\": 1540.4",
                 "batch 1 of 469 (0 %), 1540 batches/s (197171 samples/s)");
    assert_place("\"batch\": 1, \"batches_per_second\": 999.7",
                 "batch 1 of 469 (0 %), 1000 batches/s (127962 samples/s)");
    assert_place("\"batch\": 1, \"batches_per_second\": 0.0123",
                 "batch 1 of 469 (0 %), 0.0123 batches/s (2 samples/s)");
    assert_place("\"batch\": 1, \"batches_per_second\": 0.000008",
                 "batch 1 of 469 (0 %), 1 batch in 1 d 10 h (0 samples/s)");
    /* What is in the page cache is read without the daemon: quiet is who should have come. */
    assert_place("\"batch\": 68, \"pushed_batches\": 321, \"batches_per_second\": 2,"
                 " \"seconds_since_last_read\": 61, \"seconds_left\": 200",
                 "batch 68 of 469 (14 %), 2 batches/s (256 samples/s), 3 min 20 s left");
    assert_place("\"batch\": 68, \"pushed_batches\": 321, \"batches_per_second\": 2,"
                 " \"seconds_since_last_read\": 63, \"seconds_left\": 200",
                 "batch 68 of 469 (14 %), 2 batches/s (256 samples/s), no read for 1 min 3 s");
}

static void assert_has(const struct text *t, const char *piece)
{
    if (t->failed || !t->data || !strstr(t->data, piece))
        fail_msg("expected \"%s\" in:\n%s", piece, t->data ? t->data : "");
}

UNIT_TEST(test_status_show_page__two_plans__where_they_are)
{
    const struct status_look last = {.ns = SECOND, .fetched = 1000, .len = 100};
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text page = {0};

    make_status(2, 100, 0, 1000 + 4096, &json);
    status_show_page(json.data, &last, 3 * SECOND, &page);
    assert_has(&page, "source    s3://b/d\n");
    assert_has(&page, "plans     train batch=128,seed=7 epoch 3 npz\n"
                      "          batch 100 of 469 (21 %), 4.5 batches/s (576 samples/s), "
                      "1 min 22 s left\n"
                      "          25 % staged, waited 2.5 s (10 %)\n"
                      "          test samples\n"
                      "          sample 5 of 10 (50 %), 300 samples/s, no read for 1 min 15 s\n"
                      "          100 % staged, waited 0.0 s (0 %)\n");
    assert_has(&page, "fetched   5.0 KiB (2.0 kB/s)");
}

/* Show a status once, and compare the lines added to the log. */
static void look(unsigned plans, unsigned batch, unsigned served, unsigned fetched,
                 struct status_look *last, struct status_lines *lines, struct text *ret)
{
    int64_t now = last->ns + SECOND;
    AUTO_TEXT struct text json = {0};

    text_release(ret);
    make_status(plans, batch, served, fetched, &json);
    status_show_lines(json.data, last, now, REAL, lines, ret);
    status_look_init(last, json.data, now);
}

UNIT_TEST(test_status_show_lines__plans__what_has_changed)
{
    AUTO(status_lines_release) struct status_lines lines = {0};
    AUTO_TEXT struct text t = {0};
    struct status_look last = {0};

    look(2, 100, 0, 0, &last, &lines, &t);
    assert_string_equal(t.data,
                        "2026-09-21T14:13:20Z train batch=128,seed=7 epoch 3 npz: batch 100 of 469 "
                        "(21 %), 4.5 batches/s (576 samples/s), 1 min 22 s left, 25 % staged, "
                        "waited 2.5 s (10 %)\n"
                        "2026-09-21T14:13:20Z test samples: sample 5 of 10 (50 %), 300 samples/s, "
                        "no read for 1 min 15 s, "
                        "100 % staged, waited 0.0 s (0 %)\n");
    look(2, 100, 0, 0, &last, &lines, &t);
    assert_null(t.data);
    look(2, 105, 0, 2048, &last, &lines, &t);
    assert_has(&t, "batch 105 of 469");
    assert_has(&t, "; remote 2.0 kB/s\n");
    assert_null(strstr(t.data, "test samples"));
}

/* Our own reads of the status do not appear. */
UNIT_TEST(test_status_show_lines__no_plan__the_mount)
{
    AUTO(status_lines_release) struct status_lines lines = {0};
    AUTO_TEXT struct text t = {0};
    struct status_look last = {0};
    unsigned own;

    look(0, 0, 4096, 0, &last, &lines, &t);
    assert_string_equal(t.data,
                        "2026-09-21T14:13:20Z reads 4.0 KiB, staged 1.0 MiB of 4.0 MiB (25 %)\n");
    own = (unsigned)last.len;
    look(0, 0, 4096 + own, 0, &last, &lines, &t);
    assert_null(t.data);
    look(0, 0, 4096 + 3 * own, 0, &last, &lines, &t);
    assert_has(&t, "reads ");
    look(0, 0, 4096 + 4 * own, 0, &last, &lines, &t);
    assert_null(t.data);
    look(0, 0, 4096 + 5 * own, 1, &last, &lines, &t);
    assert_has(&t, "; remote 1 B/s\n");
}

/* A text truncated anywhere, or of a mount of another version, still shows something. */
UNIT_TEST(test_status_show__odd_texts__no_crash)
{
    struct status_look last = {.ns = 1};
    AUTO_TEXT struct text json = {0};

    make_status(2, 1, 2, 3, &json);
    for (size_t n = json.len + 1; n-- > 0;) {
        AUTO(status_lines_release) struct status_lines lines = {0};
        AUTO_TEXT struct text t = {0};

        json.data[n] = '\0';
        status_show_page(json.data, &last, SECOND, &t);
        status_show_lines(json.data, &last, SECOND, REAL, &lines, &t);
        assert_has(&t, "datasets");
    }
}
