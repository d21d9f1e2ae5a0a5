#include "fs/status/metrics.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void metrics_begin(struct text *t, const char *metric, const char *type, const char *help)
{
    int len = (int)strcspn(metric, "{");
    bool counts = len > 6 && !strncmp(metric + len - 6, "_total", 6);

    text_add(t, "# HELP %.*s %s\n# TYPE %.*s %s\n", len, metric, help, len, metric,
             type     ? type
             : counts ? "counter"
                      : "gauge");
}

void metrics_add(struct text *t, const char *name, const char *help, uint64_t value)
{
    metrics_begin(t, name, NULL, help);
    text_add(t, "%s %llu\n", name, (unsigned long long)value);
}

static unsigned long long status_metrics_value_of(const struct metrics_row *row,
                                                  const void *counters)
{
    const _Atomic uint64_t *counter =
        (const _Atomic uint64_t *)(const void *)((const char *)counters + row->offset);

    return atomic_load_explicit(counter, memory_order_relaxed);
}

void metrics_rows_json(struct text *t, const struct metrics_row *row, size_t n,
                       const void *counters)
{
    for (size_t i = 0; i < n; i++)
        text_add(t, "%s    \"%s\": %llu", i ? ",\n" : "", row[i].name,
                 status_metrics_value_of(&row[i], counters));
}

void metrics_add_rows(struct text *t, const struct metrics_row *row, size_t n, const void *counters)
{
    for (size_t i = 0; i < n; i++) {
        if (!row[i].metric)
            continue;
        if (row[i].help)
            metrics_begin(t, row[i].metric, NULL, row[i].help);
        text_add(t, "%s %llu\n", row[i].metric, status_metrics_value_of(&row[i], counters));
    }
}

/* Add a character that JSON writes as \uXXXX: a control character, or U+FFFD. */
static void add_coded(struct text *t, const char *digits)
{
    char hex[5] = "";
    unsigned long code;

    memcpy(hex, digits, 4);
    code = strtoul(hex, NULL, 16);
    if (code == '\n')
        text_add(t, "\\n");
    else if (code < 0x80)
        text_add_bytes(t, &(char){(char)code}, 1);
    else
        text_add(t, "\xef\xbf\xbd");
}

void metrics_add_label(struct text *t, const char *name, const char *value)
{
    AUTO_TEXT struct text json = {0};
    const char *c;

    text_add_json(&json, value);
    t->failed = t->failed || json.failed;
    text_add(t, "%s=", name);
    for (c = json.failed ? "\"\"" : json.data; *c; c++) {
        if (c[0] == '\\' && c[1] == 'u') {
            add_coded(t, c + 2);
            c += 5;
        } else {
            text_add_bytes(t, c, 1);
            if (*c == '\\')
                text_add_bytes(t, ++c, 1);
        }
    }
}
