/* A window that slides over a blob, for parsers that go from front to back and hop over what they
 * do not need. One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_WINDOW_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"

struct kaldi_in {
    const struct blob *blob;
    uint64_t size; /* bytes of the blob */
    uint8_t *buffer;
    size_t capacity;
    uint64_t start; /* byte of the blob that buffer[0] is */
    size_t have;    /* bytes in the buffer */
    size_t step;    /* bytes that the next read asks for at least */
    int error;      /* -errno of a read that failed, kept until the caller sets it to 0 */
};

/* The window may be moved to another blob by a second init after release. */
void kaldi_in_init(struct kaldi_in *in, const struct blob *blob);
void kaldi_in_release(struct kaldi_in *in);
#define AUTO_KALDI_IN AUTO(kaldi_in_release) /* of one that starts as {0} */

/* The bytes from byte at of the blob on: at least want of them, fewer only where the blob ends.
 * *ret_have: how many there are. NULL: in->error. Valid until the next call. Any at. */
const uint8_t *kaldi_in_at(struct kaldi_in *in, uint64_t at, size_t want, size_t *ret_have);

/* "file: byte N: want ..., found ..." into d; returns in->error if that is set, with its reason,
 * else -EBADMSG. format: what was wanted and found. */
int kaldi_bad(const struct kaldi_in *in, uint64_t at, struct diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
