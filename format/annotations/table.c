/* One pass over all rows makes the columns as the first rows say; if a cell does not fit its
 * column, nothing more is stored, the pass goes on to find all such columns, and a second pass
 * stores them. */
#include "format/annotations/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/diag.h"
#include "format/annotations/table_head.h"
#include "format/annotations/table_label.h"

#define TABLE_ROWS_MOST (UINT32_MAX - 2) /* so that a row number is none of the special ones */

/* What a pass makes. */
struct table_pass {
    const struct table_source *source;
    struct table_head *head;
    struct value_columns columns;
    unsigned *value;    /* [head->n] where each column is in `columns`; UINT_MAX: it is not */
    uint32_t **picture; /* [head->n][rows] of columns that may be the key */
    size_t rows;
    bool misfits; /* a cell did not fit its column: nothing is stored any more */
};

#define TABLE_NO_VALUE UINT32_MAX

/* ---- columns ---- */

static void table_pass_release(struct table_pass *pass)
{
    for (size_t i = 0; i < pass->head->n && pass->picture; i++)
        free(pass->picture[i]);
    free(pass->picture);
    free(pass->value);
    value_columns_release(&pass->columns);
}

/* Has the column values? Not the only one that may be the key. */
static bool table_has_value(const struct table_head *head, size_t column)
{
    size_t keys = 0;

    for (size_t i = 0; i < head->n; i++)
        keys += head->column[i].may_be_key;
    if (head->separator == TABLE_WORDS)
        return column == 1;
    return (keys > 1 || !head->column[column].may_be_key) &&
           !(head->is_omitted && head->is_omitted[column]);
}

/* The name of a column as a field: by the header if no column before it has that name. */
static const char *table_field_name(const struct table_pass *pass, size_t i, char *numbered,
                                    size_t size)
{
    const struct table_head *head = pass->head;
    const struct table_column *column = &head->column[i];
    const char *name = column->name;

    if (head->separator == TABLE_WORDS && column->type == TABLE_INTEGERS && column->width > 1)
        name = "values";
    else if (head->separator == TABLE_WORDS && !name)
        name = "label";
    if (name && !value_columns_find(&pass->columns, name))
        return name;
    snprintf(numbered, size, "column_%zu", i);
    for (size_t k = 0; value_columns_find(&pass->columns, numbered); k++)
        snprintf(numbered, size, "column_%zu_%zu", i, k);
    return numbered;
}

static int table_add_column(struct table_pass *pass, size_t i)
{
    const struct table_column *column = &pass->head->column[i];
    const bool is_text = column->type == TABLE_TEXTS;
    const enum dtype dtype = column->type == TABLE_REALS ? DTYPE_F8 : DTYPE_I8;
    char numbered[64];
    const char *name = table_field_name(pass, i, numbered, sizeof(numbered));
    struct value_column *value;

    pass->value[i] = pass->columns.n;
    return value_columns_add(&pass->columns, name, is_text ? VALUE_TEXT : VALUE_NUMBERS,
                             is_text ? DTYPE_U1 : dtype, is_text,
                             !is_text && column->width > 1 ? column->width : 0, &value);
}

static int table_pass_begin(struct table_pass *pass)
{
    struct table_head *head = pass->head;

    pass->picture = calloc(head->n, sizeof(*pass->picture));
    pass->value = malloc(head->n * sizeof(*pass->value));
    if (!pass->picture || !pass->value)
        return -ENOMEM;
    for (size_t i = 0; i < head->n; i++) {
        struct table_column *column = &head->column[i];
        int r;

        pass->value[i] = TABLE_NO_VALUE;
        column->matched = column->formed = 0;
        column->several = 0;
        if (column->type == TABLE_EMPTY)
            column->type = head->separator == TABLE_WORDS ? TABLE_TEXTS : TABLE_INTEGERS;
        r = table_has_value(head, i) ? table_add_column(pass, i) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- rows ---- */

static int table_store(struct table_pass *pass, const struct table_rows *rows, size_t i)
{
    struct table_column *column = &pass->head->column[i];
    struct value_column *value = &pass->columns.column[pass->value[i]];
    const struct row_cell *cell = &rows->row.cell[i];
    int64_t number[TABLE_WIDTH_MOST];
    enum table_type type = table_type_of(rows, i, column->width, number);
    double real;

    if (type > column->type) {
        column->type = type;
        pass->misfits = true;
    }
    if (pass->misfits)
        return 0;
    if (type == TABLE_EMPTY)
        return value_column_end_hole(value);
    if (column->type == TABLE_TEXTS) {
        value_column_append(value, cell->text, cell->len);
    } else if (column->type == TABLE_INTEGERS) {
        value_column_append(value, number, 1);
    } else {
        real = type == TABLE_INTEGERS ? (double)cell->integer : cell->real;
        value_column_append(value, &real, 1);
    }
    return value_column_end_row(value);
}

static int table_pass_row(struct table_pass *pass, const struct table_rows *rows)
{
    for (size_t i = 0; i < rows->row.n; i++) {
        struct table_column *column = &pass->head->column[i];

        if (column->may_be_key) {
            if (array_capacity(&pass->picture[i], pass->rows, sizeof(**pass->picture)) < 0)
                return -ENOMEM;
            pass->picture[i][pass->rows] = table_see_key(column, rows, i);
        }
        if (pass->value[i] != TABLE_NO_VALUE) {
            int r = table_store(pass, rows, i);

            if (r < 0)
                return r;
        }
    }
    pass->rows++;
    return 0;
}

static int table_pass_rows(struct table_pass *pass, struct table_rows *rows, struct diag *d)
{
    const struct table_head *head = pass->head;
    int r;

    for (bool is_first = true; (r = table_rows_next(rows, d)) == 1; is_first = false) {
        if (rows->row.n != head->n)
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64
                            ": expected %zu cells, as in the first row, got %zu",
                            pass->source->file, rows->walk.line, head->n, rows->row.n);
        if (pass->rows == TABLE_ROWS_MOST)
            return diag_set(d, -EBADMSG, "%s, line %" PRIu64 ": expected at most %" PRIu32 " rows",
                            pass->source->file, rows->walk.line, TABLE_ROWS_MOST);
        if (is_first && head->has_header)
            continue;
        r = table_pass_row(pass, rows);
        if (r < 0)
            return r;
    }
    return r;
}

static size_t table_most_matched(const struct table_head *head)
{
    size_t most = 0;

    for (size_t i = 0; i < head->n; i++)
        most = head->column[i].matched > most ? head->column[i].matched : most;
    return most;
}

/* A malformed row makes a file no table, unless most rows before name pictures. */
static int table_pass_fail(const struct table_pass *pass, int r, const struct diag *problem,
                           struct text *reason, struct diag *d)
{
    size_t most = table_most_matched(pass->head);

    if (r != -EBADMSG || (most && 2 * most >= pass->rows))
        return problem->set ? diag_set(d, r, "%s", problem->text) : r;
    text_add(reason, "%s", diag_text(problem, r));
    return -EDOM;
}

static int table_pass_run(struct table_pass *pass, struct text *reason, struct diag *d)
{
    const struct table_source *s = pass->source;
    AUTO_TABLE_ROWS struct table_rows rows =
        table_rows_of(s->blob, s->at, s->end, s->file, pass->head->separator, s->names);
    struct diag problem = DIAG_INIT;
    int r = table_pass_begin(pass);

    if (r == 0)
        r = table_pass_rows(pass, &rows, &problem);
    if (r == 0)
        r = blob_verify(s->blob, &problem);
    return r < 0 ? table_pass_fail(pass, r, &problem, reason, d) : 0;
}

/* ---- the key ---- */

static int table_find_key(const struct table_pass *pass, size_t *ret, struct text *reason)
{
    const struct table_head *head = pass->head;
    const size_t least = head->key == SIZE_MAX ? pass->rows - pass->rows / 2 : 1;
    uint64_t several;

    *ret = table_best_key(head->column, head->n, least, &several);
    if (*ret != SIZE_MAX)
        return 0;
    if (several)
        text_add(reason, "line %" PRIu64 " names several pictures", several);
    else
        text_add(reason, "only %zu of %zu rows name a picture", table_most_matched(head),
                 pass->rows);
    return -EDOM;
}

static bool table_bit(uint8_t *bits, uint32_t i)
{
    bool was_set = bits[i / 8] >> i % 8 & 1;

    bits[i / 8] |= (uint8_t)(1 << i % 8);
    return was_set;
}

/* Which pictures have rows, and which several. */
static int table_count_pictures(struct picture_table *t)
{
    AUTO_FREE uint8_t *seen = NULL, *repeated = NULL;
    uint32_t most = 0;

    for (size_t i = 0; i < t->rows; i++)
        if (t->picture[i] != PICTURE_NONE && t->picture[i] > most)
            most = t->picture[i];
    seen = calloc(most / 8 + 1, 1);
    repeated = calloc(most / 8 + 1, 1);
    if (!seen || !repeated)
        return -ENOMEM;
    for (size_t i = 0; i < t->rows; i++) {
        if (t->picture[i] == PICTURE_NONE)
            t->unmatched++;
        else if (!table_bit(seen, t->picture[i]))
            t->matched++;
        else if (!table_bit(repeated, t->picture[i]))
            t->repeated++;
    }
    return 0;
}

/* ---- the table ---- */

/* Where a column of the table is among the values. */
static size_t table_value_of(const struct table_pass *pass, size_t column, size_t key)
{
    if (column == SIZE_MAX || column == key || pass->value[column] == TABLE_NO_VALUE)
        return SIZE_MAX;
    return pass->value[column] - (pass->value[key] < pass->value[column]);
}

/* The rest of each line as one text or number: is it a label? */
static int table_name_rest(struct picture_table *t)
{
    struct value_column *c = t->columns.n ? t->columns.column : NULL;
    bool is_label;
    char *name;
    int r;

    if (!c || (c->form != VALUE_TEXT && !table_counts_rows(c)))
        return 0;
    if (c->form == VALUE_TEXT && !c->len) { /* a list of pictures */
        value_columns_remove(&t->columns, 0);
        return 0;
    }
    r = table_has_classes(c, &is_label);
    if (r < 0 || is_label)
        return r;
    name = strdup(c->form == VALUE_TEXT ? "text" : "row");
    if (!name)
        return -ENOMEM;
    free(c->name);
    c->name = name;
    return 0;
}

static char *table_option_name(const struct table_head *head, size_t column)
{
    char *ret;

    if (head->has_header && head->column[column].name)
        return strdup(head->column[column].name);
    return asprintf(&ret, "%zu", column) < 0 ? NULL : ret;
}

/* Keep how options name the key and the columns. */
static int table_keep_names(const struct table_pass *pass, size_t key, struct picture_table *t)
{
    const struct table_head *head = pass->head;

    t->separator = head->separator;
    t->key = table_option_name(head, key);
    t->column = calloc(head->n + 1, sizeof(*t->column));
    if (!t->key || !t->column)
        return -ENOMEM;
    for (size_t i = 0; i < head->n; i++) {
        if (table_value_of(pass, i, key) == SIZE_MAX)
            continue;
        t->column[t->n_names] = table_option_name(head, i);
        if (!t->column[t->n_names++])
            return -ENOMEM;
    }
    return 0;
}

static int table_make(struct table_pass *pass, size_t key, struct picture_table **ret)
{
    const bool is_words = pass->head->separator == TABLE_WORDS;
    AUTO_PICTURE_TABLE struct picture_table *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return -ENOMEM;
    t->rows = pass->rows;
    t->picture = TAKE_PTR(pass->picture[key]);
    t->label = table_value_of(pass, pass->head->label, key);
    t->columns = pass->columns;
    pass->columns = (struct value_columns){0};
    if (pass->value[key] != TABLE_NO_VALUE)
        value_columns_remove(&t->columns, pass->value[key]);
    r = table_keep_names(pass, key, t);
    if (r == 0 && is_words)
        r = table_name_rest(t);
    if (r == 0)
        r = table_count_pictures(t);
    if (r == 0 && t->label == SIZE_MAX)
        t->label = table_label_by_name(&t->columns);
    if (r == 0 && t->label == SIZE_MAX && !is_words)
        r = table_label_alone(&t->columns, &t->label);
    if (r == 0)
        *ret = TAKE_PTR(t);
    return r;
}

int picture_table_read(const struct blob *blob, uint64_t at, uint64_t len, const char *file,
                       const struct picture_names *names, const struct table_options *options,
                       struct picture_table **ret, struct text *reason, struct diag *d)
{
    const struct table_source source = {blob, at, at + len, file, names, options};
    AUTO_TABLE_HEAD struct table_head head = {0};
    int r = table_head_read(&source, &head, reason, d);

    for (unsigned i = 0; i < 2 && r == 0; i++) {
        AUTO(table_pass_release)
        struct table_pass pass = {.source = &source, .head = &head};
        size_t key;

        r = table_pass_run(&pass, reason, d);
        if (r == 0)
            r = table_find_key(&pass, &key, reason);
        if (r == 0 && !pass.misfits)
            return table_make(&pass, key, ret);
    }
    return r < 0 ? r : diag_set(d, -ESTALE, "%s: it changed while it was read", file);
}

const struct value_column *picture_table_classes(const struct picture_table *t,
                                                 const struct class_names *classes)
{
    for (unsigned i = 0; i < t->columns.n; i++) {
        const struct value_column *c = &t->columns.column[i];
        uint64_t row = 0;

        if (c->form != VALUE_TEXT)
            continue;
        for (; row < c->rows; row++) {
            const uint8_t *text;
            uint64_t len = value_items(c, row, &text);

            if (value_is_hole(c, row) || !classes->has(classes, (const char *)text, (size_t)len))
                break;
        }
        if (row && row == c->rows)
            return c;
    }
    return NULL;
}

void picture_table_free(struct picture_table *t)
{
    if (!t)
        return;
    value_columns_release(&t->columns);
    free(t->picture);
    free(t->key);
    for (size_t i = 0; i < t->n_names; i++)
        free(t->column[i]);
    free(t->column);
    free(t);
}
