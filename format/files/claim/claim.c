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
        f->here[COUNT_OTHERS] += !is_used;
        f->here[COUNT_NOTICES] += !is_used && name_is_notice(name);
        f->here[COUNT_DOUBT] += !is_used && !name_is_neutral(name) && !name_is_manifest(name);
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

        for (*end = i + 1;
             *end < m->n_folders && members_is_below(claim_path(s, *end), claim_path(s, i));)
            *end = next_folder(s, *end);
    }
    sum_folders(s, 0, N_COUNTS_NAMES);
    return 0;
}

/* ---- judging ---- */

/* Are the folders of this one classes? Lists of labels may lie beside them; but what lies in SOURCE
 * itself may be a dataset, with a folder of plots. */
static bool claim_has_classes(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];
    uint64_t with = 0, direct = 0;
    bool notices = false; /* a folder has nothing else */

    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i)) {
        const struct folder_info *below = &s->info[i];

        if (!is_class_folder(FILES_PICTURES, claim_path(s, i), claim_path(s, folder)))
            continue;
        if (below->all[COUNT_PICTURES] && name_is_split(path_base(claim_path(s, i))))
            return false;
        if (below->foreign || below->all[COUNT_TABLES] || below->all[COUNT_MANIFESTS] ||
            below->all[COUNT_OTHERS] - below->all[COUNT_NOTICES] > below->all[COUNT_USED])
            return false;
        notices = notices || below->all[COUNT_OTHERS] > below->all[COUNT_USED];
        with += below->all[COUNT_PICTURES] > 0;
        direct += below->here[COUNT_PICTURES] > 0;
    }
    return with && (!notices || direct > 1) && 2 * direct >= with &&
           f->all[COUNT_PICTURES] - f->here[COUNT_PICTURES] >= f->here[COUNT_PICTURES] &&
           (*claim_path(s, folder) ? 1 : 10) * f->here[COUNT_DOUBT] <= f->all[COUNT_USED];
}

static bool claim_is_flat(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    return f->here[COUNT_PICTURES] &&
           f->all[COUNT_PICTURES] - f->here[COUNT_PICTURES] < f->here[COUNT_PICTURES] &&
           10 * f->here[COUNT_DOUBT] <= f->here[COUNT_USED] &&
           f->here[COUNT_OTHERS] <= f->here[COUNT_USED];
}

/* Does a table say what is a sample? Not if a folder below has one, or is a part of a dataset, or
 * has something else. */
static bool claim_has_table(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    if (!f->here[COUNT_TABLES] || f->all[COUNT_TABLES] > f->here[COUNT_TABLES] ||
        f->all[COUNT_OTHERS] > f->all[COUNT_USED] + f->here[COUNT_TABLES])
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

/* Keep the first rule by which the pictures of a folder are no dataset. */
static int claim_note_unmet(struct search *s, uint32_t folder, bool project)
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

/* split: the folder or one above it is called by a part of a dataset. project: a program is built
 * in a folder above. */
static int claim_search_folder(struct search *s, uint32_t folder, bool split, bool project)
{
    const struct folder_info *f = &s->info[folder];
    int r = 0;

    if (!f->all[COUNT_PICTURES])
        return 0;
    if (f->kaldi || (s->manifests_only && !f->all[COUNT_MANIFESTS]))
        return claim_note_unmet(s, folder, project);
    split = split || name_is_split(path_base(claim_path(s, folder)));
    project = project || f->project;
    if (!f->foreign && (split || !project)) {
        r = search_manifests(s, folder);
        if (r < 0)
            return r;
        if (claim_has_manifests(s, folder))
            return collect(s, folder, LAYOUT_MANIFEST);
        if (!s->manifests_only && claim_has_table(s, folder))
            return collect(s, folder, LAYOUT_TABLE);
        if (!s->manifests_only && claim_has_classes(s, folder)) {
            r = search_classes_for_manifests(s, folder);
            if (r < 0)
                return r;
            if (claim_has_classes(s, folder))
                return collect(s, folder, LAYOUT_CLASSES);
        }
        if (!s->manifests_only && claim_is_flat(s, folder))
            return collect(s, folder, LAYOUT_FLAT);
    }
    r = claim_note_unmet(s, folder, project);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (!is_skipped(path_base(claim_path(s, i))))
            r = claim_search_folder(s, i, split, project);
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
    struct search s = {.m = listing, .claims = ret, .media = FILES_PICTURES};
    int r = search_named_manifests(&s);

    if (r == 0)
        r = claim_count_all(&s);
    if (r == 0 && listing->n) {
        s.manifests_only = s.info[0].all[COUNT_USED] < s.info[0].all[COUNT_OTHERS];
        r = claim_search_folder(&s, 0, false, false);
    }
    for (s.media = FILES_SOUNDS; s.media < N_FILES_MEDIA && r == 0 && listing->n; s.media++)
        r = ret->format_given ? 0 : claim_classes(&s);
    free(s.info);
    free(s.flags);
    return r;
}
