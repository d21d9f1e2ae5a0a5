/* Manifests of MindSpore and ModelArts, <name>.manifest: each line is a JSON object that names a
 * picture (`source`), says what it is for (`usage`: train, eval, ...), and has its labels
 * (`annotation`, each with a `name`). They are hostile: a source is looked up in the listing, and
 * never opened as a path. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_MANIFESTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_MANIFESTS_H

#include "base/json.h"

#define MANIFEST_HEAD       16384 /* bytes of a file that decide */
#define MANIFEST_LABELS_MAX 256   /* of a picture */

/* Do the first len bytes of a file say that it is one? whole: they are all of it. named: it is
 * called *.manifest, so one line that has a source or a usage is enough: what is wrong with the
 * others is reported later. Otherwise, each line must be a JSON object with both, as texts. 1, 0 or
 * -ENOMEM. */
int manifest_head_says(const void *head, size_t len, bool whole, bool named);

/* Read a line; what names it in messages. *ret, the caller's: an object whose source, usage, and
 * name of each of the annotations are such texts. 0; -ENOMEM; or -EBADMSG with the reason in d, and
 * *ret may be any value, or NULL. */
int manifest_line_read(const char *bytes, size_t len, const char *what, json_t **ret,
                       struct diag *d);

#endif
