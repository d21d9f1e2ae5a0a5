/* The packed list of the files of SOURCE. */
#include "cache/source/known.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/search.h"
#include "cache/http/url.h"
#include "cache/source/joined.h"
#include "cache/source/remote.h"
#include "cache/source/sha256sums.h"

/* ---- making it ---- */

int known_add(struct known *known, const char *path, const struct remote_version *version)
{
    struct members *files = &known->files;
    uint32_t folder;
    int r = members_add_way(files, path, path_folder_len(path), &folder);

    if (r == 0)
        r = members_add(files, folder, path_name(path), version ? version->size : 0,
                        (const uint64_t[2]){0, 0});
    return r < 0 || !version ? r : joined_version_set(files, files->n - 1, version);
}

int known_add_folder(struct known *known, const char *path, size_t len)
{
    uint32_t folder;

    return members_add_way(&known->files, path, len, &folder);
}

int known_add_failed(struct known *known, const char *path, const char *error, int failure)
{
    return source_list_add(&known->failed, path, NULL, error, failure);
}

static void sort_failed(struct source_list *list)
{
    size_t kept = 0;

    source_list_sort(list);
    for (size_t i = 0; i < list->n; i++) {
        if (kept && !source_entry_compare(&list->entry[kept - 1], &list->entry[i]))
            source_entry_release(&list->entry[i]);
        else
            list->entry[kept++] = list->entry[i];
    }
    list->n = kept;
}

static bool is_twice(const struct members *m, size_t i)
{
    return i && m->member[i].folder == m->member[i - 1].folder &&
           !strcmp(members_name(m, i), members_name(m, i - 1));
}

int known_keep(struct known *known, const uint8_t *keep, const uint64_t *sizes)
{
    size_t n = known->files.n, kept = 0;
    int r = members_compact(&known->files, keep, sizes);

    sort_failed(&known->failed);
    for (size_t i = 0; i < n && r == 0 && known->sha256; i++)
        if (keep[i])
            memmove(known->sha256 + kept++ * SHA256_LEN, known->sha256 + i * SHA256_LEN,
                    SHA256_LEN);
    return r;
}

int known_sort(struct known *known)
{
    struct members *files = &known->files;
    AUTO_FREE uint8_t *keep = malloc(files->n + 1);
    int r = keep ? members_sort(files) : -ENOMEM;

    for (size_t i = 0; i < files->n && r == 0; i++)
        keep[i] = !is_twice(files, i);
    return r < 0 ? r : known_keep(known, keep, NULL);
}

int known_set_sha256(struct known *known, size_t i, const uint8_t *sha256)
{
    if (!known->sha256)
        known->sha256 = calloc(known->files.n, SHA256_LEN);
    if (!known->sha256)
        return -ENOMEM;
    if (!sum_at(known->sha256, i))
        memcpy(known->sha256 + i * SHA256_LEN, sha256, SHA256_LEN);
    return 0;
}

/* ---- pages ---- */

int known_add_page(struct known *known, const char *text, uint64_t hash)
{
    if (array_capacity(&known->page, known->n_pages, sizeof(*known->page)) < 0)
        return -ENOMEM;
    known->page[known->n_pages++] = (struct known_page){hash, known->texts.len};
    text_add_bytes(&known->texts, text, strlen(text) + 1);
    return known->texts.failed ? -ENOMEM : 0;
}

size_t known_find_page(const struct known *known, const char *text)
{
    size_t i = SEARCH(known->n_pages, k, strcmp(known_page_text(known, k), text) < 0);

    return i < known->n_pages && !strcmp(known_page_text(known, i), text) ? i : known->n_pages;
}

static int compare_pages(const void *a, const void *b, void *texts)
{
    return strcmp((char *)texts + ((const struct known_page *)a)->text,
                  (char *)texts + ((const struct known_page *)b)->text);
}

void known_sort_pages(struct known *known)
{
    size_t kept = 0;

    if (known->bytes.bytes) /* they are sorted */
        return;
    if (known->n_pages)
        qsort_r(known->page, known->n_pages, sizeof(*known->page), compare_pages,
                known->texts.data);
    for (size_t i = 0; i < known->n_pages; i++)
        if (!kept || strcmp(known_page_text(known, kept - 1), known_page_text(known, i)) != 0)
            known->page[kept++] = known->page[i];
    known->n_pages = kept;
}

void known_replace(struct known *known, struct known *by)
{
    known_release(known);
    *known = *by;
    *by = (struct known){0};
}

/* ---- asking ---- */

size_t known_index(const struct known *known, const char *path)
{
    return members_lookup(&known->files, path, path_folder_len(path), path_name(path));
}

int remote_url(const struct source *source, const char *path, char **ret)
{
    AUTO_TEXT struct text url = {0};

    text_add(&url, "%s", source->base);
    http_encode(&url, path, true);
    return text_finish(&url, ret, NULL);
}

struct http_ahead *remote_ask(const struct source *source, const char *path)
{
    char *url = NULL;

    remote_url(source, path, &url);
    return http_ahead_start(source->http, url, REMOTE_TEXT_MOST, 0);
}

int known_url(const struct source *source, const struct members *m, size_t i, char **ret)
{
    char path[PATH_MAX];
    int r = source->known.only_url ? 0 : members_path(m, i, path, sizeof(path));

    if (r == 0 && !source->known.only_url)
        return remote_url(source, path, ret);
    return r < 0 ? r : text_print(ret, "%s", source->known.only_url);
}

/* Make an entry of file i of a table. */
static int make_entry(const struct source *source, const struct members *m, const uint8_t *sha256,
                      size_t i, struct source_entry *ret)
{
    AUTO_FREE char *url = NULL;
    struct remote_version version;
    struct source_entry entry = {.folder = (char *)(uintptr_t)members_folder_of(m, i),
                                 .name = (char *)(uintptr_t)members_name(m, i),
                                 .sha256 = (uint8_t *)(uintptr_t)sum_at(sha256, i)};
    int r = source->base ? known_url(source, m, i, &url) : 0;

    entry.url = url;
    if (source->base && joined_version_get(m, i, &version))
        entry.version = &version;
    return r < 0 ? r : source_entry_copy(&entry, ret);
}

int known_entry(const struct source *source, const struct known *known, size_t i,
                struct source_entry *ret)
{
    return make_entry(source, &known->files, known->sha256, i, ret);
}

int known_list(const struct source *source, const struct known *known, const uint8_t *taken,
               struct source_list *ret)
{
    int r = 0;

    for (size_t i = 0; i < known->files.n + known->failed.n && r == 0; i++) {
        struct source_entry entry;

        if (taken && taken[i])
            continue;
        r = i < known->files.n
                ? known_entry(source, known, i, &entry)
                : source_entry_copy(&known->failed.entry[i - known->files.n], &entry);
        if (r == 0)
            r = source_list_take(ret, &entry);
    }
    if (r < 0)
        source_list_release(ret);
    source_list_sort(ret);
    return r;
}

/* ---- what collections have taken ---- */

static int compare_members(const void *a, const void *b, void *members)
{
    const struct members *m = members;
    size_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    int order = members_compare_paths(members_folder_of(m, i), members_folder_of(m, k));

    return order ? order : strcmp(members_name(m, i), members_name(m, k));
}

/* The order of member i and a path. */
static int known_compare_path(const struct members *m, size_t i, const char *path)
{
    int order = members_compare_to(members_folder_of(m, i), path, path_folder_len(path));

    return order ? order : strcmp(members_name(m, i), path_name(path));
}

static int make_by_path(struct known_part *part)
{
    const struct members *m = part->members;

    part->by_path = calloc(m->n + 1, sizeof(*part->by_path));
    if (!part->by_path)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        part->by_path[i] = (uint32_t)i;
    qsort_r(part->by_path, m->n, sizeof(*part->by_path), compare_members,
            (void *)(uintptr_t)part->members);
    return 0;
}

/* Look for a file in a part. 0, and *ret is its number; -ENOENT; -ENOMEM. */
static int find_in_part(struct known_part *part, const char *path, size_t *ret)
{
    const struct members *m = part->members;
    size_t at;

    if (!part->by_path && make_by_path(part) < 0)
        return -ENOMEM;
    at = SEARCH(m->n, k, known_compare_path(m, part->by_path[k], path) < 0);
    if (at == m->n || known_compare_path(m, part->by_path[at], path) != 0)
        return -ENOENT;
    *ret = part->by_path[at];
    return 0;
}

int known_find(const struct source *source, const char *path, struct source_entry *ret)
{
    const struct known *known = &source->known;
    const struct source_entry *failed;
    size_t i = known_index(known, path);
    int r = -ENOENT;

    if (i < known->files.n)
        return known_entry(source, known, i, ret);
    failed = source_list_find(&known->failed, path);
    if (failed)
        return source_entry_copy(failed, ret);
    for (size_t p = 0; p < known->n_parts && r == -ENOENT; p++) {
        struct known_part *part = &known->part[p];

        lock_take(known->lock);
        r = find_in_part(part, path, &i);
        lock_drop(known->lock);
        if (r == 0)
            return make_entry(source, part->members, part->sha256, i, ret);
    }
    return r;
}

int known_taken(struct known *known, const struct members *members, const uint8_t *sha256)
{
    if (!known->lock) {
        known->lock = calloc(1, sizeof(*known->lock));
        if (!known->lock)
            return -ENOMEM;
        lock_init(known->lock);
    }
    if (array_capacity(&known->part, known->n_parts, sizeof(*known->part)) < 0)
        return -ENOMEM;
    known->part[known->n_parts++] = (struct known_part){.members = members, .sha256 = sha256};
    return 0;
}

int known_drop(struct known *known, const uint8_t *taken)
{
    AUTO_FREE uint32_t *file = calloc(known->files.n + 1, sizeof(*file));
    struct members left;
    uint8_t *shorter;
    size_t n = 0;
    int r;

    if (!file)
        return -ENOMEM;
    for (size_t i = 0; i < known->files.n; i++)
        if (!taken[i])
            file[n++] = (uint32_t)i;
    r = members_pick(&known->files, "", file, n, &left);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n && known->sha256; i++)
        memmove(known->sha256 + i * SHA256_LEN, known->sha256 + file[i] * SHA256_LEN, SHA256_LEN);
    shorter = known->sha256 ? realloc(known->sha256, (n + 1) * SHA256_LEN) : NULL;
    known->sha256 = shorter ? shorter : known->sha256;
    members_release(&known->files);
    if (known->bytes.bytes) { /* all else that was in them is of the listing */
        known->folder = NULL;
        known->page = NULL;
        known->n_pages = 0;
        known->texts = (struct text){0};
    }
    kept_index_release(&known->bytes);
    known->files = left;
    return 0;
}

void known_release(struct known *known)
{
    members_release(&known->files);
    if (!known->bytes.bytes) {
        free(known->folder);
        free(known->page);
        text_release(&known->texts);
    }
    kept_index_release(&known->bytes);
    free(known->sha256);
    source_list_release(&known->failed);
    free(known->only_url);
    for (size_t i = 0; i < known->n_parts; i++)
        free(known->part[i].by_path);
    free(known->part);
    if (known->lock)
        lock_release(known->lock);
    free(known->lock);
    *known = (struct known){0};
}
