/* Columns whose values are in memory: what tables and annotations say of samples. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/files/file.h"

unsigned cells_count(const struct files_file *file)
{
    return file->view->values.n + file->boxes.n;
}

static const struct value_column *cells_at(const struct files_file *file, unsigned i)
{
    unsigned n = file->view->values.n;

    return i < n ? &file->view->values.column[i] : &file->boxes.column[i - n];
}

/* The column of values, and the row of it. */
static const struct value_column *cells_value(const struct files_file *file, unsigned column,
                                              uint64_t *row)
{
    *row = samples_row(file, *row);
    return cells_at(file, column - file->n_members - file->n_labels);
}

void cells_add_columns(struct files_file *file)
{
    for (unsigned i = 0; i < cells_count(file); i++) {
        const struct value_column *c = cells_at(file, i);
        unsigned n = file->base.n_columns++;
        unsigned axes = c->form == VALUE_NUMBERS ? (unsigned)c->is_list + (c->width > 0) : 0;

        record_name(c->name, strlen(c->name), RECORD_NAME_MAX, file->shows[n].name);
        file->column[n] =
            (struct record_column){.name = file->shows[n].name,
                                   .shown = c->form == VALUE_NUMBERS ? RECORD_NUMBERS : RECORD_TEXT,
                                   .dtype = c->dtype,
                                   .ndim = axes,
                                   .dim = {c->is_list ? DIM_VARIES : c->width, c->width},
                                   .has_holes = c->holes != NULL,
                                   .without = file->claim->pictures_only ? RECORD_NOT_TAR : 0};
    }
}

bool cells_has(const struct files_file *file, uint64_t row, unsigned column)
{
    const struct value_column *c = cells_value(file, column, &row);

    return !value_is_hole(c, row);
}

#define NO_PART "null" /* of an annotation that lacks the member */

void cells_dims(const struct files_file *file, uint64_t row, unsigned column,
                uint64_t ret[static RECORD_AXES])
{
    const struct value_column *c = cells_value(file, column, &row);
    const uint8_t *items;
    uint64_t n = value_items(c, row, &items);

    if (c->form == VALUE_PARTS) {
        ret[0] = 2 + (n > 1 ? n - 1 : 0);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t len = ((const struct value_part *)(const void *)items)[i].len;

            ret[0] += len ? len : strlen(NO_PART);
        }
        return;
    }
    if (c->is_list)
        *ret++ = n;
    if (c->form == VALUE_NUMBERS && c->width)
        *ret = c->width;
}

/* A text that is made piece by piece, of which bytes [off, off + len) are wanted. */
struct piecewise {
    uint64_t at, off; /* bytes before the next piece */
    size_t len;
    uint8_t *dst;
};

/* What is wanted of the next piece of n bytes: how many, and *ret_from is the first. */
static size_t piecewise_next(struct piecewise *t, uint64_t n, uint64_t *ret_from)
{
    uint64_t first = max_u64(t->at, t->off), last = min_u64(t->at + n, t->off + t->len);

    *ret_from = first - t->at;
    t->at += n;
    return last > first ? (size_t)(last - first) : 0;
}

static void piecewise_copy(struct piecewise *t, const char *bytes)
{
    uint64_t at = t->at, from;
    size_t n = piecewise_next(t, strlen(bytes), &from);

    if (n)
        memcpy(t->dst + (at + from - t->off), bytes + from, n);
}

/* A JSON list of parts of an annotation. */
static int cells_read_parts(struct read_context *rc, const struct value_column *c,
                            const struct value_part *part, uint64_t n, struct piecewise *t,
                            struct diag *d)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at, from;
        size_t len;
        int r = 0;

        piecewise_copy(t, i ? "," : "[");
        if (!part[i].len) {
            piecewise_copy(t, NO_PART);
            continue;
        }
        at = t->at;
        len = piecewise_next(t, part[i].len, &from);
        if (len)
            r = blob_read(rc, c->source, t->dst + (at + from - t->off), len, part[i].at + from, d);
        if (r < 0)
            return r;
    }
    piecewise_copy(t, n ? "]" : "[]");
    return 0;
}

int cells_read(struct read_context *rc, const struct files_file *file, uint64_t row,
               unsigned column, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct value_column *c = cells_value(file, column, &row);
    const uint8_t *items;
    uint64_t n = value_items(c, row, &items);

    if (c->form == VALUE_PARTS)
        return cells_read_parts(rc, c, (const struct value_part *)(const void *)items, n,
                                &(struct piecewise){.off = off, .len = len, .dst = dst}, d);
    memcpy(dst, items + off, len);
    return 0;
}
