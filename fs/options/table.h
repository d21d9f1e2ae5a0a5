/* Our mount options, one entry each; fs/options/options.c parses by them and prints their help. */
#ifndef EPOCHFS_FS_OPTIONS_TABLE_H
#define EPOCHFS_FS_OPTIONS_TABLE_H

#include "fs/options/options.h"

/* What an option's value is, and so what the member of struct options is that it sets. */
enum option_type {
    OPTION_OTHER,  /* set() knows */
    OPTION_FLAG,   /* there is no value: true */
    OPTION_NUMBER, /* from least to most */
    OPTION_SIZE,   /* bytes: uint64_t */
    OPTION_WORD,   /* the number of a word */
    OPTION_TEXT,   /* const char *, owned */
    OPTION_PATH,   /* the same; absolute */
};

/* Where the help shows an option. */
enum option_group {
    GROUP_PLAN,
    GROUP_CACHE,
    GROUP_REMOTE,
    GROUP_S3,
    GROUP_FORMATS,
    GROUP_SECURITY,
    GROUP_OTHER,
    N_OPTION_GROUPS
};

/* One option of ours. */
struct option {
    const char *name;
    const char *form; /* of the value; NULL: it takes none */
    const char *help;
    enum option_type type;
    size_t at, size;         /* of the member: offset, and bytes of a number */
    uint64_t least, most;    /* most 0: there are no limits to show */
    const char *const *word; /* [n_words]; see value_names() */
    unsigned n_words;
    const char *what; /* of a text or path: what it is, for messages */
    int (*set)(struct options *o, const char *name, const char *value, struct diag *d);
    const char *old; /* other names, which are taken silently; see value_names() */
    enum option_group group;
    bool common;        /* in the short help */
    bool is_size;       /* least and most are bytes */
    const char *preset; /* what its default is, if that is no value of the member */
    void (*show)(const struct options *o, struct text *t); /* or: adds the default */
};

/* The option of that name, even if it is an old one; NULL: there is none. */
const struct option *option_find(const char *name, size_t len);

/* Set the option; value is NULL if it takes none. name: the one that was typed, for messages. 0,
 * -ENOMEM, or -EINVAL with the reason in d. */
int option_set(struct options *o, const struct option *option, const char *name, const char *value,
               struct diag *d);

extern const struct option options_ours[];
extern const unsigned n_options_ours;

/* Options that libfuse or the kernel take, and those without effect; a trailing '=' stands for a
 * value. */
extern const char *const options_passed_on[];
extern const char *const options_ignored[];
extern const unsigned n_options_passed_on, n_options_ignored;

/* Refuse credentials in options: -EINVAL. The message in d omits the value, which must not be shown
 * either. */
int option_refuse_secret(const char *name, struct diag *d);

/* Flags of Kaldi's rspecifiers. In kaldi=o,p a flag behind a comma arrives as an option of its
 * own. */
bool option_is_kaldi_flag(const char *word);
void option_set_kaldi_flag(struct options *o, const char *flag);

#endif
