/* A table's life: it is opened, then its index is prepared; then rows are what the index says of
 * them.
 *
 * An index is data from a disk: every number of a row is checked when it is used. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* ---- preparing ---- */

static void free_files(struct kaldi_table *table)
{
    for (size_t i = kaldi_own_files(table); i < table->n_files; i++) {
        free(table->file[i].path);
        free(table->file[i].reason);
        blob_free(table->file[i].blob);
    }
    free(table->file);
    table->file = NULL;
    table->n_files = 0;
}

static int table_identity(void *impl, struct text *ret)
{
    const struct kaldi_table *table = impl;
    int r = 0;

    text_add(ret, " type=%d kind=%d options=%d folder=%s", table->type, table->layout,
             table->permissive | table->sorted << 1 | table->opener->runs_commands << 2 |
                 table->opener->reads_outside << 3,
             table->folder);
    for (size_t i = 1; i < table->n_parts && r == 0; i++)
        r = prepared_add_identity(&table->base.prepared, ret, table->part[i]->base.blob);
    return r;
}

static int table_take(void *impl, const struct index *index)
{
    struct kaldi_table *table = impl;
    int r = kaldi_take_about(table, index);

    if (r < 0) {
        free_files(table);
        table->totals = (struct kaldi_totals){0};
    }
    return r;
}

static int table_begin(void *impl)
{
    struct kaldi_table *table = impl;
    int r = kaldi_add_own_files(table, 0);

    return r == 0 ? kaldi_pass_new(table, &table->pass) : r;
}

static int table_step(void *impl, struct diag *d)
{
    struct kaldi_table *table = impl;
    int r = kaldi_pass_step(table->pass, d);

    for (size_t i = 0; i < table->n_files && r == 1; i++) {
        int changed = table->file[i].blob ? blob_check(table->file[i].blob) : 0;

        r = changed < 0 ? changed : r;
    }
    return r;
}

static void table_renamed(void *impl, uint64_t row, uint64_t first)
{
    struct kaldi_table *table = impl;

    if (table->renamed++ < 10)
        text_add(&table->notes,
                 "%s: row %llu has the key of row %llu; it is shown with ~ and a number after "
                 "its key\n",
                 blob_name(table->base.blob), (unsigned long long)row + 1,
                 (unsigned long long)first + 1);
    else if (table->renamed == 11)
        text_add(&table->notes, "and more keys that occur twice\n");
}

static int table_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct kaldi_table *table = impl;
    int r = kaldi_make_about(table, ret);

    (void)index;
    (void)d;
    kaldi_pass_free(table->pass);
    table->pass = NULL;
    return r == 0 && table->notes.failed ? -ENOMEM : r;
}

static void table_not_kept(void *impl, const char *text)
{
    text_add(&((struct kaldi_table *)impl)->notes, "%s\n", text);
}

static void table_release(void *p)
{
    struct kaldi_table *table = p;

    kaldi_pass_free(table->pass);
    free_files(table);
    if (table->n_parts)
        table->base.blob = NULL; /* that of the first part */
    for (size_t i = 0; i < table->n_parts; i++)
        record_file_drop(&table->part[i]->base);
    free(table->part);
    text_release(&table->notes);
    text_release(&table->set_note);
    free(table->name);
    free(table->folder);
}

static const struct record_file_ops table_ops = {
    .size = sizeof(struct kaldi_table),
    .index = {.version = "kaldi 4",
              .identity = table_identity,
              .load = table_take,
              .begin = table_begin,
              .step = table_step,
              .renamed = table_renamed,
              .about = table_about,
              .not_kept = table_not_kept},
    .index_type = "tables",
    .shape = {.columns = KALDI_COLUMNS, .has_keys = true},
    .release = table_release,
};

/* ---- opening ---- */

/* The type that the user gives for a table of that name, or for all. */
static enum kaldi_type asked_type(const struct format_options *options, const char *name,
                                  bool *ret_of_all)
{
    const char *slash = strrchr(name, '/');

    *ret_of_all = false;
    for (const char *item = options->kaldi_tables; item && *item;) {
        size_t n = strcspn(item, ";");
        const char *colon = memrchr(item, ':', n);

        if (colon && format_item_names(item, slash ? slash + 1 : name))
            return kaldi_type_called(colon + 1, (size_t)(item + n - colon - 1));
        item += n + (item[n] != '\0');
    }
    *ret_of_all = options->kaldi_type != KALDI_UNKNOWN;
    return (enum kaldi_type)options->kaldi_type;
}

int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d)
{
    struct kaldi_table *table;
    int r = record_file_new(&table_ops, blob, setup->format, &table);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    table->name = strdup(setup->name);
    table->folder = strdup(setup->folder);
    table->layout = setup->layout;
    table->type = setup->type;
    table->opener = setup->format->opener;
    table->asked = asked_type(&setup->format->options, blob_name(blob), &table->asked_of_all);
    table->permissive = setup->format->options.kaldi_permissive;
    table->sorted = setup->format->options.kaldi_sorted;
    if (!table->name || !table->folder)
        r = -ENOMEM;
    if (r == 0)
        r = kaldi_find_type(table, d);
    if (r < 0) {
        record_file_drop(&table->base);
        return r;
    }
    *ret = table;
    return 0;
}

int kaldi_table_join(struct kaldi_table *const *part, size_t n, const char *name,
                     const struct format_setup *format, struct kaldi_table **ret)
{
    struct kaldi_table *table;
    int r = record_file_new(&table_ops, part[0]->base.blob, format, &table);

    if (r < 0)
        return r;
    table->part = calloc(n, sizeof(struct kaldi_table *));
    table->name = strdup(name);
    table->folder = strdup(part[0]->folder);
    table->layout = part[0]->layout;
    table->type = part[0]->type;
    table->opener = format->opener;
    table->permissive = part[0]->permissive;
    table->sorted = part[0]->sorted;
    table->base.prepared.size = 0;
    for (; table->part && table->n_parts < n; table->n_parts++) {
        table->part[table->n_parts] = part[table->n_parts];
        record_file_share(&part[table->n_parts]->base);
        table->base.prepared.size += part[table->n_parts]->base.blob->size;
    }
    if (!table->part || !table->name || !table->folder) {
        if (!table->part)
            table->base.blob = NULL;
        record_file_drop(&table->base);
        return -ENOMEM;
    }
    *ret = table;
    return 0;
}

/* ---- rows ---- */

/* Are the samples of a wave in its file? */
static bool wave_fits(const struct kaldi_row *row)
{
    const struct kaldi_object *o = &row->object;
    uint64_t bytes;

    return o->store == KALDI_BAD ||
           (o->dim[1] <= UINT16_MAX && row->first[1] <= o->len &&
            checked_mul(o->dim[0], o->dim[1] * 2, &bytes) && bytes <= o->len - row->first[1]);
}

void kaldi_table_row(const struct kaldi_table *table, uint64_t row, struct kaldi_row *ret)
{
    uint64_t number[INDEX_COLUMNS];
    struct kaldi_object *o = &ret->object;

    index_row(&table->base.prepared.index, row, number);
    *ret = (struct kaldi_row){
        .is_whole = number[COLUMN_WHAT] & WHAT_WHOLE,
        .is_plain = number[COLUMN_WHAT] & WHAT_PLAIN,
        .is_open = number[COLUMN_WHAT] & WHAT_OPEN,
        .is_cut = number[COLUMN_WHAT] & WHAT_CUT,
        .first = {number[COLUMN_FIRST], number[COLUMN_FIRST + 1]},
        .n = {number[COLUMN_N], number[COLUMN_N + 1]},
        .object = {.type = table->type,
                   .store = (enum kaldi_store)(number[COLUMN_WHAT] & WHAT_STORE),
                   .start = number[COLUMN_START],
                   .dim = {number[COLUMN_DIM], number[COLUMN_DIM + 1], number[COLUMN_DIM + 2]}},
    };
    if (o->store >= N_KALDI_STORES)
        o->store = KALDI_BAD;
    o->len = number[COLUMN_LEN] + kaldi_len_estimate(o);
    if (number[COLUMN_FILE] < table->n_files) {
        ret->blob = table->file[number[COLUMN_FILE]].blob;
        ret->is_output = table->file[number[COLUMN_FILE]].is_output;
    }
    /* A damaged index may contain any numbers. */
    if (!ret->blob || o->start > ret->blob->size || o->len > ret->blob->size - o->start)
        o->store = KALDI_BAD;
    if (o->type == KALDI_WAVE && !wave_fits(ret))
        o->store = KALDI_BAD;
    if (!ret->is_cut) {
        ret->n[0] = o->dim[0];
        ret->n[1] = o->dim[1];
    } else if (ret->first[0] > o->dim[0] || ret->n[0] > o->dim[0] - ret->first[0] ||
               ret->first[1] > o->dim[1] || ret->n[1] > o->dim[1] - ret->first[1]) {
        o->store = KALDI_BAD;
    }
}

void kaldi_table_identity(const struct kaldi_table *table, struct text *t)
{
    text_add(t, "%s files=%llx", table->base.prepared.identity,
             (unsigned long long)table->totals.hash);
}
