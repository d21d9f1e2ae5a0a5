/* What a recipe leaves: folders, and files by their extensions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/recipe_print.h"

int recipe_leave_folder(struct recipe_print *print, const char *path)
{
    AUTO_TEXT struct text t = {0};

    shape_add_plain(&t, path, strlen(path));
    text_add(&t, "%s**", *path ? "/" : "");
    return t.failed || texts_add(&print->leave, t.data) == -ENOMEM ? -ENOMEM : 0;
}

/* Files of a folder that are nothing yet, by extension. */
static int recipe_leave_by_ext(struct recipe_print *print, const struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);
    int r = 0;

    for (size_t i = s->info[folder].first; i < s->info[folder].last && r == 0; i++) {
        const char *name = members_name(s->m, i), *dot = strrchr(name, '.');
        AUTO_TEXT struct text t = {0};

        if (s->claims->taken[i] || is_skipped(name) || name_is_notice(name))
            continue;
        shape_add_plain(&t, path, strlen(path));
        text_add(&t, "%s%s", *path ? "/" : "", dot ? "*" : "");
        shape_add_plain(&t, dot ? dot : name, strlen(dot ? dot : name));
        r = t.failed || texts_add(&print->leave, t.data) == -ENOMEM ? -ENOMEM : 0;
    }
    return r;
}

int recipe_leave_all(struct recipe_print *print, const struct search *s)
{
    AUTO_FREE uint8_t *has_taken = calloc(s->m->n_folders + 1, 1);
    int r = has_taken ? 0 : -ENOMEM;

    for (size_t i = 0; i < s->m->n && r == 0; i++)
        for (uint32_t f = s->m->member[i].folder;
             s->claims->taken[i] && f != NO_FOLDER && !has_taken[f]; f = s->info[f].above)
            has_taken[f] = 1;
    for (uint32_t i = 0; i < s->m->n_folders && r == 0;) {
        bool is_free = !has_taken[i] && *claim_path(s, i);

        if (is_free && s->info[i].first < s->info[s->info[i].end - 1].last)
            r = recipe_leave_folder(print, claim_path(s, i));
        else if (!is_free)
            r = recipe_leave_by_ext(print, s, i);
        i = is_free ? next_folder(s, i) : i + 1;
    }
    return r;
}
