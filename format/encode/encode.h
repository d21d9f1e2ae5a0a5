/* The encoders. encoders[] is the registry. A new encoder is a file, a line there, a line of
 * CMakeLists.txt, a test and a line of docs/reference/plans.md. */
#ifndef EPOCHFS_FORMAT_ENCODE_ENCODE_H
#define EPOCHFS_FORMAT_ENCODE_ENCODE_H

#include "format/core/encoder.h"

extern const struct encoder *const encoders[];
extern const unsigned n_encoders;

/* Fill ds->folder with what the encoders offer, see dataset_fill_folders(). */
int dataset_add_folders(struct dataset *ds);

#endif
