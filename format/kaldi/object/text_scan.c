#include "format/kaldi/object/text_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define STEP_LEAST 256 /* bytes of the first copy: many objects are small */

static void start(struct kaldi_scan *s, uint8_t *buffer)
{
    memset(buffer, 0, DECIMAL_PAD);
    s->buffer = buffer;
    s->p = s->end = buffer;
    s->step = STEP_LEAST;
}

void kaldi_scan_blob(struct kaldi_scan *s, uint8_t *buffer, struct kaldi_in *in, uint64_t at)
{
    *s = (struct kaldi_scan){.in = in, .len = in->size, .next = at};
    start(s, buffer);
}

void kaldi_scan_memory(struct kaldi_scan *s, uint8_t *buffer, const uint8_t *bytes, uint64_t len)
{
    *s = (struct kaldi_scan){.bytes = bytes, .len = len};
    start(s, buffer);
}

/* Copy some bytes, up to capacity, after the unparsed ones. */
static void kaldi_text_scan_fill(struct kaldi_scan *s, uint8_t *end, size_t capacity)
{
    size_t have = 0;
    const uint8_t *from = NULL;

    if (s->next < s->len) {
        from = s->in ? kaldi_in_at(s->in, s->next, 1, &have) : s->bytes + s->next;
        have = s->in ? have : (size_t)min_u64(s->len - s->next, SIZE_MAX);
    }
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
        kaldi_text_scan_fill(s, s->buffer + wait, KALDI_SCAN_SIZE - wait);
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

static const uint8_t *skip_digits(const uint8_t *p)
{
    while (kaldi_is_digit(*p))
        p++;
    return p;
}

/* [+-] digits with or without a point, [(e|E) [+-] digits]. Returns where that ends or fails. */
static const uint8_t *skip_number(const uint8_t *p, bool *ret_good)
{
    const uint8_t *start, *fraction;
    bool digits;

    p += *p == '-' || *p == '+';
    start = p;
    p = skip_digits(p);
    digits = p > start;
    if (*p == '.') {
        fraction = p + 1;
        p = skip_digits(fraction);
        digits = digits || p > fraction;
    }
    *ret_good = digits;
    if (digits && (*p == 'e' || *p == 'E')) {
        p++;
        p += *p == '-' || *p == '+';
        start = p;
        p = skip_digits(p);
        *ret_good = p > start;
    }
    return p;
}

static const uint8_t *skip_int(const uint8_t *p, bool *ret_good)
{
    const uint8_t *digits = p + (*p == '-' || *p == '+');

    p = skip_digits(digits);
    *ret_good = p > digits;
    return p;
}

/* Make all of the number at p available, and return its end. NULL: no number. */
static uint8_t *kaldi_text_scan_whole_number(struct kaldi_scan *s,
                                             const uint8_t *(*skip)(const uint8_t *p,
                                                                    bool *ret_good))
{
    const uint8_t *end;
    bool good;

    while ((end = skip(s->p, &good)) == s->end && !s->last) {
        size_t len = (size_t)(end - s->p);

        if (len == KALDI_SCAN_SIZE)
            return NULL;
        kaldi_scan_more(s, len + 1);
    }
    return good ? s->buffer + (end - s->buffer) : NULL;
}

static bool slow_int(struct kaldi_scan *s, int32_t *ret)
{
    const uint8_t *end = kaldi_text_scan_whole_number(s, skip_int), *p = s->p;
    bool negative = *p == '-';
    uint64_t v = 0, max = (uint64_t)INT32_MAX + negative;

    if (!end)
        return false;
    for (p += negative || *p == '+'; p < end && v <= max; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (v > max)
        return false;
    *ret = (int32_t)(negative ? -(int64_t)v : (int64_t)v);
    s->p = end;
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

bool kaldi_scan_slow_float(struct kaldi_scan *s, float *ret)
{
    const uint8_t *end = kaldi_text_scan_whole_number(s, skip_number);

    if (!end || decimal_parse(s->p, end, ret) != end || (isinf(*ret) && !s->infinite))
        return false;
    s->p = end;
    return true;
}

/* strtod also reads forms that Kaldi does not, such as 0x1, so it gets only the bytes of the
 * number. */
bool kaldi_scan_slow_double(struct kaldi_scan *s, double *ret)
{
    uint8_t *end = kaldi_text_scan_whole_number(s, skip_number), behind;

    if (!end)
        return false;
    behind = *end;
    *end = '\0';
    *ret = strtod((const char *)s->p, NULL);
    *end = behind;
    if (isinf(*ret) && !s->infinite)
        return false;
    s->p = end;
    return true;
}

bool kaldi_scan_double(struct kaldi_scan *s, double *ret)
{
    const uint8_t *end;

    kaldi_scan_need(s, KALDI_SCAN_SHORT);
    end = decimal_parse_short_double(s->p, ret);
    if (!end)
        return kaldi_scan_slow_double(s, ret);
    s->p = end;
    return true;
}
