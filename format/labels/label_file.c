#include "format/labels/label_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/scope.h"

#define SUMMED offsetof(struct label_head, order)

uint64_t label_file_size(enum label_purpose type, uint64_t n, uint64_t classes)
{
    return type == LABEL_LENGTHS   ? LABEL_FILE_BODY + 4 * n
           : type == LABEL_WEIGHTS ? LABEL_FILE_BODY + 8 * (n + 1)
                                   : label_file_begin(n, classes) + 8 * (classes + 1);
}

static bool head_is_good(const struct label_head *head, size_t size, enum label_purpose type,
                         uint64_t n)
{
    return !memcmp(head->magic, LABEL_FILE_MAGIC, sizeof(head->magic)) &&
           head->version == LABEL_FILE_VERSION && head->order == LABEL_FILE_ORDER &&
           head->type == (uint32_t)type && head->n == n && n < LABEL_SAMPLES_MAX &&
           head->classes <= LABEL_CLASSES_MAX && (type == LABEL_CLASSES || !head->classes) &&
           label_file_size(type, n, head->classes) == size;
}

/* Values and beginnings of classes rise, and samples rise within each. */
static bool classes_are_good(const struct label_arrays *a)
{
    if (a->begin[0] || a->begin[a->classes] != a->n)
        return false;
    for (uint64_t c = 0; c < a->classes; c++)
        if (a->begin[c] >= a->begin[c + 1] || a->begin[c + 1] > a->n ||
            (c && a->label[c - 1] >= a->label[c]))
            return false;
    for (uint64_t c = 0; c < a->classes; c++)
        for (uint64_t i = a->begin[c]; i < a->begin[c + 1]; i++)
            if (a->member[i] >= a->n || (i > a->begin[c] && a->member[i - 1] >= a->member[i]))
                return false;
    for (uint64_t i = 0; i < a->n; i++)
        if (a->where[i] >= a->n)
            return false;
    return true;
}

static bool sums_are_good(const struct label_arrays *a)
{
    bool rise = !a->sum[0] && a->sum[a->n] && a->sum[a->n] < UINT64_C(1) << 63;

    for (uint64_t i = 0; i < a->n; i++)
        rise = rise && a->sum[i] <= a->sum[i + 1];
    return rise;
}

int label_file_check(const uint8_t *bytes, size_t size, enum label_purpose type, uint64_t n,
                     struct label_arrays *ret, void **ret_tables)
{
    struct label_arrays a = {.type = type, .n = n};
    AUTO_FREE uint64_t *tables = NULL;
    struct label_head head;

    if (size < LABEL_FILE_BODY)
        return -EBADMSG;
    memcpy(&head, bytes, sizeof(head));
    if (!head_is_good(&head, size, type, n) || crc32c(0, bytes + SUMMED, size - SUMMED) != head.crc)
        return -EBADMSG;
    if (type == LABEL_LENGTHS) {
        a.length = (const uint32_t *)(const void *)(bytes + LABEL_FILE_BODY);
    } else if (type == LABEL_WEIGHTS) {
        a.sum = (const uint64_t *)(const void *)(bytes + LABEL_FILE_BODY);
    } else {
        a.classes = head.classes;
        a.where = (const uint32_t *)(const void *)(bytes + LABEL_FILE_BODY);
        a.member = (const uint32_t *)(const void *)(bytes + label_file_member(n));
        tables = malloc(8 * (2 * a.classes + 1));
        if (!tables)
            return -ENOMEM;
        memcpy(tables, bytes + label_file_label(n), 8 * (2 * a.classes + 1));
        a.label = (const int64_t *)(const void *)tables;
        a.begin = tables + a.classes;
    }
    if (type != LABEL_LENGTHS &&
        !(type == LABEL_WEIGHTS ? sums_are_good(&a) : classes_are_good(&a)))
        return -EBADMSG;
    *ret = a;
    *ret_tables = TAKE_PTR(tables);
    return 0;
}
