/* XGBoost's binary DMatrix in memory: the files of each version against what they were made from,
 * the text that shows them against the parser of text, and files that are refused. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/decimal.h"
#include "format/core/extents.h"
#include "format/libsvm/dmatrix.h"
#include "format/libsvm/line.h"
#include "support/libsvm_make.h"
#include "support/one_store.h"
#include "support/unit.h"

extern const struct format format_dmatrix;

enum { ROWS = 6, COLUMNS = 12, ENTRIES = 9 };

static const uint64_t offsets[ROWS + 1] = {0, 3, 3, 4, 7, 9, 9};
static const uint32_t indexes[ENTRIES] = {2, 0, 11, 5, 1, 5, 5, 0, 11}; /* row 0 is not sorted */
static const float values[ENTRIES] = {0.5f, -1.25f, NAN, 1e-40f, 3, 2, -7.5f, INFINITY, 0.1f};
static const float numbers[2 * ROWS] = {1, 0.1f, -2, 3.5f, 1e30f, 0, 5, 6, 7, 8, 9, 10};
static const uint32_t groups[] = {0, 2, 2, 5, 6};

/* What a file has besides labels. */
struct recipe {
    unsigned version[3], fields;
    unsigned labels;                           /* of a row */
    uint64_t groups, weights, margins, bounds; /* numbers */
    bool names, cats, more;
};

static const struct recipe recipes[] = {
    {.version = {1, 0, 0}, .fields = 7, .labels = 1, .margins = 2 * ROWS},
    {.version = {1, 1, 0}, .fields = 9, .labels = 1, .weights = ROWS, .bounds = ROWS},
    {.version = {1, 5, 2}, .fields = 11, .labels = 1, .groups = 5, .weights = 4, .names = true},
    {.version = {1, 7, 4},
     .fields = 12,
     .labels = 2,
     .groups = 5,
     .weights = ROWS,
     .margins = ROWS},
    {.version = {2, 1, 0}, .fields = 12, .bounds = ROWS, .names = true},
    {.version = {3, 1, 0}, .fields = 15, .labels = 1, .cats = true, .more = true},
};

static void add_number(struct text *t, uint64_t v, unsigned width)
{
    uint8_t bytes[8];

    store_le64(bytes, v);
    text_add_bytes(t, (const char *)bytes, width);
}

static void add_string(struct text *t, const char *s)
{
    add_number(t, strlen(s), 8);
    text_add_bytes(t, s, strlen(s));
}

static void add_head(struct text *t, const char *name, unsigned type, bool is_scalar)
{
    add_string(t, name);
    add_number(t, type, 1);
    add_number(t, is_scalar, 1);
}

/* A vector of n numbers of 4 bytes. */
static void add_vector(struct text *t, const char *name, unsigned type, const void *number,
                       uint64_t n, uint64_t columns)
{
    add_head(t, name, type, false);
    add_number(t, n / columns, 8);
    add_number(t, columns, 8);
    add_number(t, n, 8);
    text_add_bytes(t, number, 4 * n);
}

static void add_names(struct text *t, const char *name, bool any)
{
    add_head(t, name, 5, false);
    add_number(t, any ? COLUMNS : 0, 8);
    add_number(t, 1, 8);
    add_number(t, any ? COLUMNS : 0, 8);
    for (unsigned i = 0; i < COLUMNS && any; i++)
        add_string(t, i ? "int" : "a \"b\"");
}

static void make(const struct recipe *m, struct text *t)
{
    const unsigned columns = m->version[0] == 1 && m->version[1] < 6 ? 1 : 0; /* before 1.6 */
    const struct {
        const char *name;
        uint64_t n;
    } scalars[] = {{"num_row", ROWS}, {"num_col", COLUMNS}, {"num_nonzero", ENTRIES}};
    unsigned field = 7;

    add_number(t, 0xffffab01, 4);
    text_add(t, "version:");
    for (unsigned i = 0; i < 3; i++)
        add_number(t, m->version[i], 4);
    add_number(t, m->fields, 8);
    for (unsigned i = 0; i < ARRAY_LEN(scalars); i++) {
        add_head(t, scalars[i].name, 4, true);
        add_number(t, scalars[i].n, 8);
    }
    add_vector(t, "labels", 1, numbers, m->labels * ROWS, columns || !m->labels ? 1 : m->labels);
    add_vector(t, "group_ptr", 3, groups, m->groups, 1);
    add_vector(t, "weights", 1, numbers, m->weights, 1);
    add_vector(t, "base_margin", 1, numbers, m->margins,
               columns || !m->margins ? 1 : m->margins / ROWS);
    if (field < m->fields) {
        add_vector(t, "labels_lower_bound", 1, numbers, m->bounds, 1);
        add_vector(t, "labels_upper_bound", 1, numbers + 3, m->bounds, 1);
        field += 2;
    }
    if (field < m->fields) {
        add_names(t, "feature_names", m->names);
        add_names(t, "feature_types", m->names);
        field += 2;
    }
    if (field++ < m->fields)
        add_vector(t, "feature_weights", 1, numbers, m->names ? COLUMNS : 0, 1);
    if (m->cats) {
        add_head(t, "cats", 5, false);
        add_number(t, 3, 8);
        add_number(t, 1, 8);
        add_number(t, 3, 8);
        text_add(t, "{i}");
    }
    if (m->more) {
        add_head(t, "later", 2, true);
        add_number(t, 7, 8);
        add_names(t, "later names", true);
    }
    add_number(t, ROWS + 1, 8);
    for (unsigned i = 0; i <= ROWS; i++)
        add_number(t, offsets[i], 8);
    add_number(t, ENTRIES, 8);
    for (unsigned i = 0; i < ENTRIES; i++) {
        text_add_bytes(t, (const char *)&indexes[i], 4);
        text_add_bytes(t, (const char *)&values[i], 4);
    }
}

struct opened {
    struct memo *memo;
    struct found found;
};

static void open_files(struct text *t, size_t n, const struct index_store *keep, struct opened *ret)
{
    struct blob *blob[2];
    struct format_setup setup = {.keep = keep ? keep : &no_store};

    assert_int_equal(memo_new(1 << 20, &ret->memo), 0);
    setup.memo = ret->memo;
    for (size_t i = 0; i < n; i++)
        blob[i] = memory_blob_new(i ? "b" : "a", t[i].data, t[i].len, t[i].len, NULL);
    assert_int_equal(format_open(&format_dmatrix, blob, n, &setup, &ret->found), 0);
    for (size_t i = 0; i < ret->found.n; i++)
        while (ret->found.item[i].ds && !dataset_prepare(ret->found.item[i].ds))
            ;
}

static void close_files(struct opened *o)
{
    found_release(&o->found);
    memo_free(o->memo);
}

/* The bytes of a field of all samples, backwards. */
static void check(const struct dataset *ds, const char *name, const void *want, size_t len)
{
    const uint64_t backwards[ROWS] = {5, 4, 3, 2, 1, 0};
    struct list_selection list;
    struct diag d = DIAG_INIT;
    struct bytes found;

    mixed_init(&list, backwards, ROWS);
    assert_int_equal(field_bytes(ds, name, &list.sel, &found, &d), 0);
    assert_int_equal(found.len, len);
    for (size_t i = 0, each = len / ROWS; i < ROWS; i++)
        assert_memory_equal(found.at + i * each, (const uint8_t *)want + (ROWS - 1 - i) * each,
                            each);
    free(found.at);
}

static void check_or_none(const struct dataset *ds, const char *name, const void *want, uint64_t n)
{
    if (n)
        check(ds, name, want, 4 * n);
    else
        assert_null(dataset_field(ds, name));
}

/* Each line has its size by arithmetic, and is the row again. */
static void check_text(const struct dataset *ds, const struct recipe *m)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        float label[2], value[ENTRIES];
        uint32_t index[ENTRIES];
        struct libsvm_row row = {.label = label,
                                 .label_capacity = 2,
                                 .index = index,
                                 .value = value,
                                 .capacity = ENTRIES};
        struct libsvm_fault fault;
        struct one_sample one;
        struct bytes found;
        float last = -INFINITY;

        sample_init(&one, i);
        assert_int_equal(field_bytes(ds, "row", &one.sel, &found, NULL), 0);
        found.at = realloc(found.at, found.len + DECIMAL_PAD);
        assert_non_null(found.at);
        assert_int_equal(found.at[found.len - 1], '\n');
        assert_int_equal(libsvm_line_parse(found.at, found.len - 1, LIBSVM_ANY, &row, &fault), 0);
        assert_int_equal(row.n, offsets[i + 1] - offsets[i]);
        assert_int_equal(row.n_labels, m->labels);
        assert_memory_equal(label, numbers + m->labels * i, 4 * m->labels);
        assert_int_equal(row.columns & LIBSVM_WEIGHT, m->weights == ROWS ? LIBSVM_WEIGHT : 0);
        assert_int_equal(row.columns & LIBSVM_QID, m->groups ? LIBSVM_QID : 0);
        assert_true(m->weights != ROWS || row.weight == numbers[i]);
        for (uint64_t k = 0; k < row.n; k++) {
            assert_true((float)index[k] >= last);
            last = (float)index[k];
        }
        if (i == 3)
            assert_memory_equal(value, values + offsets[3], 3 * 4);
        free(found.at);
    }
}

static void check_dataset(const struct dataset *ds, const struct recipe *m)
{
    const int64_t qid[ROWS] = {0, 0, 2, 2, 2, 3};
    float weight[ROWS];

    struct extent extent[EXTENTS_MOST];

    assert_int_equal(dataset_state(ds), DATASET_READY);
    assert_int_equal(ds->samples, ROWS);
    for (unsigned i = 0; i < ds->n_fields; i++) /* also those that no byte of a file shows */
        assert_in_range(dataset_extents(ds, 0, &ds->field[i], extent), 0, EXTENTS_MOST);
    assert_int_equal(dataset_field(ds, "x")->dim[0], COLUMNS);
    for (unsigned i = 0; i < ROWS; i++)
        weight[i] = numbers[m->weights == 4 ? (unsigned)qid[i] : i];
    check_or_none(ds, "label", numbers, m->labels * ROWS);
    check_or_none(ds, "weight", weight, m->weights ? ROWS : 0);
    check_or_none(ds, "base_margin", numbers, m->margins);
    check_or_none(ds, "label_lower_bound", numbers, m->bounds);
    check_or_none(ds, "label_upper_bound", numbers + 3, m->bounds);
    if (m->groups)
        check(ds, "qid", qid, sizeof(qid));
    if (m->labels)
        check_text(ds, m);
    else
        assert_null(dataset_field(ds, "row"));
}

UNIT_TEST(test_dmatrix__versions__what_was_written)
{
    for (size_t i = 0; i < ARRAY_LEN(recipes); i++) {
        AUTO_TEXT struct text t = {0}, names = {0};
        AUTO(memory_keep_release) struct memory_keep keep;
        const struct dataset *ds;
        struct opened o;

        make(&recipes[i], &t);
        memory_keep_init(&keep, false);
        for (unsigned again = 0; again < 2; again++) { /* the second time with the kept index */
            open_files(&t, 1, &keep.keep, &o);
            assert_int_equal(o.found.n, 1);
            ds = o.found.item[0].ds;
            assert_non_null(ds);
            check_dataset(ds, &recipes[i]);
            close_files(&o);
        }
        assert_int_equal(keep.loads, 1);
    }
}

UNIT_TEST(test_dmatrix__csc_value__sorted_with_nan_last)
{
    /* The rows are backwards. */
    const float want[ENTRIES] = {-1.25f, INFINITY, 3, 0.5f, -7.5f, 1e-40f, 2, 0.1f, NAN};
    const uint32_t rows[ENTRIES] = {5, 1, 2, 5, 2, 3, 2, 1, 5};
    const uint64_t backwards[ROWS] = {5, 4, 3, 2, 1, 0};
    AUTO_TEXT struct text t = {0};
    struct list_selection list;
    struct opened o;
    unsigned seen = 0;

    make(&recipes[0], &t);
    open_files(&t, 1, NULL, &o);
    mixed_init(&list, backwards, ROWS);
    for (unsigned i = 0; i < o.found.item[0].ds->n_fields; i++) {
        const struct dataset *ds = o.found.item[0].ds;
        const struct field *f = &ds->field[i];
        uint8_t bytes[4 * ENTRIES];
        bool is_data = !strcmp(f->name, "data");

        if (!field_is_in(f, IN_CSC_VALUE) || (!is_data && strcmp(f->name, "indices") != 0))
            continue;
        assert_int_equal(f->ops->read(READ_WAITS, ds, f, &list.sel, 0, sizeof(bytes), bytes, NULL),
                         0);
        assert_memory_equal(bytes, is_data ? (const void *)want : rows, sizeof(bytes));
        seen++;
    }
    assert_int_equal(seen, 2);
    close_files(&o);
}

UNIT_TEST(test_dmatrix__two_files__one_dataset)
{
    struct text t[2] = {{0}, {0}};
    const struct dataset *all;
    struct opened o;
    struct one_sample one;
    struct bytes found;

    make(&recipes[2], &t[0]);
    make(&recipes[2], &t[1]);
    open_files(t, 2, NULL, &o);
    all = o.found.item[found_find(&o.found, "all")].ds;
    assert_int_equal(all->samples, 2 * ROWS);
    sample_init(&one, ROWS + 2); /* group 2 of the second file, of 4 groups each */
    assert_int_equal(field_bytes(all, "qid", &one.sel, &found, NULL), 0);
    assert_int_equal(load_le64(found.at), 6);
    free(found.at);
    assert_int_equal(field_bytes(all, "label", &one.sel, &found, NULL), 0);
    assert_memory_equal(found.at, &numbers[2], 4);
    free(found.at);
    close_files(&o);
    text_release(&t[1]);

    t[1] = (struct text){0};
    make(&recipes[0], &t[1]); /* others have other fields */
    open_files(t, 2, NULL, &o);
    assert_null(o.found.item[found_find(&o.found, "all")].ds);
    assert_non_null(strstr(o.found.item[found_find(&o.found, "all")].reason,
                           "got labels (1 per row), group_ptr (0 per row), weights (0 per row)"));
    close_files(&o);
    text_release(&t[0]);
    text_release(&t[1]);
}

/* ---- refused ---- */

/* A file of recipe 3 in which bytes are others, or that ends earlier or later. */
static const struct {
    const char *of;  /* the name of the field, or of nothing: the end of the file, */
    int off;         /* and from its end on the byte */
    uint64_t number; /* of 8 bytes that is there then */
    int more;        /* bytes at the end */
    const char *says;
} bad[] = {
    {"version:", -12, 0xab02, 0, "expected 01 AB FF FF"},
    {"version:", -8, 2, 0, "written by XGBoost before 1.0"},
    {"version:", 0, 4 | UINT64_C(1) << 32, 0,
     "byte 12: expected version 1.0 to 3.x of XGBoost, got 4.1"},
    {"version:", 12, 6, 0, "expected at least 12 fields in version 1.7, got 6"},
    {"num_row", -7, UINT64_C(0x04776f725f6d7578), 0,
     "expected field num_row of type 4, got 'xum_row'"},
    {"num_row", 2, 7, 0, "labels of a multiple of 7 numbers, got 12"},
    {"num_row", 2, 3, 0, "at most 3 groups, as many as rows, got 4"},
    {"num_col", 2, UINT64_C(1) << 33, 0, "at most 2^32 columns"},
    {"num_nonzero", 2, 8, 0, "expected 8 entries as num_nonzero says, got 9"},
    {"labels", 2, 5, 0, "labels of 5 times 2 elements, got 12"},
    {"labels", 2, UINT64_C(1) << 63, 0, "elements, got 12"},
    {"labels", 18, UINT64_C(1) << 60, 0, "elements, got"},
    {"group_ptr", 26, UINT64_C(3) << 32 | 3, 0,
     "expected group 0 to begin at a row from 0 to 0, got 3"},
    {"group_ptr", 30, 7, 0, "expected group 1 to begin at a row from 0 to 6, got 7"},
    {"group_ptr", 38, 1 | UINT64_C(6) << 32, 0,
     "expected group 3 to begin at a row from 2 to 6, got 1"},
    {"group_ptr", 38, 5 | UINT64_C(5) << 32, 0,
     "expected group 4 to begin at a row from 6 to 6, got 5"},
    {"", -8 * ENTRIES - 8, 8, 0, "num_nonzero says, got 8"},
    {"", -8 * ENTRIES - 16, 8, 0, "expected a place from 9 to 9, where row 6 begins, got 8"},
    {"", -8 * ENTRIES - 24, 10, 0, "expected a place from 7 to 9, where row 5 begins, got 10"},
    {"", -8 * ENTRIES - 64, 1, 0, "expected a place from 0 to 0, where row 0 begins, got 1"},
    {"", -8 * ENTRIES - 72, 6, 0, "expected places of 6 rows and of their end, got 6"},
    {"", 0, 0, -1, "entries of 9 times 8 bytes, got the end of the file after 71"},
    {"", 0, 0, 1, "expected the end of the file, got 1 bytes more"},
    {"", 0, 0, -8 * ENTRIES - 1, "expected the number of entries"},
    {"", 0, 0, -8 * ENTRIES - 20, "expected places of rows of 7 times 8 bytes"},
};

static size_t end_of(const struct text *t, const char *word)
{
    const char *found = *word ? memmem(t->data, t->len, word, strlen(word)) : NULL;

    assert_true(found || !*word);
    return found ? (size_t)(found - t->data) + strlen(word) : t->len;
}

UNIT_TEST(test_dmatrix__bad_files__say_where_and_what)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_TEXT struct text t = {0};
        const char *reason;
        struct opened o;
        size_t at;

        make(&recipes[3], &t);
        add_number(&t, 0, 8);
        t.len -= 8;
        at = end_of(&t, bad[i].of) + (size_t)bad[i].off;
        if (!bad[i].more)
            store_le64((uint8_t *)t.data + at, bad[i].number);
        t.len = (size_t)((int)t.len + bad[i].more);
        open_files(&t, 1, NULL, &o);
        assert_int_equal(o.found.n, 1);
        reason = o.found.item[0].ds ? o.found.item[0].ds->reason.text : o.found.item[0].reason;
        assert_int_equal(o.found.item[0].ds ? o.found.item[0].ds->failed : o.found.item[0].error,
                         -EBADMSG);
        if (!strstr(reason, bad[i].says) || strncmp(reason, "a: byte ", 8) != 0)
            fail_msg("bad[%zu]: '%s', expected '%s'", i, reason, bad[i].says);
        close_files(&o);
    }
}

/* More rows than are indexed in one step; the last one has all entries. */
UNIT_TEST(test_dmatrix__many_rows__indexed_in_steps)
{
    static const struct recipe recipe = {.version = {1, 0, 0}, .fields = 7};
    const uint64_t rows = 3 << 16;
    AUTO_TEXT struct text t = {0};
    const struct dataset *ds;
    struct one_sample one;
    struct bytes found;
    struct opened o;

    make(&recipe, &t);
    store_le64((uint8_t *)t.data + end_of(&t, "num_row") + 2, rows);
    t.len -= 8 + 8 * (ROWS + 1) + 8 + 8 * ENTRIES;
    add_number(&t, rows + 1, 8);
    for (uint64_t i = 0; i <= rows; i++)
        add_number(&t, i < rows ? 0 : ENTRIES, 8);
    add_number(&t, ENTRIES, 8);
    for (unsigned i = 0; i < ENTRIES; i++)
        add_number(&t, i, 8);
    open_files(&t, 1, NULL, &o);
    ds = o.found.item[0].ds;
    assert_int_equal(dataset_state(ds), DATASET_READY);
    assert_int_equal(ds->samples, rows);
    sample_init(&one, rows - 1);
    assert_int_equal(field_bytes(ds, "indices", &one.sel, &found, NULL), 0);
    assert_int_equal(found.len, 4 * ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_int_equal(load_le32(found.at + 4 * (size_t)i), i);
    free(found.at);
    close_files(&o);
}

/* Names that a file with holes has room for. */
UNIT_TEST(test_dmatrix__many_names__refused_before_they_are_read)
{
    const uint64_t n = UINT64_C(1) << 27, count[] = {n, 1, n};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    struct dmatrix m;
    size_t at;

    make(&recipes[3], &t);
    at = end_of(&t, "feature_names") + 2;
    for (size_t i = 0; i < ARRAY_LEN(count); i++)
        store_le64((uint8_t *)t.data + at + 8 * i, count[i]);
    blob = memory_blob_new("a", t.data, at + sizeof(count), at + sizeof(count) + 8 * n, NULL);
    assert_int_equal(dmatrix_read(blob, &m, &d), -EBADMSG);
    assert_diag_has(&d, "feature_names of at most 2^26 strings, got 134217728");
}

static void add_report(void *ctx, const char *text)
{
    text_add(ctx, "%s\n", text);
}

/* The head of a file is good, so other rows can be read. */
UNIT_TEST(test_dmatrix__index_beyond_num_col__that_row_fails)
{
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    struct one_sample one;
    struct bytes found;
    struct opened o;
    struct text reports = {0};
    size_t end_of_file;

    make(&recipes[0], &t);
    store_le32((uint8_t *)t.data + t.len - 8, COLUMNS);
    open_files(&t, 1, NULL, &o);
    sample_init(&one, 4);
    assert_int_equal(field_bytes(o.found.item[0].ds, "data", &one.sel, &found, &d), -EBADMSG);
    assert_non_null(strstr(d.text, "expected an index below num_col, 12, got 12"));
    sample_init(&one, 3);
    assert_int_equal(field_bytes(o.found.item[0].ds, "data", &one.sel, &found, NULL), 0);
    free(found.at);
    close_files(&o);

    /* A check says the first of each row: here of rows 0, 2 and 4. */
    for (unsigned i = 0; i < ENTRIES; i++)
        store_le32((uint8_t *)t.data + t.len - 8 * (ENTRIES - i), i < 4 || i == 8 ? COLUMNS : 0);
    end_of_file = t.len;
    open_files(&t, 1, NULL, &o);
    assert_int_equal(o.found.item[0].ds->ops->check(o.found.item[0].ds, add_report, &reports, NULL),
                     0);
    text_release(&t);
    for (unsigned i = 0; i < 3; i++)
        text_add(&t, "a: byte %zu: expected an index below num_col, 12, got 12\n",
                 end_of_file - 8 * (ENTRIES - (size_t[]){0, 3, 8}[i]));
    assert_string_equal(reports.data, t.data);
    text_release(&reports);
    close_files(&o);
}
