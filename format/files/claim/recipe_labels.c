/* The labels of recipes: words of paths, which are numbered over all datasets of the recipe, or by
 * the classes that a dataset names. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/files/claim/recipe_parts.h"

/* ---- distinct texts ---- */

static int numbered_compare(const void *a, const void *b)
{
    return strcmp(((const struct numbered_text *)a)->text, ((const struct numbered_text *)b)->text);
}

int numbered_add(struct numbered *t, const char *text, size_t len, uint32_t *ret)
{
    AUTO_FREE char *copy = strndup(text, len);
    struct numbered_text *new = copy ? malloc(sizeof(*new)) : NULL;
    struct numbered_text **found = NULL;

    if (!new)
        return -ENOMEM;
    *new = (struct numbered_text){copy, (uint32_t)t->n};
    if (array_capacity(&t->text, t->n, sizeof(*t->text)) == 0)
        found = tsearch(new, &t->tree, numbered_compare);
    if (!found || *found != new) {
        free(new);
        if (found)
            *ret = (*found)->number;
        return found ? 0 : -ENOMEM;
    }
    new->text = TAKE_PTR(copy);
    t->text[t->n++] = new;
    *ret = new->number;
    return 0;
}

static void numbered_free_text(void *p)
{
    struct numbered_text *text = p;

    free(text->text);
    free(text);
}

void numbered_release(struct numbered *t)
{
    tdestroy(t->tree, numbered_free_text);
    free(t->text);
}

static int numbered_compare_places(const void *a, const void *b)
{
    return strcmp((*(struct numbered_text *const *)a)->text,
                  (*(struct numbered_text *const *)b)->text);
}

int numbered_sort(const struct numbered *labels, uint32_t **ret)
{
    AUTO_FREE struct numbered_text **sorted = calloc(labels->n + 1, sizeof(*sorted));

    *ret = calloc(labels->n + 1, sizeof(**ret));
    if (!sorted || !*ret)
        return -ENOMEM;
    for (size_t i = 0; i < labels->n; i++)
        sorted[i] = labels->text[i];
    qsort(sorted, labels->n, sizeof(*sorted), numbered_compare_places);
    for (size_t i = 0; i < labels->n; i++)
        (*ret)[sorted[i]->number] = (uint32_t)i;
    return 0;
}

int numbered_names(const struct numbered *labels, const uint32_t *place, char ***ret, size_t *ret_n)
{
    *ret = calloc(labels->n + 1, sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    *ret_n = labels->n;
    for (size_t i = 0; i < labels->n; i++)
        if (!((*ret)[place[i]] = strdup(labels->text[i]->text)))
            return -ENOMEM;
    return 0;
}

/* ---- labels over all datasets ---- */

/* The labels of a set as its classes number them. */
static int recipe_number_by_classes(const struct recipe *recipe, const struct numbered *labels,
                                    const json_t *classes, struct files_view *view, struct diag *d)
{
    AUTO_CLASS_LIST struct class_list list = {0};
    int r = class_list_read(classes, &list, &view->class_name, &view->n_classes);

    for (size_t i = 0; i < view->n && r == 0; i++) {
        const char *text = labels->text[view->label[i]]->text;
        size_t number = class_list_find(&list, text, strlen(text));

        if (number == list.n)
            return diag_set(d, -EBADMSG,
                            "%s, line %u: 'classes': expected all classes, but not '%s'",
                            recipe->name, recipe_line(recipe, "classes"), text);
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
