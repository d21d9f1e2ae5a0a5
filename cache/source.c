#include "cache/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cache/unpack.h"

extern const struct remote remote_list, remote_file, remote_local;

/* The first that takes SOURCE has it. */
static const struct remote *const remotes[] = {&remote_list, &remote_file, &remote_local};

static bool takes(const struct remote *remote, const char *spec)
{
    return remote->takes ? remote->takes(spec)
                         : !strncmp(spec, remote->scheme, strlen(remote->scheme));
}

int source_open(const char *spec, struct source **ret, struct diag *d)
{
    for (size_t i = 0; i < ARRAY_LEN(remotes); i++) {
        if (takes(remotes[i], spec))
            return remotes[i]->make(remotes[i], spec + strlen(remotes[i]->scheme), ret, d);
    }
    return -EPROTONOSUPPORT;
}

void source_free(struct source *source)
{
    if (!source)
        return;
    free(source->root);
    free(source->spelled);
    free(source->only_file);
    free(source);
}

char *source_name(const struct source *source)
{
    const char *file = source->only_file ? source->only_file : "";
    const char *joint = *file && source->root[strlen(source->root) - 1] != '/' ? "/" : "";
    char *ret;

    return asprintf(&ret, "%s%s%s", source->root, joint, file) < 0 ? NULL : ret;
}

static int compare_entries(const void *a, const void *b)
{
    const struct source_entry *x = a, *y = b;
    int by_folder = strcmp(x->folder, y->folder);

    return by_folder ? by_folder : strcmp(x->name, y->name);
}

int source_list(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r = source->remote->list(source, sides, &list, d);

    if (r < 0)
        return r;
    if (list.n && !source->remote->ordered)
        qsort(list.entry, list.n, sizeof(list.entry[0]), compare_entries);
    *ret = list;
    list = (struct source_list){0};
    return 0;
}

int source_list_add(struct source_list *list, const char *folder, const char *name,
                    const char *path, const char *error)
{
    struct source_entry *entry;

    if (array_room(&list->entry, list->n, sizeof(*entry)) < 0)
        return -ENOMEM;
    entry = &list->entry[list->n++];
    entry->folder = strdup(folder);
    entry->name = strdup(name);
    entry->path = path ? strdup(path) : NULL;
    entry->error = error ? strdup(error) : NULL;
    return entry->folder && entry->name && (!path || entry->path) && (!error || entry->error)
               ? 0
               : -ENOMEM;
}

void source_list_release(struct source_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->entry[i].folder);
        free(list->entry[i].name);
        free(list->entry[i].path);
        free(list->entry[i].error);
    }
    free(list->entry);
    *list = (struct source_list){0};
}

int source_blob(const struct source *source, const struct source_entry *entry,
                struct cache_folder *cache, struct blob **ret_blob, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r;

    if (entry->error)
        return diag_set(d, -EIO, "%s", entry->error);
    r = source->remote->open(source, entry, &blob, d);
    if (r < 0)
        return r;
    r = unpack_blob(&blob, cache, d);
    if (r < 0)
        return r;
    *ret_blob = TAKE_PTR(blob);
    return 0;
}
