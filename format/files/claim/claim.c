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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/recipe.h"
#include "format/files/claim/words.h"

bool is_skipped(const char *name)
{
    return *name == '.' || !strcasecmp(name, "__MACOSX") || !strcmp(name, "lost+found");
}

bool is_class_folder(enum files_media media, const char *path, const char *root)
{
    const char *skipped = files_media[media].skipped;
    size_t len = strlen(root);
    const char *name = path + len + (len > 0);

    return *path && members_is_below(path, root) && strlen(path) > len && !strchr(name, '/') &&
           !is_skipped(name) && !(skipped && !strcmp(name, skipped));
}

/* ---- counting ---- */

uint64_t mark_samples(const struct search *s, uint32_t folder, bool by_class)
{
    const struct folder_info *f = &s->info[folder];
    struct sample_walk walk = {
        .m = s->m, .at = f->first, .end = f->last, .by_class = by_class, .media = s->media};
    struct sample_files sample;
    uint64_t n = 0;

    for (size_t i = f->first; i < f->last; i++)
        s->flags[i] &= (uint8_t)~FILE_IN_SAMPLE;
    for (; next_sample(&walk, &sample); n++)
        for (size_t i = 0; i < sample.n; i++)
            s->flags[sample.first + i] |= FILE_IN_SAMPLE;
    return n;
}

static void claim_count_folder(const struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];

    mark_samples(s, folder, false);
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(s->m, i);
        bool is_used = s->flags[i] & FILE_IN_SAMPLE;

        f->here[COUNT_PICTURES] += name_is_picture(name);
        f->here[COUNT_USED] += is_used;
        f->here[COUNT_OTHERS] += !is_used && !name_is_list(name);
        f->here[COUNT_LISTS] += !is_used && name_is_list(name);
        f->here[COUNT_DOUBT] +=
            !is_used && !name_is_neutral(name) && !name_is_manifest(name) && !name_is_list(name);
        f->here[COUNT_TABLES] += name_is_table(name);
        f->here[COUNT_MANIFESTS] += (s->flags[i] & FILE_MANIFEST) > 0;
        f->foreign = f->foreign || (!is_used && name_is_foreign(name) && !name_is_table(name));
        f->kaldi = f->kaldi || name_is_kaldi(name);
        f->project = f->project || name_is_project(name);
    }
}

void sum_folders(struct search *s, enum folder_count first, enum folder_count end)
{
    for (uint32_t i = s->m->n_folders; i-- > 0;) {
        struct folder_info *f = &s->info[i];

        memcpy(f->all + first, f->here + first, (end - first) * sizeof(f->here[0]));
        for (uint32_t k = i + 1; k < f->end; k = next_folder(s, k))
            for (unsigned count = first; count < end; count++)
                f->all[count] += s->info[k].all[count];
    }
}

static int claim_count_all(struct search *s)
{
    const struct members *m = s->m;
    size_t at = 0;

    s->info = calloc(m->n_folders + 1, sizeof(*s->info));
    if (!s->info)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        s->info[i].first = at;
        while (at < m->n && m->member[at].folder == i)
            at++;
        s->info[i].last = at;
        claim_count_folder(s, i);
    }
    for (uint32_t i = m->n_folders; i-- > 0;) {
        uint32_t *end = &s->info[i].end;

        s->info[i].above = NO_FOLDER;
        for (*end = i + 1;
             *end < m->n_folders && members_is_below(claim_path(s, *end), claim_path(s, i));)
            *end = next_folder(s, *end);
        for (uint32_t k = i + 1; k < *end; k = next_folder(s, k))
            s->info[k].above = i;
    }
    sum_folders(s, 0, N_COUNTS_NAMES);
    return 0;
}

/* ---- judging ---- */

/* Does a table of metadata of the folder name files, by its first bytes? One that cannot be read
 * does, as its name says. */
static bool claim_tables_name_files(const struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);

    for (size_t i = 0; table_names[i]; i++) {
        size_t file = members_lookup(s->m, path, strlen(path), table_names[i]);
        uint8_t head[4096];
        int len;

        if (file == s->m->n)
            continue;
        if (!s->claims->heads || text_ends_with(table_names[i], ".parquet") ||
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

/* The first file of the folder whose name is of that kind. */
static const char *claim_find_name(const struct search *s, uint32_t folder,
                                   bool (*is)(const char *name))
{
    const struct folder_info *f = &s->info[folder];
    size_t i = f->first;

    while (i + 1 < f->last && !is(members_name(s->m, i)))
        i++;
    return i < f->last ? members_name(s->m, i) : "";
}

int claim_note_unmet(struct search *s, uint32_t folder, bool project)
{
    const struct folder_info *f = &s->info[folder];
    const char *path = claim_path(s, folder), *slash = *path ? "/" : "";
    char **ret = &s->claims->unmet;
    int r = 0;

    if (*ret)
        return 0;
    if (f->kaldi)
        r = asprintf(ret, "%s%s%s is a table of Kaldi, which may name them", path, slash,
                     claim_find_name(s, folder, name_is_kaldi));
    else if (f->foreign)
        r = asprintf(ret, "%s%s%s next to them is of another format", path, slash,
                     claim_find_name(s, folder, name_is_foreign));
    else if (f->project)
        r = asprintf(ret, "%s%s%s says that a program is built there", path, slash,
                     claim_find_name(s, folder, name_is_project));
    else if (s->manifests_only)
        r = asprintf(
            ret, "only %llu of the %llu files are pictures or belong to them",
            (unsigned long long)s->info[0].all[COUNT_USED],
            (unsigned long long)(s->info[0].all[COUNT_USED] + s->info[0].all[COUNT_OTHERS]));
    else if (f->here[COUNT_PICTURES] && !project)
        r = asprintf(ret, "in %s, %llu of %llu files are neither pictures nor belong to one",
                     *path ? path : "SOURCE", (unsigned long long)f->here[COUNT_OTHERS],
                     (unsigned long long)(f->here[COUNT_USED] + f->here[COUNT_OTHERS]));
    if (r < 0)
        *ret = NULL;
    return r < 0 ? -ENOMEM : 0;
}

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

    if (!f->all[COUNT_PICTURES])
        return 0;
    r = recipe_apply(s, folder);
    if (r)
        return r < 0 ? r : 0;
    if (f->kaldi || (s->manifests_only && !f->all[COUNT_MANIFESTS]))
        return claim_note_unmet(s, folder, above.project);
    above.in_split = words_have_split(name, strlen(name), NULL);
    above.split = above.split || name_is_split(name);
    above.project = above.project || f->project;
    if (above.split || !above.project) {
        if (!f->foreign)
            r = search_manifests(s, folder);
        if (r < 0)
            return r;
        if (!f->foreign && claim_has_manifests(s, folder))
            return collect(s, folder, LAYOUT_MANIFEST);
        if (!s->manifests_only && !f->foreign && claim_has_table(s, folder))
            return collect(s, folder, LAYOUT_TABLE);
        if (!s->manifests_only)
            return claim_apply_rules(s, folder, above);
    }
    r = claim_note_unmet(s, folder, above.project);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (!is_skipped(path_base(claim_path(s, i))))
            r = claim_search_folder(s, i, above);
    return r;
}

void claim_sample(const struct members *m, const struct files_claim *claim,
                  const struct files_view *view, uint64_t row, struct sample_files *ret)
{
    size_t sample = view->sample ? view->sample[row] : (size_t)row, unnamed = 0;
    const char *name;

    ret->first = claim->first[sample];
    ret->n = claim->first[sample + 1] - ret->first;
    name = members_name(m, ret->first);
    for (size_t i = 0; i < ret->n; i++)
        unnamed += !claim->role || !claim->role[ret->first + i];
    ret->stem = unnamed > 1 ? name_stem(name) : name_stem_alone(name);
}

static void claim_free_texts(char **text, size_t n)
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
    claim_free_texts(view->class_name, view->n_classes);
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
    claim_free_texts(claim->manifest, claim->n_manifests);
    claim_free_texts(claim->role_name, claim->n_roles);
    claim_free_texts(claim->class_name, claim->n_classes);
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
    free(claim);
}

/* Texts, lists and annotations may be so many times the pictures. */
#define LISTS_MOST 8

int files_claim_names(const struct members *listing, struct claims *ret)
{
    struct search s = {.m = listing, .claims = ret, .media = FILES_PICTURES};
    int r = search_named_manifests(&s);

    if (r == 0)
        r = claim_count_all(&s);
    if (r == 0 && listing->n) {
        const uint64_t *all = s.info[0].all;

        s.manifests_only = all[COUNT_USED] < all[COUNT_OTHERS] ||
                           LISTS_MOST * all[COUNT_USED] < all[COUNT_OTHERS] + all[COUNT_LISTS];
        r = claim_search_folder(&s, 0, (struct claim_above){0});
    }
    if (r == 0)
        r = tables_apply(&s);
    if (r == 0)
        r = collect_all_sets(&s);
    for (s.media = FILES_SOUNDS; s.media < N_FILES_MEDIA && r == 0 && listing->n; s.media++) {
        r = ret->format_given ? 0 : claim_classes(&s);
        if (r == 0)
            r = collect_all_sets(&s);
    }
    sets_release(&s);
    for (size_t i = 0; i < s.n_recipes; i++) {
        recipe_release(s.recipe[i]);
        free(s.recipe[i]);
    }
    free(s.recipe);
    free(s.info);
    free(s.flags);
    return r;
}
