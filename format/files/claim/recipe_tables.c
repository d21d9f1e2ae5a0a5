/* Lists, tables and annotations that a recipe names. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/files/claim/annotations.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/pattern.h"
#include "format/files/claim/recipe.h"
#include "format/files/claim/words.h"

/* A set while its lists and tables are read. */
struct recipe_reading {
    struct annotating *a;
    size_t set;
    struct pattern_words words;
    char path[PATH_MAX]; /* of its first picture: words point into it */
    struct diag *d;
};

static struct set *reading_set(const struct recipe_reading *t)
{
    return &t->a->s->set[t->set];
}

static int reading_refuse(const struct recipe_reading *t, const char *at, const char *what)
{
    return recipe_fault(reading_set(t)->recipe, at, t->d, what);
}

/* The words of the pattern of the first picture. */
static int reading_words(struct recipe_reading *t)
{
    const struct set *set = reading_set(t);
    int r;

    if (!recipe_path(t->a->s, set->recipe, t->a->pictures.file[0], t->path))
        return -ENAMETOOLONG;
    r = recipe_match(set->recipe, json_object_get(set->dataset, "pictures"), t->path, &t->words,
                     NULL, t->d);
    return r < 0 ? r : 0;
}

/* The file that a pattern names with the words of the set. */
static int reading_find(const struct recipe_reading *t, const char *pattern, size_t *ret)
{
    const struct search *s = t->a->s;
    AUTO_TEXT struct text path = {0};

    if (pattern_fill(pattern, &t->words, &path) < 0)
        return reading_refuse(t, pattern, "it has a word that pictures do not have, or a star");
    if (path.failed)
        return -ENOMEM;
    *ret = lookup_path(s->m, claim_path(s, reading_set(t)->recipe->folder), path.data);
    return *ret < s->m->n ? 0 : reading_refuse(t, pattern, "no file matches");
}

/* ---- a table ---- */

/* Read a table as the recipe says; member NULL: it says nothing. */
static int reading_open(const struct recipe_reading *t, size_t file, const json_t *member,
                        struct picture_table **ret)
{
    const char *name = members_name(t->a->s->m, file);
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_TEXT struct text reason = {0};
    int r;

    if (json_object_get(member, "label") && reading_set(t)->claim->view->label)
        return reading_refuse(t, "label", "expected one label, got {label} and this column");
    r = t->a->s->claims->open(t->a->s->claims, file, &blob, t->d);
    if (r == 0)
        r = picture_table_read(blob, name, &t->a->pictures.names, member, ret, &reason, t->d);
    if (r == -EDOM)
        return diag_set(t->d, -EBADMSG, "%s: expected a table of these pictures: %s", name,
                        reason.data ? reason.data : "it names none");
    t->a->s->claims->taken[file] = CLAIMS_USED;
    return r;
}

/* ---- lists ---- */

/* The list or table of the recipe that is that file; NULL: none is. A table that is also a list
 * gives it fields. */
static const json_t *reading_item(const struct recipe_reading *t, const char *member,
                                  const char *file)
{
    const json_t *all = json_object_get(reading_set(t)->dataset, member), *item, *text;

    for (size_t i = 0; (item = recipe_item(all, i)); i++) {
        text = json_is_object(item) ? json_object_get(item, "file") : item;
        if (!strcmp(json_string_value(text), file))
            return item;
    }
    return NULL;
}

/* pattern: as the recipe has the list. */
static int reading_add_list(struct recipe_reading *t, const char *pattern, size_t file,
                            const char *called)
{
    const json_t *member = reading_item(t, "table", pattern);
    AUTO_PICTURE_TABLE struct picture_table *table = NULL;
    int r = reading_open(t, file, member, &table);

    if (r < 0)
        return r;
    if (table->unmatched)
        text_add(&reading_set(t)->notes, "%s names %zu pictures that are not there\n",
                 members_name(t->a->s->m, file), table->unmatched);
    annotating_add_list(t->a, t->set, reading_set(t)->recipe->folder, called, table,
                        member ? file : SIZE_MAX);
    return 0;
}

/* A list whose name has a word of the name of the dataset: one for each file that there is. */
static int reading_match_list(struct recipe_reading *t, const char *pattern, size_t file, bool *any)
{
    const char *name = reading_set(t)->pattern;
    struct pattern_words words = {.n = 0};
    const struct pattern_word *split;
    AUTO_TEXT struct text called = {0};
    char path[PATH_MAX];

    if (!recipe_path(t->a->s, reading_set(t)->recipe, file, path) ||
        pattern_match(pattern, path, &words) <= 0)
        return 0;
    split = pattern_find(&words, "split", 5);
    if (split && !words_have_split(split->text, split->len, NULL)) {
        text_add(&reading_set(t)->notes, "%s is no list of {split}: its name is no part's\n", path);
        return 0;
    }
    if (pattern_fill(name, &words, &called) < 0)
        return reading_refuse(t, pattern, "it lacks a word of the name of the dataset");
    *any = true;
    return called.failed ? -ENOMEM : reading_add_list(t, pattern, file, called.data);
}

static int reading_lists(struct recipe_reading *t)
{
    const json_t *list = json_object_get(reading_set(t)->dataset, "list");
    const struct search *s = t->a->s;
    const uint32_t top = reading_set(t)->recipe->folder;
    const char *pattern;
    int r = 0;

    for (size_t i = 0; r == 0 && (pattern = recipe_pattern(list, i)); i++) {
        bool any = false;
        size_t file;

        if (*reading_set(t)->called) {
            r = reading_find(t, pattern, &file);
            if (r == 0)
                r = reading_add_list(t, pattern, file, reading_set(t)->called);
            continue;
        }
        for (file = s->info[top].first; file < folder_end(s, top) && r == 0; file++)
            r = reading_match_list(t, pattern, file, &any);
        if (r == 0 && !any)
            r = reading_refuse(t, pattern, "no file matches");
    }
    return r;
}

/* ---- tables ---- */

static int reading_join(struct recipe_reading *t)
{
    const json_t *tables = json_object_get(reading_set(t)->dataset, "table"), *member;
    int r = 0;

    for (size_t i = 0; r == 0 && (member = recipe_item(tables, i)); i++) {
        const char *pattern = json_string_value(json_object_get(member, "file"));
        AUTO_PICTURE_TABLE struct picture_table *table = NULL;
        AUTO_FREE uint32_t *row = NULL;
        size_t file, named;

        if (reading_item(t, "list", pattern))
            continue;
        r = reading_find(t, pattern, &file);
        if (r == 0)
            r = reading_open(t, file, member, &table);
        if (r == 0)
            row = annotating_rows(t->a, table->picture, table->rows, &named);
        if (row)
            annotating_add_table(t->a, t->set, 0, file, table, row);
    }
    return r;
}

/* ---- annotations ---- */

/* Read each file that the patterns name. */
static int reading_each(const struct recipe_reading *t, const json_t *patterns,
                        int (*read)(struct annotating *a, size_t set, size_t file, struct diag *d))
{
    const char *pattern;
    size_t file;
    int r = 0;

    for (size_t i = 0; r == 0 && (pattern = recipe_pattern(patterns, i)); i++) {
        r = reading_find(t, pattern, &file);
        if (r == 0)
            r = read(t->a, t->set, file, t->d);
    }
    return r;
}

/* Lists of CelebA, by their names; if the dataset is called by {split}, its parts are datasets. */
static int reading_celeba(struct recipe_reading *t)
{
    const struct set *set = reading_set(t);
    const json_t *lists = json_object_get(set->dataset, "celeba");
    int r = reading_each(t, lists, annotating_read_celeba);

    if (r < 0 || json_object_get(set->dataset, "list") || *set->called)
        return r;
    for (int part = 0; part < CELEBA_PARTS; part++) {
        struct pattern_words words = t->words;
        AUTO_TEXT struct text called = {0};

        if (!lists ||
            !pattern_set(&words, "split", 5, celeba_parts[part], strlen(celeba_parts[part])) ||
            pattern_fill(set->pattern, &words, &called) < 0)
            return reading_refuse(t, set->pattern, "it has a word that pictures do not have");
        if (called.failed)
            return -ENOMEM;
        annotating_add_part(t->a, t->set, set->recipe->folder, called.data, part);
    }
    return 0;
}

static int reading_boxes(struct recipe_reading *t)
{
    const json_t *boxes = json_object_get(reading_set(t)->dataset, "boxes");
    const char *names = recipe_pattern(json_object_get(boxes, "names"), 0);
    int r = reading_each(t, json_object_get(boxes, "coco"), annotating_read_coco);
    size_t file;

    if (r == 0 && names) {
        r = reading_find(t, names, &file);
        if (r == 0)
            annotating_read_names(t->a, reading_set(t), file);
    }
    return r;
}

static int recipe_annotate_set(struct recipe_reading *t)
{
    int r = reading_words(t);

    if (r == 0)
        r = reading_celeba(t);
    if (r == 0)
        r = reading_boxes(t);
    if (r == 0)
        r = reading_join(t);
    return r < 0 ? r : reading_lists(t);
}

void recipe_number_labels(struct annotating *a)
{
    for (size_t i = 0; i < a->s->n_sets && !a->s->failed; i++)
        if (a->s->set[i].label.n)
            annotating_add_label(a, i, 0, "", a->s->set[i].label.column, NULL);
    annotating_finish_labels(a);
}

void recipe_annotate(struct annotating *a)
{
    for (size_t i = 0; i < a->s->n_sets && !a->s->failed; i++) {
        struct diag d = DIAG_INIT;
        struct recipe_reading t = {.a = a, .set = i, .d = &d};
        struct set *set = &a->s->set[i];
        int r;

        if (!set->dataset || !set->claim->n_samples || set->refused)
            continue;
        pictures_release(&a->pictures);
        pictures_init(&a->pictures, a->s, set);
        r = a->s->failed ? -ENOMEM : recipe_annotate_set(&t);
        a->s->failed = a->s->failed || r == -ENOMEM;
        if (r < 0)
            set_refuse(set, "%s", diag_text(&d, r));
    }
}
