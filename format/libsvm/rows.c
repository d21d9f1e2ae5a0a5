#include "format/libsvm/rows.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

/* The file that holds number at; file i begins with number start[i]. */
static unsigned file_of(const uint64_t *start, unsigned n_files, uint64_t at)
{
    unsigned low = 0, high = n_files;

    while (low + 1 < high) {
        unsigned middle = low + (high - low) / 2;

        if (start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct libsvm_row_at libsvm_rows_find(const struct libsvm_rows *rows, uint64_t sample)
{
    unsigned i = file_of(rows->first, rows->n_files, sample);
    const struct libsvm_file *file = rows->file[i];
    uint64_t row = sample - rows->first[i];

    return (struct libsvm_row_at){file, i, row, row_index_place(&file->index, row)};
}

struct row_sums libsvm_rows_sums(const struct libsvm_rows *rows, uint64_t sample)
{
    unsigned i = file_of(rows->first, rows->n_files, sample);
    struct row_sums sums = row_index_sums(&rows->file[i]->index, sample - rows->first[i]);

    sums.text += rows->before[i].text;
    sums.features += rows->before[i].features;
    return sums;
}

int libsvm_rows_side(const struct libsvm_rows *rows, enum libsvm_side_kind kind, struct diag *d)
{
    for (unsigned i = 0; i < rows->n_files; i++) {
        const struct libsvm_side *side = &rows->file[i]->side[kind];

        if (side->failed)
            return diag_set(d, side->failed, "%s", side->reason.text);
        if (kind == LIBSVM_SIDE_MARGIN && side->per_row != rows->file[0]->side[kind].per_row)
            return diag_set(
                d, -EBADMSG, "%s: want %llu numbers for each row as %s has, found %llu",
                blob_name(side->blob), (unsigned long long)rows->file[0]->side[kind].per_row,
                blob_name(rows->file[0]->side[kind].blob), (unsigned long long)side->per_row);
    }
    return 0;
}
