/* Which folders are datasets of files. A recipe says it, or a manifest, or a table of metadata; or
 * what folders are to each other does (folders.c), once pairs are found (pairs.c).
 *
 *   table    it has metadata.jsonl or metadata.csv, and pictures; the table says which of the files
 *            below are a sample, and nothing else is asked.
 *
 *   manifest  it has manifests of pictures, or one of its folders without pictures has, and
 *             pictures. These are known by their first lines, whatever they are called.
 *
 * What may be something else stays what it is: nothing is taken below a folder with tables of
 * Kaldi, in a folder where a program is built (but in its train, val, test), and where pictures are
 * less than half of all files of SOURCE. */
#include "format/files/claim/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/recipe.h"
#include "format/files/claim/recipe_print.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/words.h"

/* ---- judging ---- */

/* Does a table of metadata of the folder name files? Only metadata.csv is asked, by its first
 * bytes: the others have no other purpose. One that cannot be read does, as its name says. */
static bool claim_tables_name_files(const struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);

    for (size_t i = 0; table_names[i]; i++) {
        size_t file = members_lookup(s->m, path, strlen(path), table_names[i]);
        uint8_t head[4096];
        int len;

        if (file == s->m->n)
            continue;
        if (!s->claims->heads || !text_ends_with(table_names[i], ".csv") ||
            s->claims->heads(s->claims, &file, 1, sizeof(head), head, &len) < 0 || len < 0 ||
            memmem(head, (size_t)len, "file_name", strlen("file_name")))
            return true;
    }
    return false;
}

/* Does a table say what is a sample? Not if a folder below has one, or is a part of a dataset, or
 * has something else. */
static bool claim_has_table(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (!f->here[COUNT_TABLES] || f->all[COUNT_TABLES] > f->here[COUNT_TABLES] ||
        f->all[COUNT_OTHERS] > f->all[COUNT_USED] + f->here[COUNT_TABLES] ||
        !claim_tables_name_files(s, folder))
        return false;
    for (uint32_t i = folder + 1; i < f->end; i++) {
        const struct folder_info *below = &s->info[i];

        if (below->foreign || below->kaldi ||
            (below->all[COUNT_PICTURES] && name_is_split(path_base(claim_path(s, i)))))
            return false;
    }
    return true;
}

/* Do manifests say what is a sample? They are in the folder, or in one below without pictures. */
static bool claim_has_manifests(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (f->here[COUNT_MANIFESTS])
        return true;
    for (uint32_t i = folder + 1; i < f->end && f->all[COUNT_MANIFESTS]; i = next_folder(s, i))
        if (s->info[i].all[COUNT_MANIFESTS] && !s->info[i].all[COUNT_PICTURES] &&
            !is_skipped(path_base(claim_path(s, i))))
            return true;
    return false;
}

/* ---- searching ---- */

static int claim_apply_rules(struct search *s, uint32_t folder, struct claim_above above)
{
    int r = pairs_find(s, folder);

    if (r)
        return r < 0 ? r : 0;
    return folders_apply(s, folder, above);
}

int claim_search_folder(struct search *s, uint32_t folder, struct claim_above above)
{
    const struct folder_info *f = &s->info[folder];
    const char *name = path_base(claim_path(s, folder));
    int r = 0;

    if (!f->all[COUNT_PICTURES] || f->is_target)
        return 0;
    if (f->kaldi || (s->manifests_only && !f->all[COUNT_MANIFESTS]))
        return claim_note_unmet(s, folder, above.project);
    above.in_split = words_have_split(name, strlen(name), NULL);
    above.split = above.split || name_is_split(name);
    above.project = above.project || f->project;
    if (above.split || !above.project) {
        const bool reads = !f->foreign && s->claims->open;

        if (reads && s->media == FILES_PICTURES)
            r = search_manifests(s, folder);
        if (r < 0)
            return r;
        if (reads && s->media == FILES_PICTURES && claim_has_manifests(s, folder))
            return manifests_apply(s, folder);
        if (reads && !s->manifests_only && claim_has_table(s, folder))
            return metadata_apply(s, folder);
        if (!s->manifests_only)
            return claim_apply_rules(s, folder, above);
    }
    r = claim_note_unmet(s, folder, above.project);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (!is_skipped(path_base(claim_path(s, i))))
            r = claim_search_folder(s, i, above);
    return r;
}

/* Texts, lists and annotations may be so many times the pictures. */
#define LISTS_MOST 8

/* Search the folders that recipes leave. */
static int claim_search_left(struct search *s)
{
    int r = 0;

    for (uint32_t i = 0; i < s->m->n_folders && r == 0;) {
        if (s->info[i].is_left)
            r = claim_search_folder(s, i, (struct claim_above){0});
        i = s->info[i].is_left ? next_folder(s, i) : i + 1;
    }
    return r;
}

static int claim_by_rules(struct search *s)
{
    const uint64_t *all = s->info[0].all;
    int r;

    s->manifests_only = all[COUNT_USED] < all[COUNT_OTHERS] ||
                        LISTS_MOST * all[COUNT_USED] < all[COUNT_OTHERS] + all[COUNT_LISTS];
    r = claim_search_folder(s, 0, (struct claim_above){0});
    if (r == 0)
        r = claim_search_left(s);
    return r < 0 ? r : tables_apply(s);
}

/* Folders that say themselves what they are: nothing else is looked for in them, but in folders
 * that their recipes leave. */
static int claim_recipes(struct search *s)
{
    uint32_t end = 0; /* of the folder of the last recipe */

    for (uint32_t i = 0; i < s->m->n_folders; i++) {
        int r = i >= end || s->info[i].is_left ? recipe_apply(s, i) : 0;

        if (r < 0)
            return r;
        if (r == 0)
            continue;
        s->info[i].is_target = true;
        s->info[i].is_left = false;
        end = next_folder(s, i) > end ? next_folder(s, i) : end;
    }
    return 0;
}

/* The sets become collections, and are shown. */
static int claim_end_sets(struct search *s)
{
    int r = s->print ? recipe_print_sets(s->print, s) : 0;

    return r < 0 ? r : collect_all_sets(s);
}

/* Does a table say something of the samples of a set? */
static bool claim_has_values(const struct set *set)
{
    const struct files_claim *claim = set->claim;

    return claim->table || claim->n_views > 1 ||
           (claim->n_views && (claim->view->values.n || claim->view->name || claim->view->label));
}

/* Sounds are datasets, as pictures are, where a table names them. Others may be anything. */
static int claim_sounds(struct search *s)
{
    AUTO_FREE uint8_t *before = malloc(s->m->n + 1);
    bool any = false;
    int r = s->claims->open ? sounds_apply(s) : 0;

    if (r == 1)
        r = tables_apply(s);
    if (r < 0 || s->n_sets)
        return r < 0 ? r : claim_end_sets(s);
    for (size_t i = 0; i < s->m->n && !any; i++)
        any = !s->claims->taken[i] && (text_ends_with(members_name(s->m, i), ".csv") ||
                                       text_ends_with(members_name(s->m, i), ".tsv"));
    if (!any || !s->claims->open)
        return 0;
    if (!before)
        return -ENOMEM;
    memcpy(before, s->claims->taken, s->m->n);
    r = counts_make(s);
    if (r == 0 && !s->info[0].all[COUNT_PICTURES])
        return 0;
    if (r == 0)
        r = claim_by_rules(s);
    for (size_t i = s->n_sets; i > 0 && r == 0; i--)
        if (!claim_has_values(&s->set[i - 1])) {
            sets_drop(s, 0); /* all or none: what a table lacks may be another part */
            memcpy(s->claims->taken, before, s->m->n);
            return 0;
        }
    return r < 0 ? r : claim_end_sets(s);
}

int files_claim_names(const struct members *listing, struct claims *ret)
{
    AUTO_RECIPE_PRINT struct recipe_print print = {0};
    struct search s = {.m = listing,
                       .claims = ret,
                       .media = FILES_PICTURES,
                       .print = ret->shows_recipe ? &print : NULL};
    int r = search_named_manifests(&s);

    if (r == 0)
        r = counts_make(&s);
    if (r == 0)
        r = claim_recipes(&s);
    if (r == 0 && listing->n)
        r = claim_by_rules(&s);
    if (r == 0)
        r = claim_end_sets(&s);
    for (s.media = FILES_SOUNDS; s.media < N_FILES_MEDIA && r == 0 && listing->n; s.media++) {
        if (s.media == FILES_SOUNDS && !ret->format_given && !ret->layout)
            r = claim_sounds(&s);
        if (r == 0 && !ret->format_given)
            r = claim_classes(&s);
        if (r == 0)
            r = claim_end_sets(&s);
    }
    if (r == 0 && s.print)
        r = recipe_print_end(&print, &s, &ret->recipe);
    sets_release(&s);
    for (size_t i = 0; i < s.n_recipes; i++) {
        recipe_release(s.recipe[i]);
        free(s.recipe[i]);
    }
    free(s.recipe);
    counts_free(&s);
    free(s.flags);
    return r;
}
