/* libsvm text as a format: which files belong to it, and which of them are joined. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "base/text.h"
#include "format/core/encoder.h"
#include "format/core/format.h"
#include "format/core/siblings.h"
#include "format/libsvm/rows.h"

extern const struct format format_libsvm, format_libfm, format_dmatrix;

/* The files of a folder, while datasets are made from them. */
struct folder_files {
    unsigned columns; /* 0, LIBSVM_FIELD or LIBSVM_BINARY */
    struct source_file *source;
    size_t n_sources;
    struct folder_names names;
    struct libsvm_file **file; /* [n] owned */
    const char **name;         /* [n] of their sources; owned */
    unsigned n;
    bool is_one;     /* all others are side files */
    size_t left_out; /* files that were reported before this folder was opened */
};

static const struct format *format_of(const struct folder_files *files)
{
    return files->columns & LIBSVM_BINARY  ? &format_dmatrix
           : files->columns & LIBSVM_FIELD ? &format_libfm
                                           : &format_libsvm;
}

static void libsvm_folder_files_release(struct folder_files *files)
{
    for (unsigned i = 0; i < files->n; i++)
        record_file_drop(&files->file[i]->base);
    free(files->file);
    free(files->name);
    free(files->names.file);
}

/* Is it a side file of another source? */
static bool source_is_side(const struct folder_files *files, const char *name)
{
    for (const char *const *suffix = libsvm_side_suffixes; *suffix; suffix++)
        if (!(files->columns & LIBSVM_BINARY) && text_ends_with(name, *suffix) &&
            folder_names_has(&files->names, name, strlen(name) - strlen(*suffix)))
            return true;
    return false;
}

/* Attach the side files of a source to its file; a second one of a kind is an error. */
static int attach_sides(struct folder_files *files, const struct source_file *base,
                        struct libsvm_file *file, struct finds *finds)
{
    const struct folder_names *names = &files->names;
    size_t len = strlen(base->name);
    int r = 0;

    /* All names that begin with that of the source are looked at. */
    for (size_t i = SEARCH(names->n, k, strcmp(names->file[k].name, base->name) < 0);
         i < names->n && !strncmp(names->file[i].name, base->name, len) && r == 0; i++) {
        struct source_file *source = &files->source[names->file[i].number];
        enum libsvm_side_kind type;
        char reason[1024];

        if (files->columns & LIBSVM_BINARY || !source->blob ||
            !libsvm_side_find(source->name, base->name, &type))
            continue;
        if (!file->side[type].blob) {
            file->side[type].blob = TAKE_PTR(source->blob);
            continue;
        }
        snprintf(reason, sizeof(reason),
                 "%s: %s gives the same for the rows of %s; expected only one of them",
                 blob_name(source->blob), blob_name(file->side[type].blob), base->name);
        r = finds->error(finds, source->file_name, reason);
    }
    return r;
}

/* For a file that the user has not named. If more than a tenth of its first rows cannot be read, it
 * may be a text about the data, and stays alone. */
static int find_unlike(struct libsvm_file *file, const char *name, struct diag *d)
{
    size_t len = (size_t)min_u64(FORMAT_HEAD, file->base.blob->size);
    struct libsvm_first seen;
    uint8_t head[FORMAT_HEAD];
    unsigned bad;
    int r;

    file->has_features = file->matrix;
    if (file->matrix)
        return 0;
    r = blob_read(READ_WAITS, file->base.blob, head, len, 0, d);
    if (r < 0)
        return r;
    seen =
        libsvm_first_of_head(head, len, len == file->base.blob->size, file->columns & LIBSVM_FIELD);
    bad = seen.alike + seen.bad;
    file->has_features = seen.strong || seen.alike || seen.cells != 1 || seen.ragged;
    file->stays_alone = bad * 10 > seen.rows;
    if (file->stays_alone)
        notes_add(&file->notes,
                  "%s: no part of `" SHARDS_ALL
                  "`, for more than a tenth of its first rows (%u of %u) "
                  "cannot be read; a list of files, 'a.txt;%s', joins what it names",
                  blob_name(file->base.blob), bad, seen.rows, name);
    return 0;
}

/* Add what the files that are joined lack; is_one: what the set of the only file lacks. */
static int libsvm_find_missing(const struct folder_files *files, bool is_one,
                               const struct format_setup *setup, const struct finds *finds,
                               struct missing_parts *missing)
{
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = finds_siblings(finds, files->name, files->n, &siblings);

    if (r < 0 || (is_one && !siblings.set_of[0]))
        return r;
    return finds_missing(finds, files->left_out, &siblings, files->n,
                         is_one ? siblings.set_of[0] - 1 : FINDS_ALL, setup, missing);
}

static int libsvm_open_file(struct folder_files *files, struct source_file *source,
                            const struct format_setup *setup, struct finds *finds)
{
    const struct format_options *options = &setup->options;
    struct diag d = DIAG_INIT;
    struct libsvm_file *file = NULL;
    AUTO_DATASET struct dataset *ds = NULL;
    enum libsvm_side_kind type;
    int r;

    for (size_t i = 0; i < finds->n_unread; i++)
        if (libsvm_side_find(finds->unread[i].name, source->name, &type))
            return finds_incomplete(finds, source->file_name, &finds->unread[i]);
    r = libsvm_file_new(TAKE_PTR(source->blob),
                        files->columns |
                            (options->index_base == INDEX_FROM_ONE ? LIBSVM_FROM_ONE : 0u),
                        options->bad_rows == BAD_ROWS_SKIP, setup, &file, &d);

    if (r == 0 && !setup->is_list) {
        r = find_unlike(file, source->name, &d);
        if (r < 0)
            record_file_drop(&file->base);
    }
    if (r < 0)
        return finds->failed(finds, source->file_name, r, diag_text(&d, r));
    files->name[files->n] = source->name;
    files->file[files->n++] = file;
    r = attach_sides(files, source, file, finds);
    if (r == 0)
        r = libsvm_dataset_of_files(format_of(files), &file, 1, setup, &ds);
    if (r == 0 && files->is_one)
        r = libsvm_find_missing(files, true, setup, finds, &ds->missing);
    return r < 0 ? r : finds->dataset(finds, source->name, TAKE_PTR(ds));
}

static unsigned sides_of(const struct libsvm_file *file)
{
    unsigned sides = 0;

    for (unsigned i = 0; i < N_LIBSVM_SIDES; i++)
        sides |= file->side[i].blob ? 1u << i : 0;
    return sides;
}

/* Describe, for messages, what a file has besides label and features. */
static void describe_columns(const struct libsvm_file *file, struct text *t)
{
    const struct {
        bool is_there;
        const char *name;
    } columns[] = {
        {file->columns & LIBSVM_WEIGHT, "weights"},
        {file->columns & LIBSVM_QID, "qids"},
        {file->side[LIBSVM_SIDE_WEIGHT].blob, "a file of weights"},
        {file->side[LIBSVM_SIDE_GROUP].blob, "a file of groups"},
        {file->side[LIBSVM_SIDE_MARGIN].blob, "a file of margins"},
    };

    for (unsigned i = 0; file->matrix && i < N_DMATRIX_VECTORS; i++)
        if (file->matrix->vector[i].n)
            text_add(t, "%s%s (%llu per row)", t->len ? ", " : "", dmatrix_vector_name(i),
                     (unsigned long long)file->matrix->vector[i].per_row);
    if (file->matrix)
        text_add(t, "%s%llu names", t->len ? ", " : "", (unsigned long long)file->matrix->n_names);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (columns[i].is_there)
            text_add(t, "%s%s", t->len ? ", " : "", columns[i].name);
    text_add(t, "%s", t->len ? "" : "nothing");
}

/* Has a part of the set of the file features? */
static bool set_has_features(const struct folder_files *files, const struct siblings *siblings,
                             unsigned i)
{
    const struct sibling_set *set =
        siblings->set_of[i] ? &siblings->set[siblings->set_of[i] - 1] : NULL;

    for (size_t k = 0; set && k < set->n; k++)
        if (files->file[siblings->member[set->first + k].file]->has_features)
            return true;
    return false;
}

/* Find lists of numbers, such as labels, among other files: none has features, nor has a sibling.
 */
static int find_lists(struct folder_files *files)
{
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = siblings_find(files->name, files->n, &siblings);

    for (unsigned i = 0; i < files->n && files->n > 1 && r == 0; i++) {
        struct libsvm_file *file = files->file[i];

        if (file->has_features || set_has_features(files, &siblings, i))
            continue;
        file->stays_alone = true;
        notes_add(
            &file->notes,
            "%s: no part of `" SHARDS_ALL
            "`, because its first rows have no features: it may be a list of labels; a list of "
            "files, 'a.txt;%s', joins what it names",
            blob_name(file->base.blob), files->name[i]);
    }
    return r;
}

/* Drop those that stay alone. What `all` lacks without them is added to missing, and what people
 * have to know to notes. 0 or -ENOMEM. */
static int keep_alike(struct folder_files *files, struct missing_parts *missing,
                      struct notes *notes)
{
    unsigned kept = 0;
    int r = 0;

    for (unsigned i = 0; i < files->n; i++) {
        struct libsvm_file *file = files->file[i];

        if (!file->stays_alone) {
            files->name[kept] = files->name[i];
            files->file[kept++] = file;
            continue;
        }
        if (!file->has_features)
            notes_add(notes, "%s", file->notes.text.data ? file->notes.text.data : "");
        else if (r == 0)
            r = missing_parts_add(missing, files->name[i],
                                  "more than a tenth of its first rows cannot be read");
        record_file_drop(&file->base);
    }
    files->n = kept;
    return r;
}

static bool files_are_alike(const struct libsvm_file *a, const struct libsvm_file *b)
{
    return a->matrix ? dmatrix_is_alike(a->matrix, b->matrix)
                     : !((a->columns ^ b->columns) & ~(unsigned)LIBSVM_VALUES) &&
                           sides_of(a) == sides_of(b);
}

/* Make one dataset from all files of the folder, if they have the same columns. */
static int join_files(struct folder_files *files, const struct format_setup *setup,
                      struct finds *finds)
{
    AUTO_DATASET struct dataset *ds = NULL;
    AUTO_MISSING_PARTS struct missing_parts missing = {0};
    AUTO_NOTES struct notes notes = {0};
    int r = setup->is_list ? 0 : find_lists(files);

    if (r == 0)
        r = keep_alike(files, &missing, &notes);
    if (r == 0)
        r = shards_join(files->n, finds);
    if (r != 1)
        return r;
    for (unsigned i = 1; i < files->n; i++) {
        const struct libsvm_file *a = files->file[0], *b = files->file[i];
        AUTO_TEXT struct text columns_a = {0}, columns_b = {0};
        char reason[2048];

        if (files_are_alike(a, b))
            continue;
        describe_columns(a, &columns_a);
        describe_columns(b, &columns_b);
        snprintf(reason, sizeof(reason),
                 "%s and %s cannot be one dataset: expected the same fields with label and "
                 "features in all, "
                 "in their rows or in side files, got %s in the first, %s in the second. Each is "
                 "served alone.",
                 blob_name(a->base.blob), blob_name(b->base.blob),
                 columns_a.data ? columns_a.data : "", columns_b.data ? columns_b.data : "");
        return finds->error(finds, SHARDS_ALL, reason);
    }
    r = libsvm_dataset_of_files(format_of(files), files->file, files->n, setup, &ds);
    if (r == 0)
        r = libsvm_find_missing(files, false, setup, finds, &missing);
    if (r < 0)
        return r;
    ds->missing = missing;
    missing = (struct missing_parts){0};
    notes_add(&ds->notes, "%s", notes.text.data ? notes.text.data : "");
    return finds->dataset(finds, SHARDS_ALL, TAKE_PTR(ds));
}

static int libsvm_format_open_folder(struct source_file *sources, size_t n, unsigned columns,
                                     const struct format_setup *setup, struct finds *finds)
{
    AUTO(libsvm_folder_files_release)
    struct folder_files files = {
        .columns = columns, .source = sources, .n_sources = n, .left_out = finds->n_left_out};
    size_t rows = 0;
    int r = folder_names_of(sources, n, &files.names);

    files.file = calloc(n, sizeof(*files.file));
    files.name = calloc(n + 1, sizeof(*files.name));
    if (r < 0 || !files.file || !files.name)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        rows += !source_is_side(&files, sources[i].name);
    files.is_one = rows == 1;
    for (size_t i = 0; i < n && r == 0; i++)
        if (!source_is_side(&files, sources[i].name))
            r = libsvm_open_file(&files, &sources[i], setup, finds);
    return r < 0 ? r : join_files(&files, setup, finds);
}

static int libsvm_open_folder(struct source_file *sources, size_t n,
                              const struct format_setup *setup, struct finds *finds)
{
    return libsvm_format_open_folder(sources, n, 0, setup, finds);
}

static int libfm_open_folder(struct source_file *sources, size_t n,
                             const struct format_setup *setup, struct finds *finds)
{
    return libsvm_format_open_folder(sources, n, LIBSVM_FIELD, setup, finds);
}

static int dmatrix_open_folder(struct source_file *sources, size_t n,
                               const struct format_setup *setup, struct finds *finds)
{
    return libsvm_format_open_folder(sources, n, LIBSVM_BINARY, setup, finds);
}

static enum claim dmatrix_probe(const struct probed_file *file)
{
    return dmatrix_is(file->head, file->len) ? CLAIM_STRONG : CLAIM_NONE;
}

static void libsvm_example(const struct dataset *ds, struct text *t)
{
    char key[KEY_NAME_SIZE];

    text_add(t,
             "  import scipy.sparse\n"
             "  path = root + '/batches/batch=128,seed=7/epoch=0/npz/000000.npz'\n"
             "  x, batch = scipy.sparse.load_npz(path), np.load(path)\n"
             "  %s, index%s = %s, batch['index']%s\n",
             dataset_field(ds, "label") ? "label" : "key",
             libsvm_rows_of(ds)->has_fields ? ", field" : "",
             dataset_field(ds, "label") ? "batch['label']" : "batch['key']",
             libsvm_rows_of(ds)->has_fields ? ", batch['field']" : "");
    if (!ds->samples || !dataset_field(ds, "row"))
        return;
    dataset_name(ds, 0, false, key);
    text_add(t, "  line = open(root + '/samples/svm/%s.svm').read()\n", key);
}

const struct format format_libsvm = {
    .name = "libsvm",
    .probe = libsvm_probe,
    .open_folder = libsvm_open_folder,
    .sides = libsvm_side_suffixes,
    .has_empty_files = true,
    .title = "libsvm text",
    .add_example = libsvm_example,
};

const struct format format_libfm = {
    .name = "libfm",
    .probe = libfm_probe,
    .open_folder = libfm_open_folder,
    .sides = libsvm_side_suffixes,
    .has_empty_files = true,
    .title = "LibFM text",
    .add_example = libsvm_example,
};

const struct format format_dmatrix = {
    .name = "dmatrix",
    .probe = dmatrix_probe,
    .open_folder = dmatrix_open_folder,
    .title = "XGBoost's binary DMatrix",
    .add_example = libsvm_example,
};
