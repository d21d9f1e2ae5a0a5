/* What people are told of a folder: reasons, notes and missing parts of all that is found in it. A
 * row has the files, and a piece of that text. Where memory is short, what is found is the same, or
 * the whole fails. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/registry.h"
#include "support/failing_alloc.h"
#include "support/memory_opener.h"
#include "support/one_store.h"
#include "support/unit.h"

#ifdef SLOW_BUILD
#define STEPS 3 /* the more, the more allocations fail */
#else
#define STEPS 16
#endif
#define FILES_MOST  5
#define MADE_MOST   17000 /* bytes of a file that is made */
#define HEADER_SIZE 16384 /* of MindRecord */

/* Make the bytes of a file of a text; returns how many. */
typedef size_t make_fn(const char *text, uint8_t *ret);

struct row {
    struct {
        const char *name, *bytes; /* or what make_npy() and others make of them */
        size_t len;               /* 0: that of a string */
    } file[FILES_MOST];           /* ended by NULL */
    const char *want;
    struct format_options options;
    bool is_set; /* of files that are read together: no allocation fails */
};

/* "<u2 (3, 2)" as a file. */
static size_t make_npy(const char *text, uint8_t *ret)
{
    const char *shape = strchr(text, '(');
    size_t len = (size_t)snprintf((char *)ret + 10, 200,
                                  "{'descr': '%.*s', 'fortran_order': False, 'shape': %s}",
                                  (int)(shape - text - 1), text, shape);

    size_t data = strtoull(text + 2, NULL, 10);

    for (const char *at = shape; (at = strpbrk(at, "0123456789"));)
        data *= strtoull(at, (char **)&at, 10);
    memcpy(ret, "\x93NUMPY\1", 8);
    store_le16(ret + 8, (uint16_t)len);
    assert_true(10 + len + data <= MADE_MOST);
    memset(ret + 10 + len, 0, data);
    return 10 + len + data;
}

/* JSON, "|" and data as a file. */
static size_t make_safetensors(const char *text, uint8_t *ret)
{
    size_t len = strcspn(text, "|"), data = strlen(text) - len - 1;

    store_le64(ret, len);
    memcpy(ret + 8, text, len);
    memcpy(ret + 8 + len, text + len + 1, data);
    return 8 + len + data;
}

/* JSON, and the rows of its first page, with "|" before each, as a file. */
static size_t make_mindrecord(const char *text, uint8_t *ret)
{
    size_t len = strcspn(text, "|"), size = 8 + len;

    memset(ret, 0, HEADER_SIZE);
    store_le64(ret, len);
    memcpy(ret + 8, text, len);
    for (text += len; text[0] && text[1]; text += len) {
        len = strcspn(++text, "|");
        size = size < HEADER_SIZE ? HEADER_SIZE : size;
        store_le64(ret + size, len);
        memcpy(ret + size + 8, text, len);
        size += 8 + len;
    }
    return size;
}

/* ---- Parquet: thrift of the compact protocol ---- */

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}
#define PUT(at, s) put((at), (s), sizeof(s) - 1)

/* A field, or more of its head, and a number of it. */
static uint8_t *put_number(uint8_t *at, uint8_t field, uint64_t n)
{
    *at++ = field;
    for (n *= 2; n > 127; n >>= 7)
        *at++ = (uint8_t)(n | 128);
    *at++ = (uint8_t)n;
    return at;
}

static uint8_t *put_text(uint8_t *at, uint8_t field, const char *text, size_t len)
{
    *at++ = field;
    assert_true(len < 1 << 14);
    *at++ = (uint8_t)(len | 128);
    *at++ = (uint8_t)(len >> 7);
    return put(at, text, len);
}

/* Columns of a file of Parquet, "NAME:KIND:VALUE,VALUE|" each, and after them what its metadata
 * 'huggingface' is. KIND: t text, j JSON, i int64, f double; T, J, I and F have a page of type 9 in
 * front. A value "-" is null. */
struct made_column {
    const char *name;
    size_t name_len, start, end, n, nulls;
    char kind;
    bool is_odd;
};

static uint8_t *make_page(struct made_column *c, const char *values, uint8_t *file, uint8_t *at)
{
    static uint8_t body[MADE_MOST], levels[256];
    uint8_t *to = body;

    c->n = c->nulls = 0;
    for (const char *v = values; v[-1] != '|'; v += strcspn(v, ",|") + 1) {
        size_t len = strcspn(v, ",|");
        bool is_null = len == 1 && *v == '-';

        levels[2 * c->n] = 2; /* a run of one */
        levels[2 * c->n++ + 1] = !is_null;
        c->nulls += is_null;
        if (is_null)
            continue;
        if (c->kind == 'f') {
            double number = strtod(v, NULL);

            memcpy(to, &number, 8);
        } else {
            store_le32(to, (uint32_t)len);
            if (c->kind == 'i')
                store_le64(to, (uint64_t)strtoll(v, NULL, 10));
        }
        to += c->kind == 't' || c->kind == 'j' ? 4 : 8;
        if (c->kind == 't' || c->kind == 'j')
            to = put(to, v, len);
    }
    c->start = (size_t)(at - file);
    if (c->is_odd)
        at = PUT(put_number(put_number(put_number(at, 0x15, 9), 0x15, 3), 0x15, 3), "\0odd");
    for (int i = 0; i < 3; i++)
        at = put_number(at, 0x15, i ? 4 + 2 * c->n + (size_t)(to - body) : 0);
    at = put_number(PUT(at, "\x2c"), 0x15, c->n);
    at = put_number(put_number(put_number(at, 0x15, 0), 0x15, 3), 0x15, 3);
    at = PUT(at, "\0\0");
    store_le32(at, (uint32_t)(2 * c->n));
    at = put(put(at + 4, levels, 2 * c->n), body, (size_t)(to - body));
    c->end = (size_t)(at - file);
    return at;
}

static size_t make_parquet(const char *text, uint8_t *ret)
{
    static const char kinds[] = "itfj";
    static const uint8_t types[] = {2, 6, 5, 6}, converted[] = {10, 0, 0, 19};
    struct made_column column[8];
    uint8_t *at = PUT(ret, "PAR1"), *footer;
    unsigned n = 0;

    for (; strchr(text, '|'); text = strchr(text, '|') + 1) {
        struct made_column *c = &column[n++];

        *c = (struct made_column){.name = text, .name_len = strcspn(text, ":")};
        c->kind = text[c->name_len + 1];
        c->is_odd = isupper(c->kind);
        c->kind = (char)tolower(c->kind);
        at = make_page(c, text + c->name_len + 3, ret, at);
    }
    footer = at;
    at = put_number(at, 0x15, 2);
    *at++ = 0x19;
    *at++ = (uint8_t)((n + 1) << 4 | 12);
    at = PUT(put_number(put_text(at, 0x48, "s", 1), 0x15, n), "\0");
    for (unsigned i = 0; i < n; i++) {
        size_t k = (size_t)(strchr(kinds, column[i].kind) - kinds);

        at = put_number(put_number(at, 0x15, types[k]), 0x25, 1);
        at = put_text(at, 0x18, column[i].name, column[i].name_len);
        at = PUT(types[k] == 6 ? put_number(at, 0x25, converted[k]) : at, "\0");
    }
    at = put_number(at, 0x16, column[0].n);
    at = PUT(at, "\x19\x1c\x19");
    *at++ = (uint8_t)(n << 4 | 12);
    for (unsigned i = 0; i < n; i++) {
        const struct made_column *c = &column[i];

        at = put_number(PUT(at, "\x3c"), 0x15, types[strchr(kinds, c->kind) - kinds]);
        at = put_text(PUT(at, "\x19\x05\x19"), 0x18, c->name, c->name_len);
        at = put_number(put_number(at, 0x15, 0), 0x16, c->n);
        at = put_number(put_number(at, 0x16, c->end - c->start), 0x16, c->end - c->start);
        at = put_number(PUT(put_number(at, 0x26, c->start), "\x3c"), 0x36, c->nulls);
        at = PUT(at, "\0\0\0");
    }
    at = PUT(put_number(put_number(at, 0x16, 0), 0x16, column[0].n), "\0");
    if (*text)
        at = PUT(put_text(put_text(PUT(at, "\x19\x1c"), 0x18, "huggingface", 11), 0x18, text,
                          strlen(text)),
                 "\0");
    *at++ = 0;
    store_le32(at, (uint32_t)(at - footer));
    return (size_t)(PUT(at + 4, "PAR1") - ret);
}

static void say_fault(void *ctx, const char *text)
{
    text_add(ctx, "%s\n", text);
}

/* All that is said; brief: only what is found. 0; or -ENOMEM, if some of it lacked memory. */
static int say(const struct found *found, bool brief, struct text *t)
{
    for (size_t i = 0; i < found->n; i++) {
        struct dataset *ds = found->item[i].ds;
        const char *reason = found->item[i].reason;
        struct diag d = DIAG_INIT;

        while (ds && dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
            ;
        if (ds && dataset_state(ds) == DATASET_FAILED)
            reason = ds->reason.text;
        if (reason && strstr(reason, strerror(ENOMEM)))
            return -ENOMEM;
        text_add(t, "%s: %s\n", found->item[i].name, reason ? reason : "found");
        if (!ds || brief)
            continue;
        notes_show(&ds->notes, t);
        missing_parts_show(&ds->missing, FOUND_MAX, t);
        if (ds->ops && ds->ops->check)
            ds->ops->check(ds, say_fault, t, &d);
        if (ds->ops && ds->ops->checked)
            ds->ops->checked(ds, t);
        if (ds->ops && ds->ops->about)
            ds->ops->about(ds, t);
        for (unsigned k = 0; k < ds->n_fields; k++)
            text_add(t, k ? " %s" : "fields: %s", ds->field[k].name);
        text_add(t, "\n");
    }
    return t->failed ? -ENOMEM : 0;
}

/* Open the files of a row. 0 or -ENOMEM. */
static int open_row(const struct format *format, make_fn *make, const struct row *row, bool brief,
                    struct text *ret)
{
    static uint8_t made[FILES_MOST][MADE_MOST];
    struct memory_file file[FILES_MOST] = {0};
    struct memory_opener opener = {.file = file};
    struct format_setup setup = {.options = row->options, .keep = &no_store};
    struct blob *blob[FILES_MOST];
    struct found found;
    size_t n = 0;
    int r = memo_new(1 << 20, &setup.memo);

    if (r < 0)
        return r;
    for (; n < FILES_MOST && row->file[n].name; n++) {
        const char *bytes = row->file[n].bytes;

        file[n] = (struct memory_file){.path = row->file[n].name, .bytes = bytes};
        file[n].len = row->file[n].len ? row->file[n].len : strlen(bytes);
        if (make && strpbrk(bytes, "(|")) {
            file[n].bytes = made[n];
            file[n].len = make(bytes, made[n]);
        }
        blob[n] = memory_file_blob(&file[n]);
    }
    memory_opener_init(&opener);
    opener.n_files = n;
    setup.opener = &opener.opener;
    r = format_open(format, blob, n, &setup, &found);
    if (r == 0)
        r = say(&found, brief, ret);
    found_release(&found);
    memo_free(setup.memo);
    return r;
}

/* The n-th allocation fails, for many n: the same is found, or nothing, and all is freed. */
static void check_no_memory(const struct format *format, make_fn *make, const struct row *row)
{
    AUTO_TEXT struct text clean = {0};
    bool has_failed = true;

    assert_int_equal(open_row(format, make, row, true, &clean), 0);
    for (unsigned long n = 1; has_failed; n += 1 + n / STEPS) {
        struct text t = {0};
        long live;
        int r;

        failing_alloc_begin(n);
        r = open_row(format, make, row, true, &t);
        has_failed = failing_alloc_end();
        if (r != -ENOMEM && (r || strcmp(t.data, clean.data) != 0))
            fail_msg("%s: allocation %lu failed: result %d: %s", row->want, n, r, t.data);
        text_release(&t);
        live = failing_alloc_live();
        if (live)
            fail_msg("%s: allocation %lu failed: %ld left over", row->want, n, live);
    }
}

static void check_rows(const char *name, make_fn *make, const struct row *row, size_t n)
{
    const struct format *format = NULL;
    unsigned wrong = 0;

    for (unsigned i = 0; i < n_formats; i++)
        format = strcmp(formats[i]->name, name) ? format : formats[i];
    assert_non_null(format);
    for (size_t i = 0; i < n; i++) {
        AUTO_TEXT struct text t = {0};

        assert_int_equal(open_row(format, make, &row[i], false, &t), 0);
        if (!strstr(t.data, row[i].want)) {
            print_error("expected \"%s\", got \"%s\"\n", row[i].want, t.data);
            wrong++;
        }
        for (const char *c = t.data; *c; c++)
            assert_true((unsigned char)*c >= ' ' || *c == '\n');
        if (!row[i].is_set)
            check_no_memory(format, make, &row[i]);
    }
    assert_int_equal(wrong, 0);
}

/* The head of a MindRecord file, and what it has. */
#define MIND(names, number, schema, pages)                                                         \
    "{\"version\":\"3.0\",\"header_size\":16384,\"page_size\":32768,\"shard_addresses\":[" names   \
    "],\"shard_id\":" number ",\"schema\":[" schema "],\"page\":[" pages "]}"
#define X0                   "\"x0\""
#define X0_X1                "\"d/x0\",\"d/x1\""
#define COLUMN(blobs, about) "{\"blob_fields\":[" blobs "],\"schema\":{\"b\":{" about "}}}"
#define BLOB_B               COLUMN("\"b\"", "\"type\":\"bytes\"")
#define PAGE(end, size)                                                                            \
    "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_id\":0,"            \
    "\"end_row_id\":" end ",\"page_size\":" size "}"

/* A file of a text, and one of bytes. */
#define FILE_OF(n, text)                                                                           \
    {                                                                                              \
        .name = (n), .bytes = (text)                                                               \
    }
#define BYTES(n, s)                                                                                \
    {                                                                                              \
        .name = (n), .bytes = (s), .len = sizeof(s) - 1                                            \
    }

UNIT_TEST(test_npy)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("s0.npy", "<u2 (3, 2)"), FILE_OF("s1.npy", "<u2 (4, 5)"),
                  FILE_OF("s2.npy", "<u2 (2, 7)")},
         .want = "s: s: 3 arrays with as many axes, such as s0.npy of uint16 (3, 2) and s1.npy of "
                 "uint16 "
                 "(4, 5), are probably one sample each"},
        {.file = {FILE_OF("s0.npy", "<u2 (3, 2)"), FILE_OF("s1.npy", "<u2 (3, 2)"),
                  FILE_OF("s2.npy", "<u2 (4, 5)")},
         .want = "such as s0.npy of uint16 (3, 2) and s2.npy of uint16 (4, 5)"},
        {.file = {FILE_OF("a0.npy", "<u2 (3, 2)"), FILE_OF("a1.npy", "<u2 (2, 3)")},
         .want = "a0.npy and a1.npy are not one array in several files: uint16 (3, 2) and uint16 "
                 "(2, 3)"},
        {.file = {FILE_OF("a0.npy", "<u2 (3, 2)"), FILE_OF("a1.npy", "<u2 (3, 2)"),
                  FILE_OF("a2.npy", "<u2 (3, 2)")},
         .want =
             "a0.npy to a2.npy are one array in 3 files, because their names differ by a number "
             "only; "
             "with -o pair=off each is a dataset; each is uint16 (3, 2): if each is one sample"},
        {.file = {FILE_OF("a0.npy", "<u2 (3, 2)"), FILE_OF("a1.npy", "<u2 (4, 2)")},
         .want = "-o pair=off each is a dataset\n"},
        {.file = {FILE_OF("x0.npy", "<u2 (3,)"), FILE_OF("x1.npy", ">u2 (3,)"),
                  FILE_OF("x2.npy", "<u2 (3,)")},
         .want = "x: x: files of one array differ in their order of bytes: expected little-endian "
                 "as in "
                 "x0.npy, got big-endian in x1.npy. Convert one with numpy's astype('<')"},
        {.file = {FILE_OF("0.npy", ">u2 (3,)"), FILE_OF("1.npy", "<u2 (3,)")},
         .want = "all: all: files of one array differ in their order of bytes: expected big-endian "
                 "as in "
                 "0.npy, got little-endian in 1.npy. Convert one with numpy's astype('>')"},
        {.file = {FILE_OF("x_train_0.npy", "<u2 (3,)"), FILE_OF("x_train_1.npy", "<u2 (2,)"),
                  FILE_OF("x_val_7.npy", "<u2 (2,)")},
         .want =
             "x_val_7.npy is x_val, because files of x_train have numbers; with -o pair=off it is "
             "x_val_7\n"},
        {.file = {FILE_OF("x_train_0.npy", "<u2 (3,)"), FILE_OF("x_train_1.npy", "<u2 (2,)"),
                  FILE_OF("x_val_.npy", "<u2 (2,)")},
         .want = "x_val_: found"},
        {.file = {FILE_OF("x_train_0.npy", "<u2 (3,)"), FILE_OF("x_train_1.npy", "<u2 (2,)"),
                  FILE_OF("x_test_0.npy", "<u2 (2,)"), FILE_OF("-x_test_1.npy", "<u2 (2,)")},
         .want = "x_test_0: found\nx_test_1.npy: it is marked\n"},
        {.file = {FILE_OF("u.npy", "<u2 (3,)"), FILE_OF("v.npy", "<u2 (3, 2)")},
         .want = "u.npy and v.npy are fields of one dataset, because files of one directory that "
                 "have the "
                 "same number of rows are"},
        {.file = {FILE_OF("u.npy", "<u2 (3,)"), FILE_OF("Images.npy", "<u2 (3, 2)")},
         .want = "all: found\n    paired   u, Images: they have the same number of samples\n"},
        {.file = {FILE_OF("x_train.npy", "<u2 (3,)"), FILE_OF("y_train.npy", "<u2 (4,)")},
         .want =
             "arrays of train: expected the same number of samples, in files of as many, got 3 in "
             "x_train and 4 in y_train"},
        {.file = {FILE_OF("fold1.npy", "<u2 (3,)"), FILE_OF("fold2.npy", "<u2 (3,)")},
         .want = "the names of fold1.npy and fold2.npy differ by numbers only"},
        {.file = {FILE_OF("x.npy", "<u2 (3,)"), FILE_OF("z.npy", "<u2 (3, 2)"),
                  FILE_OF("y.npy", "<U2 (3,)")},
         .want = "paired   x, z: they have the same number of samples\n    ignored  y: header at "
                 "byte 10: expected numbers or bool in .npy, got strings"},
        {.file = {FILE_OF("x_train.npy", "<u2 (3,)"), FILE_OF("y_train.npy", "|a3 (3,)")},
         .want = "train: found\n"},
        {.file = {FILE_OF("x_train.npy", "<u2 (3,)"), FILE_OF("y_train.npy", "|O (3,)")},
         .want = "array y_train cannot be read: header at byte 10: expected numbers or bool in "
                 ".npy, got Python objects"},
        {.file = {FILE_OF("X_0.npy", "<u2 (3,)"), FILE_OF("X_1.npy", "<u2 (2,)"),
                  FILE_OF("X_2.npy", "<u2 (2,)"), FILE_OF("y_0.npy", "<u2 (3,)"),
                  FILE_OF("y_1.npy", "<u2 (2,)")},
         .want = "y: found\ny_0.npy to y_1.npy are one array in 2 files, because their names "
                 "differ by a "
                 "number only; with -o pair=off each is a dataset\ny_2.npy: no such file\n"},
        {.file = {FILE_OF("X_0.npy", "<u2 (3,)"), FILE_OF("X_1.npy", "<u2 (2,)"),
                  FILE_OF("X_2.npy", "<u2 (2,)"), FILE_OF("y_0.npy", "<u2 (3,)"),
                  FILE_OF("y_1.npy", "<u2 (1,)")},
         .want =
             "y_0.npy to y_1.npy are one array in 2 files, because their names differ by a number "
             "only; with -o pair=off each is a dataset\nfields: data"},
        {.file = {FILE_OF("x_train.npy", "<u2 (3,)"), FILE_OF("-y_train.npy", "1"),
                  FILE_OF("-y_test.npy", "1"), FILE_OF("-train_z", "1")},
         .want = "train: found\ny_train.npy: it is marked\n    paired"},
        {.file = {FILE_OF("u.npy", "<u2 (3,)"), FILE_OF("v.npy", "<u2 (3, 2)"),
                  FILE_OF("-w.npy", "1"), FILE_OF("+t.npy", "1")},
         .want = "w.npy: it is marked\n    paired"},
        {.file = {FILE_OF("u.npy", "<u2 (3,)"), FILE_OF("!w.npy", "1"), FILE_OF("!v.npy", "1"),
                  FILE_OF("x_train.npy", "<u2 (3,)")},
         .want = "all: all: cannot be shown without a file that cannot be read: it is marked. "
                 "Mount again "
                 "when it can be read\ntrain: found\n"},
        {.file = {FILE_OF("u.npy", "<u2 (3,)"), FILE_OF("x_train.npy", "<u2 (3,)"),
                  FILE_OF("!y_test.npy", "1"), FILE_OF("!y_train.npy", "1"),
                  FILE_OF("!z_train.npy", "1")},
         .want =
             "test: test: cannot be shown without a file that cannot be read: it is marked. Mount "
             "again "
             "when it can be read\ntrain: train: cannot be shown without a file that cannot be "
             "read: "
             "it "
             "is marked. Mount again when it can be read\nu: found\n"},
        {.file = {FILE_OF("a.npy", "\x93NUMPY")},
         .want = "a.npy: byte 0: expected the header of .npy"},
        {.file = {BYTES("a.npy", "\x93NUMPY\4\0\1\0\0\0\0")},
         .want = "a.npy: version at byte 6: expected 1.0, 2.0 or 3.0, got 4.0"},
        {.file = {BYTES("a.npy", "\x93NUMPY\1\0\xff\xff\0\0\0")},
         .want = "a.npy: length of the header at byte 8: expected at most"},
        {.file = {BYTES("a.npy", "\x93NUMPY\1\0\x20\0\0\0\0")},
         .want = "a.npy: header at byte 0: expected 42 bytes, got 13"},
        {.file = {FILE_OF("x.npy", "<u2 (3,)"), FILE_OF("x.NPY", "<u2 (3,)")},
         .want = "x.NPY: x.NPY: another array in its folder is also called x\n"},
    };

    check_rows("npy", make_npy, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_safetensors)
{
    static const struct row rows[] = {
        {.file = {BYTES("a", "\3\0\0\0")}, .want = "a: expected at least 8 bytes, got 4"},
        {.file = {BYTES("a", "\3\0\0\0\0\0\0\0{}")},
         .want = "a: length of the header at byte 0: expected at most 2, got 3"},
        {.file = {FILE_OF("a", "[]|")}, .want = "a: header: expected an object of tensors"},
        {.file = {FILE_OF("a", "{}|")}, .want = "a: expected tensors, got none"},
        {.file = {FILE_OF("a", "{\"x\":1}|")}, .want = "a: tensor x: expected an object"},
        {.file = {FILE_OF("a", "{\"x\":{\"data_offsets\":[0]}}|1")},
         .want = "a: tensor x: expected data_offsets of two numbers"},
        {.file = {FILE_OF("a", "{\"x\":{\"data_offsets\":[0,-1]}}|1")},
         .want = "a: tensor x: expected data_offsets of two numbers"},
        {.file = {FILE_OF("a", "{\"x\":{\"data_offsets\":[0,1]}}|1")},
         .want = "a: tensor x: dtype: expected a type such as F32, got 'none'"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U9\",\"data_offsets\":[0,1]}}|1")},
         .want = "a type such as F32, got 'U9'"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,2]}}|1")},
         .want = "a: tensor x: data_offsets: expected a begin and an end up to 1, got 0 and 2"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[1,0]}}|1")},
         .want = "up to 1, got 1 and 0"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}|")},
         .want = "a: tensor x: expected a shape, got none"},
        {.file = {FILE_OF("a",
                          "{\"x\":{\"dtype\":\"U8\",\"shape\":[\"a\"],\"data_offsets\":[0,0]}}|")},
         .want = "a: tensor x: shape: expected numbers, got something else"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_"
                               "offsets\":[0,0]}}|")},
         .want = "a: tensor x: shape: expected less than 2^64 bits, got more"},
        {.file = {FILE_OF("a",
                          "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}|1")},
         .want = "a: tensor x: data_offsets: expected 2 bytes, as dtype and shape say, got 1"},
        {.file = {FILE_OF("a",
                          "{\"x\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}|12")},
         .want = "a: tensor x: data_offsets: expected 2 bytes, as dtype and shape say, got 2"},
        {.file = {FILE_OF("a",
                          "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}|12")},
         .want = "a: tensor x: data_offsets: expected 0, where the one before it ends, got 1"},
        {.file = {FILE_OF("a",
                          "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}|12")},
         .want = "a: expected tensors up to the end, byte 63, got none from byte 62 on"},
        {.file = {FILE_OF("a", "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}|1")},
         .want =
             "a: expected a tensor of samples, got x: expected an axis of samples, got a scalar"},
        {.file = {FILE_OF(
             "a", "{\"x\":{\"dtype\":\"F6_E2M3\",\"shape\":[4,2],\"data_offsets\":[0,6]}}|123456")},
         .want = "x: expected rows of whole bytes, got elements of 6 bits"},
        {.file = {FILE_OF(
             "a", "{\"a/"
                  "b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a.b\":{\"dtype\":"
                  "\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}|12")},
         .want = "a: tensor a.b: two tensors have this name"},
    };

    check_rows("safetensors", make_safetensors, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_csv)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("a.csv", "a,b\n1,2\n")},
         .want = "a.csv: option label_column=5: expected a column from 0 to 1, or its name in line "
                 "1, got "
                 "no such",
         .options = {.label_column = "5"}},
        {.file = {FILE_OF("a.csv", "3,2\n1,2\n")},
         .want = "a.csv: option weight_column=y: expected a column from 0 to 1, got no such",
         .options = {.weight_column = "y"}},
        {.file = {FILE_OF("a.csv", "a,b\n1,2\n")},
         .want = "a.csv: expected two columns as label and weight, got column 0 as both",
         .options = {.label_column = "a", .weight_column = "0"}},
        {.file = {FILE_OF("a.csv", "a,b\n1,2\n"), FILE_OF("b.csv", "a,b,c\n1,2,3\n")},
         .want = "b.csv: has 3 columns, a.csv has 2: the files of this folder are not one table"},
        {.file = {FILE_OF("a.csv", "a,b\n1,2\n"), FILE_OF("b.csv", "b,a\n1,2\n")},
         .want =
             "b.csv: its columns are not those of a.csv in the same order: expected a,b, got b,a."},
        {.file = {FILE_OF("a.csv", "7,8.5\n1,2\n"), FILE_OF("b.csv", "b,a\n1,2\n")},
         .want = "expected no names, got b,a."},
        {.file = {FILE_OF("a.csv", ",b\n0,2\n1,3\n"), FILE_OF("b.csv", "b,a\n1,2\n")},
         .want = "expected ,b, got b,a."},
        {.file = {FILE_OF("a.csv", ",b\n0,2\n1,3\n"), FILE_OF("b.csv", "5,6.5\n1,2\n")},
         .want = "b.csv: 0 of its columns number the rows, 1 in a.csv"},
        {.file = {FILE_OF("a.csv", "label,b\n1,2\n"), FILE_OF("b.csv", "5,6.5\n1,2\n")},
         .want = "b.csv: has its label or weight in another column than a.csv"},
        {.file = {FILE_OF("a.csv", "0,5\n1,7\n2,9\n"), FILE_OF("b.csv", "3,5\n1,7\n")},
         .want =
             "a.csv: rows of a number that counts them and another one are a list about something "
             "else"},
        {.file = {FILE_OF("a.csv", "1,2\n3,x\n")},
         .want = "a.csv: line 2, column 1: expected a number, got 'x'. Leave"},
        {.file = {FILE_OF("a.csv", "1,2\n3,\x01\n")},
         .want = "a.csv: line 2, column 1: expected a number, got byte 01"},
        {.file = {FILE_OF("a.csv", "1,2\n\n3\n")},
         .want = "a.csv: line 3: expected 2 columns, as in the first line, got 1"},
        {.file = {FILE_OF("a.csv", "1,2\n3,\n")},
         .want = "a.csv: line 2, column 1: expected a number as the label, got ''",
         .options = {.label_column = "1"}},
        {.file = {FILE_OF("a.csv", "1,2\n,4\n")},
         .want = "a.csv: line 2, column 0: expected a number as the weight, got ''",
         .options = {.weight_column = "0"}},
        {.file = {FILE_OF("a.csv", "a,1,5\n1,2,3\n")},
         .want =
             "a.csv: line 1: expected numbers, or names and no numbers, got 2 numbers and 1 names"},
        {.file = {FILE_OF("a.csv", "# a,b,c\n1,2\n")},
         .want = "a.csv: line 1: expected names of 2 columns after '#', got 3. If it is a comment"},
        {.file = {FILE_OF("a.csv", "# 1 b\n1 2\n")}, .want = "after '#', got 2 cells with numbers"},
        {.file = {FILE_OF("a.csv", "\n\n")},
         .want = "a.csv: expected lines of numbers, got none in the first 2 bytes"},
        {.file = {FILE_OF("a.csv", "16777217,1\n2,3\n")},
         .want = "a.csv: 1 column has whole numbers that float32 rounds. The first is '16777217', "
                 "line 1, "
                 "column 0. -o csv_dtype=float64 shows float64\n"},
        {.file = {FILE_OF("a.csv", "1,9007199254740993\n2,3\n")},
         .want =
             "numbers that float64 rounds. The first is '9007199254740993', line 1, column 1. The "
             "lines "
             "in csv/ have all digits\n",
         .options = {.doubles = true}},
        {.file = {FILE_OF("a.csv", ",0,1\n0,5,6\n1,7,8\n")},
         .want =
             "a.csv: line 1 is used as names of columns: '', '0', '1'. -o csv_header=no makes it a "
             "row\na.csv: column 0 (without a name) is omitted from x: it numbers the rows, as "
             "pandas "
             "does. Give it a name to keep it\n"},
        {.file = {FILE_OF("a.csv", "Unnamed: 0,b\n0,5\n0,7\n")},
         .want = "a.csv: column 0 (Unnamed: 0) is a part of x: its numbers repeat, and number no "
                 "rows\n"},
        {.file = {FILE_OF("a.csv", "\"a\x02\",\"5\"\n1,2\n")},
         .want = "a.csv: line 1 is used as names of columns: 'a"},
        {.file = {FILE_OF("a.csv", "0,1,2,3,4,5,6,7,8\n9,9,9,9,9,9,9,9,9\n")},
         .want = "'6', '7' ..."},
        {.file = {FILE_OF("a.csv", "1,2,3,4\n9,9,9,9\n")},
         .want =
             "a.csv: line 1 is used as a row, but its numbers rise by one. If they are names of "
             "columns: -o csv_header=yes\n"},
        {.file = {FILE_OF("a.csv", "Label,x,LABEL\n1,2,3\n")},
         .want = "a.csv: columns 0 and 2 are named label: the label is column 0, and the other a "
                 "part of "
                 "x"},
    };

    check_rows("csv", NULL, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_csv_sets)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("a0.csv", "a,b\n1,2\n"), FILE_OF("a1.csv", "5,6.5\n1,2\n")},
         .want = "a1.csv: has no names of columns: they are used in the order of a0.csv\n",
         .is_set = true},
        {.file = {FILE_OF("t-0.csv", "5,6,7\n1,2,3\n"), FILE_OF("t-1.csv", "0,1,2\n5,6,7.5\n")},
         .want = "t-1.csv: line 1 is used as a row, as in other parts of the set",
         .is_set = true},
    };

    check_rows("csv", NULL, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_recordio)
{
    static const struct row rows[] = {
        {.file = {BYTES("x.rec", "\x0a\x23\xd7")},
         .want = "x.rec: expected the header of a part (8 bytes), got 3 bytes"},
        {.file = {BYTES("x.rec", "\xce\xd7\x23\x0a\0\0\0\0")},
         .want =
             "x.rec: byte 0: expected 0a 23 d7 ce (RecordIO), got the same in big-endian order"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\x40"
                                 "abcd")},
         .want = "x.rec: byte 0: expected the start of a record, got a further part of one"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xcd\4\0\0\0"
                                 "abcd")},
         .want = "x.rec: byte 0: expected the magic number 0a 23 d7 ce, got 0a 23 d7 cd"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\xa0"
                                 "abcd")},
         .want = "x.rec: byte 0: expected flags from 0 to 3, got 5"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abc")},
         .want = "x.rec: byte 0: expected 12 bytes, got 11"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\3\0\0\0"
                                 "abc\0"
                                 "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abc")},
         .want = "x.rec: byte 12: expected 12 bytes, got 11; the rest is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"
                                 "\x0a\x23\xd7\xce\4\0\0\x40"
                                 "abcd")},
         .want = "x.rec: byte 12: expected the start of a record, got a further part; the rest is "
                 "ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"
                                 "\x0a\x23\xd7\xce\3\0\0\x20"
                                 "abc\0")},
         .want = "x.rec: byte 12: expected a part whose length is a multiple of 4; the rest is "
                 "ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"
                                 "\x0a\x23\xd7\xce\4\0\0\x20"
                                 "abcd")},
         .want =
             "x.rec: byte 24: expected the header of a part, got 0 bytes; the rest is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"),
                  FILE_OF("x.idx", "0\t0\r\n")},
         .want =
             "x.idx: line 1: expected a number, a TAB, and a byte of the file; it is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"),
                  FILE_OF("x.idx", "0\t0\n1\t12\n")},
         .want = "x.idx: line 2: expected a record at byte 12, got a file of 12 bytes, which may "
                 "be cut "
                 "short; it is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"),
                  FILE_OF("x.idx", "0\t4\n")},
         .want = "x.idx: not all its places, or others, are where records begin; it is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"
                                 "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"),
                  FILE_OF("x.idx", "0\t0\n1\t8\n")},
         .want = "x.idx: not all its places, or others, are where records begin; it is ignored\n"},
        {.file = {BYTES("x.rec", "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"
                                 "\x0a\x23\xd7\xce\4\0\0\0"
                                 "abcd"),
                  FILE_OF("x.idx", "1\t12\n0\t0\n")},
         .want = "x.rec: found\nfields"},
    };

    check_rows("recordio", NULL, rows, ARRAY_LEN(rows));
}

/* An index.json of a shard s with these members, and columns. */
#define COLUMNS(names, codes, sizes)                                                               \
    "\"column_names\":" names ",\"column_encodings\":" codes ",\"column_sizes\":" sizes
#define SHARD(more, columns)                                                                       \
    "{\"version\":2,\"shards\":[{\"format\":\"mds\",\"version\":2," more "," columns "}]}"
#define RAW(name, bytes, samples)                                                                  \
    "\"raw_data\":{\"basename\":\"" name "\",\"bytes\":" bytes "},\"samples\":" samples
#define ONE_INT COLUMNS("[\"a\"]", "[\"int\"]", "[8]")

UNIT_TEST(test_mds)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("index.json", "{\"version\":3,\"shards\":[]}")},
         .want = "index.json: expected version 2 of MDS with shards, got version 3"},
        {.file = {FILE_OF("index.json", "{\"version\":2,\"shards\":[]}")}, .want = "all: found\n"},
        {.file = {FILE_OF("index.json",
                          "{\"version\":2,\"shards\":[{\"format\":\"json\",\"version\":2}]}")},
         .want = "index.json: expected shards of format mds, version 2, got json, 2"},
        {.file = {FILE_OF("index.json",
                          "{\"version\":2,\"shards\":[{\"format\":\"mds\",\"version\":1}]}")},
         .want = "version 2, got mds, 1"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "1", "-1"), ONE_INT))},
         .want = "index.json: shard 0: expected a basename and numbers of samples and bytes, got "
                 "others"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "-1", "1"), ONE_INT))},
         .want = "shard 0: expected a basename"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "1", "4294967295"), ONE_INT))},
         .want = "expected a basename"},
        {.file = {FILE_OF("index.json", SHARD(RAW("../s", "1", "1"), ONE_INT))},
         .want = "index.json: expected shards below its folder, got ../s"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "1", "1"), COLUMNS("[]", "[]", "[]")))},
         .want = "index.json: expected 1 to 512 column_names, and as many column_encodings and "
                 "column_sizes, "
                 "got 0, 0 and 0"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "1", "1"), COLUMNS("[\"a\"]", "[\"int\"]", "[8,8]")))},
         .want = "got 1, 1 and 2"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "1", "1"), COLUMNS("[\"a\"]", "[\"int\"]", "[\"8\"]")))},
         .want =
             "index.json: column 0: expected a name, an encoding and a size or null, got others"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "1", "1"), COLUMNS("[\"a\"]", "[\"int\"]", "[4]")))},
         .want = "index.json: column a: expected 8 bytes, which int has, got 4 in column_sizes"},
        {.file = {FILE_OF(
             "index.json",
             SHARD(RAW("s", "1", "1"), COLUMNS("[\"a\",\"a\"]", "[\"int\",\"int\"]", "[8,8]")))},
         .want = "index.json: expected columns of different names, got two a"},
        {.file = {FILE_OF("m/index.json", SHARD(RAW("s", "1", "1"), ONE_INT))},
         .want = "/m: m/s: No such file"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "1", "1") ",\"compression\":\"br:11\"", ONE_INT))},
         .want = "index.json: shard s: expected zstd, gz, bz2 or no packing, got br:11. Unpack it"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "13", "1"), ONE_INT)),
                  FILE_OF("s", "123456789012")},
         .want = "s: expected 13 bytes of index.json, got 12"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "12", "2"), ONE_INT)),
                  FILE_OF("s", "123456789012")},
         .want = "s: expected 2 samples of index.json, got 12 bytes"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "12", "1"), ONE_INT)),
                  BYTES("s", "\2\0\0\0........")},
         .want = "s: expected 1 samples of index.json, got 2 in the shard"},
        {.file = {FILE_OF("index.json", SHARD(RAW("s", "8", "0"), ONE_INT)),
                  BYTES("s", "\0\0\0\0........")},
         .want = "s: expected 8 bytes, as index.json says, got 12\n"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "8", "0"), COLUMNS("[\"a\"]", "[\"odd\"]", "[null]"))),
                  BYTES("s", "\0\0\0\0\0\0\0\0")},
         .want = "a is shown as bytes: its encoding odd is not known\n"},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "30", "1"),
                                COLUMNS("[\"l\",\"l_sizes\"]", "[\"list[png]\",\"ndarray:uint32\"]",
                                        "[null,null]"))),
                  BYTES("s", "\1\0\0\0\14\0\0\0\36\0\0\0\10\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\4\0")},
         .want = " l_sizes l_sizes_ "},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "30", "1"),
                                COLUMNS("[\"l_sizes\",\"l\"]", "[\"ndarray:uint32\",\"list[png]\"]",
                                        "[null,null]"))),
                  BYTES("s", "\1\0\0\0\14\0\0\0\36\0\0\0\2\0\0\0\10\0\0\0\4\0\0\0\0\0\0\0\0\0")},
         .want = " l_sizes_ "},
        {.file = {FILE_OF("index.json",
                          SHARD(RAW("s", "1", "1"), COLUMNS("[\"a\"]", "[1]", "[8]")))},
         .want = "index.json: column 0: expected a name, an encoding"},
        {.file = {FILE_OF("s.mds", "1")},
         .want = "s.mds: s.mds: expected index.json in its folder, which says what is in a shard "
                 "of MDS"},
    };

    check_rows("mds", NULL, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_mindrecord)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("x0", "{      }|")},
         .want = "x0: header: expected version 2.0 or 3.0, got none"},
        {.file = {FILE_OF(
             "x0", "{\"version\":\"4.0\",\"header_size\":16384,\"page_size\":32768,\"shard_"
                   "addresses\":[\"x0\"],\"shard_id\":0,\"schema\":[{\"blob_fields\":[\"b\"],"
                   "\"schema\":{\"b\":{\"type\":\"bytes\"}}}],\"page\":[]}|")},
         .want = "got 4.0"},
        {.file = {FILE_OF(
             "x0", "{\"version\":\"3.0\",\"page_size\":32768,\"shard_addresses\":[\"x0\"],\"shard_"
                   "id\":0,\"schema\":[{\"blob_fields\":[\"b\"],\"schema\":{\"b\":{\"type\":"
                   "\"bytes\"}}}],\"page\":[]}|")},
         .want = "x0: header: expected header_size from 16384 to 134217728, got none"},
        {.file = {FILE_OF(
             "x0", "{\"version\":\"3.0\",\"header_size\":16383,\"page_size\":32768,\"shard_"
                   "addresses\":[\"x0\"],\"shard_id\":0,\"schema\":[{\"blob_fields\":[\"b\"],"
                   "\"schema\":{\"b\":{\"type\":\"bytes\"}}}],\"page\":[]}|")},
         .want = "header_size from 16384 to 134217728, got another value"},
        {.file = {FILE_OF(
             "x0", "{\"version\":\"3.0\",\"header_size\":16384,\"page_size\":32767,\"shard_"
                   "addresses\":[\"x0\"],\"shard_id\":0,\"schema\":[{\"blob_fields\":[\"b\"],"
                   "\"schema\":{\"b\":{\"type\":\"bytes\"}}}],\"page\":[]}|")},
         .want = "x0: header: expected page_size from 32768 to 268435456, got another value"},
        {.file = {FILE_OF("x0", MIND("", "0", BLOB_B, "") "|")},
         .want = "x0: header: expected from 1 to 65536 shard_addresses, got 0"},
        {.file = {FILE_OF("x0", MIND(X0, "1", BLOB_B, "") "|")},
         .want = "x0: header: expected shard_id from 0 to 0, got another value"},
        {.file = {FILE_OF("x0", MIND(X0, "-1", BLOB_B, "") "|")},
         .want = "expected shard_id from 0 to 0, got another value"},
        {.file = {FILE_OF("x0", MIND("\"\"", "0", BLOB_B, "") "|")},
         .want = "x0: header: expected names in shard_addresses"},
        {.file = {FILE_OF("x0", MIND(X0, "0", "", "") "|")},
         .want = "x0: schema: expected one, with 1 to 100 fields, got 0 with 0"},
        {.file = {FILE_OF("x0", MIND(X0, "0", COLUMN("", "\"type\":\"odd\""), "") "|")},
         .want = "x0: schema: field 'b': expected type bytes, string, int32, int64, float32, or "
                 "float64"},
        {.file = {FILE_OF("x0", MIND(X0, "0", COLUMN("", "\"type\":\"number\""), "") "|")},
         .want = "x0: field 'b': pre-release MindRecord schema type 'number'"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0", COLUMN("", "\"type\":\"string\",\"shape\":[1]"), "") "|")},
         .want = "x0: schema: field 'b': expected no shape of a string"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[]"), "") "|")},
         .want = "expected a shape of 1 to 8 axes"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0",
                               COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[1,1,1,1,1,1,1,1,1]"),
                               "") "|")},
         .want = "expected a shape of 1 to 8 axes"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[-2]"), "") "|")},
         .want = "expected axes of 0 to 4294967295, of which one may be -1"},
        {.file = {FILE_OF(
             "x0",
             MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[4294967296]"), "") "|")},
         .want = "expected axes of 0 to 4294967295, of which one may be -1"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[\"a\"]"), "") "|")},
         .want = "expected axes of 0 to 4294967295, of which one may be -1"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\",\"shape\":[-1,-1]"), "") "|")},
         .want = "of which one may be -1"},
        {.file = {FILE_OF("x0", MIND(X0, "0", COLUMN("\"c\"", "\"type\":\"bytes\""), "") "|")},
         .want = "x0: schema: field 'c': expected blob_fields that are fields, each once"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0", COLUMN("\"b\",\"b\"", "\"type\":\"bytes\""), "") "|")},
         .want = "expected blob_fields that are fields, each once"},
        {.file = {FILE_OF("x0", MIND(X0, "0", COLUMN("\"b\"", "\"type\":\"int32\""), "") "|")},
         .want = "expected bytes or an array, as blob_fields say"},
        {.file = {FILE_OF("x0", MIND(X0, "0", COLUMN("", "\"type\":\"bytes\""), "") "|")},
         .want = "expected blob_fields to have it, as it is bytes or an array"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B,
                                     "{\"page_id\":0,\"page_type\":\"ODD\",\"page_type_id\":0,"
                                     "\"start_row_id\":0,\"end_row_id\":0,\"page_size\":0}") "|")},
         .want = "x0: header: page 0 of the list: expected page_type RAW_DATA or BLOB_DATA"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0", BLOB_B,
                               "{\"page_id\":1,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,"
                               "\"start_row_id\":0,\"end_row_id\":0,\"page_size\":0}") "|")},
         .want = "page 0 of the list: expected a page_id of its own below the number of pages"},
        {.file = {FILE_OF(
             "x0",
             MIND(X0, "0", BLOB_B,
                  "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_id\":"
                  "0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":0,\"page_type\":\"BLOB_DATA\","
                  "\"page_type_id\":1,\"start_row_id\":0,\"end_row_id\":0,\"page_size\":0}") "|")},
         .want = "page 1 of the list: expected a page_id of its own"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B, PAGE("0", "32769")) "|")},
         .want = "expected used bytes, at most page_size"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0", BLOB_B,
                               "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,"
                               "\"start_row_id\":1,\"end_row_id\":0,\"page_size\":0}") "|")},
         .want = "expected page_type_id, and start_row_id up to end_row_id"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B, PAGE("2", "15")) "|")},
         .want = "expected no more rows than its bytes can have"},
        {.file = {FILE_OF(
             "x0",
             MIND(X0, "0", BLOB_B,
                  "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_id\":"
                  "0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":1,\"page_type\":\"BLOB_DATA\","
                  "\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,\"page_size\":0}") "|")},
         .want = "x0: header: row group 0 has two blob pages"},
        {.file = {FILE_OF("x0",
                          MIND(X0, "0", BLOB_B,
                               "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,"
                               "\"start_row_id\":1,\"end_row_id\":1,\"page_size\":0}") "|")},
         .want = "x0: header: expected row 0 in the next blob page, got row 1"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", BLOB_B,
                        "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_"
                        "id\":0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":1,\"page_type\":"
                        "\"RAW_DATA\",\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,"
                        "\"page_size\":8,\"row_group_ids\":[{\"id\":0,\"offset\":9}]}") "|")},
         .want =
             "page 1 of the list: expected row groups, each with an id and an offset in the page"},
        {.file = {FILE_OF(
             "x0", MIND(X0, "0", BLOB_B,
                        "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_"
                        "id\":0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":1,\"page_type\":"
                        "\"RAW_DATA\",\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,"
                        "\"page_size\":8,\"row_group_ids\":[{\"id\":1,\"offset\":0}]}") "|")},
         .want = "expected row groups that blob pages have"},
        {.file = {FILE_OF(
             "x0",
             MIND(X0, "0", BLOB_B,
                  "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_id\":"
                  "0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":1,\"page_type\":\"RAW_DATA\","
                  "\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,\"page_size\":8,\"row_"
                  "group_ids\":[{\"id\":0,\"offset\":0}]},{\"page_id\":2,\"page_type\":\"RAW_"
                  "DATA\",\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,\"page_size\":8,"
                  "\"row_group_ids\":[{\"id\":0,\"offset\":0}]}") "|")},
         .want = "page 2 of the list: expected row groups that no other raw page has"},
        {.file = {FILE_OF(
             "x0",
             MIND(X0, "0", BLOB_B,
                  "{\"page_id\":0,\"page_type\":\"BLOB_DATA\",\"page_type_id\":0,\"start_row_id\":"
                  "0,\"end_row_id\":0,\"page_size\":0},{\"page_id\":1,\"page_type\":\"RAW_DATA\","
                  "\"page_type_id\":0,\"start_row_id\":0,\"end_row_id\":0,\"page_size\":8,\"row_"
                  "group_ids\":[{\"id\":0,\"offset\":0},{\"id\":0,\"offset\":0}]}") "|")},
         .want = "expected no more row groups than there are blob pages"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "x0: found\n"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B, PAGE("2", "22")) "|abc|de")},
         .want = "x0: row 0: field 'b' cannot be read"},
        {.file = {FILE_OF("x0", MIND(X0, "0", BLOB_B, PAGE("1", "21")) "|abc|de")},
         .want = "x0: byte 16395: expected the end of a page after its last row, got 10 bytes, "
                 "which are "
                 "ignored\n"},
        {.file = {FILE_OF("x0", MIND(X0_X1, "0", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("x1", MIND(X0_X1, "1", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "all: found\n",
         .is_set = true},
        {.file = {FILE_OF("y", MIND(X0_X1, "0", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("x1", MIND(X0_X1, "1", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "y was written as 'd/x0'; the order of shards is that of their numbers\n",
         .is_set = true},
        {.file = {FILE_OF("x1", MIND(X0_X1, "1", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("y1", MIND(X0_X1, "1", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "all: all: expected 2 shards, got none that is shard 0, 'd/x0'",
         .is_set = true},
        {.file = {FILE_OF("x0", MIND(X0_X1, "0", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("y0", MIND(X0_X1, "0", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "all: all: expected each shard once, got shard 0 as x0 and as y0",
         .is_set = true},
        {.file = {FILE_OF("x0", MIND(X0_X1, "0", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("x1", MIND(X0_X1, "1", BLOB_B, PAGE("2", "21")) "|abc|de"),
                  FILE_OF("z", MIND(X0, "0", BLOB_B, PAGE("2", "21")) "|abc|de")},
         .want = "x: found\n",
         .is_set = true},
        {.file = {BYTES("x0", "1234567")},
         .want = "x0: expected the length of a header, got 7 bytes"},
        {.file = {BYTES("x0", "\7\0\0\0\0\0\0\0{}")},
         .want =
             "x0: byte 0: expected the length of a header in the file, at most 134217728, got 7"},
        {.file = {BYTES("x0", "\11\0\0\0\0\0\0\0{}      ")}, .want = "at most 134217728, got 9"},
        {.file = {BYTES("x0", "1234ENCRYPT")},
         .want = "x0: byte 4: encrypted MindRecord, which is not supported"},
    };

    check_rows("mindrecord", make_mindrecord, rows, ARRAY_LEN(rows));
}

UNIT_TEST(test_parquet)
{
    static const struct row rows[] = {
        {.file = {FILE_OF("x", "t:T:a,b|")},
         .want = "x: column 't': pages of a type that is not known are skipped\n"},
        {.file = {FILE_OF("x", "n:i:0,1,-,2,-1|{\"info\":{\"features\":{\"n\":{\"_type\":"
                               "\"ClassLabel\",\"names\":[\"a\",\"b\"]}}}}")},
         .want = "x: column 'n': values that are no number of a class: 3, the first in row 2\n"},
        {.file = {FILE_OF("x", "j:j:{},[1,\"a\\u0000\",-,[|")},
         .want = "x: column 'j': values that are not JSON, or have numbers beyond 64 bits: 2, the "
                 "first in row 1\n"},
        {.file = {FILE_OF("x", "t:t:a,\xc3\xa9,-,b\xc3|")},
         .want = "x: column 't': values that are not UTF-8: 1, the first in row 3\n"},
        {.file = {FILE_OF("x", "j:j:\"\xff\",{,[|")},
         .want = "x: column 'j': values that are not JSON or not UTF-8: 3, the first in row 0\n"},
        {.file = {FILE_OF("x", "j:j:\"\xff\"|")},
         .want = "x: column 'j': values that are not UTF-8: 1, the first in row 0\n"},
    };

    check_rows("parquet", make_parquet, rows, ARRAY_LEN(rows));
}
