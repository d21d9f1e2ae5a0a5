/* Tables of metadata next to pictures, metadata.jsonl or metadata.csv, as Hugging Face has them: a
 * row is a sample. Columns called file_name or <name>_file_name name its files, the others are
 * fields. The table is hostile: what it names is looked up in the listing, and never opened as a
 * path. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/lookup.h"
#include "format/files/claim/parts.h"
#include "format/records/column_table.h"

#define METADATA_COLUMNS_MAX 500 /* of a table */

/* Numbers of a column of the table. */
enum {
    METADATA_SEEN,  /* 1 << enum cell_type of each cell that has a value */
    METADATA_VALUE, /* 1 + its place in values; 0: it names files */
};

struct metadata {
    struct search *s;
    struct set *set;
    size_t file; /* of the listing: the table */
    uint32_t folder;
    char *what; /* its path */
    enum table_format format;
    struct row row;
    struct column_table columns;
    uint64_t rows, found, missing, refused; /* names of files */
};

static void metadata_release(struct metadata *t)
{
    row_release(&t->row);
    column_table_release(&t->columns);
    free(t->what);
}

/* ---- cells ---- */

/* "file_name" and "<name>_file_name" have names of files. */
static bool metadata_names_files(const char *name, size_t len)
{
    static const char word[] = "file_name";
    size_t n = sizeof(word) - 1;

    return len >= n && !memcmp(name + len - n, word, n) && (len == n || name[len - n - 1] == '_');
}

/* What the fields of a column of files begin with: "" of file_name, "<name>." of others. */
static void metadata_field(const struct learned_column *column, char ret[static EXT_MOST])
{
    size_t n = column->len - strlen("file_name");

    n -= n > 0; /* "_" */
    n = n < EXT_MOST - 2 ? n : EXT_MOST - 2;
    snprintf(ret, EXT_MOST, "%.*s%s", (int)n, column->name, n ? "." : "");
}

static void metadata_lose(struct metadata *t, const struct learned_column *column, bool is_below)
{
    AUTO_TEXT struct text why = {0};
    char field[EXT_MOST];

    t->missing += is_below;
    t->refused += !is_below;
    metadata_field(column, field);
    text_add(&why, "%s: %s", column->name,
             is_below ? "there is no such file" : "expected a path below the folder of the table");
    t->s->failed = t->s->failed || why.failed;
    set_add_lost(t->set, field, why.data ? why.data : "");
}

static int metadata_add_file(struct metadata *t, const struct learned_column *column,
                             const struct row_cell *cell)
{
    char field[EXT_MOST], full[2 * EXT_MOST + 2], ext[EXT_MOST + 1];
    AUTO_FREE char *path = strndup(cell->text, cell->len);
    const bool is_below = cell->is_string && lookup_is_below(cell->text, cell->len);
    const char *name;
    size_t file, stem;

    if (!path)
        return -ENOMEM;
    file = is_below ? lookup_path(t->s->m, claim_path(t->s, t->folder), path) : t->s->m->n;
    if (file == t->s->m->n || file == t->file) {
        metadata_lose(t, column, is_below);
        return 0;
    }
    t->found++;
    name = members_name(t->s->m, file);
    stem = name_stem_alone(name);
    metadata_field(column, field);
    snprintf(full, sizeof(full), "%s%s", field, stem && name_ext(name, stem, ext) ? ext : "bin");
    set_add_file(t->set, file, full);
    return 0;
}

static int metadata_add_cell(struct metadata *t, const struct row_cell *cell, unsigned i)
{
    struct value_columns *values = &t->set->claim->view->values;
    struct learned_column *column = &t->columns.column[i];

    if (cell->type == CELL_NONE)
        return 0;
    if (metadata_names_files(column->name, column->len))
        return metadata_add_file(t, column, cell);
    column->number[METADATA_SEEN] |= UINT64_C(1) << cell->type;
    return value_column_set(&values->column[column->number[METADATA_VALUE] - 1], t->rows,
                            cell->text, cell->len);
}

/* The number of a column, which may be new. 0, -E2BIG or -ENOMEM. */
static int metadata_find_column(struct metadata *t, const char *name, size_t len, unsigned *ret)
{
    struct value_columns *values = &t->set->claim->view->values;
    unsigned before = t->columns.n;
    struct value_column *value;
    int r = column_table_add(&t->columns, name, len, ret);

    if (r < 0 || t->columns.n == before || metadata_names_files(name, len))
        return r;
    t->columns.column[*ret].number[METADATA_VALUE] = values->n + 1;
    return value_columns_add(values, name, VALUE_TEXT, DTYPE_U1, true, 0, &value);
}

/* ---- rows ---- */

/* The names of the columns of CSV. */
static int metadata_read_names(struct metadata *t, const char *what, struct diag *d)
{
    if (t->row.n > METADATA_COLUMNS_MAX)
        return diag_set(d, -EBADMSG, "%s: expected at most %u columns, got %zu", what,
                        METADATA_COLUMNS_MAX, t->row.n);
    for (size_t i = 0; i < t->row.n; i++) {
        AUTO_FREE char *name = strndup(t->row.cell[i].text, t->row.cell[i].len);
        unsigned column;
        int r = name ? metadata_find_column(t, name, strlen(name), &column) : -ENOMEM;

        if (r == -ENOMEM)
            return r;
        if (r < 0 || column != i)
            return diag_set(d, -EBADMSG, "%s: column %zu: expected a name that no other has", what,
                            i + 1);
    }
    return 0;
}

/* The key of a row: the name of its file, without the extension; its place if it has none. */
static void metadata_begin_row(struct metadata *t, uint64_t at)
{
    const struct row_cell *named = NULL;
    char place[24];

    for (size_t i = 0; i < t->row.n; i++) {
        const struct row_cell *cell = &t->row.cell[i];
        const char *name = cell->name ? cell->name : t->columns.column[i].name;

        if (!cell->len || !cell->is_string || !metadata_names_files(name, strlen(name)))
            continue;
        if (!named || !strcmp(name, "file_name"))
            named = cell;
    }
    snprintf(place, sizeof(place), "%" PRIu64, at);
    set_begin_row(t->set, named ? named->text : place,
                  named ? path_stem(named->text, named->len) : strlen(place));
}

static int metadata_add_row(void *metadata, const struct row_bytes *bytes, uint64_t line,
                            const char *what, struct diag *d)
{
    struct metadata *t = metadata;
    const struct row *row = &t->row;
    int r = row_parse(&t->row, t->format, bytes->bytes, bytes->len, what, d);

    (void)line;
    if (r == 0 && t->format == TABLE_CSV && !t->columns.n)
        return metadata_read_names(t, what, d);
    if (r == 0 && t->format == TABLE_CSV && row->n != t->columns.n)
        return diag_set(d, -EBADMSG, "%s: expected %u fields, as the first line has, got %zu", what,
                        t->columns.n, row->n);
    if (r == 0)
        metadata_begin_row(t, bytes->at);
    for (size_t i = 0; i < row->n && r == 0; i++) {
        const struct row_cell *cell = &row->cell[i];
        unsigned column = (unsigned)i;

        if (cell->name)
            r = metadata_find_column(t, cell->name, strlen(cell->name), &column);
        if (r == 0)
            r = metadata_add_cell(t, cell, column);
        if (r == -E2BIG)
            r = 0; /* the table has counted it */
    }
    t->rows += r == 0;
    return r;
}

/* ---- all rows ---- */

/* Columns of numbers alone become such. */
static int metadata_finish_values(struct metadata *t)
{
    struct value_columns *values = &t->set->claim->view->values;
    int r = value_columns_end(values, t->rows);

    for (unsigned i = 0; i < t->columns.n && r == 0; i++) {
        const uint64_t *number = t->columns.column[i].number;

        if (number[METADATA_VALUE] && number[METADATA_SEEN] &&
            !(number[METADATA_SEEN] & ~(UINT64_C(1) << CELL_INTEGER | UINT64_C(1) << CELL_REAL)))
            r = value_column_to_numbers(
                &values->column[number[METADATA_VALUE] - 1],
                number[METADATA_SEEN] >> CELL_REAL & 1 ? DTYPE_F8 : DTYPE_I8, 0);
    }
    return r;
}

/* What is in no row is ignored. Returns how many files. */
static uint64_t metadata_ignore_others(const struct metadata *t)
{
    uint64_t n = 0;

    for (size_t i = t->s->info[t->folder].first; i < folder_end(t->s, t->folder); i++)
        if (i != t->file && t->s->claims->taken[i] != CLAIMS_SAMPLE &&
            table_may_name(t->s, t->folder, i)) {
            t->s->claims->taken[i] = CLAIMS_ASIDE;
            t->s->flags[i] |= FILE_REASON_GIVEN;
            n++;
        }
    return n;
}

static void metadata_add_notes(const struct metadata *t, uint64_t unnamed)
{
    struct set *set = t->set;

    if (t->missing)
        text_add(&set->notes, "%s names %" PRIu64 " files that are not there\n", t->what,
                 t->missing);
    if (t->refused)
        text_add(&set->notes, "%s names %" PRIu64 " files that are not below its folder: refused\n",
                 t->what, t->refused);
    if (unnamed)
        text_add(&set->notes, "%" PRIu64 " files are in no row of %s\n", unnamed, t->what);
    if (t->columns.left_out)
        text_add(&set->notes,
                 "%s has more than %u columns: others are ignored, the first is '%s'\n", t->what,
                 METADATA_COLUMNS_MAX, t->columns.first_out);
    set_add_table(set, t->what, "metadata", "table");
    json_add_number(&set->about, "", "rows_without_file", t->missing);
    json_add_number(&set->about, "", "rows_refused", t->refused);
    json_add_number(&set->about, "", "files_without_row", unnamed);
}

static int metadata_finish(struct metadata *t, struct diag *d)
{
    int r = metadata_finish_values(t);

    set_end(t->set);
    if (r < 0)
        return r;
    if (!t->found && (t->missing || t->refused))
        return diag_set(d, -EBADMSG,
                        "%s: expected a row whose file exists, got none in %" PRIu64 " rows",
                        t->what, t->rows);
    if (!t->found)
        return diag_set(d, -EBADMSG,
                        "%s: expected a column file_name, or <name>_file_name, that names files "
                        "next to it; got none in %" PRIu64 " rows",
                        t->what, t->rows);
    metadata_add_notes(t, metadata_ignore_others(t));
    return 0;
}

/* The table of the folder, of which there is one. 0, or -EBADMSG with the reason in d. */
static int metadata_choose(const struct search *s, uint32_t folder, size_t *ret, struct diag *d)
{
    const char *path = claim_path(s, folder), *slash = *path ? "/" : "", *first = NULL;

    for (size_t i = 0; table_names[i]; i++) {
        size_t file = members_lookup(s->m, path, strlen(path), table_names[i]);

        if (file == s->m->n)
            continue;
        if (first)
            return diag_set(d, -EBADMSG, "%s%sexpected one table of metadata, got %s and %s", path,
                            *path ? ": " : "", first, table_names[i]);
        first = table_names[i];
        *ret = file;
        s->claims->taken[file] = CLAIMS_USED;
    }
    if (strstr(first, ".parquet"))
        return diag_set(d, -EBADMSG,
                        "%s%s%s: expected metadata.jsonl or metadata.csv, got a table of Parquet. "
                        "Write its rows as JSON lines or CSV",
                        path, slash, first);
    return 0;
}

void metadata_apply(struct search *s, uint32_t folder)
{
    AUTO(metadata_release)
    struct metadata t = {.s = s, .folder = folder, .columns.most = METADATA_COLUMNS_MAX};
    struct diag d = DIAG_INIT;
    size_t before = s->n_sets;
    int r = metadata_choose(s, folder, &t.file, &d);

    if (r == 0) {
        t.format = text_ends_with(members_name(s->m, t.file), ".csv") ? TABLE_CSV : TABLE_JSONL;
        t.what = member_path(s->m, t.file);
        t.set = set_begin(s, folder, LAYOUT_FLAT, folder, "a table of metadata");
        r = t.what && t.set ? search_rows(s, t.file, t.what, t.format, metadata_add_row, &t, &d)
                            : -ENOMEM;
    }
    if (r == 0)
        r = metadata_finish(&t, &d);
    s->failed = s->failed || r == -ENOMEM;
    if (r < 0 && !s->failed) {
        sets_drop(s, before);
        collect_refused(s, folder, "%s", diag_text(&d, r));
    }
}
