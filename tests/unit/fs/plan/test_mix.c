/* The arithmetic of mixes against a model, and the bound that it promises. */
#include "fs/plan/mix.h"
#include "fs/plan/mix_text.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"

static struct mix *make(const struct mix_weights *weights, unsigned stretches, unsigned sources)
{
    struct mix *mix = NULL;

    assert_int_equal(mix_new(weights, stretches, sources, &mix), 0);
    return mix;
}

static struct mix_weights weights_of(uint64_t start, unsigned n, const uint32_t *weight)
{
    struct mix_weights ret = {.start = start};

    memcpy(ret.weight, weight, n * sizeof(*weight));
    return ret;
}

static unsigned source_at(const struct mix *mix, mix_number position)
{
    mix_number element;

    return mix_at(mix, position, &element);
}

/* A number below `below`, from a state. */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

/* ---- a period ---- */

UNIT_TEST(test_mix_at__weights_of_the_page__sources_of_the_page)
{
    static const struct {
        unsigned n;
        uint32_t weight[3];
        const char *sources;
    } rows[] = {
        {3, {5, 3, 2}, "0102010102"},
        {3, {7, 2, 1}, "0001001002"},
        {3, {1, 1, 1}, "012"},
        {2, {1, 9}, "1111111101"},
        {1, {1}, "0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct mix_weights w = weights_of(0, rows[i].n, rows[i].weight);
        struct mix *mix = make(&w, 1, rows[i].n);

        for (size_t p = 0; p < 3 * strlen(rows[i].sources); p++)
            assert_int_equal(source_at(mix, p), rows[i].sources[p % strlen(rows[i].sources)] - '0');
        mix_free(mix);
    }
}

/* The same by the rule itself: of the jobs that may begin, the one that is due first. */
static void check_period(const struct mix *mix, const uint32_t *weight, unsigned n, uint64_t period)
{
    uint64_t done[MIX_SOURCES_MAX] = {0};

    for (uint64_t p = 0; p < period; p++) {
        uint64_t least = UINT64_MAX;
        unsigned best = n;
        mix_number element;

        for (unsigned d = 0; d < n; d++) {
            uint64_t w = weight[d], due;

            if (done[d] == w || done[d] * period / w > p)
                continue;
            due = ((done[d] + 1) * period + w - 1) / w;
            if (due < least) {
                least = due;
                best = d;
            }
        }
        assert_int_equal(mix_at(mix, p, &element), best);
        assert_true(element == done[best]);
        done[best]++;
    }
}

/* Each prefix of `length` positions has more than its share - 1 and less than its share + 1. */
static void check_bound(const struct mix *mix, const uint32_t *weight, unsigned n, uint64_t period,
                        uint64_t length)
{
    uint64_t taken[MIX_SOURCES_MAX] = {0};

    for (uint64_t p = 1; p <= length; p++) {
        taken[source_at(mix, p - 1)]++;
        for (unsigned d = 0; d < n; d++) {
            uint64_t have = taken[d] * period, want = p * weight[d];

            assert_true(have < want + period && want < have + period);
        }
    }
}

UNIT_TEST(test_mix_at__random_weights__rule_and_bound)
{
    uint64_t random = 1;

    for (unsigned i = 0; i < 1200; i++) {
        struct mix_weights w = {.start = 0};
        unsigned n = 1 + (unsigned)draw(&random, 9);
        uint64_t most = 1 + draw(&random, i % 2 ? 150 : 8), period = 0;
        struct mix *mix;

        for (unsigned d = 0; d < n; d++)
            period += w.weight[d] = 1 + (uint32_t)draw(&random, most);
        mix = make(&w, 1, n);
        check_period(mix, w.weight, n, period);
        check_bound(mix, w.weight, n, period, 2 * period);
        mix_free(mix);
    }
}

/* Weights that are hard for greedy rules, and the largest period. */
UNIT_TEST(test_mix_at__hard_weights__rule_and_bound)
{
    static const uint32_t hard[] = {2, 115, 2, 1, 7, 1, 2, 2};
    struct mix_weights rows[4] = {weights_of(0, 8, hard),
                                  {.weight = {1, MIX_PERIOD_MAX - 1}},
                                  {.weight = {1000}},
                                  {.start = 0}};
    const unsigned sources[] = {8, 2, 201, MIX_SOURCES_MAX};

    for (unsigned d = 1; d < 201; d++)
        rows[2].weight[d] = 1;
    for (unsigned d = 0; d < MIX_SOURCES_MAX; d++)
        rows[3].weight[d] = 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mix *mix = make(&rows[i], 1, sources[i]);
        uint64_t period = 0;

        for (unsigned d = 0; d < sources[i]; d++)
            period += rows[i].weight[d];
        check_period(mix, rows[i].weight, sources[i], period);
        check_bound(mix, rows[i].weight, sources[i], period, period);
        mix_free(mix);
    }
}

/* Four sources, 10^7 elements: every prefix. */
UNIT_TEST(test_mix_at__ten_million_elements__within_one)
{
    static const uint32_t weight[] = {61, 17, 15, 4};
    const struct mix_weights w = weights_of(0, 4, weight);
    struct mix *mix = make(&w, 1, 4);
    uint64_t taken[4] = {0}, worst = 0, period = 97;

    for (uint64_t p = 1; p <= 10000000; p++) {
        taken[source_at(mix, p - 1)]++;
        for (unsigned d = 0; d < 4; d++) {
            uint64_t have = taken[d] * period, want = p * weight[d];
            uint64_t off = have > want ? have - want : want - have;

            worst = off > worst ? off : worst;
        }
    }
    mix_free(mix);
    print_message("largest deviation: %llu/%llu\n", (unsigned long long)worst,
                  (unsigned long long)period);
    assert_true(worst < period);
}

/* ---- back, counts, stretches ---- */

/* Walk over positions: elements count up, and each way back is right. */
static void check_walk(const struct mix *mix, unsigned n, mix_number from, uint64_t length)
{
    mix_number next[MIX_SOURCES_MAX], back;

    for (unsigned d = 0; d < n; d++)
        next[d] = mix_count(mix, d, from);
    for (mix_number p = from; p < from + length; p++) {
        mix_number element;
        unsigned source = mix_at(mix, p, &element);

        assert_true(source < n && element == next[source]);
        next[source]++;
        assert_true(mix_position(mix, source, element, &back) && back == p);
        for (unsigned d = 0; d < n; d++) {
            mix_number least = mix_count_least(mix, d, p + 1);

            assert_true(mix_count(mix, d, p + 1) == next[d]);
            assert_true(least <= next[d] && next[d] <= least + 1);
        }
    }
}

UNIT_TEST(test_mix_position__stretches__back)
{
    uint64_t random = 7;

    for (unsigned i = 0; i < 200; i++) {
        struct mix_weights w[4] = {{.start = 0}};
        unsigned n = 1 + (unsigned)draw(&random, 5), stretches = 1 + (unsigned)draw(&random, 4);
        struct mix *mix;

        for (unsigned s = 0; s < stretches; s++) {
            w[s].start = s ? w[s - 1].start + 1 + draw(&random, 60) : 0;
            for (unsigned d = 0; d < n; d++)
                w[s].weight[d] = (uint32_t)draw(&random, 12);
            w[s].weight[draw(&random, n)] = 1 + (uint32_t)draw(&random, 12);
        }
        mix = make(w, stretches, n);
        check_walk(mix, n, 0, 400);
        check_walk(mix, n, ((mix_number)1 << 100) + draw(&random, 1000), 60);
        mix_free(mix);
    }
}

UNIT_TEST(test_mix_at__weights_change__nothing_before_moves)
{
    struct mix_weights w[2] = {{.weight = {7, 3}}, {.start = 23, .weight = {5, 5}}};
    struct mix *one = make(w, 1, 2), *two = make(w, 2, 2), *alone;
    mix_number a, b;

    for (unsigned p = 0; p < 23; p++) {
        assert_int_equal(mix_at(one, p, &a), mix_at(two, p, &b));
        assert_true(a == b);
    }
    w[1].start = 0;
    alone = make(&w[1], 1, 2);
    for (unsigned p = 23; p < 200; p++) { /* the new period begins there, its elements go on */
        unsigned source = mix_at(alone, p - 23, &a);

        assert_int_equal(mix_at(two, p, &b), source);
        assert_true(b == a + mix_count(one, source, 23));
    }
    mix_free(one);
    mix_free(two);
    mix_free(alone);
}

UNIT_TEST(test_mix_position__source_that_rests__none)
{
    const struct mix_weights w[2] = {{.weight = {1, 1}}, {.start = 10, .weight = {1, 0}}};
    struct mix *mix = make(w, 2, 2);
    mix_number at;

    assert_true(mix_position(mix, 1, 4, &at) && at == 9);
    assert_false(mix_position(mix, 1, 5, &at));
    assert_true(mix_position(mix, 0, 5, &at) && at == 10);
    assert_true(mix_count(mix, 1, 1000000) == 5);
    mix_free(mix);
}

/* ---- lengths ---- */

static uint64_t length_of(const struct mix *mix, const uint64_t *passes, enum mix_end end)
{
    uint64_t length = 0;
    unsigned source;

    assert_int_equal(mix_length(mix, passes, end, 77, &length, &source), 0);
    return length;
}

UNIT_TEST(test_mix_length__ends__right)
{
    const struct mix_weights w = {.weight = {7, 3}};
    const uint64_t passes[] = {100, 90};
    struct mix *mix = make(&w, 1, 2);
    uint64_t first = length_of(mix, passes, MIX_FIRST), all = length_of(mix, passes, MIX_ALL);

    assert_int_equal(length_of(mix, passes, MIX_SUM), 190);
    assert_int_equal(length_of(mix, passes, MIX_LENGTH), 77);
    /* No sample twice, but one more position would have one. */
    assert_true(mix_count(mix, 0, first) == 100 && mix_count(mix, 0, first + 1) == 101);
    assert_true(mix_count(mix, 1, first) <= 90);
    /* Each sample, but one position less would lack one. */
    assert_true(mix_count(mix, 1, all) == 90 && mix_count(mix, 1, all - 1) == 89);
    assert_true(mix_count(mix, 0, all) >= 100);
    mix_free(mix);
}

UNIT_TEST(test_mix_length__too_long_or_never__errors)
{
    const struct mix_weights w[2] = {{.weight = {1, 65535}}, {.start = 10, .weight = {1, 0}}};
    uint64_t passes[] = {UINT64_C(1) << 47, 10}, length = 5;
    struct mix *one = make(w, 1, 2), *two = make(w, 2, 2);
    unsigned source = 9;

    assert_int_equal(mix_length(one, passes, MIX_ALL, 0, &length, &source), -ERANGE);
    assert_int_equal(mix_length(one, passes, MIX_SUM, 0, &length, &source), 0);
    passes[1] = UINT64_C(1) << 48;
    assert_int_equal(mix_length(one, passes, MIX_SUM, 0, &length, &source), -ERANGE);
    assert_int_equal(mix_length(two, passes, MIX_ALL, 0, &length, &source), -EDOM);
    assert_int_equal(source, 1);
    mix_free(one);
    mix_free(two);
}

/* ---- weights ---- */

UNIT_TEST(test_mix_reduce__common_divisor__divided)
{
    const uint64_t weight[] = {700000000, 300000000, 0 + UINT64_C(1000000000)};
    uint32_t fit[3];

    assert_true(mix_reduce(weight, 3, fit));
    assert_int_equal(fit[0], 7);
    assert_int_equal(fit[1], 3);
    assert_int_equal(fit[2], 10);
}

UNIT_TEST(test_mix_reduce__too_large__nearest)
{
    const uint64_t rows[][3] = {{65536, 65536, 1},
                                {1, 1, UINT64_C(999999999999999999)},
                                {3, 200000, 200001},
                                {100003, 100019, 100043}};
    uint32_t fit[3];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(mix_reduce(rows[i], 3, fit));
        assert_int_equal(fit[0] + fit[1] + fit[2], MIX_PERIOD_MAX);
        assert_true(fit[0] && fit[1] && fit[2]);
    }
    assert_int_equal(fit[0], 21841); /* 100003 * 65536 / 300065 = 21841.29 */
    assert_int_equal(fit[1], 21845);
    assert_int_equal(fit[2], 21850);
}

/* ---- text ---- */

static struct mix_spec parse(const char *text)
{
    struct mix_spec spec = {0};
    struct diag d = DIAG_INIT;

    if (mix_spec_parse(text, &spec, &d) < 0)
        fail_msg("%s: %s", text, d.text);
    return spec;
}

UNIT_TEST(test_mix_spec_parse__decimals__whole_numbers)
{
    AUTO_MIX_SPEC struct mix_spec spec = parse("web=en*0.7+sub/de.idx*0.25+fr*0.050");

    assert_string_equal(spec.name, "web");
    assert_string_equal(spec.text, "en*0.7+sub/de.idx*0.25+fr*0.050");
    assert_int_equal(spec.n_sources, 3);
    assert_string_equal(spec.source[1].name, "sub/de.idx");
    assert_int_equal(spec.weights[0].weight[0], 14);
    assert_int_equal(spec.weights[0].weight[1], 5);
    assert_int_equal(spec.weights[0].weight[2], 1);
}

UNIT_TEST(test_mix_spec_parse__everything__understood)
{
    AUTO_MIX_SPEC struct mix_spec spec = parse(
        "m=a*2+b:split=1@9:1+take=0:50%*4+a*1.0@7:b:take=0:50%+split=1@9:1*3+c\\*\\:\\+\\\\*1/all");

    assert_string_equal(spec.name, "m");
    assert_int_equal(spec.n_sources, 4);
    assert_int_equal(spec.n_stretches, 2);
    assert_int_equal(spec.end, MIX_ALL);
    assert_string_equal(spec.source[0].name, "a");
    assert_string_equal(spec.source[1].shown, "b:take=0:50%,split=1@9:1");
    assert_int_equal(spec.source[1].plan.split, 1);
    assert_string_equal(spec.source[2].name, "a"); /* twice: another source */
    assert_string_equal(spec.source[3].name, "c*:+\\");
    assert_int_equal(spec.weights[0].weight[0], 2);
    assert_int_equal(spec.weights[0].weight[1], 4);
    assert_int_equal(spec.weights[0].weight[2], 1);
    assert_int_equal(spec.weights[0].weight[3], 0);
    assert_int_equal(spec.weights[1].start, 7);
    assert_int_equal(spec.weights[1].weight[0], 0);
    assert_int_equal(spec.weights[1].weight[1],
                     3); /* the same source, its words in another order */
    assert_int_equal(spec.weights[1].weight[3], 1);
}

UNIT_TEST(test_mix_spec_parse__ends__right)
{
    struct mix_spec spec = parse("m=a*1+b*1/first");

    assert_int_equal(spec.end, MIX_FIRST);
    mix_spec_release(&spec);
    spec = parse("m=a*1/281474976710656");
    assert_int_equal(spec.end, MIX_LENGTH);
    assert_true(spec.length == MIX_POSITION_MAX);
    mix_spec_release(&spec);
    spec = parse("m=a*1");
    assert_int_equal(spec.end, MIX_SUM);
    mix_spec_release(&spec);
}

UNIT_TEST(test_mix_spec_parse__malformed__reason)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"", "NAME=SOURCE*WEIGHT"},
        {"m", "NAME=SOURCE*WEIGHT"},
        {"=a*1", "NAME=SOURCE*WEIGHT"},
        {"m=", "expected NAME*WEIGHT"},
        {"m=a", "expected NAME*WEIGHT, got 'a'"},
        {"m=*1", "expected NAME*WEIGHT"},
        {"m=a*0", "expected a weight above 0"},
        {"m=a*0.0+b*1", "expected a weight above 0"},
        {"m=a*-1", "expected a weight above 0"},
        {"m=a*nan", "expected a weight above 0"},
        {"m=a*1.", "expected a weight above 0"},
        {"m=a*1e3", "got 'e3'"},
        {"m=a*1.0000000001", "up to 9 digits"},
        {"m=a*1000000000", "up to 9 digits"},
        {"m=a*1+", "behind the last +"},
        {"m=a*1+b", "expected NAME*WEIGHT, got 'b'"},
        {"m=a*32769+b*32768", "the nearest that do are a*32768+b*32768"},
        {"m=a*65536+b*1", "at most 65536"},
        {"m=a:batch=2*1", "'batch' is not a word of a source"},
        {"m=a:seed=2*1", "'seed' is not a word of a source"},
        {"m=a:*1", "parameters of a plan"},
        {"m=a:take=9:1*1", "take: expected A:B"},
        {"m=a*1@0:a*1", "a position above 0"},
        {"m=a*1@5:a*1@5:a*1", "a position above 5"},
        {"m=a*1@281474976710657:a*1", "at most 2^48"},
        {"m=a*1@5", "expected @POSITION:"},
        {"m=a*1@5:", "expected NAME*WEIGHT"},
        {"m=a*1/", "/first, /all or /N"},
        {"m=a*1/0", "/first, /all or /N"},
        {"m=a*1/281474976710657", "from 1 to 2^48"},
        {"m=a*1/last", "got '/last'"},
        {"m=a*1/first@5:a*1", "got '/first@5:a*1'"},
        {".m=a*1", "no . at its start"},
        {"a/m=a*1", "without /"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mix_spec spec = {0};
        struct diag d = DIAG_INIT;

        assert_int_equal(mix_spec_parse(rows[i].text, &spec, &d), -EINVAL);
        if (!strstr(d.text, rows[i].reason))
            fail_msg("%s: %s", rows[i].text, d.text);
        assert_null(spec.name);
    }
}

UNIT_TEST(test_mix_spec_parse__too_many__errors)
{
    struct mix_spec spec = {0};
    char text[MIX_SOURCES_MAX * 8 + 64];
    struct diag d = DIAG_INIT;
    size_t len = (size_t)snprintf(text, sizeof(text), "m=");

    for (unsigned i = 0; i <= MIX_SOURCES_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%ss%u*1", i ? "+" : "", i);
    assert_int_equal(mix_spec_parse(text, &spec, &d), -EINVAL);
    assert_non_null(strstr(d.text, "at most 256 sources"));
    d = DIAG_INIT;
    len = (size_t)snprintf(text, sizeof(text), "m=a*1");
    for (unsigned i = 1; i <= MIX_STRETCHES_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "@%u:a*1", i);
    assert_int_equal(mix_spec_parse(text, &spec, &d), -EINVAL);
    assert_non_null(strstr(d.text, "at most 63 changes"));
}
