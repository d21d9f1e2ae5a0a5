/* The part of the live texts about a remote: what its stage counts. */
#ifndef EPOCHFS_FS_STATUS_REMOTE_H
#define EPOCHFS_FS_STATUS_REMOTE_H

#include <stdint.h>

#include "base/text.h"

struct stage;
struct stage_space;

/* Size of a reason with its NUL; a longer one is cut. */
#define STATUS_REASON_SIZE 400

/* Add a reason as a JSON string. */
void status_add_reason(struct text *t, const char *reason);

/* If the cache cannot hold the source, add why, and what to do about it, in one line. could_free:
 * bytes in the folder that make place when they are needed. */
void status_space(const struct stage_space *space, uint64_t could_free, struct text *t);

/* Add the value of "remote" in status.json: an object.*/
void status_remote_json(struct stage *stage, struct text *t);

/* The same as Prometheus text. */
void status_remote_metrics(struct stage *stage, struct text *t);

#endif
