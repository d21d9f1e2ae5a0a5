/* Sets of samples, in their order, and the collections that they become; what is ignored. */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/extensions.h"
#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* ---- the samples of a set ---- */

/* The field of a file of a pair. */
static void collect_partner(struct set *set, const struct pair *pair, size_t file)
{
    const char *name = members_name(set->s->m, file);
    bool is_picture = name_is_picture(name);
    char ext[EXT_MOST + 1], field[2 * EXT_MOST];
    size_t n = set->n;

    name_ext(name, name_stem_alone(name), ext);
    snprintf(field, sizeof(field), "%s.%s", is_picture ? pair->words : pair->name, ext);
    set_add_file(set, file, field);
    if (set->n > n) /* unless there are too many fields */
        set->is_text[set->claim->role[n] - 1] = !is_picture;
}

/* Unless two targets of one input have the same extension, texts are called by it alone. */
static void collect_shorten_roles(struct set *set)
{
    for (size_t i = 0; i < set->claim->n_roles && !pairs_have_long_names(set); i++) {
        char *name = set->claim->role_name[i], *ext = strrchr(name, '.');

        if (set->is_text[i])
            memmove(name, ext + 1, strlen(ext));
    }
}

/* Files that pairs add to a sample: stem is that of its picture. */
static void collect_partners(struct set *set, uint32_t folder, const char *name, size_t stem)
{
    const struct search *s = set->s;

    for (uint32_t input = folder; input != NO_FOLDER; input = s->info[input].above)
        for (const struct pair *pair = s->info[input].pairs; pair; pair = pair->next) {
            size_t file = SIZE_MAX;

            while ((file = pair_partner(s, pair, input, folder, name, stem, file)) != SIZE_MAX)
                if (s->claims->taken[file] != CLAIMS_SAMPLE)
                    collect_partner(set, pair, file);
        }
}

/* The field of a sound of several microphones: "mic1.wav". */
static void collect_sound(struct set *set, size_t file)
{
    const char *name = members_name(set->s->m, file);
    char field[EXT_MOST + 1];

    name_ext(name, name_stem_alone(name) - name_mic(name), field);
    set_add_file(set, file, field);
}

static void collect_sample(struct set *set, uint32_t folder, const struct sample_files *sample)
{
    const struct search *s = set->s;
    const char *name = members_name(s->m, sample->first);
    size_t picture = sample->first;

    if (s->by_mic)
        set_begin_row(set, name, sample->stem);
    else
        set_begin_sample(set);
    set->has_companions = set->has_companions || (sample->n > 1 && !s->by_mic);
    for (size_t i = sample->first; i < sample->first + sample->n; i++)
        if (!s->by_mic)
            set_add_file(set, i, NULL);
        else if (name_is_of(s->media, members_name(s->m, i)))
            collect_sound(set, i);
    for (size_t i = 0; i < sample->n && !name_is_of(s->media, members_name(s->m, picture)); i++)
        picture = sample->first + i;
    name = members_name(s->m, picture);
    collect_partners(set, folder, name, s->by_mic ? sample->stem : name_stem_alone(name));
}

/* Add a sample to a list, or a sound to the last one that has other microphones. */
static void collect_join(struct search *s, struct sample_files **list, size_t *n,
                         struct sample_files next)
{
    struct sample_files *last = *n ? &(*list)[*n - 1] : NULL;
    const char *name = members_name(s->m, next.first);

    if (s->by_mic)
        next.stem = name_stem_alone(name) - name_mic(name);
    if (s->by_mic && last && last->stem == next.stem &&
        !memcmp(members_name(s->m, last->first), name, next.stem))
        last->n = next.first + next.n - last->first; /* others may lie between */
    else if (search_capacity(s, list, *n, sizeof(next)))
        (*list)[(*n)++] = next;
}

/* By what is before the extension: "a.jpg" before "a-b.jpg". */
static int collect_compare_stems(const void *a, const void *b, void *members)
{
    const struct sample_files *x = a, *y = b;

    return text_compare(members_name(members, x->first), x->stem, members_name(members, y->first),
                        y->stem);
}

/* The samples of a folder: of a class in the order of the files' names, otherwise sorted by their
 * keys. */
static void collect_folder(struct set *set, uint32_t folder)
{
    struct search *s = set->s;
    const bool by_class = set->claim->layout == LAYOUT_CLASSES;
    struct sample_walk walk = {.m = s->m,
                               .at = s->info[folder].first,
                               .end = s->info[folder].last,
                               .by_class = by_class,
                               .media = s->media};
    AUTO_FREE struct sample_files *sample = NULL;
    struct sample_files next;
    size_t n = 0;

    while (next_sample(&walk, &next) && !s->failed)
        collect_join(s, &sample, &n, next);
    if (n && !by_class)
        qsort_r(sample, n, sizeof(*sample), collect_compare_stems, (void *)(uintptr_t)s->m);
    for (size_t i = 0; i < n; i++)
        collect_sample(set, folder, &sample[i]);
}

static int collect_compare_folders(const void *a, const void *b, void *search)
{
    const struct search *s = search;

    return strcmp(claim_path(s, *(const uint32_t *)a), claim_path(s, *(const uint32_t *)b));
}

/* Take a folder and those in it, from one on, in torchvision's order: sorted by their paths as
 * texts. */
static void collect_tree(struct set *set, uint32_t folder, uint32_t from)
{
    struct search *s = set->s;
    AUTO_FREE uint32_t *sorted = NULL;
    uint32_t n = 0;

    for (uint32_t i = from; i < next_folder(s, folder);) {
        bool skips = i > folder && (s->info[i].is_target || is_skipped(folder_name(s, i)));

        if (!skips && search_capacity(s, &sorted, n, sizeof(*sorted)))
            sorted[n++] = i;
        i = skips ? next_folder(s, i) : i + 1;
    }
    if (n)
        qsort_r(sorted, n, sizeof(*sorted), collect_compare_folders, s);
    for (uint32_t i = 0; i < n; i++)
        collect_folder(set, sorted[i]);
}

/* ---- classes ---- */

/* Has a folder files but notices, or one in it? */
static bool collect_has_files(const struct search *s, uint32_t folder)
{
    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++)
        if (!name_is(NAME_NOTICE, members_name(s->m, i)) && *members_name(s->m, i) != '.')
            return true;
    return false;
}

/* Is a folder a class? One with files, but no pictures, is none; an empty one is, because it has a
 * number, unless it is called by a split where the folder above is not. */
static bool collect_is_class(const struct search *s, uint32_t folder, uint32_t top)
{
    const struct folder_info *f = &s->info[folder];

    if (is_skipped_folder(s->media, folder_name(s, folder)) || f->is_target)
        return false;
    return s->media != FILES_PICTURES || f->all[COUNT_PICTURES] ||
           (!collect_has_files(s, folder) &&
            (!words_name_split(folder_name(s, folder)) || words_name_split(folder_name(s, top))));
}

/* Classes of n samples each whose files have the same paths in them may be pairs: it is said. */
static void collect_note_equal(struct set *set, size_t n)
{
    const struct members *m = set->s->m;
    const uint32_t *first = set->claim->first;
    const size_t top = strlen(claim_path(set->s, set->top)), above = top + (top > 0);

    for (size_t i = 0; i < n; i++) {
        const size_t a = set->file[first[i]], b = set->file[first[n + i]];
        const char *x = members_name(m, a), *y = members_name(m, b);

        if (name_stem_alone(x) != name_stem_alone(y) || strncmp(x, y, name_stem_alone(x)) != 0 ||
            strcmp(members_folder_of(m, a) + above + strlen(set->claim->class_name[0]),
                   members_folder_of(m, b) + above + strlen(set->claim->class_name[1])) != 0)
            return;
    }
    if (n)
        text_add(&set->notes,
                 "%s and %s have files with equal names: they are classes, for their names do not "
                 "say that they are pairs; an epochfs.json can say so\n",
                 set->claim->class_name[0], set->claim->class_name[1]);
}

#define NAMES_MOST 1000 /* that are looked at */

/* Is the last word of a name one of targets, such as in 1_mask.png? */
static bool collect_is_target(const char *name)
{
    const char *at = name;
    struct name_piece piece, last = {0};

    while (next_piece(&at, name + name_stem_alone(name), &piece))
        last = isdigit((unsigned char)*piece.at) ? last : piece;
    return last.len > 1 && (words_have_target(last.at, last.len) ||
                            (last.len == 3 && !strncasecmp(last.at, "seg", 3)));
}

/* The rest of a picture's stem, if that begins with the stem of another one in its folder: nothing
 * or a word, such as of 1.png and 1_depth.png next to 1.jpg. NULL: it begins with no such stem, or
 * a number follows. */
static const char *collect_end(const struct members *m, size_t file, size_t other, size_t *ret_len)
{
    const char *name = members_name(m, file);
    size_t stem = name_stem_alone(members_name(m, other)), len = name_stem_alone(name);

    *ret_len = len - stem;
    return m->member[file].folder == m->member[other].folder && len >= stem &&
                   !strncmp(name, members_name(m, other), stem) &&
                   (len == stem ||
                    (strchr("_- ", name[stem]) && !name_is_number(name + stem + 1, len - stem - 1)))
               ? name + stem
               : NULL;
}

/* Pictures that have the stems of others, perhaps with one ending, or names of targets, are
 * samples: a note says this. */
static void collect_note_targets(struct set *set)
{
    const struct members *m = set->s->m;
    const char *first = NULL, *end = NULL;
    bool any_target = false;
    size_t end_len = 0, n = 0, all = set->s->failed ? 0 : set->claim->n_samples;

    all = min_u64(all, NAMES_MOST);
    for (size_t i = 0, other = SIZE_MAX; i < all; i++) {
        const size_t file = set_picture(set, i);
        size_t len = 0;
        const bool is_target = collect_is_target(members_name(m, file));
        const char *at = other != SIZE_MAX ? collect_end(m, file, other, &len) : NULL;

        other = at ? other : file;
        if (at && !end) {
            end = at;
            end_len = len;
        }
        any_target = any_target || is_target;
        if ((at && text_compare(at, len, end, end_len) == 0) || is_target)
            first = n++ ? first : members_name(m, file);
    }
    if (n > !any_target && 8 * n >= all && n < all)
        text_add(&set->notes,
                 "named like other pictures or their targets: %zu of %s%zu pictures, %s first. All "
                 "are samples; an epochfs.json can make them fields\n",
                 n, all < set->claim->n_samples ? "the first " : "", all, first);
}

static void collect_classes(struct set *set)
{
    size_t end[2], n = 0; /* samples up to the end of a class */

    for (EACH_FOLDER(set->s, i, set->top))
        if (collect_is_class(set->s, i, set->top)) {
            const char *name = folder_name(set->s, i);

            search_add_text(set->s, &set->claim->class_name, &set->claim->n_classes, name,
                            strlen(name));
            collect_tree(set, i, i);
            if (n < ARRAY_LEN(end))
                end[n++] = set->claim->n_samples;
        }
    if (n == 2 && end[1] == 2 * end[0] && !set->s->failed)
        collect_note_equal(set, end[0]);
}

struct set *collect_set(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                        bool whole, const char *rule)
{
    struct set *set = set_begin(s, root, layout, top, rule);

    if (!set)
        return NULL;
    if (layout == LAYOUT_CLASSES)
        collect_classes(set);
    else if (whole) /* pictures next to its folders are none of its parts */
        collect_tree(set, top, top + 1);
    else
        collect_folder(set, top);
    set_end(set);
    if (s->media == FILES_PICTURES)
        collect_note_targets(set);
    pairs_add_notes(s, set);
    return set;
}

bool collect_refused(struct search *s, uint32_t root, const char *format, ...)
{
    struct set *set = set_begin(s, root, LAYOUT_FLAT, root, "refused");
    AUTO_FREE char *why = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&why, format, list) < 0) {
        why = NULL;
        s->failed = true;
    }
    va_end(list);
    if (set) {
        collect_tree(set, root, root);
        set_end(set);
    }
    if (set && why)
        set_refuse(set, "%s", why);
    return true;
}

void sets_refuse_all(struct search *s, size_t from, uint32_t folder)
{
    AUTO_FREE char *why = NULL;

    for (size_t i = from; i < s->n_sets && !why; i++)
        why = TAKE_PTR(s->set[i].refused);
    if (why) {
        sets_drop(s, from);
        collect_refused(s, folder, "%s", why);
    }
}

/* ---- what is ignored ---- */

/* Say what is ignored below the root: how many files of which extension; and all reasons. */
static void collect_say_ignored(struct set *set, struct text *aside)
{
    const struct search *s = set->s;
    struct extensions exts = {.n = 0};
    size_t n = 0, first = 0;

    for (size_t i = s->info[set->root].first; i < folder_end(s, set->root); i++) {
        if (s->claims->taken[i] != CLAIMS_ASIDE || (s->flags[i] & FILE_REASON_GIVEN))
            continue;
        first = n++ ? first : i;
        extensions_add(&exts, members_name(s->m, i));
    }
    extensions_show(&exts, true, aside);
    if (n)
        set_add_ignored(set, "in no sample", n, members_name(s->m, first));
    if (set->ignored.len)
        json_add(&set->about, "", "ignored", "[%s]", set->ignored.data);
}

/* May a file of the root itself be something else: next to class folders of sounds or texts, or in
 * SOURCE? */
static bool collect_may_stay(const struct search *s, uint32_t root, enum files_media media,
                             size_t file)
{
    const char *name = members_name(s->m, file);

    if (media != FILES_PICTURES)
        return *name != '.' && !name_is(NAME_NOTICE, name) &&
               (files_media[media].is_looked_into || !name_is_of(media, name));
    return !*claim_path(s, root) && !name_is_picture(name) && !name_is(NAME_NEUTRAL, name) &&
           !name_is(NAME_MANIFEST, name);
}

/* Ignore what is in folders [folder, end) and is nothing yet: it becomes nothing else. The
 * files of SOURCE itself may be something else, and those next to class folders of sounds or texts.
 */
static void collect_ignore(const struct set *set, uint32_t folder, uint32_t end)
{
    const struct search *s = set->s;

    for (size_t i = s->info[folder].first; i < s->info[end - 1].last; i++)
        if (!s->claims->taken[i] && !(s->flags[i] & FILE_LEFT) &&
            !(s->m->member[i].folder == set->root && !set->dataset &&
              collect_may_stay(s, set->root, set->claim->media, i)))
            s->claims->taken[i] = CLAIMS_ASIDE;
}

/* The folder that the set is called like: where train/images is called train, files next to images
 * are in no other dataset. */
static uint32_t collect_shown_folder(const struct set *set)
{
    const struct search *s = set->s;
    uint32_t folder = set->root, above;

    while (s->info[folder].is_role && (above = s->info[folder].above) != NO_FOLDER &&
           s->info[above].above != NO_FOLDER)
        folder = above;
    return folder;
}

/* Ignore what lies in the folders of a set, and in none. */
static void collect_ignore_rest(const struct set *set)
{
    const struct search *s = set->s;
    uint32_t shown = collect_shown_folder(set);

    collect_ignore(set, set->top, next_folder(s, set->top));
    collect_ignore(set, set->root, set->root + 1);
    collect_ignore(set, shown, shown + 1);
    for (uint32_t i = set->root; i < next_folder(s, set->root); i++)
        if (s->info[i].is_target)
            collect_ignore(set, i, i + 1);
    for (uint32_t i = set->top; i < next_folder(s, set->top); i++)
        for (const struct pair *pair = s->info[i].pairs; pair; pair = pair->next)
            collect_ignore(set, pair->target, next_folder(s, pair->target));
}

/* ---- collections ---- */

/* Is there a file next to the class folders that stays what it is? */
static bool collect_has_others(const struct search *s, const struct set *set)
{
    const enum files_media media = set->claim->media;

    for (size_t i = s->info[set->root].first; i < s->info[set->root].last; i++)
        if (media != FILES_PICTURES && !s->claims->taken[i] &&
            collect_may_stay(s, set->root, media, i))
            return true;
    return false;
}

char *collect_display_path(struct search *s, uint32_t folder, const char *called)
{
    AUTO_TEXT struct text t = {0};
    uint32_t on[PATH_MAX / 2];
    unsigned n = 0;
    char *ret = NULL;

    for (uint32_t i = folder; s->info[i].above != NO_FOLDER && n < ARRAY_LEN(on);
         i = s->info[i].above)
        if (!s->info[i].is_role)
            on[n++] = i;
    while (n)
        text_add(&t, "%s%s", t.len ? "/" : "", folder_name(s, on[--n]));
    if (called)
        text_add(&t, "%s%s", t.len ? "/" : "", called);
    if (text_finish(&t, &ret, NULL) < 0)
        s->failed = true;
    return ret;
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

char *collect_set_path(struct search *s, const struct set *set)
{
    AUTO_TEXT struct text called = {0};

    text_add(&called, "%s", set->called ? set->called : "");
    if (collect_has_others(s, set))
        text_add(&called, "%s%s", called.len ? "/" : "", files_media[set->claim->media].word);
    s->failed = s->failed || called.failed;
    return collect_display_path(s, set->root, called.len ? called.data : NULL);
}

/* counts: the set says what is ignored in its folders; of those of one recipe the first does. A
 * collection of a set is called like the folder, unless other things are shown in a folder of that
 * name. */
static void collect_emit(struct search *s, struct set *set, bool counts)
{
    struct claims *claims = s->claims;
    struct files_claim *claim = set->claim;
    struct collection c = {.n = set->n, .has_beside = collect_has_others(s, set)};
    AUTO_FREE char *path = collect_set_path(s, set);
    AUTO_TEXT struct text aside = {0};
    const char *base = path ? path_base(path) : "";

    if (!path || !search_capacity(s, &claims->collection, claims->n, sizeof(c)))
        return;
    collect_shorten_roles(set);
    if (counts) {
        collect_ignore_rest(set);
        collect_say_ignored(set, &aside);
    }
    c.root = strdup(claim_path(s, collect_above_all(s, set)));
    c.folder = strndup(path, (size_t)(base - path) - (base > path));
    c.name = strdup(*path ? base : "all");
    c.impl = TAKE_PTR(set->claim);
    c.file = TAKE_PTR(set->file);
    c.missing = TAKE_PTR(set->refused);
    if (!c.root || !c.folder || !c.name || set->ignored.failed ||
        text_finish(&set->notes, &claim->notes, NULL) < 0 ||
        text_finish(&set->about, &claim->about, NULL) < 0 ||
        text_finish(&aside, &claim->aside, NULL) < 0)
        s->failed = true;
    claims->collection[claims->n++] = c;
}

void collect_all_sets(struct search *s)
{
    for (size_t i = 0; i < s->n_sets && !s->failed; i++)
        collect_emit(s, &s->set[i],
                     !i || !s->set[i].recipe || s->set[i].recipe != s->set[i - 1].recipe);
    sets_release(s);
}
