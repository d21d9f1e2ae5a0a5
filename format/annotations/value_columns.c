#include "format/annotations/value_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int value_columns_add(struct value_columns *t, const char *name, enum value_form form,
                      enum dtype dtype, bool is_list, unsigned width, struct value_column **ret)
{
    struct value_column c = {.form = form,
                             .dtype = dtype,
                             .is_list = is_list || form != VALUE_NUMBERS,
                             .width = width,
                             .name = strdup(name)};

    if (!c.name)
        return -ENOMEM;
    if (array_capacity(&t->column, t->n, sizeof(*t->column)) < 0) {
        free(c.name);
        return -ENOMEM;
    }
    t->column[t->n] = c;
    *ret = &t->column[t->n++];
    return 0;
}

struct value_column *value_columns_find(const struct value_columns *t, const char *name)
{
    for (unsigned i = 0; i < t->n; i++)
        if (!strcmp(t->column[i].name, name))
            return &t->column[i];
    return NULL;
}

size_t value_item_bytes(const struct value_column *c)
{
    if (c->form == VALUE_TEXT)
        return 1;
    if (c->form == VALUE_PARTS)
        return sizeof(struct value_part);
    return (size_t)dtype_info(c->dtype)->bytes * (c->width ? c->width : 1);
}

/* Room for so many bytes more. */
static int value_reserve(struct value_column *c, size_t bytes)
{
    size_t capacity = c->capacity + c->capacity / 2 + bytes + 64;
    uint8_t *grown;

    if (bytes <= c->capacity - c->len)
        return 0;
    grown = realloc(c->bytes, capacity);
    if (!grown)
        return -ENOMEM;
    c->bytes = grown;
    c->capacity = capacity;
    return 0;
}

int value_column_append(struct value_column *c, const void *items, size_t n)
{
    size_t bytes = n * value_item_bytes(c);

    if (value_reserve(c, bytes) < 0)
        return -ENOMEM;
    if (bytes)
        memcpy(c->bytes + c->len, items, bytes);
    c->len += bytes;
    return 0;
}

/* Bytes of the rows that are complete. */
static size_t value_complete_bytes(const struct value_column *c)
{
    if (!c->is_list)
        return c->rows * value_item_bytes(c);
    return c->rows ? c->end[c->rows - 1] * value_item_bytes(c) : 0;
}

static int value_end(struct value_column *c, bool is_hole)
{
    if (is_hole && !c->holes) { /* the first one: no row before it is */
        size_t capacity = 1;

        while (capacity <= c->rows)
            capacity *= 2;
        c->holes = calloc(capacity, 1);
        if (!c->holes)
            return -ENOMEM;
    }
    if ((c->is_list && array_capacity(&c->end, c->rows, sizeof(*c->end)) < 0) ||
        (c->holes && array_capacity(&c->holes, c->rows, 1) < 0))
        return -ENOMEM;
    if (c->is_list)
        c->end[c->rows] = c->len / value_item_bytes(c);
    if (c->holes)
        c->holes[c->rows] = is_hole;
    c->rows++;
    return 0;
}

int value_column_end_row(struct value_column *c)
{
    if (!c->is_list && c->len == value_complete_bytes(c))
        return value_column_end_hole(c);
    return value_end(c, false);
}

int value_column_end_hole(struct value_column *c)
{
    size_t bytes = c->is_list ? 0 : value_item_bytes(c);

    c->len = value_complete_bytes(c);
    if (value_reserve(c, bytes) < 0)
        return -ENOMEM;
    if (bytes)
        memset(c->bytes + c->len, 0, bytes);
    c->len += bytes;
    return value_end(c, true);
}

uint64_t value_items(const struct value_column *c, uint64_t row, const uint8_t **ret)
{
    uint64_t first = row;

    if (c->is_list)
        first = row ? c->end[row - 1] : 0;
    *ret = c->bytes ? c->bytes + first * value_item_bytes(c) : NULL;
    return c->is_list ? c->end[row] - first : 1;
}

static int value_pick_rows(const struct value_column *from, const uint32_t *row, size_t n,
                           struct value_column *ret)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const uint8_t *items;
        uint64_t count;

        if (row[i] == VALUE_NO_ROW || value_is_hole(from, row[i])) {
            r = value_column_end_hole(ret);
            continue;
        }
        count = value_items(from, row[i], &items);
        r = value_column_append(ret, items, count);
        if (r == 0)
            r = value_column_end_row(ret);
    }
    return r;
}

int value_columns_pick(const struct value_columns *from, const uint32_t *row, size_t n,
                       struct value_columns *ret)
{
    int r = 0;

    for (unsigned i = 0; i < from->n && r == 0; i++) {
        const struct value_column *c = &from->column[i];
        struct value_column *picked;

        r = value_columns_add(ret, c->name, c->form, c->dtype, c->is_list, c->width, &picked);
        if (r == 0)
            r = value_pick_rows(c, row, n, picked);
    }
    return r;
}

static void value_column_release(struct value_column *c)
{
    free(c->name);
    free(c->bytes);
    free(c->end);
    free(c->holes);
}

void value_columns_remove(struct value_columns *t, unsigned i)
{
    value_column_release(&t->column[i]);
    t->n--;
    memmove(&t->column[i], &t->column[i + 1], (t->n - i) * sizeof(*t->column));
}

void value_columns_release(struct value_columns *t)
{
    for (unsigned i = 0; i < t->n; i++)
        value_column_release(&t->column[i]);
    free(t->column);
    *t = (struct value_columns){0};
}
