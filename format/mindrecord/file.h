/* A file of MindRecord (layout/header.h), opened: the index of its rows, and what they show. */
#ifndef EPOCHFS_FORMAT_MINDRECORD_FILE_H
#define EPOCHFS_FORMAT_MINDRECORD_FILE_H

#include "base/memo.h"
#include "format/core/extents.h"
#include "format/mindrecord/layout/header.h"
#include "format/records/bytes_format.h"
#include "format/records/record_set.h"

/* ---- the index ---- */

/* Columns of the index, and then MINDRECORD_NUMBERS of each field. */
enum mindrecord_number {
    MINDRECORD_BLOB_AT, /* bytes of the file: the blob, behind its length */
    MINDRECORD_BLOB_LEN,
    MINDRECORD_RAW_AT,
    MINDRECORD_ROW, /* columns of a row */
};

enum mindrecord_field_number {
    FIELD_AT,    /* of blobs and texts: in the blob, or in the raw row; of numbers: its bits */
    FIELD_LEN,   /* bytes there */
    FIELD_COUNT, /* elements of an array */
    FIELD_STATE, /* FAULT_..., or the kind of bytes */
    MINDRECORD_NUMBERS,
};

/* Why a field of a row cannot be read, and kinds of bytes. */
enum mindrecord_state {
    STATE_GOOD,
    FAULT_NO_PAGE,  /* its page ends after the file */
    FAULT_PAGE,     /* the length of the row, or of one before it, goes past its page */
    FAULT_NO_RAW,   /* no raw page has the rows of its page */
    FAULT_MAP,      /* the raw row is no map of numbers and text */
    FAULT_LENGTH,   /* the lengths of fields are not those of the blob */
    FAULT_ELEMENTS, /* no whole number of elements */
    FAULT_PACKED,   /* count of packed elements */
    FAULT_SHAPE,    /* elements that the shape does not have */
    FAULT_LACKS,    /* the map lacks it */
    FAULT_TYPE,     /* not of its type */
    FAULT_RANGE,    /* a number that its type has not */
    STATE_BYTES,    /* and enum bytes_format: bytes, from here on */
    N_STATES = STATE_BYTES + N_BYTES_FORMATS,
    FAULT_INDEX = N_STATES, /* not in an index: what it says cannot be */
};

struct mindrecord_pass;

/* The columns that it shows have fields of the header as their fields; the part of bytes is
 * STATE_BYTES and enum bytes_format. */
struct mindrecord {
    struct record_file base;
    struct memo *memo;
    const char *name; /* of the source's; while its folder is opened */
    struct mindrecord_header header;
    struct mindrecord_pass *pass; /* NULL once it is over */
    /* What the pass found out, kept with the rows: */
    uint64_t lost;    /* rows with a field that cannot be read */
    char reason[256]; /* of the first; or what is left over in a page; NUL-terminated, may be "" */
};

extern const struct record_file_ops mindrecord_file_ops; /* pass.c */

static inline unsigned mindrecord_column(unsigned field, enum mindrecord_field_number number)
{
    return MINDRECORD_ROW + field * MINDRECORD_NUMBERS + number;
}

static inline uint64_t mindrecord_number(const struct mindrecord *file, uint64_t row,
                                         unsigned field, enum mindrecord_field_number number)
{
    return index_number(&file->base.prepared.index, row, mindrecord_column(field, number));
}

static inline bool mindrecord_is_fault(uint64_t state)
{
    return state > STATE_GOOD && state < STATE_BYTES;
}

/* Has an array of that shape so many elements? Then *ret_axis is its axis that varies (pass.c). */
bool mindrecord_fits(const struct mindrecord_field *f, uint64_t elements, uint64_t *ret_axis);

/* Write n packed integers of len bytes as elements of that width. false: they are not that many, or
 * one does not fit (format.c). */
bool mindrecord_unpack(const uint8_t *packed, uint64_t len, uint64_t n, unsigned width,
                       uint8_t *dst);

extern const struct format format_mindrecord;

#endif
