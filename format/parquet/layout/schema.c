/* The schema of a footer: parquet.thrift and LogicalTypes.md of parquet-format. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/scope.h"
#include "format/parquet/decode/thrift.h"
#include "format/parquet/layout/footer.h"

#define EXACT_DIGITS 15 /* of a decimal that float64 has */

/* What an element of the schema says, before it is understood; -1: it does not say it. */
struct element {
    int64_t type, length, repetition, children, converted, scale, precision;
    struct thrift_bytes name;
    int64_t logical;      /* the member of the union that is set */
    int64_t parameter[3]; /* the numbers of that member, by id; 0: it does not say it */
    int64_t unit;         /* of times: 1 ms, 2 us, 3 ns */
};

#define RULE(...) THRIFT_RULE(struct element, __VA_ARGS__)

static int schema_read_element(struct thrift *t, struct element *e, struct parquet_node *node)
{
    static const struct thrift_rule member[] = {RULE(1, THRIFT_NUMBER, parameter[1]),
                                                RULE(2, THRIFT_NUMBER, parameter[2]),
                                                RULE(2, THRIFT_UNION, unit),
                                                {0}};
    static const struct thrift_rule rules[] = {RULE(1, THRIFT_NUMBER, type),
                                               RULE(2, THRIFT_NUMBER, length),
                                               RULE(3, THRIFT_NUMBER, repetition),
                                               RULE(4, THRIFT_BYTES, name),
                                               RULE(5, THRIFT_NUMBER, children),
                                               RULE(6, THRIFT_NUMBER, converted),
                                               RULE(7, THRIFT_NUMBER, scale),
                                               RULE(8, THRIFT_NUMBER, precision),
                                               RULE(10, THRIFT_UNION, logical, .rules = member),
                                               {0}};
    int r;

    *e = (struct element){-1, -1, -1, -1, -1, -1, -1, .logical = -1};
    r = thrift_read(t, rules, e);
    node->name = strndup(e->name.at ? (const char *)e->name.at : "", e->name.len);
    return node->name ? r : -ENOMEM;
}

/* ---- what it means ---- */

/* By the number of the union's member, and of the older converted types. */
static const uint8_t logical_types[] = {
    [0] = LOGICAL_OTHER,     [1] = LOGICAL_STRING,  [2] = LOGICAL_MAP,      [3] = LOGICAL_LIST,
    [4] = LOGICAL_STRING,    [5] = LOGICAL_DECIMAL, [6] = LOGICAL_DATE,     [7] = LOGICAL_TIME,
    [8] = LOGICAL_TIMESTAMP, [9] = LOGICAL_OTHER,   [10] = LOGICAL_INTEGER, [11] = LOGICAL_NULL,
    [12] = LOGICAL_JSON,     [13] = LOGICAL_NONE,   [14] = LOGICAL_UUID,    [15] = LOGICAL_FLOAT16,
    [16] = LOGICAL_VARIANT,  [17] = LOGICAL_NONE,   [18] = LOGICAL_NONE,
};
static const struct converted {
    uint8_t logical;
    uint8_t unit, bits;
    bool is_signed;
} converted_types[] = {
    {LOGICAL_STRING, 0, 0, false},   {LOGICAL_MAP, 0, 0, false},
    {LOGICAL_MAP, 0, 0, false},      {LOGICAL_LIST, 0, 0, false},
    {LOGICAL_STRING, 0, 0, false},   {LOGICAL_DECIMAL, 0, 0, false},
    {LOGICAL_DATE, 0, 0, false},     {LOGICAL_TIME, 1, 0, true},
    {LOGICAL_TIME, 2, 0, true},      {LOGICAL_TIMESTAMP, 1, 0, true},
    {LOGICAL_TIMESTAMP, 2, 0, true}, {LOGICAL_INTEGER, 0, 8, false},
    {LOGICAL_INTEGER, 0, 16, false}, {LOGICAL_INTEGER, 0, 32, false},
    {LOGICAL_INTEGER, 0, 64, false}, {LOGICAL_INTEGER, 0, 8, true},
    {LOGICAL_INTEGER, 0, 16, true},  {LOGICAL_INTEGER, 0, 32, true},
    {LOGICAL_INTEGER, 0, 64, true},  {LOGICAL_JSON, 0, 0, false},
    {LOGICAL_NONE, 0, 0, false},     {LOGICAL_INTERVAL, 0, 0, false},
};

static void schema_understand(const struct element *e, struct parquet_node *node)
{
    static const char units[][4] = {"", "ms", "us", "ns"};
    int64_t unit = e->unit, scale = e->scale;
    int64_t precision = e->precision;
    int64_t converted = e->converted;

    node->is_signed = true;
    if (e->logical >= 0) {
        node->logical = e->logical < (int64_t)ARRAY_LEN(logical_types) ? logical_types[e->logical]
                                                                       : LOGICAL_OTHER;
        node->bits = (unsigned)e->parameter[1];
        node->is_signed = e->parameter[2] != 0;
        node->utc = e->parameter[1] != 0;
        scale = e->parameter[1];
        precision = e->parameter[2];
    } else if (converted >= 0 && converted < (int64_t)ARRAY_LEN(converted_types)) {
        node->logical = converted_types[converted].logical;
        unit = converted_types[converted].unit;
        node->bits = converted_types[converted].bits;
        node->is_signed = converted_types[converted].is_signed;
        node->utc = unit != 0;
    }
    node->scale = scale > 0 && scale < 1 << 20 ? (unsigned)scale : 0;
    node->precision = precision > 0 && precision < 1 << 20 ? (unsigned)precision : 0;
    snprintf(node->unit, sizeof(node->unit), "%s",
             node->logical == LOGICAL_DATE ? "day"
             : unit > 0 && unit < 4        ? units[unit]
                                           : "");
}

enum { /* bits */
       INT = 1 << TYPE_INT32,
       LONG = 1 << TYPE_INT64,
       BYTES = 1 << TYPE_BYTE_ARRAY,
       FIXED = 1 << TYPE_FIXED,
       ANY = 0xff
};

/* The types of leaves that may have a meaning; of FIXED the length, 0: any; and what it shows. */
static const struct meaning {
    uint8_t types, length, dtype, convert;
} meanings[] = {[LOGICAL_NONE] = {.types = ANY},
                [LOGICAL_STRING] = {.types = BYTES},
                [LOGICAL_DECIMAL] = {.types = INT | LONG | BYTES | FIXED,
                                     .dtype = DTYPE_F8,
                                     .convert = CONVERT_DECIMAL},
                [LOGICAL_DATE] = {.types = INT},
                [LOGICAL_TIME] = {.types = INT | LONG},
                [LOGICAL_TIMESTAMP] = {.types = LONG},
                [LOGICAL_INTEGER] = {.types = INT | LONG},
                [LOGICAL_NULL] = {.types = ANY},
                [LOGICAL_JSON] = {.types = BYTES},
                [LOGICAL_UUID] = {.types = FIXED, .length = 16, .convert = CONVERT_UUID},
                [LOGICAL_FLOAT16] = {.types = FIXED, .length = 2, .dtype = DTYPE_F2},
                [LOGICAL_INTERVAL] = {.types = FIXED, .length = 12, .dtype = DTYPE_U4},
                [LOGICAL_OTHER] = {.types = ANY}};

/* Does a leaf of that type have values of that meaning? If not, they are what the type says. */
static bool schema_fits(const struct parquet_node *node)
{
    const struct meaning *meaning = &meanings[node->logical];
    bool is_long = node->type == TYPE_INT64;

    if (!(meaning->types >> node->type & 1) ||
        (meaning->length && node->type_length != meaning->length))
        return false;
    switch (node->logical) {
    case LOGICAL_DECIMAL:
        return node->precision && node->scale <= node->precision && node->precision <= 1000;
    case LOGICAL_TIME:
    case LOGICAL_TIMESTAMP:
        return *node->unit &&
               (is_long == (node->unit[0] != 'm') || node->logical == LOGICAL_TIMESTAMP);
    case LOGICAL_INTEGER:
        return is_long ? node->bits == 64 : node->bits == 8 || node->bits == 16 || node->bits == 32;
    default:
        return true;
    }
}

/* Set what a leaf shows. */
static void schema_show(struct parquet_node *node)
{
    static const uint8_t plain[N_PARQUET_TYPES] = {
        [TYPE_BOOLEAN] = DTYPE_BOOL,  [TYPE_INT32] = DTYPE_I4, [TYPE_INT64] = DTYPE_I8,
        [TYPE_INT96] = DTYPE_I8,      [TYPE_FLOAT] = DTYPE_F4, [TYPE_DOUBLE] = DTYPE_F8,
        [TYPE_BYTE_ARRAY] = DTYPE_U1, [TYPE_FIXED] = DTYPE_U1};
    static const uint8_t integers[][2] = {[1] = {DTYPE_U1, DTYPE_I1},
                                          {DTYPE_U2, DTYPE_I2},
                                          [4] = {DTYPE_U4, DTYPE_I4},
                                          [8] = {DTYPE_U8, DTYPE_I8}};
    const struct meaning *meaning = &meanings[node->logical];

    node->dtype = node->logical == LOGICAL_INTEGER ? integers[node->bits / 8][node->is_signed]
                  : meaning->dtype                 ? meaning->dtype
                                                   : plain[node->type];
    node->convert = meaning->convert;
    if (node->logical == LOGICAL_INTEGER && node->bits < 32)
        node->convert = CONVERT_NARROW;
    else if (node->logical == LOGICAL_DECIMAL && node->precision > EXACT_DIGITS)
        node->convert = CONVERT_DECIMAL_TEXT;
    else if (node->type == TYPE_INT96)
        node->convert = CONVERT_INT96;
    if (node->convert == CONVERT_COPY)
        node->width = values_width((enum parquet_type)node->type, (uint32_t)node->type_length);
    else if (node->convert < CONVERT_DECIMAL_TEXT)
        node->width = dtype_info(node->dtype)->bytes;
}

static int schema_bad(unsigned i, const struct parquet_node *node, const char *what, struct diag *d)
{
    return diag_set(d, -EBADMSG, "schema element %u, '%.200s': expected %s, got another", i,
                    node->name, what);
}

static int schema_check(unsigned i, struct element *e, struct parquet_node *node, struct diag *d)
{
    int64_t type = e->type, children = e->children;
    int64_t repetition = e->repetition;

    if (children > 0 || i == 0)
        type = -1;
    else if (type < 0 || type >= N_PARQUET_TYPES)
        return schema_bad(i, node, "a type from 0 to 7", d);
    node->type = (int)type;
    node->type_length = e->length;
    if (type == TYPE_FIXED && (node->type_length <= 0 || node->type_length > PAGE_BYTES_MAX))
        return schema_bad(i, node, "a length above 0 and up to 256 MiB", d);
    if (repetition > NODE_REPEATED || (i && repetition < 0))
        return schema_bad(i, node, "a repetition from 0 to 2", d);
    node->repetition = i ? (enum parquet_repetition)repetition : NODE_REQUIRED;
    if (children > INT32_MAX)
        return schema_bad(i, node, "as many children as elements follow", d);
    node->n_children = children > 0 ? (unsigned)children : 0;
    schema_understand(e, node);
    if (type >= 0 && !schema_fits(node))
        node->logical = LOGICAL_OTHER;
    if (type >= 0)
        schema_show(node);
    return 0;
}

/* ---- the tree ---- */

/* Set what follows from the place in the tree of node *next, and of those below it, which follow;
 * *next goes behind them. */
static int schema_grow(struct parquet_footer *footer, const struct parquet_node *parent,
                       unsigned depth, unsigned *next, struct diag *d)
{
    unsigned i = (*next)++;
    struct parquet_node *node = &footer->node[i];
    int r = 0;

    if (depth > PARQUET_DEPTH_MAX)
        return schema_bad(i, node, "at most 64 levels of groups", d);
    node->max_def = parent->max_def + (node->repetition != NODE_REQUIRED);
    node->max_rep = parent->max_rep + (node->repetition == NODE_REPEATED);
    node->leaf = footer->n_leaves;
    if (node->type >= 0)
        footer->leaf[footer->n_leaves++] = i;
    if (footer->n_leaves > PARQUET_LEAVES_MAX)
        return schema_bad(i, node, "at most 65536 columns", d);
    for (unsigned k = 0; k < node->n_children && r == 0; k++)
        r = *next < footer->n_nodes
                ? schema_grow(footer, node, depth + 1, next, d)
                : diag_set(d, -EBADMSG,
                           "schema: expected as many elements as there are children, got %u",
                           footer->n_nodes);
    node->size = *next - i;
    node->n_leaves = footer->n_leaves - node->leaf;
    return r;
}

static int schema_grow_tree(struct parquet_footer *footer, struct diag *d)
{
    const struct parquet_node above = {0};
    unsigned next = 0;
    int r = footer->n_nodes ? schema_grow(footer, &above, 0, &next, d) : 0;

    return r == 0 && next < footer->n_nodes
               ? schema_bad(next - 1, &footer->node[next - 1], "children that are all elements", d)
               : r;
}

int parquet_schema_read(struct thrift *t, uint32_t n, struct parquet_footer *footer, struct diag *d)
{
    int r = footer->leaf ? diag_set(d, -EBADMSG, "schema: expected one, got two") : 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        struct element e;
        struct parquet_node *node;

        r = array_capacity(&footer->node, i, sizeof(*footer->node));
        if (r < 0)
            return r;
        node = &footer->node[footer->n_nodes++];
        *node = (struct parquet_node){0};
        r = schema_read_element(t, &e, node);
        if (r == 0)
            r = schema_check(i, &e, node, d);
    }
    if (r < 0)
        return r;
    footer->leaf = calloc(footer->n_nodes + 1u, sizeof(*footer->leaf));
    return footer->leaf ? schema_grow_tree(footer, d) : -ENOMEM;
}
