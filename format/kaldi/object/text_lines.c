/* Kaldi's text of single values, lists, posteriors and tokens. Most of them take the rest of a
 * line. */
#include "format/kaldi/object/text.h"

/* The end of a value's line: the line must not be empty and must have a newline. */
static int take_newline(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_peek(&t->s) != '\n')
        return kaldi_text_fail(t, "a newline after the value");
    t->s.p++;
    return 0;
}

/* Is p at the end of a line, which may also be the end of the file? If so, skip it. */
static bool take_end(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_ended(&t->s))
        return true;
    if (*t->s.p != '\n')
        return false;
    t->s.p++;
    return true;
}

int kaldi_text_one_int(struct kaldi_text *t)
{
    int32_t v;
    int r;

    t->s.by_line = true;
    r = kaldi_text_int(t, &v);
    if (r == 0)
        kaldi_text_put(t, ARRAY_ONLY, v);
    return r < 0 ? r : take_newline(t);
}

int kaldi_text_one_real(struct kaldi_text *t)
{
    int r;

    t->s.by_line = true;
    kaldi_scan_skip_blanks(&t->s);
    r = kaldi_take_into(t, ARRAY_ONLY);
    return r < 0 ? r : take_newline(t);
}

int kaldi_text_one_double(struct kaldi_text *t)
{
    kaldi_expect_doubles(t);
    return kaldi_text_one_real(t);
}

int kaldi_text_one_bool(struct kaldi_text *t)
{
    uint8_t c;

    t->s.by_line = true;
    kaldi_scan_skip_blanks(&t->s);
    c = kaldi_scan_peek(&t->s);
    if (c != 'T' && c != 'F')
        return kaldi_text_fail(t, "T or F");
    if (kaldi_is_kept(t, ARRAY_ONLY, 0))
        *t->dst = c == 'T';
    t->n[ARRAY_ONLY]++;
    t->s.p++;
    return take_newline(t);
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

    while (r == 0 && !take_end(t)) {
        int32_t v;

        r = kaldi_text_int(t, &v);
        if (r == 0)
            kaldi_text_put(t, ARRAY_ONLY, v);
    }
    return r;
}

/* Store the number of elements since *start, and move *start to here. */
static int put_count(struct kaldi_text *t, unsigned values, uint64_t *start)
{
    uint64_t n = t->n[values] - *start;

    if (n > INT32_MAX)
        return kaldi_text_fail(t, "less than 2^31 elements before this");
    kaldi_text_put(t, ARRAY_COUNTS, (int32_t)n);
    *start = t->n[values];
    return 0;
}

int kaldi_text_int_lists(struct kaldi_text *t)
{
    uint64_t start = 0;
    int r = 0;

    t->s.by_line = true;
    while (r == 0) {
        int32_t v;
        uint8_t c;

        kaldi_scan_skip_blanks(&t->s);
        c = kaldi_scan_peek(&t->s);
        if (c == ';') {
            t->s.p++;
            r = put_count(t, ARRAY_LIST_VALUES, &start);
        } else if (c == '\n' && t->n[ARRAY_LIST_VALUES] == start) {
            t->s.p++;
            return 0;
        } else if (kaldi_scan_int(&t->s, &v)) {
            kaldi_text_put(t, ARRAY_LIST_VALUES, v);
        } else {
            r = kaldi_text_fail(t, "an integer of 32 bits or \";\"");
        }
    }
    return r;
}

/* Take what is between two semicolons: a pair; if they are the only two, no pair. *ret_done: it was
 * the last one. */
static int take_pair(struct kaldi_text *t, bool real, bool *ret_done)
{
    uint64_t first = t->n[ARRAY_ONLY];
    int r = 0;

    while (r == 0) {
        int32_t v;
        uint8_t c;

        kaldi_scan_skip_blanks(&t->s);
        c = kaldi_scan_peek(&t->s);
        if (c == ';' || c == '\n') {
            if (t->n[ARRAY_ONLY] - first != 2 && (c == ';' || t->n[ARRAY_ONLY]))
                return kaldi_text_fail(t, "two numbers before this");
            *ret_done = c == '\n';
            t->s.p++;
            return 0;
        }
        r = real ? kaldi_take_into(t, ARRAY_ONLY) : kaldi_text_int(t, &v);
        if (r == 0 && !real)
            kaldi_text_put(t, ARRAY_ONLY, v);
    }
    return r;
}

static int pairs(struct kaldi_text *t, bool real)
{
    bool done = false;
    int r = 0;

    t->s.by_line = true;
    while (r == 0 && !done)
        r = take_pair(t, real, &done);
    return r;
}

int kaldi_text_int_pairs(struct kaldi_text *t)
{
    return pairs(t, false);
}

int kaldi_text_float_pairs(struct kaldi_text *t)
{
    return pairs(t, true);
}

/* The entries of a frame, after its bracket. */
static int post_frame(struct kaldi_text *t)
{
    uint64_t start = t->n[ARRAY_POST_VALUES];
    int r = 0;

    while (r == 0) {
        int32_t index;

        kaldi_scan_skip_blanks(&t->s);
        if (kaldi_scan_peek(&t->s) == ']') {
            t->s.p++;
            return put_count(t, ARRAY_POST_VALUES, &start);
        }
        r = kaldi_text_int(t, &index);
        if (r < 0)
            break;
        kaldi_text_put(t, ARRAY_POST_INDEX, index);
        kaldi_scan_skip_blanks(&t->s);
        r = kaldi_take_into(t, ARRAY_POST_VALUES);
    }
    return r;
}

int kaldi_text_posterior(struct kaldi_text *t)
{
    int r = start_line(t);

    while (r == 0 && !take_end(t)) {
        r = kaldi_take_open(t, NULL);
        if (r == 0)
            r = post_frame(t);
    }
    return r;
}

/* An index and a vector. */
static int gauss_entry(struct kaldi_text *t)
{
    uint64_t start = t->n[ARRAY_GAUSS_VALUES];
    int32_t index;
    int r = kaldi_text_int(t, &index);

    if (r < 0)
        return r;
    kaldi_text_put(t, ARRAY_POST_INDEX, index);
    r = kaldi_dense_vector(t, ARRAY_GAUSS_VALUES);
    if (r < 0)
        return r;
    if (t->n[ARRAY_GAUSS_VALUES] - start > INT32_MAX)
        return kaldi_text_fail(t, "a vector of less than 2^31 elements before this");
    kaldi_text_put(t, ARRAY_GAUSS_DIMS, (int32_t)(t->n[ARRAY_GAUSS_VALUES] - start));
    return 0;
}

int kaldi_text_gauss_post(struct kaldi_text *t)
{
    int32_t frames, entries;
    int r = kaldi_take_size(t, &frames);

    for (int32_t frame = 0; r == 0 && frame < frames; frame++) {
        r = kaldi_take_size(t, &entries);
        if (r == 0)
            kaldi_text_put(t, ARRAY_COUNTS, entries);
        for (int32_t i = 0; r == 0 && i < entries; i++)
            r = gauss_entry(t);
    }
    return r;
}

/* A newline must follow the token, but any number of empty lines may precede it. */
int kaldi_text_token(struct kaldi_text *t)
{
    kaldi_scan_skip_blanks(&t->s);
    if (kaldi_scan_ended(&t->s))
        return kaldi_text_fail(t, "a token");
    kaldi_scan_skip_token(&t->s);
    t->s.by_line = true;
    return take_newline(t);
}

int kaldi_text_tokens(struct kaldi_text *t)
{
    int r = start_line(t);

    while (r == 0 && !take_end(t))
        kaldi_scan_skip_token(&t->s);
    return r;
}
