/* Finding the recipe of a folder, and what it leaves. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "format/files/claim/recipe_parts.h"

/* ---- what a recipe leaves ---- */

/* A file of a folder whose name no pattern spells: what leaves it leaves the folder. */
#define ANY_FILE "\001/\001"

/* Does a pattern of what is left match? A folder is left with all that is in it. 1, 0 or -EBADMSG.
 */
static int recipe_leaves(const struct recipe *recipe, const char *path, struct diag *d)
{
    return recipe_match(recipe, json_object_get(recipe->json, "leave"), path, NULL, NULL, d);
}

static int recipe_leave_files(struct search *s, const struct recipe *recipe, struct diag *d)
{
    int r = 0;

    for (size_t i = s->info[recipe->folder].first; i < folder_end(s, recipe->folder) && r >= 0;
         i++) {
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

        if (snprintf(path, sizeof(path), "%s/" ANY_FILE, claim_path(s, i) + above + (above > 0)) >=
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
    r = recipe_leaves(recipe, ANY_FILE, d);
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
static bool recipe_open(struct search *s, uint32_t folder, const char *name, const char *text,
                        char *owned, bool is_card)
{
    struct recipe *recipe = calloc(1, sizeof(*recipe));
    struct diag d = DIAG_INIT;
    struct claims *claims = s->claims;
    size_t first = s->n_sets, first_group = claims->n_groups, first_moved = claims->n_moved;
    int r;

    s->failed = s->failed || !recipe;
    if (!search_capacity(s, &s->recipe, s->n_recipes, sizeof(recipe))) {
        free(recipe);
        free(owned);
        return false;
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
    s->failed = s->failed || r == -ENOMEM;
    if (r < 0 && !s->failed) {
        sets_drop(s, first);
        for (size_t i = first_group; i < claims->n_groups; i++)
            for (size_t k = 0; k < claims->group[i].n; k++)
                claims->taken[claims->group[i].file[k]] = 0;
        claims_drop_groups(claims, first_group, first_moved);
        json_free(&recipe->json);
        for (uint32_t i = folder; i < next_folder(s, folder); i++)
            s->info[i].is_left = false;
        for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++)
            s->flags[i] &= (uint8_t)~FILE_LEFT;
        collect_refused(s, folder, "%s", diag_text(&d, r));
    }
    return r <= 0;
}

/* The first bytes of a file, ended by NUL, the caller's. NULL: no memory. */
static char *recipe_bytes(struct search *s, size_t file, int *ret_len)
{
    AUTO_FREE char *bytes = calloc(RECIPE_BYTES + 1, 1);

    s->failed = s->failed || !bytes;
    *ret_len = bytes ? search_head(s, file, bytes, RECIPE_BYTES) : 0;
    return s->failed ? NULL : TAKE_PTR(bytes);
}

/* SOURCE is perhaps a repository of the Hub, whose card names files. */
static bool recipe_apply_card(struct search *s)
{
    size_t file = members_lookup(s->m, "", 0, "README.md");
    AUTO_FREE char *bytes = NULL;
    char *recipe = NULL;
    int len;

    if (file == s->m->n || !s->claims->heads || !s->claims->takes_groups)
        return false;
    bytes = recipe_bytes(s, file, &len);
    if (bytes && len > 0 && card_recipe(s, bytes, (size_t)len, &recipe) < 0)
        s->failed = true;
    if (!recipe)
        return false;
    s->claims->taken[file] = CLAIMS_USED;
    return recipe_open(s, 0, "README.md", recipe, recipe, true);
}

bool recipe_apply(struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder), *wrong = NULL;
    size_t file = members_lookup(s->m, path, strlen(path), RECIPE_NAME);
    AUTO_FREE char *bytes = NULL;
    const char *text;
    int len = 0;

    if (!folder && s->claims->layout)
        return recipe_open(s, folder, s->claims->layout_name, s->claims->layout, NULL, false);
    if (file == s->m->n && !folder)
        return recipe_apply_card(s);
    if (file == s->m->n || !s->claims->heads)
        return false;
    s->claims->taken[file] = CLAIMS_USED;
    bytes = recipe_bytes(s, file, &len);
    if (!bytes)
        return false;
    if (members_size(s->m, file) > RECIPE_BYTES)
        wrong = "expected at most 1 MiB";
    else if (len < 0)
        wrong = strerror(-len);
    else if (strlen(bytes) != (size_t)len)
        wrong = "expected JSON, got a byte 0";
    if (wrong)
        return collect_refused(s, folder, "%s%s%s: %s", path, *path ? "/" : "", RECIPE_NAME, wrong);
    text = bytes;
    return recipe_open(s, folder, RECIPE_NAME, text, TAKE_PTR(bytes), false);
}
