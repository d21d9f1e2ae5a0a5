/* Which arrays are one dataset. */
#include "format/array/pairs.h"
#include "support/unit.h"

#include <stdio.h>

#include "base/text.h"

/* Names with numbers of samples, "x_train:5 y_train:5"; a number of 0 is omitted. */
static void make(struct arrays *arrays, const char *words)
{
    char copy[4096], *rest = copy, *word;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, " "))) {
        char *number = strchr(word, ':');
        struct array *a = arrays_add(arrays, word, (size_t)(number - word));

        assert_non_null(a);
        a->samples = (uint64_t)atoll(number + 1);
        if (!a->samples)
            assert_int_equal(array_leave_out(a, "zero"), 0);
    }
}

/* "train=x_train.x,y_train.y all=...": each group, and of each array the field. */
static void check(const char *words, bool pair, const char *want)
{
    AUTO_ARRAYS struct arrays arrays = {0};
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};
    AUTO_TEXT struct text t = {0};

    make(&arrays, words);
    assert_int_equal(arrays_pair(&arrays, pair, &groups), 0);
    for (size_t i = 0; i < groups.n; i++) {
        const struct array_group *g = &groups.group[i];

        text_add(&t, "%s%s%s=", i ? " " : "",
                 g->rule == PAIR_SPLIT     ? g->split
                 : g->rule == PAIR_SAMPLES ? "samples"
                                           : "alone",
                 g->is_main ? "(main)" : "");
        for (size_t k = 0; k < g->n; k++) {
            char field[ARRAY_NAME_MAX + 8];

            array_field_name(&arrays, g, k, field);
            text_add(&t, "%s%s.%s", k ? "," : "", arrays.array[g->member[k]].name, field);
        }
    }
    assert_string_equal(t.data ? t.data : "", want);
}

UNIT_TEST(test_pairs)
{
    check("x_train:5 y_train:5 x_test:2 y_test:2", true,
          "train=x_train.x,y_train.y test=x_test.x,y_test.y");
    check("train_images:5 train_labels:5 val_images:5 val_labels:4", true,
          "train=train_images.images,train_labels.labels val=val_images.images,val_labels.labels");
    check("x:5 y:5 z:7 w:7 v:7 u:1", true,
          "samples=x.x,y.y samples(main)=z.z,w.w,v.v alone=u.data");
    check("x:5 y:5 z:0", true, "samples(main)=x.x,y.y");
    check("x:5", true, "alone(main)=x.data");
    check("x:5 y:6", true, "alone=x.data alone=y.data");
    check("x:5 y:5", false, "alone=x.data alone=y.data");
    check("x_train:5 classes:10", true, "train=x_train.x alone=classes.data");
    check("x_train:5 index:5 key:5", true, "train=x_train.x samples(main)=index.index~2,key.key~2");
    check("x_train:5 train_x:5", true, "train=x_train.x,train_x.x~2");
    check("train:5 test:5 _train:5 train_:5", true,
          "samples=train.train,test.test,_train._train,train_.train_");
    check("train-x:5 train.y:5 X-Test:2 y_TEST:2 dev_x:1 x.validation:3", true,
          "train=train-x.x,train.y.y test=X-Test.X,y_TEST.y dev=dev_x.x validation=x.validation.x");
    /* No group is the main one where another is as large, or names say that it is a part. */
    check("a:5 b:5 c:7 d:7", true, "samples=a.a,b.b samples=c.c,d.d");
    check("a:5 b:5 c:5 d:7 e:7 f:7 g:9 h:9", true,
          "samples=a.a,b.b,c.c samples=d.d,e.e,f.f samples=g.g,h.h");
    check("a:5 b:5 c:7 d:7 e:9 f:9 g:9", true,
          "samples=a.a,b.b samples=c.c,d.d samples(main)=e.e,f.f,g.g");
    check("x_train:5 train_x:5 train.x:5", true, "train=x_train.x,train_x.x~2,train.x.x~3");
    check("x_train:5", false, "alone(main)=x_train.data");
    check("a-testx.b:5 c_d:5 _train_:4", true,
          "samples(main)=a-testx.b.a-testx.b,c_d.c_d alone=_train_.data");
    check("a_test_x:5 a_test_y:5", true, "samples=a_test_x.a_test_x,a_test_y.a_test_y");
    check("x_valid:5 x_val:5 x_trains:5 retrain_x:5", true,
          "valid=x_valid.x val=x_val.x samples(main)=x_trains.x_trains,retrain_x.retrain_x");
    check("x:0", true, "");
}

UNIT_TEST(test_pairs__too_many__alone)
{
    AUTO_ARRAYS struct arrays arrays = {0};
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};

    for (int i = 0; i <= PAIRED_MAX; i++) {
        char name[16];

        snprintf(name, sizeof(name), "a%d", i);
        arrays_add(&arrays, name, strlen(name))->samples = 3;
    }
    assert_int_equal(arrays_pair(&arrays, true, &groups), 0);
    assert_int_equal(groups.n, PAIRED_MAX + 1);
    assert_int_equal(groups.group[PAIRED_MAX].rule, PAIR_ALONE);
}

UNIT_TEST(test_pairs__counts_differ__found)
{
    AUTO_ARRAYS struct arrays arrays = {0};
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};
    const struct array *one, *other;

    make(&arrays, "x_train:5 z_train:5 y_train:6");
    assert_int_equal(arrays_pair(&arrays, true, &groups), 0);
    assert_true(array_group_differs(&arrays, groups.group, &one, &other));
    assert_string_equal(one->name, "x_train");
    assert_string_equal(other->name, "y_train");
    arrays.array[2].samples = 5;
    assert_false(array_group_differs(&arrays, groups.group, &one, &other));
}

UNIT_TEST(test_names__made_safe)
{
    static const struct {
        const char *name;
        size_t len;
        const char *want;
    } rows[] = {{"x", 1, "x"},
                {"d/x", 3, "d.x"}, /* */
                {"", 0, "data"},
                {"..", 2, "_."},
                {".x", 2, "_x"},
                {"/x", 2, "_x"},
                {"a\0b\n\x7f", 5, "a_b__"},
                {"\xc3\xa9\xff", 3, "\xc3\xa9_"}};
    AUTO_ARRAYS struct arrays arrays = {0};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(arrays_add(&arrays, rows[i].name, rows[i].len)->name, rows[i].want);
    assert_true(arrays.array[5].repeats);
    assert_false(arrays.array[4].repeats);
}
