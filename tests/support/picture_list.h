/* Names of pictures for tests of annotations: a text of paths, each followed by a blank. */
#ifndef EPOCHFS_TESTS_SUPPORT_PICTURE_LIST_H
#define EPOCHFS_TESTS_SUPPORT_PICTURE_LIST_H

#include <stdbool.h>
#include <string.h>

#include "format/annotations/picture_names.h"

struct picture_list {
    struct picture_names names;
    const char *paths; /* "a/1.jpg b/2.jpg " */
};

/* Does the path, or the path without its extension, end with the text, at the begin of a name? */
static inline bool picture_list_is(const char *path, size_t path_len, const char *text, size_t len)
{
    size_t stem = path_len;

    while (stem && path[stem - 1] != '.')
        stem--;
    for (int i = 0; i < 2; i++) {
        size_t end = i && stem ? stem - 1 : path_len;

        if (len && len <= end && !memcmp(path + end - len, text, len) &&
            (len == end || path[end - len - 1] == '/'))
            return true;
    }
    return false;
}

static inline uint32_t picture_list_find(const struct picture_names *names, const char *text,
                                         size_t len)
{
    const struct picture_list *list = (const struct picture_list *)names;
    uint32_t found = PICTURE_NONE, i = 0;

    for (const char *at = list->paths, *end; (end = strchr(at, ' ')) != NULL; at = end + 1, i++)
        if (picture_list_is(at, (size_t)(end - at), text, len))
            found = found == PICTURE_NONE ? i : PICTURE_SEVERAL;
    return found;
}

#define PICTURE_LIST(text)                                                                         \
    (struct picture_list)                                                                          \
    {                                                                                              \
        {picture_list_find}, text                                                                  \
    }

#endif
