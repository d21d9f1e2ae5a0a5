/* Mixes of datasets of real formats: each field of a sample is as its source shows it, a batch has
 * them one after another, and a matrix has the rows of all sources. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memo.h"
#include "base/scope.h"
#include "format/core/extents.h"
#include "format/core/plan_fields.h"
#include "format/mix/mix.h"
#include "format/picture/augment.h"
#include "format/registry.h"
#include "support/libsvm_make.h"
#include "support/one_store.h"
#include "support/tar_make.h"
#include "support/unit.h"

#define SOURCES 3

struct source {
    const char *format,
        *text; /* of an archive: see tar_put_members(); of npy: its type, and digits */
};

struct mixed {
    struct memo *memo;
    struct found found[SOURCES];
    struct dataset *source[SOURCES];
    unsigned n;
    struct dataset *ds;
};

static const struct format *format_called(const char *name)
{
    unsigned i = 0;

    while (i < n_formats && strcmp(formats[i]->name, name) != 0)
        i++;
    assert_true(i < n_formats);
    return formats[i];
}

/* Numbers of 4 bytes, each of which has its digit in the first or the last byte. */
static void put_npy(struct text *t, const char *text)
{
    AUTO_TEXT struct text head = {0};
    size_t n = strlen(text) - 3;

    text_add(&head, "{'descr': '%.3s', 'fortran_order': False, 'shape': (%zu,), }", text, n);
    text_add_bytes(t, "\x93NUMPY\1\0", 8);
    text_add_bytes(t, (const char[]){(char)head.len, 0}, 2);
    text_add(t, "%s", head.data);
    for (size_t i = 0; i < 4 * n; i++)
        text_add_bytes(t, i % 4 == (*text == '>' ? 3 : 0) ? &text[3 + i / 4] : "", 1);
}

static const char *const names[] = {"first", "second", "third"};

static struct dataset *open_source(const struct source *s, struct memo *memo, struct found *ret)
{
    const struct format_setup setup = {.keep = &no_store, .memo = memo, .made = &memory_made};
    AUTO_TEXT struct text t = {0};
    struct blob *blob;

    if (!strcmp(s->format, "tar"))
        tar_put_members(&t, s->text);
    else if (!strcmp(s->format, "npy"))
        put_npy(&t, s->text);
    else
        text_add(&t, "%s", s->text);
    blob = memory_blob_new("a", t.data, t.len, t.len, NULL);
    assert_int_equal(format_open(format_called(s->format), &blob, 1, &setup, ret), 0);
    assert_int_equal(ret->n, 1);
    assert_non_null(ret->item[0].ds);
    return ret->item[0].ds;
}

static int ready(void *ctx, struct dataset *ds, struct diag *d)
{
    (void)ctx;
    (void)ds;
    (void)d;
    return 0;
}

static void mix(const struct source *source, struct mixed *ret)
{
    *ret = (struct mixed){.n = 0};
    assert_int_equal(memo_new(1 << 20, &ret->memo), 0);
    for (; ret->n < SOURCES && source[ret->n].format; ret->n++)
        ret->source[ret->n] = open_source(&source[ret->n], ret->memo, &ret->found[ret->n]);
    assert_int_equal(mix_dataset_new(&(struct mix_setup){.name = "m",
                                                         .ds = ret->source,
                                                         .shown = names,
                                                         .n = ret->n,
                                                         .memo = ret->memo,
                                                         .ready = ready},
                                     &ret->ds),
                     0);
    while (!dataset_prepare(ret->ds))
        continue;
}

static void mixed_release(struct mixed *m)
{
    dataset_free(m->ds);
    for (unsigned i = 0; i < m->n; i++)
        found_release(&m->found[i]);
    memo_free(m->memo);
}

/* The bytes of a field of a selection; the caller frees them. */
static uint8_t *bytes_of(const struct dataset *ds, const struct field *f,
                         const struct selection *sel, struct form *ret_form, uint64_t *ret_len)
{
    struct diag d = DIAG_INIT;
    uint8_t *bytes;

    *ret_form = (struct form){.ndim = 0};
    assert_int_equal(field_form(ds, f, sel, ret_form, ret_len), 0);
    bytes = malloc(*ret_len + 1);
    if (*ret_len && f->ops->read(READ_WAITS, ds, f, sel, 0, *ret_len, bytes, &d) < 0)
        fail_msg("%s: %s", f->name, d.text);
    for (uint64_t at = 0, n; at < *ret_len; at += n) { /* in pieces as well */
        uint8_t piece[5];

        n = min_u64(*ret_len - at, sizeof(piece));
        assert_int_equal(f->ops->read(READ_WAITS, ds, f, sel, at, n, piece, &d), 0);
        assert_memory_equal(piece, bytes + at, n);
    }
    return bytes;
}

/* The field of a source that f is in the mix. */
static const struct field *field_like(const struct dataset *ds, const struct field *f)
{
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *g = &ds->field[i];

        if (!strcmp(f->name, g->name) && (f->form == FORM_BYTES) == (g->form == FORM_BYTES) &&
            !strcmp(f->folder, g->folder) && !strcmp(f->ext, g->ext) && g->form != FORM_WHOLE)
            return g;
    }
    return NULL;
}

static bool is_made_of_sources(const struct field *f)
{
    return !f->numbering && strcmp(f->name, "key") != 0 &&
           (f->form == FORM_ITEM || f->form == FORM_RAGGED || f->form == FORM_TEXT ||
            f->form == FORM_BYTES);
}

static bool is_same_extent(const struct extent *a, const struct extent *b)
{
    return a->blob == b->blob && a->off == b->off && a->len == b->len;
}

/* An item that all sources store alike has its stored bytes; where they do not, those that are
 * shown. */
static void check_stored(const struct mixed *m, const struct field *f, const struct one_sample *one,
                         const struct dataset *ds, const struct field *g,
                         const struct one_sample *there)
{
    size_t n = (size_t)f->stored_bytes;
    uint8_t found[64], want[64];
    struct diag d = DIAG_INIT;

    if (!field_is_in(f, IN_RAW | IN_IDX | IN_CLS)) {
        assert_false(f->read_stored);
        return;
    }
    assert_true(n && n <= sizeof(found) && n == g->stored_bytes);
    assert_int_equal(f->read_stored(READ_WAITS, m->ds, f, &one->sel, 0, n, found, &d), 0);
    assert_true(!field_is_in(f, IN_RAW) || f->stored_big_endian == g->stored_big_endian);
    if (!field_is_in(f, IN_RAW))
        assert_int_equal(g->ops->read(READ_WAITS, ds, g, &there->sel, 0, n, want, &d), 0);
    else if (g->read_stored)
        assert_int_equal(g->read_stored(READ_WAITS, ds, g, &there->sel, 0, n, want, &d), 0);
    else
        assert_int_equal(field_read_stored(READ_WAITS, g, &there->sel, 0, n, want, &d), 0);
    assert_memory_equal(found, want, n);
}

/* A sample of the mix is that of its source. Adds what a batch has of it. */
static void check_sample(const struct mixed *m, const struct field *f, uint64_t sample,
                         struct text *all)
{
    uint64_t own, len, source_len;
    unsigned i = mix_dataset_find(m->ds, sample, &own);
    const struct field *g = field_like(m->source[i], f);
    AUTO_FREE uint8_t *found = NULL, *want = NULL;
    AUTO_TEXT struct text place = {0}, source_place = {0};
    struct extent extent[EXTENTS_MOST], source_extent[EXTENTS_MOST];
    struct one_sample one, there;
    struct form form, source_form;
    unsigned n;

    if (!g)
        fail_msg("no field %s", f->name);
    assert_false(f->in & (IN_FILES | IN_TAR | IN_RAW) & ~g->in); /* only where all show it */
    assert_int_equal(dataset_has(m->ds, sample, f), dataset_has(m->source[i], own, g));
    if (!dataset_has(m->ds, sample, f))
        return;
    one_sample_init(&one, sample);
    one_sample_init(&there, own);
    found = bytes_of(m->ds, f, &one.sel, &form, &len);
    want = bytes_of(m->source[i], g, &there.sel, &source_form, &source_len);
    if (len != source_len || memcmp(found, want, len) != 0)
        fail_msg("%s of sample %llu", f->name, (unsigned long long)sample);
    text_add_bytes(all, (const char *)found, len);
    n = dataset_extents(m->ds, sample, f, extent);
    assert_int_equal(n, dataset_extents(m->source[i], own, g, source_extent));
    for (unsigned k = 0; k < n; k++)
        assert_true(is_same_extent(&extent[k], &source_extent[k]));
    if (dataset_copy(m->source[i], own, g, source_extent)) {
        assert_true(dataset_copy(m->ds, sample, f, extent));
        assert_true(is_same_extent(extent, source_extent));
    } else {
        assert_false(dataset_copy(m->ds, sample, f, extent));
    }
    if (f->form == FORM_ITEM)
        check_stored(m, f, &one, m->source[i], g, &there);
    dataset_locate(m->ds, sample, f, &place);
    dataset_locate(m->source[i], own, g, &source_place);
    assert_string_equal(place.data ? place.data : "", source_place.data ? source_place.data : "");
}

/* Batches have what their samples have. */
static void check_field(const struct mixed *m, const struct field *f)
{
    AUTO_TEXT struct text all = {0};
    AUTO_FREE uint64_t *order = calloc(m->ds->samples + 1, sizeof(*order));
    AUTO_FREE uint8_t *found = NULL;
    struct list_selection list;
    struct form form;
    uint64_t len;

    for (uint64_t i = 0; i < m->ds->samples; i++) {
        order[i] = m->ds->samples - 1 - i;
        check_sample(m, f, order[i], &all);
    }
    if (f->form == FORM_TEXT) /* each as wide as the longest */
        return;
    mixed_init(&list, order, m->ds->samples);
    found = bytes_of(m->ds, f, &list.sel, &form, &len);
    if (len != all.len || (len && memcmp(found, all.data, len) != 0))
        fail_msg("%s of all samples", f->name);
}

static const struct field *member(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, name) && field_is_in(&ds->field[i], IN_NPZ_BATCHES))
            return &ds->field[i];
    return NULL;
}

static bool is_of_matrix(const struct mixed *m, const struct field *f)
{
    const struct field *g = member(m->source[0], f->name);

    return g && g->form == FORM_WHOLE;
}

/* Rows of the matrix of the mix, sample after sample. */
static void check_matrix(const struct mixed *m)
{
    static const char *const values[] = {"data", "indices", "field"};
    AUTO_FREE uint64_t *order = calloc(m->ds->samples, sizeof(*order));
    uint64_t ends[64] = {0}, shape[2], len, columns = 0;
    struct list_selection list;
    struct form form;
    uint8_t *bytes;

    for (uint64_t i = 0; i < m->ds->samples; i++)
        order[i] = m->ds->samples - 1 - i;
    for (unsigned k = 0; k < 3; k++) {
        AUTO_TEXT struct text all = {0};

        if (!member(m->source[0], values[k]))
            continue;
        for (uint64_t i = 0; i < m->ds->samples; i++) {
            struct one_sample one;
            uint64_t own;
            const struct dataset *ds = m->source[mix_dataset_find(m->ds, order[i], &own)];

            one_sample_init(&one, own);
            bytes = bytes_of(ds, member(ds, values[k]), &one.sel, &form, &len);
            text_add_bytes(&all, (const char *)bytes, len);
            ends[i + 1] = ends[i] + len / 4;
            free(bytes);
        }
        mixed_init(&list, order, m->ds->samples);
        bytes = bytes_of(m->ds, member(m->ds, values[k]), &list.sel, &form, &len);
        assert_int_equal(len, all.len);
        assert_memory_equal(bytes, all.data, len);
        free(bytes);
    }
    bytes = bytes_of(m->ds, member(m->ds, "indptr"), &list.sel, &form, &len);
    assert_int_equal(len, (m->ds->samples + 1) * form.width);
    for (uint64_t i = 0; i <= m->ds->samples; i++)
        assert_int_equal(form.width == 8 ? load_le64(bytes + 8 * i) : load_le32(bytes + 4 * i),
                         ends[i]);
    free(bytes);
    bytes = bytes_of(m->ds, member(m->ds, "format"), &list.sel, &form, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "csr", 3);
    free(bytes);
    for (unsigned i = 0; i < m->n; i++) {
        struct one_sample one;

        one_sample_init(&one, 0);
        bytes = bytes_of(m->source[i], member(m->source[i], "shape"), &one.sel, &form, &len);
        columns = max_u64(columns, load_le64(bytes + 8));
        free(bytes);
    }
    bytes = bytes_of(m->ds, member(m->ds, "shape"), &list.sel, &form, &len);
    assert_int_equal(len, sizeof(shape));
    assert_int_equal(form.dim[0], 2);
    assert_int_equal(load_le64(bytes), m->ds->samples);
    assert_int_equal(load_le64(bytes + 8), columns);
    free(bytes);
}

/* The fields that people see, and those that are omitted after "; ". */
static void show_fields(const struct mixed *m, struct text *t)
{
    for (unsigned i = 0; i < m->ds->n_fields; i++)
        if (is_made_of_sources(&m->ds->field[i]))
            text_add(t, "%s%s", t->len ? " " : "", m->ds->field[i].name);
    text_add(t, "; %s", mix_dataset_left_out(m->ds));
}

/* A picture that was kept for a sample is got as it was put, if its file is not another now. */
static void check_kept(const struct dataset *ds, uint64_t sample, bool has)
{
    const struct picture_source *p = ds->pictures;
    uint8_t rgb[4 * 15 * 3];
    struct picture_base base = {5, 18, 4, 15, rgb}, found; /* too long for its place */

    memset(rgb, 'a' + (int)sample, sizeof(rgb));
    p->keep(ds, sample, 4, &base);
    assert_false(p->kept(READ_WAITS, ds, sample, 4, &found));
    base.width = 14;
    p->keep(ds, sample, 4, &base);
    assert_false(p->kept(READ_WAITS, ds, sample, 5, &found));
    assert_int_equal(p->kept(READ_WAITS, ds, sample, 4, &found), has);
    if (!has)
        return;
    assert_int_equal(found.file_height, 5);
    assert_int_equal(found.file_width, 18);
    assert_int_equal(found.height, 4);
    assert_int_equal(found.width, 14);
    assert_memory_equal(found.rgb, rgb, 4 * 14 * 3);
    free(found.rgb);
}

/* Pictures of a mix are those of its sources, also where they are said to be. */
static void check_pictures(const struct mixed *m)
{
    for (uint64_t i = 0; i < m->ds->samples; i++) {
        uint64_t own;
        const struct dataset *ds = m->source[mix_dataset_find(m->ds, i, &own)];
        AUTO_TEXT struct text place = {0}, source_place = {0};
        AUTO_FREE uint8_t *bytes = NULL, *source_bytes = NULL;
        struct extent extent[PICTURE_EXTENTS], source_extent[PICTURE_EXTENTS];
        unsigned n = m->ds->pictures->extents(m->ds, i, extent);
        size_t len, source_len;
        struct diag d = DIAG_INIT;

        assert_int_equal(n, ds->pictures->extents(ds, own, source_extent));
        assert_true(!n || is_same_extent(extent, source_extent));
        m->ds->pictures->where(m->ds, i, false, &place);
        ds->pictures->where(ds, own, false, &source_place);
        assert_string_equal(place.data, source_place.data);
        check_kept(m->ds, i, n);
        if (!n)
            continue;
        assert_int_equal(m->ds->pictures->read(READ_WAITS, m->ds, i, false, &bytes, &len, &d), 0);
        assert_int_equal(
            ds->pictures->read(READ_WAITS, ds, own, false, &source_bytes, &source_len, &d), 0);
        assert_int_equal(len, source_len);
        assert_memory_equal(bytes, source_bytes, len);
    }
}

/* The identity of the mix, and the folders that all sources have. */
static void check_dataset(const struct mixed *m)
{
    AUTO_TEXT struct text found = {0}, want = {0};
    const struct dataset *first = m->source[0];
    const char *pictures = first->pictures ? first->pictures->name : NULL;
    unsigned folders = 0;

    for (unsigned i = 0; i < m->n; i++) {
        const struct dataset *ds = m->source[i];

        text_add(&want, " source %s %llu", names[i], (unsigned long long)ds->samples);
        if (ds->ops->identity)
            assert_int_equal(ds->ops->identity(ds, &want), 0);
        if (pictures && (!ds->pictures || strcmp(ds->pictures->name, pictures) != 0))
            pictures = NULL;
    }
    assert_int_equal(!m->ds->pictures, !pictures);
    if (pictures)
        check_pictures(m);
    assert_int_equal(m->ds->n_blobs, m->n);
    assert_int_equal(m->ds->ops->identity(m->ds, &found), 0);
    assert_string_equal(found.data, want.data);
    for (unsigned i = 0; i < first->n_folders; i++) {
        unsigned n = 0;

        for (unsigned k = 0; k < m->n; k++)
            n += dataset_has_folder(m->source[k], first->folder[i].name);
        assert_int_equal(dataset_has_folder(m->ds, first->folder[i].name), n == m->n);
        folders += n == m->n;
    }
    assert_int_equal(m->ds->n_folders, folders);
}

UNIT_TEST(test_mix__real_formats__as_their_sources)
{
    static const struct {
        struct source source[SOURCES];
        const char *fields;
    } rows[] = {
        {{{"libsvm", "1:0.5 1:2 7:3\n0:1 2:1\n"}, {"libsvm", "1:2 0:1\n1:1\n0:3 9:1 4:2\n"}},
         "label weight row data indices; "},
        {{{"libsvm", "1 1:2\n"}, {"libsvm", "1:2 0:1\n"}, {"libsvm", "1,2 3:1\n0 4:5\n"}},
         "label row data indices; weight"},
        {{{"libfm", "1 1:2:3 4:5:6\n0\n"}, {"libfm", "1 9:1:2\n"}},
         "label row data indices field; "},
        {{{"csv", "label,x,y\n1,2,3\n0,4,5\n"}, {"csv", "label,x,y\n7,8,9.5\n"}},
         "csv label rows x; "},
        {{{"csv", "label,x,y\n1,2,3\n"}, {"csv", "x,y\n8,9.5\n"}}, "csv label rows x; "},
        {{{"csv", "label,x,y\n1,2,3\n"}, {"csv", "label,x,y,z\n7,8,9.5,1\n0,1,2,3\n"}},
         "csv label rows x; "},
        {{{"jsonl", "{\"a\": 1}\n{\"a\": [1, 2]}\n"}, {"jsonl", "{\"b\": null}\n"}},
         "json json lines text; "},
        {{{"tar", "a.txt=one|a.cls=5|b.txt=|b.cls=-6"}, {"tar", "c.txt=three|c.cls=7|c.jpg=x"}},
         "cls cls txt txt txt; jpg"},
        {{{"tar", "a.txt=one|b.jpg=two"}, {"tar", "c.jpg=three|d.txt=four|e.jpg=|e.txt=five"}},
         "jpg jpg txt txt txt thumbnail; "},
        {{{"npy", "<i4123"}, {"npy", "<i445"}}, "data; "},
        {{{"npy", "<i412"}, {"npy", ">i434"}}, "data; "},
        {{{"npy", "<f412"}, {"npy", "<f43"}}, "data; "},
        {{{"tar", "a.cls=1|a.jpg=x"}, {"tar", "b.cls=2|b.png=y"}}, "cls cls thumbnail; jpg, png"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text fields = {0};
        struct mixed m;

        mix(rows[i].source, &m);
        if (dataset_state(m.ds) != DATASET_READY)
            fail_msg("rows[%zu]: %s", i, m.ds->reason.text);
        show_fields(&m, &fields);
        if (strcmp(fields.data, rows[i].fields) != 0)
            fail_msg("rows[%zu]: '%s'", i, fields.data);
        for (unsigned k = 0; k < m.ds->n_fields; k++)
            if (is_made_of_sources(&m.ds->field[k]) && !is_of_matrix(&m, &m.ds->field[k]))
                check_field(&m, &m.ds->field[k]);
        if (member(m.source[0], "indptr"))
            check_matrix(&m);
        check_dataset(&m);
        assert_int_equal(m.ds->notes.n, 0);
        mixed_release(&m);
    }
}

/* Two of them are too long for a message. */
#define LONG_NAME "a_name_of_seventy_bytes_which_is_long_for_a_column_but_not_for_any_file"

UNIT_TEST(test_mix__sources_that_differ__both_named)
{
    static const struct {
        struct source source[SOURCES];
        const char *says; /* the first row: a note; others: why it cannot be used */
    } rows[] = {
        {{{"csv", "label,x,y\n1,2,3\n"}, {"csv", "7,8,9.5\n"}},
         "mix m: first has names of the columns of 'x', second has none: its numbers are used as"},
        {{{"csv", "label,x,y\n1,2,3\n"}, {"csv", "label,y,x\n1,2,3\n"}},
         "mix m: its sources differ in the columns of 'x': expected \"x\", \"y\" as in first, got "
         "\"y\", \"x\" in second. Write the files with their columns in one order"},
        {{{"csv", "label,x\n1,2\n"}, {"csv", "label,x,y\n1,2,3\n"}, {"csv", "label,x,z\n1,2,3\n"}},
         "expected \"x\", \"y\" as in second, got \"x\", \"z\" in third"},
        {{{"csv", "label,x,y\n1,2,3\n"}, {"csv", "label,x\n1,2\n"}, {"csv", "label,x,z\n1,2,3\n"}},
         "expected \"x\", \"y\" as in first, got \"x\", \"z\" in third"},
        {{{"csv", "label," LONG_NAME "1," LONG_NAME "2\n1,2,3\n"}, {"csv", "label,x\n1,2\n"}},
         "expected \"" LONG_NAME "1\", ... as in first, got \"x\" in second"},
        {{{"csv", "label,x\n1,2\n"}, {"csv", "label,xy\n1,2\n"}},
         "expected \"x\" as in first, got \"xy\" in second"},
        {{{"tar", "a.txt=x"}, {"tar", "b.cls=1"}},
         "mix m: expected sources that have a field in common, got none in first and second: "},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mixed m;

        mix(rows[i].source, &m);
        if (i == 0)
            assert_notes_have(&m.ds->notes, rows[i].says);
        else if (!strstr(m.ds->reason.text, rows[i].says))
            fail_msg("rows[%zu]: %s", i, m.ds->reason.text);
        mixed_release(&m);
    }
}
