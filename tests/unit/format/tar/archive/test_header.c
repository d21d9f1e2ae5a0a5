/* Blocks and pax records, by their fields. */
#include <stdio.h>

#include "base/scope.h"
#include "format/tar/archive/header.h"
#include "support/tar_make.h"
#include "support/unit.h"

static uint8_t block[TAR_BLOCK];
static struct tar_header header;

static void make(const char *name, uint64_t size, char type)
{
    tar_make_header(block, name, size, type);
}

static void set(size_t at, const void *bytes, size_t len)
{
    memcpy(block + at, bytes, len);
    tar_make_sum(block);
}

static void assert_parses(void)
{
    const char *wrong = tar_header_parse(block, &header);

    if (wrong)
        fail_msg("%s", wrong);
}

static void assert_refused(const char *piece)
{
    const char *wrong = tar_header_parse(block, &header);

    assert_non_null(wrong);
    assert_non_null(strstr(wrong, piece));
}

static void assert_name(const char *name)
{
    assert_parses();
    assert_int_equal(header.name_len, strlen(name));
    assert_memory_equal(header.name, name, header.name_len);
}

static void assert_size(const void *field, uint64_t size)
{
    make("a", 0, '0');
    set(124, field, 12);
    assert_parses();
    assert_int_equal(header.stored, size);
}

UNIT_TEST(test_sizes)
{
    assert_size("00000001750\0", 1000);
    assert_size("000000017500", 8000); /* nothing ends it */
    assert_size("       1750 ", 1000);
    assert_size("1750        ", 1000);
    assert_size("1750\0garbage", 1000);
    assert_size("\0\0\0\0\0\0\0\0\0\0\0\0", 0);
    assert_size("            ", 0);
    assert_size("777777777777", 68719476735);
    assert_size("\x80\0\0\0\0\0\0\2\x54\x0b\xe4\0", 10000000000);
    assert_size("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", UINT64_MAX);
}

UNIT_TEST(test_sizes__wrong__refused)
{
    static const char *const wrong[] = {
        "0000000175x\0",
        "-0000000175\0",
        "17 50       ",
        "00000001758\0",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", /* negative */
        "\xc0\0\0\0\0\0\0\0\0\0\0\1",
        "\x80\0\0\1\0\0\0\0\0\0\0\0", /* 2^64 */
        "\x81\0\0\0\0\0\0\0\0\0\0\0",
    };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        make("a", 0, '0');
        set(124, wrong[i], 12);
        assert_refused("size");
    }
}

UNIT_TEST(test_checksum__signed_bytes__accepted)
{
    static const size_t at[] = {0, 147, 156, 511};
    char text[8];
    unsigned sum;

    make("t\xc3\xa4.txt", 3, '0');
    assert_parses();
    assert_int_equal(sscanf((const char *)block + 148, "%o", &sum), 1);
    snprintf(text, sizeof(text), "%06o", sum - 2 * 256);
    memcpy(block + 148, text, 7);
    assert_parses();
    snprintf(text, sizeof(text), "%06o", sum - 256);
    memcpy(block + 148, text, 7);
    assert_refused("checksum");
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        make("t.txt", 3, '0');
        set(at[i], "\x80", 1);
        assert_int_equal(sscanf((const char *)block + 148, "%o", &sum), 1);
        snprintf(text, sizeof(text), "%06o", sum - 256);
        memcpy(block + 148, text, 7);
        assert_parses();
    }
}

UNIT_TEST(test_checksum__each_bit_changed__refused)
{
    make("a.jpg", 1234, '0');
    for (size_t i = 0; i < TAR_BLOCK * 8; i++) {
        if (i / 8 >= 148 && i / 8 < 156)
            continue;
        block[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_refused("checksum");
        block[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_parses();
    memset(block + 148, 0, 8);
    assert_refused("checksum");
}

UNIT_TEST(test_zeros__end)
{
    memset(block, 0, sizeof(block));
    assert_parses();
    assert_int_equal(header.type, TAR_END);
    block[511] = 1;
    assert_refused("checksum");
}

UNIT_TEST(test_names)
{
    char long_name[101];

    memset(long_name, 'n', 100);
    long_name[100] = '\0';
    make("a/b.jpg", 0, '0');
    assert_name("a/b.jpg");
    make(long_name, 0, '0');
    assert_name(long_name);
    make("b.jpg", 0, '0');
    set(345, "p/q", 3);
    assert_name("p/q/b.jpg");
    set(257, "ustar  ", 8); /* GNU: it has times there */
    assert_name("b.jpg");
    set(257, "\0\0\0\0\0\0\0", 8); /* v7 */
    assert_name("b.jpg");
}

UNIT_TEST(test_names__star__short_prefix)
{
    uint8_t prefix[155];

    memset(prefix, 'p', sizeof(prefix));
    make("b.jpg", 0, '0');
    set(345, prefix, sizeof(prefix));
    assert_parses();
    assert_int_equal(header.name_len, 155 + 1 + 5);
    set(508, "tar", 4);
    assert_parses();
    assert_int_equal(header.name_len, 131 + 1 + 5);
}

UNIT_TEST(test_types)
{
    static const struct {
        char type;
        enum tar_entry_type kind;
        bool has_data;
    } types[] = {
        {'0', TAR_FILE, true},   {'\0', TAR_FILE, true},       {'7', TAR_FILE, true},
        {'1', TAR_OTHER, false}, {'2', TAR_OTHER, false},      {'3', TAR_OTHER, false},
        {'4', TAR_OTHER, false}, {'5', TAR_FOLDER, false},     {'6', TAR_OTHER, false},
        {'D', TAR_OTHER, true},  {'M', TAR_OTHER, true},       {'N', TAR_OTHER, true},
        {'V', TAR_OTHER, true},  {'S', TAR_SPARSE, true},      {'L', TAR_LONG_NAME, true},
        {'x', TAR_PAX, true},    {'X', TAR_PAX, true},         {'g', TAR_PAX_GLOBAL, true},
        {'Z', TAR_FILE, true},   {'K', TAR_LONG_TARGET, true}, {'8', TAR_FILE, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        make("a", 7, types[i].type);
        assert_parses();
        assert_int_equal(header.type, types[i].kind);
        assert_int_equal(header.has_data, types[i].has_data);
        assert_int_equal(header.stored, 7);
    }
}

/* ---- pax ---- */

static struct tar_pax pax;

static const char *parse_pax(const char *text, size_t len)
{
    pax = (struct tar_pax){0};
    return tar_pax_parse((const uint8_t *)text, len, &pax);
}

#define PARSE(text) parse_pax(text, sizeof(text) - 1)

static void assert_path(const char *want)
{
    assert_int_equal(pax.path, TAR_PAX_SET);
    assert_int_equal(pax.path_len, strlen(want));
    assert_memory_equal(pax.path_value, want, pax.path_len);
}

UNIT_TEST(test_pax__records)
{
    assert_null(PARSE(""));
    assert_int_equal(pax.path, TAR_PAX_NONE);
    assert_null(PARSE("12 path=a=b\n12 size=017\n"));
    assert_path("a=b");
    assert_int_equal(pax.size_value, 17);
    assert_null(PARSE("14 path=a\nb.c\n")); /* a line end in a name */
    assert_path("a\nb.c");
    assert_null(PARSE("10 path=a\n10 path=b\n")); /* the later one counts */
    assert_path("b");
    assert_null(PARSE("10 path=a\n8 path=\n"));
    assert_int_equal(pax.path, TAR_PAX_DELETED);
    assert_null(PARSE("8 size=\n"));
    assert_int_equal(pax.size, TAR_PAX_DELETED);
    assert_null(PARSE("10 path=a\n\0\0\0\0\0\0"));
    assert_path("a");
    assert_null(PARSE("28 size=9223372036854775807\n"));
    assert_int_equal(pax.size_value, INT64_MAX);
    assert_false(pax.is_sparse);
    assert_null(PARSE("22 GNU.sparse.major=1\n"));
    assert_true(pax.is_sparse);
    assert_null(PARSE("11 other=\0\n"));
    assert_null(parse_pax("10 path=a\nX", 10)); /* what follows is no record */
}

UNIT_TEST(test_pax__wrong__refused)
{
    static const struct {
        const char *text;
        size_t len;
        const char *piece;
    } wrong[] = {
#define WRONG(text, piece) {text, sizeof(text) - 1, piece}
        WRONG("11 path=a\n", "length"),
        WRONG("9 path=a\n\n", "length"),
        WRONG("path=a\n", "length"),
        WRONG("10", "length"),
        WRONG("2 ", "length"),
        WRONG("3 \n", "key=value"),
        WRONG("1\n", "length"),
        WRONG("0 path=a\n", "length"),
        WRONG("-1 path=a\n", "length"),
        WRONG("99999999999999999999 path=a\n", "length"),
        WRONG("10 path=ab", "length"),
        WRONG("10 path-a\n", "key=value"),
        WRONG("10 =pathh\n", "key=value"),
        WRONG("12 path=a\0b\n", "NUL"),
        WRONG("11 size=-1\n", "size"),
        WRONG("12 size=1.5\n", "size"),
        WRONG("28 size=9223372036854775808\n", "size"),
#undef WRONG
    };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *text = parse_pax(wrong[i].text, wrong[i].len);

        if (!text || !strstr(text, wrong[i].piece))
            fail_msg("%zu: %s", i, text ? text : "accepted");
    }
}

UNIT_TEST(test_pax__long_path__refused)
{
    AUTO_TEXT struct text t = {0};
    char name[TAR_NAME_MAX + 2];

    for (size_t len = TAR_NAME_MAX; len <= TAR_NAME_MAX + 1; len++) {
        const char *wrong;

        memset(name, 'n', len);
        name[len] = '\0';
        text_release(&t);
        text_add(&t, "%zu path=%s\n", len + 11, name);
        wrong = parse_pax(t.data, t.len);
        assert_int_equal(wrong != NULL, len > TAR_NAME_MAX);
    }
}
