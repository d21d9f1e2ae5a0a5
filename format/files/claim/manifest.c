/* The datasets of a manifest, one for each usage, called <name>.<usage>: a sample for each line.
 * Labels are numbered by bytes over the whole manifest, so that all its datasets number them in one
 * way. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/manifests.h"
#include "format/files/claim/parts.h"
#include "format/files/claim/recipe_parts.h"
#include "format/rows/row.h"

#define MANIFEST_NAMES_MAX 60000 /* of labels */
#define USAGES             32    /* of a manifest */
#define USAGE_MAX          64    /* bytes of the name of a usage */

struct manifest {
    struct search *s;
    uint32_t root; /* below it sources are looked for */
    size_t file;   /* of the listing */
    char *what;    /* its path */
    char usage[USAGES][USAGE_MAX];
    unsigned n_usages;
    struct manifest_row {
        size_t file;     /* m->n: it is not there */
        size_t label, n; /* of label[] */
        unsigned usage;  /* its number */
        char *source;    /* of one that is not there; owned */
    } * row;             /* [n_rows] */
    size_t n_rows;
    struct numbered names; /* of labels */
    uint32_t *label;       /* [n_labels] of all rows, as names numbers them, */
    size_t n_labels;
    uint32_t *place; /* [names.n] and as classes do */
};

static void manifest_release(struct manifest *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        free(t->row[i].source);
    free(t->row);
    free(t->label);
    free(t->place);
    free(t->what);
    numbered_release(&t->names);
}

/* ---- lines ---- */

static int manifest_find_usage(struct manifest *t, const char *usage, const char *what,
                               unsigned *ret, struct diag *d)
{
    size_t len = strlen(usage);
    char name[USAGE_MAX];

    if (len >= USAGE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a usage of at most 63 bytes, got a longer one",
                        what);
    for (size_t i = 0; i <= len; i++)
        name[i] = (char)tolower((unsigned char)usage[i]);
    for (*ret = 0; *ret < t->n_usages; ++*ret)
        if (!strcmp(t->usage[*ret], name))
            return 0;
    if (t->n_usages == USAGES)
        return diag_set(d, -EBADMSG, "%s: expected at most %u usages, got more", what, USAGES);
    memcpy(t->usage[t->n_usages++], name, len + 1);
    return 0;
}

static int manifest_add_labels(struct manifest *t, const struct manifest_line *line,
                               const char *what, struct diag *d)
{
    for (size_t i = 0; i < line->n; i++) {
        int r = array_capacity(&t->label, t->n_labels, sizeof(*t->label));

        if (r == 0)
            r = numbered_add(&t->names, line->label[i], strlen(line->label[i]),
                             &t->label[t->n_labels]);
        if (r < 0)
            return r;
        t->n_labels++;
        if (t->names.n > MANIFEST_NAMES_MAX)
            return diag_set(d, -EBADMSG, "%s: expected at most %u labels, got more", what,
                            MANIFEST_NAMES_MAX);
    }
    return 0;
}

static int manifest_add_line(struct manifest *t, const struct manifest_line *line, const char *what,
                             struct diag *d)
{
    const struct members *m = t->s->m;
    struct manifest_row row = {.label = t->n_labels, .n = line->n};
    int r = manifest_find_usage(t, line->usage, what, &row.usage, d);

    if (r == 0)
        r = manifest_add_labels(t, line, what, d);
    if (r == 0)
        r = array_capacity(&t->row, t->n_rows, sizeof(row));
    if (r < 0)
        return r;
    row.file =
        manifest_find(m, claim_path(t->s, t->root), members_folder_of(m, t->file), line->source);
    if (row.file < m->n &&
        (!name_is_picture(members_name(m, row.file)) || !table_may_name(t->s, t->root, row.file)))
        row.file = m->n;
    if (row.file == m->n && !(row.source = strdup(line->source)))
        return -ENOMEM;
    t->row[t->n_rows++] = row;
    return 0;
}

static int manifest_read(struct manifest *t, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    AUTO(row_walk_release)
    struct row_walk walk = {.format = TABLE_JSONL, .name = t->what};
    struct row_bytes row;
    char what[512];
    int r = t->s->claims->open(t->s->claims, t->file, &blob, d);

    if (r < 0)
        return r;
    walk.blob = blob;
    walk.end = blob->size;
    for (uint64_t line = 1; (r = row_walk_next(&walk, &row, d)) == 1; line++) {
        AUTO_MANIFEST_LINE struct manifest_line parsed = {0};

        snprintf(what, sizeof(what), "%s, line %" PRIu64, walk.name, walk.line);
        if (walk.line != line)
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64 ": expected a JSON object, got an empty line",
                            walk.name, line);
        r = manifest_line_parse(&parsed, row.bytes, row.len, what, d);
        if (r == 0)
            r = manifest_add_line(t, &parsed, what, d);
        if (r < 0)
            return r;
    }
    if (r == 0 && !t->n_rows)
        return diag_set(d, -EBADMSG,
                        "%s: expected lines that are JSON objects with 'source' and 'usage', got "
                        "none; if it is no manifest of pictures, give it another name",
                        t->what);
    return r < 0 ? r : blob_verify(blob, d);
}

/* ---- a usage ---- */

/* The key: the path of the picture below the root, without its extension; of one that is not there,
 * the source. */
static int manifest_begin_row(const struct manifest *t, struct set *set,
                              const struct manifest_row *row)
{
    size_t root = strlen(claim_path(t->s, t->root));
    AUTO_FREE char *path = row->source ? strdup(row->source) : claim_file_path(t->s, row->file);
    const char *key = path;

    if (!path)
        return -ENOMEM;
    if (!row->source)
        key += root + (root > 0);
    return set_begin_row(set, key, path_stem(key, strlen(key)));
}

static int manifest_add_rows(const struct manifest *t, struct set *set, unsigned usage,
                             size_t *ret_missing)
{
    int r = 0;

    for (size_t i = 0; i < t->n_rows && r == 0; i++) {
        const struct manifest_row *row = &t->row[i];

        if (row->usage != usage)
            continue;
        r = manifest_begin_row(t, set, row);
        *ret_missing += row->source != NULL;
        if (r == 0)
            r = row->source ? set_add_lost(set, "",
                                           "expected a file of SOURCE, got none of that path or "
                                           "the end of it")
                            : set_add_file(t->s, set, row->file, NULL);
    }
    return r < 0 ? r : set_end(set);
}

/* The least and the most labels of a row. */
static void manifest_count_labels(const struct manifest *t, unsigned usage, uint64_t *ret_least,
                                  uint64_t *ret_most)
{
    *ret_least = UINT64_MAX;
    *ret_most = 0;
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->row[i].usage == usage) {
            *ret_least = min_u64(*ret_least, t->row[i].n);
            *ret_most = max_u64(*ret_most, t->row[i].n);
        }
}

/* A field of labels, and their names. */
static int manifest_label_field(struct set *set, uint64_t least, uint64_t most,
                                struct value_column **ret)
{
    struct files_view *view = set->claim->view;
    AUTO_TEXT struct text t = {0};
    int r = value_columns_add(&view->values, "label", VALUE_NUMBERS, DTYPE_I8, least != most,
                              least == most ? (unsigned)most : 0, ret);

    text_add_json_list(&t, view->class_name, sizeof(*view->class_name), view->n_classes);
    return r < 0 || t.failed ? -ENOMEM : set_add_about(set, "classes", "%s", t.data);
}

/* One label in each row is the class; otherwise they are a field. */
static int manifest_label(const struct manifest *t, struct set *set, unsigned usage)
{
    struct files_view *view = set->claim->view;
    struct value_column *c = NULL;
    uint64_t least, most;
    size_t n = 0;
    int r = numbered_names(&t->names, t->place, &view->class_name, &view->n_classes);

    manifest_count_labels(t, usage, &least, &most);
    if (r < 0 || !most)
        return r;
    if (most == 1 && least == 1)
        view->label = calloc(view->n + 1, sizeof(*view->label));
    else
        r = manifest_label_field(set, least, most, &c);
    if (r < 0 || (!c && !view->label))
        return -ENOMEM;
    for (size_t i = 0; i < t->n_rows && r == 0; i++) {
        const struct manifest_row *row = &t->row[i];
        int64_t number[MANIFEST_LABELS_MAX];

        if (row->usage != usage)
            continue;
        for (size_t k = 0; k < row->n; k++)
            number[k] = t->place[t->label[row->label + k]];
        if (!c)
            view->label[n++] = number[0];
        else
            r = value_column_append(c, number, least == most ? 1 : row->n);
        if (c && r == 0)
            r = value_column_end_row(c);
    }
    return r;
}

static int manifest_describe(const struct manifest *t, struct set *set, const char *usage,
                             size_t missing)
{
    int r = set_add_table(set, t->what, "manifest", "manifest");

    if (r == 0)
        r = set_add_about_text(set, "usage", usage);
    if (r == 0)
        r = set_add_about(set, "rows_without_file", "%zu", missing);
    if (r == 0 && missing)
        r = set_add_note(set, "%s, %s: %zu files that are not in SOURCE", t->what, usage, missing);
    return r;
}

/* usage NULL: the dataset is refused, and called like the file. */
static int manifest_add_set(const struct manifest *t, const char *usage, struct set **ret)
{
    const char *name = members_name(t->s->m, t->file);
    int r = set_begin(t->s, t->root, LAYOUT_FLAT, t->root, true, "manifests", ret);

    if (r < 0)
        return r;
    (*ret)->called = usage ? NULL : strdup(name);
    if (usage &&
        asprintf(&(*ret)->called, "%.*s.%s", (int)path_stem(name, strlen(name)), name, usage) < 0)
        (*ret)->called = NULL;
    for (char *p = (*ret)->called; p && *p; p++)
        *p = *p == '/' ? '_' : *p;
    return (*ret)->called ? 0 : -ENOMEM;
}

static int manifest_make(const struct manifest *t, unsigned usage)
{
    struct set *set;
    size_t missing = 0;
    int r = manifest_add_set(t, t->usage[usage], &set);

    if (r < 0)
        return r;
    set->claim->pictures_only = true;
    r = manifest_add_rows(t, set, usage, &missing);
    if (r == 0)
        r = manifest_label(t, set, usage);
    if (r == 0)
        r = manifest_describe(t, set, t->usage[usage], missing);
    return r < 0 || missing < set->claim->n_samples
               ? r
               : set_refuse(set,
                            "%s, usage %s: expected a line whose file is in SOURCE, got none in "
                            "%zu",
                            t->what, t->usage[usage], missing);
}

static int manifest_apply(struct search *s, uint32_t root, size_t file)
{
    AUTO(manifest_release)
    struct manifest t = {.s = s, .root = root, .file = file, .what = claim_file_path(s, file)};
    struct diag d = DIAG_INIT;
    struct set *set;
    int r = t.what ? manifest_read(&t, &d) : -ENOMEM;

    s->claims->taken[file] = CLAIMS_USED;
    if (r < 0 && r != -ENOMEM) {
        if (manifest_add_set(&t, NULL, &set) < 0 || set_end(set) < 0)
            return -ENOMEM;
        return set_refuse(set, "%s", diag_text(&d, r));
    }
    if (r == 0)
        r = numbered_sort(&t.names, &t.place);
    for (unsigned i = 0; i < t.n_usages && r == 0; i++)
        r = manifest_make(&t, i);
    return r;
}

int manifests_apply(struct search *s, uint32_t root)
{
    size_t first = s->info[root].first, end = s->info[s->info[root].end - 1].last;
    int r = 0;

    for (size_t i = first; i < end && r == 0; i++)
        if ((s->flags[i] & FILE_MANIFEST) && table_may_name(s, root, i))
            r = manifest_apply(s, root, i);
    for (size_t i = first; i < end; i++) /* they may name others tomorrow */
        if (!s->claims->taken[i] && name_is_picture(members_name(s->m, i)) &&
            table_may_name(s, root, i)) {
            s->claims->taken[i] = CLAIMS_ASIDE;
            s->flags[i] |= FILE_REASON_GIVEN;
        }
    return r;
}
