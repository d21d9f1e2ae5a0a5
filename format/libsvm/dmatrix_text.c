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

/* No reader of text takes the weight of a group for one of a row. */
static const struct field *weight_of(const struct dataset *ds)
{
    return libsvm_rows_of(ds)->weighs_groups ? NULL : dataset_field(ds, "weight");
}

void libsvm_matrix_text_sizes(struct dataset *ds)
{
    struct libsvm_rows *rows = ds->impl;
    const struct field *label = dataset_field(ds, "label");
    uint64_t groups = 0, columns = 1;

    if (!rows->is_binary)
        return;
    for (unsigned i = 0; i < rows->shards.n; i++) {
        const struct dmatrix *m = libsvm_rows_file(rows, i)->matrix;

        groups += dmatrix_groups(m);
        columns = max_u64(columns, m->columns);
        rows->weighs_groups = rows->weighs_groups || dmatrix_weighs_groups(m);
    }
    rows->qid_digits = decimal_digits(groups ? groups - 1 : 0);
    rows->index_digits = decimal_digits(columns - 1);
    rows->text_row = (label ? label->item_bytes / 4 : 0) * (FLOAT_TEXT + UINT64_C(1)) +
                     (weight_of(ds) ? FLOAT_TEXT + 1u : 0) +
                     (dataset_field(ds, "qid") ? strlen(" qid:") + rows->qid_digits : 0);
    rows->text_entry = 1u + rows->index_digits + 1u + FLOAT_TEXT;
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

/* The item of a field of a row, and a byte. f: NULL: there is no such field. *ret is the caller's.
 */
static int read_item(struct record_items *items, const struct field *f, uint64_t sample,
                     uint8_t **ret, struct diag *d)
{
    size_t bytes = f ? (size_t)f->item_bytes : 0;
    struct one_sample one;

    one_sample_init(&one, sample);
    *ret = malloc(bytes + 1);
    if (!*ret)
        return -ENOMEM;
    return f ? f->ops->read(items->rc, items->ds, f, &one.sel, 0, bytes, *ret, d) : 0;
}

/* label,label:weight qid:number index:value index:value ... */
int libsvm_matrix_line(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct libsvm_rows *rows = libsvm_rows_of(items->ds);
    const struct libsvm_row_at row = libsvm_rows_find(rows, sample);
    const struct field *field[] = {dataset_field(items->ds, "label"), weight_of(items->ds),
                                   dataset_field(items->ds, "qid")};
    AUTO_FREE uint8_t *label = NULL, *weight = NULL, *qid = NULL;
    uint8_t **const item[] = {&label, &weight, &qid};
    const size_t size = (size_t)libsvm_row_text(rows, &row.place);
    AUTO_FREE struct libsvm_slab *slab = NULL;
    AUTO_FREE char *line = malloc(size + 2);
    char *at = line; /* the byte before the line is that of the first number */
    size_t slab_size;
    int all = 0;
    bool goes_on = missing_go_on(
        items->rc, libsvm_rows_decode(items->rc, rows, &row, 1, &slab, &slab_size, d), &all);

    (void)before;
    for (unsigned i = 0; i < ARRAY_LEN(field) && goes_on; i++)
        goes_on = missing_go_on(items->rc, read_item(items, field[i], sample, item[i], d), &all);
    if (all < 0 || !line)
        return all < 0 ? all : -ENOMEM;
    for (size_t k = 0; field[0] && k < field[0]->item_bytes; k += 4)
        at = put_float(at, ',', label + k);
    if (field[1])
        at = put_float(at, ':', weight);
    if (field[2])
        at += snprintf(at, 32, " qid:%-*llu", (int)rows->qid_digits,
                       (unsigned long long)load_le64(qid));
    for (uint64_t k = 0; k < row.place.features; k++) {
        uint8_t bytes[4];

        libsvm_copy_numbers(&slab->value[k], 4, 4, 4, 0, sizeof(bytes), bytes);
        at += snprintf(at, 16, " %*u", (int)rows->index_digits, slab->index[k]);
        at = put_float(at, ':', bytes);
    }
    *at++ = '\n';
    assert((size_t)(at - line) == size + 1);
    memcpy(dst, line + 1 + off, len);
    return 0;
}
