/* Lists of files in `.epochfs/`. One that was read is kept in the cache folder by its SHA-256, and
 * one byte under another name says that it was found wrong here. */
#include "cache/source/shared_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/source/joined.h"
#include "cache/source/listing.h"
#include "cache/source/remote.h"
#include "cache/source/shared_index.h"

static int refused_identity(const struct source *source, const char *sum, char **ret)
{
    return text_print(ret, "shared 3 %s wrong for %s", sum,
                      source->named ? source->named : source->base);
}

static bool was_refused(const struct source *source, const char *sum)
{
    AUTO(kept_index_release) struct kept_index kept = {0};
    AUTO_FREE char *identity = NULL;

    return refused_identity(source, sum, &identity) < 0 ||
           kept_list_get(source, identity, &kept) == 0;
}

void shared_list_forget(const struct source *source)
{
    AUTO_FREE char *identity = NULL;
    char mark[] = "-";

    if (source->shared_list && refused_identity(source, source->shared_list, &identity) == 0)
        kept_list_put(source, identity, &(struct iovec){mark, 1}, 1);
}

static void shared_list_refuse(struct source *source, const char *why)
{
    remote_note(source,
                SHARED_INDEX_FOLDER "/: its list of files is ignored, and the mount makes its "
                                    "own: %s; `epochfs index` makes it again",
                why);
    free(source->shared_list);
    source->shared_list = NULL;
}

/* Read the table. 0; -ENOENT: there is none. */
static int shared_list_read_table(struct source *source)
{
    struct shared_table *table = calloc(1, sizeof(*table));
    struct diag d = DIAG_INIT;
    int r = table ? shared_read_table(source, table, &d) : -ENOMEM;

    if (r < 0 && r != -ENOENT && r != -EACCES)
        remote_note(source, SHARED_INDEX_FOLDER "/" SHARED_INDEX_TABLE ": ignored: %s",
                    diag_text(&d, r));
    source->shared = table; /* without lines, if it is not there: it is not asked for again */
    return r < 0 ? -ENOENT : 0;
}

/* Fetch the list, and keep it. 0; -ENOENT: it is of no use; or -ENOMEM. */
static int fetch(struct source *source, const struct shared_line *line, const char *identity,
                 struct known *ret)
{
    AUTO_KNOWN struct known list = {0};
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    char *bytes;
    int r = shared_read_line(source, line, &t, &d);

    if (r == 0)
        r = text_finish(&t, &bytes, &list.bytes.size);
    if (r == 0) {
        list.bytes.bytes = (uint8_t *)bytes;
        r = kept_list_parse(&list, true);
    }
    if (r == 0 && list.files.n < LISTING_KEPT)
        r = -EBADMSG;
    if (r < 0) {
        shared_list_refuse(source, r == -EBADMSG && !d.set
                                       ? "expected a list of files, got something else"
                                       : diag_text(&d, r));
        return r == -ENOMEM ? r : -ENOENT;
    }
    kept_list_put(source, identity, &(struct iovec){list.bytes.bytes, list.bytes.size}, 1);
    known_replace(ret, &list);
    return 0;
}

/* Read the list, or take it from the cache folder. 0; -ENOENT: there is none that may be used. */
static int shared_list_load(struct source *source, struct known *ret)
{
    AUTO_FREE char *identity = NULL;
    const struct shared_line *line;

    if (source->indexes || source_asks_all(source) || source->shared ||
        shared_list_read_table(source) < 0 || !source->shared->listing.name)
        return -ENOENT;
    line = &source->shared->listing;
    if (was_refused(source, line->sum))
        return -ENOENT;
    source->shared_list = strdup(line->sum);
    if (!source->shared_list || text_print(&identity, "shared 3 %s", line->sum) < 0)
        return -ENOMEM;
    return kept_list_load(source, identity, ret) == 0 ? 0 : fetch(source, line, identity, ret);
}

/* ---- is it current? ---- */

#define SAMPLES 4 /* pages, and files, that show it */

/* The numbers of some of n things, from the first to the last. Returns how many. */
static size_t sample(size_t n, size_t ret[static SAMPLES])
{
    size_t many = (size_t)min_u64(n, SAMPLES);

    for (size_t i = 0; i < many; i++)
        ret[i] = many > 1 ? (n - 1) * i / (many - 1) : 0;
    return many;
}

/* The pages that are asked for. */
struct samples {
    struct http_ahead *ahead[SAMPLES];
    size_t page[SAMPLES], n;
};

static void samples_release(struct samples *s)
{
    for (size_t i = 0; i < s->n; i++)
        http_ahead_drop(&s->ahead[i]);
}

/* Ask for some pages. 1 or -ENOMEM. */
static int ask_pages(const struct source *source, const struct shared_check *check,
                     const struct known *list, struct samples *s)
{
    /* The first page of a bucket was asked for: it has told how many there are. */
    const size_t first = list->n_pages && !check->versions && !*known_page_text(list, 0);
    size_t number[SAMPLES], n = sample(list->n_pages - first, number);

    for (size_t i = 0; i < n; i++) {
        const char *text = known_page_text(list, first + number[i]);
        char *url;
        int r = known_find_page(&source->known, text) < source->known.n_pages
                    ? -ENOENT
                    : check->page_url(check->ctx, text, &url);

        if (r == -ENOMEM)
            return r;
        if (r < 0)
            continue;
        s->page[s->n] = first + number[i];
        s->ahead[s->n++] = http_ahead_start(source->http, url, REMOTE_TEXT_MOST, 0);
    }
    return 1;
}

/* Are the pages that were asked for as they were? */
static bool take_pages(const struct shared_check *check, const struct known *list,
                       struct samples *s)
{
    bool same = true;

    for (size_t i = 0; i < s->n && same; i++) {
        AUTO_TEXT struct text page = {0};

        same =
            http_ahead_take(TAKE_PTR(s->ahead[i]), &page, NULL, NULL) == 0 &&
            check->page_hash(page.data ? page.data : "", page.len) == list->page[s->page[i]].hash;
    }
    return same;
}

/* Have some files the version that the list says? 1, 0 or -ENOMEM. */
static int compare_files(const struct source *source, const struct members *files)
{
    struct remote_version then[SAMPLES];
    struct http_file now[SAMPLES] = {0};
    size_t number[SAMPLES], n = sample(files->n, number);
    int r = 1;

    for (size_t i = 0; i < n && r == 1; i++) {
        r = joined_version_get(files, number[i], &then[i]);
        if (r == 1 && known_url(source, files, number[i], &now[i].url) < 0)
            r = -ENOMEM;
    }
    if (r == 1)
        http_stat(source->http, n, now);
    for (size_t i = 0; i < n; i++) {
        if (r == 1)
            r = now[i].error == 0 && then[i].size == now[i].version.size &&
                !strcmp(then[i].etag, now[i].version.etag) &&
                then[i].mtime.tv_sec == now[i].version.mtime.tv_sec;
        free(now[i].url);
    }
    return r;
}

int shared_list_use(struct source *source, const struct shared_check *check)
{
    AUTO(samples_release) struct samples s = {.n = 0};
    AUTO_KNOWN struct known list = {0};
    int r = shared_list_load(source, &list);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    known_sort_pages(&source->known);
    r = check->fits(&list, &source->known) ? ask_pages(source, check, &list, &s) : 0;
    if (r == 1 && check->versions)
        r = compare_files(source, &list.files);
    if (r == 1)
        r = take_pages(check, &list, &s);
    if (r == 0)
        shared_list_refuse(source, "the files have changed since");
    if (r == 1)
        known_replace(&source->known, &list);
    return r;
}

/* ---- making it ---- */

int shared_list_note(struct source *source)
{
    struct kept_list_pieces pieces;

    if (!source->indexes || source->known.files.n < LISTING_KEPT || source->known.failed.n)
        return 0;
    if (kept_list_bytes(&source->known, &pieces) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < ARRAY_LEN(pieces.piece); i++)
        text_add_bytes(&source->whole, pieces.piece[i].iov_base, pieces.piece[i].iov_len);
    return source->whole.failed ? -ENOMEM : 0;
}
