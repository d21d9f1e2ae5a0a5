/* A window on a blob, for parsers that go from front to back and skip what they do not need; and
 * the messages of what they find. One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_WINDOW_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/index/pass_window.h"

/* White space and digits, as C sees them in the locale "C". */
static inline bool kaldi_is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool kaldi_is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

struct kaldi_in {
    const struct blob *blob;
    uint64_t size; /* bytes of the blob, or of its start that counts */
    struct pass_window window;
    int error;       /* -errno of a read that failed, kept until the caller sets it to 0, */
    struct diag why; /* and why */
};

void kaldi_in_init(struct kaldi_in *in, const struct blob *blob);
void kaldi_in_release(struct kaldi_in *in);
#define AUTO_KALDI_IN AUTO(kaldi_in_release) /* of one that starts as {0} */

/* Release it, and init it on another blob; if it is on that one, it stays as it is. */
void kaldi_in_move(struct kaldi_in *in, const struct blob *blob);

/* The bytes from byte at of the blob on, *ret_have of them: at least n, fewer only at the end of
 * the blob. at may be any. Valid until the next call. NULL: see in->error. */
const uint8_t *kaldi_in_at(struct kaldi_in *in, uint64_t at, size_t n, size_t *ret_have);

/* The line that begins at byte at, without its end: *ret_len bytes, and *at moves behind its end.
 * most: the longest that is needed as a whole; of a longer one the bytes that the window has.
 * *ret_ended: it ends within them. NULL: see in->error. */
const uint8_t *kaldi_in_line(struct kaldi_in *in, uint64_t *at, size_t most, size_t *ret_len,
                             bool *ret_ended);

/* Write "file: byte N: expected ..., got ..." to d and return -EBADMSG; but if in->error is set,
 * return that with its reason. format: the text from "expected" on. */
int kaldi_bad(const struct kaldi_in *in, uint64_t at, struct diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
