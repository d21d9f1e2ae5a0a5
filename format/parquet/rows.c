/* Rows of a column, from the levels and values of its leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "format/parquet/file.h"

void parquet_rows_release(struct parquet_rows *rows)
{
    values_release(&rows->v);
    free(rows->null);
    rows->null = NULL;
    rows->n = 0;
}

size_t parquet_count_rows(const struct page_data *data)
{
    size_t n = 0;

    if (!data->rep)
        return data->n;
    for (size_t i = 0; i < data->n; i++)
        n += !data->rep[i];
    return n;
}

/* ---- adding rows ---- */

static int rows_mark(uint8_t **mark, size_t *capacity, size_t first, size_t n)
{
    if (first + n > *capacity || !*mark) {
        size_t more = (first + n) * 2 + 64;
        uint8_t *grown = realloc(*mark, more);

        if (!grown)
            return -ENOMEM;
        memset(grown + *capacity, 0, more - *capacity);
        *mark = grown;
        *capacity = more;
    }
    memset(*mark + first, 1, n);
    return 0;
}

int parquet_rows_add_null(struct parquet_rows *rows, size_t n)
{
    int r = rows_mark(&rows->null, &rows->null_n, rows->n, n);

    if (r == 0)
        r = values_append_zeros(&rows->v, n);
    if (r == 0)
        rows->n += n;
    return r;
}

int parquet_rows_add_bad(struct parquet_rows *rows, size_t n)
{
    int r = values_append_zeros(&rows->v, n);

    for (size_t i = 0; i < n && r == 0; i++)
        r = values_mark_bad(&rows->v, rows->n + i);
    if (r == 0)
        rows->n += n;
    return r;
}

int parquet_rows_add(struct parquet_rows *rows, const void *bytes, size_t len)
{
    struct values one = {
        .width = rows->v.width, .n = 1, .len = len, .bytes = (uint8_t *)(uintptr_t)bytes};
    uint32_t end = (uint32_t)len;
    int r;

    one.end = &end;
    r = len > VALUES_BYTES_MAX ? -EBADMSG : values_append(&rows->v, &one);
    if (r == 0)
        rows->n++;
    return r;
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

/* The row is not good, for a reason that pages do not have. */
static void rows_blame(struct parquet_rows *rows, const char *why)
{
    rows->why = rows->why ? rows->why : why;
}

static int rows_add_number(const struct parquet_column *c, const struct values *v, size_t i,
                           struct parquet_rows *ret)
{
    uint8_t *dst = ret->v.bytes + ret->n * c->width;
    size_t len;
    const uint8_t *value = values_at(v, i, &len);

    if (parquet_convert(c, value, len, dst) && !values_is_bad(v, i)) {
        ret->n++;
        return 0;
    }
    rows_blame(ret, values_is_bad(v, i) ? "expected an id of the dictionary, got a larger one"
                                        : "expected a number that its type has, got another");
    return values_mark_bad(&ret->v, ret->n++);
}

/* All values are as they are shown. */
static bool rows_are_values(const struct parquet_column *c, const struct page_data *data)
{
    return c->convert == CONVERT_COPY && !data->v.bad_n && data->v.n == data->n;
}

static int rows_make_numbers(const struct parquet_column *c, const struct page_data *data, size_t n,
                             struct parquet_rows *ret)
{
    unsigned max_def = c->node->max_def;
    int r = values_append_zeros(&ret->v, n);

    if (r == 0 && rows_are_values(c, data)) {
        if (n)
            memcpy(ret->v.bytes, data->v.bytes, n * c->width);
        ret->n = n;
        return 0;
    }
    for (size_t i = 0, value = 0; i < n && r == 0; i++) {
        if (!data->def || data->def[i] == max_def) {
            r = rows_add_number(c, &data->v, value++, ret);
            continue;
        }
        if (c->null == NULL_HOLE)
            r = rows_mark(&ret->null, &ret->null_n, i, 1);
        rows_null_number(c, ret->v.bytes + i * c->width);
        ret->n++;
    }
    return r;
}

static int rows_add_text(const struct parquet_column *c, const uint8_t *value, size_t len,
                         struct parquet_rows *ret)
{
    AUTO_TEXT struct text t = {0};
    int r;

    if (c->convert == CONVERT_COPY)
        return parquet_rows_add(ret, value, len);
    r = parquet_convert_text(c->node, c->convert, value, len, &t);
    if (r == 0)
        return parquet_rows_add(ret, t.data, t.len);
    return r == -EBADMSG ? parquet_rows_add_bad(ret, 1) : r;
}

static int rows_make_bytes(const struct parquet_column *c, const struct page_data *data, size_t n,
                           struct parquet_rows *ret)
{
    int r = 0;

    for (size_t i = 0, value = 0; i < n && r == 0; i++) {
        size_t len;
        const uint8_t *bytes;

        if (data->def && data->def[i] < c->node->max_def) {
            r = parquet_rows_add_null(ret, 1);
            continue;
        }
        bytes = values_at(&data->v, value, &len);
        r = values_is_bad(&data->v, value) ? parquet_rows_add_bad(ret, 1)
                                           : rows_add_text(c, bytes, len, ret);
        if (r == -EBADMSG)
            r = parquet_rows_add_bad(ret, 1);
        value++;
    }
    return r;
}

/* ---- lists ---- */

/* A row of a leaf: levels [level, end), whose values begin with one. */
struct rows_list {
    const struct parquet_column *c;
    const struct page_data *data;
    const struct parquet_node *leaf, *list; /* of the values; what is null if the row is */
    size_t level, end, value;
    struct values made;
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

/* An element of an array. 0, -EBADMSG: it is none; or -ENOMEM. */
static int rows_add_element(struct rows_list *row, uint64_t i)
{
    const struct parquet_column *c = row->c;
    const uint8_t *value;
    uint8_t *dst;
    size_t len, level = row->level + (size_t)i;
    bool is_there = row->data->def[level] == row->leaf->max_def;
    int r = values_append_zeros(&row->made, 1);

    if (r < 0)
        return r;
    dst = row->made.bytes + row->made.len - c->width;
    if (row->data->rep[level] != rows_rep_of(c, i))
        return -EBADMSG;
    if (!is_there) {
        rows_null_number(c, dst);
        return c->null == NULL_NAN && row->leaf->repetition == NODE_OPTIONAL &&
                       row->data->def[level] + 1u == row->leaf->max_def
                   ? 0
                   : -EBADMSG;
    }
    if (values_is_bad(&row->data->v, row->value))
        return -EBADMSG;
    value = values_at(&row->data->v, row->value++, &len);
    return parquet_convert(c, value, len, dst) ? 0 : -EBADMSG;
}

static int rows_array(struct rows_list *row)
{
    const struct parquet_column *c = row->c;
    uint64_t n = row->end - row->level;
    int r = 0;

    for (uint64_t i = 0; i < n && r == 0; i++)
        r = rows_add_element(row, i);
    return r < 0                                                                  ? r
           : n % c->tail || (c->dim[0] != DIM_VARIES && n != c->dim[0] * c->tail) ? -EBADMSG
                                                                                  : 0;
}

/* Bytes one after another, or the size of each. */
static int rows_joined(struct rows_list *row)
{
    int r = 0;

    for (size_t i = row->level; i < row->end && r == 0; i++) {
        bool is_there = row->data->def[i] == row->leaf->max_def;
        const uint8_t *value = NULL;
        size_t len = 0;
        uint8_t size[8];

        if (is_there && values_is_bad(&row->data->v, row->value))
            return -EBADMSG;
        if (is_there)
            value = values_at(&row->data->v, row->value++, &len);
        store_le64(size, len);
        if (row->c->shown == SHOWN_SIZES)
            r = values_append_bytes(&row->made, size, sizeof(size));
        else
            r = values_append_bytes(&row->made, value, len);
    }
    return r;
}

/* Is the row a list of no elements? */
static bool rows_is_empty(const struct rows_list *row, unsigned repeated_def)
{
    return row->end - row->level == 1 && row->data->def[row->level] < repeated_def;
}

static int rows_add_list(struct rows_list *row, unsigned list_def, struct parquet_rows *ret)
{
    unsigned def = row->data->def[row->level];
    int r = 0;

    if (row->end - row->level == 1 && def < list_def)
        return parquet_rows_add_null(ret, 1);
    row->made.n = row->made.len = 0;
    if (!rows_is_empty(row, list_def + 1))
        r = row->c->shown == SHOWN_ARRAY ? rows_array(row) : rows_joined(row);
    else if (row->c->shown == SHOWN_ARRAY && row->c->dim[0] != DIM_VARIES && row->c->dim[0])
        r = -EBADMSG;
    if (r == 0)
        r = parquet_rows_add(ret, row->made.bytes, row->made.len);
    if (r == -EBADMSG)
        rows_blame(ret, "expected a list of its shape without nulls among integers, got another");
    return r == -EBADMSG ? parquet_rows_add_bad(ret, 1) : r;
}

/* The definition level of a list that is not null: the nodes from the column to the first that
 * repeats, without that. */
static unsigned rows_list_def(const struct parquet_node *node)
{
    while (node->repetition != NODE_REPEATED && node->n_children)
        node++;
    return node->max_def - 1;
}

static int rows_make_lists(const struct parquet_column *c, const struct page_data *data, size_t n,
                           const struct parquet_node *leaf, struct parquet_rows *ret)
{
    struct rows_list row = {.c = c, .data = data, .leaf = leaf};
    unsigned list_def = rows_list_def(c->node);
    int r = 0;

    row.made.width = c->shown == SHOWN_ARRAY ? c->width : 1;
    for (size_t i = 0; i < n && row.level < data->n && r == 0; i++) {
        size_t first = row.value;

        for (row.end = row.level + 1; row.end < data->n && data->rep[row.end];)
            row.end++;
        r = rows_add_list(&row, list_def, ret);
        row.value = first;
        for (; row.level < row.end; row.level++)
            row.value += data->def[row.level] == leaf->max_def;
    }
    values_release(&row.made);
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

static int rows_add_json(const struct parquet_column *c, struct json_leaf *leaf,
                         struct parquet_rows *ret)
{
    AUTO_TEXT struct text t = {0};
    const struct parquet_node *node = c->node;
    unsigned def = leaf->data->def ? leaf->data->def[leaf->level] : 0;
    bool is_null = def < node->max_def - (node->repetition == NODE_REPEATED);
    int r = parquet_json(node, leaf, c->leaf, &t);

    for (unsigned i = 0; i < c->n_leaves && r == 0; i++)
        if (leaf[i].level != leaf[i].end)
            r = -EBADMSG;
    if (r == 0)
        r = is_null ? parquet_rows_add_null(ret, 1) : parquet_rows_add(ret, t.data, t.len);
    if (r == -EBADMSG)
        rows_blame(ret, "expected columns of a group whose levels fit each other, and 1 GiB of "
                        "text in a row group at most, got others");
    return r == -EBADMSG ? parquet_rows_add_bad(ret, 1) : r;
}

/* Values are counted by the levels, so a row that fails does not move those behind it. */
static size_t rows_count_values(const struct json_leaf *leaf, unsigned max_def)
{
    size_t n = 0;

    for (size_t i = leaf->level; i < leaf->end; i++)
        n += !leaf->data->def || leaf->data->def[i] == max_def;
    return n;
}

static int rows_make_json(const struct parquet_column *c, const struct page_data *data,
                          const struct parquet_node *const *leaf_node, size_t n,
                          struct parquet_rows *ret)
{
    AUTO_FREE struct json_leaf *leaf = calloc(c->n_leaves + 1u, sizeof(*leaf));
    AUTO_FREE size_t *next = calloc(c->n_leaves + 1u, sizeof(*next));
    int r = leaf && next ? 0 : -ENOMEM;

    for (unsigned i = 0; i < c->n_leaves && r == 0; i++)
        leaf[i].data = &data[i];
    for (size_t row = 0; row < n && r == 0; row++) {
        for (unsigned i = 0; i < c->n_leaves; i++) {
            if (!rows_next_json(&leaf[i]))
                return 0;
            leaf[i].value = next[i];
            next[i] += rows_count_values(&leaf[i], leaf_node[i]->max_def);
        }
        r = rows_add_json(c, leaf, ret);
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

int parquet_rows_make(const struct parquet_column *column, const struct page_data *data, size_t n,
                      bool is_cut, struct parquet_rows *ret)
{
    AUTO_FREE const struct parquet_node **leaf = NULL;
    size_t have = parquet_count_rows(data), good;
    int r = rows_leaves(column, &leaf);

    parquet_rows_release(ret);
    ret->v.width = column->shown == SHOWN_NUMBER ? column->width : 0;
    good = have < n ? have : n;
    for (unsigned i = 0; is_cut && i < column->n_leaves; i++) {
        size_t rows = parquet_count_rows(&data[i]);

        if (data[i].rep && good >= rows) /* its last row may lack what follows */
            good = rows ? rows - 1 : 0;
    }
    if (r == 0 && data->rep && data->n && data->rep[0]) {
        rows_blame(ret, "expected a page that begins with a row, got one that begins inside");
        good = 0;
    }
    if (r < 0)
        return r;
    if (column->shown == SHOWN_NUMBER)
        r = rows_make_numbers(column, data, good, ret);
    else if (column->shown == SHOWN_BYTES)
        r = rows_make_bytes(column, data, good, ret);
    else if (column->shown == SHOWN_JSON)
        r = rows_make_json(column, data, leaf, good, ret);
    else
        r = rows_make_lists(column, data, good, leaf[column->leaf - column->node->leaf], ret);
    return r == 0 && ret->n < n ? parquet_rows_add_bad(ret, n - ret->n) : r;
}
