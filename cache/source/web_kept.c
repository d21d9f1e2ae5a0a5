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

#include "cache/source/joined.h"
#include "cache/source/kept_list.h"
#include "cache/source/listing.h"
#include "cache/source/shared_list.h"

#define SETTLED_S INT64_C(600) /* clocks of servers may be some minutes ahead */

/* Is the page of that folder as it was? */
static bool web_kept_is_same(const struct known *known, const struct known *kept, const char *path)
{
    size_t now = known_find_page(known, path), then = known_find_page(kept, path);

    return now < known->n_pages && then < kept->n_pages &&
           known->page[now].hash == kept->page[then].hash;
}

/* Set the version of file i from the kept list. 0; -ENOENT: it is not there. */
static int use_version(struct members *files, size_t i, const struct known *kept,
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

int web_kept_use(struct source *source)
{
    struct known *known = &source->known;
    struct members *files = &known->files;
    AUTO_KNOWN struct known kept = {0};
    AUTO_FREE uint8_t *keep = malloc(files->n + 1);
    AUTO_FREE uint64_t *size = calloc(files->n + 1, sizeof(*size));
    uint32_t folder = UINT32_MAX;
    bool all, same = false;
    int r = 0;

    known_sort_pages(known);
    if (!known->n_pages || files->n < LISTING_KEPT || kept_list_load(source, NULL, &kept) < 0)
        return 0;
    if (!keep || !size)
        return -ENOMEM;
    memset(keep, 1, files->n);
    all = web_kept_is_same(known, &kept, WEB_SUMS);
    for (size_t i = 0; i < files->n; i++) {
        if (files->member[i].folder != folder)
            same = all || web_kept_is_same(known, &kept, members_folder_of(files, i));
        folder = files->member[i].folder;
        r = same ? use_version(files, i, &kept, &size[i]) : 0;
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return known_keep(known, keep, size);
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

/* Only the pages that show all changes of their files remain. 0 or -ENOMEM. */
static int keep_settled(struct known *known, int64_t now)
{
    const struct members *files = &known->files;
    AUTO_FREE uint8_t *unsettled = calloc((size_t)files->n_folders + 1, 1);
    size_t kept = 0;

    if (!unsettled)
        return -ENOMEM;
    find_unsettled(files, now, unsettled);
    for (size_t i = 0; i < known->n_pages; i++) {
        const char *path = known_page_text(known, i);
        uint32_t folder = members_folder_number(files, path, strlen(path));

        if (folder < files->n_folders ? !unsettled[folder] : !strcmp(path, WEB_SUMS))
            known->page[kept++] = known->page[i];
    }
    known->n_pages = kept;
    return 0;
}

int web_kept_save(struct source *source, bool asked, int64_t now)
{
    struct known *known = &source->known;
    int r;

    if (!known->n_pages || known->bytes.bytes || known->files.n < LISTING_KEPT ||
        !(asked || source->indexes))
        return 0;
    r = keep_settled(known, now);
    if (r < 0 || !known->n_pages)
        return r;
    if (asked)
        kept_list_save(source, known);
    return shared_list_note(source);
}

/* ---- .epochfs/ ---- */

static bool has_sums(const struct known *known)
{
    return known_find_page(known, WEB_SUMS) < known->n_pages;
}

/* Are the pages of this mount that the list has as they were? Both are of a SHA256SUMS, or neither:
 * it may name other files than index pages do. */
static bool fits(const struct known *list, const struct known *so_far)
{
    if (!list->n_pages || has_sums(so_far) != has_sums(list))
        return false;
    for (size_t i = 0; i < so_far->n_pages; i++) {
        size_t then = known_find_page(list, known_page_text(so_far, i));

        if (then < list->n_pages && list->page[then].hash != so_far->page[i].hash)
            return false;
    }
    return true;
}

int web_folder_url(const struct source *source, const char *path, char **ret)
{
    AUTO_FREE char *folder = NULL;

    return text_print(&folder, "%s%s", path, *path ? "/" : "") < 0
               ? -ENOMEM
               : remote_url(source, folder, ret);
}

static int page_url(const void *source, const char *path, char **ret)
{
    return strcmp(path, WEB_SUMS) != 0 ? web_folder_url(source, path, ret) : -ENOENT;
}

int web_kept_shared(struct source *source)
{
    return shared_list_use(source, &(struct shared_check){.fits = fits,
                                                          .page_url = page_url,
                                                          .page_hash = XXH3_64bits,
                                                          .ctx = source,
                                                          .versions = true});
}
