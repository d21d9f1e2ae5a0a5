/* The .npy files of a folder: each is an array; those that belong together are one dataset. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/array/set.h"
#include "format/array/shards.h"
#include "format/core/siblings.h"

extern const struct format format_npy;

/* Read one file. 1: its array was added, perhaps as one that is left out; 0: the file was reported
 * only; or -ENOMEM. */
static int add_file(struct arrays *arrays, struct source_file *file, uint64_t *left,
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
                             "the name: want at most 48 bytes before .npy, found more");
    a = arrays_add(arrays, file->name, len);
    if (!a)
        return -ENOMEM;
    a->held = held_blob_new(TAKE_PTR(file->blob), NULL);
    if (!a->held)
        return -ENOMEM;
    if (a->repeats)
        r = diag_set(&d, -EBADMSG, "%s: want one array called %s in its folder, found another",
                     what, a->name);
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
        return array_leave_out(a, d.text + strlen(what) + 2) < 0 ? -ENOMEM : 1;
    arrays_drop_last(arrays);
    return bad;
}

/* A file that cannot be read now may be part of a set. Without it, that set is an error. */
static int miss_files(struct arrays *arrays, struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < finds->n_unread && r == 0; i++) {
        const struct unread_file *missing = &finds->unread[i];
        size_t n = strlen(missing->name), len = array_name_without(missing->name, n, ".npy");
        AUTO_FREE char *stem = strndup(missing->name, len);
        const char *rest, *split;

        if (!stem)
            return -ENOMEM;
        if (len == n) /* not called .npy */
            continue;
        split = array_split(stem, &rest, &len);
        for (size_t k = 0; k < arrays->n && r == 0; k++)
            if (array_split(arrays->array[k].name, &rest, &len) == split)
                r = array_leave_out(&arrays->array[k],
                                    "another file of its dataset cannot be read now");
        if (r == 0)
            r = finds_incomplete(finds, split ? split : "all", missing);
    }
    return r;
}

/* What is known of the files of a folder, to say what a dataset lacks. */
struct folder_sets {
    const struct finds *finds;
    const struct format_setup *setup;
    struct siblings siblings;
    size_t n;        /* arrays */
    size_t left_out; /* files that were reported before */
};

static void folder_sets_release(struct folder_sets *sets)
{
    siblings_release(&sets->siblings);
}

static int add_missing(const struct arrays_source *source, const struct arrays *arrays,
                       const struct array_group *group, struct missing_parts *ret)
{
    const struct folder_sets *sets = source->ctx;
    int r = 0;

    if (group->is_main)
        return finds_missing(sets->finds, sets->left_out, &sets->siblings, sets->n, FINDS_ALL,
                             sets->setup, ret);
    for (size_t i = 0; i < group->n && r == 0; i++) {
        size_t set = arrays->array[group->member[i]].set;

        if (set)
            r = finds_missing(sets->finds, sets->left_out, &sets->siblings, sets->n, set - 1,
                              sets->setup, ret);
    }
    return r;
}

/* Find the sets of the files, and join the arrays of each. */
static int find_sets(struct arrays *arrays, struct folder_sets *sets)
{
    AUTO_FREE const char **name = calloc(arrays->n + 1, sizeof(*name));
    int r = name ? 0 : -ENOMEM;

    for (size_t i = 0; i < arrays->n && r == 0; i++)
        name[i] = arrays->array[i].file;
    sets->n = arrays->n;
    if (r == 0)
        r = finds_siblings(sets->finds, name, arrays->n, &sets->siblings);
    return r < 0 ? r : arrays_join_sets(arrays, &sets->siblings);
}

static int npy_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    AUTO_ARRAYS struct arrays arrays = {0};
    AUTO(folder_sets_release)
    struct folder_sets sets = {.finds = finds, .setup = setup, .left_out = finds->n_left_out};
    uint64_t left = FORTRAN_MAX;
    const struct arrays_source source = {.format = &format_npy,
                                         .where =
                                             n && *files->folder ? files->folder : "the folder",
                                         .missing = add_missing,
                                         .ctx = &sets};
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++)
        r = add_file(&arrays, &files[i], &left, finds);
    if (r >= 0)
        r = setup->options.pair_off ? 0 : miss_files(&arrays, finds);
    if (r >= 0 && !setup->options.pair_off)
        r = find_sets(&arrays, &sets);
    return r < 0 ? r : arrays_make_sets(&arrays, &source, setup, finds);
}

static enum claim npy_probe(const struct probed_file *file)
{
    return file->len >= 6 && !memcmp(file->head, "\x93NUMPY", 6) ? CLAIM_STRONG : CLAIM_NONE;
}

const struct format format_npy = {
    .name = "npy",
    .probe = npy_probe,
    .open_folder = npy_open_folder,
    .title = "npy (NumPy)",
    .example = array_set_example,
};
