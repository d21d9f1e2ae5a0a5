/* What tables and annotations do to sets: they add columns and datasets, and say what is ignored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
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
    for (unsigned pass = 0; pass < 2;
         pass++) /* one folder, called like that above it, comes last */
        for (size_t i = 0; i < a->s->n_sets; i++) {
            struct set *set = &a->s->set[i];
            uint32_t folder = pass ? set->top : set->root;

            if (!set->refused && !set->dataset && set->claim->n_views && folder >= scope &&
                folder < next_folder(a->s, scope))
                return set;
        }
    return NULL;
}

void annotating_ignore(struct annotating *a, size_t file, uint32_t scope, const char *reason)
{
    struct set *set = annotating_first_set(a, scope);
    const char *name = members_name(a->s->m, file);

    a->s->claims->taken[file] = CLAIMS_ASIDE;
    a->s->flags[file] |= FILE_REASON_GIVEN;
    if (set) {
        set_add_ignored(set, reason, 1, name);
        text_add(&set->notes, "%s is ignored: %s; an epochfs.json can say more\n", name, reason);
    }
}

/* An annotation cannot be read now: the datasets that it may belong to are refused, for their
 * fields would depend on the moment. */
void annotating_refuse(struct annotating *a, uint32_t scope, const char *why)
{
    for (size_t i = 0; i < a->s->n_sets; i++) {
        struct set *set = &a->s->set[i];

        if (!set->dataset && set->root >= scope && set->root < next_folder(a->s, scope))
            set_refuse(set, "%s", why);
    }
}

void view_add_columns(struct search *s, struct files_view *view, struct value_columns *from)
{
    for (unsigned i = 0; i < from->n; i++) {
        struct value_column *c = &from->column[i];

        if (!value_columns_find(&view->values, c->name) &&
            search_capacity(s, &view->values.column, view->values.n, sizeof(*c))) {
            view->values.column[view->values.n++] = *c;
            *c = (struct value_column){0};
        }
    }
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
                                           : annotating_find_classes(a, &table->columns);
}

/* A column as recipes name it: by its name, or without a header by its number. */
static json_t *annotating_column(struct search *s, const char *name)
{
    const bool is_number = *name && strlen(name) < 5 &&
                           strspn(name, "0123456789") == strlen(name) && (*name != '0' || !name[1]);

    return is_number ? json_integer(strtoll(name, NULL, 10)) : search_json_text(s, name);
}

/* Keep for the recipe that is shown what a table says of a view. */
static void annotating_say_table(struct annotating *a, size_t set, size_t view, size_t file,
                                 const struct picture_table *table)
{
    const struct value_column *label = annotating_label(a, set, table);
    AUTO_FREE char *path = member_path(a->s->m, file);
    json_t *json = json_object();

    search_json_set(a->s, json, "file", path ? search_json_text(a->s, path) : NULL);
    search_json_set(a->s, json, "key", annotating_column(a->s, table->key));
    if (label)
        search_json_set(a->s, json, "label",
                        annotating_column(a->s, table->column[label - table->columns.column]));
    if (table->separator != ',' || !text_ends_with(members_name(a->s->m, file), ".csv"))
        search_json_set(a->s, json, "separator",
                        search_json_text(a->s, (char[]){table->separator, '\0'}));
    if (view)
        set_say_file(&a->s->set[set], view, "list", file);
    set_say(&a->s->set[set], view, "table", json);
}

/* Call a column also by its table. */
static void annotating_rename(const struct annotating *a, struct value_column *c, const char *table)
{
    AUTO_FREE char *name = c->name;

    if (text_print(&c->name, "%.*s_%s", (int)name_stem_alone(table), table, name) < 0)
        a->s->failed = true;
}

/* A dataset has a label: the column `label` of a table is dropped if it says the same, otherwise it
 * is called by the table. */
static void annotating_rename_label(const struct annotating *a, size_t set, size_t view,
                                    struct value_columns *columns, const char *table)
{
    struct value_column *c = value_columns_find(columns, "label");

    if (c && annotating_says_class(a, set, view, c)) {
        value_columns_remove(columns, (unsigned)(c - columns->column));
    } else if (c) {
        annotating_rename(a, c, table);
    }
}

void annotating_add_table(struct annotating *a, size_t set, size_t view, size_t file,
                          const struct picture_table *table, const uint32_t *row)
{
    struct files_view *v = &a->s->set[set].claim->view[view];
    const char *name = members_name(a->s->m, file);
    const struct value_column *label = annotating_label(a, set, table);
    AUTO_VALUE_COLUMNS struct value_columns picked = {0};

    if (label)
        annotating_add_label(a, set, view, name, label, row);
    if (table->rival)
        text_add(&a->s->set[set].notes,
                 "%s: '%s' says which pictures its rows are, but '%s' names others; an "
                 "epochfs.json can say more\n",
                 name, table->key, table->rival);
    else if (table->is_unsure)
        text_add(&a->s->set[set].notes,
                 "%s: its column without a name says which pictures its rows are; an epochfs.json "
                 "can say more\n",
                 name);
    if (value_columns_pick(&table->columns, row, v->n, &picked) < 0)
        a->s->failed = true;
    if (annotating_has_label(a, set) && !a->s->failed)
        annotating_rename_label(a, set, view, &picked, name);
    for (unsigned i = 0; i < picked.n; i++) /* an earlier table may have one of that name */
        if (!a->s->failed && value_columns_find(&v->values, picked.column[i].name))
            annotating_rename(a, &picked.column[i], name);
    if (!a->s->failed)
        view_add_columns(a->s, v, &picked);
    if (!a->s->set[set].dataset && (view || table->columns.n))
        annotating_say_table(a, set, view, file, table);
}

uint32_t *annotating_rows(const struct annotating *a, const uint32_t *picture, size_t n,
                          size_t *ret_named)
{
    uint32_t *row = calloc(a->pictures.n + 1, sizeof(*row));

    *ret_named = 0;
    a->s->failed = a->s->failed || !row;
    for (size_t i = 0; i < a->pictures.n && row; i++)
        row[i] = VALUE_NO_ROW;
    for (size_t i = 0; i < n && row; i++)
        if (picture[i] < a->pictures.n && row[picture[i]] == VALUE_NO_ROW) {
            row[picture[i]] = (uint32_t)i;
            ++*ret_named;
        }
    return row;
}

size_t annotating_set_of(const struct annotating *a, const uint32_t *picture, size_t n)
{
    size_t found = a->s->n_sets;

    for (size_t i = 0; i < n; i++) {
        size_t set = picture[i] < a->pictures.n
                         ? (size_t)(pictures_set(&a->pictures, picture[i]) - a->s->set)
                         : a->s->n_sets;

        if (set == a->s->n_sets || (i && set != found))
            return a->s->n_sets;
        found = set;
    }
    return found;
}

void annotating_add_list(struct annotating *a, size_t set, uint32_t folder, const char *called,
                         const struct picture_table *table, size_t columns_of)
{
    uint32_t *sample = calloc(table->rows + 1, sizeof(*sample));
    AUTO_FREE uint32_t *row = calloc(table->rows + 1, sizeof(*row));
    size_t n = 0;

    for (size_t i = 0; i < table->rows && sample && row; i++)
        if (table->picture[i] < a->pictures.n) {
            row[n] = (uint32_t)i;
            sample[n++] = table->picture[i] - (uint32_t)a->s->set[set].base;
        }
    a->s->failed = a->s->failed || !row;
    if (annotating_add_view(a, set, folder, called, sample, n) && columns_of != SIZE_MAX)
        annotating_add_table(a, set, a->s->set[set].claim->n_views - 1, columns_of, table, row);
}

struct files_view *annotating_add_view(struct annotating *a, size_t set, uint32_t folder,
                                       const char *name, uint32_t *sample, size_t n)
{
    struct files_claim *claim = a->s->set[set].claim;
    struct files_view *grown = realloc(claim->view, (claim->n_views + 1) * sizeof(*grown));
    AUTO_FREE char *path = collect_display_path(a->s, folder, name);
    struct files_view view = {.sample = sample, .n = n};

    claim->view = grown ? grown : claim->view;
    if (!grown || !sample || a->s->failed || text_print(&view.name, "/%s", path) < 0) {
        a->s->failed = true;
        free(sample);
        return NULL;
    }
    claim->view[claim->n_views] = view;
    return &claim->view[claim->n_views++];
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
