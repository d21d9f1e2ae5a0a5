/* What tables and annotations do to sets: they add columns and datasets, and say what is ignored.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/files/claim/annotations.h"

uint32_t annotating_scope(const struct annotating *a, size_t file)
{
    uint32_t folder = a->s->m->member[file].folder;

    while (folder != NO_FOLDER && !a->has_samples[folder])
        folder = a->s->info[folder].above;
    return folder;
}

struct set *annotating_first_set(const struct annotating *a, uint32_t scope)
{
    for (size_t i = 0; i < a->s->n_sets; i++) {
        struct set *set = &a->s->set[i];

        if (!set->refused && !set->dataset && set->claim->n_views && set->root >= scope &&
            set->root < a->s->info[scope].end)
            return set;
    }
    for (size_t i = 0; i < a->s->n_sets; i++) /* one folder, called like that above it */
        if (!a->s->set[i].refused && !a->s->set[i].dataset && a->s->set[i].claim->n_views &&
            a->s->set[i].top >= scope && a->s->set[i].top < a->s->info[scope].end)
            return &a->s->set[i];
    return NULL;
}

int annotating_ignore(struct annotating *a, size_t file, uint32_t scope, const char *reason)
{
    struct set *set = annotating_first_set(a, scope);

    a->s->claims->taken[file] = CLAIMS_ASIDE;
    a->s->flags[file] |= FILE_REASON_GIVEN;
    if (set && set_add_ignored(set, reason, 1, members_name(a->s->m, file)) < 0)
        return -ENOMEM;
    return set ? set_add_note(set, "%s is ignored: %s; an epochfs.json can say more",
                              members_name(a->s->m, file), reason)
               : 0;
}

/* An annotation cannot be read now: the datasets that it may belong to are refused, for their
 * fields would depend on the moment. */
int annotating_refuse(struct annotating *a, uint32_t scope, const char *why)
{
    for (size_t i = 0; i < a->s->n_sets; i++) {
        struct set *set = &a->s->set[i];

        if (set->refused || set->dataset || set->root < scope || set->root >= a->s->info[scope].end)
            continue;
        if (set_refuse(set, "%s", why) < 0)
            return -ENOMEM;
    }
    return 0;
}

int view_add_columns(struct files_view *view, struct value_columns *from)
{
    for (unsigned i = 0; i < from->n; i++) {
        struct value_column *c = &from->column[i];

        if (value_columns_find(&view->values, c->name)) {
            continue;
        }
        if (array_capacity(&view->values.column, view->values.n, sizeof(*c)) < 0)
            return -ENOMEM;
        view->values.column[view->values.n++] = *c;
        *c = (struct value_column){0};
    }
    return 0;
}

/* Have the samples of a set a label before any table? */
static bool annotating_has_label(const struct annotating *a, size_t set)
{
    const struct files_claim *claim = a->s->set[set].claim;

    return claim->layout == LAYOUT_CLASSES || claim->view->label;
}

/* The column of a table that is the label of a set; NULL: it has another one, or none. */
static const struct value_column *annotating_label(const struct annotating *a, size_t set,
                                                   const struct picture_table *table)
{
    if (annotating_has_label(a, set))
        return NULL;
    return table->label < table->columns.n ? &table->columns.column[table->label]
                                           : picture_table_classes(table, &a->classes);
}

int annotating_keep_source(struct annotating *a, size_t set, size_t view, size_t file,
                           const struct picture_table *table)
{
    const struct value_column *label = annotating_label(a, set, table);
    struct set *kept = &a->s->set[set];
    int r = set_add_source(kept, SOURCE_TABLE, file, view);
    struct set_source *source = r < 0 ? NULL : &kept->source[kept->n_sources - 1];

    if (!source)
        return r;
    source->separator = table->separator;
    source->key = strdup(table->key);
    if (label)
        source->label = strdup(table->column[label - table->columns.column]);
    return source->key && (!label || source->label) ? 0 : -ENOMEM;
}

/* A dataset has a label: the column `label` of a table is dropped if it says the same, otherwise it
 * is called by the table. 0 or -ENOMEM. */
static int annotating_rename_label(const struct annotating *a, size_t set, size_t view,
                                   struct value_columns *columns, const char *table)
{
    struct value_column *c = value_columns_find(columns, "label");
    char *name;

    if (!c)
        return 0;
    if (annotating_says_class(a, set, view, c)) {
        value_columns_remove(columns, (unsigned)(c - columns->column));
        return 0;
    }
    if (asprintf(&name, "%.*s_label", (int)name_stem_alone(table), table) < 0)
        return -ENOMEM;
    free(c->name);
    c->name = name;
    return 0;
}

int annotating_add_table(struct annotating *a, size_t set, size_t view, const char *name,
                         const struct picture_table *table, const uint32_t *row)
{
    struct files_view *v = &a->s->set[set].claim->view[view];
    const struct value_column *label = annotating_label(a, set, table);
    AUTO_VALUE_COLUMNS struct value_columns picked = {0};
    int r = 0;

    if (label)
        r = annotating_add_label(a, set, view, name, label, row);
    if (r == 0)
        r = value_columns_pick(&table->columns, row, v->n, &picked);
    if (r == 0 && annotating_has_label(a, set))
        r = annotating_rename_label(a, set, view, &picked, name);
    return r < 0 ? r : view_add_columns(v, &picked);
}

int annotating_rows(const struct annotating *a, const struct picture_table *table, uint32_t **ret,
                    size_t *ret_named)
{
    const size_t n = a->pictures.n;

    *ret_named = 0;
    *ret = calloc(n + 1, sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = VALUE_NO_ROW;
    for (size_t i = 0; i < table->rows; i++)
        if (table->picture[i] < n && (*ret)[table->picture[i]] == VALUE_NO_ROW) {
            (*ret)[table->picture[i]] = (uint32_t)i;
            ++*ret_named;
        }
    return 0;
}

int annotating_add_list(struct annotating *a, size_t set, uint32_t folder, const char *called,
                        const struct picture_table *table, const char *columns_of)
{
    uint32_t *sample = calloc(table->rows + 1, sizeof(*sample));
    AUTO_FREE uint32_t *row = calloc(table->rows + 1, sizeof(*row));
    size_t n = 0;
    int r;

    if (!sample || !row) {
        free(sample);
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->rows; i++)
        if (table->picture[i] < a->pictures.n) {
            row[n] = (uint32_t)i;
            sample[n++] = table->picture[i] - (uint32_t)a->s->set[set].base;
        }
    r = annotating_add_view(a, set, folder, called, sample, n);
    return r < 0 || !columns_of ? r
                                : annotating_add_table(a, set, a->s->set[set].claim->n_views - 1,
                                                       columns_of, table, row);
}

int annotating_add_view(struct annotating *a, size_t set, uint32_t folder, const char *name,
                        uint32_t *sample, size_t n)
{
    struct files_claim *claim = a->s->set[set].claim;
    struct files_view *grown = realloc(claim->view, (claim->n_views + 1) * sizeof(*grown));
    AUTO_FREE char *path = NULL;
    char *copy = NULL;
    int r = collect_display_path(a->s, folder, name, &path);

    if (r == 0 && asprintf(&copy, "/%s", path) < 0) {
        copy = NULL;
        r = -ENOMEM;
    }
    if (grown)
        claim->view = grown;
    if (!grown || r < 0) {
        free(sample);
        free(copy);
        return -ENOMEM;
    }
    claim->view[claim->n_views++] = (struct files_view){.name = copy, .sample = sample, .n = n};
    return 0;
}

void annotating_release(struct annotating *a)
{
    pictures_release(&a->pictures);
    for (size_t i = 0; i < a->n_labels; i++)
        value_columns_release(&a->label[i].values);
    free(a->label);
    free(a->has_samples);
    free(a->is_inside);
}
