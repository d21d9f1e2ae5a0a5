/* Datasets of a recipe that are files of any format, and folders: which files they are is all that
 * it says of them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/extensions.h"
#include "format/files/claim/recipe_parts.h"

int recipe_compare_files(const void *a, const void *b, void *making)
{
    const struct recipe_hit *x = a, *y = b;
    const struct recipe_making *t = making;
    char first[PATH_MAX] = "", second[PATH_MAX] = "";

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    members_path(t->s->m, x->file, first, sizeof(first));
    members_path(t->s->m, y->file, second, sizeof(second));
    return strcmp(first, second);
}

/* Add a group of that name, whose files the caller adds. 0 or -ENOMEM. */
static int recipe_add_group(const struct recipe_making *t, const char *name, size_t n,
                            struct named_group **ret)
{
    struct claims *claims = t->s->claims;
    const char *note =
        t->recipe->is_card ? json_string_value(json_object_get(t->dataset, "note")) : NULL;
    struct named_group *group;

    if (!search_capacity(t->s, &claims->group, claims->n_groups, sizeof(*group)))
        return -ENOMEM;
    group = &claims->group[claims->n_groups++];
    *group = (struct named_group){.file = calloc(n + 1, sizeof(*group->file)),
                                  .path = collect_display_path(t->s, t->recipe->folder, name),
                                  .note = note ? strdup(note) : NULL};
    *ret = group;
    return !group->path || !group->file || (note && !group->note) ? -ENOMEM : 0;
}

int recipe_add_missing(const struct recipe_making *t, const struct diag *d)
{
    struct named_group *group;
    int r = recipe_add_group(t, t->name, 0, &group);

    if (r == 0)
        group->error = strdup(d->text);
    return r == 0 && !group->error ? -ENOMEM : r;
}

int recipe_make_files(struct recipe_making *t, size_t from, size_t to)
{
    const char *name = numbered_text(&t->groups, t->hit[from].group, NULL);
    struct named_group *group = NULL;
    int r = *name ? recipe_add_group(t, name, to - from, &group)
                  : recipe_refuse_pattern(t, t->name, "its words are not those of \"files\"");

    for (size_t i = from; i < to && r == 0; i++) {
        group->file[group->n++] = t->hit[i].file;
        t->s->claims->taken[t->hit[i].file] = CLAIMS_GROUPED;
    }
    return r;
}

/* ---- folders ---- */

/* first: the first folder that the recipe has moved. */
static int recipe_take_folder(struct search *s, const struct recipe *recipe, size_t first,
                              const char *name, const char *folder, struct diag *d)
{
    const char *above = claim_path(s, recipe->folder);
    struct claims *claims = s->claims;
    struct moved_folder *moved;
    AUTO_TEXT struct text path = {0};
    uint32_t at;

    text_add(&path, "%s%s%s", above, *above ? "/" : "", folder);
    if (path.failed || !search_capacity(s, &claims->moved, claims->n_moved, sizeof(*moved)))
        return -ENOMEM;
    at = folder_of_path(s, path.data, path.len);
    if (at == NO_FOLDER)
        return recipe_fault(recipe, folder, d, "expected a folder of that name, got none");
    for (size_t i = first; i < claims->n_moved; i++)
        if (members_is_below(claims->moved[i].folder, path.data) ||
            members_is_below(path.data, claims->moved[i].folder))
            return recipe_fault(recipe, folder, d,
                                "expected a folder of one dataset, got one of several");
    moved = &claims->moved[claims->n_moved++];
    *moved = (struct moved_folder){
        strdup(path.data),
        collect_display_path(s, recipe->folder, strcmp(name, ".") ? name : NULL)};
    for (size_t i = s->info[at].first; i < folder_end(s, at); i++)
        s->flags[i] |= claims->taken[i] ? 0 : FILE_LEFT;
    for (uint32_t end = next_folder(s, at); at < end; at++)
        s->info[at].is_left = true;
    return moved->folder && moved->shown ? 0 : -ENOMEM;
}

int recipe_take_folders(struct search *s, const struct recipe *recipe, struct diag *d)
{
    json_t *datasets = json_object_get(recipe->json, "datasets"), *dataset;
    size_t first = s->claims->n_moved;
    const char *name;
    int r = 0;

    json_object_foreach(datasets, name, dataset)
    {
        const char *folder = json_string_value(json_object_get(dataset, "folder"));

        if (folder && r == 0)
            r = recipe_take_folder(s, recipe, first, name, folder, d);
    }
    return r;
}

/* ---- what is in none ---- */

int recipe_ignore_others(struct search *s, const struct recipe *recipe)
{
    struct extensions exts = {.n = 0};
    AUTO_TEXT struct text shown = {0};
    struct claims *claims = s->claims;
    size_t n = 0;

    if (!claims->n_groups && !claims->n_moved)
        return 0;
    for (size_t i = s->info[recipe->folder].first; i < folder_end(s, recipe->folder); i++) {
        const char *name = members_name(s->m, i);
        char path[PATH_MAX];

        if (claims->taken[i] || (s->flags[i] & FILE_LEFT))
            continue;
        claims->taken[i] = CLAIMS_ASIDE;
        if (members_path(s->m, i, path, sizeof(path)) < 0 || path_is_hidden(path) ||
            name_is(NAME_NEUTRAL, name))
            continue;
        n++;
        extensions_add(&exts, name);
    }
    if (!n)
        return 0;
    if (claims->note)
        text_add(&shown, "%s\n", claims->note);
    text_add(&shown, "%s names other files than these: ", recipe->name);
    extensions_show(&exts, true, &shown);
    free(claims->note);
    claims->note = NULL;
    return text_finish(&shown, &claims->note, NULL);
}
