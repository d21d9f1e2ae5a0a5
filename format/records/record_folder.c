/* The files of a folder become datasets: each file, each group, and all of them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "format/core/siblings.h"
#include "format/records/record_set.h"

/* Files of one format, and the sets among them. */
struct opened {
    const struct record_format *rf;
    struct record_folder folder;
    struct siblings siblings;
};

/* Files of a folder that become one dataset. */
struct part {
    struct record_file *const *file; /* [n] */
    unsigned n;
    bool is_whole; /* all files, a set, or the only file of it: what they lack is reported */
    size_t set;    /* its number, or FINDS_ALL */
    bool unlisted; /* see struct dataset */
};

int record_folder_begin(struct record_folder *ret, struct source_file *source, size_t n,
                        const struct format_setup *setup, struct finds *finds)
{
    *ret = (struct record_folder){.source = source,
                                  .n_sources = n,
                                  .setup = setup,
                                  .finds = finds,
                                  .left_out = finds->n_left_out,
                                  .file = calloc(n + 1, sizeof(struct record_file *)),
                                  .name = calloc(n + 1, sizeof(*ret->name))};
    return ret->file && ret->name ? 0 : -ENOMEM;
}

void record_folder_release(struct record_folder *folder)
{
    while (folder->n)
        record_file_drop(folder->file[--folder->n]);
    free(folder->file);
    free(folder->name);
    free(folder->names.file);
}

int record_folder_missing(const struct record_folder *folder, unsigned first, unsigned n,
                          bool is_whole, struct missing_parts *ret)
{
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = finds_siblings(folder->finds, folder->name + first, n, &siblings);

    if (r < 0 || (!is_whole && !siblings.set_of[0]))
        return r;
    return finds_missing(folder->finds, folder->left_out, &siblings, n,
                         is_whole ? FINDS_ALL : siblings.set_of[0] - 1, folder->setup, ret);
}

static void opened_release(struct opened *opened)
{
    record_folder_release(&opened->folder);
    siblings_release(&opened->siblings);
}

static int record_folder_open_files(struct record_folder *folder, const struct record_format *rf)
{
    int r = 0;

    for (size_t i = 0; i < folder->n_sources && r == 0; i++) {
        const struct record_source source = {folder->source, folder->n_sources, i, folder->setup};
        struct source_file *file = &folder->source[i];
        struct diag d = DIAG_INIT;

        if (!file->blob || (rf->is_beside && rf->is_beside(file)))
            continue;
        folder->name[folder->n] = file->name;
        r = record_file_open(rf->file, &source, &folder->file[folder->n], &d);
        if (r < 0)
            r = folder->finds->failed(folder->finds, file->file_name, r, diag_text(&d, r));
        else
            folder->n++;
    }
    return r;
}

/* note: what else is said of it; NULL: nothing. */
static int record_folder_add_dataset(const struct opened *opened, const struct part *part,
                                     const char *name, const struct diag *note)
{
    const struct record_folder *f = &opened->folder;
    AUTO_DATASET struct dataset *ds = NULL;
    int r = record_set_new(opened->rf, part->file, part->n, f->setup, &ds);

    if (r == 0 && part->is_whole)
        r = finds_missing(f->finds, f->left_out, &opened->siblings, f->n, part->set, f->setup,
                          &ds->missing);
    if (r < 0)
        return r;
    ds->unlisted = part->unlisted;
    notes_add(&ds->notes, "%s", note ? note->text : "");
    return f->finds->dataset(f->finds, name, TAKE_PTR(ds));
}

/* The first of n files that cannot be in one dataset with the first, and why; n: there is none. */
static unsigned first_apart(const struct record_format *rf, struct record_file *const *file,
                            unsigned n, struct diag *d)
{
    unsigned i = 1;

    while (i < n && (!rf->joins || rf->joins(file[0], file[i], d) == 0))
        i++;
    return i;
}

/* A dataset of a set of several files, but not of that of all. */
static int record_folder_add_group(const struct opened *opened, size_t set)
{
    const struct siblings *siblings = &opened->siblings;
    const struct record_folder *f = &opened->folder;
    AUTO_FREE struct record_file **file = calloc(f->n, sizeof(struct record_file *));
    char set_name[NAME_MAX + 1], full_name[sizeof(set_name) + 32];
    struct diag why = DIAG_INIT;
    unsigned n = 0;

    if (!file)
        return -ENOMEM;
    for (unsigned i = 0; i < f->n; i++) /* in the order of the files */
        if (siblings->set_of[i] == set + 1)
            file[n++] = f->file[i];
    if (n < 2 || n == f->n || !sibling_set_name(siblings, set, set_name, sizeof(set_name)) ||
        first_apart(opened->rf, file, n, &why) < n)
        return 0;
    snprintf(full_name, sizeof(full_name), "%s-of-%llu", set_name,
             (unsigned long long)siblings->set[set].total);
    return record_folder_add_dataset(opened, &(struct part){file, n, true, set, false},
                                     sibling_set_other(siblings, set) == set ? set_name : full_name,
                                     NULL);
}

/* Report that the files are no one dataset, if the whole of something is among them in two ways. 1:
 * it is; 0: it is not; or -ENOMEM. */
static int find_two_cuts(const struct opened *opened)
{
    const struct siblings *s = &opened->siblings;

    for (size_t i = 0; i < s->n; i++) {
        size_t other = sibling_set_other(s, i);
        char reason[2048];
        int r;

        if (other == i)
            continue;
        snprintf(
            reason, sizeof(reason),
            "%s and %s belong to two sets: of %llu files, and of %llu. Remove the files of one "
            "set, or mount the other as a list: epochfs mount 'a;b' MOUNTPOINT",
            s->name[s->member[s->set[i].first].file], s->name[s->member[s->set[other].first].file],
            (unsigned long long)s->set[i].total, (unsigned long long)s->set[other].total);
        r = opened->folder.finds->error(opened->folder.finds, SHARDS_ALL, reason);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* The datasets of several files. one: all can be in one. */
static int add_joint(const struct opened *opened, bool one)
{
    const struct siblings *siblings = &opened->siblings;
    const struct record_folder *f = &opened->folder;
    int cuts = one && !f->setup->is_list ? find_two_cuts(opened) : 0, r = 0;

    if (cuts < 0)
        return cuts;
    if (one && !cuts)
        r = record_folder_add_dataset(opened, &(struct part){f->file, f->n, true, FINDS_ALL, false},
                                      SHARDS_ALL, NULL);
    for (size_t i = 0; i < siblings->n && r == 0 && opened->rf->has_groups; i++)
        if (siblings->set[i].total)
            r = record_folder_add_group(opened, i);
    return r;
}

/* All files are one dataset, or none is. */
static int record_folder_add_all(const struct opened *opened)
{
    const struct record_folder *f = &opened->folder;
    const char *name = f->finds->joint;
    struct diag why = DIAG_INIT;

    if (!f->n)
        return 0;
    if (f->finds->n_unread)
        return finds_incomplete(f->finds, name, &f->finds->unread[0]);
    if (first_apart(opened->rf, f->file, f->n, &why) < f->n)
        return f->finds->error(f->finds, name, why.text);
    return record_folder_add_dataset(opened, &(struct part){f->file, f->n, true, FINDS_ALL, false},
                                     name, NULL);
}

int record_set_open_folder(const struct record_format *rf, struct source_file *source, size_t n,
                           const struct format_setup *setup, struct finds *finds)
{
    AUTO(opened_release) struct opened opened = {.rf = rf};
    struct record_folder *f = &opened.folder;
    int r = record_folder_begin(f, source, n, setup, finds), joins;
    struct diag why = DIAG_INIT;
    unsigned apart;
    bool one;

    if (r == 0)
        r = record_folder_open_files(f, rf);
    if (r == 0 && !rf->add_sets)
        r = finds_siblings(finds, f->name, f->n, &opened.siblings);
    if (r < 0 || (finds->joint && !rf->add_sets))
        return r < 0 ? r : record_folder_add_all(&opened);
    joins = shards_join(f->n, finds);
    apart = joins == 1 ? first_apart(rf, f->file, f->n, &why) : f->n;
    one = joins == 1 && apart == f->n;
    for (unsigned i = 0; i < f->n && r == 0; i++) {
        size_t set = rf->add_sets ? 0 : opened.siblings.set_of[i];

        r = record_folder_add_dataset(
            &opened,
            &(struct part){&f->file[i], 1, f->n == 1 && set, set - 1, one && f->n > RECORD_LISTED},
            f->name[i], i == apart ? &why : NULL);
    }
    if (r == 0 && joins == 1)
        r = rf->add_sets ? rf->add_sets(f->file, f->n, setup, finds) : add_joint(&opened, one);
    return r < 0 ? r : joins < 0 ? joins : 0;
}

int format_open_folder(const struct format *format, struct source_file *files, size_t n,
                       const struct format_setup *setup, struct finds *finds)
{
    return format->open_folder ? format->open_folder(files, n, setup, finds)
                               : record_set_open_folder(format->records, files, n, setup, finds);
}
