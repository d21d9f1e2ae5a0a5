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

#include <errno.h>
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
static bool claim_tables_name_files(struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);

    for (size_t i = 0; table_names[i]; i++) {
        size_t file = members_lookup(s->m, path, strlen(path), table_names[i]);
        uint8_t head[4096];
        int len;

        if (file == s->m->n)
            continue;
        len =
            text_ends_with(table_names[i], ".csv") ? search_head(s, file, head, sizeof(head)) : -1;
        if (len < 0 || memmem(head, (size_t)len, "file_name", strlen("file_name")))
            return true;
    }
    return false;
}

/* Does a table say what is a sample? Not if a folder below has one, or is a part of a dataset, or
 * has something else. */
static bool claim_has_table(struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (!f->here[COUNT_TABLES] || f->all[COUNT_TABLES] > f->here[COUNT_TABLES] ||
        f->all[COUNT_OTHERS] > f->all[COUNT_USED] + f->here[COUNT_TABLES] ||
        !claim_tables_name_files(s, folder))
        return false;
    for (uint32_t i = folder + 1; i < f->end; i++) {
        const struct folder_info *below = &s->info[i];

        if (below->foreign || below->kaldi ||
            (below->all[COUNT_PICTURES] && name_is_split(folder_name(s, i))))
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
    for (EACH_FOLDER(s, i, folder))
        if (s->info[i].all[COUNT_MANIFESTS] && !s->info[i].all[COUNT_PICTURES] &&
            !is_skipped(folder_name(s, i)))
            return true;
    return false;
}

/* ---- searching ---- */

/* A folder that is no dataset itself: those in it may be some. */
static void claim_search_below(struct search *s, uint32_t folder, struct claim_above above)
{
    claim_note_unmet(s, folder, above.project);
    for (EACH_FOLDER(s, i, folder))
        if (!is_skipped(folder_name(s, i)))
            claim_search_folder(s, i, above);
}

void claim_search_folder(struct search *s, uint32_t folder, struct claim_above above)
{
    const struct folder_info *f = &s->info[folder];
    const char *name = folder_name(s, folder);
    const bool reads = !f->foreign && s->claims->open;

    if (!f->all[COUNT_PICTURES] || f->is_target || s->failed)
        return;
    if (f->kaldi || (s->manifests_only && !f->all[COUNT_MANIFESTS])) {
        claim_note_unmet(s, folder, above.project);
        return;
    }
    above.split = above.split || name_is_split(name);
    above.project = above.project || f->project;
    if (!above.split && above.project) {
        claim_search_below(s, folder, above);
        return;
    }
    if (reads && s->media == FILES_PICTURES) {
        search_manifests(s, folder);
        if (claim_has_manifests(s, folder)) {
            manifests_apply(s, folder);
            return;
        }
    }
    if (s->manifests_only)
        claim_search_below(s, folder, above);
    else if (reads && claim_has_table(s, folder))
        metadata_apply(s, folder);
    else if (!pairs_find(s, folder))
        folders_apply(s, folder, above);
}

/* Texts, lists and annotations may be so many times the pictures. */
#define LISTS_MOST 8

/* What is above a folder that is searched by itself. */
static struct claim_above claim_above_of(const struct search *s, uint32_t folder)
{
    struct claim_above ret = {0};

    while ((folder = s->info[folder].above) != NO_FOLDER) {
        ret.project = ret.project || s->info[folder].project;
        ret.split = ret.split || name_is_split(folder_name(s, folder));
    }
    return ret;
}

/* Search SOURCE, and the folders that recipes leave. */
static void claim_by_rules(struct search *s)
{
    const uint64_t *all = s->info[0].all;

    s->manifests_only = all[COUNT_USED] < all[COUNT_OTHERS] ||
                        LISTS_MOST * all[COUNT_USED] < all[COUNT_OTHERS] + all[COUNT_LISTS];
    claim_search_folder(s, 0, (struct claim_above){0});
    for (uint32_t i = 0; i < s->m->n_folders;) {
        if (s->info[i].is_left)
            claim_search_folder(s, i, claim_above_of(s, i));
        i = s->info[i].is_left ? next_folder(s, i) : i + 1;
    }
    tables_apply(s);
}

/* Folders that say themselves what they are: nothing else is looked for in them, but in folders
 * that their recipes leave. */
static void claim_recipes(struct search *s)
{
    uint32_t end = 0; /* of the folder of the last recipe */

    for (uint32_t i = 0; i < s->m->n_folders && !s->failed; i++) {
        if ((i < end && !s->info[i].is_left) || !recipe_apply(s, i))
            continue;
        s->info[i].is_target = true;
        s->info[i].is_left = false;
        end = next_folder(s, i) > end ? next_folder(s, i) : end;
    }
}

/* The sets become collections, and are shown. */
static void claim_end_sets(struct search *s)
{
    if (s->print && !s->failed)
        recipe_print_sets(s->print, s);
    collect_all_sets(s);
}

/* Does a table say something of the samples of a set? */
static bool claim_has_values(const struct set *set)
{
    const struct files_claim *claim = set->claim;

    return claim->table || claim->n_views > 1 ||
           (claim->n_views && (claim->view->values.n || claim->view->name || claim->view->label));
}

/* Is there a file that is nothing yet, with one of these extensions? */
static bool claim_any_left(const struct search *s, const char *const *ends)
{
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] && name_ends_in(members_name(s->m, i), ends))
            return true;
    return false;
}

/* No set was found, and files are what they were before. */
static void claim_undo(struct search *s, const uint8_t *before)
{
    sets_drop(s, 0);
    memcpy(s->claims->taken, before, s->m->n);
}

/* Sounds are datasets, as pictures are, where a table names them. Others may be anything. */
static void claim_sounds(struct search *s)
{
    static const char *const tables[] = {".csv", ".tsv", ".jsonl", NULL};
    AUTO_FREE uint8_t *before = malloc(s->m->n + 1);
    bool have_values = true;

    s->failed = s->failed || !before;
    if (!s->claims->open || s->failed)
        return;
    memcpy(before, s->claims->taken, s->m->n);
    if (sounds_apply(s))
        tables_apply(s);
    else
        claim_undo(s, before);
    if (s->n_sets || s->failed || !claim_any_left(s, tables))
        return;
    counts_make(s);
    if (s->failed || !s->info[0].all[COUNT_PICTURES])
        return;
    claim_by_rules(s);
    for (size_t i = 0; i < s->n_sets; i++)
        have_values = have_values && claim_has_values(&s->set[i]);
    if (!have_values) /* all or none: what a table lacks may be another part */
        claim_undo(s, before);
}

int files_claim_names(const struct members *listing, struct claims *ret)
{
    AUTO_RECIPE_PRINT struct recipe_print print = {0};
    struct search s = {.m = listing, .claims = ret, .media = FILES_PICTURES};

    search_named_manifests(&s);
    if (ret->shows_recipe)
        recipe_print_begin(&print, &s);
    counts_make(&s);
    if (!s.failed)
        claim_recipes(&s);
    if (!s.failed && s.print)
        recipe_print_recipes(&print, &s);
    if (!s.failed && listing->n)
        claim_by_rules(&s);
    claim_end_sets(&s);
    for (s.media = FILES_SOUNDS; s.media < N_FILES_MEDIA && !s.failed && listing->n; s.media++) {
        if (s.media == FILES_SOUNDS && !ret->format_given &&
            (!ret->layout || !s.info[0].is_target)) /* the recipe leaves all */
            claim_sounds(&s);
        claim_end_sets(&s);
        if (!s.failed && !ret->format_given)
            claim_classes(&s);
        claim_end_sets(&s);
    }
    if (!s.failed && s.print)
        recipe_print_end(&print, &s, &ret->recipe);
    for (size_t i = 0; i < s.n_recipes; i++) {
        recipe_release(s.recipe[i]);
        free(s.recipe[i]);
    }
    free(s.recipe);
    counts_free(&s);
    free(s.flags);
    return s.failed ? -ENOMEM : 0;
}
