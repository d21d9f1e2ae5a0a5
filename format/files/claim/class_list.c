/* The classes that a dataset of a recipe names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/recipe.h"

static int class_list_compare(const void *a, const void *b)
{
    return strcmp(((const struct class_list_item *)a)->name,
                  ((const struct class_list_item *)b)->name);
}

int class_list_read(const json_t *classes, struct class_list *ret, char ***ret_name, size_t *ret_n)
{
    size_t n = json_array_size(classes);

    ret->item = calloc(n + 1, sizeof(*ret->item));
    *ret_name = calloc(n + 1, sizeof(**ret_name));
    if (!ret->item || !*ret_name)
        return -ENOMEM;
    for (*ret_n = 0; *ret_n < n; ++*ret_n) {
        char *name = strdup(json_string_value(json_array_get(classes, *ret_n)));

        if (!name)
            return -ENOMEM;
        (*ret_name)[*ret_n] = name;
        ret->item[*ret_n] = (struct class_list_item){name, *ret_n};
    }
    ret->n = n;
    if (n)
        qsort(ret->item, n, sizeof(*ret->item), class_list_compare);
    return 0;
}

size_t class_list_find(const struct class_list *list, const char *text, size_t len)
{
    size_t at = class_name_find(&list->item->name, sizeof(*list->item), list->n, text, len);

    return at < list->n ? list->item[at].number : list->n;
}

void class_list_release(struct class_list *list)
{
    free(list->item);
}
