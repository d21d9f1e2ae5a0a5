/* Rows of an index that are lines of a text. */
#ifndef EPOCHFS_FORMAT_TEXT_ROW_H
#define EPOCHFS_FORMAT_TEXT_ROW_H

#include <stdbool.h>

#include "base/blob.h"
#include "format/core/extents.h"

/* For indexes by content (base/index_store.h): does an index say of a row what the text has?
 *
 * Are bytes [at, at + len) of the blob one line: does it begin at byte `first`, or behind a line
 * end, and is there one behind it, or the end of the file, and none in it? has_cr: CR also
 * ends a line. 0; -EBADMSG with the reason in d; or another -errno of its read. */
int text_row_verify(struct read_context *rc, const struct blob *blob, uint64_t first, uint64_t at,
                    uint64_t len, bool has_cr, struct diag *d);

/* Parse row i of some rows. DECIMAL_PAD readable bytes follow the line, the first of them 0. 0 or
 * -errno with the reason in d. */
typedef int text_row_fn(void *ctx, unsigned i, const uint8_t *line, struct diag *d);

/* Read n rows, neighbours at once, and parse each, but none after a row of which bytes are missing.
 * 0, -ENOMEM, or -errno of a read or of parse(); -EAGAIN by the rule of missing_go_on(). */
int text_rows_parse(struct read_context *rc, const struct extent *row, unsigned n,
                    text_row_fn *parse, void *ctx, struct diag *d);

/* The number of the line, from 1, that begins at byte `at` of the blob. has_cr: CR and CRLF also
 * end a line. Reads all before it. 0, -ENOMEM, or -errno of a read. */
int text_line_number(const struct blob *blob, uint64_t at, bool has_cr, uint64_t *ret,
                     struct diag *d);

#endif
