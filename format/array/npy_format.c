/* The .npy files of a folder: each is an array; those that belong together are one dataset. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/array/set.h"
#include "format/array/shards.h"
#include "format/core/siblings.h"
#include "format/core/split_name.h"

extern const struct format format_npy;

/* Read one file. 1: its array was added, perhaps as one that is omitted; 0: the file was reported
 * only; or -ENOMEM. */
static int array_npy_add_file(struct arrays *arrays, struct source_file *file, uint64_t *left,
                              struct finds *finds)
{
    const char *what = blob_name(file->blob);
    size_t len = array_name_without(file->name, strlen(file->name), ".npy");
    struct diag d = DIAG_INIT;
    uint64_t size = file->blob->size;
    struct array *a;
    int r = 0, bad;

    if (len > ARRAY_NAME_MAX)
        return finds->failed(finds, file->file_name, -EBADMSG,
                             "the name: expected at most 48 bytes before .npy, got more");
    a = arrays_add(arrays, file->name, len);
    if (!a)
        return -ENOMEM;
    a->here.held = held_blob_new(TAKE_PTR(file->blob), NULL);
    if (!a->here.held)
        return -ENOMEM;
    if (a->repeats)
        r = diag_set(&d, -EBADMSG, "%s: another array in its folder is also called %s", what,
                     a->name);
    if (r == 0)
        r = npy_read(a, 0, size, false, what, &d);
    if (r == 0)
        r = array_in_c_order(a, left, what, &d);
    a->file = r == 0 ? file->name : ""; /* the reported file is a sibling, and no array */
    if (r == 0)
        return 1;
    if (r == -ENOMEM)
        return r;
    bad = finds->failed(finds, file->file_name, r, diag_text(&d, r));
    a->samples = 0; /* only its name says which files go with it */
    if (bad == 0 && r == -ENODATA)
        return array_leave_out_by(a, &d, what) < 0 ? -ENOMEM : 1;
    arrays_drop_last(arrays);
    return bad;
}

/* The split of an unread file that is called .npy; NULL: none. false: it has another name. */
static bool unread_split(const struct unread_file *file, const char **ret)
{
    size_t n = strlen(file->name), len = array_name_without(file->name, n, ".npy");
    char stem[ARRAY_NAME_MAX + 1];
    const char *plain;

    snprintf(stem, sizeof(stem), "%.*s", (int)min_u64(len, ARRAY_NAME_MAX), file->name);
    *ret = array_split(stem, &plain, &len);
    return text_ends_with(file->name, ".npy");
}

/* Files that cannot be read now may be part of a set. Without them, that set is an error, which
 * names the first. */
static int miss_files(struct arrays *arrays, struct finds *finds)
{
    const char *missed[SPLIT_NAMES + 1], *split, *stem; /* NULL: of no split */
    size_t n_missed = 0, n = finds->n_unread, k, len;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        if (!unread_split(&finds->unread[i], &split))
            continue;
        for (k = 0; k < n_missed && missed[k] != split;)
            k++;
        if (k < n_missed)
            continue;
        missed[n_missed++] = split;
        r = finds_incomplete(finds, split ? split : "all", &finds->unread[i]);
    }
    for (size_t i = 0; i < arrays->n && n_missed && r == 0; i++) {
        split = array_split(arrays->array[i].name, &stem, &len);
        for (k = 0; k < n_missed && missed[k] != split;)
            k++;
        if (k < n_missed)
            r = array_leave_out(&arrays->array[i],
                                "another file of its dataset cannot be read now");
    }
    return r;
}

/* Find the sets of the files, and join the arrays of each. */
static int find_sets(struct arrays *arrays, struct array_sets *sets, struct finds *finds)
{
    AUTO_FREE const char **name = calloc(arrays->n + 1, sizeof(*name));
    int r = name ? 0 : -ENOMEM;

    for (size_t i = 0; i < arrays->n && r == 0; i++)
        name[i] = arrays->array[i].file;
    sets->n = arrays->n;
    sets->n_left_out = sets->finds->n_left_out;
    if (r == 0)
        r = finds_siblings(sets->finds, name, arrays->n, &sets->siblings);
    return r < 0 ? r : arrays_join_sets(arrays, &sets->siblings, finds);
}

static int npy_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    AUTO_ARRAYS struct arrays arrays = {0};
    AUTO(array_sets_release)
    struct array_sets sets = {.finds = finds, .setup = setup, .left_out = finds->n_left_out};
    uint64_t left = FORTRAN_MAX;
    const struct arrays_source source = {.format = &format_npy,
                                         .where =
                                             n && *files->folder ? files->folder : "the folder",
                                         .sets = &sets};
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++)
        r = array_npy_add_file(&arrays, &files[i], &left, finds);
    if (r >= 0)
        r = setup->options.pair_off ? 0 : miss_files(&arrays, finds);
    if (r >= 0 && !setup->options.pair_off)
        r = find_sets(&arrays, &sets, finds);
    return r < 0 ? r : arrays_make_sets(&arrays, &source, setup, finds);
}

static enum claim npy_probe(const struct probed_file *file)
{
    return file->len >= 6 && !memcmp(file->head, NPY_MAGIC, 6) ? CLAIM_STRONG : CLAIM_NONE;
}

const struct format format_npy = {
    .name = "npy",
    .probe = npy_probe,
    .open_folder = npy_open_folder,
    .title = "npy (NumPy)",
    .add_example = array_set_example,
};
