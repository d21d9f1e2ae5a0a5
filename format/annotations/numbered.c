#include "format/annotations/numbered.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int text_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int numbered_compare(const void *a, const void *b)
{
    const struct numbered_text *x = a, *y = b;

    return text_compare(x->text, x->len, y->text, y->len);
}

size_t numbered_find(const struct numbered *t, const char *text, size_t len)
{
    const struct numbered_text key = {text, len, 0};
    struct numbered_text *const *found = tfind(&key, &t->tree, numbered_compare);

    return found ? (*found)->number : t->n;
}

int numbered_add(struct numbered *t, const char *text, size_t len, uint32_t *ret)
{
    struct numbered_text *new;
    char *copy;

    *ret = (uint32_t)numbered_find(t, text, len);
    if (*ret < t->n)
        return 0;
    new = malloc(sizeof(*new) + len + 1);
    if (!new)
        return -ENOMEM;
    copy = (char *)(new + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    *new = (struct numbered_text){copy, len, *ret};
    if (array_capacity(&t->text, t->n, sizeof(*t->text)) < 0 ||
        !tsearch(new, &t->tree, numbered_compare)) {
        free(new);
        return -ENOMEM;
    }
    t->text[t->n++] = new;
    return 0;
}

static int numbered_compare_places(const void *a, const void *b)
{
    return numbered_compare(*(struct numbered_text *const *)a, *(struct numbered_text *const *)b);
}

int numbered_sort(const struct numbered *t, uint32_t **ret)
{
    AUTO_FREE struct numbered_text **sorted = calloc(t->n + 1, sizeof(*sorted));

    *ret = calloc(t->n + 1, sizeof(**ret));
    if (!sorted || !*ret)
        return -ENOMEM;
    if (t->n)
        memcpy(sorted, t->text, t->n * sizeof(*sorted));
    qsort(sorted, t->n, sizeof(*sorted), numbered_compare_places);
    for (size_t i = 0; i < t->n; i++)
        (*ret)[sorted[i]->number] = (uint32_t)i;
    return 0;
}

int numbered_names(const struct numbered *t, const uint32_t *place, char ***ret, size_t *ret_n)
{
    *ret = calloc(t->n + 1, sizeof(**ret));
    *ret_n = *ret ? t->n : 0;
    for (size_t i = 0; i < *ret_n; i++)
        if (!((*ret)[place ? place[i] : i] = strdup(t->text[i]->text)))
            return -ENOMEM;
    return *ret ? 0 : -ENOMEM;
}

void numbered_release(struct numbered *t)
{
    tdestroy(t->tree, free);
    free(t->text);
    *t = (struct numbered){0};
}
