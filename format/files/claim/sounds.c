/* Trees of sounds that texts say more of: transcripts, tables, lists of paths, and trees of texts
 * like that of the sounds. Folders say what the datasets are:
 *
 *   role     one folder, called by sounds (wav, clips, audio): the dataset is called like the one
 *            above.
 *   splits   all folders are called by parts of a dataset: a dataset each.
 *   classes  all sounds are one or two folders deeper: the first is the class, such as a speaker.
 *   flat     the folder has the sounds itself.
 *
 * Texts say the rest, by their lines, once the datasets are known (sounds_lines.c, sounds_texts.c).
 * Where none says anything, this rule does not hold. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/words.h"

#define MIC_ENDS   8  /* microphones of a sample, at most */
#define TREE_LOOKS 64 /* files of a tree of texts that are looked at */

static const char *sounds_name(const struct search *s, uint32_t folder)
{
    return path_base(claim_path(s, folder));
}

/* Is the folder one whose sounds count? */
static bool sounds_is_in(const struct search *s, uint32_t folder)
{
    const char *name = sounds_name(s, folder), *skipped = files_media[s->media].skipped;

    return s->info[folder].all[COUNT_PICTURES] && !is_skipped(name) && strcmp(name, skipped) != 0;
}

static bool sounds_word(const char *name)
{
    static const char *const words[] = {"wav", "wavs",  "audio",  "audios",     "clips", "flac",
                                        "mp3", "sound", "sounds", "recordings", NULL};
    const char *at = name, *end = name + strlen(name);
    struct name_piece piece;

    while (next_piece(&at, end, &piece))
        for (const char *const *word = words; *word; word++)
            if (piece.len == strlen(*word) && !strncasecmp(piece.at, *word, piece.len))
                return true;
    return false;
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
    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i))
        if (sounds_is_in(s, i))
            sounds_depths(s, i, depth + 1, ret_least, ret_most);
}

/* Are all sounds one or two folders below? */
static bool sounds_are_classes(const struct search *s, uint32_t folder)
{
    unsigned least = UINT_MAX, most = 0;

    sounds_depths(s, folder, 0, &least, &most);
    return least == most && (least == 1 || least == 2);
}

/* Has each stem in a folder the name of the folder in it? */
static bool sounds_have_name(const struct search *s, uint32_t folder, const char *name)
{
    for (size_t i = s->info[folder].first; i < s->info[s->info[folder].end - 1].last; i++)
        if (name_is_of(s->media, members_name(s->m, i)) && !strstr(members_name(s->m, i), name))
            return false;
    return true;
}

/* ---- several microphones ---- */

/* Bytes of "_mic1" at the end of a stem; 0: it has no such end. */
static size_t sounds_mic(const char *name, size_t stem)
{
    static const char *const words[] = {"_mic", "_ch", NULL};

    for (const char *const *word = words; *word; word++) {
        size_t n = strlen(*word) + 1;

        if (stem > n && name[stem - 1] >= '0' && name[stem - 1] <= '9' &&
            !strncasecmp(name + stem - n, *word, n - 1))
            return n;
    }
    return 0;
}

static bool sounds_have_mics(const struct search *s, uint32_t folder)
{
    for (size_t i = s->info[folder].first; i < s->info[s->info[folder].end - 1].last; i++) {
        const char *name = members_name(s->m, i);

        if (name_is_of(s->media, name) && !sounds_mic(name, name_stem_alone(name)))
            return false;
    }
    return true;
}

/* ---- trees of texts ---- */

/* The folder below `to` where `folder` is below `from`. */
static bool sounds_has_stem(const struct search *s, uint32_t folder, const char *name)
{
    size_t stem = name_stem_alone(name), low = s->info[folder].first;

    for (size_t i = low; i < s->info[folder].last; i++) {
        const char *sound = members_name(s->m, i);
        size_t n = name_stem_alone(sound);

        if (name_is_of(s->media, sound) && !strncmp(sound, name, stem) &&
            (n == stem || n == stem + sounds_mic(sound, n)))
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
    for (uint32_t i = tree; i < s->info[tree].end; i++)
        for (size_t k = s->info[i].first; k < s->info[i].last && seen < TREE_LOOKS; k++) {
            uint32_t folder = pairs_same_below(s, i, tree, sounds);

            if (!name_may_be_beside(s->media, members_name(s->m, k)) || s->claims->taken[k])
                continue;
            seen++;
            same += folder != NO_FOLDER && sounds_has_stem(s, folder, members_name(s->m, k));
        }
    return seen && 2 * same >= seen;
}

/* ---- sets ---- */

static int sounds_add_mic(struct search *s, struct set *set, size_t file, size_t stem, size_t mic)
{
    const char *name = members_name(s->m, file);
    char field[64];

    snprintf(field, sizeof(field), "%.*s%s", (int)mic - 1, name + stem - mic + 1, name + stem);
    for (char *c = field; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    return set_add_file(s, set, file, field);
}

/* The texts of a sample in trees. */
static int sounds_add_texts(struct search *s, struct set *set, uint32_t folder,
                            const uint32_t *tree, unsigned n, const char *key, size_t len)
{
    int r = 0;

    for (unsigned i = 0; i < n && r == 0; i++) {
        uint32_t texts = pairs_same_below(s, folder, set->top, tree[i]);

        for (size_t k = texts == NO_FOLDER ? 0 : pairs_first(s, texts, key, len);
             texts != NO_FOLDER && k < s->info[texts].last && r == 0; k++) {
            const char *name = members_name(s->m, k);
            char ext[EXT_MOST + 1];

            if (strncmp(name, key, len) != 0 || name[len] != '.')
                break;
            if (name_stem_alone(name) != len || !name_may_be_beside(s->media, name))
                continue;
            name_ext(name, len, ext);
            r = set_add_file(s, set, k, ext);
        }
    }
    return r;
}

/* Sounds of one stem, except the microphone, are a sample. */
static int sounds_collect_mics(struct search *s, struct set *set, uint32_t folder,
                               const uint32_t *tree, unsigned n_trees)
{
    const struct folder_info *f = &s->info[folder];
    const char *key = NULL;
    size_t len = 0;
    int r = 0;

    for (size_t i = f->first; i < f->last && r == 0; i++) {
        const char *name = members_name(s->m, i);
        size_t stem = name_stem_alone(name), mic = sounds_mic(name, stem);

        if (!name_is_of(s->media, name))
            continue;
        if (!key || len != stem - mic || memcmp(name, key, len) != 0) {
            if (key)
                r = sounds_add_texts(s, set, folder, tree, n_trees, key, len);
            key = name;
            len = stem - mic;
            r = r < 0 ? r : set_begin_row(set, key, len);
        }
        r = r < 0 ? r : sounds_add_mic(s, set, i, stem, mic);
    }
    if (key && r == 0)
        r = sounds_add_texts(s, set, folder, tree, n_trees, key, len);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(s, i))
        if (sounds_is_in(s, i))
            r = sounds_collect_mics(s, set, i, tree, n_trees);
    return r;
}

static int sounds_make_mics(struct sounds *t, uint32_t folder, const char *rule)
{
    struct search *s = t->s;
    struct set *set;
    int r = set_begin(s, folder, LAYOUT_CLASSES, folder, true, rule, &set);

    for (uint32_t i = folder + 1; i < s->info[folder].end && r == 0; i = next_folder(s, i)) {
        struct files_claim *claim = set->claim;

        if (!sounds_is_in(s, i))
            continue;
        if (array_capacity(&claim->class_name, claim->n_classes, sizeof(char *)) < 0)
            return -ENOMEM;
        claim->class_name[claim->n_classes] = strdup(sounds_name(s, i));
        if (!claim->class_name[claim->n_classes++])
            return -ENOMEM;
        r = sounds_collect_mics(s, set, i, t->tree, t->n_trees);
    }
    return r < 0 ? r : set_end(set);
}

/* Add texts of trees as those of pairs, for what collects a set. */
static int sounds_add_pairs(struct sounds *t, uint32_t folder)
{
    struct search *s = t->s;

    for (unsigned i = 0; i < t->n_trees; i++) {
        struct pair *pair = calloc(1, sizeof(*pair));

        if (!pair)
            return -ENOMEM;
        *pair = (struct pair){.target = t->tree[i],
                              .end = strdup(""),
                              .words = strdup(sounds_name(s, t->tree[i])),
                              .name = strdup(sounds_name(s, t->tree[i])),
                              .next = s->info[folder].pairs};
        s->info[folder].pairs = pair;
        if (!pair->end || !pair->words || !pair->name)
            return -ENOMEM;
    }
    return 0;
}

static int sounds_make(struct sounds *t, uint32_t folder, bool classes, const char *rule)
{
    int r;

    t->gained = t->gained || t->n_trees;
    if (classes && t->n_trees && sounds_have_mics(t->s, folder))
        return sounds_make_mics(t, folder, rule);
    r = sounds_add_pairs(t, folder);
    return r < 0 ? r
                 : collect_set(t->s, folder, classes ? LAYOUT_CLASSES : LAYOUT_FLAT, folder,
                               classes, rule, NULL);
}

/* ---- folders ---- */

static void sounds_find_trees(struct sounds *t, uint32_t above, uint32_t folder)
{
    for (uint32_t i = above + 1; i < t->s->info[above].end; i = next_folder(t->s, i))
        if (i != folder && t->n_trees < ARRAY_LEN(t->tree) && sounds_is_tree(t->s, i, folder))
            t->tree[t->n_trees++] = i;
}

/* Do all folders with sounds in one have one folder of the same name with them, called by sounds?
 */
static bool sounds_are_datasets(const struct search *s, uint32_t folder)
{
    const char *name = NULL;
    unsigned n = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i)) {
        uint32_t only = NO_FOLDER;

        if (!sounds_is_in(s, i))
            continue;
        for (uint32_t k = i + 1; k < s->info[i].end; k = next_folder(s, k)) {
            if (!sounds_is_in(s, k))
                continue;
            if (only != NO_FOLDER)
                return false;
            only = k;
        }
        if (only == NO_FOLDER || s->info[i].here[COUNT_PICTURES] ||
            !sounds_word(sounds_name(s, only)) || (name && strcmp(name, sounds_name(s, only)) != 0))
            return false;
        name = sounds_name(s, only);
        n++;
    }
    return n > 1;
}

static int sounds_search(struct sounds *t, uint32_t folder);

static int sounds_search_each(struct sounds *t, uint32_t folder)
{
    int r = 0;

    for (uint32_t i = folder + 1; i < t->s->info[folder].end && r == 0; i = next_folder(t->s, i))
        if (sounds_is_in(t->s, i)) {
            t->n_trees = 0;
            r = sounds_search(t, i);
        }
    return r;
}

/* Make the sets of a folder. 0; -EDOM: no rule holds; or -ENOMEM. */
static int sounds_search(struct sounds *t, uint32_t folder)
{
    struct search *s = t->s;
    const struct folder_info *f = &s->info[folder];
    uint32_t only = NO_FOLDER;
    unsigned n = 0, splits = 0;

    if (f->kaldi || f->foreign || f->project)
        return -EDOM;
    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i)) {
        const char *name = sounds_name(s, i);

        if (!sounds_is_in(s, i))
            continue;
        only = n++ ? NO_FOLDER : i;
        splits += words_have_split(name, strlen(name), NULL);
    }
    if (f->here[COUNT_PICTURES])
        return n ? -EDOM : sounds_make(t, folder, false, "one folder");
    if (n && splits == n)
        return sounds_search_each(t, folder);
    if (only != NO_FOLDER && sounds_word(sounds_name(s, only))) {
        s->info[only].is_role = true;
        sounds_find_trees(t, folder, only);
        return sounds_search(t, only);
    }
    if (only != NO_FOLDER && !sounds_have_name(s, only, sounds_name(s, only)))
        return sounds_search(t, only);
    if (sounds_are_datasets(s, folder))
        return sounds_search_each(t, folder);
    return sounds_are_classes(s, folder) ? sounds_make(t, folder, true, "classes by folder")
                                         : -EDOM;
}

/* ---- who speaks ---- */

/* Parts of the path of a sample. */
struct speaker {
    const char *speaker, *chapter;
    size_t speaker_len, chapter_len; /* chapter 0: there is none */
};

/* The next part of a path. */
static const char *sounds_part(const char **at, size_t *ret_len)
{
    const char *part = *at;

    *ret_len = strcspn(part, "/");
    *at = part + *ret_len + (part[*ret_len] == '/');
    return part;
}

/* The folders of a sample: its speaker, and the chapter or book, by their names in its stem. */
static bool sounds_speaker(const struct search *s, const struct set *set, size_t sample,
                           struct speaker *ret)
{
    size_t file = set->file[set->claim->first[sample]];
    const char *path = members_folder_of(s->m, file), *name = members_name(s->m, file);
    size_t above = strlen(claim_path(s, set->top));

    path += above + (above > 0 && path[above] == '/');
    ret->speaker = sounds_part(&path, &ret->speaker_len);
    ret->chapter = sounds_part(&path, &ret->chapter_len);
    if (!ret->speaker_len || *path)
        return false;
    if (!ret->chapter_len)
        return memmem(name, strlen(name), ret->speaker, ret->speaker_len);
    return !strncmp(name, ret->speaker, ret->speaker_len) &&
           (name[ret->speaker_len] == '-' || name[ret->speaker_len] == '_') &&
           !strncmp(name + ret->speaker_len + 1, ret->chapter, ret->chapter_len) &&
           strchr("-_.", name[ret->speaker_len + 1 + ret->chapter_len]);
}

/* Add who speaks, where the stems of all samples of a set say that of their folders. 0 or -ENOMEM.
 */
static int sounds_add_speakers(struct search *s, struct set *set)
{
    struct files_view *view = set->claim->view;
    struct value_column *c;
    struct speaker speaker;
    bool chapters = false;
    int r;

    for (size_t i = 0; i < set->claim->n_samples; i++) {
        if (set->claim->layout != LAYOUT_CLASSES || !sounds_speaker(s, set, i, &speaker))
            return 0;
        chapters = speaker.chapter_len;
    }
    r = value_columns_add(&view->values, "speaker", VALUE_TEXT, DTYPE_U1, true, 0, &c);
    for (size_t i = 0; i < set->claim->n_samples && r == 0; i++) {
        sounds_speaker(s, set, i, &speaker);
        r = value_column_set_text(c, i, speaker.speaker, speaker.speaker_len);
    }
    if (r < 0 || !chapters)
        return r;
    r = value_columns_add(&view->values, "chapter", VALUE_TEXT, DTYPE_U1, true, 0, &c);
    for (size_t i = 0; i < set->claim->n_samples && r == 0; i++) {
        sounds_speaker(s, set, i, &speaker);
        r = value_column_set_text(c, i, speaker.chapter, speaker.chapter_len);
    }
    return r;
}

/* ---- all of it ---- */

int sounds_apply(struct search *s)
{
    struct sounds t = {.s = s};
    AUTO_FREE uint8_t *before = malloc(s->m->n + 1);
    struct folder_info *kept, *made;
    bool any = false;
    int r;

    for (size_t i = 0; i < s->m->n && !any; i++)
        any = !s->claims->taken[i] && name_is_of(s->media, members_name(s->m, i));
    for (uint32_t i = 0; i < s->m->n_folders; i++)
        any = any && !s->info[i].kaldi;
    if (!any)
        return 0;
    if (!before)
        return -ENOMEM;
    memcpy(before, s->claims->taken, s->m->n);
    kept = TAKE_PTR(s->info);
    r = counts_make(s);
    if (r == 0 && s->info[0].all[COUNT_PICTURES] &&
        2 * s->info[0].all[COUNT_PICTURES] >= s->info[0].all[COUNT_OTHERS])
        r = sounds_search(&t, 0);
    if (r == 0 && s->n_sets)
        r = sounds_read_texts(&t);
    for (size_t i = 0; i < s->n_sets && r == 0 && t.gained; i++)
        r = sounds_add_speakers(s, &s->set[i]);
    if (r == 0 && t.gained && s->n_sets) {
        made = s->info;
        s->info = kept;
        counts_free(s);
        s->info = made;
        return 1;
    }
    sets_drop(s, 0);
    memcpy(s->claims->taken, before, s->m->n);
    counts_free(s); /* folders are again what they were */
    s->info = kept;
    return r == -ENOMEM ? r : 0;
}
