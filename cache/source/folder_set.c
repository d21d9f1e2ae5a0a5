/* A hash table with open addressing, at most half full. */
#include "cache/source/folder_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define CAPACITY_FIRST 64

/* The slot of a path: it has its folder, or is free. */
static uint32_t *find_slot(struct folder_set *set, const struct members *m, const char *path,
                           size_t len)
{
    size_t at = (size_t)XXH3_64bits(path, len) & (set->capacity - 1);

    for (;; at = (at + 1) & (set->capacity - 1)) {
        uint32_t *slot = &set->slot[at];
        const char *folder = *slot ? members_folder(m, *slot - 1) : NULL;

        set->compared++;
        if (!folder || (!strncmp(folder, path, len) && !folder[len]))
            return slot;
    }
}

/* Make space for one folder more. */
static int grow(struct folder_set *set, const struct members *m)
{
    struct folder_set grown = {.capacity = set->capacity ? 2 * set->capacity : CAPACITY_FIRST,
                               .compared = set->compared};

    if (2 * ((size_t)m->n_folders + 1) <= set->capacity)
        return 0;
    grown.slot = calloc(grown.capacity, sizeof(*grown.slot));
    if (!grown.slot)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        const char *path = members_folder(m, i);

        *find_slot(&grown, m, path, strlen(path)) = i + 1;
    }
    free(set->slot);
    *set = grown;
    return 0;
}

static int add(struct folder_set *set, struct members *m, const char *path, size_t len,
               uint32_t *ret)
{
    AUTO_FREE char *copy = strndup(path, len);
    int r = copy ? grow(set, m) : -ENOMEM;

    if (r == 0)
        r = members_add_folder(m, copy, ret);
    if (r == 0)
        *find_slot(set, m, path, len) = *ret + 1;
    return r;
}

int folder_set_way(struct folder_set *set, struct members *m, const char *path, size_t len,
                   uint32_t *ret)
{
    const uint32_t *slot = set->capacity ? find_slot(set, m, path, len) : NULL;
    size_t end = 0;
    int r = 0;

    if (slot && *slot) {
        *ret = *slot - 1;
        return 0;
    }
    for (bool top = true; r == 0 && (top || end < len); top = false) {
        /* "", then each folder on the way, then the folder itself */
        if (!top) {
            const char *slash = memchr(path + end + (end > 0), '/', len - end - (end > 0));

            end = slash ? (size_t)(slash - path) : len;
        }
        slot = set->capacity ? find_slot(set, m, path, end) : NULL;
        if (slot && *slot)
            *ret = *slot - 1;
        else
            r = add(set, m, path, end, ret);
    }
    return r;
}

void folder_set_release(struct folder_set *set)
{
    free(set->slot);
    *set = (struct folder_set){0};
}
