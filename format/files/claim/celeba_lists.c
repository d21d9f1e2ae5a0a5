/* The lists of CelebA, next to its pictures: fields of them, and the parts of the dataset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/celeba.h"
#include "format/files/claim/annotations.h"

const char *const celeba_parts[CELEBA_PARTS] = {
    [CELEBA_TRAIN] = "train", [CELEBA_VALID] = "valid", [CELEBA_TEST] = "test"};

int annotating_read_celeba(struct annotating *a, size_t at, size_t file, struct diag *d)
{
    AUTO_VALUE_COLUMNS struct value_columns found = {0};
    AUTO_TEXT struct text attributes = {0};
    AUTO_BLOB struct blob *blob = NULL;
    const char *name = members_name(a->s->m, file);
    struct set *set = &a->s->set[at];
    enum celeba_list list;
    size_t unmatched = 0;
    int r;

    if (!celeba_list_is(name, &list))
        return -EDOM;
    r = a->s->claims->open(a->s->claims, file, &blob, d);

    if (r == 0)
        r = celeba_read(blob, 0, blob->size, name, list, &a->pictures.names, a->pictures.n, &found,
                        &unmatched, &attributes, d);
    a->s->claims->taken[file] = CLAIMS_USED;
    if (r == 0)
        r = view_add_columns(set->claim->view, &found);
    if (r == 0 && attributes.len)
        r = set_add_about(set, "attr_names", "%s", attributes.data);
    if (r == 0 && unmatched)
        r = set_add_note(set, "%s names %zu pictures that are not there", name, unmatched);
    return r;
}

int annotating_add_part(struct annotating *a, size_t set, uint32_t folder, const char *called,
                        int64_t part)
{
    const struct value_columns *values = &a->s->set[set].claim->view->values;
    const struct value_column *c = value_columns_find(values, "partition");
    uint32_t *sample = c ? calloc(c->rows + 1, sizeof(*sample)) : NULL;
    size_t n = 0;

    if (!sample)
        return c ? -ENOMEM : 0;
    for (uint64_t row = 0; row < c->rows; row++) {
        const uint8_t *items;
        int64_t number;

        value_items(c, row, &items);
        memcpy(&number, items, sizeof(number));
        if (number == part && !value_is_hole(c, row))
            sample[n++] = (uint32_t)row;
    }
    if (n)
        return annotating_add_view(a, set, folder, called, sample, n);
    free(sample);
    return 0;
}

/* The parts of the partition are datasets. */
static int celeba_split(struct annotating *a, size_t at)
{
    const struct set *set = &a->s->set[at];
    uint32_t above = a->s->info[set->root].above;
    uint32_t folder = set->root == set->top && above != NO_FOLDER ? above : set->root;
    int r = 0;

    for (int64_t part = 0; part < CELEBA_PARTS && r == 0; part++)
        r = annotating_add_part(a, at, folder, celeba_parts[part], part);
    return r;
}

int celeba_lists_apply(struct annotating *a)
{
    struct set *set = NULL;
    int r = 0;

    for (size_t i = 0; i < a->s->m->n && r == 0; i++) {
        struct diag d = DIAG_INIT;
        enum celeba_list list;
        uint32_t scope;

        if (a->s->claims->taken[i] || a->is_inside[a->s->m->member[i].folder] ||
            !celeba_list_is(members_name(a->s->m, i), &list))
            continue;
        scope = annotating_scope(a, i);
        set = scope == NO_FOLDER ? NULL : annotating_first_set(a, scope);
        if (!set)
            continue;
        pictures_choose(&a->pictures, set);
        a->pictures.scope = set->top;
        r = annotating_read_celeba(a, (size_t)(set - a->s->set), i, &d);
        pictures_choose(&a->pictures, NULL);
        if (r == 0)
            r = set_add_source(set, SOURCE_CELEBA, i, 0);
        if (r < 0 && r != -ENOMEM)
            r = annotating_refuse(a, scope, diag_text(&d, r));
    }
    for (size_t i = 0; i < a->s->n_sets && r == 0; i++)
        if (!a->s->set[i].refused && a->s->set[i].claim->n_views && !a->s->set[i].dataset)
            r = celeba_split(a, i);
    return r;
}
