/* What the files of a table share: format/kaldi/table/table.c (its life, its rows) calls
 * format/kaldi/table/table_type.c and format/kaldi/table/table_about.c. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H

#include "format/kaldi/table/table.h"

/* Find out the type, unless it is known, and check that the table leads to an object of it. 0;
 * -EBADMSG and others with the reason in d. */
int kaldi_find_type(struct kaldi_table *table, struct diag *d);

/* What is kept of the table beside the rows of its index; the pass is through. Sets totals.hash. */
int kaldi_make_about(struct kaldi_table *table, struct text *ret);

/* Take that over from an index: totals, notes, files. 0, -EBADMSG: it is damaged; -ESTALE: a file
 * that it names is another; or another -errno. table->file is filled in as far as it came. */
int kaldi_take_about(struct kaldi_table *table, const struct key_index *index);

/* Make table->file, with room for n files behind the table's own. 0 or -ENOMEM. */
int kaldi_add_own_file(struct kaldi_table *table, size_t n);

#endif
