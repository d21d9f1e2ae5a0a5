/* The lists of CelebA, next to its pictures: fields of them, and the parts of the dataset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/celeba.h"
#include "format/files/claim/annotations.h"
#include "format/files/claim/recipe.h"

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
        return diag_set(d, -EBADMSG,
                        "%s, line %u: 'celeba': %s is not called like a list of CelebA",
                        set->recipe->name, recipe_line(set->recipe, "celeba"), name);
    r = a->s->claims->open(a->s->claims, file, &blob, d);
    if (r == 0)
        r = celeba_read(blob, name, list, &a->pictures.names, a->pictures.n, &found, &unmatched,
                        &attributes, d);
    if (r != -EDOM)
        a->s->claims->taken[file] = CLAIMS_USED;
    if (r < 0)
        return r;
    view_add_columns(a->s, set->claim->view, &found);
    if (attributes.len)
        json_add(&set->about, "", "attr_names", "%s", attributes.data);
    if (unmatched)
        text_add(&set->notes, "%s names %zu pictures that are not there\n", name, unmatched);
    return 0;
}

void annotating_add_part(struct annotating *a, size_t set, uint32_t folder, const char *called,
                         int64_t part)
{
    const struct value_columns *values = &a->s->set[set].claim->view->values;
    const struct value_column *c = value_columns_find(values, "partition");
    AUTO_FREE uint32_t *sample = c ? calloc(c->rows + 1, sizeof(*sample)) : NULL;
    size_t n = 0;

    a->s->failed = a->s->failed || (c && !sample);
    for (uint64_t row = 0; sample && row < c->rows; row++) {
        const uint8_t *items;
        int64_t number;

        value_items(c, row, &items);
        memcpy(&number, items, sizeof(number));
        if (number == part && !value_is_hole(c, row))
            sample[n++] = (uint32_t)row;
    }
    if (n)
        annotating_add_view(a, set, folder, called, TAKE_PTR(sample), n);
}

/* ---- without a recipe ---- */

bool celeba_may_be(const struct annotating *a, size_t file)
{
    enum celeba_list list;

    return !a->is_inside[a->s->m->member[file].folder] &&
           celeba_list_is(members_name(a->s->m, file), &list);
}

int celeba_apply(struct annotating *a, size_t file, uint32_t scope, struct diag *d)
{
    struct annotating of_set = {.s = a->s};
    struct set *set = annotating_first_set(a, scope);
    int r;

    if (!set || !set_has_pictures(set))
        return 0;
    pictures_init(&of_set.pictures, a->s, set);
    r = a->s->failed ? -ENOMEM
                     : annotating_read_celeba(&of_set, (size_t)(set - a->s->set), file, d);
    annotating_release(&of_set);
    if (r == 0)
        set_say_file(set, 0, "celeba", file);
    return r == -EDOM ? 0 : r;
}

void celeba_split_sets(struct annotating *a)
{
    const struct search *s = a->s;

    for (size_t i = 0; i < s->n_sets && !s->failed; i++) {
        const struct set *set = &s->set[i];
        uint32_t above = s->info[set->root].above;

        for (int64_t part = 0; part < CELEBA_PARTS && !set->refused && !set->dataset; part++)
            annotating_add_part(a, i,
                                set->root == set->top && above != NO_FOLDER ? above : set->root,
                                celeba_parts[part], part);
    }
}
