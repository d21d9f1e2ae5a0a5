/* Help texts: a table of names and descriptions, in lines that fit a terminal. */
#ifndef EPOCHFS_FS_OPTIONS_HELP_H
#define EPOCHFS_FS_OPTIONS_HELP_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define HELP_WIDTH 80 /* columns */

/* Add a name and its description, in as many lines as it takes. */
void help_add_entry(struct text *help, const char *name, const char *words);

/* Add an empty line, then words in as many lines as they take. */
void help_add_paragraph(struct text *help, const char *words);

/* Add "<begin>epochfs <usage>" in lines that break between its words, not inside of [ ]. */
void help_add_usage(struct text *help, const char *begin, const char *usage);

/* Add a number of bytes: in KiB, MiB or GiB if it is a whole number of them. */
void help_add_size(struct text *help, uint64_t bytes);

/* Add a title and the names after it. */
void help_add_names(struct text *help, const char *title, const char *const *name, size_t n);

#endif
