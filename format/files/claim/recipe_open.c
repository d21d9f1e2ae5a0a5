/* Finding the recipe of a folder, and what it leaves. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "format/files/claim/recipe_parts.h"

/* ---- what a recipe leaves ---- */

/* Does a pattern of what is left match? A folder is left with all that is in it. 1, 0 or -EBADMSG.
 */
static int recipe_leaves(const struct recipe *recipe, const char *path, struct diag *d)
{
    const json_t *leave = json_object_get(recipe->json, "leave");
    const char *pattern;
    int r = 0;

    for (size_t i = 0; r == 0 && (pattern = recipe_pattern(leave, i)); i++) {
        struct pattern_words words = {.n = 0};

        r = pattern_match(pattern, path, &words);
        if (r < 0)
            r = diag_set(d, -EBADMSG, "%s, line %u: '%s': it can be read in too many ways",
                         recipe->name, recipe_line(recipe, pattern), pattern);
    }
    return r;
}

static int recipe_leave_files(struct search *s, const struct recipe *recipe, struct diag *d)
{
    const struct folder_info *top = &s->info[recipe->folder];
    int r = 0;

    for (size_t i = top->first; i < s->info[top->end - 1].last && r >= 0; i++) {
        char path[PATH_MAX];

        if (s->claims->taken[i] || !recipe_path(s, recipe, i, path))
            continue;
        r = recipe_leaves(recipe, path, d);
        if (r > 0)
            s->flags[i] |= FILE_LEFT;
    }
    return r < 0 ? r : 0;
}

/* Mark folders that are left: they are searched as without a recipe. */
static int recipe_leave_folders(struct search *s, const struct recipe *recipe, struct diag *d)
{
    size_t above = strlen(claim_path(s, recipe->folder));
    uint32_t end = s->info[recipe->folder].end;

    for (uint32_t i = recipe->folder + 1; i < end;) {
        char path[PATH_MAX];
        int r;

        if (snprintf(path, sizeof(path), "%s/a/a", claim_path(s, i) + above + (above > 0)) >=
            (int)sizeof(path))
            return 0;
        r = recipe_leaves(recipe, path, d);
        if (r < 0)
            return r;
        if (r == 0) {
            i++;
            continue;
        }
        for (uint32_t below = next_folder(s, i); i < below; i++)
            s->info[i].is_left = true;
    }
    return 0;
}

/* 1: the recipe leaves all of its folder, and has no datasets. */
static int recipe_leave(struct search *s, const struct recipe *recipe, struct diag *d)
{
    int r;

    if (!json_object_get(recipe->json, "leave"))
        return 0;
    r = recipe_leaves(recipe, "a/a", d);
    if (r > 0 && !json_object_size(json_object_get(recipe->json, "datasets")))
        return 1;
    if (r > 0)
        return diag_set(d, -EBADMSG, "%s, line %u: 'leave': expected a part of the folder, got all",
                        recipe->name, recipe_line(recipe, "leave"));
    if (r == 0)
        r = recipe_leave_files(s, recipe, d);
    return r < 0 ? r : recipe_leave_folders(s, recipe, d);
}

/* owned: NULL, or the text, which is taken over, also on error. */
static int recipe_open(struct search *s, uint32_t folder, const char *name, const char *text,
                       char *owned, bool is_card)
{
    struct recipe *recipe = calloc(1, sizeof(*recipe));
    struct diag d = DIAG_INIT;
    struct claims *claims = s->claims;
    size_t first = s->n_sets, first_group = claims->n_groups, first_moved = claims->n_moved;
    int r;

    if (!recipe || array_capacity(&s->recipe, s->n_recipes, sizeof(recipe)) < 0) {
        free(recipe);
        free(owned);
        return -ENOMEM;
    }
    s->recipe[s->n_recipes++] = recipe;
    recipe->folder = folder;
    recipe->owned = owned;
    recipe->is_card = is_card;
    r = recipe_read(recipe, name, text, strlen(text), &d);
    if (r == 0)
        r = recipe_make_sets(s, recipe, &d);
    if (r == 0)
        r = recipe_take_folders(s, recipe, &d);
    if (r == 0)
        r = recipe_leave(s, recipe, &d);
    if (r == 0)
        r = recipe_ignore_others(s, recipe);
    if (r < 0 && r != -ENOMEM) {
        sets_drop(s, first);
        for (size_t i = first_group; i < claims->n_groups; i++)
            for (size_t k = 0; k < claims->group[i].n; k++)
                claims->taken[claims->group[i].file[k]] = 0;
        claims_drop_groups(claims, first_group, first_moved);
        json_free(&recipe->json);
        r = collect_refused(s, folder, "%s", diag_text(&d, r));
    }
    return r < 0 ? r : r == 0;
}

static int recipe_refuse(struct search *s, uint32_t folder, const char *what)
{
    const char *path = claim_path(s, folder);
    int r = collect_refused(s, folder, "%s%s%s: %s", path, *path ? "/" : "", RECIPE_NAME, what);

    return r < 0 ? r : 1;
}

/* SOURCE is perhaps a repository of the Hub, whose card names files. 1, 0 or -ENOMEM. */
static int recipe_apply_card(struct search *s)
{
    size_t file = members_lookup(s->m, "", 0, "README.md");
    AUTO_FREE char *bytes = NULL;
    char *recipe = NULL;
    int len, r;

    if (file == s->m->n || !s->claims->heads || !s->claims->takes_groups)
        return 0;
    bytes = calloc(RECIPE_BYTES + 1, 1);
    r = bytes ? s->claims->heads(s->claims, &file, 1, RECIPE_BYTES, (uint8_t *)bytes, &len)
              : -ENOMEM;
    if (r < 0 || len < 0 || strncmp(bytes, "---", 3) != 0)
        return r;
    s->claims->taken[file] = CLAIMS_USED;
    r = card_recipe(s, bytes, (size_t)len, &recipe);
    return r < 0 || !recipe ? r : recipe_open(s, 0, "README.md", recipe, recipe, true);
}

int recipe_apply(struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);
    size_t file = members_lookup(s->m, path, strlen(path), RECIPE_NAME);
    char *bytes;
    int len, r;

    if (!folder && s->claims->layout)
        return recipe_open(s, folder, s->claims->layout_name, s->claims->layout, NULL, false);
    if (file == s->m->n && !folder)
        return recipe_apply_card(s);
    if (file == s->m->n || !s->claims->heads)
        return 0;
    s->claims->taken[file] = CLAIMS_USED;
    if (members_size(s->m, file) > RECIPE_BYTES)
        return recipe_refuse(s, folder, "expected at most 1 MiB");
    bytes = calloc(RECIPE_BYTES + 1, 1);
    r = bytes ? s->claims->heads(s->claims, &file, 1, RECIPE_BYTES, (uint8_t *)bytes, &len)
              : -ENOMEM;
    if (r == 0 && len < 0)
        r = recipe_refuse(s, folder, strerror(-len));
    else if (r == 0 && strlen(bytes) != (size_t)len)
        r = recipe_refuse(s, folder, "expected JSON, got a byte 0");
    if (r) {
        free(bytes);
        return r;
    }
    return recipe_open(s, folder, RECIPE_NAME, bytes, bytes, false);
}
