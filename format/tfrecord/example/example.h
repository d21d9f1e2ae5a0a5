/* tf.train.Example and tf.train.SequenceExample: features by name, each a list of byte strings, of
 * floats or of integers (tensorflow/core/example/example.proto and feature.proto).
 *
 * A message is read as protobuf reads it: packed and unpacked values in any mix; lists of one kind
 * that come again go on, another kind replaces them; unknown fields are skipped. Nothing is
 * recursive, each length is checked against the message around it, and a record of any bytes is
 * read in one pass. */
#ifndef EPOCHFS_FORMAT_TFRECORD_EXAMPLE_EXAMPLE_H
#define EPOCHFS_FORMAT_TFRECORD_EXAMPLE_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXAMPLE_MAX      INT32_MAX /* bytes of a message, by protobuf's rule */
#define EXAMPLE_FEATURES 4096      /* map entries of a message, at most */
#define EXAMPLE_NAME_MAX 4096      /* bytes of a name, at most */

/* The numbers are those of the fields of Feature. */
enum feature_kind {
    EXAMPLE_NONE, /* a Feature without a list */
    EXAMPLE_BYTES,
    EXAMPLE_FLOATS,
    EXAMPLE_INTEGERS,
    EXAMPLE_MIXED, /* a feature list whose steps differ in kind */
};

#define EXAMPLE_NOT_PLAIN UINT32_MAX

struct example_feature {
    const uint8_t *name; /* in the message; not UTF-8 for sure */
    uint32_t name_len;
    bool is_list; /* of feature_lists: a list for each step */
    enum feature_kind type;
    uint64_t count; /* values, of all steps together */
    uint64_t bytes; /* of all byte strings together */
    uint64_t steps; /* of a feature list */
    /* Where the message has the values one after another as they are read: a single byte string,
     * floats that are packed in one list. Otherwise, EXAMPLE_NOT_PLAIN. */
    uint32_t plain;
    /* For example_read(): */
    uint32_t at, len; /* the map entry */
    uint32_t start;   /* lists before that place in the message were replaced */
};

/* What does not fit, and where in the message. */
struct example_fault {
    const char *wanted;
    size_t at;
};

/* Read a message; calls feature() for each map entry, of which the last one of a name counts. 0,
 * what feature() returned if that is not 0, or -EBADMSG: it is neither message. */
int example_parse(const uint8_t *message, size_t len,
                  int (*feature)(void *ctx, const struct example_feature *f), void *ctx,
                  struct example_fault *ret_fault);

/* What is read of a feature. */
enum example_part {
    EXAMPLE_VALUES, /* int64, float32, or all byte strings one after another */
    EXAMPLE_SIZES,  /* int64: the bytes of each byte string */
    EXAMPLE_STEPS,  /* int64: the values of each step */
};

/* Write bytes [off, off + len) of a part, which lie inside of it. The message is the one that the
 * feature was found in. */
void example_read(const uint8_t *message, const struct example_feature *f, enum example_part part,
                  uint64_t off, size_t len, uint8_t *dst);

#endif
