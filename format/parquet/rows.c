/* Rows of a column, from the levels and values of its leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "format/parquet/file.h"

size_t parquet_count_rows(const struct page_data *data)
{
    size_t n = 0;

    if (!data->rep)
        return data->n;
    for (size_t i = 0; i < data->n; i++)
        n += !data->rep[i];
    return n;
}

/* What a number shows where there is none. */
static void rows_null_number(const struct parquet_column *c, uint8_t *dst)
{
    memset(dst, c->null == NULL_MINUS_ONE ? 0xff : 0, c->width);
    if (c->null != NULL_NAN)
        return;
    if (c->width == 8)
        store_le64(dst, UINT64_C(0x7ff8000000000000));
    else if (c->width == 4)
        store_le32(dst, 0x7fc00000);
    else
        store_le16(dst, 0x7e00);
}

static const char *rows_why(const struct values *v, size_t i)
{
    return values_mark(v, i) ? "expected an id of the dictionary, got a larger one"
                             : "expected a number that its type has, got another";
}

/* Numbers, of which there is one in a row: not one by one, as there are many. */
static int rows_make_numbers(const struct parquet_column *c, const struct page_data *data, size_t n,
                             struct values *ret, struct diag *why)
{
    const struct values *v = &data->v;
    bool is_copy = c->convert == CONVERT_COPY && !v->n_marks;
    int r = values_append_marked(ret, n, VALUE_GOOD);

    for (size_t i = 0, at = 0; i < n && r == 0; i++) {
        uint8_t *dst = ret->bytes + i * c->width;
        const uint8_t *value;
        size_t len;

        if (data->def && data->def[i] < c->node->max_def) {
            if (c->null != NULL_HOLE)
                rows_null_number(c, dst);
            else
                r = values_set_mark(ret, i, VALUE_NULL);
            continue;
        }
        if (is_copy) {
            memcpy(dst, v->bytes + at++ * c->width, c->width);
            continue;
        }
        value = values_at(v, at, &len);
        if (values_mark(v, at) || !parquet_convert(c->value, value, len, dst)) {
            diag_set(why, -EBADMSG, "%s", rows_why(v, at));
            r = values_set_mark(ret, i, VALUE_BAD);
        }
        at++;
    }
    return r;
}

/* ---- what a row shows ----
 * Each of these adds the bytes of a row to its text. 0, or -EBADMSG: it is not what its column has.
 */

struct row {
    const struct parquet_column *c;
    struct parquet_leaf *leaf;
    struct text t;
    const char *why; /* it is bad, if it is: set before, for lists */
};

static int rows_bytes(struct row *row)
{
    const struct values *v = &row->leaf->data->v;
    size_t len, at = row->leaf->value;
    const uint8_t *value = values_at(v, at, &len);

    row->why = rows_why(v, at);
    return values_mark(v, at)
               ? -EBADMSG
               : parquet_convert_text(row->c->node, row->c->convert, value, len, &row->t);
}

/* The repetition level that element i of a row of that shape has. */
static unsigned rows_rep_of(const struct parquet_column *c, uint64_t i)
{
    uint64_t each = c->tail;
    unsigned k = 1;

    for (; i % each; k++)
        each /= c->as.dim[k];
    return i ? k : 0;
}

/* An element of an array, of those whose values follow. false: it is none. */
static bool rows_element(struct row *row, uint64_t i)
{
    const struct parquet_column *c = row->c;
    struct parquet_leaf *leaf = row->leaf;
    const struct page_data *data = leaf->data;
    size_t len, level = leaf->level + (size_t)i;
    unsigned def = data->def[level];
    uint8_t shown[8] = {0};
    bool is_good = data->rep[level] == rows_rep_of(c, i);

    if (def < leaf->node->max_def) {
        rows_null_number(c, shown);
        is_good &= c->null == NULL_NAN && leaf->node->repetition == NODE_OPTIONAL &&
                   def + 1 == leaf->node->max_def;
    } else {
        const uint8_t *value = values_at(&data->v, leaf->value, &len);

        is_good = is_good && !values_mark(&data->v, leaf->value++) &&
                  parquet_convert(c->value, value, len, shown);
    }
    text_add_bytes(&row->t, (const char *)shown, c->width);
    return is_good;
}

/* The level of a list without elements, and of what is not null. */
static unsigned rows_there(const struct parquet_column *c)
{
    return c->node->max_def - (c->node->repetition == NODE_REPEATED);
}

/* How many levels of a list are of elements. */
static size_t rows_elements(const struct row *row)
{
    const struct parquet_leaf *leaf = row->leaf;
    size_t n = leaf->end - leaf->level;

    return n == 1 && leaf->data->def[leaf->level] == rows_there(row->c) ? 0 : n;
}

static int rows_array(struct row *row)
{
    const struct parquet_column *c = row->c;
    uint64_t n = rows_elements(row);
    bool is_good = n % c->tail == 0 && (c->as.dim[0] == DIM_VARIES || n == c->as.dim[0] * c->tail);
    const struct parquet_leaf *leaf = row->leaf;
    const struct values *v = &leaf->data->v;

    if (is_good && n && c->as.ndim == 1 && c->convert == CONVERT_COPY && !v->n_marks &&
        leaf->next - leaf->value == n) { /* none is null */
        text_add_bytes(&row->t, (const char *)v->bytes + leaf->value * c->width, n * c->width);
        return 0;
    }
    for (uint64_t i = 0; i < n && is_good; i++)
        is_good = rows_element(row, i);
    return is_good ? 0 : -EBADMSG;
}

/* Bytes one after another, or the size of each. */
static int rows_joined(struct row *row)
{
    struct parquet_leaf *leaf = row->leaf;
    const struct page_data *data = leaf->data;
    size_t end = leaf->level + rows_elements(row);

    for (size_t i = leaf->level; i < end; i++) {
        bool is_there = data->def[i] == leaf->node->max_def;
        const uint8_t *value = NULL;
        size_t len = 0;
        uint8_t size[8];

        if (is_there && values_mark(&data->v, leaf->value))
            return -EBADMSG;
        if (is_there)
            value = values_at(&data->v, leaf->value++, &len);
        store_le64(size, len);
        if (row->c->shown == SHOWN_SIZES)
            text_add_bytes(&row->t, (const char *)size, sizeof(size));
        else
            text_add_bytes(&row->t, (const char *)value, len);
    }
    return 0;
}

static int rows_json(struct row *row)
{
    int r = parquet_json(row->c->node, row->leaf, row->c->leaf, &row->t);

    row->why = "expected columns of a group whose levels fit each other, and 1 GiB of text in a "
               "row group at most, got others";
    for (unsigned i = 0; i < row->c->n_leaves && r == 0; i++)
        if (row->leaf[i].level != row->leaf[i].end)
            r = -EBADMSG;
    return r;
}

/* ---- rows ---- */

/* Go to the next row of a leaf. Values are counted by the levels, so that a row that fails does not
 * move those behind it. false: it has no more. */
static bool rows_next(struct parquet_leaf *leaf)
{
    const struct page_data *data = leaf->data;
    size_t i = leaf->end;

    if (i >= data->n)
        return false;
    leaf->level = i;
    leaf->value = leaf->next;
    do
        leaf->next += !data->def || data->def[i] == leaf->node->max_def;
    while (++i < data->n && data->rep && data->rep[i]);
    leaf->end = i;
    return true;
}

/* The leaves of a column: all below its node; or, of one that shows a single one, that. */
static struct parquet_leaf *rows_leaves(const struct parquet_column *c,
                                        const struct page_data *data)
{
    struct parquet_leaf *leaf = calloc(c->n_leaves, sizeof(*leaf));

    for (unsigned i = 0; leaf && i < c->node->size; i++) {
        const struct parquet_node *node = &c->node[i];

        if (node->type >= 0 && node->leaf >= c->leaf && node->leaf < c->leaf + c->n_leaves)
            leaf[node->leaf - c->leaf] =
                (struct parquet_leaf){.data = &data[node->leaf - c->leaf], .node = node};
    }
    return leaf;
}

static int rows_make_others(const struct parquet_column *c, const struct page_data *data, size_t n,
                            struct values *ret, struct diag *why)
{
    static int (*const make[])(struct row * row) = {[SHOWN_BYTES] = rows_bytes,
                                                    [SHOWN_ARRAY] = rows_array,
                                                    [SHOWN_JOINED] = rows_joined,
                                                    [SHOWN_SIZES] = rows_joined,
                                                    [SHOWN_JSON] = rows_json};
    AUTO_FREE struct parquet_leaf *leaf = rows_leaves(c, data);
    struct row row = {.c = c, .leaf = leaf};
    bool is_json = c->shown == SHOWN_JSON, is_over = false;
    int r = leaf ? 0 : -ENOMEM;

    for (size_t i = 0; i < n && r == 0; i++) {
        bool is_null;

        for (unsigned k = 0; k < c->n_leaves; k++)
            is_over |= !rows_next(&leaf[k]);
        if (is_over)
            break;
        row.t.len = 0;
        row.why = "expected a list of its shape without nulls among integers, got another";
        is_null = (leaf->data->def ? leaf->data->def[leaf->level] : 0) < rows_there(c) &&
                  (is_json || leaf->end - leaf->level == 1);
        if (!is_null || is_json) /* which looks at all leaves */
            r = make[c->shown](&row);
        if (row.t.failed)
            r = -ENOMEM;
        if (r == 0)
            r = is_null ? values_append_marked(ret, 1, VALUE_NULL)
                        : values_append_one(ret, row.t.data, row.t.len);
        if (r == -EBADMSG) { /* not bytes, or too many */
            diag_set(why, r, "%s", row.why);
            r = values_append_marked(ret, 1, VALUE_BAD);
        }
    }
    text_release(&row.t);
    return r;
}

/* Are the values the rows, as they are? */
static bool rows_are_values(const struct parquet_column *c, const struct page_data *data, size_t n)
{
    return (c->shown == SHOWN_NUMBER || c->shown == SHOWN_BYTES) && c->convert == CONVERT_COPY &&
           !data->v.n_marks && data->v.n == n && data->n == n;
}

int parquet_rows_make(const struct parquet_column *column, struct page_data *data, size_t n,
                      bool is_cut, struct values *ret, struct diag *why)
{
    size_t have = parquet_count_rows(data), good;
    int r;

    if (rows_are_values(column, data, n)) {
        *ret = data->v;
        data->v = (struct values){.width = ret->width};
        return 0;
    }
    ret->width = column->shown == SHOWN_NUMBER ? column->width : 0;
    good = n = have < n ? have : n;
    for (unsigned i = 0; is_cut && i < column->n_leaves; i++) {
        size_t some = parquet_count_rows(&data[i]);

        if (data[i].rep && good >= some) /* its last row may lack what follows */
            good = some ? some - 1 : 0;
    }
    if (data->rep && data->n && data->rep[0]) {
        diag_set(why, -EBADMSG,
                 "expected a page that begins with a row, got one that begins inside");
        good = 0;
    }
    r = column->shown == SHOWN_NUMBER ? rows_make_numbers(column, data, good, ret, why)
                                      : rows_make_others(column, data, good, ret, why);
    return r == 0 ? values_append_marked(ret, n - ret->n, VALUE_BAD) : r;
}
