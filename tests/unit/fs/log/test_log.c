/* Which messages become lines; with the test's own clock and buffer of lines. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "fs/log/filter.h"
#include "fs/log/log.h"
#include "fs/log/remote.h"
#include "support/unit.h"

#define SECOND INT64_C(1000000000)

static void add_line(void *ctx, enum log_level level, const char *text)
{
    text_add(ctx, "%c %s\n", "EWID"[level], text);
}

static void check_lines(struct text *lines, const char *want)
{
    assert_string_equal(lines->data ? lines->data : "", want);
    lines->len = 0;
    if (lines->data)
        *lines->data = '\0';
}

/* Notes of a dataset are a text of several lines. */
UNIT_TEST(test_log_lines__several__a_line_each)
{
    FILE *written = tmpfile();
    int before = dup(STDERR_FILENO);
    char got[200] = "";

    assert_non_null(written);
    fflush(stderr);
    dup2(fileno(written), STDERR_FILENO);
    log_lines(LOG_LEVEL_WARNING, "one: bad\n\ntwo: bad\n");
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(written);
    assert_true(fread(got, 1, sizeof(got) - 1, written) > 0);
    fclose(written);
    assert_string_equal(got, "epochfs: one: bad\nepochfs: two: bad\n");
}

UNIT_TEST(test_filter__same_text__once_a_minute)
{
    AUTO_TEXT struct text lines = {0};
    struct log_filter filter;

    log_filter_init(&filter, add_line, &lines);
    for (int64_t second = 0; second < 60; second++)
        log_filter_line(&filter, second * SECOND, LOG_LEVEL_ERROR, "no room");
    log_filter_line(&filter, 59 * SECOND, LOG_LEVEL_WARNING, "another");
    check_lines(&lines, "E no room\nW another\n");
    log_filter_line(&filter, 60 * SECOND, LOG_LEVEL_ERROR, "no room");
    check_lines(&lines, "E no room (60 times more)\n");
    log_filter_line(&filter, 120 * SECOND, LOG_LEVEL_ERROR, "no room");
    check_lines(&lines, "E no room\n");
    log_filter_line(&filter, 121 * SECOND, LOG_LEVEL_ERROR, "no room");
    check_lines(&lines, "");
    log_filter_end(&filter);
    check_lines(&lines, "E no room (1 time more)\n");
}

UNIT_TEST(test_filter__burst__rest_is_counted)
{
    AUTO_TEXT struct text lines = {0};
    struct log_filter filter;
    char text[32];

    log_filter_init(&filter, add_line, &lines);
    for (unsigned i = 0; i < LOG_BURST; i++) {
        snprintf(text, sizeof(text), "%u", i);
        log_filter_line(&filter, 5 * SECOND, LOG_LEVEL_INFO, text);
        snprintf(text, sizeof(text), "I %u\n", i);
        check_lines(&lines, text);
    }
    log_filter_line(&filter, 6 * SECOND, LOG_LEVEL_ERROR, "one more");
    log_filter_line(&filter, 14 * SECOND, LOG_LEVEL_ERROR, "two more");
    check_lines(&lines, "");
    log_filter_line(&filter, 14 * SECOND, LOG_LEVEL_DEBUG, "asked for");
    check_lines(&lines, "D asked for\n");
    log_filter_line(&filter, 15 * SECOND, LOG_LEVEL_ERROR, "one more"); /* was not logged */
    check_lines(&lines, "W 2 messages omitted\nE one more\n");
    log_filter_end(&filter);
    check_lines(&lines, "");
}

UNIT_TEST(test_filter__ends_in_a_burst__count_is_reported)
{
    AUTO_TEXT struct text lines = {0};
    struct log_filter filter;
    char text[32];

    log_filter_init(&filter, add_line, &lines);
    for (unsigned i = 0; i <= LOG_BURST; i++) {
        snprintf(text, sizeof(text), "%u", i);
        log_filter_line(&filter, 0, LOG_LEVEL_INFO, text);
    }
    check_lines(&lines, lines.data);
    log_filter_end(&filter);
    check_lines(&lines, "W 1 message omitted\n");
}

UNIT_TEST(test_filter__more_texts_than_it_remembers__counts_are_reported)
{
    AUTO_TEXT struct text lines = {0};
    AUTO(log_filter_end) struct log_filter filter;
    char text[32];

    log_filter_init(&filter, add_line, &lines);
    log_filter_line(&filter, 0, LOG_LEVEL_ERROR, "first");
    log_filter_line(&filter, 0, LOG_LEVEL_ERROR, "first");
    for (unsigned i = 1; i < LOG_TEXTS; i++) {
        snprintf(text, sizeof(text), "%u", i);
        log_filter_line(&filter, i * SECOND, LOG_LEVEL_INFO, text);
    }
    lines.len = 0;
    log_filter_line(&filter, LOG_TEXTS * SECOND, LOG_LEVEL_INFO, "last");
    check_lines(&lines, "E first (1 time more)\nI last\n");
}

#define THREADS 4
#define EACH    1000

static void *log_much(void *filter)
{
    for (unsigned i = 0; i < EACH; i++)
        log_filter_line(filter, 0, LOG_LEVEL_INFO, "all say the same");
    return NULL;
}

UNIT_TEST(test_filter__threads__nothing_is_lost)
{
    AUTO_TEXT struct text lines = {0};
    struct log_filter filter;
    pthread_t thread[THREADS];

    log_filter_init(&filter, add_line, &lines);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, log_much, &filter), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    log_filter_end(&filter);
    check_lines(&lines, "I all say the same\nI all say the same (3999 times more)\n");
}

/* ---- of a remote ---- */

static void add_remote_line(void *ctx, const char *text)
{
    text_add(ctx, "%s\n", text);
}

UNIT_TEST(test_remote__goes_and_comes__reported_once)
{
    AUTO_TEXT struct text lines = {0};
    struct remote_log log;

    remote_log_init(&log, add_remote_line, &lines);
    for (int64_t i = 0; i < 10; i++)
        remote_log_failed(&log, "a1.ark: cannot connect", true, i * SECOND);
    check_lines(&lines, "remote: a1.ark: cannot connect\n");
    remote_log_failed(&log, "a2.ark: cannot connect", true, 10 * SECOND);
    check_lines(&lines, "remote: a2.ark: cannot connect\n");
    remote_log_failed(&log, "a2.ark: expected status 206, got 503", true, 10 * SECOND);
    check_lines(&lines, "remote: a2.ark: expected status 206, got 503\n");
    remote_log_answered(&log, 12 * SECOND);
    check_lines(&lines, "remote: it answers again, after 12 failures in 12 s\n");
    remote_log_answered(&log, 13 * SECOND);
    check_lines(&lines, "");
    remote_log_end(&log);
    check_lines(&lines, "remote: a1.ark: cannot connect (9 times more)\n");
}

UNIT_TEST(test_remote__numbers_of_a_reason__the_same)
{
    AUTO_TEXT struct text lines = {0};
    struct remote_log log;

    remote_log_init(&log, add_remote_line, &lines);
    remote_log_failed(&log, "a: after 12 of 100 bytes: closed", true, 0);
    remote_log_failed(&log, "a: after 7 of 4096 bytes: closed", true, 0);
    check_lines(&lines, "remote: a: after 12 of 100 bytes: closed\n");
    remote_log_failed(&log, "a: after 7 of 4096 bytes: reset", true, 0);
    check_lines(&lines, "remote: a: after 7 of 4096 bytes: reset\n");
    remote_log_failed(&log, "a", true, 0);
    check_lines(&lines, "remote: a\n");
    remote_log_end(&log);
    check_lines(&lines, "remote: a: after 12 of 100 bytes: closed (1 time more)\n");
}

/* A transfer that breaks now and then is no outage, and nothing is reported twice. */
UNIT_TEST(test_remote__short_failures__no_news)
{
    AUTO_TEXT struct text lines = {0};
    struct remote_log log;

    remote_log_init(&log, add_remote_line, &lines);
    for (int64_t i = 0; i < 100; i++) {
        remote_log_failed(&log, "a: closed", true, i * SECOND);
        remote_log_answered(&log, i * SECOND + SECOND / 2);
    }
    check_lines(&lines, "remote: a: closed\n");
    remote_log_failed(&log, "a: closed", true, 99 * SECOND + REMOTE_QUIET_NS);
    check_lines(&lines, "remote: a: closed (99 times more)\nremote: a: closed\n");
    remote_log_end(&log);
    check_lines(&lines, "");
}

UNIT_TEST(test_remote__a_file_is_wrong__remote_is_there)
{
    AUTO_TEXT struct text lines = {0};
    AUTO(remote_log_end) struct remote_log log;

    remote_log_init(&log, add_remote_line, &lines);
    remote_log_failed(&log, "a: has changed", false, 0);
    remote_log_answered(&log, 5 * SECOND);
    check_lines(&lines, "remote: a: has changed\n");
}

UNIT_TEST(test_remote__very_many__others_are_counted)
{
    AUTO_TEXT struct text lines = {0};
    struct remote_log log;
    char text[32];

    remote_log_init(&log, add_remote_line, &lines);
    for (unsigned i = 0; i < REMOTE_FAILURES + 3; i++) {
        snprintf(text, sizeof(text), "file %u: closed", i);
        remote_log_failed(&log, text, true, 0);
    }
    lines.len = 0;
    remote_log_end(&log);
    check_lines(&lines, "remote: 3 failures of other files, or for other reasons\n");
}
