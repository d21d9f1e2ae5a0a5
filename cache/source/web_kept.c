/* Index pages have neither sizes nor ETags that one can count on, but those of nginx and Apache
 * show the time of each file, to the minute. A file that is replaced has another time, so its page
 * has other bytes. What this cannot show: a file that was replaced within the minute of its time
 * (so a page counts only when the times of all its files are some minutes old), or that was given
 * its old time. Such a file gives -ESTALE when it is read, for requests name the version; then what
 * is kept is dropped, and the next mount asks for all versions. */
#include "cache/source/web_kept.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cache/source/joined.h"
#include "cache/source/listing.h"

#define SETTLED_S INT64_C(600) /* clocks of servers may be some minutes ahead */

int web_kept_add(struct kept_pages *pages, const char *folder, const struct text *page)
{
    size_t len = strlen(folder);
    AUTO_FREE char *path = strndup(folder, len ? len - 1 : 0);

    return path ? kept_pages_add(pages, path, XXH3_64bits(page->data, page->len)) : -ENOMEM;
}

/* same[f]: the page of folder f is as it was. */
static void find_same(const struct members *files, const struct kept_pages *pages,
                      const struct kept_pages *kept, uint8_t *same)
{
    for (uint32_t f = 0; f < files->n_folders; f++) {
        const char *path = members_folder(files, f);
        size_t now = kept_pages_find(pages, path), then = kept_pages_find(kept, path);

        same[f] =
            now < pages->n && then < kept->n && pages->page[now].hash == kept->page[then].hash;
    }
}

/* Set the version of file i from the kept list. 0; -ENOENT: it is not there. */
static int use_version(struct members *files, size_t i, const struct kept_pages *kept,
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

static int use_versions(struct known *known, const struct kept_pages *pages,
                        const struct kept_pages *kept)
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

int web_kept_use(struct source *source, struct kept_pages *pages)
{
    AUTO_KEPT_PAGES struct kept_pages kept = {0};

    kept_pages_sort(pages);
    if (!pages->n || source->known.files.n < LISTING_KEPT || kept_pages_load(source, &kept) < 0)
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

void web_kept_save(const struct source *source, struct kept_pages *pages, int64_t now)
{
    const struct members *files = &source->known.files;
    AUTO_KEPT_PAGES struct kept_pages settled = {0};
    AUTO_FREE uint8_t *unsettled = calloc((size_t)files->n_folders + 1, 1);
    int r = unsettled ? 0 : -ENOMEM;

    if (r < 0 || !pages->n || files->n < LISTING_KEPT)
        return;
    find_unsettled(files, now, unsettled);
    for (uint32_t f = 0; f < files->n_folders && r == 0; f++) {
        const char *path = members_folder(files, f);
        size_t i = kept_pages_find(pages, path);

        if (i < pages->n && !unsettled[f])
            r = kept_pages_add(&settled, path, pages->page[i].hash);
    }
    if (r == 0 && settled.n)
        kept_pages_save(source, &settled, files);
}
