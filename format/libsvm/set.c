/* Datasets of libsvm text: the rows of one file, or of several in sequence. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/core/extents.h"
#include "format/encode/encode.h"
#include "format/libsvm/fields_parts.h"

/* All files are ready: join their rows in sequence. */
static void rows_finish(struct dataset *ds)
{
    struct libsvm_rows *rows = ds->impl;
    uint32_t largest = 0, largest_field = 0;
    uint64_t counted = 0; /* features, by headers */
    bool any = false, from_one = true;

    libsvm_matrix_text_sizes(ds);
    for (unsigned i = 0; i < rows->shards.n; i++) {
        const struct libsvm_file *file = libsvm_rows_file(rows, i);
        struct row_sums sums = libsvm_file_sums(rows, file, file->base.prepared.index.rows);

        rows->before[i + 1].text = rows->before[i].text + sums.text;
        rows->before[i + 1].features = rows->before[i].features + sums.features;
        rows->groups[i + 1] = rows->groups[i] + file->side[LIBSVM_SIDE_GROUP].n;
        rows->labels = max_u64(rows->labels, file->totals.labels);
        rows->runs += file->matrix ? dmatrix_groups(file->matrix)
                      : file->side[LIBSVM_SIDE_GROUP].blob
                          ? file->side[LIBSVM_SIDE_GROUP].n
                          : places_run(&file->base.prepared.index, file->base.prepared.index.rows);
        any = any || file->totals.has_features;
        if (file->notes.text.len)
            notes_add(&ds->notes, "%s", file->notes.text.data);
        counted = max_u64(counted, file->header.count[1]);
        largest_field =
            file->totals.largest_field > largest_field ? file->totals.largest_field : largest_field;
        largest = file->totals.largest > largest ? file->totals.largest : largest;
        from_one = from_one && file->totals.has_features && !file->totals.has_zero;
    }
    rows->shift = rows->base_one || (rows->base_auto && from_one);
    rows->features = max_u64(any ? (uint64_t)largest + 1 - rows->shift : 0, counted);
    rows->fields = any && rows->has_fields ? (uint64_t)largest_field + 1 - rows->shift : 0;
    dataset_set_samples(ds, rows->shards.first[rows->shards.n]);
    libsvm_fields_finish(ds);
}

static int rows_prepare(struct dataset *ds, struct diag *d)
{
    struct libsvm_rows *rows = ds->impl;
    int r = shards_prepare(&rows->shards, d);

    if (r == 1)
        rows_finish(ds);
    return r;
}

static int rows_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                      void *ctx, struct diag *d)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);

    /* Each file of a folder also has a dataset of its own, which reports it. */
    return rows->shards.n == 1 ? libsvm_file_check(libsvm_rows_file(rows, 0), report, ctx, d) : 0;
}

static void rows_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    uint64_t left_out = 0;

    for (unsigned i = 0; i < rows->shards.n; i++)
        left_out += libsvm_rows_file(rows, i)->totals.skipped;
    json_add_number(t, indent, "features", rows->features);
    json_add_number(t, indent, "nonzeros", rows->before[rows->shards.n].features);
    json_add_number(t, indent, "index_base", rows->shift);
    json_add_number(t, indent, "num_row", ds->samples);
    json_add_number(t, indent, "num_col", rows->features);
    json_add_number(t, indent, "num_nonzero", rows->before[rows->shards.n].features);
    if (rows->has_fields)
        json_add_number(t, indent, "num_field", rows->fields);
    json_add_number(t, indent, "rows_left_out", left_out);
}

/* The counts as XGBoost logs them. */
static void rows_about(const struct dataset *ds, struct text *t)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);

    text_add(t, "    matrix   %llu rows x %llu columns, %llu entries",
             (unsigned long long)ds->samples, (unsigned long long)rows->features,
             (unsigned long long)rows->before[rows->shards.n].features);
    if (rows->has_fields)
        text_add(t, ", %llu fields", (unsigned long long)rows->fields);
    if (rows->runs)
        text_add(t, ", %llu groups", (unsigned long long)rows->runs);
    text_add(t, "%s\n", dataset_field(ds, "weight") ? ", weights" : "");
}

/* ---- of binary rows ---- */

static const struct dmatrix *first_matrix(const struct dataset *ds)
{
    return libsvm_rows_file(libsvm_rows_of(ds), 0)->matrix;
}

/* All files have the same. */
static void matrix_columns(const struct dataset *ds, struct text *t)
{
    const struct text *names = &first_matrix(ds)->names;

    text_add(t, "%s", names->len && names->len <= DMATRIX_NAMES_MAX ? names->data : "");
}

static void matrix_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct dmatrix *m = first_matrix(ds);
    const struct {
        const char *name;
        const struct text *text;
    } lists[] = {{"columns", &m->names}, {"feature_types", &m->types}};

    rows_describe(ds, indent, t);
    json_add(t, indent, "xgboost", "\"%u.%u.%u\"", m->version[0], m->version[1], m->version[2]);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (lists[i].text->len && lists[i].text->len <= DMATRIX_NAMES_MAX)
            json_add(t, indent, lists[i].name, "[%s]", lists[i].text->data);
}

static void rows_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                        struct text *t)
{
    struct libsvm_row_at at = libsvm_rows_find(libsvm_rows_of(ds), sample);

    (void)only;
    text_add(t, "%s:%llu+%llu", blob_name(at.file->base.blob), (unsigned long long)at.place.start,
             (unsigned long long)at.place.len);
}

/* Side files are in memory once the dataset is ready; fields of binary files that are stored are
 * not. */
static unsigned rows_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                             struct extent *ret)
{
    bool is_text = only && only->impl && libsvm_field_of(only)->content == LIBSVM_SHOWS_TEXT;
    struct libsvm_row_at at;
    unsigned n = 0;

    if (!only || libsvm_field_reads_rows(only)) {
        at = libsvm_rows_find(libsvm_rows_of(ds), sample);
        ret[n] = (struct extent){at.file->base.blob, at.place.start, at.place.len};
        n += at.place.len > 0;
    }
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];

        if (!f->blob || (only && only != f && !is_text))
            continue;
        ret[n].blob = field_place(f, sample, &ret[n].off);
        ret[n++].len = f->stored_bytes;
    }
    return n;
}

static void rows_free(struct dataset *ds)
{
    struct libsvm_rows *rows = ds->impl;

    ds->n_blobs = 0; /* the files own them */
    shards_release(&rows->shards);
    free(rows->before);
    free(rows->groups);
    free(rows->run);
    free(rows);
}

#define ROWS_OPS                                                                                   \
    .prepare = rows_prepare, .progress = shards_progress, .check = rows_check,                     \
    .locate = rows_locate, .about = rows_about, .extents = rows_extents, .free = rows_free,        \
    .checks_reads = true

static const struct dataset_ops libsvm_ops = {
    ROWS_OPS,
    .share = shards_share,
    .describe = rows_describe,
};

static const struct dataset_ops matrix_ops = {
    ROWS_OPS,
    .describe = matrix_describe,
    .columns = matrix_columns,
};

/* ---- making datasets ---- */

static int rows_add_files(struct dataset *ds, struct record_file *const *files, unsigned n)
{
    struct libsvm_rows *rows = ds->impl;
    int r = shards_init(&rows->shards, n);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        struct libsvm_file *file = (struct libsvm_file *)files[i];

        record_file_share(&file->base);
        shards_add(&rows->shards, &file->base);
        ds->blob[ds->n_blobs++] = file->base.blob;
        for (unsigned k = 0; k < N_LIBSVM_SIDES; k++)
            if (file->side[k].blob)
                ds->blob[ds->n_blobs++] = file->side[k].blob;
    }
    rows->before = calloc((size_t)n + 1, sizeof(*rows->before));
    rows->groups = calloc((size_t)n + 1, sizeof(*rows->groups));
    rows->run = calloc(rows->is_binary ? n : 1, sizeof(*rows->run) * N_DMATRIX_VECTORS);
    return rows->before && rows->groups && rows->run ? 0 : -ENOMEM;
}

int libsvm_dataset_of_files(const struct format *format, struct record_file *const *files,
                            unsigned n, const struct format_setup *setup, struct dataset **ret)
{
    const struct libsvm_file *first = (const struct libsvm_file *)files[0];
    bool has_fields = first->columns & LIBSVM_FIELD, is_binary = first->matrix;
    struct libsvm_rows *rows = calloc(1, sizeof(*rows));
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(format, is_binary ? &matrix_ops : &libsvm_ops, rows, LIBSVM_FIELDS_MAX,
                        (size_t)n * (1 + N_LIBSVM_SIDES), &ds);

    if (r < 0)
        return r;
    ds->shares_blobs = n > 1;
    ds->memo = rows->memo = setup->memo;
    rows->pool = setup->pool;
    rows->labels = 1;
    rows->has_fields = has_fields;
    rows->is_binary = is_binary;
    rows->base_one = !is_binary && setup->options.index_base == INDEX_FROM_ONE;
    rows->base_auto = !is_binary && setup->options.index_base == INDEX_AUTO;
    r = rows_add_files(ds, files, n);
    if (r == 0)
        r = libsvm_fields_init(ds);
    if (r == 0)
        r = dataset_add_folders(ds);
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}
