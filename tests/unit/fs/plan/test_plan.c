#include "fs/plan/plan.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

#include "base/scope.h"

static int parse(const char *name, struct plan *ret, struct diag *d)
{
    return plan_parse(name, strlen(name), ',', ret, d);
}

static void check_canonical(const char *name, const char *want)
{
    struct diag d = DIAG_INIT;
    char got[PLAN_NAME_SIZE];
    struct plan plan;

    if (parse(name, &plan, &d) < 0)
        fail_msg("'%s': %s", name, d.text);
    plan_name(&plan, got);
    assert_string_equal(got, want);
}

UNIT_TEST(test_plan_parse__every_parameter__fields)
{
    struct plan p;

    assert_int_equal(
        parse("batch=128,part=1of3,rank=2of4,seed=7,shuffle=window:64,tail=wrap", &p, NULL), 0);
    assert_int_equal(p.batch, 128);
    assert_int_equal(p.part, 1);
    assert_int_equal(p.parts, 3);
    assert_int_equal(p.rank, 2);
    assert_int_equal(p.ranks, 4);
    assert_true(p.seeded);
    assert_int_equal(p.seed, 7);
    assert_int_equal(p.window, 64);
    assert_int_equal(p.tail, TAIL_WRAP);
}

UNIT_TEST(test_plan_parse__batch_only__defaults)
{
    struct plan p;

    assert_int_equal(parse("batch=all", &p, NULL), 0);
    assert_int_equal(p.batch, 0);
    assert_int_equal(p.part, 0);
    assert_int_equal(p.parts, 1);
    assert_int_equal(p.rank, 0);
    assert_int_equal(p.ranks, 1);
    assert_false(p.seeded);
    assert_int_equal(p.window, 0);
    assert_int_equal(p.tail, TAIL_KEEP);
}

UNIT_TEST(test_plan_guess__wrong_names__what_was_meant)
{
    static const struct {
        const char *name, *want; /* NULL: cannot be guessed */
    } cases[] = {
        {"batch=128,sed=7", "batch=128,seed=7"},
        {"Batch=128,SEED=7", "batch=128,seed=7"},
        {"bacth=4", "batch=4"},
        {"batch=128+seed=7", "batch=128,seed=7"},
        {"seed=7;batch=128", "batch=128,seed=7"},
        {"batch=128,seed=7,", "batch=128,seed=7"},
        {"batch=4,shufle=window:8,sead=1", "batch=4,seed=1,shuffle=window:8"},
        {"seed=7", NULL},
        {"batch=128,seed=x", NULL},
        {"batch=0", NULL},
        {"batch", NULL},
        {"nonsense=1", NULL},
        {"a_word_that_is_longer_than_any_parameter_could_ever_be=1", NULL},
        {"", NULL},
        {",,", NULL},
        {"=", NULL},
    };
    char got[PLAN_NAME_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (plan_guess(cases[i].name, got) != (cases[i].want != NULL))
            fail_msg("'%s'", cases[i].name);
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
    }
}

UNIT_TEST(test_plan_name__defaults__left_out)
{
    check_canonical("batch=1", "batch=1");
    check_canonical("batch=all", "batch=all");
    check_canonical("batch=4,part=0of1", "batch=4");
    check_canonical("batch=4,rank=0of1", "batch=4");
    check_canonical("batch=4,tail=keep", "batch=4");
    check_canonical("batch=4,seed=0", "batch=4,seed=0");
    check_canonical("batch=4,seed=0,shuffle=full", "batch=4,seed=0");
    check_canonical("batch=4,part=0of2", "batch=4,part=0of2");
    check_canonical("batch=4,tail=drop", "batch=4,tail=drop");
    check_canonical("limit=9,split=1@8:1:1,batch=4,take=10%:600,seed=1,tail=wrap",
                    "batch=4,take=10%:600,split=1@8:1:1,seed=1,limit=9,tail=wrap");
    check_canonical("batch=4,take=0:0,limit=0", "batch=4,take=0:0,limit=0");
    check_canonical("batch=4,split=15@1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:4294967295",
                    "batch=4,split=15@1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:4294967295");
}

UNIT_TEST(test_plan_name__any_order__canonical)
{
    static const char *const word[] = {"batch=8", "part=3of7",        "rank=5of8",
                                       "seed=42", "shuffle=window:9", "tail=drop"};
    unsigned order[6] = {0, 1, 2, 3, 4, 5}, count = 0;

    for (unsigned code = 0; code < 6 * 6 * 6 * 6 * 6 * 6; code++) { /* all 720 permutations */
        unsigned seen = 0, c = code;
        char name[PLAN_NAME_SIZE] = "";

        for (unsigned i = 0; i < 6; i++, c /= 6) {
            order[i] = c % 6;
            seen |= 1u << order[i];
        }
        if (seen != 63)
            continue;
        for (unsigned i = 0; i < 6; i++)
            snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%s", i ? "," : "",
                     word[order[i]]);
        check_canonical(name, "batch=8,part=3of7,rank=5of8,seed=42,shuffle=window:9,tail=drop");
        count++;
    }
    assert_int_equal(count, 720);
}

UNIT_TEST(test_plan_parse__largest_numbers__fit)
{
    static const char name[] = "batch=281474976710656,part=281474976710655of281474976710656,"
                               "rank=281474976710655of281474976710656,seed=18446744073709551615,"
                               "shuffle=window:281474976710656,tail=wrap";

    assert_true(sizeof(name) <= PLAN_NAME_SIZE);
    check_canonical(name, name);
}

UNIT_TEST(test_plan_parse__plus__separator_of_options)
{
    struct diag d = DIAG_INIT;
    struct plan p;

    assert_int_equal(plan_parse("seed=7+batch=128", 16, '+', &p, NULL), 0);
    assert_int_equal(p.batch, 128);
    assert_int_equal(p.seed, 7);
    assert_int_equal(plan_parse("batch=128,seed=7", 16, '+', &p, &d), -EINVAL);
    assert_int_equal(plan_parse("batch=128+seed=7", 16, ',', &p, NULL), -EINVAL);
}

UNIT_TEST(test_plan_parse__length__bounds_it)
{
    struct plan p;

    assert_int_equal(plan_parse("batch=123,seed=7", 8, ',', &p, NULL), 0);
    assert_int_equal(p.batch, 12);
    assert_false(p.seeded);
}

UNIT_TEST(test_plan_parse__malformed__einval)
{
    static const struct {
        const char *name, *message;
    } cases[] = {
        {"", "not a parameter"},
        {",", "not a parameter"},
        {"batch", "batch: expected"},
        {"batch=", "batch: expected"},
        {"batch=0", "got '0'"},
        {"batch=2,unit=", "unit: expected"},
        {"batch=2,unit=qid,only=a", "unit: expected a plan without only="},
        {"batch=2,unit=qid,draw=9:balanced", "unit: expected a plan without draw= by classes"},
        {"batch=4,unit=qid,classes=2x2,seed=1", "unit: expected a plan without classes="},
        {"batch=tokens:9,unit=qid", "unit: expected a plan without batch=HOW:N"},
        {"batch=00", "got '00'"},
        {"batch=01", "got '01'"},
        {"batch=-1", "got '-1'"},
        {"batch=+1", "got '+1'"},
        {"batch= 1", "got ' 1'"},
        {"batch=1 ", "got '1 '"},
        {"batch=1.5", "got '1.5'"},
        {"batch=1e3", "got '1e3'"},
        {"batch=0x10", "got '0x10'"},
        {"batch=ALL", "got 'ALL'"},
        {"batch=alll", "got 'alll'"},
        {"batch=al", "got 'al'"},
        {"batch=281474976710657", "got '281474976710657'"},
        {"batch=18446744073709551616", "got '18446744073709551616'"},
        {"batch=18446744073709551617", "got '18446744073709551617'"},
        {"batch=340282366920938463463374607431768211457", "batch: expected"},
        {"Batch=1", "'Batch' is not a parameter"},
        {"batc=1", "'batc' is not a parameter"},
        {"batchs=1", "'batchs' is not a parameter"},
        {"batch=1,", "'' is not a parameter"},
        {",batch=1", "'' is not a parameter"},
        {"batch=1,,seed=2", "'' is not a parameter"},
        {"batch=1,batch=1", "batch is given twice"},
        {"batch=1,seed=1,seed=2", "seed is given twice"},
        {"batch=1,tail=keep,tail=keep", "tail is given twice"},
        {"batch=1,foo=2", "'foo' is not a parameter"},
        {"batch=1,foo", "'foo' is not a parameter"},
        {"batch=1,=", "'' is not a parameter"},
        {"batch==1", "got '=1'"},
        {"seed=1", "batch= is missing"},
        {"rank=0of1", "batch= is missing"},
        {"batch=1,part=4of4", "got '4of4'"},
        {"batch=1,rank=4of4", "got '4of4'"},
        {"batch=1,rank=5of4", "got '5of4'"},
        {"batch=1,rank=0of0", "got '0of0'"},
        {"batch=1,rank=1", "rank: expected"},
        {"batch=1,rank=of4", "rank: expected"},
        {"batch=1,rank=1of", "rank: expected"},
        {"batch=1,rank=1of04", "rank: expected"},
        {"batch=1,rank=01of4", "rank: expected"},
        {"batch=1,rank=1/4", "rank: expected"},
        {"batch=1,rank=1OF4", "rank: expected"},
        {"batch=1,rank=1of4x", "rank: expected"},
        {"batch=1,rank=-1of4", "rank: expected"},
        {"batch=1,rank=0of281474976710657", "rank: expected"},
        {"batch=1,rank=0of18446744073709551617", "rank: expected"},
        {"batch=1,part=281474976710657of281474976710658", "part: expected"},
        {"batch=1,seed=", "seed: expected"},
        {"batch=1,seed=-1", "seed: expected"},
        {"batch=1,seed=01", "got '01'; numbers have no leading zeros"},
        {"batch=1,rank=1of08", "got '1of08'; numbers have no leading zeros"},
        {"batch=tokens:9,quad=00.5", "got '00.5'; numbers have no leading zeros"},
        {"batch=tokens:9,quad=0.0000001", "got '0.0000001'"},
        {"batch=1,seed=18446744073709551616", "seed: expected"},
        {"batch=1,shuffle=full", "shuffle= needs seed="},
        {"batch=1,shuffle=window:4", "shuffle= needs seed="},
        {"batch=1,seed=1,shuffle=", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=none", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=fulls", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window:", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window:0", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window:04", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window:4x", "shuffle: expected"},
        {"batch=1,seed=1,shuffle=window:281474976710657", "shuffle: expected"},
        {"batch=1,take=", "take: expected"},
        {"batch=1,take=5", "take: expected"},
        {"batch=1,take=5:", "take: expected"},
        {"batch=1,take=:5", "take: expected"},
        {"batch=1,take=6:5", "got '6:5'"},
        {"batch=1,take=60%:50%", "got '60%:50%'"},
        {"batch=1,take=0:101%", "got '0:101%'"},
        {"batch=1,take=0:5%%", "take: expected"},
        {"batch=1,take=0:5:6", "take: expected"},
        {"batch=1,take=-1:5", "take: expected"},
        {"batch=1,take=0:281474976710657", "take: expected"},
        {"batch=1,split=0", "split: expected"},
        {"batch=1,split=0@", "split: expected"},
        {"batch=1,split=@1:1", "split: expected"},
        {"batch=1,split=2@1:1", "got '2@1:1'"},
        {"batch=1,split=0@0:0", "got '0@0:0'"},
        {"batch=1,split=0@1:", "split: expected"},
        {"batch=1,split=0@1::1", "split: expected"},
        {"batch=1,split=0@1:-1", "split: expected"},
        {"batch=1,split=0@0.5:0.5", "split: expected"},
        {"batch=1,split=0@1:4294967296", "split: expected"},
        {"batch=1,split=0@1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1", "split: expected"},
        {"batch=1,split=16@1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1", "split: expected"},
        {"batch=1,limit=", "limit: expected"},
        {"batch=1,limit=-1", "limit: expected"},
        {"batch=1,limit=10%", "limit: expected"},
        {"batch=281474976710656,take=281474976710655:281474976710656,part=281474976710655of"
         "281474976710656,rank=281474976710655of281474976710656,seed=18446744073709551615,limit="
         "7777777,shuffle=window:8888888,"
         "split=0@4294967295:4294967295:4294967295:4294967295:4294967295:4294967295",
         "expected a name of at most 255 characters"},
        {"batch=1,tail=", "tail: expected"},
        {"batch=1,tail=Keep", "tail: expected"},
        {"batch=1,tail=keeps", "tail: expected"},
        {"batch=1,tail", "tail: expected"},
        {"batch=1+seed=2", "batch: expected"},
        {"batch=1;seed=2", "batch: expected"},
        {"batch=1\n", "batch: expected"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct diag d = DIAG_INIT;
        struct plan p;

        if (parse(cases[i].name, &p, &d) != -EINVAL)
            fail_msg("'%s' was taken", cases[i].name);
        assert_diag_has(&d, cases[i].message);
        if (strstr(cases[i].name, "0.0") && strstr(d.text, "leading"))
            fail_msg("'%s': %s", cases[i].name, d.text);
    }
}

UNIT_TEST(test_plan_parse__nul_inside__einval)
{
    struct plan p;

    assert_int_equal(plan_parse("batch=1\0", 8, ',', &p, NULL), -EINVAL);
    assert_int_equal(plan_parse("batch\0=1", 8, ',', &p, NULL), -EINVAL);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Numbers of every size up to max. */
static uint64_t random_number(uint64_t *state, uint64_t max)
{
    uint64_t v = next_random(state) >> (next_random(state) % 64);

    return max == UINT64_MAX ? v : v % (max + 1);
}

UNIT_TEST(test_plan_name__random_plans__parse_back)
{
    uint64_t rng = 88172645463325252;

    for (int i = 0; i < 100000; i++) {
        struct plan p = {0}, q;
        char name[PLAN_NAME_SIZE], again[PLAN_NAME_SIZE];
        struct diag d = DIAG_INIT;

        p.batch = random_number(&rng, PLAN_NUMBER_MAX);
        p.parts = random_number(&rng, PLAN_NUMBER_MAX - 1) + 1;
        p.part = random_number(&rng, p.parts - 1);
        p.ranks = random_number(&rng, PLAN_NUMBER_MAX - 1) + 1;
        p.rank = random_number(&rng, p.ranks - 1);
        p.seeded = next_random(&rng) % 2;
        p.seed = p.seeded ? random_number(&rng, UINT64_MAX) : 0;
        p.window = p.seeded ? random_number(&rng, PLAN_NUMBER_MAX) : 0;
        p.tail = (enum plan_tail)(next_random(&rng) % 3);
        p.limits = next_random(&rng) % 2;
        p.limit = p.limits ? random_number(&rng, PLAN_NUMBER_MAX) : 0;
        plan_name(&p, name);
        if (parse(name, &q, &d) < 0)
            fail_msg("'%s': %s", name, d.text);
        assert_int_equal(q.batch, p.batch);
        assert_int_equal(q.part, p.part);
        assert_int_equal(q.parts, p.parts);
        assert_int_equal(q.rank, p.rank);
        assert_int_equal(q.ranks, p.ranks);
        assert_int_equal(q.seeded, p.seeded);
        assert_int_equal(q.seed, p.seed);
        assert_int_equal(q.window, p.window);
        assert_int_equal(q.tail, p.tail);
        assert_int_equal(q.limit, p.limit);
        plan_name(&q, again);
        assert_string_equal(again, name);
    }
}

UNIT_TEST(test_plan_has_parameter__words__right)
{
    assert_true(plan_has_parameter("batch"));
    assert_true(plan_has_parameter("tail"));
    assert_false(plan_has_parameter("batch="));
    assert_false(plan_has_parameter("tai"));
    assert_false(plan_has_parameter(""));
}

UNIT_TEST(test_plan_syntax__narrow__lines_break_between_parameters)
{
    AUTO_TEXT struct text wide = {0}, narrow = {0};

    plan_syntax(&wide, "", 1000);
    assert_string_equal(wide.data,
                        "batch=<n|all|HOW:N[:MOST]>[,bucket=W][,quad=Q][,group=G]"
                        "[,only=NAME][,take=A:B][,length=A:B[:HOW]]"
                        "[,split=K@W0:W1:...][,part=KofN]"
                        "[,rank=KofN][,seed=S][,shuffle=full|window:M]"
                        "[,draw=N:uniform|balanced[:FIELD]|FIELD][,classes=PxK[:FIELD]][,limit=N]"
                        "[,tail=keep|drop|wrap][,unit=FIELD][,picture=HxW[ofS]][,augment=NAME]\n");
    plan_syntax(&narrow, "  ", 30);
    assert_string_equal(narrow.data, "  batch=<n|all|HOW:N[:MOST]>\n"
                                     "        [,bucket=W][,quad=Q]\n"
                                     "        [,group=G][,only=NAME]\n"
                                     "        [,take=A:B]\n"
                                     "        [,length=A:B[:HOW]]\n"
                                     "        [,split=K@W0:W1:...]\n"
                                     "        [,part=KofN]\n"
                                     "        [,rank=KofN][,seed=S]\n"
                                     "        [,shuffle=full|window:M]\n"
                                     "        [,draw=N:uniform|balanced[:FIELD]|FIELD]\n"
                                     "        [,classes=PxK[:FIELD]]\n"
                                     "        [,limit=N]\n"
                                     "        [,tail=keep|drop|wrap]\n"
                                     "        [,unit=FIELD]\n"
                                     "        [,picture=HxW[ofS]]\n"
                                     "        [,augment=NAME]\n");
}

UNIT_TEST(test_plan_help__a_line_for_each)
{
    AUTO_TEXT struct text t = {0};

    plan_help(&t);
    assert_non_null(strstr(t.data, "  batch=<n|all|HOW:N[:MOST]>             samples of a batch;"));
    assert_non_null(
        strstr(t.data, "\n  tail=keep|drop|wrap                    a short last batch"));
}
