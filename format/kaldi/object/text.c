/* Kaldi objects as text: where they end, and their arrays. The parsers are in text_matrix.c and
 * text_lines.c of this folder; here is what they share.
 *
 * An object ends where Kaldi stops reading: the end of the line after `]` belongs to it, but not
 * after `[]` and the `]` of sparse objects. Real numbers are read as float, except for DOUBLE and
 * for arrays requested as double; Kaldi would round the numbers of sparse objects, pairs and
 * posteriors to float first. */
#include "format/kaldi/object/text.h"

#include <ctype.h>
#include <stdio.h>

#include "base/checked.h"

#define FOUND_SHOWN 20 /* bytes of the text that a message shows */

static int (*const parsers[N_KALDI_TYPES])(struct kaldi_text *t) = {
    [KALDI_MATRIX] = kaldi_text_matrix,
    [KALDI_VECTOR] = kaldi_text_vector,
    [KALDI_PACKED] = kaldi_text_packed,
    [KALDI_INT] = kaldi_text_one,
    [KALDI_FLOAT] = kaldi_text_one,
    [KALDI_DOUBLE] = kaldi_text_one,
    [KALDI_BOOL] = kaldi_text_one,
    [KALDI_INTS] = kaldi_text_ints,
    [KALDI_INT_LISTS] = kaldi_text_separated,
    [KALDI_INT_PAIRS] = kaldi_text_separated,
    [KALDI_FLOAT_PAIRS] = kaldi_text_separated,
    [KALDI_POSTERIOR] = kaldi_text_posterior,
    [KALDI_GAUSS_POST] = kaldi_text_gauss_post,
    [KALDI_TOKEN] = kaldi_text_token,
    [KALDI_TOKENS] = kaldi_text_tokens,
};

int kaldi_text_measure(struct kaldi_in *in, const struct kaldi_values *values,
                       struct kaldi_object *o, struct diag *d)
{
    struct kaldi_text t = {.o = o, .d = d, .v = *values};
    uint8_t buffer[KALDI_SCAN_BUFFER];
    int r;

    kaldi_scan_init(&t.s, buffer, in, o->start);
    r = parsers[o->type](&t);
    if (r == 0 && in->error)
        r = kaldi_text_fail(&t, "more bytes");
    if (r < 0)
        return r;
    o->store = KALDI_TEXT;
    o->len = kaldi_scan_at(&t.s) - o->start;
    /* A newline that ends an object was the last byte that its parser skipped. */
    o->is_open = t.s.p == buffer || t.s.p[-1] != '\n';
    if (o->type != KALDI_MATRIX)
        kaldi_values_dims(&t.v, o->type, o->dim);
    return 0;
}

/* ---- what the parsers share ---- */

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

int kaldi_text_fail(struct kaldi_text *t, const char *expected)
{
    char found[FOUND_SHOWN + 8];
    uint64_t at = kaldi_scan_at(&t->s);

    show_found(t, found);
    return kaldi_bad(t->s.in, at, t->d, "expected %s, got %s", expected, found);
}

int kaldi_text_int(struct kaldi_text *t, int32_t *ret)
{
    kaldi_scan_skip_blanks(&t->s);
    return kaldi_scan_int(&t->s, ret) ? 0 : kaldi_text_fail(t, "an integer of 32 bits");
}

int kaldi_text_size(struct kaldi_text *t, int32_t *ret)
{
    int r = kaldi_text_int(t, ret);

    return r == 0 && *ret < 0 ? kaldi_text_fail(t, "a size of at least 0 before this") : r;
}

int kaldi_text_put_int(struct kaldi_text *t, unsigned array)
{
    int32_t v;
    int r = kaldi_text_int(t, &v);

    if (r == 0)
        kaldi_put_int32(&t->v, array, v);
    return r;
}

void kaldi_expect_doubles(struct kaldi_text *t)
{
    if (t->v.dst)
        t->s.infinite = true;
    else
        t->v.wide = true;
}

/* Does a token end at q? q must be inside the buffer, or at the end of all bytes. */
static bool token_ends(const struct kaldi_text *t, const uint8_t *q)
{
    return q == t->s.end || kaldi_is_blank(*q);
}

int kaldi_text_open(struct kaldi_text *t, bool *ret_closed)
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

void kaldi_text_line_end(struct kaldi_text *t)
{
    kaldi_scan_need(&t->s, 2);
    if (*t->s.p == '\r')
        t->s.p += t->s.p + 1 < t->s.end ? 2 : 1;
    else if (*t->s.p == '\n')
        t->s.p++;
}

int kaldi_text_word(struct kaldi_text *t, unsigned array)
{
    const uint8_t *end;
    float v;

    kaldi_scan_skip_blanks(&t->s);
    kaldi_scan_need(&t->s, 16);
    end = isalpha(*t->s.p) ? decimal_parse(t->s.p, t->s.end, &v) : NULL;
    if (!end || !token_ends(t, end))
        return kaldi_text_fail(t, "a number or \"]\"");
    t->s.p = end;
    kaldi_text_store(t, array, t->v.n[array]++, (double)v);
    return 0;
}
