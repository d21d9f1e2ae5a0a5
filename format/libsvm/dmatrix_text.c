/* Binary rows as lines of libsvm text. Each number has as many characters in every row, so the size
 * of a text follows from the number of its rows and entries: a float has 9 digits, which are enough
 * to read the same number back. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "format/libsvm/fields_parts.h"

#define FLOAT_TEXT 15 /* +1.23456789e-01 */

/* What precedes the entries of rows: label,label:weight qid:number. */
struct line_form {
    const struct field *label, *weight, *qid; /* weight, qid: NULL: there are none */
    unsigned labels, qid_digits, index_digits;
};

static struct line_form line_form_of(const struct dataset *ds)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    uint64_t groups = 0, columns = 1;
    struct line_form f = {.label = dataset_field(ds, "label"),
                          .weight = dataset_field(ds, "weight"),
                          .qid = dataset_field(ds, "qid")};

    for (unsigned i = 0; i < rows->shards.n; i++) {
        const struct dmatrix *m = libsvm_rows_file(rows, i)->matrix;

        groups += dmatrix_groups(m);
        columns = max_u64(columns, m->columns);
        if (dmatrix_weighs_groups(m)) /* no reader of text takes the weight of a row for one */
            f.weight = NULL;
    }
    f.labels = f.label ? (unsigned)(f.label->item_bytes / 4) : 0;
    f.qid_digits = decimal_digits(groups ? groups - 1 : 0);
    f.index_digits = decimal_digits(columns - 1);
    return f;
}

void libsvm_matrix_text_sizes(const struct dataset *ds, uint64_t *ret_row, uint64_t *ret_entry)
{
    struct line_form f;

    if (!libsvm_rows_of(ds)->is_binary)
        return;
    f = line_form_of(ds);
    *ret_row = f.labels * (FLOAT_TEXT + UINT64_C(1)) + (f.weight ? FLOAT_TEXT + 1u : 0) +
               (f.qid ? strlen(" qid:") + f.qid_digits : 0);
    *ret_entry = 1u + f.index_digits + 1u + FLOAT_TEXT;
}

/* The lines of the rows of a slab, while they are written. */
struct lines {
    struct line_form form;
    struct libsvm_view view;
    const struct libsvm_slab *slab;
    struct memo_thing *thing;
    uint8_t *label, *weight, *qid; /* of its rows, as the fields have them; owned */
    char *line;                    /* of one row; owned */
};

static void lines_release(struct lines *l)
{
    memo_let_go(l->thing);
    libsvm_view_close(&l->view);
    free(l->label);
    free(l->weight);
    free(l->qid);
    free(l->line);
}

/* The items of a field for the rows of the slab. f: NULL: there is no such field. */
static int read_items_of(struct read_context *rc, const struct dataset *ds, const struct field *f,
                         const struct lines *l, uint8_t **ret, struct diag *d)
{
    const struct libsvm_slab *slab = l->slab;

    free(*ret);
    *ret = f ? malloc((size_t)f->item_bytes * slab->n) : NULL;
    if (f && !*ret)
        return -ENOMEM;
    return f ? f->ops->read(rc, ds, f, l->view.sel, slab->first * f->item_bytes,
                            (size_t)f->item_bytes * slab->n, *ret, d)
             : 0;
}

/* Have the slab of a row. */
static int lines_at(struct read_context *rc, const struct dataset *ds, struct lines *l,
                    uint64_t place, struct diag *d)
{
    int r, all = 0;

    if (l->slab && place >= l->slab->first && place < l->slab->first + l->slab->n)
        return 0;
    memo_let_go(l->thing);
    l->thing = NULL;
    l->slab = NULL;
    r = libsvm_view_slab(rc, &l->view, place, &l->slab, &l->thing, d);
    if (r < 0)
        return r;
    if (missing_go_on(rc, read_items_of(rc, ds, l->form.label, l, &l->label, d), &all) &&
        missing_go_on(rc, read_items_of(rc, ds, l->form.weight, l, &l->weight, d), &all))
        missing_go_on(rc, read_items_of(rc, ds, l->form.qid, l, &l->qid, d), &all);
    if (all < 0)
        l->slab = NULL;
    return all;
}

/* A character, and a number of FLOAT_TEXT characters; so nan has spaces behind it. */
static char *put_float(char *at, char before, const uint8_t *stored)
{
    uint32_t bits = load_le32(stored);
    char text[FLOAT_TEXT + 1];
    float v;

    memcpy(&v, &bits, sizeof(v));
    snprintf(text, sizeof(text), isnan(v) ? "nan" : "%+.8e", (double)v);
    return at + snprintf(at, FLOAT_TEXT + 2, "%c%-*s", before, FLOAT_TEXT, text);
}

static void put_line(const struct lines *l, unsigned i, size_t size)
{
    const struct libsvm_slab *slab = l->slab;
    const struct line_form *f = &l->form;
    char *at = l->line; /* the byte before the line is that of the first number */

    for (unsigned k = 0; k < f->labels; k++)
        at = put_float(at, ',', l->label + 4 * ((size_t)i * f->labels + k));
    if (f->weight)
        at = put_float(at, ':', l->weight + 4 * (size_t)i);
    if (f->qid)
        at += snprintf(at, 32, " qid:%-*llu", (int)f->qid_digits,
                       (unsigned long long)load_le64(l->qid + 8 * (size_t)i));
    for (uint64_t k = i ? slab->end[i - 1] : 0; k < slab->end[i]; k++) {
        uint8_t bytes[4];

        libsvm_copy_numbers(&slab->value[k], 4, 4, 4, 0, sizeof(bytes), bytes);
        at += snprintf(at, 16, " %*u", (int)f->index_digits, slab->index[k]);
        at = put_float(at, ':', bytes);
    }
    *at++ = '\n';
    (void)size; /* of a build without assertions */
    assert((size_t)(at - l->line) == size + 1);
}

/* Copy bytes [off, off + len) of the line of the row at place. */
static int copy_row_line(struct read_context *rc, const struct dataset *ds, struct lines *l,
                         uint64_t place, size_t size, uint64_t off, size_t len, uint8_t *dst,
                         struct diag *d)
{
    int r = lines_at(rc, ds, l, place, d);

    if (r < 0)
        return r;
    free(l->line);
    l->line = malloc(size + 2);
    if (!l->line)
        return -ENOMEM;
    put_line(l, (unsigned)(place - l->slab->first), size);
    memcpy(dst, l->line + 1 + off, len);
    return 0;
}

static int matrix_text_read(struct read_context *rc, const struct dataset *ds,
                            const struct field *f, const struct selection *sel, uint64_t off,
                            size_t len, uint8_t *dst, struct diag *d)
{
    AUTO(lines_release) struct lines l = {.form = line_form_of(ds)};
    int r = libsvm_view_open(&l.view, libsvm_rows_of(ds), sel), all = r;

    (void)f;
    while (len && r == 0) {
        uint64_t block = libsvm_view_text_block(&l.view, off);
        uint64_t begin = libsvm_view_sums(&l.view, block).text;
        struct libsvm_row_at row[LIBSVM_BLOCK];
        unsigned n;

        libsvm_view_rows(&l.view, block, row, &n);
        for (unsigned i = 0; i < n && len; i++) {
            uint64_t size = libsvm_row_text(l.view.rows, &row[i].place);
            size_t part;

            begin += size;
            if (off >= begin)
                continue;
            part = (size_t)min_u64(len, begin - off);
            if (!missing_go_on(rc,
                               copy_row_line(rc, ds, &l, block * LIBSVM_BLOCK + i, (size_t)size,
                                             off - (begin - size), part, dst, d),
                               &all))
                return all;
            dst += part;
            off += part;
            len -= part;
        }
    }
    return all;
}

const struct field_ops libsvm_matrix_text_ops = {matrix_text_read, libsvm_text_form};
