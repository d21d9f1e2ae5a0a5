#include "format/annotations/table_label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/index/index.h"

/* ---- how many values ---- */

static int table_compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

int table_has_classes(const struct value_column *c, bool *ret)
{
    AUTO_FREE uint64_t *hash = calloc(c->rows + 1, sizeof(*hash));
    size_t n = 0, values = 0;

    if (!hash)
        return -ENOMEM;
    for (uint64_t row = 0; row < c->rows; row++) {
        const uint8_t *items;
        size_t len = (size_t)value_items(c, row, &items) * value_item_bytes(c);

        if (!value_is_hole(c, row))
            hash[n++] = key_hash(items, len);
    }
    qsort(hash, n, sizeof(*hash), table_compare_hashes);
    for (size_t i = 0; i < n; i++)
        values += !i || hash[i] != hash[i - 1];
    *ret = values && values <= n / 2;
    return 0;
}

#define COUNTED_LEAST 10

bool table_counts_rows(const struct value_column *c)
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
    return c->rows >= COUNTED_LEAST;
}

/* ---- which column ---- */

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

size_t table_label_by_name(const struct value_columns *columns)
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

int table_label_alone(const struct value_columns *columns, size_t *ret)
{
    bool has_classes = false;
    int r = 0;

    if (columns->n == 1 && table_may_have_classes(columns->column))
        r = table_has_classes(columns->column, &has_classes);
    *ret = has_classes ? 0 : SIZE_MAX;
    return r;
}
