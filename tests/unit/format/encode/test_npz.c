/* The ZIP structure of npz files, parsed by APPNOTE 6.3.9: small files and one that needs ZIP64. */
#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "support/idx_make.h"
#include "support/render.h"
#include "support/unit.h"

static uint64_t le16(const uint8_t *p)
{
    return p[0] | (uint64_t)p[1] << 8;
}

static uint64_t le32(const uint8_t *p)
{
    return le16(p) | le16(p + 2) << 16;
}

/* A file that is read range by range. */
struct zip {
    struct layout layout;
    unsigned members;
    uint64_t directory, directory_bytes;
    bool zip64;
};

struct member {
    char name[64];
    uint64_t header, content, bytes;
    uint32_t crc;
};

static void zip_read(struct zip *z, uint64_t off, size_t len, uint8_t *ret)
{
    assert_true(off <= z->layout.size && len <= z->layout.size - off);
    assert_int_equal(layout_read(READ_WAITS, &z->layout, off, len, ret, NULL), 0);
}

/* Start from the end record, which has no comment. */
static void zip_open(struct zip *z)
{
    uint64_t end = z->layout.size - 22;
    uint8_t e[56];

    zip_read(z, end, 22, e);
    assert_int_equal(le32(e), 0x06054b50);
    assert_int_equal(le16(e + 20), 0);
    assert_int_equal(le16(e + 8), le16(e + 10));
    z->members = (unsigned)le16(e + 10);
    z->directory_bytes = le32(e + 12);
    z->directory = le32(e + 16);
    z->zip64 = z->directory == 0xffffffff;
    if (z->zip64) {
        uint64_t at;

        zip_read(z, end - 20, 20, e);
        assert_int_equal(le32(e), 0x07064b50);
        assert_int_equal(le32(e + 4), 0);
        assert_int_equal(le32(e + 16), 1);
        at = load_le64(e + 8);
        assert_int_equal(at, end - 20 - 56);
        zip_read(z, at, 56, e);
        assert_int_equal(le32(e), 0x06064b50);
        assert_int_equal(load_le64(e + 4), 44);
        assert_int_equal(load_le64(e + 24), z->members);
        assert_int_equal(load_le64(e + 32), z->members);
        z->directory_bytes = load_le64(e + 40);
        z->directory = load_le64(e + 48);
        end = at;
    }
    assert_int_equal(z->directory + z->directory_bytes, end);
}

/* Check the fields that both headers of a member share, from the version on. Returns the length of
 * the extra field. */
static uint64_t check_common(const uint8_t *h, bool zip64, uint32_t crc, uint64_t bytes,
                             const char *name)
{
    assert_int_equal(le16(h), zip64 ? 45 : 20);
    assert_int_equal(le16(h + 2), 0); /* flags */
    assert_int_equal(le16(h + 4), 0); /* stored */
    assert_int_equal(le16(h + 6), 0);
    assert_int_equal(le16(h + 8), 0x21);
    assert_int_equal(le32(h + 10), crc);
    assert_int_equal(le32(h + 14), min_u64(bytes, 0xffffffff));
    assert_int_equal(le32(h + 18), min_u64(bytes, 0xffffffff));
    assert_int_equal(le16(h + 22), strlen(name));
    return le16(h + 24);
}

/* The 64-bit values of a ZIP64 extra field, which must be n and nothing else. */
static void check_extra(const uint8_t *extra, uint64_t len, size_t n, const uint64_t *want)
{
    assert_int_equal(len, n ? 4 + 8 * n : 0);
    if (!n)
        return;
    assert_int_equal(le16(extra), 1);
    assert_int_equal(le16(extra + 2), 8 * n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(load_le64(extra + 4 + 8 * i), want[i]);
}

/* Read the directory entry at *at and the local header that it names; move on to the next. */
static void next_member(struct zip *z, uint64_t *at, struct member *ret)
{
    uint8_t h[46 + 64 + 64], local[30 + 64 + 64];
    uint64_t name_len, extra, offset;
    bool large, zip64;

    zip_read(z, *at, 46, h);
    assert_int_equal(le32(h), 0x02014b50);
    name_len = le16(h + 28);
    extra = le16(h + 30);
    assert_true(name_len < sizeof(ret->name) && extra <= 64);
    zip_read(z, *at, (size_t)(46 + name_len + extra), h);
    memcpy(ret->name, h + 46, (size_t)name_len);
    ret->name[name_len] = '\0';
    ret->crc = (uint32_t)le32(h + 16);
    large = le32(h + 24) == 0xffffffff;
    offset = le32(h + 42);
    zip64 = extra > 0;
    ret->bytes = large ? load_le64(h + 46 + name_len + 4) : le32(h + 24);
    ret->header = offset == 0xffffffff ? load_le64(h + 46 + name_len + (large ? 20 : 4)) : offset;
    assert_true(!large || ret->bytes >= 0xffffffff);
    check_common(h + 6, zip64, ret->crc, ret->bytes, ret->name);
    if (large && offset == 0xffffffff)
        check_extra(h + 46 + name_len, extra, 3, (uint64_t[]){ret->bytes, ret->bytes, ret->header});
    else if (large)
        check_extra(h + 46 + name_len, extra, 2, (uint64_t[]){ret->bytes, ret->bytes});
    else
        check_extra(h + 46 + name_len, extra, offset == 0xffffffff, &ret->header);
    *at += 46 + name_len + extra;

    zip_read(z, ret->header, (size_t)(30 + name_len + (large ? 20 : 0)), local);
    assert_int_equal(le32(local), 0x04034b50);
    extra = check_common(local + 4, large, ret->crc, ret->bytes, ret->name);
    assert_memory_equal(local + 30, ret->name, name_len);
    check_extra(local + 30 + name_len, extra, large ? 2 : 0, (uint64_t[]){ret->bytes, ret->bytes});
    ret->content = ret->header + 30 + name_len + extra;
}

static void check_member(struct zip *z, const struct member *m, const struct field *f,
                         const struct selection *sel)
{
    AUTO_FREE uint8_t *content = malloc(m->bytes);
    char name[64];
    struct bytes want;

    snprintf(name, sizeof(name), "%s.npy", f->name);
    assert_string_equal(m->name, name);
    zip_read(z, m->content, (size_t)m->bytes, content);
    assert_int_equal(crc32_z(0, content, (size_t)m->bytes), m->crc);
    model_npy(z->layout.dataset, f, sel, &want);
    assert_int_equal(m->bytes, want.len);
    assert_memory_equal(content, want.at, want.len);
    free(want.at);
}

/* Members in the order of the fields, without gaps. */
static void check_npz(const struct dataset *ds, enum scope scope, const struct selection *sel)
{
    const struct file_kind *kind = find_file_kind(ds, scope, "npz", ".npz");
    struct zip z = {0};
    uint64_t at, next = 0;
    unsigned members = 0;

    assert_non_null(kind);
    layout_init(&z.layout, ds, sel, NULL);
    assert_int_equal(kind->encoder->layout(&z.layout, kind), 0);
    zip_open(&z);
    assert_false(z.zip64);
    at = z.directory;
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];
        struct member m;

        if (f->derived || (!field_is_in(f, IN_RAW) && scope == SCOPE_SAMPLES))
            continue;
        next_member(&z, &at, &m);
        assert_int_equal(m.header, next);
        check_member(&z, &m, f, sel);
        next = m.content + m.bytes;
        members++;
    }
    assert_int_equal(members, z.members);
    assert_int_equal(next, z.directory);
    assert_int_equal(at, z.directory + z.directory_bytes);
    layout_release(&z.layout);
}

UNIT_TEST(test_npz__small__members_and_crcs)
{
    static const uint8_t types[] = {0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e};

    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct blob *blob[] = {idx_blob("x-images", types[t], 3, (uint32_t[]){6, 3, 5}, NULL),
                               idx_blob("x-labels", 0x08, 1, (uint32_t[]){6}, NULL)};
        const uint64_t mixed[] = {5, 0, 0, 3, 2, 1, 5};
        struct list_selection list;
        struct one_sample one;
        AUTO(found_release) struct found found;

        assert_int_equal(idx_open(blob, 2, &(struct format_options){0}, &found), 0);
        one_sample_init(&one, 4);
        check_npz(found.item[0].ds, SCOPE_SAMPLES, &one.sel);
        for (uint64_t n = 0; n <= ARRAY_LEN(mixed); n++) {
            list_selection_init(&list, mixed, n);
            check_npz(found.item[0].ds, SCOPE_BATCHES, &list.sel);
        }
    }
}

/* ---- ZIP64 ---- */

/* A host with invented CRCs, so that nothing reads 5 GB. */
static void made_up_recall(const struct layout_host *host, const struct layout_range *range,
                           unsigned n, struct layout_sum *ret)
{
    (void)host;
    for (unsigned i = 0; i < n; i++)
        ret[i] = (struct layout_sum){.done = UINT64_MAX, .sum = 0x1000 + range[i].slot};
}

static void identity_samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    (void)sel;
    for (size_t i = 0; i < n; i++)
        ret[i] = first + i;
}

static void check_large(uint32_t samples, uint32_t item, bool want_zip64)
{
    struct blob *blob[] = {idx_blob_zeros("x-images", 0x08, 2, (uint32_t[]){samples, item}, NULL),
                           idx_blob_zeros("x-labels", 0x08, 1, (uint32_t[]){samples}, NULL)};
    const struct layout_host host = {.recall = made_up_recall};
    const struct selection sel = {.count = samples, .samples = identity_samples};
    const struct format_options options = {.classes = 10};
    const struct dataset *ds;
    const struct file_kind *kind;
    struct zip z = {0};
    uint64_t at, next = 0;
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(blob, 2, &options, &found), 0);
    ds = found.item[0].ds;
    kind = find_file_kind(ds, SCOPE_BATCHES, "npz", ".npz");
    layout_init(&z.layout, ds, &sel, &host);
    assert_int_equal(kind->encoder->layout(&z.layout, kind), 0);
    zip_open(&z);
    assert_int_equal(z.zip64, want_zip64);
    at = z.directory;
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];
        struct member m;
        uint8_t head[10];

        if (f->derived)
            continue;
        next_member(&z, &at, &m);
        assert_int_equal(m.header, next);
        assert_int_equal(m.crc, 0x1000 + i);
        assert_int_equal(m.bytes, 128 + samples * f->item_bytes);
        zip_read(&z, m.content, 10, head);
        assert_memory_equal(head, "\x93NUMPY\x01\x00v\x00", 10);
        next = m.content + m.bytes;
    }
    assert_int_equal(next, z.directory);
    assert_int_equal(at, z.directory + z.directory_bytes);
    layout_release(&z.layout);
}

UNIT_TEST(test_npz__above_4_gib__zip64)
{
    check_large(6000000, 784, true);  /* the first member is large */
    check_large(4000000000, 1, true); /* large only through the later members */
    check_large(1000, 784, false);    /* an ordinary file, checked the same way */
    check_large(300000000, 0, true);  /* only the directory is past 4 GiB */
    check_large(4294967295, 3, true); /* as many as IDX can have */
}

/* Members and offsets at the border of 32 bits, byte by byte. */
UNIT_TEST(test_npz__around_the_border__right_form)
{
    for (uint32_t n = 4294967167 - 3; n <= 4294967167 + 3; n++)
        check_large(n, 1, true); /* 128 + n around 2^32 - 1 */
    for (uint32_t n = 4294967128 - 2; n <= 4294967128 + 2; n++)
        check_large(n, 1, true); /* the second member's offset, 167 + n, around 2^32 - 1 */
    /* The directory's offset, with an image of no bytes, label, index and 9 digits of key. */
    for (uint32_t n = 238609250; n <= 238609265; n++)
        check_large(n, 0, n * UINT64_C(18) + 666 >= 0xffffffff);
    check_large(70409289, 44, true); /* exactly 2^32 - 1: 70409289 x 61 + 666 */
}

/* ---- together ---- */

/* How far the fields of a batch have been read. */
static struct progress {
    uint64_t at[8], size[8]; /* by field */
    double apart;            /* the largest distance of two fields, as a share of their sizes */
    struct layout_sum sum[8];
    const struct dataset *ds;
} progress;

static void progress_recall(const struct layout_host *host, const struct layout_range *range,
                            unsigned n, struct layout_sum *ret)
{
    (void)host;
    for (unsigned i = 0; i < n; i++)
        ret[i] = progress.sum[range[i].slot];
}

static void progress_remember(const struct layout_host *host, const struct layout_range *range,
                              unsigned n, const struct layout_sum *sum)
{
    (void)host;
    for (unsigned i = 0; i < n; i++)
        progress.sum[range[i].slot] = sum[i];
}

static double share_read(unsigned i)
{
    return (double)progress.at[i] / (double)progress.size[i];
}

static int read_and_note(struct read_context *rc, const struct dataset *ds, const struct field *f,
                         const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                         struct diag *d)
{
    unsigned own = (unsigned)(f - ds->field);

    progress.at[own] = off + len;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (progress.size[i] && share_read(own) - share_read(i) > progress.apart)
            progress.apart = share_read(own) - share_read(i);
    return field_as_stored.read(rc, ds, f, sel, off, len, dst, d);
}

/* Arrays that share rows are read side by side, so that each row is decoded once. */
UNIT_TEST(test_npz__crcs_of_a_large_batch__made_side_by_side)
{
    static const struct field_ops noting = {.read = read_and_note};
    static const struct layout_host host = {.recall = progress_recall,
                                            .remember = progress_remember};
    struct blob *blob[] = {idx_blob("x-images", 0x08, 2, (uint32_t[]){300000, 4}, NULL),
                           idx_blob("x-labels", 0x08, 1, (uint32_t[]){300000}, NULL)};
    const struct selection sel = {.count = 300000, .samples = identity_samples};
    const struct file_kind *kind;
    AUTO_LAYOUT struct layout l = {0};
    AUTO(found_release) struct found found;
    struct dataset *ds;
    uint8_t header[14];

    assert_int_equal(idx_open(blob, 2, &(struct format_options){0}, &found), 0);
    ds = found.item[0].ds;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_RAW))
            ds->field[i].ops = &noting;
    kind = find_file_kind(ds, SCOPE_BATCHES, "npz", ".npz");
    progress = (struct progress){.ds = ds};
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].ops == &noting)
            progress.size[i] = sel.count * ds->field[i].item_bytes;
    layout_init(&l, ds, &sel, &host);
    assert_int_equal(kind->encoder->layout(&l, kind), 0);
    assert_int_equal(layout_read(READ_WAITS, &l, 0, sizeof(header), header, NULL), 0);
    assert_true(progress.apart < 0.1); /* a step of the larger field is a 19th of it */
    for (unsigned i = 0; i < ds->n_fields; i++)
        assert_int_equal(progress.at[i], progress.size[i]);
}

static unsigned asked, told;

static void count_recall(const struct layout_host *host, const struct layout_range *range,
                         unsigned n, struct layout_sum *ret)
{
    (void)host;
    (void)range;
    (void)n;
    (void)ret;
    asked++;
}

static void count_remember(const struct layout_host *host, const struct layout_range *range,
                           unsigned n, const struct layout_sum *sum)
{
    (void)host;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(sum[i].done, range[i].len);
    told += n;
}

/* A layout that is kept asks its host once, for all members. */
UNIT_TEST(test_npz__read_again__crcs_are_known)
{
    static const struct layout_host host = {.recall = count_recall, .remember = count_remember};
    struct blob *blob[] = {idx_blob("x-images", 0x08, 3, (uint32_t[]){6, 3, 5}, NULL),
                           idx_blob("x-labels", 0x08, 1, (uint32_t[]){6}, NULL)};
    const uint64_t samples[] = {5, 0, 3};
    struct list_selection list;
    AUTO_LAYOUT struct layout l = {0};
    const struct file_kind *kind;
    AUTO(found_release) struct found found;
    uint8_t bytes[4096], again[4096];

    assert_int_equal(idx_open(blob, 2, &(struct format_options){0}, &found), 0);
    kind = find_file_kind(found.item[0].ds, SCOPE_BATCHES, "npz", ".npz");
    list_selection_init(&list, samples, ARRAY_LEN(samples));
    layout_init(&l, found.item[0].ds, &list.sel, &host);
    assert_int_equal(kind->encoder->layout(&l, kind), 0);
    assert_true(l.size <= sizeof(bytes));
    asked = told = 0;
    assert_int_equal(layout_read(READ_WAITS, &l, 0, 10, bytes, NULL), 0);
    assert_int_equal(asked, 1);
    assert_int_equal(told, (l.n_parts - 1) / 3); /* a member has three parts */
    asked = told = 0;
    assert_int_equal(layout_read(READ_WAITS, &l, 0, (size_t)l.size, bytes, NULL), 0);
    assert_int_equal(layout_read(READ_WAITS, &l, 0, (size_t)l.size, again, NULL), 0);
    assert_int_equal(asked + told, 0);
    assert_memory_equal(bytes, again, l.size);
}
