/* Index pages have neither sizes nor ETags that one can count on, but those of nginx and Apache
 * show the time of each file, to the minute. A file that is replaced has another time, so its page
 * has other bytes. What this cannot show: a file that was replaced within the minute of its time
 * (so a page counts only when the times of all its files are some minutes old), or that was given
 * its old time. Such a file gives -ESTALE when it is read, for requests name the version; then what
 * is kept is dropped, and the next mount asks for all versions. */
#include "cache/source/web_kept.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/checked.h"
#include "cache/source/joined.h"
#include "cache/source/listing.h"
#include "cache/source/shared_list.h"

#define SETTLED_S INT64_C(600) /* clocks of servers may be some minutes ahead */

int web_kept_add(struct kept_list *pages, const char *folder, const struct text *page)
{
    size_t len = strlen(folder);
    AUTO_FREE char *path = strndup(folder, len ? len - 1 : 0);

    return path ? kept_list_add(pages, path, XXH3_64bits(page->data, page->len)) : -ENOMEM;
}

/* Is the page of that folder as it was? */
static bool web_kept_is_same(const struct kept_list *pages, const struct kept_list *kept,
                             const char *path)
{
    size_t now = kept_list_find(pages, path), then = kept_list_find(kept, path);

    return now < pages->n && then < kept->n && pages->page[now].hash == kept->page[then].hash;
}

/* same[f]: the page of folder f is as it was. */
static void find_same(const struct members *files, const struct kept_list *pages,
                      const struct kept_list *kept, uint8_t *same)
{
    bool all = web_kept_is_same(pages, kept, WEB_SUMS);

    for (uint32_t f = 0; f < files->n_folders; f++)
        same[f] = all || web_kept_is_same(pages, kept, members_folder(files, f));
}

/* Set the version of file i from the kept list. 0; -ENOENT: it is not there. */
static int use_version(struct members *files, size_t i, const struct kept_list *kept,
                       uint64_t *ret_size)
{
    const char *folder = members_folder_of(files, i);
    size_t k = members_lookup(&kept->files, folder, strlen(folder), members_name(files, i));
    struct remote_version version;
    int r;

    if (k == kept->files.n || !joined_version_get(&kept->files, k, &version))
        return -ENOENT;
    r = joined_version_set(files, i, &version);
    if (r == 0)
        *ret_size = version.size;
    return r;
}

static int use_versions(struct known *known, const struct kept_list *pages,
                        const struct kept_list *kept)
{
    struct members *files = &known->files;
    AUTO_FREE uint8_t *same = calloc((size_t)files->n_folders + 1, 1), *keep = malloc(files->n + 1);
    AUTO_FREE uint64_t *size = calloc(files->n + 1, sizeof(*size));
    int r = 0;

    if (!same || !keep || !size)
        return -ENOMEM;
    find_same(files, pages, kept, same);
    memset(keep, 1, files->n);
    for (size_t i = 0; i < files->n; i++) {
        r = same[files->member[i].folder] ? use_version(files, i, kept, &size[i]) : 0;
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return known_keep(known, keep, size);
}

int web_kept_use(struct source *source, struct kept_list *pages)
{
    AUTO_KEPT_LIST struct kept_list kept = {0};

    kept_list_sort(pages);
    if (!pages->n || source->known.files.n < LISTING_KEPT ||
        kept_list_load(source, NULL, &kept) < 0)
        return 0;
    return use_versions(&source->known, pages, &kept);
}

/* Mark the folders with a file that was changed so shortly before that its page may not show the
 * next change. */
static void find_unsettled(const struct members *files, int64_t now, uint8_t *unsettled)
{
    int64_t most = now / 1000000000 - SETTLED_S;

    for (size_t i = 0; i < files->n; i++) {
        struct remote_version version;

        if (!joined_version_get(files, i, &version) || !version.mtime.tv_sec ||
            version.mtime.tv_sec > most)
            unsettled[files->member[i].folder] = 1;
    }
}

/* The pages that show all changes of their files. 0 or -ENOMEM. */
static int find_settled(const struct members *files, const struct kept_list *pages, int64_t now,
                        struct kept_list *ret)
{
    AUTO_FREE uint8_t *unsettled = calloc((size_t)files->n_folders + 1, 1);
    size_t sums = kept_list_find(pages, WEB_SUMS);
    int r = unsettled ? 0 : -ENOMEM;

    if (r == 0)
        find_unsettled(files, now, unsettled);
    for (uint32_t f = 0; f < files->n_folders && r == 0; f++) {
        const char *path = members_folder(files, f);
        size_t i = kept_list_find(pages, path);

        if (i < pages->n && !unsettled[f])
            r = kept_list_add(ret, path, pages->page[i].hash);
    }
    return r == 0 && sums < pages->n ? kept_list_add(ret, WEB_SUMS, pages->page[sums].hash) : r;
}

int web_kept_save(struct source *source, const struct kept_list *pages, bool asked, int64_t now)
{
    const struct members *files = &source->known.files;
    AUTO_KEPT_LIST struct kept_list settled = {0};
    int r;

    if (!pages->n || files->n < LISTING_KEPT || !(asked || source->indexes))
        return 0;
    r = find_settled(files, pages, now, &settled);
    if (r < 0 || !settled.n)
        return r;
    if (asked)
        kept_list_save(source, &settled, files);
    return shared_list_note(source, &settled);
}

/* ---- .epochfs/ ---- */

static bool has_page(const struct kept_list *pages, const char *path)
{
    return kept_list_find(pages, path) < pages->n;
}

/* Are the pages of this mount that the list has as they were? Both are of a SHA256SUMS, or neither:
 * it may name other files than index pages do. */
static bool are_same(const struct kept_list *pages, const struct kept_list *list)
{
    if (!list->n || has_page(pages, WEB_SUMS) != has_page(list, WEB_SUMS))
        return false;
    for (size_t i = 0; i < pages->n; i++) {
        size_t then = kept_list_find(list, kept_page_text(pages, i));

        if (then < list->n && list->page[then].hash != pages->page[i].hash)
            return false;
    }
    return true;
}

/* The pages that are asked for. */
struct samples {
    struct http_ahead *ahead[SHARED_SAMPLES];
    size_t page[SHARED_SAMPLES], n_pages;
};

static void samples_release(struct samples *s)
{
    for (size_t i = 0; i < s->n_pages; i++)
        http_ahead_drop(&s->ahead[i]);
}

/* Ask for some pages that this mount has not read yet. */
static int web_kept_ask_pages(const struct source *source, const struct kept_list *pages,
                              const struct kept_list *list, struct samples *s)
{
    size_t number[SHARED_SAMPLES], n = shared_list_sample(list->n, number);

    for (size_t i = 0; i < n; i++) {
        const char *path = kept_page_text(list, number[i]);
        AUTO_FREE char *folder = NULL;

        if (!strcmp(path, WEB_SUMS) || has_page(pages, path))
            continue;
        if (text_print(&folder, "%s%s", path, *path ? "/" : "") < 0)
            return -ENOMEM;
        s->page[s->n_pages] = number[i];
        s->ahead[s->n_pages++] = remote_ask(source, folder);
    }
    return 0;
}

/* Are the pages that were asked for as they were? */
static bool take_pages(const struct kept_list *list, struct samples *s)
{
    bool same = true;

    for (size_t i = 0; i < s->n_pages && same; i++) {
        AUTO_TEXT struct text page = {0};

        same = http_ahead_take(TAKE_PTR(s->ahead[i]), &page, NULL, NULL) == 0 &&
               XXH3_64bits(page.data, page.len) == list->page[s->page[i]].hash;
    }
    return same;
}

/* Have some files the version that the list says? 1, 0 or -ENOMEM. */
static int compare_files(const struct source *source, const struct members *files)
{
    struct remote_version then[SHARED_SAMPLES];
    struct http_file now[SHARED_SAMPLES] = {0};
    size_t number[SHARED_SAMPLES], n = shared_list_sample(files->n, number);
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

int web_kept_shared(struct source *source, const struct kept_list *pages)
{
    AUTO(samples_release) struct samples s = {.n_pages = 0};
    AUTO_KEPT_LIST struct kept_list list = {0};
    int r = shared_list_load(source, &list);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (are_same(pages, &list)) {
        r = web_kept_ask_pages(source, pages, &list, &s);
        if (r == 0)
            r = compare_files(source, &list.files);
        if (r == 1 && !take_pages(&list, &s))
            r = 0;
    }
    if (r == 0)
        shared_list_refuse(source, "the files have changed since");
    if (r < 1)
        return r;
    known_release(&source->known);
    known_use(&source->known, &list);
    return 1;
}
