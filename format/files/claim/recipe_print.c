/* Sets as datasets of a recipe: patterns from their shapes (shape.c), and what tables and
 * annotations say of them. */
#include "format/files/claim/recipe_print.h"

#include <stdlib.h>
#include <string.h>

#include "format/files/claim/recipe.h"
#include "format/files/claim/shape.h"
#include "format/files/claim/siblings.h"

/* What annotations say: one value of each member, or a list. Those of the view come before those of
 * all samples. */
static void print_said(struct search *s, const struct set *set, size_t view, json_t *ret)
{
    AUTO_JSON json_t *said = json_object();
    json_t *values, *coco, *boxes = json_object_get(ret, "boxes");
    const char *member;

    for (unsigned pass = 0; pass < (view ? 2 : 1); pass++)
        json_object_foreach(json_array_get(set->said, pass ? 0 : view), member, values)
        {
            if (!json_object_get(said, member))
                search_json_set(s, said, member, json_array());
            s->failed = s->failed || json_array_extend(json_object_get(said, member), values) < 0;
        }
    coco = json_object_get(said, "coco");
    values = json_object_get(said, "names");
    if (coco && !boxes)
        search_json_set(s, ret, "boxes", json_object());
    if (coco)
        search_json_set(s, json_object_get(ret, "boxes"), "coco", shape_one_or_list(coco));
    if (boxes && values)
        search_json_set(s, boxes, "names", shape_one_or_list(values));
    json_object_foreach(said, member, values)
    {
        if (strcmp(member, "coco") != 0 && strcmp(member, "names") != 0)
            search_json_set(s, ret, member, shape_one_or_list(values));
    }
}

/* ---- classes ---- */

/* Say the classes of a dataset. set: they are its folders, of which some may have no samples; NULL:
 * they are of a table. kept: only at the end it is known whether all such datasets have the same
 * classes, each with samples, as recipes number them. */
static void print_classes(struct recipe_print *print, struct search *s, const struct set *set,
                          char *const *name, size_t n, bool kept, json_t *dataset)
{
    json_t *names = json_array();

    for (size_t i = 0; i < n && !s->failed; i++) {
        s->failed = json_array_append_new(names, search_json_text(s, name[i])) < 0;
        if (!set)
            search_json_set(s, print->has, json_string_value(json_array_get(names, i)),
                            json_true());
    }
    for (size_t i = 0; set && i < set->claim->n_samples && !s->failed; i++) {
        const size_t file = set->file[set->claim->first[i]];

        search_json_set(s, print->has,
                        json_string_value(json_array_get(
                            names, claim_class_of(set->claim, members_folder_of(s->m, file)))),
                        json_true());
    }
    search_json_set(s, dataset, "classes", names);
    s->failed = s->failed || (kept && json_array_append(print->by_folder, dataset) < 0);
}

/* Where all of them are alike, they are what recipes number by themselves. */
static void print_end_classes(const struct recipe_print *print)
{
    const json_t *first = json_object_get(json_array_get(print->by_folder, 0), "classes");
    bool agree = json_object_size(print->has) == json_array_size(first) && !print->has_recipes;
    size_t i;
    json_t *dataset;

    json_array_foreach(print->by_folder, i, dataset)
    {
        agree = agree && json_equal(json_object_get(dataset, "classes"), first);
    }
    json_array_foreach(print->by_folder, i, dataset)
    {
        if (agree)
            json_object_del(dataset, "classes");
    }
}

/* Are the classes of a view those of the folders of a set? */
static bool print_are_folders(const struct search *s, const struct files_view *view)
{
    for (size_t i = 0; i < s->n_sets; i++) {
        const struct files_claim *claim = s->set[i].claim;
        size_t same = 0;

        while (same < claim->n_classes && same < view->n_classes &&
               !strcmp(claim->class_name[same], view->class_name[same]))
            same++;
        if (same && same == claim->n_classes && same == view->n_classes)
            return true;
    }
    return false;
}

/* ---- datasets ---- */

/* Add a dataset by a name that none has so far, without what patterns give a meaning. */
static void print_add(const struct recipe_print *print, struct search *s, const char *name,
                      bool is_pattern, json_t *dataset)
{
    AUTO_JSON json_t *value = search_json_text(s, name && *name ? name : "all");
    AUTO_TEXT struct text t = {0};
    size_t len;

    text_add(&t, "%s", value ? json_string_value(value) : "");
    for (char *c = t.data; c && *c && !is_pattern; c++)
        *c = strchr("{}*", *c) ? '_' : *c;
    len = t.len;
    for (unsigned i = 2; !t.failed && json_object_get(print->datasets, t.data); i++) {
        t.len = len;
        text_add(&t, "~%u", i); /* as the mount names it */
    }
    s->failed = s->failed || t.failed;
    search_json_set(s, print->datasets, t.data, dataset);
}

/* number: of the view, with all samples of the set as number 0. */
static json_t *print_dataset(struct recipe_print *print, struct search *s, const struct set *set,
                             const struct files_view *view, size_t number, const char *word)
{
    const struct files_claim *claim = set->claim;
    const bool by_class = claim->layout == LAYOUT_CLASSES && !view->label;
    json_t *ret = json_object();

    shape_make(s, set, view, word ? word : by_class ? "label" : NULL, ret);
    if (set->refused) /* its classes are numbered with those of other datasets */
        search_json_set(s, print->has, claim->top, json_true());
    print_said(s, set, number, ret);
    if (by_class && claim->n_classes)
        print_classes(print, s, set, claim->class_name, claim->n_classes, true, ret);
    else if (view->label && view->n_classes)
        print_classes(print, s, NULL, view->class_name, view->n_classes,
                      !print_are_folders(s, view), ret); /* recipes number over all datasets */
    return ret;
}

/* Parts of CelebA are views of which nothing is said: all of them are one dataset, by {split}. */
static void print_set(struct recipe_print *print, struct search *s, const struct set *set)
{
    AUTO_FREE char *name = collect_set_path(s, set);
    const bool has_splits = set->refused && siblings_have_two_splits(s, set->top) &&
                            !s->info[set->top].here[COUNT_PICTURES];
    const char *word = has_splits ? "split" : set->refused ? "label" : NULL;
    bool has_parts = false;

    for (size_t i = 0; i < set->claim->n_views && !s->failed; i++) {
        const struct files_view *view = &set->claim->view[i];
        const size_t number = view->name ? i + 1 : 0; /* the set itself is no dataset, and gone */
        const bool is_part = view->name && !json_object_size(json_array_get(set->said, number));
        AUTO_TEXT struct text called = {0};

        if (is_part && has_parts)
            continue;
        has_parts = has_parts || is_part;
        if (is_part)
            text_add(&called, "%.*s{split}", (int)(path_base(view->name) - view->name) - 1,
                     view->name + 1);
        else if (has_splits)
            text_add(&called, "%s%s{split}", name, *name ? "/" : "");
        s->failed = s->failed || called.failed;
        print_add(print, s,
                  called.len   ? called.data
                  : view->name ? view->name + 1
                               : name,
                  called.len, print_dataset(print, s, set, view, number, word));
    }
}

/* ---- recipes that were there ---- */

/* A value with paths from SOURCE: texts below a key that has paths are patterns. */
static json_t *print_value(struct search *s, const char *folder, json_t *value, bool has_paths)
{
    const char *text = json_string_value(value), *key;
    AUTO_TEXT struct text path = {0};
    json_t *ret, *member;
    size_t i;

    if (has_paths && text && strncmp(text, "{path}", 6) != 0) {
        shape_add_plain(&path, folder);
        text_add(&path, "/%s", text);
        s->failed = s->failed || path.failed;
        return search_json_text(s, path.data);
    }
    if (!json_is_array(value) && !json_is_object(value))
        return json_incref(value);
    ret = json_copy(value);
    json_array_foreach(value, i, member)
    {
        if (json_array_set_new(ret, i, print_value(s, folder, member, has_paths)) < 0)
            s->failed = true;
    }
    json_object_foreach(value, key, member)
    {
        search_json_set(s, ret, key,
                        print_value(s, folder, member, has_paths || !strcmp(key, "file")));
    }
    return ret;
}

/* A dataset of a recipe of a folder. */
static void print_recipe(struct recipe_print *print, struct search *s, const struct recipe *recipe,
                         const char *pattern, json_t *dataset)
{
    AUTO_FREE char *name = collect_display_path(s, recipe->folder, pattern);
    const char *key, *folder = claim_path(s, recipe->folder);
    json_t *value, *ret = json_copy(dataset);

    print->has_recipes = true;
    json_object_foreach(dataset, key, value)
    {
        if (*folder && strcmp(key, "classes") != 0 && strcmp(key, "note") != 0)
            search_json_set(s, ret, key, print_value(s, folder, value, strcmp(key, "table") != 0));
    }
    print_add(print, s, name, true, ret);
}

/* Is a folder in one that a recipe shows elsewhere, and prints as such? */
static bool print_is_moved(const struct search *s, uint32_t folder)
{
    for (size_t i = 0; i < s->claims->n_moved; i++)
        if (members_is_below(claim_path(s, folder), s->claims->moved[i].folder))
            return true;
    return false;
}

void recipe_print_recipes(struct recipe_print *print, struct search *s)
{
    for (size_t i = 0; i < s->n_recipes; i++) {
        json_t *dataset;
        const char *name;

        if (print_is_moved(s, s->recipe[i]->folder))
            continue;
        json_object_foreach(json_object_get(s->recipe[i]->json, "datasets"), name, dataset)
        {
            print_recipe(print, s, s->recipe[i], name, dataset);
        }
    }
}

/* ---- what is left ---- */

static void print_leave_folder(const struct recipe_print *print, struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);
    AUTO_TEXT struct text t = {0};

    shape_add_plain(&t, path);
    text_add(&t, "%s**", *path ? "/" : "");
    shape_add_distinct(s, print->leave, &t);
}

/* Files of a folder that are nothing yet, by extension. */
static void print_leave_files(const struct recipe_print *print, struct search *s, uint32_t folder)
{
    const char *path = claim_path(s, folder);

    for (size_t i = s->info[folder].first; i < s->info[folder].last; i++) {
        const char *name = members_name(s->m, i), *dot = strrchr(name, '.');
        AUTO_TEXT struct text t = {0};

        if (s->claims->taken[i] || is_skipped(name) || name_is(NAME_NOTICE, name))
            continue;
        shape_add_plain(&t, path);
        text_add(&t, "%s%s", *path ? "/" : "", dot ? "*" : "");
        shape_add_plain(&t, dot ? dot : name);
        shape_add_distinct(s, print->leave, &t);
    }
}

static void print_leave_all(const struct recipe_print *print, struct search *s)
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

void recipe_print_begin(struct recipe_print *print, struct search *s)
{
    *print = (struct recipe_print){json_object(), json_array(), json_array(), json_object(), false};
    s->print = print;
    s->failed = s->failed || !print->datasets || !print->leave || !print->by_folder || !print->has;
}

void recipe_print_sets(struct recipe_print *print, struct search *s)
{
    for (size_t i = 0; i < s->n_sets && !s->failed; i++) {
        const struct set *set = &s->set[i];
        const bool is_all = set->has_texts && !print->has_recipes; /* trees of speech are all */

        if (print_is_moved(s, set->root) || set->dataset)
            continue;
        if (set->claim->table || is_all)
            print_leave_folder(print, s, is_all ? 0 : set->root);
        else
            print_set(print, s, set);
    }
}

/* A line for each member. */
static void print_members(struct search *s, json_t *dataset, struct text *t)
{
    const char *key, *comma = "";
    json_t *value;

    json_object_foreach(dataset, key, value)
    {
        AUTO_FREE char *json = json_dumps(value, JSON_ENCODE_ANY);

        text_add(t, "%s\n      ", comma);
        text_add_json(t, key);
        text_add(t, ": %s", json ? json : "");
        s->failed = s->failed || !json;
        comma = ",";
    }
}

void recipe_print_end(struct recipe_print *print, struct search *s, char **ret)
{
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *leave = NULL;
    AUTO_FREE char *json = NULL;
    const char *name, *comma = "";
    json_t *dataset;

    print_end_classes(print);
    if (s->m->n)
        print_leave_all(print, s);
    if (s->failed || (!json_object_size(print->datasets) && !json_array_size(print->leave)))
        return;
    for (size_t i = 0; i < json_array_size(print->leave) && !print->has_recipes; i++)
        if (!strcmp(json_string_value(json_array_get(print->leave, i)), "**"))
            json_object_clear(print->datasets); /* no recipe may have both */
    text_add(&t, "{\n  \"datasets\": {");
    json_object_foreach(print->datasets, name, dataset)
    {
        text_add(&t, "%s\n    ", comma);
        text_add_json(&t, name);
        text_add(&t, ": {");
        print_members(s, dataset, &t);
        text_add(&t, "\n    }");
        comma = ",";
    }
    leave = *comma ? shape_one_or_list(print->leave) : json_string("**");
    json = json_dumps(leave, JSON_ENCODE_ANY);
    text_add(&t, "%s}", *comma ? "\n  " : "");
    if (json_array_size(print->leave))
        text_add(&t, ",\n  \"leave\": %s", json ? json : "");
    text_add(&t, "\n}\n");
    s->failed = s->failed || !json || text_finish(&t, ret, NULL) < 0;
}

void recipe_print_release(struct recipe_print *print)
{
    json_free(&print->datasets);
    json_free(&print->leave);
    json_free(&print->by_folder);
    json_free(&print->has);
}
