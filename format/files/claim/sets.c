/* Sets of samples: what a rule or a recipe has found, until they are collections. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/parts.h"

char *claim_file_path(const struct search *s, size_t file)
{
    const char *folder = members_folder_of(s->m, file);
    char *ret;

    return asprintf(&ret, "%s%s%s", folder, *folder ? "/" : "", members_name(s->m, file)) < 0 ? NULL
                                                                                              : ret;
}

/* The number of a role; 0: there are too many. */
static int sets_role(struct files_claim *claim, const char *name, unsigned *ret)
{
    for (*ret = 1; *ret <= claim->n_roles; ++*ret)
        if (!strcmp(claim->role_name[*ret - 1], name))
            return 0;
    *ret = 0;
    if (claim->n_roles == UINT8_MAX)
        return 0;
    if (array_capacity(&claim->role_name, claim->n_roles, sizeof(*claim->role_name)) < 0)
        return -ENOMEM;
    claim->role_name[claim->n_roles] = strdup(name);
    *ret = claim->n_roles + 1;
    return claim->role_name[claim->n_roles++] ? 0 : -ENOMEM;
}

static int sets_add(struct search *s, struct set *set, size_t file, unsigned role)
{
    uint8_t **roles = &set->claim->role;

    if (array_capacity(&set->file, set->n, sizeof(*set->file)) < 0)
        return -ENOMEM;
    if (*roles ? array_capacity(roles, set->n, 1) < 0 : role && array_begin(roles, set->n, 1) < 0)
        return -ENOMEM;
    if (*roles)
        (*roles)[set->n] = (uint8_t)role;
    set->file[set->n++] = (uint32_t)file;
    s->claims->taken[file] = CLAIMS_SAMPLE;
    return 0;
}

int set_begin(struct search *s, uint32_t root, enum files_layout layout, uint32_t top, bool whole,
              const char *rule, struct set **ret)
{
    struct files_claim *claim = calloc(1, sizeof(*claim));

    if (!claim || array_capacity(&s->set, s->n_sets, sizeof(*s->set)) < 0) {
        free(claim);
        return -ENOMEM;
    }
    *ret = &s->set[s->n_sets++];
    **ret = (struct set){.claim = claim, .root = root, .top = top, .whole = whole};
    claim->layout = layout;
    claim->media = s->media;
    claim->top = strdup(claim_path(s, top));
    claim->rule = strdup(rule);
    claim->view = calloc(1, sizeof(*claim->view));
    claim->n_views = claim->view ? 1 : 0;
    return claim->top && claim->rule && claim->view ? 0 : -ENOMEM;
}

int set_begin_sample(struct set *set)
{
    struct files_claim *claim = set->claim;

    if (array_capacity(&claim->first, claim->n_samples, sizeof(*claim->first)) < 0)
        return -ENOMEM;
    claim->first[claim->n_samples++] = (uint32_t)set->n;
    return 0;
}

int set_add_file(struct search *s, struct set *set, size_t file, const char *field)
{
    unsigned role = 0;
    int r = field ? sets_role(set->claim, field, &role) : 0;

    if (field && !role)
        return r;
    return r < 0 ? r : sets_add(s, set, file, role);
}

int set_end(struct set *set)
{
    struct files_claim *claim = set->claim;

    if (array_capacity(&claim->first, claim->n_samples, sizeof(*claim->first)) < 0)
        return -ENOMEM;
    claim->first[claim->n_samples] = (uint32_t)set->n;
    claim->view->n = claim->n_samples;
    return 0;
}

int set_add_ignored(struct set *set, const char *reason, size_t n, const char *first)
{
    struct text *t = &set->ignored;

    text_add(t, "%s{\"reason\": ", t->len ? ", " : "");
    text_add_json(t, reason);
    text_add(t, ", \"files\": %zu, \"first\": ", n);
    text_add_json(t, first);
    text_add(t, "}");
    return t->failed ? -ENOMEM : 0;
}

int set_add_source(struct set *set, enum set_source_type type, size_t file, size_t view)
{
    if (array_capacity(&set->source, set->n_sources, sizeof(*set->source)) < 0)
        return -ENOMEM;
    set->source[set->n_sources++] = (struct set_source){.type = type, .file = file, .view = view};
    return 0;
}

static char *sets_print(const char *format, va_list list)
{
    char *ret;

    return vasprintf(&ret, format, list) < 0 ? NULL : ret;
}

/* Add "<before><text><after>" to a text that may be NULL. */
static int sets_append(char **at, const char *before, const char *text, const char *after)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s%s%s%s", *at ? *at : "", before, text, after);
    free(*at);
    *at = NULL;
    return text_finish(&t, at, NULL);
}

int set_add_about(struct set *set, const char *name, const char *format, ...)
{
    AUTO_FREE char *json = NULL;
    AUTO_TEXT struct text member = {0};
    va_list list;

    va_start(list, format);
    json = sets_print(format, list);
    va_end(list);
    text_add(&member, "\"%s\": ", name);
    return json && !member.failed ? sets_append(&set->claim->about, member.data, json, ",\n")
                                  : -ENOMEM;
}

int set_add_about_text(struct set *set, const char *name, const char *text)
{
    AUTO_TEXT struct text t = {0};

    text_add_json(&t, text);
    return t.failed ? -ENOMEM : set_add_about(set, name, "%s", t.data);
}

/* ---- sets whose samples are the rows of a table ---- */

bool table_may_name(const struct search *s, uint32_t root, size_t file)
{
    size_t above = strlen(claim_path(s, root));

    return *members_name(s->m, file) != '.' &&
           !path_is_hidden(members_folder_of(s->m, file) + above);
}

int set_begin_row(struct set *set, const char *key, size_t len)
{
    struct value_columns *keys = &set->claim->keys;
    struct value_column *c = keys->column;
    int r = keys->n ? 0 : value_columns_add(keys, "key", VALUE_TEXT, DTYPE_U1, true, 0, &c);

    if (r == 0)
        r = value_column_set_text(c, set->claim->n_samples, key, len);
    return r < 0 ? r : set_begin_sample(set);
}

int set_add_lost(struct set *set, const char *field, const char *format, ...)
{
    struct files_claim *claim = set->claim;
    struct files_lost *lost;
    va_list list;

    if (array_capacity(&claim->lost, claim->n_lost, sizeof(*lost)) < 0)
        return -ENOMEM;
    lost = &claim->lost[claim->n_lost++];
    *lost = (struct files_lost){.sample = claim->n_samples - 1, .field = strdup(field)};
    va_start(list, format);
    lost->why = sets_print(format, list);
    va_end(list);
    return lost->field && lost->why ? 0 : -ENOMEM;
}

int set_add_table(struct set *set, const char *path, const char *word, const char *about)
{
    set->claim->table = strdup(path);
    set->claim->table_word = word;
    return set->claim->table ? set_add_about_text(set, about, path_base(path)) : -ENOMEM;
}

int set_add_note(struct set *set, const char *format, ...)
{
    AUTO_FREE char *line = NULL;
    va_list list;

    va_start(list, format);
    line = sets_print(format, list);
    va_end(list);
    return line ? sets_append(&set->notes, "", line, "\n") : -ENOMEM;
}

int set_refuse(struct set *set, const char *format, ...)
{
    va_list list;

    if (set->refused)
        return 0;
    va_start(list, format);
    set->refused = sets_print(format, list);
    va_end(list);
    return set->refused ? 0 : -ENOMEM;
}

static void sets_release_one(struct set *set)
{
    files_free_claim(set->claim);
    free(set->file);
    free(set->named);
    free(set->called);
    for (size_t i = 0; i < set->n_sources; i++) {
        free(set->source[i].key);
        free(set->source[i].label);
    }
    free(set->source);
    free(set->notes);
    free(set->refused);
    text_release(&set->ignored);
}

void sets_drop(struct search *s, size_t from)
{
    while (s->n_sets > from) {
        struct set *set = &s->set[--s->n_sets];

        for (size_t i = 0; i < set->n; i++)
            s->claims->taken[set->file[i]] = 0;
        sets_release_one(set);
    }
}

void sets_release(struct search *s)
{
    for (size_t i = 0; i < s->n_sets; i++)
        sets_release_one(&s->set[i]);
    free(s->set);
    s->set = NULL;
    s->n_sets = 0;
}
