/* Our mount options, one entry each; fs/options/options.c parses by them and prints their help. */
#ifndef EPOCHFS_FS_OPTIONS_TABLE_H
#define EPOCHFS_FS_OPTIONS_TABLE_H

#include "fs/options/options.h"

/* One option of ours. value is NULL where no '=' was given. */
struct option {
    const char *name;
    const char *form; /* of the value; NULL: it takes none */
    const char *help;
    int (*set)(struct options *o, const char *value, struct diag *d);
    /* or, for a number from least to most: */
    void (*set_number)(struct options *o, uint64_t v);
    uint64_t least, most;
};

extern const struct option options_ours[];
extern const unsigned n_options_ours;

/* Refuse credentials in options: -EINVAL. The message in d leaves out the value, which must not be
 * shown, either. */
int option_refuse_secret(const char *name, struct diag *d);

/* Flags of Kaldi's rspecifiers. In kaldi=o,p a flag behind a comma arrives as an option of its
 * own. */
bool option_is_kaldi_flag(const char *word);
void option_set_kaldi_flag(struct options *o, const char *flag);

#endif
