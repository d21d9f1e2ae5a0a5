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

static void annotating_mark_folders(struct annotating *a)
{
    struct search *s = a->s;

    a->has_samples = calloc(s->m->n_folders + 1, sizeof(*a->has_samples));
    a->is_inside = calloc(s->m->n_folders + 1, sizeof(*a->is_inside));
    s->failed = s->failed || !a->has_samples || !a->is_inside;
    if (s->failed)
        return;
    for (size_t i = 0; i < a->pictures.n; i++)
        for (uint32_t f = s->m->member[a->pictures.file[i]].folder;
             f != NO_FOLDER && !a->has_samples[f]; f = s->info[f].above)
            a->has_samples[f] = true;
    for (size_t i = 0; i < s->n_sets; i++)
        for (uint32_t f = s->set[i].top + 1; f < next_folder(s, s->set[i].top); f++)
            a->is_inside[f] = true;
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

/* Join the table to each set that it covers: are there some? */
static bool table_use_join(struct annotating *a, const struct table_use *use)
{
    bool joined = false;

    for (size_t i = 0; i < a->s->n_sets; i++) {
        const struct set *set = &a->s->set[i];

        if (set->refused || set->dataset || !set_has_pictures(set) || !table_use_covers(use, set))
            continue;
        annotating_add_table(a, i, 0, use->file, use->table, use->row + set->base);
        joined = true;
    }
    return joined;
}

/* The rows of the table are a dataset: in their order. */
static void table_use_list(struct annotating *a, const struct table_use *use, size_t set,
                           const char *called)
{
    annotating_add_list(a, set, use->scope, called, use->table, use->file);
    if (use->table->label == SIZE_MAX && value_columns_find(&use->table->columns, "values"))
        text_add(&a->s->set[set].notes,
                 "the numbers in %s are the field values, and no label: an epochfs.json can say "
                 "which names have one\n",
                 members_name(a->s->m, use->file));
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

/* ImageSets/Main/train.txt is the dataset Main/train; lists of one class are none. */
static void table_use_apply(struct annotating *a, const struct table_use *use)
{
    const struct search *s = a->s;
    const char *file = members_name(s->m, use->file);
    uint32_t folder = s->m->member[use->file].folder, above = s->info[folder].above;
    const bool is_image_set = above != NO_FOLDER && !strcmp(folder_name(s, above), "ImageSets");
    AUTO_TEXT struct text name = {0}, reason = {0};
    struct set *first;
    size_t set;

    if (!is_image_set && !use->table->repeated && table_use_join(a, use)) {
        s->claims->taken[use->file] = CLAIMS_USED;
        first = annotating_first_set(a, use->scope);
        if (first && use->table->unmatched)
            text_add(&first->notes, "%s: %zu of its rows name no picture\n", file,
                     use->table->unmatched);
        return;
    }
    text_add(&name, "%s%s%.*s", is_image_set ? folder_name(s, folder) : "", is_image_set ? "/" : "",
             (int)name_stem_alone(file), file);
    set = annotating_set_of(a, use->table->picture, use->table->rows);
    if (set < s->n_sets && !name.failed && table_is_list(a, use, name.data, is_image_set)) {
        s->claims->taken[use->file] = CLAIMS_USED;
        table_use_list(a, use, set, name.data);
        return;
    }
    if (is_image_set) {
        s->claims->taken[use->file] = CLAIMS_ASIDE;
        return;
    }
    if (use->table->repeated)
        text_add(&reason, "several rows a picture");
    else
        text_add(&reason, "it names %zu of %zu pictures", use->named, a->pictures.n);
    if (use->table->unmatched)
        text_add(&reason, ", and %zu of its rows name none", use->table->unmatched);
    a->s->failed = s->failed || name.failed || reason.failed;
    annotating_ignore(a, use->file, use->scope, reason.data ? reason.data : "");
}

/* ---- reading ---- */

static const char *const table_ends[] = {".csv", ".tsv", NULL};

static bool tables_may_be(const struct annotating *a, size_t file)
{
    static const char *const lists[] = {".csv", ".tsv", ".txt", ".lst", NULL};
    const char *name = members_name(a->s->m, file);

    return !name_is(NAME_NOTICE, name) &&
           !(a->s->info[a->s->m->member[file].folder].is_target && !strcmp(name, CLASSES_FILE)) &&
           !a->is_inside[a->s->m->member[file].folder] && /* next to others, a text may be data */
           name_ends_in(name, a->s->media == FILES_PICTURES ? lists : table_ends);
}

/* May a table that names no picture be data of its own? Not one with texts next to pictures or
 * below the folder of a set, and no list. */
static bool tables_may_stay(const struct annotating *a, size_t file, bool is_below)
{
    uint8_t head[4096];
    int len;

    if (!name_ends_in(members_name(a->s->m, file), table_ends))
        return false;
    if (!is_below && !a->has_samples[a->s->m->member[file].folder])
        return true;
    len = search_head(a->s, file, head, sizeof(head));
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
    bool again = pictures_aim(&a->pictures, use->scope, name);
    int r;

    for (;; again = false) {
        r = picture_table_read(blob, name, &a->pictures.names, NULL, &use->table, reason, d);
        pictures_of_all_splits(&a->pictures);
        if (r != -EDOM || !again)
            return r;
        reason->len = 0;
    }
}

/* May a file have names of classes of boxes, which are known at the end? */
static bool tables_may_be_classes(const struct annotating *a, size_t file)
{
    return a->s->media == FILES_PICTURES && !strcmp(members_name(a->s->m, file), CLASSES_FILE);
}

static bool reason_names_some(const char *reason)
{
    return !strncmp(reason, "only ", 5) || !strncmp(reason, "line ", 5);
}

/* A file is no table of pictures. A text that names none is counted with the others of its folder.
 */
static void tables_ignore(struct annotating *a, size_t file, uint32_t scope, const char *reason)
{
    const struct set *set = annotating_first_set(a, scope);
    uint32_t folder = a->s->m->member[file].folder;
    bool is_table =
        name_ends_in(members_name(a->s->m, file), table_ends) || reason_names_some(reason);
    bool is_below = set && folder >= set->root && folder < next_folder(a->s, set->root);

    if (tables_may_stay(a, file, is_below))
        return;
    if (is_table || !is_below)
        annotating_ignore(a, file, scope, reason);
    else
        a->s->claims->taken[file] = CLAIMS_ASIDE;
}

static int tables_read(struct annotating *a, size_t file, uint32_t scope, struct diag *d)
{
    struct table_use use = {.file = file, .scope = scope};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_TEXT struct text reason = {0};
    const char *why;
    int r;

    if (strcasestr(members_name(a->s->m, file), "submission")) {
        annotating_ignore(a, file, use.scope, "it is called a submission");
        return 0;
    }
    r = a->s->claims->open(a->s->claims, file, &blob, d);
    if (r == 0)
        r = tables_open(a, &use, blob, &reason, d);
    if (r == 0)
        use.row = annotating_rows(a, use.table->picture, use.table->rows, &use.named);
    why = reason.data ? reason.data : "no table";
    if (use.row)
        table_use_apply(a, &use);
    else if (r == -EDOM && (reason_names_some(why) || !tables_may_be_classes(a, file)))
        tables_ignore(a, file, use.scope, why);
    else if (r == -EBADMSG)
        annotating_ignore(a, file, use.scope, d->text);
    picture_table_free(use.table);
    free(use.row);
    return r == -EDOM || r == -EBADMSG ? 0 : r;
}

static void view_pick_labels(struct search *s, const struct files_view *base,
                             struct files_view *view)
{
    view->label = calloc(view->n + 1, sizeof(*view->label));
    s->failed = s->failed || !view->label;
    for (size_t i = 0; i < view->n && view->label; i++)
        view->label[i] = base->label[view->sample[i]];
    view_add_classes(s, view, base->class_name, base->n_classes);
}

/* Where lists are datasets, the set that they are lists of is none. They also have its columns. */
static void tables_finish_views(struct set *set)
{
    struct files_claim *claim = set->claim;
    const struct files_view *base = claim->view;

    for (size_t i = 1; i < claim->n_views && !set->s->failed; i++) {
        AUTO_VALUE_COLUMNS struct value_columns picked = {0};
        struct files_view *view = &claim->view[i];

        if (value_columns_pick(&base->values, view->sample, view->n, &picked) < 0)
            set->s->failed = true;
        else
            view_add_columns(set->s, view, &picked);
        if (base->label && !view->label)
            view_pick_labels(set->s, base, view);
    }
}

/* ---- all files that say something of samples ---- */

/* How files are read, one sort after the other. To add one: a row. */
static const struct annotation_reader {
    const char *what; /* for people */
    bool (*may_be)(const struct annotating *a, size_t file);
    int (*read)(struct annotating *a, size_t file, uint32_t scope, struct diag *d);
    void (*end)(struct annotating *a); /* after the last one; NULL */
    unsigned most, most_of_folder;     /* files that are read, of SOURCE and of a folder */
} annotation_readers[] = {
    {"lists of CelebA", celeba_may_be, celeba_apply, celeba_split_sets, UINT_MAX, UINT_MAX},
    {"annotations", coco_may_be, coco_apply, NULL, 64, 16},
    {"tables", tables_may_be, tables_read, NULL, TABLES_MOST, TABLES_FOLDER},
};

/* From this file on, none is read: it is said. */
static void annotation_note_limit(const struct annotating *a,
                                  const struct annotation_reader *reader, size_t file,
                                  uint32_t scope, bool in_all)
{
    struct set *set = annotating_first_set(a, scope);

    if (set)
        text_add(&set->notes,
                 "%s and later files are not read as %s: expected at most %u %s; an epochfs.json "
                 "can name them\n",
                 members_name(a->s->m, file), reader->what,
                 in_all ? reader->most : reader->most_of_folder, in_all ? "in all" : "of a folder");
}

static void annotations_read(struct annotating *a, const struct annotation_reader *reader)
{
    const struct search *s = a->s;
    uint32_t folder = NO_FOLDER, scope;
    unsigned n = 0, here = 0;

    for (size_t i = 0; i < s->m->n && !s->failed; i++) {
        if (s->claims->taken[i] || *members_name(s->m, i) == '.' || !reader->may_be(a, i) ||
            (scope = annotating_scope(a, i)) == NO_FOLDER)
            continue;
        here = s->m->member[i].folder == folder ? here + 1 : 0;
        folder = s->m->member[i].folder;
        if (n == reader->most || here == reader->most_of_folder)
            annotation_note_limit(a, reader, i, scope, n == reader->most);
        if (n == reader->most)
            return;
        if (here < reader->most_of_folder) {
            struct diag d = DIAG_INIT;
            int r = reader->read(a, i, scope, &d);

            a->s->failed = a->s->failed || r == -ENOMEM;
            if (r < 0)
                annotating_refuse(a, scope, diag_text(&d, r));
            n++;
        }
    }
    if (reader->end)
        reader->end(a);
}

/* Is there a file that may be a table or an annotation? Without one, pictures need not be found. */
static bool tables_have_any(const struct search *s)
{
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] && *members_name(s->m, i) != '.' &&
            name_is(NAME_LIST, members_name(s->m, i)) &&
            !name_is(NAME_NOTICE, members_name(s->m, i)))
            return true;
    return false;
}

static void tables_read_all(struct annotating *a)
{
    struct search *s = a->s;
    uint32_t scope;

    if (tables_have_any(s))
        pictures_init(&a->pictures, s, NULL);
    if (a->pictures.n && !s->failed)
        annotating_mark_folders(a);
    for (size_t i = 0; i < ARRAY_LEN(annotation_readers) && a->is_inside && !s->failed; i++)
        annotations_read(a, &annotation_readers[i]);
    if (!s->failed)
        recipe_annotate(a);
    if (!s->failed)
        annotating_finish_labels(a);
    for (size_t i = 0; i < s->n_sets && !s->failed; i++)
        tables_finish_views(&s->set[i]);
    for (size_t i = 0; i < s->n_sets && !s->failed; i++)
        annotating_finish_set(a, &s->set[i]);
    for (size_t i = 0; i < s->m->n && a->is_inside && !s->failed; i++)
        if (!s->claims->taken[i] && tables_may_be_classes(a, i) &&
            (scope = annotating_scope(a, i)) != NO_FOLDER)
            tables_ignore(a, i, scope, "no files of boxes use its names");
}

void tables_apply(struct search *s)
{
    struct annotating a = {.s = s};

    recipe_number_labels(&a);
    if (s->n_sets && s->claims->open && !s->failed)
        tables_read_all(&a);
    annotating_release(&a);
}
