/* One line of libsvm text, or of LibFM text, whose features also have a field. docs/spec/tables.md
 * has the grammars, and where their readers disagree. */
#ifndef EPOCHFS_FORMAT_LIBSVM_LINE_H
#define EPOCHFS_FORMAT_LIBSVM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/core/decimal.h"
#include "format/text/lines.h"

struct libsvm_rounded;

#define LIBSVM_PAD       DECIMAL_PAD
#define LIBSVM_INDEX_MAX UINT32_MAX
#define LIBSVM_LINE_MAX  (UINT64_C(256) << 20) /* bytes of a row, at most */

/* What the fault of a longer row says. */
extern const char libsvm_too_long[];

/* What the rows of a file have besides label and features; all rows have it, or none. */
enum libsvm_columns {
    LIBSVM_WEIGHT = 1,
    LIBSVM_QID = 2,
    LIBSVM_ANY = 4,      /* not known yet: accept whatever the row has */
    LIBSVM_FROM_ONE = 8, /* and indexes, and fields, start at 1 */
    LIBSVM_VALUES = 32,  /* and features have values: none is an index alone */
    LIBSVM_FIELD = 16,   /* LibFM: features are field:index:value; one label, no qid */
    LIBSVM_BINARY = 64,  /* no text: the file is a DMatrix of XGBoost */
};

/* A parsed row. The caller owns the arrays: NULL, or with the capacity given. */
struct libsvm_row {
    /* In: */
    float *label;            /* the rest is filled with NaN */
    uint64_t label_capacity; /* labels beyond it are only counted */
    uint32_t *index;         /* as written */
    uint32_t *field;         /* the same, with LIBSVM_FIELD */
    float *value;
    uint64_t capacity;              /* features beyond it are only counted */
    struct libsvm_rounded *rounded; /* sees each number; NULL: nothing does */
    uint64_t at;                    /* for it: the line's byte in the file */
    /* Out: */
    uint64_t n_labels;
    uint64_t n; /* features */
    float weight;
    int64_t qid;
    unsigned columns;                /* LIBSVM_WEIGHT, LIBSVM_QID */
    uint32_t largest, largest_field; /* index, field; 0 without features */
    bool has_values;                 /* its features are index:value, not indexes alone */
    bool has_zero;                   /* an index 0, or a field 0 */
    bool sorted;                     /* indexes never decrease */
};

/* Why a line is no row. */
struct libsvm_fault {
    size_t at;            /* byte of the line, from 0 */
    const char *expected; /* static */
};

/* Does the line hold anything but white space and a comment? */
bool libsvm_is_row(const uint8_t *line, size_t len);

/* Parse a line without its end; columns: what the file's rows have. LIBSVM_PAD bytes after it must
 * be readable, and the first of them must be LF, CR or NUL. 0, or -EBADMSG with *fault set. */
int libsvm_line_parse(const uint8_t *line, size_t len, unsigned columns, struct libsvm_row *row,
                      struct libsvm_fault *fault);

/* Sort features by index, stably. field: NULL: there are none. 0 or -ENOMEM. */
int libsvm_row_sort(uint32_t *index, uint32_t *field, float *value, uint64_t n);

#endif
