/* The lines of random text, cut into pieces of any size, against a loop over its bytes. */
#include "format/text/lines.h"

#include <string.h>

#include "support/random.h"
#include "support/unit.h"

#define WORDS 8
#define BYTES (WORDS * 64)

/* Where the lines of text[0, len) end, and whether each is a line at all. */
static size_t model(const uint8_t *text, size_t len, bool lf_only, struct text_line *ret)
{
    size_t n = 0, start = 0;

    for (size_t i = 0; i < len; i++) {
        bool lf = text[i] == '\n', cr = text[i] == '\r' && !lf_only;

        if (!lf && !cr)
            continue;
        if (cr || lf_only || !i || text[i - 1] != '\r')
            ret[n++] = (struct text_line){start, i};
        start = i + 1;
    }
    return n;
}

static void make(const uint8_t *text, size_t len, bool lf_only, struct text_masks *ret)
{
    if (lf_only)
        text_masks_find(text, (len + 63) / 64, '\n', ret);
    else
        text_masks_make(text, (len + 63) / 64, ',', false, ret);
}

/* Each piece begins where the last line of the one before it ended, as scans do it. */
static void compare(const uint8_t *text, size_t len, size_t piece, bool lf_only)
{
    struct text_line want[BYTES], found;
    size_t n = model(text, len, lf_only, want), seen = 0, at = 0;
    struct text_masks masks[WORDS + 1];
    uint8_t buffer[BYTES + 64], before = '\n';

    for (size_t step = piece, start; at < len; step = start ? piece : step * 2) {
        size_t some = len - at < step ? len - at : step;
        struct text_lines lines = text_lines_of(buffer, some, masks, before);

        memset(buffer, '\n', sizeof(buffer)); /* bytes after the text do not count */
        memcpy(buffer, text + at, some);
        make(buffer, some, lf_only, masks);
        for (; text_lines_next(&lines, &found); seen++) {
            assert_true(seen < n);
            assert_int_equal(at + found.start, want[seen].start);
            assert_int_equal(at + found.end, want[seen].end);
        }
        start = lines.start;
        if (start)
            before = buffer[start - 1];
        else if (some == len - at)
            break;
        at += start;
    }
    assert_int_equal(seen, n);
}

UNIT_TEST(test_lines__random_text_in_pieces__as_the_model)
{
    static const char common[] = "ab\r\n\r\n,\n";
    uint64_t rng = RANDOM_SEED;
    uint8_t text[BYTES];

    for (unsigned round = 0; round < 4000; round++) {
        size_t len = random_next(&rng) % (BYTES + 1), piece = 1 + random_next(&rng) % 200;

        for (size_t i = 0; i < len; i++) /* short lines, and long ones */
            text[i] = round % 2 || random_next(&rng) % 90 == 0
                          ? (uint8_t)common[random_next(&rng) % (sizeof(common) - 1)]
                          : 'x';
        compare(text, len, piece, false);
        compare(text, len, piece, true);
    }
}

UNIT_TEST(test_lines__cr_before_the_text__lf_ends_no_line)
{
    const uint8_t text[64] = "\nab\n";
    struct text_masks masks[1] = {{0}};
    struct text_lines lines = text_lines_of(text, 4, masks, '\r');
    struct text_line line;

    text_masks_make(text, 1, ',', false, masks);
    assert_true(text_lines_next(&lines, &line));
    assert_int_equal(line.start, 1);
    assert_int_equal(line.end, 3);
    assert_true(!text_lines_next(&lines, &line));
    assert_int_equal(lines.start, 4);
}
