/* The pass over a TFRecord file that makes its index. */
#ifndef EPOCHFS_FORMAT_TFRECORD_PASS_H
#define EPOCHFS_FORMAT_TFRECORD_PASS_H

#include "format/tfrecord/file.h"

int pass_new(struct tfrecord_file *file, struct pass **ret); /* or -ENOMEM */
void pass_free(struct pass *pass);                           /* takes NULL */

/* Go on for a moment: see step() of struct prepared_ops. Findings and features of the file grow. */
int pass_step(struct pass *pass, struct diag *d);

#endif
