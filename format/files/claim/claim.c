/* A folder is a dataset if nearly all below it are pictures, and the files beside them that belong
 * to them:
 *
 *   classes  most of its folders that have pictures have them directly, and no folder has mostly
 *            other files. As with torchvision's ImageFolder, the files of the folder itself do not
 *            count, each of its folders is a class, and so are the pictures of all folders below.
 *   flat     its own files are pictures, and there are more of them than in folders below.
 *
 *   table    it has metadata.jsonl or metadata.csv, and pictures; the table says which of the files
 *            below are a sample, and nothing else is asked.
 *
 *   manifest  it has files called *.manifest, or one of its folders without pictures has, and
 *            pictures.
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
#include "base/kinds.h"
#include "base/text.h"
#include "format/files/claim/names.h"

/* What names say of a folder. Folders come before those below them, which follow at once. */
struct folder_info {
    uint32_t end; /* the folder after the last one below */
    size_t first, last;
    uint64_t pictures, used, others;             /* of its own files: used have a picture beside */
    uint64_t all_pictures, all_used, all_others; /* and of the folders below */
    uint64_t doubtful;                           /* others that are not neutral */
    bool foreign, kaldi, project;
    uint64_t tables, all_tables; /* of metadata */
    uint64_t manifests, all_manifests;
};

struct search {
    const struct members *m;
    struct folder_info *info; /* [n_folders] */
    struct claims *claims;
    bool manifests_only; /* most files of SOURCE are something else */
};

static uint32_t next_folder(const struct search *s, uint32_t child)
{
    return s->info[child].end;
}

static const char *path_of(const struct search *s, uint32_t folder)
{
    return members_folder(s->m, folder);
}

/* What no user means: hidden folders, and what macOS adds to archives. */
static bool is_skipped(const char *name)
{
    return *name == '.' || !strcasecmp(name, "__MACOSX");
}

bool is_class_folder(const char *path, const char *root)
{
    size_t len = strlen(root);
    const char *name = path + len + (len > 0);

    return *path && members_is_below(path, root) && strlen(path) > len && !strchr(name, '/') &&
           !is_skipped(name);
}

/* The tables of metadata that are beside pictures, as Hugging Face has them. */
static const char *const tables[] = {"metadata.jsonl", "metadata.csv"};

static bool name_is_table(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        if (!strcmp(name, tables[i]))
            return true;
    return false;
}

static const char *find_table(const struct search *s, uint32_t folder, size_t from)
{
    const char *path = path_of(s, folder);

    for (size_t i = from; i < ARRAY_LEN(tables); i++)
        if (members_lookup(s->m, path, strlen(path), tables[i]) < s->m->n)
            return tables[i];
    return NULL;
}

/* ---- counting ---- */

/* Mark the files of a folder that are in samples, if it is flat: mark[i], from the first on. */
static void mark_used(const struct search *s, uint32_t folder, uint8_t *mark)
{
    const struct folder_info *f = &s->info[folder];
    struct sample_walk walk = {.m = s->m, .at = f->first, .end = f->last};
    struct sample_files sample;

    while (next_sample(&walk, &sample))
        memset(mark + (sample.first - f->first), 1, sample.n);
}

static int count_folder(const struct search *s, uint32_t folder)
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
        f->doubtful += !is_used && !name_is_neutral(name);
        f->foreign = f->foreign || (!is_used && name_is_foreign(name));
        f->kaldi = f->kaldi || name_is_kaldi(name);
        f->project = f->project || name_is_project(name);
        f->tables += name_is_table(name);
        f->manifests += name_is_manifest(name);
    }
    return 0;
}

static int count_all(struct search *s)
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
        if (count_folder(s, i) < 0)
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
        for (; f->end < m->n_folders && members_is_below(path_of(s, f->end), path_of(s, i));
             f->end = s->info[f->end].end) {
            const struct folder_info *below = &s->info[f->end];

            f->all_pictures += below->all_pictures;
            f->all_used += below->all_used;
            f->all_others += below->all_others;
            f->all_tables += below->all_tables;
            f->all_manifests += below->all_manifests;
        }
    }
    return 0;
}

/* ---- judging ---- */

/* Are the folders of this one classes? Lists of labels may lie beside them; but what lies in SOURCE
 * itself may be a dataset, with a folder of plots. */
static bool has_classes(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];
    uint64_t with = 0, direct = 0;

    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i)) {
        const struct folder_info *below = &s->info[i];

        if (!is_class_folder(path_of(s, i), path_of(s, folder)))
            continue;
        if (below->all_pictures && name_is_split(path_base(path_of(s, i))))
            return false;
        if (below->foreign || below->all_tables || below->all_others > below->all_used)
            return false;
        with += below->all_pictures > 0;
        direct += below->pictures > 0;
    }
    return with && 2 * direct >= with && f->all_pictures - f->pictures >= f->pictures &&
           (*path_of(s, folder) ? 1 : 10) * f->doubtful <= f->all_used;
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
            (below->all_pictures && name_is_split(path_base(path_of(s, i)))))
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
            !is_skipped(path_base(path_of(s, i))))
            return true;
    return false;
}

/* ---- taking ---- */

struct taking {
    const struct search *s;
    uint32_t root;
    struct files_claim *claim;
    uint32_t *file; /* those of the samples, in order */
    size_t n;
};

static int add_sample(struct taking *t, const struct sample_files *sample)
{
    for (size_t i = 0; i < sample->n; i++) {
        if (array_capacity(&t->file, t->n, sizeof(*t->file)) < 0)
            return -ENOMEM;
        t->file[t->n++] = (uint32_t)(sample->first + i);
        t->s->claims->taken[sample->first + i] = CLAIMS_SAMPLE;
    }
    return 0;
}

/* Take the samples of a folder of a class in the order of the files' names. */
static int take_folder(struct taking *t, uint32_t folder)
{
    const struct folder_info *f = &t->s->info[folder];
    struct sample_walk walk = {.m = t->s->m, .at = f->first, .end = f->last, .by_class = true};
    struct sample_files sample;
    int r = 0;

    while (r == 0 && next_sample(&walk, &sample))
        r = add_sample(t, &sample);
    return r;
}

/* By what is before the extension: "a.jpg" before "a-b.jpg". */
static int compare_stems(const void *a, const void *b, void *members)
{
    const struct sample_files *x = a, *y = b;
    int order = memcmp(members_name(members, x->first), members_name(members, y->first),
                       x->stem < y->stem ? x->stem : y->stem);

    return order ? order : (x->stem > y->stem) - (x->stem < y->stem);
}

/* Take the samples of a flat folder, sorted by their keys. */
static int take_flat(struct taking *t)
{
    const struct folder_info *f = &t->s->info[t->root];
    struct sample_walk walk = {.m = t->s->m, .at = f->first, .end = f->last};
    AUTO_FREE struct sample_files *sample = NULL;
    struct sample_files next;
    size_t n = 0;
    int r = 0;

    while (next_sample(&walk, &next)) {
        if (array_capacity(&sample, n, sizeof(*sample)) < 0)
            return -ENOMEM;
        sample[n++] = next;
    }
    if (n)
        qsort_r(sample, n, sizeof(*sample), compare_stems, (void *)(uintptr_t)t->s->m);
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_sample(t, &sample[i]);
    return r;
}

/* Is a folder on the way from above to path one that is skipped? */
static bool is_hidden_below(const char *path, const char *above)
{
    for (path += strlen(above); *path; path += strcspn(path, "/")) {
        path += *path == '/';
        if (*path == '.' || !strncasecmp(path, "__MACOSX/", 9) || !strcasecmp(path, "__MACOSX"))
            return true;
    }
    return false;
}

static bool may_be_used(const struct taking *t, const char *name)
{
    return *name != '.' &&
           (t->claim->layout != LAYOUT_MANIFEST || name_is_picture(name) || name_is_manifest(name));
}

/* Take all files, as they are listed: which of them are samples is not known yet. Of a folder with
 * manifests, these and the pictures. */
static int take_all(struct taking *t)
{
    const struct search *s = t->s;
    int r = 0;

    for (uint32_t i = t->root; i < s->info[t->root].end && r == 0; i++) {
        if (is_hidden_below(path_of(s, i), path_of(s, t->root)))
            continue;
        for (size_t k = s->info[i].first; k < s->info[i].last && r == 0; k++)
            if (may_be_used(t, members_name(s->m, k)))
                r = add_sample(t, &(struct sample_files){.first = k, .n = 1});
    }
    return r;
}

static int compare_folders(const void *a, const void *b, void *search)
{
    const struct search *s = search;

    return strcmp(path_of(s, *(const uint32_t *)a), path_of(s, *(const uint32_t *)b));
}

/* Take the folders of a class in torchvision's order: sorted by their paths as texts. */
static int take_class(struct taking *t, uint32_t folder)
{
    uint32_t n = t->s->info[folder].end - folder;
    AUTO_FREE uint32_t *sorted = calloc(n, sizeof(*sorted));
    int r = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = folder + i;
    qsort_r(sorted, n, sizeof(*sorted), compare_folders, (void *)(uintptr_t)t->s);
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (!is_hidden_below(path_of(t->s, sorted[i]), path_of(t->s, folder)))
            r = take_folder(t, sorted[i]);
    return r;
}

/* Say what is left aside below the root: how many files of which extension. */
static int say_aside(struct taking *t, size_t first, size_t last)
{
    struct kinds kinds = {.n = 0};
    AUTO_TEXT struct text text = {0};

    for (size_t i = first; i < last; i++)
        if (t->s->claims->taken[i] == CLAIMS_ASIDE)
            kinds_add(&kinds, members_name(t->s->m, i));
    kinds_show(&kinds, &text);
    return text_finish(&text, &t->claim->aside, NULL);
}

/* Take what is below the root for the samples, or leave it aside: nothing else is to become of it.
 * The files of SOURCE itself may be something else. */
static int take_files(struct taking *t)
{
    const struct folder_info *root = &t->s->info[t->root];
    uint8_t *taken = t->s->claims->taken;
    size_t first = root->first, last = t->s->info[root->end - 1].last;
    int r = 0;

    for (uint32_t i = t->root + 1; t->claim->layout == LAYOUT_CLASSES && i < root->end && r == 0;
         i = next_folder(t->s, i))
        if (is_class_folder(path_of(t->s, i), path_of(t->s, t->root)))
            r = take_class(t, i);
    if (t->claim->layout == LAYOUT_FLAT)
        r = take_flat(t);
    if (t->claim->layout == LAYOUT_TABLE || t->claim->layout == LAYOUT_MANIFEST)
        r = take_all(t);
    for (size_t i = first; i < last && r == 0; i++) {
        bool may_be_else = !*path_of(t->s, t->root) && i < root->last &&
                           !name_is_picture(members_name(t->s->m, i)) &&
                           !name_is_neutral(members_name(t->s->m, i));

        if (!taken[i] && !may_be_else)
            taken[i] = CLAIMS_ASIDE;
    }
    return r < 0 ? r : say_aside(t, first, last);
}

static int take(const struct search *s, uint32_t root, enum files_layout layout)
{
    const char *path = path_of(s, root), *base = path_base(path);
    struct claims *claims = s->claims;
    struct taking t = {.s = s, .root = root};
    struct collection *c;
    int r;

    if (array_capacity(&claims->collection, claims->n, sizeof(*c)) < 0)
        return -ENOMEM;
    c = &claims->collection[claims->n++];
    *c = (struct collection){.root = strdup(path),
                             .folder = layout == LAYOUT_MANIFEST
                                           ? strdup(path)
                                           : strndup(path, (size_t)(base - path) - (base > path)),
                             .name = strdup(*path ? base : "all")};
    c->impl = t.claim = calloc(1, sizeof(*t.claim));
    if (!c->root || !c->folder || !c->name || !t.claim)
        return -ENOMEM;
    t.claim->layout = layout;
    if (layout == LAYOUT_TABLE) {
        t.claim->table = find_table(s, root, 0);
        t.claim->other = find_table(s, root, 1);
        if (t.claim->other == t.claim->table)
            t.claim->other = NULL;
    }
    r = take_files(&t);
    c->file = t.file;
    c->n = t.n;
    return r;
}

/* split: the folder or one above it is called by a part of a dataset. project: a program is built
 * in a folder above. */
static int search_folder(const struct search *s, uint32_t folder, bool split, bool project)
{
    const struct folder_info *f = &s->info[folder];
    int r = 0;

    if (f->kaldi || !f->all_pictures || (s->manifests_only && !f->all_manifests))
        return 0;
    split = split || name_is_split(path_base(path_of(s, folder)));
    project = project || f->project;
    if (!f->foreign && (split || !project) && has_manifests(s, folder))
        return take(s, folder, LAYOUT_MANIFEST);
    if (!f->foreign && !s->manifests_only && (split || !project) && has_table(s, folder))
        return take(s, folder, LAYOUT_TABLE);
    if (!f->foreign && !s->manifests_only && (split || !project) && has_classes(s, folder))
        return take(s, folder, LAYOUT_CLASSES);
    if (!f->foreign && !s->manifests_only && (split || !project) && is_flat(s, folder))
        return take(s, folder, LAYOUT_FLAT);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (!is_skipped(path_base(path_of(s, i))))
            r = search_folder(s, i, split, project);
    return r;
}

void files_free_claim(void *impl)
{
    struct files_claim *claim = impl;

    if (claim)
        free(claim->aside);
    free(claim);
}

int files_claim_names(const struct members *listing, struct claims *ret)
{
    struct search s = {.m = listing, .claims = ret};
    int r = count_all(&s);

    s.manifests_only = r == 0 && listing->n && s.info[0].all_used < s.info[0].all_others;
    if (r == 0 && listing->n)
        r = search_folder(&s, 0, false, false);
    free(s.info);
    return r;
}
