#include "format/parquet/cursor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"

#define LACKING_ROWS 65536 /* that a unit has at its end, at most: a file may claim very many */

void parquet_cursor_release(struct cursor *c)
{
    parquet_walk_release(&c->walk);
    page_data_release(&c->pending);
    free(c->made);
    free(c->unit);
    *c = (struct cursor){0};
}

/* ---- units and states ---- */

int parquet_cursor_add_unit(struct cursor *c, uint64_t at)
{
    int r = array_capacity(&c->unit, c->n_units, sizeof(*c->unit));

    if (r == 0) /* a page of Impala may begin after its chunk */
        c->unit[c->n_units++] = (struct parquet_unit){min_u64(at, c->walk.chunk->end), c->row};
    return r;
}

static int cursor_add(struct cursor *c, uint64_t state, uint64_t place)
{
    int r = array_capacity(&c->made, c->n, sizeof(*c->made));

    if (r == 0)
        c->made[c->n++] = (struct cursor_row){state, place};
    return r;
}

static void pass_fault(struct parquet_column *column, uint64_t rows, const char *why)
{
    column->faults += rows;
    if (!column->fault)
        column->fault = strdup(why);
}

static uint64_t cursor_amount(const struct parquet_column *column, size_t len)
{
    return column->shown == SHOWN_NUMBER  ? 0
           : column->shown == SHOWN_ARRAY ? len / column->width / column->tail
           : column->shown == SHOWN_SIZES ? len / 8
                                          : len;
}

/* Make those rows the next unit, of n: those that it lacks are bad. */
static int cursor_make_unit(struct cursor *c, struct parquet_column *column,
                            const struct values *rows, size_t n, uint64_t at,
                            const struct diag *why)
{
    int r = parquet_cursor_add_unit(c, at);

    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        enum value_mark mark = i < rows->n ? values_mark(rows, i) : VALUE_BAD;
        const uint8_t *bytes;
        size_t len;

        if (mark == VALUE_BAD) {
            pass_fault(column, 1, why->text);
            r = cursor_add(c, STATE_BAD, 0);
            continue;
        }
        bytes = values_at(rows, i, &len);
        if (len && !column->bytes_kind)
            column->bytes_kind = parquet_kind(bytes, len);
        column->has_null |= mark == VALUE_NULL;
        r = cursor_add(c, mark == VALUE_NULL ? STATE_NULL : STATE_SIZE + cursor_amount(column, len),
                       0);
    }
    c->row += r == 0 ? n : 0;
    return r;
}

/* Make a unit of the pending pages. is_last: it has all remaining rows of the group. */
static int cursor_close(struct cursor *c, struct parquet_column *column, bool is_last,
                        struct diag *why)
{
    size_t rows = parquet_count_rows(&c->pending), n;
    AUTO_VALUES struct values made = {0};
    int r;

    n = (size_t)min_u64(c->end - c->row, is_last ? rows + LACKING_ROWS : rows);
    if (is_last && rows != n && !c->is_cut) {
        page_data_release(&c->pending);
        if (!why->set)
            diag_set(why, -EBADMSG, "pages at byte %llu: expected %zu rows, got %zu",
                     (unsigned long long)c->pending_at, n, rows);
    }
    r = parquet_rows_make(column, &c->pending, n, c->is_cut, &made, why);
    if (r == 0)
        r = cursor_make_unit(c, column, &made, n, c->pending_at, why);
    page_data_release(&c->pending);
    return r;
}

/* ---- bytes in place ---- */

/* Are the values of the page in the file as they are? A page with a checksum is read whole. */
static bool cursor_is_in_place(const struct cursor *c, const struct parquet_column *column)
{
    const struct page_header *h = &c->walk.header;

    return column->place != NO_SLOT && h->encoding == ENCODING_PLAIN && !h->has_crc &&
           h->packed == h->unpacked &&
           (c->walk.column.codec == CODEC_NONE || (h->type == PAGE_DATA_V2 && !h->is_packed));
}

/* The levels of the page; only their bytes are read. */
static int cursor_levels(struct cursor *c, struct page_data *ret, size_t *ret_at, const char **why,
                         struct diag *d)
{
    const uint8_t *bytes = NULL;
    size_t len = 0, more = 0;
    int r =
        page_decode_levels(&c->walk.column, &c->walk.header, bytes, len, ret, ret_at, &more, why);

    while (r == 1) {
        if (more > c->walk.header.packed) {
            *why = "expected levels inside the page, got a larger length";
            return -EBADMSG;
        }
        len = more;
        r = parquet_walk_bytes(&c->walk, len, &bytes, d);
        if (r == 0)
            r = page_decode_levels(&c->walk.column, &c->walk.header, bytes, len, ret, ret_at, &more,
                                   why);
    }
    return r;
}

/* The value at byte *at of the body: its place and length. */
static int cursor_hop(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                      uint64_t *at, struct diag *d)
{
    struct parquet_walk *w = &c->walk;
    uint64_t left = w->header.packed - *at, len;
    const uint8_t *bytes;
    int r;

    if (left < 4)
        return -EBADMSG;
    r = pass_window_at(&w->window, file->base.blob, w->at + *at, 4, w->end, &bytes, d);
    if (r < 0)
        return r;
    len = load_le32(bytes);
    if (len > left - 4)
        return -EBADMSG;
    if (len && !column->bytes_kind) {
        size_t head = (size_t)min_u64(len, BYTES_KIND_HEAD);

        r = pass_window_at(&w->window, file->base.blob, w->at + *at + 4, head, w->end, &bytes, d);
        if (r < 0)
            return r;
        column->bytes_kind = parquet_kind(bytes, head);
    }
    *at += 4 + len;
    return cursor_add(c, STATE_SIZE + len, w->at + *at - len);
}

/* Make the page a unit, without its values. */
static int cursor_page_in_place(struct parquet_file *file, struct cursor *c,
                                struct parquet_column *column, struct diag *d)
{
    AUTO_PAGE_DATA struct page_data levels = {0};
    const char *why = "expected a length inside the page, got a larger one";
    size_t values = 0, n = (size_t)min_u64(c->walk.header.n, c->end - c->row);
    uint64_t at;
    struct diag fault = DIAG_INIT;
    int r = cursor_levels(c, &levels, &values, &why, d);

    at = values;
    c->n = c->pos = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!levels.def || levels.def[i] == c->walk.column.max_def) {
            r = cursor_hop(file, c, column, &at, d);
            continue;
        }
        column->has_null = true;
        r = cursor_add(c, STATE_NULL, 0);
    }
    if (r == -EBADMSG) {
        diag_set(&fault, r, "page at byte %llu: %s",
                 (unsigned long long)(c->walk.at - c->walk.header.len), why);
        pass_fault(column, n - c->n, fault.text);
        for (r = 0; c->n < n && r == 0;)
            r = cursor_add(c, STATE_BAD, 0);
    }
    if (r == 0)
        r = parquet_cursor_add_unit(c, c->walk.at - c->walk.header.len);
    if (r < 0) {
        c->n = 0;
        return r;
    }
    c->row += n;
    parquet_walk_skip(&c->walk);
    c->has_page = false;
    return 0;
}

/* ---- a cursor ---- */

static bool cursor_is_full(const struct cursor *c)
{
    return c->pending.v.len >= PARQUET_UNIT_BYTES || c->pending.n >= PARQUET_UNIT_VALUES;
}

/* Read the next page to what is pending, or make a unit of that first. */
static int cursor_page(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                       struct diag *d)
{
    AUTO_PAGE_DATA struct page_data page = {0};
    struct parquet_walk *w = &c->walk;
    uint64_t at = w->at - w->header.len;
    struct diag why = DIAG_INIT;
    int r;

    if (cursor_is_in_place(c, column))
        return c->pending.n ? cursor_close(c, column, false, &why)
                            : cursor_page_in_place(file, c, column, d);
    if (cursor_is_full(c) && !w->column.max_rep)
        return cursor_close(c, column, false, &why);
    r = parquet_walk_decode(w, &page, &why);
    if (r < 0 && r != -EBADMSG) {
        c->has_page = false; /* it comes again */
        return diag_set(d, r, "%s", diag_text(&why, r));
    }
    c->has_page = false;
    if (r == -EBADMSG) {
        pass_fault(column, 0, why.text); /* rows are counted where they are made */
        page_data_release(&page);
        page.v.width = w->column.width;
        c->is_cut = w->column.max_rep > 0;
        w->is_over |= c->is_cut;
        r = c->is_cut ? 0 : parquet_add_bad_values(&w->column, &page, (size_t)w->lost);
    }
    if (r == 0 && page.n && cursor_is_full(c) && page.rep && !page.rep[0])
        r = cursor_close(c, column, false, &why);
    if (!c->pending.n)
        c->pending_at = at;
    c->pending.v.width = w->column.width;
    return r < 0 ? r : page_data_append(&c->pending, &page);
}

/* Columns of several leaves are made a group at a time. */
static int cursor_group(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                        struct diag *d)
{
    const struct extent bytes = {.off = c->walk.at};
    AUTO_VALUES struct values rows = {0};
    struct diag why = DIAG_INIT;
    size_t n = (size_t)(c->end - c->row);
    int r = parquet_read_rows(READ_WAITS, file, column, c->group, &bytes, n, &rows, &why);

    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r))
                 : cursor_make_unit(c, column, &rows, n, bytes.off, &why);
}

int parquet_cursor_fill(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                        struct diag *d)
{
    struct diag why = DIAG_INIT;

    if (column->n_leaves > 1)
        return cursor_group(file, c, column, d);
    while (c->pos == c->n) {
        int r = c->has_page ? 1 : parquet_walk_page(&c->walk, &why);

        if (r < 0 && r != -EBADMSG)
            return diag_set(d, r, "%s", diag_text(&why, r));
        if (r == -EBADMSG)
            c->is_cut = true;
        c->has_page = r == 1;
        if (r != 1) {
            if (!c->pending.n)
                c->pending_at = min_u64(c->walk.at, c->walk.end);
            return cursor_close(c, column, true, &why);
        }
        r = cursor_page(file, c, column, d);
        if (r < 0)
            return r;
    }
    return 0;
}
