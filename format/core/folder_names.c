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

bool probed_has_sibling(const struct probed_file *file, const char *suffix)
{
    const char *dot = strrchr(file->name, '.');
    size_t stem = dot ? (size_t)(dot - file->name) : strlen(file->name);
    char name[512];
    int n = snprintf(name, sizeof(name), "%.*s%s", (int)stem, file->name, suffix);

    return n > 0 && (size_t)n < sizeof(name) && folder_names_has(&file->folder, name, (size_t)n);
}
