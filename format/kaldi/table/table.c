/* A table's life: it is opened, then an index that an earlier mount has kept is taken, or a pass
 * makes one; then rows are what the index says of them. The states are in
 * format/kaldi/table/table.h.
 *
 * An index is data from a disk: every number of a row is checked when it is used. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/kaldi/table/pass.h"

#define VERSION 2

static const struct index_shape kaldi_table_shape = {.columns = KALDI_COLUMNS, .has_keys = true};

int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d)
{
    struct kaldi_table *table = calloc(1, sizeof(*table));
    int r = 0;

    if (!table) {
        blob_free(blob);
        return -ENOMEM;
    }
    table->blob = blob;
    table->name = strdup(setup->name);
    table->folder = strdup(setup->folder);
    table->kind = setup->kind;
    table->type = setup->type;
    table->keep = setup->format->keep;
    table->opener = setup->format->opener;
    table->asked = (enum kaldi_type)setup->format->options.kaldi_type;
    table->permissive = setup->format->options.kaldi_permissive;
    table->sorted = setup->format->options.kaldi_sorted;
    if (!table->name || !table->folder)
        r = -ENOMEM;
    if (r == 0)
        r = kaldi_find_type(table, d);
    if (r < 0) {
        kaldi_table_free(table);
        return r;
    }
    *ret = table;
    return 0;
}

static void free_files(struct kaldi_table *table)
{
    for (size_t i = 1; i < table->n_files; i++) {
        free(table->file[i].path);
        blob_free(table->file[i].blob);
    }
    free(table->file);
    table->file = NULL;
    table->n_files = 0;
}

void kaldi_table_free(struct kaldi_table *table)
{
    if (!table)
        return;
    kaldi_pass_free(table->pass);
    index_builder_free(table->builder);
    kept_index_release(&table->kept);
    free_files(table);
    text_release(&table->notes);
    blob_free(table->blob);
    free(table->name);
    free(table->folder);
    free(table);
}

/* ---- preparing ---- */

static int index_identity(const struct kaldi_table *table, char **ret)
{
    AUTO_FREE char *identity = NULL;
    int r = blob_identity(table->blob, &identity);
    char *text;

    if (r < 0)
        return r;
    if (asprintf(&text, "kaldi %d %s type=%d kind=%d options=%d folder=%s", VERSION, identity,
                 table->type, table->kind,
                 table->permissive | table->sorted << 1 | table->opener->runs_commands << 2 |
                     table->opener->reads_outside << 3,
                 table->folder) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}

/* Load the index that an earlier mount kept. 1: loaded; 0: there is none, it is damaged, or a file
 * that it names has changed; -errno: unknown. */
static int take_kept(struct kaldi_table *table, const char *identity)
{
    int r;

    if (index_store_load(table->keep, "tables", identity, &table->kept) < 0)
        return 0;
    r = index_open(table->kept.bytes, table->kept.size, &table->index);
    if (r == 0)
        r = kaldi_take_about(table, &table->index);
    if (r == 0)
        return 1;
    free_files(table);
    table->totals = (struct kaldi_totals){0};
    kept_index_release(&table->kept);
    if (r == -EREMOTEIO || r == -EINTR)
        return r;
    index_store_remove(table->keep, "tables", identity);
    return 0;
}

static int begin(struct kaldi_table *table)
{
    AUTO_FREE char *identity = NULL;
    int r = index_identity(table, &identity);

    if (r == 0)
        r = take_kept(table, identity);
    if (r)
        return r;
    r = kaldi_add_own_file(table, 0);
    if (r == 0)
        r = kaldi_pass_new(table, &table->pass);
    return r < 0 ? r : index_builder_new(&kaldi_table_shape, &table->builder);
}

struct renames {
    struct kaldi_table *table;
    unsigned reported;
};

static void tell_renamed(void *ctx, uint64_t row, uint64_t first)
{
    struct renames *renames = ctx;

    if (renames->reported++ < 10)
        text_add(&renames->table->notes,
                 "%s: row %llu has the key of row %llu; it is shown with ~ and a number after "
                 "its key\n",
                 blob_name(renames->table->blob), (unsigned long long)row + 1,
                 (unsigned long long)first + 1);
    else if (renames->reported == 11)
        text_add(&renames->table->notes, "and more keys that occur twice\n");
}

static int check_files(const struct kaldi_table *table)
{
    int r = 0;

    for (size_t i = 0; i < table->n_files && r == 0; i++)
        r = blob_check(table->file[i].blob);
    return r;
}

/* If the index cannot be kept, that is no error: the next mount makes it again. */
static int keep_index(struct kaldi_table *table, const struct iovec *pieces)
{
    AUTO_FREE char *identity = NULL;
    struct diag reason = DIAG_INIT;
    struct index kept;
    int r = index_identity(table, &identity);

    if (r < 0)
        return r;
    r = index_store_save(table->keep, "tables", identity, blob_source(table->blob), pieces,
                         INDEX_PIECES, &table->kept, &reason);
    if (r < 0) {
        text_add(&table->notes,
                 "%s: the index cannot be kept, so the next mount makes it again: %s\n",
                 blob_name(table->blob), diag_text(&reason, r));
        return 0;
    }
    if (index_open(table->kept.bytes, table->kept.size, &kept) == 0) {
        table->index = kept;
        index_builder_free(table->builder);
        table->builder = NULL;
    }
    return 0;
}

static int finish(struct kaldi_table *table)
{
    struct renames renames = {.table = table};
    struct iovec pieces[INDEX_PIECES];
    AUTO_TEXT struct text about = {0};
    int r = check_files(table);

    if (r == 0)
        r = index_finish(table->builder, NULL, tell_renamed, &renames, &table->index);
    if (r == 0)
        r = kaldi_make_about(table, &about);
    if (r == 0)
        r = index_bytes(table->builder, about.data, about.len, &table->index, pieces);
    kaldi_pass_free(table->pass);
    table->pass = NULL;
    if (r == 0 && table->notes.failed)
        r = -ENOMEM;
    return r < 0 || table->may_differ ? r : keep_index(table, pieces);
}

static int step(struct kaldi_table *table, struct diag *d)
{
    int r = table->pass || table->is_ready ? 0 : begin(table);

    if (r == 0)
        r = kaldi_pass_step(table->pass, d);
    if (r == 1 && table->pass) {
        r = finish(table);
        r = r < 0 ? r : 1;
    }
    if (r == 1) {
        atomic_store_explicit(&table->seen, table->blob->size, memory_order_relaxed);
        table->is_ready = true;
    }
    return r;
}

int kaldi_table_prepare(struct kaldi_table *table, struct diag *d)
{
    int r;

    if (table->is_ready)
        return 1;
    r = table->failed ? table->failed : step(table, &table->reason);
    if (r == -EREMOTEIO || r == -EINTR) {
        diag_set(d, r, "%s", diag_text(&table->reason, r));
        table->reason.set = false;
        return r;
    }
    if (r < 0) {
        table->failed = r;
        if (r == -ESTALE)
            table->reason.set = false; /* faults found in a file that changes say little */
        diag_set(&table->reason, r, "%s: cannot be indexed: %s", blob_name(table->blob),
                 r == -ESTALE ? "the file was changed meanwhile; mount again" : strerror(-r));
        return diag_set(d, r, "%s", table->reason.text);
    }
    return r;
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

    index_row(&table->index, row, number);
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
    o->len = number[COLUMN_LEN] +
             kaldi_len_estimate(o->store < N_KALDI_STORES ? o->store : KALDI_BAD, o->dim);
    if (number[COLUMN_FILE] < table->n_files && o->store < N_KALDI_STORES) {
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

int kaldi_table_identity(const struct kaldi_table *table, char **ret)
{
    AUTO_FREE char *identity = NULL;
    int r = index_identity(table, &identity);
    char *text;

    if (r < 0)
        return r;
    if (asprintf(&text, "%s files=%llx", identity, (unsigned long long)table->totals.hash) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}
