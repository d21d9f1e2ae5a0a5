/* Thrift, codecs, runs, and each encoding of values. The bytes were made by hand from the
 * specifications. */
#include "format/parquet/decode/hybrid.h"
#include "format/parquet/decode/page.h"
#include "format/parquet/decode/thrift.h"
#include "support/unit.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

/* ---- Thrift ---- */

struct read {
    int64_t number, flag, member, inside;
    uint64_t bits;
    struct thrift_bytes name;
    bool has_list;
};

static const struct thrift_rule inside[] = {
    {.id = 1, .becomes = THRIFT_NUMBER, .at = offsetof(struct read, inside)}, {0}};
static const struct thrift_rule rules[] = {
    {.id = 1, .becomes = THRIFT_NUMBER, .at = offsetof(struct read, number)},
    {.id = 2, .becomes = THRIFT_NUMBER, .at = offsetof(struct read, flag)},
    {.id = 3, .becomes = THRIFT_UNION, .at = offsetof(struct read, member), .rules = inside},
    {.id = 20, .becomes = THRIFT_BYTES, .at = offsetof(struct read, name)},
    {.id = 21, .becomes = THRIFT_BITS, .at = offsetof(struct read, bits)},
    {.id = 22, .becomes = THRIFT_SEEN, .at = offsetof(struct read, has_list)},
    {0}};

UNIT_TEST(test_thrift__fields__read)
{
    /* i32 1 = -3; bool 2 = true; struct 3 = {struct 9 = {i32 1 = 4}}; binary 20 = "ab"; list of i32
     * 21 = {1, 70}; list of i32 22 = {}; i32 20 = 0, of another type; i32 1 = 1; stop */
    const uint8_t bytes[] = {0x15, 5,    0x11, 0x1c, 0x9c, 0x15, 8, 0,    0, 0x08,
                             40,   2,    'a',  'b',  0x19, 0x25, 2, 0x8c, 1, 0x19,
                             0x05, 0x05, 40,   0,    0x05, 2,    2, 0x00};
    struct thrift t = {.at = bytes, .end = bytes + sizeof(bytes)};
    struct read got = {0};

    assert_int_equal(thrift_read(&t, rules, &got), 0);
    assert_true(got.number == 1 && got.flag == 1 && got.member == 9 && got.inside == 4);
    assert_true(got.name.len == 2 && !memcmp(got.name.at, "ab", 2));
    assert_true(got.bits == (UINT64_C(1) << 63 | 2) && got.has_list);
    assert_null(t.fault);
    assert_ptr_equal(t.at, t.end);
}

static void fails_thrift(const uint8_t *bytes, size_t len, const char *piece)
{
    struct thrift t = {.at = bytes, .end = bytes + len};
    struct read got = {0};

    assert_int_equal(thrift_read(&t, &(const struct thrift_rule){0}, &got), -EBADMSG);
    assert_non_null(t.fault);
    assert_non_null(strstr(t.fault, piece));
    assert_true(t.fault_at >= bytes && t.fault_at <= bytes + len);
}

UNIT_TEST(test_thrift__hostile__faults)
{
    uint8_t deep[200];

    fails_thrift(BYTES(0x1f), "a type of Thrift");
    fails_thrift(BYTES(0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1),
                 "at most 10 bytes");
    fails_thrift(BYTES(0x18, 0xff, 0xff, 0xff, 0xff, 7, 'a'), "a length inside");
    fails_thrift(BYTES(0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 7), "as many elements");
    fails_thrift(BYTES(0x19, 0xf1, 0x80, 0x80, 0x80, 0x80, 4, 0), "as many elements");
    fails_thrift(BYTES(0x1b, 0xff, 0xff, 3, 0x55, 1), "a map");
    fails_thrift(BYTES(0x15), "more bytes");
    memset(deep, 0x19, sizeof(deep)); /* lists of one list */
    fails_thrift(deep, sizeof(deep), "at most 64 levels");
    memset(deep, 0x1c, sizeof(deep)); /* structs in structs */
    fails_thrift(deep, sizeof(deep), "at most 64 levels");
}

/* ---- codecs ---- */

static void unpacks(enum parquet_codec codec, const uint8_t *bytes, size_t len, const char *want)
{
    uint8_t out[64] = {0};
    size_t size = strlen(want);

    assert_int_equal(codec_unpack(codec, bytes, len, out, size), 0);
    assert_memory_equal(out, want, size);
    assert_int_equal(codec_unpack(codec, bytes, len, out, size - 1), -EBADMSG);
    assert_int_equal(codec_unpack(codec, bytes, len, out, size + 1), -EBADMSG);
    for (size_t cut = 0; cut + 1 < len; cut++) /* the last byte may be a part of padding */
        assert_int_equal(codec_unpack(codec, bytes, cut, out, size), -EBADMSG);
}

UNIT_TEST(test_codec__known_bytes__unpacked)
{
    uint8_t out[16];

    /* Snappy: 10 bytes: literal "ab", a copy of 8 bytes from 2 before. */
    unpacks(CODEC_SNAPPY, BYTES(10, 1 << 2, 'a', 'b', 4 << 2 | 1, 2), "ababababab");
    /* The same by a copy with an offset of two bytes. */
    unpacks(CODEC_SNAPPY, BYTES(10, 1 << 2, 'a', 'b', 7 << 2 | 2, 2, 0), "ababababab");
    /* LZ4: literals "ab", a match of 6 from 2 before; literals "xyzzy". */
    unpacks(CODEC_LZ4, BYTES(0x22, 'a', 'b', 2, 0, 0x50, 'x', 'y', 'z', 'z', 'y'), "ababababxyzzy");
    unpacks(CODEC_GZIP,
            BYTES(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0x4b, 0x4c, 0x4a, 4, 0x43, 0, 0xe8, 0xf,
                  0x83, 0x52, 8, 0, 0, 0),
            "abababab");
    /* A copy from before the start. */
    assert_int_equal(
        codec_unpack(CODEC_SNAPPY, BYTES(10, 1 << 2, 'a', 'b', 4 << 2 | 1, 3), out, 10), -EBADMSG);
    assert_int_equal(codec_unpack(CODEC_LZ4, BYTES(0x22, 'a', 'b', 3, 0), out, 8), -EBADMSG);
    assert_int_equal(codec_unpack(CODEC_LZO, BYTES(0), out, 1), -EBADMSG);
    assert_non_null(strstr(codec_refused(CODEC_BROTLI), "Brotli"));
    assert_null(codec_refused(CODEC_LZ4));
}

static int read_packed(void *ctx, uint64_t at, size_t len, const uint8_t **ret)
{
    (void)len;
    *ret = (const uint8_t *)ctx + at;
    return 0;
}

/* Literals and copies, far, near and of more than they are back, in pieces of 100 bytes that repeat
 * nothing before them. */
static size_t pack_pieces(uint8_t *ret, unsigned pieces)
{
    uint8_t *p = ret;

    *p++ = (uint8_t)(0x80 | (100 * pieces & 0x7f));
    *p++ = (uint8_t)(100 * pieces >> 7);
    for (unsigned k = 0; k < pieces; k++) {
        *p++ = 60 << 2; /* 61 bytes, whose length is a byte of its own */
        *p++ = 60;
        for (unsigned i = 0; i < 61; i++)
            *p++ = (uint8_t)(i * 7 + k);
        *p++ = 2 << 2; /* 3 bytes */
        for (unsigned i = 0; i < 3; i++)
            *p++ = (uint8_t)(k + i);
        *p++ = 19 << 2 | 2; /* 20 bytes from 3 before, 16 from 70 before */
        *p++ = 3;
        *p++ = 0;
        *p++ = 15 << 2 | 2;
        *p++ = 70;
        *p++ = 0;
    }
    return (size_t)(p - ret);
}

UNIT_TEST(test_codec__part__as_of_the_whole)
{
    uint8_t packed[400], whole[300], part[300];
    const struct codec_packed from = {0, pack_pieces(packed, 3), read_packed, packed};
    struct codec_packed cut = from;
    uint8_t one[] = {1, 0, 'a'}; /* a literal, which is cut off */
    const struct codec_packed no_element = {0, 1, read_packed, one};

    assert_int_equal(codec_unpack(CODEC_SNAPPY, packed, from.end, whole, sizeof(whole)), 0);
    for (size_t start = 0; start < sizeof(whole); start++)
        for (size_t end = start + 1; end <= sizeof(whole); end++) {
            int r = codec_unpack_part(&from, start, end, part);

            /* In a piece, what is repeated is before; at its start, nothing is. */
            assert_true(r == 0 || (r == -ENODATA && start % 100));
            if (r == 0)
                assert_memory_equal(part, whole + start, end - start);
        }
    assert_int_equal(codec_unpack_part(&from, 0, 301, part), -EBADMSG);
    assert_int_equal(codec_unpack_part(&no_element, 0, 1, part), -EBADMSG);
    for (cut.end = 0; cut.end < from.end; cut.end++)
        assert_int_equal(codec_unpack_part(&cut, 200, 300, part), -EBADMSG);
}

/* ---- runs ---- */

static size_t ids(const uint8_t *bytes, size_t len, unsigned width, size_t n, uint32_t *ret)
{
    struct hybrid h = {.p = bytes, .end = bytes + len, .width = width};

    return hybrid_some(&h, n, ret);
}

UNIT_TEST(test_hybrid__runs_and_groups__decoded)
{
    /* A run of 3 times 5; a group of 8 values 0 .. 7 (Encodings.md). */
    const uint8_t bytes[] = {6, 5, 3, 0x88, 0xc6, 0xfa};
    size_t full;
    uint32_t id[HYBRID_SOME];
    uint8_t level[16];

    assert_int_equal(ids(bytes, sizeof(bytes), 3, 11, id), 11);
    for (unsigned i = 0; i < 11; i++)
        assert_int_equal(id[i], i < 3 ? 5 : i - 3);
    assert_int_equal(hybrid_levels(bytes, sizeof(bytes), 7, 11, level, &full), 0);
    assert_true(level[0] == 5 && level[10] == 7 && full == 1);
    assert_int_equal(hybrid_levels(bytes, sizeof(bytes), 7, 12, level, &full), -ENODATA);
    /* One of a group is larger; the run is. */
    assert_int_equal(hybrid_levels(bytes, sizeof(bytes), 6, 11, level, &full), -ERANGE);
    assert_int_equal(hybrid_levels(bytes, sizeof(bytes), 4, 1, level, &full), -ERANGE);
    assert_int_equal(ids(bytes, sizeof(bytes), 3, 2, id), 2); /* a run that is longer */
    assert_int_equal(ids(bytes, sizeof(bytes), 3, 12, id), 11);
    assert_int_equal(ids(BYTES(0, 0, 0, 0, 0, 0), 3, 1, id), 0); /* runs of none */
    assert_int_equal(ids(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 3, 1, id), 0);
    assert_int_equal(ids(NULL, 0, 0, 1000, id), HYBRID_SOME);
    assert_int_equal(id[3], 0);
}

UNIT_TEST(test_bits__widths__unpacked)
{
    uint8_t bytes[64];
    uint64_t v[4];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (unsigned width = 1; width <= 64; width++) {
        bits_unpack(bytes, sizeof(bytes), width, 3, 4, v);
        for (unsigned i = 0; i < 4; i++)
            for (unsigned bit = 0; bit < width; bit++) {
                unsigned at = (3 + i) * width + bit;

                assert_int_equal(v[i] >> bit & 1, bytes[at / 8] >> at % 8 & 1);
            }
    }
}

/* ---- values ---- */

static int decode(enum parquet_type type, uint32_t fixed, uint64_t encoding, const uint8_t *bytes,
                  size_t len, size_t n, struct values *ret)
{
    const char *why;

    *ret = (struct values){.width = values_width(type, fixed)};
    return values_decode(
        ret, type,
        &(const struct values_source){.encoding = encoding, .bytes = bytes, .len = len, .n = n},
        &why);
}

static void is_text(const struct values *v, size_t i, const char *want)
{
    size_t len;
    const uint8_t *bytes = values_at(v, i, &len);

    assert_int_equal(len, strlen(want));
    assert_memory_equal(bytes, want, len);
}

UNIT_TEST(test_values__plain__decoded)
{
    AUTO_VALUES struct values v = {0}, w = {0}, b = {0};

    assert_int_equal(decode(TYPE_INT32, 0, ENCODING_PLAIN, BYTES(1, 0, 0, 0, 2, 0, 0, 0), 2, &v),
                     0);
    assert_int_equal(load_le32(v.bytes + 4), 2);
    assert_int_equal(decode(TYPE_BYTE_ARRAY, 0, ENCODING_PLAIN,
                            BYTES(1, 0, 0, 0, 'a', 0, 0, 0, 0, 2, 0, 0, 0, 'b', 'c'), 3, &w),
                     0);
    is_text(&w, 0, "a");
    is_text(&w, 1, "");
    is_text(&w, 2, "bc");
    assert_int_equal(decode(TYPE_BOOLEAN, 0, ENCODING_PLAIN, BYTES(5), 3, &b), 0);
    assert_memory_equal(b.bytes, ((uint8_t[]){1, 0, 1}), 3);
}

UNIT_TEST(test_values__split_and_runs__decoded)
{
    AUTO_VALUES struct values v = {0}, b = {0}, none = {0};

    assert_int_equal(decode(TYPE_FIXED, 2, ENCODING_BYTE_STREAM_SPLIT, BYTES(1, 2, 3, 4), 2, &v),
                     0);
    assert_memory_equal(v.bytes, ((uint8_t[]){1, 3, 2, 4}), 4);
    assert_int_equal(decode(TYPE_BOOLEAN, 0, ENCODING_RLE, BYTES(2, 0, 0, 0, 6, 1), 3, &b), 0);
    assert_memory_equal(b.bytes, ((uint8_t[]){1, 1, 1}), 3);
    assert_int_equal(decode(TYPE_BOOLEAN, 0, ENCODING_RLE, BYTES(0), 0, &none), 0);
}

/* Blocks of 128 in 4 miniblocks; Encodings.md, example 1: 1 .. 5. */
UNIT_TEST(test_values__delta__decoded)
{
    AUTO_VALUES struct values v = {0}, w = {0};

    assert_int_equal(decode(TYPE_INT64, 0, ENCODING_DELTA_BINARY_PACKED,
                            BYTES(0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0), 5, &v),
                     0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(load_le64(v.bytes + 8 * i), i + 1);
    /* 7, 5, 3: deltas of -2, which wrap. */
    assert_int_equal(decode(TYPE_INT32, 0, ENCODING_DELTA_BINARY_PACKED,
                            BYTES(0x80, 1, 4, 3, 14, 3, 0, 99, 99, 99), 3, &w),
                     0);
    assert_int_equal(load_le32(w.bytes + 8), 3);
}

/* Lengths 2, 1; then prefixes 0, 1 with suffixes "ab", "c". */
UNIT_TEST(test_values__delta_bytes__decoded)
{
    AUTO_VALUES struct values v = {0}, w = {0}, fixed = {0};

    assert_int_equal(decode(TYPE_BYTE_ARRAY, 0, ENCODING_DELTA_LENGTH_BYTE_ARRAY,
                            BYTES(0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0, 'a', 'b', 'c'), 2, &v),
                     0);
    is_text(&v, 0, "ab");
    is_text(&v, 1, "c");
    assert_int_equal(decode(TYPE_BYTE_ARRAY, 0, ENCODING_DELTA_BYTE_ARRAY,
                            BYTES(0x80, 1, 4, 2, 0, 2, 0, 0, 0, 0, 0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0,
                                  'a', 'b', 'c'),
                            2, &w),
                     0);
    is_text(&w, 0, "ab");
    is_text(&w, 1, "ac");
    /* The same as values of two bytes. */
    assert_int_equal(decode(TYPE_FIXED, 2, ENCODING_DELTA_BYTE_ARRAY,
                            BYTES(0x80, 1, 4, 2, 0, 2, 0, 0, 0, 0, 0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0,
                                  'a', 'b', 'c'),
                            2, &fixed),
                     0);
    assert_memory_equal(fixed.bytes, "abac", 4);
}

static int add(struct values *v, const uint8_t *bytes, size_t len, size_t n,
               const struct values *dictionary)
{
    const struct values_source from = {ENCODING_RLE_DICTIONARY, bytes, len, n, dictionary, NULL};
    const char *why;

    return values_decode(v, TYPE_INT32, &from, &why);
}

UNIT_TEST(test_values__dictionary__bad_id_alone)
{
    AUTO_VALUES struct values entries = {0}, v = {.width = 4};

    assert_int_equal(
        decode(TYPE_INT32, 0, ENCODING_PLAIN, BYTES(10, 0, 0, 0, 20, 0, 0, 0), 2, &entries), 0);
    /* Width 2; a group of ids 1, 0, 3, 0, ... */
    assert_int_equal(add(&v, BYTES(2, 3, 0x31, 0), 4, &entries), 0);
    assert_int_equal(load_le32(v.bytes), 20);
    assert_int_equal(load_le32(v.bytes + 4), 10);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(values_mark(&v, i), i == 2 ? VALUE_BAD : VALUE_GOOD);
    assert_int_equal(add(&v, BYTES(33, 3, 0), 4, &entries), -EBADMSG);
    assert_int_equal(v.n, 4); /* nothing was added */
    assert_int_equal(add(&v, BYTES(1, 2, 0), 1, NULL), -EBADMSG);
}

UNIT_TEST(test_values__memory_taken__same_values)
{
    /* "ab", "", "c" with their lengths, after a byte of levels */
    static const uint8_t page[] = {9, 2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 1, 0, 0, 0, 'c'};
    AUTO_VALUES struct values v = {0};
    AUTO(values_memory_release) struct values_memory memory = {0};
    struct values *packed;
    const char *why;
    size_t size;
    void *piece;

    assert_int_equal(values_memory_have(&memory, sizeof(page)), 0);
    memcpy(memory.bytes, page, sizeof(page));
    const struct values_source from = {
        .bytes = memory.bytes + 1, .len = sizeof(page) - 1, .n = 3, .memory = &memory};

    assert_int_equal(values_decode(&v, TYPE_BYTE_ARRAY, &from, &why), 0);
    assert_true(v.len == 3 && v.bytes == from.bytes);
    is_text(&v, 0, "ab");
    is_text(&v, 1, "");
    is_text(&v, 2, "c");
    assert_int_equal(values_append_one(&v, "xyz", 3), 0);
    assert_int_equal(v.len, 6);
    is_text(&v, 3, "xyz");
    values_drop(&v, 1);
    is_text(&v, 1, "c");
    assert_int_equal(values_pack(&v, "why", &piece, &size), 0);
    packed = piece;
    is_text(packed, 2, "xyz");
    assert_string_equal(values_packed_text(packed), "why");
    free(piece);
}

static void refuses(enum parquet_type type, uint64_t encoding, const uint8_t *bytes, size_t len,
                    size_t n)
{
    AUTO_VALUES struct values v = {0};

    assert_int_equal(decode(type, 2, encoding, bytes, len, n, &v), -EBADMSG);
    assert_int_equal(v.n, 0);
}

UNIT_TEST(test_values__hostile__refused)
{
    refuses(TYPE_INT32, ENCODING_PLAIN, BYTES(1, 0, 0), 1);
    refuses(TYPE_INT32, ENCODING_PLAIN, BYTES(1, 0, 0, 0), (size_t)1 << 60);
    refuses(TYPE_BOOLEAN, ENCODING_PLAIN, BYTES(1), 9);
    refuses(TYPE_BYTE_ARRAY, ENCODING_PLAIN, BYTES(5, 0, 0, 0, 'a'), 1);
    refuses(TYPE_BYTE_ARRAY, ENCODING_PLAIN, BYTES(0xff, 0xff, 0xff, 0xff, 'a'), 1);
    refuses(TYPE_INT32, ENCODING_DELTA_BINARY_PACKED, BYTES(0, 4, 2, 2, 2), 2);
    refuses(TYPE_INT32, ENCODING_DELTA_BINARY_PACKED, BYTES(8, 1, 2, 2, 2, 0), 2);
    refuses(TYPE_INT32, ENCODING_DELTA_BINARY_PACKED, BYTES(0x80, 1, 4, 3, 2, 2, 0, 0, 0, 0), 2);
    refuses(TYPE_INT32, ENCODING_DELTA_BINARY_PACKED, BYTES(0x80, 1, 4, 2, 2, 2, 33, 0, 0, 0), 2);
    refuses(TYPE_INT32, ENCODING_DELTA_BINARY_PACKED, BYTES(0x80, 1, 4, 2, 2, 2, 0, 0, 0), 2);
    refuses(TYPE_FIXED, ENCODING_DELTA_BYTE_ARRAY,
            BYTES(0x80, 1, 4, 2, 0, 0, 0, 0, 0, 0, 0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0, 'a', 'b', 'c'),
            2);
    refuses(TYPE_BYTE_ARRAY, ENCODING_DELTA_LENGTH_BYTE_ARRAY,
            BYTES(0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0, 'a', 'b'), 2);
    refuses(TYPE_BYTE_ARRAY, ENCODING_DELTA_LENGTH_BYTE_ARRAY, BYTES(0x80, 1, 4, 1, 3), 1);
    refuses(TYPE_BYTE_ARRAY, ENCODING_DELTA_BYTE_ARRAY,
            BYTES(0x80, 1, 4, 1, 2, 0x80, 1, 4, 1, 2, 'a'), 1);
    refuses(TYPE_DOUBLE, ENCODING_DELTA_BINARY_PACKED, BYTES(0x80, 1, 4, 1, 2), 1);
    refuses(TYPE_INT32, 99, BYTES(1, 0, 0, 0), 1);
    refuses(TYPE_FIXED, ENCODING_BYTE_STREAM_SPLIT, BYTES(1, 2, 3), 2);
}

/* ---- pages ---- */

UNIT_TEST(test_page__v1_with_nulls__levels_and_values)
{
    /* Levels 1, 0, 1 as a group; then 7 and 9. */
    const uint8_t body[] = {2, 0, 0, 0, 3, 5, 7, 0, 0, 0, 9, 0, 0, 0};
    const struct page_column column = {TYPE_INT32, 4, 1, 0, CODEC_NONE};
    struct page_header h = {.type = PAGE_DATA,
                            .n = 3,
                            .packed = sizeof(body),
                            .unpacked = sizeof(body),
                            .crc = PAGE_NO_CRC,
                            .level_encoding = {ENCODING_RLE, ENCODING_RLE}};
    AUTO_PAGE_DATA struct page_data data = {0}, other = {0};
    AUTO(values_memory_release) struct values_memory room = {0};
    const char *why;

    assert_int_equal(page_decode(&column, &h, body, NULL, &room, &data, &why), 0);
    assert_memory_equal(data.def, ((uint8_t[]){1, 0, 1}), 3);
    assert_int_equal(data.v.n, 2);
    assert_int_equal(load_le32(data.v.bytes + 4), 9);
    h.crc = 1;
    assert_int_equal(page_decode(&column, &h, body, NULL, &room, &other, &why), -EBADMSG);
    assert_non_null(strstr(why, "CRC"));
    assert_int_equal(other.n, 0);
    h.crc = PAGE_NO_CRC;
    h.level_encoding[0] = ENCODING_BIT_PACKED;
    assert_int_equal(page_decode(&column, &h, body, NULL, &room, &other, &why), -EBADMSG);
    assert_non_null(strstr(why, "bit-packed"));
    h.level_encoding[0] = ENCODING_RLE; /* the same again, and then the first half is dropped */
    assert_int_equal(page_decode(&column, &h, body, NULL, &room, &data, &why), 0);
    page_data_drop(&column, &data, 2);
    assert_memory_equal(data.def, ((uint8_t[]){1, 1, 0, 1}), 4);
    assert_true(data.n == 4 && data.v.n == 3 && load_le32(data.v.bytes) == 9);
}

UNIT_TEST(test_page__header_cut__wants_more)
{
    /* data page, 8 bytes packed and not, 2 values, PLAIN, levels RLE */
    const uint8_t bytes[] = {0x15, 0, 0x15, 16, 0x15, 16, 0x2c, 0x15, 4,
                             0x15, 0, 0x15, 6,  0x15, 6,  0x00, 0x00};
    struct page_header h;
    const char *why;

    for (size_t len = 0; len < sizeof(bytes); len++)
        assert_int_equal(page_header_read(bytes, len, &h, &why), -ENODATA);
    assert_int_equal(page_header_read(bytes, sizeof(bytes), &h, &why), 0);
    assert_int_equal(h.len, sizeof(bytes));
    assert_int_equal(h.n, 2);
    assert_int_equal(h.unpacked, 8);
}

/* Sizes of a data page in zigzag: 0 is one, less is none. */
UNIT_TEST(test_page__header_sizes__of_0_or_more)
{
    static const uint8_t cases[][3] = {
        {0, 0, 1}, {16, 0, 1}, {0, 16, 1}, {1, 0, 0}, {0, 1, 0}}; /* unpacked, packed, is good */
    uint8_t bytes[] = {0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x15, 4,
                       0x15, 0, 0x15, 6, 0x15, 6, 0x00, 0x00};
    struct page_header h;
    const char *why;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bytes[3] = cases[i][0];
        bytes[5] = cases[i][1];
        assert_int_equal(page_header_read(bytes, sizeof(bytes), &h, &why),
                         cases[i][2] ? 0 : -EBADMSG);
    }
}
