/* The encoders. encoders[] is the registry. A new encoder is a file, a line there, a line of
 * CMakeLists.txt, a test and a line of docs/encodings.md. */
#ifndef EPOCHFS_FORMAT_ENCODE_ENCODE_H
#define EPOCHFS_FORMAT_ENCODE_ENCODE_H

#include "format/core/encoder.h"

extern const struct encoder *const encoders[];
extern const unsigned n_encoders;

/* Fill ds->folder with what the encoders offer, see dataset_fill_folders(). */
int dataset_add_folders(struct dataset *ds);

/* The same for a dataset whose fields are known only when it is ready: name the folders that they
 * may be in. Whoever prepares the dataset calls dataset_add_folders() once they are known. */
int dataset_add_late_folders(struct dataset *ds);

#endif
