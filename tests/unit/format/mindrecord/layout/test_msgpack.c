/* Maps of raw rows: every kind of number and text, and what is none. */
#include "format/mindrecord/layout/msgpack.h"
#include "support/unit.h"

#include "base/scope.h"

struct taken {
    unsigned n;
    char key[8];
    struct msgpack_value value;
};

static void take(void *ctx, const uint8_t *key, size_t key_len, const struct msgpack_value *value)
{
    struct taken *taken = ctx;

    taken->n++;
    assert_true(key_len < sizeof(taken->key));
    memcpy(taken->key, key, key_len);
    taken->key[key_len] = '\0';
    taken->value = *value;
}

/* The value v of the map {"k": v}. false: it is none. */
static bool value_of(const char *bytes, size_t len, struct msgpack_value *ret)
{
    uint8_t map[64] = {0x81, 0xa1, 'k'};
    struct taken taken = {0};

    memcpy(map + 3, bytes, len);
    if (!msgpack_map(map, 3 + len, take, &taken))
        return false;
    assert_int_equal(taken.n, 1);
    assert_string_equal(taken.key, "k");
    *ret = taken.value;
    return true;
}

UNIT_TEST(test_map__numbers__as_they_are)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum msgpack_type type;
        int64_t i;
        uint64_t u;
        double f;
    } cases[] = {
        {"\0", 1, MSGPACK_SIGNED, 0, 0, 0},
        {"\x7f", 1, MSGPACK_SIGNED, 127, 0, 0},
        {"\xff", 1, MSGPACK_SIGNED, -1, 0, 0},
        {"\xe0", 1, MSGPACK_SIGNED, -32, 0, 0},
        {"\xcc\xff", 2, MSGPACK_UNSIGNED, 0, 255, 0},
        {"\xcd\1\2", 3, MSGPACK_UNSIGNED, 0, 0x102, 0},
        {"\xce\xff\0\0\1", 5, MSGPACK_UNSIGNED, 0, 0xff000001, 0},
        {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, MSGPACK_UNSIGNED, 0, UINT64_MAX, 0},
        {"\xd0\x80", 2, MSGPACK_SIGNED, -128, 0, 0},
        {"\xd1\x80\0", 3, MSGPACK_SIGNED, -32768, 0, 0},
        {"\xd2\x7f\xff\xff\xff", 5, MSGPACK_SIGNED, INT32_MAX, 0, 0},
        {"\xd3\x80\0\0\0\0\0\0\0", 9, MSGPACK_SIGNED, INT64_MIN, 0, 0},
        {"\xca\x3f\x80\0\0", 5, MSGPACK_FLOAT, 0, 0, 1},
        {"\xcb\xbf\xf8\0\0\0\0\0\0", 9, MSGPACK_FLOAT, 0, 0, -1.5},
        {"\xc0", 1, MSGPACK_OTHER, 0, 0, 0},
        {"\xc2", 1, MSGPACK_OTHER, 0, 0, 0},
        {"\xc3", 1, MSGPACK_OTHER, 0, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct msgpack_value v;

        assert_true(value_of(cases[i].bytes, cases[i].len, &v));
        assert_int_equal(v.type, cases[i].type);
        assert_true(v.i == cases[i].i && v.u == cases[i].u && v.f == cases[i].f);
        assert_false(value_of(cases[i].bytes, cases[i].len - 1, &v));
    }
}

UNIT_TEST(test_map__text__of_each_length)
{
    static const char *const texts[] = {"\xa3one", "\xd9\3one", "\xda\0\3one", "\xdb\0\0\0\3one"};
    static const size_t lengths[] = {4, 5, 6, 8};
    struct msgpack_value v;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_true(value_of(texts[i], lengths[i], &v));
        assert_int_equal(v.type, MSGPACK_TEXT);
        assert_int_equal(v.len, 3);
        assert_false(value_of(texts[i], lengths[i] - 1, &v));
    }
    assert_false(value_of("\xdb\xff\xff\xff\xffone", 8, &v));
}

/* Extensions, bytes, arrays and maps; and a byte that means nothing. */
UNIT_TEST(test_map__other_values__are_refused)
{
    static const char *const values[] = {"\xc4\1a",    "\xd4\0\0", "\xc7\1\0a", "\x91\1",
                                         "\xdc\0\1\1", "\x80",     "\xde\0\0",  "\xc1"};
    static const size_t lengths[] = {3, 3, 4, 2, 4, 1, 3, 1};
    struct msgpack_value v;

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        assert_false(value_of(values[i], lengths[i], &v));
}

UNIT_TEST(test_map__is_one_map_and_nothing_else)
{
    struct taken taken = {0};

    assert_true(msgpack_map((const uint8_t *)"\x80", 1, take, &taken));
    assert_true(msgpack_map((const uint8_t *)"\xde\0\1\xa1k\1", 6, take, &taken));
    assert_true(msgpack_map((const uint8_t *)"\xdf\0\0\0\1\xa1k\1", 8, take, &taken));
    assert_int_equal(taken.n, 2);
    assert_false(msgpack_map((const uint8_t *)"\x80\x80", 2, take, &taken));
    assert_false(msgpack_map((const uint8_t *)"\x91\1", 2, take, &taken));
    assert_false(msgpack_map((const uint8_t *)"\x81\1\1", 3, take, &taken));
    assert_false(msgpack_map((const uint8_t *)"\xdf\xff\xff\xff\xff\xa1k\1", 8, take, &taken));
    assert_false(msgpack_map((const uint8_t *)"", 0, take, &taken));
}
