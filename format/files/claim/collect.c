/* The files of a collection's samples, in the order of the samples; what is ignored below its
 * root. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/extensions.h"
#include "base/text.h"
#include "format/files/claim/parts.h"

struct collecting {
    const struct search *s;
    uint32_t root;
    struct files_claim *claim;
    uint32_t *file; /* those of the samples, in order */
    size_t n;
};

static int collect_sample(struct collecting *t, const struct sample_files *sample)
{
    for (size_t i = 0; i < sample->n; i++) {
        if (array_capacity(&t->file, t->n, sizeof(*t->file)) < 0)
            return -ENOMEM;
        t->file[t->n++] = (uint32_t)(sample->first + i);
        t->s->claims->taken[sample->first + i] = CLAIMS_SAMPLE;
    }
    return 0;
}

/* By what is before the extension: "a.jpg" before "a-b.jpg". */
static int collect_compare_stems(const void *a, const void *b, void *members)
{
    const struct sample_files *x = a, *y = b;
    int order = memcmp(members_name(members, x->first), members_name(members, y->first),
                       x->stem < y->stem ? x->stem : y->stem);

    return order ? order : (x->stem > y->stem) - (x->stem < y->stem);
}

/* The samples of a folder: of a class in the order of the files' names, otherwise sorted by their
 * keys. */
static int collect_folder(struct collecting *t, uint32_t folder, bool is_class)
{
    const struct folder_info *f = &t->s->info[folder];
    struct sample_walk walk = {.m = t->s->m,
                               .at = f->first,
                               .end = f->last,
                               .by_class = is_class,
                               .media = t->claim->media};
    AUTO_FREE struct sample_files *sample = NULL;
    struct sample_files next;
    size_t n = 0;
    int r = 0;

    while (next_sample(&walk, &next)) {
        if (array_capacity(&sample, n, sizeof(*sample)) < 0)
            return -ENOMEM;
        sample[n++] = next;
    }
    if (n && !is_class)
        qsort_r(sample, n, sizeof(*sample), collect_compare_stems, (void *)(uintptr_t)t->s->m);
    for (size_t i = 0; i < n && r == 0; i++)
        r = collect_sample(t, &sample[i]);
    return r;
}

/* Is a folder on the way from above to path one that is skipped? */
static bool collect_is_hidden(const char *path, const char *above)
{
    for (path += strlen(above); *path; path += strcspn(path, "/")) {
        path += *path == '/';
        if (*path == '.' || !strncasecmp(path, "__MACOSX/", 9) || !strcasecmp(path, "__MACOSX"))
            return true;
    }
    return false;
}

static bool collect_may_use(const struct collecting *t, size_t file)
{
    const char *name = members_name(t->s->m, file);

    return *name != '.' && (t->claim->layout != LAYOUT_MANIFEST || name_is_picture(name) ||
                            (t->s->flags[file] & FILE_MANIFEST));
}

static int collect_manifest(struct collecting *t, size_t file)
{
    struct files_claim *claim = t->claim;
    char path[PATH_MAX];

    if (members_path(t->s->m, file, path, sizeof(path)) < 0)
        return 0;
    if (array_capacity(&claim->manifest, claim->n_manifests, sizeof(*claim->manifest)) < 0)
        return -ENOMEM;
    claim->manifest[claim->n_manifests] = strdup(path);
    return claim->manifest[claim->n_manifests++] ? 0 : -ENOMEM;
}

/* Take all files, as they are listed: which of them are samples is not known yet. From a folder
 * with manifests, these and the pictures. */
static int collect_all(struct collecting *t)
{
    const struct search *s = t->s;
    int r = 0;

    for (uint32_t i = t->root; i < s->info[t->root].end && r == 0; i++) {
        if (collect_is_hidden(claim_path(s, i), claim_path(s, t->root)))
            continue;
        for (size_t k = s->info[i].first; k < s->info[i].last && r == 0; k++) {
            if (!collect_may_use(t, k))
                continue;
            r = collect_sample(t, &(struct sample_files){.first = k, .n = 1});
            if (r == 0 && t->claim->layout == LAYOUT_MANIFEST && (s->flags[k] & FILE_MANIFEST))
                r = collect_manifest(t, k);
        }
    }
    return r;
}

static int collect_compare_folders(const void *a, const void *b, void *search)
{
    const struct search *s = search;

    return strcmp(claim_path(s, *(const uint32_t *)a), claim_path(s, *(const uint32_t *)b));
}

/* Take the folders of a class in torchvision's order: sorted by their paths as texts. */
static int collect_class(struct collecting *t, uint32_t folder)
{
    uint32_t n = t->s->info[folder].end - folder;
    AUTO_FREE uint32_t *sorted = calloc(n, sizeof(*sorted));
    int r = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = folder + i;
    qsort_r(sorted, n, sizeof(*sorted), collect_compare_folders, (void *)(uintptr_t)t->s);
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (!collect_is_hidden(claim_path(t->s, sorted[i]), claim_path(t->s, folder)))
            r = collect_folder(t, sorted[i], true);
    return r;
}

/* Say what is ignored below the root: how many files of which extension. */
static int collect_aside(struct collecting *t, size_t first, size_t last)
{
    struct extensions kinds = {.n = 0};
    AUTO_TEXT struct text text = {0};

    for (size_t i = first; i < last; i++)
        if (t->s->claims->taken[i] == CLAIMS_ASIDE)
            extensions_add(&kinds, members_name(t->s->m, i));
    extensions_show(&kinds, true, &text);
    return text_finish(&text, &t->claim->aside, NULL);
}

bool stays_beside(enum files_media media, const char *name)
{
    return *name != '.' && !name_is_notice(name) &&
           (files_media[media].is_looked_into || !name_is_of(media, name));
}

/* May a file of the root itself be something else? */
static bool collect_may_stay(const struct collecting *t, size_t file)
{
    const char *name = members_name(t->s->m, file);

    if (t->claim->media != FILES_PICTURES)
        return stays_beside(t->claim->media, name);
    return !*claim_path(t->s, t->root) && !name_is_picture(name) && !name_is_neutral(name) &&
           !name_is_manifest(name);
}

/* Take what is below the root for the samples, or ignore it: it becomes nothing else.
 * The files of SOURCE itself may be something else, and those next to class folders of sounds or
 * texts. */
static int collect_files(struct collecting *t)
{
    const struct folder_info *root = &t->s->info[t->root];
    uint8_t *taken = t->s->claims->taken;
    size_t first = root->first, last = t->s->info[root->end - 1].last;
    int r = 0;

    for (uint32_t i = t->root + 1; t->claim->layout == LAYOUT_CLASSES && i < root->end && r == 0;
         i = next_folder(t->s, i))
        if (is_class_folder(t->claim->media, claim_path(t->s, i), claim_path(t->s, t->root)))
            r = collect_class(t, i);
    if (t->claim->layout == LAYOUT_FLAT)
        r = collect_folder(t, t->root, false);
    if (t->claim->layout == LAYOUT_TABLE || t->claim->layout == LAYOUT_MANIFEST)
        r = collect_all(t);
    for (size_t i = first; i < last && r == 0; i++)
        if (!taken[i] && !(i < root->last && collect_may_stay(t, i)))
            taken[i] = CLAIMS_ASIDE;
    return r < 0 ? r : collect_aside(t, first, last);
}

/* Is there a file next to the class folders that stays what it is? */
static bool collect_has_others(const struct search *s, uint32_t root, enum files_media media)
{
    for (size_t i = s->info[root].first; i < s->info[root].last; i++)
        if (media != FILES_PICTURES && !s->claims->taken[i] &&
            stays_beside(media, members_name(s->m, i)))
            return true;
    return false;
}

/* A collection at that root. It is called like the folder, unless other things are shown in a
 * folder of that name. 0 or -ENOMEM. */
static int collect_name(const struct search *s, uint32_t root, const struct files_claim *claim,
                        struct collection *c)
{
    const char *path = claim_path(s, root), *base = path_base(path);
    bool has_beside = collect_has_others(s, root, claim->media);

    c->root = strdup(path);
    c->folder = has_beside || claim->layout == LAYOUT_MANIFEST
                    ? strdup(path)
                    : strndup(path, (size_t)(base - path) - (base > path));
    c->name = strdup(has_beside ? files_media[claim->media].word : *path ? base : "all");
    c->has_beside = has_beside;
    return c->root && c->folder && c->name ? 0 : -ENOMEM;
}

/* The first table of metadata of a folder, or the next after that one: its name in table_names[];
 * NULL: there is none. */
static const char *collect_find_table(const struct search *s, uint32_t folder, const char *after)
{
    const char *path = claim_path(s, folder);
    bool passed = !after;

    for (size_t i = 0; table_names[i]; i++) {
        if (passed && members_lookup(s->m, path, strlen(path), table_names[i]) < s->m->n)
            return table_names[i];
        passed = passed || table_names[i] == after;
    }
    return NULL;
}

int collect(const struct search *s, uint32_t root, enum files_layout layout)
{
    struct claims *claims = s->claims;
    struct collecting t = {.s = s, .root = root};
    struct collection *c;
    int r;

    if (array_capacity(&claims->collection, claims->n, sizeof(*c)) < 0)
        return -ENOMEM;
    c = &claims->collection[claims->n++];
    *c = (struct collection){0};
    c->impl = t.claim = calloc(1, sizeof(*t.claim));
    if (!t.claim)
        return -ENOMEM;
    t.claim->layout = layout;
    t.claim->media = s->media;
    if (layout == LAYOUT_TABLE) {
        t.claim->table = collect_find_table(s, root, NULL);
        t.claim->other = collect_find_table(s, root, t.claim->table);
    }
    r = collect_name(s, root, t.claim, c);
    if (r == 0)
        r = collect_files(&t);
    c->file = t.file;
    c->n = t.n;
    return r;
}
