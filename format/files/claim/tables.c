/* Tables and lists next to pictures. A table in whose rows each picture of a dataset is
 * named once says more of it: its columns are fields. Another one, whose name has a word for a
 * split, and that names nothing but pictures of a dataset, is a part of that dataset: its rows are
 * the samples. All others are ignored, and it is said why. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/table.h"
#include "format/files/claim/annotations.h"
#include "format/files/claim/recipe.h"
#include "format/files/claim/words.h"

/* Files that are read, at most: of SOURCE, and of a folder. */
#define TABLES_MOST   256
#define TABLES_FOLDER 32

/* ---- where a table belongs ---- */

static int annotating_mark_folders(struct annotating *a)
{
    const struct search *s = a->s;

    a->has_samples = calloc(s->m->n_folders + 1, sizeof(*a->has_samples));
    a->is_inside = calloc(s->m->n_folders + 1, sizeof(*a->is_inside));
    if (!a->has_samples || !a->is_inside)
        return -ENOMEM;
    for (size_t i = 0; i < a->pictures.n; i++)
        for (uint32_t f = s->m->member[a->pictures.file[i]].folder;
             f != NO_FOLDER && !a->has_samples[f]; f = s->info[f].above)
            a->has_samples[f] = true;
    for (size_t i = 0; i < s->n_sets; i++)
        for (uint32_t f = s->set[i].top + 1; f < s->info[s->set[i].top].end; f++)
            a->is_inside[f] = true;
    return 0;
}

/* ---- a table ---- */

struct table_use {
    struct picture_table *table;
    size_t file;
    uint32_t scope;
    uint32_t *row; /* [pictures] the row of each, or VALUE_NO_ROW */
    size_t named;  /* pictures that have one */
};

static bool table_use_covers(const struct table_use *use, const struct set *set)
{
    for (size_t i = 0; i < set->claim->n_samples; i++)
        if (use->row[set->base + i] == VALUE_NO_ROW)
            return false;
    return set->claim->n_samples > 0;
}

/* Join the table to each set that it covers: how many, or -ENOMEM. */
static int table_use_join(struct annotating *a, const struct table_use *use)
{
    int joined = 0, r = 0;

    for (size_t i = 0; i < a->s->n_sets && r == 0; i++) {
        const struct set *set = &a->s->set[i];

        if (set->refused || set->dataset || !set_has_pictures(set) || !table_use_covers(use, set))
            continue;
        r = annotating_add_table(a, i, 0, members_name(a->s->m, use->file), use->table,
                                 use->row + set->base);
        if (r == 0)
            r = annotating_keep_source(a, i, 0, use->file, use->table);
        joined++;
    }
    return r < 0 ? r : joined;
}

/* The set of all pictures that the table names; n_sets: they are of several. */
static size_t table_use_set(const struct annotating *a, const struct table_use *use)
{
    const uint32_t *picture = use->table->picture;
    size_t n = use->table->rows, found = a->s->n_sets;

    for (size_t i = 0; i < n; i++) {
        size_t set;

        if (picture[i] >= a->pictures.n)
            return a->s->n_sets;
        set = (size_t)(pictures_set(&a->pictures, picture[i]) - a->s->set);
        if (i && set != found)
            return a->s->n_sets;
        found = set;
    }
    return found;
}

/* The rows of the table are a dataset: in their order. */
static int table_use_list(struct annotating *a, const struct table_use *use, size_t set,
                          const char *called)
{
    const char *name = members_name(a->s->m, use->file);
    int r = annotating_add_list(a, set, use->scope, called, use->table, name);

    if (r == 0 && use->table->label == SIZE_MAX &&
        value_columns_find(&use->table->columns, "values"))
        r = set_add_note(
            &a->s->set[set],
            "the numbers in %s are the field values, and no label: an epochfs.json can "
            "say which names have one",
            name);
    return r < 0 ? r
                 : annotating_keep_source(a, set, a->s->set[set].claim->n_views - 1, use->file,
                                          use->table);
}

/* ImageSets/Main/train.txt is the dataset Main/train; lists of one class are none. */
static int table_list_name(const struct annotating *a, size_t file, char **ret, bool *is_image_set)
{
    const struct members *m = a->s->m;
    const char *name = members_name(m, file);
    uint32_t folder = m->member[file].folder, above = a->s->info[folder].above;
    int stem = (int)name_stem_alone(name);

    *is_image_set = above != NO_FOLDER && !strcmp(path_base(claim_path(a->s, above)), "ImageSets");
    if (asprintf(ret, "%s%s%.*s", *is_image_set ? path_base(claim_path(a->s, folder)) : "",
                 *is_image_set ? "/" : "", stem, name) < 0)
        *ret = NULL;
    return *ret ? 0 : -ENOMEM;
}

static bool table_is_list(const struct annotating *a, const struct table_use *use, const char *name,
                          bool is_image_set)
{
    const char *base = path_base(name), *folder = path_base(members_folder_of(a->s->m, use->file));

    if (use->table->unmatched || use->table->repeated)
        return false;
    if (is_image_set)
        return words_are_split(base) && strcmp(folder, "Layout") != 0 &&
               strcmp(folder, "Action") != 0;
    return words_have_split(base, strlen(base), NULL);
}

static int table_use_apply(struct annotating *a, const struct table_use *use)
{
    AUTO_FREE char *name = NULL;
    AUTO_TEXT struct text reason = {0};
    bool is_image_set;
    size_t set;
    int r = table_list_name(a, use->file, &name, &is_image_set);

    if (r == 0 && !is_image_set && !use->table->repeated)
        r = table_use_join(a, use);
    if (r) {
        if (r > 0)
            a->s->claims->taken[use->file] = CLAIMS_USED;
        return r < 0 ? r : 0;
    }
    set = table_use_set(a, use);
    if (set < a->s->n_sets && table_is_list(a, use, name, is_image_set)) {
        a->s->claims->taken[use->file] = CLAIMS_USED;
        return table_use_list(a, use, set, name);
    }
    if (is_image_set) {
        a->s->claims->taken[use->file] = CLAIMS_ASIDE;
        return 0;
    }
    if (use->table->repeated)
        text_add(&reason, "several rows a picture");
    else
        text_add(&reason, "it names %zu of %zu pictures", use->named, a->pictures.n);
    return annotating_ignore(a, use->file, use->scope, reason.data ? reason.data : "");
}

/* ---- reading ---- */

static bool name_ends_with_any(const char *name, const char *const *ends)
{
    for (; *ends; ends++)
        if (text_ends_with(name, *ends))
            return true;
    return false;
}

static bool tables_may_be(const struct annotating *a, size_t file)
{
    static const char *const tables[] = {".csv", ".tsv", NULL};
    static const char *const lists[] = {".csv", ".tsv", ".txt", ".lst", NULL};
    const char *const *ends =
        a->s->media == FILES_PICTURES ? lists : tables; /* a text may be data */
    const char *name = members_name(a->s->m, file);

    return !a->s->claims->taken[file] && *name != '.' && !name_is_notice(name) &&
           !a->is_inside[a->s->m->member[file].folder] && name_ends_with_any(name, ends);
}

/* May a table that names no picture be data of its own? Not one with texts, and no list. */
static bool tables_may_stay(const struct annotating *a, size_t file)
{
    static const char *const ends[] = {".csv", ".tsv", NULL};
    const char *name = members_name(a->s->m, file);
    uint8_t head[4096];
    int len;

    if (!name_ends_with_any(name, ends))
        return false;
    if (!a->has_samples[a->s->m->member[file].folder])
        return true;
    if (a->s->claims->heads(a->s->claims, &file, 1, sizeof(head), head, &len) < 0 || len <= 0)
        return true;
    for (int i = 0, rows = 0; i < len; i++) { /* behind the first row; 1e5 and nan are numbers */
        rows += head[i] == '\n';
        if (rows && isalpha(head[i]) && !strchr("enEN", head[i]))
            return false;
    }
    return true;
}

/* Read a table with pictures of one split, if its name says so, or with all in the folder. */
static int tables_open(struct annotating *a, struct table_use *use, const struct blob *blob,
                       struct text *reason, struct diag *d)
{
    const char *name = members_name(a->s->m, use->file);
    struct name_piece split;
    AUTO_FREE char *word = NULL;
    int r = -EDOM;

    a->pictures.scope = use->scope;
    if (words_have_split(name, name_stem_alone(name), &split)) {
        word = strndup(split.at, split.len);
        if (!word)
            return -ENOMEM;
        a->pictures.split = word;
        r = picture_table_read(blob, 0, blob->size, name, &a->pictures.names, NULL, &use->table,
                               reason, d);
        a->pictures.split = "";
        reason->len = r == -EDOM ? 0 : reason->len;
    }
    return r != -EDOM ? r
                      : picture_table_read(blob, 0, blob->size, name, &a->pictures.names, NULL,
                                           &use->table, reason, d);
}

/* A file is no table of pictures. One that names none is counted with the others of its folder. */
static int tables_ignore(struct annotating *a, size_t file, uint32_t scope, const char *reason)
{
    const struct set *set = annotating_first_set(a, scope);
    uint32_t folder = a->s->m->member[file].folder;
    bool names_some = !strncmp(reason, "only ", 5) || !strncmp(reason, "line ", 5);

    if (tables_may_stay(a, file))
        return 0;
    if (names_some || !set || folder < set->root || folder >= a->s->info[set->root].end)
        return annotating_ignore(a, file, scope, reason);
    a->s->claims->taken[file] = CLAIMS_ASIDE;
    return 0;
}

static int tables_read(struct annotating *a, size_t file)
{
    struct table_use use = {.file = file, .scope = annotating_scope(a, file)};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_TEXT struct text reason = {0};
    struct diag d = DIAG_INIT;
    int r;

    if (use.scope == NO_FOLDER)
        return 0;
    if (strcasestr(members_name(a->s->m, file), "submission"))
        return annotating_ignore(a, file, use.scope, "it is called a submission");
    r = a->s->claims->open(a->s->claims, file, &blob, &d);
    if (r == 0)
        r = tables_open(a, &use, blob, &reason, &d);
    if (r == 0)
        r = annotating_rows(a, use.table, &use.row, &use.named);
    if (r == 0)
        r = table_use_apply(a, &use);
    else if (r == -EDOM)
        r = tables_ignore(a, file, use.scope, reason.data ? reason.data : "no table");
    else if (r == -EBADMSG)
        r = annotating_ignore(a, file, use.scope, d.text);
    else if (r != -ENOMEM)
        r = annotating_refuse(a, use.scope, diag_text(&d, r));
    picture_table_free(use.table);
    free(use.row);
    return r;
}

/* From this file on, tables are not read: it is said. */
static int tables_note_limit(const struct annotating *a, size_t file, const char *where,
                             unsigned most)
{
    uint32_t scope = annotating_scope(a, file);
    struct set *set = scope == NO_FOLDER ? NULL : annotating_first_set(a, scope);

    return set ? set_add_note(set,
                              "%s and later files are not read as tables: expected at most %u %s; "
                              "an epochfs.json can name them",
                              members_name(a->s->m, file), most, where)
               : 0;
}

static int tables_read_all(struct annotating *a)
{
    uint32_t folder = NO_FOLDER;
    unsigned n = 0, here = 0;
    int r = 0;

    for (size_t i = 0; i < a->s->m->n && r == 0; i++) {
        if (!tables_may_be(a, i))
            continue;
        if (n == TABLES_MOST)
            return tables_note_limit(a, i, "in all", TABLES_MOST);
        here = a->s->m->member[i].folder == folder ? here + 1 : 0;
        folder = a->s->m->member[i].folder;
        if (here == TABLES_FOLDER)
            r = tables_note_limit(a, i, "of a folder", TABLES_FOLDER);
        if (here >= TABLES_FOLDER)
            continue;
        r = tables_read(a, i);
        n++;
    }
    return r;
}

static int view_pick_labels(const struct files_view *base, struct files_view *view)
{
    view->label = calloc(view->n + 1, sizeof(*view->label));
    if (!view->label)
        return -ENOMEM;
    for (size_t i = 0; i < view->n; i++)
        view->label[i] = base->label[view->sample[i]];
    return class_names_copy(base->class_name, base->n_classes, &view->class_name, &view->n_classes);
}

/* Where lists are datasets, the set that they are lists of is none. They also have its columns. */
static int tables_finish_views(struct set *set)
{
    struct files_claim *claim = set->claim;
    struct files_view *base = claim->view;
    int r = 0;

    if (claim->n_views < 2)
        return 0;
    for (size_t i = 1; i < claim->n_views && r == 0; i++) {
        AUTO_VALUE_COLUMNS struct value_columns picked = {0};

        r = value_columns_pick(&base->values, claim->view[i].sample, claim->view[i].n, &picked);
        if (r == 0)
            r = view_add_columns(&claim->view[i], &picked);
        if (r == 0 && base->label && !claim->view[i].label)
            r = view_pick_labels(base, &claim->view[i]);
    }
    return r;
}

/* Is there a file that may be a table or an annotation? Without one, pictures need not be found. */
static bool tables_have_any(const struct search *s)
{
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] && *members_name(s->m, i) != '.' &&
            name_is_list(members_name(s->m, i)) && !name_is_notice(members_name(s->m, i)))
            return true;
    return false;
}

int tables_apply(struct search *s)
{
    struct annotating a = {.s = s, .classes.has = annotating_has_class};
    const bool any = tables_have_any(s);
    int r = 0;

    if (!s->n_sets || !s->claims->open)
        return 0;
    if (any || s->n_recipes)
        r = pictures_init(&a.pictures, s);
    if (any && a.pictures.n) {
        if (r == 0)
            r = annotating_mark_folders(&a);
        if (r == 0)
            r = annotations_apply(&a);
        if (r == 0)
            r = tables_read_all(&a);
    }
    if (r == 0)
        r = recipe_annotate(&a);
    if (r == 0)
        r = annotating_finish_labels(&a);
    for (size_t i = 0; i < s->n_sets && r == 0; i++)
        r = tables_finish_views(&s->set[i]);
    for (size_t i = 0; i < s->n_sets && r == 0; i++)
        r = annotating_finish_set(&a, &s->set[i]);
    annotating_release(&a);
    return r;
}
