#include "format/kaldi/object/text_scan.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

#define STEP_LEAST 256 /* bytes of the first copy: many objects are small */

void kaldi_scan_init(struct kaldi_scan *s, uint8_t *buffer, struct kaldi_in *in, uint64_t at)
{
    memset(buffer, 0, DECIMAL_PAD);
    *s = (struct kaldi_scan){
        .p = buffer, .end = buffer, .in = in, .next = at, .step = STEP_LEAST, .buffer = buffer};
}

/* Copy some bytes, up to capacity, after the unparsed ones. */
static void scan_fill(struct kaldi_scan *s, uint8_t *end, size_t capacity)
{
    size_t have = 0;
    const uint8_t *from = kaldi_in_at(s->in, s->next, 1, &have);

    have = from ? (size_t)min_u64(have, min_u64(capacity, s->step)) : 0;
    if (have)
        memcpy(end, from, have);
    memset(end + have, 0, DECIMAL_PAD);
    s->end = end + have;
    s->next += have;
    s->step = (size_t)min_u64(s->step * 2, KALDI_SCAN_SIZE);
    s->last = !have;
}

void kaldi_scan_more(struct kaldi_scan *s, size_t n)
{
    size_t wait = (size_t)(s->end - s->p);

    memmove(s->buffer, s->p, wait);
    s->p = s->buffer;
    s->end = s->buffer + wait;
    for (; wait < n && !s->last; wait = (size_t)(s->end - s->p))
        scan_fill(s, s->buffer + wait, KALDI_SCAN_SIZE - wait);
}

void kaldi_scan_skip_blanks(struct kaldi_scan *s)
{
    do {
        while (kaldi_is_blank(*s->p) && !(s->by_line && *s->p == '\n'))
            s->p++;
    } while (s->p == s->end && !kaldi_scan_ended(s));
}

void kaldi_scan_skip_token(struct kaldi_scan *s)
{
    while (!kaldi_scan_ended(s) && !kaldi_is_blank(*s->p))
        s->p++;
}

bool kaldi_scan_number(struct kaldi_scan *s, float *ret, double *ret_double)
{
    const uint8_t *end = NULL;

    for (size_t n = KALDI_SCAN_SHORT; n <= KALDI_SCAN_SIZE; n *= 2) {
        const uint8_t *digits;

        kaldi_scan_need(s, n);
        digits = s->p + (*s->p == '-' || *s->p == '+');
        if (!kaldi_is_digit(*digits) && *digits != '.') /* a word is parsed by others */
            return false;
        end =
            ret ? decimal_parse(s->p, s->end, ret) : decimal_parse_double(s->p, s->end, ret_double);
        if (s->last || (end && end < s->end))
            break;
        end = NULL; /* more of it may follow */
    }
    if (!end || (isinf(ret ? (double)*ret : *ret_double) && !s->infinite))
        return false;
    s->p = end;
    return true;
}

/* [+-] digits, of any number. */
static bool slow_int(struct kaldi_scan *s, int32_t *ret)
{
    bool negative = *s->p == '-';
    uint64_t v = 0, max = (uint64_t)INT32_MAX + negative;
    const uint8_t *p = s->p + (negative || *s->p == '+');
    size_t at = (size_t)(p - s->p), digits = 0;

    for (;; digits++, at++) {
        kaldi_scan_need(s, at + 1);
        if (!kaldi_is_digit(s->p[at]) || v > max || at + 1 == KALDI_SCAN_SIZE)
            break;
        v = v * 10 + (uint64_t)(s->p[at] - '0');
    }
    if (!digits || v > max || kaldi_is_digit(s->p[at]))
        return false;
    *ret = (int32_t)(negative ? -(int64_t)v : (int64_t)v);
    s->p += at;
    return true;
}

bool kaldi_scan_int(struct kaldi_scan *s, int32_t *ret)
{
    const uint8_t *digits;
    uint32_t v = 0;
    unsigned n;

    kaldi_scan_need(s, KALDI_SCAN_SHORT);
    digits = s->p + (*s->p == '-' || *s->p == '+');
    n = decimal_digits8(digits, &v);
    if (!n || n == 8)
        return slow_int(s, ret);
    *ret = *s->p == '-' ? -(int32_t)v : (int32_t)v;
    s->p = digits + n;
    return true;
}

bool kaldi_scan_double(struct kaldi_scan *s, double *ret)
{
    const uint8_t *end;

    kaldi_scan_need(s, KALDI_SCAN_SHORT);
    end = decimal_parse_short_double(s->p, ret);
    if (!end)
        return kaldi_scan_number(s, NULL, ret);
    s->p = end;
    return true;
}
