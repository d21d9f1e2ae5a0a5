/* A stage that keeps nothing: each read is a transfer. It records its calls. */
#ifndef EPOCHFS_TESTS_SUPPORT_FAKE_STAGE_H
#define EPOCHFS_TESTS_SUPPORT_FAKE_STAGE_H

#include "cache/stage/stage.h"

/* The arguments of stage_add() for a blob. */
struct fake_staged {
    char *url, *key;
    struct remote_version version;
    bool has_sha256;
    uint8_t sha256[32];
};
const struct fake_staged *fake_staged_of(const struct blob *blob);

#endif
