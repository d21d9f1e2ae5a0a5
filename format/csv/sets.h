/* One decision about the first lines of the files of a folder. What is a header in one file is none
 * in another, if each is judged alone: its rows may be too few, or numbers that look like names. */
#ifndef EPOCHFS_FORMAT_CSV_SETS_H
#define EPOCHFS_FORMAT_CSV_SETS_H

#include "format/core/format.h"

/* What source_file.decided says. */
enum csv_decided {
    CSV_ALONE, /* the file decides by itself */
    CSV_NAMES, /* its first line is that of another file, which has names */
    CSV_ROWS,  /* its first line could be names, but its siblings have rows only */
};

/* Set `decided` of files whose first lines others decide about. Blocks until all heads are read.
 * 0 or -ENOMEM. */
int csv_decide(struct source_file *file, size_t n, const struct format_setup *setup);

#endif
