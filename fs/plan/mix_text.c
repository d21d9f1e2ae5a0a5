#include "fs/plan/mix_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/text.h"

#define DECIMALS   9                    /* behind the point, at most */
#define SCALE      UINT64_C(1000000000) /* 10 ^ DECIMALS */
#define WEIGHT_MAX UINT64_C(999999999)
#define NAMES_MOST 8 /* in a message */

struct parser {
    const char *at;
    struct mix_spec spec;
    uint64_t weight[MIX_SOURCES_MAX]; /* of the stretch, times SCALE; 0: not named yet */
    struct diag *d;
};

void mix_spec_release(struct mix_spec *spec)
{
    for (unsigned i = 0; i < spec->n_sources; i++) {
        free(spec->source[i].name);
        free(spec->source[i].shown);
    }
    free(spec->source);
    free(spec->weights);
    free(spec->name);
    free(spec->text);
    *spec = (struct mix_spec){0};
}

/* Take characters up to one of stops, which must come, without their backslashes. */
static int mix_text_parse_text(struct parser *p, const char *stops, const char *what, char **ret)
{
    AUTO_TEXT struct text t = {0};
    const char *begin = p->at;
    size_t len;

    while (*p->at && !strchr(stops, *p->at)) {
        p->at += *p->at == '\\' && p->at[1];
        text_add_bytes(&t, p->at++, 1);
    }
    if (!t.failed && (!t.len || !*p->at))
        return diag_set(p->d, -EINVAL, "expected %s, got '%.60s'", what, begin);
    return text_finish(&t, ret, &len);
}

static int refuse_word(struct parser *p, const char *words, const char *word, size_t len)
{
    AUTO_TEXT struct text expected = {0};

    plan_source_words(&expected, " or ");
    return diag_set(
        p->d, -EINVAL,
        "'%.60s': '%.*s' is not a word of a source: expected %s. Others belong to plans "
        "of the mix",
        words, (int)len, word, expected.data ? expected.data : "others");
}

/* The words of a source, joined by '+'; "" for none. */
static int mix_text_parse_words(struct parser *p, const char *words, struct plan *ret)
{
    AUTO_TEXT struct text whole = {0};
    struct diag reason = DIAG_INIT;

    for (const char *word = words; *word;) {
        size_t len = strcspn(word, "=+");

        if (!plan_is_source_word(word, len))
            return refuse_word(p, words, word, len);
        word += strcspn(word, "+");
        word += *word == '+';
    }
    text_add(&whole, "batch=1%s%s", *words ? "+" : "", words);
    if (whole.failed)
        return -ENOMEM;
    if (plan_parse(whole.data, whole.len, '+', ret, &reason) < 0)
        return diag_set(p->d, -EINVAL, "words of a source, '%.60s': %s", words, reason.text);
    return 0;
}

/* "name", or "name:words" in canonical order. */
static int show_source(struct mix_source *source)
{
    char words[PLAN_NAME_SIZE];

    plan_name(&source->plan, words);
    return asprintf(&source->shown, "%s%s%s", source->name, strchr(words, ',') ? ":" : "",
                    words + strcspn(words, ",") + (strchr(words, ',') != NULL)) < 0
               ? (source->shown = NULL, -ENOMEM)
               : 0;
}

/* The number of a source that the stretch has not named yet; takes over what source owns. */
static int mix_text_add_source(struct parser *p, struct mix_source *source, unsigned *ret)
{
    struct mix_spec *spec = &p->spec;
    unsigned i = 0;
    int r = show_source(source);

    while (r == 0 && i < spec->n_sources &&
           (p->weight[i] || strcmp(spec->source[i].shown, source->shown) != 0))
        i++;
    *ret = i;
    if (r == 0 && i == MIX_SOURCES_MAX)
        r = diag_set(p->d, -EINVAL, "expected at most %d sources, got more", MIX_SOURCES_MAX);
    if (r == 0 && i == spec->n_sources) {
        r = array_capacity(&spec->source, spec->n_sources, sizeof(*spec->source));
        if (r == 0) {
            spec->source[spec->n_sources++] = *source;
            return 0;
        }
    }
    free(source->name);
    free(source->shown);
    return r;
}

/* A decimal number above 0, times SCALE. */
static int parse_weight(struct parser *p, uint64_t *ret)
{
    const char *s = p->at;
    uint64_t whole = 0, part = 0, unit = SCALE;
    size_t n = number_parse(s, strspn(s, "0123456789"), WEIGHT_MAX, &whole);
    bool is_good = n > 0;

    s += n;
    if (is_good && *s == '.') {
        n = strspn(++s, "0123456789");
        is_good = n > 0 && n <= DECIMALS;
        for (; is_good && n; n--)
            part += (unsigned)(*s++ - '0') * (unit /= 10);
    }
    *ret = whole * SCALE + part;
    if (!is_good || !*ret)
        return diag_set(
            p->d, -EINVAL,
            "expected a weight above 0 with up to 9 digits before and behind the point, as "
            "7 or 0.25, got '%.60s'",
            p->at);
    p->at = s;
    return 0;
}

static int parse_source(struct parser *p)
{
    AUTO_FREE char *words = NULL;
    struct mix_source source = {.name = NULL};
    unsigned i;
    int r = mix_text_parse_text(p, ":*", "NAME*WEIGHT", &source.name);

    if (r == 0 && *p->at == ':') {
        p->at++;
        r = mix_text_parse_text(p, "*", "parameters of a plan, such as take=0:80%, and *WEIGHT",
                                &words);
    }
    if (r == 0)
        r = mix_text_parse_words(p, words ? words : "", &source.plan);
    if (r < 0) {
        free(source.name);
        return r;
    }
    r = mix_text_add_source(p, &source, &i);
    if (r < 0)
        return r;
    p->at++; /* the '*' */
    return parse_weight(p, &p->weight[i]);
}

/* Write the weights that fit into a message: "a*3+b*65533". */
static int mix_text_too_long(struct parser *p, const unsigned *named, unsigned n,
                             const uint32_t *fit)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < n && i < NAMES_MOST; i++)
        text_add(&t, "%s%s*%u", i ? "+" : "", p->spec.source[named[i]].shown, fit[i]);
    return diag_set(p->d, -EINVAL,
                    "expected weights that sum to at most %d as whole numbers without a common "
                    "divisor; the nearest that do are %s%s",
                    MIX_PERIOD_MAX, t.data ? t.data : "", n > NAMES_MOST ? "+..." : "");
}

/* The weights of the stretch that was parsed, as whole numbers. */
static int end_stretch(struct parser *p, struct mix_weights *ret)
{
    uint64_t weight[MIX_SOURCES_MAX] = {0};
    uint32_t fit[MIX_SOURCES_MAX];
    unsigned named[MIX_SOURCES_MAX], n = 0;

    for (unsigned i = 0; i < p->spec.n_sources; i++)
        if (p->weight[i]) {
            weight[n] = p->weight[i];
            named[n++] = i;
        }
    memset(p->weight, 0, sizeof(p->weight));
    if (!mix_reduce(weight, n, fit))
        return mix_text_too_long(p, named, n, fit);
    for (unsigned i = 0; i < n; i++)
        ret->weight[named[i]] = fit[i];
    return 0;
}

static int parse_stretch(struct parser *p, uint64_t start)
{
    struct mix_spec *spec = &p->spec;
    struct mix_weights *weights;
    int r;

    if (spec->n_stretches == MIX_STRETCHES_MAX)
        return diag_set(p->d, -EINVAL, "expected at most %d changes of weights, got more",
                        MIX_STRETCHES_MAX - 1);
    r = array_capacity(&spec->weights, spec->n_stretches, sizeof(*weights));
    if (r < 0)
        return r;
    weights = &spec->weights[spec->n_stretches++];
    *weights = (struct mix_weights){.start = start};
    do {
        r = parse_source(p);
    } while (r == 0 && *p->at == '+' && *++p->at);
    if (r == 0 && p->at[-1] == '+')
        r = diag_set(p->d, -EINVAL, "expected NAME*WEIGHT behind the last +");
    return r < 0 ? r : end_stretch(p, weights);
}

/* "@POSITION:" */
static int parse_position(struct parser *p, uint64_t *ret)
{
    uint64_t before = p->spec.weights[p->spec.n_stretches - 1].start;
    size_t n = number_parse(p->at + 1, strspn(p->at + 1, "0123456789"), MIX_POSITION_MAX, ret);

    if (!n || p->at[1 + n] != ':' || *ret <= before)
        return diag_set(
            p->d, -EINVAL,
            "expected @POSITION: with a position above %llu and at most 2^48, got '%.60s'",
            (unsigned long long)before, p->at);
    p->at += n + 2;
    return 0;
}

/* "/first", "/all", "/N" or nothing. */
static int parse_end(struct parser *p)
{
    const char *s = p->at;
    struct mix_spec *spec = &p->spec;

    spec->end = MIX_SUM;
    if (!*s)
        return 0;
    if (!strcmp(s, "/first"))
        spec->end = MIX_FIRST;
    else if (!strcmp(s, "/all"))
        spec->end = MIX_ALL;
    else if (*s == '/' && s[1] &&
             number_parse(s + 1, strlen(s + 1), MIX_POSITION_MAX, &spec->length) == strlen(s + 1) &&
             spec->length)
        spec->end = MIX_LENGTH;
    else
        return diag_set(
            p->d, -EINVAL,
            "expected + and another source, @POSITION: and other weights, or the end of an "
            "epoch: /first, /all or /N with N from 1 to 2^48, got '%.60s'",
            s);
    return 0;
}

static int mix_text_check_name(const char *name, struct diag *d)
{
    if (*name == '.' || strchr(name, '/') || strlen(name) > MIX_NAME_MAX)
        return diag_set(d, -EINVAL,
                        "expected a name of at most %d characters without / and no . at its start, "
                        "got '%.60s'",
                        MIX_NAME_MAX, name);
    return 0;
}

static int parse_all(struct parser *p)
{
    uint64_t start = 0;
    int r = mix_text_parse_text(p, "=", "NAME=SOURCE*WEIGHT+...", &p->spec.name);

    if (r == 0)
        r = mix_text_check_name(p->spec.name, p->d);
    if (r < 0)
        return r;
    p->spec.text = strdup(++p->at);
    if (!p->spec.text)
        return -ENOMEM;
    r = parse_stretch(p, 0);
    while (r == 0 && *p->at == '@') {
        r = parse_position(p, &start);
        if (r == 0)
            r = parse_stretch(p, start);
    }
    return r < 0 ? r : parse_end(p);
}

int mix_spec_parse(const char *text, struct mix_spec *ret, struct diag *d)
{
    AUTO_FREE struct parser *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->at = text;
    p->d = d;
    r = parse_all(p);
    if (r == 0)
        *ret = p->spec;
    else
        mix_spec_release(&p->spec);
    return r;
}
