/* Sets as datasets of a recipe: patterns from their shapes (shape.c), and what tables and
 * annotations say of them. */
#include "format/files/claim/recipe_print.h"

#include <stdlib.h>
#include <string.h>

#include "format/annotations/boxes.h"
#include "format/files/claim/recipe.h"

#define DATASET_END "\n    }"

/* A dataset while it is printed. */
struct printing {
    struct recipe_print *print;
    struct search *s;
    const struct set *set;
    const struct shape *shape;
    struct text t; /* its members */
};

/* ---- members ---- */

static void print_key(struct text *t, const char *key)
{
    text_add(t, "%s\n      ", t->len ? "," : "");
    text_add_json(t, key);
    text_add(t, ": ");
}

/* One text, or a list of them. */
static void print_texts(struct text *t, const struct texts *texts)
{
    if (texts->n == 1)
        text_add_json(t, texts->text[0]);
    else
        text_add_json_list(t, texts->text, sizeof(char *), texts->n);
}

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

/* What annotations of that type say: one, or a list. Tables of the view come before those of all
 * samples, which it also has. */
static void print_sources(const struct printing *p, enum set_source_type type, size_t view,
                          struct text *ret)
{
    const unsigned passes = type == SOURCE_TABLE && view ? 2 : 1;
    AUTO_TEXT struct text list = {0};
    size_t n = 0;

    for (unsigned pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < p->set->n_sources; i++) {
            const struct set_source *source = &p->set->source[i];
            bool has = source->view == view || !source->view;

            if (source->type == type && (passes == 1 ? has : source->view == (pass ? 0 : view)))
                text_add(&list, "%s%s", n++ ? ", " : "", source->json);
        }
    if (n)
        text_add(ret, n > 1 ? "[%s]" : "%s", list.data);
    ret->failed = ret->failed || list.failed;
}

static void print_source_member(struct printing *p, const char *key, enum set_source_type type,
                                size_t view)
{
    AUTO_TEXT struct text value = {0};

    print_sources(p, type, view, &value);
    if (value.len) {
        print_key(&p->t, key);
        text_add(&p->t, "%s", value.data);
    }
    p->t.failed = p->t.failed || value.failed;
}

static void print_boxes(struct printing *p, size_t view)
{
    const struct box_format *boxes = p->set->claim->boxes;
    AUTO_TEXT struct text coco = {0}, names = {0};

    print_sources(p, SOURCE_COCO, view, &coco);
    print_sources(p, SOURCE_NAMES, view, &names);
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

/* Keep the classes of folders: only at the end it is known whether all datasets have the same, each
 * with samples, as recipes number them. */
static void print_keep_classes(struct printing *p)
{
    const struct files_claim *claim = p->set->claim;
    struct recipe_print *print = p->print;
    struct printed_classes kept = {.n = claim->n_classes,
                                   .has = calloc(claim->n_classes + 1, sizeof(*kept.has))};
    AUTO_TEXT struct text t = {0};

    text_add_json_list(&t, claim->class_name, sizeof(char *), claim->n_classes);
    if (!kept.has || text_finish(&t, &kept.names, NULL) < 0)
        p->s->failed = true;
    if (!search_capacity(p->s, &print->classes, print->n_classes, sizeof(kept))) {
        free(kept.has);
        free(kept.names);
        return;
    }
    for (size_t i = 0; i < claim->n_samples; i++) {
        const char *path = members_folder_of(p->s->m, p->set->file[claim->first[i]]);
        size_t top = strlen(claim->top), len = strcspn(path += top + (top > 0), "/");

        kept.has[class_name_find(claim->class_name, claim->n_classes, path, len)] = true;
    }
    print->classes[print->n_classes++] = kept;
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

/* Are the classes of a view those of the folders of a set? */
static bool print_are_folders(const struct printing *p, const struct files_view *view)
{
    for (size_t i = 0; i < p->s->n_sets; i++) {
        const struct files_claim *claim = p->s->set[i].claim;
        size_t same = 0;

        while (same < claim->n_classes && same < view->n_classes &&
               !strcmp(claim->class_name[same], view->class_name[same]))
            same++;
        if (same && same == claim->n_classes && same == view->n_classes)
            return true;
    }
    return false;
}

static void print_classes(struct printing *p, const struct files_view *view)
{
    const struct files_claim *claim = p->set->claim;

    if (claim->layout == LAYOUT_CLASSES && claim->n_classes && !view->label) {
        print_keep_classes(p);
    } else if (view->label && view->n_classes && print_are_folders(p, view)) {
        print_key(&p->t, "classes");
        text_add_json_list(&p->t, view->class_name, sizeof(char *), view->n_classes);
    }
}

/* ---- datasets ---- */

/* A name that no dataset has so far, without what patterns give a meaning. */
static void print_begin(struct printing *p, const char *name, bool is_pattern)
{
    struct recipe_print *print = p->print;
    AUTO_TEXT struct text t = {0};
    size_t len;

    text_add(&t, "%s", name && *name ? name : "all");
    for (char *c = t.data; c && *c && !is_pattern; c++)
        *c = strchr("{}*", *c) ? '_' : *c;
    len = t.len;
    for (unsigned i = 2; !t.failed && texts_have(&print->names, t.data); i++) {
        t.len = len;
        text_add(&t, "-%u", i);
    }
    text_add(&print->datasets, "%s\n    ", print->datasets.len ? "," : "");
    text_add_json(&print->datasets, t.data);
    text_add(&print->datasets, ": {");
    texts_add(p->s, &print->names, &t);
}

static void print_end(struct printing *p)
{
    text_add(&p->print->datasets, "%s" DATASET_END, p->t.data ? p->t.data : "");
    p->s->failed = p->s->failed || p->t.failed;
    text_release(&p->t);
}

/* view: its number, with the set that it is of as number 0. */
static void print_dataset(struct printing *p, const char *name, bool is_pattern,
                          const struct files_view *view, size_t number)
{
    const size_t before = p->print->n_classes;
    const char *note = p->set->refused     ? p->set->refused
                       : p->shape->note    ? p->shape->note
                       : p->set->has_texts ? "texts next to sounds are not in it"
                                           : NULL;

    print_begin(p, name, is_pattern);
    if (note) {
        print_key(&p->t, "note");
        text_add_json(&p->t, note);
    }
    print_key(&p->t, "pictures");
    print_texts(&p->t, &p->shape->pictures);
    if (p->shape->except.n) {
        print_key(&p->t, "except");
        print_texts(&p->t, &p->shape->except);
    }
    print_with(p);
    if (number) /* the rows of the list are those of the view */
        print_source_member(p, "list", SOURCE_LIST, number);
    print_source_member(p, "celeba", SOURCE_CELEBA, number);
    print_boxes(p, number);
    print_source_member(p, "table", SOURCE_TABLE, number);
    print_classes(p, view);
    print_end(p);
    if (p->print->n_classes > before) /* before the end of the dataset */
        p->print->classes[before].at = p->print->datasets.len - strlen(DATASET_END);
}

static bool print_has_source(const struct set *set, size_t view)
{
    for (size_t i = 0; i < set->n_sources; i++)
        if (set->source[i].view == view)
            return true;
    return false;
}

/* Parts of CelebA are views without a source: all of them are one dataset, by {split}. */
static void print_view(struct printing *p, const char *name, size_t at, bool *has_parts)
{
    const struct files_claim *claim = p->set->claim;
    const struct files_view *view = &claim->view[at];
    size_t number = view->name ? at + 1 : 0; /* the set itself is no dataset, and gone */
    const bool is_part = view->name && !print_has_source(p->set, number);
    AUTO_SHAPE struct shape shape = {0};
    AUTO_TEXT struct text parts = {0};

    if (is_part && *has_parts)
        return;
    shape_make(p->s, p->set, (claim->layout == LAYOUT_CLASSES && !view->label) || p->set->refused,
               &shape);
    p->shape = &shape;
    if (is_part)
        text_add(&parts, "%.*s{split}", (int)(path_base(view->name) - view->name) - 1,
                 view->name + 1);
    p->s->failed = p->s->failed || parts.failed;
    if (!p->s->failed)
        print_dataset(p,
                      is_part      ? parts.data
                      : view->name ? view->name + 1
                                   : name,
                      is_part, view, number);
    *has_parts = *has_parts || is_part;
}

/* ---- recipes that were there ---- */

static void print_pattern(const char *folder, const char *pattern, struct text *t)
{
    AUTO_TEXT struct text path = {0};

    if (*folder && strncmp(pattern, "{path}", 6) != 0) {
        shape_add_plain(&path, folder);
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
static void print_recipe(struct recipe_print *print, struct search *s, const struct recipe *recipe,
                         const char *pattern, json_t *dataset)
{
    AUTO_FREE char *name = collect_display_path(s, recipe->folder, pattern);
    struct printing p = {.print = print, .s = s};
    const char *key;
    json_t *value;

    print->has_recipes = true;
    print_begin(&p, name, true);
    json_object_foreach(dataset, key, value)
    {
        print_key(&p.t, key);
        print_value(claim_path(s, recipe->folder), value,
                    strcmp(key, "classes") != 0 && strcmp(key, "note") != 0 &&
                        strcmp(key, "table") != 0,
                    &p.t);
    }
    print_end(&p);
}

/* Datasets of recipes that are no sets: files and folders. */
static void print_others(struct recipe_print *print, struct search *s)
{
    for (size_t i = 0; i < s->n_recipes; i++) {
        json_t *datasets = json_object_get(s->recipe[i]->json, "datasets"), *dataset;
        const char *name;

        json_object_foreach(datasets, name, dataset)
        {
            if (!json_object_get(dataset, "pictures"))
                print_recipe(print, s, s->recipe[i], name, dataset);
        }
    }
}

/* Is a set in a folder that a recipe shows elsewhere, and prints as such? */
static bool print_is_moved(const struct search *s, const struct set *set)
{
    for (size_t i = 0; i < s->claims->n_moved; i++)
        if (members_is_below(claim_path(s, set->root), s->claims->moved[i].folder))
            return true;
    return false;
}

static bool print_is_first(const struct search *s, const struct set *set)
{
    for (const struct set *other = s->set; other < set; other++)
        if (other->dataset == set->dataset)
            return false;
    return true;
}

/* ---- what is left ---- */

static void print_leave_folder(struct recipe_print *print, struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);
    AUTO_TEXT struct text t = {0};

    shape_add_plain(&t, path);
    text_add(&t, "%s**", *path ? "/" : "");
    texts_add(s, &print->leave, &t);
}

/* Files of a folder that are nothing yet, by extension. */
static void print_leave_files(struct recipe_print *print, struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);

    for (size_t i = s->info[folder].first; i < s->info[folder].last; i++) {
        const char *name = members_name(s->m, i), *dot = strrchr(name, '.');
        AUTO_TEXT struct text t = {0};

        if (s->claims->taken[i] || is_skipped(name) || name_is_notice(name))
            continue;
        shape_add_plain(&t, path);
        text_add(&t, "%s%s", *path ? "/" : "", dot ? "*" : "");
        shape_add_plain(&t, dot ? dot : name);
        texts_add(s, &print->leave, &t);
    }
}

static void print_leave_all(struct recipe_print *print, struct search *s)
{
    AUTO_FREE uint8_t *has_taken = calloc(s->m->n_folders + 1, 1);

    s->failed = s->failed || !has_taken;
    for (size_t i = 0; i < s->m->n && !s->failed; i++)
        for (uint32_t f = s->m->member[i].folder;
             s->claims->taken[i] && f != NO_FOLDER && !has_taken[f]; f = s->info[f].above)
            has_taken[f] = 1;
    for (uint32_t i = 0; i < s->m->n_folders && !s->failed;) {
        bool is_free = !has_taken[i] && *claim_path(s, i);

        if (is_free && s->info[i].first < folder_end(s, i))
            print_leave_folder(print, s, i);
        else if (!is_free)
            print_leave_files(print, s, i);
        i = is_free ? next_folder(s, i) : i + 1;
    }
}

/* ---- all of it ---- */

void recipe_print_sets(struct recipe_print *print, struct search *s)
{
    for (size_t i = 0; i < s->n_sets && !s->failed; i++) {
        const struct set *set = &s->set[i];
        struct printing p = {.print = print, .s = s, .set = set};

        if (print_is_moved(s, set))
            continue;
        if (set->claim->table) {
            print_leave_folder(print, s, set->root);
        } else if (!set->dataset) {
            AUTO_FREE char *name = collect_set_path(s, set);
            bool has_parts = false;

            for (size_t k = 0; k < set->claim->n_views && !s->failed; k++)
                print_view(&p, name, k, &has_parts);
        } else if (print_is_first(s, set)) {
            print_recipe(print, s, set->recipe, set->pattern, set->dataset);
        }
    }
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

void recipe_print_end(struct recipe_print *print, struct search *s, char **ret)
{
    AUTO_TEXT struct text t = {0};

    print_others(print, s);
    if (s->m->n)
        print_leave_all(print, s);
    s->failed = s->failed || print->datasets.failed;
    if (s->failed || (!print->datasets.len && !print->leave.n))
        return;
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
    s->failed = text_finish(&t, ret, NULL) < 0;
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
