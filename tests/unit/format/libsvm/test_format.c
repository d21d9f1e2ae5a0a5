/* Datasets of libsvm text in memory: every array against a model of the rows, every file in one
 * piece and in many, parts by dmlc's rule, bad rows, side files, kept indexes, and reads that
 * fail. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "base/text.h"
#include "format/libsvm/side.h"
#include "support/absent_blob.h"
#include "support/libsvm_make.h"
#include "support/one_store.h"
#include "support/random.h"
#include "support/unit.h"

/* ---- the expected rows ---- */

struct row {
    size_t start, len; /* of its text */
    float label, weight;
    int64_t qid;
    size_t first, n; /* features */
};

struct model {
    struct text text;
    size_t rows;
    struct row *row;
    size_t features;
    uint32_t *index;
    float *value;
    uint32_t largest;
};

struct recipe {
    size_t rows;
    uint64_t features; /* at most, per row */
    uint32_t index;    /* below */
    bool weight, qid, unsorted, odd_ends, mark;
};

/* A value of few digits, and its text. */
static float put_value(struct text *t, const char *before, uint64_t *rng)
{
    char text[32];

    snprintf(text, sizeof(text), "%s%d.%u", random_below(rng, 4) ? "" : "-",
             (int)random_below(rng, 1000), (unsigned)random_below(rng, 100));
    text_add(t, "%s%s", before, text);
    return strtof(text, NULL);
}

/* Sort features by index, stably. */
static void sort_features(uint32_t *index, float *value, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t k = i; k && index[k - 1] > index[k]; k--) {
            uint32_t other = index[k - 1];
            float v = value[k - 1];

            index[k - 1] = index[k];
            value[k - 1] = value[k];
            index[k] = other;
            value[k] = v;
        }
    }
}

static void add_row(struct model *m, const struct recipe *recipe, uint64_t *rng)
{
    struct row *row = &m->row[m->rows++];
    uint64_t n = recipe->features ? random_below(rng, recipe->features + 1) : 0;
    uint32_t step = (uint32_t)max_u64(recipe->index / (recipe->features + 1), 1), index = 0;

    *row = (struct row){.start = m->text.len, .first = m->features, .n = n, .weight = 1};
    row->label = put_value(&m->text, "", rng);
    if (recipe->weight)
        row->weight = put_value(&m->text, ":", rng);
    if (recipe->qid) {
        row->qid = (int64_t)random_next(rng) >> random_below(rng, 64);
        text_add(&m->text, " qid:%lld", (long long)row->qid);
    }
    for (uint64_t i = 0; i < n; i++) {
        index = recipe->unsorted ? (uint32_t)random_below(rng, recipe->index)
                                 : index + (uint32_t)random_below(rng, step);
        text_add(&m->text, " %u", index);
        m->index[m->features] = index;
        m->value[m->features++] = put_value(&m->text, ":", rng);
        m->largest = index > m->largest ? index : m->largest;
    }
    sort_features(m->index + row->first, m->value + row->first, n);
    row->len = m->text.len - row->start;
}

static void model_make(struct model *ret, const struct recipe *recipe, uint64_t seed)
{
    static const char *const ends[] = {"\n", "\r\n", "\r", "\n\n \n", " # c\n", "\n# 1 2:3\r\n"};
    uint64_t rng = RANDOM_SEED + seed;

    *ret = (struct model){0};
    ret->row = calloc(recipe->rows + 1, sizeof(*ret->row));
    ret->index = calloc(recipe->rows * recipe->features + 1, sizeof(*ret->index));
    ret->value = calloc(recipe->rows * recipe->features + 1, sizeof(*ret->value));
    if (recipe->mark)
        text_add(&ret->text, "\xef\xbb\xbf");
    for (size_t i = 0; i < recipe->rows; i++) {
        const char *end = ends[recipe->odd_ends ? random_below(&rng, ARRAY_LEN(ends)) : 0];

        add_row(ret, recipe, &rng);
        if (*end == ' ') /* a comment belongs to the row's text */
            ret->row[i].len += strlen(end) - 1;
        text_add(&ret->text, "%s", i + 1 < recipe->rows || rng % 2 ? end : "");
        if (i + 1 == recipe->rows && *end == ' ')
            ret->row[i].len = min_u64(ret->row[i].len, ret->text.len - ret->row[i].start);
    }
    assert_false(ret->text.failed);
}

static void model_release(struct model *m)
{
    text_release(&m->text);
    free(m->row);
    free(m->index);
    free(m->value);
}

static struct blob *blob_of(const char *name, const char *text, size_t len,
                            struct blob_faults *faults)
{
    return memory_blob_new(name, text, len, len, faults);
}

static struct blob *blob_of_text(const char *name, const char *text)
{
    return blob_of(name, text, strlen(text), NULL);
}

/* ---- checks ---- */

static void check_field(const struct dataset *ds, const char *name, const struct selection *sel,
                        struct text *want)
{
    struct diag d = DIAG_INIT;
    struct bytes found;
    int r = field_bytes(ds, name, sel, &found, &d);

    if (r != 0)
        fail_msg("%s: %d, %s", name, r, d.text);
    if (found.len != want->len || (want->len && memcmp(found.at, want->data, want->len) != 0))
        fail_msg("%s of %llu rows: not as the model", name, (unsigned long long)sel->count);
    free(found.at);
    text_release(want);
}

static void add(struct text *t, const void *bytes, size_t len)
{
    text_add_bytes(t, bytes, len);
}

static void check_matrix(const struct dataset *ds, const struct model *m,
                         const struct selection *sel, uint32_t shift)
{
    struct text data = {0}, indices = {0}, indptr = {0}, x = {0}, shape = {0};
    const uint64_t features = m->features ? (uint64_t)m->largest + 1 - shift : 0;
    const bool dense = features * sel->count < 1 << 19;
    float *row_x = calloc(dense && features ? features : 1, sizeof(*row_x));
    uint32_t sum = 0;

    add(&shape, &sel->count, 8);
    add(&shape, &features, 8);
    add(&indptr, &sum, 4);
    for (uint64_t i = 0; i < sel->count; i++) {
        const struct row *row;
        uint64_t sample;

        selection_samples(sel, i, 1, &sample);
        row = &m->row[sample];
        for (size_t k = row->first; k < row->first + row->n; k++) {
            uint64_t index = m->index[k] - shift;

            add(&indices, &index, features > UINT64_C(1) << 31 ? 8 : 4);
            if (dense)
                row_x[index] += m->value[k];
        }
        add(&data, m->value + row->first, row->n * 4);
        if (dense)
            add(&x, row_x, features * 4);
        for (size_t k = row->first; k < row->first + row->n && dense; k++)
            row_x[m->index[k] - shift] = 0;
        sum += (uint32_t)row->n;
        add(&indptr, &sum, 4);
    }
    check_field(ds, "data", sel, &data);
    check_field(ds, "indices", sel, &indices);
    check_field(ds, "indptr", sel, &indptr);
    check_field(ds, "shape", sel, &shape);
    if (dense)
        check_field(ds, "x", sel, &x);
    free(row_x);
    text_release(&x);
}

static void check_columns(const struct dataset *ds, const struct model *m,
                          const struct selection *sel)
{
    struct text label = {0}, weight = {0}, qid = {0}, row = {0}, index = {0};

    for (uint64_t i = 0; i < sel->count; i++) {
        uint64_t sample;

        selection_samples(sel, i, 1, &sample);
        add(&label, &m->row[sample].label, 4);
        add(&weight, &m->row[sample].weight, 4);
        add(&qid, &m->row[sample].qid, 8);
        add(&row, m->text.data + m->row[sample].start, m->row[sample].len);
        add(&row, "\n", 1);
        add(&index, &sample, 8);
    }
    check_field(ds, "label", sel, &label);
    check_field(ds, "row", sel, &row);
    check_field(ds, "index", sel, &index);
    if (dataset_field(ds, "weight"))
        check_field(ds, "weight", sel, &weight);
    if (dataset_field(ds, "qid"))
        check_field(ds, "qid", sel, &qid);
    text_release(&weight);
    text_release(&qid);
}

/* Too many for a matrix by columns. */
static bool has_many_columns(const struct dataset *ds)
{
    return dataset_field(ds, "x")->item_bytes > 64 << 20;
}

static void check_files(const struct dataset *ds, const struct selection *sel, unsigned ranges)
{
    const enum scope scope = sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES;

    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
            const struct file_kind *kind = &ds->folder[i].files[scope][k];
            struct bytes whole;
            int r;

            if (kind->field && !strcmp(kind->field->name, "x") &&
                kind->field->item_bytes * sel->count > 2 << 20)
                continue;
            r = render(READ_WAITS, ds, kind, sel, NULL, &whole);
            if (r == -EFBIG && !strncmp(kind->folder, "csc", 3) && has_many_columns(ds))
                continue;
            assert_int_equal(r, 0);
            if (!ranges_agree(ds, kind, sel, &whole, ranges))
                fail_msg("%s", kind->suffix);
            free(whole.at);
        }
    }
}

static void check_selection(const struct dataset *ds, const struct model *m,
                            const struct selection *sel, uint32_t shift, unsigned ranges)
{
    check_columns(ds, m, sel);
    check_matrix(ds, m, sel, shift);
    check_files(ds, sel, ranges);
}

/* Selections of every kind. */
static void check_dataset(const struct dataset *ds, const struct model *m, uint32_t shift,
                          unsigned ranges)
{
    const uint64_t n = m->rows;
    uint64_t *mixed = calloc(n + 5, sizeof(*mixed)), rng = RANDOM_SEED;
    struct list_selection list;
    struct selection some;

    assert_int_equal(dataset_state(ds), DATASET_READY);
    assert_false(ds->notes.n && !strstr(ds->notes.text.data, "kept"));
    assert_int_equal(ds->samples, n);
    for (uint64_t i = 0; i < n + 5 && n; i++)
        mixed[i] = i == 4 ? mixed[3] : random_below(&rng, n);
    in_order_init(&some, 0, n);
    check_selection(ds, m, &some, shift, ranges);
    in_order_init(&some, n / 3, n - n / 3);
    check_selection(ds, m, &some, shift, ranges);
    mixed_init(&list, mixed, n ? n + 5 : 0);
    check_selection(ds, m, &list.sel, shift, ranges);
    mixed_init(&list, mixed, n ? 3 : 0);
    check_selection(ds, m, &list.sel, shift, ranges);
    mixed_init(&list, mixed, 0);
    check_selection(ds, m, &list.sel, shift, ranges);
    for (uint64_t i = 0; i < n; i += 1 + n / 4) {
        struct one_sample one;

        sample_init(&one, i);
        check_selection(ds, m, &one.sel, shift, ranges);
    }
    free(mixed);
}

static const struct recipe recipes[] = {
    {.rows = 1, .features = 3, .index = 10},
    {.rows = 255, .features = 9, .index = 60, .weight = true},
    {.rows = 256, .features = 9, .index = 60, .qid = true, .odd_ends = true},
    {.rows = 257, .features = 9, .index = 60, .weight = true, .qid = true, .mark = true},
    {.rows = 1500, .features = 20, .index = 300, .unsorted = true, .odd_ends = true},
    {.rows = 300, .features = 0, .index = 1},
    {.rows = 100, .features = 5, .index = UINT32_MAX, .unsorted = true},
};

/* Every second one with helper threads. */
#ifdef ONLY_THREADS
#define FIRST 1
#define STEP  2
#else
#define FIRST 0
#define STEP  1
#endif

UNIT_TEST(test_libsvm__random_rows__arrays_and_files)
{
    struct pool *pool = NULL;

    assert_int_equal(pool_new(&pool), 0);
    for (size_t i = FIRST; i < ARRAY_LEN(recipes); i += STEP) {
        AUTO(libsvm_release) struct libsvm_made made;
        AUTO(model_release) struct model m;
        struct blob *blob;

        model_make(&m, &recipes[i], i);
        blob = blob_of("a.txt", m.text.data, m.text.len, NULL);
        assert_int_equal(
            libsvm_open(&blob, 1, &(struct format_options){0}, NULL, i % 2 ? pool : NULL, &made),
            0);
        assert_int_equal(made.found.n, 1);
        check_dataset(made.found.item[0].ds, &m, 0, 20);
    }
    pool_free(pool);
}

/* A file of several pieces of a pass, and blocks that are too large to be decoded at once. */
UNIT_TEST(test_libsvm__large_rows__arrays_and_files)
{
    const struct recipe recipe = {.rows = 400, .features = 7400, .index = 9000};
    static const uint64_t mixed[] = {399, 0, 256, 255, 256, 130};
    struct list_selection list;
    struct selection some;
    struct libsvm_made made;
    struct model m;
    struct blob *blob;

#ifdef ONLY_THREADS
    skip();
#endif
    model_make(&m, &recipe, 1);
    assert_true(m.text.len > 12 << 20 && m.row[256].start > 8 << 20);
    blob = blob_of("a.txt", m.text.data, m.text.len, NULL);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    in_order_init(&some, 230, 50);
    check_selection(made.found.item[0].ds, &m, &some, 0, 3);
    mixed_init(&list, mixed, ARRAY_LEN(mixed));
    check_selection(made.found.item[0].ds, &m, &list.sel, 0, 3);
    libsvm_release(&made);
    model_release(&m);
}

/* The rows of a model as files; file i begins with row cut[i]. The end of a file's last line may be
 * missing. */
static size_t cut_files(const struct model *m, const size_t *cut, size_t n, struct blob **ret)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    for (size_t i = 0; i < n; i++) {
        size_t from = i ? m->row[cut[i]].start : 0;
        size_t to = i + 1 < n ? m->row[cut[i + 1]].start : m->text.len;

        if (i + 1 < n && i % 2 == 0 && cut[i + 1] > cut[i])
            to = m->row[cut[i + 1] - 1].start + m->row[cut[i + 1] - 1].len;
        ret[i] = blob_of(names[i], m->text.data + from, to - from, NULL);
    }
    return n;
}

UNIT_TEST(test_libsvm__many_files__all)
{
    const struct recipe recipe = {
        .rows = 700, .features = 6, .index = 50, .qid = true, .odd_ends = true};
    const size_t cut[] = {0, 1, 1, 400};
    struct blob *blob[ARRAY_LEN(cut)];
    struct libsvm_made made;
    AUTO(model_release) struct model m;

    model_make(&m, &recipe, 7);
    cut_files(&m, cut, ARRAY_LEN(cut), blob);
    assert_int_equal(
        libsvm_open(blob, ARRAY_LEN(cut), &(struct format_options){0}, NULL, NULL, &made), 0);
    /* A file without rows has no qid: it cannot join the others. */
    assert_int_equal(made.found.n, 5);
    assert_non_null(strstr(made.found.item[4].reason, "qid"));
    libsvm_release(&made);

    cut_files(&m, (const size_t[]){0, 1, 300, 400}, 4, blob);
    assert_int_equal(libsvm_open(blob, 4, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(made.found.n, 5);
    check_dataset(libsvm_dataset(&made, "all"), &m, 0, 40);
    libsvm_release(&made);
}

/* ---- parts ---- */

/* formats.md, 2.5: read from x up to the end of its line, and past any more ends. */
static uint64_t adjust(const struct blob *const *blob, const uint8_t *const *text, size_t n,
                       uint64_t x)
{
    uint64_t start = 0;

    for (size_t i = 0; i < n; start += blob[i++]->size) {
        uint64_t at = x - start, size = blob[i]->size;

        if (x == start || x >= start + size)
            continue;
        while (at < size && text[i][at] != '\n' && text[i][at] != '\r')
            at++;
        while (at < size && (text[i][at] == '\n' || text[i][at] == '\r'))
            at++;
        return start + at;
    }
    return x;
}

static void check_parts(const struct dataset *ds, const struct blob *const *blob, size_t n,
                        uint64_t parts)
{
    uint64_t total = 0, step, next = 0;
    const uint8_t *text[4];

    for (size_t i = 0; i < n; i++) {
        uint8_t *bytes = malloc(blob[i]->size + 1);

        assert_int_equal(blob_pread(READ_WAITS, blob[i], bytes, blob[i]->size, 0), 0);
        text[i] = bytes;
        total += blob[i]->size;
    }
    step = ceil_div(total, parts);
    for (uint64_t part = 0; part < parts; part++) {
        uint64_t from = adjust(blob, text, n, min_u64(step * part, total));
        uint64_t to = adjust(blob, text, n, min_u64(step * (part + 1), total));
        uint64_t start, length, place = 0;

        ds->ops->share(ds, part, parts, &start, &length);
        assert_int_equal(start, next);
        next += length;
        /* The rows that start in [from, to), by their places from dataset_locate(). */
        for (uint64_t row = start; row < next; row++) {
            AUTO_TEXT struct text t = {0};
            unsigned long long at;
            char name;

            dataset_locate(ds, row, NULL, &t);
            assert_int_equal(sscanf(t.data, "%c:%llu", &name, &at), 2);
            place = at;
            if (place == 3 && text[name - 'a'][0] == 0xef)
                place = 0;
            for (char before = 'a'; before < name; before++)
                place += blob[before - 'a']->size;
            if (place < from || place >= to)
                fail_msg("part %llu of %llu: row %llu", (unsigned long long)part,
                         (unsigned long long)parts, (unsigned long long)row);
        }
    }
    assert_int_equal(next, ds->samples);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)text[i]);
}

UNIT_TEST(test_parts__every_number__as_dmlc)
{
    static const struct recipe kinds[] = {
        {.rows = 20, .features = 2, .index = 10},
        {.rows = 20, .features = 2, .index = 10, .odd_ends = true},
        {.rows = 20, .features = 0, .index = 1, .odd_ends = true, .mark = true},
    };

    for (size_t i = 0; i < 3 * ARRAY_LEN(kinds); i++) {
        const size_t cut[] = {0, 5, 6, 15};
        const size_t n = i % 3 ? i % 3 * 2 : 1;
        struct blob *blob[4];
        const struct blob *const *blobs = (const struct blob *const *)blob;
        AUTO(libsvm_release) struct libsvm_made made;
        const struct dataset *ds;
        AUTO(model_release) struct model m;
        uint64_t total;

        model_make(&m, &kinds[i / 3], i);
        cut_files(&m, cut, n, blob);
        total = m.text.len;
        assert_int_equal(libsvm_open(blob, n, &(struct format_options){0}, NULL, NULL, &made), 0);
        ds = n > 1 ? libsvm_dataset(&made, "all") : made.found.item[0].ds;
        assert_non_null(ds);
        for (uint64_t parts = 1; parts <= total + 2; parts++)
            check_parts(ds, blobs, n, parts);
    }
}

/* ---- options ---- */

/* The numbers of a field for all rows, as text. */
static int show_field(const struct dataset *ds, const char *name, struct text *ret, struct diag *d)
{
    const struct field *f = dataset_field(ds, name);
    struct selection all;
    struct bytes found;
    int r;

    in_order_init(&all, 0, ds->samples);
    r = field_bytes(ds, name, &all, &found, d);
    for (uint64_t i = 0; r == 0 && i < found.len; i += f->width) {
        int64_t integer = 0;
        float v;

        memcpy(&v, found.at + i, 4);
        memcpy(&integer, found.at + i, f->width);
        if (f->dtype == DTYPE_F4)
            text_add(ret, "%g ", (double)v);
        else
            text_add(ret, "%lld ", (long long)integer);
    }
    if (r == 0)
        free(found.at);
    return r;
}

UNIT_TEST(test_libsvm__index_base__decided_once)
{
    static const struct {
        enum index_base base;
        const char *a, *b; /* b NULL: one file */
        uint32_t shift;
        uint64_t features;
        const char *indices; /* NULL: not checked */
    } cases[] = {
        {INDEX_AS_IS, "1 1:1 3:2\n", NULL, 0, 4, "1 3 "},
        {INDEX_AUTO, "1 1:1 3:2\n", NULL, 1, 3, "0 2 "},
        {INDEX_AUTO, "1 3:1 1:2\n", NULL, 1, 3, "0 2 "},
        {INDEX_AUTO, "1 1:1\n0 0:1 3:2", NULL, 0, 4, "1 0 3 "},
        {INDEX_AUTO, "1\n1 1:1\n", NULL, 1, 1, "0 "},
        {INDEX_AUTO, "1\n0\n", NULL, 0, 0, ""},
        {INDEX_AUTO, "1 1:1\n", "1 0:1\n", 0, 2, "1 0 "},
        {INDEX_AUTO, "1 1:1\n", "1 2:1\n", 1, 2, "0 1 "},
        {INDEX_FROM_ONE, "1 1:1 3:2\n", NULL, 1, 3, "0 2 "},
        {INDEX_FROM_ONE, "1 1:1\n1 0:1\n", NULL, 1, 1, NULL},
        {INDEX_FROM_ONE, "1\n", NULL, 1, 0, ""},
        {INDEX_FROM_ONE, "1 4294967295:1", NULL, 1, 4294967295, NULL}, /* wide */
        {INDEX_AS_IS, "1 4294967295:1", NULL, 0, 4294967296, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct blob *blob[] = {blob_of_text("a", cases[i].a),
                               cases[i].b ? blob_of_text("b", cases[i].b) : NULL};
        const struct format_options options = {.index_base = cases[i].base};
        struct text t = {0};
        const struct dataset *ds;
        AUTO(libsvm_release) struct libsvm_made made;
        char want[64];

        assert_int_equal(libsvm_open(blob, cases[i].b ? 2 : 1, &options, NULL, NULL, &made), 0);
        ds = libsvm_dataset(&made, cases[i].b ? "all" : "a");
        assert_non_null(ds);
        ds->ops->describe(ds, "", &t);
        snprintf(want, sizeof(want), "\"features\": %llu,", (unsigned long long)cases[i].features);
        assert_non_null(strstr(t.data, want));
        snprintf(want, sizeof(want), "\"index_base\": %u,", cases[i].shift);
        assert_non_null(strstr(t.data, want));
        text_release(&t);
        if (cases[i].indices) {
            assert_int_equal(show_field(ds, "indices", &t, NULL), 0);
            assert_string_equal(t.data ? t.data : "", cases[i].indices);
        }
        text_release(&t);
    }
}

/* ---- bad rows ---- */

static const struct {
    const char *text;
    uint64_t rows, bad;
    const char *want; /* in the message */
} bad_files[] = {
    {"1 1:2\nx y\n1 3:4\n", 3, 1, "a:2:1: expected a number as label, got 'x'"},
    {"1 1:2\r\n1 2:z 3\r\n1 3:4", 3, 1, "a:2:5: expected a number as value, got 'z'"},
    {"# c\n\r\n1 1:2\r# c\r1 0:\n1 3:4\n", 3, 1, "a:5:5: expected a number as value"},
    {"1 1:2\n1:3 2:3\n1 3:4\n", 3, 1, "a:2:1: expected a label without a weight"},
    {"1 1:2\n1 2:\xff 3\n1 3:4\n", 3, 1, "a:2:5: expected a number as value, got '\\xff'"},
    {"1 1:2\n1 2: \n1 3:4\n", 3, 1, "a:2:6: expected a number as value, got the end of the line"},
    {"1 9:2\n1 99999:x\n1 3:4\n", 3, 1, "a:2:9: expected a number as value, got 'x'"},
};

static char reported[1024];
static unsigned reports;

static void take_report(void *ctx, const char *text)
{
    (void)ctx;
    reports++;
    snprintf(reported, sizeof(reported), "%s", text);
}

static void check_row(const struct dataset *ds, uint64_t row, const char *want_error)
{
    static const char *const parsed[] = {"label", "data", "indices"};
    struct one_sample one;
    struct bytes found;

    sample_init(&one, row);
    for (size_t i = 0; i < ARRAY_LEN(parsed); i++) {
        struct diag d = DIAG_INIT;
        int r;

        if (want_error && i) /* it has no features */
            continue;
        r = field_bytes(ds, parsed[i], &one.sel, &found, &d);
        assert_int_equal(r, want_error ? -EBADMSG : 0);
        if (r == 0)
            free(found.at);
        else
            assert_diag_has(&d, want_error);
    }
    assert_int_equal(field_bytes(ds, "row", &one.sel, &found, NULL), 0);
    free(found.at);
}

UNIT_TEST(test_libsvm__bad_row__error_of_its_arrays)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
        struct blob *blob = blob_of_text("a", bad_files[i].text);
        AUTO(libsvm_release) struct libsvm_made made;
        struct selection all;
        struct diag d = DIAG_INIT;
        struct bytes found;
        struct dataset *ds;

        assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
        ds = made.found.item[0].ds;
        assert_int_equal(dataset_state(ds), DATASET_READY);
        assert_int_equal(ds->samples, bad_files[i].rows);
        check_row(ds, 0, NULL);
        check_row(ds, 1, bad_files[i].want);
        check_row(ds, 2, NULL);
        in_order_init(&all, 0, 3);
        assert_int_equal(field_bytes(ds, "data", &all, &found, &d), -EBADMSG);
        assert_diag_has(&d, bad_files[i].want);
        assert_int_equal(field_bytes(ds, "row", &all, &found, NULL), 0);
        free(found.at);
        assert_true(dataset_field(ds, "x")->item_bytes <
                    100); /* not widened by rows that cannot be read */

        reports = 0;
        assert_int_equal(ds->ops->check(ds, take_report, NULL, NULL), 0);
        assert_int_equal(reports, bad_files[i].bad);
        assert_non_null(strstr(reported, bad_files[i].want));
    }
}

UNIT_TEST(test_libsvm__bad_rows_skipped__others_numbered)
{
    const struct format_options options = {.bad_rows = BAD_ROWS_SKIP};

    for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
        struct blob *blob = blob_of_text("a", bad_files[i].text);
        AUTO(libsvm_release) struct libsvm_made made;
        AUTO_TEXT struct text t = {0};
        struct dataset *ds;

        assert_int_equal(libsvm_open(&blob, 1, &options, NULL, NULL, &made), 0);
        ds = made.found.item[0].ds;
        assert_int_equal(ds->samples, bad_files[i].rows - bad_files[i].bad);
        check_row(ds, 0, NULL);
        check_row(ds, 1, NULL);
        ds->ops->describe(ds, "", &t);
        assert_non_null(strstr(t.data, "\"rows_left_out\": 1,"));
    }
}

static unsigned put_rows(struct text *t)
{
    for (unsigned i = 0; i < 1000; i++)
        text_add(t, i % 3 ? "1 1:2\r\n" : "1 1:2\n# c\n\r");
    return 1668;
}

/* The line number is right after many rows and groups of the index, and in another piece of the
 * pass. */
UNIT_TEST(test_libsvm__bad_row_far_on__line)
{
    const size_t comment = 9 << 20;
    char *blanks = malloc(comment), want[64];
    struct text t = {0};
    struct libsvm_made made;
    struct blob *blob;
    unsigned lines;

#ifdef ONLY_THREADS
    skip();
#endif
    memset(blanks, ' ', comment);
    lines = put_rows(&t);
    text_add(&t, "1 x\n");
    for (unsigned i = 0; i < 3; i++) {
        text_add(&t, "#");
        text_add_bytes(&t, blanks, comment);
        text_add(&t, "\n");
        lines += 1 + put_rows(&t);
    }
    lines++;
    text_add(&t, "1 x");
    blob = blob_of("a", t.data, t.len, NULL);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    check_row(made.found.item[0].ds, 1000, "a:1669:3: expected index:value");
    snprintf(want, sizeof(want), "a:%u:3: expected index:value", lines + 1);
    check_row(made.found.item[0].ds, 4001, want);
    libsvm_release(&made);
    text_release(&t);
    free(blanks);
}

/* ---- side files ---- */

static const struct {
    const char *name, *text;
    const char *field;
    const char *want; /* the numbers, or a piece of the message */
} sides[] = {
    {"a.weight", "0.5 1\n2", "weight", "0.5 1 2 "},
    {"a.weight", "\r\n 0.5\t1\r\n\v2\f\n", "weight", "0.5 1 2 "},
    {"a.weight", "0.5 1", "weight", "!expected 3 numbers, one for each row, got 2"},
    {"a.weight", "0.5 1 2 3", "weight", "!expected 3 numbers"},
    {"a.weight", "", "weight", "!expected 3 numbers"},
    {"a.weight", "0.5 x1 2", "weight", "!a.weight: byte 4: expected a number, got 'x1'"},
    {"a.weight", "0.5 1,2", "weight", "!byte 4: expected a number, got '1,2'"},
    {"a.group", "2 1", "qid", "0 0 1 "},
    {"a.query", "2\n1\n", "qid", "0 0 1 "},
    {"a.group", "0 2 0 0 1 0", "qid", "1 1 4 "},
    {"a.group", "2 2", "qid", "!expected groups of 3 rows in all, got groups of 4"},
    {"a.group", "", "qid", "!expected groups of 3 rows"},
    {"a.group", "2 -1 2", "qid", "!byte 2: expected a number of rows, got '-1'"},
    {"a.group", "18446744073709551616", "qid", "!expected a number of rows"},
    {"a.group", "18446744073709551615 4", "qid", "!expected a number of rows"},
    {"a.base_margin", "1 2 3", "base_margin", "1 2 3 "},
    {"a.init", "1 2 3 4 5 6", "base_margin", "1 2 3 4 5 6 "},
    {"a.init", "1 2 3 4", "base_margin", "!expected a multiple of 3 numbers"},
    {"a.init", "1 2", "base_margin", "!expected a multiple of 3 numbers"},
};

UNIT_TEST(test_side__of_three_rows__field_or_reason)
{
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        struct blob *blob[] = {blob_of_text("a", "1 1:2\n0 1:1\n1 3:1"),
                               blob_of_text(sides[i].name, sides[i].text)};
        AUTO(libsvm_release) struct libsvm_made made;
        struct diag d = DIAG_INIT;
        AUTO_TEXT struct text t = {0};
        struct selection all;
        int r;

        assert_int_equal(libsvm_open(blob, 2, &(struct format_options){0}, NULL, NULL, &made), 0);
        assert_int_equal(made.found.n, 1);
        assert_int_equal(dataset_state(made.found.item[0].ds), DATASET_READY);
        r = show_field(made.found.item[0].ds, sides[i].field, &t, &d);
        if (sides[i].want[0] == '!') {
            assert_int_equal(r, -EBADMSG);
            assert_diag_has(&d, sides[i].want + 1);
        } else {
            assert_int_equal(r, 0);
            assert_string_equal(t.data, sides[i].want);
            in_order_init(&all, 0, 3);
            check_files(made.found.item[0].ds, &all, 10);
        }
    }
}

UNIT_TEST(test_side__weight_of_groups__each_row_has_it)
{
    struct blob *blob[] = {blob_of_text("a", "1:9 qid:9 1:2\n0:9 qid:9 1:1\n1:9 qid:9 3:1\n"),
                           blob_of_text("a.weight", "0.5 7"),
                           blob_of_text("a.group", "1 2"),
                           blob_of_text("b", "1:9 qid:9 1:2\n"),
                           blob_of_text("b.weight", "3"),
                           blob_of_text("b.query", "1")};
    AUTO(libsvm_release) struct libsvm_made made;
    AUTO_TEXT struct text t = {0};

    assert_int_equal(libsvm_open(blob, 6, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(made.found.n, 3);
    assert_int_equal(show_field(libsvm_dataset(&made, "a"), "weight", &t, NULL), 0);
    text_add(&t, "| ");
    assert_int_equal(show_field(libsvm_dataset(&made, "a"), "qid", &t, NULL), 0);
    text_add(&t, "| ");
    assert_int_equal(show_field(libsvm_dataset(&made, "all"), "weight", &t, NULL), 0);
    text_add(&t, "| ");
    assert_int_equal(show_field(libsvm_dataset(&made, "all"), "qid", &t, NULL), 0);
    assert_string_equal(t.data, "0.5 7 7 | 0 1 1 | 0.5 7 7 3 | 0 1 1 2 ");
}

UNIT_TEST(test_side__weights_of_rows_beside_groups__each_its_own)
{
    struct blob *blob[] = {blob_of_text("a", "1 1:2\n0 1:1\n1 3:1\n"),
                           blob_of_text("a.weight", "1 2 3"), blob_of_text("a.group", "1 2")};
    AUTO(libsvm_release) struct libsvm_made made;
    AUTO_TEXT struct text t = {0};

    assert_int_equal(libsvm_open(blob, 3, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(show_field(made.found.item[0].ds, "weight", &t, NULL), 0);
    assert_string_equal(t.data, "1 2 3 ");
}

UNIT_TEST(test_side__skipped_rows__reason)
{
    struct blob *blob[] = {blob_of_text("a", "1 1:2\nx\n1 3:1"), blob_of_text("a.weight", "1 2")};
    AUTO(libsvm_release) struct libsvm_made made;
    struct diag d = DIAG_INIT;
    struct text t = {0};

    assert_int_equal(libsvm_open(blob, 2, &(struct format_options){.bad_rows = BAD_ROWS_SKIP}, NULL,
                                 NULL, &made),
                     0);
    assert_int_equal(show_field(made.found.item[0].ds, "weight", &t, &d), -EBADMSG);
    assert_diag_has(&d, "1 bad rows are omitted");
}

/* Numbers that begin in one piece of a file that is read, and end in the next. */
UNIT_TEST(test_side__numbers_across_pieces__whole)
{
    for (size_t blanks = 65536 - 7; blanks <= 65536 + 1; blanks++) {
        AUTO_TEXT struct text t = {0}, found = {0};
        struct blob *blob[] = {blob_of_text("a", "1 1:2\n0 1:1\n1 3:1"), NULL};
        AUTO(libsvm_release) struct libsvm_made made;

        text_add(&t, "%*s0.25 10\n2", (int)blanks, "");
        blob[1] = blob_of("a.weight", t.data, t.len, NULL);
        assert_int_equal(libsvm_open(blob, 2, &(struct format_options){0}, NULL, NULL, &made), 0);
        assert_int_equal(show_field(made.found.item[0].ds, "weight", &found, NULL), 0);
        assert_string_equal(found.data, "0.25 10 2 ");
    }
}

UNIT_TEST(test_side__long_word__reason)
{
    static char nines[65537];
    struct blob *blob[2];
    AUTO(libsvm_release) struct libsvm_made made;

    memset(nines, '9', sizeof(nines));
    blob[0] = blob_of_text("a", "1 1:2\n");
    blob[1] = blob_of("a.group", nines, sizeof(nines), NULL);
    assert_int_equal(libsvm_open(blob, 2, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_notes_have(&made.found.item[0].ds->notes,
                      "a.group: byte 0: expected a number, got a word of 65536 bytes");
}

/* ---- what people see ---- */

UNIT_TEST(test_about__counts_as_xgboost)
{
    static const struct {
        const char *text, *group, *want;
    } rows[] = {
        {"1 1:2 3:4\n0\n", NULL, "2 rows x 4 columns, 2 entries\n"},
        {"1:2 qid:3 1:1\n0:2 qid:4 1:1\n1:2 qid:4 2:1", NULL,
         "3 rows x 3 columns, 3 entries, 2 groups, weights\n"},
        {"1 0:2\n0 0:3\n", "2 0", "2 rows x 1 columns, 2 entries, 2 groups\n"},
        {"2 9 3\n1 1:2\n0 1:3\n", NULL, "2 rows x 9 columns, 2 entries\n"}, /* by its header */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct blob *blob[] = {blob_of_text("a", rows[i].text),
                               rows[i].group ? blob_of_text("a.group", rows[i].group) : NULL};
        AUTO(libsvm_release) struct libsvm_made made;
        AUTO_TEXT struct text t = {0};

        assert_int_equal(libsvm_open(blob, rows[i].group ? 2 : 1, &(struct format_options){0}, NULL,
                                     NULL, &made),
                         0);
        made.found.item[0].ds->ops->about(made.found.item[0].ds, &t);
        if (!strstr(t.data, rows[i].want))
            fail_msg("'%s', expected '%s'", t.data, rows[i].want);
        format_libsvm.add_example(made.found.item[0].ds, &t);
        assert_non_null(strstr(t.data, "label, index = batch['label'], batch['index']\n"
                                       "  line = open(root + '/samples/svm/000000.svm').read()\n"));
    }
}

/* A file of which many rows are bad is no part of `all`, which says so. */
UNIT_TEST(test_all__without_a_bad_file__lacks_it)
{
    static const char bad[] = "1 1:2\nthis is\nno data\n";
    struct blob *blob[] = {blob_of_text("a", "1 1:2\n"), blob_of_text("b", "1 1:2\n"),
                           blob_of_text("c", bad)};
    const struct format_setup setup = {.keep = &no_store};
    AUTO(found_release) struct found found;
    const struct dataset *ds;
    uint64_t done = 7, total = 0;

    assert_int_equal(format_open(&format_libsvm, blob, 3, &setup, &found), 0);
    ds = found.item[found_find(&found, "all")].ds;
    assert_int_equal(ds->missing.n, 1);
    assert_string_equal(ds->missing.part[0].name, "c");
    ds->ops->progress(ds, &done, &total);
    assert_int_equal(done, 0);
    assert_int_equal(total, 12);
}

/* Two threads find a number that float32 rounds: the note has the first. */
UNIT_TEST(test_rounded__in_two_shares__the_first_noted)
{
    AUTO_TEXT struct text t = {0};
    AUTO(libsvm_release) struct libsvm_made made;
    struct blob *blob;

    for (unsigned i = 0; i < 100000; i++)
        text_add(&t, "1 1:%u\n", i == 10 || i == 99990 ? 16777217 + i : 2);
    blob = blob_of("a", t.data, t.len, NULL);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_notes_have(&made.found.item[0].ds->notes, "The first is '16777227', byte 64");
}

/* ---- several labels ---- */

UNIT_TEST(test_libsvm__several_labels__columns)
{
    struct blob *blob = blob_of_text("a", "1,2 0:1\n3 1:1\n 2:3.5\n4,5,6\n");
    AUTO(libsvm_release) struct libsvm_made made;
    AUTO_TEXT struct text t = {0};

    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(show_field(made.found.item[0].ds, "label", &t, NULL), 0);
    assert_string_equal(t.data, "1 2 nan 3 nan nan nan nan nan 4 5 6 ");
    assert_int_equal(dataset_field(made.found.item[0].ds, "label")->ndim, 1);
}

/* ---- the kept index ---- */

static void open_kept(const struct model *m, struct memory_keep *keep)
{
    struct blob *blob = blob_of("a.txt", m->text.data, m->text.len, NULL);
    AUTO(libsvm_release) struct libsvm_made made;

    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, &keep->keep, NULL, &made),
                     0);
    check_dataset(made.found.item[0].ds, m, 0, 3);
    assert_false(made.found.item[0].ds->notes.n);
}

UNIT_TEST(test_libsvm__index_kept__taken)
{
    AUTO(memory_keep_release) struct memory_keep keep;
    AUTO(model_release) struct model m;

    memory_keep_init(&keep, false);
    model_make(&m, &recipes[4], 3);
    open_kept(&m, &keep);
    assert_int_equal(keep.saves, 1);
    open_kept(&m, &keep);
    assert_true(keep.saves == 1 && keep.loads == 1 && keep.removes == 0);
    keep.bytes[keep.size / 2] ^= 1;
    open_kept(&m, &keep);
    assert_true(keep.saves == 2 && keep.loads == 2 && keep.removes == 1);
}

/* ---- reads that fail ---- */

/* Read number n fails, for n = 1, 2, 3 ... until none does. */
UNIT_TEST(test_libsvm__read_fails__eio_or_nothing)
{
    for (uint64_t n = 1;; n++) {
        struct blob_faults faults = {.fail_read = n};
        struct model m;
        struct blob *blob;
        struct libsvm_made made;
        struct diag d = DIAG_INIT;
        struct list_selection list;
        struct bytes found = {0};
        int r = -EIO;

        model_make(&m, &recipes[1], 5);
        blob = blob_of("a.txt", m.text.data, m.text.len, &faults);
        assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
        assert_int_equal(made.found.n, 1);
        if (!made.found.item[0].ds) {
            assert_non_null(strstr(made.found.item[0].reason, "a.txt"));
        } else if (dataset_state(made.found.item[0].ds) == DATASET_FAILED) {
            assert_diag_has(&made.found.item[0].ds->reason, "a.txt");
        } else {
            mixed_init(&list, (const uint64_t[]){7, 3, 200}, 3);
            r = field_bytes(made.found.item[0].ds, "data", &list.sel, &found, &d);
            assert_true(r == 0 || (r == -EIO && d.set));
            free(found.at);
            if (r < 0) /* the memo does not keep it */
                check_columns(made.found.item[0].ds, &m, &list.sel);
        }
        libsvm_release(&made);
        model_release(&m);
        if (faults.reads < n) {
            assert_int_equal(r, 0);
            assert_true(n > 4);
            return;
        }
    }
}

/* Bytes that are not here: one read asks for all of them, and the next has them. */
UNIT_TEST(test_libsvm__absent__asked_for_at_once)
{
    static const char *const names[] = {"data", "indices", "x", "label", "weight", "row"};
    const struct recipe recipe = {.rows = 1300, .features = 9, .index = 60, .weight = true};
    uint64_t mixed[1300], random = RANDOM_SEED;
    struct absent absent = {0};
    AUTO(libsvm_release) struct libsvm_made made;
    struct pool *pool = NULL;
    struct blob *blob;
    AUTO(model_release) struct model m;

    assert_int_equal(pool_new(&pool), 0);
    model_make(&m, &recipe, 11);
    blob = absent_blob_new(blob_of("a.txt", m.text.data, m.text.len, NULL), &absent);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, pool, &made), 0);
    for (size_t i = 0; i < ARRAY_LEN(mixed); i++)
        mixed[i] = random_below(&random, ARRAY_LEN(mixed));
    for (size_t i = 0; i < 2 * ARRAY_LEN(names); i++) {
        const struct dataset *ds = made.found.item[0].ds;
        const struct field *f = dataset_field(ds, names[i / 2]);
        struct list_selection list;
        AUTO(read_context_release) struct read_context rc;
        struct bytes want;
        uint8_t *found;

        mixed_init(&list, mixed, ARRAY_LEN(mixed));
        assert_int_equal(field_bytes(ds, names[i / 2], &list.sel, &want, NULL), 0);
        found = malloc(want.len);
        mixed_init(&list, mixed, ARRAY_LEN(mixed)); /* nothing of it is remembered */
        absent_drop(&absent, i % 2 ? 256 : 40, &random);
        read_context_init(&rc, true);
        assert_int_equal(f->ops->read(&rc, ds, f, &list.sel, 0, want.len, found, NULL), -EAGAIN);
        assert_int_equal(missing_wait(&rc, false, NULL), 0);
        assert_int_equal(f->ops->read(&rc, ds, f, &list.sel, 0, want.len, found, NULL), 0);
        assert_memory_equal(found, want.at, want.len);
        free(found);
        free(want.at);
    }
    pool_free(pool);
}

/* Who reads the first of several blocks needs the next ones soon: they are decoded with it. */
UNIT_TEST(test_libsvm__first_block_read__next_ones_remembered)
{
    struct blob_faults faults = {0};
    AUTO(libsvm_release) struct libsvm_made made;
    struct selection all;
    const struct field *f;
    AUTO(model_release) struct model m;
    struct blob *blob;
    float value;

    model_make(&m, &recipes[4], 3);
    blob = blob_of("a.txt", m.text.data, m.text.len, &faults);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    f = dataset_field(made.found.item[0].ds, "label");
    in_order_init(&all, 0, m.rows);
    for (size_t row = 0; row < m.rows; row += 256) {
        assert_int_equal(f->ops->read(READ_WAITS, made.found.item[0].ds, f, &all, 4 * row, 4,
                                      (uint8_t *)&value, NULL),
                         0);
        assert_true(value == m.row[row].label);
        faults.fail_read = faults.reads + 1;
    }
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

/* A walk over very many samples looks whether its reader still waits. */
UNIT_TEST(test_libsvm__cancelled__eintr)
{
    static const uint64_t mixed[64 * 256];
    struct blob *blob = blob_of_text("a", "1 1:2\n");
    struct list_selection list;
    AUTO(libsvm_release) struct libsvm_made made;
    AUTO(read_context_release) struct read_context rc;
    struct form form;
    uint64_t bytes;

    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    read_context_init(&rc, false);
    rc.cancelled = always;
    mixed_init(&list, mixed, ARRAY_LEN(mixed));
    list.sel.rc = &rc;
    assert_int_equal(field_form(made.found.item[0].ds, dataset_field(made.found.item[0].ds, "data"),
                                &list.sel, &form, &bytes),
                     -EINTR);
}

UNIT_TEST(test_libsvm__file_changed__estale)
{
    struct blob_faults faults = {0};
    struct libsvm_made made;
    struct selection all;
    struct bytes found;
    AUTO(model_release) struct model m;
    struct blob *blob;

    model_make(&m, &recipes[1], 5);
    in_order_init(&all, 0, m.rows);
    blob = blob_of("a.txt", m.text.data, m.text.len, &faults);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    faults.stale = true;
    assert_int_equal(field_bytes(made.found.item[0].ds, "data", &all, &found, NULL), -ESTALE);
    assert_int_equal(field_bytes(made.found.item[0].ds, "row", &all, &found, NULL), -ESTALE);
    libsvm_release(&made);

    blob = blob_of("a.txt", m.text.data, m.text.len, &faults);
    assert_int_equal(libsvm_open(&blob, 1, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(dataset_state(made.found.item[0].ds), DATASET_FAILED);
    assert_diag_has(&made.found.item[0].ds->reason, "changed");
    libsvm_release(&made);
}

/* ---- which files ---- */

static enum claim probe(const char *head, size_t len, bool whole)
{
    const struct probed_file file = {
        .name = "x", .head = (const uint8_t *)head, .len = len, .whole = whole};

    return format_libsvm.probe(&file);
}

UNIT_TEST(test_probe__heads__libsvm_or_not)
{
    static const struct {
        const char *head;
        bool want;
    } cases[] = {
        {"1 0:1.5 3:2\n0 1:1\n", true},
        {"# c\n\n1 0:1\n", true},
        {"\xef\xbb\xbf"
         "1 0:1\n",
         true},
        {"1 0:1\r0 1:1\r", true},
        {" 2:3.5\n", true},
        {"1\n0\n", true},
        {"1 qid:7 2:3\n", true},
        {"1 0 3 5\n", true},
        {"1 0:1\nx\n", true},
        {"", false},
        {"\n\n\r\n", false},
        {"# only\n", false},
        {"hello world\n", false},
        {"1,2,3\n4,5,6\n", false},
        {"x\ny\n1 0:1\n", false},
        {"\x1f\x8b\x08", false},
        {"{\"a\": 1}\n", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if ((probe(cases[i].head, strlen(cases[i].head), true) != CLAIM_NONE) != cases[i].want)
            fail_msg("'%s': expected %d", cases[i].head, cases[i].want);
    /* A Kaldi script could have a file "qid", from byte 4 on. */
    assert_int_equal(probe("0.5 qid:4 \n", 11, true), CLAIM_STRONG);
}

/* A head truncated anywhere is still libsvm text. */
UNIT_TEST(test_probe__cut_anywhere__libsvm)
{
    static const char head[] = "1.5 12:1.25 17:3e-1 300:4 1234:-1.5 1235:77\n-1 3:1\n";

    for (size_t len = 5; len <= strlen(head); len++)
        if (probe(head, len, false) == CLAIM_NONE)
            fail_msg("'%.*s'", (int)len, head);
}

UNIT_TEST(test_is_side__names__or_not)
{
    enum libsvm_side_type kind;

    assert_true(libsvm_side_find("a.txt.weight", "a.txt", &kind));
    assert_int_equal(kind, LIBSVM_SIDE_WEIGHT);
    assert_true(libsvm_side_find("a.txt.base_margin", "a.txt", &kind));
    assert_int_equal(kind, LIBSVM_SIDE_MARGIN);
    assert_false(libsvm_side_find("a.weight", "a.txt", &kind));
    assert_false(libsvm_side_find("a.txt.weights", "a.txt", &kind));
    assert_false(libsvm_side_find("a.txt", "a.txt", &kind));
    assert_ptr_equal(format_libsvm.sides, libsvm_side_suffixes);
}

UNIT_TEST(test_libsvm__two_sides_of_a_kind__error)
{
    struct blob *blob[] = {blob_of_text("a", "1 1:2\n"), blob_of_text("a.group", "1"),
                           blob_of_text("a.query", "1")};
    AUTO(libsvm_release) struct libsvm_made made;

    assert_int_equal(libsvm_open(blob, 3, &(struct format_options){0}, NULL, NULL, &made), 0);
    assert_int_equal(made.found.n, 2);
    assert_non_null(strstr(made.found.item[found_find(&made.found, "a.query")].reason, "a.group"));
}
