/* Help texts: a table of what there is, in lines that fit a terminal. */
#ifndef EPOCHFS_FS_OPTIONS_HELP_H
#define EPOCHFS_FS_OPTIONS_HELP_H

#include <stddef.h>

#include "base/text.h"

#define HELP_WIDTH 80 /* columns */

/* A name and what is said of it, in as many lines as that takes. */
void help_add_entry(struct text *help, const char *name, const char *words);

/* Names behind a title. */
void help_add_names(struct text *help, const char *title, const char *const *name, size_t n);

#endif
