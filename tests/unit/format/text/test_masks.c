/* The masks against a model that looks at one byte after another, with the widest instructions of
 * this processor, with those that each has, and with none (masks_portable.c). */
#include "format/text/masks.h"

#include <string.h>

#include "support/random.h"
#include "support/unit.h"

void portable_masks_make(const uint8_t *text, size_t words, char mark, bool needs_number,
                         struct text_masks *ret);
void portable_masks_find(const uint8_t *text, size_t words, char end, struct text_masks *ret);

#define WORDS 6
#define BYTES (WORDS * 64)

static bool is_separator(uint8_t c, char mark)
{
    return c && (strchr(" \t\v\f\n\r", c) || c == (uint8_t)mark);
}

static uint64_t bit(bool is, size_t i)
{
    return (uint64_t)is << i % 64;
}

/* Walks over the number that begins at i, and says which of its bytes are odd. */
static void model(const uint8_t *text, char mark, bool needs_number, struct text_masks *ret)
{
    memset(ret, 0, WORDS * sizeof(*ret));
    for (size_t i = 0; i < BYTES; i++) {
        struct text_masks *m = &ret[i / 64];
        uint8_t c = text[i], last = i ? text[i - 1] : '\n';
        bool separator = is_separator(c, mark), starts = is_separator(last, mark);
        bool digit = c >= '0' && c <= '9', sign = c == '-' || c == '+', in_fraction = false;

        m->end |= bit(c == '\n' || c == '\r', i);
        m->mark |= bit(c == (uint8_t)mark, i);
        m->point |= bit(c == '.', i);
        m->digit |= bit(digit, i);
        m->zero |= bit(c == '0', i);
        m->space |= bit(separator && c != '\n' && c != '\r' && c != (uint8_t)mark, i);
        for (size_t k = i; k-- > 0 && !in_fraction;) {
            if (text[k] == '.')
                in_fraction = true;
            else if (text[k] < '0' || text[k] > '9')
                break;
        }
        if (!separator && !digit && !sign && c != '.')
            m->odd |= bit(true, i);
        if ((sign && !starts) || (c == '.' && (starts || in_fraction)))
            m->odd |= bit(true, i);
        /* A digit follows a sign that begins a number. */
        if (i && (last == '-' || last == '+') && (i < 2 || is_separator(text[i - 2], mark)))
            m->odd |= bit(!digit, i);
        if (needs_number && i && last == (uint8_t)mark)
            m->odd |= bit(separator, i);
    }
}

static void compare(const uint8_t *text, char mark, bool needs_number)
{
    struct text_masks want[WORDS], found[WORDS];

    model(text, mark, needs_number, want);
    text_masks_make(text, WORDS, mark, needs_number, found);
    assert_memory_equal(found, want, sizeof(want));
    text_masks_make_anywhere(text, WORDS, mark, needs_number, found);
    assert_memory_equal(found, want, sizeof(want));
    portable_masks_make(text, WORDS, mark, needs_number, found);
    assert_memory_equal(found, want, sizeof(want));
    for (unsigned i = 0; i < WORDS; i++)
        want[i] = (struct text_masks){.end = want[i].mark};
    text_masks_find(text, WORDS, mark, found);
    assert_memory_equal(found, want, sizeof(want));
    portable_masks_find(text, WORDS, mark, found);
    assert_memory_equal(found, want, sizeof(want));
}

UNIT_TEST(test_masks__random_text__as_the_model)
{
    static const char letters[] =
        "0123456789012345678901234567890123456789...---++   ,,,::\t\n\r\v\fex\"";
    uint64_t chance = RANDOM_SEED;
    uint8_t text[BYTES];

    for (unsigned round = 0; round < 3000; round++) {
        for (size_t i = 0; i < BYTES; i++)
            text[i] = round % 4 ? (uint8_t)letters[random_below(&chance, sizeof(letters) - 1)]
                                : (uint8_t)random_below(&chance, 256);
        compare(text, round % 2 ? ',' : '\t', round % 3 == 0);
    }
}

UNIT_TEST(test_masks__each_byte__as_the_model)
{
    uint8_t text[BYTES];

    for (unsigned c = 0; c < 256; c++) {
        memset(text, '1', sizeof(text));
        for (size_t i = 0; i < BYTES; i += 31)
            text[i] = (uint8_t)c;
        compare(text, ':', true);
    }
}

UNIT_TEST(test_masks_odd__edges__seen)
{
    struct text_masks masks[3] = {{.odd = 0}, {.odd = UINT64_C(1) << 5}, {.odd = 0}};

    assert_true(text_masks_odd(masks, 0, 191));
    assert_true(text_masks_odd(masks, 69, 69));
    assert_true(!text_masks_odd(masks, 0, 68));
    assert_true(!text_masks_odd(masks, 70, 191));
}

static bool model_long(const uint8_t *text, size_t from, bool fractions)
{
    size_t digits = 0, whole = 0, number = 0;
    bool in_fraction = false;

    for (size_t i = from; i < BYTES; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';

        in_fraction = text[i] == '.' || (digit && in_fraction);
        whole = digit && !in_fraction ? whole + 1 : 0;
        digits = text[i] == '.' ? digits : digit ? digits + (digits || text[i] != '0') : 0;
        number = digit || text[i] == '.' ? number + 1 : 0;
        if (whole >= 8 || number >= 32 || (fractions && digits >= 10))
            return true;
    }
    return false;
}

UNIT_TEST(test_masks_long__random_numbers__as_the_model)
{
    uint64_t chance = RANDOM_SEED;
    unsigned n_long = 0;

    for (unsigned round = 0; round < 20000; round++) {
        struct text_masks masks[WORDS];
        uint8_t text[BYTES];
        size_t from = random_below(&chance, BYTES);
        bool fractions = random_below(&chance, 2);
        size_t longest = 2 + random_below(&chance, round % 4 ? 9 : 40); /* part of a number */

        bool had_point = false; /* a number has one */

        for (size_t i = 0, left = 0; i < BYTES; i++) {
            text[i] = left ? (uint8_t) "00123"[random_below(&chance, round % 8 ? 5 : 2)]
                           : (uint8_t) ",\n e."[random_below(&chance, had_point ? 4 : 5)];
            had_point = left ? had_point : text[i] == '.';
            left = left ? left - 1 : 1 + random_below(&chance, longest);
        }
        text_masks_make(text, WORDS, ',', false, masks);
        assert_int_equal(text_masks_long(masks, from, BYTES, fractions),
                         model_long(text, from, fractions));
        n_long += model_long(text, from, fractions);
    }
    assert_in_range(n_long, 2000, 18000);
}
