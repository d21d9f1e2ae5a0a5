/* A file of Parquet, opened: its footer, what its columns show, and where their rows are.
 *
 * A column of a file is decoded by *units*: some pages that follow each other and begin with a row,
 * of a row group. What differs from row to row in size is found by one pass, which is kept as the
 * index: for each row of such a column its state. Where bytes lie in the file as they are, the
 * index also has their place, and they are read there. */
#ifndef EPOCHFS_FORMAT_PARQUET_FILE_H
#define EPOCHFS_FORMAT_PARQUET_FILE_H

#include "base/json.h"
#include "base/memo.h"
#include "format/index/pass_window.h"
#include "format/parquet/decode/page.h"
#include "format/parquet/layout/footer.h"
#include "format/records/bytes_format.h"
#include "format/records/record_set.h"

/* States of a row in the index. */
enum {
    STATE_NULL,
    STATE_BAD,
    STATE_SIZE
}; /* and STATE_SIZE + n: it has n bytes, or elements of
      the first axis */

#define NO_SLOT UINT_MAX

enum parquet_shown {
    SHOWN_NUMBER, /* a number, or some: of one size in each row */
    SHOWN_BYTES,  /* bytes, or text */
    SHOWN_ARRAY,  /* a list of numbers, or lists of lists of one shape */
    SHOWN_JOINED, /* a list of bytes: one after another, */
    SHOWN_SIZES,  /* and how many each has */
    SHOWN_JSON,   /* anything else, as JSON */
};

/* What a null of a number shows. */
enum parquet_null { NULL_HOLE, NULL_NAN, NULL_MINUS_ONE };

struct parquet_column {
    enum parquet_shown shown;
    enum parquet_convert convert;
    enum parquet_null null;
    const struct parquet_node *node;  /* what is shown: a leaf, or a group with several */
    const struct parquet_node *value; /* the leaf that is converted, if there is one leaf */
    unsigned leaf, n_leaves;
    struct record_column as; /* without its name; of SHOWN_ARRAY, the first axis may vary, */
    uint64_t tail;           /* and these are the elements of the others */
    uint32_t width;          /* bytes of a number as it is shown; of SHOWN_NUMBER all of a row */
    unsigned state, place;   /* slots of the index; NO_SLOT: it has none */
    unsigned path_of; /* 1 + the column of the bytes that its value is the path of; 0: none */
    char name[RECORD_NAME_MAX + 1];
    const json_t *classes; /* names of its numbers; NULL: none */
    /* Found by the pass: */
    bool has_null;
    bool has_unknown;           /* pages of a type that is not known */
    uint64_t bytes_format;      /* of bytes: see parquet_bytes_format(); of the first value */
    uint64_t elsewhere;         /* of a path: rows that have one, but no bytes */
    uint64_t faults;            /* rows that cannot be read, and why the first cannot: */
    char *fault;                /* owned; NULL: not known */
    uint64_t odd_rows, odd_row; /* found by the check: how many, and the first */
    const char *odd;            /* what is wrong with its value */
    /* [n_units] owned; each ends where the next begins, or its row group does. */
    struct parquet_unit {
        uint64_t at, row; /* byte of the file; row of the file */
    } * unit;
    uint64_t n_units;
};

struct parquet_file {
    struct record_file base;
    struct memo *memo; /* NULL: none */
    struct pool *pool;
    struct parquet_footer footer;
    json_t *features;              /* owned; of the Hub's metadata; NULL: none */
    struct parquet_column *column; /* [n_columns] owned */
    unsigned n_columns, n_slots;
    struct text notes;         /* lines for people: what is ignored */
    struct parquet_pass *pass; /* while it is made */
};

/* What the index has of a row of a column: its state, and the byte of the file where its bytes are
 * as they are; 0: they are packed. */
static inline uint64_t parquet_state(const struct parquet_file *file,
                                     const struct parquet_column *c, uint64_t row)
{
    return c->state == NO_SLOT ? STATE_SIZE
                               : index_number(&file->base.prepared.index, row, c->state);
}

static inline uint64_t parquet_place(const struct parquet_file *file,
                                     const struct parquet_column *c, uint64_t row)
{
    return c->place == NO_SLOT ? 0 : index_number(&file->base.prepared.index, row, c->place);
}

/* ---- columns.c: what columns show ---- */

/* Make the columns from the footer. 0, -ENOMEM; or -EBADMSG with the reason in d: there is none
 * that can be shown. */
int parquet_columns_make(struct parquet_file *file, struct diag *d);

/* Set what records show, once the pass is over. 0 or -ENOMEM. */
int parquet_columns_ready(struct parquet_file *file);

/* The kind of bytes by their head, 1 to PARQUET_BYTES_FORMATS. */
#define PARQUET_BYTES_FORMATS (N_BYTES_FORMATS + 4)
unsigned parquet_bytes_format(const uint8_t *head, size_t len);

/* Is the list of that node, a group, one by its annotation or shape? Then its element. NULL: no.
 * *ret_repeated: the node that repeats. */
const struct parquet_node *parquet_list_element(const struct parquet_node *node,
                                                const struct parquet_node **ret_repeated);

/* ---- hub.c: what the Hub's `datasets` says of columns ---- */

/* Read the metadata, if there is some; notes say what is wrong with it. 0 or -ENOMEM. */
int parquet_hub_read(struct parquet_file *file);
/* The names of classes of a feature, or NULL; the shape of its arrays, false: it has none that fits
 * ndim axes. */
const json_t *parquet_hub_classes(const json_t *feature);
bool parquet_hub_shape(const json_t *feature, unsigned ndim, uint64_t ret[static RECORD_AXES]);

/* ---- convert.c ---- */

/* Are its values bytes of FIXED without a meaning? */
static inline bool parquet_is_raw(const struct parquet_node *node)
{
    return node->type == TYPE_FIXED && node->dtype == DTYPE_U1;
}

/* Write a value of a leaf as it is shown, of node->width bytes. false: it is none. */
bool parquet_convert(const struct parquet_node *node, const uint8_t *value, size_t len,
                     uint8_t *dst);
/* The same of what is shown as text: append it. 0, -EBADMSG or -ENOMEM. */
int parquet_convert_text(const struct parquet_node *node, enum parquet_convert convert,
                         const uint8_t *value, size_t len, struct text *t);

/* ---- rows.c: rows of a column ---- */

/* Make n rows, or as many as there are, from the pages of each leaf of a column; the last is bad
 * with is_cut. ret starts as {0}; its marks are those of the rows. why: the first fault, which is
 * no error; set: a fault of the pages. It may take the values of data. 0 or -ENOMEM. */
int parquet_rows_make(const struct parquet_column *column, struct page_data *data, size_t n,
                      bool is_cut, struct values *ret, struct diag *why);
/* Rows that the pages of a leaf begin. */
size_t parquet_count_rows(const struct page_data *data);

/* ---- json.c ---- */

/* A leaf of a row: its levels [level, end), whose values begin with one. */
struct parquet_leaf {
    const struct page_data *data;
    const struct parquet_node *node;
    size_t level, end, value;
    size_t next; /* the first value of the next row */
};

/* Add the node's next value as JSON. leaf: those of the column, whose first is number first_leaf.
 * 0, -EBADMSG: the leaves do not fit each other; or -ENOMEM. */
int parquet_json(const struct parquet_node *node, struct parquet_leaf *leaf, unsigned first_leaf,
                 struct text *t);

/* ---- pages.c: the pages of a chunk ---- */

#define PARQUET_UNIT_VALUES (UINT64_C(1) << 20) /* with nulls: a unit of so many is full */
#define PARQUET_AT_ONCE     (PAGE_BYTES_MAX + PAGE_HEADER_MAX) /* bytes that are read at once */
#define PARQUET_UNIT_BYTES  (UINT64_C(64) << 10) /* of values, at least, except the last unit */

/* Memory of a walk, which the next one gets. */
struct parquet_memory {
    struct pass_window window; /* of packed pages, */
    struct values_memory room; /* and of one unpacked */
};

struct parquet_walk {
    const struct parquet_file *file;
    const struct parquet_chunk *chunk;
    unsigned group, leaf;
    bool has_places; /* values may lie in the file as they are */
    struct page_column column;
    struct parquet_memory *memory;
    uint64_t at, end;              /* the next page, or the body of this one; behind the last */
    uint64_t left;                 /* values that the chunk has from there on, at most */
    struct memo_thing *dictionary; /* struct values, once it was asked for */
    bool is_over;                  /* what follows cannot be read, */
    bool is_spoilt;                /* nor can what was before */
    bool is_cut;                   /* rows lack what follows */
    bool has_unknown;              /* pages of a type that is not known were skipped */
    uint64_t lost;                 /* values of the page that could not be read */
    bool has_page;                 /* it is at a data page: */
    uint64_t page_at;              /* its first byte */
    struct page_header header;
    uint64_t unit_at; /* the first byte of what a unit is made of */
};

/* Walk through bytes [at, end) of a chunk. rc may be READ_WAITS. 0 or -ENOMEM. */
int parquet_walk_init(struct parquet_walk *walk, const struct parquet_file *file, unsigned group,
                      unsigned leaf, uint64_t at, uint64_t end, struct read_context *rc);
void parquet_walk_release(struct parquet_walk *walk); /* of one that starts as {0} as well */
#define AUTO_WALK AUTO(parquet_walk_release)

/* Go to the next data page, if it is at none; at is its body then. 1; 0: there is none; -EBADMSG
 * with the reason in d: the rest cannot be read (is_over); or another -errno. */
int parquet_walk_page(struct parquet_walk *walk, struct diag *d);
/* Go behind that page. */
void parquet_walk_skip(struct parquet_walk *walk);
/* Bytes [at, at + len) of its body; or of what is next, if it is at none. */
int parquet_walk_bytes(struct parquet_walk *walk, uint64_t at, uint64_t len, const uint8_t **ret,
                       struct diag *d);
/* Are its values in the file as they are? Not with a checksum: such a page is read whole. */
bool parquet_walk_in_place(const struct parquet_walk *walk);
/* The value of len bytes that follows `at` bytes of values and their lengths in the page, of a flat
 * column of bytes in Snappy, without the rest of the page. Valid until the next call. 0; -ENODATA:
 * only all of the page says what it is; or another -errno. */
int parquet_walk_value(struct parquet_walk *walk, uint64_t at, uint64_t len, const uint8_t **ret);
/* Append data pages to ret: all, or, with splits, those of a unit. Values that cannot be read are
 * bad in flat columns; in others, what follows is lacking (is_cut). d has the first fault, which is
 * no error. The unit begins at unit_at, and has the first *ret_n levels. 0; 1: others follow, the
 * first of them from page_at on; *ret_n = 0: a page in place; or another -errno. */
int parquet_walk_unit(struct parquet_walk *walk, bool splits, struct page_data *ret, size_t *ret_n,
                      struct diag *d);

/* ---- units.c ---- */

/* A unit, or what is read as one. */
struct parquet_span {
    const struct parquet_file *file;
    const struct parquet_column *column;
    unsigned group;
    uint64_t row, rows;  /* of the file */
    struct extent bytes; /* of a column of one leaf; of others, chunks are read whole */
};

/* The unit that has a cell. */
void parquet_unit_find(const struct record_cell *cell, struct parquet_span *ret);

/* Make its rows. ret is empty, and its memory is used. 0, or -errno; why: the reason, or the first
 * fault of the rows. */
int parquet_read_rows(struct read_context *rc, const struct parquet_span *place, struct values *ret,
                      struct diag *why);

/* The rows of the unit that a cell is in, as parquet_rows_make() makes them, and the fault as their
 * text: see values_pack(). They are remembered. Or that row alone, if only that was made.
 * *ret_first: the first row. thing: to let go. 0, or -errno with the reason in d. */
int parquet_unit_get(struct read_context *rc, const struct record_cell *cell,
                     const struct values **ret, uint64_t *ret_first, struct memo_thing **ret_thing,
                     struct diag *d);
/* Make those cells, so that reads of them are cheap: see struct record_format. */
int parquet_rows_together(struct read_context *rc, const struct record_cell *cell, unsigned n,
                          unsigned n_needed);
/* Is it made, in place, or none? */
bool parquet_is_made(const struct record_cell *cell);

/* ---- check.c: see check() and checked() of struct record_format ---- */

int parquet_check(void *file, struct diag *d);
void parquet_checked(const void *file, struct text *t);

extern const struct record_file_ops parquet_file_ops; /* pass.c */
extern const struct format format_parquet;

#endif
