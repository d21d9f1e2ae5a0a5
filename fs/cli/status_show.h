/* What `epochfs status` shows of a mount, made of its status.json. */
#ifndef EPOCHFS_FS_CLI_STATUS_SHOW_H
#define EPOCHFS_FS_CLI_STATUS_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* What is remembered of a look for the rates of the next one. {0}: there was none. */
struct status_look {
    int64_t ns;               /* monotonic_ns() */
    uint64_t served, fetched; /* bytes */
    size_t len;               /* of the text */
};

void status_look_init(struct status_look *ret, const char *json, int64_t now);

/* The page: some lines of all that matters. now: monotonic_ns(). */
void status_show_page(const char *json, const struct status_look *last, int64_t now,
                      struct text *ret);

/* The lines that were shown last. {0}: none. */
struct status_lines {
    struct text keys; /* what a line is about and what may change in it, a line each */
    uint64_t served;  /* bytes that were read, when it was not by our looks alone */
};

/* For logs: a line for each plan that is read, or one of the mount, with the time; but only if it
 * is not the same as at the last look. real: ns since 1970. */
void status_show_lines(const char *json, const struct status_look *last, int64_t now, int64_t real,
                       struct status_lines *lines, struct text *ret);
void status_lines_release(struct status_lines *lines);

/* A line of that form with other words. */
void status_show_event(int64_t real, const char *event, struct text *ret);

#endif
