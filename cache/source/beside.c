/* One thread at a time has the turn: it alone uses the fields below `taken`, and may ask the
 * server.
 *
 * A listing of HTTP has no sizes. When a file is named, its size is asked for together with those
 * of the files that follow in the list, each time twice as many. So an scp that names one file
 * next to it costs one request, and one that names all files of a folder does not wait for each. */
#include "cache/source/beside.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "cache/http/url.h"
#include "cache/source/remote.h"

#define AHEAD_MOST 1024

struct beside {
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    bool taken; /* a thread has the turn */
    /* Belong to the thread that has the turn: */
    bool looked;             /* a listing was looked for */
    bool listed;             /* there is a listing: */
    struct source_list list; /* sorted */
    size_t ahead;            /* files to ask for next */
    void *asked; /* without a listing: a tree of struct source_entry by their URLs, each asked for;
                    version NULL, failure -ENOENT: it is not there */
};

int beside_new(struct beside **ret)
{
    struct beside *beside = calloc(1, sizeof(*beside));

    if (!beside)
        return -ENOMEM;
    lock_init(&beside->lock);
    condition_init(&beside->changed);
    beside->ahead = 1;
    *ret = beside;
    return 0;
}

static void asked_free(void *asked)
{
    source_entry_release(asked);
    free(asked);
}

static int compare_asked(const void *a, const void *b)
{
    return strcmp(((const struct source_entry *)a)->url, ((const struct source_entry *)b)->url);
}

void beside_free(struct beside *beside)
{
    if (!beside)
        return;
    tdestroy(beside->asked, asked_free);
    source_list_release(&beside->list);
    pthread_cond_destroy(&beside->changed);
    lock_release(&beside->lock);
    free(beside);
}

static void take_turn(struct beside *beside)
{
    LOCK_SCOPE(&beside->lock);

    while (beside->taken)
        lock_wait(&beside->lock, &beside->changed);
    beside->taken = true;
}

static void give_turn_back(struct beside *beside)
{
    LOCK_SCOPE(&beside->lock);

    beside->taken = false;
    pthread_cond_signal(&beside->changed);
}

/* Ask for the versions of some files. Returns the first one's result, with the reason in d. The
 * others, if unknown, are asked for again when they are needed. */
static int beside_ask(const struct source *source, struct source_entry *entry, size_t n,
                      struct diag *d)
{
    int r = remote_stat_list(source, &(struct source_list){n, entry});

    if (r == 0 && entry->error)
        r = diag_set(d, entry->failure, "%s", entry->error);
    for (size_t i = 0; i < n; i++)
        if (entry[i].url) /* others are listed with their error */
            free(TAKE_PTR(entry[i].error));
    return r;
}

static int find_listed(const struct source *source, struct beside *beside, const char *path,
                       struct source_entry *ret, struct diag *d)
{
    const struct source_list *list = &beside->list;
    struct source_entry *entry = source_list_find(list, path);
    int r = 0;

    if (!entry)
        return -ENOENT;
    if (!entry->version && !entry->error) {
        size_t left = (size_t)(list->entry + list->n - entry);

        r = beside_ask(source, entry, (size_t)min_u64(beside->ahead, left), d);
        if (beside->ahead < AHEAD_MOST)
            beside->ahead *= 2;
    }
    return r < 0 ? r : source_entry_copy(entry, ret);
}

/* Ask the server, unless it was asked before. */
static int find_asked(const struct source *source, struct beside *beside, const char *path,
                      struct source_entry *ret, struct diag *d)
{
    const char *slash = strrchr(path, '/');
    AUTO_SOURCE_LIST struct source_list one = {0};
    AUTO_FREE char *folder = strndup(path, slash ? (size_t)(slash - path) : 0);
    struct diag why = DIAG_INIT;
    struct source_entry **found;
    int r = folder ? source_list_add(&one, folder, slash ? slash + 1 : path, NULL, NULL) : -ENOMEM;

    if (r == 0)
        r = remote_url(source, path, &one.entry->url);
    found = r == 0 ? tsearch(one.entry, &beside->asked, compare_asked) : NULL;
    if (!found)
        return -ENOMEM;
    if (*found == one.entry)
        one = (struct source_list){0}; /* the tree has it */
    if (!(*found)->version && (*found)->failure != -ENOENT)
        r = beside_ask(source, *found, 1, &why);
    if (r < 0 && r != -ENOENT)
        return diag_set(d, r, "%s", diag_text(&why, r));
    return (*found)->version ? source_entry_copy(*found, ret) : -ENOENT;
}

static int find_in_turn(const struct source *source, struct beside *beside, const char *path,
                        struct source_entry *ret, struct diag *d)
{
    if (!beside->looked) {
        int r =
            source->remote->list_beside ? source->remote->list_beside(source, &beside->list) : 0;

        if (r < 0)
            return r;
        beside->looked = true;
        beside->listed = r > 0;
    }
    return (beside->listed ? find_listed : find_asked)(source, beside, path, ret, d);
}

int beside_find(const struct source *source, const char *path, struct source_entry *ret,
                struct diag *d)
{
    int r;

    if (name_wrong(path) || name_hidden(path))
        return -ENOENT;
    take_turn(source->beside);
    r = find_in_turn(source, source->beside, path, ret, d);
    give_turn_back(source->beside);
    return r;
}
