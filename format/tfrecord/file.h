/* One TFRecord file: the index of its records, and what it has learned of their features.
 *
 * Row i of the index is record i. Columns AT and STATE are there from the start; each feature adds
 * one with the number and the kind of its values, and one more with their bytes, or their steps,
 * where it has any. */
#ifndef EPOCHFS_FORMAT_TFRECORD_FILE_H
#define EPOCHFS_FORMAT_TFRECORD_FILE_H

#include "format/records/column_table.h"
#include "format/records/record_set.h"
#include "format/tfrecord/example/example.h"
#include "format/tfrecord/example/learned.h"

enum { FILE_AT, FILE_STATE, FILE_FIXED };

/* Column FILE_STATE. */
enum record_state {
    RECORD_EXAMPLE,
    RECORD_OTHER,  /* its data are another message, or none */
    RECORD_SPOILT, /* its data do not match their checksum */
};

/* Why the records end before the file does. */
enum tail { TAIL_NONE, TAIL_HEAD, TAIL_HEAD_CUT, TAIL_DATA_CUT, N_TAILS };

/* What a pass found; kept with the index. */
struct findings {
    uint64_t examples, others; /* records with features; with data that are no such message */
    uint64_t spoilt, first_spoilt;
    uint64_t tail, tail_at; /* enum tail, and where in the file */
};

struct tfrecord_file {
    struct record_file base;
    struct memo *memo;
    struct pass *pass; /* while the index is made */

    /* Once it is prepared; its columns have features as fields, and enum example_part: */
    struct findings findings;
    struct column_table features;
    unsigned hidden; /* features that have values, but no column */
};

extern const struct format format_tfrecord;

extern const struct record_file_ops tfrecord_file_ops;

/* Where the record of a row is, its head included. */
static inline void tfrecord_place(const struct tfrecord_file *file, uint64_t row, uint64_t *ret_at,
                                  uint64_t *ret_bytes)
{
    const struct extent place = record_file_place(&file->base, row);

    *ret_at = place.off;
    *ret_bytes = place.len;
}

#endif
