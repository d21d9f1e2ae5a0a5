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

/* A number as it is shown. */
static void json_number(struct text *t, const struct parquet_node *node, const uint8_t *v)
{
    if (node->logical == LOGICAL_INTERVAL)
        text_add(t, "[%u, %u, %u]", load_le32(v), load_le32(v + 4), load_le32(v + 8));
    else if (node->dtype == DTYPE_BOOL)
        text_add(t, "%s", *v ? "true" : "false");
    else if (dtype_info(node->dtype)->letter == 'f')
        node_real(t, dtype_real(node->dtype, v), node->dtype == DTYPE_F8);
    else if (node->dtype == DTYPE_U8)
        text_add(t, "%llu", (unsigned long long)load_le64(v));
    else
        text_add(t, "%lld", (long long)dtype_integer(node->dtype, false, v));
}

static int json_value(const struct parquet_node *node, const uint8_t *value, size_t len,
                      struct text *t)
{
    uint8_t shown[16];
    int r = 0;

    if (node->convert == CONVERT_DECIMAL_TEXT || node->convert == CONVERT_UUID) {
        text_add(t, "\"");
        r = parquet_convert_text(node, node->convert, value, len, t);
        text_add(t, "\"");
    } else if (node->logical == LOGICAL_STRING || node->logical == LOGICAL_JSON) {
        text_add_json_bytes(t, value, len);
    } else if (!node->width || node->width > sizeof(shown) || parquet_is_raw(node)) {
        json_base64(t, value, len);
    } else if (parquet_convert(node, value, len, shown)) {
        json_number(t, node, shown);
    } else {
        r = -EBADMSG;
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

static int json_node(const struct json_row *row, const struct parquet_node *node, bool is_element);

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
        r = json_node(row, child, false);
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
    r = is_object && json_def(row, key) < key->max_def ? -EBADMSG : json_node(row, key, false);
    if (r < 0 || entry->n_children < 2)
        return r;
    text_add(row->t, is_object ? ": " : ", ");
    r = json_node(row, key + key->size, false);
    text_add(row->t, "%s", is_object ? "" : "]");
    return r;
}

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
        r = is_map ? json_entry(row, repeated) : json_node(row, element, element == repeated);
        if (r == 0 && !json_more(row, repeated, repeated->max_rep, &more))
            r = -EBADMSG;
        if (row->t->len > JSON_MAX)
            r = -EBADMSG;
    }
    text_add(row->t, is_object ? "}" : "]");
    return r;
}

/* is_element: it repeats, and this is one time. */
static int json_node(const struct json_row *row, const struct parquet_node *node, bool is_element)
{
    const struct parquet_leaf *leaf = json_leaf_of(row, node);
    const struct parquet_node *repeated, *element;

    if (leaf->level >= leaf->end)
        return -EBADMSG;
    if (node->repetition == NODE_REPEATED && !is_element)
        return json_repeat(row, node, node, false);
    if (node->repetition == NODE_OPTIONAL && json_def(row, node) < node->max_def) {
        text_add(row->t, "null");
        return json_pass(row, node, node->max_def);
    }
    if (node->type >= 0)
        return json_leaf_value(row, node);
    if (node->logical == LOGICAL_MAP && node->n_children == 1 &&
        node[1].repetition == NODE_REPEATED && node[1].n_children)
        return json_repeat(row, &node[1], NULL, true);
    element = parquet_list_element(node, &repeated);
    return element ? json_repeat(row, repeated, element, false) : json_struct(row, node);
}

int parquet_json(const struct parquet_node *node, struct parquet_leaf *leaf, unsigned first_leaf,
                 struct text *t)
{
    const struct json_row row = {leaf, first_leaf, t};
    int r = json_node(&row, node, false);

    return t->failed ? -ENOMEM : r;
}
