/* The files of a remote as they become known: added, sorted, with their SHA-256 and versions.
 *
 * One thread fills source->known while it opens the source. Then it is constant: the snapshot that
 * a mount shows. Every name in it passed name_wrong(), so nothing that a server sends leads out of
 * SOURCE, in the tree of a mount or in URLs. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/http/url.h"
#include "cache/source/remote.h"
#include "cache/source/sha256sums.h"

#define STAT_AT_ONCE 1024
#define NOTE_MOST    4096 /* bytes of notes */

void remote_note(struct source *source, const char *format, ...)
{
    va_list args;
    char line[512];

    if (source->note.len > NOTE_MOST)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    text_plain(line, "");
    text_add(&source->note, "%s\n", line);
    if (source->note.len > NOTE_MOST)
        text_add(&source->note, "...\n");
}

int remote_url(const struct source *source, const char *path, char **ret)
{
    AUTO_FREE char *encoded = NULL;
    char *url;
    int r = http_encode(path, true, &encoded);

    if (r < 0)
        return r;
    if (asprintf(&url, "%s%s", source->base, encoded) < 0)
        return -ENOMEM;
    *ret = url;
    return 0;
}

int remote_add(struct source *source, const char *path, const char *url,
               const struct remote_version *version, const char *error)
{
    struct source_list *list = &source->known;
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *folder = strndup(path, slash ? (size_t)(slash - path) : 0);
    struct source_entry *entry;
    int r = folder ? source_list_add(list, folder, slash ? slash + 1 : path, NULL, error) : -ENOMEM;

    if (r < 0)
        return r;
    entry = &list->entry[list->n - 1];
    if (version) {
        entry->version = malloc(sizeof(*version));
        if (!entry->version)
            return -ENOMEM;
        *entry->version = *version;
    }
    if (!url)
        return remote_url(source, path, &entry->url);
    entry->url = strdup(url);
    return entry->url ? 0 : -ENOMEM;
}

int remote_add_wrong(struct source *source, const char *path, const char *wrong)
{
    char name[128], shown[256], error[512];

    name_show(path, shown, sizeof(shown));
    name_show(path, name, sizeof(name));
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    if (*name == '.')
        *name = '_';
    snprintf(error, sizeof(error), "%s: want names that files can have, found %s", shown, wrong);
    return source_list_add(&source->known, "", *name ? name : "_", NULL, error);
}

static bool is_same(const struct source_entry *a, const struct source_entry *b)
{
    return !strcmp(a->folder, b->folder) && !strcmp(a->name, b->name);
}

void remote_sort(struct source *source)
{
    struct source_list *list = &source->known;
    size_t kept = 0;

    source_list_sort(list);
    for (size_t i = 0; i < list->n; i++) {
        if (kept && is_same(&list->entry[kept - 1], &list->entry[i]))
            source_entry_release(&list->entry[i]);
        else
            list->entry[kept++] = list->entry[i];
    }
    list->n = kept;
}

/* Lines of SHA256SUMS that are left out, by the reason. */
struct left_out {
    const char *why[8];
    size_t lines[8], n;
};

/* Further reasons count as the eighth. */
static void count_left_out(struct left_out *left_out, const char *why)
{
    size_t i = 0;

    while (i < left_out->n && strcmp(left_out->why[i], why) != 0)
        i++;
    if (i == ARRAY_LEN(left_out->why))
        i--;
    else if (i == left_out->n)
        left_out->why[left_out->n++] = why;
    left_out->lines[i]++;
}

static void note_left_out(struct source *source, const struct left_out *left_out, size_t of)
{
    char reasons[400] = "";
    size_t all = 0, len = 0;

    for (size_t i = 0; i < left_out->n; i++) {
        all += left_out->lines[i];
        if (len < sizeof(reasons))
            len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s%s (%zu)",
                                    i ? ", " : "", left_out->why[i], left_out->lines[i]);
    }
    remote_note(source, "SHA256SUMS: %zu of %zu lines left out: %s", all, of, reasons);
}

int remote_use_sums(struct source *source, const struct text *sums, bool lists, size_t *ret_files)
{
    size_t at = 0, n = 0, line = 0;
    struct left_out left_out = {0};
    const char *why = "";
    struct sum sum;
    int r;

    while ((r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0) {
        line++;
        if (r == -EINVAL)
            count_left_out(&left_out, why);
        if (r < 0)
            continue;
        n++;
        r = lists ? remote_add(source, sum.path, NULL, NULL, NULL) : 0;
        if (r < 0)
            return r;
    }
    if (n && left_out.n)
        note_left_out(source, &left_out, line);
    if (lists)
        remote_sort(source);
    for (at = 0; (r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0;) {
        struct source_entry *entry = r > 0 ? source_list_find(&source->known, sum.path) : NULL;

        if (!entry || entry->sha256)
            continue;
        entry->sha256 = malloc(SHA256_LEN);
        if (!entry->sha256)
            return -ENOMEM;
        memcpy(entry->sha256, sum.sha256, SHA256_LEN);
    }
    *ret_files = n;
    return 0;
}

/* The arguments and results of http_stat(). */
struct stats {
    const char *url[STAT_AT_ONCE];
    struct source_entry *entry[STAT_AT_ONCE];
    struct remote_version version[STAT_AT_ONCE];
    int error[STAT_AT_ONCE];
    struct diag why[STAT_AT_ONCE];
    size_t n;
};

static int use_stats(struct stats *stats)
{
    for (size_t i = 0; i < stats->n; i++) {
        struct source_entry *entry = stats->entry[i];

        if (stats->error[i] < 0) {
            entry->error = strdup(diag_text(&stats->why[i], stats->error[i]));
            entry->failure = stats->error[i];
            if (!entry->error)
                return -ENOMEM;
            continue;
        }
        entry->version = malloc(sizeof(*entry->version));
        if (!entry->version)
            return -ENOMEM;
        *entry->version = stats->version[i];
    }
    return 0;
}

/* Ask for the versions of some entries of list, from *at on. */
static int stat_some(const struct source *source, struct source_list *list, size_t *at)
{
    AUTO_FREE struct stats *stats = calloc(1, sizeof(*stats));

    if (!stats)
        return -ENOMEM;
    for (; *at < list->n && stats->n < STAT_AT_ONCE; ++*at) {
        struct source_entry *entry = &list->entry[*at];

        if (entry->version || entry->error)
            continue;
        stats->entry[stats->n] = entry;
        stats->url[stats->n++] = entry->url;
    }
    if (stats->n)
        http_stat(source->http, stats->n, stats->url, stats->version, stats->error, stats->why);
    return use_stats(stats);
}

int remote_stat(const struct source *source, struct source_list *list)
{
    int r = 0;

    for (size_t at = 0; at < list->n && r == 0;)
        r = stat_some(source, list, &at);
    return r;
}
