/* The part of the live texts about a remote: what its stage counts. */
#ifndef EPOCHFS_FS_STATUS_REMOTE_H
#define EPOCHFS_FS_STATUS_REMOTE_H

#include "base/text.h"

struct stage;

/* Size of a reason with its NUL; a longer one is cut. */
#define STATUS_REASON_SIZE 400

/* Add a reason as a JSON string. */
void status_add_reason(struct text *t, const char *reason);

/* Add the value of "remote" in status.json: an object.*/
void status_remote_json(struct stage *stage, struct text *t);

/* The same as Prometheus text. */
void status_remote_metrics(struct stage *stage, struct text *t);

#endif
