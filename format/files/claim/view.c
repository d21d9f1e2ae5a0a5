/* Claims and their views. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "format/files/claim/claim.h"
#include "format/index/kept.h"

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
    size_t at = SEARCH(n, i, text_compare(name[i], strlen(name[i]), text, len) < 0);

    return at < n && text_compare(name[at], strlen(name[at]), text, len) == 0 ? at : n;
}

size_t claim_class_of(const struct files_claim *claim, const char *folder)
{
    folder += strlen(claim->top);
    folder += *folder == '/';
    return class_name_find(claim->class_name, claim->n_classes, folder, strcspn(folder, "/"));
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

bool view_reads_boxes(const struct files_claim *claim, const struct files_view *view)
{
    const struct value_column *c = value_columns_find(&view->values, "boxes");

    return claim->boxes && !(c && c->is_list && c->width == 4);
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

/* ---- kept ---- */

bool claim_is_of_names(const struct files_claim *c)
{
    const struct files_view *view = c->view;

    return c->n_views == 1 && !view->name && !view->sample && !view->label && !view->values.n &&
           !c->n_roles && !c->boxes && !c->n_annotations && !c->table && !c->keys.n && !c->n_lost &&
           !c->pictures_only;
}

/* Has m the files of all samples, the first of each below the top? */
static bool claim_fits(const struct files_claim *c, const struct members *m)
{
    uint32_t folder = UINT32_MAX; /* that was looked at last */
    bool fits = !c->first[0] && c->first[c->n_samples] <= m->n;

    for (size_t i = 0; i < c->n_samples && fits; i++) {
        fits = c->first[i] < c->first[i + 1] && c->first[i] < m->n && *members_name(m, c->first[i]);
        if (fits && m->member[c->first[i]].folder != folder) {
            folder = m->member[c->first[i]].folder;
            fits = members_is_below(members_folder(m, folder), c->top);
        }
    }
    return fits;
}

/* Memory of a claim of so many samples and classes. */
static void claim_make(struct kept *k, struct files_claim *c, uint64_t samples, uint64_t classes)
{
    c->first = calloc(samples + 1, sizeof(*c->first));
    c->view = calloc(1, sizeof(*c->view));
    c->class_name = calloc(classes + 1, sizeof(*c->class_name));
    if (!c->first || !c->view || !c->class_name) {
        k->error = -ENOMEM;
        return;
    }
    c->n_views = 1;
    c->n_samples = c->view->n = samples;
    c->n_classes = classes;
}

void claim_keep(struct kept *k, struct files_claim **claim, const struct members *m)
{
    struct files_claim *c = *claim = *claim ? *claim : calloc(1, sizeof(*c));
    uint64_t layout = c ? c->layout : 0, media = c ? c->media : 0;
    uint64_t samples = c ? c->n_samples : 0, classes = c ? c->n_classes : 0;

    kept_number(k, &layout, LAYOUT_FLAT);
    kept_number(k, &media, N_FILES_MEDIA - 1);
    kept_number(k, &samples, k->left / sizeof(*c->first));
    kept_number(k, &classes, k->left / sizeof(classes));
    if (!c)
        k->error = -ENOMEM;
    else if (!k->out && !k->error)
        claim_make(k, c, samples, classes);
    if (k->error)
        return;
    c->layout = (enum files_layout)layout;
    c->media = (enum files_media)media;
    kept_bytes(k, c->first, (samples + 1) * sizeof(*c->first));
    kept_text(k, &c->top);
    kept_text(k, &c->rule);
    kept_text(k, &c->notes);
    kept_text(k, &c->about);
    kept_text(k, &c->aside);
    for (uint64_t i = 0; i < classes; i++)
        kept_text(k, &c->class_name[i]);
    if (!k->out && !k->error && !claim_fits(c, m)) /* tables and manifests are never kept */
        k->error = -EBADMSG;
}
