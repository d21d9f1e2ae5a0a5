/* Which field of a dataset is its label, how many samples each of its classes has, and how long
 * samples are: of small files in memory. */
#include <errno.h>
#include <stdio.h>

#include "base/memo.h"
#include "base/scope.h"
#include "format/labels/class_counts.h"
#include "format/labels/field_input.h"
#include "format/labels/label_choice.h"
#include "format/registry.h"
#include "support/absent_blob.h"
#include "support/libsvm_make.h"
#include "support/memory_opener.h"
#include "support/one_store.h"
#include "support/tar_make.h"
#include "support/unit.h"

struct opened {
    struct memo *memo;
    struct memory_opener opener;
    struct found found;
    struct dataset *ds;
};

/* text: of an archive as tar_put_members() takes them. absent: where its bytes are; NULL: here. */
static void open_text(const char *format, const char *text, struct absent *absent,
                      struct opened *ret)
{
    struct format_setup setup = {.keep = &no_store};
    AUTO_TEXT struct text t = {0};
    struct blob *blob;
    uint64_t random = 1;
    unsigned i = 0;

    if (!strcmp(format, "tar"))
        tar_put_members(&t, text);
    else
        text_add(&t, "%s", text);
    blob = memory_blob_new("a", t.data, t.len, t.len, NULL);
    blob = absent ? absent_blob_new(blob, absent) : blob;
    while (strcmp(formats[i]->name, format) != 0)
        i++;
    assert_int_equal(memo_new(1 << 20, &ret->memo), 0);
    setup.memo = ret->memo;
    memory_opener_init(&ret->opener);
    setup.opener = &ret->opener.opener;
    assert_int_equal(format_open(formats[i], &blob, 1, &setup, &ret->found), 0);
    ret->ds = ret->found.item[0].ds;
    assert_non_null(ret->ds);
    while (!dataset_prepare(ret->ds))
        continue;
    assert_int_equal(dataset_state(ret->ds), DATASET_READY);
    if (absent)
        absent_drop(absent, 256, &random);
}

static void close_text(struct opened *o)
{
    found_release(&o->found);
    memo_free(o->memo);
}

/* Each class and its samples; the one with the fewest, that with the most. */
static void show_counts(const struct class_counts *c, struct text *t)
{
    for (uint64_t i = 0; i < c->n; i++) {
        size_t len = 0;
        const char *text =
            c->has_texts ? numbered_text(&c->texts, c->texts.sorted[c->value[i]], &len) : "";

        text_add(t, "%.*s", (int)len, text);
        text_add(t, c->has_texts ? ":%llu " : "%lld:%llu ",
                 c->has_texts ? (unsigned long long)c->count[i] : (unsigned long long)c->value[i],
                 (unsigned long long)c->count[i]);
    }
    text_add(t, "%llu %llu", (unsigned long long)c->least, (unsigned long long)c->most);
}

UNIT_TEST(test_choice__of_fields__counts_and_one_hot)
{
    static const struct {
        const char *format, *text, *label; /* label: of all datasets; with "=": of this one alone */
        uint64_t classes;
        const char *counts; /* as shown above; NULL: there are none */
        uint64_t width;     /* of label1h; 0: there is none */
        const char *note;   /* a piece of the notes; NULL: none is added */
    } rows[] = {
        {"csv", "label,x\n3,1\n5,2\n3,1\n", "label", 0, "3:2 5:1 1 0", 6, NULL},
        {"csv", "label,x\n5,1\n3,2\n5,1\n4,1\n4,0\n", "label", 0, "3:1 4:2 5:2 0 1", 6, NULL},
        {"csv", "label,x\n3,1\n", "label", 10, "3:1 0 0", 10, NULL},
        {"csv", "label,x\n65535,1\n0,1\n", "label", 0, "0:1 65535:1 0 0", 65536, NULL},
        {"csv", "label,x\n65536,1\n", "label", 0, "65536:1 0 0", 0,
         "there is no label1h of label: expected labels below 65536, got 65536"},
        {"csv", "label,x\n7,1\n-1,1\n", "label", 0, "-1:1 7:1 0 0", 0,
         "there is no label1h of label: expected labels from 0, got -1"},
        {"csv", "label,x\n1,1\n1.5,1\n", "label", 0, NULL, 0,
         "expected a whole number, the number of a"},
        {"csv", "label,x\n1,1\n", "y", 0, "1:1 0 0", 0, NULL}, /* of another dataset */
        {"csv", "label,x\n1,1\n", "=y", 0, "1:1 0 0", 0,
         "label=y: the dataset has no field 'y'; its fields with a number in each sample: label. "
         "-o "
         "label=FIELD makes one of them its label. Its classes are those of 'label'"},
        {"csv", "label,x\n2,1\n", "=label", 0, "2:1 0 0", 3, NULL},
        {"csv", "label,x\n1,1\n", NULL, 0, "1:1 0 0", 0, NULL},
        {"csv", "label,x\n1,-1\n1,-1\n1,0\n", "x", 0, NULL, 0,
         "x: expected a number in each sample"},
        {"tar", "a.txt=dog|b.txt=cat|c.txt=dog", "txt", 0, "cat:1 dog:2 0 1 [\"cat\", \"dog\"]", 0,
         "there is no label1h of txt: its classes are texts"},
        {"tar", "a.txt=dog|b.cls=3", "txt", 0, NULL, 0, "field txt: sample 1 lacks it"},
        {"tar", "a.cls=4|b.cls=2|c.cls=4", "cls", 0, "2:1 4:2 0 1", 5, NULL},
        {"tar", "a.cls=4|a.label1h=x", "cls", 0, "4:1 0 0", 0,
         "there is no label1h of cls: a field of the source has that name"},
        {"csv", "label,x\n1,1\n", "index", 0, NULL, 0,
         "got the numbers that epochfs gives to samples"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const bool is_own = rows[i].label && *rows[i].label == '=';
        const struct label_choice choice = {.field = is_own ? NULL : rows[i].label,
                                            .classes = rows[i].classes};
        AUTO_CLASS_COUNTS struct class_counts counts = {0};
        AUTO_TEXT struct text shown = {0};
        const struct field *f, *one_hot;
        struct opened o;
        size_t notes;
        struct diag d = DIAG_INIT;
        int r;

        open_text(rows[i].format, rows[i].text, NULL, &o);
        notes = o.ds->notes.n;
        o.ds->wanted_label = is_own ? strdup(rows[i].label + 1) : NULL;
        assert_int_equal(label_choice_apply(&choice, o.ds), 0);
        assert_int_equal(label_choice_apply(&choice, o.ds), 0); /* again, nothing more */
        one_hot = dataset_field(o.ds, "label1h");
        if ((one_hot && one_hot->base_field ? one_hot->dim[0] : 0) != rows[i].width)
            fail_msg("rows[%zu]: label1h", i);
        if (rows[i].note)
            assert_notes_have(&o.ds->notes, rows[i].note);
        else
            assert_int_equal(o.ds->notes.n, notes);
        f = class_counts_field(o.ds);
        r = f ? class_counts_init(&counts, o.ds, f, &d) : -EINVAL;
        if (r == 0)
            show_counts(&counts, &shown);
        if (o.ds->class_names)
            text_add(&shown, " [%s]", o.ds->class_names);
        if (r == 0 ? !rows[i].counts || strcmp(shown.data, rows[i].counts) != 0 : !!rows[i].counts)
            fail_msg("rows[%zu]: %d, '%s'", i, r, shown.len ? shown.data : d.text);
        close_text(&o);
    }
}

/* How long each sample is by a word; or a piece of the reason. */
UNIT_TEST(test_lengths__by_words__of_each_sample)
{
    static const struct {
        const char *format, *text, *word, *want;
    } rows[] = {
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "rows", "2 0 1 "},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "format",
         "length format: the field has one shape, and is no number. Use bytes, or a field that has "
         "lengths: label, x, indices, row"},
        {"csv", "1,2\n3,4\n", "rows", "length rows: the dataset has none. Use bytes"},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "bytes", "9 1 5 "},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "", "9 1 5 "},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "label", "1 0 7 "},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "row", "10 2 6 "},
        {"libsvm", "1 1:2 3:4\n0\n7 2:1\n", "x", "4 4 4 "},
        {"libsvm", "1 1:2 3:4\n0\n", "tokens", "length tokens: the dataset has none. Use bytes"},
        {"libsvm", "1 1:2 3:4\n0\n", "seconds", "length seconds: the dataset has none"},
        {"libsvm", "1 1:2 3:4\n0\n", "y", "length y: the dataset has none"},
        {"libsvm", "1 1:2 3:4\n0\n", "index",
         "length index: the field has one shape, and is no number. Use bytes, or a field"},
        {"libsvm", "1.5 1:2 3:4\n", "label", "expected a whole number, a length, got 1.5"},
        {"jsonl", "{\"a\": 1}\n[]\n", "bytes", "8 2 "},
        {"jsonl", "{\"a\": 1}\n[]\n", "lines", "9 3 "},
        {"kaldi", "u1  [\n  1 2\n  3 4 ]\nu2  [\n  5 6 ]\n", "", "2 1 "},
        {"kaldi", "u1  [\n  1 2\n  3 4 ]\nu2  [\n  5 6 ]\n", "frames", "2 1 "},
        {"kaldi", "u1  [ 1 2 ]\nu2  [ 5 ]\n", "frames", "length frames: the dataset has none"},
        {"kaldi", "u1  [ 1 2 ]\nu2  [ 5 ]\n", "data", "2 1 "},
        {"tar", "a.txt=one|a.cls=5|b.txt=|b.cls=26", "bytes", "4 2 "},
        {"tar", "a.txt=one|a.cls=5|b.txt=|b.cls=26", "txt", "3 0 "},
        {"tar", "a.txt=one|a.cls=5|b.txt=|b.cls=26", "cls", "5 26 "},
        {"tar", "a.txt=one|b.jpg=two", "txt", "lengths of field txt: sample 1 lacks it"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(field_input_release) struct field_input in = {0};
        AUTO_TEXT struct text shown = {0};
        struct diag d = DIAG_INIT;
        struct absent absent = {0};
        int64_t value[8];
        struct opened o;
        int r;

        open_text(rows[i].format, rows[i].text, &absent, &o);
        r = length_input_init(&in, o.ds, rows[i].word, &d);
        if (r == 0)
            r = label_read_whole(&in.input, READ_WAITS, 0, o.ds->samples, value, &d);
        for (uint64_t k = 0; k < o.ds->samples && r == 0; k++)
            text_add(&shown, "%lld ", (long long)value[k]);
        if (r == 0 ? strcmp(shown.data, rows[i].want) != 0 : !strstr(d.text, rows[i].want))
            fail_msg("rows[%zu]: %d, '%s'", i, r, r == 0 ? shown.data : d.text);
        close_text(&o);
    }
}
