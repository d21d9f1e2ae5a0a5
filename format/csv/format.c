/* CSV: tables of numbers. */
#include <string.h>

#include "base/checked.h"
#include "format/csv/file.h"
#include "format/csv/probe.h"
#include "format/csv/sets.h"

extern const struct format format_csv;

static const struct csv_file *csv_file_of(const struct record_file *file)
{
    return (const struct csv_file *)file;
}

/* The names of columns are those of the first file. */
static void column_names(struct record_file *const *files, unsigned n, struct text *t)
{
    const struct csv_file *first = csv_file_of(files[0]);
    const struct csv_shape *s = &first->shape;
    size_t at = 0;

    (void)n;
    for (size_t i = 0, shown = 0; i < s->columns && at < s->names.len && s->has_header; i++) {
        if (csv_is_feature(s, i)) {
            text_add(t, "%s", shown++ ? ", " : "");
            text_add_json(t, s->names.data + at);
        }
        at += strlen(s->names.data + at) + 1;
    }
}

/* The counts that XGBoost keeps of a table. */
static void csv_describe(struct record_file *const *files, unsigned n, const char *indent,
                         struct text *t)
{
    const struct csv_file *first = csv_file_of(files[0]);
    const struct csv_shape *s = &first->shape;
    uint64_t features = csv_features(s);
    uint64_t rows = 0, missing = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct csv_file *file = csv_file_of(files[i]);

        rows += file->base.prepared.index.rows;
        missing += min_u64(file->missing, file->base.prepared.index.rows * features);
    }
    text_add(t, "%s\"num_row\": %llu,\n%s\"num_col\": %llu,\n%s\"num_nonzero\": %llu,\n", indent,
             (unsigned long long)rows, indent, (unsigned long long)features, indent,
             (unsigned long long)(rows * features - missing));
    if (!s->has_header)
        return;
    text_add(t, "%s\"columns\": [", indent);
    column_names(files, n, t);
    text_add(t, "],\n");
}

static bool calls_label(const void *file, const char *name)
{
    const struct csv_shape *s = &csv_file_of(file)->shape;

    return s->label != CSV_NONE && csv_shape_column(s, name) == s->label;
}

static const struct record_format csv = {
    .format = &format_csv,
    .file = &csv_file_ops,
    .has_groups = true,
    .text_folder = "csv",
    .dims = csv_dims,
    .extent = csv_extent,
    .joins = csv_joins,
    .joined = csv_joined,
    .read_rows = csv_read_rows,
    .read = csv_read,
    .verify = csv_verify,
    .note = csv_note,
    .check = csv_check,
    .describe = csv_describe,
    .column_names = column_names,
    .calls_label = calls_label,
};

static int csv_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    int r = csv_decide(files, n, setup);

    return r < 0 ? r : record_set_open_folder(&csv, files, n, setup, finds);
}

static const char *csv_option(const struct format_options *options)
{
    return options->label_column    ? "label_column"
           : options->weight_column ? "weight_column"
           : options->delimiter     ? "delimiter"
           : options->comment       ? "comment"
           : options->header        ? "header"
           : options->doubles       ? "dtype"
                                    : NULL;
}

static const char *csv_hint(const struct probed_file *file)
{
    return csv_is_named(file->name) && file->len && file->head[0] == '#'
               ? "if lines that begin with # are comments: -o csv_comment='#'"
               : NULL;
}

const struct format format_csv = {
    .name = "csv",
    .probe = csv_probe,
    .open_folder = csv_open_folder,
    .hint = csv_hint,
    .option = csv_option,
    .title = "CSV of numbers",
    .example = "  batch = np.load(root + '/batches/batch=1024,seed=7/epoch=0/npz/000000.npz')\n"
               "  x = batch['x']\n",
};
