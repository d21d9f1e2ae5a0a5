/* A table's life: it is opened, then its index is prepared; then rows are what the index says of
 * them.
 *
 * An index is data from a disk: every number of a row is checked when it is used. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "format/index/reasons.h"

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

/* Allocate the list of files, for the table's own and n more. */
static int begin_files(struct kaldi_table *table, size_t n)
{
    size_t n_own = kaldi_own_files(table);

    if (array_begin(&table->file, n_own + n, sizeof(*table->file)) < 0)
        return -ENOMEM;
    table->file[0].blob = table->base.blob;
    for (size_t i = 1; i < n_own; i++)
        table->file[i].blob = table->part[i]->base.blob;
    table->n_files = n_own;
    return 0;
}

static void keep_files(struct kaldi_table *table, struct kept *k)
{
    size_t n_own = kaldi_own_files(table);
    uint64_t n = k->out ? table->n_files - n_own : 0;

    kept_number(k, &n, k->out ? n : k->left / 8);
    if (!k->out)
        free_files(table);
    if (k->at && !k->error && begin_files(table, (size_t)n) < 0)
        k->error = -ENOMEM;
    for (uint64_t i = 0; i < n && !k->error; i++) {
        kept_text(k, &table->file[n_own + i].path);
        table->n_files += !k->out;
    }
}

static void table_keep(void *impl, struct kept *k)
{
    struct kaldi_table *table = impl;
    struct kaldi_totals *t = &table->totals;

    kept_flag(k, &t->any_double);
    kept_flag(k, &t->ends_early);
    for (unsigned i = 0; i < 2; i++) {
        kept_flag(k, &t->varies[i]);
        kept_number(k, &t->dim[i], UINT64_MAX);
    }
    kept_number(k, &t->bad, UINT64_MAX);
    kept_number(k, &t->left_out, UINT64_MAX);
    kept_number(k, &t->hash, UINT64_MAX);
    kept_growing(k, &table->notes);
    kept_growing(k, &table->reasons);
    keep_files(table, k);
}

/* A hash of the files that an scp file names, and of their identities; 0: it names none. */
static int hash_files(const struct kaldi_table *table, uint64_t *ret)
{
    AUTO_TEXT struct text t = {0};

    for (size_t i = kaldi_own_files(table); i < table->n_files; i++) {
        AUTO_FREE char *identity = NULL;
        int r = table->file[i].blob ? blob_identity(table->file[i].blob, &identity) : 0;

        if (r < 0)
            return r;
        text_add(&t, "%s\n%s\n", table->file[i].path, identity ? identity : "");
    }
    *ret = t.len ? key_hash(t.data, t.len) : 0;
    return t.failed ? -ENOMEM : 0;
}

/* Open a file of a kept index: one that an scp file names, or the earlier output of a command. */
static int open_known(const struct kaldi_table *table, struct kaldi_file *file)
{
    size_t len = strlen(file->path);
    AUTO_FREE char *command = NULL;
    struct diag d = DIAG_INIT;

    file->is_output = kaldi_is_command(file->path, len);
    if (!file->is_output)
        return opener_file(table->opener, table->folder, file->path, &file->blob, &d);
    command = strndup(file->path, len - 1);
    return command ? opener_kept(table->opener, command, &file->blob) : -ENOMEM;
}

/* The files must be those of which the index was made. Rows are not checked here: every use checks
 * its numbers. */
static int table_load(void *impl, const struct index *index)
{
    struct kaldi_table *table = impl;
    uint64_t hash = 0;
    int r = 0;

    (void)index;
    for (size_t i = kaldi_own_files(table); i < table->n_files && r == 0; i++)
        r = open_known(table, &table->file[i]);
    if (r == 0)
        r = hash_files(table, &hash);
    return r == 0 && hash != table->totals.hash ? -ESTALE : r;
}

static int table_begin(void *impl)
{
    struct kaldi_table *table = impl;
    int r = begin_files(table, 0);

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

    (void)index;
    (void)ret;
    (void)d;
    kaldi_pass_free(table->pass);
    table->pass = NULL;
    return table->notes.failed || table->reasons.failed ? -ENOMEM
                                                        : hash_files(table, &table->totals.hash);
}

static void table_release(void *p)
{
    struct kaldi_table *table = p;

    kaldi_pass_free(table->pass);
    if (table->n_parts)
        table->base.blob = NULL; /* that of the first part */
    for (size_t i = 0; i < table->n_parts; i++)
        record_file_drop(&table->part[i]->base);
    free(table->part);
    text_release(&table->set_note);
    free(table->name);
    free(table->folder);
}

static const struct record_file_ops table_ops = {
    .size = sizeof(struct kaldi_table),
    .index = {.version = "kaldi 5",
              .identity = table_identity,
              .keep = table_keep,
              .load = table_load,
              .begin = table_begin,
              .step = table_step,
              .renamed = table_renamed,
              .about = table_about},
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

/* blob remains the caller's if there is no memory. */
static int table_new_of(struct blob *blob, const struct kaldi_table_setup *setup,
                        struct kaldi_table **ret)
{
    const struct format_options *options = &setup->format->options;
    struct kaldi_table *table;
    int r = record_file_new(&table_ops, blob, setup->format, &table);

    if (r < 0)
        return r;
    table->name = strdup(setup->name);
    table->folder = strdup(setup->folder);
    table->layout = setup->layout;
    table->type = setup->type;
    table->opener = setup->format->opener;
    table->asked = asked_type(options, blob_name(blob), &table->asked_of_all);
    table->permissive = options->kaldi_permissive;
    table->sorted = options->kaldi_sorted;
    if (!table->name || !table->folder) {
        table->base.blob = NULL;
        record_file_drop(&table->base);
        return -ENOMEM;
    }
    *ret = table;
    return 0;
}

int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d)
{
    struct kaldi_table *table;
    int r = table_new_of(blob, setup, &table);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    r = kaldi_find_type(table, d);
    if (r < 0)
        record_file_drop(&table->base);
    else
        *ret = table;
    return r;
}

int kaldi_table_join(struct kaldi_table *const *part, size_t n, const char *name,
                     const struct format_setup *format, struct kaldi_table **ret)
{
    const struct kaldi_table_setup setup = {.name = name,
                                            .folder = part[0]->folder,
                                            .layout = part[0]->layout,
                                            .type = part[0]->type,
                                            .format = format};
    struct kaldi_table *table;
    int r = table_new_of(part[0]->base.blob, &setup, &table);

    if (r < 0)
        return r;
    table->part = calloc(n, sizeof(struct kaldi_table *));
    if (!table->part) {
        table->base.blob = NULL;
        record_file_drop(&table->base);
        return -ENOMEM;
    }
    table->base.prepared.size = 0;
    for (; table->n_parts < n; table->n_parts++) {
        table->part[table->n_parts] = part[table->n_parts];
        record_file_share(&part[table->n_parts]->base);
        table->base.prepared.size += part[table->n_parts]->base.blob->size;
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
           (o->dim[1] <= UINT16_MAX && o->data <= o->len &&
            checked_mul(o->dim[0], o->dim[1] * 2, &bytes) && bytes <= o->len - o->data);
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
                   .dim = {number[COLUMN_DIM], number[COLUMN_DIM + 1], number[COLUMN_DIM + 2]},
                   .data = number[COLUMN_FIRST + 1]}, /* of a wave */
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

int kaldi_table_fault(const struct kaldi_table *table, uint64_t row, struct diag *d)
{
    if (reasons_find(&table->reasons, row, d))
        return -EBADMSG;
    return diag_set(d, -EBADMSG, "%s: row %llu cannot be read; `epochfs info --check` says why",
                    blob_name(table->base.blob), (unsigned long long)row + 1);
}

void kaldi_table_identity(const struct kaldi_table *table, struct text *t)
{
    text_add(t, "%s files=%llx", table->base.prepared.identity,
             (unsigned long long)table->totals.hash);
}
