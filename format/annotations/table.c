#include "format/annotations/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/checked.h"
#include "base/diag.h"
#include "format/annotations/table_parts.h"
#include "format/core/numbered.h"

/* ---- the key ---- */

static bool table_bit(uint8_t *bits, uint32_t i)
{
    bool was_set = bits[i / 8] >> i % 8 & 1;

    bits[i / 8] |= (uint8_t)(1 << i % 8);
    return was_set;
}

/* The pictures of a column, rows without the header: which each names, how many have a row, and how
 * many several. */
static int table_find_pictures(const struct table *t, size_t column, size_t rows)
{
    struct picture_table *ret = &t->column[column].found;
    AUTO_FREE uint8_t *seen = NULL, *repeated = NULL;
    uint32_t most = 0;

    *ret = (struct picture_table){.rows = rows};
    ret->picture = malloc((rows + 1) * sizeof(*ret->picture));
    for (size_t i = 0; i < rows && ret->picture; i++) {
        ret->picture[i] = table_picture(t, column, t->has_header + i);
        if (ret->picture[i] < PICTURE_SEVERAL && ret->picture[i] > most)
            most = ret->picture[i];
    }
    seen = calloc(most / 8 + 1, 1);
    repeated = calloc(most / 8 + 1, 1);
    if (!ret->picture || !seen || !repeated)
        return -ENOMEM;
    for (size_t i = 0; i < rows; i++) {
        if (ret->picture[i] >= PICTURE_SEVERAL)
            ret->unmatched++;
        else if (!table_bit(seen, ret->picture[i]))
            ret->matched++;
        else if (!table_bit(repeated, ret->picture[i]))
            ret->repeated++;
    }
    return 0;
}

/* Does a column with a name name so many pictures that it may be meant instead of the key? */
static bool table_may_be_rival(const struct table_column *c)
{
    return table_is_named(c) && c->found.matched && 2 * c->found.matched >= c->found.rows;
}

/* Only the key and columns that may be meant instead keep their pictures. */
static int table_find_key(struct table *t, size_t rows, struct text *reason)
{
    const size_t least = t->key == SIZE_MAX ? rows - rows / 2 : 1;
    uint64_t several;

    for (size_t i = 0; i < t->cells.n; i++) {
        struct table_column *c = &t->column[i];

        if (c->may_be_key && table_find_pictures(t, i, rows) < 0)
            return -ENOMEM;
        if (!table_may_be_rival(c)) {
            free(c->found.picture);
            c->found.picture = NULL;
        }
    }
    t->key = table_best_key(t, least, &several);
    if (t->key != SIZE_MAX)
        return t->column[t->key].found.picture ? 0 : table_find_pictures(t, t->key, rows);
    if (several)
        text_add(reason, "line %" PRIu64 " names several pictures", several);
    else
        text_add(reason, "only %zu of %zu rows name a picture", table_most_matched(t), rows);
    return -EDOM;
}

/* ---- which column has classes: rule J ---- */

/* Has the column at most half as many values as rows that have one? 0 or -ENOMEM. */
static int table_has_classes(const struct value_column *c, bool *ret)
{
    AUTO_NUMBERED struct numbered values = {0};
    size_t n = 0;
    int r = 0;

    for (uint64_t row = 0; row < c->rows && r == 0; row++) {
        const uint8_t *items;
        size_t len = (size_t)value_items(c, row, &items) * value_item_bytes(c);
        uint32_t number;

        if (value_is_hole(c, row))
            continue;
        r = numbered_add(&values, (const char *)items, len, &number);
        n++;
    }
    *ret = values.n && values.n <= n / 2;
    return r;
}

#define FEW_ROWS 10 /* fewer say little of how often values recur */

/* Are its values 1, 2, 3 and so on, in many rows? ImageNet's lists end so: they are no classes. */
static bool table_counts_rows(const struct value_column *c)
{
    for (uint64_t row = 0; row < c->rows; row++) {
        const uint8_t *items;
        int64_t number;

        if (c->form != VALUE_NUMBERS || c->width || value_items(c, row, &items) != 1)
            return false;
        memcpy(&number, items, sizeof(number));
        if (number != (int64_t)row + 1)
            return false;
    }
    return c->rows >= FEW_ROWS;
}

/* Is each of its texts one word, and no path or list? */
static bool table_has_words(const struct value_column *c)
{
    for (uint64_t row = 0; row < c->rows; row++) {
        const uint8_t *text;
        size_t len = (size_t)value_items(c, row, &text);

        for (size_t i = 0; i < len; i++)
            if (strchr(" \t/,", text[i]))
                return false;
    }
    return true;
}

/* Can it have classes: a text or a whole number for each row? */
static bool table_may_have_classes(const struct value_column *c)
{
    return c->form == VALUE_TEXT || (c->dtype == DTYPE_I8 && !c->is_list && !c->width);
}

/* Is the column called that, ignoring case and separators? */
static bool table_label_is_called(const char *name, const char *word)
{
    for (; *name; name++) {
        if (strchr("_-. ", *name))
            continue;
        if ((*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name) != *word || !*word)
            return false;
        word++;
    }
    return !*word;
}

/* The column with classes by its name, as struct picture_table says; SIZE_MAX: none. */
static size_t table_label_by_name(const struct value_columns *columns)
{
    static const char *const words[] = {"label",   "labels",   "class",
                                        "classid", "category", "target"};

    for (unsigned word = 0; word < ARRAY_LEN(words); word++)
        for (unsigned i = 0; i < columns->n; i++)
            if (table_label_is_called(columns->column[i].name, words[word]) &&
                table_may_have_classes(&columns->column[i]))
                return i;
    return SIZE_MAX;
}

/* The same if it is the only column, by its values. 0 or -ENOMEM. */
static int table_label_alone(const struct value_columns *columns, size_t *ret)
{
    bool has_classes = false;
    int r = 0;

    if (columns->n == 1 && table_may_have_classes(columns->column))
        r = table_has_classes(columns->column, &has_classes);
    *ret = has_classes ? 0 : SIZE_MAX;
    return r;
}

/* ---- columns ---- */

/* Has the column values? Not the only one that may be the key. */
static bool table_has_value(const struct table *t, size_t column)
{
    size_t keys = 0;

    for (size_t i = 0; i < t->cells.n; i++)
        keys += t->column[i].may_be_key;
    if (t->separator == TABLE_WORDS)
        return column == 1;
    return (keys > 1 || !t->column[column].may_be_key) && !t->column[column].is_omitted;
}

/* The name of a column as a field: by the header if no column before it has that name. NULL: no
 * memory. */
static char *table_field_name(const struct table *t, size_t i, const struct value_columns *before)
{
    const struct table_column *column = &t->column[i];
    const char *name = column->name;
    char numbered[64];

    if (t->separator == TABLE_WORDS && column->type == TABLE_INTEGERS && column->width > 1)
        name = "values";
    else if (t->separator == TABLE_WORDS && !name)
        name = "label";
    if (name && !value_columns_find(before, name))
        return strdup(name);
    snprintf(numbered, sizeof(numbered), "column_%zu", i);
    for (size_t k = 0; value_columns_find(before, numbered); k++)
        snprintf(numbered, sizeof(numbered), "column_%zu_%zu", i, k);
    return strdup(numbered);
}

/* The cells of a column become a field. */
static int table_add_field(struct table *t, size_t i, struct value_columns *ret)
{
    const struct table_column *column = &t->column[i];
    const bool is_text =
        column->type == TABLE_TEXTS || (column->type == TABLE_EMPTY && t->separator == TABLE_WORDS);
    struct value_column *c = &t->cells.column[i];
    int r = array_capacity(&ret->column, ret->n, sizeof(*ret->column));

    if (r < 0)
        return r;
    free(c->name);
    c->name = table_field_name(t, i, ret);
    if (!c->name)
        return -ENOMEM;
    if (t->has_header)
        value_column_drop_first(c);
    if (!is_text)
        r = value_column_to_numbers(c, column->type == TABLE_REALS ? DTYPE_F8 : DTYPE_I8,
                                    column->width > 1 ? column->width : 0);
    if (r < 0)
        return r;
    ret->column[ret->n++] = *c;
    *c = (struct value_column){0};
    return 0;
}

/* As recipes name a column. NULL: no memory. */
static char *table_option_name(const struct table *t, size_t column)
{
    char *ret;

    if (t->has_header && t->column[column].name)
        return strdup(t->column[column].name);
    return text_print(&ret, "%zu", column) < 0 ? NULL : ret;
}

/* The rest of each line as one text or number: is it a label? */
static int table_name_rest(struct picture_table *made)
{
    struct value_column *c = made->columns.n ? made->columns.column : NULL;
    bool is_label;
    char *name;
    int r;

    if (!c || (c->form != VALUE_TEXT && !table_counts_rows(c)))
        return 0;
    if (c->form == VALUE_TEXT && !c->len) { /* a list of pictures */
        value_columns_remove(&made->columns, 0);
        return 0;
    }
    r = table_has_classes(c, &is_label);
    if (r < 0 || is_label || (c->form == VALUE_TEXT && c->rows < FEW_ROWS && table_has_words(c)))
        return r;
    name = strdup(c->form == VALUE_TEXT ? "text" : "row");
    if (!name)
        return -ENOMEM;
    free(c->name);
    c->name = name;
    return 0;
}

/* ---- the table ---- */

/* The key may have values, which count for names only. */
static int table_add_fields(struct table *t, struct picture_table *made)
{
    size_t key = SIZE_MAX;

    for (size_t i = 0; i < t->cells.n; i++) {
        int r;

        if (!table_has_value(t, i))
            continue;
        if (i == t->key)
            key = made->columns.n;
        else if (!(made->column[made->n_names++] = table_option_name(t, i)))
            return -ENOMEM;
        if (i == t->label && i != t->key)
            made->label = made->n_names - 1;
        r = table_add_field(t, i, &made->columns);
        if (r < 0)
            return r;
    }
    if (key != SIZE_MAX)
        value_columns_remove(&made->columns, (unsigned)key);
    return 0;
}

/* The first column with a name that names other pictures than the key does, half as many as there
 * are rows. */
static int table_find_rival(const struct table *t, struct picture_table *made)
{
    for (size_t i = 0; i < t->cells.n && !made->rival; i++) {
        const struct table_column *c = &t->column[i];

        if (i != t->key && table_may_be_rival(c) &&
            table_is_formed(c) == table_is_formed(&t->column[t->key]) &&
            memcmp(c->found.picture, made->picture, made->rows * sizeof(*made->picture)) != 0 &&
            !(made->rival = table_option_name(t, i)))
            return -ENOMEM;
    }
    return 0;
}

static int table_make(struct table *t, struct picture_table **ret)
{
    const bool is_words = t->separator == TABLE_WORDS;
    AUTO_PICTURE_TABLE struct picture_table *made = calloc(1, sizeof(*made));
    int r;

    if (!made)
        return -ENOMEM;
    *made = t->column[t->key].found;
    t->column[t->key].found.picture = NULL;
    made->label = SIZE_MAX;
    made->separator = t->separator;
    made->is_unsure = t->has_header && !t->said && !table_is_named(&t->column[t->key]) &&
                      !table_is_formed(&t->column[t->key]);
    made->key = table_option_name(t, t->key);
    made->column = calloc(t->cells.n + 1, sizeof(*made->column));
    if (!made->key || !made->column)
        return -ENOMEM;
    r = table_find_rival(t, made);
    if (r == 0)
        r = table_add_fields(t, made);
    if (r == 0 && is_words)
        r = table_name_rest(made);
    if (r == 0 && made->label == SIZE_MAX)
        made->label = table_label_by_name(&made->columns);
    if (r == 0 && made->label == SIZE_MAX && !is_words)
        r = table_label_alone(&made->columns, &made->label);
    if (r == 0)
        *ret = TAKE_PTR(made);
    return r;
}

int picture_table_read(const struct blob *blob, const char *file, const struct picture_names *names,
                       const struct json_t *said, struct picture_table **ret, struct text *reason,
                       struct diag *d)
{
    AUTO(table_release)
    struct table t = {.blob = blob,
                      .file = file,
                      .names = names,
                      .said = said,
                      .key = SIZE_MAX,
                      .label = SIZE_MAX,
                      .even = SIZE_MAX,
                      .problem = DIAG_INIT};
    int r = table_read_head(&t, reason);
    size_t rows;

    if (r == 0)
        table_read_rows(&t, SIZE_MAX);
    if (r == 0 && !t.error && t.even == SIZE_MAX)
        t.error = blob_verify(blob, &t.problem);
    if (r == 0 && t.error && t.error != -EBADMSG)
        r = t.error;
    if (r < 0 && r != -EDOM)
        return diag_set(d, r, "%s", diag_text(&t.problem, r));
    if (t.even < t.rows) {
        t.error = -EBADMSG;
        t.rows = t.even;
        t.head = min_u64(t.head, t.rows);
    }
    if (r == 0)
        r = table_judge_head(&t, d);
    if (r < 0)
        return r;
    table_see(&t, t.has_header, t.rows);
    rows = t.rows - t.has_header;
    if (t.error && table_most_matched(&t) && 2 * table_most_matched(&t) >= rows)
        return diag_set(d, t.error, "%s", t.problem.text);
    if (t.error) { /* a malformed row makes a file no table, unless most before it name pictures */
        text_add(reason, "%s", diag_text(&t.problem, t.error));
        return -EDOM;
    }
    r = table_find_key(&t, rows, reason);
    return r < 0 ? r : table_make(&t, ret);
}

void picture_table_free(struct picture_table *t)
{
    if (!t)
        return;
    value_columns_release(&t->columns);
    free(t->picture);
    free(t->key);
    free(t->rival);
    for (size_t i = 0; i < t->n_names; i++)
        free(t->column[i]);
    free(t->column);
    free(t);
}
