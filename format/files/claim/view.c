/* Claims and their views. */
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/claim.h"

void claim_sample(const struct members *m, const struct files_claim *claim,
                  const struct files_view *view, uint64_t row, struct sample_files *ret)
{
    size_t sample = view->sample ? view->sample[row] : (size_t)row, unnamed = 0;
    bool is_plain = false;
    const char *name;

    *ret = (struct sample_files){claim->first[sample],
                                 claim->first[sample + 1] - claim->first[sample], 0};
    if (!ret->n)
        return;
    name = members_name(m, ret->first);
    for (size_t i = 0; i < ret->n; i++) {
        if (claim->role && claim->role[ret->first + i])
            continue;
        unnamed++;
        is_plain = is_plain || name_is_plain(members_name(m, ret->first + i));
    }
    ret->stem = unnamed > 1 && is_plain ? name_stem(name) : name_stem_alone(name);
}

bool files_lost_has(const struct files_lost *lost, const char *column)
{
    size_t n = strlen(lost->field);

    return !strncmp(column, lost->field, n) && !strchr(column + n, '.');
}

size_t class_name_find(char *const *name, size_t n, const char *text, size_t len)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = text_compare(name[middle], strlen(name[middle]), text, len);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return n;
}

static void view_free_texts(char **text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(text[i]);
    free(text);
}

void claim_release_view(struct files_view *view)
{
    free(view->name);
    free(view->sample);
    free(view->label);
    view_free_texts(view->class_name, view->n_classes);
    value_columns_release(&view->values);
}

void files_free_claim(void *impl)
{
    struct files_claim *claim = impl;

    if (!claim)
        return;
    for (size_t i = 0; i < claim->n_views; i++)
        claim_release_view(&claim->view[i]);
    free(claim->view);
    view_free_texts(claim->role_name, claim->n_roles);
    view_free_texts(claim->class_name, claim->n_classes);
    free(claim->first);
    free(claim->role);
    free(claim->top);
    for (size_t i = 0; i < claim->n_annotations; i++)
        blob_free(claim->annotation[i]);
    free(claim->annotation);
    free(claim->rule);
    free(claim->notes);
    free(claim->about);
    free(claim->aside);
    free(claim->table);
    value_columns_release(&claim->keys);
    for (size_t i = 0; i < claim->n_lost; i++) {
        free(claim->lost[i].field);
        free(claim->lost[i].why);
    }
    free(claim->lost);
    free(claim);
}
