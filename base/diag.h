/* The reason for an error, for people.
 *
 * Calls that open or parse carry a `struct diag *`: the first message set wins, because the place
 * that first saw the defect knows it best. A message names the file, the place in it, what was
 * wanted and what was found. Libraries never log; fs/ shows the message. */
#ifndef EPOCHFS_BASE_DIAG_H
#define EPOCHFS_BASE_DIAG_H

#include <stdbool.h>

struct diag {
    bool set;
    char text[1024]; /* NUL-terminated; too long a message is cut */
};

#define DIAG_INIT                                                                                  \
    (struct diag)                                                                                  \
    {                                                                                              \
        .set = false, .text = ""                                                                   \
    }

/* Keep the message if d (may be NULL) has none yet. Returns err, so that callers can write
 * `return diag_set(d, -EBADMSG, ...)`. */
int diag_set(struct diag *d, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The message, or strerror(-err) where none was set. Valid as long as d. */
const char *diag_text(const struct diag *d, int err);

/* Shows people what they have to know, on any thread. say NULL: it is ignored. */
struct notices {
    void (*say)(void *ctx, const char *text);
    void *ctx;
};

static inline void notices_say(const struct notices *to, const char *text)
{
    if (to->say)
        to->say(to->ctx, text);
}

#endif
