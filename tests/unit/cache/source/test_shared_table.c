/* The table of contents of `.epochfs/`: what is read, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/source/shared_table.h"
#include "support/unit.h"

#define SUM_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SUM_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int read_table(const char *text, size_t len, struct shared_table *ret, struct diag *d)
{
    char *copy = malloc(len + 1);

    assert_non_null(copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return shared_table_read(copy, len, ret, d);
}

UNIT_TEST(test_shared_table__lines__found_by_name)
{
    static const char text[] = SHARED_INDEX_HEAD "file 7 " SUM_A " etag:%22x%22 a b.tar\n"
                                                 "index 9 " SUM_B " " SUM_A "\n"
                                                 "file 18446744073709551615 " SUM_B " - sub/c.tar\n"
                                                 "listing 5 " SUM_A " " SUM_A "\n"
                                                 "index 1073741824 " SUM_A " " SUM_B "\n";
    struct diag d = DIAG_INIT;
    struct shared_table t = {0};
    const struct shared_line *line;

    assert_int_equal(read_table(text, strlen(text), &t, &d), 0);
    assert_int_equal(t.n_files, 2);
    assert_int_equal(t.n_indexes, 2);
    line = shared_line_find(t.file, t.n_files, "sub/c.tar");
    assert_non_null(line);
    assert_true(line->size == UINT64_MAX);
    assert_string_equal(line->sum, SUM_B);
    assert_string_equal(line->version, "");
    line = shared_line_find(t.file, t.n_files, "a b.tar");
    assert_non_null(line);
    assert_int_equal(line->size, 7);
    assert_string_equal(line->version, "etag:%22x%22");
    assert_non_null(shared_line_find(t.index, t.n_indexes, SUM_A));
    assert_null(shared_line_find(t.index, t.n_indexes, "a b.tar"));
    assert_null(shared_line_find(t.file, t.n_files, "sub"));
    assert_string_equal(t.listing.name, SUM_A);
    assert_int_equal(t.listing.size, 5);
    shared_table_release(&t);
}

/* Indexes that are one file lie there in the order of their lines. */
UNIT_TEST(test_shared_table__joined__places)
{
    static const char text[] = SHARED_INDEX_HEAD "index 9 " SUM_B " " SUM_A "\n"
                                                 "index 5 " SUM_A " " SUM_B "\n"
                                                 "joined 14 " SUM_A " " SUM_A "\n";
    struct diag d = DIAG_INIT;
    struct shared_table t = {0};

    (void)state;
    assert_int_equal(read_table(text, strlen(text), &t, &d), 0);
    assert_string_equal(t.joined.name, SUM_A);
    assert_int_equal(shared_line_find(t.index, t.n_indexes, SUM_A)->at, 0);
    assert_int_equal(shared_line_find(t.index, t.n_indexes, SUM_B)->at, 9);
    shared_table_release(&t);
}

UNIT_TEST(test_shared_table__of_version_2__read)
{
    static const char text[] = SHARED_INDEX_HEAD_2 "file 7 " SUM_A " - b.tar\n";
    struct shared_table t = {0};

    (void)state;
    assert_int_equal(read_table(text, strlen(text), &t, NULL), 0);
    assert_string_equal(t.file[0].name, "b.tar");
    assert_null(t.joined.name);
    shared_table_release(&t);
}

/* Files of the first version of the table have no versions. */
UNIT_TEST(test_shared_table__of_version_1__no_versions)
{
    static const char text[] = SHARED_INDEX_HEAD_1 "file 7 " SUM_A " - b.tar\n";
    struct diag d = DIAG_INIT;
    struct shared_table t = {0};

    assert_int_equal(read_table(text, strlen(text), &t, &d), 0);
    assert_int_equal(t.n_files, 1);
    assert_string_equal(t.file[0].name, "- b.tar");
    assert_string_equal(t.file[0].version, "");
    assert_null(t.listing.name);
    shared_table_release(&t);
}

UNIT_TEST(test_shared_table__hostile__ebadmsg)
{
    static const char *const bad[] = {
        "",
        "\n",
        "epochfs-index 4\n",
        "epochfs-index 3",
        SHARED_INDEX_HEAD "\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " - a",
        SHARED_INDEX_HEAD "file 7 " SUM_A " - \n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " -\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A "  a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " et\tag a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " et\xc3\xa4g a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A "\n",
        SHARED_INDEX_HEAD "file -7 " SUM_A " - a\n",
        SHARED_INDEX_HEAD "file 7x " SUM_A " - a\n",
        SHARED_INDEX_HEAD "file 18446744073709551616 " SUM_A " - a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A "a - a\n",
        SHARED_INDEX_HEAD "file 7 aaaa - a\n",
        SHARED_INDEX_HEAD "fils 7 " SUM_A " - a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " - b\nfile 7 " SUM_A " - a\n",
        SHARED_INDEX_HEAD "file 7 " SUM_A " - a\nfile 7 " SUM_A " x a\n",
        SHARED_INDEX_HEAD "index 1 " SUM_A " ../" SUM_B "\n",
        SHARED_INDEX_HEAD "index 1 " SUM_A " " SUM_B "/x\n",
        SHARED_INDEX_HEAD "index 1073741825 " SUM_A " " SUM_B "\n",
        SHARED_INDEX_HEAD "listing 1 " SUM_A " ../../etc/passwd\n",
        SHARED_INDEX_HEAD "listing 0 " SUM_A " " SUM_B "\n",
        SHARED_INDEX_HEAD "listing 1 " SUM_A " " SUM_B "\nlisting 1 " SUM_B " " SUM_A "\n",
        SHARED_INDEX_HEAD "index 9 " SUM_A " " SUM_B "\njoined 8 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD "index 9 " SUM_A " " SUM_B "\njoined 10 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD "joined 0 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD "index 8388609 " SUM_A " " SUM_B "\njoined 8388609 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD "index 9 " SUM_A " " SUM_B "\njoined 9 " SUM_A " ../x\n",
        SHARED_INDEX_HEAD "index 9 " SUM_A " " SUM_B "\njoined 9 " SUM_A " " SUM_A
                          "\njoined 9 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD_1 "file 7 " SUM_A " b\nfile 7 " SUM_A " a\n",
        SHARED_INDEX_HEAD_1 "file 7 " SUM_A "\n",
    };
    static const char nul[] = SHARED_INDEX_HEAD "file 7 " SUM_A " - a\0b\n";

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct diag d = DIAG_INIT;
        struct shared_table t = {0};

        assert_int_equal(read_table(bad[i], strlen(bad[i]), &t, &d), -EBADMSG);
        assert_true(d.set);
        assert_null(t.text);
    }
    assert_int_equal(read_table(nul, sizeof(nul) - 1, &(struct shared_table){0}, NULL), -EBADMSG);
}

UNIT_TEST(test_shared_table__joined_before_version_3__says_so)
{
    static const char *const bad[] = {
        SHARED_INDEX_HEAD_2 "index 9 " SUM_A " " SUM_B "\njoined 9 " SUM_A " " SUM_A "\n",
        SHARED_INDEX_HEAD_1 "index 9 " SUM_A " " SUM_B "\njoined 9 " SUM_A " " SUM_A "\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct diag d = DIAG_INIT;

        assert_int_equal(read_table(bad[i], strlen(bad[i]), &(struct shared_table){0}, &d),
                         -EBADMSG);
        assert_diag_has(&d, "line 3: expected no joined file before epochfs-index 3, got one");
    }
}
