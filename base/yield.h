/* When background work yields the processors to a job: a state machine without a clock or a file,
 * for one thread.
 *
 *   FREE ──look: idle──► FREE           until the next look, each time later
 *     └────look: busy──► QUIET ──nothing is under way──► RESTING ──look: idle──► FREE
 *                          ▲                                └──────look: busy──► ONE
 *                          └──────────────── yield_begun() ──────────────────────┘
 *
 * While the work runs, it cannot know whether it takes processors from the job or uses free ones:
 * the scheduler gives it its share either way. So it rests, and looks whether any processor is idle
 * then. If none is, it does one piece at a time, with a rest after each; so it goes on, slowly, and
 * each rest is a look. */
#ifndef EPOCHFS_BASE_YIELD_H
#define EPOCHFS_BASE_YIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yield_state { YIELD_FREE, YIELD_QUIET, YIELD_RESTING, YIELD_ONE };

struct yield {
    enum yield_state state;
    int64_t since, until; /* of the current look */
    uint64_t idle;        /* idle time of the processors, at since */
    bool has_begun;       /* since and idle are set */
    int64_t free_ns;      /* between looks while processors are idle */
    int64_t rest_ns;      /* the next rest */
};

void yield_init(struct yield *y);

/* Is it time to look? Then call yield_look(). under_way: pieces of work. */
bool yield_looks(const struct yield *y, int64_t now, size_t under_way);

/* idle: nanoseconds that the processors have been idle, in all; UINT64_MAX: not known, the work
 * then never rests. Returns whether a rest begins. */
bool yield_look(struct yield *y, int64_t now, uint64_t idle);

/* May a piece be begun? */
bool yield_may(const struct yield *y, size_t under_way);

/* Are all processors taken, as far as is known? */
bool yield_is_taken(const struct yield *y);

/* Report that a piece was begun. */
void yield_begun(struct yield *y);

/* When to call yield_looks() again; INT64_MAX: when work begins or ends. */
int64_t yield_next(const struct yield *y, size_t under_way);

#endif
