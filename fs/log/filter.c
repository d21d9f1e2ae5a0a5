#include "fs/log/filter.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_SIZE 2200

void log_filter_init(struct log_filter *filter,
                     void (*write)(void *ctx, enum log_level level, const char *text), void *ctx)
{
    *filter = (struct log_filter){.write = write, .ctx = ctx};
    lock_init(&filter->lock);
}

/* Write the text, with how often it came besides. */
static void write_counted(struct log_filter *filter, enum log_level level, const char *text,
                          uint64_t more)
{
    char line[LINE_SIZE];

    snprintf(line, sizeof(line), "%s (%llu time%s more)", text, (unsigned long long)more,
             more == 1 ? "" : "s");
    filter->write(filter->ctx, level, line);
}

static void write_left_out_locked(struct log_filter *filter)
{
    char line[80];

    lock_assert_held(&filter->lock);
    if (!filter->left_out)
        return;
    snprintf(line, sizeof(line), "%llu message%s omitted", (unsigned long long)filter->left_out,
             filter->left_out == 1 ? "" : "s");
    filter->write(filter->ctx, LOG_LEVEL_WARNING, line);
    filter->left_out = 0;
}

/* May one more line be written? */
static bool may_write_locked(struct log_filter *filter, int64_t now)
{
    lock_assert_held(&filter->lock);
    if (!filter->burst || now - filter->burst_at >= LOG_BURST_NS) {
        write_left_out_locked(filter);
        filter->burst_at = now;
        filter->burst = 0;
    }
    if (filter->burst >= LOG_BURST) {
        filter->left_out++;
        return false;
    }
    filter->burst++;
    return true;
}

static void filter_forget_locked(struct log_filter *filter, struct log_said *said)
{
    lock_assert_held(&filter->lock);
    if (said->text && said->more)
        write_counted(filter, said->level, said->text, said->more);
    free(said->text);
    *said = (struct log_said){0};
}

/* NULL: the text was not written lately. */
static struct log_said *filter_find_locked(struct log_filter *filter, const char *text)
{
    lock_assert_held(&filter->lock);
    for (struct log_said *said = filter->said; said < filter->said + LOG_TEXTS; said++)
        if (said->text && !strcmp(said->text, text))
            return said;
    return NULL;
}

/* A free place; if there is none, the oldest text is forgotten. */
static struct log_said *filter_place_locked(struct log_filter *filter)
{
    struct log_said *oldest = filter->said;

    lock_assert_held(&filter->lock);
    for (struct log_said *said = filter->said; said < filter->said + LOG_TEXTS; said++)
        if (oldest->text && (!said->text || said->at < oldest->at))
            oldest = said;
    filter_forget_locked(filter, oldest);
    return oldest;
}

void log_filter_line(struct log_filter *filter, int64_t now, enum log_level level, const char *text)
{
    struct log_said *said;
    LOCK_SCOPE(&filter->lock);

    if (level == LOG_LEVEL_DEBUG) {
        filter->write(filter->ctx, level, text);
        return;
    }
    said = filter_find_locked(filter, text);
    if (said && now - said->at < LOG_SAME_NS) {
        said->more++;
        return;
    }
    if (!may_write_locked(filter, now))
        return;
    if (!said) {
        said = filter_place_locked(filter);
        said->text = strdup(text); /* without memory it is not recognised next time */
    }
    if (said->more)
        write_counted(filter, level, text, said->more + 1);
    else
        filter->write(filter->ctx, level, text);
    said->level = level;
    said->at = now;
    said->more = 0;
}

void log_filter_end(struct log_filter *filter)
{
    lock_take(&filter->lock);
    for (unsigned i = 0; i < LOG_TEXTS; i++)
        filter_forget_locked(filter, &filter->said[i]);
    write_left_out_locked(filter);
    lock_drop(&filter->lock);
    lock_release(&filter->lock);
}
