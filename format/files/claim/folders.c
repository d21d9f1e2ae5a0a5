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
#include <string.h>

#include "base/text.h"
#include "format/files/claim/siblings.h"
#include "format/files/claim/words.h"

/* "cat, dog, ..." between two texts */
static void siblings_add_names(struct search *s, const struct siblings *all, const char *before,
                               const char *after, struct text *t)
{
    unsigned n = 0;

    text_add(t, "%s", before);
    for (EACH_SIBLING(s, i, all->folder))
        if (n++ < 3)
            text_add(t, "%s%s", n > 1 ? ", " : "", folder_name(s, i));
    text_add(t, "%s%s", n > 3 ? ", ..." : "", after);
    s->failed = s->failed || t->failed;
}

/* ---- parts ---- */

static bool folders_is_beside(const struct search *s, uint32_t folder, const char *end)
{
    const char *path = claim_path(s, folder), *name = folder_name(s, folder);
    AUTO_FREE char *file = NULL;

    return text_print(&file, "%s%s", name, end) == 0 &&
           members_lookup(s->m, path, (size_t)(name - path) - (name > path), file) < s->m->n;
}

/* Does each picture's name begin with the names of its folders, two or more, each of one or two
 * letters, such as 0/1/01ab.jpg? Very many pictures are kept this way, by their hashes. */
static bool folders_are_prefixes(const struct search *s, uint32_t folder)
{
    const size_t above = strlen(claim_path(s, folder));

    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++) {
        const char *name = members_name(s->m, i), *at = members_folder_of(s->m, i) + above;
        unsigned n = 0;

        if (*name == '.' || !name_is_picture(name))
            continue;
        for (size_t len; *(at += *at == '/'); at += len, name += len, n++) {
            len = strcspn(at, "/");
            if (len > 2 || strncmp(name, at, len) != 0)
                return false;
        }
        if (n < 2)
            return false;
    }
    return true;
}

static bool folders_are_parts(const struct search *s, const struct siblings *all)
{
    static const char *const words[] = {"part", "shard", "batch", "chunk", "patch", "subset", NULL};
    const char *first = all->n ? folder_name(s, all->first) : "";
    bool named = words_have_pictures(first) || words_have(first, strlen(first), words);
    bool listed = true, paired = all->n && s->info[all->first].pairs;

    for (EACH_SIBLING(s, i, all->folder)) {
        listed = listed &&
                 (folders_is_beside(s, i, ".parquet") || folders_is_beside(s, i, "_stats.json"));
        named = named && paired == (s->info[i].pairs != NULL) &&
                (i == all->first || words_differ_in_number(first, folder_name(s, i)) ||
                 words_are_numbered(first, folder_name(s, i)));
    }
    return (all->n > 1 && named) || (all->n && listed) ||
           numbers_run_on(s, all->folder, COUNT_PICTURES) ||
           (all->n > 1 && !all->direct && folders_are_prefixes(s, all->folder));
}

/* ---- splits ---- */

enum folders_split { SPLIT_NONE, SPLIT_ALL, SPLIT_DOUBTFUL };

static enum folders_split folders_judge_splits(const struct search *s, const struct siblings *all)
{
    size_t n = 0, exact = 0;

    for (EACH_SIBLING(s, i, all->folder)) {
        const char *name = folder_name(s, i);

        n += words_name_split(name);
        exact += words_are_split(name);
    }
    if (n && (n == all->n || all->named == all->n)) /* images and test_images are no classes */
        return SPLIT_ALL;
    if (words_name_one_split(folder_name(s, all->folder)))
        return SPLIT_NONE;
    if (siblings_have_two_splits(s, all->folder))
        return SPLIT_ALL;
    if (exact && all->n > 2 && all->direct == all->n)
        return SPLIT_DOUBTFUL;
    return exact ? SPLIT_ALL : SPLIT_NONE;
}

/* ---- applying ---- */

static void folders_refuse(struct search *s, const struct siblings *all, const char *first,
                           const char *second)
{
    const char *path = claim_path(s, all->folder);
    AUTO_TEXT struct text names = {0};

    siblings_add_names(s, all, "folders ", "", &names);
    collect_refused(s, all->folder,
                    "%s%s%s: expected one reading, got two: %s, or %s. Say in epochfs.json which "
                    "it is",
                    path, *path ? ": " : "", names.data ? names.data : "", first, second);
}

static void folders_refuse_letters(struct search *s, const struct siblings *all)
{
    const struct siblings below = siblings_of(s, all->first);
    AUTO_TEXT struct text t = {0};

    siblings_add_names(s, &below, "classes that begin with these letters are in them (", ")", &t);
    folders_refuse(s, all, t.data ? t.data : "", "they are the classes");
}

static void folders_each(struct search *s, const struct siblings *all, struct claim_above above)
{
    for (EACH_SIBLING(s, i, all->folder))
        claim_search_folder(s, i, above);
}

/* A folder next to others is a dataset of its own. */
static void folders_part(struct search *s, uint32_t folder, struct claim_above above)
{
    claim_search_folder(s, folder, above);
    s->info[folder].is_target = true;
}

/* all: those whose names are said; NULL: none. */
static void folders_make(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                         bool whole, struct claim_above above, const char *rule,
                         const struct siblings *all)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s%s%s", above.rule ? above.rule : "", above.rule ? ", " : "", rule);
    if (all)
        siblings_add_names(s, all, " (", ")", &t);
    s->failed = s->failed || t.failed;
    collect_set(s, root, layout, top, whole, t.data ? t.data : "");
}

static void folders_apply_splits(struct search *s, const struct siblings *all,
                                 struct claim_above above)
{
    AUTO_TEXT struct text t = {0};
    size_t before = s->n_sets;

    siblings_add_names(s, all, "splits by name (", ")", &t);
    above.rule = t.data;
    folders_each(s, all, above);
    sets_refuse_all(s, before, all->folder);
}

static void folders_apply_classes(struct search *s, const struct siblings *all,
                                  struct claim_above above)
{
    const char *rule = "classes by folder, for the folders in them differ";
    enum siblings_deeper deeper = DEEPER_CLASSES;
    uint32_t folder = all->folder;

    if (!all->direct && all->named == all->n) { /* images_background, images_evaluation */
        folders_each(s, all, above);
        return;
    }
    for (EACH_SIBLING(s, i, folder))
        if (all->n > 2 && folder_is_copy(s, i, COUNT_PICTURES)) {
            const size_t copy = s->n_sets;

            folders_part(s, i, above);
            if (s->n_sets > copy)
                text_add(&s->set[copy].notes,
                         "%s may be a copy of the folders next to it, because it has their names "
                         "in it; an epochfs.json can ignore it\n",
                         claim_path(s, i));
            folders_apply(s, folder, above);
            return;
        }
    if (2 * all->direct >= all->n)
        rule = "classes by folder";
    else if (siblings_only(s, folder, true))
        rule = "classes by folder, whose pictures are one folder deeper";
    else
        deeper = siblings_judge_deeper(s, all);
    if (deeper == DEEPER_CLASSES && siblings_have_roles(s, all)) {
        folders_refuse(s, all, "they are classes",
                       "some are datasets, or have what belongs to the pictures of others");
        return;
    }
    switch (deeper) {
    case DEEPER_CLASSES:
        folders_make(s, folder, LAYOUT_CLASSES, folder, true, above, rule, all);
        break;
    case DEEPER_DATASETS:
        folders_each(s, all, above);
        break;
    case DEEPER_LETTERS:
        folders_refuse_letters(s, all);
        break;
    default:
        folders_refuse(s, all, "they are classes",
                       "they are datasets with the folders in them as classes");
    }
}

#define OTHERS_MOST 2 /* of a split, which may be a script or a note */

/* A folder that has pictures itself is flat if there are more than in the folders in it, or none
 * are. Not next to data of another format. */
static bool folders_is_flat(const struct search *s, const struct siblings *all, bool is_split)
{
    const struct folder_info *f = &s->info[all->folder];
    uint64_t below = 0;

    for (EACH_SIBLING(s, i, all->folder))
        below += s->info[i].all[COUNT_PICTURES];
    return f->here[COUNT_PICTURES] && below + (all->n > 1) <= f->here[COUNT_PICTURES] &&
           !f->foreign &&
           ((is_split && f->here[COUNT_DOUBT] <= OTHERS_MOST) ||
            10 * f->here[COUNT_DOUBT] <= f->here[COUNT_USED]) &&
           f->here[COUNT_OTHERS] <= f->here[COUNT_USED];
}

/* Does one of the folders say itself what its samples are, as VOC2007 and VOC2012 do, or is it of
 * another format? */
static bool folders_are_own(const struct search *s, const struct siblings *all)
{
    for (EACH_SIBLING(s, i, all->folder)) {
        const struct folder_info *f = &s->info[i];

        if (f->kaldi || f->all[COUNT_TABLES] || f->all[COUNT_MANIFESTS] ||
            folder_below(s, i, "ImageSets", strlen("ImageSets")) != NO_FOLDER)
            return true;
    }
    return false;
}

/* Is there one folder, which has the pictures itself, and nothing but lists and notices next to it,
 * or in folders next to it? */
static bool folders_is_alone(const struct search *s, const struct siblings *all)
{
    const struct folder_info *f = &s->info[all->folder], *only;
    uint64_t expected;

    if (all->n != 1)
        return false;
    only = &s->info[all->first];
    expected = only->all[COUNT_DOUBT] + f->here[COUNT_PICTURES];
    for (EACH_FOLDER(s, i, all->folder))
        expected += s->info[i].is_target ? s->info[i].all[COUNT_DOUBT] : 0;
    return !f->foreign && f->all[COUNT_DOUBT] <= expected && only->here[COUNT_PICTURES] &&
           only->here[COUNT_PICTURES] == only->all[COUNT_PICTURES];
}

/* One dataset of all folders. */
static void folders_make_joined(struct search *s, const struct siblings *all,
                                struct claim_above above, const char *rule, const char *why)
{
    const size_t before = s->n_sets;

    folders_make(s, all->folder, LAYOUT_FLAT, all->folder, true, above, rule, all);
    if (s->n_sets > before)
        text_add(&s->set[before].notes,
                 "the folders are no label: %s; an epochfs.json can make them classes\n", why);
}

/* One dataset of all scenes. Folders of them that are in no pair are ignored. */
static void folders_apply_scenes(struct search *s, const struct siblings *all,
                                 struct claim_above above)
{
    const char *ignored = NULL;
    const size_t before = s->n_sets;

    for (EACH_SIBLING(s, i, all->folder))
        for (EACH_SIBLING(s, k, i))
            if (!s->info[k].pairs) {
                ignored = folder_name(s, k);
                pairs_ignore(s, k);
            }
    folders_make_joined(s, all, above, "scenes with the same pairs", "each has the same pair");
    if (ignored && s->n_sets > before)
        text_add(&s->set[before].notes,
                 "%s: ignored in all scenes, because it is in no pair; an epochfs.json can say "
                 "more\n",
                 ignored);
}

/* The one folder with what belongs to its pictures, if it is called by an input. NO_FOLDER. */
static uint32_t folders_find_input(const struct search *s, const struct siblings *all)
{
    uint32_t input = NO_FOLDER;

    for (EACH_SIBLING(s, i, all->folder))
        if (s->info[i].pairs) {
            if (input != NO_FOLDER || !words_have_input(folder_name(s, i)))
                return NO_FOLDER;
            input = i;
        }
    return input;
}

/* Next to pictures with what belongs to them, other folders are no classes: a split, or one that is
 * called by pictures, is a dataset of its own, and the others, such as a second mask with names of
 * its own, are ignored. low and high are a pair, but if there is medium, it is refused. */
static void folders_apply_input(struct search *s, uint32_t input, const struct siblings *all,
                                struct claim_above above)
{
    AUTO_TEXT struct text ignored = {0};
    size_t before;

    for (EACH_SIBLING(s, i, all->folder)) {
        const char *name = folder_name(s, i);

        if (i == input)
            continue;
        if (words_have_input(name) || words_name_split(name)) {
            s->info[input].is_role = false;
            folders_part(s, i, above);
            continue;
        }
        if (!words_have_pictures(folder_name(s, input)) &&
            (pairs_belong(s, input, i) || siblings_have_same_names(s, input, i))) {
            collect_refused(s, all->folder,
                            "folders %s, %s, %s: expected one reading, got two: the first two are "
                            "pictures and their targets, or all of them are classes. Say in "
                            "epochfs.json which it is",
                            claim_path(s, input), folder_name(s, s->info[input].pairs->target),
                            name);
            return;
        }
        text_add(&ignored, "%s%s", ignored.len ? ", " : "", name);
        pairs_ignore(s, i);
    }
    before = s->n_sets;
    s->failed = s->failed || ignored.failed;
    folders_apply(s, all->folder, above);
    if (ignored.len && s->n_sets > before)
        text_add(
            &s->set[before].notes,
            "%s: ignored, because its name or those of its files do not say that it belongs to "
            "the pictures of %s; an epochfs.json can say more\n",
            ignored.data, folder_name(s, input));
}

void folders_apply(struct search *s, uint32_t folder, struct claim_above above)
{
    struct siblings all = siblings_of(s, folder);
    enum folders_split split;
    uint32_t input;

    if (all.direct)
        search_classes_for_manifests(s, folder);
    split = folders_judge_splits(s, &all);
    input = folders_find_input(s, &all);
    if (folders_is_flat(s, &all, above.rule)) {
        folders_make(s, folder, LAYOUT_FLAT, folder, false, above, "one folder", NULL);
    } else if (folders_are_own(s, &all)) {
        folders_each(s, &all, above);
    } else if (folders_are_parts(s, &all)) {
        folders_make_joined(s, &all, above, "parts of one dataset",
                            "their names are those of parts, numbers that run on, or the first "
                            "letters of their pictures");
    } else if (split == SPLIT_ALL) {
        folders_apply_splits(s, &all, above);
    } else if (split == SPLIT_DOUBTFUL) {
        folders_refuse(s, &all, "one of them is a part of a dataset, as its name says",
                       "all of them are classes");
    } else if (pairs_are_scenes(s, folder)) {
        folders_apply_scenes(s, &all, above);
    } else if (input != NO_FOLDER && all.n > 1) {
        folders_apply_input(s, input, &all, above);
    } else if (folders_is_alone(s, &all)) {
        folders_make(s, folder, LAYOUT_FLAT, all.first, false, above, "one folder", &all);
    } else if (all.n < 2) {
        claim_note_unmet(s, folder, above.project);
        folders_each(s, &all, above);
    } else {
        folders_apply_classes(s, &all, above);
    }
}
