/* What sets the options whose values are more than a number, a word or a text; see struct option in
 * fs/options/table.h, which has these functions. name: the one that was typed. */
#ifndef EPOCHFS_FS_OPTIONS_SETTERS_H
#define EPOCHFS_FS_OPTIONS_SETTERS_H

#include "fs/options/options.h"
#include "fs/options/table.h"

#define TRANSFERS_LEAST 2
#define TRANSFERS_MOST  64

int option_set_plan(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_list(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_mix(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_kaldi_type(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_kaldi(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_audio(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_augment(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_normalize(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_picture(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_tokens(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_delimiter(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_comment(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_allow_outside(struct options *o, const char *name, const char *value,
                             struct diag *d);
int option_set_ahead(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_cache_size(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_block(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_endpoint(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_via(struct options *o, const char *name, const char *value, struct diag *d);
int option_set_jobs(struct options *o, const char *name, const char *value, struct diag *d);

/* Add the names that format= takes, with commas between them, and last before the last one. */
void option_add_formats(struct text *t, const char *last);

#endif
