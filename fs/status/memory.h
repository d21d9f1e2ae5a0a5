/* How much memory the daemon uses, in both live texts. */
#ifndef EPOCHFS_FS_STATUS_MEMORY_H
#define EPOCHFS_FS_STATUS_MEMORY_H

#include "base/memory.h"
#include "base/text.h"

/* holder: [n] */
void status_memory_json(const struct memory_holder *holder, unsigned n, struct text *t);
void status_memory_metrics(const struct memory_holder *holder, unsigned n, struct text *t);

#endif
