/* What `epochfs status` shows of a mount, made of its status.json: `text`, which may be
 * cut off or not JSON. */
#ifndef EPOCHFS_FS_CLI_STATUS_SHOW_H
#define EPOCHFS_FS_CLI_STATUS_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"

/* What is remembered of a look at the status, to compute rates at the next one. {0}: there was
 * none. */
struct status_look {
    int64_t ns;               /* monotonic_ns() */
    uint64_t served, fetched; /* bytes */
    size_t len;               /* of the text */
};

void status_look_init(struct status_look *ret, const char *text, int64_t now);

/* Write the page: some lines of all that matters. now: monotonic_ns(). */
void status_show_page(const char *text, const struct status_look *last, int64_t now,
                      struct text *ret);

/* Write how far an element of "plans" is, how fast it goes, and since when it does not: digits and
 * words of our own. */
void status_show_place(const json_t *plan, struct text *ret);

/* The lines that were shown last. {0}: none. */
struct status_lines {
    struct text keys; /* for each line shown: its subject and what may change in it */
    uint64_t served;  /* bytes read, at the last time when not only our own looks read */
};

/* For logs: write a line with the time for each plan that is read, or one for the mount; but only
 * lines that differ from the last look. real: ns since 1970. */
void status_show_lines(const char *text, const struct status_look *last, int64_t now, int64_t real,
                       struct status_lines *lines, struct text *ret);
void status_lines_release(struct status_lines *lines);

/* Write a line of that form with an event. */
void status_show_event(int64_t real, const char *event, struct text *ret);

#endif
