/* A folder is a dataset if nearly all below it are pictures, and the files beside them that belong
 * to them:
 *
 *   classes  most of its folders that have pictures have them directly, and no folder has mostly
 *            other files (readmes and the like excepted, if two have pictures). As with
 * torchvision's ImageFolder, the files of the folder itself do not count, each of its folders is a
 * class, and so are the pictures of all folders below. flat     its own files are pictures, and
 * there are more of them than in folders below.
 *
 *   table    it has metadata.jsonl or metadata.csv, and pictures; the table says which of the files
 *            below are a sample, and nothing else is asked.
 *
 *   manifest  it has manifests of pictures, or one of its folders without pictures has, and
 *             pictures. These are known by their first lines, whatever they are called.
 *
 * Otherwise each of its folders is judged for itself. So folders called train, val, test are never
 * classes: each of them is judged.
 *
 * What may be something else stays what it is: nothing is taken at a folder with a file that is
 * surely of another format, below a folder with tables of Kaldi, in a folder where a program is
 * built (but in its train, val, test), and where pictures are less than half of all files of
 * SOURCE. */
#include "format/files/claim/claim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "format/files/claim/parts.h"

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

const char *find_table(const struct search *s, uint32_t folder, const char *after)
{
    const char *path = files_path_of(s, folder);
    bool passed = !after;

    for (size_t i = 0; table_names[i]; i++) {
        if (passed && members_lookup(s->m, path, strlen(path), table_names[i]) < s->m->n)
            return table_names[i];
        passed = passed || table_names[i] == after;
    }
    return NULL;
}

/* ---- counting ---- */

void mark_used(const struct search *s, uint32_t folder, uint8_t *mark)
{
    const struct folder_info *f = &s->info[folder];
    struct sample_walk walk = {.m = s->m, .at = f->first, .end = f->last};
    struct sample_files sample;

    while (next_sample(&walk, &sample))
        memset(mark + (sample.first - f->first), 1, sample.n);
}

static int files_claim_count_folder(const struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];
    AUTO_FREE uint8_t *used = calloc(f->last - f->first + 1, 1);

    if (!used)
        return -ENOMEM;
    mark_used(s, folder, used);
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(s->m, i);
        bool is_used = used[i - f->first];

        f->pictures += name_is_picture(name);
        f->used += is_used;
        f->others += !is_used;
        f->all_notices += !is_used && name_is_notice(name);
        f->doubtful += !is_used && !name_is_neutral(name) && !name_is_manifest(name);
        f->foreign = f->foreign || (!is_used && name_is_foreign(name) && !name_is_table(name));
        f->kaldi = f->kaldi || name_is_kaldi(name);
        f->project = f->project || name_is_project(name);
        f->tables += name_is_table(name);
        f->manifests += s->manifest[i];
    }
    return 0;
}

static int files_claim_count_all(struct search *s)
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
        if (files_claim_count_folder(s, i) < 0)
            return -ENOMEM;
    }
    for (uint32_t i = m->n_folders; i-- > 0;) {
        struct folder_info *f = &s->info[i];

        f->end = i + 1;
        f->all_pictures = f->pictures;
        f->all_used = f->used;
        f->all_others = f->others;
        f->all_tables = f->tables;
        f->all_manifests = f->manifests;
        for (; f->end < m->n_folders &&
               members_is_below(files_path_of(s, f->end), files_path_of(s, i));
             f->end = s->info[f->end].end) {
            const struct folder_info *below = &s->info[f->end];

            f->all_pictures += below->all_pictures;
            f->all_used += below->all_used;
            f->all_others += below->all_others;
            f->all_notices += below->all_notices;
            f->all_tables += below->all_tables;
            f->all_manifests += below->all_manifests;
        }
    }
    return 0;
}

/* ---- judging ---- */

/* Are the folders of this one classes? Lists of labels may lie beside them; but what lies in SOURCE
 * itself may be a dataset, with a folder of plots. */
static bool files_claim_has_classes(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];
    uint64_t with = 0, direct = 0;
    bool notices = false; /* a folder has nothing else */

    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i)) {
        const struct folder_info *below = &s->info[i];

        if (!is_class_folder(FILES_PICTURES, files_path_of(s, i), files_path_of(s, folder)))
            continue;
        if (below->all_pictures && name_is_split(path_base(files_path_of(s, i))))
            return false;
        if (below->foreign || below->all_tables || below->all_manifests ||
            below->all_others - below->all_notices > below->all_used)
            return false;
        notices = notices || below->all_others > below->all_used;
        with += below->all_pictures > 0;
        direct += below->pictures > 0;
    }
    return with && (!notices || direct > 1) && 2 * direct >= with &&
           f->all_pictures - f->pictures >= f->pictures &&
           (*files_path_of(s, folder) ? 1 : 10) * f->doubtful <= f->all_used;
}

static bool is_flat(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    return f->pictures && f->all_pictures - f->pictures < f->pictures &&
           10 * f->doubtful <= f->used && f->others <= f->used;
}

/* Does a table say what is a sample? Not if a folder below has one, or is a part of a dataset, or
 * has something else. */
static bool has_table(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (!f->tables || f->all_tables > f->tables || f->all_others > f->all_used + f->tables)
        return false;
    for (uint32_t i = folder + 1; i < f->end; i++) {
        const struct folder_info *below = &s->info[i];

        if (below->foreign || below->kaldi ||
            (below->all_pictures && name_is_split(path_base(files_path_of(s, i)))))
            return false;
    }
    return true;
}

/* Do manifests say what is a sample? They are in the folder, or in one below without pictures. */
static bool has_manifests(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (f->manifests)
        return true;
    for (uint32_t i = folder + 1; i < f->end && f->all_manifests; i = next_folder(s, i))
        if (s->info[i].all_manifests && !s->info[i].all_pictures &&
            !is_skipped(path_base(files_path_of(s, i))))
            return true;
    return false;
}

/* ---- searching ---- */

/* The first file of the folder whose name is of that kind. */
static const char *files_claim_find_name(const struct search *s, uint32_t folder,
                                         bool (*is)(const char *name))
{
    const struct folder_info *f = &s->info[folder];
    size_t i = f->first;

    while (i + 1 < f->last && !is(members_name(s->m, i)))
        i++;
    return i < f->last ? members_name(s->m, i) : "";
}

/* Keep the first rule by which the pictures of a folder are no dataset. */
static int note_unmet(struct search *s, uint32_t folder, bool project)
{
    const struct folder_info *f = &s->info[folder];
    const char *path = files_path_of(s, folder), *slash = *path ? "/" : "";
    char **ret = &s->claims->unmet;
    int r = 0;

    if (*ret)
        return 0;
    if (f->kaldi)
        r = asprintf(ret, "%s%s%s is a table of Kaldi, which may name them", path, slash,
                     files_claim_find_name(s, folder, name_is_kaldi));
    else if (f->foreign)
        r = asprintf(ret, "%s%s%s next to them is of another format", path, slash,
                     files_claim_find_name(s, folder, name_is_foreign));
    else if (f->project)
        r = asprintf(ret, "%s%s%s says that a program is built there", path, slash,
                     files_claim_find_name(s, folder, name_is_project));
    else if (s->manifests_only)
        r = asprintf(ret, "only %llu of the %llu files are pictures or belong to them",
                     (unsigned long long)s->info[0].all_used,
                     (unsigned long long)(s->info[0].all_used + s->info[0].all_others));
    else if (f->pictures && !project)
        r = asprintf(ret, "in %s, %llu of %llu files are neither pictures nor belong to one",
                     *path ? path : "SOURCE", (unsigned long long)f->others,
                     (unsigned long long)(f->used + f->others));
    if (r < 0)
        *ret = NULL;
    return r < 0 ? -ENOMEM : 0;
}

/* split: the folder or one above it is called by a part of a dataset. project: a program is built
 * in a folder above. */
static int files_claim_search_folder(struct search *s, uint32_t folder, bool split, bool project)
{
    const struct folder_info *f = &s->info[folder];
    int r = 0;

    if (!f->all_pictures)
        return 0;
    if (f->kaldi || (s->manifests_only && !f->all_manifests))
        return note_unmet(s, folder, project);
    split = split || name_is_split(path_base(files_path_of(s, folder)));
    project = project || f->project;
    if (!f->foreign && (!s->manifests_only || f->all_manifests) && (split || !project))
        r = look_for_manifests(s, folder);
    if (r < 0)
        return r;
    if (!f->foreign && (split || !project) && has_manifests(s, folder))
        return take(s, folder, LAYOUT_MANIFEST, FILES_PICTURES);
    if (!f->foreign && !s->manifests_only && (split || !project) && has_table(s, folder))
        return take(s, folder, LAYOUT_TABLE, FILES_PICTURES);
    if (!f->foreign && !s->manifests_only && (split || !project) &&
        files_claim_has_classes(s, folder)) {
        r = look_into_classes(s, folder);
        if (r < 0)
            return r;
        if (files_claim_has_classes(s, folder))
            return take(s, folder, LAYOUT_CLASSES, FILES_PICTURES);
    }
    if (!f->foreign && !s->manifests_only && (split || !project) && is_flat(s, folder))
        return take(s, folder, LAYOUT_FLAT, FILES_PICTURES);
    r = note_unmet(s, folder, project);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (!is_skipped(path_base(files_path_of(s, i))))
            r = files_claim_search_folder(s, i, split, project);
    return r;
}

void files_free_claim(void *impl)
{
    struct files_claim *claim = impl;

    if (!claim)
        return;
    for (size_t i = 0; i < claim->n_manifests; i++)
        free(claim->manifest[i]);
    free(claim->manifest);
    free(claim->aside);
    free(claim);
}

int files_claim_names(const struct members *listing, struct claims *ret)
{
    struct search s = {.m = listing, .claims = ret};
    int r = look_at_named_manifests(&s);

    if (r == 0)
        r = files_claim_count_all(&s);

    s.manifests_only = r == 0 && listing->n && s.info[0].all_used < s.info[0].all_others;
    if (r == 0 && listing->n)
        r = files_claim_search_folder(&s, 0, false, false);
    for (unsigned media = FILES_SOUNDS; media < N_FILES_MEDIA && r == 0 && listing->n; media++)
        r = ret->format_given ? 0 : take_classes(&s, media);
    free(s.info);
    free(s.manifest);
    return r;
}
