#include "format/annotations/table_label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

/* ---- how many values ---- */

/* Rows whose values differ, by the hash of the value. */
struct table_values {
    const struct value_column *c;
    uint32_t *row; /* [slots] row + 1, or 0 */
    size_t n, slots;
    uint64_t salt; /* hostile values do not know it */
};

static uint64_t table_hash(const uint8_t *bytes, size_t len, uint64_t salt)
{
    uint64_t h = salt ^ len;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;

        memcpy(&word, bytes + i, len - i < 8 ? len - i : 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h = (h ^ h >> 29 ^ salt) * UINT64_C(0xbf58476d1ce4e5b9);
        h ^= h >> 32;
    }
    return h;
}

/* The bytes of a row's value. */
static size_t table_value(const struct value_column *c, uint64_t row, const uint8_t **ret)
{
    return (size_t)value_items(c, row, ret) * value_item_bytes(c);
}

/* The slot of a value, or the free one where it belongs. */
static uint32_t *table_values_find(const struct table_values *v, uint64_t row)
{
    const uint8_t *bytes, *other;
    size_t len = table_value(v->c, row, &bytes);

    for (size_t slot = table_hash(bytes, len, v->salt) & (v->slots - 1);;
         slot = (slot + 1) & (v->slots - 1)) {
        uint32_t *at = &v->row[slot];

        if (!*at || (table_value(v->c, *at - 1, &other) == len && !memcmp(other, bytes, len)))
            return at;
    }
}

static int table_values_grow(struct table_values *v)
{
    struct table_values grown = *v;

    grown.slots = v->slots ? 2 * v->slots : 64;
    grown.row = calloc(grown.slots, sizeof(*grown.row));
    if (!grown.row)
        return -ENOMEM;
    for (size_t i = 0; i < v->slots; i++)
        if (v->row[i])
            *table_values_find(&grown, v->row[i] - 1) = v->row[i];
    free(v->row);
    *v = grown;
    return 0;
}

/* Add the values of all rows, until there are more than `most`. */
static int table_values_count(struct table_values *v, uint64_t most)
{
    for (uint64_t i = 0; i < v->c->rows && v->n <= most; i++) {
        uint32_t *at;
        int r = 2 * v->n >= v->slots ? table_values_grow(v) : 0;

        if (r < 0)
            return r;
        if (value_is_hole(v->c, i))
            continue;
        at = table_values_find(v, i);
        v->n += !*at;
        *at = (uint32_t)i + 1;
    }
    return 0;
}

int table_has_classes(const struct value_column *c, bool *ret)
{
    struct table_values v = {.c = c, .salt = (uint64_t)(uintptr_t)&v};
    uint64_t rows = 0;
    int r;

    for (uint64_t i = 0; i < c->rows; i++)
        rows += !value_is_hole(c, i);
    r = table_values_count(&v, rows / 2);
    free(v.row);
    *ret = v.n && v.n <= rows / 2;
    return r;
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
