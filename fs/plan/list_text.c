/* Lines to samples. The text is hostile: lines may be of any length and bytes. */
#include "fs/plan/list_text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/search.h"
#include "base/text.h"

#define REPORTED   3  /* bad lines */
#define SHOWN_MOST 40 /* bytes of one */

#define BUCKET 8 /* entries on average, or up to twice as many */

struct list_lines {
    const char *at, *end;
    uint64_t number; /* of the line, from 1 */
};

/* The next line that is not empty, without its end. NULL: there is none. */
static const char *list_text_next_line(struct list_lines *lines, size_t *ret_len)
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

/* The sample of a line. *ret_number: it says a number, not a key. */
static bool find_sample(const struct list_samples *samples, const char *line, size_t len,
                        uint64_t *ret, bool *ret_number)
{
    *ret_number =
        len > 1 && line[0] == '#' && number_parse(line + 1, len - 1, UINT64_MAX, ret) == len - 1;
    return *ret_number ? *ret < samples->samples : samples->find(samples->ctx, line, len, ret);
}

/* Add what is wrong with a line; below: which numbers are good, if it says one. */
static void list_text_report(struct text *t, const struct list_lines *lines, uint64_t below,
                             const char *line, size_t len)
{
    text_add(t, "%sline %llu: ", t->len ? "; " : "", (unsigned long long)lines->number);
    if (below)
        text_add(t, "expected a number below %llu, got '", (unsigned long long)below);
    else
        text_add(t, "no sample has the key '");
    for (size_t i = 0; i < len && i < SHOWN_MOST; i++)
        text_add(t, "%c", (unsigned char)line[i] < 0x20 || line[i] == 0x7f ? '?' : line[i]);
    text_add(t, "%s'", len > SHOWN_MOST ? "..." : "");
}

/* Editors of Windows put it at the start of a text. */
static bool has_byte_order_mark(const struct list_lines *lines, const char *line, size_t len)
{
    return lines->number == 1 && len > 3 && !memcmp(line, "\xef\xbb\xbf", 3);
}

static uint64_t count_lines(const char *text, size_t len)
{
    struct list_lines lines = {.at = text, .end = text + len};
    uint64_t n = 0;
    size_t line_len;

    while (list_text_next_line(&lines, &line_len))
        n++;
    return n;
}

static int read_lines(const char *name, struct list_lines lines, const struct list_samples *samples,
                      uint32_t *ret, struct diag *d)
{
    AUTO_TEXT struct text wrong = {0};
    uint64_t n_wrong = 0, sample = 0;
    const char *line;
    size_t len;

    while ((line = list_text_next_line(&lines, &len))) {
        bool is_number, found = find_sample(samples, line, len, &sample, &is_number);

        if (!found && has_byte_order_mark(&lines, line, len))
            found = find_sample(samples, line + 3, len - 3, &sample, &is_number);
        if (found)
            *ret++ = (uint32_t)sample;
        else if (n_wrong++ < REPORTED)
            list_text_report(&wrong, &lines, is_number ? samples->samples : 0, line, len);
    }
    if (!n_wrong)
        return 0;
    if (wrong.failed)
        return -ENOMEM;
    if (n_wrong > REPORTED)
        text_add(&wrong, "; and %llu more", (unsigned long long)(n_wrong - REPORTED));
    return diag_set(d, -EINVAL, "%s: %s", name, wrong.data ? wrong.data : "");
}

static bool list_text_is_rising(const uint32_t *sample, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        if (sample[i] < sample[i - 1])
            return false;
    return true;
}

/* Samples above their places, in ascending order. NULL: no memory. */
static uint64_t *sort_places(const uint32_t *sample, uint64_t n)
{
    uint64_t *pair = malloc(n * sizeof(*pair));

    if (!pair)
        return NULL;
    for (uint64_t i = 0; i < n; i++)
        pair[i] = (uint64_t)sample[i] << 32 | i;
    qsort(pair, n, sizeof(*pair), search_compare);
    return pair;
}

static void set_bits(struct plan_list *list, uint32_t last)
{
    while ((list->n - 1) >> list->place_bits)
        list->place_bits++;
    while (last >> list->shift > list->n / BUCKET)
        list->shift++;
    list->buckets = (uint32_t)((uint64_t)last >> list->shift) + 1;
    /* The more places, the fewer last bits, as samples have 32. */
    assert(!list->entry || list->place_bits + list->shift <= 8 * PLAN_ENTRY_BYTES);
}

static void set_entry(uint8_t *entry, const struct plan_list *list, uint64_t pair)
{
    uint64_t last_bits = pair >> 32 & ((UINT64_C(1) << list->shift) - 1);
    uint64_t value = last_bits << list->place_bits | (uint32_t)pair;

    for (unsigned i = 0; i < PLAN_ENTRY_BYTES; i++)
        entry[i] = (uint8_t)(value >> 8 * i);
}

/* Make what leads from samples to places. pair: sort_places(); NULL: the list is in ascending
 * order. */
static int list_text_add_entries(struct plan_list *list, const uint64_t *pair)
{
    uint64_t n = list->n, at = 0;
    uint32_t *start;
    uint8_t *entry = pair ? memory_array(n * PLAN_ENTRY_BYTES + PLAN_ENTRY_PAD, 1) : NULL;

    if (pair && !entry)
        return -ENOMEM;
    list->entry = entry;
    set_bits(list, pair ? (uint32_t)(pair[n - 1] >> 32) : list->sample[n - 1]);
    for (uint64_t i = 0; pair && i < n; i++)
        set_entry(entry + i * PLAN_ENTRY_BYTES, list, pair[i]);
    list->start = start = memory_array((uint64_t)list->buckets + 1, sizeof(*start));
    if (!start)
        return -ENOMEM;
    for (uint32_t b = 0; b <= list->buckets; b++) {
        while (at < n && (pair ? pair[at] >> 32 : list->sample[at]) >> list->shift < b)
            at++;
        start[b] = (uint32_t)at;
    }
    return 0;
}

/* Make the way back. */
static int add_back(struct plan_list *list)
{
    AUTO_FREE uint64_t *pair = NULL;

    if (list_text_is_rising(list->sample, list->n))
        return list_text_add_entries(list, NULL);
    pair = sort_places(list->sample, list->n);
    return pair ? list_text_add_entries(list, pair) : -ENOMEM;
}

int list_make(uint32_t *sample, uint64_t n, bool back, struct plan_list *ret)
{
    struct plan_list list = {.n = n, .sample = sample};
    int r = back ? add_back(&list) : 0;

    if (r == 0) {
        *ret = list;
        return 0;
    }
    list.sample = NULL;
    list_release(&list);
    return r;
}

int list_parse(const char *name, const char *text, size_t len, const struct list_samples *samples,
               bool back, struct plan_list *ret, struct diag *d)
{
    AUTO_FREE uint32_t *sample = NULL;
    uint64_t n = count_lines(text, len);
    int r;

    if (!n)
        return diag_set(d, -EINVAL, "%s: expected a key or #number a line, got no line", name);
    if (n >= PLAN_LIST_MOST || samples->samples > PLAN_LIST_MOST)
        return diag_set(d, -EINVAL,
                        "%s: expected fewer than 2^32 lines, of a dataset of at most 2^32 samples, "
                        "got %llu lines and %llu samples",
                        name, (unsigned long long)n, (unsigned long long)samples->samples);
    sample = memory_array(n, sizeof(*sample));
    if (!sample)
        return -ENOMEM;
    r = read_lines(name, (struct list_lines){.at = text, .end = text + len}, samples, sample, d);
    if (r == 0)
        r = list_make(sample, n, back, ret);
    if (r == 0)
        TAKE_PTR(sample);
    return r;
}

uint64_t list_bytes(const struct plan_list *list)
{
    uint64_t bytes = list->n * sizeof(*list->sample);

    bytes += list->entry ? list->n * PLAN_ENTRY_BYTES + PLAN_ENTRY_PAD : 0;
    return bytes + (list->start ? ((uint64_t)list->buckets + 1) * sizeof(*list->start) : 0);
}

void list_release(struct plan_list *list)
{
    free((uint32_t *)(uintptr_t)list->sample);
    free((uint8_t *)(uintptr_t)list->entry);
    free((uint32_t *)(uintptr_t)list->start);
    *list = (struct plan_list){0};
}
