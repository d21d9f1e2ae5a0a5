/* From header to header, with all that can stand between them. */
#include <errno.h>

#include "base/scope.h"
#include "format/tar/archive/walk.h"
#include "support/absent_blob.h"
#include "support/memory_blob.h"
#include "support/tar_make.h"
#include "support/unit.h"

/* Walk to the end and describe each member as "<kind> name size@place", a line each; then how it
 * ended: the end's byte, or the message. */
static int walk(const struct text *tar, uint64_t size, struct blob_faults *faults, struct text *ret)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("x.tar", tar->data, tar->len, size, faults);
    AUTO(tar_walk_release) struct tar_walk w = {0};
    struct tar_member m;
    struct diag d = DIAG_INIT;
    uint64_t at;
    int r;

    assert_int_equal(tar_walk_init(&w, blob), 0);
    while ((r = tar_walk_next(&w, &m, &d)) == 1) {
        assert_true(m.size <= blob->size && m.at <= blob->size - m.size);
        if (m.type < TAR_PAX)
            text_add(ret, "%c %.*s %llu@%llu\n", "fdos"[m.type], (int)m.name_len,
                     (const char *)m.name, (unsigned long long)m.size, (unsigned long long)m.at);
    }
    if (r < 0) {
        text_add(ret, "%s\n", d.text);
        return r;
    }
    text_add(ret, "end %llu\n", (unsigned long long)w.end);
    if (tar_walk_rest(&w, &at, &d) == 1)
        text_add(ret, "rest %llu\n", (unsigned long long)at);
    return 0;
}

static void assert_walk(const struct text *tar, int error, const char *want)
{
    AUTO_TEXT struct text found = {0};
    int r = walk(tar, tar->len, NULL, &found);

    assert_string_equal(found.data, want);
    assert_int_equal(r, error);
}

#define AUTO_TAR AUTO_TEXT struct text

UNIT_TEST(test_plain)
{
    AUTO_TAR tar = {0};

    tar_put(&tar, "d/", NULL, 0, '5');
    tar_put_file(&tar, "d/a.txt", "hello");
    tar_put_file(&tar, "d/empty.txt", "");
    tar_put(&tar, "link.txt", NULL, 0, '2');
    tar_put_file(&tar, "old/", "");
    tar_put_file(&tar, "b.txt", "x");
    tar_put_end(&tar);
    assert_walk(&tar, 0,
                "d d/ 0@512\nf d/a.txt 5@1024\nf d/empty.txt 0@2048\no link.txt 0@2560\n"
                "d old/ 0@3072\nf b.txt 1@3584\nend 4096\n");
}

UNIT_TEST(test_types_without_data__size_ignored)
{
    AUTO_TAR tar = {0};
    uint8_t link[TAR_BLOCK];

    tar_make_header(link, "hard.txt", 5000, '1');
    text_add_bytes(&tar, (const char *)link, sizeof(link));
    tar_put_file(&tar, "a.txt", "x");
    assert_walk(&tar, 0, "o hard.txt 0@512\nf a.txt 1@1024\nend 1536\n");
}

UNIT_TEST(test_end__one_block_or_none__accepted)
{
    AUTO_TAR tar = {0};

    assert_walk(&tar, 0, "end 0\n");
    tar_put_file(&tar, "a.txt", "x");
    assert_walk(&tar, 0, "f a.txt 1@512\nend 1024\n");
    tar_put_end(&tar);
    tar.len -= TAR_BLOCK;
    assert_walk(&tar, 0, "f a.txt 1@512\nend 1024\n");
    tar.len -= TAR_BLOCK + 500; /* the last member without what fills its block */
    assert_walk(&tar, 0, "f a.txt 1@512\nend 524\n");
}

UNIT_TEST(test_end__more_after_it__reported)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.txt", "x");
    tar_put_end(&tar);
    tar_put_file(&tar, "b.txt", "y");
    tar_put_end(&tar);
    assert_walk(&tar, 0, "f a.txt 1@512\nend 1024\nrest 2048\n");
}

/* Only 1 MiB is looked at. */
UNIT_TEST(test_end__zeros_after_it__reported_beyond_1_mib)
{
    for (unsigned more = 0; more < 2; more++) {
        AUTO_TAR tar = {0};
        AUTO_TEXT struct text found = {0};

        tar_put_file(&tar, "a.txt", "x");
        tar_put_end(&tar);
        assert_int_equal(walk(&tar, 1024 + (1 << 20) + more, NULL, &found), 0);
        assert_string_equal(found.data, more ? "f a.txt 1@512\nend 1024\nrest 1049600\n"
                                             : "f a.txt 1@512\nend 1024\n");
    }
}

UNIT_TEST(test_cut)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.txt", "x");
    tar_put_file(&tar, "b.txt", "hello");
    for (tar.len = 1025; tar.len < 1536; tar.len++)
        assert_walk(
            &tar, -EBADMSG,
            "f a.txt 1@512\n"
            "x.tar: byte 1024: expected a tar header of 512 bytes, got the end of the file\n");
    tar.len = 1540;
    assert_walk(
        &tar, -EBADMSG,
        "f a.txt 1@512\nx.tar: byte 1536: expected 5 bytes of 'b.txt', got 4: the file is cut "
        "short\n");
}

UNIT_TEST(test_bad_header)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.txt", "x");
    tar_put_file(&tar, "b.txt", "y");
    tar.data[1024 + 3] ^= 1;
    assert_walk(
        &tar, -EBADMSG,
        "f a.txt 1@512\nx.tar: byte 1024: expected a tar header, got a checksum that does not "
        "fit it\n");
}

UNIT_TEST(test_size__overflows__refused)
{
    static const char *const sizes[] = {"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
                                        "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
                                        "777777777777"};
    uint8_t block[TAR_BLOCK];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (unsigned kind = 0; kind < 3; kind++) {
            AUTO_TAR tar = {0};
            AUTO_TEXT struct text found = {0};

            tar_make_header(block, "a.txt", 0, "0xS"[kind]);
            memcpy(block + 124, sizes[i], 12);
            tar_make_sum(block);
            text_add_bytes(&tar, (const char *)block, sizeof(block));
            assert_int_equal(walk(&tar, tar.len, NULL, &found), -EBADMSG);
        }
    }
}

UNIT_TEST(test_big_member__not_read)
{
    AUTO_TAR tar = {0};
    AUTO_TEXT struct text found = {0};
    struct blob_faults faults = {0};
    uint8_t block[TAR_BLOCK];

    tar_make_header(block, "big.bin", 0, '0');
    memcpy(block + 124, "\x80\0\0\0\0\0\2\0\0\0\0\0", 12);
    tar_make_sum(block);
    text_add_bytes(&tar, (const char *)block, sizeof(block));
    assert_int_equal(walk(&tar, (UINT64_C(2) << 40) + 1024, &faults, &found), 0);
    assert_string_equal(found.data, "f big.bin 2199023255552@512\nend 2199023256064\n");
    assert_true(faults.reads <= 3);
}

UNIT_TEST(test_small_members__few_reads)
{
    AUTO_TAR tar = {0};
    AUTO_TEXT struct text found = {0};
    struct blob_faults faults = {0};

    for (unsigned i = 0; i < 10000; i++)
        tar_put_file(&tar, "a.txt", "x");
    assert_int_equal(walk(&tar, tar.len, &faults, &found), 0);
    assert_true(faults.reads < 60); /* 10 MB in pieces of 256 KiB, after smaller ones */
}

/* Walk through n members of each bytes, of a remote. Returns how often bytes were asked for. */
static uint64_t walk_remote(unsigned n, size_t each, struct absent *absent)
{
    AUTO_FREE char *content = calloc(1, each);
    AUTO_TAR tar = {0};
    struct tar_member m;
    struct tar_walk w;

    for (unsigned i = 0; i < n; i++)
        tar_put(&tar, "a.txt", content, each, '0');
    {
        AUTO_BLOB struct blob *blob =
            absent_blob_new(memory_blob_new("x.tar", tar.data, tar.len, tar.len, NULL), absent);

        assert_int_equal(tar_walk_init(&w, blob), 0);
        while (tar_walk_next(&w, &m, NULL) == 1)
            ;
        assert_int_equal(w.at, tar.len);
        tar_walk_release(&w);
    }
    return absent->fetches;
}

UNIT_TEST(test_remote__small_members__fetched_ahead)
{
    struct absent small = {0}, large = {0};

    assert_in_range(walk_remote(400, 50000, &small), 18, 22); /* 20 MB, 1 MiB each time */
    assert_in_range(small.reads, 400, 420);                   /* of headers */
    assert_int_equal(walk_remote(10, 2 << 20, &large), 0);
}

/* ---- names ---- */

UNIT_TEST(test_long_names)
{
    AUTO_TAR tar = {0};

    tar_put(&tar, "././@LongLink", "long/name.txt\0\0\0", 16, 'L');
    tar_put(&tar, "././@LongLink", "target", 6, 'K');
    tar_put_file(&tar, "short.txt", "x");
    tar_put_file(&tar, "next.txt", "y");
    tar_put_pax(&tar, 'x', "path", "pax/name.txt");
    tar_put(&tar, "././@LongLink", "long/name.txt", 13, 'L');
    tar_put_file(&tar, "short.txt", "x");
    tar_put_file(&tar, "last.txt", "y");
    assert_walk(&tar, 0,
                "f long/name.txt 1@2560\nf next.txt 1@3584\nf pax/name.txt 1@6656\n"
                "f last.txt 1@7680\nend 8192\n");
}

UNIT_TEST(test_global_names)
{
    AUTO_TAR tar = {0};

    tar_put_pax(&tar, 'g', "path", "all.txt");
    tar_put_file(&tar, "a.txt", "");
    tar_put_pax(&tar, 'x', "path", "own.txt");
    tar_put_file(&tar, "b.txt", "");
    tar_put_pax(&tar, 'x', "path", ""); /* deletes that of all */
    tar_put_file(&tar, "c.txt", "");
    tar_put_pax(&tar, 'x', "comment", "nothing");
    tar_put_file(&tar, "d.txt", "");
    tar_put_pax(&tar, 'g', "path", "");
    tar_put_file(&tar, "e.txt", "");
    assert_walk(&tar, 0,
                "f all.txt 0@1536\nf own.txt 0@3072\nf c.txt 0@4608\nf all.txt 0@6144\n"
                "f e.txt 0@7680\nend 7680\n");
}

UNIT_TEST(test_pax_size__wins)
{
    AUTO_TAR tar = {0};

    tar_put_pax(&tar, 'x', "size", "3");
    tar_put_file(&tar, "a.txt", "");
    text_add(&tar, "abc");
    tar.len += 509;
    tar.data = realloc(tar.data, tar.len + 1); /* what follows is written below */
    memset(tar.data + tar.len - 509, 0, 510);
    tar.capacity = tar.len + 1;
    tar_put_file(&tar, "b.txt", "x");
    assert_walk(&tar, 0, "f a.txt 3@1536\nf b.txt 1@2560\nend 3072\n");
}

UNIT_TEST(test_sparse)
{
    AUTO_TAR tar = {0};

    tar_put_pax(&tar, 'x', "GNU.sparse.major", "1");
    tar_put_file(&tar, "a.db", "stored");
    tar_put(&tar, "b.db", "stored", 6, 'S');
    tar_put_file(&tar, "c.db", "x");
    assert_walk(&tar, 0, "s a.db 6@1536\ns b.db 6@2560\nf c.db 1@3584\nend 4096\n");
}

/* Writers make up a path for such a file, and give its name next to it. */
UNIT_TEST(test_sparse_name__is_the_name)
{
    AUTO_TAR tar = {0};

    tar_put_pax(&tar, 'x', "GNU.sparse.name", "d/a.db");
    tar_put_file(&tar, "GNUSparseFile.17/a.db", "stored");
    tar_put_file(&tar, "b.db", "x");
    tar_put_pax(&tar, 'g', "GNU.sparse.name", "all.db");
    tar_put_file(&tar, "c.db", "x");
    assert_walk(&tar, 0, "s d/a.db 6@1536\nf b.db 1@2560\nf c.db 1@4608\nend 5120\n");
}

/* A sparse file whose header says that blocks with more of its map follow, and those: n of them,
 * the last of which says that it is. */
static void put_sparse(struct text *tar, const char *name, unsigned says, unsigned n, bool ends)
{
    uint8_t header[TAR_BLOCK], map[TAR_BLOCK] = {0};

    tar_make_header(header, name, 6, 'S');
    header[says] = 1;
    if (says == 355) /* star's */
        memcpy(header + 508, "tar", 4);
    tar_make_sum(header);
    text_add_bytes(tar, (const char *)header, sizeof(header));
    for (unsigned i = 0; i < n; i++) {
        map[504] = !ends || i + 1 < n;
        text_add_bytes(tar, (const char *)map, sizeof(map));
    }
}

static void put_block(struct text *tar, const char *content)
{
    char block[TAR_BLOCK] = {0};

    memcpy(block, content, strlen(content));
    text_add_bytes(tar, block, sizeof(block));
}

UNIT_TEST(test_sparse_map__before_the_content)
{
    AUTO_TAR tar = {0};

    put_sparse(&tar, "a.db", 482, 2, true);
    put_block(&tar, "stored");
    tar_put_file(&tar, "b.db", "x");
    put_sparse(&tar, "c.db", 355, 1, true);
    put_block(&tar, "stored");
    tar_put_file(&tar, "d.db", "x");
    assert_walk(&tar, 0, "s a.db 6@1536\nf b.db 1@2560\ns c.db 6@4096\nf d.db 1@5120\nend 5632\n");
}

UNIT_TEST(test_sparse_map__without_end__refused)
{
    AUTO_TAR tar = {0}, large = {0};

    put_sparse(&tar, "a.db", 482, 3, false);
    assert_walk(&tar, -EBADMSG,
                "x.tar: byte 2048: expected the map of a sparse member, got the end of the file\n");
    put_sparse(&large, "a.db", 482, 5000, false);
    assert_walk(&large, -EBADMSG,
                "x.tar: byte 0: expected a sparse member of fewer pieces, got a larger map\n");
}

/* ---- headers that describe the next member ---- */

UNIT_TEST(test_twice__refused)
{
    static const char types[] = "xLK";

    for (unsigned i = 0; i < 3; i++) {
        AUTO_TAR tar = {0};

        for (unsigned k = 0; k < 2; k++) {
            if (types[i] == 'x')
                tar_put_pax(&tar, 'x', "comment", "c");
            else
                tar_put(&tar, "l", "name", 4, types[i]);
        }
        tar_put_file(&tar, "a.txt", "x");
        assert_walk(
            &tar, -EBADMSG,
            "x.tar: byte 1024: expected a member after its headers, got one of them again\n");
    }
}

UNIT_TEST(test_cut_in_its_data__refused)
{
    AUTO_TAR tar = {0};
    char name[600];

    tar_put_file(&tar, "a.txt", "x");
    memset(name, 'n', sizeof(name));
    tar_put(&tar, "l", name, sizeof(name), 'L');
    tar.len -= TAR_BLOCK;
    assert_walk(&tar, -EBADMSG,
                "f a.txt 1@512\nx.tar: byte 1024: expected a header with its data, got the end of "
                "the file\n");
}

UNIT_TEST(test_no_member_after_it__refused)
{
    AUTO_TAR tar = {0};

    tar_put_pax(&tar, 'x', "path", "a.txt");
    assert_walk(&tar, -EBADMSG,
                "x.tar: byte 1024: expected a tar header of 512 bytes, got the end of the file\n");
    tar_put_end(&tar);
    assert_walk(
        &tar, -EBADMSG,
        "x.tar: byte 1024: expected a member after its headers, got the end of the archive\n");
}

UNIT_TEST(test_large_pax__refused)
{
    AUTO_FREE char *value = calloc(1, (1 << 20) + 1);

    memset(value, 'v', 1 << 20);
    for (unsigned i = 0; i < 2; i++) {
        AUTO_TAR tar = {0};

        value[(1 << 20) - (i ? 0 : 17)] = '\0'; /* the record is "1048576 comment=<value>\n" */
        tar_put_pax(&tar, 'x', "comment", value);
        value[(1 << 20) - 17] = 'v';
        tar_put_file(&tar, "a.txt", "x");
        assert_walk(&tar, i ? -EBADMSG : 0,
                    i ? "x.tar: byte 0: expected a header of at most 1 MiB, got a larger one\n"
                      : "f a.txt 1@1049600\nend 1050112\n");
    }
}

UNIT_TEST(test_long_name__above_4096__refused)
{
    AUTO_FREE char *name = malloc(TAR_NAME_MAX + 1);

    memset(name, 'n', TAR_NAME_MAX + 1);
    for (size_t len = TAR_NAME_MAX; len <= TAR_NAME_MAX + 1; len++) {
        AUTO_TAR tar = {0};
        AUTO_TEXT struct text found = {0};

        tar_put(&tar, "l", name, len, 'L');
        tar_put_file(&tar, "a.txt", "x");
        assert_int_equal(walk(&tar, tar.len, NULL, &found), len > TAR_NAME_MAX ? -EBADMSG : 0);
    }
}

/* ---- errors that say nothing of the file ---- */

UNIT_TEST(test_failed_read__goes_on)
{
    AUTO_TAR tar = {0};
    AUTO_TEXT struct text want = {0};
    bool failed = true;

    tar_put_pax(&tar, 'g', "path", "all.txt");
    tar_put_file(&tar, "a.txt", "x");
    for (unsigned i = 0; i < 4; i++) {
        static const char zeros[100000];

        tar_put_pax(&tar, 'x', "path", "own.txt");
        tar_put(&tar, "b.txt", zeros, sizeof(zeros), '0');
    }
    assert_int_equal(walk(&tar, tar.len, NULL, &want), 0);
    for (unsigned n = 1; failed; n++) {
        struct blob_faults faults = {.fail_read = n};
        AUTO_BLOB struct blob *blob = memory_blob_new("x.tar", tar.data, tar.len, tar.len, &faults);
        AUTO(tar_walk_release) struct tar_walk w = {0};
        AUTO_TEXT struct text found = {0};
        struct tar_member m;
        int r;

        failed = false;
        assert_int_equal(tar_walk_init(&w, blob), 0);
        do {
            struct diag d = DIAG_INIT;

            r = tar_walk_next(&w, &m, &d);
            if (r == -EIO)
                failed = true;
            if (r == 1 && m.type < TAR_PAX)
                text_add(&found, "f %.*s %llu@%llu\n", (int)m.name_len, (const char *)m.name,
                         (unsigned long long)m.size, (unsigned long long)m.at);
        } while (r == 1 || r == -EIO);
        assert_int_equal(r, 0);
        text_add(&found, "end %llu\n", (unsigned long long)w.end);
        assert_string_equal(found.data, want.data);
    }
}
