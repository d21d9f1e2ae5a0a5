/* Manifests of MindSpore and ModelArts, <name>.manifest: each line is a JSON object that names a
 * picture (`source`), says what it is for (`usage`: train, eval, ...), and has its labels
 * (`annotation`, each with a `name`). A dataset for each usage, called <name>.<usage>.
 *
 * A collection has the manifests of a folder and all pictures below it. Manifests are hostile: a
 * source is looked up among the files of the collection, and never opened as a path. */
#ifndef EPOCHFS_FORMAT_FILES_MANIFEST_H
#define EPOCHFS_FORMAT_FILES_MANIFEST_H

#include "format/files/claim/claim.h"
#include "format/records/record_set.h"

/* As open_collection() of struct format, with datasets of that format of records. Takes over what
 * c->impl owns, too. Reads the manifests for their usages. */
int manifest_open_collection(const struct record_format *rf, struct collection *c,
                             struct blob *blob, const struct members *members,
                             const struct format_setup *setup, struct finds *finds);

/* The functions of struct record_format. */
bool manifest_has(const void *file, uint64_t row, unsigned column);
int manifest_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                  struct diag *d);
bool manifest_extent(const void *file, uint64_t row, unsigned column, struct extent *ret);
int manifest_read(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                  uint64_t off, size_t len, uint8_t *dst, struct diag *d);
bool manifest_path(const void *file, uint64_t row, unsigned column, char *ret, size_t size);
void manifest_locate(const void *file, const struct extent *e, struct text *t);
void manifest_note(const void *file, struct text *t);
void manifest_describe(struct record_file *const *file, unsigned n, const char *indent,
                       struct text *t);

/* ---- for its parts ---- */

#define MANIFEST_LABELS_MAX 256   /* of a picture */
#define MANIFEST_NAMES_MAX  60000 /* of labels */

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

/* The member that a source means: the path below `folder`, that of the manifest; else the longest
 * tail of it that is below root. m->n: there is none. */
size_t manifest_find(const struct members *m, const char *root, const char *folder,
                     const char *source);

#endif
