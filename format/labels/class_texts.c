#include "format/labels/class_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/mix64.h"
#include "format/labels/label_file.h"

static const char *numbered_text(const struct class_texts *t, uint32_t number, size_t *ret_len)
{
    uint64_t begin = number ? t->end[number - 1] : 0;

    *ret_len = (size_t)(t->end[number] - begin);
    return t->bytes.data + begin;
}

static uint64_t hash_of_text(const uint8_t *bytes, size_t len)
{
    uint64_t hash = len;

    for (size_t i = 0; i < len; i++)
        hash = mix64(hash ^ bytes[i]);
    return hash;
}

/* Where the text is, or would be. slots > n. */
static uint32_t *text_slot(const struct class_texts *t, uint32_t *slot, uint64_t slots,
                           const void *bytes, size_t len)
{
    for (uint64_t i = hash_of_text(bytes, len);; i++) {
        uint32_t *at = &slot[i & (slots - 1)];
        size_t found;
        const char *text = *at ? numbered_text(t, *at - 1, &found) : NULL;

        if (!text || (found == len && !memcmp(text, bytes, len)))
            return at;
    }
}

static int add_slots(struct class_texts *t)
{
    uint64_t slots = t->slots ? 2 * t->slots : 64;
    uint32_t *slot = calloc(slots, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t len;
        const char *text = numbered_text(t, i, &len);

        *text_slot(t, slot, slots, text, len) = i + 1;
    }
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    return 0;
}

int class_texts_add(struct class_texts *t, const uint8_t *bytes, size_t len, uint32_t *ret)
{
    int r = 2 * (uint64_t)t->n >= t->slots ? add_slots(t) : 0;
    uint32_t *slot;

    if (r < 0)
        return r;
    slot = text_slot(t, t->slot, t->slots, bytes, len);
    if (!*slot) {
        if (t->n == LABEL_CLASSES_MAX)
            return -E2BIG;
        r = array_capacity(&t->end, t->n, sizeof(*t->end));
        text_add_bytes(&t->bytes, (const char *)bytes, len);
        if (r < 0 || t->bytes.failed)
            return -ENOMEM;
        free(TAKE_PTR(t->rank)); /* of the texts before this one: a pass was begun again */
        t->end[t->n++] = t->bytes.len;
        *slot = t->n;
    }
    *ret = *slot - 1;
    return 0;
}

static int order_of_texts(const void *a, const void *b, void *ctx)
{
    size_t x_len, y_len;
    const char *x = numbered_text(ctx, *(const uint32_t *)a, &x_len);
    const char *y = numbered_text(ctx, *(const uint32_t *)b, &y_len);
    int order = memcmp(x, y, min_u64(x_len, y_len));

    return order ? order : (x_len > y_len) - (x_len < y_len);
}

int class_texts_sort(struct class_texts *t)
{
    if (t->rank)
        return 0;
    t->rank = malloc(2 * sizeof(*t->rank) * ((size_t)t->n + 1));
    if (!t->rank)
        return -ENOMEM;
    t->sorted = t->rank + t->n;
    for (uint32_t i = 0; i < t->n; i++)
        t->sorted[i] = i;
    qsort_r(t->sorted, t->n, sizeof(*t->sorted), order_of_texts, t);
    for (uint32_t i = 0; i < t->n; i++)
        t->rank[t->sorted[i]] = i;
    return 0;
}

const char *class_texts_at(const struct class_texts *t, uint32_t rank, size_t *ret_len)
{
    return numbered_text(t, t->sorted[rank], ret_len);
}

void class_texts_release(struct class_texts *t)
{
    text_release(&t->bytes);
    free(t->end);
    free(t->slot);
    free(t->rank);
    *t = (struct class_texts){0};
}
