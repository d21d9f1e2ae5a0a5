/* A window that slides over a blob, for parsers that go from front to back and skip what they do
 * not need. One thread. */
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
    uint64_t start;  /* byte of the blob at buffer[0] */
    size_t have;     /* bytes in the buffer */
    size_t step;     /* bytes, the least that the next read asks for */
    int error;       /* -errno of a read that failed, kept until the caller sets it to 0, */
    struct diag why; /* and why */
};

/* To move the window to another blob, release it and init it again. */
void kaldi_in_init(struct kaldi_in *in, const struct blob *blob);
void kaldi_in_release(struct kaldi_in *in);
#define AUTO_KALDI_IN AUTO(kaldi_in_release) /* of one that starts as {0} */

/* The bytes from byte at of the blob on, *ret_have of them: at least want, fewer only at the end of
 * the blob. at may be any. Valid until the next call. NULL: see in->error. */
const uint8_t *kaldi_in_at(struct kaldi_in *in, uint64_t at, size_t want, size_t *ret_have);

/* Write "file: byte N: expected ..., got ..." to d and return -EBADMSG; but if in->error is set,
 * return that with its reason. format: the text from "expected" on. */
int kaldi_bad(const struct kaldi_in *in, uint64_t at, struct diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
