/* Where redirects led to another server: storage that a hub has signed a URL for. Asking the hub
 * for each part of a file would cost a request more, and hubs count those. The URLs are secrets
 * while they live: they are in memory only, and in no message.
 *
 * One thread uses it. */
#ifndef EPOCHFS_CACHE_HTTP_KEPT_TARGET_H
#define EPOCHFS_CACHE_HTTP_KEPT_TARGET_H

#include <stdint.h>

#define KEPT_TARGETS 1024

struct kept_target {
    char *url, *target; /* NULL: none */
    int64_t until_s;    /* since 1970 */
};

struct kept_targets {
    struct kept_target at[KEPT_TARGETS];
};

/* Where url led; NULL: not known, or no longer valid. Valid until the next call. */
const char *kept_target_find(struct kept_targets *kept, const char *url, int64_t now_s);

/* Keep it until the query of target says that it ends, less a minute; otherwise for 10 minutes.
 * Without memory it is not kept. */
void kept_target_add(struct kept_targets *kept, const char *url, const char *target, int64_t now_s);

void kept_target_drop(struct kept_targets *kept, const char *url);
void kept_targets_free(struct kept_targets *kept); /* takes NULL */

#endif
