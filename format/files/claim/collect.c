/* Sets of samples, in their order, and the collections that they become; what is ignored. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/extensions.h"
#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* ---- the samples of a set ---- */

/* A folder while its samples are collected. */
struct collecting {
    struct search *s;
    struct set *set;
    bool by_class;
};

/* The field of a file of a pair. */
static int collect_partner(struct collecting *t, const struct pair *pair, size_t file)
{
    const char *name = members_name(t->s->m, file);
    bool is_picture = name_is_picture(name);
    char ext[EXT_MOST + 1], field[2 * EXT_MOST];
    size_t n = t->set->n;
    int r;

    name_ext(name, name_stem_last(name), ext);
    snprintf(field, sizeof(field), "%s.%s", is_picture ? pair->words : pair->name, ext);
    r = set_add_file(t->s, t->set, file, field);
    if (r == 0 && t->set->n > n) /* unless there are too many fields */
        t->set->is_text[t->set->claim->role[n] - 1] = !is_picture;
    return r;
}

/* Unless two targets of one input have the same extension, texts are called by it alone. */
static int collect_shorten_roles(struct set *set)
{
    for (unsigned i = 0; i < set->claim->n_roles; i++) {
        char **name = &set->claim->role_name[i];
        char *ext = set->is_text[i] ? strdup(strrchr(*name, '.') + 1) : *name;

        if (!ext)
            return -ENOMEM;
        if (set->is_text[i])
            free(*name);
        *name = ext;
    }
    return 0;
}

/* Files that pairs add to a sample. */
static int collect_partners(struct collecting *t, uint32_t folder, const char *name)
{
    const struct search *s = t->s;
    int r = 0;

    for (uint32_t input = folder; input != NO_FOLDER; input = s->info[input].above)
        for (const struct pair *pair = s->info[input].pairs; pair && r == 0; pair = pair->next) {
            size_t file = SIZE_MAX;

            while (r == 0 && (file = pair_partner(s, pair, input, folder, name, file)) != SIZE_MAX)
                if (s->claims->taken[file] != CLAIMS_SAMPLE)
                    r = collect_partner(t, pair, file);
        }
    return r;
}

static int collect_sample(struct collecting *t, uint32_t folder, const struct sample_files *sample)
{
    const struct members *m = t->s->m;
    size_t picture = sample->first;
    int r = set_begin_sample(t->set);

    t->set->has_companions = t->set->has_companions || sample->n > 1;
    for (size_t i = 0; i < sample->n && r == 0; i++)
        r = set_add_file(t->s, t->set, sample->first + i, NULL);
    for (size_t i = 0; i < sample->n && !name_is_of(t->s->media, members_name(m, picture)); i++)
        picture = sample->first + i;
    return r < 0 ? r : collect_partners(t, folder, members_name(m, picture));
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
static int collect_folder(struct collecting *t, uint32_t folder)
{
    const struct folder_info *f = &t->s->info[folder];
    struct sample_walk walk = {.m = t->s->m,
                               .at = f->first,
                               .end = f->last,
                               .by_class = t->by_class,
                               .media = t->set->claim->media};
    AUTO_FREE struct sample_files *sample = NULL;
    struct sample_files next;
    size_t n = 0;
    int r = 0;

    while (next_sample(&walk, &next)) {
        if (array_capacity(&sample, n, sizeof(*sample)) < 0)
            return -ENOMEM;
        sample[n++] = next;
    }
    if (n && !t->by_class)
        qsort_r(sample, n, sizeof(*sample), collect_compare_stems, (void *)(uintptr_t)t->s->m);
    for (size_t i = 0; i < n && r == 0; i++)
        r = collect_sample(t, folder, &sample[i]);
    return r;
}

static int collect_compare_folders(const void *a, const void *b, void *search)
{
    const struct search *s = search;

    return strcmp(claim_path(s, *(const uint32_t *)a), claim_path(s, *(const uint32_t *)b));
}

/* Take a folder and those in it in torchvision's order: sorted by their paths as texts. */
static int collect_tree(struct collecting *t, uint32_t folder)
{
    uint32_t end = t->s->info[folder].end, n = 0;
    AUTO_FREE uint32_t *sorted = calloc(end - folder, sizeof(*sorted));
    int r = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = folder; i < end;) {
        bool skips =
            i > folder && (t->s->info[i].is_target || is_skipped(path_base(claim_path(t->s, i))));

        if (!skips)
            sorted[n++] = i;
        i = skips ? next_folder(t->s, i) : i + 1;
    }
    qsort_r(sorted, n, sizeof(*sorted), collect_compare_folders, (void *)(uintptr_t)t->s);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = collect_folder(t, sorted[i]);
    return r;
}

/* ---- classes ---- */

/* Has a folder files but notices, or one in it? */
static bool collect_has_files(const struct search *s, uint32_t folder)
{
    for (size_t i = s->info[folder].first; i < s->info[s->info[folder].end - 1].last; i++)
        if (!name_is_notice(members_name(s->m, i)) && *members_name(s->m, i) != '.')
            return true;
    return false;
}

/* Is a folder called by a split, where such a name may be no class? */
static bool collect_is_split(const struct search *s, uint32_t folder, uint32_t top)
{
    const char *name = path_base(claim_path(s, folder)), *above = path_base(claim_path(s, top));

    return words_have_split(name, strlen(name), NULL) &&
           !words_have_split(above, strlen(above), NULL);
}

/* Is a folder a class? One with files, but no pictures, is none; an empty one is, because it has a
 * number, unless it is called by a split. */
static bool collect_is_class(const struct search *s, uint32_t folder, uint32_t top)
{
    const struct folder_info *f = &s->info[folder];

    if (!is_class_folder(s->media, claim_path(s, folder), claim_path(s, top)) || f->is_target)
        return false;
    return s->media != FILES_PICTURES || f->all[COUNT_PICTURES] ||
           (!collect_has_files(s, folder) && !collect_is_split(s, folder, top));
}

static int collect_classes(struct collecting *t, uint32_t top)
{
    struct files_claim *claim = t->set->claim;
    const struct search *s = t->s;
    int r = 0;

    for (uint32_t i = top + 1; i < s->info[top].end && r == 0; i = next_folder(s, i)) {
        char *name;

        if (!collect_is_class(s, i, top))
            continue;
        name = strdup(path_base(claim_path(s, i)));
        if (!name || array_capacity(&claim->class_name, claim->n_classes, sizeof(name)) < 0) {
            free(name);
            return -ENOMEM;
        }
        claim->class_name[claim->n_classes++] = name;
        r = collect_tree(t, i);
    }
    return r;
}

/* Classes whose pictures have the same names may be pairs: it is said. */
static int collect_note_equal(const struct search *s, struct set *set)
{
    const struct files_claim *claim = set->claim;
    uint32_t first = NO_FOLDER, second = NO_FOLDER;

    for (uint32_t i = set->top + 1; i < s->info[set->top].end; i = next_folder(s, i)) {
        if (!is_sibling(s, i))
            continue;
        second = first == NO_FOLDER ? second : second == NO_FOLDER ? i : second;
        first = first == NO_FOLDER ? i : first;
    }
    if (second == NO_FOLDER || claim->n_classes < 2 || !s->info[first].here[COUNT_PICTURES] ||
        s->info[first].here[COUNT_PICTURES] != s->info[second].here[COUNT_PICTURES])
        return 0;
    for (size_t i = s->info[first].first, k = s->info[second].first;
         i < s->info[first].last && k < s->info[second].last; i++, k++)
        if (name_stem_alone(members_name(s->m, i)) != name_stem_alone(members_name(s->m, k)) ||
            strncmp(members_name(s->m, i), members_name(s->m, k),
                    name_stem_alone(members_name(s->m, i))) != 0)
            return 0;
    return set_add_note(set,
                        "%s and %s have files with equal names: they are classes, for their names "
                        "do not say that they are pairs; an epochfs.json can say so",
                        claim->class_name[0], claim->class_name[1]);
}

int collect_set(struct search *s, uint32_t root, enum files_layout layout, uint32_t top, bool whole,
                const char *rule, struct set **ret)
{
    struct collecting t = {.s = s, .by_class = layout == LAYOUT_CLASSES};
    int r = set_begin(s, root, layout, top, whole, rule, &t.set);

    if (r < 0)
        return r;
    if (layout == LAYOUT_CLASSES)
        r = collect_classes(&t, top);
    else if (whole)
        r = collect_tree(&t, top);
    else
        r = collect_folder(&t, top);
    if (ret)
        *ret = t.set;
    if (r == 0 && layout == LAYOUT_CLASSES && s->media == FILES_PICTURES)
        r = collect_note_equal(s, t.set);
    if (r == 0)
        r = pairs_add_notes(s, t.set);
    return r < 0 ? r : set_end(t.set);
}

int collect_refused(struct search *s, uint32_t root, const char *format, ...)
{
    struct set *set;
    va_list list;
    int r = collect_set(s, root, LAYOUT_FLAT, root, true, "refused", &set);

    if (r < 0)
        return r;
    va_start(list, format);
    if (vasprintf(&set->refused, format, list) < 0)
        set->refused = NULL;
    va_end(list);
    return set->refused ? 0 : -ENOMEM;
}

/* ---- what is ignored ---- */

/* Say what is ignored below the root: how many files of which extension; and all reasons. */
static int collect_say_ignored(const struct search *s, struct set *set, struct files_claim *claim)
{
    size_t first = s->info[set->root].first, last = s->info[s->info[set->root].end - 1].last;
    size_t n = 0, first_aside = 0;
    struct extensions kinds = {.n = 0};
    AUTO_TEXT struct text text = {0}, about = {0};

    for (size_t i = first; i < last; i++) {
        if (s->claims->taken[i] != CLAIMS_ASIDE || (s->flags[i] & FILE_REASON_GIVEN))
            continue;
        first_aside = n++ ? first_aside : i;
        extensions_add(&kinds, members_name(s->m, i));
    }
    extensions_show(&kinds, true, &text);
    if (n && set_add_ignored(set, "in no sample", n, members_name(s->m, first_aside)) < 0)
        return -ENOMEM;
    if (set->ignored.len) {
        text_add(&about, "%s\"ignored\": [%s],\n", claim->about ? claim->about : "",
                 set->ignored.data);
        free(claim->about);
        claim->about = NULL;
        if (text_finish(&about, &claim->about, NULL) < 0)
            return -ENOMEM;
    }
    return text_finish(&text, &claim->aside, NULL);
}

bool stays_beside(enum files_media media, const char *name)
{
    return *name != '.' && !name_is_notice(name) &&
           (files_media[media].is_looked_into || !name_is_of(media, name));
}

/* May a file of the root itself be something else? */
static bool collect_may_stay(const struct search *s, uint32_t root, enum files_media media,
                             size_t file)
{
    const char *name = members_name(s->m, file);

    if (media != FILES_PICTURES)
        return stays_beside(media, name);
    return !*claim_path(s, root) && !name_is_picture(name) && !name_is_neutral(name) &&
           !name_is_manifest(name);
}

/* Ignore what is in folders [folder, end) and is nothing yet: it becomes nothing else. The
 * files of SOURCE itself may be something else, and those next to class folders of sounds or texts.
 */
static void collect_ignore(const struct search *s, uint32_t folder, uint32_t end,
                           const struct set *set, enum files_media media)
{
    for (size_t i = s->info[folder].first; i < s->info[end - 1].last; i++)
        if (!s->claims->taken[i] && !(s->flags[i] & FILE_LEFT) &&
            !(s->m->member[i].folder == set->root && !set->dataset &&
              collect_may_stay(s, set->root, media, i)))
            s->claims->taken[i] = CLAIMS_ASIDE;
}

/* ---- collections ---- */

/* Is there a file next to the class folders that stays what it is? */
static bool collect_has_others(const struct search *s, uint32_t root, enum files_media media)
{
    for (size_t i = s->info[root].first; i < s->info[root].last; i++)
        if (media != FILES_PICTURES && !s->claims->taken[i] &&
            stays_beside(media, members_name(s->m, i)))
            return true;
    return false;
}

int collect_display_path(const struct search *s, uint32_t folder, const char *called, char **ret)
{
    AUTO_TEXT struct text t = {0};
    uint32_t on[PATH_MAX / 2];
    unsigned n = 0;

    for (uint32_t i = folder; s->info[i].above != NO_FOLDER && n < ARRAY_LEN(on);
         i = s->info[i].above)
        if (!s->info[i].is_role)
            on[n++] = i;
    while (n)
        text_add(&t, "%s%s", t.len ? "/" : "", path_base(claim_path(s, on[--n])));
    if (called)
        text_add(&t, "%s%s", t.len ? "/" : "", called);
    return text_finish(&t, ret, NULL);
}

/* The folder that all files of a set are below. */
static uint32_t collect_above_all(const struct search *s, const struct set *set)
{
    uint32_t root = set->root;

    for (size_t i = 0; i < set->n; i++) {
        uint32_t folder = s->m->member[set->file[i]].folder;

        while (folder < root || folder >= s->info[root].end)
            root = s->info[root].above;
    }
    return root;
}

int collect_set_path(const struct search *s, const struct set *set, char **ret)
{
    const char *beside = files_media[set->claim->media].word;
    AUTO_FREE char *called = NULL;

    if (!collect_has_others(s, set->root, set->claim->media))
        return collect_display_path(s, set->root, set->called, ret);
    if (asprintf(&called, "%s%s%s", set->called ? set->called : "", set->called ? "/" : "",
                 beside) < 0) {
        called = NULL;
        return -ENOMEM;
    }
    return collect_display_path(s, set->root, called, ret);
}

/* A collection of a set is called like the folder, unless other things are shown in a folder of
 * that name. 0 or -ENOMEM. */
static int collect_name(const struct search *s, const struct set *set, struct collection *c)
{
    AUTO_FREE char *path = NULL;
    const char *base;
    int r = collect_set_path(s, set, &path);

    if (r < 0)
        return r;
    base = path_base(path);
    c->root = strdup(claim_path(s, collect_above_all(s, set)));
    c->folder = strndup(path, (size_t)(base - path) - (base > path));
    c->name = strdup(*path ? base : "all");
    c->has_beside = collect_has_others(s, set->root, set->claim->media);
    return c->root && c->folder && c->name ? 0 : -ENOMEM;
}

/* ---- all sets ---- */

/* The folder that the set is called like: where train/images is called train, files next to images
 * are in no other dataset. */
static uint32_t collect_shown_folder(const struct search *s, const struct set *set)
{
    uint32_t folder = set->root, above;

    while (s->info[folder].is_role && (above = s->info[folder].above) != NO_FOLDER &&
           s->info[above].above != NO_FOLDER)
        folder = above;
    return folder;
}

/* Ignore what lies in the folders of a set, and in none. */
static void collect_ignore_rest(const struct search *s, const struct set *set,
                                enum files_media media)
{
    collect_ignore(s, set->top, s->info[set->top].end, set, media);
    collect_ignore(s, set->root, set->root + 1, set, media);
    if (collect_shown_folder(s, set) != set->root)
        collect_ignore(s, collect_shown_folder(s, set), collect_shown_folder(s, set) + 1, set,
                       media);
    for (uint32_t i = set->root; i < s->info[set->root].end; i++)
        if (s->info[i].is_target)
            collect_ignore(s, i, i + 1, set, media);
    for (uint32_t i = set->top; i < s->info[set->top].end; i++)
        for (const struct pair *pair = s->info[i].pairs; pair; pair = pair->next)
            collect_ignore(s, pair->target, s->info[pair->target].end, set, media);
}

/* counts: the set says what is ignored in its folders; of those of one recipe the first does. */
static int collect_emit(struct search *s, struct set *set, bool counts)
{
    struct claims *claims = s->claims;
    struct files_claim *claim = set->claim;
    struct collection *c;
    int r = s->long_names ? 0 : collect_shorten_roles(set);

    if (r < 0 || array_capacity(&claims->collection, claims->n, sizeof(*c)) < 0)
        return -ENOMEM;
    c = &claims->collection[claims->n++];
    *c = (struct collection){0};
    r = collect_name(s, set, c);
    c->impl = TAKE_PTR(set->claim);
    if (r < 0)
        return r;
    c->file = TAKE_PTR(set->file);
    c->n = set->n;
    c->missing = TAKE_PTR(set->refused);
    claim->notes = TAKE_PTR(set->notes);
    if (counts) {
        collect_ignore_rest(s, set, claim->media);
        return collect_say_ignored(s, set, claim);
    }
    claim->aside = strdup("");
    return claim->aside ? 0 : -ENOMEM;
}

int collect_all_sets(struct search *s)
{
    int r = 0;

    for (size_t i = 0; i < s->n_sets && r == 0; i++)
        r = collect_emit(s, &s->set[i],
                         !i || !s->set[i].recipe || s->set[i].recipe != s->set[i - 1].recipe);
    sets_release(s);
    return r;
}

int sets_refuse_all(struct search *s, size_t from, uint32_t folder)
{
    AUTO_FREE char *why = NULL;

    for (size_t i = from; i < s->n_sets && !why; i++)
        why = TAKE_PTR(s->set[i].refused);
    if (!why)
        return 0;
    sets_drop(s, from);
    return collect_refused(s, folder, "%s", why);
}
