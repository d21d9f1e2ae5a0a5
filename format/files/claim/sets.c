/* Sets of samples: what a rule or a recipe has found, until they are collections. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "format/files/claim/parts.h"

bool search_capacity(struct search *s, void *array, size_t n, size_t each)
{
    s->failed = s->failed || array_capacity(array, n, each) < 0;
    return !s->failed;
}

void search_add_text(struct search *s, char ***list, size_t *n, const char *text, size_t len)
{
    char *copy = strndup(text, len);

    s->failed = s->failed || !copy;
    if (!search_capacity(s, list, *n, sizeof(**list))) {
        free(copy);
        return;
    }
    (*list)[(*n)++] = copy;
}

int search_head(struct search *s, size_t file, void *bytes, size_t size)
{
    int len;

    if (s->claims->heads(s->claims, &file, 1, size, bytes, &len) < 0) {
        s->failed = true;
        return -ENOMEM;
    }
    return len;
}

int search_rows(struct search *s, size_t file, const char *name, enum table_format format,
                int (*add)(void *ctx, const struct row_bytes *row, uint64_t line, const char *what,
                           struct diag *d),
                void *ctx, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    AUTO(row_walk_release) struct row_walk walk = {.format = format, .name = name};
    struct row_bytes row;
    char what[512];
    int r = s->claims->open(s->claims, file, &blob, d);

    if (r < 0)
        return r;
    walk.blob = blob;
    walk.end = blob->size;
    while ((r = row_walk_next(&walk, &row, d)) == 1) {
        snprintf(what, sizeof(what), "%s, line %" PRIu64, name, walk.line);
        r = add(ctx, &row, walk.line, what, d);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : blob_verify(blob, d);
}

/* ---- samples ---- */

/* The number of a role, which may be new; 0: there are too many. */
static size_t sets_role(struct set *set, const char *name)
{
    struct files_claim *claim = set->claim;
    size_t role = 1;

    while (role <= claim->n_roles && strcmp(claim->role_name[role - 1], name) != 0)
        role++;
    if (role > claim->n_roles && role <= UINT8_MAX)
        search_add_text(set->s, &claim->role_name, &claim->n_roles, name, strlen(name));
    return role <= claim->n_roles ? role : 0;
}

struct set *set_begin(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                      const char *rule)
{
    struct set set = {.s = s, .root = root, .top = top, .claim = calloc(1, sizeof(*set.claim))};

    if (set.claim) {
        set.claim->layout = layout;
        set.claim->media = s->media;
        set.claim->top = strdup(claim_path(s, top));
        set.claim->rule = strdup(rule);
        set.claim->view = calloc(1, sizeof(*set.claim->view));
        set.claim->n_views = set.claim->view ? 1 : 0;
    }
    s->failed = s->failed || !set.claim || !set.claim->top || !set.claim->rule || !set.claim->view;
    if (!search_capacity(s, &s->set, s->n_sets, sizeof(*s->set))) {
        files_free_claim(set.claim);
        return NULL;
    }
    s->set[s->n_sets] = set;
    return &s->set[s->n_sets++];
}

void set_begin_sample(struct set *set)
{
    struct files_claim *claim = set->claim;

    if (search_capacity(set->s, &claim->first, claim->n_samples, sizeof(*claim->first)))
        claim->first[claim->n_samples++] = (uint32_t)set->n;
}

void set_add_file(struct set *set, size_t file, const char *field)
{
    size_t role = field ? sets_role(set, field) : 0;
    uint8_t **roles = &set->claim->role;

    if ((field && !role) || !search_capacity(set->s, &set->file, set->n, sizeof(*set->file)))
        return;
    if (*roles ? array_capacity(roles, set->n, 1) < 0 : role && array_begin(roles, set->n, 1) < 0)
        set->s->failed = true;
    if (set->s->failed)
        return;
    if (*roles)
        (*roles)[set->n] = (uint8_t)role;
    set->file[set->n++] = (uint32_t)file;
    set->s->claims->taken[file] = CLAIMS_SAMPLE;
}

uint32_t set_picture(const struct set *set, size_t sample)
{
    const struct files_claim *claim = set->claim;

    for (uint32_t i = claim->first[sample]; i < claim->first[sample + 1]; i++)
        if (name_is_of(claim->media, members_name(set->s->m, set->file[i])))
            return set->file[i];
    return set->file[claim->first[sample]];
}

void set_end(struct set *set)
{
    struct files_claim *claim = set->claim;

    if (search_capacity(set->s, &claim->first, claim->n_samples, sizeof(*claim->first)))
        claim->first[claim->n_samples] = (uint32_t)set->n;
    claim->view->n = claim->n_samples;
}

/* ---- what is said of them ---- */

void set_add_ignored(struct set *set, const char *reason, size_t n, const char *first)
{
    struct text *t = &set->ignored;

    json_open(t, NULL, NULL, "{");
    json_add_text(t, NULL, "reason", reason);
    json_add_number(t, NULL, "files", n);
    json_add_text(t, NULL, "first", first);
    json_close(t, NULL, "}");
}

json_t *search_json_text(struct search *s, const char *text)
{
    AUTO_TEXT struct text t = {0};
    json_t *ret;

    for (size_t n; *text; text += n ? n : 1) {
        n = text_character(text, strlen(text));
        text_add_bytes(&t, n ? text : "\xef\xbf\xbd", n ? n : 3);
    }
    ret = t.failed ? NULL : json_string(t.data ? t.data : "");
    s->failed = s->failed || !ret;
    return ret;
}

void search_json_set(struct search *s, json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) < 0)
        s->failed = true;
}

void set_say(struct set *set, size_t view, const char *member, json_t *value)
{
    json_t *said;

    if (!set->said)
        set->said = json_array();
    while (json_array_size(set->said) <= view && !set->s->failed)
        set->s->failed = json_array_append_new(set->said, json_object()) < 0;
    said = json_array_get(set->said, view);
    if (said && !json_object_get(said, member))
        search_json_set(set->s, said, member, json_array());
    if (json_array_append_new(json_object_get(said, member), value) < 0)
        set->s->failed = true;
}

void set_say_file(struct set *set, size_t view, const char *member, size_t file)
{
    AUTO_FREE char *path = member_path(set->s->m, file);

    set_say(set, view, member, path ? search_json_text(set->s, path) : NULL);
}

void set_refuse(struct set *set, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (!set->refused && vasprintf(&set->refused, format, list) < 0) {
        set->refused = NULL;
        set->s->failed = true;
    }
    va_end(list);
}

/* ---- sets whose samples are the rows of a table ---- */

bool table_may_name(const struct search *s, uint32_t root, size_t file)
{
    size_t above = strlen(claim_path(s, root));

    return *members_name(s->m, file) != '.' &&
           !path_is_hidden(members_folder_of(s->m, file) + above);
}

void set_begin_row(struct set *set, const char *key, size_t len)
{
    struct value_columns *keys = &set->claim->keys;
    struct value_column *c = keys->column;

    if (!keys->n)
        value_columns_add(keys, "key", VALUE_TEXT, DTYPE_U1, true, 0, &c);
    if (value_column_set(c, set->claim->n_samples, key, len) < 0)
        set->s->failed = true;
    set_begin_sample(set);
}

void set_add_lost(struct set *set, const char *field, const char *why)
{
    struct files_claim *claim = set->claim;
    struct files_lost lost = {claim->n_samples - 1, strdup(field), strdup(why)};

    set->s->failed = set->s->failed || !lost.field || !lost.why;
    if (search_capacity(set->s, &claim->lost, claim->n_lost, sizeof(lost))) {
        claim->lost[claim->n_lost++] = lost;
    } else {
        free(lost.field);
        free(lost.why);
    }
}

void set_add_table(struct set *set, const char *path, const char *word, const char *about)
{
    set->claim->table = strdup(path);
    set->claim->table_word = word;
    set->s->failed = set->s->failed || !set->claim->table;
    json_add_text(&set->about, "", about, path_base(path));
}

/* ---- the end ---- */

static void sets_release_one(struct set *set)
{
    files_free_claim(set->claim);
    free(set->file);
    free(set->named);
    free(set->called);
    json_decref(set->said);
    value_columns_release(&set->label);
    free(set->refused);
    text_release(&set->notes);
    text_release(&set->about);
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
    for (size_t i = 0; i < from; i++) /* these may have some of the files */
        for (size_t k = 0; k < s->set[i].n; k++)
            s->claims->taken[s->set[i].file[k]] = CLAIMS_SAMPLE;
}

void sets_release(struct search *s)
{
    while (s->n_sets)
        sets_release_one(&s->set[--s->n_sets]);
    free(s->set);
    s->set = NULL;
}
