/* Does an index say of a row what the text has? For indexes by content (base/index_store.h). */
#ifndef EPOCHFS_FORMAT_TEXT_ROW_H
#define EPOCHFS_FORMAT_TEXT_ROW_H

#include <stdbool.h>

#include "base/blob.h"

/* Are bytes [at, at + len) of the blob one line: does it begin at byte `first`, or behind a line
 * end, and is there one behind it, or the end of the file, and none in it? has_cr: CR ends a line,
 * too. 0; -EBADMSG with the reason in d; or another -errno of its read. */
int text_row_verify(struct read_context *rc, const struct blob *blob, uint64_t first, uint64_t at,
                    uint64_t len, bool has_cr, struct diag *d);

#endif
