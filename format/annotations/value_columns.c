#include "format/annotations/value_columns.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "format/core/decimal.h"

int value_columns_add(struct value_columns *t, const char *name, enum value_form form,
                      enum dtype dtype, bool is_list, unsigned width, struct value_column **ret)
{
    struct value_column c = {.form = form,
                             .dtype = dtype,
                             .is_list = is_list || form != VALUE_NUMBERS,
                             .width = width,
                             .name = strdup(name)};

    *ret = NULL;
    if (!c.name || array_capacity(&t->column, t->n, sizeof(*t->column)) < 0) {
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

static int value_fail(struct value_column *c)
{
    if (c)
        c->failed = true;
    return -ENOMEM;
}

int value_column_append(struct value_column *c, const void *items, size_t n)
{
    size_t bytes = c ? n * value_item_bytes(c) : 0;

    if (!c || c->failed || value_reserve(c, bytes) < 0)
        return value_fail(c);
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
    if ((c->is_list && array_capacity(&c->end, c->rows, sizeof(*c->end)) < 0) ||
        (c->holes ? array_capacity(&c->holes, c->rows, 1) < 0
                  : is_hole && array_begin(&c->holes, c->rows, 1) < 0))
        return value_fail(c);
    if (c->is_list)
        c->end[c->rows] = c->len / value_item_bytes(c);
    if (c->holes)
        c->holes[c->rows] = is_hole;
    c->rows++;
    return 0;
}

int value_column_end_row(struct value_column *c)
{
    if (!c || c->failed)
        return -ENOMEM;
    return !c->is_list && c->len == value_complete_bytes(c) ? value_column_end_hole(c)
                                                            : value_end(c, false);
}

int value_column_end_hole(struct value_column *c)
{
    size_t bytes = c && !c->is_list ? value_item_bytes(c) : 0;

    if (!c || c->failed)
        return -ENOMEM;
    c->len = value_complete_bytes(c);
    if (value_reserve(c, bytes) < 0)
        return value_fail(c);
    if (bytes)
        memset(c->bytes + c->len, 0, bytes);
    c->len += bytes;
    return value_end(c, true);
}

static int value_pad(struct value_column *c, uint64_t rows)
{
    int r = c ? 0 : -ENOMEM;

    while (r == 0 && c->rows < rows)
        r = value_column_end_hole(c);
    return r;
}

int value_column_set(struct value_column *c, uint64_t row, const void *items, size_t n)
{
    value_pad(c, row);
    value_column_append(c, items, n);
    return value_column_end_row(c);
}

void value_column_drop_first(struct value_column *c)
{
    const uint64_t items = c->is_list ? c->end[0] : 1;
    const size_t bytes = items * value_item_bytes(c);

    if (bytes)
        memmove(c->bytes, c->bytes + bytes, c->len - bytes);
    c->len -= bytes;
    c->rows--;
    for (uint64_t row = 0; row < c->rows && c->is_list; row++)
        c->end[row] = c->end[row + 1] - items;
    if (c->holes)
        memmove(c->holes, c->holes + 1, c->rows);
}

int value_columns_end(struct value_columns *t, uint64_t rows)
{
    int r = 0;

    for (unsigned i = 0; i < t->n && r == 0; i++)
        r = value_pad(&t->column[i], rows);
    return r;
}

#define NUMBER_MOST 1024 /* bytes of a number */

/* Append the numbers of a text, which white space separates, as one item. */
static void value_append_numbers(struct value_column *c, const uint8_t *text, size_t len)
{
    uint8_t copy[NUMBER_MOST + DECIMAL_PAD];
    const uint8_t *end = text + len;

    if (value_reserve(c, value_item_bytes(c)) < 0) {
        value_fail(c);
        return;
    }
    for (size_t to = c->len + value_item_bytes(c); c->len < to; c->len += 8) {
        double real = 0;
        uint64_t bits;
        size_t n = 0;

        while (text < end && (*text == ' ' || *text == '\t'))
            text++;
        while (text + n < end && text[n] != ' ' && text[n] != '\t')
            n++;
        assert(n <= NUMBER_MOST);
        memcpy(copy, text, n);
        memset(copy + n, 0, DECIMAL_PAD);
        bits = (uint64_t)strtoll((const char *)copy, NULL, 10);
        if (c->dtype == DTYPE_F8) {
            decimal_parse_double(copy, copy + n, &real);
            memcpy(&bits, &real, sizeof(bits));
        }
        store_le64(c->bytes + c->len, bits);
        text += n;
    }
}

int value_column_to_numbers(struct value_column *c, enum dtype dtype, unsigned width)
{
    AUTO_VALUE_COLUMNS struct value_columns made = {0};
    struct value_column *number, old = *c;
    int r = value_columns_add(&made, c->name, VALUE_NUMBERS, dtype, false, width, &number);

    for (uint64_t row = 0; row < c->rows && r == 0; row++) {
        const uint8_t *text;
        uint64_t n = value_items(c, row, &text);

        if (!value_is_hole(c, row))
            value_append_numbers(number, text, (size_t)n);
        r = value_column_end_row(number);
    }
    if (r == 0) {
        *c = *number;
        *number = old;
    }
    return r;
}

int value_columns_find_integers(struct value_columns *t,
                                bool (*is_integer)(const char *text, size_t len))
{
    int r = 0;

    for (unsigned i = 0; i < t->n && r == 0; i++) {
        struct value_column *c = &t->column[i];
        bool all = c->form == VALUE_TEXT;

        for (uint64_t row = 0; row < c->rows && all; row++) {
            const uint8_t *text;
            uint64_t len = value_items(c, row, &text);

            all = value_is_hole(c, row) || is_integer((const char *)text, (size_t)len);
        }
        if (all)
            r = value_column_to_numbers(c, DTYPE_I8, 0);
    }
    return r;
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
        const uint32_t at = row ? row[i] : (uint32_t)i;
        const uint8_t *items;
        uint64_t count;

        if (at == VALUE_NO_ROW || value_is_hole(from, at)) {
            r = value_column_end_hole(ret);
            continue;
        }
        count = value_items(from, at, &items);
        value_column_append(ret, items, count);
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
            picked->source = c->source;
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

/* ---- keeping ---- */

/* How a column is kept, with its name, ends, holes and items behind. */
struct value_head {
    uint32_t form, dtype, is_list, width, name_len, has_holes;
    uint64_t bytes;
};

/* Are ends inside the items, and do they never fall? */
static bool value_is_good(const struct value_column *c)
{
    uint64_t items = c->len / value_item_bytes(c), last = 0;

    if (!c->is_list)
        return c->len == c->rows * value_item_bytes(c);
    for (uint64_t row = 0; row < c->rows; row++) {
        if (c->end[row] < last || c->end[row] > items)
            return false;
        last = c->end[row];
    }
    return true;
}

#define VALUE_WIDTH_MOST 65536

/* Can a column of that many rows have it? */
static bool value_head_is_good(const struct value_head *head, uint64_t rows)
{
    return (head->form == VALUE_NUMBERS || (head->form == VALUE_TEXT && head->is_list)) &&
           head->width <= VALUE_WIDTH_MOST &&
           (head->dtype == DTYPE_I8 || head->dtype == DTYPE_F4 || head->dtype == DTYPE_F8 ||
            head->dtype == DTYPE_U1) &&
           rows <= UINT32_MAX;
}

static void value_column_keep(struct kept *k, struct value_column *c)
{
    struct value_head head = {.form = c->form,
                              .dtype = c->dtype,
                              .is_list = c->is_list,
                              .width = c->width,
                              .name_len = c->name ? (uint32_t)strlen(c->name) : 0,
                              .has_holes = c->holes != NULL,
                              .bytes = c->len};

    kept_bytes(k, &head, sizeof(head));
    if (!k->out && !k->error && !value_head_is_good(&head, c->rows))
        k->error = -EBADMSG;
    if (k->error)
        return;
    c->form = (enum value_form)head.form;
    c->dtype = (enum dtype)head.dtype;
    c->is_list = head.is_list;
    c->width = head.width;
    c->len = c->capacity = head.bytes;
    kept_array(k, &c->name, head.name_len);
    if (c->is_list)
        kept_array(k, &c->end, c->rows * sizeof(*c->end));
    if (head.has_holes)
        kept_array(k, &c->holes, c->rows);
    kept_array(k, &c->bytes, c->len);
    if (!k->error && !value_is_good(c))
        k->error = -EBADMSG;
}

void value_columns_keep(struct kept *k, struct value_columns *t, uint64_t rows)
{
    uint64_t n = t->n;

    if (!k->out)
        value_columns_release(t);
    kept_number(k, &n, UINT64_MAX);
    for (uint64_t i = 0; i < n && !k->error; i++) {
        if (!k->out && array_capacity(&t->column, t->n, sizeof(*t->column)) < 0)
            k->error = -ENOMEM;
        else if (!k->out)
            t->column[t->n++] = (struct value_column){.rows = rows};
        if (!k->error)
            value_column_keep(k, &t->column[i]);
    }
    if (k->error)
        value_columns_release(t);
}

void value_columns_release(struct value_columns *t)
{
    for (unsigned i = 0; i < t->n; i++)
        value_column_release(&t->column[i]);
    free(t->column);
    *t = (struct value_columns){0};
}
