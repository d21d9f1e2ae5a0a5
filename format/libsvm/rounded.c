#include "format/libsvm/rounded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define SEEN_ALL (ROUNDED_WHOLE | ROUNDED_DIGITS | ROUNDED_LARGE | ROUNDED_SMALL)

#define DIGITS_LEN     11 /* bytes of a number with a point and more digits than float32 needs */
#define SMALL_LEN      32 /* bytes of a number that can be too small without an exponent */
#define EXPONENT_LARGE 27 /* float32 reaches from 1.4e-45 to 3.4e38 */

/* An exponent that a number of few digits can be too large, or too small, for. */
static bool exponent_is_large(const uint8_t *p, const uint8_t *end)
{
    unsigned exponent = 0;

    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && isdigit(*p) && exponent < EXPONENT_LARGE; p++)
        exponent = exponent * 10 + (unsigned)(*p - '0');
    return exponent >= EXPONENT_LARGE;
}

/* Could the number be of a kind that was not seen yet? Quick: a row has many. */
static bool rounded_is_doubtful(const struct libsvm_rounded *rounded, const uint8_t *text,
                                size_t len)
{
    size_t sign = *text == '-' || *text == '+';
    uint32_t ignored;

    if (len < strlen("1e39"))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((text[i] | ' ') == 'e')
            return (i >= DIGITS_LEN + sign && libsvm_rounded_looks_at_digits(rounded)) ||
                   exponent_is_large(text + i + 1, text + len);
    if (len < ROUNDED_LEN + sign)
        return false;
    return (len >= DIGITS_LEN + sign && libsvm_rounded_looks_at_digits(rounded)) ||
           len >= SMALL_LEN || decimal_digits8(text + sign, &ignored) == ROUNDED_LEN;
}

bool libsvm_rounded_exponents(const uint8_t *line, size_t len)
{
    const uint8_t *const end = line + len;

    for (const char *letter = "eE"; *letter; letter++)
        for (const uint8_t *p = line; (p = memchr(p, *letter, (size_t)(end - p))); p++)
            if (exponent_is_large(p + 1, end))
                return true;
    return false;
}

void libsvm_rounded_number(struct libsvm_rounded *rounded, const uint8_t *text, size_t len,
                           uint64_t at)
{
    unsigned found, i;

    if (!len || rounded->seen == SEEN_ALL || !rounded_is_doubtful(rounded, text, len))
        return;
    found = rounded_number(text, len, false);
    rounded->exact += !found && memchr(text, '.', len);
    if (!found || rounded->seen & found)
        return;
    i = (unsigned)__builtin_ctz(found);
    rounded->seen |= found;
    rounded->first[i].at = at;
    snprintf(rounded->first[i].text, sizeof(rounded->first[i].text), "%.*s", (int)min_u64(len, 40),
             (const char *)text);
}

static const uint8_t *rounded_skip_blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && libsvm_is_blank(*p))
        p++;
    return p;
}

static const uint8_t *word_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end && !libsvm_is_blank(*p) && *p != ':' && *p != ',' && *p != '#')
        p++;
    return p;
}

/* What is joined by colons is a group: the labels and their weight, the qid, a feature. Its last
 * word is a number, except in the qid and in an index without a value. */
void libsvm_rounded_row(struct libsvm_rounded *rounded, const uint8_t *line, size_t len,
                        unsigned columns, uint64_t at)
{
    const uint8_t *p = line, *const end = line + len;
    unsigned index = columns & LIBSVM_FIELD ? 2 : 1, colons = 0;
    bool in_labels = true, is_qid = false;

    while (rounded->seen != SEEN_ALL) {
        const uint8_t *word = rounded_skip_blanks(p, end), *stop = word_end(word, end), *after;
        bool has_colon;

        if (stop == word)
            return;
        after = rounded_skip_blanks(stop, end);
        has_colon = after < end && *after == ':';
        if (in_labels && !colons && has_colon && word > line && !(columns & LIBSVM_WEIGHT))
            in_labels = false; /* a row without a label */
        if (in_labels ? colons < 2 : colons == index && !is_qid)
            libsvm_rounded_number(rounded, word, (size_t)(stop - word),
                                  at + (uint64_t)(word - line));
        is_qid = !in_labels && !colons && stop - word == 3 && !memcmp(word, "qid", 3);
        if (in_labels && !has_colon && after == stop && stop < end && *stop == ',') {
            p = stop + 1;
            continue;
        }
        in_labels = in_labels && has_colon;
        colons = has_colon ? colons + 1 : 0;
        is_qid = is_qid && has_colon;
        p = has_colon ? after + 1 : stop;
    }
}

void libsvm_rounded_merge(struct libsvm_rounded *rounded, const struct libsvm_rounded *other)
{
    for (unsigned i = 0; i < LIBSVM_ROUNDED_KINDS; i++)
        if (other->seen & 1u << i &&
            (!(rounded->seen & 1u << i) || other->first[i].at < rounded->first[i].at))
            rounded->first[i] = other->first[i];
    rounded->seen |= other->seen;
}

void libsvm_rounded_note(const struct libsvm_rounded *rounded, const char *name, const char *end,
                         struct text *t)
{
    static const char *const what[LIBSVM_ROUNDED_KINDS] = {
        "has whole numbers that float32 rounds",
        "has numbers of many digits that float32 rounds",
        "has numbers that are too large for float32: they are infinite",
        "has numbers that are too small for float32: they are 0",
    };

    for (unsigned i = 0; i < LIBSVM_ROUNDED_KINDS; i++)
        if (rounded->seen & 1u << i)
            text_add(t, "%s: %s. The first is '%s', byte %llu%s\n", name, what[i],
                     rounded->first[i].text, (unsigned long long)rounded->first[i].at, end);
}
