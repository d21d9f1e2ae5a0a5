/* The files of a pair that belong to a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

size_t pairs_first(const struct search *s, uint32_t folder, const char *stem, size_t len)
{
    size_t low = s->info[folder].first, high = s->info[folder].last;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *name = members_name(s->m, middle);
        int order = strncmp(name, stem, len);

        if (order < 0 || (order == 0 && (unsigned char)name[len] < '.'))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first file from `at` on that is called by that stem and an extension; SIZE_MAX: none. */
static size_t partners_find(const struct search *s, uint32_t folder, size_t at, const char *stem,
                            size_t len)
{
    for (; at < s->info[folder].last; at++) {
        const char *name = members_name(s->m, at);

        if (strncmp(name, stem, len) != 0 || name[len] != '.')
            return SIZE_MAX;
        if (name_stem_last(name) == len)
            return at;
    }
    return SIZE_MAX;
}

bool pairs_have_picture(const struct search *s, uint32_t folder, const char *stem, size_t len)
{
    size_t at = pairs_first(s, folder, stem, len);

    while ((at = partners_find(s, folder, at, stem, len)) != SIZE_MAX) {
        if (name_is_of(s->media, members_name(s->m, at)))
            return true;
        at++;
    }
    return false;
}

/* The folder below `to` where `folder` is below `from`. */
uint32_t pairs_same_below(const struct search *s, uint32_t folder, uint32_t from, uint32_t to)
{
    const char *path = claim_path(s, folder) + strlen(claim_path(s, from));
    AUTO_TEXT struct text t = {0};

    if (!*path)
        return to;
    text_add(&t, "%s%s", claim_path(s, to), *claim_path(s, to) ? path : path + (*path == '/'));
    return t.failed || !t.data ? NO_FOLDER : folder_of_path(s, t.data, t.len);
}

size_t pair_partner(const struct search *s, const struct pair *pair, uint32_t input,
                    uint32_t folder, const char *name, size_t after)
{
    uint32_t target = pairs_same_below(s, folder, input, pair->target);
    AUTO_FREE char *other = NULL;

    if (target == NO_FOLDER)
        return SIZE_MAX;
    if (pair->whole)
        other = strdup(name);
    else if (asprintf(&other, "%.*s%s", (int)name_stem_alone(name), name, pair->end) < 0)
        other = NULL;
    if (!other)
        return SIZE_MAX;
    return partners_find(
        s, target, after == SIZE_MAX ? pairs_first(s, target, other, strlen(other)) : after + 1,
        other, strlen(other));
}

int pairs_add_notes(const struct search *s, struct set *set)
{
    int r = 0;

    for (uint32_t i = set->root; i < s->info[set->root].end; i++)
        for (const struct pair *pair = s->info[i].pairs; pair && r == 0; pair = pair->next) {
            const char *input = path_base(claim_path(s, i));

            if (!words_have_pictures(input) && i >= set->top && i < s->info[set->top].end)
                r = set_add_note(set, "the %s are those of %s; files of %s are fields of them",
                                 files_media[s->media].word, input,
                                 path_base(claim_path(s, pair->target)));
            if (set->notes)
                return r; /* scenes are alike */
        }
    return r;
}
