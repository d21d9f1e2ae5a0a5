/* Files of a folder that decide for each other: the same file packed and unpacked, and siblings, of
 * which one alone may not say what it is: a table of one row, or a first row beyond the head. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/core/siblings.h"
#include "format/registry.h"
#include "fs/tree/folder_scan_parts.h"

/* ---- packed twins ---- */

/* Why the unpacked file may not be what the other one, packed, has; "": it seems to be. */
static const char *find_doubt(const struct folder_scan *scan, const struct source_entry *entry,
                              const struct blob *other, bool other_is_packed)
{
    AUTO_BLOB struct blob *packed = NULL;
    uint8_t end[4]; /* of gzip: the size of what was packed */

    if (source_blob_packed(scan->source, entry, &packed, NULL) < 0)
        return "";
    if (packed->mtime.tv_sec > other->mtime.tv_sec)
        return ", but is older. Remove the one that is out of date";
    if (!other_is_packed && !scan->source->remote->far &&
        (text_ends_with(entry->name, ".gz") || text_ends_with(entry->name, ".tgz")) &&
        packed->size > sizeof(end) &&
        blob_read(READ_WAITS, packed, end, sizeof(end), packed->size - sizeof(end), NULL) == 0 &&
        load_le32(end) != (uint32_t)other->size)
        return ", but another size. Remove the one that is wrong";
    return "";
}

/* The placed file that has the name, packed or not. NULL: none. */
static const struct placed_file *find_placed(const struct folder_scan *scan, const char *name,
                                             size_t len)
{
    const struct folder_name *found = folder_names_find(&scan->names, name, len);
    const struct placed_file *best = NULL;

    while (found && found > scan->names.file && found[-1].len == len &&
           !memcmp(found[-1].name, name, len))
        found--;
    for (; found && found < scan->names.file + scan->names.n && found->len == len &&
           !memcmp(found->name, name, len);
         found++) {
        const struct placed_file *placed = &scan->placed[found->number];

        if (placed->file.blob && (!best || !is_packed(&scan->entry[found->number])))
            best = placed;
    }
    return best;
}

/* A tar archive, and the same packed: their names without that of what is in them. */
static const char *const tars[] = {".tar", ".tgz", ".txz", ".tzst", ".tbz2"};

/* The length of the name without such an end; 0: it is that of no packed tar archive. */
static size_t packed_tar_len(const char *name)
{
    for (size_t i = 1; i < ARRAY_LEN(tars); i++)
        if (text_ends_with(name, tars[i]))
            return strlen(name) - strlen(tars[i]);
    return 0;
}

/* The placed file that the entry is, packed: it has the name without the suffix. NULL: none. */
static const struct placed_file *find_twin(const struct folder_scan *scan,
                                           const struct source_entry *entry)
{
    size_t len = packed_tar_len(entry->name);
    const struct placed_file *found = NULL;
    char name[NAME_MAX + 1];

    if (is_packed(entry))
        return find_placed(scan, entry->name, unpacked_name_len(entry->name));
    for (size_t i = 0; len && i < ARRAY_LEN(tars) && !found; i++) {
        int n = snprintf(name, sizeof(name), "%.*s%s", (int)len, entry->name, tars[i]);

        if (n > 0 && (size_t)n < sizeof(name) && strcmp(name, entry->name) != 0)
            found = find_placed(scan, name, (size_t)n);
    }
    return found;
}

int folder_skip_twin(struct folder_scan *scan, const struct source_entry *entry)
{
    const struct placed_file *other =
        scan->catalog->tools->setup.is_list ? NULL : find_twin(scan, entry);
    struct packed_twin *twin;
    bool is_unpacked;

    if (!other)
        return 0;
    if (array_capacity(&scan->twin, scan->n_twins, sizeof(*scan->twin)) < 0)
        return -ENOMEM;
    is_unpacked =
        !is_packed(&scan->entry[other - scan->placed]) && !packed_tar_len(other->file.name);
    twin = &scan->twin[scan->n_twins];
    twin->kept = other->file.blob;
    if (asprintf(&twin->note, "%s is ignored: %s has the same name%s%s", entry->name,
                 other->file.file_name, is_unpacked ? ", unpacked" : "",
                 find_doubt(scan, entry, other->file.blob, !is_unpacked)) < 0)
        return -ENOMEM;
    scan->n_twins++;
    return 1;
}

/* ---- siblings ---- */

/* Does a sibling have a say in what the file is? */
static bool is_unsure(const struct placed_file *placed)
{
    return placed->claim == CLAIM_GUESS || placed->claim == CLAIM_WEAK ||
           (placed->reason && placed->error == -EBADMSG);
}

/* What that format says of a file whose siblings are of it. ret_blob: the file; NULL: it cannot be
 * read. CLAIM_NONE also without memory: opening the file finds that. */
static enum claim claim_sibling(const struct folder_scan *scan, const struct placed_file *placed,
                                unsigned format, struct blob **ret_blob)
{
    const struct source_entry *entry = &scan->entry[placed - scan->placed];
    struct blob *blob = placed->file.blob;
    uint8_t head[FORMAT_HEAD];
    struct probed_file file;
    size_t len;

    *ret_blob = NULL;
    if (!blob && source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, NULL) < 0)
        return CLAIM_NONE;
    *ret_blob = blob;
    len = (size_t)min_u64(sizeof(head), blob->size);
    if (blob_read(READ_WAITS, blob, head, len, 0, NULL) < 0)
        return CLAIM_NONE;
    file = probed(scan, placed->file.name, head, len, blob);
    file.is_sibling = true;
    return formats[format]->probe(&file);
}

/* How many members of the set can be read in that format? */
static size_t count_readable(const struct folder_scan *scan, const struct sibling_set *set,
                             unsigned format)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n; i++) {
        const struct placed_file *placed =
            &scan->placed[scan->siblings.member[set->first + i].file];
        struct blob *blob = NULL;

        if (placed->is_empty || !is_unsure(placed))
            continue;
        n += claim_sibling(scan, placed, format, &blob) >= CLAIM_WEAK;
        if (blob != placed->file.blob)
            blob_free(blob);
    }
    return n;
}

/* The format of a set: the one with the strongest claims, of equal ones the one with most of them.
 * If none is sure, the one that most members can be read in. n_formats: none. */
static unsigned format_of_set(const struct folder_scan *scan, const struct sibling_set *set)
{
    size_t votes[64] = {0};
    enum claim most = CLAIM_NONE;
    unsigned best = n_formats, n_voted = 0;

    for (size_t i = 0; i < set->n; i++) {
        const struct placed_file *placed =
            &scan->placed[scan->siblings.member[set->first + i].file];
        enum claim claim = placed->claim < CLAIM_STRONG ? placed->claim : CLAIM_STRONG;

        if (!placed->file.blob || claim < most)
            continue;
        if (claim > most)
            memset(votes, 0, sizeof(votes));
        most = claim;
        votes[placed->format]++;
    }
    for (unsigned f = 0; f < n_formats; f++)
        n_voted += votes[f] > 0;
    for (unsigned f = 0; f < n_formats; f++) {
        if (votes[f] && n_voted > 1 && most < CLAIM_STRONG)
            votes[f] = count_readable(scan, set, f);
        if (votes[f] && (best == n_formats || votes[f] > votes[best]))
            best = f;
    }
    return best;
}

/* Give the file to that format, if it reads it. */
static void offer(const struct folder_scan *scan, struct placed_file *placed, unsigned format)
{
    struct blob *blob = NULL;

    if (claim_sibling(scan, placed, format, &blob)) {
        placed->format = format;
        placed->claim = CLAIM_WEAK;
        free(placed->reason);
        placed->reason = NULL;
        placed->file.blob = blob;
    } else if (blob != placed->file.blob) {
        blob_free(blob);
    }
}

/* Is a file of no bytes a part of a set of that format? It is none of gzip either: what is packed
 * has a header. */
static bool is_empty_part(const struct folder_scan *scan, const struct placed_file *placed,
                          unsigned format)
{
    const struct source_entry *entry = &scan->entry[placed - scan->placed];
    AUTO_BLOB struct blob *packed = NULL;

    if (!formats[format]->has_empty_files || !is_packed(entry))
        return formats[format]->has_empty_files;
    return source_blob_packed(scan->source, entry, &packed, NULL) == 0 && packed->size;
}

/* Is there a file whose siblings may decide about it, or are there files of several formats? */
static bool are_mixed(const struct folder_scan *scan)
{
    const struct placed_file *first = NULL;

    for (size_t i = 0; i < scan->n; i++) {
        const struct placed_file *placed = &scan->placed[i];

        if (is_unsure(placed) || (first && placed->file.blob && placed->format != first->format))
            return true;
        first = placed->file.blob ? placed : first;
    }
    return false;
}

static int folder_siblings_join_set(struct folder_scan *scan, const struct sibling_set *set)
{
    unsigned format = format_of_set(scan, set);
    int r = 0;

    for (size_t i = 0; i < set->n && format < n_formats && r == 0; i++) {
        struct placed_file *placed = &scan->placed[scan->siblings.member[set->first + i].file];

        if (!is_unsure(placed) || (placed->file.blob && placed->format == format))
            continue;
        if (!placed->is_empty) {
            offer(scan, placed, format);
            continue;
        }
        if (!is_empty_part(scan, placed, format))
            continue;
        r = folder_found_empty(&scan->finds, placed->file.name);
        free(placed->reason);
        placed->reason = NULL;
    }
    return r;
}

int folder_join_siblings(struct folder_scan *scan)
{
    AUTO_FREE const char **name = calloc(scan->n, sizeof(*name));
    int r = name ? 0 : -ENOMEM;

    if (r < 0 || !are_mixed(scan))
        return r;
    for (size_t i = 0; i < scan->n; i++)
        name[i] = scan->placed[i].file.name ? scan->placed[i].file.name : "";
    r = siblings_find(name, scan->n, &scan->siblings);
    for (size_t s = 0; s < scan->siblings.n && r == 0; s++)
        r = folder_siblings_join_set(scan, &scan->siblings.set[s]);
    for (size_t i = 0; i < scan->n; i++)
        scan->placed[i].is_read = scan->placed[i].file.blob != NULL;
    return r;
}

/* Report the members of a set that are of other formats. */
static int add_strangers(struct folder_scan *scan, const struct sibling_set *set, unsigned format)
{
    int r = 0;

    for (size_t i = 0; i < set->n && r == 0; i++) {
        const struct placed_file *placed =
            &scan->placed[scan->siblings.member[set->first + i].file];
        AUTO_TEXT struct text t = {0};
        char *reason;

        if (!placed->is_read || placed->format == format)
            continue;
        text_add(&t, "is %s, not %s as this dataset is", formats[placed->format]->name,
                 formats[format]->name);
        r = text_finish(&t, &reason, NULL);
        if (r == 0)
            r = folder_leave_out(&scan->finds, strdup(placed->file.name), reason);
    }
    return r;
}

int folder_add_strangers(struct folder_scan *scan, unsigned format)
{
    int r = 0;

    for (size_t s = 0; s < scan->siblings.n && r == 0; s++) {
        const struct sibling_set *set = &scan->siblings.set[s];
        bool is_own = false;

        for (size_t i = 0; i < set->n && !is_own; i++) {
            const struct placed_file *placed =
                &scan->placed[scan->siblings.member[set->first + i].file];

            is_own = placed->is_read && placed->format == format;
        }
        if (is_own)
            r = add_strangers(scan, set, format);
    }
    return r;
}
