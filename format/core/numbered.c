#include "format/core/numbered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/index/index.h"

int text_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

const char *numbered_text(const struct numbered *t, size_t number, size_t *ret_len)
{
    uint64_t begin = number ? t->end[number - 1] : 0;

    if (ret_len)
        *ret_len = (size_t)(t->end[number] - begin - 1);
    return t->bytes.data + begin;
}

/* Where the text is, or would be. slots > n. */
static uint32_t *text_slot(const struct numbered *t, uint32_t *slot, uint64_t slots,
                           const char *text, size_t len)
{
    for (uint64_t i = key_hash(text, len);; i++) {
        uint32_t *at = &slot[i & (slots - 1)];
        size_t found_len;
        const char *found = *at ? numbered_text(t, *at - 1, &found_len) : NULL;

        if (!found || (found_len == len && !memcmp(found, text, len)))
            return at;
    }
}

static int add_slots(struct numbered *t)
{
    uint64_t slots = t->slots ? 2 * t->slots : 64;
    uint32_t *slot = calloc(slots, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++) {
        size_t len;
        const char *text = numbered_text(t, i, &len);

        *text_slot(t, slot, slots, text, len) = (uint32_t)i + 1;
    }
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    return 0;
}

size_t numbered_find(const struct numbered *t, const char *text, size_t len)
{
    uint32_t found = t->slots ? *text_slot(t, t->slot, t->slots, text, len) : 0;

    return found ? found - 1 : t->n;
}

int numbered_add(struct numbered *t, const char *text, size_t len, uint32_t *ret)
{
    *ret = (uint32_t)numbered_find(t, text, len);
    if (*ret < t->n)
        return 0;
    if (2 * (uint64_t)t->n >= t->slots && add_slots(t) < 0)
        return -ENOMEM;
    if (array_capacity(&t->end, t->n, sizeof(*t->end)) < 0)
        return -ENOMEM;
    text_add_bytes(&t->bytes, text, len);
    text_add_bytes(&t->bytes, "", 1);
    if (t->bytes.failed)
        return -ENOMEM;
    free(TAKE_PTR(t->place)); /* of the texts before this one */
    *text_slot(t, t->slot, t->slots, text, len) = *ret + 1;
    t->end[t->n++] = t->bytes.len;
    return 0;
}

static int order_of_texts(const void *a, const void *b, void *ctx)
{
    size_t x_len, y_len;
    const char *x = numbered_text(ctx, *(const uint32_t *)a, &x_len);
    const char *y = numbered_text(ctx, *(const uint32_t *)b, &y_len);

    return text_compare(x, x_len, y, y_len);
}

int numbered_sort(struct numbered *t)
{
    if (t->place)
        return 0;
    t->place = malloc(2 * sizeof(*t->place) * (t->n + 1));
    if (!t->place)
        return -ENOMEM;
    t->sorted = t->place + t->n;
    for (size_t i = 0; i < t->n; i++)
        t->sorted[i] = (uint32_t)i;
    qsort_r(t->sorted, t->n, sizeof(*t->sorted), order_of_texts, t);
    for (size_t i = 0; i < t->n; i++)
        t->place[t->sorted[i]] = (uint32_t)i;
    return 0;
}

int numbered_names(const struct numbered *t, bool sorted, char ***ret, size_t *ret_n)
{
    *ret = calloc(t->n + 1, sizeof(**ret));
    *ret_n = *ret ? t->n : 0;
    for (size_t i = 0; i < *ret_n; i++)
        if (!((*ret)[i] = strdup(numbered_text(t, sorted ? t->sorted[i] : i, NULL))))
            return -ENOMEM;
    return *ret ? 0 : -ENOMEM;
}

void numbered_release(struct numbered *t)
{
    text_release(&t->bytes);
    free(t->end);
    free(t->slot);
    free(t->place);
    *t = (struct numbered){0};
}
