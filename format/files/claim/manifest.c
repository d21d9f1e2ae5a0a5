/* The datasets of a manifest, one for each usage, called <name>.<usage>: a sample for each line.
 * Labels are numbered by bytes over the whole manifest, so that all its datasets number them in one
 * way. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "format/core/numbered.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/manifests.h"
#include "format/files/claim/parts.h"

#define MANIFEST_NAMES_MAX 60000 /* of labels */
#define USAGES             32    /* of a manifest */
#define USAGE_MAX          64    /* bytes of the name of a usage */

struct manifest {
    struct search *s;
    uint32_t root;         /* below it sources are looked for */
    size_t file;           /* of the listing */
    char *what;            /* its path */
    struct numbered names; /* of labels */
    struct manifest_usage {
        char name[USAGE_MAX];
        size_t set;           /* its number: its view has the numbers of the labels of each row */
        uint64_t least, most; /* labels of a row */
        size_t missing;       /* rows without a file */
    } usage[USAGES];
    unsigned n_usages;
    uint64_t lines; /* so far */
};

static void manifest_release(struct manifest *t)
{
    free(t->what);
    numbered_release(&t->names);
}

/* usage NULL: the dataset is refused, and called like the file. */
static struct set *manifest_add_set(const struct manifest *t, const char *usage)
{
    const char *name = members_name(t->s->m, t->file);
    int len = usage ? (int)path_stem(name, strlen(name)) : (int)strlen(name);
    struct set *set = set_begin(t->s, t->root, LAYOUT_FLAT, t->root, "manifests");

    if (!set ||
        text_print(&set->called, "%.*s%s%s", len, name, usage ? "." : "", usage ? usage : "") < 0) {
        t->s->failed = true;
        return NULL;
    }
    for (char *p = set->called; *p; p++)
        *p = *p == '/' ? '_' : *p;
    return set;
}

/* ---- lines ---- */

/* The usage of that name, in small letters; a new one is a set more. */
static int manifest_find_usage(struct manifest *t, const char *name, const char *what,
                               struct manifest_usage **ret, struct diag *d)
{
    struct manifest_usage *usage = t->usage;
    struct value_column *c;
    struct set *set;

    if (strlen(name) >= USAGE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a usage of at most 63 bytes, got a longer one",
                        what);
    while (usage < t->usage + t->n_usages && strcasecmp(usage->name, name) != 0)
        usage++;
    *ret = usage;
    if (usage < t->usage + t->n_usages)
        return 0;
    if (t->n_usages == USAGES)
        return diag_set(d, -EBADMSG, "%s: expected at most %u usages, got more", what, USAGES);
    for (size_t i = 0; name[i]; i++)
        usage->name[i] = (char)tolower((unsigned char)name[i]);
    t->n_usages++;
    usage->least = UINT64_MAX;
    usage->set = t->s->n_sets;
    set = manifest_add_set(t, usage->name);
    if (!set)
        return -ENOMEM;
    set->claim->pictures_only = true;
    return value_columns_add(&set->claim->view->values, "label", VALUE_NUMBERS, DTYPE_I8, true, 0,
                             &c);
}

static int manifest_add_labels(struct manifest *t, struct manifest_usage *usage,
                               const json_t *annotation, const char *what, struct diag *d)
{
    const size_t n = json_array_size(annotation);
    struct value_column *c = t->s->set[usage->set].claim->view->values.column;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const json_t *name = json_object_get(json_array_get(annotation, i), "name");
        uint32_t number;

        r = numbered_add(&t->names, json_string_value(name), json_string_length(name), &number);
        if (t->names.n > MANIFEST_NAMES_MAX)
            return diag_set(d, -EBADMSG, "%s: expected at most %u labels, got more", what,
                            MANIFEST_NAMES_MAX);
        value_column_append(c, &(int64_t){number}, 1);
    }
    usage->least = min_u64(usage->least, n);
    usage->most = max_u64(usage->most, n);
    return r < 0 ? r : value_column_end_row(c);
}

/* The key: the path of the picture below the root, without its extension; of one that is not there,
 * the source. */
static int manifest_add_line(struct manifest *t, const json_t *line, const char *what,
                             struct diag *d)
{
    const struct members *m = t->s->m;
    const char *source = json_string_value(json_object_get(line, "source"));
    const char *root = claim_path(t->s, t->root), *key = source;
    AUTO_FREE char *path = NULL;
    struct manifest_usage *usage = NULL;
    struct set *set;
    size_t file;
    int r =
        manifest_find_usage(t, json_string_value(json_object_get(line, "usage")), what, &usage, d);

    if (r == 0)
        r = manifest_add_labels(t, usage, json_object_get(line, "annotation"), what, d);
    if (r < 0)
        return r;
    set = &t->s->set[usage->set];
    file = manifest_find(m, root, members_folder_of(m, t->file), source);
    if (file < m->n && name_is_picture(members_name(m, file)) &&
        table_may_name(t->s, t->root, file)) {
        path = member_path(t->s->m, file);
        if (!path)
            return -ENOMEM;
        key = path + strlen(root) + (*root != '\0');
    }
    set_begin_row(set, key, path_stem(key, strlen(key)));
    if (path) {
        set_add_file(set, file, NULL);
    } else {
        set_add_lost(set, "", "expected a file of SOURCE, got none of that path or the end of it");
        usage->missing++;
    }
    return 0;
}

static int manifest_add_row(void *manifest, const struct row_bytes *row, uint64_t line,
                            const char *what, struct diag *d)
{
    AUTO_JSON json_t *parsed = NULL;
    struct manifest *t = manifest;
    int r;

    if (line != ++t->lines)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected a JSON object, got an empty line", t->what,
                        t->lines);
    r = manifest_line_read(row->bytes, row->len, what, &parsed, d);
    return r < 0 ? r : manifest_add_line(t, parsed, what, d);
}

static int manifest_read(struct manifest *t, struct diag *d)
{
    int r = search_rows(t->s, t->file, t->what, TABLE_JSONL, manifest_add_row, t, d);

    return r < 0 || t->n_usages
               ? r
               : diag_set(d, -EBADMSG,
                          "%s: expected lines that are JSON objects with 'source' and 'usage', got "
                          "none; if it is no manifest of pictures, give it another name",
                          t->what);
}

/* ---- a usage ---- */

/* Labels by their places among all. One label in each row is the class; otherwise they are a field.
 */
static int manifest_label(const struct manifest *t, const struct manifest_usage *usage)
{
    struct set *set = &t->s->set[usage->set];
    struct files_view *view = set->claim->view;
    struct value_column *c = view->values.column;
    int64_t *number = (int64_t *)(void *)c->bytes;
    int r = numbered_names(&t->names, true, &view->class_name, &view->n_classes);

    for (size_t i = 0; i < c->len / sizeof(*number); i++)
        number[i] = t->names.place[number[i]];
    if (usage->most <= 1 && usage->least == usage->most) {
        view->label = usage->most ? number : NULL;
        c->bytes = usage->most ? NULL : c->bytes;
        value_columns_remove(&view->values, 0);
        return r;
    }
    json_add_texts(&set->about, "", "classes", view->class_name, sizeof(*view->class_name),
                   view->n_classes);
    if (usage->least == usage->most) { /* as many in each row */
        c->is_list = false;
        c->width = (unsigned)usage->most;
    }
    return r;
}

static int manifest_make(const struct manifest *t, const struct manifest_usage *usage)
{
    struct set *set = &t->s->set[usage->set];
    int r;

    set_end(set);
    r = manifest_label(t, usage);
    set_add_table(set, t->what, "manifest", "manifest");
    json_add_text(&set->about, "", "usage", usage->name);
    json_add_number(&set->about, "", "rows_without_file", usage->missing);
    if (usage->missing)
        text_add(&set->notes, "%s, %s: %zu files that are not in SOURCE\n", t->what, usage->name,
                 usage->missing);
    if (usage->missing == set->claim->n_samples)
        set_refuse(set, "%s, usage %s: expected a line whose file is in SOURCE, got none in %zu",
                   t->what, usage->name, usage->missing);
    return r;
}

static void manifest_apply(struct search *s, uint32_t root, size_t file)
{
    AUTO(manifest_release)
    struct manifest t = {.s = s, .root = root, .file = file, .what = member_path(s->m, file)};
    size_t before = s->n_sets;
    struct diag d = DIAG_INIT;
    struct set *set;
    int r = t.what ? manifest_read(&t, &d) : -ENOMEM;

    s->claims->taken[file] = CLAIMS_USED;
    if (r < 0 && r != -ENOMEM) {
        sets_drop(s, before);
        set = manifest_add_set(&t, NULL);
        if (set) {
            set_end(set);
            set_refuse(set, "%s", diag_text(&d, r));
        }
        return;
    }
    if (r == 0)
        r = numbered_sort(&t.names);
    for (unsigned i = 0; i < t.n_usages && r == 0 && !s->failed; i++)
        r = manifest_make(&t, &t.usage[i]);
    s->failed = s->failed || r < 0;
}

void manifests_apply(struct search *s, uint32_t root)
{
    size_t first = s->info[root].first, end = folder_end(s, root);

    for (size_t i = first; i < end && !s->failed; i++)
        if ((s->flags[i] & FILE_MANIFEST) && table_may_name(s, root, i))
            manifest_apply(s, root, i);
    for (size_t i = first; i < end; i++) /* they may name others tomorrow */
        if (!s->claims->taken[i] && name_is_picture(members_name(s->m, i)) &&
            table_may_name(s, root, i)) {
            s->claims->taken[i] = CLAIMS_ASIDE;
            s->flags[i] |= FILE_REASON_GIVEN;
        }
}
