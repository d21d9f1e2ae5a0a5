/* What people have to know of a source that is open: files that are not used, and notes. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "fs/engine/opened.h"

#define REPORTED 20 /* unusable files that are named */

static void report_line(const struct opened_reports *to, const char *what, const char *text)
{
    AUTO_TEXT struct text line = {0};

    text_add(&line, "%s%s", what, text);
    if (!line.failed)
        to->note(to->ctx, LOG_LEVEL_WARNING, line.data);
}

/* Each line of a text. */
static void report_lines(const struct opened_reports *to, const char *lines)
{
    AUTO_FREE char *copy = strdup(lines);
    char *next = copy, *line;

    while ((line = strsep(&next, "\n")))
        if (*line)
            to->note(to->ctx, LOG_LEVEL_WARNING, line);
}

static void report_notes(const struct catalog_item *item, const struct opened_reports *to)
{
    AUTO_TEXT struct text notes = {0};

    notes_show(&item->ds->notes, &notes);
    if (item->ds->missing.n)
        text_add(&notes, "%s lacks %zu of its parts; dataset.json and `epochfs info` name them\n",
                 item->name, item->ds->missing.n);
    if (notes.data)
        report_lines(to, notes.data);
}

/* What an error says between the name of the file and what the file has there; its length, or 0. */
static const char *report_wanted(const char *error, size_t *ret_len)
{
    static const char *const ends[] = {", got", "; it begins", "; texts are"};
    const char *from = strstr(error, ": "), *to = NULL;

    for (size_t i = 0; i < ARRAY_LEN(ends) && !to; i++)
        for (const char *at = from; at && (at = strstr(at, ends[i])); at++)
            to = at;
    *ret_len = to ? (size_t)(to - from) : 0;
    return from;
}

static bool report_is_same_reason(const char *one, const char *other)
{
    size_t a, b;

    one = report_wanted(one, &a);
    other = report_wanted(other, &b);
    return a && a == b && !memcmp(one, other, a);
}

/* The names of files that are not used for the reason that was said last. */
static void report_same(struct text *names, const struct opened_reports *to)
{
    if (names->len)
        report_line(to, "not used, for the same reason: ", names->data);
    text_release(names);
    *names = (struct text){0};
}

static void report_unusable(const struct catalog *catalog, const struct opened_reports *to)
{
    size_t unusable = catalog->n - catalog->n_datasets, reported = 0;
    AUTO_TEXT struct text same = {0}, more = {0};
    const char *said = NULL;

    for (size_t i = 0; i < catalog->n && reported < REPORTED; i++) {
        const struct catalog_item *item = &catalog->item[i];
        const char *error = item->error;

        if (!error)
            continue;
        reported++;
        if (said && report_is_same_reason(said, error)) {
            text_add(&same, "%s%s%s%s", same.len ? ", " : "", item->folder,
                     *item->folder ? "/" : "", item->name);
            continue;
        }
        report_same(&same, to);
        report_line(to, "not used: ", error);
        said = error;
    }
    report_same(&same, to);
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;

        if (ds && dataset_state(ds) == DATASET_FAILED)
            to->note(to->ctx, LOG_LEVEL_ERROR, ds->reason.text);
        else if (ds && dataset_state(ds) == DATASET_READY)
            report_notes(&catalog->item[i], to);
    }
    if (unusable > reported) {
        text_add(&more, "and %zu more files are not used; each has its ERROR.txt",
                 unusable - reported);
        report_line(to, "", more.failed ? strerror(ENOMEM) : more.data);
    }
}

void opened_report(const struct opened *opened, const struct opened_reports *to)
{
    report_lines(to, source_note(opened->source));
    report_unusable(&opened->catalog, to);
}
