/* Manifests of MindSpore and ModelArts, <name>.manifest: each line is a JSON object that names a
 * picture (`source`), says what it is for (`usage`: train, eval, ...), and has its labels
 * (`annotation`, each with a `name`).
 *
 * A collection has the manifests of a folder and all pictures below it. Manifests are hostile: a
 * source is looked up among the files of the collection, and never opened as a path. */
#ifndef EPOCHFS_FORMAT_FILES_MANIFEST_H
#define EPOCHFS_FORMAT_FILES_MANIFEST_H

#include <stddef.h>

#include "base/scope.h"

struct diag;

#define MANIFEST_LABELS_MAX 256 /* of a picture */

/* A line, parsed. */
struct manifest_line {
    const char *source, *usage; /* of json */
    size_t n;                   /* labels */
    const char *label[MANIFEST_LABELS_MAX];
    struct json_t *json; /* private */
};

/* Parse a line; what names it in messages. 0; -ENOMEM; or -EBADMSG with the reason in d. */
int manifest_line_parse(struct manifest_line *ret, const char *bytes, size_t len, const char *what,
                        struct diag *d);
void manifest_line_release(struct manifest_line *line); /* of one that starts as {0} */
#define AUTO_MANIFEST_LINE AUTO(manifest_line_release)

#endif
