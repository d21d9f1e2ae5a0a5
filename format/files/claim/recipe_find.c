/* Which files the patterns of a recipe's dataset name. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "base/text.h"
#include "format/files/claim/recipe_parts.h"

#define HAS_MOST 64 /* patterns that must each have a file */

int recipe_refuse_pattern(const struct recipe_making *t, const char *pattern, const char *what)
{
    return recipe_fault(t->recipe, pattern, t->d, what);
}

static int recipe_add_hit(struct recipe_making *t, const char *pattern, uint32_t rank, size_t file,
                          const struct pattern_words *words)
{
    const struct pattern_word *label = pattern_find(words, "label", 5);
    AUTO_TEXT struct text name = {0};
    struct recipe_hit hit = {
        .file = (uint32_t)file, .pattern = pattern, .rank = rank, .label = UINT32_MAX};
    int r;

    pattern_fill(t->name, words, &name); /* if not, a list has the word */
    r = numbered_add(&t->groups, name.data ? name.data : "", name.len, &hit.group);
    if (r == 0 && label)
        r = numbered_add(&t->labels, label->text, label->len, &hit.label);
    if (r == 0 && t->groups.n > RECIPE_DATASETS)
        r = diag_set(t->d, -EBADMSG, "%s, line %u: '%s': expected at most %u datasets, got more",
                     t->recipe->name, recipe_line(t->recipe, t->name), t->name, RECIPE_DATASETS);
    if (r < 0 || !search_capacity(t->s, &t->hit, t->n, sizeof(hit)))
        return r < 0 ? r : -ENOMEM;
    t->hit[t->n++] = hit;
    return 0;
}

static int recipe_match_file(struct recipe_making *t, const json_t *pictures, size_t file,
                             bool *has)
{
    const uint8_t taken = t->s->claims->taken[file]; /* datasets of recipes may share files */
    struct pattern_words words;
    char path[PATH_MAX];
    size_t i;
    int r;

    if ((taken && taken != CLAIMS_SAMPLE && taken != CLAIMS_GROUPED) ||
        !recipe_path(t->s, t->recipe, file, path))
        return 0;
    r = recipe_match(t->recipe, pictures, path, &words, &i, t->d);
    if (r <= 0 || path_is_hidden(path))
        return r < 0 ? r : 0;
    r = recipe_match(t->recipe, json_object_get(t->dataset, "except"), path, NULL, NULL, t->d);
    if (r)
        return r < 0 ? r : 0;
    if (i < HAS_MOST)
        has[i] = true;
    return recipe_add_hit(t, recipe_pattern(pictures, i), (uint32_t)i, file, &words);
}

void recipe_pattern_range(const struct search *s, uint32_t above, const char *pattern,
                          const char *special, size_t *ret_first, size_t *ret_end)
{
    const size_t plain = strcspn(pattern, special);
    size_t n = plain, last;
    const char *name;
    uint32_t folder;

    while (n && pattern[n] != '/')
        n--;
    name = pattern + n + (pattern[n] == '/');
    folder = folder_below(s, above, pattern, n);
    *ret_first = folder == NO_FOLDER ? 0 : s->info[folder].first;
    *ret_end = folder == NO_FOLDER ? 0 : folder_end(s, folder);
    if (folder == NO_FOLDER || strchr(name, '/') || strstr(name, "**"))
        return;
    n = (size_t)(pattern + plain - name);
    last = s->info[folder].last;
    *ret_first +=
        SEARCH(last - *ret_first, i, strncmp(members_name(s->m, *ret_first + i), name, n) < 0);
    *ret_end = *ret_first + SEARCH(last - *ret_first, i,
                                   strncmp(members_name(s->m, *ret_first + i), name, n) == 0);
}

/* The files that patterns may have. */
static void recipe_range(const struct recipe_making *t, const json_t *pictures, size_t *first,
                         size_t *end)
{
    const char *pattern;

    *first = t->s->m->n;
    *end = 0;
    for (size_t i = 0; (pattern = recipe_pattern(pictures, i)); i++) {
        size_t from, to;

        recipe_pattern_range(t->s, t->recipe->folder, pattern, "{*", &from, &to);
        *first = from < to ? min_u64(*first, from) : *first;
        *end = from < to ? max_u64(*end, to) : *end;
    }
}

/* Files that cannot be read are not in the listing. A dataset that has some is none: without them
 * it would be shorter. */
static int recipe_check_unread(const struct recipe_making *t, const json_t *files)
{
    const char *above = claim_path(t->s, t->recipe->folder);
    const struct claims *claims = t->s->claims;
    size_t i;
    int r = 0;

    for (size_t n = 0; n < claims->n_unread && r == 0; n++) {
        const char *path = claims->unread[n].name;

        if (!members_is_below(path, above) || path_is_hidden(path))
            continue;
        path += strlen(above) + (*above > 0);
        r = recipe_match(t->recipe, files, path, NULL, &i, t->d);
        if (r > 0)
            r = recipe_match(t->recipe, json_object_get(t->dataset, "except"), path, NULL, NULL,
                             t->d)
                    ? 0
                    : recipe_refuse_pattern(t, recipe_pattern(files, i), claims->unread[n].reason);
    }
    return r;
}

int recipe_find_files(struct recipe_making *t)
{
    const json_t *files = json_object_get(t->dataset, "files"),
                 *pictures = files ? files : json_object_get(t->dataset, "pictures");
    bool has[HAS_MOST] = {false};
    const char *pattern;
    size_t at, end;
    int r = files ? recipe_check_unread(t, files) : 0;

    recipe_range(t, pictures, &at, &end);
    for (; at < end && r == 0; at++)
        r = recipe_match_file(t, pictures, at, has);
    for (size_t i = 0; r == 0 && i < HAS_MOST && (pattern = recipe_pattern(pictures, i)); i++)
        if (!has[i])
            return recipe_refuse_pattern(t, pattern, "expected a file of that name, got none");
    return r;
}
