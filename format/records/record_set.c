#include "format/records/record_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/core/encoder.h"
#include "format/encode/encode.h"
#include "format/index/key_name.h"
#include "format/records/record_audio.h"
#include "format/records/record_items.h"
#include "format/records/record_ops.h"
#include "format/records/record_pictures.h"
#include "format/records/record_set_parts.h"

#define FIELDS_OF_COLUMN 5 /* at most */
#define NAME_HASH        9 /* "~" and 8 digits */

/* ---- fields ---- */

/* The name of a file has room for that name and extension. */
static void fit_name(struct field *f)
{
    size_t most = SUFFIX_SIZE - 3 - strlen(f->ext);
    char name[RECORD_NAME_MAX + 1];

    if (f->unnamed || strlen(f->name) <= most)
        return;
    record_name(f->name, strlen(f->name), most, name);
    snprintf(f->name, sizeof(f->name), "%s", name);
}

static void record_set_add_bytes(struct dataset *ds, const struct record_content *content,
                                 const struct record_column *column, unsigned places)
{
    unsigned in = IN_FILE_SAMPLES | IN_TAR;
    struct field *f;

    if (!(column->without & RECORD_NOT_ARRAYS))
        records_add_byte_arrays(ds, content, column->name);
    if (column->without & RECORD_NOT_RAW)
        in &= ~(unsigned)IN_FILE_SAMPLES;
    if (column->without & RECORD_NOT_TAR)
        in &= ~(unsigned)IN_TAR;
    f = records_add_bytes(ds, content, column->name, "raw", column->ext, in & places);
    f->unnamed = column->unnamed;
    fit_name(f);
}

static void add_text(struct dataset *ds, const struct record_content *content,
                     const struct record_column *column, unsigned places)
{
    const char *folder = record_set_of(ds)->rf->text_folder;
    struct field *f;

    if (!(column->without & RECORD_NOT_ARRAYS))
        records_add_strings(ds, content, column->name);
    f = records_add_lines(ds, content, column->name, folder && column->ext ? folder : "txt");
    f->unnamed = column->unnamed;
    f->in &= places;
    if (column->without & RECORD_NOT_TAR)
        f->in &= ~(unsigned)IN_TAR;
}

static void record_set_add_column(struct dataset *ds, struct record_content *content,
                                  const struct record_column *column, unsigned i, unsigned places)
{
    bool numbers = column->shown == RECORD_NUMBERS;
    unsigned tar = column->without & RECORD_NOT_TAR ? 0 : IN_TAR, first = ds->n_fields;
    bool varies = record_column_varies(column);
    const struct record_format *rf = record_set_of(ds)->rf;

    *content = (struct record_content){
        .ops = &record_set_contents,
        .column = i,
        .is_parsed = true,
        .is_number = numbers && !column->ndim,
        .dtype = numbers ? column->dtype : DTYPE_U1,
        .ndim = numbers ? column->ndim : 1,
        .dim = {DIM_VARIES},
    };
    if (numbers)
        memcpy(content->dim, column->dim, sizeof(content->dim));
    content->reads_many = numbers && !varies && rf->read_column &&
                          record_bytes(content, content->dim) <= RECORD_MANY_BYTES;
    content->make_at_once = rf->make && !content->reads_many ? RECORD_MAKES : 0;
    if (varies) {
        content->ndim += !content->ndim;
        content->dim[0] = DIM_VARIES;
    }
    for (unsigned k = 1; k < content->ndim; k++)
        content->pads_axes = content->pads_axes || content->dim[k] == DIM_VARIES;
    if (column->shown == RECORD_BYTES)
        record_set_add_bytes(ds, content, column, places);
    else if (!numbers)
        add_text(ds, content, column, places);
    else if (column->without & RECORD_NOT_ARRAYS)
        return;
    else if (varies)
        records_add_arrays(ds, content, column->name, tar);
    else
        records_add_item(ds, content, column->name, IN_ARRAYS | tar);
    for (unsigned k = first; k < ds->n_fields && numbers; k++)
        ds->field[k].in &= places;
}

/* Numbers that read_rows() reads: where each column has them. */
static void add_slabs(struct dataset *ds, const struct record_column *column, unsigned n)
{
    struct record_set *set = ds->impl;
    uint64_t bytes = 0;

    for (unsigned place = 0; place < RECORD_COLUMNS_MAX; place++)
        for (unsigned i = 0; i < n; i++) {
            struct record_content *c = &set->content[i];

            if ((set->learned.map ? set->learned.map[0][i] : i) != place ||
                column[i].shown != RECORD_NUMBERS || record_column_varies(&column[i]))
                continue;
            c->slabs = &set->slabs;
            c->slab_at = (size_t)bytes;
            bytes += record_bytes(c, c->dim);
        }
    record_slabs_init(&set->slabs, &set->setup, bytes);
    set->slabs.read = record_set_read_slab;
    for (unsigned i = 0; i < n && !set->slabs.bytes; i++)
        set->content[i].slabs = NULL;
}

static int record_set_add_columns(struct dataset *ds, const struct record_column *column,
                                  unsigned n)
{
    struct record_set *set = ds->impl;
    unsigned pictures = set->setup.options.picture_height > 0, audio = set->setup.options.audio;
    /* Index and key, and what is made, have places. */
    AUTO_PLACES struct record_places places = {.npy_samples = pictures + 2 * audio,
                                               .npy_batches = 2 + 3 * pictures + 5 * audio};
    int r;

    set->content = calloc(n + 1u, sizeof(*set->content));
    if (!set->content)
        return -ENOMEM;
    r = record_places_make(ds, column, n, &places);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++)
        record_set_add_column(ds, &set->content[i], &column[i], i, places.in[i]);
    if (set->rf->read_rows)
        add_slabs(ds, column, n);
    r = record_set_add_pictures(ds, column, n);
    if (r == 0)
        r = record_set_add_audio(ds, column, n);
    if (r < 0)
        return r;
    if (places.left_out)
        notes_add(&ds->notes,
                  "%u of %u fields have no file of their own in some folders, which have %u for a "
                  "sample at most; the first is '%s'; npz and tar have them",
                  places.left_out, n, KINDS_MAX, places.first);
    records_add_keys(ds);
    return 0;
}

/* ---- the dataset ---- */

static bool set_has(const struct dataset *ds, uint64_t sample, const struct field *field)
{
    const struct record_content *c = field->impl;

    return !c || !c->ops->has || c->ops->has(ds, c, sample);
}

static const struct record_column *columns_of_file(void *ctx, unsigned i, unsigned *ret_n)
{
    const struct record_set *set = ctx;
    const struct record_file *file = set->files.file[i];

    *ret_n = 0;
    return file->prepared.index.rows ? record_set_columns(set->rf, file, ret_n) : NULL;
}

/* The files are ready, so their columns are known. */
static int learn_columns(struct dataset *ds)
{
    struct record_set *set = ds->impl;
    int r = column_union_make(&set->learned, set->files.n, columns_of_file, set);

    if (r == 0)
        r = dataset_make_fields(ds, (size_t)set->learned.n * FIELDS_OF_COLUMN +
                                        RECORD_PICTURES_FIELDS + RECORD_AUDIO_FIELDS +
                                        RECORD_KEY_FIELDS);
    if (r == 0)
        r = record_set_add_columns(ds, set->learned.column, set->learned.n);
    if (r == 0 && set->learned.is_full)
        notes_add(&ds->notes, "there are more than %u fields: those after '%s' are ignored",
                  RECORD_COLUMNS_MAX, set->learned.column[set->learned.n - 1].name);
    if (r < 0)
        return r;
    dataset_fit_fields(ds);
    return dataset_add_folders(ds);
}

/* Add what the files report. */
static void record_set_add_notes(struct dataset *ds)
{
    const struct record_set *set = record_set_of(ds);

    for (unsigned i = 0; i < set->files.n; i++) {
        AUTO_TEXT struct text t = {0};

        if (set->rf->damage)
            set->rf->damage(set->files.file[i], &t);
        if (set->rf->note)
            set->rf->note(set->files.file[i], &t);
        if (i && set->rf->joined)
            set->rf->joined(set->files.file[0], set->files.file[i], &t);
        if (t.len && !t.failed)
            notes_add(&ds->notes, "%s", t.data);
    }
}

static const struct index *record_set_index_of(void *ctx, unsigned i)
{
    const struct record_set *set = ctx;

    return &set->files.file[i]->prepared.index;
}

static bool has_keys(const struct record_set *set, unsigned i)
{
    const struct record_file *file = set->files.file[i];

    return file->prepared.index.shape.has_keys && (!set->rf->has_keys || set->rf->has_keys(file));
}

/* Find the keys of all files in sequence. 1: done, 0: not yet, or -errno. */
static int set_keys(struct dataset *ds, struct diag *d)
{
    struct record_set *set = ds->impl;
    int r;

    for (unsigned i = 0; i < set->files.n; i++)
        if (!has_keys(set, i))
            return 1;
    if (set->files.n == 1) {
        ds->keys = record_set_index_of(set, 0);
        return 1;
    }
    r = keys_step(&set->keys, set->files.n, record_set_index_of, set);
    if (r == -EBADMSG)
        diag_set(d, r, "%s: expected a key for each sample in its index, got a sample without",
                 blob_name(set->files.file[set->keys.file]->blob));
    if (r != 1)
        return r;
    if (set->rf->keys_or_numbers && set->keys.index.renamed)
        keys_release(&set->keys);
    else
        ds->keys = &set->keys.index;
    return 1;
}

/* The files are ready: so are their records and columns, except the lengths of audio. */
static int record_set_know(struct dataset *ds, struct diag *d)
{
    struct record_set *set = ds->impl;
    int r = set_keys(ds, d);

    if (r != 1)
        return r;
    r = set->rf->column ? 0 : learn_columns(ds);
    if (r == 0)
        r = records_finish(ds, set->files.first[set->files.n]);
    if (r < 0)
        return r;
    record_set_add_notes(ds);
    set->is_known = true;
    return 1;
}

static int record_set_set_prepare(struct dataset *ds, struct diag *d)
{
    struct record_set *set = ds->impl;
    int r = set->is_known ? 1 : shards_prepare(&set->files, d);

    if (r == 1 && !set->is_known)
        r = record_set_know(ds, d);
    return r == 1 && set->audio ? record_audio_prepare(ds, set->audio, d) : r;
}

static int set_check_file(const struct record_format *rf, struct record_file *file,
                          void (*report)(void *ctx, const char *text), void *ctx, struct diag *d)
{
    AUTO_TEXT struct text damage = {0};
    int r;

    if (rf->damage)
        rf->damage(file, &damage);
    if (damage.failed)
        return -ENOMEM;
    if (damage.len) {
        damage.data[damage.len - 1] = '\0'; /* the end of the last line */
        report(ctx, damage.data);
    }
    r = rf->check ? rf->check(file, d) : 0;
    if (r != -EBADMSG)
        return r;
    report(ctx, diag_text(d, r));
    d->set = false;
    return 0;
}

/* A file that other datasets have also has one of its own, which reports it. */
static int record_set_set_check(const struct dataset *ds,
                                void (*report)(void *ctx, const char *text), void *ctx,
                                struct diag *d)
{
    const struct record_set *set = record_set_of(ds);
    bool has_own = true;
    int r = 0;

    for (unsigned i = 0; i < set->files.n && r == 0; i++) {
        struct record_file *file = set->files.file[i];

        if (set->files.n > 1 && file->users > 1)
            continue;
        has_own = false;
        r = set_check_file(set->rf, file, report, ctx, d);
    }
    return r < 0 || has_own ? r : records_check(ds, report, ctx, d);
}

static void set_checked(const struct dataset *ds, struct text *t)
{
    const struct record_set *set = record_set_of(ds);

    if (set->files.n == 1 && set->rf->checked)
        set->rf->checked(set->files.file[0], t);
}

static void record_set_set_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct record_set *set = record_set_of(ds);

    if (set->rf->describe)
        set->rf->describe(set->files.file, set->files.n, indent, t);
    if (set->pictures)
        record_pictures_describe(set->pictures, indent, t);
    if (set->audio)
        record_audio_describe(set->audio, indent, t);
}

static bool record_set_set_class_name(const struct dataset *ds, int64_t number, struct text *t)
{
    const struct record_set *set = record_set_of(ds);

    return set->files.n == 1 && set->rf->class_name &&
           set->rf->class_name(set->files.file[0], number, t);
}

static bool record_set_class_size(const struct dataset *ds, uint64_t number, uint64_t *ret)
{
    const struct record_set *set = record_set_of(ds);

    return set->files.n == 1 && set->rf->class_size &&
           set->rf->class_size(set->files.file[0], number, ret);
}

static bool record_set_calls_label(const struct dataset *ds, const char *name)
{
    const struct record_set *set = record_set_of(ds);

    return set->rf->calls_label && set->rf->calls_label(set->files.file[0], name);
}

static void record_set_set_columns(const struct dataset *ds, struct text *t)
{
    const struct record_set *set = record_set_of(ds);

    if (set->rf->column_names)
        set->rf->column_names(set->files.file, set->files.n, t);
}

static void record_set_set_free(struct dataset *ds)
{
    struct record_set *set = ds->impl;

    ds->n_blobs = 0; /* the files own them */
    shards_release(&set->files);
    keys_release(&set->keys);
    column_union_release(&set->learned);
    record_pictures_free(set->pictures);
    record_pictures_free(set->thumbnails);
    record_audio_free(set->audio);
    free(set->content);
    free(set);
}

/* Bytes of a row that is doubted come through read() only. */
static bool is_doubted(const struct record_set *set)
{
    for (unsigned i = 0; i < set->files.n && set->rf->verify; i++)
        if (set->files.file[i]->prepared.proven)
            return true;
    return false;
}

/* Bytes that are as they are in the source. */
static bool set_copy(const struct dataset *ds, uint64_t sample, const struct field *field,
                     struct extent *ret)
{
    const struct record_set *set = record_set_of(ds);
    const struct record_content *c = field->impl;

    return c && c->ops == &record_set_contents && !is_doubted(set) &&
           field_is_in(field, IN_FILE_SAMPLES) && !strcmp(field->folder, "raw") &&
           record_set_is_copy(ds, c, sample) && c->ops->extent(ds, c, sample, ret);
}

static bool set_copy_of_all(const struct dataset *ds, const struct field *field, struct extent *ret)
{
    const struct record_set *set = record_set_of(ds);
    const struct record_file *file = set->files.file[0];

    *ret = (struct extent){file->blob, 0, file->blob->size};
    return field->ops == &record_line_ops.ops && set->files.n == 1 && ret->len &&
           set->rf->lines_are_file && !is_doubted(set) && set->rf->lines_are_file(file);
}

#define SET_OPS                                                                                    \
    .prepare = record_set_set_prepare, .progress = shards_progress, .check = record_set_set_check, \
    .checked = set_checked, .describe = record_set_set_describe, .locate = record_set_locate,      \
    .extents = records_extents, .copy = set_copy, .copy_of_all = set_copy_of_all,                  \
    .free = record_set_set_free, .has = set_has, .checks_reads = true, .walks = true,              \
    .class_name = record_set_set_class_name, .class_size = record_set_class_size,                  \
    .calls_label = record_set_calls_label, .columns = record_set_set_columns,                      \
    .identity = record_set_set_identity

static const struct dataset_ops record_set_set_ops = {SET_OPS};
static const struct dataset_ops set_ops_by_bytes = {SET_OPS, .share = shards_share};

/* The folders that fields of learned columns may be in. */
static int record_set_name_folders(struct dataset *ds, const struct record_format *rf)
{
    const char *const names[] = {"raw", "npy", "npz", "tar", "tfrecord", "txt", rf->text_folder};

    return dataset_name_folders(ds, names, ARRAY_LEN(names) - !rf->text_folder);
}

int record_set_new(const struct record_format *rf, struct record_file *const *file, unsigned n,
                   const struct format_setup *setup, struct dataset **ret)
{
    struct record_set *set = calloc(1, sizeof(*set));
    AUTO_DATASET struct dataset *ds = NULL;
    int r =
        dataset_new(rf->format, file[0]->ops->cuts ? &set_ops_by_bytes : &record_set_set_ops, set,
                    (size_t)rf->n_columns * FIELDS_OF_COLUMN + RECORD_PICTURES_FIELDS +
                        RECORD_AUDIO_FIELDS + RECORD_KEY_FIELDS,
                    n, &ds);

    if (r < 0)
        return r;
    set->rf = rf;
    set->setup = *setup;
    r = shards_init(&set->files, n);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        record_file_share(file[i]);
        shards_add(&set->files, file[i]);
        ds->blob[ds->n_blobs++] = file[i]->blob;
    }
    ds->shares_blobs = n > 1;
    ds->memo = setup->memo;
    r = rf->column ? record_set_add_columns(ds, rf->column, rf->n_columns)
                   : record_set_name_folders(ds, rf);
    if (r == 0 && rf->column)
        r = dataset_add_folders(ds);
    if (r == 0)
        *ret = TAKE_PTR(ds);
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
