/* How the fields of records are made; records.c gives them to the fields. Only records.c,
 * record_arrays.c and record_texts.c of this folder include this. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_OPS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_OPS_H

#include "format/records/record_items.h"

/* Arrays and numbers (record_arrays.c). */
extern const struct field_ops record_item_ops, record_ragged_ops, record_padded_ops,
    record_numbers_ops, record_shapes_ops;

/* Bytes and texts (record_texts.c). */
extern const struct field_ops record_bytes_ops;

/* Texts of samples. number(): the bytes that a sample's line takes; item(): those bytes, filled
 * with items->pad after the text. */
struct record_text_ops {
    struct field_ops ops;
    sums_fn *number;
    record_item_fn *item;
};
extern const struct record_text_ops record_line_ops, record_string_ops, record_key_line_ops,
    record_key_ops;

#endif
