/* What folders with pictures are to each other, the first rule that holds:
 *
 *   parts    their names differ in a number alone, and say so (images_1, part-2): one dataset.
 *   splits   all of them, or two, are called by parts of a dataset (train, val): a dataset each.
 *   scenes   in each of them, the same folders are a pair: one dataset.
 *   one      there is one, which has the pictures itself: a dataset called like the folder above.
 *   classes  two or more have pictures themselves; or folders in them do, which all differ.
 *   datasets the same folders recur in each of them: a dataset each.
 *   flat     the folder has pictures itself: a dataset.
 *
 * Where two readings are as good, the folder is refused: it is never guessed. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* Folders in a folder that have pictures, and are no target of a pair. */
struct siblings_of {
    uint32_t *folder; /* [n] */
    size_t n, direct; /* and those that have pictures themselves */
};

static void siblings_of_release(struct siblings_of *siblings)
{
    free(siblings->folder);
}
#define AUTO_SIBLINGS_OF AUTO(siblings_of_release)

static int folders_list(const struct search *s, uint32_t folder, struct siblings_of *ret)
{
    *ret = (struct siblings_of){0};
    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i)) {
        if (!is_sibling(s, i))
            continue;
        if (array_capacity(&ret->folder, ret->n, sizeof(*ret->folder)) < 0)
            return -ENOMEM;
        ret->folder[ret->n++] = i;
        ret->direct += s->info[i].here[COUNT_PICTURES] > 0;
    }
    return 0;
}

static const char *folders_name(const struct search *s, uint32_t folder)
{
    return path_base(claim_path(s, folder));
}

/* "cat, dog, ..." */
static void folders_add_names(const struct search *s, const struct siblings_of *all, struct text *t)
{
    for (size_t i = 0; i < all->n && i < 3; i++)
        text_add(t, "%s%s", i ? ", " : "", folders_name(s, all->folder[i]));
    if (all->n > 3)
        text_add(t, ", ...");
}

/* ---- parts ---- */

static bool folders_is_beside(const struct search *s, uint32_t folder, const char *end)
{
    const char *path = claim_path(s, folder), *name = path_base(path);
    AUTO_FREE char *file = NULL;

    return asprintf(&file, "%s%s", name, end) >= 0 &&
           members_lookup(s->m, path, (size_t)(name - path) - (name > path), file) < s->m->n;
}

static bool folders_is_number(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)name[i]))
            return false;
    return len > 0 && len < 19;
}

/* Are all names numbers that run on from each folder to the next? */
static bool folders_run_on(const struct search *s, const struct siblings_of *all)
{
    uint64_t most = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct folder_info *f = &s->info[all->folder[i]];
        uint64_t before = most;

        if (!folders_is_number(folders_name(s, all->folder[i]),
                               strlen(folders_name(s, all->folder[i]))))
            return false;
        for (size_t k = f->first; k < f->last; k++) {
            const char *name = members_name(s->m, k);
            uint64_t number;

            if (!name_is_of(s->media, name))
                continue;
            if (!folders_is_number(name, name_stem_alone(name)))
                return false;
            number = strtoull(name, NULL, 10);
            if (i && number <= before)
                return false;
            most = number > most ? number : most;
        }
    }
    return all->n > 1 && all->direct == all->n;
}

static bool folders_are_parts(const struct search *s, const struct siblings_of *all)
{
    const char *first = all->n ? folders_name(s, all->folder[0]) : "";
    bool named = words_have_pictures(first), listed = true;
    const char *at = first;
    struct name_piece piece;

    while (next_piece(&at, first + strlen(first), &piece))
        named = named || (piece.len == 4 && !strncasecmp(piece.at, "part", 4)) ||
                (piece.len == 5 && !strncasecmp(piece.at, "shard", 5));
    for (size_t i = 0; i < all->n; i++) {
        listed = listed && (folders_is_beside(s, all->folder[i], ".parquet") ||
                            folders_is_beside(s, all->folder[i], "_stats.json"));
        named = named && (!i || words_differ_in_number(first, folders_name(s, all->folder[i])));
    }
    return (all->n > 1 && named) || (all->n && listed) || folders_run_on(s, all);
}

/* ---- splits ---- */

enum folders_split { SPLIT_NONE, SPLIT_ALL, SPLIT_DOUBTFUL };

static enum folders_split folders_judge_splits(const struct search *s,
                                               const struct siblings_of *all, bool in_split)
{
    struct name_piece first = {0}, piece;
    size_t n = 0, exact = 0;
    bool differ = false;

    for (size_t i = 0; i < all->n; i++) {
        const char *name = folders_name(s, all->folder[i]);

        if (!words_have_split(name, strlen(name), &piece))
            continue;
        differ = differ || (n && !words_same_split(first, piece));
        first = n++ ? first : piece;
        exact += words_are_split(name);
    }
    if (n && n == all->n)
        return SPLIT_ALL;
    if (in_split)
        return SPLIT_NONE;
    if (differ)
        return SPLIT_ALL;
    if (exact && all->n > 2 && all->direct == all->n)
        return SPLIT_DOUBTFUL;
    return exact ? SPLIT_ALL : SPLIT_NONE;
}

/* ---- classes ---- */

enum folders_deeper { DEEPER_CLASSES, DEEPER_DATASETS, DEEPER_LETTERS, DEEPER_MIXED };

/* Has a folder one of that name, with pictures? */
static bool folders_has_named(const struct search *s, uint32_t folder, const char *name)
{
    AUTO_FREE char *path = NULL;
    const char *above = claim_path(s, folder);
    int len = asprintf(&path, "%s%s%s", above, *above ? "/" : "", name);
    uint32_t found = len < 0 ? NO_FOLDER : folder_of_path(s, path, (size_t)len);

    return found != NO_FOLDER && is_sibling(s, found);
}

static bool folders_is_letter(const struct search *s, uint32_t folder)
{
    const char *letter = folders_name(s, folder);

    if (strlen(letter) != 1 || !isalpha((unsigned char)*letter))
        return false;
    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i))
        if (is_sibling(s, i) &&
            tolower((unsigned char)*folders_name(s, i)) != tolower((unsigned char)*letter))
            return false;
    return true;
}

#define COMPARED_MOST 64 /* folders whose folders are compared with those of the others */

/* Pictures are deeper only: do names recur in the folders? */
static enum folders_deeper folders_judge_deeper(const struct search *s,
                                                const struct siblings_of *all)
{
    size_t letters = 0, recur = 0, differ = 0;
    size_t n = all->n < COMPARED_MOST ? all->n : COMPARED_MOST;

    for (size_t i = 0; i < all->n; i++)
        letters += folders_is_letter(s, all->folder[i]);
    if (letters == all->n)
        return DEEPER_LETTERS;
    for (size_t i = 0; i < n; i++) {
        uint64_t same = 0, folders = 0;

        for (uint32_t k = all->folder[i] + 1;
             k < s->info[all->folder[i]].end && folders < COMPARED_MOST; k = next_folder(s, k)) {
            bool found = false;

            if (!is_sibling(s, k))
                continue;
            folders++;
            for (size_t j = 0; j < n && !found; j++)
                found = j != i && folders_has_named(s, all->folder[j], folders_name(s, k));
            same += found;
        }
        recur += folders && 2 * same >= folders;
        differ += !same;
    }
    return recur == n ? DEEPER_DATASETS : differ == n ? DEEPER_CLASSES : DEEPER_MIXED;
}

/* Is one of the folders a copy of all: does it have the others' names in it? */
static bool folders_is_copy(const struct search *s, uint32_t above, uint32_t folder)
{
    size_t n = 0;

    if (s->info[folder].here[COUNT_PICTURES])
        return false;
    for (uint32_t k = folder + 1; k < s->info[folder].end; k = next_folder(s, k)) {
        if (!is_sibling(s, k))
            continue;
        if (!strcmp(folders_name(s, k), folders_name(s, folder)) ||
            !folders_has_named(s, above, folders_name(s, k)))
            return false;
        n++;
    }
    return n > 1;
}

/* Does each folder have one folder with pictures, all of one name? */
static bool folders_pass_over(const struct search *s, const struct siblings_of *all)
{
    const char *name = NULL;

    for (size_t i = 0; i < all->n; i++) {
        AUTO_SIBLINGS_OF struct siblings_of below = {0};

        if (s->info[all->folder[i]].here[COUNT_PICTURES] ||
            folders_list(s, all->folder[i], &below) < 0 || below.n != 1 || below.direct != 1 ||
            (name && strcmp(name, folders_name(s, below.folder[0])) != 0))
            return false;
        name = folders_name(s, below.folder[0]);
    }
    return all->n > 1;
}

/* ---- applying ---- */

static int folders_refuse(struct search *s, uint32_t folder, const struct siblings_of *all,
                          const char *first, const char *second)
{
    const char *path = claim_path(s, folder);
    AUTO_TEXT struct text names = {0};

    folders_add_names(s, all, &names);
    return names.failed
               ? -ENOMEM
               : collect_refused(s, folder,
                                 "%s%sfolders %s: expected one reading, got two: %s, or %s. Say in "
                                 "epochfs.json which it is",
                                 path, *path ? ": " : "", names.data, first, second);
}

static int folders_each(struct search *s, const struct siblings_of *all, struct claim_above above)
{
    int r = 0;

    for (size_t i = 0; i < all->n && r == 0; i++)
        r = claim_search_folder(s, all->folder[i], above);
    return r;
}

static int folders_make(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                        bool whole, struct claim_above above, const char *rule,
                        const struct siblings_of *all)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s%s%s", above.rule ? above.rule : "", above.rule ? ", " : "", rule);
    if (all->n) {
        text_add(&t, " (");
        folders_add_names(s, all, &t);
        text_add(&t, ")");
    }
    return t.failed ? -ENOMEM : collect_set(s, root, layout, top, whole, t.data, NULL);
}

static int folders_apply_splits(struct search *s, uint32_t folder, const struct siblings_of *all,
                                struct claim_above above)
{
    AUTO_TEXT struct text t = {0};
    size_t before = s->n_sets;
    int r;

    text_add(&t, "splits by name (");
    folders_add_names(s, all, &t);
    text_add(&t, ")");
    if (t.failed)
        return -ENOMEM;
    above.rule = t.data;
    r = folders_each(s, all, above);
    return r < 0 ? r : sets_refuse_all(s, before, folder);
}

/* Are all folders called by pictures: images_background, images_evaluation? Such are no classes. */
static bool folders_have_pictures(const struct search *s, const struct siblings_of *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (!words_have_pictures(folders_name(s, all->folder[i])))
            return false;
    return true;
}

static int folders_apply_classes(struct search *s, uint32_t folder, const struct siblings_of *all,
                                 struct claim_above above)
{
    if (!all->direct && folders_have_pictures(s, all))
        return folders_each(s, all, above);
    for (size_t i = 0; i < all->n; i++)
        if (all->n > 2 && folders_is_copy(s, folder, all->folder[i])) {
            int r = claim_search_folder(s, all->folder[i], above);

            if (r < 0)
                return r;
            s->info[all->folder[i]].is_target = true; /* a dataset of its own */
            return folders_apply(s, folder, above);
        }
    if (2 * all->direct >= all->n)
        return folders_make(s, folder, LAYOUT_CLASSES, folder, true, above, "classes by folder",
                            all);
    if (folders_pass_over(s, all))
        return folders_make(s, folder, LAYOUT_CLASSES, folder, true, above,
                            "classes by folder, whose pictures are one folder deeper", all);
    switch (folders_judge_deeper(s, all)) {
    case DEEPER_CLASSES:
        return folders_make(s, folder, LAYOUT_CLASSES, folder, true, above,
                            "classes by folder, for the folders in them differ", all);
    case DEEPER_DATASETS:
        return folders_each(s, all, above);
    case DEEPER_LETTERS:
        return folders_refuse(s, folder, all, "classes that begin with these letters are in them",
                              "they are the classes");
    default:
        return folders_refuse(s, folder, all, "they are classes",
                              "they are datasets with the folders in them as classes");
    }
}

/* A folder that has pictures itself is flat if there are more than in the folders in it, or none
 * are. Not next to data of another format. */
static bool folders_is_flat(const struct search *s, uint32_t folder, const struct siblings_of *all)
{
    const struct folder_info *f = &s->info[folder];
    uint64_t below = 0;

    for (size_t i = 0; i < all->n; i++)
        below += s->info[all->folder[i]].all[COUNT_PICTURES];
    return f->here[COUNT_PICTURES] && below < f->here[COUNT_PICTURES] && !f->foreign &&
           10 * f->here[COUNT_DOUBT] <= f->here[COUNT_USED] &&
           f->here[COUNT_OTHERS] <= f->here[COUNT_USED];
}

/* Does one of the folders say itself what its samples are, or is it of another format? */
static bool folders_are_own(const struct search *s, const struct siblings_of *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct folder_info *f = &s->info[all->folder[i]];

        if (f->kaldi || f->all[COUNT_TABLES] || f->all[COUNT_MANIFESTS])
            return true;
    }
    return false;
}

/* Is nothing but lists and notices next to a folder, or in folders next to it? */
static bool folders_is_alone(const struct search *s, uint32_t folder, uint32_t only)
{
    const struct folder_info *f = &s->info[folder];
    uint64_t expected = s->info[only].all[COUNT_DOUBT] + f->here[COUNT_PICTURES];

    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i))
        expected += s->info[i].is_target ? s->info[i].all[COUNT_DOUBT] : 0;
    return !f->foreign && f->all[COUNT_DOUBT] <= expected;
}

/* One dataset of all scenes. Folders of them that are in no pair are ignored. */
static int folders_apply_scenes(struct search *s, uint32_t folder, const struct siblings_of *all,
                                struct claim_above above)
{
    const char *ignored = NULL;
    const size_t before = s->n_sets;
    int r;

    for (size_t i = 0; i < all->n; i++)
        for (uint32_t k = all->folder[i] + 1; k < s->info[all->folder[i]].end;
             k = next_folder(s, k))
            if (is_sibling(s, k) && !s->info[k].pairs) {
                ignored = folders_name(s, k);
                pairs_ignore(s, k);
            }
    r = folders_make(s, folder, LAYOUT_FLAT, folder, true, above, "scenes with the same pairs",
                     all);
    if (r == 0 && ignored && s->n_sets > before)
        r = set_add_note(&s->set[before],
                         "%s: ignored in all scenes, because it is in no pair; an epochfs.json can "
                         "say more",
                         ignored);
    return r;
}

/* The one folder with what belongs to its pictures, if it is called by an input. NO_FOLDER. */
static uint32_t folders_find_input(const struct search *s, const struct siblings_of *all)
{
    uint32_t input = NO_FOLDER;

    for (size_t i = 0; i < all->n; i++)
        if (s->info[all->folder[i]].pairs) {
            if (input != NO_FOLDER || !words_have_input(folders_name(s, all->folder[i])))
                return NO_FOLDER;
            input = all->folder[i];
        }
    return input;
}

/* Have two folders pictures with the same names? */
static bool folders_have_same_names(const struct search *s, uint32_t a, uint32_t b)
{
    for (size_t i = s->info[b].first; i < s->info[b].last; i++) {
        const char *name = members_name(s->m, i);

        if (name_is_picture(name) && !pairs_have_picture(s, a, name, name_stem_alone(name)))
            return false;
    }
    return s->info[b].here[COUNT_PICTURES] > 0;
}

/* low and high are a pair, but there is medium. */
static int folders_refuse_third(struct search *s, uint32_t folder, uint32_t input, uint32_t third)
{
    return collect_refused(
        s, folder,
        "folders %s, %s, %s: expected one reading, got two: the first two are pictures and their "
        "targets, or all of them are classes. Say in epochfs.json which it is",
        claim_path(s, input), folders_name(s, s->info[input].pairs->target),
        folders_name(s, third));
}

/* Next to pictures with what belongs to them, other folders are no classes: a split, or one that is
 * called by pictures, is a dataset of its own, and the others, such as a second mask with names of
 * its own, are ignored. */
static int folders_apply_input(struct search *s, uint32_t folder, uint32_t input,
                               const struct siblings_of *all, struct claim_above above)
{
    AUTO_TEXT struct text ignored = {0};
    size_t before;
    int r = 0;

    for (size_t i = 0; i < all->n && r == 0; i++) {
        const char *name = folders_name(s, all->folder[i]);

        if (all->folder[i] == input)
            continue;
        if (words_have_input(name) || words_have_split(name, strlen(name), NULL)) {
            s->info[input].is_role = false;
            r = claim_search_folder(s, all->folder[i], above);
            s->info[all->folder[i]].is_target = true; /* a dataset of its own */
            continue;
        }
        if (!words_have_pictures(folders_name(s, input)) &&
            folders_have_same_names(s, input, all->folder[i]))
            return folders_refuse_third(s, folder, input, all->folder[i]);
        text_add(&ignored, "%s%s", ignored.len ? ", " : "", name);
        pairs_ignore(s, all->folder[i]);
    }
    before = s->n_sets;
    if (r == 0)
        r = ignored.failed ? -ENOMEM : folders_apply(s, folder, above);
    if (r == 0 && ignored.len && s->n_sets > before)
        r = set_add_note(&s->set[before],
                         "%s: ignored, because its files are not called like the pictures of %s; "
                         "an epochfs.json can say more",
                         ignored.data, folders_name(s, input));
    return r;
}

int folders_apply(struct search *s, uint32_t folder, struct claim_above above)
{
    AUTO_SIBLINGS_OF struct siblings_of all = {0};
    uint32_t input;
    int r = folders_list(s, folder, &all);

    if (r == 0 && all.direct)
        r = search_classes_for_manifests(s, folder);
    if (r < 0)
        return r;
    if (folders_is_flat(s, folder, &all))
        return folders_make(s, folder, LAYOUT_FLAT, folder, false, above, "one folder",
                            &(struct siblings_of){0});
    if (folders_are_own(s, &all))
        return folders_each(s, &all, above);
    if (folders_are_parts(s, &all))
        return folders_make(s, folder, LAYOUT_FLAT, folder, true, above, "parts of one dataset",
                            &all);
    switch (folders_judge_splits(s, &all, above.in_split)) {
    case SPLIT_ALL:
        return folders_apply_splits(s, folder, &all, above);
    case SPLIT_DOUBTFUL:
        return folders_refuse(s, folder, &all,
                              "one of them is a part of a dataset, as its name says",
                              "all of them are classes");
    default:
        break;
    }
    if (pairs_are_scenes(s, folder))
        return folders_apply_scenes(s, folder, &all, above);
    input = folders_find_input(s, &all);
    if (input != NO_FOLDER && all.n > 1)
        return folders_apply_input(s, folder, input, &all, above);
    if (all.n == 1 && folders_is_alone(s, folder, all.folder[0]) &&
        s->info[all.folder[0]].here[COUNT_PICTURES] &&
        s->info[all.folder[0]].here[COUNT_PICTURES] == s->info[all.folder[0]].all[COUNT_PICTURES])
        return folders_make(s, folder, LAYOUT_FLAT, all.folder[0], false, above, "one folder",
                            &all);
    if (all.n < 2) {
        r = claim_note_unmet(s, folder, above.project);
        return r < 0 ? r : folders_each(s, &all, above);
    }
    return folders_apply_classes(s, folder, &all, above);
}
