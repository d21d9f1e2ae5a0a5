/* Sizes and times for people, and a line that shows progress. */
#ifndef EPOCHFS_FS_CLI_PROGRESS_H
#define EPOCHFS_FS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUMAN_SIZE 32

/* "1.2 GiB". Returns ret. */
const char *human_bytes(uint64_t bytes, char ret[static HUMAN_SIZE]);

/* "1.2 GB/s": powers of 1,000, unlike those of sizes. Returns ret. */
const char *human_rate(uint64_t bytes_per_s, char ret[static HUMAN_SIZE]);

/* "31 s", "2 min 5 s", "3 h 20 min", "4 d 6 h". Returns ret. */
const char *human_seconds(uint64_t seconds, char ret[static HUMAN_SIZE]);

/* done in percent of total; 100 only if all is done. */
unsigned percent_of(uint64_t done, uint64_t total);

#define PROGRESS_SAMPLES 8

struct progress {
    const char *what; /* "staged": precedes the numbers */
    bool shown;
    bool rewrites; /* rewrites one line of a terminal; otherwise writes a line per second */
    bool line_is_open;
    unsigned n;                      /* samples taken so far */
    int64_t last_ns;                 /* when a line was last shown */
    int64_t at_ns[PROGRESS_SAMPLES]; /* the last samples, a second apart; a ring */
    uint64_t at[PROGRESS_SAMPLES];
};

/* Progress goes to stderr, if that is a terminal or if the user asks for it. */
void progress_init(struct progress *ret, const char *what, bool asked_for);

/* Report that done bytes are done. Shows them, but not too often. */
void progress_show(struct progress *p, uint64_t done, uint64_t total);

/* Show the end and finish the line. Call it before anything else is written. */
void progress_end(struct progress *p, uint64_t done, uint64_t total);

/* Write the line: what is done, the rate in bytes per second (0: not known yet), the time left. */
void progress_line(const char *what, uint64_t done, uint64_t total, uint64_t rate, bool bar,
                   char *ret, size_t capacity);

#endif
