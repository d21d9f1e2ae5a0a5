/* Which files of a folder are parts of one set by their names. */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/core/siblings.h"
#include "support/unit.h"

#define NAMES 12

/* Sets as text: "emb.npy: emb_0.npy emb_1.npy (emb_3.npy missing); " */
static const struct {
    const char *name[NAMES];
    const char *want;
} cases[] = {
    {{"emb_0.npy", "emb_1.npy", "emb_2.npy"}, "emb.npy: emb_0.npy emb_1.npy emb_2.npy; "},
    {{"emb_1.npy", "emb_10.npy", "emb_2.npy", "emb_3.npy", "emb_4.npy", "emb_5.npy", "emb_6.npy",
      "emb_7.npy", "emb_8.npy", "emb_9.npy"},
     "emb.npy: emb_1.npy emb_2.npy emb_3.npy emb_4.npy emb_5.npy emb_6.npy emb_7.npy emb_8.npy "
     "emb_9.npy emb_10.npy; "},
    {{"X_0.npy", "X_1.npy", "y_0.npy", "y_1.npy"},
     "X.npy: X_0.npy X_1.npy; y.npy: y_0.npy y_1.npy; "},
    /* Numbers begin with 0 or 1; the widths of numbers may differ. */
    {{"p0", "p1", "p3"}, "p: p0 p1 p3 (p2 missing); "},
    {{"p-01.csv", "p-03.csv"}, "p.csv: p-01.csv p-03.csv (p-02.csv missing); "},
    {{"p-08", "p-09", "p-10", "p-7"}, "p: p-7 p-08 p-09 p-10; "},
    {{"p-1", "p-2", "p-003", "p-5"}, "p: p-1 p-2 p-003 p-5 (p-4 missing); "},
    /* Years, and numbers of people, have gaps. */
    {{"2018.csv", "2021.csv"}, "csv: 2018.csv 2021.csv; "},
    {{"user_1.csv", "user_7.csv", "user_501.csv"},
     "user.csv: user_1.csv user_7.csv user_501.csv; "},
    /* -of-N names the set. */
    {{"t-00000-of-00002", "t-00000-of-00003", "t-00001-of-00002", "t-00001-of-00003"},
     "t: t-00000-of-00002 t-00001-of-00002; t: t-00000-of-00003 t-00001-of-00003 "
     "(t-00002-of-00003 missing); "},
    {{"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"},
     "model.safetensors: model-00001-of-00003.safetensors model-00003-of-00003.safetensors "
     "(model-00002-of-00003.safetensors missing); "},
    {{"x-00000-of-00002.rec"}, "x.rec: x-00000-of-00002.rec (x-00001-of-00002.rec missing); "},
    {{"x-1-of-3"}, "x: x-1-of-3 (x-0-of-3 missing) (x-2-of-3 missing); "},
    {{"x_3_of_3", "x_1_of_3"}, "x: x_1_of_3 x_3_of_3 (x_2_of_3 missing); "},
    {{"part1of2.bin", "part2of2.bin"}, "part.bin: part1of2.bin part2of2.bin; "},
    {{"a-3-of-2"}, ""},
    {{"s1-00000-of-00001", "s2-00000-of-00001"}, "s1: s1-00000-of-00001; s2: s2-00000-of-00001; "},
    {{"x-00000-of-00001-00000-of-00002", "x-00000-of-00001-00001-of-00002"},
     "x-00000-of-00001: x-00000-of-00001-00000-of-00002 x-00000-of-00001-00001-of-00002; "},
    {{"roof-1-office", "roof-2-office"}, "roof-office: roof-1-office roof-2-office; "},
    {{"of", "2of", "of2", "-of-", "0-of-"}, ""},
    /* The last number that names differ by. */
    {{"a1.h5", "a2.h5"}, "a.h5: a1.h5 a2.h5; "},
    {{"v2_s0.x", "v2_s1.x", "v3_s0.x", "v3_s1.x"},
     "v2_s.x: v2_s0.x v2_s1.x; v3_s.x: v3_s0.x v3_s1.x; "},
    {{"m.rec0", "m.rec1"}, "m.rec: m.rec0 m.rec1; "},
    /* Ranges, with the end in them or not. */
    {{"emb-0-1000.npy", "emb-1000-2000.npy"}, "emb.npy: emb-0-1000.npy emb-1000-2000.npy; "},
    {{"emb_0000_0999", "emb_1000_1999", "emb_3000_3999"},
     "emb: emb_0000_0999 emb_1000_1999 emb_3000_3999 (emb_2000_2999 missing); "},
    {{"p-0-5", "p-5-10", "p-20-25", "p-3-10.x", "p-10-40.x"},
     "p: p-0-5 p-5-10 p-20-25 (p-10-20 missing); p.x: p-3-10.x p-10-40.x; "},
    {{"img-480-640", "img-720-1280"}, ""},
    {{"a-0-10", "a-5-15"}, ""},
    {{"a-0-10", "a-10-20", "a-21-30"}, ""},
    {{"d-2024-01", "d-2025-02"}, ""},
    /* No siblings. */
    {{"train.npy", "test.npy"}, ""},
    {{"a1", "b2"}, ""},
    {{"fold1.npy", "fold2.npy", "x_fold_1", "x_fold_2"}, ""},
    {{"x-1234567890123456789", "x-1234567890123456788"}, ""}, /* an id */
    {{""}, ""},
};

static void describe(const struct siblings *s, struct text *t)
{
    for (size_t i = 0; i < s->n; i++) {
        AUTO_MISSING_PARTS struct missing_parts missing = {0};
        char name[256] = "?";

        sibling_set_name(s, i, name, sizeof(name));
        text_add(t, "%s:", name);
        for (size_t k = 0; k < s->set[i].n; k++) {
            const struct sibling *m = &s->member[s->set[i].first + k];

            assert_int_equal(s->set_of[m->file], i + 1);
            text_add(t, " %s", s->name[m->file]);
        }
        assert_int_equal(sibling_set_missing(s, i, NULL, NULL, &missing), 0);
        for (size_t k = 0; k < missing.n; k++)
            text_add(t, " (%s missing)", missing.part[k].name);
        text_add(t, "; ");
    }
}

UNIT_TEST(test_sets)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_SIBLINGS struct siblings s = {0};
        AUTO_TEXT struct text t = {0};
        size_t n = 0;

        while (n < NAMES && cases[i].name[n])
            n++;
        assert_int_equal(siblings_find(cases[i].name, n, &s), 0);
        describe(&s, &t);
        if (strcmp(t.data ? t.data : "", cases[i].want) != 0)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].want, t.data);
    }
}

/* Two ways to cut one set. */
UNIT_TEST(test_other_total)
{
    static const char *const name[] = {"t-0-of-1", "t-0-of-2", "t-1-of-2", "u-0-of-3"};
    AUTO_SIBLINGS struct siblings s = {0};

    assert_int_equal(siblings_find(name, ARRAY_LEN(name), &s), 0);
    assert_int_equal(s.n, 3);
    assert_int_equal(sibling_set_other(&s, 0), 1);
    assert_int_equal(sibling_set_other(&s, 1), 0);
    assert_int_equal(sibling_set_other(&s, 2), 2);
}

UNIT_TEST(test_two)
{
    assert_true(are_siblings("d/p0.csv", "d/p1.csv"));
    assert_false(are_siblings("d/a.csv", "d/b.csv"));
    assert_false(are_siblings("t-0-of-2", "t-0-of-3"));
    assert_false(are_siblings("t-0-of-2", "u"));
}

/* First numbers that may begin with 0 or 1 say so. */
UNIT_TEST(test_doubt)
{
    static const char *const name[] = {"t-1-of-3", "t-2-of-3"};
    AUTO_SIBLINGS struct siblings s = {0};
    AUTO_MISSING_PARTS struct missing_parts missing = {0};

    assert_int_equal(siblings_find(name, ARRAY_LEN(name), &s), 0);
    assert_int_equal(sibling_set_missing(&s, 0, NULL, NULL, &missing), 0);
    assert_int_equal(missing.n, 1);
    assert_string_equal(missing.part[0].name, "t-0-of-3");
    assert_non_null(strstr(missing.part[0].reason, "if numbers begin at 1"));
}

/* A million names, and a set that lacks nearly a million. */
UNIT_TEST(test_many)
{
    enum { N = 100000 };
    char(*text)[24] = calloc(N, sizeof(*text));
    const char **name = calloc(N, sizeof(*name));
    AUTO_SIBLINGS struct siblings s = {0}, one = {0};
    AUTO_MISSING_PARTS struct missing_parts missing = {0};
    const char *alone = "x-000000-of-1000000";

    for (size_t i = 0; i < N; i++) {
        snprintf(text[i], sizeof(*text), "%06zu.npy", N - i);
        name[i] = text[i];
    }
    assert_int_equal(siblings_find(name, N, &s), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.set[0].n, N);
    assert_string_equal(name[s.member[0].file], "000001.npy");
    assert_int_equal(siblings_find(&alone, 1, &one), 0);
    assert_int_equal(sibling_set_missing(&one, 0, NULL, NULL, &missing), 0);
    assert_int_equal(missing.n, 999999);
    free(text);
    free(name);
}
