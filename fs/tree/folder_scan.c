/* Files of a folder go to the format with the strongest claim, in the order of the source; each
 * format then makes datasets of those it has. What no format takes becomes an item that says why.
 */
#include "fs/tree/folder_scan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "cache/pack/unpack.h"
#include "format/foreign.h"
#include "format/registry.h"
#include "fs/log/log.h"

#define HEADS_AHEAD 64 /* files whose heads are fetched ahead */

/* The files of one folder, while formats examine them. */
struct folder_scan {
    struct finds finds;
    struct catalog *catalog;
    const struct source *source;
    const char *folder;
    const struct source_entry *entry; /* [n] those of the folder */
    size_t n;
    struct folder_names names;          /* of those files */
    char folder_name[NAME_MAX + 1];     /* the last part of its path */
    const struct source_entry *end;     /* of the entries of all folders */
    const struct source_entry *fetched; /* the heads of the entries before it have been requested */
};

/* The name without .gz or .xz; the caller frees it. NULL: no memory. */
static char *unpacked_name(const char *name)
{
    return strndup(name, unpacked_name_len(name));
}

static void find_access(const struct source *source, const char *folder, const char *name,
                        struct access *ret)
{
    AUTO_FREE char *path = NULL;

    *ret = (struct access){0};
    if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0)
        path = NULL;
    else
        source_access(source, path, ret);
}

int folder_scan_add(struct catalog *catalog, const char *folder, const char *name,
                    struct dataset *ds, const char *error)
{
    struct catalog_item item = {.ds = ds};

    if (array_capacity(&catalog->item, catalog->n, sizeof(item)) < 0) {
        dataset_free(ds);
        return -ENOMEM;
    }
    item.name = strdup(name);
    item.folder = strdup(folder);
    item.error = error ? strdup(error) : NULL;
    if (item.error)
        text_plain(item.error, "\n");
    if (error && catalog->source)
        find_access(catalog->source, folder, name, &item.access);
    catalog->item[catalog->n++] = item;
    catalog->n_datasets += ds != NULL;
    return item.name && item.folder && (!error || item.error) ? 0 : -ENOMEM;
}

static int found_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    struct folder_scan *scan = (struct folder_scan *)finds;

    return folder_scan_add(scan->catalog, scan->folder, name, ds, NULL);
}

static int found_error(struct finds *finds, const char *name, const char *reason)
{
    struct folder_scan *scan = (struct folder_scan *)finds;

    return folder_scan_add(scan->catalog, scan->folder, name, NULL, reason);
}

static int found_failed(struct finds *finds, const char *file_name, int error, const char *reason)
{
    struct unread_file unread = {0};

    if (error == -ENOMEM)
        return error;
    if (blob_may_pass(error)) {
        if (array_capacity(&finds->unread, finds->n_unread, sizeof(unread)) < 0)
            return -ENOMEM;
        unread = (struct unread_file){unpacked_name(file_name), strdup(reason), error};
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

/* What a user can do with a file of that kind. */
static void add_fix(const struct folder_scan *scan, const struct foreign *kind, struct text *t)
{
    if (!kind->is_picture)
        text_add(t, "%s", kind->fix);
    else if (scan->source->only_file)
        text_add(t, "Mount the folder of the pictures");
    else
        text_add(
            t,
            "A folder of pictures is a dataset, and class folders are%s%s. Mount the folder of "
            "the pictures itself, or give them a manifest (docs/files.md)",
            scan->catalog->unmet ? "; these are not, because " : "",
            scan->catalog->unmet ? scan->catalog->unmet : "");
}

/* Describe why a file that no format takes cannot be used. Returns a -errno that says whether
 * another machine may have the content, as with a pointer. */
static int describe_unknown(const struct folder_scan *scan, const struct blob *blob,
                            const struct probed_file *file, struct text *t)
{
    const struct foreign *kind = foreign_kind(file);
    const uint8_t *head = file->head;
    size_t len = file->len;

    text_add(t, "%s: ", blob_name(blob));
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        const struct pointer *p = &pointers[i];

        if (len >= strlen(p->start) && !memcmp(head, p->start, strlen(p->start))) {
            text_add(t, "is %s; its content is not on this machine. Fetch it with `%s`", p->what,
                     p->remedy);
            return -ENOMEDIUM;
        }
    }
    if (!blob->size) {
        text_add(t, "is empty");
    } else if (kind) {
        text_add(t, "is %s, which epochfs does not read%s. ", kind->name,
                 kind->is_picture ? " by itself" : "");
        add_fix(scan, kind, t);
    } else {
        text_add(t, "is of no format that epochfs knows; it begins with");
        for (size_t i = 0; i < min_u64(len, 4); i++)
            text_add(t, " %02x", head[i]);
        for (unsigned i = 0; i < n_formats; i++) {
            const char *hint = formats[i]->hint ? formats[i]->hint(file) : NULL;

            if (hint)
                text_add(t, "; %s", hint);
        }
    }
    return -EBADMSG;
}

/* The strongest claim, and whose it is: the first format that has it. */
static enum claim best_claim(const struct probed_file *file, unsigned *ret_format)
{
    const char *given = file->options ? file->options->format : NULL;
    enum claim best = CLAIM_NONE;

    *ret_format = n_formats;
    for (unsigned i = 0; i < n_formats && given; i++)
        if (format_is_called(formats[i], given)) {
            *ret_format = i;
            return CLAIM_STRONG;
        }
    for (unsigned i = 0; i < n_formats; i++) {
        enum claim claim = formats[i]->probe(file);

        if (claim > best) {
            best = claim;
            *ret_format = i;
        }
    }
    return best;
}

bool folder_scan_takes(const struct probed_file *file)
{
    unsigned format;

    return best_claim(file, &format) && !foreign_is_mistaken(file);
}

bool folder_scan_wants_sides(const struct source *source)
{
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    AUTO_FREE char *name = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    uint8_t head[FORMAT_HEAD];
    unsigned format;
    size_t len;

    if (source_only(source, &entry) < 0)
        return false;
    name = unpacked_name(entry.name);
    if (!name || source_blob_packed(source, &entry, &blob, NULL) < 0)
        return false;
    len = (size_t)min_u64(sizeof(head), blob->size);
    if (blob_read(READ_WAITS, blob, head, len, 0, NULL) < 0)
        return false;
    return !best_claim(&(struct probed_file){.name = name,
                                             .head = head,
                                             .len = len,
                                             .whole = len == blob->size,
                                             .size = blob->size},
                       &format) ||
           formats[format]->sides;
}

static struct probed_file probed(const struct folder_scan *scan, const char *name,
                                 const uint8_t *head, size_t len, const struct blob *blob)
{
    return (struct probed_file){.name = name,
                                .head = head,
                                .len = len,
                                .whole = len == blob->size,
                                .size = blob->size,
                                .folder = scan->names,
                                .folder_name = scan->folder_name,
                                .options = &scan->catalog->tools->setup.options};
}

/* The format that takes a file; n_formats: none; the reason was reported, or the file is set aside.
 */
static int find_format(struct folder_scan *scan, const char *file_name, const char *name,
                       const struct blob *blob, unsigned *ret_format)
{
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), blob->size);
    const struct probed_file file = probed(scan, name, head, len, blob);
    unsigned format = n_formats;
    enum claim best;
    AUTO_TEXT struct text t = {0};
    AUTO_FREE char *reason = NULL;
    struct diag d = DIAG_INIT;
    int error = blob_read(READ_WAITS, blob, head, len, 0, &d), r;

    if (error < 0) {
        text_add(&t, "%s", diag_text(&d, error));
    } else {
        best = best_claim(&file, &format);
        if (best == CLAIM_ASIDE || foreign_is_mistaken(&file))
            format = n_formats;
        if (best && !foreign_is_mistaken(&file)) {
            *ret_format = format;
            return 0;
        }
        error = describe_unknown(scan, blob, &file, &t);
    }
    r = text_finish(&t, &reason, NULL);
    if (r == 0)
        r = found_failed(&scan->finds, file_name, error, reason);
    if (r == 0)
        *ret_format = n_formats;
    return r;
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

/* Does the format have side files with that suffix? */
static bool has_side(const struct format *format, const char *suffix)
{
    for (size_t i = 0; format->sides && format->sides[i]; i++)
        if (!strcmp(format->sides[i], suffix))
            return true;
    return false;
}

static bool is_packed(const struct source_entry *entry)
{
    return unpacked_name_len(entry->name) != strlen(entry->name);
}

/* The file of the folder whose content decides about this one, which is called `own` without .gz or
 * .xz, and for which format. NULL: none. */
static const struct source_entry *find_decider(const struct folder_scan *scan,
                                               const struct source_entry *entry, const char *own,
                                               unsigned *ret_format)
{
    char name[FORMAT_NAME];

    if (entry >= scan->entry + scan->n)
        return NULL;
    for (unsigned f = 0; f < n_formats; f++) {
        const struct folder_name *found =
            formats[f]->decided_by && formats[f]->decided_by(own, name)
                ? folder_names_find(&scan->names, name, strlen(name))
                : NULL;

        *ret_format = f;
        if (found)
            return &scan->entry[found->number];
    }
    return NULL;
}

/* Does the content of that file say that it is of that format? */
static bool is_of(const struct folder_scan *scan, const struct source_entry *entry, unsigned format)
{
    AUTO_FREE char *name = unpacked_name(entry->name);
    AUTO_BLOB struct blob *blob = NULL;
    uint8_t head[FORMAT_HEAD];
    struct probed_file file;
    unsigned found;
    size_t len;

    if (!name || source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, NULL) < 0)
        return false;
    len = (size_t)min_u64(sizeof(head), blob->size);
    if (blob_read(READ_WAITS, blob, head, len, 0, NULL) < 0)
        return false;
    file = probed(scan, name, head, len, blob);
    return best_claim(&file, &found) >= CLAIM_STRONG && found == format;
}

/* The format for which the file called name is a side file of another file of the folder, or
 * n_formats. Of formats with the same suffix the one that the other file is of; if it is of none
 * for sure, the last. */
static unsigned format_of_side(const struct folder_scan *scan, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t len = dot ? (size_t)(dot - name) : 0;
    const struct folder_name *of = len ? folder_names_find(&scan->names, name, len) : NULL;
    unsigned last = n_formats, n = 0;

    for (unsigned f = 0; of && f < n_formats; f++)
        if (has_side(formats[f], dot)) {
            last = f;
            n++;
        }
    for (unsigned f = 0; n > 1 && f < last; f++)
        if (has_side(formats[f], dot) && is_of(scan, &scan->entry[of->number], f))
            return f;
    return last;
}

/* For a remote source, fetch the heads of the next files while this one is examined: a round trip
 * for each would take very long. */
static void fetch_heads(struct folder_scan *scan, const struct source_entry *entry)
{
    const struct catalog_tools *tools = scan->catalog->tools;

    const uint64_t whole = scan->n <= HEADS_AHEAD ? FOLDER_SCAN_WHOLE : 0;
    unsigned format;

    if (!scan->source->stage)
        return;
    scan->fetched = scan->fetched > entry ? scan->fetched : entry;
    for (; scan->fetched < scan->end && scan->fetched < entry + HEADS_AHEAD; scan->fetched++)
        if (is_packed(scan->fetched) ||
            !find_decider(scan, scan->fetched, scan->fetched->name, &format))
            source_fetch_head(scan->source, scan->fetched, &tools->cache, FORMAT_HEAD, whole);
}

/* Is SOURCE one file of a remote? Then all other files of the folder are guesses: the server was
 * asked for names that side files have, and it may answer any name. */
static bool is_guessing(const struct folder_scan *scan)
{
    return scan->source->only_file && scan->source->remote->far;
}

/* Does the content of a file that is named like a side file of that format say that it is none? 1,
 * 0, or -errno with the reason in d. */
static int is_no_side(const struct folder_scan *scan, const char *name, const struct blob *blob,
                      unsigned format, struct diag *d)
{
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), blob->size);
    const struct probed_file file = probed(scan, name, head, len, blob);
    int r = blob_read(READ_WAITS, blob, head, len, 0, d);
    unsigned by;

    if (r < 0)
        return r;
    if (best_claim(&file, &by) >= CLAIM_STRONG && (by != format || is_guessing(scan)))
        return 1;
    return is_guessing(scan) && foreign_kind(&file);
}

/* main: when guessing, the format of SOURCE; only its side files count. */
static int sort_file(struct folder_scan *scan, const struct source_entry *entry, unsigned main,
                     struct sorted_files *sorted)
{
    AUTO_FREE char *name = unpacked_name(entry->name);
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    struct source_file *file;
    unsigned format = n_formats;
    const struct source_entry *decider;
    bool decided;
    int r;

    if (!name)
        return -ENOMEM;
    decider = find_decider(scan, entry, name, &format);
    decided = decider && is_of(scan, decider, format);
    r = decided && !is_packed(entry)
            ? source_blob_packed(scan->source, entry, &blob, &d)
            : source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, &d);
    if (r < 0)
        return found_failed(&scan->finds, entry->name, r, diag_text(&d, r));
    if (!decided)
        format = format_of_side(scan, name);
    if (!decided && format < n_formats)
        r = is_no_side(scan, name, blob, format, &d);
    if (r < 0 && main < n_formats)
        return found_failed(&scan->finds, entry->name, r, diag_text(&d, r));
    if (main < n_formats && (r == 1 || format != main))
        return 0;
    if (r == 1 || format == n_formats) {
        r = find_format(scan, entry->name, name, blob, &format);
        if (r < 0 || format == n_formats)
            return r;
    }
    file = &sorted[format].file[sorted[format].n];
    file->name = TAKE_PTR(name);
    file->file_name = entry->name;
    file->folder = scan->folder;
    file->blob = TAKE_PTR(blob);
    sorted[format].n++;
    return 0;
}

/* The side files of the one file that SOURCE is. After one that cannot be read no other is waited
 * for. */
static int sort_guessed(struct folder_scan *scan, struct sorted_files *sorted)
{
    unsigned main = 0;
    int r = 0;

    while (main < n_formats && !(sorted[main].n && formats[main]->sides))
        main++;
    for (size_t i = 0; main < n_formats && i < scan->n && !scan->finds.n_unread && r == 0; i++)
        if (strcmp(scan->entry[i].name, scan->source->only_file) != 0)
            r = sort_file(scan, &scan->entry[i], main, sorted);
    return r;
}

/* names: room for those of all files of the folder. */
static void name_files(struct folder_scan *scan, struct folder_name *names)
{
    for (size_t i = 0; i < scan->n; i++) {
        const char *name = scan->entry[i].name;

        names[i] = (struct folder_name){name, unpacked_name_len(name), i};
    }
    scan->names = (struct folder_names){names, scan->n};
    folder_names_sort(&scan->names);
}

static bool is_source(const struct folder_scan *scan, const struct source_entry *entry)
{
    return scan->source->only_file && !strcmp(entry->name, scan->source->only_file);
}

/* Is it what programs leave beside data for themselves: checksums, marks of Hadoop, Spark and
 * Databricks that a job is done, what file managers keep? Nothing is said of it. */
static bool is_housekeeping(const struct folder_scan *scan, const struct source_entry *entry)
{
    static const char *const names[] = {"SHA256SUMS", "SHA512SUMS", "MD5SUMS",    "_SUCCESS",
                                        "_metadata",  "Thumbs.db",  "desktop.ini"};
    static const char *const starts[] = {"_committed_", "_started_"};
    static const char *const ends[] = {".crc", ".md5", ".sha256"};
    const char *name = entry->name;
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (text_ends_with(name, ends[i]) &&
            folder_names_has(&scan->names, name, len - strlen(ends[i])))
            return true;
    return false;
}

static int scan_one_folder(struct folder_scan *scan)
{
    AUTO(sorted_files_free) struct sorted_files *sorted = calloc(n_formats, sizeof(*sorted));
    AUTO_FREE struct folder_name *names = calloc(scan->n, sizeof(*names));
    int r = 0;

    if (!sorted || !names)
        return -ENOMEM;
    name_files(scan, names);
    for (unsigned f = 0; f < n_formats; f++) {
        sorted[f].file = calloc(scan->n, sizeof(*sorted[f].file));
        if (!sorted[f].file)
            return -ENOMEM;
    }
    for (size_t i = 0; i < scan->n && r == 0; i++) {
        fetch_heads(scan, &scan->entry[i]);
        if (scan->source->only_file ? !is_guessing(scan) || is_source(scan, &scan->entry[i])
                                    : !is_housekeeping(scan, &scan->entry[i]))
            r = sort_file(scan, &scan->entry[i], n_formats, sorted);
    }
    if (r == 0 && is_guessing(scan))
        r = sort_guessed(scan, sorted);
    for (unsigned f = 0; f < n_formats && r == 0; f++) {
        scan->catalog->found |= (uint64_t)(sorted[f].n > 0) << f;
        if (sorted[f].n)
            r = formats[f]->open_folder(sorted[f].file, sorted[f].n, &scan->catalog->tools->setup,
                                        &scan->finds);
    }
    return r;
}

static void last_part(const char *path, char ret[static NAME_MAX + 1])
{
    size_t len = strlen(path), from;

    while (len && path[len - 1] == '/')
        len--;
    for (from = len; from && path[from - 1] != '/'; from--)
        ;
    snprintf(ret, NAME_MAX + 1, "%.*s", (int)min_u64(len - from, NAME_MAX), path + from);
}

int folder_scan_all(const struct source *source, const struct source_list *list,
                    struct catalog *catalog)
{
    const struct source_entry *fetched = list->entry;
    int r = 0;

    for (size_t i = 0; i < list->n && r == 0;) {
        struct folder_scan scan = {
            .finds = {.dataset = found_dataset, .error = found_error, .failed = found_failed},
            .catalog = catalog,
            .source = source,
            .folder = list->entry[i].folder,
            .entry = &list->entry[i],
            .end = list->entry + list->n,
            .fetched = fetched,
        };

        last_part(*scan.folder ? scan.folder : source->root, scan.folder_name);
        while (i + scan.n < list->n && !strcmp(scan.entry[scan.n].folder, scan.folder))
            scan.n++;
        r = scan_one_folder(&scan);
        finds_release(&scan.finds);
        fetched = scan.fetched;
        i += scan.n;
    }
    return r;
}
