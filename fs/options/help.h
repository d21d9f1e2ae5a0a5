/* Help texts: a table of names and descriptions, in lines that fit a terminal. */
#ifndef EPOCHFS_FS_OPTIONS_HELP_H
#define EPOCHFS_FS_OPTIONS_HELP_H

#include <stddef.h>

#include "base/text.h"

#define HELP_WIDTH 80 /* columns */

/* Add a name and its description, in as many lines as it takes. */
void help_add_entry(struct text *help, const char *name, const char *words);

/* Add a title and the names after it. */
void help_add_names(struct text *help, const char *title, const char *const *name, size_t n);

#endif
