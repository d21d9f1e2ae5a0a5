/* What a shard shows: the columns of its fields, and their contents. */
#include "format/tar/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tar/archive/header.h"

/* ---- columns ---- */

static bool tar_fields_is_complete(const void *ctx, unsigned field)
{
    const struct tar_shard *shard = ctx;

    return tar_field_number(shard, field, MEMBER_ROWS) + shard->faults >=
           shard->base.prepared.index.rows;
}

int tar_columns_make(struct tar_shard *shard)
{
    int r = member_columns_make(&shard->table, 0, tar_fields_is_complete, shard, &shard->shows,
                                &shard->column, &shard->base.n_columns);

    shard->base.column = shard->column;
    return r;
}

/* ---- contents ---- */

static uint64_t tar_fields_number_at(const struct tar_shard *shard, uint64_t row, uint64_t column)
{
    return index_number(&shard->base.prepared.index, row, (unsigned)column);
}

/* A faulty sample has all fields, so that its loss is seen. */
bool tar_has(const void *file, uint64_t row, unsigned column)
{
    const struct tar_shard *shard = file;
    uint64_t place = tar_field_number(shard, shard->shows[column].field, TAR_FIELD_PLACE);

    return tar_fields_number_at(shard, row, place) || tar_fields_number_at(shard, row, TAR_FAULT);
}

static int tar_fields_check_fault(const struct tar_shard *shard, uint64_t row, struct diag *d)
{
    static const char *const faults[N_TAR_FAULTS] = {
        [TAR_TWICE] = "two members of one extension",
        [TAR_IS_SPARSE] = "a sparse member, which is never expanded",
        [TAR_CUT] = "the end of the file",
    };
    uint64_t fault = tar_fields_number_at(shard, row, TAR_FAULT);

    if (!fault)
        return 0;
    return diag_set(d, -EBADMSG, "%s: byte %llu: expected a sample, got %s",
                    blob_name(shard->base.blob),
                    (unsigned long long)tar_fields_number_at(shard, row, TAR_AT),
                    fault < N_TAR_FAULTS ? faults[fault] : "a fault");
}

int tar_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
             struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    int r = tar_fields_check_fault(shard, row, d);

    if (r < 0)
        return r;
    if (shows->shown != MEMBER_AS_ARRAY && shows->shown != MEMBER_AS_INTEGER)
        ret[0] = tar_fields_number_at(shard, row, number[TAR_FIELD_PLACE] + 1);
    if (shows->shown == MEMBER_AS_ARRAY)
        member_array_dims(&shard->base.prepared.index, row, number, ret);
    return 0;
}

/* The place of a member's bytes in the archive, without a header of .npy. */
static struct extent find_bytes(const struct tar_shard *shard, uint64_t row, unsigned column)
{
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    uint64_t head = 0;

    if (shows->shown == MEMBER_AS_ARRAY)
        head = member_array_head(&shard->base.prepared.index, row, number);
    return (struct extent){
        shard->base.blob,
        tar_fields_number_at(shard, row, TAR_AT) +
            TAR_BLOCK * tar_fields_number_at(shard, row, number[TAR_FIELD_PLACE]) + head,
        tar_fields_number_at(shard, row, number[TAR_FIELD_PLACE] + 1) - head,
    };
}

bool tar_extent(const void *file, uint64_t row, unsigned column, struct extent *ret)
{
    const struct tar_shard *shard = file;

    if (shard->shows[column].shown == MEMBER_AS_INTEGER ||
        tar_fields_number_at(shard, row, TAR_FAULT))
        return false;
    *ret = find_bytes(shard, row, column);
    return ret->len > 0;
}

int tar_read(struct read_context *rc, const void *file, uint64_t row, unsigned column, uint64_t off,
             size_t len, uint8_t *dst, struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    struct extent e;
    int r = tar_fields_check_fault(shard, row, d);

    if (r < 0)
        return r;
    switch (shows->shown) {
    case MEMBER_AS_INTEGER:
        member_integer_read(&shard->base.prepared.index, row, number, off, len, dst);
        return 0;
    case MEMBER_AS_ARRAY:
        e = find_bytes(shard, row, column);
        return member_array_read(rc, &e, &shard->base.prepared.index, row, number, off, len, dst,
                                 d);
    default:
        e = find_bytes(shard, row, column);
        return blob_read(rc, e.blob, dst, len, e.off + off, d);
    }
}
