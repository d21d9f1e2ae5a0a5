/* Lists of the files of a source. */
#include "cache/source/entries.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cache/source/sha256sums.h"
#include "cache/stage/transport.h"

int source_entry_compare(const void *a, const void *b)
{
    const struct source_entry *x = a, *y = b;
    int by_folder = strcmp(x->folder, y->folder);

    return by_folder ? by_folder : strcmp(x->name, y->name);
}

void source_list_sort(struct source_list *list)
{
    if (list->n)
        qsort(list->entry, list->n, sizeof(list->entry[0]), source_entry_compare);
}

size_t path_folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int compare_path(const void *path, const void *element)
{
    const struct source_entry *entry = element;
    size_t len = path_folder_len(path);
    int by_folder = strncmp(path, entry->folder, len);

    if (!by_folder && entry->folder[len])
        by_folder = -1;
    return by_folder ? by_folder : strcmp(path_name(path), entry->name);
}

struct source_entry *source_list_find(const struct source_list *list, const char *path)
{
    return list->n ? bsearch(path, list->entry, list->n, sizeof(*list->entry), compare_path) : NULL;
}

int source_list_add(struct source_list *list, const char *below, const char *path,
                    const char *error, int failure)
{
    AUTO_FREE char *folder = strndup(below, path_folder_len(below));
    const struct source_entry from = {.folder = folder,
                                      .name = (char *)(uintptr_t)path_name(below),
                                      .path = (char *)(uintptr_t)path,
                                      .error = (char *)(uintptr_t)error,
                                      .failure = failure};
    struct source_entry entry;

    return !folder || source_entry_copy(&from, &entry) < 0 ? -ENOMEM
                                                           : source_list_take(list, &entry);
}

int source_list_take(struct source_list *list, struct source_entry *entry)
{
    if (array_capacity(&list->entry, list->n, sizeof(*entry)) < 0) {
        source_entry_release(entry);
        return -ENOMEM;
    }
    list->entry[list->n++] = *entry;
    *entry = (struct source_entry){0};
    return 0;
}

/* A copy of len bytes, or of a text if len is 0; NULL of NULL. *failed: no memory. */
static void *copy_of(const void *from, size_t len, bool *failed)
{
    size_t n = len || !from ? len : strlen(from) + 1;
    void *to = from ? malloc(n) : NULL;

    *failed = *failed || (from && !to);
    return to ? memcpy(to, from, n) : NULL;
}

int source_entry_copy(const struct source_entry *from, struct source_entry *ret)
{
    bool failed = false;
    AUTO_SOURCE_ENTRY struct source_entry to = {
        .folder = copy_of(from->folder, 0, &failed),
        .name = copy_of(from->name, 0, &failed),
        .path = copy_of(from->path, 0, &failed),
        .error = copy_of(from->error, 0, &failed),
        .failure = from->failure,
        .url = copy_of(from->url, 0, &failed),
        .version = copy_of(from->version, sizeof(*from->version), &failed),
        .sha256 = copy_of(from->sha256, SHA256_LEN, &failed)};

    if (failed)
        return -ENOMEM;
    *ret = to;
    to = (struct source_entry){0};
    return 0;
}

void source_entry_release(struct source_entry *entry)
{
    free(entry->folder);
    free(entry->name);
    free(entry->path);
    free(entry->error);
    free(entry->url);
    free(entry->version);
    free(entry->sha256);
    *entry = (struct source_entry){0};
}

void source_list_release(struct source_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        source_entry_release(&list->entry[i]);
    free(list->entry);
    *list = (struct source_list){0};
}
