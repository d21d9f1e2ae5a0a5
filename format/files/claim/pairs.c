/* Pictures and what is to be learned from them: masks, labels, sharp pictures. Two folders are a
 * pair if their names say their roles, and each file of the target belongs to a picture of the
 * input:
 *
 *   input   it has an image name (images, JPEGImages), or one of a role (lr, blur, a); or it is a
 *           split next to a folder of a target name; or its name begins the other's (train,
 *           train_masks).
 *   target  it has the name of one (masks, labels, gt, hr), or nothing but texts, XML or JSON. If
 *           not all of its files belong to pictures, its folders are looked at one by one.
 *
 * Such names without such files are refused, for a mask that is taken for a class is the worst that
 * can happen. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* ---- do files belong to pictures? ---- */

/* The length of the stem of a picture that a file's begins with; 0: none does. */
static size_t pairs_find_stem(const struct search *s, uint32_t folder, const char *name)
{
    size_t n = name_stem_alone(name);

    while (n && !pairs_have_picture(s, folder, name, n))
        n--;
    return n;
}

/* Is the stem of a file a whole name of a picture: x.jpg.json of x.jpg? */
static bool pairs_have_whole(const struct search *s, uint32_t folder, const char *name)
{
    const char *path = claim_path(s, folder);
    AUTO_FREE char *picture = strndup(name, name_stem_alone(name));

    return picture && name_is_picture(picture) &&
           members_lookup(s->m, path, strlen(path), picture) < s->m->n;
}

static bool pairs_belongs(const struct search *s, uint32_t folder, const char *name,
                          const char *end, size_t n)
{
    size_t stem = name_stem_alone(name);

    return stem > n && !strncmp(name + stem - n, end, n) &&
           pairs_have_picture(s, folder, name, stem - n);
}

struct belonging {
    const char *end; /* of all stems, behind those of pictures: end_len bytes; NULL: no file */
    size_t end_len;
    bool whole;        /* the stems are whole names of pictures */
    uint64_t bare;     /* files without an extension */
    uint64_t n, texts; /* files, and those that are texts, XML or JSON, */
    uint64_t scans;    /* or scans, which no format reads by their names alone */
    const char *ext;   /* of the last that is no picture */
};

static const char *const pairs_scans[] = {".bin", ".pcd", ".las", ".laz", ".mat", NULL};

static bool pairs_is_text(const char *name)
{
    static const char *const ends[] = {".txt", ".xml", ".json", NULL};

    return name_ends_in(name, ends);
}

/* Does a file of the target belong to a picture in `folder`, as those before it do? */
static bool pairs_one_belongs(const struct search *s, uint32_t folder, const char *name,
                              struct belonging *t)
{
    if (folder == NO_FOLDER)
        return false;
    if (!t->end) {
        size_t n = pairs_find_stem(s, folder, name);

        t->whole = pairs_have_whole(s, folder, name);
        t->end = n ? name + n : NULL;
        t->end_len = name_stem_alone(name) - n;
        if (!n || (isdigit((unsigned char)name[n]) &&
                   isdigit((unsigned char)name[n - 1]))) /* 12.png is not of 1.jpg */
            return false;
    }
    if (t->whole ? !pairs_have_whole(s, folder, name)
                 : !pairs_belongs(s, folder, name, t->end, t->end_len))
        return false;
    t->n++;
    t->bare += !strrchr(name, '.');
    t->texts += pairs_is_text(name);
    t->scans += name_ends_in(name, pairs_scans);
    t->ext = name_is_picture(name) || !strrchr(name, '.') ? t->ext : strrchr(name, '.');
    return true;
}

/* Do all files of the target belong to pictures of the input? */
static bool pairs_all_belong(const struct search *s, uint32_t input, uint32_t target,
                             struct belonging *ret)
{
    *ret = (struct belonging){0};
    for (uint32_t i = target; i < s->info[target].end; i++) {
        uint32_t folder = pairs_same_below(s, i, target, input);

        for (size_t k = s->info[i].first; k < s->info[i].last; k++) {
            const char *name = members_name(s->m, k);

            if (*name != '.' && strcmp(name, CLASSES_FILE) != 0 &&
                !pairs_one_belongs(s, folder, name, ret) && !name_is(NAME_NOTICE, name))
                return false;
        }
    }
    return ret->n > 0 && (!ret->bare || ret->bare == ret->n);
}

bool pairs_belong(const struct search *s, uint32_t input, uint32_t target)
{
    struct belonging belonging;

    return pairs_all_belong(s, input, target, &belonging);
}

/* ---- names ---- */

/* Have the names other numbers, and is another folder next to the target one of its number: masks_2
 * are those of images_2? But LR_64 and HR_256 are a pair. */
static bool pairs_is_of_another(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = folder_name(s, input), *b = folder_name(s, target);

    if (!words_have_two_numbers(a, b))
        return false;
    for (EACH_FOLDER(s, i, s->info[target].above))
        if (i != target && is_sibling(s, i) && words_differ_in_number(a, folder_name(s, i)) &&
            !words_have_two_numbers(folder_name(s, i), b))
            return true;
    return false;
}

static bool pairs_is_input(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = folder_name(s, input), *b = folder_name(s, target);

    if (words_are_of_two_splits(a, b) || pairs_is_of_another(s, input, target))
        return false;
    return words_have_input(a) || words_name_split(a) ||
           (!strncmp(a, b, strlen(a)) && strlen(b) > strlen(a));
}

/* Is a folder called by what is learned? Behind the input's name, where that begins it. */
static bool pairs_is_target(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = folder_name(s, input), *b = folder_name(s, target);
    size_t n = strlen(a);

    if (!strncasecmp(a, b, n))
        b += n;
    return words_have_target(b, strlen(b));
}

/* ---- pairs ---- */

static char *pairs_copy(const char *text, bool lower)
{
    char *ret = strdup(text);

    for (char *p = ret; p && *p && lower; p++)
        *p = (char)tolower((unsigned char)*p);
    return ret;
}

void pairs_add(struct search *s, uint32_t input, struct pair pair)
{
    struct pair *added = malloc(sizeof(*added));

    pair.end = pairs_copy(pair.end, false);
    pair.words = pairs_copy(pair.words, false);
    pair.name = pairs_copy(folder_name(s, pair.target), true);
    pair.next = s->info[input].pairs;
    if (!added || !pair.end || !pair.words || !pair.name) {
        s->failed = true;
        free(added);
        free(pair.end);
        free(pair.words);
        free(pair.name);
        return;
    }
    *added = pair;
    s->info[input].pairs = added;
}

/* Two targets of an input have one extension: so fields have long names in the folder that it is
 * in, and that its splits are in. */
static void pairs_lengthen_names(struct search *s, uint32_t input)
{
    uint32_t folder = input ? s->info[input].above : input;

    for (uint32_t i = folder; i != NO_FOLDER; i = s->info[i].above)
        if (s->info[i].above != NO_FOLDER && words_name_split(folder_name(s, i)))
            folder = s->info[i].above;
    s->info[folder].long_names = true;
}

/* The files of a target belong to those of an input. */
static void pairs_found(struct search *s, uint32_t input, uint32_t target,
                        const struct belonging *belonging)
{
    const char *a = folder_name(s, input), *b = folder_name(s, target);
    AUTO_FREE char *end = strndup(belonging->end, belonging->end_len);
    struct pair pair = {.target = target, .whole = belonging->whole, .end = end};
    char words[128];

    words_differing(b, a, words, sizeof(words));
    if (!*words && words_name_split(a) && words_are_split(b)) /* masks/train of train */
        words_differing(folder_name(s, s->info[target].above), a, words, sizeof(words));
    pair.words = *words ? words : (char *)(uintptr_t)b;
    for (size_t i = 0; belonging->ext && i + 1 < sizeof(pair.ext) && belonging->ext[i + 1]; i++)
        pair.ext[i] = (char)tolower((unsigned char)belonging->ext[i + 1]);
    for (const struct pair *other = s->info[input].pairs; other; other = other->next)
        if (*pair.ext && !strcmp(other->ext, pair.ext))
            pairs_lengthen_names(s, input);
    s->failed = s->failed || !end;
    if (!s->failed)
        pairs_add(s, input, pair);
    s->info[target].is_target = true;
    s->info[input].is_role =
        s->info[input].is_role || (!words_name_split(a) && s->info[target].above != input);
}

/* A folder in `folder` that may be one of two. */
static bool pairs_may_be(const struct search *s, uint32_t folder)
{
    return !s->info[folder].is_target && !is_skipped(folder_name(s, folder));
}

void pairs_ignore(struct search *s, uint32_t folder)
{
    s->info[folder].is_target = true;
    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++)
        if (!s->claims->taken[i])
            s->claims->taken[i] = CLAIMS_ASIDE;
}

#define SCAN_LOOKS 8

/* Does another format take one of the first files of a folder by its first bytes, or may it? */
static bool pairs_are_of_format(struct search *s, uint32_t folder)
{
    bool is_taken = !s->claims->heads || s->claims->format_given;
    unsigned looks = 0;

    for (size_t i = s->info[folder].first;
         i < folder_end(s, folder) && looks < SCAN_LOOKS && !is_taken; i++) {
        uint8_t head[FORMAT_HEAD];
        int len = members_size(s->m, i) ? search_head(s, i, head, sizeof(head)) : 0;

        looks += len > 0;
        is_taken = len < 0 || (len && s->claims->is_taken &&
                               s->claims->is_taken(s->claims, i, head, (size_t)len));
    }
    return is_taken;
}

/* Is `target`, or are folders in it, what belongs to the pictures of `input`? true: all of it. */
static bool pairs_try(struct search *s, uint32_t input, uint32_t target)
{
    bool named = pairs_is_target(s, input, target), belong = false;
    struct belonging belonging = {0};

    if (named || !s->info[target].all[COUNT_PICTURES])
        belong = pairs_all_belong(s, input, target, &belonging);
    if (belong && (belonging.bare ||
                   (!named && belonging.scans == belonging.n && !pairs_are_of_format(s, target)))) {
        uint32_t last = input;

        while (s->info[last].bare)
            last = s->info[last].bare;
        s->info[last].bare = target;
        pairs_ignore(s, target);
        return true;
    }
    if (belong && (named || belonging.texts == belonging.n)) {
        pairs_found(s, input, target, &belonging);
        return true;
    }
    for (EACH_FOLDER(s, i, target))
        if (named && pairs_may_be(s, i) &&
            !words_are_of_two_splits(folder_name(s, input), folder_name(s, i)) &&
            pairs_all_belong(s, input, i, &belonging) && !belonging.bare) {
            pairs_found(s, input, i, &belonging);
            s->info[target].is_target = true; /* lists lie in it, perhaps */
        }
    return false;
}

/* Images and masks without folders in them, by names that say nothing else. */
static bool pairs_are_surely_named(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = folder_name(s, input), *b = folder_name(s, target);

    return sibling_from(s, input + 1, next_folder(s, input)) == next_folder(s, input) &&
           sibling_from(s, target + 1, next_folder(s, target)) == next_folder(s, target) &&
           words_have_role(a) && words_have_role(b) && !words_have_target(a, strlen(a)) &&
           !words_have_input(b) && !words_name_split(a) && !words_name_split(b) &&
           !(words_may_be_classes(a) && words_may_be_classes(b));
}

/* Have two folders names for a pair, and the same folders in them, but other files? */
static bool pairs_are_doubtful(const struct search *s, uint32_t input, uint32_t target)
{
    unsigned n = 0;

    if (!words_have_input(folder_name(s, input)) || !pairs_is_target(s, input, target) ||
        !s->info[target].all[COUNT_PICTURES])
        return false;
    for (EACH_SIBLING(s, i, input)) {
        if (pairs_same_below(s, i, input, target) == NO_FOLDER)
            return false;
        n++;
    }
    return n > 0 || pairs_are_surely_named(s, input, target);
}

/* Folders in `folder` that may be targets, at most TARGETS_MOST: how many. */
#define TARGETS_MOST 64
static unsigned pairs_list_targets(const struct search *s, uint32_t folder,
                                   uint32_t ret[static TARGETS_MOST])
{
    unsigned n = 0;

    for (EACH_FOLDER(s, i, folder)) {
        const char *name = folder_name(s, i);

        if (n < TARGETS_MOST && pairs_may_be(s, i) &&
            (words_have_target(name, strlen(name)) || !s->info[i].all[COUNT_PICTURES]))
            ret[n++] = i;
    }
    return n;
}

/* Are A and B two of several letters: of an alphabet, say? */
static bool pairs_are_letters(const struct search *s, uint32_t folder)
{
    unsigned n = 0;

    for (EACH_FOLDER(s, i, folder))
        n += strlen(folder_name(s, i)) == 1 && s->info[i].all[COUNT_PICTURES];
    return n > 2;
}

/* Find pairs among the folders of this one. true: it is refused. */
static bool pairs_find_here(struct search *s, uint32_t folder)
{
    uint32_t target[TARGETS_MOST];
    bool is_taken[TARGETS_MOST] = {false};
    unsigned n = pairs_list_targets(s, folder, target);
    const bool letters = n && pairs_are_letters(s, folder);

    for (unsigned k = 0; k < n && s->info[folder].here[COUNT_PICTURES];
         k++) /* 1.jpg, masks/1.png */
        is_taken[k] = pairs_is_target(s, folder, target[k]) && pairs_try(s, folder, target[k]);
    for (EACH_FOLDER(s, i, folder))
        for (unsigned k = 0; k < n && is_sibling(s, i); k++)
            if (target[k] != i && !is_taken[k] && !s->info[target[k]].pairs &&
                !(letters && strlen(folder_name(s, i)) == 1) && pairs_is_input(s, i, target[k]))
                is_taken[k] = pairs_try(s, i, target[k]);
    for (EACH_FOLDER(s, i, folder))
        for (unsigned k = 0; k < n && is_sibling(s, i) && !s->info[i].pairs; k++)
            if (target[k] != i && !s->info[target[k]].is_target &&
                pairs_are_doubtful(s, i, target[k]))
                return collect_refused(
                    s, folder,
                    "%s and %s: expected pictures and what belongs to them, with the same names; "
                    "got others, so their folders may also be classes. Say in epochfs.json which "
                    "files belong together",
                    claim_path(s, i), claim_path(s, target[k]));
    return false;
}

/* ---- scenes ---- */

/* Folders in folders, each with one picture in one of them and several in another. */
static bool pairs_are_several(const struct search *s, uint32_t scene, uint32_t *input,
                              uint32_t *target)
{
    *input = *target = NO_FOLDER;
    for (EACH_FOLDER(s, i, scene)) {
        const char *name = folder_name(s, i);

        if (words_have_input(name) && s->info[i].all[COUNT_PICTURES] == 1)
            *input = i;
        else if (words_have_target(name, strlen(name)) && s->info[i].all[COUNT_PICTURES] > 1)
            *target = i;
    }
    return *input != NO_FOLDER && *target != NO_FOLDER &&
           !words_are_of_two_splits(folder_name(s, *input), folder_name(s, *target));
}

/* How many scenes there must be: a split may have one. */
static unsigned pairs_least_scenes(const struct search *s, uint32_t folder)
{
    return words_are_split(folder_name(s, folder)) ? 1 : 2;
}

static bool pairs_find_scenes(struct search *s, uint32_t folder)
{
    uint32_t input, target, first = NO_FOLDER;
    unsigned several = 0, n = 0;
    bool refused = false;

    for (EACH_SIBLING(s, i, folder)) {
        n++;
        if (pairs_are_several(s, i, &input, &target) && !several++)
            first = i;
    }
    if (several > 1 || (several && several == n)) {
        pairs_are_several(s, first, &input, &target);
        return collect_refused(
            s, folder,
            "%s: expected one file for the picture in %s, got %llu; several files of a picture "
            "cannot be joined. Say in epochfs.json which pictures are the samples",
            claim_path(s, target), folder_name(s, input),
            (unsigned long long)s->info[target].all[COUNT_PICTURES]);
    }
    for (EACH_SIBLING(s, i, folder))
        if (n >= pairs_least_scenes(s, folder) && !refused && !s->info[i].here[COUNT_PICTURES] &&
            !words_name_split(folder_name(s, i)))
            refused = pairs_find_here(s, i);
    return refused;
}

bool pairs_are_scenes(const struct search *s, uint32_t folder)
{
    const char *input = NULL;
    unsigned n = 0;

    for (EACH_SIBLING(s, i, folder)) {
        const char *found = NULL;

        for (EACH_SIBLING(s, k, i)) {
            if (words_name_split(folder_name(s, k)) || (found && s->info[k].pairs))
                return false;
            found = s->info[k].pairs ? folder_name(s, k) : found;
        }
        if (!found || (input && strcmp(found, input) != 0))
            return false;
        input = found;
        n++;
    }
    return n >= pairs_least_scenes(s, folder);
}

bool pairs_find(struct search *s, uint32_t folder)
{
    return pairs_find_here(s, folder) || pairs_find_scenes(s, folder);
}
