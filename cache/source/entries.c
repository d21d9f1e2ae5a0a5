/* Lists of the files of a source. */
#include "cache/source/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cache/source/sha256sums.h"
#include "cache/stage/transport.h"

static int compare_entries(const void *a, const void *b)
{
    const struct source_entry *x = a, *y = b;
    int by_folder = strcmp(x->folder, y->folder);

    return by_folder ? by_folder : strcmp(x->name, y->name);
}

void source_list_sort(struct source_list *list)
{
    if (list->n)
        qsort(list->entry, list->n, sizeof(list->entry[0]), compare_entries);
}

static int compare_path(const void *path, const void *element)
{
    const struct source_entry *entry = element;
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - (const char *)path) : 0;
    int by_folder = strncmp(path, entry->folder, len);

    if (!by_folder && entry->folder[len])
        by_folder = -1;
    return by_folder ? by_folder : strcmp(slash ? slash + 1 : path, entry->name);
}

struct source_entry *source_list_find(const struct source_list *list, const char *path)
{
    return list->n ? bsearch(path, list->entry, list->n, sizeof(*list->entry), compare_path) : NULL;
}

int source_list_add(struct source_list *list, const char *folder, const char *name,
                    const char *path, const char *error)
{
    struct source_entry *entry;

    if (array_capacity(&list->entry, list->n, sizeof(*entry)) < 0)
        return -ENOMEM;
    entry = &list->entry[list->n++];
    *entry = (struct source_entry){0};
    entry->folder = strdup(folder);
    entry->name = strdup(name);
    entry->path = path ? strdup(path) : NULL;
    entry->error = error ? strdup(error) : NULL;
    entry->failure = error ? -EINVAL : 0;
    return entry->folder && entry->name && (!path || entry->path) && (!error || entry->error)
               ? 0
               : -ENOMEM;
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

int source_entry_copy(const struct source_entry *from, struct source_entry *ret)
{
    AUTO_SOURCE_LIST struct source_list one = {0};
    struct source_entry *to;
    int r = source_list_add(&one, from->folder, from->name, from->path, from->error);

    if (r < 0)
        return r;
    to = &one.entry[0];
    to->failure = from->failure;
    to->url = from->url ? strdup(from->url) : NULL;
    to->version = from->version ? malloc(sizeof(*to->version)) : NULL;
    to->sha256 = from->sha256 ? malloc(SHA256_LEN) : NULL;
    if ((from->url && !to->url) || (from->version && !to->version) || (from->sha256 && !to->sha256))
        return -ENOMEM;
    if (to->version)
        *to->version = *from->version;
    if (to->sha256)
        memcpy(to->sha256, from->sha256, SHA256_LEN);
    *ret = one.entry[--one.n];
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
