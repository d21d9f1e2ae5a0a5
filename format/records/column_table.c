#include "format/records/column_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

bool column_table_find(const struct column_table *t, const void *name, size_t len, unsigned *ret)
{
    unsigned i = t->names.n ? (unsigned)numbered_find(&t->names, name, len) : 0;

    while (!t->names.n && i < t->n &&
           (t->column[i].len != len || memcmp(t->column[i].name, name, len) != 0))
        i++;
    *ret = i;
    return i < t->n;
}

void column_table_settle(struct column_table *t)
{
    numbered_release(&t->names);
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
    struct learned_column column = {.len = len};

    if (column_table_find(t, name, len, ret))
        return 0;
    if (!len || len > COLUMN_KEY_MAX || t->n == (t->most ? t->most : COLUMNS_LEARNED))
        return column_table_leave_out(t, name, len);
    if (array_capacity(&t->column, t->n, sizeof(column)) < 0)
        return -ENOMEM;
    column.name = copy_name(name, len);
    if (!column.name || numbered_add(&t->names, name, len, ret) < 0) {
        free(column.name);
        return -ENOMEM;
    }
    t->column[t->n++] = column;
    return 0;
}

/* A name of len bytes, which may be any, with a NUL behind it. */
static void column_table_keep_name(struct kept *k, char **name, size_t *len)
{
    uint64_t bytes = *len;

    kept_number(k, &bytes, COLUMN_KEY_MAX);
    *len = (size_t)bytes;
    if (!k->out)
        *name = calloc(bytes + 1, 1);
    if (*name)
        kept_bytes(k, *name, *len);
    else
        k->error = -ENOMEM;
}

static void column_table_keep_numbers(struct kept *k, struct learned_column *column)
{
    for (unsigned i = 0; i < COLUMN_NUMBERS; i++)
        kept_number(k, &column->number[i], UINT64_MAX);
}

static void column_table_read_column(struct kept *k, struct column_table *t)
{
    AUTO_FREE char *name = NULL;
    unsigned i = 0, n = t->n;
    size_t len = 0;
    int r;

    column_table_keep_name(k, &name, &len);
    if (k->error)
        return;
    r = len ? column_table_add(t, name, len, &i) : -EBADMSG;
    if (r == 0 && i == n)
        column_table_keep_numbers(k, &t->column[i]);
    else /* a name twice */
        k->error = r == -ENOMEM ? r : -EBADMSG;
}

void column_table_keep(struct kept *k, struct column_table *t)
{
    uint64_t n = t->n;

    if (!k->out) {
        n = 0;
        column_table_release(t);
    }
    kept_number(k, &n, t->most ? t->most : COLUMNS_LEARNED);
    kept_number(k, &t->left_out, UINT64_MAX);
    kept_text(k, &t->first_out);
    for (unsigned i = 0; i < n && k->out; i++) {
        column_table_keep_name(k, &t->column[i].name, &t->column[i].len);
        column_table_keep_numbers(k, &t->column[i]);
    }
    while (!k->out && !k->error && t->n < n)
        column_table_read_column(k, t);
    if (!k->out)
        column_table_settle(t);
    if (!k->out && k->error)
        column_table_release(t);
}

void column_table_release(struct column_table *t)
{
    for (unsigned i = 0; i < t->n; i++)
        free(t->column[i].name);
    free(t->column);
    free(t->first_out);
    numbered_release(&t->names);
    *t = (struct column_table){.most = t->most};
}
