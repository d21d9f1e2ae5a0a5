/* What the files of a table share: table.c (its states, its rows) calls table_type.c and
 * table_about.c of this folder. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H

#include "format/kaldi/table/scp.h"
#include "format/kaldi/table/table.h"

/* Find out the type, unless it is known, and check that the table leads to an object of that type.
 * 0; -EBADMSG or another -errno with the reason in d. */
int kaldi_find_type(struct kaldi_table *table, struct diag *d);

/* Encode what is kept besides the rows of the index; the pass must have finished. Sets
 * totals.hash. */
int kaldi_make_about(struct kaldi_table *table, struct text *ret);

/* Decode that from an index: totals, notes, files. 0, -EBADMSG: it is damaged; -ESTALE: a file that
 * it names has changed; or another -errno. After an error table->file has the files decoded so
 * far. */
int kaldi_take_about(struct kaldi_table *table, const struct index *index);

/* Allocate table->file, for the table's own file and n more. 0 or -ENOMEM. */
int kaldi_add_own_file(struct kaldi_table *table, size_t n);

/* Does a line of an scp file end the table, as it has no key or no value? Kaldi reads no further,
 * without a word, so the lines after it would be lost: that is an error, but with kaldi=p. Blank
 * lines at the end lose none. A line whose range cannot be told from its path ends the table with
 * kaldi=p alone; else it is an object that cannot be read. *blank: the number of the first blank
 * line, 0: there was none. 0: no; KALDI_LINE_BLANK: to be skipped; KALDI_LINE_ENDS; or -EBADMSG
 * with the reason in d. */
enum { KALDI_LINE_BLANK = 1, KALDI_LINE_ENDS };
int kaldi_check_line(const struct kaldi_table *table, uint64_t number, const struct scp_line *line,
                     const char *wrong, uint64_t *blank, struct diag *d);

#endif
