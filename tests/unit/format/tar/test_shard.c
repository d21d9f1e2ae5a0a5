/* Samples of a shard: which members they have, what cannot be read, and what is kept of them. */
#include <errno.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "format/tar/shard.h"
#include "support/absent_blob.h"
#include "support/libsvm_make.h"
#include "support/memory_blob.h"
#include "support/tar_make.h"
#include "support/unit.h"

#define AUTO_TAR   AUTO_TEXT struct text
#define AUTO_SHARD AUTO(shard_end) struct tar_shard *

static struct memory_keep keep;

int unit_setup(void **state)
{
    (void)state;
    memory_keep_init(&keep, true);
    return 0;
}

int unit_teardown(void **state)
{
    (void)state;
    memory_keep_release(&keep);
    return 0;
}

static void shard_end(struct tar_shard **shard)
{
    record_file_drop(*shard ? &(*shard)->base : NULL);
}

/* Open and prepare it; absent: NULL, or reads of it may fail. 0 or -errno. */
static int open_shard(const struct text *tar, struct absent *absent, struct tar_shard **ret,
                      struct diag *d)
{
    const struct format_setup format_setup = {.keep = &keep.keep};
    struct source_file source = {.name = "x.tar", .file_name = "x.tar", .folder = ""};
    int r;

    *ret = NULL;
    source.blob = memory_blob_new("x.tar", tar->data, tar->len, tar->len, NULL);
    if (absent)
        source.blob = absent_blob_new(source.blob, absent);
    r = record_file_open(&tar_shard_ops, &(struct record_source){&source, 1, 0, &format_setup}, ret,
                         d);
    while (r == 0 || (r == -EREMOTEIO && *ret))
        r = prepared_step(&(*ret)->base.prepared, d);
    return r < 0 ? r : 0;
}

static void describe_content(const struct tar_shard *shard, uint64_t row, unsigned i,
                             struct text *t)
{
    const struct record_column *column = &shard->column[i];
    uint64_t dim[RECORD_AXES] = {0},
             bytes = column->shown == RECORD_NUMBERS ? dtype_info(column->dtype)->bytes : 1;
    unsigned ndim = column->shown == RECORD_NUMBERS ? column->ndim : 1;
    AUTO_FREE uint8_t *content = NULL;

    memcpy(dim, column->dim, sizeof(dim));
    if (format_tar.records->dims(shard, row, i, dim, NULL) < 0) {
        text_add(t, " %s:?", column->name);
        return;
    }
    for (unsigned k = 0; k < ndim; k++)
        bytes *= dim[k];
    content = malloc(bytes + 1);
    if (bytes)
        assert_int_equal(format_tar.records->read(NULL, shard, row, i, 0, bytes, content, NULL), 0);
    text_add(t, " %s:", column->name);
    if (shard->shows[i].shown == MEMBER_AS_INTEGER)
        text_add(t, "%lld", (long long)*(int64_t *)(void *)content);
    else if (column->shown == RECORD_NUMBERS)
        text_add(t, "<%llu>", (unsigned long long)bytes);
    else
        text_add_bytes(t, (const char *)content, bytes);
}

/* Each sample: its key and the contents of its columns; of two that show one field, one. */
static void describe(const struct tar_shard *shard, struct text *t)
{
    const struct index *index = &shard->base.prepared.index;
    uint8_t key[KEY_MAX];

    for (uint64_t row = 0; row < index->rows; row++) {
        text_add_bytes(t, (const char *)key, index_key(index, row, key));
        for (unsigned i = 0; i < shard->base.n_columns; i++)
            if (format_tar.records->has(shard, row, i) &&
                !(shard->column[i].without & RECORD_NOT_ARRAYS))
                describe_content(shard, row, i, t);
        text_add(t, "\n");
    }
    text_add(t, "%s%s", shard->damage, shard->note);
}

static void assert_shard(const struct text *tar, const char *want)
{
    AUTO_SHARD shard = NULL;
    AUTO_TEXT struct text found = {0};
    struct diag d = DIAG_INIT;

    if (open_shard(tar, NULL, &shard, &d) < 0)
        fail_msg("%s", d.text);
    describe(shard, &found);
    assert_string_equal(found.data, want);
}

static void assert_refused(const struct text *tar, const char *want)
{
    AUTO_SHARD shard = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(open_shard(tar, NULL, &shard, &d), -EBADMSG);
    assert_diag_has(&d, want);
}

/* ---- which members a sample has ---- */

UNIT_TEST(test_samples)
{
    AUTO_TAR tar = {0};

    tar_put(&tar, "d/", NULL, 0, '5');
    tar_put_file(&tar, "d/a.jpg", "A");
    tar_put(&tar, "e/", NULL, 0, '5'); /* ends no sample, nor do: */
    tar_put_file(&tar, "README", "r");
    tar_put_file(&tar, "__meta__/x.txt", "m");
    tar_put(&tar, "link.txt", NULL, 0, '2');
    tar_put_file(&tar, "d/a.CLS", " -7\n");
    tar_put_file(&tar, "d/b.jpg", "");
    tar_put_file(&tar, "./c.seg.png", "S");
    tar_put_end(&tar);
    assert_shard(&tar, "d/a jpg:A cls:-7\nd/b jpg:\nc seg.png:S\n"
                       "x.tar: 1 files without an extension ignored, 'README' first\n"
                       "x.tar: 1 links and devices ignored, 'link.txt' first\n");
}

UNIT_TEST(test_keys__repeat__numbered)
{
    AUTO_TAR tar = {0};

    for (unsigned i = 0; i < 4; i++)
        tar_put_file(&tar, i % 2 ? "b.txt" : "a.txt", "x");
    tar_put_file(&tar, "./a.txt", "y"); /* another sample of the same name */
    tar_put_end(&tar);
    assert_shard(&tar, "a txt:x\nb txt:x\na~2 txt:x\nb~2 txt:x\na~3 txt:y\n"
                       "x.tar: 3 samples repeat the key of another: they are called <key>~2 and so "
                       "on\n");
}

UNIT_TEST(test_key__above_1024_bytes__number)
{
    AUTO_TAR tar = {0};
    char name[KEY_MAX + 8];

    tar_put_file(&tar, "a.txt", "x");
    for (size_t len = KEY_MAX; len <= KEY_MAX + 1; len++) {
        memset(name, 'k', len);
        snprintf(name + len, sizeof(name) - len, ".txt");
        tar_put_pax(&tar, 'x', "path", name);
        tar_put_file(&tar, "short", "y");
    }
    name[KEY_MAX] = '\0';
    tar_put_end(&tar);
    {
        AUTO_TEXT struct text want = {0};

        text_add(&want, "a txt:x\n%s txt:y\n2 txt:y\n", name);
        assert_shard(&tar, want.data);
    }
}

UNIT_TEST(test_fields__above_300__left_out)
{
    AUTO_TAR tar = {0};
    AUTO_SHARD shard = NULL;
    char name[32];

    for (unsigned i = 0; i < 100000 / 100; i++) {
        tar_put_file(&tar, "a.jpg", "x");
        snprintf(name, sizeof(name), "a%u.jpg", i);
        tar_put_file(&tar, name, "x");
        snprintf(name, sizeof(name), "a%u.x%u.npy", i, i);
        tar_put_file(&tar, name, "x");
    }
    assert_int_equal(open_shard(&tar, NULL, &shard, NULL), 0);
    assert_int_equal(shard->table.n, TAR_FIELDS_MAX);
    assert_int_equal(shard->base.prepared.index.rows, 2000);
    assert_non_null(strstr(shard->note, "x.tar: 701 members ignored, whose extensions are beyond "
                                        "the first 300, '.x299.npy' first\n"));
}

/* ---- samples that cannot be read ---- */

UNIT_TEST(test_extension_twice__sample_refused)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.txt", "1");
    tar_put_file(&tar, "a.jpg", "1");
    tar_put_file(&tar, "a.TXT", "2");
    tar_put_file(&tar, "b.txt", "3");
    tar_put_end(&tar);
    assert_shard(&tar, "a txt:? jpg:?\nb txt:3\n"
                       "x.tar: 1 samples cannot be read: they have two members of one extension\n");
}

UNIT_TEST(test_sparse__sample_refused)
{
    AUTO_TAR tar = {0};

    tar_put(&tar, "a.db", "stored", 6, 'S');
    tar_put_pax(&tar, 'x', "GNU.sparse.realsize", "12626929280");
    tar_put_file(&tar, "b.db", "stored");
    tar_put_file(&tar, "c.db", "3");
    tar_put_end(&tar);
    assert_shard(&tar, "a db:?\nb db:?\nc db:3\n"
                       "x.tar: 2 samples cannot be read: they have a sparse member, which is never "
                       "expanded\n");
}

static void put_three(struct text *tar)
{
    tar_put_file(tar, "a.jpg", "1");
    tar_put_file(tar, "b.jpg", "2");
    tar_put_file(tar, "b.cls", "22");
}

UNIT_TEST(test_cut_in_content__sample_refused)
{
    AUTO_TAR tar = {0};

    put_three(&tar);
    tar.len = 2561; /* one of two bytes */
    assert_shard(&tar,
                 "a jpg:1\nb jpg:?\n"
                 "x.tar: byte 2560: expected 2 bytes of 'b.cls', got 1: the file is cut short; "
                 "the samples before it can be read\n"
                 "x.tar: 1 samples cannot be read: they are cut short\n");
}

UNIT_TEST(test_cut_in_header__whole_members_stay)
{
    AUTO_TAR tar = {0};

    put_three(&tar);
    tar.len = 2048 + 511;
    assert_shard(&tar,
                 "a jpg:1\nb jpg:2\n"
                 "x.tar: byte 2048: expected a tar header of 512 bytes, got the end of the file; "
                 "the samples before it can be read\n");
}

UNIT_TEST(test_bad_header__samples_before_stay)
{
    AUTO_TAR tar = {0};

    put_three(&tar);
    tar.data[1024] ^= 1;
    assert_shard(&tar,
                 "a jpg:1\n"
                 "x.tar: byte 1024: expected a tar header, got a checksum that does not fit it; "
                 "the samples before it can be read\n");
}

UNIT_TEST(test_data_after_the_end__reported)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.jpg", "1");
    tar_put_end(&tar);
    put_three(&tar);
    assert_shard(&tar, "a jpg:1\nx.tar: byte 2048: the 3072 bytes after the end of the archive are "
                       "not read: expected one archive in a file. Join archives with tar "
                       "--concatenate, not with cat\n");
}

UNIT_TEST(test_no_end__reported)
{
    static const char *const found[] = {"none", "one"};

    for (unsigned blocks = 0; blocks < 2; blocks++) {
        AUTO_TAR tar = {0};
        char want[256];

        tar_put_file(&tar, "a.jpg", "1");
        tar_put_end(&tar);
        tar.len = 1024 + (size_t)512 * blocks;
        snprintf(want, sizeof(want),
                 "a jpg:1\nx.tar: byte 1024: the archive may be cut short: expected two blocks of "
                 "zeros at its end, got %s. Compare its size with that of the original\n",
                 found[blocks]);
        assert_shard(&tar, want);
    }
}

/* ---- archives that are no shards ---- */

UNIT_TEST(test_no_shard__refused)
{
    char name[32];

    for (unsigned way = 0; way < 5; way++) {
        AUTO_TAR tar = {0};
        static const char *const want[] = {"got none", "got none", "checksum", "'p/setup.py'",
                                           "got files of 7 kinds"};

        if (way == 0)
            tar_put_file(&tar, "README", "x");
        else if (way == 1)
            tar_put(&tar, "d/", NULL, 0, '5');
        else
            tar_put_file(&tar, "a.c", "x");
        if (way == 2)
            tar.data[0] ^= 1;
        if (way == 3)
            tar_put_file(&tar, "p/setup.py", "x");
        for (unsigned i = 0; i < 100 && way == 4; i++) {
            snprintf(name, sizeof(name), "%u.%u", i, i % 6);
            tar_put_file(&tar, name, "x");
        }
        assert_refused(&tar, want[way]);
    }
}

/* Samples have a field that half of them have. */
UNIT_TEST(test_fields_in_common__of_half__a_shard)
{
    for (unsigned common = 31; common <= 32; common++) {
        AUTO_TAR tar = {0};
        AUTO_SHARD shard = NULL;
        char name[32];

        for (unsigned i = 0; i < 64; i++) {
            snprintf(name, sizeof(name), "%u.%s%u", i, i < common ? "jpg" : "x",
                     i < common ? 0 : i);
            tar_put_file(&tar, name, "x");
        }
        assert_int_equal(open_shard(&tar, NULL, &shard, NULL), common == 32 ? 0 : -EBADMSG);
    }
}

/* Behind the bytes that are judged when it is opened. */
UNIT_TEST(test_project_found_late__refused)
{
    static const char zeros[20000];
    AUTO_TAR tar = {0};

    tar_put(&tar, "a.bin", zeros, sizeof(zeros), '0');
    tar_put_file(&tar, "Makefile", "x");
    assert_refused(&tar, "'Makefile': the files of a project");
    tar.len = 0;
    tar_put(&tar, "README", zeros, sizeof(zeros), '0');
    tar_put_end(&tar);
    assert_refused(&tar, "expected samples, files <key>.<extension>, got none");
}

UNIT_TEST(test_project_file_below_folders__no_sign)
{
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "repo/p/setup.py", "x");
    tar_put_end(&tar);
    assert_shard(&tar, "repo/p/setup py:x\n");
}

/* ---- arrays ---- */

static void put_array(struct text *tar, const char *name, const char *head, size_t bytes)
{
    uint8_t npy[512] = "\x93NUMPY\1";

    npy[8] = (uint8_t)strlen(head);
    memcpy(npy + 10, head, strlen(head));
    for (size_t i = 0; i < bytes; i++)
        npy[10 + strlen(head) + i] = (uint8_t)i;
    tar_put(tar, name, npy, 10 + strlen(head) + bytes, '0');
}

UNIT_TEST(test_arrays__one_type__shown)
{
    AUTO_TAR tar = {0};
    AUTO_SHARD shard = NULL;
    uint8_t bytes[12];
    static const uint8_t swapped[] = {1, 0, 3, 2, 5, 4},
                         fortran[] = {0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11};

    put_array(&tar, "a.npy", "{'descr': '>i2', 'fortran_order': False, 'shape': (1, 3)}", 6);
    put_array(&tar, "b.npy", "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
    assert_int_equal(open_shard(&tar, NULL, &shard, NULL), 0);
    assert_int_equal(shard->base.n_columns, 2);
    assert_int_equal(shard->column[1].dim[0], DIM_VARIES);
    assert_int_equal(shard->column[1].dim[1], 3);
    assert_int_equal(format_tar.records->read(NULL, shard, 0, 1, 0, 6, bytes, NULL), 0);
    assert_memory_equal(bytes, swapped, 6);
    for (size_t off = 0; off < 12; off++)
        for (size_t len = 1; off + len <= 12; len++) {
            assert_int_equal(format_tar.records->read(NULL, shard, 1, 1, off, len, bytes, NULL), 0);
            assert_memory_equal(bytes, fortran + off, len);
        }
    for (size_t off = 0; off < 6; off++) {
        assert_int_equal(format_tar.records->read(NULL, shard, 0, 1, off, 1, bytes, NULL), 0);
        assert_int_equal(bytes[0], swapped[off]);
    }
}

UNIT_TEST(test_arrays__differ__bytes_only)
{
    static const struct {
        const char *head, *note;
    } rows[] = {
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}",
         "others before it have, got another type"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3)}", "got another number"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "numbers or bool"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (7,)}", "got fewer bytes"},
        {"x", "a dict of three members"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TAR tar = {0};
        AUTO_SHARD shard = NULL;

        put_array(&tar, "a.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
        put_array(&tar, "b.npy", rows[i].head, 12);
        put_array(&tar, "c.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
        assert_int_equal(open_shard(&tar, NULL, &shard, NULL), 0);
        assert_int_equal(shard->base.n_columns, 1);
        assert_non_null(strstr(shard->note, rows[i].note));
        assert_non_null(strstr(shard->note, "files .npy are shown as they are only"));
    }
}

/* A sparse member comes first, so the field is known before its first array. */
UNIT_TEST(test_arrays__first_one_unread__shown)
{
    AUTO_TAR tar = {0};

    tar_put(&tar, "a.npy", "stored", 6, 'S');
    tar_put_file(&tar, "b.txt", "x");
    put_array(&tar, "b.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
    {
        AUTO_SHARD shard = NULL;
        AUTO_TEXT struct text found = {0};

        assert_int_equal(open_shard(&tar, NULL, &shard, NULL), 0);
        describe(shard, &found);
        assert_non_null(strstr(found.data, "npy:<6>"));
    }
}

/* ---- errors that say nothing of the file; what is kept ---- */

static void put_all(struct text *tar)
{
    char name[32];

    for (unsigned i = 0; i < 20; i++) {
        char content[9000];

        memset(content, 'c', sizeof(content));
        snprintf(name, sizeof(name), "%u.jpg", i);
        tar_put(tar, name, content, sizeof(content), '0');
        snprintf(name, sizeof(name), "%u.cls", i);
        tar_put_file(tar, name, "77");
        snprintf(name, sizeof(name), "%u.e",
                 i); /* puts an array behind what was read with its header */
        tar_put_file(tar, name, "");
        snprintf(name, sizeof(name), "%u.npy", i);
        put_array(tar, name, "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
    }
    tar_put_file(tar, "b.jpg", "x");
    tar_put_file(tar, "b.jpg", "x");
    tar_put_end(tar);
}

UNIT_TEST(test_failed_reads__go_on)
{
    AUTO_TAR tar = {0};
    AUTO_TEXT struct text want = {0};
    bool failed = true;

    put_all(&tar);
    for (unsigned n = 0; failed; n++) {
        struct absent absent = {.fail_read = n, .fail_times = 1};
        AUTO_SHARD shard = NULL;
        AUTO_TEXT struct text found = {0};
        struct diag d = DIAG_INIT;
        int r = open_shard(&tar, &absent, &shard, &d);

        failed = !n || absent.reads >= n;
        if (!shard) { /* opening it needs its first bytes */
            assert_int_equal(r, -EREMOTEIO);
            continue;
        }
        assert_int_equal(r, 0);
        absent.fail_read = 0;
        describe(shard, n ? &found : &want);
        if (n)
            assert_string_equal(found.data, want.data);
    }
}

UNIT_TEST(test_kept__taken_again)
{
    AUTO_TAR tar = {0};
    AUTO_TEXT struct text want = {0}, found = {0};

    put_all(&tar);
    keep.refuse = false;
    for (unsigned i = 0; i < 2; i++) {
        AUTO_SHARD shard = NULL;

        assert_int_equal(open_shard(&tar, NULL, &shard, NULL), 0);
        describe(shard, i ? &found : &want);
    }
    assert_int_equal(keep.saves, 1);
    assert_int_equal(keep.loads, 1);
    assert_string_equal(found.data, want.data);
    keep.refuse = true;
}

/* Save an index of two rows with those numbers, and one field with those, as an earlier mount would
 * have. */
static void forge(const char *identity, const uint64_t (*row)[8], const uint64_t *number)
{
    const struct index_shape shape = {
        .columns = TAR_FIXED, .rising = 1, .has_keys = true, .learns = true};
    struct column_table table = {0};
    AUTO_INDEX_BUILDER struct index_builder *b = NULL;
    AUTO_TEXT struct text about = {0};
    struct kept k = {.out = &about};
    char *damage = "forged\n", *note = "";
    uint64_t faults = 0;
    struct iovec pieces[INDEX_PIECES];
    AUTO(kept_index_release) struct kept_index kept = {0};
    struct index index;
    unsigned field;

    assert_int_equal(index_builder_new(&shape, &b), 0);
    assert_int_equal(index_builder_columns(b, 8), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(index_add(b, i ? "b" : "a", 1, row[i]), 0);
    assert_int_equal(index_finish(b, (uint64_t[]){1u << 20, 0}, NULL, NULL, &index), 0);
    assert_int_equal(column_table_add(&table, "npy", 3, &field), 0);
    memcpy(table.column[0].number, number, 10 * sizeof(*number));
    kept_number(&k, &faults, 0);
    column_table_keep(&k, &table);
    kept_text(&k, &damage);
    kept_text(&k, &note);
    column_table_release(&table);
    assert_int_equal(index_bytes(b, about.data, about.len, &index, pieces), 0);
    assert_int_equal(
        index_store_save(&keep.keep, "rows", identity, "x", pieces, INDEX_PIECES, &kept, NULL), 0);
}

#define GOOD_FIELD                                                                                 \
    {                                                                                              \
        2, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3                                                   \
    }
#define GOOD_ROW                                                                                   \
    {                                                                                              \
        0, 0, 1, 71, 65 << 2, 3                                                                    \
    }

UNIT_TEST(test_kept__forged__made_anew)
{
    static const struct {
        bool taken;
        uint64_t row[8], number[10];
    } forged[] = {
        {true, GOOD_ROW, GOOD_FIELD},
        {false, {1 << 19, 0, 1, 71, 65 << 2, 3}, GOOD_FIELD},    /* begins after the file */
        {false, {0, 0, UINT64_MAX, 71, 65 << 2, 3}, GOOD_FIELD}, /* overflows */
        {false, {0, 0, 1, UINT64_MAX, 65 << 2, 3}, GOOD_FIELD},  /* ends after the file */
        {false, {0, 0, 1, 71, 66 << 2, 3}, GOOD_FIELD},          /* an array after its member */
        {false, {0, 0, 1, 71, 65 << 2, UINT64_MAX}, GOOD_FIELD}, /* not as long as all are */
        {false, {0, 0, 1, 71, UINT64_MAX, 3}, GOOD_FIELD},
        {false,
         {0, 0, 1, 71, 65 << 2, UINT64_MAX / 2 + 4},
         {2, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, DIM_VARIES}},
        {false, GOOD_ROW, {1, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}}, /* columns of others */
        {false, GOOD_ROW, {7, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}}, /* that do not exist */
        {false, GOOD_ROW, {UINT64_MAX, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}},
        {false, GOOD_ROW, {2, 7, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}},
        {false, GOOD_ROW, {2, UINT64_MAX, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}},
        {false, GOOD_ROW, {2, 0, MEMBER_AS_ARRAY, 2, DTYPE_I2, 1, 3}},
        {false, GOOD_ROW, {2, 4, N_MEMBER_SHOWN, 2, DTYPE_I2, 1, 3}},
        {false, GOOD_ROW, {2, 4, MEMBER_AS_ARRAY, 2, N_DTYPES, 1, 3}},
        {false, GOOD_ROW, {2, 4, MEMBER_AS_ARRAY, 2, DTYPE_TEXT, 1, 3}},
        {false, GOOD_ROW, {2, 4, MEMBER_AS_ARRAY, 2, DTYPE_I2, RECORD_AXES + 1, 3}},
        {false, GOOD_ROW, {2, UINT64_MAX, MEMBER_AS_INTEGER, 2}},
    };
    AUTO_TAR tar = {0};

    put_array(&tar, "a.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
    put_array(&tar, "b.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 6);
    keep.refuse = false;
    for (size_t i = 0; i < ARRAY_LEN(forged); i++) {
        AUTO_SHARD first = NULL;
        AUTO_SHARD second = NULL;
        uint64_t rows[2][8] = {GOOD_ROW};

        assert_int_equal(open_shard(&tar, NULL, &first, NULL), 0);
        memcpy(rows[1], forged[i].row, sizeof(rows[1]));
        forge(first->base.prepared.identity, (const uint64_t(*)[8])rows, forged[i].number);
        assert_int_equal(open_shard(&tar, NULL, &second, NULL), 0);
        if (!strcmp(second->damage, "forged\n") != forged[i].taken)
            fail_msg("%zu: damage \"%s\"", i, second->damage);
    }
    keep.refuse = true;
}

/* ---- an index by content ---- */

/* Members "name=content", up to NULL: of a name with "!" sparse, with "@" a link; that of an array
 * has the header as content. */
#define MEMBERS 6

static void put_members(struct text *tar, const char *const member[MEMBERS])
{
    for (unsigned i = 0; i < MEMBERS && member[i]; i++) {
        const char *name = member[i] + (*member[i] == '!' || *member[i] == '@');
        const char *equals = strrchr(member[i], '=');
        char path[KEY_MAX + 32];

        snprintf(path, sizeof(path), "%.*s", (int)(equals - name), name);
        if (strstr(path, ".npy"))
            put_array(tar, path, equals + 1, 12);
        else
            tar_put(tar, path, equals + 1, strlen(equals + 1),
                    *member[i] == '!'   ? 'S'
                    : *member[i] == '@' ? '2'
                                        : '0');
    }
    tar_put_end(tar);
}

#define ARRAY_OF(descr, order, shape)                                                              \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape "}"

UNIT_TEST(test_verify__of_another_archive__says_what_differs)
{
    static const struct {
        const char *was[MEMBERS], *is[MEMBERS];
        uint64_t row;
        const char *says; /* NULL: nothing differs */
    } rows[] = {
        {{"a.txt=1", "a.cls=5", "b.txt=2"}, {"a.txt=9", "a.cls=5", "b.txt=2"}, 0, NULL},
        {{"a.txt=1", "a.cls=5", "b.txt=2"}, {"a.txt=1", "a.cls=5", "c.txt=2"}, 0, NULL},
        {{"a.txt=1", "a.cls=5"}, {"a.txt=1", "a.cls=6"}, 0, "byte 0: expected the values of the"},
        {{"a.txt=1", "a.cls=5"}, {"a.txt=1", "a.cls=x"}, 0, "expected the values of the sample"},
        {{"a.txt=1", "b.txt=2"}, {"a.txt=1", "c.txt=2"}, 1, "byte 1024: expected the key"},
        {{"a.txt=1", "b.txt=2"}, {"a.txt=1", "bb.txt=2"}, 1, "expected the key of the sample"},
        {{"a.txt=1", "bb.txt=2"}, {"a.txt=1", "b.txt=2"}, 1, "expected the key of the sample"},
        {{"a.txt=1", "b~.txt=2"}, {"a.txt=1", "b.txt=2"}, 1, "expected the key of the sample"},
        {{"a.txt=1", "b.txt=2", "a.txt=3"}, {"a.txt=1", "b.txt=2", "a.txt=4"}, 2, NULL}, /* a~2 */
        {{"a.txt=1", "b.txt=2", "a.txt=3"}, {"a.txt=1", "b.txt=2", "b.txt=3"}, 2, "the key"},
        {{"././a.txt=1"}, {"././a.txt=2"}, 0, NULL},
        {{"./a.txt=1"}, {"a.txt=1"}, 0, NULL},
        {{"a.txt=1"}, {"a.jpg=1"}, 0, "expected the fields of the sample"},
        {{"a.txt=1"}, {"a.txt=12"}, 0, "expected the places of files of the sample"},
        {{"a.txt=1", "a.cls=5"}, {"a.cls=5", "a.txt=1"}, 0, "expected the places of files"},
        {{"a.txt=1"}, {"!a.txt=1"}, 0, "expected the places of files"},
        {{"a.txt=1", "a.cls=5", "b.txt=1"},
         {"@a.txt=", "x=1", "a.txt=1"},
         0,
         "the places of files"},
        {{"README=1", "a.txt=1"},
         {"@READ=", "README=1"},
         0,
         "expected a tar header, got a checksum"},
        {{"a.txt=1", "a.cls=5"}, {"a.txt=1"}, 0, "expected all fields of the sample"},
        {{"a.txt=1", "README=1", "a.cls=5"}, {"a.txt=1", "__x__=1", "a.cls=5"}, 0, NULL},
        {{"a.txt=1", "!a.cls=5"}, {"b.txt=1"}, 0, NULL}, /* one that cannot be read anyway */
        {{"a.npy=" ARRAY_OF("<i2", "False", "(1, 3)")},
         {"a.npy=" ARRAY_OF("<i2", "False", "(1, 3)")},
         0,
         NULL},
        {{"a.npy=" ARRAY_OF("<i2", "False", "(1, 3)")},
         {"a.npy=" ARRAY_OF("<i2", "False", "(3, 1)")},
         0,
         "expected the order of bytes and axes of an array of the sample"},
        {{"a.npy=" ARRAY_OF("<i2", "False", "(1, 3)")},
         {"a.npy=" ARRAY_OF(">i2", "False", "(1, 3)")},
         0,
         "expected the order of bytes and axes"},
        {{"a.npy=" ARRAY_OF("<i2", "False", "(1, 3)")},
         {"a.npy=" ARRAY_OF("<i4", "False", "(1, 3)")},
         0,
         "expected the order of bytes and axes"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TAR was = {0}, is = {0};
        AUTO_BLOB struct blob *other = NULL;
        AUTO_SHARD shard = NULL;
        struct blob *own;
        struct diag d = DIAG_INIT;
        int r;

        put_members(&was, rows[i].was);
        put_members(&is, rows[i].is);
        other = memory_blob_new("x.tar", is.data, is.len, max_u64(is.len, was.len), NULL);
        assert_int_equal(open_shard(&was, NULL, &shard, NULL), 0);
        own = shard->base.blob;
        shard->base.blob = other;
        r = format_tar.records->verify(READ_WAITS, shard, rows[i].row, &d);
        shard->base.blob = own;
        if (r != (rows[i].says ? -EBADMSG : 0) || (r && !strstr(d.text, rows[i].says)))
            fail_msg("rows[%zu]: %d, '%s'", i, r, d.text);
    }
}

/* All headers of a sample are asked for at once. */
UNIT_TEST(test_verify__absent__all_headers_missing)
{
    static const char zeros[100000];
    struct absent absent = {0};
    AUTO(read_context_release) struct read_context rc;
    AUTO_TAR tar = {0};
    AUTO_SHARD shard = NULL;
    uint64_t random = 1;

    tar_put(&tar, "a.bin", zeros, sizeof(zeros), '0');
    tar_put(&tar, "a.raw", zeros, sizeof(zeros), '0');
    tar_put_file(&tar, "a.txt", "x");
    tar_put_end(&tar);
    assert_int_equal(open_shard(&tar, &absent, &shard, NULL), 0);
    absent_drop(&absent, 256, &random);
    read_context_init(&rc, true);
    assert_int_equal(format_tar.records->verify(&rc, shard, 0, NULL), -EAGAIN);
    assert_int_equal(rc.n, 3);
}

/* Which of the files of a folder is DALI's index of x.tar. */
UNIT_TEST(test_hints__of_a_remote_shard__taken)
{
    static const struct {
        const char *name[4];
        const char *want;
    } rows[] = {
        {{"x.idx", "x.tar"}, "x.idx"},
        {{"x.tar", "x.tar.idx"}, "x.tar.idx"},
        {{"x.idx", "x.tar", "x.tar.idx"}, "x.idx"},
        {{"w.idx", "x.tar", "xy.idx"}, NULL},
        {{"x.id", "x.tar", "y.idx"}, NULL},
        {{"x.0.idx", "x.idx", "x.json", "x.tar"}, "x.idx"},
    };
    AUTO_TAR tar = {0};

    tar_put_file(&tar, "a.txt", "x");
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        const bool is_remote = i % 2;
        const struct format_setup format_setup = {.keep = &keep.keep};
        struct source_file source[4];
        struct absent absent = {0};
        struct record_source from = {.file = source, .setup = &format_setup};
        AUTO_SHARD shard = NULL;

        for (; from.n < 4 && rows[i / 2].name[from.n]; from.n++) {
            const char *name = rows[i / 2].name[from.n];
            bool is_shard = !strcmp(name, "x.tar");
            struct blob *blob =
                memory_blob_new(name, is_shard ? tar.data : "512 3", is_shard ? tar.len : 5,
                                is_shard ? tar.len : 5, NULL);

            if (is_shard && is_remote)
                blob = absent_blob_new(blob, &absent);
            from.i = is_shard ? from.n : from.i;
            source[from.n] =
                (struct source_file){.name = name, .file_name = name, .folder = "", .blob = blob};
        }
        assert_int_equal(record_file_open(&tar_shard_ops, &from, &shard, NULL), 0);
        assert_string_equal(shard->hints ? blob_name(shard->hints) : "",
                            is_remote && rows[i / 2].want ? rows[i / 2].want : "");
        for (size_t k = 0; k < from.n; k++)
            blob_free(source[k].blob);
    }
}
