/* Finds the file of a remote SOURCE that a path in one of its files means. No path leads out of the
 * folder of SOURCE: ".." is removed before any lookup, and the file is then found in a list, or
 * asked for below that folder.
 *
 * If SOURCE is one file that names others, as an scp names its archives, the files next to it are
 * looked up when the first is named: if the folder has a listing, it decides; otherwise the server
 * is asked for each file. One thread at a time has the turn: it alone uses the fields below
 * `taken`, and may ask the server.
 *
 * A listing of HTTP has no sizes. When a file is named, epochfs asks for its size and for those of
 * the files after it in the list: for one file at first, then for two, four, eight. So an scp that
 * names one file costs one request, and one that names a whole folder seldom waits. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "cache/http/url.h"
#include "cache/source/remote.h"

/* ---- next to a SOURCE that is one file ---- */

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
    void *asked; /* without a listing: a tree of tsearch() of struct source_entry, for files that
                    were asked for (version NULL, failure -ENOENT: the file is missing) */
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

static void asked_free(void *entry)
{
    source_entry_release(entry);
    free(entry);
}

void beside_free(struct beside *beside)
{
    if (!beside)
        return;
    source_list_release(&beside->list);
    tdestroy(beside->asked, asked_free);
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

/* The entry of a file that is asked for without a listing. NULL: no memory. */
static struct source_entry *beside_asked(const struct source *source, struct beside *beside,
                                         const char *path)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    struct source_entry *made = calloc(1, sizeof(*made)), **found;

    if (!made || source_list_add(&list, path, NULL, NULL, 0) < 0 ||
        remote_url(source, path, &list.entry[0].url) < 0) {
        free(made);
        return NULL;
    }
    *made = list.entry[--list.n];
    found = tsearch(made, &beside->asked, source_entry_compare);
    if (!found || *found != made)
        asked_free(made);
    return found ? *found : NULL;
}

/* List the files next to SOURCE. 0; -ENOMEM; or another -errno: they cannot be known. */
static int list_beside(const struct source *first, struct source_list *ret)
{
    struct source source = {.remote = first->remote,
                            .cache = first->cache,
                            .root = first->root,
                            .base = first->base,
                            .http = first->http,
                            .listing = first->listing,
                            .credentials = first->credentials,
                            .indexes = true}; /* no list next to the data is used */
    int r = first->remote->list_beside ? first->remote->list_beside(&source) : 0;

    r = r > 0 ? known_sort(&source.known) : r < 0 ? r : -ENOENT;
    if (r == 0)
        r = known_list(&source, &source.known, NULL, ret);
    text_release(&source.note);
    known_release(&source.known);
    return r;
}

static int find_in_turn(const struct source *source, struct beside *beside, const char *path,
                        struct source_entry *ret, struct diag *d)
{
    struct source_list *list = &beside->list;
    struct source_entry *entry;
    struct diag why = DIAG_INIT;
    int r = beside->looked ? 0 : list_beside(source, list);

    if (r == -ENOMEM)
        return r;
    beside->listed = beside->looked ? beside->listed : r == 0;
    beside->looked = true;
    entry = beside->listed ? source_list_find(list, path) : beside_asked(source, beside, path);
    if (!entry)
        return beside->listed ? -ENOENT : -ENOMEM;
    r = 0;
    if (!entry->version && !entry->error && (beside->listed || entry->failure != -ENOENT)) {
        size_t left = beside->listed ? (size_t)(list->entry + list->n - entry) : 1;

        r = beside_ask(source, entry, (size_t)min_u64(beside->ahead, left), &why);
        if (beside->ahead < AHEAD_MOST)
            beside->ahead *= 2;
    }
    if (r < 0 && (beside->listed || r != -ENOENT))
        return diag_set(d, r, "%s", diag_text(&why, r));
    return entry->version || entry->error ? source_entry_copy(entry, ret) : -ENOENT;
}

/* Find the file at path, relative to the folder of SOURCE. 0, and the caller releases *ret;
 * -ENOENT; or -errno with the reason in d: the next call asks again. Blocks. Any thread. */
static int beside_find(const struct source *source, const char *path, struct source_entry *ret,
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

/* ---- what a path means ---- */

/* What is looked for. */
struct sought {
    const struct source *source;
    char root[PATH_MAX]; /* the path of SOURCE on its server, decoded and normalised */
    struct source_entry *ret;
    struct diag *d;
};

static bool root_path(const struct source *source, char ret[static PATH_MAX])
{
    const char *path = strstr(source->root, "://") + 3;
    char decoded[PATH_MAX];

    if (!source->remote->paths_decoded) {
        path += strcspn(path, "/");
        if (strlen(path) >= PATH_MAX)
            return false;
        if (url_decode(path, strlen(path), decoded)) /* otherwise its '%' is no escape */
            path = decoded;
    }
    return path_join("", 0, path, ret) == 0;
}

/* Find the file at a path on the server, normalised. 1; 0: it is not in SOURCE; or -errno. */
static int look_on_server(void *user, const char *path)
{
    const struct sought *s = user;
    size_t len = s->root[1] ? strlen(s->root) : 0;
    int r;

    if (strncmp(path, s->root, len) != 0 || path[len] != '/' || !path[len + 1])
        return 0;
    r = known_find(s->source, path + len + 1, s->ret);
    if (r == -ENOENT && s->source->beside)
        r = beside_find(s->source, path + len + 1, s->ret, s->d);
    return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

/* The same for the path relative to SOURCE. */
static int look_below(struct sought *s, const char *path)
{
    char whole[PATH_MAX];

    return path_join(s->root, strlen(s->root), path, whole) == 0 ? look_on_server(s, whole) : 0;
}

/* Find what a URL names. *ret_outside: it does not begin with SOURCE's URL. */
static int find_url(struct sought *s, const char *url, bool *outside)
{
    size_t len = strlen(s->source->root);
    char decoded[PATH_MAX];
    int r;

    *outside = strncmp(url, s->source->root, len) != 0;
    if (*outside)
        return 0;
    url += len;
    r = look_below(s, url);
    return !r && strchr(url, '%') && strlen(url) < sizeof(decoded) &&
                   url_decode(url, strlen(url), decoded)
               ? look_below(s, decoded)
               : r;
}

int remote_find(const struct source *source, const char *folder, const char *path,
                struct source_entry *ret, struct diag *d)
{
    struct sought sought = {.source = source, .ret = ret, .d = d};
    bool outside = *path == '/';
    int r = 0;
    char shown[512];

    name_show(path, shown, sizeof(shown));
    shown[strstr(shown, "://") ? strcspn(shown, "?") : strlen(shown)] = '\0';
    if (!*path)
        return diag_set(d, -EINVAL, "'': expected a path, got nothing");
    if (!root_path(source, sought.root))
        return diag_set(d, -ENAMETOOLONG, "%s: its path is too long", source->root);
    if (strstr(path, "://"))
        r = find_url(&sought, path, &outside);
    else if (!outside) /* lists are often made above SOURCE */
        r = path_upwards(sought.root, folder, path, look_on_server, &sought);
    if (outside)
        return diag_set(d, -EACCES, "%s: lies outside of SOURCE, %s%s", shown, source->root,
                        *path == '/' ? "; mount with -o allow_outside to read files of this machine"
                                     : "");
    if (!r)
        return diag_set(d, -ENOENT,
                        "%s: expected a file of %s, got none of that path there, nor in the folder "
                        "that names it or above",
                        shown, source->root);
    return r < 0 ? r : 0;
}
