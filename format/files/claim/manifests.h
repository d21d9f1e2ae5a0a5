/* Which files are manifests of pictures (format/files/manifest.h): a few are looked into, because
 * their names say little. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_MANIFESTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_MANIFESTS_H

#include <stdbool.h>
#include <stddef.h>

#define MANIFEST_HEAD 16384 /* bytes of a file that decide */

/* Do the first len bytes of a file say that it is one? whole: they are all of it. named: it is
 * called *.manifest, so one line that has a source or a usage is enough: what is wrong with the
 * others is reported later. Else each line must be a JSON object with both, as texts. 1, 0 or
 * -ENOMEM. */
int manifest_head_says(const void *head, size_t len, bool whole, bool named);

#endif
