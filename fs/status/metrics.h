/* Prometheus text: the lines before the samples of a metric, and labels; counters in both texts. */
#ifndef EPOCHFS_FS_STATUS_METRICS_H
#define EPOCHFS_FS_STATUS_METRICS_H

#include <stdint.h>

#include "base/text.h"

/* Add the two lines before the samples of a metric; `metric` may have labels after its name. type
 * NULL: a name that ends in _total is a counter, any other a gauge. */
void metrics_begin(struct text *t, const char *metric, const char *type, const char *help);

/* Add a metric with one sample and no labels: those lines, and the number padded to its greatest
 * width. */
void metrics_add(struct text *t, const char *name, const char *help, uint64_t value);

/* A counter of a struct: its name in status.json and in the metrics. */
struct metrics_row {
    const char *name;
    const char *metric; /* with its labels; NULL: in JSON only */
    const char *help;   /* NULL: the same metric as the row before */
    size_t offset;      /* of its _Atomic uint64_t in the struct */
};

/* Add n counters of that struct: as members of a JSON object, without a comma behind the last; and
 * as metrics. */
void metrics_rows_json(struct text *t, const struct metrics_row *row, size_t n,
                       const void *counters);
void metrics_add_rows(struct text *t, const struct metrics_row *row, size_t n,
                      const void *counters);

/* Add name="value". value: any bytes; those that are not UTF-8 become U+FFFD. The result is no
 * longer than the value is as a JSON string. */
void metrics_add_label(struct text *t, const char *name, const char *value);

#endif
