/* Messages built field by field, and what is read of them as text: "i int64 1 2; b bytes 'x' ''".
 */
#include "format/tfrecord/example/example.h"
#include "support/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "base/text.h"

/* ---- messages ---- */

struct message {
    size_t n;
    uint8_t byte[65536];
};

static void add_bytes(struct message *m, const void *bytes, size_t n)
{
    assert_true(m->n + n <= sizeof(m->byte));
    if (n)
        memcpy(m->byte + m->n, bytes, n);
    m->n += n;
}

static void add_varint(struct message *m, uint64_t v)
{
    for (; v > 127; v >>= 7)
        add_bytes(m, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    add_bytes(m, &(uint8_t){(uint8_t)v}, 1);
}

static void add_tag(struct message *m, unsigned number, unsigned wire)
{
    add_varint(m, number << 3 | wire);
}

static void add_field(struct message *m, unsigned number, const void *bytes, size_t n)
{
    add_tag(m, number, 2);
    add_varint(m, n);
    add_bytes(m, bytes, n);
}

/* A field whose bytes are those of another message, which is empty then. */
static void add(struct message *m, unsigned number, struct message *inner)
{
    add_field(m, number, inner->byte, inner->n);
    inner->n = 0;
}

static struct message *scratch(void)
{
    static struct message all[128];
    static unsigned next;
    struct message *m = &all[next++ % 128];

    m->n = 0;
    return m;
}

/* A list of packed integers as a Feature. */
static struct message *integers(unsigned n, const int64_t *v)
{
    struct message *feature = scratch(), *list = scratch(), *packed = scratch();

    for (unsigned i = 0; i < n; i++)
        add_varint(packed, (uint64_t)v[i]);
    add(list, 1, packed);
    add(feature, 3, list);
    return feature;
}

static struct message *strings(unsigned n, const char *const *v)
{
    struct message *feature = scratch(), *list = scratch();

    for (unsigned i = 0; i < n; i++)
        add_field(list, 1, v[i], strlen(v[i]));
    add(feature, 1, list);
    return feature;
}

static struct message *floats(unsigned n, const float *v)
{
    struct message *feature = scratch(), *list = scratch(), *packed = scratch();

    for (unsigned i = 0; i < n; i++) {
        uint32_t bits;
        uint8_t bytes[4];

        memcpy(&bits, &v[i], 4);
        store_le32(bytes, bits);
        add_bytes(packed, bytes, 4);
    }
    add(list, 1, packed);
    add(feature, 2, list);
    return feature;
}

static void add_entry(struct message *features, const char *name, struct message *value)
{
    struct message *entry = scratch();

    add_field(entry, 1, name, strlen(name));
    if (value)
        add(entry, 2, value);
    add(features, 1, entry);
}

#define INTEGERS(...) integers(sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})
#define STRINGS(...)                                                                               \
    strings(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})
#define FLOATS(...) floats(sizeof((float[]){__VA_ARGS__}) / 4, (const float[]){__VA_ARGS__})

/* ---- what is read of them ---- */

struct dump {
    const uint8_t *message;
    struct text text;
};

static void add_read(struct dump *dump, const struct example_feature *f, enum example_part part,
                     uint64_t n, uint64_t width)
{
    AUTO_FREE uint8_t *bytes = malloc(n * width + 1), *one = malloc(n * width + 1);

    example_read(dump->message, f, part, 0, n * width, bytes);
    for (uint64_t i = 0; i < n * width; i++) /* any range gives the same bytes */
        example_read(dump->message, f, part, i, 1, one + i);
    assert_memory_equal(bytes, one, n * width);
    for (uint64_t i = 0; i < n && width == 8; i++)
        text_add(&dump->text, " %" PRId64, (int64_t)load_le64(bytes + 8 * i));
    for (uint64_t i = 0; i < n && width == 4; i++)
        text_add(&dump->text, " %08x", load_le32(bytes + 4 * i));
    if (width == 1)
        text_add(&dump->text, " '%.*s'", (int)n, (const char *)bytes);
}

static int dump_feature(void *ctx, const struct example_feature *f)
{
    static const char *const kinds[] = {"none", "bytes", "float", "int64", "mixed"};
    struct dump *dump = ctx;

    text_add(&dump->text, "%s%.*s%s %s", dump->text.len ? "; " : "", (int)f->name_len,
             (const char *)f->name, f->is_list ? "[]" : "", kinds[f->type]);
    if (f->type == EXAMPLE_BYTES) {
        add_read(dump, f, EXAMPLE_VALUES, f->bytes, 1);
        add_read(dump, f, EXAMPLE_SIZES, f->count, 8);
    } else if (f->type != EXAMPLE_MIXED) {
        add_read(dump, f, EXAMPLE_VALUES, f->count, f->type == EXAMPLE_FLOATS ? 4 : 8);
    }
    if (f->plain != EXAMPLE_NOT_PLAIN && f->type == EXAMPLE_BYTES)
        text_add(&dump->text, " = '%.*s'", (int)f->bytes, (const char *)dump->message + f->plain);
    if (f->plain != EXAMPLE_NOT_PLAIN && f->type == EXAMPLE_FLOATS)
        text_add(&dump->text, " = %08x..", load_le32(dump->message + f->plain));
    if (f->is_list) {
        text_add(&dump->text, " steps");
        add_read(dump, f, EXAMPLE_STEPS, f->steps, 8);
    }
    return 0;
}

/* Parses a copy of exactly those bytes, so that sanitizers see what is read beyond. */
static int parse(const struct message *m, struct dump *ret, struct example_fault *ret_fault)
{
    AUTO_FREE uint8_t *bytes = malloc(m->n ? m->n : 1);

    memcpy(bytes, m->byte, m->n);
    *ret = (struct dump){.message = bytes};
    return example_parse(bytes, m->n, dump_feature, ret, ret_fault);
}

static void check(const struct message *m, const char *want)
{
    struct example_fault fault;
    struct dump dump;

    assert_int_equal(parse(m, &dump, &fault), 0);
    assert_string_equal(dump.text.data ? dump.text.data : "", want);
    text_release(&dump.text);
}

/* The features as an Example. */
static void check_features(struct message *features, const char *want)
{
    struct message *m = scratch();

    add(m, 1, features);
    check(m, want);
}

static void check_fault(const struct message *m, const char *want, size_t at)
{
    struct example_fault fault = {"", 0};
    struct dump dump;

    assert_int_equal(parse(m, &dump, &fault), -EBADMSG);
    text_release(&dump.text);
    assert_string_equal(fault.wanted, want);
    assert_int_equal(fault.at, at);
}

/* ---- what protobuf writes ---- */

UNIT_TEST(test_example__each_kind__values)
{
    struct message *m = scratch();

    add_entry(m, "i", INTEGERS(0, 1, -1, 300, INT64_MIN, INT64_MAX));
    add_entry(m, "b", STRINGS("x", "", "yz"));
    add_entry(m, "f", FLOATS(1.5f, -2.0f));
    add_entry(m, "one", STRINGS("picture"));
    check_features(m, "i int64 0 1 -1 300 -9223372036854775808 9223372036854775807; "
                      "b bytes 'xyz' 1 0 2; f float 3fc00000 c0000000 = 3fc00000..; "
                      "one bytes 'picture' 7 = 'picture'");
}

UNIT_TEST(test_example__empty_record__no_features)
{
    check(scratch(), "");
    check_features(scratch(), "");
}

UNIT_TEST(test_example__eight_small_varints_and_more__counted)
{
    struct message *m = scratch();

    add_entry(m, "i", INTEGERS(1, 2, 3, 4, 5, 6, 7, 8, 9, 200, 1, 2, 3, 4, 5, 6, 7, 8));
    check_features(m, "i int64 1 2 3 4 5 6 7 8 9 200 1 2 3 4 5 6 7 8");
}

UNIT_TEST(test_example__nan_minus_zero_denormal__bits_kept)
{
    static const uint8_t list[] = {0x0a, 12, 1, 0, 0xc0, 0xff, 0, 0, 0, 0x80, 1, 0, 0, 0};
    struct message *m = scratch(), *feature = scratch();

    add_field(feature, 2, list, sizeof(list));
    add_entry(m, "f", feature);
    check_features(m, "f float ffc00001 80000000 00000001 = ffc00001..");
}

/* ---- other ways to write the same ---- */

UNIT_TEST(test_example__packed_and_not_in_one_list__one_after_another)
{
    static const uint8_t mixed[] = {0x0a, 2, 1, 2, 0x08, 3, 0x0a, 0, 0x0a, 1, 4, 0x08, 0x81, 1};
    static const uint8_t floats_too[] = {0x0d, 0, 0, 0x80, 0x3f, 0x0a, 4, 0, 0, 0, 0x40};
    struct message *m = scratch(), *feature = scratch();

    add_field(feature, 3, mixed, sizeof(mixed));
    add_entry(m, "i", feature);
    add_field(feature, 2, floats_too, sizeof(floats_too));
    add_entry(m, "f", feature);
    check_features(m, "i int64 1 2 3 4 129; f float 3f800000 40000000");
}

UNIT_TEST(test_example__no_values_or_no_kind__length_0)
{
    struct message *m = scratch(), *feature = scratch();

    add_field(feature, 1, "", 0);
    add_entry(m, "b", feature);
    add_field(feature, 2, "", 0);
    add_entry(m, "f", feature);
    add_field(feature, 3, "\x0a\0", 2);
    add_entry(m, "i", feature);
    add_entry(m, "none", scratch());
    add_entry(m, "absent", NULL);
    check_features(m, "b bytes ''; f float; i int64; none none; absent none");
}

UNIT_TEST(test_example__two_kinds__last_one)
{
    struct message *m = scratch(), *feature = scratch();

    add_bytes(feature, INTEGERS(1, 2)->byte, 6);
    add_bytes(feature, "\x12\x06\x0a\x04\0\0\x10\x41", 8);
    add_entry(m, "f", feature);
    feature->n = 0;
    add_bytes(feature, INTEGERS(1, 2)->byte, 6);
    add_field(feature, 1, "", 0);
    add_bytes(feature, INTEGERS(3, 4)->byte, 6);
    add_entry(m, "i", feature);
    check_features(m, "f float 41100000 = 41100000..; i int64 3 4");
}

UNIT_TEST(test_example__one_kind_twice__lists_joined)
{
    struct message *m = scratch(), *feature = scratch(), *entry = scratch();

    add_bytes(feature, INTEGERS(1, 2)->byte, 6);
    add_bytes(feature, INTEGERS(3, 4)->byte, 6);
    add_entry(m, "i", feature);
    add_field(entry, 1, "v", 1); /* the same by two values of an entry */
    add(entry, 2, INTEGERS(5));
    add(entry, 2, INTEGERS(6));
    add(m, 1, entry);
    check_features(m, "i int64 1 2 3 4; v int64 5 6");
}

/* Which one counts is up to the caller, which has the names. */
UNIT_TEST(test_example__name_twice_and_features_twice__each_in_order)
{
    struct message *m = scratch(), *features = scratch();

    add_entry(features, "i", INTEGERS(7));
    add_entry(features, "i", INTEGERS(8));
    add(m, 1, features);
    add_entry(features, "j", INTEGERS(9));
    add(m, 1, features);
    check(m, "i int64 7; i int64 8; j int64 9");
}

UNIT_TEST(test_example__value_before_name__same)
{
    struct message *m = scratch(), *entry = scratch();

    add(entry, 2, INTEGERS(5));
    add_field(entry, 1, "x", 1);
    add_field(entry, 1, "y", 1);
    add(m, 1, entry);
    check_features(m, "y int64 5");
}

/* Fields of every wire type, at every level, and with large numbers. */
static void add_unknown(struct message *m, unsigned number)
{
    add_tag(m, number, 0);
    add_varint(m, UINT64_MAX);
    add_tag(m, number, 1);
    add_bytes(m, "12345678", 8);
    add_field(m, number, "unknown", 7);
    add_tag(m, number, 5);
    add_bytes(m, "1234", 4);
    add_tag(m, number, 3);
    add_tag(m, 1, 3);
    add_field(m, 2, "inside", 6);
    add_tag(m, 1, 4);
    add_tag(m, number, 4);
}

UNIT_TEST(test_example__unknown_fields__skipped)
{
    struct message *m = scratch(), *features = scratch(), *entry = scratch(), *feature = scratch(),
                   *list = scratch();

    add_unknown(list, 2);
    add_field(list, 1, "\x05", 1);
    add_unknown(feature, 4);
    add(feature, 3, list);
    add_unknown(feature, 536870911);
    add_field(feature, 4, "\x0a\x01\x07", 3); /* a list of a kind that does not exist */
    add_field(feature, 3, "\x0a\x01\x06", 3);
    add_unknown(entry, 3);
    add_field(entry, 1, "i", 1);
    add(entry, 2, feature);
    add_unknown(features, 15);
    add(features, 1, entry);
    add_unknown(m, 16);
    add(m, 1, features);
    check(m, "i int64 5 6");
}

UNIT_TEST(test_example__other_wire_types__unknown)
{
    static const uint8_t doubles[] = {0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x0d, 1, 2, 3, 4};
    struct message *m = scratch(), *feature = scratch();

    add_field(feature, 3, doubles, sizeof(doubles)); /* int64 as fixed64, fixed32 */
    add_entry(m, "i", feature);
    add_field(feature, 2, doubles, 9); /* float as double */
    add_entry(m, "f", feature);
    add_field(feature, 1, "\x08\x05", 2); /* bytes as varint */
    add_entry(m, "b", feature);
    add_bytes(feature, "\x18\x05", 2); /* the list as a varint */
    add_entry(m, "none", feature);
    check_features(m, "i int64; f float; b bytes ''; none none");
}

UNIT_TEST(test_example__names_of_any_bytes__as_they_are)
{
    struct message *m = scratch();

    add_entry(m, "\xc3\xa9/k.x", INTEGERS(1));
    add_entry(m, "", INTEGERS(2));
    add_entry(m, "\xff\n", INTEGERS(3));
    check_features(m, "\xc3\xa9/k.x int64 1;  int64 2; \xff\n int64 3");
}

/* ---- SequenceExample ---- */

static void add_list(struct message *lists, const char *name, struct message *value)
{
    add_entry(lists, name, value);
}

UNIT_TEST(test_sequence__steps_of_differing_length__values_and_steps)
{
    struct message *m = scratch(), *features = scratch(), *lists = scratch(), *list = scratch();

    add_entry(features, "c", INTEGERS(7));
    add(m, 1, features);
    add(list, 1, INTEGERS(1, 2));
    add(list, 1, scratch());
    add(list, 1, INTEGERS(3));
    add_list(lists, "i", list);
    add(list, 1, STRINGS("x", "yz"));
    add(list, 1, STRINGS("w"));
    add_list(lists, "b", list);
    add_list(lists, "empty", list);
    add(list, 1, INTEGERS(1));
    add(list, 1, STRINGS("w"));
    add_list(lists, "two", list);
    add(m, 2, lists);
    check(m, "c int64 7; i[] int64 1 2 3 steps 2 0 1; b[] bytes 'xyzw' 1 2 1 steps 2 1; "
             "empty[] none steps; two[] mixed steps 1 1");
}

UNIT_TEST(test_sequence__step_with_two_kinds__last_one)
{
    struct message *m = scratch(), *lists = scratch(), *list = scratch(), *feature = scratch();

    add_bytes(feature, INTEGERS(1, 2)->byte, 6);
    add_field(feature, 1, "", 0);
    add_bytes(feature, INTEGERS(3, 4)->byte, 6);
    add(list, 1, feature);
    add_list(lists, "i", list);
    add(m, 2, lists);
    check(m, "i[] int64 3 4 steps 2");
}

UNIT_TEST(test_sequence__field_2_is_no_lists__skipped)
{
    struct message *m = scratch(), *features = scratch();

    add_field(m, 2, "some text", 9);
    add_entry(features, "i", INTEGERS(7));
    add(m, 1, features);
    check(m, "i int64 7");
}

/* ---- neither ---- */

UNIT_TEST(test_example__list_with_context__neither)
{
    struct message *m = scratch(), *features = scratch(), *example = scratch();

    add_entry(features, "i", INTEGERS(7));
    add(example, 1, features);
    add(m, 1, example);
    check_fault(m, "a feature with a name and a value", 4);
}

UNIT_TEST(test_example__length_beyond_its_message__fault)
{
    struct message *m = scratch();

    add_bytes(m, "\x0a\x06\x0a\x03\x0a\x01x", 7); /* Features: 6 bytes, of which 5 exist */
    check_fault(m, "a field that ends inside its message", 0);
    m->n = 0;
    add_bytes(m, "\x0a\x05\x0a\x04\x0a\x01x", 7); /* the map entry: 4 of 3 */
    check_fault(m, "a field that ends inside its message", 2);
    m->n = 0;
    add_bytes(m, "\x0a\x05\x0a\x03\x0a\x02x", 7); /* the name: 2 of 1 */
    check_fault(m, "a field that ends inside its message", 4);
}

UNIT_TEST(test_example__varint_too_long__fault)
{
    static const uint8_t eleven[] = "\x0a\x0d\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01..";
    static const uint8_t above[] = "\x0a\x0d\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02...";
    static const uint8_t list[] = "\x0a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    struct message *m = scratch(), *features = scratch(), *feature = scratch();

    add_bytes(m, eleven, sizeof(eleven) - 1);
    check_fault(m, "a varint of at most 64 bits", 2);
    m->n = 0;
    add_bytes(m, above, sizeof(above) - 1);
    check_fault(m, "a varint of at most 64 bits", 2);
    m->n = 0;
    add_field(feature, 3, list, sizeof(list) - 1);
    add_entry(features, "i", feature);
    add(m, 1, features);
    check_fault(m, "a varint of at most 64 bits", 14);
}

UNIT_TEST(test_example__wrong_wire_bytes__fault)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *wanted;
        size_t at;
    } cases[] = {
        {"\x00", 1, "a field number and a wire type of protobuf", 0},
        {"\x0e\x01", 2, "a field number and a wire type of protobuf", 0},
        {"\x88\x80\x80\x80\x10\x01", 6, "a field number and a wire type of protobuf", 0},
        {"\x0c", 1, "a field, not the end of a group", 0},
        {"\x0b", 1, "the end of a group", 1},
        {"\x0b\x14", 2, "the end of the group that began", 1},
        {"\x09\x01\x02", 3, "a field that ends inside its message", 0},
        {"1", 1, "a field that ends inside its message", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct message *m = scratch();

        add_bytes(m, cases[i].bytes, cases[i].len);
        check_fault(m, cases[i].wanted, cases[i].at);
    }
}

UNIT_TEST(test_example__floats_of_3_bytes__fault)
{
    struct message *m = scratch(), *features = scratch(), *feature = scratch();

    add_field(feature, 2,
              "\x0a\x03"
              "abc",
              5);
    add_entry(features, "f", feature);
    add(m, 1, features);
    check_fault(m, "packed floats of 4 bytes each", 13);
}

/* Bounds of what hostile bytes may ask for. */
UNIT_TEST(test_example__deep_groups_many_features_long_name__fault)
{
    static struct message message, all;
    struct message *m = &message, *features = &all;
    char name[EXAMPLE_NAME_MAX + 2];

    for (unsigned i = 0; i < 65; i++)
        add_tag(m, 1, 3);
    check_fault(m, "fewer groups inside of one another", 64);
    m->n = 0;
    for (unsigned i = 0; i <= EXAMPLE_FEATURES; i++)
        add_entry(features, "n", INTEGERS(1));
    add(m, 1, features);
    check_fault(m, "at most 4096 features", 4 + 12 * EXAMPLE_FEATURES + 2);
    m->n = features->n = 0;
    memset(name, 'n', sizeof(name));
    name[EXAMPLE_NAME_MAX + 1] = '\0';
    add_entry(features, name, INTEGERS(1));
    add(m, 1, features);
    check_fault(m, "a feature's name of at most 4096 bytes", 6);
}
