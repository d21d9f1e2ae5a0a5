/* Names of keys, against a plain model that escapes and cuts, and back to keys; every possible
 * escape, and names that no key has. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "format/index/index.h"
#include "format/index/key_name.h"
#include "support/random.h"
#include "support/unit.h"

#define LIMIT    180 /* bytes of a name */
#define CUT_LEN  18  /* "%~" and 16 digits */
#define KEY_SIZE 1024

/* ---- a model ---- */

/* The characters of a key's byte in its name. */
static void model_piece(uint8_t byte, bool first, bool dots, char ret[static 4])
{
    if (!byte || strchr("/%", byte) || (byte == '.' && (first || dots)))
        snprintf(ret, 4, "%%%02X", byte);
    else
        snprintf(ret, 4, "%c", byte);
}

/* Returns the length; *ret_cut: it was cut. */
static size_t model_name(const uint8_t *key, size_t len, bool dots, char ret[static 4 * KEY_SIZE],
                         bool *ret_cut)
{
    size_t n = 0, fits = 0;

    for (size_t i = 0; i < len; i++) {
        char piece[4];

        model_piece(key[i], i == 0, dots, piece);
        if (dots && i == 0 && len > 1 && key[0] == '_' && key[1] == '_')
            snprintf(piece, sizeof(piece), "%%5F"); /* WebDataset skips names like __x__ */
        memcpy(ret + n, piece, strlen(piece));
        n += strlen(piece);
        fits = n <= LIMIT - CUT_LEN ? n : fits;
    }
    *ret_cut = n > LIMIT;
    if (*ret_cut)
        n = fits + (size_t)snprintf(ret + fits, CUT_LEN + 1, "%%~%016llx",
                                    (unsigned long long)key_hash(key, len));
    ret[n] = '\0';
    return n;
}

/* ---- checks ---- */

/* The name equals the model's, and leads back to the key. */
static void check_key(const uint8_t *key, size_t len)
{
    char name[KEY_NAME_SIZE], want[4 * KEY_SIZE];
    uint8_t back[KEY_NAME_SIZE];
    size_t n, back_len = 0;
    uint64_t hash = 0;
    bool cut;

    for (unsigned dots = 0; dots < 2; dots++) {
        memset(name, 'x', sizeof(name));
        n = key_name(key, len, dots, name);
        assert_int_equal(n, model_name(key, len, dots, want, &cut));
        assert_true(n <= LIMIT);
        assert_memory_equal(name, want, n + 1);
        assert_int_equal(key_name_is_cut(name, n, &hash), cut);
        if (cut)
            assert_int_equal(hash, key_hash(key, len));
    }
    n = key_name(key, len, false, name);
    cut = key_name_is_cut(name, n, &hash);
    assert_int_equal(key_of_name(name, n, back, &back_len), !cut);
    if (cut)
        return;
    assert_int_equal(back_len, len);
    assert_memory_equal(back, key, len);
}

UNIT_TEST(test_key_name__keys__known_names)
{
    static const struct {
        const char *key;
        size_t len;
        const char *name, *without_dots;
    } cases[] = {
        {"utt1", 4, "utt1", "utt1"},
        {".", 1, "%2E", "%2E"},
        {"..", 2, "%2E.", "%2E%2E"},
        {"a.b.c", 5, "a.b.c", "a%2Eb%2Ec"},
        {"spk/utt", 7, "spk%2Futt", "spk%2Futt"},
        {"100%", 4, "100%25", "100%25"},
        {"%2F", 3, "%252F", "%252F"},
        {"a\0b", 3, "a%00b", "a%00b"},
        {"%~0123456789abcdef", 18, "%25~0123456789abcdef", "%25~0123456789abcdef"},
        {"\xc3\xa9~2", 4, "\xc3\xa9~2", "\xc3\xa9~2"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[KEY_NAME_SIZE];
        size_t n = key_name(cases[i].key, cases[i].len, false, name);

        assert_string_equal(name, cases[i].name);
        assert_int_equal(n, strlen(name));
        n = key_name(cases[i].key, cases[i].len, true, name);
        assert_string_equal(name, cases[i].without_dots);
        assert_int_equal(n, strlen(name));
        check_key((const uint8_t *)cases[i].key, cases[i].len);
    }
}

UNIT_TEST(test_key_name__every_pair_of_bytes__both_ways)
{
    for (unsigned i = 0; i < 65536; i++) {
        const uint8_t key[] = {(uint8_t)(i >> 8), (uint8_t)i};

        check_key(key, 2);
        check_key(key, 1);
    }
}

/* Keys of any bytes, and keys that need many escapes. */
UNIT_TEST(test_key_name__random_keys__both_ways)
{
    static const char odd[] = {'.', '/', '%', '\0', '~', '2', 'E'};
    uint64_t rng = RANDOM_SEED;

    for (unsigned i = 0; i < 20000; i++) {
        uint64_t most = i % 4 ? 190 : KEY_SIZE, share = random_below(&rng, 5);
        size_t len = 1 + (size_t)random_below(&rng, most);
        uint8_t key[KEY_SIZE];

        for (size_t k = 0; k < len; k++)
            key[k] = random_below(&rng, 4) < share ? (uint8_t)odd[random_below(&rng, sizeof(odd))]
                                                   : (uint8_t)random_next(&rng);
        check_key(key, len);
    }
}

/* Around the limit, with an escape at each place. */
UNIT_TEST(test_key_name__lengths__cut_behind_180)
{
    uint8_t key[KEY_SIZE];
    char name[KEY_NAME_SIZE];

    for (size_t len = 1; len <= KEY_SIZE; len++) {
        memset(key, 'a', len);
        check_key(key, len);
        assert_int_equal(key_name(key, len, false, name), len < 181 ? len : LIMIT);
        memset(key, '/', len);
        check_key(key, len);
        /* 162 bytes are 54 escapes. */
        assert_int_equal(key_name(key, len, false, name), len < 61 ? 3 * len : LIMIT);
    }
    for (size_t len = 170; len < 190; len++) {
        for (size_t at = 0; at < len; at++) {
            memset(key, 'a', len);
            key[at] = '%';
            check_key(key, len);
        }
    }
    memset(key, 'a', 200);
    key[161] = '/'; /* the cut breaks no escape */
    assert_int_equal(key_name(key, 200, false, name), 161 + CUT_LEN);
    key[161] = 'a';
    key[159] = '/';
    assert_int_equal(key_name(key, 200, false, name), LIMIT);
}

/* Keys that differ only after the cut have different names. */
UNIT_TEST(test_key_name__same_start__names_differ)
{
    uint8_t key[300];
    char one[KEY_NAME_SIZE], other[KEY_NAME_SIZE];

    memset(key, 'k', sizeof(key));
    key_name(key, sizeof(key), false, one);
    for (size_t i = 170; i < sizeof(key); i++) {
        key[i] = 'j';
        key_name(key, sizeof(key), false, other);
        assert_memory_equal(one, other, LIMIT - CUT_LEN);
        assert_string_not_equal(one, other);
        key[i] = 'k';
    }
    key_name(key, sizeof(key) - 1, false, other);
    assert_string_not_equal(one, other);
}

/* ---- names that no key has ---- */

static bool is_name(const char *name, size_t len)
{
    uint8_t key[KEY_NAME_SIZE];
    size_t key_len = 0;
    /* In memory of its own, so that ASan finds a read past its end. */
    char *copy = malloc(len ? len : 1);
    bool is;

    memcpy(copy, name, len);
    is = key_of_name(copy, len, key, &key_len);
    free(copy);
    assert_true(key_len <= len);
    return is;
}

/* All pairs of bytes after '%': three pairs are escapes, and a fourth at the start. */
UNIT_TEST(test_key_of_name__every_escape__three_or_none)
{
    for (unsigned i = 0; i < 65536; i++) {
        char name[] = {'a', '%', (char)(i >> 8), (char)i, 'b'};
        bool good =
            !memcmp(name + 2, "2F", 2) || !memcmp(name + 2, "00", 2) || !memcmp(name + 2, "25", 2);
        bool at_start = good || !memcmp(name + 2, "2E", 2);

        if (is_name(name, 5) != good || is_name(name, 4) != good ||
            is_name(name + 1, 4) != at_start || is_name(name + 1, 3) != at_start)
            fail_msg("%02x %02x", i >> 8, i & 255);
    }
}

UNIT_TEST(test_key_of_name__no_name__false)
{
    static const struct {
        const char *name;
        size_t len;
    } cases[] = {
        {"", 0},
        {"/", 1},
        {"a/b", 3},
        {"a/", 2},
        {"\0", 1},
        {"a\0", 2},
        {".", 1},
        {"..", 2},
        {".a", 2},
        {"%", 1},
        {"a%", 2},
        {"%2", 2},
        {"a%2", 3},
        {"%2F%", 4},
        {"%2F%2", 5},
        {"%%25", 4},
        {"a%2E", 4},
        {"%2E%2E", 6},
        {"%2f", 3},
        {"%2e", 3},
        {"%41", 3},
        {"%FF", 3},
        {"%25.%2", 6},
        {"%~0123456789abcdef", 18},
        {"aaaaaaaaaaaaaaaaaaaa%~0123456789abcdef", 38},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (is_name(cases[i].name, cases[i].len))
            fail_msg("'%s'", cases[i].name);
    assert_true(is_name("%2E.a.", 6));
    assert_true(is_name("a..", 3));
}

/* A name that has a key is the name of that key: no sample has two names. */
UNIT_TEST(test_key_of_name__random_names__the_keys_own)
{
    static const char letters[] = {'%', '2', '5', 'F', 'E', '0', '.', '/', 'a', '~', '\0'};
    uint64_t rng = RANDOM_SEED;
    unsigned good = 0;

    for (unsigned i = 0; i < 300000; i++) {
        char name[12], again[KEY_NAME_SIZE];
        size_t len = (size_t)random_below(&rng, sizeof(name) + 1), key_len = 0;
        uint8_t key[sizeof(name)];

        for (size_t k = 0; k < len; k++)
            name[k] = letters[random_below(&rng, sizeof(letters))];
        if (!key_of_name(name, len, key, &key_len))
            continue;
        good++;
        assert_int_equal(key_name(key, key_len, false, again), len);
        assert_memory_equal(again, name, len);
    }
    assert_true(good > 1000);
}

UNIT_TEST(test_key_name_is_cut__names__hash_or_not)
{
    char name[] = "abc%~0123456789abcdef";
    const size_t len = strlen(name);
    uint64_t hash = 7;

    assert_true(key_name_is_cut(name, len, &hash));
    assert_int_equal(hash, UINT64_C(0x0123456789abcdef));
    assert_true(key_name_is_cut(name + 3, len - 3, &hash)); /* nothing in front of it */
    hash = 7;
    assert_false(key_name_is_cut(name + 4, len - 4, &hash));
    for (size_t n = 0; n < len; n++)
        assert_false(key_name_is_cut(name, n, &hash));
    for (size_t i = 3; i < len; i++) {
        char old = name[i];

        for (unsigned c = 0; c < 256; c++) {
            bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            uint64_t found = 0;

            name[i] = (char)c;
            assert_int_equal(key_name_is_cut(name, len, &found),
                             name[i] == old || (i > 4 && digit));
        }
        name[i] = old;
    }
    assert_int_equal(hash, 7);
}
