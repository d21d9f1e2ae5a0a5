/* Kaldi's text of single values, lists, posteriors and tokens. Most of them take the rest of a
 * line. */
#include "format/kaldi/object/text.h"

/* The end of a value's line: the line must not be empty and must have a newline. */
static int text_newline(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_peek(&t->s) != '\n')
        return kaldi_text_fail(t, "a newline after the value");
    t->s.p++;
    return 0;
}

/* Is p at the end of a line, which may also be the end of the file? If so, skip it. */
static bool text_ended(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_ended(&t->s))
        return true;
    if (*t->s.p != '\n')
        return false;
    t->s.p++;
    return true;
}

static int text_bool(struct kaldi_text *t)
{
    uint8_t c = kaldi_scan_peek(&t->s);

    if (c != 'T' && c != 'F')
        return kaldi_text_fail(t, "T or F");
    kaldi_put_byte(&t->v, c == 'T');
    t->s.p++;
    return 0;
}

int kaldi_text_one(struct kaldi_text *t)
{
    int r;

    t->s.by_line = true;
    kaldi_scan_skip_blanks(&t->s);
    if (t->o->type == KALDI_DOUBLE)
        kaldi_expect_doubles(t);
    if (t->o->type == KALDI_BOOL)
        r = text_bool(t);
    else
        r = t->o->type == KALDI_INT ? kaldi_text_put_int(t, ARRAY_ONLY)
                                    : kaldi_text_put_real(t, ARRAY_ONLY);
    return r < 0 ? r : text_newline(t);
}

/* Begin an object that takes the rest of a line, which may be empty but not missing. */
static int start_line(struct kaldi_text *t)
{
    t->s.by_line = true;
    return kaldi_scan_ended(&t->s) ? kaldi_text_fail(t, "a line") : 0;
}

int kaldi_text_ints(struct kaldi_text *t)
{
    int r = start_line(t);

    while (r == 0 && !text_ended(t))
        r = kaldi_text_put_int(t, ARRAY_ONLY);
    return r;
}

/* Store the number of values since *start as a count, and move *start to here. */
static int put_count(struct kaldi_text *t, unsigned counts, unsigned values, uint64_t *start)
{
    uint64_t n = t->v.n[values] - *start;

    if (n > INT32_MAX)
        return kaldi_text_fail(t, "less than 2^31 elements before this");
    kaldi_put_int32(&t->v, counts, (int32_t)n);
    *start = t->v.n[values];
    return 0;
}

/* Lists of integers, with ; after each; or pairs of numbers, with ; between them, of which a line
 * may have none. */
int kaldi_text_separated(struct kaldi_text *t)
{
    bool pairs = t->o->type != KALDI_INT_LISTS;
    unsigned values = pairs ? ARRAY_ONLY : ARRAY_LIST_VALUES;
    uint64_t start = 0;
    int32_t v;
    int r = 0;

    t->s.by_line = true;
    while (r == 0) {
        uint64_t n = t->v.n[values] - start;
        uint8_t c;

        kaldi_scan_skip_blanks(&t->s);
        c = kaldi_scan_peek(&t->s);
        if (c == ';' || (c == '\n' && (pairs || !n))) {
            if (pairs && n != 2 && (c == ';' || t->v.n[values]))
                return kaldi_text_fail(t, "two numbers before this");
            t->s.p++;
            if (c == '\n')
                return 0;
            r = pairs ? 0 : put_count(t, ARRAY_COUNTS, values, &start);
            start = t->v.n[values];
        } else if (t->o->type == KALDI_FLOAT_PAIRS) {
            r = kaldi_text_put_real(t, values);
        } else if (kaldi_scan_int(&t->s, &v)) {
            kaldi_put_int32(&t->v, values, v);
        } else {
            r = kaldi_text_fail(t,
                                pairs ? "an integer of 32 bits" : "an integer of 32 bits or \";\"");
        }
    }
    return r;
}

/* The entries of a frame, after its bracket. */
static int post_frame(struct kaldi_text *t)
{
    uint64_t start = t->v.n[ARRAY_POST_VALUES];
    int r = 0;

    while (r == 0) {
        kaldi_scan_skip_blanks(&t->s);
        if (kaldi_scan_peek(&t->s) == ']') {
            t->s.p++;
            return put_count(t, ARRAY_COUNTS, ARRAY_POST_VALUES, &start);
        }
        r = kaldi_text_put_int(t, ARRAY_POST_INDEX);
        if (r < 0)
            break;
        kaldi_scan_skip_blanks(&t->s);
        r = kaldi_text_put_real(t, ARRAY_POST_VALUES);
    }
    return r;
}

int kaldi_text_posterior(struct kaldi_text *t)
{
    int r = start_line(t);

    while (r == 0 && !text_ended(t)) {
        r = kaldi_text_open(t, NULL);
        if (r == 0)
            r = post_frame(t);
    }
    return r;
}

/* An index and a vector. */
static int gauss_entry(struct kaldi_text *t)
{
    uint64_t start = t->v.n[ARRAY_GAUSS_VALUES];
    int r = kaldi_text_put_int(t, ARRAY_POST_INDEX);

    if (r == 0)
        r = kaldi_dense_vector(t, ARRAY_GAUSS_VALUES);
    return r < 0 ? r : put_count(t, ARRAY_GAUSS_DIMS, ARRAY_GAUSS_VALUES, &start);
}

int kaldi_text_gauss_post(struct kaldi_text *t)
{
    int32_t frames, entries;
    int r = kaldi_text_size(t, &frames);

    for (int32_t frame = 0; r == 0 && frame < frames; frame++) {
        r = kaldi_text_size(t, &entries);
        if (r == 0)
            kaldi_put_int32(&t->v, ARRAY_COUNTS, entries);
        for (int32_t i = 0; r == 0 && i < entries; i++)
            r = gauss_entry(t);
    }
    return r;
}

/* Skip the token at p, and note where the tokens of the object are. */
static void note_token(struct kaldi_text *t)
{
    uint64_t *dim = t->o->dim;

    if (!dim[0])
        dim[1] = kaldi_scan_at(&t->s) - t->o->start;
    kaldi_scan_skip_token(&t->s);
    dim[0] = kaldi_scan_at(&t->s) - t->o->start - dim[1];
}

/* A newline must follow the token, but any number of empty lines may precede it. */
int kaldi_text_token(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_ended(&t->s))
        return kaldi_text_fail(t, "a token");
    note_token(t);
    t->s.by_line = true;
    return text_newline(t);
}

int kaldi_text_tokens(struct kaldi_text *t)
{
    int r = start_line(t);

    while (r == 0 && !text_ended(t))
        note_token(t);
    return r;
}
