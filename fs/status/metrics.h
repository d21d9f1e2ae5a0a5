/* Prometheus text: what stands before the samples of a metric, and labels. */
#ifndef EPOCHFS_FS_STATUS_METRICS_H
#define EPOCHFS_FS_STATUS_METRICS_H

#include <stdint.h>

#include "base/text.h"

/* The two lines before the samples of a metric, whose labels may stand behind its name. type NULL:
 * what is called _total is a counter, all else a gauge. */
void metrics_begin(struct text *t, const char *metric, const char *type, const char *help);

/* A metric whose one sample has no labels: those lines, and the number at its greatest width. */
void metrics_add(struct text *t, const char *name, const char *help, uint64_t value);

/* name="value", for any bytes: those that are not UTF-8 stand as U+FFFD. It takes no more than the
 * value does as a JSON string. */
void metrics_add_label(struct text *t, const char *name, const char *value);

#endif
