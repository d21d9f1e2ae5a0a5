/* The files next to train.rec: train.idx, with the places of its records, and train.lst, from which
 * im2rec made it. The latter is not read: its labels are in the records, and a list that is next to
 * a file by chance would give it wrong ones. */
#ifndef EPOCHFS_FORMAT_RECORDIO_SIDES_H
#define EPOCHFS_FORMAT_RECORDIO_SIDES_H

#include "base/blob.h"
#include "format/core/format.h"

/* Is the file one that lies next to others, by its name? And by how it begins? */
bool recordio_is_beside(const char *name);
bool recordio_is_side(const struct probed_file *file);

/* Take the .idx next to file i of the n files of a folder. NULL: there is none. */
struct blob *recordio_take_idx(struct source_file *source, size_t n, size_t i);

/* The places in an .idx, in ascending order, which the caller frees. size: of the file. 0;
 * -EBADMSG, with the first line that is wrong in d; or another -errno. */
int recordio_read_idx(const struct blob *idx, uint64_t size, uint64_t **ret, size_t *ret_n,
                      struct diag *d);

#endif
