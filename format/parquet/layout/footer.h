/* The footer of a file of Parquet (parquet.thrift of parquet-format): its schema, its row groups,
 * and where the chunks of columns are. It is read as a stream, and every number is checked: chunks
 * lie between the magic and the footer, and have the values of their rows. */
#ifndef EPOCHFS_FORMAT_PARQUET_LAYOUT_FOOTER_H
#define EPOCHFS_FORMAT_PARQUET_LAYOUT_FOOTER_H

#include "base/blob.h"
#include "base/text.h"
#include "format/core/dtype.h"
#include "format/parquet/decode/page.h"

#define PARQUET_MAGIC           4
#define PARQUET_TAIL            8 /* bytes: length of the footer, and the magic */
#define PARQUET_TAIL_READ       (UINT32_C(64) << 10)
#define PARQUET_FOOTER_MAX      (UINT32_C(256) << 20)
#define PARQUET_DEPTH_MAX       64
#define PARQUET_LEAVES_MAX      65536
#define PARQUET_HUGGINGFACE_MAX (UINT32_C(1) << 20) /* bytes of its JSON that are parsed */
#define PARQUET_GROUPS_MAX      (1u << 20)
#ifndef PARQUET_ROWS_MAX
#define PARQUET_ROWS_MAX (UINT64_C(1) << 31) /* of a file, */
#endif
#define PARQUET_ROWS_OF_BYTE  (UINT64_C(1) << 16) /* and for each of its bytes */
#define PARQUET_NULLS_UNKNOWN UINT64_MAX

enum parquet_repetition { NODE_REQUIRED, NODE_OPTIONAL, NODE_REPEATED };

/* What the values of a node mean. */
enum parquet_logical {
    LOGICAL_NONE,
    LOGICAL_STRING, /* and enumerations */
    LOGICAL_MAP,
    LOGICAL_LIST,
    LOGICAL_DECIMAL,
    LOGICAL_DATE,
    LOGICAL_TIME,
    LOGICAL_TIMESTAMP,
    LOGICAL_INTEGER,
    LOGICAL_NULL,
    LOGICAL_JSON,
    LOGICAL_UUID,
    LOGICAL_FLOAT16,
    LOGICAL_VARIANT,
    LOGICAL_INTERVAL,
    LOGICAL_OTHER, /* one that is not known, or not of its type */
};

/* How a value of a leaf becomes what is shown. */
enum parquet_convert {
    CONVERT_COPY,
    CONVERT_NARROW, /* an INT32 of a smaller type */
    CONVERT_INT96,
    CONVERT_DECIMAL, /* to float64 */
    CONVERT_DECIMAL_TEXT,
    CONVERT_UUID,
};

struct parquet_node {
    char *name; /* owned; may have any bytes but NUL */
    int type;   /* enum parquet_type; -1: a group */
    int64_t type_length;
    enum parquet_repetition repetition;
    enum parquet_logical logical;
    char unit[4]; /* of times: "ms", "us", "ns", "day" */
    bool utc;
    unsigned bits, scale, precision; /* of integers; of decimals */
    bool is_signed;
    enum parquet_convert convert; /* of a leaf: what it shows, */
    enum dtype dtype;             /* which is numbers of that type, */
    uint32_t width;               /* of so many bytes; 0: text or bytes */
    unsigned n_children;
    unsigned size; /* nodes of its subtree, with itself; the first child follows it */
    unsigned leaf; /* the first leaf of the subtree */
    unsigned n_leaves;
    unsigned max_def, max_rep;
};

struct parquet_chunk {
    uint64_t start, end; /* bytes of the file; both 0: it is encrypted */
    uint64_t values;     /* with nulls */
    uint64_t unpacked;   /* bytes of all pages */
    uint64_t nulls;      /* as the statistics say; PARQUET_NULLS_UNKNOWN */
    uint64_t encodings;  /* a bit for each; what the footer says, so no proof */
    uint8_t codec;
};

struct parquet_group {
    uint64_t row, rows; /* its first row */
};

struct parquet_footer {
    struct parquet_node *node; /* [n_nodes] depth first, the root first */
    unsigned n_nodes;
    unsigned *leaf; /* [n_leaves] numbers of nodes */
    unsigned n_leaves;
    struct parquet_group *group; /* [n_groups] */
    unsigned n_groups;
    struct parquet_chunk *chunk; /* [n_groups][n_leaves] */
    uint64_t rows;
    uint64_t said_rows; /* by the file as a whole */
    uint64_t at;        /* the byte that the footer begins with */
    char *huggingface;  /* the value of that key: JSON, or more than its most; NULL: none */
    char *writer;       /* created_by; NULL: not said */
};

/* Read it. 0, or -errno with the reason in d. The caller releases *ret, also on error. */
int parquet_footer_read(struct blob *blob, struct parquet_footer *ret, struct diag *d);
void parquet_footer_release(struct parquet_footer *footer);

static inline const struct parquet_chunk *parquet_chunk_at(const struct parquet_footer *footer,
                                                           unsigned group, unsigned leaf)
{
    return &footer->chunk[(size_t)group * footer->n_leaves + leaf];
}

/* ---- the parts of it ---- */

struct thrift;

/* Read the schema, a list of n elements, and complete its tree. 0, -ENOMEM; or -EBADMSG with the
 * reason in d, or in the thrift's fault. */
int parquet_schema_read(struct thrift *t, uint32_t n, struct parquet_footer *footer,
                        struct diag *d);

#endif
