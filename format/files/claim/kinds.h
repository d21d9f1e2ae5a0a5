/* What class folders may hold: pictures, sounds, or texts. One table says how each is known. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_KINDS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_KINDS_H

#include <stdbool.h>

enum files_kind { FILES_PICTURES, FILES_SOUNDS, FILES_TEXTS, N_FILES_KINDS };

struct files_kind_about {
    const char *word, *one;    /* for people: "sounds", "sound" */
    const char *const *ends;   /* of names, in any case, ended by NULL */
    const char *const *beside; /* what may lie beside a sample and is of it, where it has the same
                                * stem. NULL: nothing, each file is a sample */
    const char *bare;          /* NULL; or the extension that names without a dot are shown with */
    const char *skipped;       /* NULL; or a folder that is no class */
    bool is_looked_into;       /* other formats may have such files */
};
extern const struct files_kind_about files_kinds[N_FILES_KINDS];

/* Is a file of that kind, by its name? */
bool name_is_of(enum files_kind kind, const char *name);

/* Is it what may lie beside a sample of that kind, and belongs to it? */
bool name_may_be_beside(enum files_kind kind, const char *name);

#endif
