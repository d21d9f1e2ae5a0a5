/* Sets as datasets of a recipe: patterns from their shapes (shape.c), and what tables and
 * annotations say of them. */
#include "format/files/claim/recipe_print.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/annotations/boxes.h"
#include "format/annotations/table.h"
#include "format/files/claim/recipe.h"

#define DATASET_END "\n    }"

/* A dataset while it is printed. */
struct printing {
    struct recipe_print *print;
    const struct search *s;
    const struct set *set;
    const struct shape *shape;
    struct text t; /* its members */
};

/* ---- JSON ---- */

static void print_key(struct text *t, const char *key)
{
    text_add(t, "%s\n      ", t->len ? "," : "");
    text_add_json(t, key);
    text_add(t, ": ");
}

/* One text, or a list of them. */
static void print_texts(struct text *t, const struct texts *texts)
{
    if (texts->n == 1) {
        text_add_json(t, texts->text[0]);
        return;
    }
    text_add(t, "[");
    for (size_t i = 0; i < texts->n; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, texts->text[i]);
    }
    text_add(t, "]");
}

static void print_names(struct text *t, char *const *name, size_t n)
{
    text_add(t, "[");
    for (size_t i = 0; i < n; i++) {
        text_add(t, "%s", i ? ", " : "");
        text_add_json(t, name[i]);
    }
    text_add(t, "]");
}

static void print_path(const struct search *s, size_t file, struct text *t)
{
    char path[PATH_MAX];

    if (members_path(s->m, file, path, sizeof(path)) < 0)
        *path = '\0';
    text_add_json(t, path);
}

/* ---- fields ---- */

static bool print_is_boxes(const struct printing *p, const struct shape_field *field)
{
    const struct box_format *boxes = p->set->claim->boxes;

    return boxes && p->shape->boxes.n && !strcmp(field->name, boxes->extension) &&
           field->patterns.n == p->shape->boxes.n &&
           texts_have(&p->shape->boxes, field->patterns.text[0]);
}

static void print_with(struct printing *p)
{
    bool any = false;

    for (size_t i = 0; i < p->shape->n_fields; i++) {
        const struct shape_field *field = &p->shape->field[i];

        if (print_is_boxes(p, field))
            continue;
        if (!any)
            print_key(&p->t, "with");
        text_add(&p->t, "%s", any ? ", " : "{");
        text_add_json(&p->t, field->name);
        text_add(&p->t, ": ");
        print_texts(&p->t, &field->patterns);
        any = true;
    }
    text_add(&p->t, "%s", any ? "}" : "");
}

/* ---- annotations ---- */

/* Files of that type, one or a list: of all samples, and of the view. */
static void print_files(const struct printing *p, enum set_source_type type, size_t view,
                        struct text *ret)
{
    AUTO_TEXT struct text list = {0};
    size_t n = 0;

    for (size_t i = 0; i < p->set->n_sources; i++) {
        const struct set_source *source = &p->set->source[i];

        if (source->type != type || (source->view && source->view != view))
            continue;
        text_add(&list, "%s", n++ ? ", " : "");
        print_path(p->s, source->file, &list);
    }
    if (n)
        text_add(ret, n > 1 ? "[%s]" : "%s", list.data ? list.data : "");
    ret->failed = ret->failed || list.failed;
}

static void print_column(struct text *t, const char *name)
{
    if (*name && strlen(name) < 5 && strspn(name, "0123456789") == strlen(name) &&
        (*name != '0' || !name[1]))
        text_add(t, "%s", name);
    else
        text_add_json(t, name);
}

static void print_table(const struct printing *p, const struct set_source *source, struct text *t)
{
    const char *name = members_name(p->s->m, source->file);
    char separator[2] = {source->separator};

    text_add(t, "{\"file\": ");
    print_path(p->s, source->file, t);
    text_add(t, ", \"key\": ");
    print_column(t, source->key);
    if (source->label) {
        text_add(t, ", \"label\": ");
        print_column(t, source->label);
    }
    if (*separator != ',' || !text_ends_with(name, ".csv")) {
        text_add(t, ", \"separator\": ");
        text_add_json(t, separator);
    }
    text_add(t, "}");
}

/* Tables of the view come before those of all samples, which it also has. */
static void print_tables(struct printing *p, size_t view)
{
    AUTO_TEXT struct text list = {0};
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < p->set->n_sources; i++) {
            const struct set_source *source = &p->set->source[i];

            if (source->type != SOURCE_TABLE || source->view != (pass ? 0 : view) ||
                (pass && !view))
                continue;
            text_add(&list, "%s", n++ ? ", " : "");
            print_table(p, source, &list);
        }
    if (n)
        print_key(&p->t, "table");
    if (n)
        text_add(&p->t, n > 1 ? "[%s]" : "%s", list.data ? list.data : "");
    p->t.failed = p->t.failed || list.failed;
}

/* The list that a view is the rows of. */
static void print_list(struct printing *p, size_t view)
{
    for (size_t i = 0; i < p->set->n_sources && view; i++)
        if (p->set->source[i].type == SOURCE_TABLE && p->set->source[i].view == view) {
            print_key(&p->t, "list");
            print_path(p->s, p->set->source[i].file, &p->t);
        }
}

static void print_boxes(struct printing *p, size_t view)
{
    const struct box_format *boxes = p->set->claim->boxes;
    AUTO_TEXT struct text coco = {0}, names = {0};

    print_files(p, SOURCE_COCO, view, &coco);
    print_files(p, SOURCE_NAMES, view, &names);
    if (coco.len) {
        print_key(&p->t, "boxes");
        text_add(&p->t, "{\"coco\": %s}", coco.data);
    } else if (boxes && p->shape->boxes.n) {
        print_key(&p->t, "boxes");
        text_add(&p->t, "{");
        text_add_json(&p->t, boxes->name);
        text_add(&p->t, ": ");
        print_texts(&p->t, &p->shape->boxes);
        if (names.len)
            text_add(&p->t, ", \"names\": %s", names.data);
        text_add(&p->t, "}");
    }
    p->t.failed = p->t.failed || coco.failed || names.failed;
}

/* ---- classes ---- */

static bool print_same_names(char *const *a, size_t n, char *const *b, size_t k)
{
    for (size_t i = 0; i < n && n == k; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return n == k;
}

/* Which classes of a set have samples: *has[i] is set. They are in the order of classes. */
static void print_mark_classes(const struct printing *p, bool *has)
{
    const struct files_claim *claim = p->set->claim;
    size_t top = strlen(claim->top), class = 0;

    for (size_t i = 0; i < claim->n_samples; i++) {
        const char *path = members_folder_of(p->s->m, p->set->file[claim->first[i]]);
        size_t len = strcspn(path += top + (top > 0), "/");

        while (class < claim->n_classes &&
               (strncmp(claim->class_name[class], path, len) != 0 || claim->class_name[class][len]))
            class ++;
        if (class < claim->n_classes)
            has[class] = true;
    }
}

/* Keep the classes of folders: only at the end it is known whether all datasets have the same, each
 * with samples, as recipes number them. */
static int print_keep_classes(struct printing *p)
{
    const struct files_claim *claim = p->set->claim;
    struct recipe_print *print = p->print;
    struct printed_classes *kept;
    AUTO_TEXT struct text t = {0};

    if (array_capacity(&print->classes, print->n_classes, sizeof(*kept)) < 0)
        return -ENOMEM;
    kept = &print->classes[print->n_classes];
    *kept = (struct printed_classes){.n = claim->n_classes,
                                     .has = calloc(claim->n_classes + 1, sizeof(*kept->has))};
    print->n_classes += kept->has != NULL;
    if (!kept->has)
        return -ENOMEM;
    print_mark_classes(p, kept->has);
    print_names(&t, claim->class_name, claim->n_classes);
    return text_finish(&t, &kept->names, NULL);
}

static bool print_classes_agree(const struct recipe_print *print)
{
    for (size_t i = 1; i < print->n_classes; i++)
        if (strcmp(print->classes[i].names, print->classes[0].names) != 0)
            return false;
    for (size_t k = 0; print->n_classes && k < print->classes[0].n; k++) {
        bool has = false;

        for (size_t i = 0; i < print->n_classes; i++)
            has = has || print->classes[i].has[k];
        if (!has)
            return false;
    }
    return !print->has_recipes;
}

static bool print_are_folders(const struct printing *p, const struct files_view *view)
{
    for (size_t i = 0; i < p->s->n_sets; i++) {
        const struct files_claim *claim = p->s->set[i].claim;

        if (claim->n_classes && print_same_names(view->class_name, view->n_classes,
                                                 claim->class_name, claim->n_classes))
            return true;
    }
    return false;
}

static int print_classes(struct printing *p, const struct files_view *view)
{
    const struct files_claim *claim = p->set->claim;

    if (claim->layout == LAYOUT_CLASSES && claim->n_classes && !view->label)
        return print_keep_classes(p);
    if (!view->label || !view->n_classes || !print_are_folders(p, view))
        return 0;
    print_key(&p->t, "classes");
    print_names(&p->t, view->class_name, view->n_classes);
    return 0;
}

/* ---- datasets ---- */

/* A name that no dataset has so far, without what patterns give a meaning. */
static int print_begin(struct recipe_print *print, const char *name, bool is_pattern)
{
    AUTO_TEXT struct text t = {0};
    size_t len;

    text_add(&t, "%s", *name ? name : "all");
    for (char *c = t.data; c && *c && !is_pattern; c++)
        *c = strchr("{}*", *c) ? '_' : *c;
    len = t.len;
    for (unsigned i = 2; !t.failed && texts_have(&print->names, t.data); i++) {
        t.len = len;
        text_add(&t, "-%u", i);
    }
    if (t.failed || texts_add(&print->names, t.data) == -ENOMEM)
        return -ENOMEM;
    text_add(&print->datasets, "%s\n    ", print->datasets.len ? "," : "");
    text_add_json(&print->datasets, t.data);
    text_add(&print->datasets, ": {");
    return 0;
}

static int print_end(struct printing *p)
{
    text_add(&p->print->datasets, "%s" DATASET_END, p->t.data ? p->t.data : "");
    return p->t.failed || p->print->datasets.failed ? -ENOMEM : 0;
}

/* view: its number, with the set that it is of as number 0. */
static int print_dataset(struct printing *p, const char *name, bool is_pattern,
                         const struct files_view *view, size_t number)
{
    AUTO_TEXT struct text celeba = {0};
    size_t before;
    int r = print_begin(p->print, name, is_pattern);

    if (r < 0)
        return r;
    p->t.len = 0;
    if (p->set->refused) {
        print_key(&p->t, "note");
        text_add_json(&p->t, p->set->refused);
    } else if (p->shape->note) {
        print_key(&p->t, "note");
        text_add_json(&p->t, p->shape->note);
    } else if (p->set->has_texts) {
        print_key(&p->t, "note");
        text_add_json(&p->t, "texts next to sounds are not in it");
    }
    print_key(&p->t, "pictures");
    print_texts(&p->t, &p->shape->pictures);
    if (p->shape->except.n) {
        print_key(&p->t, "except");
        print_texts(&p->t, &p->shape->except);
    }
    print_with(p);
    print_list(p, number);
    print_files(p, SOURCE_CELEBA, number, &celeba);
    if (celeba.len) {
        print_key(&p->t, "celeba");
        text_add(&p->t, "%s", celeba.data);
    }
    print_boxes(p, number);
    print_tables(p, number);
    before = p->print->n_classes;
    r = print_classes(p, view);
    if (r == 0)
        r = celeba.failed ? -ENOMEM : print_end(p);
    if (p->print->n_classes > before) /* before the end of the dataset */
        p->print->classes[before].at = p->print->datasets.len - strlen(DATASET_END);
    return r;
}

static bool print_has_source(const struct set *set, size_t view)
{
    for (size_t i = 0; i < set->n_sources; i++)
        if (set->source[i].view == view)
            return true;
    return false;
}

/* A part of CelebA: all of them are one dataset, by {split}. */
static int print_parts(struct printing *p, const struct files_view *view, size_t number)
{
    int above = (int)(path_base(view->name) - view->name) - 1;
    AUTO_FREE char *name = NULL;

    if (asprintf(&name, "%.*s{split}", above, view->name + 1) < 0) {
        name = NULL;
        return -ENOMEM;
    }
    return print_dataset(p, name, true, view, number);
}

static int print_view(struct printing *p, const char *name, size_t at, bool *has_parts)
{
    const struct files_claim *claim = p->set->claim;
    const struct files_view *view = &claim->view[at];
    size_t number = view->name ? at + 1 : 0; /* the set itself is no dataset, and gone */
    AUTO_SHAPE struct shape shape = {0};
    int r;

    if (view->name && *has_parts && !print_has_source(p->set, number))
        return 0;
    r = shape_make(p->s, p->set,
                   (claim->layout == LAYOUT_CLASSES && !view->label) || p->set->refused, &shape);
    p->shape = &shape;
    if (r < 0)
        return r;
    if (!view->name || print_has_source(p->set, number))
        return print_dataset(p, view->name ? view->name + 1 : name, false, view, number);
    *has_parts = true;
    return print_parts(p, view, number);
}

static int print_set(struct recipe_print *print, const struct search *s, const struct set *set)
{
    struct printing p = {.print = print, .s = s, .set = set};
    AUTO_FREE char *name = NULL;
    bool has_parts = false;
    int r = collect_set_path(s, set, &name);

    for (size_t i = 0; i < set->claim->n_views && r == 0; i++)
        r = print_view(&p, name, i, &has_parts);
    text_release(&p.t);
    return r;
}

/* ---- recipes that were there ---- */

static void print_pattern(const char *folder, const char *pattern, struct text *t)
{
    AUTO_TEXT struct text path = {0};

    if (*folder && strncmp(pattern, "{path}", 6) != 0) {
        shape_add_plain(&path, folder, strlen(folder));
        text_add(&path, "/");
    }
    text_add(&path, "%s", pattern);
    text_add_json(t, path.data ? path.data : "");
    t->failed = t->failed || path.failed;
}

/* A value of a dataset: texts below a key that has paths are patterns. */
static void print_value(const char *folder, const json_t *value, bool has_paths, struct text *t)
{
    const char *key;
    json_t *member;
    size_t n = 0;

    if (json_is_string(value) && has_paths) {
        print_pattern(folder, json_string_value(value), t);
    } else if (json_is_string(value)) {
        text_add_json(t, json_string_value(value));
    } else if (json_is_integer(value)) {
        text_add(t, "%lld", (long long)json_integer_value(value));
    } else if (json_is_array(value)) {
        for (text_add(t, "["); n < json_array_size(value); n++) {
            text_add(t, "%s", n ? ", " : "");
            print_value(folder, json_array_get(value, n), has_paths, t);
        }
        text_add(t, "]");
    } else {
        text_add(t, "{");
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            text_add(t, "%s", n++ ? ", " : "");
            text_add_json(t, key);
            text_add(t, ": ");
            print_value(folder, member, has_paths || !strcmp(key, "file"), t);
        }
        text_add(t, "}");
    }
}

/* A dataset of a recipe of a folder, with paths from SOURCE. */
static int print_recipe(struct recipe_print *print, const struct search *s,
                        const struct recipe *recipe, const char *pattern, json_t *dataset)
{
    const char *folder = claim_path(s, recipe->folder), *key;
    struct printing p = {.print = print, .s = s};
    AUTO_FREE char *name = NULL;
    json_t *value;
    int r = collect_display_path(s, recipe->folder, pattern, &name);

    print->has_recipes = true;
    if (r == 0)
        r = print_begin(print, name, true);
    json_object_foreach(dataset, key, value)
    {
        print_key(&p.t, key);
        print_value(folder, value,
                    strcmp(key, "classes") != 0 && strcmp(key, "note") != 0 &&
                        strcmp(key, "table") != 0,
                    &p.t);
    }
    if (r == 0)
        r = print_end(&p);
    text_release(&p.t);
    return r;
}

static bool print_is_first(const struct search *s, const struct set *set)
{
    for (const struct set *other = s->set; other < set; other++)
        if (other->dataset == set->dataset)
            return false;
    return true;
}

/* Is it in a folder that a recipe shows elsewhere, and prints as such? */
static bool print_is_moved(const struct search *s, const struct set *set)
{
    for (size_t i = 0; i < s->claims->n_moved; i++)
        if (members_is_below(claim_path(s, set->root), s->claims->moved[i].folder))
            return true;
    return false;
}

/* ---- all of it ---- */

int recipe_print_sets(struct recipe_print *print, const struct search *s)
{
    int r = 0;

    for (size_t i = 0; i < s->n_sets && r == 0; i++) {
        const struct set *set = &s->set[i];

        if (print_is_moved(s, set))
            continue;
        if (set->claim->table)
            r = recipe_leave_folder(print, claim_path(s, set->root));
        else if (!set->dataset)
            r = print_set(print, s, set);
        else if (print_is_first(s, set))
            r = print_recipe(print, s, set->recipe, set->pattern, set->dataset);
    }
    return r;
}

/* Datasets of recipes that are no sets: files and folders. */
static int print_others(struct recipe_print *print, const struct search *s)
{
    int r = 0;

    for (size_t i = 0; i < s->n_recipes; i++) {
        json_t *datasets = json_object_get(s->recipe[i]->json, "datasets"), *dataset;
        const char *name;

        json_object_foreach(datasets, name, dataset)
        {
            if (r == 0 && !json_object_get(dataset, "pictures"))
                r = print_recipe(print, s, s->recipe[i], name, dataset);
        }
    }
    return r;
}

/* The members of "datasets", with the classes that were kept if not all are alike. */
static void print_datasets(const struct recipe_print *print, struct text *t)
{
    bool shows = !print_classes_agree(print);
    size_t at = 0;

    for (size_t i = 0; i < print->n_classes && shows; i++) {
        const struct printed_classes *kept = &print->classes[i];

        text_add_bytes(t, print->datasets.data + at, kept->at - at);
        at = kept->at;
        text_add(t, ",\n      \"classes\": %s", kept->names);
    }
    text_add(t, "%s", print->datasets.data ? print->datasets.data + at : "");
}

int recipe_print_end(struct recipe_print *print, const struct search *s, char **ret)
{
    AUTO_TEXT struct text t = {0};
    int r = print_others(print, s);

    if (r == 0 && s->m->n)
        r = recipe_leave_all(print, s);

    if (r < 0)
        return r;
    if (print->datasets.failed)
        return -ENOMEM;
    if (!print->datasets.len && !print->leave.n)
        return 0;
    text_add(&t, "{\n  \"datasets\": {");
    print_datasets(print, &t);
    text_add(&t, "%s}", print->datasets.len ? "\n  " : "");
    if (print->leave.n) {
        text_add(&t, ",\n  \"leave\": ");
        if (print->datasets.len)
            print_texts(&t, &print->leave);
        else
            text_add(&t, "\"**\"");
    }
    text_add(&t, "\n}\n");
    return text_finish(&t, ret, NULL);
}

void recipe_print_release(struct recipe_print *print)
{
    text_release(&print->datasets);
    for (size_t i = 0; i < print->n_classes; i++) {
        free(print->classes[i].names);
        free(print->classes[i].has);
    }
    free(print->classes);
    texts_release(&print->names);
    texts_release(&print->leave);
}
