#include "format/libsvm/rows.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

struct libsvm_row_at libsvm_rows_find(const struct libsvm_rows *rows, uint64_t sample)
{
    uint64_t row;
    unsigned i = shards_find(&rows->shards, sample, &row);
    const struct libsvm_file *file = libsvm_rows_file(rows, i);

    return (struct libsvm_row_at){file, i, row, places_row(&file->base.prepared.index, row)};
}

struct row_sums libsvm_rows_sums(const struct libsvm_rows *rows, uint64_t sample)
{
    uint64_t row;
    unsigned i = shards_find(&rows->shards, sample, &row);
    struct row_sums sums = places_sums(&libsvm_rows_file(rows, i)->base.prepared.index, row);

    sums.text += rows->before[i].text;
    sums.features += rows->before[i].features;
    return sums;
}

int libsvm_rows_side(const struct libsvm_rows *rows, enum libsvm_side_kind type, struct diag *d)
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
