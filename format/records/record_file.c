#include "format/records/record_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/records/record_set.h"

int record_file_new(const struct record_file_ops *ops, struct blob *blob,
                    const struct format_setup *setup, void *ret)
{
    struct record_file *file = calloc(1, ops->size ? ops->size : sizeof(*file));

    if (!file)
        return -ENOMEM;
    *file = (struct record_file){.ops = ops, .blob = blob, .users = 1};
    file->prepared = (struct prepared){
        .ops = &ops->index,
        .impl = file,
        .keep = setup->keep,
        .type = ops->index_type ? ops->index_type : "rows",
        .blob = blob,
        .name = blob_name(blob),
        .source = blob_source(blob),
        .size = blob->size,
        .has_places = ops->has_places,
        .bytes = ops->bytes,
        .least = ops->least,
        .checks_rows = ops->checks_rows,
        .shape = ops->shape,
    };
    *(struct record_file **)ret = file;
    return 0;
}

int record_file_open(const struct record_file_ops *ops, const struct record_source *source,
                     void *ret, struct diag *d)
{
    struct record_file *file;
    struct blob *blob = TAKE_PTR(source->file[source->i].blob);
    int r = record_file_new(ops, blob, source->setup, &file);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    if (ops->open)
        r = ops->open(file, source, d);
    if (r < 0)
        record_file_drop(file);
    else
        *(struct record_file **)ret = file;
    return r;
}

int record_file_add(struct record_file *file, const struct record_column *column)
{
    struct record_column added = *column;

    added.name = strdup(column->name);
    if (!added.name || array_capacity(&file->added, file->n_columns, sizeof(added)) < 0) {
        free((char *)(uintptr_t)added.name);
        return -ENOMEM;
    }
    file->added[file->n_columns++] = added;
    file->column = file->added;
    return 0;
}

void record_file_share(struct record_file *file)
{
    file->users++;
}

void record_file_drop(struct record_file *file)
{
    if (!file || --file->users)
        return;
    prepared_forget(&file->prepared);
    for (unsigned i = 0; file->added && i < file->n_columns; i++)
        free((char *)(uintptr_t)file->added[i].name);
    free(file->added);
    if (file->ops->release)
        file->ops->release(file);
    prepared_release(&file->prepared);
    blob_free(file->blob);
    free(file);
}

uint64_t record_file_cut(const struct record_file *file, uint64_t off)
{
    if (file->ops->cut)
        return file->ops->cut(file, off);
    return off ? index_first_above(&file->prepared.index, 0, off) : 0;
}

struct extent record_file_place(const struct record_file *file, uint64_t row)
{
    const struct index *index = &file->prepared.index;
    unsigned bytes = file->ops->bytes;
    uint64_t number[INDEX_COLUMNS];

    if (bytes)
        index_row_start(index, row, bytes + 1, number);
    else
        number[0] = index_number(index, row, 0);
    return (struct extent){file->blob, number[0],
                           bytes ? number[bytes] : index_number(index, row + 1, 0) - number[0]};
}
