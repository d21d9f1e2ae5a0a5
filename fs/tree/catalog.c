#include "fs/tree/catalog.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/readers.h"
#include "base/text.h"
#include "cache/pack/unpack.h"
#include "format/foreign.h"
#include "format/registry.h"
#include "fs/log/log.h"

#define MEMO_BYTES  (64u << 20) /* of decoded samples */
#define WHOLE_MOST  65536       /* bytes of a file fetched whole, if there are few files */
#define HEADS_AHEAD 64          /* files whose heads are fetched ahead */
#define SIDES_MAX   32          /* suffixes of side files, of all formats */

/* Reserved names at the top of the mount. */
static const char *const reserved[] = {"README.txt", ".epochfs"};

void catalog_release(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++) {
        free(catalog->item[i].folder);
        free(catalog->item[i].name);
        dataset_free(catalog->item[i].ds);
        free(catalog->item[i].error);
    }
    free(catalog->item);
    if (catalog->tools) {
        pool_free(catalog->tools->setup.pool);
        memo_free(catalog->tools->setup.memo);
        cache_opener_release(&catalog->tools->opener);
        cache_folder_release(&catalog->tools->cache);
        free(catalog->tools);
    }
    *catalog = (struct catalog){0};
}

/* The files of one folder, while formats examine them. */
struct folder_scan {
    struct finds finds;
    struct catalog *catalog;
    const struct source *source;
    const char *folder;
    const struct source_entry *entry; /* [n] those of the folder */
    size_t n;
    const struct source_entry *end;     /* of the entries of all folders */
    const struct source_entry *fetched; /* the heads of the entries before it have been requested */
};

/* The name without .gz or .xz; the caller frees it. NULL: no memory. */
static char *unpacked_name(const char *name)
{
    return strndup(name, unpacked_name_len(name));
}

static void find_access(const struct folder_scan *scan, const char *name, struct access *ret)
{
    AUTO_FREE char *path = NULL;

    *ret = (struct access){0};
    if (asprintf(&path, "%s%s%s", scan->folder, *scan->folder ? "/" : "", name) < 0)
        path = NULL;
    else
        source_access(scan->source, path, ret);
}

/* Takes ds over. */
static int add_item(struct folder_scan *scan, const char *name, struct dataset *ds,
                    const char *error)
{
    struct catalog *catalog = scan->catalog;
    struct catalog_item item = {.ds = ds};

    if (array_capacity(&catalog->item, catalog->n, sizeof(item)) < 0) {
        dataset_free(ds);
        return -ENOMEM;
    }
    item.name = strdup(name);
    item.folder = strdup(scan->folder);
    item.error = error ? strdup(error) : NULL;
    if (item.error)
        text_plain(item.error, "\n");
    if (error && catalog->source)
        find_access(scan, name, &item.access);
    catalog->item[catalog->n++] = item;
    catalog->n_datasets += ds != NULL;
    return item.name && item.folder && (!error || item.error) ? 0 : -ENOMEM;
}

static int found_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    return add_item((struct folder_scan *)finds, name, ds, NULL);
}

static int found_error(struct finds *finds, const char *name, const char *reason)
{
    return add_item((struct folder_scan *)finds, name, NULL, reason);
}

static int found_failed(struct finds *finds, const char *file_name, int error, const char *reason)
{
    struct unread_file unread = {0};

    if (error == -ENOMEM)
        return error;
    if (blob_may_pass(error)) {
        if (array_capacity(&finds->unread, finds->n_unread, sizeof(unread)) < 0)
            return -ENOMEM;
        unread = (struct unread_file){unpacked_name(file_name), strdup(reason)};
        finds->unread[finds->n_unread++] = unread;
        if (!unread.name || !unread.reason)
            return -ENOMEM;
    }
    return found_error(finds, file_name, reason);
}

static void finds_release(struct finds *finds)
{
    for (size_t i = 0; i < finds->n_unread; i++) {
        free(finds->unread[i].name);
        free(finds->unread[i].reason);
    }
    free(finds->unread);
}

/* Text that replaces content stored elsewhere. */
static const struct pointer {
    const char *start;
    const char *what;
    const char *remedy;
} pointers[] = {
    {"version https://git-lfs", "a git-lfs pointer", "git lfs pull"},
    {"/annex/objects/", "a git-annex pointer", "git annex get"},
};

/* Describe why a file that no format takes cannot be used. Returns a -errno that says whether
 * another machine may have the content, as with a pointer. */
static int describe_unknown(const struct blob *blob, const struct probed_file *file, struct text *t)
{
    const uint8_t *head = file->head;
    const char *kind;
    size_t len = file->len;

    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        const struct pointer *p = &pointers[i];

        if (len >= strlen(p->start) && !memcmp(head, p->start, strlen(p->start))) {
            text_add(t,
                     "%s: byte 0: want data, found %s whose content is not here; fetch it with "
                     "`%s`",
                     blob_name(blob), p->what, p->remedy);
            return -ENOMEDIUM;
        }
    }
    if (!blob->size) {
        text_add(t, "%s: byte 0: want data, found an empty file", blob_name(blob));
        return -EBADMSG;
    }
    kind = foreign_kind(file);
    if (kind) {
        text_add(t, "%s: %s, which epochfs does not read; it reads ", blob_name(blob), kind);
        foreign_add_readable(t);
        return -EBADMSG;
    }
    text_add(t, "%s: byte 0: want ", blob_name(blob));
    for (unsigned i = 0; i < n_formats; i++)
        text_add(t, "%s%s", i ? " or " : "", formats[i]->start);
    text_add(t, ", found");
    for (size_t i = 0; i < min_u64(len, 4); i++)
        text_add(t, " %02x", head[i]);
    return -EBADMSG;
}

/* The format that takes a file; n_formats: none; the reason was reported, or the file is set aside.
 */
static int find_format(struct folder_scan *scan, const char *file_name, const char *name,
                       const struct blob *blob, unsigned *ret_format)
{
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), blob->size);
    const struct probed_file file = {name, head, len, len == blob->size};
    enum claim best = CLAIM_NONE;
    AUTO_TEXT struct text t = {0};
    AUTO_FREE char *reason = NULL;
    struct diag d = DIAG_INIT;
    int error = blob_read(blob, head, len, 0, &d), r;

    *ret_format = n_formats;
    if (error < 0) {
        text_add(&t, "%s", diag_text(&d, error));
    } else {
        for (unsigned i = 0; i < n_formats; i++) {
            enum claim claim = formats[i]->probe(&file);

            if (claim > best) {
                best = claim;
                *ret_format = i;
            }
        }
        if (best == CLAIM_ASIDE || foreign_is_mistaken(&file))
            *ret_format = n_formats;
        if (best && !foreign_is_mistaken(&file))
            return 0;
        error = describe_unknown(blob, &file, &t);
    }
    r = text_finish(&t, &reason, NULL);
    return r < 0 ? r : found_failed(&scan->finds, file_name, error, reason);
}

/* The files of a folder by format: files[f] can hold all. */
struct sorted_files {
    struct source_file *file;
    size_t n;
};

static void sorted_files_free(struct sorted_files **sorted)
{
    for (unsigned f = 0; *sorted && f < n_formats; f++) {
        for (size_t i = 0; i < (*sorted)[f].n; i++) {
            free((char *)(*sorted)[f].file[i].name);
            blob_free((*sorted)[f].file[i].blob);
        }
        free((*sorted)[f].file);
    }
    free(*sorted);
}

/* Does the folder have a file whose unpacked name is name? */
static bool is_in_folder(const struct folder_scan *scan, const char *name)
{
    for (size_t i = 0; i < scan->n; i++) {
        const char *other = scan->entry[i].name;

        if (strlen(name) == unpacked_name_len(other) && !memcmp(name, other, strlen(name)))
            return true;
    }
    return false;
}

/* Does the format have side files with that suffix? */
static bool has_side(const struct format *format, const char *suffix)
{
    for (size_t i = 0; format->sides && format->sides[i]; i++)
        if (!strcmp(format->sides[i], suffix))
            return true;
    return false;
}

/* The format for which the file called name is a side file of another file of the folder, or
 * n_formats. */
static unsigned format_of_side(const struct folder_scan *scan, const char *name)
{
    const char *dot = strrchr(name, '.');
    AUTO_FREE char *of = dot ? strndup(name, (size_t)(dot - name)) : NULL;

    for (unsigned f = 0; of && f < n_formats; f++)
        if (has_side(formats[f], dot) && is_in_folder(scan, of))
            return f;
    return n_formats;
}

/* For a remote source, fetch the heads of the next files while this one is examined: a round trip
 * for each would take very long. */
static void fetch_heads(struct folder_scan *scan, const struct source_entry *entry)
{
    const struct catalog_tools *tools = scan->catalog->tools;

    const uint64_t whole = scan->n <= HEADS_AHEAD ? WHOLE_MOST : 0;

    if (!scan->source->stage)
        return;
    scan->fetched = scan->fetched > entry ? scan->fetched : entry;
    while (scan->fetched < scan->end && scan->fetched < entry + HEADS_AHEAD)
        source_fetch_head(scan->source, scan->fetched++, &tools->cache, FORMAT_HEAD, whole);
}

static int sort_file(struct folder_scan *scan, const struct source_entry *entry,
                     struct sorted_files *sorted)
{
    AUTO_FREE char *name = unpacked_name(entry->name);
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    struct source_file *file;
    unsigned format;
    int r = source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, &d);

    if (r < 0)
        return found_failed(&scan->finds, entry->name, r, diag_text(&d, r));
    if (!name)
        return -ENOMEM;
    format = format_of_side(scan, name);
    if (format == n_formats)
        r = find_format(scan, entry->name, name, blob, &format);
    if (r < 0 || format == n_formats)
        return r;
    file = &sorted[format].file[sorted[format].n];
    file->name = TAKE_PTR(name);
    file->file_name = entry->name;
    file->folder = scan->folder;
    file->blob = TAKE_PTR(blob);
    sorted[format].n++;
    return 0;
}

static int scan_one_folder(struct folder_scan *scan)
{
    AUTO(sorted_files_free) struct sorted_files *sorted = calloc(n_formats, sizeof(*sorted));
    int r = 0;

    if (!sorted)
        return -ENOMEM;
    for (unsigned f = 0; f < n_formats; f++) {
        sorted[f].file = calloc(scan->n, sizeof(*sorted[f].file));
        if (!sorted[f].file)
            return -ENOMEM;
    }
    for (size_t i = 0; i < scan->n && r == 0; i++) {
        fetch_heads(scan, &scan->entry[i]);
        if (strcmp(scan->entry[i].name, "SHA256SUMS") != 0)
            r = sort_file(scan, &scan->entry[i], sorted);
    }
    for (unsigned f = 0; f < n_formats && r == 0; f++)
        if (sorted[f].n)
            r = formats[f]->open_folder(sorted[f].file, sorted[f].n, &scan->catalog->tools->setup,
                                        &scan->finds);
    return r;
}

/* By folder, then name; a dataset before an error of the same name. */
static int compare_items(const void *a, const void *b)
{
    const struct catalog_item *x = a, *y = b;
    int order = strcmp(x->folder, y->folder);

    if (!order)
        order = strcmp(x->name, y->name);
    return order ? order : !x->ds - !y->ds;
}

/* The first entry whose folder is not before path. */
static size_t first_not_before(const struct source_list *list, const char *path)
{
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(list->entry[middle].folder, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is there a folder of that path with something in it or below it? */
static bool folder_exists(const struct source_list *list, const char *folder, const char *name)
{
    char path[PATH_MAX];
    size_t len, i;

    snprintf(path, sizeof(path) - 1, "%s%s%s", folder, *folder ? "/" : "", name);
    len = strlen(path);
    i = first_not_before(list, path);
    if (i < list->n && !strcmp(list->entry[i].folder, path))
        return true;
    path[len] = '/';
    path[len + 1] = '\0';
    i = first_not_before(list, path);
    return i < list->n && !strncmp(list->entry[i].folder, path, len + 1);
}

static bool is_reserved(const struct catalog_item *item)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved) && !*item->folder; i++)
        if (!strcmp(item->name, reserved[i]))
            return true;
    return false;
}

/* Does an item of that folder have the name already? */
static bool item_exists(const struct catalog *catalog, const char *folder, const char *name)
{
    for (size_t i = 0; i < catalog->n; i++)
        if (!strcmp(catalog->item[i].name, name) && !strcmp(catalog->item[i].folder, folder))
            return true;
    return false;
}

/* Give an item whose name is taken the first free `<name>~<k>`. */
static int rename_item(struct catalog *catalog, struct catalog_item *item,
                       const struct source_list *list)
{
    for (unsigned k = 2;; k++) {
        char *name;

        if (asprintf(&name, "%s~%u", item->name, k) < 0)
            return -ENOMEM;
        if (!item_exists(catalog, item->folder, name) && !folder_exists(list, item->folder, name)) {
            free(item->name);
            item->name = name;
            return 0;
        }
        free(name);
    }
}

static int make_names_unique(struct catalog *catalog, const struct source_list *list)
{
    qsort(catalog->item, catalog->n, sizeof(catalog->item[0]), compare_items);
    for (size_t i = catalog->n; i-- > 0;) {
        struct catalog_item *item = &catalog->item[i];
        bool repeated =
            i && !strcmp(item[-1].folder, item->folder) && !strcmp(item[-1].name, item->name);
        int r = repeated || is_reserved(item) || folder_exists(list, item->folder, item->name)
                    ? rename_item(catalog, item, list)
                    : 0;

        if (r < 0)
            return r;
    }
    qsort(catalog->item, catalog->n, sizeof(catalog->item[0]), compare_items);
    return 0;
}

static int nothing_usable(const struct source *source, const struct catalog *catalog,
                          size_t n_files, struct diag *d)
{
    AUTO_FREE char *root = source_name(source);

    if (!root)
        return -ENOMEM;
    if (!n_files)
        return diag_set(d, -ENODATA, "%s: no files found", root);
    if (!catalog->n)
        return diag_set(
            d, -ENODATA,
            "%s: nothing usable among %zu file%s: audio is read through an scp file that "
            "names it (wav.scp)",
            root, n_files, n_files > 1 ? "s" : "");
    return diag_set(d, -ENODATA, "%s: nothing usable among %zu file%s: %s%s", root, catalog->n,
                    catalog->n > 1 ? "s" : "", catalog->item[0].error,
                    catalog->n > 1 ? "; and others" : "");
}

static int make_opener(const struct source *source, const struct options *options,
                       struct catalog_tools *tools)
{
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    const struct cache_opener_options how = {
        .allow_outside = options->allow_outside,
        .allow_commands = options->allow_commands,
        .command_timeout = (unsigned)options->command_limit,
        .cwd = cwd,
    };

    return cache_opener_init(&tools->opener, source, &tools->cache, &how);
}

static int make_tools(const struct source *source, const struct options *options,
                      struct catalog_tools **ret)
{
    struct catalog_tools *tools = calloc(1, sizeof(*tools));
    int r;

    *ret = tools;
    if (!tools)
        return -ENOMEM;
    r = cache_folder_init(&tools->cache, options->cache);
    tools->cache.quota = source->cache.quota;
    if (r == 0)
        r = make_opener(source, options, tools);
    if (r == 0)
        r = memo_new(MEMO_BYTES, &tools->setup.memo);
    if (r == 0)
        r = pool_new(&tools->setup.pool);
    index_files_init(&tools->keep, &tools->cache);
    tools->setup.keep = &tools->keep.keep;
    tools->setup.opener = &tools->opener.opener;
    tools->setup.options = options->format;
    tools->setup.is_list = source->remote->ordered;
    return r;
}

int catalog_list(const struct source *source, struct source_list *ret, struct diag *d)
{
    const char *sides[SIDES_MAX + 1] = {NULL};
    size_t n = 0;

    for (unsigned f = 0; f < n_formats; f++)
        for (size_t i = 0; formats[f]->sides && formats[f]->sides[i] && n < SIDES_MAX; i++)
            sides[n++] = formats[f]->sides[i];
    return source_list(source, sides, ret, d);
}

void catalog_item_access(const struct catalog_item *item, struct access *ret)
{
    const struct dataset *ds = item->ds;

    *ret = item->access;
    ret->mode &= 0444;
    if (!ds)
        return;
    *ret = (struct access){ds->blob[0]->uid, ds->blob[0]->gid, ds->blob[0]->mode & 0444};
    for (unsigned i = 1; i < ds->n_blobs; i++)
        ret->mode &= blob_readers(ds->blob[0], ds->blob[i]);
    ret->mode &= ~(dataset_state(ds) == DATASET_READY ? ds->denied : 0);
}

/* May all users list SOURCE, and all folders from there to this one? */
static bool is_known_to_all(const struct source *source, const char *folder)
{
    const char *end = folder;
    char path[PATH_MAX] = "";
    struct access access;

    for (;;) {
        source_access(source, path, &access);
        if (!(access.mode & 0004) || !*end)
            return access.mode & 0004;
        end += *end == '/';
        end += strcspn(end, "/");
        snprintf(path, sizeof(path), "%.*s", (int)(end - folder), folder);
    }
}

static void find_hidden(struct catalog *catalog)
{
    const char *last = NULL;
    bool known = true;

    for (size_t i = 0; i < catalog->n; i++) {
        struct catalog_item *item = &catalog->item[i];
        struct access access;

        if (!last || strcmp(item->folder, last) != 0)
            known = is_known_to_all(catalog->source, item->folder);
        last = item->folder;
        catalog_item_access(item, &access);
        item->is_hidden = !known || !(access.mode & 0004);
    }
}

int catalog_open(const struct source *source, const struct options *options, struct catalog *ret,
                 struct diag *d)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_CATALOG struct catalog catalog = {0};
    const struct source_entry *fetched = NULL;
    int r = make_tools(source, options, &catalog.tools);

    if (options->allow_other)
        catalog.source = source;
    if (r == 0) {
        source_fetch_only(source, &catalog.tools->cache, FORMAT_HEAD, WHOLE_MOST);
        r = catalog_list(source, &list, d);
    }
    for (size_t i = 0; i < list.n && r == 0;) {
        struct folder_scan scan = {
            .finds = {.dataset = found_dataset, .error = found_error, .failed = found_failed},
            .catalog = &catalog,
            .source = source,
            .folder = list.entry[i].folder,
            .entry = &list.entry[i],
            .end = list.entry + list.n,
            .fetched = fetched ? fetched : list.entry,
        };

        while (i + scan.n < list.n && !strcmp(scan.entry[scan.n].folder, scan.folder))
            scan.n++;
        r = scan_one_folder(&scan);
        finds_release(&scan.finds);
        fetched = scan.fetched;
        i += scan.n;
    }
    if (r < 0)
        return r;
    if (!catalog.n_datasets)
        return nothing_usable(source, &catalog, list.n, d);
    r = make_names_unique(&catalog, &list);
    if (r < 0)
        return r;
    if (catalog.source)
        find_hidden(&catalog);
    *ret = catalog;
    catalog = (struct catalog){0};
    return 0;
}

bool catalog_prepare(struct catalog *catalog, int64_t until)
{
    bool all = false;

    while (!all) { /* each in turn, because one may wait for a command */
        all = true;
        for (size_t i = 0; i < catalog->n; i++) {
            if (!catalog->item[i].ds || dataset_prepare(catalog->item[i].ds))
                continue;
            all = false;
            if (monotonic_ns() > until)
                return false;
        }
    }
    return true;
}
