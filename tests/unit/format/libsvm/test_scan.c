/* The scan against a plain splitter of lines and libsvm_line_parse(), for nasty and for random
 * cases: with lines at every place, slices cut everywhere. */
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "format/libsvm/scan.h"
#include "support/random.h"
#include "support/unit.h"

#define TEXT_MAX 4096

static const unsigned all_columns[] = {0,
                                       LIBSVM_WEIGHT,
                                       LIBSVM_QID,
                                       LIBSVM_WEIGHT | LIBSVM_QID,
                                       LIBSVM_FROM_ONE,
                                       LIBSVM_FIELD,
                                       LIBSVM_FIELD | LIBSVM_WEIGHT,
                                       LIBSVM_FIELD | LIBSVM_FROM_ONE};

/* Every known edge case of a line; some are no rows, some cannot be read. */
static const char *const lines[] = {
    "",
    " ",
    "\t \v\f",
    "#",
    "# comment 9:9",
    " # comment 9:9",
    "1",
    "1 ",
    "1 0:1",
    "1 0:1.5 3:2",
    "1 0:1 # note 5:6",
    "1#c",
    "1#c 5:6",
    "1#a,b 5:6 7:8",
    "1,2#,c 5:6",
    "1:2#c 5:6",
    "1 qid:3#c 5:6",
    "1:2 qid:3#c 5:6",
    "0 # only",
    "0 5:6#7:8 9:10",
    "0 5:6 #7:8 9:10",
    "0 5:6 # 7:8",
    "1:0.5 0:1",
    "1:0.5",
    "1 :0.5 0:1",
    "1: 0.5 0:1",
    "1: 0:1",
    "1 : 0.5 0 : 1",
    "0 :2 1: 1",
    "1 0 3 5",
    "1 0 3:2",
    "1 0:3 2",
    "1 qid:7 2:3",
    "1\tqid:7\t2:3",
    "1 qid: 7 2:3",
    "1 qid:-3 2:3",
    "1 qid:+3 2:3",
    "1 qid: 2:3",
    "1 qid:",
    "1 qid:1.5 2:3",
    "1 qid:99999999999999999999 2:3",
    "1 2:3 qid:7",
    "1:2 qid:7 3:4",
    "1:2 qid:7",
    "1 sid:3 0:1",
    "1,2 0:1",
    "1,2,3",
    "1,2:3 0:1",
    "1,2:3,4 0:1",
    "1,,2 0:1",
    " 2:3.5",
    " 2:3.5 4:5",
    " 2 : 3.5 4:5",
    " 1 2:3",
    "1 0:nan 1:inf 2:-inf 3:+nan 4:Infinity",
    "nan 0:1",
    ":76.0",
    ":76.0 1:2",
    "::1",
    ". 0:1",
    "1 0:.",
    "1 0:-.",
    "1 0:-.5",
    "1 0:+.5 1:.5",
    "1 0:5.5.5",
    "1 0:5-5",
    "1 0:--5",
    "1 0:-",
    "- 0:1",
    "1 0:1. 2:3.",
    "1 0:123456789.123456789123456789 2:3",
    "inf:nan 0:1",
    "abc 0:1",
    "e 0:1",
    "1e0 0:1e-3 1:1E+2 2:-.5 3:5. 4:+7",
    "0x10 0:1",
    "1.5f 0:1",
    "1 5:1 2:2",
    "1 2:1 2:5",
    "1 -1:2",
    "1 +1:2",
    "1 0:1 4294967295:2",
    "1 4294967296:2",
    "1 1234567:1",
    "1 12345678:1",
    "1 01234567:1",
    "1 00000000000007:1",
    "1 0000:1",
    "1 00:1 01:2 007:3",
    "1 9999999:1 10000000:1",
    "1 1.5:2",
    "1 0:",
    "1 0: 5",
    "1 0:1 5:",
    "1 :5 1:2",
    "1 0:1,2:3",
    "1 0:1;2:3",
    "1 0:1\v2:3\f4:5",
    "1\302\2400:1", /* NBSP */
    "1 1:2:3",
    "1 1:2:3 4:5:6.5 7:8:-9",
    "1:2 1:2:3 4:5:6.5",
    "1 0:2:3 4:5:6",
    "1 2:0:3 4:5:6",
    "1 1:2:3 4:5",
    "1 1:2 3:4:5",
    "1 1:2 3:4:5:6",
    "1 1:2:3:4 5:6",
    "1 1:2 3:4",
    "1 1:2.5:3",
    "1 1.5:2:3",
    "1 01:2:3",
    "1 1:02:3",
    "1 1:2: 3",
    "1 1: 2:3",
    "1 1:2:",
    "1 :1:2",
    "1 1:12345678:2",
    "1 12345678:1:2",
    "1 9:8:7 #6:5:4",
    "1 1::3",
    "1 a1:2",
    "1 a:2",
    "1 1a:2",
    "1 1:2 a",
    "+1 1:2",
    "-1 1:2",
    "1 1:2 3:4 5:6 7:8 9:10 11:12 13:14 15:16 17:18 19:20 21:22 23:24 25:26 27:28 29:30",
    "1    \t\t  1:2        3:4      ",
};

struct text {
    size_t len;
    uint8_t capacity[LIBSVM_SCAN_PAD + TEXT_MAX + LIBSVM_SCAN_PAD];
};

static const uint8_t *bytes_of(const struct text *t)
{
    return t->capacity + LIBSVM_SCAN_PAD;
}

static void text_clear(struct text *t)
{
    memset(t->capacity, 0, sizeof(t->capacity));
    memset(t->capacity, '\n', LIBSVM_SCAN_PAD);
    t->len = 0;
}

static void text_put(struct text *t, const char *bytes, size_t len)
{
    assert_true(len <= TEXT_MAX - t->len);
    memcpy(t->capacity + LIBSVM_SCAN_PAD + t->len, bytes, len);
    t->len += len;
}

/* Parse the line from a copy, without the bytes around it. */
static bool parse(const uint8_t *line, size_t len, unsigned columns, struct libsvm_row *ret)
{
    uint8_t *copy = malloc(len + LIBSVM_PAD); /* of that size for ASan */
    struct libsvm_fault fault;
    int r;

    memcpy(copy, line, len);
    memset(copy + len, 0, LIBSVM_PAD);
    *ret = (struct libsvm_row){0};
    r = libsvm_line_parse(copy, len, columns, ret, &fault);
    if (r < 0)
        assert_true(fault.at <= len && fault.expected && *fault.expected);
    free(copy);
    return r == 0;
}

/* The next line of the text from *at on; false: no more lines. */
static bool next_line(const struct text *t, size_t *at, size_t *ret_len)
{
    const uint8_t *bytes = bytes_of(t);
    size_t n = 0;

    if (*at >= t->len)
        return false;
    while (*at + n < t->len && bytes[*at + n] != '\n' && bytes[*at + n] != '\r')
        n++;
    *ret_len = n;
    return true;
}

static void skip_line(const struct text *t, size_t *at, size_t len)
{
    *at += len;
    *at +=
        *at < t->len && bytes_of(t)[*at] == '\r' && *at + 1 < t->len && bytes_of(t)[*at + 1] == '\n'
            ? 2
            : 1;
}

static bool is_row(const uint8_t *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\v\f", line[i]) || !line[i])
            return line[i] != '#';
    return false;
}

static void show(const struct text *t, const char *what)
{
    fprintf(stderr, "%s: ", what);
    for (size_t i = 0; i < t->len; i++)
        fprintf(stderr, bytes_of(t)[i] < ' ' ? "\\x%02x" : "%c", bytes_of(t)[i]);
    fprintf(stderr, "\n");
}

#define CHECK(t, columns, condition)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            show(t, "text");                                                                       \
            fail_msg("columns %u: expected %s", columns, #condition);                              \
        }                                                                                          \
    } while (0)

/* Check the rows against the plain splitter, the features and totals against the parser. */
static void check_rows(const struct text *t, unsigned columns, const struct libsvm_scan *scan)
{
    struct libsvm_totals want = {0};
    size_t at = 0, len, row = 0, lines_before = 0;

    for (; next_line(t, &at, &len); skip_line(t, &at, len), lines_before++) {
        const uint8_t *line = bytes_of(t) + at;
        struct libsvm_row parsed;
        bool good = is_row(line, len) && parse(line, len, columns, &parsed);

        if (!is_row(line, len))
            continue;
        if (!good && scan->skip_bad) {
            want.skipped++;
            continue;
        }
        CHECK(t, columns, row < scan->n);
        CHECK(t, columns, scan->row[row].start == at && scan->row[row].len == len);
        CHECK(t, columns, scan->row[row].line == lines_before);
        CHECK(t, columns, scan->row[row].features == (good ? parsed.n : 0));
        row++;
        if (!good)
            continue;
        want.labels = parsed.n_labels > want.labels ? parsed.n_labels : want.labels;
        want.has_features = want.has_features || parsed.n;
        want.has_zero = want.has_zero || parsed.has_zero;
        want.largest = parsed.largest > want.largest ? parsed.largest : want.largest;
    }
    CHECK(t, columns, row == scan->n);
    CHECK(t, columns, scan->totals.skipped == want.skipped);
    CHECK(t, columns, scan->totals.labels == want.labels);
    CHECK(t, columns, scan->totals.has_features == want.has_features);
    CHECK(t, columns, scan->totals.has_zero == want.has_zero);
    CHECK(t, columns, scan->totals.largest == want.largest);
}

/* Scan [0, cut), and then the rest. */
static void check_cut(const struct text *t, unsigned columns, bool skip_bad, size_t cut)
{
    AUTO(libsvm_scan_release) struct libsvm_scan scan = {.columns = columns, .skip_bad = skip_bad};
    size_t used = 0, end = 0;

    if (cut)
        assert_int_equal(libsvm_scan_text(&scan, bytes_of(t), 0, cut, false, &used), 0);
    CHECK(t, columns, used <= cut);
    assert_int_equal(libsvm_scan_text(&scan, bytes_of(t), used, t->len, true, &end), 0);
    CHECK(t, columns, end == t->len);
    check_rows(t, columns, &scan);
}

static void check_text(const struct text *t, bool every_cut)
{
    for (size_t i = 0; i < ARRAY_LEN(all_columns); i++) {
        for (unsigned skip_bad = 0; skip_bad < 2; skip_bad++)
            for (size_t cut = 0; cut <= (every_cut ? t->len : 0); cut++)
                check_cut(t, all_columns[i], skip_bad, cut);
    }
}

UNIT_TEST(test_scan__each_line_alone__as_parsed)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        static const char *const ends[] = {"", "\n", "\r", "\r\n"};

        for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
            struct text t;

            text_clear(&t);
            text_put(&t, lines[i], strlen(lines[i]));
            text_put(&t, ends[e], strlen(ends[e]));
            check_text(&t, true);
        }
    }
}

/* Each line at every place in the words of 64 bytes, between two other rows. */
UNIT_TEST(test_scan__each_line_at_each_place__as_parsed)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        for (size_t before = 0; before < 64; before++) {
            struct text t;

            text_clear(&t);
            text_put(&t, "1 2:3", before >= 6 ? 5 : 0);
            while (t.len < before)
                text_put(&t, "\n", 1);
            text_put(&t, lines[i], strlen(lines[i]));
            text_put(&t, "\n1 3:4", 6);
            check_text(&t, false);
        }
    }
}

/* Every byte value, between a label, an index and a value, at each place of a word. */
UNIT_TEST(test_scan__each_byte__as_parsed)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        for (size_t before = 0; before < 64; before += 1 + before % 3) {
            static const char *const around[][2] = {
                {"1 2:3", "4:5"}, {"1", "2:3"}, {"1 2", ":3"}, {"1 2:", "3 4:5"}, {"", "1 2:3"}};
            const char c = (char)byte;

            for (size_t k = 0; k < ARRAY_LEN(around); k++) {
                struct text t;

                text_clear(&t);
                while (t.len < before)
                    text_put(&t, "\n", 1);
                text_put(&t, around[k][0], strlen(around[k][0]));
                text_put(&t, &c, 1);
                text_put(&t, around[k][1], strlen(around[k][1]));
                check_cut(&t, 0, false, 0);
                check_cut(&t, LIBSVM_QID, true, t.len / 2);
            }
        }
    }
}

static void put_random_line(struct text *t, uint64_t *rng)
{
    static const char letters[] = "0123456789::: # \t,.-e";
    static const char *const pieces[] = {"1 ",     " 2:3",      " 0:1",      "1:2 ",  "qid:4",
                                         "#",      " 7654321:", " 87654321", "00",    "1,2",
                                         " 33:-1", " 4 : 5",    "nan",       "\v1:2", "1"};

    switch (random_below(rng, 4)) {
    case 0: {
        const char *line = lines[random_below(rng, ARRAY_LEN(lines))];

        text_put(t, line, strlen(line));
        break;
    }
    case 1:
        for (uint64_t n = random_below(rng, 30); n; n--)
            text_put(t, &letters[random_below(rng, sizeof(letters) - 1)], 1);
        break;
    default:
        for (uint64_t n = random_below(rng, 8); n; n--) {
            const char *piece = pieces[random_below(rng, ARRAY_LEN(pieces))];

            text_put(t, piece, strlen(piece));
        }
    }
}

UNIT_TEST(test_scan__random_texts__as_parsed)
{
    uint64_t rng = RANDOM_SEED;

    for (unsigned i = 0; i < 6000; i++) {
        static const char *const ends[] = {"\n", "\n", "\r", "\r\n", "\n\r", "\r\r\n"};
        struct text t;

        text_clear(&t);
        for (uint64_t n = random_below(&rng, 9); n; n--) {
            const char *end = ends[random_below(&rng, ARRAY_LEN(ends))];

            put_random_line(&t, &rng);
            text_put(&t, end, strlen(end));
        }
        put_random_line(&t, &rng);
        check_text(&t, i % 100 == 0);
    }
}

static uint64_t seen_bad;

static void count_bad(struct libsvm_scan *scan, const uint8_t *line, size_t len,
                      const struct libsvm_fault *fault)
{
    seen_bad++;
    assert_ptr_equal(scan->ctx, &seen_bad);
    assert_int_equal(len, strlen("1 2:x"));
    assert_memory_equal(line, "1 2:x", len);
    assert_int_equal(fault->at, 4);
}

UNIT_TEST(test_scan__bad_rows__reported)
{
    static const char rows[] = "1 2:3\r\n1 2:x\r\n# 1 2:x\n\n1 2:x";
    AUTO(libsvm_scan_release)
    struct libsvm_scan scan = {.skip_bad = true, .bad = count_bad, .ctx = &seen_bad};
    struct text t;
    size_t used;

    text_clear(&t);
    text_put(&t, rows, strlen(rows));
    assert_int_equal(libsvm_scan_text(&scan, bytes_of(&t), 0, t.len, true, &used), 0);
    assert_int_equal(seen_bad, 2);
    assert_int_equal(scan.totals.skipped, 2);
    assert_int_equal(scan.n, 1);
    assert_int_equal(scan.totals.text_lines, 4);
}
