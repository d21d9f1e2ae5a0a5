#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/core/format.h"

static int folder_names_by_name(const void *a, const void *b)
{
    const struct folder_name *x = a, *y = b;
    size_t common = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->name, y->name, common);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void folder_names_sort(struct folder_names *names)
{
    if (names->n)
        qsort(names->file, names->n, sizeof(*names->file), folder_names_by_name);
}

const struct folder_name *folder_names_find(const struct folder_names *names, const char *name,
                                            size_t len)
{
    const struct folder_name wanted = {.name = name, .len = len};

    return names->n ? bsearch(&wanted, names->file, names->n, sizeof(wanted), folder_names_by_name)
                    : NULL;
}

bool format_item_names(const char *item, const char *file)
{
    size_t n = strcspn(item, ";"), len = strlen(file);
    const char *colon = memrchr(item, ':', n);
    size_t name_len = colon ? (size_t)(colon - item) : 0;

    if (name_len + strlen(".gz") == len &&
        (text_ends_with(file, ".gz") || text_ends_with(file, ".xz")))
        len = name_len;
    return name_len && name_len == len && !memcmp(item, file, len);
}
