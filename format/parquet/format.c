/* The format: which files are Parquet, which of them are one dataset, and what people are told. */
#include <errno.h>
#include <string.h>

#include "format/parquet/file.h"

/* ---- what is said of a file ---- */

static void parquet_damage(const void *p, struct text *t)
{
    const struct parquet_file *file = p;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];

        if (c->faults)
            text_add(t, "%s: column '%s': %llu rows cannot be read: %s\n",
                     blob_name(file->base.blob), c->name, (unsigned long long)c->faults,
                     c->fault ? c->fault : "");
    }
}

static void parquet_note(const void *p, struct text *t)
{
    const struct parquet_file *file = p;

    if (file->notes.len)
        text_add(t, "%s", file->notes.data);
    if (file->footer.said_rows != file->footer.rows)
        text_add(t, "%s: says that it has %llu rows, its row groups have %llu\n",
                 blob_name(file->base.blob), (unsigned long long)file->footer.said_rows,
                 (unsigned long long)file->footer.rows);
}

/* Are columns the same kind of thing in both files? */
static bool parquet_same(const struct parquet_column *a, const struct parquet_column *b)
{
    return !strcmp(a->name, b->name) && a->shown == b->shown && a->dtype == b->dtype &&
           a->is_text == b->is_text && a->ndim == b->ndim && a->tail == b->tail &&
           (a->shown != SHOWN_NUMBER || a->width == b->width) &&
           !strcmp(a->node->unit, b->node->unit) &&
           (a->convert == CONVERT_INT96) == (b->convert == CONVERT_INT96) &&
           (a->shown != SHOWN_JSON || a->n_leaves == b->n_leaves);
}

static int parquet_joins(const void *p, const void *other, struct diag *d)
{
    const struct parquet_file *a = p, *b = other;
    const char *name = blob_name(b->base.blob), *first = blob_name(a->base.blob);

    for (unsigned i = 0; i < a->n_columns || i < b->n_columns; i++) {
        const struct parquet_column *x, *y;

        if (i >= a->n_columns || i >= b->n_columns)
            return diag_set(d, -EDOM, "%s: expected the %u columns of %s, got %u", name,
                            a->n_columns, first, b->n_columns);
        x = &a->column[i];
        y = &b->column[i];
        if (!parquet_same(x, y))
            return diag_set(d, -EDOM,
                            "%s: column %u: expected '%s' as in %s, got '%s', or the same name "
                            "with another type",
                            name, i, x->name, first, y->name);
        if ((x->classes || y->classes) && !json_equal(x->classes, y->classes))
            return diag_set(d, -EDOM,
                            "%s: column '%s': expected the names of classes of %s, got "
                            "others",
                            name, x->name, first);
    }
    return 0;
}

/* ---- dataset.json ---- */

static void parquet_add_classes(const struct parquet_file *file, const char *indent, struct text *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < file->n_columns; i++)
        n += file->column[i].classes != NULL;
    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];
        size_t len = strlen(c->name);
        bool ends = len > 6 && !strcmp(c->name + len - 6, "_label");

        if (!c->classes)
            continue;
        if (n == 1 || !strcmp(c->name, "label"))
            text_add(t, "%s\"classes\": [", indent);
        else
            text_add(t, "%s\"%.*s_classes\": [", indent, (int)(ends ? len - 6 : len), c->name);
        for (size_t k = 0; k < json_array_size(c->classes); k++) {
            text_add(t, "%s", k ? ", " : "");
            text_add_json(t, json_string_value(json_array_get(c->classes, k)));
        }
        text_add(t, "],\n");
    }
}

static void parquet_add_times(const struct parquet_file *file, const char *indent, struct text *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const struct parquet_column *c = &file->column[i];
        bool is_time = c->shown == SHOWN_NUMBER && *c->node->unit;

        if (!is_time && (c->shown != SHOWN_NUMBER || c->convert != CONVERT_INT96))
            continue;
        text_add(t, n++ ? ", " : "%s\"times\": {", indent);
        text_add_json(t, c->name);
        text_add(t, ": {\"unit\": \"%s\", \"utc\": %s}", is_time ? c->node->unit : "us",
                 c->node->utc ? "true" : "false");
    }
    text_add(t, "%s", n ? "},\n" : "");
}

static void parquet_describe(struct record_file *const *files, unsigned n, const char *indent,
                             struct text *t)
{
    const struct parquet_file *file = (const struct parquet_file *)files[0];

    (void)n;
    parquet_add_classes(file, indent, t);
    parquet_add_times(file, indent, t);
    if (file->footer.writer) {
        text_add(t, "%s\"written_by\": ", indent);
        text_add_json(t, file->footer.writer);
        text_add(t, ",\n");
    }
}

static bool parquet_class_name(const void *p, int64_t number, struct text *t)
{
    const struct parquet_file *file = p;

    for (unsigned i = 0; i < file->n_columns; i++) {
        const json_t *classes = file->column[i].classes;

        if (strcmp(file->column[i].name, "label") != 0 || !classes || number < 0 ||
            (uint64_t)number >= json_array_size(classes))
            continue;
        text_add(t, "%s", json_string_value(json_array_get(classes, (size_t)number)));
        return true;
    }
    return false;
}

static const struct record_format parquet_records = {
    .format = &format_parquet,
    .file = &parquet_file_ops,
    .has_groups = true,
    .text_folder = "json",
    .joins = parquet_joins,
    .has = parquet_has,
    .dims = parquet_dims,
    .extent = parquet_extent,
    .is_copy = parquet_is_copy,
    .read = parquet_read,
    .read_rows = parquet_read_rows,
    .damage = parquet_damage,
    .note = parquet_note,
    .describe = parquet_describe,
    .class_name = parquet_class_name,
};

/* ---- the format ---- */

/* The ends of all files are fetched at once, so that footers do not come one after another. */
static int parquet_open_folder(struct source_file *files, size_t n,
                               const struct format_setup *setup, struct finds *finds)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t size = files[i].blob->size, len = min_u64(size, PARQUET_TAIL_READ);

        blob_fetch(files[i].blob, size - len, len, NULL);
    }
    return record_set_open_folder(&parquet_records, files, n, setup, finds);
}

/* Files that say something of a folder of others, and have no rows. */
static bool parquet_is_aside(const char *name)
{
    return !strcmp(name, "_metadata") || !strcmp(name, "_common_metadata");
}

static enum claim parquet_probe(const struct probed_file *file)
{
    if (file->len < PARQUET_MAGIC ||
        (memcmp(file->head, "PAR1", 4) != 0 && memcmp(file->head, "PARE", 4) != 0))
        return CLAIM_NONE;
    return parquet_is_aside(file->name) ? CLAIM_ASIDE : CLAIM_NAMED;
}

const struct format format_parquet = {
    .name = "parquet",
    .probe = parquet_probe,
    .open_folder = parquet_open_folder,
    .title = "Parquet",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
