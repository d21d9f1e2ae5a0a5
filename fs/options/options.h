/* Mount options: those of -o, of fstab and of mount(8). */
#ifndef EPOCHFS_FS_OPTIONS_OPTIONS_H
#define EPOCHFS_FS_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "cache/source/options.h"
#include "format/core/format.h"
#include "fs/plan/plan.h"

struct options {
    struct plan *plan; /* [n_plans] in the order given */
    size_t n_plans;
    uint64_t epochs;              /* of those plans, listed */
    const char *cache;            /* absolute, owned; NULL: the default folder */
    struct source_options source; /* its texts are owned; see options_source() */
    bool stages_local;            /* without cache=, too: epochfs stage */
    struct format_options format;
    bool allow_outside;     /* files that the source names, wherever they are */
    bool allow_commands;    /* commands that it names */
    uint64_t command_limit; /* seconds that one may take */
    bool reads_once;        /* kaldi=o: no utterance is read twice in an epoch */
    bool reads_sorted;      /* kaldi=cs: they are read in the order of their keys */
    bool kaldi_may_go_on;   /* while options are parsed: the last one was kaldi= */
    uint64_t ahead;         /* bytes of the page cache that may be filled ahead of readers */
    bool allow_other;
    unsigned log_level;   /* enum log_level */
    struct text for_fuse; /* what libfuse and the kernel know, comma-separated */
};

void options_init(struct options *ret);
void options_release(struct options *o);
#define AUTO_OPTIONS AUTO(options_release)

/* Add the options of one comma-separated text; a backslash before a comma or a backslash
 * makes it part of a value. 0, -EINVAL with the reason in d, or -ENOMEM. */
int options_parse(struct options *o, const char *text, struct diag *d);

/* What the options say of the source, as long as they and the cache folder live. */
void options_source(const struct options *o, const struct cache_folder *cache,
                    struct source_options *ret);

/* The help text of the options, one a line, and the names of those that are not ours. */
const char *options_help(void);

#endif
