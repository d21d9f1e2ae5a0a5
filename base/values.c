#include "base/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/text.h"

int value_count(const char *name, const char *value, uint64_t least, uint64_t most, uint64_t *ret,
                struct diag *d)
{
    uint64_t v = 0;

    if (number_parse(value, strlen(value), most, &v) != strlen(value) || !*value || v < least)
        return diag_set(d, -EINVAL, "option %s=%s: expected a number from %llu to %llu", name,
                        value, (unsigned long long)least, (unsigned long long)most);
    *ret = v;
    return 0;
}

int value_size(const char *name, const char *value, uint64_t *ret, struct diag *d)
{
    static const char units[] = "KMGT";
    size_t n = strspn(value, "0123456789");
    const char *unit = value[n] ? strchr(units, value[n]) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    uint64_t v = 0;

    if (number_parse(value, n, UINT64_MAX, &v) != n || !v || value[n + (unit != NULL)] ||
        !checked_mul(v, UINT64_C(1) << shift, &v))
        return diag_set(
            d, -EINVAL,
            "option %s=%s: expected a number of bytes, such as 500, or with K, M, G or T "
            "after it, such as 200G",
            name, value);
    *ret = v;
    return 0;
}

bool value_names(const char *names, const char *word, size_t len)
{
    for (const char *at = names; len;) {
        size_t n = strcspn(at, "|");

        if (n == len && !memcmp(at, word, n))
            return true;
        if (!at[n])
            break;
        at += n + 1;
    }
    return false;
}

int value_word(const char *name, const char *value, const char *const *words, unsigned n,
               unsigned *ret, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < n; i++) {
        if (value_names(words[i], value, strlen(value))) {
            *ret = i;
            return 0;
        }
        text_add(&t, "%s%.*s",
                 !i           ? ""
                 : i + 1 == n ? " or "
                              : ", ",
                 (int)strcspn(words[i], "|"), words[i]);
    }
    return diag_set(d, -EINVAL, "option %s=%s: expected %s", name, value, t.data ? t.data : "");
}

/* Takes copy over. */
static int values_replace(const char **text, char *copy)
{
    if (!copy)
        return -ENOMEM;
    free((char *)*text);
    *text = copy;
    return 0;
}

int value_text(const char *name, const char *value, const char *expected, const char **text,
               struct diag *d)
{
    if (!*value)
        return diag_set(d, -EINVAL, "option %s=: expected %s", name, expected);
    return values_replace(text, strdup(value));
}

int value_path(const char *name, const char *value, const char *expected, const char **text,
               struct diag *d)
{
    AUTO_FREE char *here = NULL;
    char *path;

    if (!*value || *value == '/')
        return value_text(name, value, expected, text, d);
    if (value[0] == '~' && (!value[1] || value[1] == '/'))
        return diag_set(
            d, -EINVAL,
            "option %s=%s: ~ is not expanded here. Write $HOME or the whole path, or ./~ "
            "for a folder of that name",
            name, value);
    here = getcwd(NULL, 0);
    if (!here)
        return diag_set(d, -EINVAL, "option %s=%s: the current folder: %s", name, value,
                        strerror(errno));
    return asprintf(&path, "%s/%s", here, value) < 0 ? -ENOMEM : values_replace(text, path);
}

void guess_init(struct guess *ret, const char *wrong)
{
    *ret = (struct guess){.wrong = wrong, .distance = 3};
}

void guess_at(struct guess *guess, const char *name)
{
    size_t distance = edit_distance(guess->wrong, name);

    if (distance < guess->distance && (distance < 2 || *name == *guess->wrong)) {
        guess->name = name;
        guess->distance = distance;
    }
}

size_t edit_distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);

    if (n >= ARRAY_LEN(row))
        return n;
    for (size_t i = 0; i <= n; i++)
        row[i] = i;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            size_t change = diagonal + (a[i] != b[k]);

            diagonal = row[k + 1];
            row[k + 1] = min_u64(change, min_u64(row[k], row[k + 1]) + 1);
        }
    }
    return row[n];
}
