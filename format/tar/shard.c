/* A shard is opened, prepared and kept. Kept numbers are hostile, so none is used before it is
 * checked: no member may end after the file, no array after its member. */
#include "format/tar/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/tar/archive/header.h"
#include "format/tar/archive/hints.h"

/* ---- the index ---- */

static int shard_begin(void *impl)
{
    struct tar_shard *shard = impl;

    shard->table.most = TAR_FIELDS_MAX;
    return tar_pass_new(shard, &shard->pass);
}

static int shard_step(void *impl, struct diag *d)
{
    return tar_pass_step(((struct tar_shard *)impl)->pass, d);
}

static int shard_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct tar_shard *shard = impl;
    AUTO_TEXT struct text damage = {0}, note = {0};
    int r;

    (void)ret;
    (void)d;
    tar_pass_damage(shard->pass, &damage);
    tar_pass_notes(shard->pass, index, &note);
    tar_pass_free(TAKE_PTR(shard->pass));
    r = text_finish(&damage, &shard->damage, NULL);
    return r < 0 ? r : text_finish(&note, &shard->note, NULL);
}

static void shard_keep(void *impl, struct kept *k)
{
    struct tar_shard *shard = impl;

    kept_number(k, &shard->faults, UINT64_MAX);
    column_table_keep(k, &shard->table);
    kept_text(k, &shard->damage);
    kept_text(k, &shard->note);
}

/* Are the columns of a field in the index, and is it of a kind that is known? */
static bool tar_shard_field_is_good(const uint64_t *number, unsigned columns)
{
    uint64_t place = number[TAR_FIELD_PLACE];

    return place >= TAR_FIXED && place < columns - 1 &&
           member_numbers_are_good(number, TAR_FIXED, columns);
}

static bool member_is_good(const struct tar_shard *shard, const struct index *index, uint64_t row,
                           uint64_t at, const uint64_t *number)
{
    uint64_t size = shard->base.blob->size;
    uint64_t place = index_number(index, row, (unsigned)number[TAR_FIELD_PLACE]);
    uint64_t len = index_number(index, row, (unsigned)number[TAR_FIELD_PLACE] + 1);

    if (!place || index_number(index, row, TAR_FAULT))
        return true;
    if (place > size / TAR_BLOCK || at > size - place * TAR_BLOCK ||
        len > size - at - place * TAR_BLOCK)
        return false;
    return number[MEMBER_FORM] != MEMBER_AS_ARRAY || member_array_is_good(index, row, number, len);
}

static int shard_load(void *impl, const struct index *index)
{
    const struct tar_shard *shard = impl;

    for (unsigned i = 0; i < shard->table.n; i++)
        if (!tar_shard_field_is_good(shard->table.column[i].number, index->shape.columns))
            return -EBADMSG;
    for (uint64_t row = 0; row < index->rows; row++) {
        uint64_t at = index_number(index, row, TAR_AT);

        if (at > shard->base.blob->size)
            return -EBADMSG;
        for (unsigned i = 0; i < shard->table.n; i++)
            if (!member_is_good(shard, index, row, at, shard->table.column[i].number))
                return -EBADMSG;
    }
    return 0;
}

static bool tar_fields_is_complete(const void *ctx, unsigned field)
{
    const struct tar_shard *shard = ctx;

    return tar_field_number(shard, field, MEMBER_ROWS) + shard->faults >=
           shard->base.prepared.index.rows;
}

static int tar_columns_make(struct tar_shard *shard)
{
    int r = member_columns_make(&shard->table, 0, tar_fields_is_complete, shard, &shard->shows,
                                &shard->column, &shard->base.n_columns);

    shard->base.column = shard->column;
    return r;
}

static int shard_ready(void *impl, struct diag *d)
{
    struct tar_shard *shard = impl;

    (void)d;
    column_table_settle(&shard->table);
    return tar_columns_make(shard);
}

/* ---- the file ---- */

/* DALI's index of file i, if the shard is far away: here headers are read as quickly. Files are
 * sorted, so it is near. */
static struct blob *take_hints(const struct blob *blob, const struct record_source *from)
{
    struct source_file *source = from->file;
    const char *shard = source[from->i].name;
    size_t stem = tar_hints_stem(shard), first = from->i;

    if (!blob->ops->fetch)
        return NULL;
    while (first && !strncmp(source[first - 1].name, shard, stem))
        first--;
    for (size_t k = first; k < from->n && !strncmp(source[k].name, shard, stem); k++)
        if (source[k].blob && tar_hints_are_called(source[k].name) &&
            tar_hints_are_of(source[k].name, shard))
            return TAKE_PTR(source[k].blob);
    return NULL;
}

static int shard_open(void *p, const struct record_source *source, struct diag *d)
{
    struct tar_shard *shard = p;

    shard->hints = take_hints(shard->base.blob, source);
    return tar_judge_start(shard->base.blob, d);
}

static void shard_release(void *p)
{
    struct tar_shard *shard = p;

    tar_pass_free(shard->pass);
    free(shard->column);
    free(shard->shows);
    blob_free(shard->hints);
}

const struct record_file_ops tar_shard_ops = {
    .size = sizeof(struct tar_shard),
    .index = {.version = "tar 5",
              .keep = shard_keep,
              .load = shard_load,
              .begin = shard_begin,
              .step = shard_step,
              .about = shard_about,
              .ready = shard_ready},
    .shape = {.columns = TAR_FIXED, .rising = 1u << TAR_AT, .has_keys = true, .learns = true},
    .checks_rows = true,
    .side_by_side = true,
    .open = shard_open,
    .release = shard_release,
};
