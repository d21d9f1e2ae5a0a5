/* The labels of recipes: words of paths, which are numbered over all datasets of the recipe, or by
 * the classes that a dataset names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/recipe_parts.h"

int recipe_classes(const json_t *classes, struct numbered *ret)
{
    size_t n = json_array_size(classes);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const json_t *name = json_array_get(classes, i);
        uint32_t number;

        r = numbered_add(ret, json_string_value(name), json_string_length(name), &number);
        if (r == 0 && number < i)
            return -EEXIST;
    }
    return r;
}

/* The labels of a set as its classes number them. */
static int recipe_number_by_classes(const struct recipe *recipe, const struct numbered *labels,
                                    const json_t *classes, struct files_view *view, struct diag *d)
{
    AUTO_NUMBERED struct numbered list = {0};
    int r = recipe_classes(classes, &list);

    if (r == 0)
        r = numbered_names(&list, NULL, &view->class_name, &view->n_classes);
    for (size_t i = 0; i < view->n && r == 0; i++) {
        const struct numbered_text *text = labels->text[view->label[i]];
        size_t number = numbered_find(&list, text->text, text->len);

        if (number == list.n)
            return diag_set(d, -EBADMSG,
                            "%s, line %u: 'classes': expected all classes, but not '%s'",
                            recipe->name, recipe_line(recipe, "classes"), text->text);
        view->label[i] = (int64_t)number;
    }
    return r;
}

int recipe_number_labels(struct search *s, size_t first, const struct recipe *recipe,
                         const struct numbered *labels, struct diag *d)
{
    AUTO_FREE uint32_t *place = NULL;
    int r = numbered_sort(labels, &place);

    for (size_t i = first; i < s->n_sets && r == 0; i++) {
        struct files_view *view = s->set[i].claim->view;
        const json_t *classes = json_object_get((const json_t *)s->set[i].dataset, "classes");

        if (!view->label)
            continue;
        if (classes) {
            r = recipe_number_by_classes(recipe, labels, classes, view, d);
            continue;
        }
        for (size_t k = 0; k < view->n; k++)
            view->label[k] = place[view->label[k]];
        r = numbered_names(labels, place, &view->class_name, &view->n_classes);
    }
    return r;
}
