#include "format/records/record_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/index/key_name.h"
#include "format/records/keys.h"
#include "format/records/record_items.h"

#define FIELDS_OF_COLUMN 4 /* at most */
#define NAME_HASH        9 /* "~" and 8 digits */

struct record_set {
    const struct record_format *rf;
    struct shards files;
    struct keys keys;
    struct record_content content[]; /* [n_columns] */
};

static const struct record_set *set_of(const struct dataset *ds)
{
    return ds->impl;
}

/* ---- contents ---- */

/* The file of a record, and the record's row there. */
static const struct shard *find_file(const struct dataset *ds, uint64_t record, uint64_t *ret_row)
{
    const struct shards *files = &set_of(ds)->files;

    return &files->shard[shards_find(files, record, ret_row)];
}

static int set_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                    uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_format *rf = set_of(ds)->rf;
    uint64_t row;
    const struct shard *file = find_file(ds, record, &row);

    memcpy(ret_dim, c->dim, sizeof(c->dim));
    if (rf->dims)
        return rf->dims(file->file, row, c->column, ret_dim, d);
    if (c->ndim && c->dim[0] == DIM_VARIES)
        ret_dim[0] = rf->length(file->file, row, c->column);
    return 0;
}

static bool set_extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       struct extent *ret)
{
    const struct record_format *rf = set_of(ds)->rf;
    uint64_t row, dim[RECORD_AXES];
    const struct shard *file = find_file(ds, record, &row);

    if (rf->extent)
        return rf->extent(file->file, row, c->column, ret);
    if (set_dims(ds, c, record, dim, NULL) < 0)
        return false;
    *ret = (struct extent){file->blob, rf->place(file->file, row, c->column), record_bytes(c, dim)};
    return ret->len > 0;
}

static int set_read(struct read_context *rc, const struct dataset *ds,
                    const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                    uint8_t *dst, struct diag *d)
{
    const struct record_format *rf = set_of(ds)->rf;
    uint64_t row;
    const struct shard *file = find_file(ds, record, &row);
    struct extent e;
    int r = 0;

    if (rf->read)
        r = rf->read(rc, file->file, row, c->column, off, len, dst, d);
    else if (set_extent(ds, c, record, &e))
        r = blob_read(rc, e.blob, dst, len, e.off + off, d);
    return r < 0 ? r : blob_verify(file->blob, d);
}

static void set_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                      char ret[static RECORD_WHERE])
{
    uint64_t row;
    const struct shard *file = find_file(ds, record, &row);

    (void)c;
    snprintf(ret, RECORD_WHERE, "%s: record %llu", blob_name(file->blob), (unsigned long long)row);
}

static const struct record_ops set_contents = {set_dims, set_read, set_extent, set_where};

/* ---- the dataset ---- */

static const struct index *index_of(void *ctx, unsigned i)
{
    const struct record_set *set = ctx;

    return &set->files.shard[i].prepared->index;
}

static int set_prepare(struct dataset *ds, struct diag *d)
{
    struct record_set *set = ds->impl;
    int r = shards_prepare(&set->files, d);

    if (r == 1 && set->files.n > 1)
        r = keys_step(&set->keys, set->files.n, index_of, set);
    if (r != 1)
        return r;
    ds->keys = set->files.n == 1 ? &set->files.shard[0].prepared->index : &set->keys.index;
    r = records_finish(ds);
    return r < 0 ? r : 1;
}

static void set_progress(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total)
{
    shards_progress(&set_of(ds)->files, ret_done, ret_total);
}

/* Each file of a folder also has a dataset of its own, which reports it. */
static int set_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                     void *ctx, struct diag *d)
{
    return set_of(ds)->files.n == 1 ? records_check(ds, report, ctx, d) : 0;
}

static void set_free(struct dataset *ds)
{
    struct record_set *set = ds->impl;

    ds->n_blobs = 0; /* the files own them */
    shards_release(&set->files);
    keys_release(&set->keys);
    free(set);
}

static const struct dataset_ops set_ops = {
    .prepare = set_prepare,
    .progress = set_progress,
    .check = set_check,
    .locate = records_locate,
    .extents = records_extents,
    .free = set_free,
    .checks_reads = true,
    .walks = true,
};

static void add_column(struct dataset *ds, struct record_content *content, unsigned i)
{
    const struct record_column *column = &set_of(ds)->rf->column[i];

    *content = (struct record_content){
        .ops = &set_contents,
        .column = i,
        .is_parsed = true,
        .dtype = column->shown == RECORD_NUMBERS ? column->dtype : DTYPE_U1,
        .ndim = column->shown == RECORD_NUMBERS ? column->ndim : 1,
        .dim = {DIM_VARIES},
    };
    if (column->shown == RECORD_NUMBERS)
        memcpy(content->dim, column->dim, sizeof(content->dim));
    if (column->shown == RECORD_BYTES) {
        records_add_byte_arrays(ds, content, column->name);
        records_add_bytes(ds, content, column->name, "raw", column->ext, IN_FILE_SAMPLES | IN_TAR);
    } else if (column->shown == RECORD_TEXT) {
        records_add_strings(ds, content, column->name);
        records_add_lines(ds, content, column->name);
    } else if (content->ndim && content->dim[0] == DIM_VARIES) {
        records_add_arrays(ds, content, column->name, IN_TAR);
    } else {
        records_add_item(ds, content, column->name, IN_ARRAYS | IN_TAR);
    }
}

int record_set_new(const struct record_format *rf, const struct shard *file, unsigned n,
                   const struct format_setup *setup, struct dataset **ret)
{
    struct record_set *set = calloc(1, sizeof(*set) + rf->n_columns * sizeof(set->content[0]));
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(rf->format, &set_ops, set,
                        (size_t)rf->n_columns * FIELDS_OF_COLUMN + RECORD_KEY_FIELDS, n, &ds);

    if (r < 0)
        return r;
    set->rf = rf;
    r = shards_init(&set->files, &rf->file, n);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        rf->share(file[i].file);
        shards_add(&set->files, &file[i]);
        ds->blob[ds->n_blobs++] = (struct blob *)(uintptr_t)file[i].blob;
    }
    ds->shares_blobs = n > 1;
    ds->memo = setup->memo;
    for (unsigned i = 0; i < rf->n_columns; i++)
        add_column(ds, &set->content[i], i);
    records_add_keys(ds);
    r = rf->add_folders(ds);
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}

static int add_dataset(const struct record_format *rf, const struct shard *file, unsigned n,
                       const char *name, const struct format_setup *setup, struct finds *finds)
{
    struct dataset *ds = NULL;
    int r = record_set_new(rf, file, n, setup, &ds);

    return r < 0 ? r : finds->dataset(finds, name, ds);
}

int record_set_open_folder(const struct record_format *rf, struct source_file *source, size_t n,
                           const struct format_setup *setup, struct finds *finds)
{
    AUTO_FREE struct shard *file = calloc(n, sizeof(*file));
    unsigned n_files = 0;
    int r = file ? 0 : -ENOMEM;

    for (size_t i = 0; i < n && r == 0; i++) {
        struct diag d = DIAG_INIT;

        if (!source[i].blob || (rf->is_beside && rf->is_beside(&source[i])))
            continue;
        r = rf->open(source, n, i, setup, &file[n_files], &d);
        if (r < 0)
            r = finds->failed(finds, source[i].file_name, r, diag_text(&d, r));
        else
            r = add_dataset(rf, &file[n_files++], 1, source[i].name, setup, finds);
    }
    if (r == 0)
        r = shards_join(n_files, finds);
    if (r == 1)
        r = add_dataset(rf, file, n_files, SHARDS_ALL, setup, finds);
    while (n_files)
        rf->file.drop(file[--n_files].file);
    return r;
}

void record_name(const void *bytes, size_t len, size_t max, char ret[static RECORD_NAME_MAX + 1])
{
    char name[KEY_NAME_SIZE];
    size_t n = key_name(bytes, len, false, name);

    if (n <= max) {
        snprintf(ret, RECORD_NAME_MAX + 1, "%s", n ? name : "_");
        return;
    }
    n = max - NAME_HASH;
    while (n && (name[n - 1] == '%' || (n > 1 && name[n - 2] == '%'))) /* no escape is cut */
        n--;
    snprintf(ret, RECORD_NAME_MAX + 1, "%.*s~%08x", (int)n, name,
             (unsigned)(key_hash(bytes, len) >> 32));
}
