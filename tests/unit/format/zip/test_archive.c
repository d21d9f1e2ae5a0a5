/* The listing of an archive in memory: names of each kind, folders, and the contents of a view,
 * also where reads fail. */
#include "format/zip/archive.h"
#include "support/absent_blob.h"
#include "support/idx_make.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/memo.h"
#include "base/read_context.h"

#define MOST (1 << 19)
#define MANY 4096 /* files of an archive whose datasets are kept */

extern const struct format format_zip;

struct maker {
    uint8_t bytes[MOST], directory[MOST];
    size_t len, directory_len;
    unsigned n;
};

struct made {
    const char *name, *content;
    unsigned flags, maker, mode;
    const char *unicode; /* in the extra field; NULL: none */
    bool is_deflated;
    unsigned method; /* that it says to have; 0: as it is */
    uint32_t size;   /* that it says to have, with as few packed bytes as may be; 0: of content */
};

static void put(uint8_t *to, size_t *len, const void *bytes, size_t n)
{
    assert_true(*len + n <= MOST);
    memcpy(to + *len, bytes, n);
    *len += n;
}

/* Returns the bytes of packed. */
static size_t deflate_text(const char *text, uint8_t packed[static 64])
{
    z_stream z = {.next_in = (Bytef *)text,
                  .avail_in = (uInt)strlen(text),
                  .next_out = packed,
                  .avail_out = 64};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static void add_member(struct maker *m, const struct made *made)
{
    uint8_t local[30] = "PK\3\4", entry[46] = "PK\1\2", extra[64] = {0}, packed[64];
    size_t name = strlen(made->name), size = strlen(made->content), n_extra = 0;
    const void *bytes = made->is_deflated ? packed : (const void *)made->content;
    size_t n_bytes = made->is_deflated ? deflate_text(made->content, packed) : size;
    static const uint8_t zeros[MOST];

    if (made->size) {
        bytes = zeros;
        size = made->size;
        n_bytes = size / 1032 + 1;
    }

    if (made->unicode) {
        n_extra = 9 + strlen(made->unicode);
        store_le16(extra, 0x7075);
        store_le16(extra + 2, (uint16_t)(n_extra - 4));
        extra[4] = 1;
        store_le32(extra + 5, (uint32_t)crc32(0, (const Bytef *)made->name, (uInt)name));
        memcpy(extra + 9, made->unicode, strlen(made->unicode));
    }
    store_le16(local + 26, (uint16_t)name);
    local[8] = entry[10] = made->is_deflated ? 8 : (uint8_t)made->method;
    store_le32(entry + 16,
               (uint32_t)crc32(0, (const Bytef *)made->content, (uInt)strlen(made->content)));
    entry[5] = (uint8_t)made->maker;
    store_le16(entry + 8, (uint16_t)made->flags);
    store_le32(entry + 20, (uint32_t)n_bytes);
    store_le32(entry + 24, (uint32_t)size);
    store_le16(entry + 28, (uint16_t)name);
    store_le16(entry + 30, (uint16_t)n_extra);
    store_le16(entry + 40, (uint16_t)made->mode);
    store_le32(entry + 42, (uint32_t)m->len);
    put(m->bytes, &m->len, local, sizeof(local));
    put(m->bytes, &m->len, made->name, name);
    put(m->bytes, &m->len, bytes, n_bytes);
    put(m->directory, &m->directory_len, entry, sizeof(entry));
    put(m->directory, &m->directory_len, made->name, name);
    put(m->directory, &m->directory_len, extra, n_extra);
    m->n++;
}

static struct blob *blob_of(const struct made *made, size_t n, struct blob_faults *faults)
{
    static struct maker m;
    uint8_t end[22] = "PK\5\6";

    m.len = m.directory_len = m.n = 0;
    for (size_t i = 0; i < n; i++)
        add_member(&m, &made[i]);
    store_le16(end + 8, (uint16_t)m.n);
    store_le16(end + 10, (uint16_t)m.n);
    store_le32(end + 12, (uint32_t)m.directory_len);
    store_le32(end + 16, (uint32_t)m.len);
    put(m.bytes, &m.len, m.directory, m.directory_len);
    put(m.bytes, &m.len, end, sizeof(end));
    return memory_blob_new("in/x.zip", m.bytes, m.len, m.len, faults);
}

/* Check the listing: paths, a line each. */
static void check_paths(const struct made *made, size_t n, const char *expected, uint64_t aside)
{
    AUTO_BLOB struct blob *blob = blob_of(made, n, NULL);
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;

    if (zip_list(blob, "in/x", "x", &list, &d) < 0)
        fail_msg("%s", d.text);
    for (size_t i = 0; i < list.files.n; i++)
        text_add(&t, "%s/%s\n", members_folder_of(&list.files, i), members_name(&list.files, i));
    assert_string_equal(t.data ? t.data : "", expected);
    assert_int_equal(list.n_aside, aside);
    assert_true(!aside == !list.aside.set);
}

#define CHECK_PATHS(expected, aside, ...)                                                          \
    do {                                                                                           \
        static const struct made made[] = {__VA_ARGS__};                                           \
        check_paths(made, ARRAY_LEN(made), expected, aside);                                       \
    } while (0)

UNIT_TEST(test_zip_listing__names__files_below_the_top)
{
    CHECK_PATHS("in/x/1.jpg\nin/x/a/2.jpg\nin/x/a/b/3.jpg\nin/x/a-b/4.jpg\n", 0,
                {.name = "a-b/4.jpg", .content = ""}, {.name = "a/b/3.jpg", .content = ""},
                {.name = "1.jpg", .content = ""}, {.name = "a//./2.jpg", .content = ""});
    CHECK_PATHS("in/x/a/1\nin/x/a/3\nin/x/a/c/5\nin/x/b/2\nin/x/b/4\n", 0, /* folders come again */
                {.name = "a/1", .content = ""}, {.name = "b/2", .content = ""},
                {.name = "a/3", .content = ""}, {.name = "b/4", .content = ""},
                {.name = "a/c/5", .content = ""});
    CHECK_PATHS("in/x/1.jpg\nin/x/a/2.jpg\n", 0, {.name = "x/1.jpg", .content = ""},
                {.name = "x/a/2.jpg", .content = ""});
    CHECK_PATHS("in/x/1.jpg\nin/x/x/2.jpg\n", 0, {.name = "1.jpg", .content = ""},
                {.name = "x/2.jpg", .content = ""});
    CHECK_PATHS("in/x/x/1\nin/x/y/2\n", 0, {.name = "x/1", .content = ""},
                {.name = "y/2", .content = ""});
    CHECK_PATHS("in/x/xx/1\n", 0, {.name = "xx/1", .content = ""});
    CHECK_PATHS("in/x/1\nin/x/x/2\n", 0, {.name = "x/1", .content = ""},
                {.name = "x/x/2", .content = ""});
    CHECK_PATHS("in/x/a/1\n", 1, {.name = "a/1", .content = ""}, {.name = "a\\6", .content = ""});
    CHECK_PATHS("in/x/ab/12\n", 1, {.name = "ab/12", .content = ""},
                {.name = "abc\\de", .content = ""});
    CHECK_PATHS("in/x/a/1\n", 1, {.name = "a/1", .content = ""},
                {.name = "a\\6", .content = "", .maker = 3});
    CHECK_PATHS("in/x/a\n", 0, {.name = "a", .content = "", .maker = 3, .mode = 0100644});
    CHECK_PATHS("", 0, {.name = "x/", .content = "", .maker = 3, .mode = 0040755});
    CHECK_PATHS("in/x/\xc2\xa0\n", 0, {.name = "\xff", .content = ""});
    CHECK_PATHS("in/x/\xe2\x82\xa7\xc3\x87~\n", 0, {.name = "\x9e\x80~", .content = ""});
    CHECK_PATHS("in/x/\xc3\xbc\n", 0,
                {.name = "\xc3\xbc", .content = "", .unicode = "u", .flags = 0x800});
    CHECK_PATHS("in/x/?\n", 0, {.name = "?", .content = "", .unicode = ""});
    CHECK_PATHS("in/x/\xc3\xb6.jpg\nin/x/\xe2\x94\x80\n", 0, {.name = "\x94.jpg", .content = ""},
                {.name = "\xc4", .content = ""}); /* code page 437 */
    CHECK_PATHS("in/x/\xc3\xb6.jpg\n", 0, {.name = "\xc3\xb6.jpg", .content = ""});
    CHECK_PATHS("in/x/\xc3\xbc\n", 0, {.name = "?", .content = "", .unicode = "\xc3\xbc"});
    CHECK_PATHS("in/x/a/b\n", 0, {.name = "a\\b", .content = ""}); /* of MS-DOS */
}

UNIT_TEST(test_zip_listing__no_files__ignored)
{
    CHECK_PATHS("in/x/a/1\n", 6, {.name = "a/1", .content = ""}, {.name = "../2", .content = ""},
                {.name = "a/../3", .content = ""}, {.name = "/4", .content = ""},
                {.name = "C:/5", .content = ""}, {.name = "a\\6", .content = ""},
                {.name = "7", .content = "a/1", .maker = 3, .mode = 0120777});
    CHECK_PATHS("", 0, {.name = "__MACOSX/a", .content = ""}, {.name = "a/.b", .content = ""},
                {.name = "Thumbs.db", .content = ""}, {.name = "a/", .content = ""});
}

/* Why a member is no file of the listing; "": it is not worth a note; NULL: it is one. */
static void check_aside(const struct made *made, const char *why)
{
    AUTO_BLOB struct blob *blob = blob_of(made, 1, NULL);
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};

    assert_int_equal(zip_list(blob, "in/x", "x", &list, NULL), 0);
    assert_int_equal(list.files.n, !why);
    assert_int_equal(list.n_aside, why && *why);
    if (why && *why)
        assert_diag_has(&list.aside, why);
}

UNIT_TEST(test_zip_listing__one_member__why_it_is_no_file)
{
    static const struct {
        struct made made;
        const char *why;
    } rows[] = {
        {{.name = "", .content = ""}, ": it has no name"},
        {{.name = "./", .content = ""}, ""},
        {{.name = "/a", .content = ""}, "/a: its name is an absolute path"},
        {{.name = "C:/a", .content = ""}, "C:/a: its name is an absolute path"},
        {{.name = "C:\\a", .content = "", .maker = 3}, "C:\\a: its name is an absolute path"},
        {{.name = "..a", .content = ""}, ""},
        {{.name = "Ca/b", .content = ""}, NULL},
        {{.name = "a\\b", .content = "", .maker = 3}, "a\\b: its name has a backslash"},
        {{.name = "a/..", .content = ""}, "a/..: its name leads out of the archive by '..'"},
        {{.name = "..a", .content = ""}, ""},
        {{.name = "a..", .content = ""}, NULL},
        {{.name = "a/.b", .content = ""}, ""},
        {{.name = "a/desktop.ini", .content = ""}, ""},
        {{.name = "a/Thumbs.db", .content = ""}, ""},
        {{.name = "__MACOSX/a", .content = ""}, ""},
        {{.name = "__MACOSX_/a", .content = ""}, NULL},
        {{.name = "a", .content = "", .maker = 3, .mode = 0120777}, "a: it is a link or a device"},
        {{.name = "a", .content = "", .maker = 3, .mode = 0777}, NULL},
        {{.name = "a", .content = "", .mode = 0120777}, NULL},
        {{.name = "a", .content = "", .method = 12}, "a: is packed by bzip2"},
        {{.name = "a", .content = "", .method = 13}, "a: is packed by a rare method"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_aside(&rows[i].made, rows[i].why);
}

UNIT_TEST(test_zip_listing__long_names__limits)
{
    char name[2049] = "";

    memset(name, 'a', 256);
    check_aside(&(struct made){.name = name, .content = ""}, "its name is longer than 255 bytes");
    check_aside(&(struct made){.name = name + 1, .content = ""}, NULL);
    for (size_t i = 0; i < sizeof(name) - 1; i++)
        name[i] = i % 2 ? '/' : 'a';
    name[2047] = 'a';
    check_aside(&(struct made){.name = name, .content = ""}, "its path is too long");
    check_aside(&(struct made){.name = name + 1, .content = ""}, "its name is an absolute path");
    check_aside(&(struct made){.name = name + 2, .content = ""}, NULL);
}

static void check_refused(const struct made *made, size_t n, const char *message)
{
    AUTO_BLOB struct blob *blob = blob_of(made, n, NULL);
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    struct diag d = DIAG_INIT;

    assert_int_equal(zip_list(blob, "in/x", "x", &list, &d), -EBADMSG);
    assert_diag_has(&d, message);
}

UNIT_TEST(test_zip_listing__names_that_meet__ebadmsg)
{
    static const struct made twice[] = {{.name = "a/1", .content = ""},
                                        {.name = "a//1", .content = ""}};
    static const struct made both[] = {{.name = "a/1", .content = ""},
                                       {.name = "a", .content = ""}};
    static const struct made secret[] = {{.name = "a", .content = "", .flags = 1}};

    check_refused(twice, 2, "expected members of different names, got two in/x/a/1");
    check_refused(both, 2, "expected in/x/a as a file or as a folder, got both");
    check_refused(secret, 1, "is encrypted");
}

UNIT_TEST(test_zip_view__each_read_fails__reported_and_the_next_read_is_good)
{
    static const struct made made[] = {{.name = "b", .content = "world"},
                                       {.name = "a", .content = "hello, "}};

    for (uint64_t fail = 1; fail < 6; fail++) {
        AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
        AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
        AUTO_BLOB struct blob *view = NULL;
        const struct format_setup setup = {.options.format = NULL};
        struct blob_faults faults = {.fail_read = 0};
        const struct members *members = NULL;
        AUTO_FREE char *whole = NULL, *identity = NULL;
        struct diag d = DIAG_INIT;
        char text[13] = "";

        assert_int_equal(zip_archive_new(blob_of(made, 2, &faults), &setup, &archive), 0);
        assert_int_equal(zip_list(archive->blob, "in/x", "x", &list, &d), 0);
        assert_int_equal(zip_view_new(archive, &list.files, &view, &members, &d), 0);
        assert_int_equal(view->size, 12);
        faults.fail_read = atomic_load(&faults.reads) + fail;
        assert_int_equal(blob_read(READ_WAITS, view, text, 12, 0, NULL), fail < 5 ? -EIO : 0);
        faults.fail_read = 0;
        assert_int_equal(blob_read(READ_WAITS, view, text, 12, 0, NULL), 0);
        assert_string_equal(text, "hello, world");
        assert_int_equal(blob_read(READ_WAITS, view, text, 4, 5, NULL), 0); /* over two files */
        assert_memory_equal(text, ", wo", 4);
        assert_int_equal(blob_identity(archive->blob, &whole), 0);
        assert_int_equal(blob_identity(view, &identity), 0);
        assert_memory_equal(identity, whole, strlen(whole));
        assert_string_equal(identity + strlen(whole), " zip 2 files e02f22b6dc6c8e77");
        assert_int_equal(blob_check(view), 0);
        faults.stale = true;
        assert_int_equal(blob_check(view), -ESTALE);
    }
}

/* A table that is kept is hostile. */
UNIT_TEST(test_zip_view__versions_differ__no_read_outside)
{
    static const struct made made[] = {{.name = "b", .content = "world"},
                                       {.name = "a", .content = "hello, "}};
    struct format_setup setup = {.options.format = NULL};

    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    for (unsigned i = 0; i < 3 * 64; i++) {
        AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
        AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
        AUTO_BLOB struct blob *view = NULL;
        const struct members *members = NULL;
        struct diag d = DIAG_INIT;
        char text[13] = "";
        uint64_t *number;
        int r;

        assert_int_equal(zip_archive_new(blob_of(made, 2, NULL), &setup, &archive), 0);
        assert_int_equal(zip_list(archive->blob, "in/x", "x", &list, NULL), 0);
        number = i < 128 ? &list.files.member[1].version[i / 64] : &list.files.member[1].more;
        *number ^= UINT64_C(1) << i % 64;
        r = zip_view_new(archive, &list.files, &view, &members, &d);
        if (r == 0)
            r = blob_read(READ_WAITS, view, text, 12, 0, &d);
        assert_true(r == 0 ? !strcmp(text, "hello, world") : d.set);
    }
    memo_free(setup.memo);
}

UNIT_TEST(test_zip_view__two_sizes_of_one_member__no_read_outside)
{
    static const struct made made[] = {{.name = "a", .content = "world", .is_deflated = true},
                                       {.name = "b", .content = "hello", .is_deflated = true}};
    struct format_setup setup = {.options.format = NULL};
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    AUTO_BLOB struct blob *view = NULL;
    const struct members *members = NULL;
    struct member *m;
    uint8_t bytes[4000];

    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    assert_int_equal(zip_archive_new(blob_of(made, 2, NULL), &setup, &archive), 0);
    assert_int_equal(zip_list(archive->blob, "in/x", "x", &list, NULL), 0);
    m = list.files.member;
    m[1] = (struct member){
        m[1].place, {m[0].version[0], m[0].version[1]}, m[0].more, m[1].folder, m[1].name};
    m[2].place = m[1].place + sizeof(bytes);
    assert_int_equal(zip_view_new(archive, &list.files, &view, &members, NULL), 0);
    assert_int_equal(blob_read(READ_WAITS, view, bytes, 5, 0, NULL), 0);
    assert_memory_equal(bytes, "world", 5);
    assert_int_equal(blob_read(READ_WAITS, view, bytes, sizeof(bytes), 5, NULL), -EBADMSG);
    blob_free(TAKE_PTR(view));
    memo_free(setup.memo);
}

/* Unpacks nothing: notes what it is asked for. */
struct unpacker {
    struct opener opener;
    struct packed_part part; /* the last one */
    unsigned calls;
    int result;
};

static int note_unpack(const struct opener *opener, const struct blob *blob,
                       const struct packed_part *part, struct blob **ret, struct diag *d)
{
    struct unpacker *u = (struct unpacker *)(uintptr_t)opener;

    (void)blob;
    u->part = *part;
    u->calls++;
    if (u->result < 0)
        return diag_set(d, u->result, "there is no room");
    *ret = memory_blob_new(part->name, "unpacked", 8, part->size, NULL);
    return *ret ? 0 : -ENOMEM;
}

UNIT_TEST(test_zip_view__large_deflated_file__unpacked_when_it_is_made)
{
    static const struct opener_ops ops = {.unpack = note_unpack};
    static const struct made made[] = {
        {.name = "a", .content = "hello"},
        {.name = "big", .content = "", .is_deflated = true, .size = (64 << 20) + 1}};

    for (int result = -ENOSPC; result <= 0; result += ENOSPC) {
        struct unpacker u = {.opener.ops = &ops, .result = result};
        const struct format_setup setup = {.opener = &u.opener};
        AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
        AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
        AUTO_BLOB struct blob *view = NULL;
        const struct members *members = NULL;
        struct diag d = DIAG_INIT;
        char text[9] = "";

        assert_int_equal(zip_archive_new(blob_of(made, 2, NULL), &setup, &archive), 0);
        assert_int_equal(zip_list(archive->blob, "in/x", "x", &list, &d), 0);
        assert_int_equal(zip_view_new(archive, &list.files, &view, &members, &d), result);
        assert_int_equal(u.calls, 1);
        assert_int_equal(u.part.off, 30 + 1 + 5 + 30 + 3);
        assert_int_equal(u.part.len, made[1].size / 1032 + 1);
        assert_int_equal(u.part.size, made[1].size);
        if (result < 0) {
            assert_diag_has(&d, "there is no room");
            continue;
        }
        assert_int_equal(view->size, 5 + made[1].size);
        assert_int_equal(blob_read(READ_WAITS, view, text, 8, 3, &d), 0);
        assert_string_equal(text, "lounpack");
    }
}

UNIT_TEST(test_zip_view__small_enough__not_unpacked)
{
    static const struct made made[] = {
        {.name = "big", .content = "", .is_deflated = true, .size = 64 << 20}};
    const struct format_setup setup = {.opener = NULL};
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    AUTO_BLOB struct blob *view = NULL;
    const struct members *members = NULL;

    assert_int_equal(zip_archive_new(blob_of(made, 1, NULL), &setup, &archive), 0);
    assert_int_equal(zip_list(archive->blob, "in/x", "x", &list, NULL), 0);
    assert_int_equal(zip_view_new(archive, &list.files, &view, &members, NULL), 0);
}

/* What is found in the archive: names, samples, notes. faults: NULL: none. */
static void find_sets(const struct made *made, size_t n, const struct index_store *keep,
                      struct blob_faults *faults, struct text *ret)
{
    static const struct opener_ops ops = {.unpack = note_unpack};
    struct unpacker unpacker = {.opener.ops = &ops, .result = -ENOSPC};
    struct format_setup setup = {.keep = keep, .opener = &unpacker.opener};
    struct blob *blob = blob_of(made, n, faults);
    AUTO(found_release) struct found found;
    uint8_t byte;

    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    assert_int_equal(format_open(&format_zip, &blob, 1, &setup, &found), 0);
    for (size_t i = 0; i < found.n; i++) {
        struct dataset *ds = found.item[i].ds;

        text_add(ret, "%s: %s\n", found.item[i].name, ds ? "found" : found.item[i].reason);
        if (!ds)
            continue;
        while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
            ;
        text_add(ret, "%llu samples, %u fields\n", (unsigned long long)ds->samples, ds->n_fields);
        notes_show(&ds->notes, ret);
        for (unsigned k = 0; k < ds->n_blobs; k++)
            for (uint64_t at = 0; at < ds->blob[k]->size; at += 1000) {
                int r = blob_read(READ_WAITS, ds->blob[k], &byte, 1, at, NULL);

                text_add(ret, " %d", r < 0 ? r : byte);
            }
    }
    memo_free(setup.memo);
}

/* Datasets of a large archive are kept: the next mount does not read the directory. */
UNIT_TEST(test_zip_kept__datasets__the_same)
{
    static struct made made[MANY + 2];
    static char name[MANY + 2][24];
    AUTO_TEXT struct text first = {0}, second = {0};
    struct blob_faults faults = {.fail_read = 0};
    uint64_t reads;

    for (unsigned i = 0; i < MANY + 2; i++) {
        snprintf(name[i], sizeof(name[i]), i < MANY ? "%s/%04u.png" : "%sother%u.xyz",
                 i % 2 ? "cat" : "dog", i);
        made[i] = (struct made){.name = name[i], .content = i % 2 ? "c" : "d"};
    }
    find_sets(made, ARRAY_LEN(made), &one_store, &faults, &first);
    reads = faults.reads;
    find_sets(made, ARRAY_LEN(made), &one_store, &faults, &second);
    assert_string_equal(first.data, second.data);
    assert_true(faults.reads - reads < reads);
    if (!strstr(first.data, "4096 samples"))
        fail_msg("%.2000s", first.data);
    assert_non_null(strstr(first.data, "xyz"));
    for (uint64_t i = 1; i < 40; i++) {
        AUTO_TEXT struct text other = {0};

        one_store_change(i * UINT64_C(0x9e3779b97f4a7c15));
        find_sets(made, ARRAY_LEN(made), &one_store, NULL, &other);
        assert_true(other.len > 0);
    }
    one_store_drop();
    made[0].name = name[MANY]; /* one less than is kept, */
    faults.reads = 0;
    find_sets(made, MANY, &one_store, &faults, &second);
    reads = faults.reads;
    find_sets(made, MANY, &one_store, &faults, &second);
    assert_int_equal(faults.reads, 2 * reads); /* so it is read again */
    one_store_drop();
}

#define FIND(expected, ...)                                                                        \
    do {                                                                                           \
        static const struct made made[] = {__VA_ARGS__};                                           \
        AUTO_TEXT struct text t = {0};                                                             \
                                                                                                   \
        find_sets(made, ARRAY_LEN(made), &no_store, NULL, &t);                                     \
        if (!t.data || !strstr(t.data, expected))                                                  \
            fail_msg("expected \"%s\", got \"%s\"", expected, t.data ? t.data : "");               \
    } while (0)

UNIT_TEST(test_zip_sets__nothing_or_not_all__said)
{
    FIND("expected files that are samples, as in a folder, got an archive without files: ../a: its "
         "name leads out of the archive by '..'\n",
         {.name = "../a", .content = ""});
    FIND("as in a folder, got an archive without files\n", {.name = "a/", .content = ""});
    FIND("got 2 files of which none is: other formats are not read inside of an archive; unpack "
         "it: 2 .xyz\n",
         {.name = "a.xyz", .content = "1"}, {.name = "b.xyz", .content = "1"});
    FIND("got 2 files of which none is: ../c: its name leads out of the archive by '..'. And other "
         "formats are not read inside of an archive; unpack it: 2 .xyz\n",
         {.name = "a.xyz", .content = "1"}, {.name = "b.xyz", .content = "1"},
         {.name = "../c", .content = "1"});
    FIND("unpack it: 2 .xyz, 1 .png. only 1 of the 3 files are pictures or belong to them\n",
         {.name = "a.png", .content = "1"}, {.name = "b.xyz", .content = "1"},
         {.name = "c.xyz", .content = "1"});
    FIND("/in/x: found\n2 samples", {.name = "cat/1.png", .content = "1"},
         {.name = "dog/2.png", .content = "1"});
    FIND("/in/x: there is no room\n", {.name = "cat/1.png", .content = ""},
         {.name = "dog/2.png", .content = "", .is_deflated = true, .size = (64 << 20) + 1});
}

static void count_done(struct waiter *waiter)
{
    assert_int_equal(waiter->error, 0);
}

/* Two files of 600 bytes and a deflated one, in an archive whose bytes are absent. */
struct absent_view {
    struct absent absent;
    struct blob_faults faults;
    struct format_setup setup;
    struct zip_archive *archive;
    struct blob *view;
    const struct members *members;
    uint64_t random;
};

static void absent_view_open(struct absent_view *a)
{
    static char content[601];
    const struct made made[] = {{.name = "b", .content = content},
                                {.name = "c", .content = "hello", .is_deflated = true},
                                {.name = "a", .content = content}};
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};

    memset(content, 'x', sizeof(content) - 1);
    a->faults.absent = &a->absent;
    assert_int_equal(memo_new(1 << 20, &a->setup.memo), 0);
    assert_int_equal(zip_archive_new(blob_of(made, 3, &a->faults), &a->setup, &a->archive), 0);
    assert_int_equal(zip_list(a->archive->blob, "in/x", "x", &list, NULL), 0);
    assert_int_equal(zip_view_new(a->archive, &list.files, &a->view, &a->members, NULL), 0);
    absent_drop(&a->absent, 256, &a->random);
}

static void absent_view_release(struct absent_view *a)
{
    blob_free(a->view);
    zip_archive_drop(a->archive);
    memo_free(a->setup.memo);
}

/* Read without waiting. */
static int peek(struct absent_view *a, uint64_t off, size_t len, struct waiter *waiter)
{
    uint8_t bytes[2000];
    struct read_context rc;
    int r;

    read_context_init(&rc, true);
    r = blob_read(&rc, a->view, bytes, len, off, NULL);
    if (waiter)
        missing_fetch(&rc, waiter);
    read_context_release(&rc);
    return r;
}

UNIT_TEST(test_zip_view__absent_bytes__all_noted_at_once)
{
    AUTO(absent_view_release) struct absent_view a = {.random = 1};
    struct waiter waiter = {.done = count_done};

    absent_view_open(&a);
    assert_int_equal(peek(&a, 0, 1205, &waiter), -EAGAIN);
    assert_int_equal(peek(&a, 0, 1205, NULL), 0);
}

UNIT_TEST(test_zip_view__fetch__files_that_it_touches)
{
    for (unsigned waits = 0; waits < 2; waits++) {
        AUTO(absent_view_release) struct absent_view a = {.random = 1};
        struct waiter waiter = {.done = count_done};

        absent_view_open(&a);
        blob_fetch(a.view, 599, 1, waits ? &waiter : NULL); /* of a */
        assert_int_equal(a.absent.fetches, 1);
        assert_int_equal(peek(&a, 0, 600, NULL), 0);
        assert_int_equal(peek(&a, 600, 400, NULL), -EAGAIN);
        absent_drop(&a.absent, 256, &a.random);
        blob_fetch(a.view, 1199, 2, waits ? &waiter : NULL); /* of b and c */
        assert_int_equal(a.absent.fetches, waits ? 2 : 3);
        assert_int_equal(peek(&a, 600, 605, NULL), 0);
        assert_int_equal(peek(&a, 300, 300, NULL), -EAGAIN);
    }
}
