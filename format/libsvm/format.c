/* libsvm text as a format: which files belong to it, and which of them are joined. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "base/text.h"
#include "format/core/encoder.h"
#include "format/core/format.h"
#include "format/core/siblings.h"
#include "format/libsvm/rows.h"
#include "format/records/record_set.h"

extern const struct format format_libsvm, format_libfm, format_dmatrix;

static struct libsvm_file *file_at(const struct record_folder *folder, unsigned i)
{
    return (struct libsvm_file *)folder->file[i];
}

static const struct format *format_of(const struct libsvm_file *file)
{
    return file->matrix                   ? &format_dmatrix
           : file->columns & LIBSVM_FIELD ? &format_libfm
                                          : &format_libsvm;
}

/* Is it a side file of another source? columns: those that the format says. */
static bool source_is_side(const struct record_folder *folder, unsigned columns, const char *name)
{
    for (const char *const *suffix = libsvm_side_suffixes; *suffix; suffix++)
        if (!(columns & LIBSVM_BINARY) && text_ends_with(name, *suffix) &&
            folder_names_has(&folder->names, name, strlen(name) - strlen(*suffix)))
            return true;
    return false;
}

/* Attach the side files of a source to its file; a second one of a kind is an error. */
static int attach_sides(const struct record_folder *folder, const struct source_file *base,
                        struct libsvm_file *file)
{
    const struct folder_names *names = &folder->names;
    size_t len = strlen(base->name);
    int r = 0;

    /* All names that begin with that of the source are looked at. */
    for (size_t i = SEARCH(names->n, k, strcmp(names->file[k].name, base->name) < 0);
         i < names->n && !strncmp(names->file[i].name, base->name, len) && r == 0; i++) {
        struct source_file *source = &folder->source[names->file[i].number];
        enum libsvm_side_type type;
        char reason[1024];

        if (file->matrix || !source->blob || !libsvm_side_find(source->name, base->name, &type))
            continue;
        if (!file->side[type].blob) {
            file->side[type].blob = TAKE_PTR(source->blob);
            continue;
        }
        snprintf(reason, sizeof(reason),
                 "%s: %s gives the same for the rows of %s; expected only one of them",
                 blob_name(source->blob), blob_name(file->side[type].blob), base->name);
        r = folder->finds->error(folder->finds, source->file_name, reason);
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

/* is_one: all others are side files. */
static int libsvm_open_file(struct record_folder *folder, struct source_file *source,
                            unsigned columns, bool is_one)
{
    const struct format_setup *setup = folder->setup;
    const struct format_options *options = &setup->options;
    struct finds *finds = folder->finds;
    struct diag d = DIAG_INIT;
    struct libsvm_file *file = NULL;
    AUTO_DATASET struct dataset *ds = NULL;
    enum libsvm_side_type type;
    int r;

    for (size_t i = 0; i < finds->n_unread; i++)
        if (libsvm_side_find(finds->unread[i].name, source->name, &type))
            return finds_incomplete(finds, source->file_name, &finds->unread[i]);
    r = libsvm_file_new(TAKE_PTR(source->blob),
                        columns | (options->index_base == INDEX_FROM_ONE ? LIBSVM_FROM_ONE : 0u),
                        options->bad_rows == BAD_ROWS_SKIP, setup, &file, &d);

    if (r == 0 && !setup->is_list) {
        r = find_unlike(file, source->name, &d);
        if (r < 0)
            record_file_drop(&file->base);
    }
    if (r < 0)
        return finds->failed(finds, source->file_name, r, diag_text(&d, r));
    folder->name[folder->n] = source->name;
    folder->file[folder->n++] = &file->base;
    r = attach_sides(folder, source, file);
    if (r == 0)
        r = libsvm_dataset_of_files(format_of(file), &folder->file[folder->n - 1], 1, setup, &ds);
    if (r == 0 && is_one)
        r = record_folder_missing(folder, 0, 1, false, &ds->missing);
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
static bool set_has_features(const struct record_folder *folder, const struct siblings *siblings,
                             unsigned i)
{
    const struct sibling_set *set =
        siblings->set_of[i] ? &siblings->set[siblings->set_of[i] - 1] : NULL;

    for (size_t k = 0; set && k < set->n; k++)
        if (file_at(folder, (unsigned)siblings->member[set->first + k].file)->has_features)
            return true;
    return false;
}

/* Find lists of numbers, such as labels, among other files: none has features, nor has a sibling.
 */
static int find_lists(const struct record_folder *folder)
{
    AUTO_SIBLINGS struct siblings siblings = {0};
    int r = siblings_find(folder->name, folder->n, &siblings);

    for (unsigned i = 0; i < folder->n && folder->n > 1 && r == 0; i++) {
        struct libsvm_file *file = file_at(folder, i);

        if (file->has_features || set_has_features(folder, &siblings, i))
            continue;
        file->stays_alone = true;
        notes_add(
            &file->notes,
            "%s: no part of `" SHARDS_ALL
            "`, because its first rows have no features: it may be a list of labels; a list of "
            "files, 'a.txt;%s', joins what it names",
            blob_name(file->base.blob), folder->name[i]);
    }
    return r;
}

/* Drop those that stay alone. What `all` lacks without them is added to missing, and what people
 * have to know to notes. 0 or -ENOMEM. */
static int keep_alike(struct record_folder *folder, struct missing_parts *missing,
                      struct notes *notes)
{
    unsigned kept = 0;
    int r = 0;

    for (unsigned i = 0; i < folder->n; i++) {
        struct libsvm_file *file = file_at(folder, i);

        if (!file->stays_alone) {
            folder->name[kept] = folder->name[i];
            folder->file[kept++] = &file->base;
            continue;
        }
        if (!file->has_features)
            notes_add(notes, "%s", file->notes.text.data ? file->notes.text.data : "");
        else if (r == 0)
            r = missing_parts_add(missing, folder->name[i],
                                  "more than a tenth of its first rows cannot be read");
        record_file_drop(&file->base);
    }
    folder->n = kept;
    return r;
}

static bool files_are_alike(const struct libsvm_file *a, const struct libsvm_file *b)
{
    return a->matrix ? dmatrix_is_alike(a->matrix, b->matrix)
                     : !((a->columns ^ b->columns) & ~(unsigned)LIBSVM_VALUES) &&
                           sides_of(a) == sides_of(b);
}

/* Make one dataset from all files of the folder, if they have the same columns. */
static int join_files(struct record_folder *folder)
{
    const struct format_setup *setup = folder->setup;
    struct finds *finds = folder->finds;
    AUTO_DATASET struct dataset *ds = NULL;
    AUTO_MISSING_PARTS struct missing_parts missing = {0};
    AUTO_NOTES struct notes notes = {0};
    int r = setup->is_list ? 0 : find_lists(folder);

    if (r == 0)
        r = keep_alike(folder, &missing, &notes);
    if (r == 0)
        r = shards_join(folder->n, finds);
    if (r != 1)
        return r;
    for (unsigned i = 1; i < folder->n; i++) {
        const struct libsvm_file *a = file_at(folder, 0), *b = file_at(folder, i);
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
    r = libsvm_dataset_of_files(format_of(file_at(folder, 0)), folder->file, folder->n, setup, &ds);
    if (r == 0)
        r = record_folder_missing(folder, 0, folder->n, true, &missing);
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
    AUTO_RECORD_FOLDER struct record_folder folder;
    size_t rows = 0;
    int r = record_folder_begin(&folder, sources, n, setup, finds);

    if (r == 0)
        r = folder_names_of(sources, n, &folder.names);
    for (size_t i = 0; i < n && r == 0; i++)
        rows += !source_is_side(&folder, columns, sources[i].name);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!source_is_side(&folder, columns, sources[i].name))
            r = libsvm_open_file(&folder, &sources[i], columns, rows == 1);
    return r < 0 ? r : join_files(&folder);
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
