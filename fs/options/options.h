/* Mount options: those of -o, of fstab and of mount(8). */
#ifndef EPOCHFS_FS_OPTIONS_OPTIONS_H
#define EPOCHFS_FS_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "cache/source/options.h"
#include "format/augment/options.h"
#include "format/core/format.h"
#include "fs/plan/mix_text.h"
#include "fs/plan/plan.h"

/* How files of the mount are opened that are files of this machine, byte for byte. */
enum open_mode {
    OPEN_AUTO,   /* by the kernel where that pays */
    OPEN_CACHED, /* without a request; bytes go through the daemon and the page cache */
    OPEN_PASS,   /* by the kernel: see fs/serve/pass.h */
};

/* list=NAME=FILE */
struct option_list {
    char name[PLAN_WORD_SIZE];
    const char *file; /* an absolute path, owned */
};

struct options {
    struct plan *plan; /* [n_plans] in the order given */
    size_t n_plans;
    struct option_list *list; /* [n_lists] in the order given, each name once */
    size_t n_lists;
    uint64_t epochs;      /* that are listed of those plans */
    struct mix_spec *mix; /* [n_mixes] in the order given; owned */
    size_t n_mixes;
    const char *cache;            /* absolute, owned; NULL: the default folder */
    bool keep_given;              /* keep= was */
    struct source_options source; /* its texts are owned; see options_source() */
    bool stages_local;            /* even without cache=, for epochfs stage */
    bool makes_index;             /* for epochfs index: `.epochfs/` next to the data is not used */
    bool finds_in_lists;          /* even where nothing is staged, for epochfs plan */
    struct format_options format;
    struct augment_options augment; /* its recipes are owned */
    uint64_t keep_made;     /* bytes of decoded pictures that stay in the cache folder; 0: none */
    bool allow_outside;     /* read files that the source names, wherever they are */
    bool allow_commands;    /* run commands that the source names */
    uint64_t command_limit; /* seconds that a command may take */
    bool reads_once;        /* kaldi=o: no utterance is read twice in an epoch */
    bool reads_sorted;      /* kaldi=cs: utterances are read in the order of their keys */
    bool kaldi_may_go_on;   /* while options are parsed: the last one was kaldi= */
    uint64_t ahead;         /* bytes of the page cache that the push may fill ahead of readers */
    bool allow_other;
    enum open_mode open;
    unsigned log_level;        /* enum log_level */
    char *source_of_specifier; /* of options_take_specifier(); owned */
    struct text for_fuse;      /* options for libfuse and the kernel, comma-separated */
};

void options_init(struct options *ret);
void options_release(struct options *o);
#define AUTO_OPTIONS AUTO(options_release)

/* Add the options of one comma-separated text. A backslash before a comma or a backslash makes that
 * character part of a value. 0, -EINVAL with the reason in d, or -ENOMEM. */
int options_parse(struct options *o, const char *text, struct diag *d);

/* If *source is a specifier of Kaldi, and no file, set the options that it has, and *source to what
 * is to be mounted, owned by o. 0, -EINVAL with the reason in d, or -ENOMEM. */
int options_take_specifier(struct options *o, const char **source, struct diag *d);

/* What stays in the cache, with the defaults of via=: what peers keep need not stay here as well.
 */
void options_stage(const struct options *o, struct stage_options *ret);

/* The options of the source, valid as long as o and the cache folder live. */
void options_source(const struct options *o, const struct cache_folder *cache,
                    struct source_options *ret);

/* What readahead= is by default: this, or this share of the memory, 1/16, if that is less. */
#define OPTIONS_READAHEAD_MOST  (UINT64_C(256) << 20)
#define OPTIONS_READAHEAD_SHARE 16

/* Add the help of our options: the common ones, and the names of all by groups; or all, and the
 * names of the others that are taken. */
void options_help(struct text *help, bool all);

#endif
