/* As bytes, all numbers little-endian: u32 columns, u64 how often one was left out, u32 bytes of
 * the first such name, that name; then for each column u32 bytes of the name, the name, and the
 * numbers (u64). */
#include "format/records/column_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "format/index/index.h"

#define SLOTS (4 * COLUMNS_LEARNED)

static bool column_table_is_named(const struct learned_column *column, const void *name, size_t len)
{
    return column->len == len && !memcmp(column->name, name, len);
}

/* The place of a name in the hash table, or where it would be. */
static uint16_t *column_table_find_slot(const struct column_table *t, const void *name, size_t len)
{
    uint64_t at = key_hash(name, len);

    for (;; at++) {
        uint16_t *slot = &t->slot[at % SLOTS];

        if (!*slot || column_table_is_named(&t->column[*slot - 1], name, len))
            return slot;
    }
}

bool column_table_find(const struct column_table *t, const void *name, size_t len, unsigned *ret)
{
    unsigned i = 0;

    if (t->slot) {
        i = *column_table_find_slot(t, name, len);
        *ret = i - 1;
        return i > 0;
    }
    while (i < t->n && !column_table_is_named(&t->column[i], name, len))
        i++;
    *ret = i;
    return i < t->n;
}

void column_table_settle(struct column_table *t)
{
    free(t->slot);
    t->slot = NULL;
}

static char *copy_name(const void *name, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy) {
        memcpy(copy, name, len);
        copy[len] = '\0';
    }
    return copy;
}

static int column_table_leave_out(struct column_table *t, const void *name, size_t len)
{
    if (!t->left_out++)
        t->first_out = copy_name(name, min_u64(len, COLUMN_KEY_MAX));
    return t->first_out ? -E2BIG : -ENOMEM;
}

int column_table_add(struct column_table *t, const void *name, size_t len, unsigned *ret)
{
    uint16_t *slot;
    int r;

    if (!t->slot)
        t->slot = calloc(SLOTS, sizeof(*t->slot));
    if (!t->slot)
        return -ENOMEM;
    if (column_table_find(t, name, len, ret))
        return 0;
    if (!len || len > COLUMN_KEY_MAX || t->n == (t->most ? t->most : COLUMNS_LEARNED))
        return column_table_leave_out(t, name, len);
    slot = column_table_find_slot(t, name, len);
    r = array_capacity(&t->column, t->n, sizeof(*t->column));
    if (r < 0)
        return r;
    t->column[t->n] = (struct learned_column){.name = copy_name(name, len), .len = len};
    if (!t->column[t->n].name)
        return -ENOMEM;
    *ret = t->n++;
    *slot = (uint16_t)t->n;
    return 0;
}

static void column_table_put_number(struct text *t, uint64_t v, size_t bytes)
{
    uint8_t le[8];

    store_le64(le, v);
    text_add_bytes(t, (const char *)le, bytes);
}

static void column_table_put_name(struct text *t, const char *name, size_t len)
{
    column_table_put_number(t, len, 4);
    text_add_bytes(t, name, len);
}

void column_table_write(const struct column_table *t, struct text *ret)
{
    column_table_put_number(ret, t->n, 4);
    column_table_put_number(ret, t->left_out, 8);
    column_table_put_name(ret, t->left_out ? t->first_out : "",
                          t->left_out ? strlen(t->first_out) : 0);
    for (unsigned i = 0; i < t->n; i++) {
        column_table_put_name(ret, t->column[i].name, t->column[i].len);
        for (unsigned k = 0; k < COLUMN_NUMBERS; k++)
            column_table_put_number(ret, t->column[i].number[k], 8);
    }
}

/* Take n bytes. NULL: there are fewer. */
static const uint8_t *column_table_take(const uint8_t **at, size_t *left, size_t n)
{
    const uint8_t *ret = *at;

    if (n > *left)
        return NULL;
    *at += n;
    *left -= n;
    return ret;
}

static const uint8_t *column_table_take_name(const uint8_t **at, size_t *left, size_t *ret_len)
{
    const uint8_t *len = column_table_take(at, left, 4);

    *ret_len = len ? load_le32(len) : 0;
    return len && *ret_len <= COLUMN_KEY_MAX ? column_table_take(at, left, *ret_len) : NULL;
}

static int read_column(struct column_table *t, const uint8_t **at, size_t *left)
{
    const uint8_t *name, *numbers;
    unsigned i = 0, n = t->n;
    size_t len;
    int r;

    name = column_table_take_name(at, left, &len);
    numbers = name ? column_table_take(at, left, 8 * COLUMN_NUMBERS) : NULL;
    if (!numbers || !len)
        return -EBADMSG;
    r = column_table_add(t, name, len, &i);
    if (r < 0 || i != n) /* a name twice */
        return r == -ENOMEM ? r : -EBADMSG;
    for (unsigned k = 0; k < COLUMN_NUMBERS; k++)
        t->column[i].number[k] = load_le64(numbers + (size_t)8 * k);
    return 0;
}

int column_table_read(struct column_table *ret, const uint8_t *bytes, size_t len, size_t *ret_used)
{
    AUTO(column_table_release) struct column_table t = {.most = ret->most};
    const uint8_t *at = bytes, *head = column_table_take(&at, &len, 12), *first;
    size_t first_len = 0;
    int r = 0;

    first = head ? column_table_take_name(&at, &len, &first_len) : NULL;
    if (!first)
        return -EBADMSG;
    t.left_out = load_le64(head + 4);
    t.first_out = copy_name(first, first_len);
    if (!t.first_out)
        return -ENOMEM;
    for (uint32_t n = load_le32(head); n > 0 && r == 0; n--)
        r = read_column(&t, &at, &len);
    if (r < 0)
        return r;
    *ret_used = (size_t)(at - bytes);
    column_table_release(ret);
    column_table_settle(&t);
    *ret = t;
    t = (struct column_table){0};
    return 0;
}

void column_table_release(struct column_table *t)
{
    for (unsigned i = 0; i < t->n; i++)
        free(t->column[i].name);
    free(t->column);
    free(t->first_out);
    free(t->slot);
    *t = (struct column_table){.most = t->most};
}
