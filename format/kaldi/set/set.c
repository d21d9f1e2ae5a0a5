/* A dataset of Kaldi tables: its operations, and how it is made. */
#include "format/kaldi/set/set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/readers.h"
#include "base/text.h"
#include "format/core/encoder.h"
#include "format/core/extents.h"
#include "format/core/format.h"
#include "format/encode/encode.h"
#include "format/records/record_audio.h"
#include "format/records/records.h"

/* Add the notes of the tables and the join, as lines. */
static void kaldi_set_add_notes(const struct kaldi_set *set, struct text *t)
{
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;
        const struct text *notes = &table->notes;

        if (table->looks)
            text_add(t,
                     "%s: is read as %s, as -o kaldi_type= says for all tables; its objects look "
                     "like %s. For single tables: -o 'kaldi_type=FILE:TYPE;FILE:TYPE'\n",
                     blob_name(table->base.blob), kaldi_types[table->type].name,
                     kaldi_types[table->looks].name);
        if (table->set_note.len)
            text_add(t, "%s", table->set_note.data);
        if (table->type == KALDI_OPAQUE)
            text_add(t, "%s: opaque objects, of a class that only Kaldi's programs read\n",
                     blob_name(table->base.blob));
        if (notes->len)
            text_add_bytes(t, notes->data, notes->len);
        if (table->base.prepared.unkept)
            text_add(t, "%s\n", table->base.prepared.unkept);
    }
    for (unsigned i = 0; i < set->parts.tables.n; i++) {
        const struct kaldi_table *table = (struct kaldi_table *)set->parts.tables.file[i];

        if (table->has_mark)
            text_add(t,
                     "%s: begins with a byte order mark, which is skipped; Kaldi takes it for a "
                     "part of the first key\n",
                     blob_name(table->base.blob));
    }
    for (unsigned i = 0; i < 2 && set->join; i++) {
        const struct text *lines = i ? &set->join->notes : &set->join->missing;

        if (lines->len)
            text_add_bytes(t, lines->data, lines->len);
    }
}

/* The permission bits to deny: a user that cannot read the files that an scp file names must not
 * read data made from them. The output of a command belongs to the cache folder. */
static unsigned denied_by(const struct blob *shown, const struct kaldi_table *table)
{
    unsigned denied = 0;

    for (size_t i = 1; i < table->n_files; i++)
        if (table->file[i].blob && !table->file[i].is_output)
            denied |= ~blob_readers(shown, table->file[i].blob) & 0777;
    return denied;
}

/* All tables are ready: set what they have in common. */
static int set_finish(struct dataset *ds)
{
    struct kaldi_set *set = ds->impl;
    AUTO_TEXT struct text notes = {0};

    ds->keys = set->join ? &set->join->prepared.index : &set->column[0].table->base.prepared.index;
    for (unsigned i = 0; i < set->n_columns; i++) {
        struct kaldi_column *c = &set->column[i];
        const struct kaldi_totals *t = &c->table->totals;

        c->real = c->table->type == KALDI_DOUBLE || t->any_double ? DTYPE_F8 : DTYPE_F4;
        c->varies = t->varies[0];
        c->tail = t->dim[0];
        c->is_mono = c->table->type == KALDI_WAVE && (c->is_cut || (!c->varies && c->tail == 1));
        ds->denied |= denied_by(ds->blob[0], c->table);
    }
    kaldi_set_add_notes(set, &notes);
    if (notes.len)
        notes_add(&ds->notes, "%s", notes.data);
    return kaldi_fields_finish(ds);
}

static int kaldi_set_set_prepare(struct dataset *ds, struct diag *d)
{
    struct kaldi_set *set = ds->impl;
    int r = set->is_known ? 1 : shards_prepare(&set->parts.tables, d);

    if (r == 1 && set->join && !set->is_known)
        r = prepared_step(&set->join->prepared, d);
    if (r != 1)
        return r;
    r = set->is_known ? 0 : set_finish(ds);
    if (r < 0)
        return r;
    set->is_known = true;
    return set->audio ? record_audio_prepare(ds, set->audio, d) : 1;
}

/* Add the range of rows (or samples) and columns, in the form of an scp file. */
static void add_cut(const struct kaldi_cell *cell, struct text *t)
{
    const struct kaldi_row *row = &cell->row;

    text_add(t, "[%llu:%llu", (unsigned long long)row->first[0],
             (unsigned long long)(row->first[0] + row->n[0] - 1));
    if (cell->table->type == KALDI_MATRIX && row->n[1] != row->object.dim[1])
        text_add(t, ",%llu:%llu", (unsigned long long)row->first[1],
                 (unsigned long long)(row->first[1] + row->n[1] - 1));
    text_add(t, "]");
}

static void set_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    const struct record_content *content = only ? only->impl : NULL;

    for (unsigned i = 0; i < set->n_columns; i++) {
        struct kaldi_cell cell;

        if ((content && content->ops == &kaldi_content_ops && content->column != i) ||
            kaldi_cell(set, i, sample, &cell, NULL) < 0)
            continue;
        text_add(t, "%s%s:%llu+%llu", t->len ? "," : "", blob_name(cell.row.blob),
                 (unsigned long long)cell.row.object.start,
                 (unsigned long long)cell.row.object.len);
        if (cell.row.is_cut)
            add_cut(&cell, t);
    }
}

/* The bytes of a cell that all fields together read. */
static struct extent cell_span(const struct kaldi_column *c, const struct kaldi_cell *cell)
{
    struct kaldi_view view;
    struct extent stored, decoded;
    uint64_t end;

    kaldi_view_bytes(cell, KALDI_AS_STORED, &view);
    stored = kaldi_view_span(&view);
    if (!cell->row.is_cut)
        return stored;
    /* One field may need a part decoded, and another may read it as stored. */
    kaldi_view_array(cell, 0, c->real, &view);
    decoded = kaldi_view_span(&view);
    end = max_u64(decoded.off + decoded.len, stored.off + stored.len);
    stored.off = min_u64(stored.off, decoded.off);
    stored.len = end - stored.off;
    return stored;
}

static unsigned set_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                            struct extent *ret)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    unsigned n = 0;

    if (only)
        return records_extents(ds, sample, only, ret);
    for (unsigned i = 0; i < set->n_columns && n < EXTENTS_MOST; i++) {
        struct kaldi_cell cell;

        if (kaldi_cell(set, i, sample, &cell, NULL) < 0 || cell.row.is_output)
            continue;
        ret[n] = cell_span(&set->column[i], &cell);
        n += ret[n].len > 0;
    }
    return n;
}

static void kaldi_set_set_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct kaldi_set *set = kaldi_set_of(ds);
    uint64_t bad = 0, left_out = 0;

    json_open(t, indent, "tables", "{");
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;

        json_add_text(t, NULL, table->name, kaldi_types[table->type].name);
        bad += table->totals.bad;
        left_out += table->totals.left_out;
    }
    json_close(t, indent, "}");
    json_add_number(t, indent, "unreadable", bad);
    json_add_number(t, indent, "left_out", left_out);
    if (set->join)
        kaldi_join_describe(set->join, indent, t);
    if (set->audio)
        record_audio_describe(set->audio, indent, t);
}

static void set_report_lines(const char *lines, void (*report)(void *ctx, const char *text),
                             void *ctx)
{
    for (size_t len; *lines; lines += len + (lines[len] != '\0')) {
        AUTO_FREE char *line = NULL;

        len = strcspn(lines, "\n");
        line = strndup(lines, len);
        if (line)
            report(ctx, line);
    }
}

static int kaldi_set_set_check(const struct dataset *ds,
                               void (*report)(void *ctx, const char *text), void *ctx,
                               struct diag *d)
{
    const struct kaldi_set *set = kaldi_set_of(ds);

    for (unsigned i = 0; i < set->n_columns; i++)
        if (set->column[i].table->totals.ends_early)
            report(ctx, set->column[i].table->notes.data);
    if (set->join && set->join->missing.len)
        set_report_lines(set->join->missing.data, report, ctx);
    return records_check(ds, report, ctx, d);
}

static void kaldi_set_set_free(struct dataset *ds)
{
    struct kaldi_set *set = ds->impl;

    ds->n_blobs = 0; /* the tables and the set own them */
    record_audio_free(set->audio);
    kaldi_join_free(set->join);
    kaldi_parts_release(&set->parts);
    free(set->column);
    free(set->content);
    free(set);
}

static const struct dataset_ops kaldi_ops = {
    .prepare = kaldi_set_set_prepare,
    .progress = shards_progress,
    .check = kaldi_set_set_check,
    .describe = kaldi_set_set_describe,
    .locate = set_locate,
    .extents = set_extents,
    .identity = kaldi_set_identity,
    .free = kaldi_set_set_free,
    .checks_reads = true,
    .walks = true,
};

void kaldi_parts_release(struct kaldi_parts *parts)
{
    shards_release(&parts->tables);
    for (size_t i = 0; i < parts->n_material; i++)
        blob_free(parts->material[i]);
    free(parts->material);
    *parts = (struct kaldi_parts){0};
}

/* Make a column of each table, and list the files of the dataset. */
static int set_add_columns(struct dataset *ds, struct kaldi_set *set, bool is_alone)
{
    const struct kaldi_parts *parts = &set->parts;

    set->column = calloc(parts->tables.n, sizeof(*set->column));
    if (!set->column)
        return -ENOMEM;
    for (unsigned i = 0; i < parts->tables.n; i++) {
        struct kaldi_table *table = (struct kaldi_table *)parts->tables.file[i];

        if (parts->has_segments && i + 1 == parts->tables.n)
            set->segments = table;
        else
            set->column[set->n_columns++] =
                (struct kaldi_column){.table = table, .join = -1, .is_alone = is_alone};
        for (size_t k = 0; k < kaldi_own_files(table); k++)
            ds->blob[ds->n_blobs++] = table->n_parts ? table->part[k]->base.blob : table->base.blob;
        ds->shares_blobs = ds->shares_blobs || table->n_parts || table->base.users > 1;
    }
    for (size_t i = 0; i < parts->n_material; i++)
        ds->blob[ds->n_blobs++] = parts->material[i];
    return 0;
}

int kaldi_set_new(const struct format *format, const struct format_setup *setup,
                  struct kaldi_parts *parts, bool is_alone, struct dataset **ret)
{
    struct kaldi_set *set = calloc(1, sizeof(*set));
    unsigned n = parts->tables.n;
    size_t n_blobs = parts->n_material;
    AUTO_DATASET struct dataset *ds = NULL;
    int r;

    for (unsigned i = 0; i < n; i++)
        n_blobs += kaldi_own_files((struct kaldi_table *)parts->tables.file[i]);
    r = dataset_new(format, &kaldi_ops, set,
                    (size_t)n * KALDI_FIELDS_MOST + RECORD_AUDIO_FIELDS + RECORD_KEY_FIELDS,
                    n_blobs, &ds);
    if (r < 0)
        return r;
    ds->memo = set->memo = setup->memo;
    set->parts = *parts;
    *parts = (struct kaldi_parts){0};
    r = set_add_columns(ds, set, is_alone);
    if (r == 0 && n > 1)
        r = kaldi_join_new(set, setup->keep, &set->join);
    if (r == 0)
        r = kaldi_fields_init(ds, setup);
    if (r == 0)
        r = dataset_add_folders(ds);
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}
