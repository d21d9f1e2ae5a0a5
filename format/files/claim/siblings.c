/* What siblings are to each other: classes, datasets with classes, or pictures and their targets.
 */
#include "format/files/claim/siblings.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "format/files/claim/words.h"

struct siblings siblings_of(const struct search *s, uint32_t folder)
{
    struct siblings ret = {.folder = folder, .first = NO_FOLDER};

    for (EACH_SIBLING(s, i, folder)) {
        ret.first = ret.n++ ? ret.first : i;
        ret.direct += s->info[i].here[COUNT_PICTURES] > 0;
        ret.both += s->info[i].here[COUNT_PICTURES] &&
                    s->info[i].all[COUNT_PICTURES] > s->info[i].here[COUNT_PICTURES];
        ret.named += words_have_pictures(folder_name(s, i));
    }
    return ret;
}

bool siblings_have_two_splits(const struct search *s, uint32_t folder)
{
    const char *first = NULL;

    for (EACH_SIBLING(s, i, folder)) {
        const char *name = folder_name(s, i);

        if (first && words_are_of_two_splits(first, name))
            return true;
        first = first || !words_name_split(name) ? first : name;
    }
    return false;
}

/* Has a folder one of that name, with pictures? */
static bool siblings_has_named(const struct search *s, uint32_t folder, const char *name)
{
    uint32_t found = folder_below(s, folder, name, strlen(name));

    return found != NO_FOLDER && is_sibling(s, found);
}

/* Is the folder one letter, with which all names of those in it begin? */
static bool siblings_is_letter(const struct search *s, uint32_t folder)
{
    const char *letter = folder_name(s, folder);

    if (strlen(letter) != 1 || !isalpha((unsigned char)*letter))
        return false;
    for (EACH_SIBLING(s, i, folder))
        if (tolower((unsigned char)*folder_name(s, i)) != tolower((unsigned char)*letter))
            return false;
    return true;
}

#define COMPARED_MOST 64 /* folders whose folders are compared with those of the others */

/* The folder that has pictures, or several folders with some, on the only way down from a folder:
 * many archives have x/x. */
static uint32_t siblings_inner(const struct search *s, uint32_t folder)
{
    uint32_t only;

    while (!s->info[folder].here[COUNT_PICTURES] && (only = sibling_only(s, folder)) != NO_FOLDER)
        folder = only;
    return folder;
}

/* Has another one of the first siblings a folder of that name, in it or further down? */
static bool siblings_recurs(const struct search *s, const struct siblings *all, uint32_t but,
                            const char *name)
{
    unsigned n = 0;

    for (EACH_SIBLING(s, i, all->folder))
        if (n++ < COMPARED_MOST && i != but &&
            (siblings_has_named(s, i, name) || (sibling_only(s, i) != NO_FOLDER &&
                                                siblings_has_named(s, siblings_inner(s, i), name))))
            return true;
    return false;
}

/* How many of the first folders in `folder`, which is a sibling or below one, recur in others.
 * *ret_n: of how many. */
static unsigned siblings_count_recurring(const struct search *s, const struct siblings *all,
                                         uint32_t sibling, uint32_t folder, unsigned *ret_n)
{
    unsigned same = 0;

    *ret_n = 0;
    for (EACH_SIBLING(s, k, folder))
        if (*ret_n < COMPARED_MOST) {
            ++*ret_n;
            same += siblings_recurs(s, all, sibling, folder_name(s, k));
        }
    return same;
}

/* Has a folder's name a word for pictures, but not with the name above, such as cat/cat_images? */
static bool siblings_is_of_pictures(const struct search *s, uint32_t folder)
{
    const char *name = folder_name(s, folder), *at;
    struct name_piece piece;
    char other[128];

    words_differing(name, folder_name(s, s->info[folder].above), other, sizeof(other));
    at = other;
    if (strlen(other) < strlen(name) && words_have_pictures(other) &&
        next_piece(&at, other + strlen(other), &piece) && !*at)
        return false;
    return words_have_pictures(name);
}

enum siblings_deeper siblings_judge_deeper(const struct search *s, const struct siblings *all)
{
    size_t letters = 0, recur = 0, differ = 0, n = 0;
    bool have_splits = false, have_pictures = false;

    for (EACH_SIBLING(s, i, all->folder)) {
        const uint32_t inner = siblings_inner(s, i);
        unsigned folders, same;

        letters += siblings_is_letter(s, i);
        if (n == COMPARED_MOST)
            continue;
        n++;
        for (uint32_t k = i; k < next_folder(s, i); k++)
            have_splits = have_splits || siblings_have_two_splits(s, k);
        for (EACH_SIBLING(s, k, i))
            have_pictures = have_pictures || siblings_is_of_pictures(s, k);
        same = siblings_count_recurring(s, all, i, i, &folders);
        if (!same && inner != i)
            same = siblings_count_recurring(s, all, i, inner, &folders);
        recur += folders && 2 * same >= folders;
        differ += !same;
    }
    if (letters == all->n)
        return DEEPER_LETTERS;
    if (recur == n || have_splits)
        return DEEPER_DATASETS;
    return differ == n && !have_pictures ? DEEPER_CLASSES : DEEPER_MIXED;
}

bool siblings_have_same_names(const struct search *s, uint32_t a, uint32_t b)
{
    for (size_t i = s->info[b].first; i < s->info[b].last; i++) {
        const char *name = members_name(s->m, i);

        if (name_is_picture(name) && !pairs_have_picture(s, a, name, name_stem_alone(name)))
            return false;
    }
    return s->info[b].here[COUNT_PICTURES] > 0;
}

#define ROLES_MOST 4 /* classes are more: HighJump may be one of a hundred */

/* May a folder have pictures, and another what belongs to them, by their names? One name says
 * it; mask next to nomask does not, because both are classes. few: at most ROLES_MOST folders,
 * because gt may be one of many cars. */
static bool siblings_may_be_pair(const char *input, const char *target, bool few)
{
    if (words_have_pictures(input))
        return !words_have_pictures(target);
    return few && words_have_role(target) && words_have_target(target, strlen(target)) &&
           !words_may_be_classes(target) && !words_have_target(input, strlen(input)) &&
           !strcasestr(input, target);
}

bool siblings_have_roles(const struct search *s, const struct siblings *all)
{
    if (all->n > COMPARED_MOST)
        return false;
    for (EACH_SIBLING(s, i, all->folder)) {
        const char *name = folder_name(s, i), *first = folder_name(s, all->first);
        bool has_classes = all->direct && !all->both && !s->info[i].here[COUNT_PICTURES] &&
                           siblings_of(s, i).direct > 1;

        if (all->n == 2 && words_are_numbered(first, name) && strchr("_- ", name[strlen(first)]))
            return true;
        if (all->direct < all->n &&
            (siblings_have_two_splits(s, i) ||
             (all->n <= ROLES_MOST && (has_classes || words_have_role(name)))))
            return true;
        for (EACH_SIBLING(s, k, all->folder))
            if (k != i && siblings_may_be_pair(name, folder_name(s, k), all->n <= ROLES_MOST) &&
                (pairs_belong(s, i, k) ||
                 (words_have_pictures(name) && siblings_have_same_names(s, i, k))))
                return true;
    }
    return false;
}
