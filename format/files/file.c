/* What a row of a collection shows, whatever says which files are a sample: the bytes of members,
 * values that members have, labels, and cells of a table. */
#include "format/files/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define STEP 1024 /* rows of a table in a step of preparing */

/* ---- the bytes of a collection ---- */

size_t files_source_find(const struct files_source *source, const char *path)
{
    const char *base = path_base(path);

    return members_lookup(source->members, path, (size_t)(base - path) - (base > path), base);
}

static void files_source_drop(struct files_source *source)
{
    if (--source->users)
        return;
    free(source->root);
    files_free_claim(source->claim);
    claim_boxes_free(source->boxes);
    free(source->unread);
    blob_free(source->blob);
    free(source);
}

/* Takes over blob, and what c and its claim have, also on error. 0 or -ENOMEM. */
static int files_source_new(struct collection *c, struct blob *blob, const struct members *members,
                            struct files_source **ret)
{
    struct files_source *source = malloc(sizeof(*source));

    if (!source) {
        blob_free(blob);
        return -ENOMEM;
    }
    *source = (struct files_source){.blob = blob,
                                    .members = members,
                                    .root = strdup(c->root),
                                    .claim = TAKE_PTR(c->impl),
                                    .n_unread = c->n_unread,
                                    .unread = TAKE_PTR(c->unread),
                                    .users = 1};
    if (!source->root) {
        files_source_drop(source);
        return -ENOMEM;
    }
    *ret = source;
    return 0;
}

/* ---- one file of records ---- */

int files_file_new(const struct files_ops *ops, struct files_source *source,
                   const struct format_setup *setup, void *ret)
{
    struct files_file *file;
    int r = record_file_new(&ops->file, source->blob, setup, &file);

    if (r < 0)
        return r;
    file->ops = ops;
    file->source = source;
    source->users++;
    *(struct files_file **)ret = file;
    return 0;
}

void files_file_release(struct files_file *file)
{
    row_walk_release(&file->walk);
    column_table_release(&file->exts);
    free(file->number);
    free(file->shows);
    free(file->column);
    free(file->name);
    files_source_drop(file->source);
    file->base.blob = NULL; /* the source's */
}

int files_table_open(struct files_file *file, size_t member)
{
    file->table = member;
    file->name = files_source_name(file->source, member);
    file->base.prepared.size = members_size(file->source->members, member);
    return file->name ? 0 : -ENOMEM;
}

int files_table_begin(struct files_file *file, enum table_format format, size_t numbers)
{
    const struct member *table = &file->source->members->member[file->table];

    file->walk = (struct row_walk){.blob = file->source->blob,
                                   .format = format,
                                   .at = table[0].place,
                                   .end = table[1].place,
                                   .name = file->name};
    file->number = calloc(numbers, sizeof(*file->number));
    return file->number ? 0 : -ENOMEM;
}

int files_table_step(struct files_file *file,
                     int (*add_row)(void *file, const struct row_bytes *row, const char *what,
                                    struct diag *d),
                     struct diag *d)
{
    struct row_walk *walk = &file->walk;
    struct row_bytes row;
    char what[512];
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0; i++) {
        r = row_walk_next(walk, &row, d);
        if (r <= 0) {
            r = r < 0 ? r : 1;
            break;
        }
        snprintf(what, sizeof(what), "%s, line %" PRIu64, walk->name, walk->line);
        r = add_row(file, &row, what, d);
    }
    atomic_store(&file->base.prepared.seen,
                 walk->at - file->source->members->member[file->table].place);
    return r == 1 && blob_verify(file->source->blob, d) < 0 ? -ESTALE : r;
}

/* ---- columns ---- */

static bool files_is_complete(const void *ctx, unsigned field)
{
    const struct files_file *file = ctx;

    return file->exts.column[field].number[MEMBER_ROWS] == files_index(file)->rows;
}

int files_make_columns(struct files_file *file, unsigned more)
{
    int r = member_columns_make(&file->exts, more, files_is_complete, file, &file->shows,
                                &file->column, &file->base.n_columns);

    file->base.column = file->column;
    file->n_members = file->base.n_columns;
    return r;
}

void files_add_labels(struct files_file *file, uint64_t least, uint64_t most, unsigned in_tar)
{
    bool is_array = least != 1 || most != 1;

    file->n_labels = is_array ? 1 : 2;
    file->column[file->base.n_columns++] =
        (struct record_column){.name = "label",
                               .shown = RECORD_NUMBERS,
                               .dtype = DTYPE_I8,
                               .ndim = is_array,
                               .dim = {least == most ? least : DIM_VARIES},
                               .without = RECORD_NOT_TAR};
    if (!is_array)
        file->column[file->base.n_columns++] =
            (struct record_column){.name = "label",
                                   .shown = RECORD_BYTES,
                                   .ext = "cls",
                                   .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW | in_tar};
}

/* ---- contents ---- */

static bool files_is_value(const struct files_file *file, unsigned column)
{
    return file->shows[column].shown == MEMBER_AS_INTEGER ||
           file->shows[column].shown == MEMBER_AS_ARRAY;
}

static int files_fault(const struct files_file *file, uint64_t row, unsigned column, struct diag *d)
{
    return files_is_value(file, column) ? file->ops->fault(file, row, d) : 0;
}

#define LABEL_TEXT 24
static size_t files_label_text(const struct files_file *file, uint64_t row,
                               char ret[static LABEL_TEXT])
{
    return (size_t)snprintf(ret, LABEL_TEXT, "%" PRId64, file->ops->label(file, row, 0));
}

static bool files_is_cell(const struct files_file *file, unsigned column)
{
    return column >= file->n_members + file->n_labels;
}

static bool files_has(const void *p, uint64_t row, unsigned column)
{
    return ((const struct files_file *)p)->ops->has(p, row, column);
}

static int files_dims(const void *p, uint64_t row, unsigned column,
                      uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct files_file *file = p;
    const struct files_ops *ops = file->ops;
    size_t member;
    char text[LABEL_TEXT];
    int r;

    if (files_is_cell(file, column))
        return ops->cell_dims(file, row, column, ret, d);
    if (column > file->n_members) {
        ret[0] = files_label_text(file, row, text);
        return 0;
    }
    if (column == file->n_members) {
        ret[0] = ops->labels ? ops->labels(file, row) : 1;
        return 0;
    }
    if (files_is_value(file, column)) {
        r = ops->fault(file, row, d);
        if (r == 0 && file->shows[column].shown == MEMBER_AS_ARRAY)
            member_array_dims(files_index(file), row, files_ext_of(file, column)->number, ret);
        return r;
    }
    r = ops->member(file, row, column, &member, d);
    ret[0] = r > 0 ? members_size(file->source->members, member) : 0;
    return r < 0 ? r : 0;
}

static bool files_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct files_file *file = p;
    uint64_t head = 0;
    size_t member;

    if (column >= file->n_members || file->shows[column].shown == MEMBER_AS_INTEGER ||
        files_fault(file, row, column, NULL) < 0 ||
        file->ops->member(file, row, column, &member, NULL) <= 0)
        return false;
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        head = member_array_head(files_index(file), row, files_ext_of(file, column)->number);
    *ret = (struct extent){file->source->blob, file->source->members->member[member].place + head,
                           members_size(file->source->members, member) - head};
    return ret->len > 0;
}

static void files_locate(const void *p, const struct extent *e, struct text *t)
{
    members_locate(((const struct files_file *)p)->source->members, e->off, e->len, t);
}

static bool files_path(const void *p, uint64_t row, unsigned column, char *ret, size_t size)
{
    const struct files_file *file = p;
    size_t member;

    return column < file->n_members && file->ops->member(file, row, column, &member, NULL) > 0 &&
           members_path(file->source->members, member, ret, size) == 0;
}

static void files_read_label(const struct files_file *file, uint64_t row, unsigned column,
                             uint64_t off, size_t len, uint8_t *dst)
{
    char text[LABEL_TEXT];

    if (column > file->n_members) {
        files_label_text(file, row, text);
        memcpy(dst, text + off, len);
        return;
    }
    for (size_t done = 0; done < len;) {
        uint64_t at = off + done;
        size_t n = (size_t)min_u64(8 - at % 8, len - done);
        uint8_t number[8];

        store_le64(number, (uint64_t)file->ops->label(file, row, at / 8));
        memcpy(dst + done, number + at % 8, n);
        done += n;
    }
}

static int files_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct files_file *file = p;
    const struct index *index = files_index(file);
    const uint64_t *number;
    struct extent e;
    size_t member;
    int r;

    if (files_is_cell(file, column))
        return file->ops->cell_read(rc, file, row, column, off, len, dst, d);
    if (column >= file->n_members) {
        files_read_label(file, row, column, off, len, dst);
        return 0;
    }
    r = files_fault(file, row, column, d);
    if (r < 0)
        return r;
    number = files_ext_of(file, column)->number;
    if (file->shows[column].shown == MEMBER_AS_INTEGER) {
        member_integer_read(index, row, number, off, len, dst);
        return 0;
    }
    if (!files_extent(file, row, column, &e)) {
        r = file->ops->member(file, row, column, &member, d);
        return r < 0 ? r : -EIO;
    }
    if (file->shows[column].shown == MEMBER_AS_ARRAY)
        return member_array_read(rc, &e, index, row, number, off, len, dst, d);
    return blob_read(rc, e.blob, dst, len, e.off + off, d);
}

/* ---- for people ---- */

static void files_note(const void *p, struct text *t)
{
    const struct files_file *file = p;
    const struct files_source *source = file->source;

    if (*source->claim->aside)
        text_add(t, "ignored: %s\n", source->claim->aside);
    if (source->n_unread)
        text_add(t, "%zu ignored, because %s be read: %s\n", source->n_unread,
                 source->n_unread > 1 ? "they cannot" : "it cannot", source->unread);
    file->ops->note(file, t);
}

void files_describe_source(const struct files_source *source, const char *indent, struct text *t)
{
    if (!*source->claim->aside)
        return;
    text_add(t, "%s\"left_aside\": ", indent);
    text_add_json(t, source->claim->aside);
    text_add(t, ",\n");
}

void files_describe_classes(const char *const *name, uint32_t n, const char *indent, struct text *t)
{
    text_add(t, "%s\"classes\": [", indent);
    for (uint32_t i = 0; i < n; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, name[i]);
    }
    text_add(t, "],\n");
}

static void files_describe(struct record_file *const *files, unsigned n, const char *indent,
                           struct text *t)
{
    const struct files_file *file = (const struct files_file *)files[0];

    (void)n; /* it is one */
    file->ops->describe(file, indent, t);
}

static bool files_class_name(const void *p, int64_t number, struct text *t)
{
    const struct files_ops *ops = ((const struct files_file *)p)->ops;

    return ops->class_name && ops->class_name(p, number, t);
}

/* ---- the format ---- */

static const struct record_format files_records = {
    .format = &format_files,
    .has = files_has,
    .dims = files_dims,
    .extent = files_extent,
    .extents_are_copies = true,
    .locate = files_locate,
    .path = files_path,
    .read = files_read,
    .note = files_note,
    .describe = files_describe,
    .class_name = files_class_name,
};

int files_add_dataset(struct files_file *file, const char *name, const struct format_setup *setup,
                      struct finds *finds)
{
    struct record_file *base = &file->base;
    struct dataset *ds;
    int r = record_set_new(&files_records, &base, 1, setup, &ds);

    if (r == 0)
        ds->rule = file->source->claim->rule;
    record_file_drop(base);
    return r < 0 ? r : finds->dataset(finds, name, ds);
}

/* Names decide, and many files together. */
static enum claim files_probe(const struct probed_file *file)
{
    (void)file;
    return CLAIM_NONE;
}

static int files_open_collection(struct collection *c, struct blob *blob,
                                 const struct members *members, const struct format_setup *setup,
                                 struct finds *finds)
{
    static int (*const opens[])(struct files_source * source, const char *name,
                                const struct format_setup *setup,
                                struct finds *finds) = {[LAYOUT_CLASSES] = files_open_samples,
                                                        [LAYOUT_FLAT] = files_open_samples,
                                                        [LAYOUT_TABLE] = files_open_metadata,
                                                        [LAYOUT_MANIFEST] = files_open_manifests};
    const struct files_claim *claim = c->impl;
    struct files_source *source;
    int r = files_source_new(c, blob, members, &source);

    if (r < 0)
        return r;
    r = opens[claim->layout](source, c->name, setup, finds);
    files_source_drop(source);
    return r;
}

const struct format format_files = {
    .name = "files",
    .probe = files_probe,
    .claim_names = files_claim_names,
    .open_collection = files_open_collection,
    .free_claim = files_free_claim,
    .title = "folders of pictures, sounds or texts",
    .example = "  import os\n"
               "  for name in sorted(os.listdir(root + '/samples/raw')):\n"
               "      with open(root + '/samples/raw/' + name, 'rb') as file:\n"
               "          data = file.read()    # or PIL.Image.open(file), wave.open(file)\n",
};
