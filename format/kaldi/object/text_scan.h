/* The scanner under the parsers of Kaldi's text: bytes of a blob, white space, numbers.
 *
 * It copies the bytes in pieces into a small buffer that always ends with zeros. So loops stop
 * there without a check, and numbers can be parsed eight bytes at a time. p only moves forward; the
 * next kaldi_scan_need() discards the bytes before it. */
#ifndef EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_SCAN_H
#define EPOCHFS_FORMAT_KALDI_OBJECT_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/core/decimal.h"
#include "format/kaldi/object/window.h"

#define KALDI_SCAN_SIZE   16384 /* bytes that the buffer holds, so the longest number */
#define KALDI_SCAN_BUFFER (KALDI_SCAN_SIZE + DECIMAL_PAD)

struct kaldi_scan {
    const uint8_t *p, *end; /* bytes copied and not parsed yet; *end is 0 */
    bool last;              /* nothing follows end */
    bool by_line;           /* a newline is not white space */
    bool infinite;          /* a real number out of range is infinite, not an error */
    /* private: */
    struct kaldi_in *in;
    uint64_t next; /* the byte of the blob that follows end */
    size_t step;
    uint8_t *buffer;
};

/* Scan from byte at of a blob. An error of reading goes to in->error and looks like the end.
 * buffer: [KALDI_SCAN_BUFFER], uninitialised, owned by the caller. */
void kaldi_scan_init(struct kaldi_scan *s, uint8_t *buffer, struct kaldi_in *in, uint64_t at);

/* The byte of the blob at p. */
static inline uint64_t kaldi_scan_at(const struct kaldi_scan *s)
{
    return s->next - (uint64_t)(s->end - s->p);
}

/* Make n bytes (up to KALDI_SCAN_SIZE), or all the rest, available at p. */
void kaldi_scan_more(struct kaldi_scan *s, size_t n);

static inline void kaldi_scan_need(struct kaldi_scan *s, size_t n)
{
    if ((size_t)(s->end - s->p) < n && !s->last)
        kaldi_scan_more(s, n);
}

/* The byte at p; 0 at the end as well. */
static inline uint8_t kaldi_scan_peek(struct kaldi_scan *s)
{
    kaldi_scan_need(s, 1);
    return *s->p;
}

/* Is p at the end of all bytes? */
static inline bool kaldi_scan_ended(struct kaldi_scan *s)
{
    kaldi_scan_need(s, 1);
    return s->p == s->end;
}

void kaldi_scan_skip_blanks(struct kaldi_scan *s);
void kaldi_scan_skip_token(struct kaldi_scan *s); /* up to white space */

/* Parse the number at p by the rules of C++ streams, and move p past it. The caller judges what
 * follows. False, and p remains: no number, or one out of range. */
bool kaldi_scan_int(struct kaldi_scan *s, int32_t *ret);
bool kaldi_scan_double(struct kaldi_scan *s, double *ret);

/* Parse the number of digits at p, however long: to one of the two. False: there is none. */
bool kaldi_scan_number(struct kaldi_scan *s, float *ret, double *ret_double);

#define KALDI_SCAN_SHORT 32 /* bytes, more than a number that the quick path takes */

static inline bool kaldi_scan_float(struct kaldi_scan *s, float *ret)
{
    const uint8_t *end;

    kaldi_scan_need(s, KALDI_SCAN_SHORT);
    end = decimal_parse_short(s->p, ret);
    if (!end)
        return kaldi_scan_number(s, ret, NULL);
    s->p = end;
    return true;
}

#endif
