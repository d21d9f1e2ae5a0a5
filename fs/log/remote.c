#include "fs/log/remote.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 1200

void remote_log_init(struct remote_log *log, void (*say)(void *ctx, const char *text), void *ctx)
{
    *log = (struct remote_log){.say = say, .ctx = ctx};
    lock_init(&log->lock);
}

static void __attribute__((format(printf, 2, 3)))
say_line(const struct remote_log *log, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    log->say(log->ctx, line);
}

/* Is it the same file, and the same reason except its numbers? */
static bool log_remote_is_same(const char *a, const char *b)
{
    const char *reason = strstr(a, ": ");
    size_t file = reason ? (size_t)(reason - a) : strlen(a);

    if (strncmp(a, b, file) != 0)
        return false;
    for (a += file, b += file; *a && *b; a++, b++) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0123456789") - 1;
            b += strspn(b, "0123456789") - 1;
        } else if (*a != *b) {
            return false;
        }
    }
    return *a == *b;
}

/* Report what was only counted, and forget all. */
static void log_remote_forget_locked(struct remote_log *log)
{
    lock_assert_held(&log->lock);
    for (unsigned i = 0; i < log->n; i++) {
        struct remote_failure *failure = &log->failure[i];

        if (failure->more)
            say_line(log, "remote: %s (%llu time%s more)", failure->text,
                     (unsigned long long)failure->more, failure->more == 1 ? "" : "s");
        free(failure->text);
    }
    if (log->others)
        say_line(log, "remote: %llu failures of other files, or for other reasons",
                 (unsigned long long)log->others);
    log->n = 0;
    log->others = 0;
}

static void note_locked(struct remote_log *log, const char *text)
{
    char *copy;

    lock_assert_held(&log->lock);
    for (unsigned i = 0; i < log->n; i++) {
        if (log_remote_is_same(log->failure[i].text, text)) {
            log->failure[i].more++;
            return;
        }
    }
    copy = log->n < REMOTE_FAILURES ? strdup(text) : NULL;
    if (!copy) {
        log->others++;
        return;
    }
    log->failure[log->n++] = (struct remote_failure){.text = copy};
    say_line(log, "remote: %s", text);
}

void remote_log_failed(struct remote_log *log, const char *text, bool is_gone, int64_t now)
{
    LOCK_SCOPE(&log->lock);

    if (!log->fails && log->n && now - log->last >= REMOTE_QUIET_NS)
        log_remote_forget_locked(log);
    if (is_gone && !log->fails) {
        log->fails = true;
        log->since = now;
        log->n_since = 0;
    }
    log->last = now;
    log->n_since += is_gone;
    note_locked(log, text);
}

void remote_log_answered(struct remote_log *log, int64_t now)
{
    LOCK_SCOPE(&log->lock);

    if (log->fails && now - log->since >= REMOTE_GONE_NS)
        say_line(log, "remote: it answers again, after %llu failure%s in %.0f s",
                 (unsigned long long)log->n_since, log->n_since == 1 ? "" : "s",
                 (double)(now - log->since) / 1e9);
    log->fails = false;
}

void remote_log_end(struct remote_log *log)
{
    lock_take(&log->lock);
    log_remote_forget_locked(log);
    lock_drop(&log->lock);
    lock_release(&log->lock);
}
