#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/format.h"

static int by_name(const void *a, const void *b)
{
    const struct folder_name *x = a, *y = b;
    size_t common = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->name, y->name, common);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void folder_names_sort(struct folder_names *names)
{
    if (names->n)
        qsort(names->file, names->n, sizeof(*names->file), by_name);
}

const struct folder_name *folder_names_find(const struct folder_names *names, const char *name,
                                            size_t len)
{
    const struct folder_name wanted = {.name = name, .len = len};

    return names->n ? bsearch(&wanted, names->file, names->n, sizeof(wanted), by_name) : NULL;
}
