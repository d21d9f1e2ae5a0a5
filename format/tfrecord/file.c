#include "format/tfrecord/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/pass.h"

/* ---- what is kept with the index ---- */

#define FINDINGS_BYTES 48
#define FEW            16 /* features */

static void write_findings(const struct findings *f, struct text *t)
{
    const uint64_t numbers[] = {f->examples,     f->others, f->spoilt,
                                f->first_spoilt, f->tail,   f->tail_at};
    uint8_t bytes[FINDINGS_BYTES];

    for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
        store_le64(bytes + 8 * i, numbers[i]);
    text_add_bytes(t, (const char *)bytes, sizeof(bytes));
}

static int read_findings(struct findings *ret, const struct index *index, uint64_t size)
{
    uint64_t n[FINDINGS_BYTES / 8];

    if (index->about_len < FINDINGS_BYTES)
        return -EBADMSG;
    for (unsigned i = 0; i < ARRAY_LEN(n); i++)
        n[i] = load_le64(index->about + 8 * i);
    if (n[0] > index->rows || n[1] > index->rows || n[2] > index->rows - n[1] || n[3] > size ||
        n[4] >= N_TAILS || n[5] > size)
        return -EBADMSG;
    *ret = (struct findings){n[0], n[1], n[2], n[3], n[4], n[5]};
    return 0;
}

/* Are the places of the records inside the file, and no record shorter than its frame? */
static bool tfrecord_places_fit(const struct index *index, uint64_t size)
{
    uint64_t at[INDEX_GROUP], before = 0;

    for (uint64_t row = 0; row <= index->rows;) {
        unsigned n = index_numbers(index, row, FILE_AT, at);

        for (unsigned i = 0; i < n; i++, row++) {
            if (row ? at[i] < before || at[i] - before < FRAME_BYTES : at[i] != 0)
                return false;
            before = at[i];
        }
    }
    return before <= size;
}

static bool feature_fits(const struct learned_column *c, unsigned columns)
{
    const uint64_t *n = c->number;

    for (unsigned i = FEATURE_COUNT; i <= FEATURE_STEPS; i++)
        if (n[i] && (n[i] < FILE_FIXED || n[i] >= columns))
            return false;
    return c->len && (c->name[0] == FEATURE_OF_CONTEXT || c->name[0] == FEATURE_OF_LISTS) &&
           (n[FEATURE_COUNT] || n[FEATURE_OUT]) && n[FEATURE_LEAST] <= n[FEATURE_MOST] &&
           n[FEATURE_MOST] <= EXAMPLE_MAX && n[FEATURE_LEAST_STEPS] <= n[FEATURE_MOST_STEPS] &&
           n[FEATURE_MOST_STEPS] <= EXAMPLE_MAX && n[FEATURE_LOOKS] < N_LOOKS;
}

/* A name begins with the kind of the feature. */
static bool left_out_fits(const struct column_table *t)
{
    return !t->left_out || *t->first_out;
}

static int tfrecord_take(void *impl, const struct index *index)
{
    struct tfrecord_file *file = impl;
    struct findings findings;
    size_t used;
    int r = read_findings(&findings, index, file->base.blob->size);

    if (r == 0 && !tfrecord_places_fit(index, file->base.blob->size))
        r = -EBADMSG;
    if (r == 0)
        r = column_table_read(&file->features, index->about + FINDINGS_BYTES,
                              index->about_len - FINDINGS_BYTES, &used);
    if (r < 0)
        return r;
    if (!left_out_fits(&file->features))
        r = -EBADMSG;
    for (unsigned i = 0; i < file->features.n && r == 0; i++)
        if (!feature_fits(&file->features.column[i], index->shape.columns))
            r = -EBADMSG;
    if (r == 0) {
        file->findings = findings;
    } else {
        column_table_release(&file->features);
        file->features = (struct column_table){0};
    }
    return r;
}

static int tfrecord_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct tfrecord_file *file = impl;

    (void)index;
    (void)d;
    pass_free(file->pass);
    file->pass = NULL;
    write_findings(&file->findings, ret);
    column_table_write(&file->features, ret);
    return 0;
}

/* ---- the index ---- */

static int tfrecord_begin(void *impl)
{
    struct tfrecord_file *file = impl;

    return pass_new(file, &file->pass);
}

static int tfrecord_step(void *impl, struct diag *d)
{
    return pass_step(((struct tfrecord_file *)impl)->pass, d);
}

/* What was learned becomes the columns. */
static int tfrecord_ready(void *impl, struct diag *d)
{
    struct tfrecord_file *file = impl;
    const struct findings *f = &file->findings;
    uint64_t rows = file->base.prepared.index.rows;
    int r;

    (void)d;
    if (file->features.n <= FEW) /* quick enough without a table */
        column_table_settle(&file->features);
    r = shown_make(&file->shown, &file->features, rows, rows - f->others - f->spoilt,
                   f->others > f->examples);
    file->base.column = file->shown.column;
    file->base.n_columns = file->shown.n;
    return r;
}

static int file_open(void *p, const struct record_source *source, struct diag *d)
{
    (void)d;
    ((struct tfrecord_file *)p)->memo = source->setup->memo;
    return 0;
}

static void tfrecord_release(void *p)
{
    struct tfrecord_file *file = p;

    pass_free(file->pass);
    shown_release(&file->shown);
    column_table_release(&file->features);
}

const struct record_file_ops tfrecord_file_ops = {
    .size = sizeof(struct tfrecord_file),
    .index = {.version = "tfrecord 1",
              .load = tfrecord_take,
              .begin = tfrecord_begin,
              .step = tfrecord_step,
              .about = tfrecord_about,
              .ready = tfrecord_ready},
    .shape = {.columns = FILE_FIXED, .rising = 1u << FILE_AT, .learns = true},
    .has_places = true,
    .checks_rows = true,
    .side_by_side = true,
    .open = file_open,
    .release = tfrecord_release,
};

/* ---- what people are told ---- */

void tfrecord_damage(const void *p, struct text *t)
{
    static const char *const wanted[N_TAILS] = {
        [TAIL_HEAD] = "a record's length that matches its checksum, got another",
        [TAIL_HEAD_CUT] = "the 12 bytes that begin a record, got the end of the file",
        [TAIL_DATA_CUT] = "the data of a record, got the end of the file",
    };
    const struct tfrecord_file *file = p;
    const struct findings *f = &file->findings;

    if (f->tail != TAIL_NONE)
        text_add(t, "%s: byte %llu: expected %s; only the %llu records before it are served\n",
                 blob_name(file->base.blob), (unsigned long long)f->tail_at, wanted[f->tail],
                 (unsigned long long)file->base.prepared.index.rows);
}

void tfrecord_note(const void *p, struct text *t)
{
    const struct tfrecord_file *file = p;
    const struct findings *f = &file->findings;
    const char *name = blob_name(file->base.blob);

    if (f->spoilt)
        text_add(t,
                 "%s: records that cannot be read: %llu, the first at byte %llu: expected data "
                 "that match "
                 "their checksum, got others\n",
                 name, (unsigned long long)f->spoilt, (unsigned long long)f->first_spoilt);
    if (f->others && f->examples && f->others <= f->examples)
        text_add(
            t, "%s: records that are no tf.train.Example: %llu; they have the file .record alone\n",
            name, (unsigned long long)f->others);
    if (file->features.left_out)
        text_add(t, "%s: features beyond the first %u are ignored, such as %s\n", name,
                 file->features.n, file->features.first_out + 1);
    if (file->shown.hidden)
        text_add(t,
                 "%s: %u features have no field: kinds differ inside of a list, or the index "
                 "has no columns left\n",
                 name, file->shown.hidden);
}
