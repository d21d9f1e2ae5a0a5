/* Trees of sounds that texts say more of: transcripts, tables, lists of paths, and trees of texts
 * like that of the sounds. Folders say what the datasets are:
 *
 *   role     one folder, called by sounds (wav, clips, audio): the dataset is called like the one
 *            above.
 *   splits   all folders are called by parts of a dataset: a dataset each.
 *   classes  all sounds are one or two folders deeper: the first is the class, such as a speaker.
 *   flat     the folder has the sounds itself.
 *
 * Texts say the rest, by their lines, once the datasets are known (sounds_texts.c).
 * Where none says anything, this rule does not hold. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/files/claim/annotations.h"
#include "format/files/claim/recipe_parts.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/words.h"

#define TREE_LOOKS 64 /* files of a tree of texts that are looked at */

static bool sounds_word(const char *name)
{
    static const char *const words[] = {"wav", "wavs",  "audio",  "audios",     "clips", "flac",
                                        "mp3", "sound", "sounds", "recordings", NULL};

    return words_have(name, strlen(name), words);
}

/* ---- depths ---- */

/* The folders between `folder` and sounds below it, at least and at most. */
static void sounds_depths(const struct search *s, uint32_t folder, unsigned depth,
                          unsigned *ret_least, unsigned *ret_most)
{
    if (s->info[folder].here[COUNT_PICTURES]) {
        *ret_least = depth < *ret_least ? depth : *ret_least;
        *ret_most = depth > *ret_most ? depth : *ret_most;
    }
    for (EACH_SIBLING(s, i, folder))
        sounds_depths(s, i, depth + 1, ret_least, ret_most);
}

/* Are all sounds one or two folders below? */
static bool sounds_are_classes(const struct search *s, uint32_t folder)
{
    unsigned least = UINT_MAX, most = 0;

    sounds_depths(s, folder, 0, &least, &most);
    return least == most && (least == 1 || least == 2);
}

/* Has the name of each sound below a folder that text in it, or if it is NULL a microphone? */
static bool sounds_all_have(const struct search *s, uint32_t folder, const char *text)
{
    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++) {
        const char *name = members_name(s->m, i);

        if (name_is_of(s->media, name) && !(text ? strstr(name, text) != NULL : name_mic(name)))
            return false;
    }
    return true;
}

/* ---- trees of texts ---- */

/* Has a folder a sound with the stem of a text, except its microphone? */
static bool sounds_has_stem(const struct search *s, uint32_t folder, const char *name)
{
    size_t stem = name_stem_alone(name);

    for (size_t i = s->info[folder].first; i < s->info[folder].last; i++) {
        const char *sound = members_name(s->m, i);
        size_t n = name_stem_alone(sound);

        if (name_is_of(s->media, sound) && !strncmp(sound, name, stem) &&
            (n == stem || n == stem + name_mic(sound)))
            return true;
    }
    return false;
}

/* Is a folder a tree of texts with the stems of the sounds of another? */
static bool sounds_is_tree(const struct search *s, uint32_t tree, uint32_t sounds)
{
    unsigned seen = 0, same = 0;

    if (s->info[tree].all[COUNT_PICTURES])
        return false;
    for (uint32_t i = tree; i < next_folder(s, tree); i++)
        for (size_t k = s->info[i].first; k < s->info[i].last && seen < TREE_LOOKS; k++) {
            uint32_t folder;

            if (!name_may_be_beside(s->media, members_name(s->m, k)) || s->claims->taken[k])
                continue;
            seen++;
            folder = pairs_same_below(s, i, tree, sounds);
            same += folder != NO_FOLDER && sounds_has_stem(s, folder, members_name(s->m, k));
        }
    return seen && 2 * same >= seen;
}

static void sounds_find_trees(struct sounds *t, uint32_t above, uint32_t folder)
{
    for (EACH_FOLDER(t->s, i, above))
        if (i != folder && t->n_trees < ARRAY_LEN(t->tree) && sounds_is_tree(t->s, i, folder))
            t->tree[t->n_trees++] = i;
}

/* ---- sets ---- */

static void sounds_make(struct sounds *t, uint32_t folder, bool classes, const char *rule)
{
    const bool by_mic = classes && t->n_trees && sounds_all_have(t->s, folder, NULL);

    t->gained = t->gained || t->n_trees;
    for (unsigned i = 0; i < t->n_trees; i++) { /* as pairs have them */
        char *name = (char *)(uintptr_t)folder_name(t->s, t->tree[i]);

        pairs_add(t->s, folder, (struct pair){.target = t->tree[i], .end = "", .words = name});
    }
    t->s->by_mic = by_mic;
    collect_set(t->s, folder, classes ? LAYOUT_CLASSES : LAYOUT_FLAT, folder, classes, rule);
    t->s->by_mic = false;
}

/* ---- folders ---- */

/* Make the sets of a folder. false: no rule holds. */
static bool sounds_search(struct sounds *t, uint32_t folder)
{
    struct search *s = t->s;
    const struct folder_info *f = &s->info[folder];
    uint32_t only = sibling_only(s, folder), deeper;
    const char *same = siblings_only(s, folder, false);
    unsigned n = 0, splits = 0;
    bool found = true;

    if (f->kaldi || f->foreign || f->project)
        return false;
    for (EACH_SIBLING(s, i, folder)) {
        n++;
        splits += words_name_split(folder_name(s, i));
    }
    if (f->here[COUNT_PICTURES]) {
        if (!n)
            sounds_make(t, folder, false, "one folder");
        return !n;
    }
    if (!(n && splits == n) && only != NO_FOLDER) {
        if (sounds_word(folder_name(s, only))) {
            s->info[only].is_role = true;
            sounds_find_trees(t, folder, only);
            return sounds_search(t, only);
        }
        deeper = sibling_only(s, only); /* en/clips/common_voice_en_1.mp3: no class */
        if (!sounds_all_have(s, only, folder_name(s, only)) ||
            (deeper != NO_FOLDER && sounds_word(folder_name(s, deeper))))
            return sounds_search(t, only);
    }
    if ((n && splits == n) || (same && sounds_word(same))) {
        for (EACH_SIBLING(s, i, folder)) {
            t->n_trees = 0;
            found = found && sounds_search(t, i);
        }
        return found;
    }
    if (!sounds_are_classes(s, folder))
        return false;
    sounds_make(t, folder, true, "classes by folder");
    return true;
}

/* ---- who speaks ---- */

/* Add who speaks, and the chapter or book, where the names of all samples of a set say that of
 * their folders. */
static void sounds_add_speakers(struct search *s, struct set *set)
{
    static const char *const patterns[] = {"{speaker}/{chapter}/{speaker}-{chapter}-*",
                                           "{speaker}/{chapter}/{speaker}-{chapter}_*",
                                           "{speaker}/{chapter}/{speaker}-{chapter}.*",
                                           "{speaker}/{chapter}/{speaker}_{chapter}-*",
                                           "{speaker}/{chapter}/{speaker}_{chapter}_*",
                                           "{speaker}/{chapter}/{speaker}_{chapter}.*",
                                           "{speaker}/*{speaker}*"};
    const size_t top = strlen(claim_path(s, set->top));
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};

    for (size_t i = 0; i < set->claim->n_samples; i++) {
        struct pattern_words words = {.n = 0};
        char path[PATH_MAX];
        size_t k = 0;

        if (set->claim->layout != LAYOUT_CLASSES ||
            members_path(s->m, set->file[set->claim->first[i]], path, sizeof(path)) < 0)
            return;
        while (k < ARRAY_LEN(patterns) &&
               pattern_match(patterns[k], path + top + (top > 0), &words) <= 0)
            k++;
        if (k == ARRAY_LEN(patterns))
            return;
        if (recipe_add_words("", &columns, i, &words) < 0)
            s->failed = true;
    }
    s->failed = s->failed || value_columns_end(&columns, set->claim->n_samples) < 0;
    view_add_columns(s, set->claim->view, &columns);
}

/* ---- all of it ---- */

bool sounds_apply(struct search *s)
{
    struct sounds t = {.s = s};
    struct folder_info *kept, *made;
    bool found = true;

    if (!classes_have_any(s))
        return false;
    kept = TAKE_PTR(s->info);
    counts_make(s);
    if (!s->failed && s->info[0].all[COUNT_PICTURES] &&
        2 * s->info[0].all[COUNT_PICTURES] >= s->info[0].all[COUNT_OTHERS])
        found = sounds_search(&t, 0);
    if (found && s->n_sets && !s->failed)
        sounds_read_texts(&t);
    found = found && t.gained && s->n_sets && !s->failed;
    for (size_t i = 0; i < s->n_sets && found; i++) {
        s->set[i].has_texts = true;
        sounds_add_speakers(s, &s->set[i]);
    }
    made = s->info; /* if nothing is found, folders are again what they were */
    s->info = found ? kept : made;
    counts_free(s);
    s->info = found ? made : kept;
    return found;
}
