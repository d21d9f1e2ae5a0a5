#include "fs/plan/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "base/text.h"
#include "base/values.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/parameters.h"

static bool parameter_is_called(const struct plan_parameter *p, const char *word, size_t len)
{
    return value_names(p->word, word, len) || (p->alias && value_names(p->alias, word, len));
}

/* The number of the parameter with that word; n_plan_parameters: none. */
static unsigned parameter_find(const char *word, size_t len)
{
    unsigned i = 0;

    while (i < n_plan_parameters && !parameter_is_called(&plan_parameters[i], word, len))
        i++;
    return i;
}

bool plan_has_parameter(const char *word)
{
    return parameter_find(word, strlen(word)) < n_plan_parameters;
}

bool plan_is_source_word(const char *word, size_t len)
{
    unsigned number = parameter_find(word, len);

    return number < n_plan_parameters && plan_parameters[number].in_sources;
}

void plan_source_words(struct text *t, const char *and)
{
    unsigned n = 0, left = 0;

    for (unsigned i = 0; i < n_plan_parameters; i++)
        left += plan_parameters[i].in_sources;
    for (unsigned i = 0; i < n_plan_parameters; i++)
        if (plan_parameters[i].in_sources)
            text_add(t, "%s%s=", !n++ ? "" : n == left ? and : ", ", plan_parameters[i].word);
}

const char *plan_word_not_in_mix(const struct plan *plan)
{
    char value[PLAN_NAME_SIZE];

    for (unsigned i = 0; i < n_plan_parameters; i++)
        if (plan_parameters[i].not_in_mix &&
            plan_parameter_print(&plan_parameters[i], plan, value, sizeof(value)))
            return plan_parameters[i].word;
    return NULL;
}

static int plan_fail_unknown(const char *word, size_t len, struct diag *d)
{
    AUTO_TEXT struct text words = {0};

    for (unsigned i = 0; i < n_plan_parameters; i++)
        if (plan_parameters[i].foreign && value_names(plan_parameters[i].foreign, word, len))
            return diag_set(d, -EINVAL, "'%.*s' is not a parameter of a plan. Use %s=%s", (int)len,
                            word, plan_parameters[i].word, plan_parameters[i].syntax);
    for (unsigned i = 0; i < n_plan_parameters; i++)
        text_add(&words, "%s%s",
                 !i                           ? ""
                 : i + 1 == n_plan_parameters ? " or "
                                              : ", ",
                 plan_parameters[i].word);
    return diag_set(d, -EINVAL, "'%.*s' is not a parameter of a plan; expected %s", (int)len, word,
                    words.data ? words.data : "batch");
}

/* Does a number in it begin with a 0 that it need not have? */
static bool has_leading_zero(const char *s, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++)
        if (s[i] == '0' && isdigit((unsigned char)s[i + 1]) &&
            (!i || (!isdigit((unsigned char)s[i - 1]) && s[i - 1] != '.')))
            return true;
    return false;
}

/* Parse one "word=value"; *seen has a bit for each earlier parameter. */
static int plan_parse_one(const char *item, size_t len, uint32_t *seen, struct plan *plan,
                          struct diag *d)
{
    const char *equals = memchr(item, '=', len);
    size_t word_len = equals ? (size_t)(equals - item) : len;
    unsigned number = parameter_find(item, word_len);
    const struct plan_parameter *p = &plan_parameters[number];

    if (number == n_plan_parameters)
        return plan_fail_unknown(item, word_len, d);
    if (*seen >> number & 1)
        return diag_set(d, -EINVAL, "%s is given twice", p->word);
    *seen |= UINT32_C(1) << number;
    if (!equals || !plan_parameter_parse(p, plan, equals + 1, len - word_len - 1))
        return diag_set(d, -EINVAL, "%s: expected %s, got '%.*s'%s", p->word, p->expected,
                        equals ? (int)(len - word_len - 1) : 0, equals ? equals + 1 : "",
                        equals && has_leading_zero(equals + 1, len - word_len - 1)
                            ? "; numbers have no leading zeros"
                            : "");
    return 0;
}

/* Do the parameters that were given go together, and is none missing? */
static int check_seen(const struct plan *plan, uint32_t seen, struct diag *d)
{
    for (unsigned i = 0; i < n_plan_parameters; i++) {
        const struct plan_parameter *p = &plan_parameters[i];

        if (!(seen >> i & 1)) {
            if (p->is_required)
                return diag_set(d, -EINVAL, "%s= is missing", p->word);
            continue;
        }
        if (p->needs && !(seen >> parameter_find(p->needs, strlen(p->needs)) & 1))
            return diag_set(d, -EINVAL, "%s= needs %s=", p->word, p->needs);
        if (p->check && p->check(plan, d) < 0)
            return -EINVAL;
    }
    return 0;
}

const char *plan_field(const struct plan *plan, const char *label, bool *ret_classes)
{
    *ret_classes = plan->of_class || plan->draw == DRAW_BALANCED;
    if (*ret_classes && plan->class_field[0])
        label = plan->class_field;
    return *ret_classes ? label : plan->draw == DRAW_WEIGHTS ? plan->draw_field : NULL;
}

const char *plan_range_length(const struct plan *plan)
{
    return *plan->range_length ? plan->range_length : plan->length;
}

/* Write the canonical name as snprintf() does; of_list: with the words that make the list, and the
 * required ones, alone. */
static size_t write_name(const struct plan *plan, bool of_list, char *ret, size_t capacity)
{
    size_t len = 0;

    for (unsigned i = 0; i < n_plan_parameters; i++) {
        const struct plan_parameter *p = &plan_parameters[i];
        bool is_in = !of_list || p->is_required || p->makes_list;
        char value[PLAN_NAME_SIZE];

        if (is_in && plan_parameter_print(p, plan, value, sizeof(value)))
            len += (size_t)snprintf(len < capacity ? ret + len : NULL,
                                    len < capacity ? capacity - len : 0, "%s%s=%s", i ? "," : "",
                                    p->word, value);
    }
    return len;
}

int plan_parse(const char *name, size_t len, char separator, struct plan *ret, struct diag *d)
{
    struct plan plan = {.parts = 1, .ranks = 1, .tail = TAIL_KEEP};
    uint32_t seen = 0;
    size_t start = 0;
    int r;

    for (;;) {
        const char *end = memchr(name + start, separator, len - start);
        size_t item_len = end ? (size_t)(end - name) - start : len - start;

        r = plan_parse_one(name + start, item_len, &seen, &plan, d);
        if (r < 0)
            return r;
        if (!end)
            break;
        start += item_len + 1;
    }
    if (plan.budget && !plan.bucket)
        plan.bucket = LENGTH_BATCHES_BUCKET;
    r = check_seen(&plan, seen, d);
    if (r == 0 && write_name(&plan, false, NULL, 0) >= PLAN_NAME_SIZE)
        r = diag_set(d, -EINVAL, "expected a name of at most %d characters, got more",
                     PLAN_NAME_SIZE - 1);
    if (r == 0)
        *ret = plan;
    return r;
}

void plan_of_list(const struct plan *plan, struct plan *ret)
{
    char name[PLAN_NAME_SIZE];

    plan_parse(name, write_name(plan, true, name, sizeof(name)), ',', ret, NULL);
    if (plan->budget && ret->ranges && !*ret->range_length)
        memcpy(ret->range_length, plan->length, sizeof(ret->range_length));
    if (plan->budget) {
        ret->batch = ret->budget = ret->bucket = 0;
        ret->length[0] = '\0';
    }
}

/* The parameter whose word this is, or nearly is; NULL: none. */
static const char *guess_word(const char *item, size_t len)
{
    char word[32];
    struct guess guess;

    if (len >= sizeof(word))
        return NULL;
    for (size_t i = 0; i < len; i++)
        word[i] = (char)tolower((unsigned char)item[i]);
    word[len] = '\0';
    guess_init(&guess, word);
    for (unsigned i = 0; i < n_plan_parameters; i++)
        guess_at(&guess, plan_parameters[i].word);
    return guess.name;
}

bool plan_guess(const char *name, char ret[static PLAN_NAME_SIZE])
{
    AUTO_TEXT struct text meant = {0};
    struct plan plan;

    while (*name) {
        size_t len = strcspn(name, ",+;& "), word_len = strcspn(name, "=");
        const char *word = word_len < len ? guess_word(name, word_len) : NULL;

        if (!word)
            return false;
        text_add(&meant, "%s%s%.*s", meant.len ? "," : "", word, (int)(len - word_len),
                 name + word_len);
        name += len + (name[len] != '\0');
    }
    if (meant.failed || !meant.len || plan_parse(meant.data, meant.len, ',', &plan, NULL) < 0)
        return false;
    plan_name(&plan, ret);
    return true;
}

void plan_name(const struct plan *plan, char ret[static PLAN_NAME_SIZE])
{
    write_name(plan, false, ret, PLAN_NAME_SIZE);
}

/* Write "word=syntax" as the help shows it; returns its length. */
static size_t write_syntax(const struct plan_parameter *p, char ret[static PLAN_NAME_SIZE])
{
    bool first = p == plan_parameters;

    return (size_t)snprintf(ret, PLAN_NAME_SIZE, first ? "%s%s=%s" : "[%s%s=%s]", first ? "" : ",",
                            p->word, p->syntax);
}

void plan_syntax(struct text *t, const char *indent, size_t width)
{
    size_t margin = strlen(indent) + strlen("batch="), at = 0;

    for (unsigned i = 0; i < n_plan_parameters; i++) {
        char item[PLAN_NAME_SIZE];
        size_t len = write_syntax(&plan_parameters[i], item);

        if (i && at + len > width) {
            text_add(t, "\n%*s", (int)margin, "");
            at = margin;
        } else if (!i) {
            text_add(t, "%s", indent);
            at = strlen(indent);
        }
        text_add(t, "%s", item);
        at += len;
    }
    text_add(t, "\n");
}

void plan_help(struct text *t)
{
    size_t most = 0;

    for (unsigned i = 0; i < n_plan_parameters; i++)
        most =
            max_u64(most, strlen(plan_parameters[i].word) + strlen(plan_parameters[i].syntax) + 1);
    for (unsigned i = 0; i < n_plan_parameters; i++) {
        const struct plan_parameter *p = &plan_parameters[i];
        size_t len = strlen(p->word) + strlen(p->syntax) + 1;

        text_add(t, "  %s=%s%*s%s\n", p->word, p->syntax, (int)(most - len + 2), "", p->help);
    }
}
