#include "format/libsvm/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/text/lines.h"

/* What the quick path finds in the features of a row. */
struct plain {
    uint64_t tokens, colons;
    /* Digits of an index, or a field, as a big-endian number, which sorts as the index does: */
    uint64_t largest, largest_field;
    bool has_zero;
    bool is_plain;
    bool has_fields, in_index; /* each index is after a field; the next colon ends an index */
};

/* Take account of the index, or the field, that ends before the colon at p. */
static void see_index(const uint8_t *p, struct plain *plain)
{
    uint64_t v = load_be64(p - 8), x = v ^ UINT64_C(0x3030303030303030);
    uint64_t others = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
    unsigned bits = others ? (unsigned)__builtin_ctzll(others) & 56 : 0; /* of the digits */
    bool in_index = plain->in_index;

    /* 1 to 7 digits after white space, an index after its field, and no leading zero except in "0".
     */
    if (!bits || !(in_index ? (uint8_t)(v >> bits) == ':' : text_is_blank((uint8_t)(v >> bits))) ||
        (bits > 8 && (v >> (bits - 8) & 0xff) == '0')) {
        plain->is_plain = false;
        return;
    }
    v &= (UINT64_C(1) << bits) - 1;
    plain->has_zero = plain->has_zero || v == '0';
    plain->in_index = plain->has_fields && !in_index;
    if (plain->in_index)
        plain->largest_field = v > plain->largest_field ? v : plain->largest_field;
    else
        plain->largest = v > plain->largest ? v : plain->largest;
}

/* Take account of the features in bytes [from, to) of the text; the first byte is white space, or
 * there are no bytes. */
static void see_features(const uint8_t *text, const struct text_masks *masks, size_t from,
                         size_t to, struct plain *plain)
{
    uint64_t in_token = 0; /* 1 if the byte before this word belongs to a token */

    for (size_t word = from / 64; word * 64 < to; word++) {
        const struct text_masks *m = &masks[word];
        uint64_t inside = ~UINT64_C(0), token;

        if (word * 64 < from)
            inside <<= from % 64;
        if (to - word * 64 < 64)
            inside &= (UINT64_C(1) << (to - word * 64)) - 1;
        token = ~m->space & inside;
        plain->tokens += (unsigned)__builtin_popcountll(token & ~(token << 1 | in_token));
        for (uint64_t colon = m->mark & inside; colon; colon &= colon - 1) {
            see_index(text + word * 64 + (unsigned)__builtin_ctzll(colon), plain);
            plain->colons++;
        }
        if (!plain->is_plain)
            return;
        in_token = token >> 63;
    }
}

/* Where the features of a plain row start: after one number, or, with weights, after two and a
 * colon between them. 0: the row is not plain. */
static size_t features_start(const uint8_t *text, size_t at, size_t end, unsigned columns)
{
    unsigned colons = 0;

    if (text[at] == ':')
        return 0;
    for (; at < end && !text_is_blank(text[at]); at++)
        colons += text[at] == ':';
    return colons == !!(columns & LIBSVM_WEIGHT) ? at : 0;
}

static uint32_t digits_value(uint64_t digits)
{
    uint32_t v = 0;

    for (int shift = 56; shift >= 0; shift -= 8)
        if (digits >> shift & 0xff)
            v = v * 10 + (uint32_t)((digits >> shift & 0xff) - '0');
    return v;
}

void libsvm_totals_add(struct libsvm_totals *sum, const struct libsvm_totals *t)
{
    sum->largest = t->largest > sum->largest ? t->largest : sum->largest;
    sum->largest_field =
        t->largest_field > sum->largest_field ? t->largest_field : sum->largest_field;
    sum->has_features = sum->has_features || t->has_features;
    sum->has_zero = sum->has_zero || t->has_zero;
    sum->labels = max_u64(sum->labels, t->labels);
    sum->skipped += t->skipped;
    sum->text_lines += t->text_lines;
}

/* The quick path for row [start, end). False: the row must be parsed. It accepts only rows that can
 * be read: a label, a weight if there are weights, and features, all plain numbers. */
static bool see_plain(struct libsvm_scan *scan, const uint8_t *text, const struct text_masks *masks,
                      size_t start, size_t end, uint64_t *ret_features)
{
    struct plain plain = {.is_plain = true, .has_fields = scan->columns & LIBSVM_FIELD};
    size_t from;

    if (scan->columns & (LIBSVM_QID | LIBSVM_ANY) || end - start > LIBSVM_LINE_MAX ||
        text_is_blank(text[start]) || text_masks_odd(masks, start, end))
        return false;
    from = features_start(text, start, end, scan->columns);
    if (!from)
        return false;
    see_features(text, masks, from, end, &plain);
    if (!plain.is_plain || plain.tokens << plain.has_fields != plain.colons ||
        (plain.has_zero && scan->columns & LIBSVM_FROM_ONE))
        return false;
    libsvm_totals_add(&scan->totals,
                      &(struct libsvm_totals){.largest = digits_value(plain.largest),
                                              .largest_field = digits_value(plain.largest_field),
                                              .has_features = plain.tokens,
                                              .has_zero = plain.has_zero,
                                              .labels = 1});
    *ret_features = plain.tokens;
    return true;
}

/* Parse row [start, end). False: the row cannot be read. */
static bool see_parsed(struct libsvm_scan *scan, const uint8_t *text, size_t start, size_t end,
                       struct libsvm_span *span)
{
    struct libsvm_row row = {0};
    struct libsvm_fault fault;

    if (libsvm_line_parse(text + start, end - start, scan->columns, &row, &fault) < 0) {
        if (scan->bad)
            scan->bad(scan, text + start, end - start, &fault);
        return false;
    }
    libsvm_totals_add(&scan->totals, &(struct libsvm_totals){.largest = row.largest,
                                                             .largest_field = row.largest_field,
                                                             .has_features = row.n,
                                                             .has_zero = row.has_zero,
                                                             .labels = row.n_labels});
    span->features = row.n;
    span->qid = row.columns & LIBSVM_QID ? row.qid : PLACES_NO_QID;
    return true;
}

static int libsvm_scan_add_row(struct libsvm_scan *scan, const struct libsvm_span *span)
{
    if (scan->n == scan->capacity) {
        size_t capacity = scan->capacity * 2 + 1024;
        struct libsvm_span *grown = realloc(scan->row, capacity * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        scan->row = grown;
        scan->capacity = capacity;
    }
    scan->row[scan->n++] = *span;
    return 0;
}

/* Quick, for most rows have no such number. */
static bool row_may_be_rounded(const struct libsvm_scan *scan, const uint8_t *text,
                               const struct text_masks *masks, size_t start, size_t end,
                               bool is_plain)
{
    return text_masks_long(masks, start, end, !(scan->rounded.seen.kinds & ROUNDED_DIGITS)) ||
           (!is_plain && libsvm_rounded_exponents(text + start, end - start));
}

/* Add the row of one line, if it has one. masks: of the words from text on. */
static int libsvm_scan_see_line(struct libsvm_scan *scan, const uint8_t *text,
                                const struct text_masks *masks, size_t start, size_t end,
                                uint64_t base)
{
    struct libsvm_span span = {.start = base + start,
                               .len = end - start,
                               .line = scan->totals.text_lines,
                               .qid = PLACES_NO_QID};
    struct libsvm_row numbers = {.rounded = &scan->rounded, .at = scan->at + base + start};
    struct libsvm_fault fault;
    bool is_plain, is_good;

    if (!libsvm_is_row(text + start, end - start))
        return 0;
    is_plain = see_plain(scan, text, masks, start, end, &span.features);
    is_good = is_plain || see_parsed(scan, text, start, end, &span);
    if (is_good && row_may_be_rounded(scan, text, masks, start, end, is_plain))
        libsvm_line_parse(text + start, end - start, scan->columns, &numbers, &fault);
    if (is_good || !scan->skip_bad)
        return libsvm_scan_add_row(scan, &span);
    scan->totals.skipped++;
    return 0;
}

static int make_masks(struct libsvm_scan *scan, const uint8_t *text, size_t len)
{
    size_t words = len / 64 + 1;
    struct text_masks *masks;

    if (words > scan->mask_capacity) {
        uint64_t *grown = realloc(scan->mask, words * sizeof(*masks));

        if (!grown)
            return -ENOMEM;
        scan->mask = grown;
        scan->mask_capacity = words;
    }
    masks = (struct text_masks *)scan->mask;
    text_masks_make(text, words, ':', true, masks);
    return 0;
}

int libsvm_scan_text(struct libsvm_scan *scan, const uint8_t *text, size_t from, size_t to,
                     bool last, size_t *ret_used)
{
    const uint8_t *slice = text + from;
    size_t len = to - from;
    int r = make_masks(scan, slice, len);
    const struct text_masks *masks = (const struct text_masks *)scan->mask;
    struct text_lines lines = text_lines_of(slice, len, masks, slice[-1]);
    struct text_line line;

    while (r == 0 && text_lines_next(&lines, &line)) {
        r = libsvm_scan_see_line(scan, slice, masks, line.start, line.end, from);
        scan->totals.text_lines++;
    }
    if (last && lines.start < len && r == 0) {
        r = libsvm_scan_see_line(scan, slice, masks, lines.start, len, from);
        lines.start = len;
    }
    if (r == 0)
        *ret_used = from + lines.start;
    return r;
}

void libsvm_scan_release(struct libsvm_scan *scan)
{
    free(scan->row);
    free(scan->mask);
    *scan = (struct libsvm_scan){0};
}
