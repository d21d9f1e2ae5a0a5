/* The values of a scalar field of a dataset, in stored order, as an index of labels takes them. */
#ifndef EPOCHFS_FORMAT_LABELS_FIELD_INPUT_H
#define EPOCHFS_FORMAT_LABELS_FIELD_INPUT_H

#include "format/core/dataset.h"
#include "format/core/numbered.h"
#include "format/labels/label_make.h"

struct format_options;

struct field_input {
    struct label_input input; /* first */
    const struct dataset *ds;
    const struct field *field; /* of LABEL_LENGTHS in bytes: NULL */
    char name[2 * FIELD_NAME_SIZE];
    const char *word;      /* of LABEL_LENGTHS: what lengths are called; of the field, or static */
    bool is_micro;         /* the same: in millionths */
    struct numbered texts; /* of a field of texts: those that were read */
};

/* Name a sample in a message: see struct label_input. */
void field_input_where(const struct label_input *input, uint64_t sample, char *ret, size_t size);

void field_input_release(struct field_input *in); /* takes a zeroed one */

/* The field that has the text of each sample, under that name. NULL: none has. */
const struct field *field_of_texts(const struct dataset *ds, const char *name);

/* Is it a number of each sample? */
bool field_is_number(const struct field *f);

/* The field of that name of a dataset that is ready. 0; or -EINVAL with the reason in d: there is
 * none, or it cannot have such an index. ds must outlive ret, and ret must stay where it is. */
int field_input_init(struct field_input *ret, const struct dataset *ds, const char *name,
                     enum label_purpose type, struct diag *d);

/* The same for the lengths of samples. word: tokens, seconds, frames, bytes, rows, or a field; "":
 * the first of tokens, seconds, frames and bytes that the dataset has. */
int length_input_init(struct field_input *ret, const struct dataset *ds, const char *word,
                      struct diag *d);

/* A text that differs wherever the index of that field may: it has the versions of the source
 * files, which parts of them the dataset shows, and how they are read. 0 or -errno. */
int field_input_identity(const struct field_input *in, enum label_purpose type,
                         const struct format_options *options, struct text *ret);

#endif
