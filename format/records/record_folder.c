/* The files of a folder become datasets: each file, each group, and all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "format/records/record_set.h"

/* note: what its log says of it; not set: nothing. */
static int add_dataset(const struct record_format *rf, const struct shard *file, unsigned n,
                       const char *name, bool unlisted, const struct diag *note,
                       const struct format_setup *setup, struct finds *finds)
{
    struct dataset *ds = NULL;
    int r = record_set_new(rf, file, n, setup, &ds);

    if (r < 0)
        return r;
    ds->unlisted = unlisted;
    notes_add(&ds->notes, "%s", note->text);
    return finds->dataset(finds, name, ds);
}

/* The opened files of a folder. */
struct opened {
    const struct record_format *rf;
    struct shard *file; /* [n] each has one user here */
    const char **name;  /* [n] */
    unsigned n;
};

static void opened_release(struct opened *opened)
{
    while (opened->n)
        opened->rf->file.drop(opened->file[--opened->n].file);
    free(opened->file);
    free(opened->name);
}

static int open_files(struct opened *opened, struct source_file *source, size_t n,
                      const struct format_setup *setup, struct finds *finds)
{
    const struct record_format *rf = opened->rf;
    int r = 0;

    opened->file = calloc(n, sizeof(*opened->file));
    opened->name = calloc(n, sizeof(*opened->name));
    if (!opened->file || !opened->name)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct diag d = DIAG_INIT;

        if (!source[i].blob || (rf->is_beside && rf->is_beside(&source[i])))
            continue;
        opened->name[opened->n] = source[i].name;
        r = rf->open(source, n, i, setup, &opened->file[opened->n], &d);
        if (r < 0)
            r = finds->failed(finds, source[i].file_name, r, diag_text(&d, r));
        else
            opened->n++;
    }
    return r;
}

/* The first file from first + 1 on that cannot be in one dataset with file first, and why; end:
 * there is none. */
static unsigned first_apart(const struct opened *opened, unsigned first, unsigned end,
                            struct diag *d)
{
    const struct record_format *rf = opened->rf;
    unsigned i = first + 1;

    while (i < end &&
           (!rf->joins || rf->joins(opened->file[first].file, opened->file[i].file, d) == 0))
        i++;
    return i;
}

/* A dataset for each group of several files, but not for that of all. */
static int add_groups(const struct opened *opened, const struct format_setup *setup,
                      struct finds *finds)
{
    const struct record_format *rf = opened->rf;
    char group[RECORD_GROUP_SIZE], next[RECORD_GROUP_SIZE];
    const struct diag nothing = DIAG_INIT;
    struct diag why = DIAG_INIT;
    int r = 0;

    for (unsigned first = 0, end; first < opened->n && r == 0; first = end) {
        end = first + 1;
        if (!rf->group(opened->name[first], group))
            continue;
        while (end < opened->n && rf->group(opened->name[end], next) && !strcmp(group, next))
            end++;
        if (end - first > 1 && end - first < opened->n &&
            first_apart(opened, first, end, &why) == end)
            r = add_dataset(rf, &opened->file[first], end - first, group, false, &nothing, setup,
                            finds);
    }
    return r;
}

int record_set_open_folder(const struct record_format *rf, struct source_file *source, size_t n,
                           const struct format_setup *setup, struct finds *finds)
{
    AUTO(opened_release) struct opened opened = {.rf = rf};
    int r = open_files(&opened, source, n, setup, finds), joins;
    const struct diag nothing = DIAG_INIT;
    struct diag why = DIAG_INIT;
    unsigned apart;
    bool one;

    if (r < 0)
        return r;
    joins = shards_join(opened.n, finds);
    apart = joins == 1 ? first_apart(&opened, 0, opened.n, &why) : opened.n;
    one = joins == 1 && apart == opened.n;
    for (unsigned i = 0; i < opened.n && r == 0; i++)
        r = add_dataset(rf, &opened.file[i], 1, opened.name[i], one && opened.n > RECORD_LISTED,
                        i == apart ? &why : &nothing, setup, finds);
    if (r == 0 && one)
        r = add_dataset(rf, opened.file, opened.n, SHARDS_ALL, false, &nothing, setup, finds);
    if (r == 0 && joins == 1 && rf->group)
        r = add_groups(&opened, setup, finds);
    return r < 0 ? r : joins < 0 ? joins : 0;
}
