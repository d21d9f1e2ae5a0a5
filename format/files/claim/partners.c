/* The files of a pair that belong to a picture. */
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* Is a name before "<stem>."? */
static bool partners_is_before(const char *name, const char *stem, size_t len)
{
    int order = strncmp(name, stem, len);

    return order < 0 || (order == 0 && (unsigned char)name[len] < '.');
}

/* The first file of a folder from `at` on that is called by that stem and an extension; at
 * SIZE_MAX: from the first one on. SIZE_MAX: there is none. */
static size_t partner_find(const struct search *s, uint32_t folder, size_t at, const char *stem,
                           size_t len)
{
    const size_t first = s->info[folder].first;

    if (at == SIZE_MAX)
        at = first + SEARCH(s->info[folder].last - first, i,
                            partners_is_before(members_name(s->m, first + i), stem, len));
    for (; at < s->info[folder].last; at++) {
        const char *name = members_name(s->m, at);

        if (strncmp(name, stem, len) != 0 || name[len] != '.')
            return SIZE_MAX;
        if (name_stem_alone(name) == len)
            return at;
    }
    return SIZE_MAX;
}

bool pairs_have_picture(const struct search *s, uint32_t folder, const char *stem, size_t len)
{
    size_t at = partner_find(s, folder, SIZE_MAX, stem, len);

    while (at != SIZE_MAX && !name_is_of(s->media, members_name(s->m, at)))
        at = partner_find(s, folder, at + 1, stem, len);
    return at != SIZE_MAX;
}

uint32_t pairs_same_below(const struct search *s, uint32_t folder, uint32_t from, uint32_t to)
{
    const char *path = claim_path(s, folder) + strlen(claim_path(s, from));

    path += *path == '/';
    return folder_below(s, to, path, strlen(path));
}

size_t pair_partner(const struct search *s, const struct pair *pair, uint32_t input,
                    uint32_t folder, const char *name, size_t len, size_t after)
{
    uint32_t target = pairs_same_below(s, folder, input, pair->target);
    AUTO_TEXT struct text stem = {0};

    text_add(&stem, "%.*s%s", pair->whole ? (int)strlen(name) : (int)len, name,
             pair->whole ? "" : pair->end);
    return target == NO_FOLDER || stem.failed
               ? SIZE_MAX
               : partner_find(s, target, after + (after != SIZE_MAX), stem.data, stem.len);
}

/* Folders that are ignored, though their files belong to pictures of that folder. */
static bool partners_note_bare(const struct search *s, uint32_t input, struct set *set)
{
    for (uint32_t i = s->info[input].bare; i; i = s->info[i].bare)
        text_add(&set->notes,
                 "%s is ignored: its files belong to pictures, but epochfs knows no field for "
                 "them; an epochfs.json can name one\n",
                 claim_path(s, i));
    return s->info[input].bare;
}

/* Is no other set in a folder? */
static bool partners_is_only(const struct search *s, const struct set *set, uint32_t folder)
{
    for (size_t i = 0; i < s->n_sets; i++)
        if (&s->set[i] != set && s->set[i].root >= folder &&
            s->set[i].root < next_folder(s, folder))
            return false;
    return true;
}

void pairs_add_notes(const struct search *s, struct set *set)
{
    bool noted = false;

    for (uint32_t i = s->info[set->root].above; i != NO_FOLDER; i = s->info[i].above)
        if (s->info[i].bare && partners_is_only(s, set, i)) /* it looks at all sets */
            noted = partners_note_bare(s, i, set) || noted;
    for (uint32_t i = set->root; i < s->info[set->root].end && !noted; i++)
        noted = !s->info[i].is_target && partners_note_bare(s, i, set); /* scenes are alike */
    for (uint32_t i = set->root; i < s->info[set->root].end; i++) {
        for (const struct pair *pair = s->info[i].pairs; pair; pair = pair->next) {
            const char *input = folder_name(s, i);

            if (!words_have_pictures(input) && s->info[pair->target].above != i && i >= set->top &&
                i < s->info[set->top].end)
                text_add(&set->notes, "the %s are those of %s; files of %s are fields of them\n",
                         files_media[s->media].word, input, folder_name(s, pair->target));
            if (set->notes.len)
                return; /* scenes are alike */
        }
    }
}

bool pairs_have_long_names(const struct set *set)
{
    const struct folder_info *info = set->s->info;
    uint32_t folder = set->root;

    while (!info[folder].long_names && info[folder].above != NO_FOLDER)
        folder = info[folder].above;
    return info[folder].long_names;
}
