#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/core/format.h"
#include "format/core/numbered.h"

static int folder_names_by_name(const void *a, const void *b)
{
    const struct folder_name *x = a, *y = b;

    return text_compare(x->name, x->len, y->name, y->len);
}

void folder_names_sort(struct folder_names *names)
{
    if (names->n)
        qsort(names->file, names->n, sizeof(*names->file), folder_names_by_name);
}

int folder_names_of(const struct source_file *file, size_t n, struct folder_names *ret)
{
    *ret = (struct folder_names){.file = calloc(n + 1, sizeof(*ret->file))};
    for (; ret->file && ret->n < n; ret->n++)
        ret->file[ret->n] =
            (struct folder_name){file[ret->n].name, strlen(file[ret->n].name), ret->n};
    folder_names_sort(ret);
    return ret->file ? 0 : -ENOMEM;
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
    static const char *const ends[] = {".gz", ".xz", ".scp", ".ark"};
    size_t n = strcspn(item, ";"), len = strlen(file), at;
    const char *colon = memrchr(item, ':', n);

    n = colon ? (size_t)(colon - item) : 0;
    for (size_t i = 0; len > n && i < ARRAY_LEN(ends); i++)
        if (len > 3 && len - n >= strlen(ends[i]) &&
            !memcmp(file + len - strlen(ends[i]), ends[i], strlen(ends[i])))
            len -= strlen(ends[i]);
    for (at = len; len > n && at && file[at - 1] >= '0' && file[at - 1] <= '9';)
        at--;
    if (at < len && at > 1 && file[at - 1] == '.') /* of a part of a set */
        len = at - 1;
    return n && n == len && !memcmp(item, file, n);
}

bool format_label_of(const char *label, const char *dataset, char ret[static FORMAT_NAME])
{
    const char *item = label, *name = strchr(label, ':') ? NULL : label;
    size_t len;

    for (; !name && *item; item += strcspn(item, ";"), item += *item == ';')
        if (format_item_names(item, dataset))
            name = (const char *)memrchr(item, ':', strcspn(item, ";")) + 1;
    len = name ? strcspn(name, name == label ? "" : ";") : 0;
    if (!len || len >= FORMAT_NAME)
        return false;
    memcpy(ret, name, len);
    ret[len] = '\0';
    return true;
}
