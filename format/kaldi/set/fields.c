/* The fields of Kaldi tables: the contents of a cell (its arrays, text, audio, the object as
 * stored), which format/records/records.h shows; and archives with their scp files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "format/kaldi/set/set.h"
#include "format/records/record_audio.h"
#include "format/records/records.h"

/* Not of SAMPLE_RATE and AS_PLACE. */
static void content_view(const struct kaldi_set *set, const struct record_content *c,
                         const struct kaldi_cell *cell, struct kaldi_view *ret)
{
    if (c->what < KALDI_ARRAYS_MAX) {
        const struct kaldi_array *array = &kaldi_types[cell->table->type].array[c->what];

        kaldi_view_array(cell, c->what, array->real ? set->column[c->column].real : array->dtype,
                         ret);
    } else {
        kaldi_view_bytes(cell, kaldi_content_way(c), ret);
    }
}

/* The cell that a content shows. */
static int cell_of_content(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, struct kaldi_cell *ret, struct diag *d)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    bool is_file;

    return c->what == AS_BYTES + KALDI_AS_STORED
               ? kaldi_cell_or_file(set, c->column, record, ret, &is_file, d)
               : kaldi_cell(set, c->column, record, ret, d);
}

static int kaldi_fields_content_dims(const struct dataset *ds, const struct record_content *c,
                                     uint64_t record, uint64_t ret_dim[static RECORD_AXES],
                                     struct diag *d)
{
    struct kaldi_cell cell;
    struct kaldi_view view;
    int r = cell_of_content(ds, c, record, &cell, d);

    if (r < 0)
        return r;
    if (c->what < KALDI_ARRAYS_MAX) {
        kaldi_cell_form(&cell, c->what, ret_dim);
    } else if (c->what >= AS_BYTES) {
        content_view(kaldi_set_of(ds), c, &cell, &view);
        ret_dim[0] = kaldi_view_size(&view) - (c->what == AS_BYTES + KALDI_AS_LINE);
    }
    return 0;
}

static int kaldi_fields_content_read(struct read_context *rc, const struct dataset *ds,
                                     const struct record_content *c, uint64_t record, uint64_t off,
                                     size_t len, uint8_t *dst, struct diag *d)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    struct kaldi_cell cell;
    struct kaldi_view view;
    uint8_t rate[4];
    int r = cell_of_content(ds, c, record, &cell, d);

    if (r < 0)
        return r;
    if (c->what != SAMPLE_RATE) {
        content_view(set, c, &cell, &view);
        return kaldi_view_read(rc, set, &view, off, len, dst, d);
    }
    store_le32(rate, (uint32_t)cell.row.object.dim[2]);
    memcpy(dst, rate + off, len);
    return 0;
}

static bool content_extent(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, struct extent *ret)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    struct kaldi_cell cell;
    struct kaldi_view view;

    if (c->what == SAMPLE_RATE || c->what == AS_PLACE || /* the index has it */
        cell_of_content(ds, c, record, &cell, NULL) < 0 || cell.row.is_output)
        return false;
    content_view(set, c, &cell, &view);
    *ret = kaldi_view_span(&view); /* of a part: it is written from those bytes */
    if (c->what >= AS_BYTES && !cell.row.is_cut && kaldi_is_written(&cell, kaldi_content_way(c)))
        *ret = kaldi_written_span(&cell);
    return ret->len > 0;
}

static void content_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                          char ret[static RECORD_WHERE])
{
    const struct kaldi_column *column = &kaldi_set_of(ds)->column[c->column];
    struct kaldi_cell cell;

    kaldi_cell(kaldi_set_of(ds), c->column, record, &cell, NULL);
    snprintf(ret, RECORD_WHERE, "%s: row %llu", blob_name(column->table->base.blob),
             (unsigned long long)cell.number + 1);
}

const struct record_ops kaldi_content_ops = {.dims = kaldi_fields_content_dims,
                                             .read = kaldi_fields_content_read,
                                             .extent = content_extent,
                                             .where = content_where};

/* ---- which fields there are ---- */

static unsigned count_waves(const struct kaldi_set *set)
{
    unsigned n = 0;

    for (unsigned i = 0; i < set->n_columns; i++)
        n += set->column[i].table->type == KALDI_WAVE;
    return n;
}

/* Archives: as stored, with scp files, or all in text or all in binary. */
static void add_entries(struct dataset *ds, const struct record_content *content,
                        enum kaldi_bytes way, const char *folder, const char *name)
{
    const struct record_content *c = &content[AS_BYTES + way];
    struct field *f = records_add_bytes(ds, c, name, folder, "ark", IN_FILES);

    f->ops = &kaldi_entries_ops;
    f->form_reads = way != KALDI_AS_ENTRY;
    if (f->form_reads)
        return;
    f = records_add_bytes(ds, &content[AS_PLACE], name, folder, "scp", IN_FILES);
    f->ops = &kaldi_entries_ops;
    f->names_file = true;
}

/* content: [N_CONTENTS] of the column */
static void kaldi_fields_add_column(struct dataset *ds, unsigned column,
                                    struct record_content *content)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    const struct kaldi_table *table = set->column[column].table;
    const struct kaldi_type_info *info = &kaldi_types[table->type];
    bool is_text = table->type == KALDI_TOKEN || table->type == KALDI_TOKENS;
    bool is_wave = table->type == KALDI_WAVE, is_opaque = table->type == KALDI_OPAQUE;
    unsigned first = ds->n_fields;
    char name[FIELD_NAME_SIZE];

    for (unsigned i = 0; i < N_CONTENTS; i++)
        content[i] = (struct record_content){
            .ops = &kaldi_content_ops,
            .column = column,
            .what = i,
            .dtype = DTYPE_U1,
            .ndim = 1,
            .dim = {DIM_VARIES},
        };
    for (unsigned i = 0; i < info->n_arrays; i++) {
        content[i].dtype = table->type == KALDI_BOOL ? DTYPE_BOOL : info->array[i].dtype;
        content[i].is_parsed = true;
        snprintf(name, sizeof(name), "%s%s", table->name, info->array[i].suffix);
        if (info->array[i].ndim)
            records_add_arrays(ds, &content[i], name, IN_TAR);
        else
            records_add_item(ds, &content[i], name, IN_ARRAYS | IN_TAR);
    }
    if (is_wave) {
        content[0].dtype = DTYPE_I2;
        records_add_arrays(ds, &content[0], table->name, 0);
        content[SAMPLE_RATE].dtype = DTYPE_I4;
        content[SAMPLE_RATE].ndim = 0;
        snprintf(name, sizeof(name), "%s_rate", table->name);
        records_add_item(ds, &content[SAMPLE_RATE], name, IN_ARRAYS);
    }
    if (is_text)
        records_add_strings(ds, &content[AS_BYTES + KALDI_AS_LINE], table->name);
    if (table->layout != KALDI_SINGLE || table->type != KALDI_OPAQUE)
        add_entries(ds, content, KALDI_AS_ENTRY, "ark", table->name);
    if (!is_wave && !is_opaque)
        add_entries(ds, content, KALDI_AS_TEXT, "ark,t", table->name);
    if (info->n_arrays)
        add_entries(ds, content, KALDI_AS_BINARY, "ark,b", table->name);
    if (is_text)
        records_add_lines(ds, &content[AS_BYTES + KALDI_AS_LINE], table->name, "txt");
    for (unsigned i = first; i < ds->n_fields; i++)
        ds->field[i].unnamed = set->column[column].is_alone;
    if (is_wave)
        records_add_bytes(ds, &content[AS_BYTES + KALDI_AS_ENTRY], table->name, "wav", "wav",
                          IN_FILE_SAMPLES | IN_TAR)
            ->unnamed = count_waves(set) == 1;
    records_add_bytes(ds, &content[AS_BYTES + KALDI_AS_STORED], table->name, "raw", "raw",
                      IN_FILE_SAMPLES | (is_opaque ? IN_TAR : 0));
}

int kaldi_fields_init(struct dataset *ds, const struct format_setup *setup)
{
    struct kaldi_set *set = ds->impl;
    unsigned n = set->n_columns;
    int r;

    set->content = calloc((size_t)n * N_CONTENTS, sizeof(*set->content));
    if (!set->content)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        kaldi_fields_add_column(ds, i, &set->content[i * N_CONTENTS]);
    r = kaldi_audio_init(ds, setup);
    records_add_keys(ds);
    return r;
}

/* Set the type and the axes of an array; a size that differs from cell to cell is DIM_VARIES. */
static void finish_array(const struct kaldi_column *c, struct record_content *content)
{
    bool is_wave = c->table->type == KALDI_WAVE;
    const struct kaldi_array *array = &kaldi_types[c->table->type].array[content->what];

    if (array->real)
        content->dtype = c->real;
    content->ndim = !is_wave ? array->ndim : c->is_mono ? 1 : 2;
    content->dim[1] = c->table->type != KALDI_MATRIX && !is_wave ? 2
                      : c->varies                                ? DIM_VARIES
                                                                 : c->tail;
}

int kaldi_fields_finish(struct dataset *ds)
{
    const struct kaldi_set *set = kaldi_set_of(ds);

    for (unsigned i = 0; i < set->n_columns; i++)
        for (unsigned k = 0; k < KALDI_ARRAYS_MAX; k++)
            finish_array(&set->column[i], &set->content[i * N_CONTENTS + k]);
    return records_finish(ds, ds->keys->rows);
}
