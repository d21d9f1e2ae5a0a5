/* Lists, maps and structs as JSON, from the levels of their leaves: the algorithm of the Dremel
 * paper, for one row at a time. */
#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"
#include "format/parquet/file.h"

#define JSON_MAX ((size_t)VALUES_BYTES_MAX)

struct json_row {
    struct parquet_leaf *leaf; /* of the column */
    unsigned first;            /* the number of its first leaf */
    struct text *t;
};

/* ---- values ---- */

static void json_base64(struct text *t, const uint8_t *s, size_t len)
{
    unsigned char coded[4 * 256 + 1];

    text_add_bytes(t, "\"", 1);
    for (size_t n; len; s += n, len -= n) {
        n = (size_t)min_u64(len, 3 * 256);
        text_add_bytes(t, (char *)coded, (size_t)EVP_EncodeBlock(coded, s, (int)n));
    }
    text_add_bytes(t, "\"", 1);
}

/* The shortest digits that read back: as float32 if it was one. */
static void node_real(struct text *t, double v, bool is_double)
{
    char s[40];
    int digits = is_double ? 15 : 6, most = is_double ? 17 : 9;

    if (isnan(v) || isinf(v)) {
        text_add(t, "%s", isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (; digits <= most; digits++) {
        snprintf(s, sizeof(s), "%.*g", digits, v);
        if (is_double ? strtod(s, NULL) == v : strtof(s, NULL) == (float)v)
            break;
    }
    text_add(t, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
}

static void node_integer(struct text *t, enum dtype dtype, const uint8_t *value)
{
    if (dtype == DTYPE_U8)
        text_add(t, "%llu", (unsigned long long)load_le64(value));
    else
        text_add(t, "%lld", (long long)dtype_integer(dtype, false, value));
}

static int json_number(const struct parquet_node *node, enum parquet_convert convert,
                       enum dtype dtype, uint32_t width, const uint8_t *value, size_t len,
                       struct text *t)
{
    const struct parquet_column column = {
        .convert = convert, .dtype = dtype, .width = width, .node = node, .value = node};
    uint8_t shown[16];

    if (width > sizeof(shown) || parquet_is_raw(node, dtype)) {
        json_base64(t, value, len);
        return 0;
    }
    if (!parquet_convert(&column, value, len, shown))
        return -EBADMSG;
    if (node->logical == LOGICAL_INTERVAL)
        text_add(t, "[%u, %u, %u]", load_le32(value), load_le32(value + 4), load_le32(value + 8));
    else if (dtype == DTYPE_BOOL)
        text_add(t, "%s", *shown ? "true" : "false");
    else if (dtype == DTYPE_F4 || dtype == DTYPE_F8 || dtype == DTYPE_F2)
        node_real(t, dtype_real(dtype, shown), dtype == DTYPE_F8);
    else
        node_integer(t, dtype, shown);
    return 0;
}

static int json_value(const struct parquet_node *node, const uint8_t *value, size_t len,
                      struct text *t)
{
    enum dtype dtype;
    uint32_t width;
    enum parquet_convert convert = parquet_convert_for(node, &dtype, &width);
    int r = 0;

    if (width)
        return json_number(node, convert, dtype, width, value, len, t);
    if (convert == CONVERT_DECIMAL_TEXT || convert == CONVERT_UUID) {
        text_add(t, "\"");
        r = parquet_convert_text(node, convert, value, len, t);
        text_add(t, "\"");
    } else if (node->logical == LOGICAL_STRING || node->logical == LOGICAL_JSON) {
        text_add_json_bytes(t, value, len);
    } else {
        json_base64(t, value, len);
    }
    return r;
}

/* ---- the tree ---- */

static struct parquet_leaf *json_leaf_of(const struct json_row *row,
                                         const struct parquet_node *node)
{
    return &row->leaf[node->leaf - row->first];
}

/* The levels of the node's first leaf. */
static unsigned json_def(const struct json_row *row, const struct parquet_node *node)
{
    const struct parquet_leaf *leaf = json_leaf_of(row, node);

    return leaf->data->def ? leaf->data->def[leaf->level] : 0;
}

/* Does each leaf of the node have another level, of that repetition? *ret: the first has. false:
 * they differ. */
static bool json_more(const struct json_row *row, const struct parquet_node *node, unsigned rep,
                      bool *ret)
{
    for (unsigned i = 0; i < node->n_leaves; i++) {
        const struct parquet_leaf *leaf = json_leaf_of(row, node) + i;
        bool more = leaf->level < leaf->end && leaf->data->rep[leaf->level] == rep;

        if (i && more != *ret)
            return false;
        *ret = more;
    }
    return true;
}

/* A null, or an empty list: each leaf has a level that says so. */
static int json_pass(const struct json_row *row, const struct parquet_node *node, unsigned below)
{
    for (unsigned i = 0; i < node->n_leaves; i++) {
        struct parquet_leaf *leaf = json_leaf_of(row, node) + i;

        if (leaf->level >= leaf->end || !leaf->data->def || leaf->data->def[leaf->level] >= below)
            return -EBADMSG;
        leaf->level++;
    }
    return 0;
}

static int json_node(const struct json_row *row, const struct parquet_node *node);

static int json_leaf_value(const struct json_row *row, const struct parquet_node *node)
{
    struct parquet_leaf *leaf = json_leaf_of(row, node);
    const struct values *v = &leaf->data->v;
    size_t len, at = leaf->value++;
    const uint8_t *value;

    leaf->level++;
    if (at >= v->n || values_mark(v, at))
        return -EBADMSG;
    value = values_at(v, at, &len);
    return json_value(node, value, len, row->t);
}

static int json_struct(const struct json_row *row, const struct parquet_node *node)
{
    const struct parquet_node *child = node + 1;
    int r = 0;

    text_add(row->t, "{");
    for (unsigned i = 0; i < node->n_children && r == 0; i++, child += child->size) {
        text_add(row->t, "%s", i ? ", " : "");
        text_add_json(row->t, child->name);
        text_add(row->t, ": ");
        r = json_node(row, child);
    }
    text_add(row->t, "}");
    return r;
}

/* A map has keys, and values behind them; keys that are text make an object. */
static bool node_is_object(const struct parquet_node *entry)
{
    return entry->n_children == 2 && entry[1].logical == LOGICAL_STRING;
}

static int json_entry(const struct json_row *row, const struct parquet_node *entry)
{
    const struct parquet_node *key = entry + 1;
    bool is_object = node_is_object(entry);
    int r;

    text_add(row->t, "%s", is_object || entry->n_children < 2 ? "" : "[");
    r = is_object && json_def(row, key) < key->max_def ? -EBADMSG : json_node(row, key);
    if (r < 0 || entry->n_children < 2)
        return r;
    text_add(row->t, is_object ? ": " : ", ");
    r = json_node(row, key + key->size);
    text_add(row->t, "%s", is_object ? "" : "]");
    return r;
}

static int json_content(const struct json_row *row, const struct parquet_node *node);

/* The values of a repeated node; element: what repeats, in it. */
static int json_repeat(const struct json_row *row, const struct parquet_node *repeated,
                       const struct parquet_node *element, bool is_map)
{
    bool is_object = is_map && node_is_object(repeated), more = true;
    int r = 0;

    text_add(row->t, is_object ? "{" : "[");
    if (json_def(row, repeated) < repeated->max_def) {
        r = json_pass(row, repeated, repeated->max_def);
        more = false;
    }
    for (unsigned i = 0; more && r == 0; i++) {
        text_add(row->t, "%s", i ? ", " : "");
        r = is_map                ? json_entry(row, repeated)
            : element == repeated ? json_content(row, element)
                                  : json_node(row, element);
        if (r == 0 && !json_more(row, repeated, repeated->max_rep, &more))
            r = -EBADMSG;
        if (row->t->len > JSON_MAX)
            r = -EBADMSG;
    }
    text_add(row->t, is_object ? "}" : "]");
    return r;
}

static int json_content(const struct json_row *row, const struct parquet_node *node)
{
    const struct parquet_node *repeated, *element;

    if (node->type >= 0)
        return json_leaf_value(row, node);
    if (node->logical == LOGICAL_MAP && node->n_children == 1 &&
        node[1].repetition == NODE_REPEATED && node[1].n_children)
        return json_repeat(row, &node[1], NULL, true);
    element = parquet_list_element(node, &repeated);
    return element ? json_repeat(row, repeated, element, false) : json_struct(row, node);
}

static int json_node(const struct json_row *row, const struct parquet_node *node)
{
    const struct parquet_leaf *leaf = json_leaf_of(row, node);

    if (leaf->level >= leaf->end)
        return -EBADMSG;
    if (node->repetition == NODE_REPEATED)
        return json_repeat(row, node, node, false);
    if (node->repetition == NODE_OPTIONAL && json_def(row, node) < node->max_def) {
        text_add(row->t, "null");
        return json_pass(row, node, node->max_def);
    }
    return json_content(row, node);
}

int parquet_json(const struct parquet_node *node, struct parquet_leaf *leaf, unsigned first_leaf,
                 struct text *t)
{
    const struct json_row row = {leaf, first_leaf, t};
    int r = json_node(&row, node);

    return t->failed ? -ENOMEM : r;
}
