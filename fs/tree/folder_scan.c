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
#include "format/records/record_set.h"
#include "format/registry.h"
#include "fs/log/log.h"
#include "fs/tree/folder_scan_parts.h"

#define HEADS_AHEAD 128 /* files whose heads are fetched ahead */

/* The strongest claim, and whose it is: the first format that has it. */
static enum claim best_claim(const struct probed_file *file, unsigned *ret_format)
{
    const char *format_name = file->options ? file->options->format : NULL;
    enum claim best = CLAIM_NONE;

    *ret_format = n_formats;
    for (unsigned i = 0; i < n_formats && format_name; i++)
        if (format_is_called(formats[i], format_name)) {
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

/* Find the format that takes the file. Without one, placed->reason says why; a file that others
 * refer to has neither. 0 or -ENOMEM. */
static int find_format(struct folder_scan *scan, const struct blob *blob,
                       struct placed_file *placed)
{
    uint8_t head[FORMAT_HEAD];
    size_t len = (size_t)min_u64(sizeof(head), blob->size);
    const struct probed_file file = probed(scan, placed->file.name, head, len, blob);
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;

    placed->error = blob_read(READ_WAITS, blob, head, len, 0, &d);
    if (placed->error < 0) {
        text_add(&t, "%s", diag_text(&d, placed->error));
    } else {
        placed->claim = best_claim(&file, &placed->format);
        if (foreign_is_mistaken(&file) || folder_is_pointer(&file))
            placed->claim = CLAIM_NONE;
        if (placed->claim)
            return 0;
        placed->format = n_formats;
        placed->is_empty = !blob->size;
        placed->error = folder_describe_unknown(scan, blob, &file, &t);
    }
    return text_finish(&t, &placed->reason, NULL);
}

static void placed_free(struct folder_scan *scan)
{
    for (size_t i = 0; scan->placed && i < scan->n; i++) {
        free((char *)scan->placed[i].file.name);
        free(scan->placed[i].reason);
        blob_free(scan->placed[i].file.blob);
    }
    free(scan->placed);
    for (size_t i = 0; i < scan->n_twins; i++)
        free(scan->twin[i].note);
    free(scan->twin);
    siblings_release(&scan->siblings);
}

/* Does the format have side files with that suffix? */
static bool has_side(const struct format *format, const char *suffix)
{
    for (size_t i = 0; format->sides && format->sides[i]; i++)
        if (!strcmp(format->sides[i], suffix))
            return true;
    return false;
}

/* The file of the folder whose content decides about this one, which is called `own` without .gz or
 * .xz, and for which format. NULL: none. */
static const struct source_entry *find_decider(const struct folder_scan *scan,
                                               const struct source_entry *entry,
                                               const char *entry_name, unsigned *ret_format)
{
    char name[FORMAT_NAME];

    if (entry >= scan->entry + scan->n)
        return NULL;
    for (unsigned f = 0; f < n_formats; f++) {
        const struct folder_name *found =
            formats[f]->decided_by && formats[f]->decided_by(entry_name, name)
                ? folder_names_find(&scan->names, name, strlen(name))
                : NULL;

        *ret_format = f;
        if (found)
            return &scan->entry[found->number];
    }
    return NULL;
}

/* Does the content of that file say that it is of that format? */
static bool folder_scan_is_of(const struct folder_scan *scan, const struct source_entry *entry,
                              unsigned format)
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
 * n_formats. For formats with the same suffix the one that the other file is of; if it is of none
 * for sure, the last. */
static unsigned format_of_side(const struct folder_scan *scan, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t len = dot ? (size_t)(dot - name) : 0;
    const struct folder_name *found = len ? folder_names_find(&scan->names, name, len) : NULL;
    unsigned last = n_formats, n = 0;

    for (unsigned f = 0; found && f < n_formats; f++)
        if (has_side(formats[f], dot)) {
            last = f;
            n++;
        }
    for (unsigned f = 0; n > 1 && f < last; f++)
        if (has_side(formats[f], dot) && folder_scan_is_of(scan, &scan->entry[found->number], f))
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
    return is_guessing(scan) && foreign_find(&file);
}

/* main: when guessing, the format of SOURCE; only its side files count. */
static int place_file(struct folder_scan *scan, const struct source_entry *entry, unsigned main)
{
    struct placed_file *placed = &scan->placed[entry - scan->entry];
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    unsigned format = n_formats;
    const struct source_entry *decider;
    bool decided;
    int r;

    placed->file = (struct source_file){.name = unpacked_name(folder_scan_name(scan, entry)),
                                        .file_name = folder_scan_name(scan, entry),
                                        .folder = entry->folder};
    if (!placed->file.name)
        return -ENOMEM;
    decider = find_decider(scan, entry, placed->file.name, &format);
    decided = decider && folder_scan_is_of(scan, decider, format);
    r = decided && !is_packed(entry)
            ? source_blob_packed(scan->source, entry, &blob, &d)
            : source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, &d);
    if (r < 0)
        return folder_found_failed(&scan->finds, placed->file.file_name, r, diag_text(&d, r));
    if (!decided)
        format = format_of_side(scan, placed->file.name);
    if (!decided && format < n_formats)
        r = is_no_side(scan, placed->file.name, blob, format, &d);
    if (r < 0 && main < n_formats)
        return folder_found_failed(&scan->finds, placed->file.file_name, r, diag_text(&d, r));
    if (main < n_formats && (r == 1 || format != main))
        return 0;
    placed->format = format;
    placed->claim = CLAIM_NAMED;
    if (r == 1 || format == n_formats) {
        r = find_format(scan, blob, placed);
        if (r < 0 || placed->claim == CLAIM_ASIDE || !placed->claim)
            return r;
    }
    placed->file.blob = TAKE_PTR(blob);
    return 0;
}

/* The side files of the one file that SOURCE is. After one that cannot be read no other is waited
 * for. */
static int place_guessed(struct folder_scan *scan)
{
    unsigned main = n_formats;
    int r = 0;

    for (size_t i = 0; i < scan->n; i++)
        if (scan->placed[i].file.blob && formats[scan->placed[i].format]->sides)
            main = scan->placed[i].format;
    for (size_t i = 0; main < n_formats && i < scan->n && !scan->finds.n_unread && r == 0; i++)
        if (strcmp(scan->entry[i].name, scan->source->only_file) != 0)
            r = place_file(scan, &scan->entry[i], main);
    return r;
}

/* names: room for those of all files of the folder. */
static void name_files(struct folder_scan *scan, struct folder_name *names)
{
    for (size_t i = 0; i < scan->n; i++) {
        const char *name = folder_scan_name(scan, &scan->entry[i]);

        names[i] = (struct folder_name){name, unpacked_name_len(name), i};
    }
    scan->names = (struct folder_names){names, scan->n};
    folder_names_sort(&scan->names);
}

static bool is_source(const struct folder_scan *scan, const struct source_entry *entry)
{
    return scan->source->only_file && !strcmp(entry->name, scan->source->only_file);
}

/* Is it what programs leave next to data for themselves: checksums, marks of Hadoop, Spark and
 * Databricks that a job is done, what file managers keep? Nothing is said of it. */
static bool is_housekeeping(const struct folder_scan *scan, const struct source_entry *entry)
{
    static const char *const names[] = {"SHA256SUMS", "SHA512SUMS", "MD5SUMS",   "README.md",
                                        "_SUCCESS",   "_metadata",  "Thumbs.db", "desktop.ini"};
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

/* Report the files that no format takes. */
static int report_unknown(struct folder_scan *scan)
{
    int r = 0;

    for (size_t i = 0; i < scan->n && r == 0; i++)
        if (scan->placed[i].reason)
            r = folder_found_failed(&scan->finds, folder_scan_name(scan, &scan->entry[i]),
                                    scan->placed[i].error, scan->placed[i].reason);
    return r;
}

/* Forget n files that datasets lack, from the first of these on. */
static void forget_left_out(struct finds *finds, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++) {
        free(finds->left_out[i].name);
        free(finds->left_out[i].packed);
        free(finds->left_out[i].reason);
    }
    finds->n_left_out -= n;
    memmove(finds->left_out + first, finds->left_out + first + n,
            (finds->n_left_out - first) * sizeof(*finds->left_out));
}

/* Give the format its files; file: room for those of all formats. */
static int open_format(struct folder_scan *scan, unsigned f, struct source_file *file)
{
    struct finds *finds = &scan->finds;
    size_t n = 0, before = finds->n_left_out, strangers;
    int r;

    for (size_t i = 0; i < scan->n; i++)
        if (scan->placed[i].file.blob && scan->placed[i].format == f) {
            file[n++] = scan->placed[i].file;
            scan->placed[i].file.blob = NULL;
        }
    if (!n)
        return 0;
    scan->catalog->found |= UINT64_C(1) << f;
    r = folder_add_strangers(scan, f);
    strangers = finds->n_left_out - before;
    if (r == 0)
        r = format_open_folder(formats[f], file, n, &scan->catalog->tools->setup, finds);
    if (strangers)
        forget_left_out(finds, before, strangers);
    for (size_t i = 0; i < n; i++)
        blob_free(file[i].blob);
    return r;
}

static int place_files(struct folder_scan *scan)
{
    int r = 0;

    for (size_t i = 0; i < scan->n && r == 0; i++) {
        bool is_read = scan->source->only_file
                           ? !is_guessing(scan) || is_source(scan, &scan->entry[i])
                           : scan->group || !is_housekeeping(scan, &scan->entry[i]);

        fetch_heads(scan, &scan->entry[i]);
        if (is_read && !scan->group)
            r = folder_skip_twin(scan, &scan->entry[i]);
        if (is_read && r == 0)
            r = place_file(scan, &scan->entry[i], n_formats);
        r = r < 0 ? r : 0;
    }
    if (r == 0)
        r = is_guessing(scan) ? place_guessed(scan) : folder_join_siblings(scan);
    return r < 0 ? r : report_unknown(scan);
}

static int scan_one_folder(struct folder_scan *scan)
{
    AUTO_FREE struct folder_name *names = calloc(scan->n, sizeof(*names));
    AUTO_FREE struct source_file *file = calloc(scan->n, sizeof(*file));
    int r;

    scan->placed = calloc(scan->n, sizeof(*scan->placed));
    if (!scan->placed || !names || !file)
        return -ENOMEM;
    name_files(scan, names);
    scan->finds.names = &scan->names;
    r = place_files(scan);
    for (unsigned f = 0; f < n_formats && r == 0; f++)
        r = open_format(scan, f, file);
    return r;
}

static void scan_release(struct folder_scan *scan)
{
    struct finds *finds = &scan->finds;

    placed_free(scan);
    for (size_t i = 0; i < finds->n_unread; i++) {
        free(finds->unread[i].name);
        free(finds->unread[i].reason);
    }
    free(finds->unread);
    for (size_t i = 0; i < finds->n_left_out; i++) {
        free(finds->left_out[i].name);
        free(finds->left_out[i].packed);
        free(finds->left_out[i].reason);
    }
    free(finds->left_out);
}

static void folder_scan_last_part(const char *path, char ret[static NAME_MAX + 1])
{
    size_t len = strlen(path), from;

    while (len && path[len - 1] == '/')
        len--;
    for (from = len; from && path[from - 1] != '/'; from--)
        ;
    snprintf(ret, NAME_MAX + 1, "%.*s", (int)min_u64(len - from, NAME_MAX), path + from);
}

static const struct finds folder_finds = {
    .dataset = folder_found_dataset, .error = folder_found_error, .failed = folder_found_failed};

int folder_scan_group(const struct source *source, const struct source_list *list,
                      const struct named_group *group, struct catalog *catalog)
{
    AUTO_FREE char *folder = NULL;
    const char *name = strrchr(group->path, '/');
    struct folder_scan scan = {
        .finds = folder_finds,
        .catalog = catalog,
        .source = source,
        .entry = list->entry,
        .n = list->n,
        .group = group,
        .end = list->entry + list->n,
        .fetched = list->entry,
    };
    int r = 0;

    folder = strndup(group->path, name ? (size_t)(name - group->path) : 0);
    name = name ? name + 1 : group->path;
    if (!folder)
        return -ENOMEM;
    if (group->error)
        return folder_scan_add(catalog, NULL, folder, name, NULL, group->error);
    scan.folder = folder;
    scan.finds.joint = name;
    folder_scan_last_part(folder, scan.folder_name);
    scan.path = calloc(list->n + 1, sizeof(*scan.path));
    if (!scan.path)
        return -ENOMEM;
    for (size_t i = 0; i < list->n && r == 0; i++)
        r = text_print(&scan.path[i], "/%s%s%s", list->entry[i].folder,
                       *list->entry[i].folder ? "/" : "", list->entry[i].name);
    if (r == 0)
        r = scan_one_folder(&scan);
    for (size_t i = 0; i < list->n; i++)
        free(scan.path[i]);
    free(scan.path);
    scan_release(&scan);
    return r;
}

int folder_scan_all(const struct source *source, const struct source_list *list,
                    struct catalog *catalog)
{
    const struct source_entry *fetched = list->entry;
    int r = 0;

    for (size_t i = 0; i < list->n && r == 0;) {
        struct folder_scan scan = {
            .finds = folder_finds,
            .catalog = catalog,
            .source = source,
            .folder = list->entry[i].folder,
            .entry = &list->entry[i],
            .end = list->entry + list->n,
            .fetched = fetched,
        };

        folder_scan_last_part(*scan.folder ? scan.folder : source->root, scan.folder_name);
        while (i + scan.n < list->n && !strcmp(scan.entry[scan.n].folder, scan.folder))
            scan.n++;
        r = scan_one_folder(&scan);
        scan_release(&scan);
        fetched = scan.fetched;
        i += scan.n;
    }
    return r;
}
