/* One thread at a time has the turn: it alone uses the fields below `taken`, and may ask the
 * server. What a caller got does not change any more.
 *
 * A listing of HTTP has no sizes. When a file is named, its size is asked for together with those
 * of the files that follow in the list, each time twice as many. So an scp that names one file
 * next to it costs one request, and one that names all files of a folder does not wait for each. */
#include "cache/source/beside.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/lock.h"
#include "cache/http/url.h"
#include "cache/source/remote.h"

#define AHEAD_MOST 1024

/* A file that the server was asked for, where there is no listing. */
struct asked {
    char *path;
    struct source_entry entry; /* version NULL: it is not there */
};

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
    void *asked;             /* a tree of struct asked, by path */
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
    struct asked *a = asked;

    if (!a)
        return;
    source_entry_release(&a->entry);
    free(a->path);
    free(a);
}

static void asked_scope_end(struct asked **asked)
{
    asked_free(*asked);
}

static int compare_asked(const void *a, const void *b)
{
    return strcmp(((const struct asked *)a)->path, ((const struct asked *)b)->path);
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

struct questions {
    struct http_file file[AHEAD_MOST];
    struct source_entry *entry[AHEAD_MOST];
    size_t n;
};

static void questions_add(struct questions *q, struct source_entry *entry)
{
    q->file[q->n].url = entry->url;
    q->entry[q->n++] = entry;
}

/* Ask for the versions. Returns the first one's result, with the reason in d. The others, if
 * unknown, are asked for again when they are needed. */
static int beside_ask(const struct source *source, struct questions *q, struct diag *d)
{
    http_stat(source->http, q->n, q->file);
    for (size_t i = 0; i < q->n; i++) {
        if (q->file[i].error < 0)
            continue;
        q->entry[i]->version = malloc(sizeof(*q->entry[i]->version));
        if (!q->entry[i]->version)
            return -ENOMEM;
        *q->entry[i]->version = q->file[i].version;
    }
    return q->file[0].error < 0
               ? diag_set(d, q->file[0].error, "%s", diag_text(&q->file[0].why, q->file[0].error))
               : 0;
}

static int find_listed(const struct source *source, struct beside *beside, const char *path,
                       const struct source_entry **ret, struct diag *d)
{
    struct source_list *list = &beside->list;
    struct source_entry *entry = source_list_find(list, path);
    AUTO_FREE struct questions *q = NULL;
    int r = 0;

    if (!entry)
        return -ENOENT;
    if (!entry->version && !entry->error) {
        q = calloc(1, sizeof(*q));
        if (!q)
            return -ENOMEM;
        for (struct source_entry *e = entry; e < list->entry + list->n && q->n < beside->ahead; e++)
            if (!e->version && !e->error)
                questions_add(q, e);
        if (beside->ahead < AHEAD_MOST)
            beside->ahead *= 2;
        r = beside_ask(source, q, d);
    }
    if (r == 0)
        *ret = entry;
    return r;
}

static int fill_asked(const struct source *source, const char *path, struct asked *ret)
{
    const char *slash = strrchr(path, '/');

    ret->path = strdup(path);
    ret->entry.folder = strndup(path, slash ? (size_t)(slash - path) : 0);
    ret->entry.name = strdup(slash ? slash + 1 : path);
    return ret->path && ret->entry.folder && ret->entry.name
               ? remote_url(source, path, &ret->entry.url)
               : -ENOMEM;
}

/* Ask the server, unless it was asked before. */
static int find_asked(const struct source *source, struct beside *beside, const char *path,
                      const struct source_entry **ret, struct diag *d)
{
    AUTO(asked_scope_end) struct asked *asked = NULL;
    const struct asked like = {.path = (char *)path};
    struct asked *const *found = tfind(&like, &beside->asked, compare_asked);
    AUTO_FREE struct questions *q = NULL;
    struct diag why = DIAG_INIT;
    int r;

    if (found && !(*found)->entry.version)
        return -ENOENT;
    if (found) {
        *ret = &(*found)->entry;
        return 0;
    }
    asked = calloc(1, sizeof(*asked));
    q = calloc(1, sizeof(*q));
    r = asked && q ? fill_asked(source, path, asked) : -ENOMEM;
    if (r < 0)
        return r;
    questions_add(q, &asked->entry);
    r = beside_ask(source, q, &why);
    if (r < 0 && r != -ENOENT)
        return diag_set(d, r, "%s", diag_text(&why, r));
    if (!tsearch(asked, &beside->asked, compare_asked))
        return -ENOMEM;
    if (r == 0)
        *ret = &asked->entry;
    asked = NULL;
    return r;
}

static int find_in_turn(const struct source *source, struct beside *beside, const char *path,
                        const struct source_entry **ret, struct diag *d)
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

int beside_find(const struct source *source, const char *path, const struct source_entry **ret,
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
