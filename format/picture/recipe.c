/* The grammar of recipes. Every word has a table of what may follow it, so that parsing, printing
 * and messages need no code for a word. */
#include "format/picture/recipe.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "base/scope.h"

#define MILLION        1000000u
#define RATIO_MOST     (16 * MILLION - 1)
#define DECIMAL_DIGITS 6
#define SHOWN          40 /* bytes of a recipe, in messages */

enum value_type {
    VALUE_NUMBER,
    VALUE_DECIMAL,
    VALUE_RANGE,
    VALUE_TABLE,
};

/* What may follow a word. A key of "" is the value without a key. */
struct recipe_value {
    const char *key;
    enum value_type type;
    size_t at; /* in struct recipe */
    uint64_t least, most;
    uint64_t preset, preset_most; /* preset_most: of ranges */
};

#define VALUES_MOST 3
struct recipe_word {
    const char *word, *syntax;
    const char *other; /* words that do the same thing, of which there is one at most; NULL: none */
    void (*use)(struct recipe *recipe);
    bool (*has)(const struct recipe *recipe);
    struct recipe_value value[VALUES_MOST];
};

/* ---- the words ---- */

static void use_base(struct recipe *r)
{
    (void)r;
}
static bool has_base(const struct recipe *r)
{
    return r->base;
}
static void use_rrc(struct recipe *r)
{
    r->part = RECIPE_RRC;
}
static bool has_rrc(const struct recipe *r)
{
    return r->part == RECIPE_RRC;
}
static void use_crop(struct recipe *r)
{
    r->part = RECIPE_CROP;
}
static bool has_crop(const struct recipe *r)
{
    return r->part == RECIPE_CROP;
}
static void use_flip(struct recipe *r)
{
    r->flips = true;
}
static bool has_flip(const struct recipe *r)
{
    return r->flips;
}
static void use_vflip(struct recipe *r)
{
    r->vflips = true;
}
static bool has_vflip(const struct recipe *r)
{
    return r->vflips;
}
static void use_auto(struct recipe *r)
{
    r->policy.type = POLICY_AUTO;
}
static bool has_auto(const struct recipe *r)
{
    return r->policy.type == POLICY_AUTO;
}
static void use_rand(struct recipe *r)
{
    r->policy.type = POLICY_RAND;
}
static bool has_rand(const struct recipe *r)
{
    return r->policy.type == POLICY_RAND;
}
static void use_trivial(struct recipe *r)
{
    r->policy.type = POLICY_TRIVIAL;
}
static bool has_trivial(const struct recipe *r)
{
    return r->policy.type == POLICY_TRIVIAL;
}
static void use_jitter(struct recipe *r)
{
    r->jitters = true;
}
static bool has_jitter(const struct recipe *r)
{
    return r->jitters;
}
static void use_gray(struct recipe *r)
{
    r->grays = true;
}
static bool has_gray(const struct recipe *r)
{
    return r->grays;
}
static void use_erase(struct recipe *r)
{
    r->erases = true;
}
static bool has_erase(const struct recipe *r)
{
    return r->erases;
}
static bool has_salt(const struct recipe *r)
{
    return r->salt;
}

static const char *const policy_tables[] = {
    [POLICY_IMAGENET] = "imagenet",
    [POLICY_CIFAR10] = "cifar10",
    [POLICY_SVHN] = "svhn",
};

#define AT(member) offsetof(struct recipe, member)
#define CHANCE(key, m, p)                                                                          \
    {                                                                                              \
        key, VALUE_DECIMAL, AT(m), 0, MILLION, p, 0                                                \
    }
#define ONE_CROP   "rrc|crop"
#define ONE_POLICY "auto|rand|trivial"

/* In the order in which they apply. */
static const struct recipe_word recipe_table[] = {
    {"base",
     "base:S, S from 16 to 4096",
     NULL,
     use_base,
     has_base,
     {{"", VALUE_NUMBER, AT(base), RECIPE_BASE_LEAST, RECIPE_BASE_MOST, 0, 0}}},
    {"rrc",
     "rrc[:scale=A-B][:ratio=A-B], 0 < scale <= 1, 0.0625 <= ratio < 16",
     ONE_CROP,
     use_rrc,
     has_rrc,
     {{"scale", VALUE_RANGE, AT(crop_scale), 1, MILLION, 80000, MILLION},
      {"ratio", VALUE_RANGE, AT(crop_ratio), MILLION / 16, RATIO_MOST, 750000, 1333333}}},
    {"crop",
     "crop[:P], P from 0 to 256",
     ONE_CROP,
     use_crop,
     has_crop,
     {{"", VALUE_NUMBER, AT(padding), 0, RECIPE_PADDING_MAX, 0, 0}}},
    {"flip", "flip[:P], P from 0 to 1", NULL, use_flip, has_flip, {CHANCE("", flip, MILLION / 2)}},
    {"vflip",
     "vflip[:P], P from 0 to 1",
     NULL,
     use_vflip,
     has_vflip,
     {CHANCE("", vflip, MILLION / 2)}},
    {"auto",
     "auto[:imagenet|cifar10|svhn]",
     ONE_POLICY,
     use_auto,
     has_auto,
     {{"", VALUE_TABLE, AT(policy.table), 0, ARRAY_LEN(policy_tables), POLICY_IMAGENET, 0}}},
    {"rand",
     "rand[:ops=N][:magnitude=M], N from 1 to 8, M from 0 to 30",
     ONE_POLICY,
     use_rand,
     has_rand,
     {{"ops", VALUE_NUMBER, AT(policy.ops), 1, POLICY_STEPS_MAX, 2, 0},
      {"magnitude", VALUE_NUMBER, AT(policy.magnitude), 0, POLICY_MAGNITUDE_MAX, 9, 0}}},
    {"trivial", "trivial", ONE_POLICY, use_trivial, has_trivial, {{NULL, 0, 0, 0, 0, 0, 0}}},
    {"jitter",
     "jitter[:V][:p=P], V from 0 to 15, P from 0 to 1",
     NULL,
     use_jitter,
     has_jitter,
     {{"", VALUE_DECIMAL, AT(jitter_by), 0, 15 * MILLION, 400000, 0},
      CHANCE("p", jitter, MILLION)}},
    {"gray", "gray[:P], P from 0 to 1", NULL, use_gray, has_gray, {CHANCE("", gray, MILLION / 10)}},
    {"erase",
     "erase[:P][:scale=A-B][:ratio=A-B], P from 0 to 1, 0 < scale <= 1, 0.0625 <= ratio < 16",
     NULL,
     use_erase,
     has_erase,
     {CHANCE("", erase, MILLION / 2),
      {"scale", VALUE_RANGE, AT(erase_scale), 1, MILLION, 20000, 330000},
      {"ratio", VALUE_RANGE, AT(erase_ratio), MILLION / 16, RATIO_MOST, 300000, 3300000}}},
    {"salt",
     "salt:N, N from 0 to 2^64-1",
     NULL,
     use_base,
     has_salt,
     {{"", VALUE_NUMBER, AT(salt), 0, UINT64_MAX, 0, 0}}},
};
static_assert(ARRAY_LEN(recipe_table) <= 32, "recipe_parse() has a bit for each");

/* ---- values ---- */

/* Store a value; ranges are stored as a whole by value_store_range(). */
static void value_store(struct recipe *recipe, const struct recipe_value *value, uint64_t v)
{
    void *at = (char *)recipe + value->at;

    if (value->at == AT(salt))
        *(uint64_t *)at = v;
    else
        *(uint32_t *)at = (uint32_t)v; /* or an enum */
}

static uint64_t recipe_value_of(const struct recipe *recipe, const struct recipe_value *value)
{
    const void *at = (const char *)recipe + value->at;

    return value->at == AT(salt) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static struct recipe_range *value_range(struct recipe *recipe, const struct recipe_value *value)
{
    return (struct recipe_range *)(void *)((char *)recipe + value->at);
}

/* A decimal in millionths; returns the characters used, 0: it is none. */
static size_t decimal_parse(const char *s, size_t len, uint64_t most, uint64_t *ret)
{
    uint64_t whole = 0, part = 0;
    size_t used = number_parse(s, len, most / MILLION, &whole), digits = 0;

    if (!used || used == len || s[used] != '.') {
        *ret = whole * MILLION;
        return *ret <= most ? used : 0;
    }
    for (used++; used < len && digits < DECIMAL_DIGITS && s[used] >= '0' && s[used] <= '9';
         used++, digits++)
        part = part * 10 + (uint64_t)(s[used] - '0');
    if (!digits)
        return 0;
    for (; digits < DECIMAL_DIGITS; digits++)
        part *= 10;
    *ret = whole * MILLION + part;
    return *ret <= most ? used : 0;
}

static bool recipe_parse_range(const char *s, size_t len, const struct recipe_value *value,
                               struct recipe_range *ret)
{
    uint64_t least = 0, most = 0;
    size_t used = decimal_parse(s, len, value->most, &least);

    if (!used || used == len || s[used] != '-')
        return false;
    s += used + 1;
    len -= used + 1;
    *ret = (struct recipe_range){(uint32_t)least, 0};
    if (!len || decimal_parse(s, len, value->most, &most) != len)
        return false;
    ret->most = (uint32_t)most;
    return least >= value->least && least <= most;
}

static bool value_parse(struct recipe *recipe, const struct recipe_value *value, const char *s,
                        size_t len)
{
    uint64_t v = 0;
    size_t used = 0;

    switch (value->type) {
    case VALUE_RANGE:
        return recipe_parse_range(s, len, value, value_range(recipe, value));
    case VALUE_TABLE:
        while (v < value->most &&
               (strlen(policy_tables[v]) != len || memcmp(policy_tables[v], s, len) != 0))
            v++;
        used = v < value->most ? len : 0;
        break;
    case VALUE_NUMBER:
        used = number_parse(s, len, value->most, &v);
        break;
    case VALUE_DECIMAL:
        used = decimal_parse(s, len, value->most, &v);
        break;
    }
    if (!used || used != len || v < value->least)
        return false;
    value_store(recipe, value, v);
    return true;
}

static void value_preset(struct recipe *recipe, const struct recipe_value *value)
{
    if (value->type == VALUE_RANGE)
        *value_range(recipe, value) =
            (struct recipe_range){(uint32_t)value->preset, (uint32_t)value->preset_most};
    else
        value_store(recipe, value, value->preset);
}

/* ---- words ---- */

/* The part of a text before a character, or all of it; *ret_next: where the next one begins. */
static size_t recipe_cut(const char *s, size_t len, char separator, size_t *ret_next)
{
    const char *end = memchr(s, separator, len);
    size_t n = end ? (size_t)(end - s) : len;

    *ret_next = end ? n + 1 : len;
    return n;
}

static const struct recipe_word *recipe_word_of(const char *s, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(recipe_table); i++)
        if (strlen(recipe_table[i].word) == len && !memcmp(recipe_table[i].word, s, len))
            return &recipe_table[i];
    return NULL;
}

static int recipe_fail_unknown(const char *s, size_t len, struct diag *d)
{
    AUTO_TEXT struct text words = {0};

    if (len == 3 && !memcmp(s, "hue", 3))
        return diag_set(d, -EINVAL,
                        "'hue' is not a word of recipes: hue is not offered; do it on the "
                        "accelerator");
    for (size_t i = 0; i < ARRAY_LEN(recipe_table); i++)
        text_add(&words, "%s%s",
                 !i                                 ? ""
                 : i + 1 == ARRAY_LEN(recipe_table) ? " or "
                                                    : ", ",
                 recipe_table[i].word);
    return diag_set(d, -EINVAL, "'%.*s' is not a word of recipes: expected %s",
                    (int)(len < SHOWN ? len : SHOWN), s, words.data ? words.data : "rrc");
}

static int recipe_fail_value(const struct recipe_word *word, const char *s, size_t len,
                             struct diag *d)
{
    return diag_set(d, -EINVAL, "%s: expected %s, got '%s:%.*s'", word->word, word->syntax,
                    word->word, (int)(len < SHOWN ? len : SHOWN), s);
}

/* What follows a word and its colon: a value, and keys with theirs. */
static int recipe_parse_values(struct recipe *recipe, const struct recipe_word *word, const char *s,
                               size_t len, struct diag *d)
{
    const char *all = s;
    size_t all_len = len, n, next;
    unsigned seen = 0;

    for (bool is_first = true;; is_first = false) {
        const char *equals;
        size_t key_len;
        unsigned i = 0;

        n = recipe_cut(s, len, ':', &next);
        equals = memchr(s, '=', n);
        key_len = equals ? (size_t)(equals - s) : 0;
        while (
            i < VALUES_MOST && word->value[i].key &&
            (strlen(word->value[i].key) != key_len || memcmp(word->value[i].key, s, key_len) != 0))
            i++;
        if (i == VALUES_MOST || !word->value[i].key || seen >> i & 1 || (!key_len && !is_first) ||
            !value_parse(recipe, &word->value[i], equals ? equals + 1 : s,
                         n - (equals ? key_len + 1 : 0)))
            return recipe_fail_value(word, all, all_len, d);
        seen |= 1u << i;
        if (n == len)
            return 0;
        s += next;
        len -= next;
    }
}

static int recipe_parse_word(struct recipe *recipe, const char *s, size_t len, uint32_t *seen,
                             struct diag *d)
{
    size_t next, n = recipe_cut(s, len, ':', &next);
    const struct recipe_word *word = recipe_word_of(s, n);

    if (!word)
        return recipe_fail_unknown(s, n, d);
    for (size_t i = 0; i < ARRAY_LEN(recipe_table); i++) {
        const struct recipe_word *other = &recipe_table[i];

        if (!(*seen >> i & 1))
            continue;
        if (other == word)
            return diag_set(d, -EINVAL, "%s is given twice", word->word);
        if (word->other && other->other == word->other)
            return diag_set(d, -EINVAL, "expected one of %s, got %s and %s", word->other,
                            other->word, word->word);
    }
    *seen |= UINT32_C(1) << (word - recipe_table);
    for (unsigned i = 0; i < VALUES_MOST && word->value[i].key; i++)
        value_preset(recipe, &word->value[i]);
    word->use(recipe);
    if (n < len)
        return recipe_parse_values(recipe, word, s + next, len - next, d);
    return word->value[0].key && word->value[0].preset < word->value[0].least
               ? recipe_fail_value(word, "", 0, d)
               : 0;
}

int recipe_parse(const char *words, size_t len, struct recipe *ret, struct diag *d)
{
    struct recipe recipe = {0};
    uint32_t seen = 0;

    for (;;) {
        size_t next, n = recipe_cut(words, len, '+', &next);
        int r = recipe_parse_word(&recipe, words, n, &seen, d);

        if (r < 0)
            return r;
        if (n == len)
            break;
        words += next;
        len -= next;
    }
    *ret = recipe;
    return 0;
}

/* ---- back to text ---- */

static void decimal_print(uint64_t v, struct text *t)
{
    unsigned digits = DECIMAL_DIGITS;
    uint64_t part = v % MILLION;

    text_add(t, "%" PRIu64, v / MILLION);
    if (!part)
        return;
    for (; part % 10 == 0; part /= 10)
        digits--;
    text_add(t, ".%0*" PRIu64, (int)digits, part);
}

static void value_print(const struct recipe *recipe, const struct recipe_value *value,
                        struct text *t)
{
    const struct recipe_range *range =
        (const struct recipe_range *)(const void *)((const char *)recipe + value->at);

    text_add(t, ":%s%s", value->key, value->key[0] ? "=" : "");
    switch (value->type) {
    case VALUE_RANGE:
        decimal_print(range->least, t);
        text_add(t, "-");
        decimal_print(range->most, t);
        break;
    case VALUE_TABLE:
        text_add(t, "%s", policy_tables[recipe_value_of(recipe, value)]);
        break;
    case VALUE_NUMBER:
        text_add(t, "%" PRIu64, recipe_value_of(recipe, value));
        break;
    case VALUE_DECIMAL:
        decimal_print(recipe_value_of(recipe, value), t);
        break;
    }
}

void recipe_print(const struct recipe *recipe, struct text *t)
{
    const char *plus = "";

    for (size_t i = 0; i < ARRAY_LEN(recipe_table); i++) {
        const struct recipe_word *word = &recipe_table[i];

        if (!word->has(recipe))
            continue;
        text_add(t, "%s%s", plus, word->word);
        for (unsigned k = 0; k < VALUES_MOST && word->value[k].key; k++)
            value_print(recipe, &word->value[k], t);
        plus = "+";
    }
    if (!*plus)
        text_add(t, "salt:0");
}

struct box_range recipe_box_range(const struct recipe_range *scale,
                                  const struct recipe_range *ratio)
{
    return (struct box_range){augment_fixed(scale->least, 16), augment_fixed(scale->most, 16),
                              augment_fixed(ratio->least, 28), augment_fixed(ratio->most, 28)};
}
