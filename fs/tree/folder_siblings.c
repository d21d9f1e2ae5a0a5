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
    if (!other_is_packed && !scan->source->remote->far && text_ends_with(entry->name, ".gz") &&
        packed->size > sizeof(end) &&
        blob_read(READ_WAITS, packed, end, sizeof(end), packed->size - sizeof(end), NULL) == 0 &&
        load_le32(end) != (uint32_t)other->size)
        return ", but another size. Remove the one that is wrong";
    return "";
}

/* The placed file that has the name of the entry without its suffix. NULL: none. */
static const struct placed_file *find_twin(const struct folder_scan *scan,
                                           const struct source_entry *entry)
{
    size_t len = unpacked_name_len(entry->name);
    const struct folder_name *found = folder_names_find(&scan->names, entry->name, len);
    const struct placed_file *best = NULL;

    while (found && found > scan->names.file && found[-1].len == len &&
           !memcmp(found[-1].name, entry->name, len))
        found--;
    for (; found && found < scan->names.file + scan->names.n && found->len == len &&
           !memcmp(found->name, entry->name, len);
         found++) {
        const struct placed_file *placed = &scan->placed[found->number];

        if (placed->file.blob && (!best || !is_packed(&scan->entry[found->number])))
            best = placed;
    }
    return best;
}

int folder_skip_twin(struct folder_scan *scan, const struct source_entry *entry)
{
    const struct placed_file *other =
        scan->catalog->tools->setup.is_list || !is_packed(entry) ? NULL : find_twin(scan, entry);
    struct packed_twin *twin;
    bool is_unpacked;

    if (!other)
        return 0;
    if (array_capacity(&scan->twin, scan->n_twins, sizeof(*scan->twin)) < 0)
        return -ENOMEM;
    is_unpacked = !is_packed(&scan->entry[other - scan->placed]);
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
    return placed->claim == CLAIM_WEAK || (placed->reason && placed->error == -EBADMSG);
}

/* The format that most members of the set are of, for sure if any is. n_formats: none. */
static unsigned format_of_set(const struct folder_scan *scan, const struct siblings *siblings,
                              const struct sibling_set *set)
{
    size_t votes[64] = {0};
    unsigned best = n_formats;
    bool any_sure = false;

    for (size_t i = 0; i < set->n; i++) {
        const struct placed_file *placed = &scan->placed[siblings->member[set->first + i].file];

        if (placed->file.blob && placed->claim >= CLAIM_STRONG && !any_sure) {
            memset(votes, 0, sizeof(votes));
            any_sure = true;
        }
        if (placed->file.blob && (placed->claim >= CLAIM_STRONG) == any_sure)
            votes[placed->format]++;
    }
    for (unsigned f = 0; f < n_formats; f++)
        if (votes[f] && (best == n_formats || votes[f] > votes[best]))
            best = f;
    return best;
}

/* Give the file to that format, if it reads it. 0 or -ENOMEM. */
static int offer(struct folder_scan *scan, struct placed_file *placed, unsigned format)
{
    const struct source_entry *entry = &scan->entry[placed - scan->placed];
    AUTO_BLOB struct blob *blob = TAKE_PTR(placed->file.blob);
    uint8_t head[FORMAT_HEAD];
    struct probed_file file;
    size_t len;
    int r = blob ? 0 : source_blob(scan->source, entry, &scan->catalog->tools->cache, &blob, NULL);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    len = (size_t)min_u64(sizeof(head), blob->size);
    file = probed(scan, placed->file.name, head, len, blob);
    file.is_sibling = true;
    if (blob_read(READ_WAITS, blob, head, len, 0, NULL) == 0 && formats[format]->probe(&file)) {
        placed->format = format;
        placed->claim = CLAIM_WEAK;
        free(placed->reason);
        placed->reason = NULL;
    }
    if (!placed->reason)
        placed->file.blob = TAKE_PTR(blob);
    return 0;
}

int folder_join_siblings(struct folder_scan *scan)
{
    AUTO_FREE const char **name = calloc(scan->n, sizeof(*name));
    AUTO_SIBLINGS struct siblings siblings = {0};
    bool any = false;
    int r = name ? 0 : -ENOMEM;

    for (size_t i = 0; i < scan->n && r == 0; i++) {
        name[i] = scan->placed[i].file.name ? scan->placed[i].file.name : "";
        any = any || is_unsure(&scan->placed[i]);
    }
    if (r == 0 && any)
        r = siblings_find(name, scan->n, &siblings);
    for (size_t s = 0; s < siblings.n && r == 0; s++) {
        const struct sibling_set *set = &siblings.set[s];
        unsigned format = format_of_set(scan, &siblings, set);

        for (size_t i = 0; i < set->n && format < n_formats && r == 0; i++) {
            struct placed_file *placed = &scan->placed[siblings.member[set->first + i].file];

            if (!is_unsure(placed) || (placed->file.blob && placed->format == format))
                continue;
            if (!placed->is_empty) {
                r = offer(scan, placed, format);
                continue;
            }
            r = folder_found_empty(&scan->finds, placed->file.name);
            free(placed->reason);
            placed->reason = NULL;
        }
    }
    return r;
}
