#include "fs/tree/catalog.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/extensions.h"
#include "base/pool.h"
#include "base/readers.h"
#include "base/search.h"
#include "base/text.h"
#include "cache/pack/unpack.h"
#include "cache/source/remote.h"
#include "format/registry.h"
#include "fs/options/setters.h"
#include "fs/tree/collections.h"
#include "fs/tree/folder_scan.h"
#include "fs/tree/mixes.h"

#define MEMO_BYTES (64u << 20) /* of decoded samples */
#define SIDES_MAX  32          /* suffixes of side files, of all formats */

/* Reserved names at the top of the mount. */
static const char *const reserved[] = {"README.txt", ".epochfs"};

static void tools_free(struct catalog_tools *tools)
{
    if (!tools)
        return;
    length_plans_release(&tools->lengths);
    list_labels_release(&tools->labels);
    named_lists_release(&tools->lists);
    pool_free(tools->setup.pool);
    shared_index_release(&tools->shared);
    made_files_release(&tools->made);
    memo_free(tools->setup.memo);
    cache_opener_release(&tools->opener);
    cache_folder_release(&tools->cache);
    free(tools);
}

void catalog_release(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++) {
        free(catalog->item[i].folder);
        free(catalog->item[i].name);
        dataset_free(catalog->item[i].ds);
        free(catalog->item[i].error);
        mixture_free(catalog->item[i].mixture);
    }
    free(catalog->item);
    moved_release(catalog->moved, catalog->n_moved);
    free(catalog->note);
    free(catalog->recipe);
    free(catalog->unmet);
    tools_free(catalog->tools);
    *catalog = (struct catalog){0};
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
    return SEARCH(list->n, i, strcmp(list->entry[i].folder, path) < 0);
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

/* Does an item of that folder have the name already? */
static bool item_exists(const struct catalog *catalog, const char *folder, const char *name)
{
    for (size_t i = 0; i < catalog->n; i++)
        if (!strcmp(catalog->item[i].name, name) && !strcmp(catalog->item[i].folder, folder))
            return true;
    return false;
}

/* Names that a dataset has in its folder. */
static const char *const parts_of_datasets[] = {"batches",     "dataset.json", "ERROR.txt",
                                                "preview.png", "samples",      "source"};

/* Is the item in the folder of a dataset, and called like a part of it? */
static bool is_called_like_part(const struct catalog *catalog, const struct catalog_item *item)
{
    const char *slash = strrchr(item->folder, '/');
    const char *name = slash ? slash + 1 : item->folder;
    AUTO_FREE char *above = strndup(item->folder, slash ? (size_t)(slash - item->folder) : 0);

    for (size_t i = 0; i < ARRAY_LEN(parts_of_datasets); i++)
        if (!strcmp(item->name, parts_of_datasets[i]))
            return above && *name && item_exists(catalog, above, name);
    return false;
}

static bool is_reserved(const struct catalog_item *item)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved) && !*item->folder; i++)
        if (!strcmp(item->name, reserved[i]))
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
        int r = repeated || is_reserved(item) || is_called_like_part(catalog, item) ||
                        (!item->is_folder && folder_exists(list, item->folder, item->name))
                    ? rename_item(catalog, item, list)
                    : 0;

        if (r < 0)
            return r;
    }
    qsort(catalog->item, catalog->n, sizeof(catalog->item[0]), compare_items);
    return 0;
}

/* Are files with the extension mostly there to say something of other files? */
static bool says_of_data(const struct extension_count *count)
{
    static const char *const ends[] = {"", ".json", ".md", ".txt", ".yaml", ".yml", ".html"};
    size_t i = 0;

    while (i < ARRAY_LEN(ends) && strcasecmp(count->ext, ends[i]) != 0)
        i++;
    return i < ARRAY_LEN(ends);
}

/* n_collections: items of folders of files, which come first, and whose reasons count most. list:
 * all other files; empty if SOURCE has an index of whole collections. */
static int nothing_usable(const struct source *source, const struct catalog *catalog,
                          size_t n_collections, const struct source_list *list, struct diag *d)
{
    AUTO_FREE char *root = source_name(source);
    AUTO_TEXT struct text shown = {0};
    struct extensions extensions = {.n = 0};
    size_t typical = 0; /* an item with the most frequent extension of data */
    unsigned end = 0;

    if (!root)
        return -ENOMEM;
    if (!list->n && !catalog->n)
        return diag_set(d, -ENODATA, "%s: no files found", root);
    if (!catalog->n)
        return diag_set(
            d, -ENODATA,
            "%s: nothing usable among %zu file%s: audio is read in class folders, two or more "
            "with nothing else in them, or through an scp file that names it (wav.scp), or an "
            "epochfs.json; an index through the records next to it; README.md is no data",
            root, list->n, list->n > 1 ? "s" : "");
    if (list->n <= 1 || catalog->n == 1)
        return diag_set(d, -ENODATA, "%s: nothing usable%s: %s", root,
                        list->n == 1 ? " among 1 file" : "", catalog->item[0].error);
    for (size_t i = 0; i < list->n; i++)
        extensions_add(&extensions, list->entry[i].name);
    extensions_show(&extensions, false, &shown);
    if (shown.data)
        text_plain(shown.data, "");
    while (end + 1 < extensions.n && says_of_data(&extensions.count[end]))
        end++;
    while (!n_collections && typical + 1 < catalog->n &&
           !extension_has(&extensions.count[end], catalog->item[typical].name))
        typical++;
    return diag_set(
        d, -ENODATA, "%s: nothing usable among %zu files (%s); for example, %s%s", root, list->n,
        shown.data ? shown.data : "", catalog->item[typical].error,
        strstr(catalog->item[typical].error, "epochfs.json")
            ? ""
            : ". An epochfs.json can say which files are samples (epochfs info --layout)");
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

static void tools_scope_end(struct catalog_tools **tools)
{
    tools_free(*tools);
}

static int make_tools(struct source *source, const struct options *options,
                      struct catalog_tools **ret, struct diag *d)
{
    AUTO(tools_scope_end) struct catalog_tools *tools = calloc(1, sizeof(*tools));
    int r;

    if (!tools)
        return -ENOMEM;
    made_files_init(&tools->made, &tools->cache, options->keep_made, &source->notices);
    r = cache_folder_init(&tools->cache, options->cache);
    tools->cache.quota = source->cache.quota;
    if (r == 0)
        r = make_opener(source, options, tools);
    source->opener = &tools->opener.opener;
    if (r == 0)
        r = memo_new(MEMO_BYTES, &tools->setup.memo);
    if (r == 0)
        r = pool_new(&tools->setup.pool);
    index_files_init(&tools->keep, &tools->cache);
    shared_index_init(&tools->shared, &tools->keep.keep, source);
    tools->shared.notes = options->makes_index;
    tools->notices = source->notices;
    tools->revision = source->revision;
    tools->commit = source->commit;
    tools->setup.made = options->keep_made ? &tools->made.store : NULL;
    tools->setup.counts = &tools->counts;
    tools->setup.keep = &tools->shared.keep;
    tools->setup.opener = &tools->opener.opener;
    tools->setup.options = options->format;
    tools->setup.is_list = source->remote->ordered || source->only_file;
    list_labels_init(&tools->labels, &tools->setup);
    length_plans_init(&tools->lengths, &tools->setup);
    tools->label =
        (struct label_choice){.field = options->format.label, .classes = options->format.classes};
    tools->augment = (struct augment_tools){
        .options = &options->augment, .memo = tools->setup.memo, .pool = tools->setup.pool};
    if (r == 0)
        r = named_lists_init(&tools->lists, options, source->stage || options->finds_in_lists, d);
    if (r == 0)
        *ret = TAKE_PTR(tools);
    return r;
}

static bool catalog_is_among(const char *const *texts, const char *text)
{
    while (*texts && strcmp(*texts, text) != 0)
        texts++;
    return *texts;
}

int catalog_list(const struct source *source, struct source_list *ret, struct diag *d)
{
    const char *sides[SIDES_MAX + 1] = {NULL};
    bool wants = !source->only_file || !source->remote->far || folder_scan_wants_sides(source);
    size_t n = 0;

    for (unsigned f = 0; f < n_formats && wants; f++)
        for (size_t i = 0; formats[f]->sides && formats[f]->sides[i] && n < SIDES_MAX; i++)
            if (!catalog_is_among(sides, formats[f]->sides[i]))
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

struct item_blob {
    const struct blob *blob;
    struct catalog_item *item;
};

static int by_blob(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct item_blob *)a)->blob;
    uintptr_t y = (uintptr_t)((const struct item_blob *)b)->blob;

    return (x > y) - (x < y);
}

/* Note the datasets whose file is one of several of another dataset. 0 or -ENOMEM. */
static int catalog_find_parts(struct catalog *catalog)
{
    AUTO_FREE struct item_blob *file = calloc(catalog->n + 1, sizeof(*file));
    size_t n = 0;

    if (!file)
        return -ENOMEM;
    for (size_t i = 0; i < catalog->n; i++)
        if (catalog->item[i].ds && catalog->item[i].ds->n_blobs == 1)
            file[n++] = (struct item_blob){catalog->item[i].ds->blob[0], &catalog->item[i]};
    qsort(file, n, sizeof(*file), by_blob);
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;

        for (unsigned k = 0; ds && ds->n_blobs > 1 && k < ds->n_blobs; k++) {
            const struct item_blob key = {.blob = ds->blob[k]};
            struct item_blob *found = bsearch(&key, file, n, sizeof(*file), by_blob);

            while (found && found > file && found[-1].blob == key.blob)
                found--;
            for (; found && found < file + n && found->blob == key.blob; found++)
                found->item->is_part = true;
        }
    }
    return 0;
}

/* Add the mixes: their names must be free. */
static int add_mixes(struct catalog *catalog, const struct source_list *list,
                     const struct options *options, struct diag *d)
{
    int r = 0;

    for (size_t i = 0; i < options->n_mixes && r == 0; i++) {
        struct catalog_item item = {.folder = "", .name = options->mix[i].name};
        bool is_taken = item_exists(catalog, "", item.name) || is_reserved(&item) ||
                        folder_exists(list, "", item.name);

        for (size_t k = 0; k < i; k++)
            is_taken = is_taken || !strcmp(options->mix[k].name, item.name);
        if (is_taken)
            r = diag_set(d, -EINVAL,
                         "option mix=%s=%.60s: expected a name that nothing else in the mount has",
                         item.name, options->mix[i].text);
    }
    if (r == 0)
        r = mixes_add(catalog, options, d);
    qsort(catalog->item, catalog->n, sizeof(catalog->item[0]), compare_items);
    mixes_number_items(catalog);
    return r;
}

/* Is there a format of the name that format= gives, and does it read single files? */
static int check_format_name(const char *name, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned f = 0; f < n_formats && name; f++)
        if (format_opens_files(formats[f]) && format_is_called(formats[f], name))
            return 0;
    if (!name)
        return 0;
    option_add_formats(&t, " or ");
    return diag_set(d, -EINVAL, "option format=%s: expected %s", name, t.data ? t.data : "");
}

/* An option of a format whose files are not there does nothing: its name is misspelt, or SOURCE. */
static int check_format_options(const struct catalog *catalog, const struct options *options,
                                struct diag *d)
{
    for (unsigned f = 0; f < n_formats; f++) {
        const char *option = formats[f]->option ? formats[f]->option(&options->format) : NULL;
        const char *format_name = options->format.format;

        if (format_name &&
            format_is_called(formats[f], format_name)) /* a folder of files is of none */
            option = "format";
        if (option && !(catalog->found & UINT64_C(1) << f))
            return diag_set(d, -EINVAL, "option %s=: expected a source of %s, got no such file",
                            option, formats[f]->title);
    }
    return 0;
}

/* An option that names a file which SOURCE lacks does nothing: the name is misspelt. list: all
 * files; empty if SOURCE has an index of whole collections. */
static int check_named_files(const struct source_list *list, const struct options *options,
                             struct diag *d)
{
    for (const char *item = options->format.kaldi_tables; list->n && item && *item;) {
        size_t len = strcspn(item, ";"), i = 0;

        while (i < list->n && !format_item_names(item, list->entry[i].name))
            i++;
        if (i == list->n)
            return diag_set(d, -EINVAL,
                            "option kaldi_type=%.*s: no file in SOURCE has that name. Write the "
                            "name without its folder, as FILE:TYPE",
                            (int)min_u64(len, 100), item);
        item += len + (item[len] != '\0');
    }
    return 0;
}

int catalog_open(struct source *source, const struct options *options, struct catalog *ret,
                 struct diag *d)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_CATALOG struct catalog catalog = {0};
    size_t n_collections = 0;
    int r = check_format_name(options->format.format, d);

    if (r == 0)
        r = make_tools(source, options, &catalog.tools, d);
    if (options->allow_other)
        catalog.source = source;
    if (r == 0) {
        source_fetch_only(source, &catalog.tools->cache, FORMAT_HEAD, FOLDER_SCAN_WHOLE);
        r = collections_open(source, &catalog, &list, d);
        if (r == -EOPNOTSUPP)
            r = catalog_list(source, &list, d);
        n_collections = catalog.n;
    }
    for (char *line = catalog.note, *end; line && r == 0; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        remote_note(source, "%.*s", end ? (int)(end - line) : INT_MAX, line);
    }
    if (r == 0)
        r = folder_scan_all(source, &list, &catalog);
    if (r == 0)
        r = check_format_options(&catalog, options, d);
    if (r == 0)
        r = check_named_files(&list, options, d);
    if (r < 0)
        return r;
    if (!catalog.n_datasets) {
        ret->recipe = TAKE_PTR(catalog.recipe); /* of what is refused, to be edited */
        return nothing_usable(source, &catalog, n_collections, &list, d);
    }
    r = make_names_unique(&catalog, &list);
    if (r == 0)
        r = catalog_find_parts(&catalog);
    if (r == 0)
        r = add_mixes(&catalog, &list, options, d);
    if (r < 0)
        return r;
    if (catalog.source)
        find_hidden(&catalog);
    *ret = catalog;
    catalog = (struct catalog){0};
    return 0;
}

bool catalog_item_is_joint(const struct catalog_item *item)
{
    return item->ds && item->ds->shares_blobs;
}

/* Prepare each a step further, in turn, because one may wait for a command; joint: those of several
 * files, or the others. 1: all are ready, 0: not yet, -1: the time is over, or a remote is away. */
static int prepare_in_turn(struct catalog *catalog, bool joint, bool once, int64_t until)
{
    int all = 1;

    for (size_t i = 0; i < catalog->n; i++) {
        struct catalog_item *item = &catalog->item[i];

        if (!item->ds || catalog_item_is_joint(item) != joint || dataset_prepare(item->ds) ||
            (once && dataset_give_up(item->ds)))
            continue;
        if (monotonic_ns() > until || item->ds->retry.state == RETRY_PAUSES)
            return -1;
        all = 0;
    }
    return all;
}

bool catalog_prepare(struct catalog *catalog, bool once, int64_t until)
{
    int r = 0;

    while (r == 0)
        r = prepare_in_turn(catalog, true, once, until);
    for (r = r == 1 ? 0 : r; r == 0;)
        r = prepare_in_turn(catalog, false, once, until);
    return r == 1;
}
