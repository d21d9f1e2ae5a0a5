/* MessagePack, as much as raw rows have: one map, from text to numbers, text, true, false, nil. */
#ifndef EPOCHFS_FORMAT_MINDRECORD_LAYOUT_MSGPACK_H
#define EPOCHFS_FORMAT_MINDRECORD_LAYOUT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msgpack_type { MSGPACK_OTHER, MSGPACK_SIGNED, MSGPACK_UNSIGNED, MSGPACK_FLOAT, MSGPACK_TEXT };

struct msgpack_value {
    enum msgpack_type type; /* MSGPACK_OTHER: nil, true, false */
    int64_t i;              /* MSGPACK_SIGNED */
    uint64_t u;             /* MSGPACK_UNSIGNED */
    double f;
    const uint8_t *text; /* [len] in the map */
    size_t len;
};

/* Call add() for each member. false: the bytes are not one such map and nothing else; some members
 * may have been taken. */
bool msgpack_map(const uint8_t *bytes, size_t len,
                 void (*add)(void *ctx, const uint8_t *key, size_t key_len,
                             const struct msgpack_value *value),
                 void *ctx);

#endif
