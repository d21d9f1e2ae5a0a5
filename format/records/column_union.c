/* One pass over all files collects the columns, sorted; a second finds the number of each in each
 * file. Columns are the same if they have one name and are of one kind. */
#include "format/records/column_union.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "format/records/bytes_format.h"

#define TYPE_SIZE 80

/* ---- which columns are the same ---- */

static bool has_arrays(const struct record_column *c)
{
    return !(c->without & RECORD_NOT_ARRAYS);
}

/* Numbers without an axis go with arrays of one. */
static unsigned column_union_axes_of(const struct record_column *c)
{
    return c->ndim > 1 ? c->ndim : 1;
}

static int column_union_compare_types(const struct record_column *a, const struct record_column *b)
{
    if (has_arrays(a) != has_arrays(b))
        return has_arrays(a) ? -1 : 1;
    if (a->shown != b->shown)
        return a->shown < b->shown ? -1 : 1;
    if (a->shown == RECORD_BYTES)
        return a->ext_is_first && b->ext_is_first ? 0 : strcmp(a->ext, b->ext);
    if (a->shown == RECORD_TEXT)
        return 0;
    if (a->dtype != b->dtype)
        return a->dtype < b->dtype ? -1 : 1;
    return (column_union_axes_of(a) > column_union_axes_of(b)) -
           (column_union_axes_of(a) < column_union_axes_of(b));
}

static const char *whole_name(const struct record_column *c)
{
    return c->whole ? c->whole : c->name;
}

static int compare_columns(const struct record_column *a, const struct record_column *b)
{
    int order = strcmp(a->name, b->name);

    order = order ? order : column_union_compare_types(a, b);
    return order ? order : strcmp(whole_name(a), whole_name(b));
}

/* The place of a column, or where it would be. */
static unsigned column_union_find_place(const struct column_union *u, const struct record_column *c,
                                        bool *ret_found)
{
    unsigned place = (unsigned)SEARCH(u->n, i, compare_columns(&u->column[i], c) < 0);

    *ret_found = place < u->n && !compare_columns(&u->column[place], c);
    return place;
}

static void merge(struct record_column *into, const struct record_column *c)
{
    into->has_holes |= c->has_holes;
    if (into->ext_is_first && !strcmp(into->ext, bytes_format_ext(BYTES_ANY)))
        into->ext = c->ext; /* it had no value */
    if (c->shown != RECORD_NUMBERS)
        return;
    if (into->ndim != c->ndim) { /* 0 and 1 */
        into->ndim = 1;
        into->dim[0] = DIM_VARIES;
        return;
    }
    for (unsigned i = 0; i < c->ndim; i++) {
        if (into->dim[i] == c->dim[i])
            continue;
        into->dim[i] = DIM_VARIES;
        into->dim[0] = DIM_VARIES;
    }
}

static void column_union_add_column(struct column_union *u, const struct record_column *c)
{
    bool found;
    unsigned at = column_union_find_place(u, c, &found);

    if (found) {
        merge(&u->column[at], c);
        return;
    }
    u->is_full |= u->n == RECORD_COLUMNS_MAX;
    if (at == RECORD_COLUMNS_MAX)
        return;
    u->n -= u->n == RECORD_COLUMNS_MAX;
    memmove(&u->column[at + 1], &u->column[at], (u->n - at) * sizeof(*c));
    u->column[at] = *c;
    u->n++;
}

/* ---- names ---- */

static void column_union_type_text(const struct record_column *c, char ret[static TYPE_SIZE])
{
    const char *type = c->shown == RECORD_BYTES  ? c->ext
                       : c->shown == RECORD_TEXT ? "text"
                                                 : dtype_info(c->dtype)->name;

    if (c->shown == RECORD_NUMBERS && c->ndim > 1)
        snprintf(ret, TYPE_SIZE, "_%s_%ud", type, c->ndim);
    else
        snprintf(ret, TYPE_SIZE, "_%s", type);
}

static bool is_array_called(const struct column_union *u, const char *name, size_t len,
                            unsigned but)
{
    for (unsigned i = 0; i < u->n; i++) {
        const struct record_column *c = &u->column[i];

        if (i != but && has_arrays(c) && strlen(c->name) == len && !memcmp(c->name, name, len))
            return true;
    }
    return false;
}

/* Is the name of an array that of another, or of one that the dataset has next to it? */
static bool column_union_is_taken(const struct column_union *u, unsigned i)
{
    static const char *const suffixes[] = {"_len", "_offsets", "_shape"};
    const char *name = u->column[i].name;
    size_t len = strlen(name);

    if (!strcmp(name, "index") || !strcmp(name, "key") || is_array_called(u, name, len, i))
        return true;
    for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
        size_t n = strlen(suffixes[k]);

        if (len > n && !strcmp(name + len - n, suffixes[k]) && is_array_called(u, name, len - n, i))
            return true;
    }
    return false;
}

static void rename_column(struct column_union *u, unsigned i, const char *name, const char *more)
{
    char whole[RECORD_NAME_MAX + TYPE_SIZE + 1];
    int len = snprintf(whole, sizeof(whole), "%s%s", name, more);

    if (len <= RECORD_NAME_MAX)
        memcpy(u->name[i], whole, (size_t)len + 1);
    else
        snprintf(u->name[i], RECORD_NAME_MAX + 1, "%.*s~%08x", RECORD_NAME_MAX - 9, whole,
                 (unsigned)(key_hash(whole, (size_t)len) >> 32));
    u->column[i].name = u->name[i];
}

/* Do two columns of one name that are not of one extension show the same kind of file? */
static bool meet(const struct record_column *a, const struct record_column *b)
{
    return strcmp(whole_name(a), whole_name(b)) != 0 &&
           ((has_arrays(a) && has_arrays(b)) ||
            (a->shown == RECORD_TEXT && b->shown == RECORD_TEXT));
}

/* Names that were cut are whole again where they meet; columns of one name follow one another. */
static void name_whole(struct column_union *u)
{
    for (unsigned from = 0, end; from < u->n; from = end) {
        const char *name = u->column[from].name;
        bool met = false;

        for (end = from + 1; end < u->n && !strcmp(u->column[end].name, name); end++)
            for (unsigned i = from; i < end; i++)
                met = met || meet(&u->column[i], &u->column[end]);
        for (unsigned i = from; i < end && met; i++)
            if (has_arrays(&u->column[i]) || u->column[i].shown == RECORD_TEXT)
                u->column[i].name = whole_name(&u->column[i]);
    }
}

/* Give each array a name of its own. Which are taken is found out before any is changed. */
static int name_columns(struct column_union *u)
{
    AUTO_FREE bool *taken = calloc(u->n + 1u, sizeof(*taken));

    u->name = calloc(u->n + 1u, sizeof(*u->name));
    if (!taken || !u->name)
        return -ENOMEM;
    name_whole(u);
    for (unsigned i = 0; i < u->n; i++)
        taken[i] = has_arrays(&u->column[i]) && column_union_is_taken(u, i);
    for (unsigned i = 0; i < u->n; i++) {
        char type[TYPE_SIZE];

        column_union_type_text(&u->column[i], type);
        if (taken[i])
            rename_column(u, i, u->column[i].name, type);
    }
    for (unsigned i = 0; i < u->n; i++) {
        char before[RECORD_NAME_MAX + 1];

        snprintf(before, sizeof(before), "%.*s", RECORD_NAME_MAX - 8, u->column[i].name);
        for (unsigned n = 2; taken[i] && column_union_is_taken(u, i); n++) {
            char number[16];

            snprintf(number, sizeof(number), "~%u", n);
            rename_column(u, i, before, number);
        }
    }
    return 0;
}

/* ---- making ---- */

/* The numbers of the union's columns in a file. */
static int map_file(struct column_union *u, unsigned file, const struct record_column *c,
                    unsigned n)
{
    uint16_t *map = malloc((u->n + 1u) * sizeof(*map));

    if (!map)
        return -ENOMEM;
    for (unsigned i = 0; i < u->n; i++)
        map[i] = NO_COLUMN;
    for (unsigned i = 0; i < n; i++) {
        bool found;
        unsigned at = column_union_find_place(u, &c[i], &found);

        if (found && map[at] == NO_COLUMN)
            map[at] = (uint16_t)i;
        if (found)
            u->column[at].has_holes |= c[i].is_empty;
    }
    for (unsigned i = 0; i < u->n && c; i++)
        u->column[i].has_holes |= map[i] == NO_COLUMN;
    if (file && !memcmp(map, u->map[file - 1], u->n * sizeof(*map))) {
        free(map);
        map = u->map[file - 1];
    }
    u->map[file] = map;
    return 0;
}

int column_union_make(struct column_union *u, unsigned n_files,
                      const struct record_column *(*columns_of)(void *ctx, unsigned i,
                                                                unsigned *ret_n),
                      void *ctx)
{
    struct record_column *fit;
    int r = 0;

    u->column = calloc(RECORD_COLUMNS_MAX + 1, sizeof(*u->column));
    u->map = calloc(n_files, sizeof(*u->map));
    if (!u->column || !u->map)
        return -ENOMEM;
    for (unsigned i = 0; i < n_files; i++) {
        unsigned n;
        const struct record_column *c = columns_of(ctx, i, &n);

        for (unsigned k = 0; k < n; k++)
            if (!c[k].is_empty)
                column_union_add_column(u, &c[k]);
    }
    fit = realloc(u->column, (u->n + 1u) * sizeof(*fit)); /* there may be very many datasets */
    u->column = fit ? fit : u->column;
    for (; u->n_files < n_files && r == 0; u->n_files += r == 0) {
        unsigned n;
        const struct record_column *c = columns_of(ctx, u->n_files, &n);

        r = map_file(u, u->n_files, c, n);
    }
    return r < 0 ? r : name_columns(u);
}

void column_union_release(struct column_union *u)
{
    for (unsigned i = 0; i < u->n_files; i++)
        if (!i || u->map[i] != u->map[i - 1])
            free(u->map[i]);
    free(u->map);
    free(u->column);
    free(u->name);
    *u = (struct column_union){0};
}
