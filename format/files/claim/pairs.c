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
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* ---- finding ---- */

/* ---- do files belong to pictures? ---- */

static bool pairs_is_file(const char *name)
{
    return *name != '.' && !name_is_notice(name);
}

/* The end of a file's stem behind a picture's; false: no picture's begins it. */
static bool pairs_find_end(const struct search *s, uint32_t folder, const char *name, char **ret)
{
    size_t stem = name_stem_alone(name);

    for (size_t n = stem; n; n--)
        if (pairs_have_picture(s, folder, name, n)) {
            free(*ret);
            *ret = strndup(name + n, stem - n);
            return *ret != NULL;
        }
    return false;
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
                          const char *end)
{
    size_t stem = name_stem_alone(name), n = strlen(end);

    return stem > n && !strncmp(name + stem - n, end, n) &&
           pairs_have_picture(s, folder, name, stem - n);
}

struct belonging {
    char *end;         /* of all; owned */
    bool whole;        /* the stems are whole names of pictures */
    uint64_t bare;     /* files without an extension */
    uint64_t n, texts; /* files, and those that are texts, XML or JSON */
    uint64_t pictures;
    const char *ext; /* of the first that is no picture */
    bool one_ext;
};

static bool pairs_is_text(const char *name)
{
    static const char *const ends[] = {".txt", ".xml", ".json", NULL};

    for (const char *const *end = ends; *end; end++)
        if (text_ends_with(name, *end))
            return true;
    return false;
}

/* Do all files of the target belong to pictures of the input? 1, 0 or -ENOMEM. */
static int pairs_all_belong(const struct search *s, uint32_t input, uint32_t target,
                            struct belonging *ret)
{
    ret->one_ext = true;
    for (uint32_t i = target; i < s->info[target].end; i++) {
        uint32_t folder = NO_FOLDER;

        for (size_t k = s->info[i].first; k < s->info[i].last; k++) {
            const char *name = members_name(s->m, k);

            if (!pairs_is_file(name))
                continue;
            if (folder == NO_FOLDER)
                folder = pairs_same_below(s, i, target, input);
            if (folder == NO_FOLDER)
                return 0;
            if (!ret->end) {
                ret->whole = pairs_have_whole(s, folder, name);
                if (!pairs_find_end(s, folder, name, &ret->end))
                    return 0;
            }
            if (ret->whole ? !pairs_have_whole(s, folder, name)
                           : !pairs_belongs(s, folder, name, ret->end))
                return 0;
            ret->n++;
            if (!strrchr(name, '.')) {
                ret->bare++;
                continue;
            }
            ret->texts += pairs_is_text(name);
            if (name_is_picture(name)) {
                ret->pictures++;
                continue;
            }
            ret->one_ext = ret->one_ext && (!ret->ext || !strcasecmp(ret->ext, strrchr(name, '.')));
            ret->ext = strrchr(name, '.');
        }
    }
    return ret->n > 0 && (!ret->bare || ret->bare == ret->n);
}

/* ---- names ---- */

static bool pairs_is_input(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = path_base(claim_path(s, input)), *b = path_base(claim_path(s, target));

    if (words_are_of_two_splits(a, b))
        return false;
    return words_have_input(a) || words_have_split(a, strlen(a), NULL) ||
           (!strncmp(a, b, strlen(a)) && strlen(b) > strlen(a));
}

/* Is a folder called by what is learned? Behind the input's name, where that begins it. */
static bool pairs_is_target(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = path_base(claim_path(s, input)), *b = path_base(claim_path(s, target));
    size_t n = strlen(a);

    if (!strncasecmp(a, b, n))
        b += n;
    return words_have_target(b, strlen(b));
}

/* ---- pairs ---- */

static int pairs_add(struct search *s, uint32_t input, uint32_t target,
                     const struct belonging *belonging)
{
    const char *a = path_base(claim_path(s, input)), *b = path_base(claim_path(s, target));
    struct pair *pair = calloc(1, sizeof(*pair));
    char words[128];

    if (!pair)
        return -ENOMEM;
    words_differing(b, a, words, sizeof(words));
    *pair = (struct pair){.target = target,
                          .end = strdup(belonging->end),
                          .whole = belonging->whole,
                          .words = strdup(*words ? words : b),
                          .name = strdup(b),
                          .has_pictures = belonging->pictures > 0};
    if (belonging->ext)
        snprintf(pair->ext, sizeof(pair->ext), "%s", belonging->ext + 1);
    for (char *p = pair->name; p && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (char *p = pair->ext; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (const struct pair *other = s->info[input].pairs; other; other = other->next)
        s->long_names = s->long_names || (*pair->ext && !strcmp(other->ext, pair->ext));
    pair->next = s->info[input].pairs;
    s->info[input].pairs = pair;
    s->info[target].is_target = true;
    s->info[input].is_role = s->info[input].is_role || !words_have_split(a, strlen(a), NULL);
    return pair->end && pair->words && pair->name ? 0 : -ENOMEM;
}

/* A folder in `folder` that may be one of two. */
static bool pairs_may_be(const struct search *s, uint32_t folder)
{
    return !s->info[folder].is_target && !is_skipped(path_base(claim_path(s, folder)));
}

void pairs_ignore(struct search *s, uint32_t folder)
{
    s->info[folder].is_target = true;
    for (size_t i = s->info[folder].first; i < s->info[s->info[folder].end - 1].last; i++)
        if (!s->claims->taken[i])
            s->claims->taken[i] = CLAIMS_ASIDE;
}

/* Is `target`, or are folders in it, what belongs to the pictures of `input`? How many pairs, or
 * -ENOMEM. */
static int pairs_try(struct search *s, uint32_t input, uint32_t target, bool folders)
{
    struct belonging belonging = {0};
    bool named = pairs_is_target(s, input, target);
    int r = 0, n = 0;

    if (named || !s->info[target].all[COUNT_PICTURES])
        r = pairs_all_belong(s, input, target, &belonging);
    if (r > 0 && belonging.bare) { /* they have no name of a field */
        pairs_ignore(s, target);
    } else if (r > 0 && (named || belonging.texts == belonging.n)) {
        r = pairs_add(s, input, target, &belonging);
        n = r < 0 ? r : 1;
    }
    free(belonging.end);
    if (r < 0 || n || !folders || !named)
        return n ? n : r;
    for (uint32_t i = target + 1; i < s->info[target].end && r >= 0; i = next_folder(s, i)) {
        struct belonging part = {0};

        if (!pairs_may_be(s, i))
            continue;
        r = pairs_all_belong(s, input, i, &part);
        if (r > 0 && !part.bare) {
            r = pairs_add(s, input, i, &part);
            n++;
        }
        free(part.end);
    }
    if (n && r >= 0)
        s->info[target].is_target = true; /* lists lie in it, perhaps */
    return r < 0 ? r : n;
}

/* Images and masks without folders in them, by names that say nothing else. */
static bool pairs_are_surely_named(const struct search *s, uint32_t input, uint32_t target)
{
    const char *a = path_base(claim_path(s, input)), *b = path_base(claim_path(s, target));
    const struct folder_info *x = &s->info[input], *y = &s->info[target];

    return x->end == input + 1 && y->end == target + 1 && words_have_pictures(a) &&
           !words_have_target(a, strlen(a)) && !words_have_input(b) &&
           !words_have_split(a, strlen(a), NULL) && !words_have_split(b, strlen(b), NULL);
}

/* Have two folders names for a pair, and the same folders in them, but other files? */
static bool pairs_are_doubtful(const struct search *s, uint32_t input, uint32_t target)
{
    unsigned n = 0;

    if (!words_have_input(path_base(claim_path(s, input))) || !pairs_is_target(s, input, target) ||
        !s->info[target].all[COUNT_PICTURES])
        return false;
    for (uint32_t i = input + 1; i < s->info[input].end; i = next_folder(s, i)) {
        if (!is_sibling(s, i))
            continue;
        if (pairs_same_below(s, i, input, target) == NO_FOLDER)
            return false;
        n++;
    }
    return n > 0 || pairs_are_surely_named(s, input, target);
}

static int pairs_refuse(struct search *s, uint32_t folder, uint32_t input, uint32_t target)
{
    int r = collect_refused(
        s, folder,
        "%s and %s: expected pictures and what belongs to them, with the same names; got others, "
        "so their folders may also be classes. Say in epochfs.json which files belong together",
        claim_path(s, input), claim_path(s, target));

    return r < 0 ? r : 1;
}

/* Folders in `folder` that may be targets, at most TARGETS_MOST: how many. */
#define TARGETS_MOST 64
static unsigned pairs_list_targets(const struct search *s, uint32_t folder,
                                   uint32_t ret[static TARGETS_MOST])
{
    unsigned n = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end && n < TARGETS_MOST;
         i = next_folder(s, i)) {
        const char *name = path_base(claim_path(s, i));

        if (pairs_may_be(s, i) &&
            (words_have_target(name, strlen(name)) || !s->info[i].all[COUNT_PICTURES]))
            ret[n++] = i;
    }
    return n;
}

/* Are A and B two of several letters: of an alphabet, say? */
static bool pairs_are_letters(const struct search *s, uint32_t folder)
{
    unsigned n = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i))
        n += strlen(path_base(claim_path(s, i))) == 1 && s->info[i].all[COUNT_PICTURES];
    return n > 2;
}

static int pairs_find_here(struct search *s, uint32_t folder)
{
    uint32_t target[TARGETS_MOST];
    unsigned n = pairs_list_targets(s, folder, target);
    const bool letters = pairs_are_letters(s, folder);
    int r = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end && n && r >= 0; i = next_folder(s, i))
        for (unsigned k = 0; k < n && r >= 0 && is_sibling(s, i); k++)
            if (target[k] != i && !s->info[target[k]].is_target && !s->info[target[k]].pairs &&
                !(letters && strlen(path_base(claim_path(s, i))) == 1) &&
                pairs_is_input(s, i, target[k]))
                r = pairs_try(s, i, target[k], true);
    for (uint32_t i = folder + 1; i < s->info[folder].end && n && r >= 0; i = next_folder(s, i))
        for (unsigned k = 0; k < n && is_sibling(s, i) && !s->info[i].pairs; k++)
            if (target[k] != i && !s->info[target[k]].is_target &&
                pairs_are_doubtful(s, i, target[k]))
                return pairs_refuse(s, folder, i, target[k]);
    return r < 0 ? r : 0;
}

/* ---- scenes ---- */

/* Folders in folders, each with one picture in one of them and several in another. */
static bool pairs_are_several(const struct search *s, uint32_t scene, uint32_t *input,
                              uint32_t *target)
{
    *input = *target = NO_FOLDER;
    for (uint32_t i = scene + 1; i < s->info[scene].end; i = next_folder(s, i)) {
        const char *name = path_base(claim_path(s, i));

        if (words_have_input(name) && s->info[i].all[COUNT_PICTURES] == 1)
            *input = i;
        else if (words_have_target(name, strlen(name)) && s->info[i].all[COUNT_PICTURES] > 1)
            *target = i;
    }
    return *input != NO_FOLDER && *target != NO_FOLDER;
}

/* A split may have one scene. */
static bool pairs_is_split(const struct search *s, uint32_t folder)
{
    return words_are_split(path_base(claim_path(s, folder)));
}

static int pairs_find_scenes(struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];
    uint32_t input, target;
    unsigned several = 0, n = 0;
    int r = 0;

    for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i)) {
        if (!is_sibling(s, i))
            continue;
        n++;
        several += pairs_are_several(s, i, &input, &target);
    }
    if (several > 1 || (several && several == n)) {
        for (uint32_t i = folder + 1; i < f->end; i = next_folder(s, i))
            if (pairs_are_several(s, i, &input, &target))
                break;
        r = collect_refused(
            s, folder,
            "%s: expected one file for the picture in %s, got %llu; several files of a picture "
            "cannot be joined. Say in epochfs.json which pictures are the samples",
            claim_path(s, target), path_base(claim_path(s, input)),
            (unsigned long long)s->info[target].all[COUNT_PICTURES]);
        return r < 0 ? r : 1;
    }
    for (uint32_t i = folder + 1; i < f->end && r == 0 && n > !pairs_is_split(s, folder);
         i = next_folder(s, i)) {
        const char *name = path_base(claim_path(s, i));

        if (is_sibling(s, i) && !s->info[i].here[COUNT_PICTURES] &&
            !words_have_split(name, strlen(name), NULL))
            r = pairs_find_here(s, i);
    }
    return r;
}

bool pairs_are_scenes(const struct search *s, uint32_t folder)
{
    const char *input = NULL;
    unsigned n = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end; i = next_folder(s, i)) {
        const char *found = NULL;

        if (!is_sibling(s, i))
            continue;
        for (uint32_t k = i + 1; k < s->info[i].end; k = next_folder(s, k)) {
            const char *name = path_base(claim_path(s, k));

            if (!is_sibling(s, k))
                continue;
            if (words_have_split(name, strlen(name), NULL))
                return false;
            if (!s->info[k].pairs)
                continue;
            if (found)
                return false;
            found = name;
        }
        if (!found || (input && strcmp(found, input) != 0))
            return false;
        input = found;
        n++;
    }
    return n > !pairs_is_split(s, folder);
}

int pairs_find(struct search *s, uint32_t folder)
{
    int r = pairs_find_here(s, folder);

    return r ? r : pairs_find_scenes(s, folder);
}
