/* Rows of a column, from the levels and values of its leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "format/parquet/file.h"

/* What rows are made from and to. */
struct rows {
    const struct parquet_column *c;
    const struct page_data *data; /* of each leaf */
    struct values *made;
    struct diag *why; /* the first fault */
};

size_t parquet_count_rows(const struct page_data *data)
{
    size_t n = 0;

    if (!data->rep)
        return data->n;
    for (size_t i = 0; i < data->n; i++)
        n += !data->rep[i];
    return n;
}

static void rows_blame(struct rows *rows, const char *why)
{
    if (!rows->why->set)
        diag_set(rows->why, -EBADMSG, "%s", why);
}

/* Add a row of those bytes; one that is bad, if they are none (r: -EBADMSG), or too many. */
static int rows_add(struct rows *rows, int r, const void *bytes, size_t len, const char *why)
{
    if (r == 0)
        r = values_append_one(rows->made, bytes, len);
    if (r != -EBADMSG)
        return r;
    rows_blame(rows, why);
    return values_append_marked(rows->made, 1, VALUE_BAD);
}

/* ---- flat columns ---- */

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

static int rows_make_numbers(struct rows *rows, size_t n)
{
    const struct parquet_column *c = rows->c;
    const struct page_data *data = rows->data;
    const struct values *v = &data->v;
    int r = values_append_marked(rows->made, n, VALUE_GOOD);

    for (size_t i = 0, at = 0; i < n && r == 0; i++) {
        uint8_t *dst = rows->made->bytes + i * c->width;
        const uint8_t *value;
        size_t len;

        if (data->def && data->def[i] < c->node->max_def) {
            rows_null_number(c, dst);
            if (c->null == NULL_HOLE)
                r = values_set_mark(rows->made, i, VALUE_NULL);
            continue;
        }
        value = values_at(v, at, &len);
        if (values_mark(v, at) || !parquet_convert(c, value, len, dst)) {
            rows_blame(rows, rows_why(v, at));
            r = values_set_mark(rows->made, i, VALUE_BAD);
        }
        at++;
    }
    return r;
}

static int rows_make_bytes(struct rows *rows, size_t n)
{
    const struct parquet_column *c = rows->c;
    const struct page_data *data = rows->data;
    AUTO_TEXT struct text t = {0};
    int r = 0;

    for (size_t i = 0, at = 0; i < n && r == 0; i++) {
        const uint8_t *bytes;
        size_t len;

        if (data->def && data->def[i] < c->node->max_def) {
            r = values_append_marked(rows->made, 1, VALUE_NULL);
            continue;
        }
        bytes = values_at(&data->v, at, &len);
        r = values_mark(&data->v, at) ? -EBADMSG : 0;
        if (r == 0 && c->convert != CONVERT_COPY) {
            t.len = 0;
            r = parquet_convert_text(c->node, c->convert, bytes, len, &t);
            bytes = (const uint8_t *)t.data;
            len = t.len;
        }
        r = rows_add(rows, r, bytes, len, rows_why(&data->v, at++));
    }
    return r;
}

/* ---- lists ---- */

/* A row of a leaf: levels [level, end), whose values begin with one. */
struct rows_list {
    const struct parquet_column *c;
    const struct page_data *data;
    const struct parquet_node *leaf; /* of the values */
    size_t level, end, value;
    struct text made;
};

/* The repetition level that element i of a row of that shape has. */
static unsigned rows_rep_of(const struct parquet_column *c, uint64_t i)
{
    uint64_t each = c->tail;
    unsigned k = 1;

    for (; i % each; k++)
        each /= c->dim[k];
    return i ? k : 0;
}

/* An element of an array. 0, or -EBADMSG: it is none. */
static int rows_add_element(struct rows_list *row, uint64_t i)
{
    const struct parquet_column *c = row->c;
    size_t len, level = row->level + (size_t)i;
    unsigned def = row->data->def[level];
    uint8_t shown[8] = {0};
    bool is_good = row->data->rep[level] == rows_rep_of(c, i);

    if (def < row->leaf->max_def) {
        rows_null_number(c, shown);
        is_good &= c->null == NULL_NAN && row->leaf->repetition == NODE_OPTIONAL &&
                   def + 1 == row->leaf->max_def;
    } else {
        const uint8_t *value = values_at(&row->data->v, row->value, &len);

        is_good = is_good && !values_mark(&row->data->v, row->value++) &&
                  parquet_convert(c, value, len, shown);
    }
    text_add_bytes(&row->made, (const char *)shown, c->width);
    return is_good ? 0 : -EBADMSG;
}

static int rows_array(struct rows_list *row)
{
    const struct parquet_column *c = row->c;
    uint64_t n = row->end - row->level;
    int r = n % c->tail || (c->dim[0] != DIM_VARIES && n != c->dim[0] * c->tail) ? -EBADMSG : 0;

    for (uint64_t i = 0; i < n && r == 0; i++)
        r = rows_add_element(row, i);
    return r;
}

/* Bytes one after another, or the size of each. */
static int rows_joined(struct rows_list *row)
{
    for (size_t i = row->level; i < row->end; i++) {
        bool is_there = row->data->def[i] == row->leaf->max_def;
        const uint8_t *value = NULL;
        size_t len = 0;
        uint8_t size[8];

        if (is_there && values_mark(&row->data->v, row->value))
            return -EBADMSG;
        if (is_there)
            value = values_at(&row->data->v, row->value++, &len);
        store_le64(size, len);
        if (row->c->shown == SHOWN_SIZES)
            text_add_bytes(&row->made, (const char *)size, sizeof(size));
        else
            text_add_bytes(&row->made, (const char *)value, len);
    }
    return 0;
}

static int rows_add_list(struct rows *rows, struct rows_list *row, unsigned list_def)
{
    bool is_one = row->end - row->level == 1, is_array = row->c->shown == SHOWN_ARRAY;
    unsigned def = row->data->def[row->level];
    int r = 0;

    if (is_one && def < list_def)
        return values_append_marked(rows->made, 1, VALUE_NULL);
    row->made.len = 0;
    if (!is_one || def > list_def)
        r = is_array ? rows_array(row) : rows_joined(row);
    else if (is_array && row->c->dim[0] != DIM_VARIES && row->c->dim[0])
        r = -EBADMSG; /* it has no elements */
    return rows_add(rows, row->made.failed ? -ENOMEM : r, row->made.data, row->made.len,
                    "expected a list of its shape without nulls among integers, got another");
}

/* The definition level of a list that is not null: the nodes from the column to the first that
 * repeats, without that. */
static unsigned rows_list_def(const struct parquet_node *node)
{
    while (node->repetition != NODE_REPEATED && node->n_children)
        node++;
    return node->max_def - 1;
}

static int rows_make_lists(struct rows *rows, const struct parquet_node *leaf, size_t n)
{
    const struct page_data *data = rows->data;
    struct rows_list row = {.c = rows->c, .data = data, .leaf = leaf};
    unsigned list_def = rows_list_def(rows->c->node);
    int r = 0;

    for (size_t i = 0; i < n && row.level < data->n && r == 0; i++) {
        size_t first = row.value;

        for (row.end = row.level + 1; row.end < data->n && data->rep[row.end];)
            row.end++;
        r = rows_add_list(rows, &row, list_def);
        row.value = first;
        for (; row.level < row.end; row.level++)
            row.value += data->def[row.level] == leaf->max_def;
    }
    text_release(&row.made);
    return r;
}

/* ---- JSON ---- */

/* The levels of the next row of a leaf. false: it has no more. */
static bool rows_next_json(struct json_leaf *leaf)
{
    leaf->level = leaf->end;
    if (leaf->end >= leaf->data->n)
        return false;
    leaf->end++;
    while (leaf->data->rep && leaf->end < leaf->data->n && leaf->data->rep[leaf->end])
        leaf->end++;
    return true;
}

static int rows_add_json(struct rows *rows, struct json_leaf *leaf)
{
    AUTO_TEXT struct text t = {0};
    const struct parquet_node *node = rows->c->node;
    unsigned def = leaf->data->def ? leaf->data->def[leaf->level] : 0;
    bool is_null = def < node->max_def - (node->repetition == NODE_REPEATED);
    int r = parquet_json(node, leaf, rows->c->leaf, &t);

    for (unsigned i = 0; i < rows->c->n_leaves && r == 0; i++)
        if (leaf[i].level != leaf[i].end)
            r = -EBADMSG;
    return r == 0 && is_null
               ? values_append_marked(rows->made, 1, VALUE_NULL)
               : rows_add(rows, r, t.data, t.len,
                          "expected columns of a group whose levels fit each other, and 1 GiB of "
                          "text in a row group at most, got others");
}

/* Values are counted by the levels, so a row that fails does not move those behind it. */
static size_t rows_count_values(const struct json_leaf *leaf, unsigned max_def)
{
    size_t n = 0;

    for (size_t i = leaf->level; i < leaf->end; i++)
        n += !leaf->data->def || leaf->data->def[i] == max_def;
    return n;
}

static int rows_make_json(struct rows *rows, const struct parquet_node *const *leaf_node, size_t n)
{
    unsigned n_leaves = rows->c->n_leaves;
    AUTO_FREE struct json_leaf *leaf = calloc(n_leaves + 1u, sizeof(*leaf));
    AUTO_FREE size_t *next = calloc(n_leaves + 1u, sizeof(*next));
    int r = leaf && next ? 0 : -ENOMEM;

    for (unsigned i = 0; i < n_leaves && r == 0; i++)
        leaf[i].data = &rows->data[i];
    for (size_t row = 0; row < n && r == 0; row++) {
        for (unsigned i = 0; i < n_leaves; i++) {
            if (!rows_next_json(&leaf[i]))
                return 0;
            leaf[i].value = next[i];
            next[i] += rows_count_values(&leaf[i], leaf_node[i]->max_def);
        }
        r = rows_add_json(rows, leaf);
    }
    return r;
}

/* The leaves of a column. 0 or -ENOMEM. */
static int rows_leaves(const struct parquet_column *c, const struct parquet_node ***ret)
{
    unsigned n = 0;

    *ret = calloc(c->node->n_leaves + 1u, sizeof(**ret));
    for (unsigned i = 0; *ret && i < c->node->size; i++)
        if (c->node[i].type >= 0)
            (*ret)[n++] = &c->node[i];
    return *ret ? 0 : -ENOMEM;
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
    AUTO_FREE const struct parquet_node **leaf = NULL;
    struct rows rows = {column, data, ret, why};
    size_t have = parquet_count_rows(data), good;
    int r = rows_leaves(column, &leaf);

    if (r == 0 && rows_are_values(column, data, n)) {
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
    if (r == 0 && data->rep && data->n && data->rep[0]) {
        rows_blame(&rows, "expected a page that begins with a row, got one that begins inside");
        good = 0;
    }
    if (r < 0)
        return r;
    if (column->shown == SHOWN_NUMBER)
        r = rows_make_numbers(&rows, good);
    else if (column->shown == SHOWN_BYTES)
        r = rows_make_bytes(&rows, good);
    else if (column->shown == SHOWN_JSON)
        r = rows_make_json(&rows, leaf, good);
    else
        r = rows_make_lists(&rows, leaf[column->leaf - column->node->leaf], good);
    return r == 0 ? values_append_marked(ret, n - ret->n, VALUE_BAD) : r;
}
