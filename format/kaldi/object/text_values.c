/* The common pieces of the parsers of Kaldi's text: integers, sizes, brackets, words for numbers,
 * and the message about bad text. */
#include "format/kaldi/object/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/scope.h"

#define FOUND_SHOWN 20 /* bytes of the text that a message shows */

static void show_found(struct kaldi_text *t, char ret[static FOUND_SHOWN + 8])
{
    size_t n = 0, len;

    kaldi_scan_need(&t->s, FOUND_SHOWN);
    len = (size_t)min_u64((uint64_t)(t->s.end - t->s.p), FOUND_SHOWN);
    ret[n++] = '"';
    for (size_t i = 0; i < len; i++) {
        uint8_t c = t->s.p[i];

        ret[n++] = c < ' ' || c > '~' ? '?' : (char)c;
    }
    snprintf(ret + n, 2, "\"");
    if (!len)
        snprintf(ret, FOUND_SHOWN + 8, "the end");
    else if (*t->s.p == '\n')
        snprintf(ret, FOUND_SHOWN + 8, "a newline");
}

int kaldi_text_fail(struct kaldi_text *t, const char *want)
{
    char found[FOUND_SHOWN + 8];
    uint64_t at = t->start + kaldi_scan_at(&t->s);

    show_found(t, found);
    if (t->s.in)
        return kaldi_bad(t->s.in, at, t->d, "expected %s, got %s", want, found);
    return diag_set(t->d, -EBADMSG, "%s: byte %llu: expected %s, got %s", t->name,
                    (unsigned long long)at, want, found);
}

void kaldi_text_put(struct kaldi_text *t, unsigned array, int32_t v)
{
    uint64_t i = t->n[array]++;

    if (kaldi_is_kept(t, array, i))
        store_le32(t->dst + 4 * i, (uint32_t)v);
}

int kaldi_text_int(struct kaldi_text *t, int32_t *ret)
{
    kaldi_scan_skip_blanks(&t->s);
    return kaldi_scan_int(&t->s, ret) ? 0 : kaldi_text_fail(t, "an integer of 32 bits");
}

int kaldi_take_size(struct kaldi_text *t, int32_t *ret)
{
    int r = kaldi_text_int(t, ret);

    return r == 0 && *ret < 0 ? kaldi_text_fail(t, "a size of at least 0 before this") : r;
}

void kaldi_expect_doubles(struct kaldi_text *t)
{
    if (t->dst)
        t->s.infinite = true;
    else
        t->wide = true;
}

/* Does a token end at q? q must be inside the buffer, or at the end of all bytes. */
static bool token_ends(const struct kaldi_text *t, const uint8_t *q)
{
    return q == t->s.end || kaldi_is_blank(*q);
}

int kaldi_take_open(struct kaldi_text *t, bool *ret_closed)
{
    bool closed;

    kaldi_scan_skip_blanks(&t->s);
    kaldi_scan_need(&t->s, 3);
    closed = ret_closed && t->s.p[0] == '[' && t->s.p[1] == ']';
    if (t->s.p[0] != '[' || !token_ends(t, t->s.p + 1 + closed))
        return kaldi_text_fail(t, "\"[\" and white space");
    t->s.p += 1 + closed;
    if (ret_closed)
        *ret_closed = closed;
    return 0;
}

void kaldi_take_line_end(struct kaldi_text *t)
{
    kaldi_scan_need(&t->s, 2);
    if (*t->s.p == '\r')
        t->s.p += t->s.p + 1 < t->s.end ? 2 : 1;
    else if (*t->s.p == '\n')
        t->s.p++;
}

int kaldi_take_word(struct kaldi_text *t, unsigned array)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", (double)INFINITY}, {"inf", (double)INFINITY}, {"nan", (double)NAN}};

    kaldi_scan_skip_blanks(&t->s);
    kaldi_scan_need(&t->s, 16);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i].word);

        if (strncasecmp((const char *)t->s.p, words[i].word, len) != 0 ||
            !token_ends(t, t->s.p + len))
            continue;
        t->s.p += len;
        kaldi_put_real(t, array, words[i].value);
        return 0;
    }
    return kaldi_text_fail(t, "a number or \"]\"");
}
