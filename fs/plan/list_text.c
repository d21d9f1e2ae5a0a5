/* Lines to samples. The text is hostile: lines may be of any length and bytes. */
#include "fs/plan/list_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/text.h"

#define REPORTED   3  /* bad lines */
#define SHOWN_MOST 40 /* bytes of one */

struct list_lines {
    const char *at, *end;
    uint64_t number; /* of the line, from 1 */
};

/* The next line that is not empty, without its end. NULL: there is none. */
static const char *next_line(struct list_lines *lines, size_t *ret_len)
{
    while (lines->at < lines->end) {
        const char *line = lines->at;
        const char *stop = memchr(line, '\n', (size_t)(lines->end - line));

        lines->at = stop ? stop + 1 : lines->end;
        lines->number++;
        *ret_len = (size_t)((stop ? stop : lines->end) - line);
        *ret_len -= *ret_len && line[*ret_len - 1] == '\r';
        if (*ret_len)
            return line;
    }
    return NULL;
}

/* The sample of a line; NULL: none. Otherwise what is wrong. */
static const char *find_sample(const struct list_samples *samples, const char *line, size_t len,
                               uint64_t *ret)
{
    if (len > 1 && line[0] == '#' && number_parse(line + 1, len - 1, UINT64_MAX, ret) == len - 1)
        return *ret < samples->samples ? NULL : "want a number below the number of samples";
    return samples->find(samples->ctx, line, len, ret) ? NULL : "no sample has the key";
}

/* Add what is wrong with a line. */
static void report(struct text *t, uint64_t number, const char *what, const char *line, size_t len)
{
    text_add(t, "%sline %llu: %s '", t->len ? "; " : "", (unsigned long long)number, what);
    for (size_t i = 0; i < len && i < SHOWN_MOST; i++)
        text_add(t, "%c", (unsigned char)line[i] < 0x20 || line[i] == 0x7f ? '?' : line[i]);
    text_add(t, "%s'", len > SHOWN_MOST ? "..." : "");
}

static uint64_t count_lines(const char *text, size_t len)
{
    struct list_lines lines = {.at = text, .end = text + len};
    uint64_t n = 0;
    size_t line_len;

    while (next_line(&lines, &line_len))
        n++;
    return n;
}

static int read_lines(const char *name, struct list_lines lines, const struct list_samples *samples,
                      uint32_t *ret, struct diag *d)
{
    AUTO_TEXT struct text wrong = {0};
    uint64_t n_wrong = 0, sample = 0;
    const char *line, *what;
    size_t len;

    while ((line = next_line(&lines, &len))) {
        what = find_sample(samples, line, len, &sample);
        if (!what)
            *ret++ = (uint32_t)sample;
        else if (n_wrong++ < REPORTED)
            report(&wrong, lines.number, what, line, len);
    }
    if (!n_wrong)
        return 0;
    if (wrong.failed)
        return -ENOMEM;
    if (n_wrong > REPORTED)
        text_add(&wrong, "; and %llu more", (unsigned long long)(n_wrong - REPORTED));
    return diag_set(d, -EINVAL, "%s: %s", name, wrong.data ? wrong.data : "");
}

static bool is_rising(const uint32_t *sample, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        if (sample[i] < sample[i - 1])
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The places of the list by their samples. NULL: no memory. */
static uint32_t *sort_places(const uint32_t *sample, uint64_t n)
{
    AUTO_FREE uint64_t *pair = malloc(n * sizeof(*pair));
    AUTO_FREE uint32_t *sorted = malloc(n * sizeof(*sorted));

    if (!pair || !sorted)
        return NULL;
    for (uint64_t i = 0; i < n; i++)
        pair[i] = (uint64_t)sample[i] << 32 | i;
    qsort(pair, n, sizeof(*pair), compare);
    for (uint64_t i = 0; i < n; i++)
        sorted[i] = (uint32_t)pair[i];
    return TAKE_PTR(sorted);
}

static uint32_t sample_of(const struct plan_list *list, uint64_t entry)
{
    return list->sample[list->sorted ? list->sorted[entry] : entry];
}

void list_add_buckets(struct plan_list *list)
{
    uint32_t last = sample_of(list, list->n - 1), *start;
    uint64_t entry = 0;

    while (last >> list->shift > list->n / PLAN_LIST_BUCKET)
        list->shift++;
    list->buckets = (last >> list->shift) + 1;
    start = malloc(((size_t)list->buckets + 1) * sizeof(*start));
    for (uint32_t b = 0; start && b <= list->buckets; b++) {
        while (entry < list->n && sample_of(list, entry) >> list->shift < b)
            entry++;
        start[b] = (uint32_t)entry;
    }
    list->start = start;
}

int list_parse(const char *name, const char *text, size_t len, const struct list_samples *samples,
               struct plan_list *ret, struct diag *d)
{
    AUTO_FREE uint32_t *sample = NULL;
    AUTO_FREE uint32_t *sorted = NULL;
    uint64_t n = count_lines(text, len);
    int r;

    if (!n)
        return diag_set(d, -EINVAL, "%s: want a key or #number a line, found no line", name);
    if (n >= PLAN_LIST_MOST || samples->samples > PLAN_LIST_MOST)
        return diag_set(d, -EINVAL,
                        "%s: want fewer than 2^32 lines, of a dataset of at most 2^32 samples, "
                        "found %llu lines and %llu samples",
                        name, (unsigned long long)n, (unsigned long long)samples->samples);
    sample = malloc(n * sizeof(*sample));
    if (!sample)
        return -ENOMEM;
    r = read_lines(name, (struct list_lines){.at = text, .end = text + len}, samples, sample, d);
    if (r < 0)
        return r;
    if (!is_rising(sample, n)) {
        sorted = sort_places(sample, n);
        if (!sorted)
            return -ENOMEM;
    }
    *ret = (struct plan_list){.n = n, .sample = TAKE_PTR(sample), .sorted = TAKE_PTR(sorted)};
    list_add_buckets(ret);
    return 0;
}

void list_release(struct plan_list *list)
{
    free((uint32_t *)(uintptr_t)list->sample);
    free((uint32_t *)(uintptr_t)list->sorted);
    free((uint32_t *)(uintptr_t)list->start);
    *list = (struct plan_list){0};
}
