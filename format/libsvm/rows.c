#include "format/libsvm/rows.h"

#include <errno.h>

/* Entries of a binary file lie one after another, without anything between rows. */
static struct row_place place_of(const struct libsvm_file *file, uint64_t row)
{
    const struct index *index = &file->base.prepared.index;
    struct row_place place;

    if (!file->matrix)
        return places_row(index, row);
    place.start = index_number(index, row, 0);
    place.features = index_number(index, row + 1, 0) - place.start;
    place.start = file->matrix->data + place.start * DMATRIX_ENTRY;
    place.len = place.features * DMATRIX_ENTRY;
    return place;
}

struct libsvm_row_at libsvm_rows_find(const struct libsvm_rows *rows, uint64_t sample)
{
    uint64_t row;
    unsigned i = shards_find(&rows->shards, sample, &row);
    const struct libsvm_file *file = libsvm_rows_file(rows, i);

    return (struct libsvm_row_at){file, i, row, place_of(file, row)};
}

struct row_sums libsvm_file_sums(const struct libsvm_rows *rows, const struct libsvm_file *file,
                                 uint64_t row)
{
    const struct index *index = &file->base.prepared.index;
    uint64_t features;

    if (!file->matrix)
        return places_sums(index, row);
    features = index_number(index, row, 0);
    return (struct row_sums){rows->text_row * row + rows->text_entry * features, features};
}

struct row_sums libsvm_rows_sums(const struct libsvm_rows *rows, uint64_t sample)
{
    uint64_t row;
    unsigned i = shards_find(&rows->shards, sample, &row);
    struct row_sums sums = libsvm_file_sums(rows, libsvm_rows_file(rows, i), row);

    sums.text += rows->before[i].text;
    sums.features += rows->before[i].features;
    return sums;
}

int libsvm_rows_side(const struct libsvm_rows *rows, enum libsvm_side_type type, struct diag *d)
{
    const struct libsvm_side *first = &libsvm_rows_file(rows, 0)->side[type];

    for (unsigned i = 0; i < rows->shards.n; i++) {
        const struct libsvm_side *side = &libsvm_rows_file(rows, i)->side[type];

        if (side->failed)
            return diag_set(d, side->failed, "%s", side->reason.text);
        if (type == LIBSVM_SIDE_MARGIN && side->per_row != first->per_row)
            return diag_set(d, -EBADMSG,
                            "%s: expected %llu numbers for each row as %s has, got %llu",
                            blob_name(side->blob), (unsigned long long)first->per_row,
                            blob_name(first->blob), (unsigned long long)side->per_row);
    }
    return 0;
}
