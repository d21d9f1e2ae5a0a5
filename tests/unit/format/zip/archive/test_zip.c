/* The directory of an archive in memory: numbers of 64 bits, and that no damage gives members
 * outside of it. */
#include "format/zip/archive/zip.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/scope.h"

#define NAME "x.npy"

/* Two stored members of 3 and 4 bytes. */
static size_t make(uint8_t bytes[static 512])
{
    static const char *const contents[] = {"abc", "defg"};
    size_t at = 0, offset[2], directory;

    memset(bytes, 0, 512);
    for (int i = 0; i < 2; i++) {
        offset[i] = at;
        store_le32(bytes + at, UINT32_C(0x04034b50));
        store_le16(bytes + at + 26, 5);
        store_le16(bytes + at + 28, 7); /* an extra field, which says nothing */
        memcpy(bytes + at + 30, NAME, 5);
        bytes[at + 30] = (uint8_t)('x' + i);
        memcpy(bytes + at + 42, contents[i], strlen(contents[i]));
        at += 42 + strlen(contents[i]);
    }
    directory = at;
    for (int i = 0; i < 2; i++, at += 51) {
        store_le32(bytes + at, UINT32_C(0x02014b50));
        store_le32(bytes + at + 20, (uint32_t)strlen(contents[i]));
        store_le32(bytes + at + 24, (uint32_t)strlen(contents[i]));
        store_le16(bytes + at + 28, 5);
        store_le32(bytes + at + 42, (uint32_t)offset[i]);
        memcpy(bytes + at + 46, NAME, 5);
        bytes[at + 46] = (uint8_t)('x' + i);
    }
    store_le32(bytes + at, UINT32_C(0x06054b50));
    store_le16(bytes + at + 8, 2);
    store_le16(bytes + at + 10, 2);
    store_le32(bytes + at + 12, 102);
    store_le32(bytes + at + 16, (uint32_t)directory);
    return at + 22;
}

#define END64                                                                                      \
    245 /* where make64() has the record for 64 bits; the locator follows, then the end            \
         */

/* The same members, whose directory has its numbers of 64 bits in extra fields. */
static size_t make64(uint8_t bytes[static 512])
{
    static const size_t numbers[] = {24, 8}; /* bytes of them: all, and the offset alone */
    uint8_t entry[2][46 + 5];
    size_t at = 91;

    make(bytes);
    memcpy(entry, bytes + at, sizeof(entry));
    memset(bytes + at, 0, 512 - at);
    for (int i = 0; i < 2; i++) {
        uint8_t *field = bytes + at + 51;

        memcpy(bytes + at, entry[i], 51);
        store_le16(bytes + at + 30, (uint16_t)(6 + 4 + numbers[i]));
        store_le16(field, 0x5455); /* of two bytes, which says nothing */
        store_le16(field + 2, 2);
        store_le16(field + 6, 1);
        store_le16(field + 8, (uint16_t)numbers[i]);
        field += 10;
        for (size_t k = i ? 2 : 0; k < 3; k++, field += 8) {
            uint8_t *number = bytes + at + (size_t[]){24, 20, 42}[k];

            store_le64(field, load_le32(number));
            store_le32(number, UINT32_MAX);
        }
        at += 51 + 10 + numbers[i];
    }
    assert_int_equal(at, END64);
    store_le32(bytes + at, UINT32_C(0x06064b50));
    store_le64(bytes + at + 24, 2);
    store_le64(bytes + at + 32, 2);
    store_le64(bytes + at + 40, END64 - 91);
    store_le64(bytes + at + 48, 91);
    store_le32(bytes + at + 56, UINT32_C(0x07064b50));
    store_le64(bytes + at + 56 + 8, at);
    store_le32(bytes + at + 56 + 16, 1);
    at += 56 + 20;
    store_le32(bytes + at, UINT32_C(0x06054b50));
    memset(bytes + at + 4, 0xff, 16);
    return at + 22;
}

/* Read the directory, and find all members: to member[2]. */
static int open_zip(const uint8_t *bytes, size_t len, uint64_t fail_read, struct zip *ret,
                    struct zip_member *member, struct diag *d)
{
    struct blob_faults faults = {.fail_read = fail_read};
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npz", bytes, len, len, &faults);
    int r = zip_read(blob, false, ret, d);

    for (size_t i = 0; r == 0 && i < ret->n; i++) {
        member[i] = zip_member(ret, i);
        r = zip_locate(READ_WAITS, blob, &member[i], d);
    }
    return r;
}

UNIT_TEST(test_zip__members)
{
    AUTO_ZIP struct zip zip = {0};
    struct zip_member member[2];
    uint8_t bytes[512];
    size_t len = make(bytes);

    assert_int_equal(open_zip(bytes, len, 0, &zip, member, NULL), 0);
    assert_int_equal(zip.n, 2);
    assert_int_equal(member[1].at, 45 + 42);
    assert_int_equal(member[1].size, 4);
    assert_memory_equal(member[1].name, "y.npy", 5);
}

UNIT_TEST(test_zip__a_byte_differs__members_inside)
{
    uint8_t bytes[512];
    size_t len = make(bytes);

    for (size_t i = 0; i < len; i++) {
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            AUTO_ZIP struct zip zip = {0};
            struct zip_member member[2];
            struct diag d = DIAG_INIT;

            bytes[i] ^= (uint8_t)flip;
            if (open_zip(bytes, len, 0, &zip, member, &d) < 0)
                assert_diag_has(&d, "a.npz: ");
            else
                for (size_t k = 0; k < zip.n; k++)
                    assert_true(member[k].at + member[k].packed_size <= zip.directory);
            bytes[i] ^= (uint8_t)flip;
        }
    }
}

UNIT_TEST(test_zip__cut_short__ebadmsg)
{
    uint8_t bytes[512];
    size_t len = make(bytes);

    for (size_t n = 0; n < len; n++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];

        assert_int_equal(open_zip(bytes, n, 0, &zip, member, NULL), -EBADMSG);
    }
}

UNIT_TEST(test_zip__each_read_fails__reported)
{
    uint8_t bytes[512];
    size_t len = make(bytes);
    uint64_t n = 1;

    for (int r = -EIO; r < 0; n++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];

        r = open_zip(bytes, len, n, &zip, member, NULL);
        assert_true(r == 0 || r == -EIO);
        assert_true(n < 100);
    }
    assert_int_equal(n, 7); /* the end, a locator, the directory, two headers */
}

/* A member with these numbers, at the edges of what is possible. */
UNIT_TEST(test_zip_check__numbers)
{
    static const struct {
        unsigned method, flags;
        uint64_t size, packed;
        const char *want; /* NULL: it is good */
    } rows[] = {
        {ZIP_STORED, 0, 7, 7, NULL},
        {ZIP_STORED, 0, 7, 8, "as it has, got 8 and 7"},
        {ZIP_STORED, 1, 7, 7, "is encrypted"},
        {ZIP_STORED, 64, 7, 7, "is encrypted"},
        {ZIP_STORED, 0x2000, 7, 7, "is encrypted"},
        {ZIP_STORED, 0xffff & ~0x2041, 7, 7, NULL},
        {99, 0, 7, 7, "is encrypted"},
        {12, 0, 7, 7, "its compression method is 12 (bzip2): expected stored or deflated"},
        {98, 0, 7, 7, "98 (PPMd)"},
        {1, 0, 7, 7, "1 (a rare method)"},
        {ZIP_DEFLATED, 0, 10319, 9, NULL},
        {ZIP_DEFLATED, 0, 10320, 9, "expected at most 1032 bytes of each deflated byte, got 10320"},
        {ZIP_DEFLATED, 0, 80, 80 + 10 + 65536, NULL},
        {ZIP_DEFLATED, 0, 80, 80 + 11 + 65536,
         "expected at most 65626 deflated bytes for 80, got "
         "65627"},
        {ZIP_DEFLATED, 0, UINT64_MAX, 7, "expected its numbers of 64 bits"},
        {ZIP_DEFLATED, 0, 7, UINT64_MAX, "expected its numbers of 64 bits"},
    };
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npz", "", 0, 0, NULL);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct zip_member m = {.name = "x",
                                     .name_len = 1,
                                     .method = rows[i].method,
                                     .flags = rows[i].flags,
                                     .size = rows[i].size,
                                     .packed_size = rows[i].packed};
        struct diag d = DIAG_INIT;

        assert_int_equal(zip_check(blob, &m, false, &d), rows[i].want ? -EBADMSG : 0);
        if (rows[i].want)
            assert_diag_has(&d, rows[i].want);
        if (rows[i].want && strstr(rows[i].want, " ("))
            assert_int_equal(zip_check(blob, &m, true, NULL), 0);
    }
}

/* A byte of the archive differs: what is said of it. */
UNIT_TEST(test_zip__damage__named)
{
    static const struct {
        size_t at; /* from the end of the archive */
        uint8_t byte;
        const char *want;
    } rows[] = {
        {22, 0, "end: expected the directory of the archive (50 4b 05 06 near the end), got none"},
        {22 - 4, 1, "byte 193: expected an archive of one file, got a part of one of several"},
        {22 - 8, 3, "an archive of one file, got a part of one of several"},
        {22 - 12, 103, "directory: expected it to end at byte 193, got offset 91 and 103 bytes"},
        {22 - 16, 92, "directory: expected it to end at byte 193, got offset 92 and 102 bytes"},
        {22 + 102, 0, "byte 91: expected an entry of the directory (50 4b 01 02)"},
        {22 + 51 - 30, 1, "byte 142: expected an entry inside of the directory, got a longer one"},
        {22 + 51 - 34, 1, "byte 142: expected an archive of one file"},
        {22 + 51 - 20, 5, "member y.npy: expected as many bytes in the archive as it has"},
        {22 + 51 - 42, 37,
         "member x.npy: expected 3 bytes from 0 on, before the next member at byte "
         "37, got two that overlap"},
        {22 + 51 - 42, 60,
         "member y.npy: expected 4 bytes from 60 on, before the directory at byte "
         "91, got a later end"},
        {22 + 51 - 42, 44,
         "member x.npy: expected its 3 bytes from 42 on before byte 44, got more"},
        {22 + 51 - 42, 46, "member y.npy: byte 46: expected its header, got something else"},
        {193 + 22 - 8, 8,
         "member x.npy: byte 0: expected a header with method 0 and no encryption, "
         "got method 8 and flags 0000"},
        {193 + 22 - 6, 1, "got method 0 and flags 0001"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];
        struct diag d = DIAG_INIT;
        uint8_t bytes[512];
        size_t len = make(bytes);

        bytes[len - rows[i].at] = rows[i].byte;
        assert_int_equal(open_zip(bytes, len, 0, &zip, member, &d), -EBADMSG);
        assert_diag_has(&d, rows[i].want);
    }
}

UNIT_TEST(test_zip__damage_of_64_bits__named)
{
#define FIELD      (91 + 51 + 6) /* of the numbers of the first member */
#define NOT_64     "byte 245: expected the 64-bit end of an archive of one file, got something else"
#define NOT_BEFORE "byte 301: expected the offset of a record before it, got another"
    static const struct {
        size_t at;
        uint8_t byte;
        const char *want; /* NULL: it is read */
    } rows[] = {
        {0, 0x50, NULL},
        {END64, 0, NOT_64},
        {END64 + 16, 1, NOT_64},
        {END64 + 20, 1, NOT_64},
        {END64 + 23, 1, NOT_64},
        {END64 + 24, 1, NOT_64},
        {END64 + 32, 3, NOT_64},
        {END64 + 40, 155, "expected it to end at byte 245, got offset 91 and 155 bytes"},
        {END64 + 47, 128, "got offset 91 and 9223372036854775962 bytes"},
        {END64 + 48, 90, "expected it to end at byte 245, got offset 90 and 154 bytes"},
        {END64 + 56, 0, "to end at byte 321, got offset 4294967295 and 4294967295 bytes"},
        {END64 + 56 + 4, 1, "byte 301: expected an archive of one file"},
        {END64 + 56 + 8, END64 + 1, NOT_BEFORE},
        {END64 + 56 + 9, 2, NOT_BEFORE},
        {END64 + 56 + 8, END64 - 1, "byte 244: expected the 64-bit end of an archive of one file"},
        {END64 + 56 + 16, 0, NULL},
        {END64 + 56 + 16, 2, "byte 301: expected an archive of one file"},
        {END64 + 76 + 8, 0, "byte 321: expected an archive of one file"},
        {END64 + 76 + 4, 0, "byte 321: expected an archive of one file"},
        {FIELD, 2, "member x.npy: expected 4294967295 bytes from 4294967295 on"},
        {FIELD - 4, 3, "member x.npy: expected 4294967295 bytes from 4294967295 on"},
        {FIELD - 4, 34, "member x.npy: expected 4294967295 bytes from 4294967295 on"},
        {FIELD + 2, 23,
         "member x.npy: expected its numbers of 64 bits, got an extra field without"},
        {FIELD + 2, 15,
         "member x.npy: expected its numbers of 64 bits, got an extra field without"},
        {FIELD + 2, 25, "member x.npy: expected 4294967295 bytes from 4294967295 on"},
        {FIELD + 4, 4,
         "member x.npy: expected as many bytes in the archive as it has, got 3 and 4"},
        {FIELD + 12, 4, "got 4 and 3"},
        {FIELD + 20, 1, "member x.npy: byte 1: expected its header"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];
        struct diag d = DIAG_INIT;
        uint8_t bytes[512];
        size_t len = make64(bytes);

        bytes[rows[i].at] = rows[i].byte;
        assert_int_equal(open_zip(bytes, len, 0, &zip, member, &d), rows[i].want ? -EBADMSG : 0);
        if (rows[i].want) {
            assert_diag_has(&d, rows[i].want);
            continue;
        }
        assert_int_equal(zip.n, 2);
        assert_int_equal(member[0].size, 3);
        assert_int_equal(member[0].packed_size, 3);
        assert_int_equal(member[0].at, 42);
        assert_int_equal(member[1].at, 45 + 42);
    }
}

/* Bytes that look like an end, in the comment of an archive and after it: the end whose comment
 * ends the file counts, otherwise the last. */
UNIT_TEST(test_zip__several_ends__the_right_one)
{
    for (unsigned extra = 0; extra < 3; extra++) {
        AUTO_ZIP struct zip zip = {0};
        struct zip_member member[2];
        uint8_t bytes[512];
        size_t len = make(bytes);

        store_le16(bytes + len - 2, 22 + 5); /* a comment of an end of nothing, and 5 bytes */
        store_le32(bytes + len, UINT32_C(0x06054b50));
        memset(bytes + len + 4, 0, 12);
        store_le32(bytes + len + 16, (uint32_t)len);
        store_le16(bytes + len + 20, extra == 2 ? 5 : 0);
        memset(bytes + len + 22, 0, 6);
        assert_int_equal(open_zip(bytes, len + 27 + (extra == 1), 0, &zip, member, NULL), 0);
        assert_int_equal(zip.n, extra ? 0 : 2);
    }
}

UNIT_TEST(test_zip_first_ends__head)
{
    uint8_t bytes[512];

    make(bytes);
    assert_true(zip_first_ends(bytes, 512, "x.npy"));
    assert_true(zip_first_ends(bytes, 35, ".NPY"));
    assert_false(zip_first_ends(bytes, 34, ".npy"));
    assert_false(zip_first_ends(bytes, 35, "xx.npy"));
    assert_false(zip_first_ends(bytes, 29, ""));
    assert_true(zip_first_ends(bytes, 35, ""));
    store_le16(bytes + 26, 300); /* zeros follow the name */
    assert_false(zip_first_ends(bytes, 512, ".npy"));
    memcpy(bytes + 326, ".npy", 4);
    assert_true(zip_first_ends(bytes, 330, ".npy"));
}

UNIT_TEST(test_zip_content__first_bytes)
{
    uint8_t bytes[512], head[8] = {0};
    size_t len = make(bytes);
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npz", bytes, len, len, NULL);
    AUTO_ZIP struct zip zip = {0};
    struct zip_member member;

    assert_int_equal(zip_read(blob, false, &zip, NULL), 0);
    member = zip_member(&zip, 1);
    assert_int_equal(zip_content(READ_WAITS, blob, &member, head, 4, NULL), 0);
    assert_memory_equal(head, "defg", 4);
    memset(head, 0, sizeof(head));
    assert_int_equal(zip_content(READ_WAITS, blob, &member, head, 2, NULL), 0);
    assert_memory_equal(head, "de\0\0", 4);
}

/* "hello" as deflated data that has many empty blocks before it. */
UNIT_TEST(test_zip_content__deflated__all_or_the_start)
{
    static const uint8_t empty[] = {0, 0, 0, 0xff, 0xff}, last[] = {1, 5, 0, 0xfa, 0xff};
    static const struct {
        unsigned empty;
        uint64_t size;
        size_t len;        /* that is read */
        int more;          /* packed bytes than there are */
        uint32_t crc_less; /* than the right one */
        const char *want;  /* what is wrong; NULL: nothing */
    } rows[] = {
        {0, 5, 5, 0, 0, NULL},
        {0, 5, 3, 0, 0, NULL},
        {0, 5, 3, 0, 1, NULL},
        {900, 5, 5, 0, 0, NULL},
        {800, 6, 5, 0, 0, NULL}, /* the start of a file of 6 */
        {900, 6, 5, 0, 0, "member x: expected 6 bytes with CRC-32 3610a686 in its deflated data"},
        {0, 5, 5, 0, 1, "expected 5 bytes with CRC-32 3610a685"},
        {0, 5, 5, 1, 0, "expected 5 bytes"},
        {0, 5, 5, -1, 0, "expected 5 bytes"},
        {0, 6, 6, 0, 0, "expected 6 bytes"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t bytes[5000] = {0}, got[8] = {0};
        size_t at = 1;
        AUTO_BLOB struct blob *blob = NULL;
        struct zip_member m = {
            .name = "x", .name_len = 1, .method = ZIP_DEFLATED, .size = rows[i].size, .at = 1};
        struct diag d = DIAG_INIT;

        for (unsigned k = 0; k < rows[i].empty; k++, at += sizeof(empty))
            memcpy(bytes + at, empty, sizeof(empty));
        memcpy(bytes + at, last, sizeof(last));
        memcpy(bytes + at + sizeof(last), "hello", 5);
        m.packed_size = at + sizeof(last) + 5 - 1 + (uint64_t)rows[i].more;
        m.crc = 0x3610a686 - rows[i].crc_less;
        blob = memory_blob_new("a.zip", bytes, sizeof(bytes), sizeof(bytes), NULL);
        assert_int_equal(zip_content(READ_WAITS, blob, &m, got, rows[i].len, &d),
                         rows[i].want ? -EBADMSG : 0);
        if (rows[i].want)
            assert_diag_has(&d, rows[i].want);
        else
            assert_memory_equal(got, "hello", rows[i].len);
    }
}
