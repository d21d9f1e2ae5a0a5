/* Reading a recipe: what it may say. */
#include "format/files/claim/recipe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "format/annotations/boxes.h"
#include "format/files/claim/pattern.h"

int recipe_fault(const struct recipe *recipe, const char *at, struct diag *d, const char *what)
{
    return recipe->is_card /* whose text has other lines */
               ? diag_set(d, -EBADMSG, "%s: '%s': %s", recipe->name, at, what)
               : diag_set(d, -EBADMSG, "%s, line %u: '%s': %s", recipe->name,
                          recipe_line(recipe, at), at, what);
}

json_t *recipe_item(const json_t *member, size_t n)
{
    if (json_is_array(member))
        return json_array_get(member, n);
    return n ? NULL : (json_t *)(uintptr_t)member;
}

const char *recipe_pattern(const json_t *member, size_t n)
{
    return json_string_value(recipe_item(member, n));
}

int recipe_match(const struct recipe *recipe, const json_t *member, const char *path,
                 struct pattern_words *words, size_t *ret, struct diag *d)
{
    struct pattern_words unused;
    const char *pattern;

    words = words ? words : &unused;
    for (size_t i = 0; (pattern = recipe_pattern(member, i)); i++) {
        int r;

        words->n = 0;
        r = pattern_match(pattern, path, words);
        if (r < 0)
            return recipe_fault(recipe, pattern, d, "it can be read in too many ways");
        if (r && ret)
            *ret = i;
        if (r)
            return 1;
    }
    return 0;
}

/* One pattern, or a list of them. */
static int recipe_check_patterns(const struct recipe *recipe, const char *key, json_t *value,
                                 struct diag *d)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;

    if (!n)
        return recipe_fault(recipe, key, d, "expected a pattern, or a list of patterns, got none");
    for (size_t i = 0; i < n; i++) {
        const char *pattern = recipe_pattern(value, i), *fault;

        if (!pattern)
            return recipe_fault(recipe, key, d, "expected a pattern, or a list of patterns");
        fault = pattern_fault(pattern);
        if (fault)
            return recipe_fault(recipe, pattern, d, fault);
    }
    return 0;
}

static int recipe_check_with(const struct recipe *recipe, const char *key, json_t *value,
                             struct diag *d)
{
    const char *field;
    json_t *pattern;

    if (!json_is_object(value) || !json_object_size(value))
        return recipe_fault(recipe, key, d, "expected an object of fields and patterns");
    json_object_foreach(value, field, pattern)
    {
        int r;

        if (!*field || strchr(field, '/'))
            return recipe_fault(recipe, field, d, "expected the name of a field");
        r = recipe_check_patterns(recipe, field, pattern, d);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool recipe_is_column(const json_t *value)
{
    return json_is_string(value) || (json_is_integer(value) && json_integer_value(value) >= 0);
}

static bool recipe_is_file(const json_t *value)
{
    return json_is_string(value) && !pattern_fault(json_string_value(value));
}

static bool recipe_is_separator(const json_t *value)
{
    return json_string_length(value) == 1 && strchr(",;\t ", *json_string_value(value));
}

static bool recipe_are_columns(const json_t *value)
{
    bool good = json_is_array(value);

    for (size_t i = 0; i < json_array_size(value); i++)
        good = good && recipe_is_column(json_array_get(value, i));
    return good;
}

/* What a table may say. To add one: a row. */
static const struct table_member {
    const char *name;
    bool (*is_good)(const json_t *value);
    const char *expected;
} table_members[] = {
    {"file", recipe_is_file, "expected a path below the folder of the recipe"},
    {"key", recipe_is_column, "expected names of columns, or their numbers from 0"},
    {"label", recipe_is_column, "expected names of columns, or their numbers from 0"},
    {"columns", recipe_are_columns, "expected names of columns, or their numbers from 0"},
    {"separator", recipe_is_separator, "expected one of \",\", \";\", a tab or a space"},
};

static int recipe_check_one_table(const struct recipe *recipe, const char *key, json_t *value,
                                  struct diag *d)
{
    const char *name;
    json_t *member;

    if (!json_is_object(value) || !json_object_get(value, "file"))
        return recipe_fault(recipe, key, d, "expected an object with \"file\", or a list of them");
    json_object_foreach(value, name, member)
    {
        size_t i = 0;

        while (i < ARRAY_LEN(table_members) && strcmp(table_members[i].name, name) != 0)
            i++;
        if (i == ARRAY_LEN(table_members))
            return recipe_fault(recipe, name, d,
                                "expected file, key, label, columns or separator of a table");
        if (!table_members[i].is_good(member))
            return recipe_fault(recipe, name, d, table_members[i].expected);
    }
    return 0;
}

/* One table, or a list of them. */
static int recipe_check_table(const struct recipe *recipe, const char *key, json_t *value,
                              struct diag *d)
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = recipe_check_one_table(recipe, key, recipe_item(value, i), d);
    return r;
}

/* A folder of the recipe's, without patterns. */
static int recipe_check_folder(const struct recipe *recipe, const char *key, json_t *value,
                               struct diag *d)
{
    const char *path = json_string_value(value);
    size_t len = path ? strlen(path) : 0;

    return len && path[len - 1] != '/' && !strpbrk(path, "{}*") && !pattern_fault(path)
               ? 0
               : recipe_fault(recipe, key, d, "expected the path of a folder");
}

/* What is said to people, and nothing else. */
static int recipe_check_note(const struct recipe *recipe, const char *key, json_t *value,
                             struct diag *d)
{
    return json_is_string(value) ? 0 : recipe_fault(recipe, key, d, "expected a text");
}

static int recipe_check_boxes(const struct recipe *recipe, const char *key, json_t *value,
                              struct diag *d)
{
    unsigned files = 0;
    const char *name;
    json_t *member;

    if (!json_is_object(value))
        return recipe_fault(recipe, key, d, "expected an object, such as {\"coco\": pattern}");
    json_object_foreach(value, name, member)
    {
        int r;

        if (!box_format_find(name) && strcmp(name, "coco") != 0 && strcmp(name, "names") != 0)
            return recipe_fault(recipe, name, d, "expected coco, voc, yolo, kitti, or names");
        r = recipe_check_patterns(recipe, name, member, d);
        if (r < 0)
            return r;
        files += box_format_find(name) != NULL;
    }
    return files == 1 || (!files && json_object_get(value, "coco"))
               ? 0
               : recipe_fault(recipe, key, d, "expected coco, or one of voc, yolo and kitti");
}

static int recipe_check_classes(const struct recipe *recipe, const char *key, json_t *value,
                                struct diag *d)
{
    AUTO_NUMBERED struct numbered list = {0};
    int r;

    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_string(json_array_get(value, i)))
            return recipe_fault(recipe, key, d, "expected a list of names");
    if (!json_is_array(value))
        return recipe_fault(recipe, key, d, "expected a list of names");
    r = recipe_classes(value, &list);
    return r == -EEXIST ? recipe_fault(recipe, json_string_value(json_array_get(value, list.n)), d,
                                       "expected names of classes that differ")
                        : r;
}

/* What a dataset may say. To add one: a row. */
static const struct recipe_member {
    const char *name;
    int (*check)(const struct recipe *recipe, const char *key, json_t *value, struct diag *d);
} members[] = {
    {"pictures", recipe_check_patterns}, {"except", recipe_check_patterns},
    {"with", recipe_check_with},         {"list", recipe_check_patterns},
    {"table", recipe_check_table},       {"boxes", recipe_check_boxes},
    {"celeba", recipe_check_patterns},   {"classes", recipe_check_classes},
    {"note", recipe_check_note},         {"files", recipe_check_patterns},
    {"folder", recipe_check_folder},
};

/* Files and folders have what they have: nothing else is said of them. */
static int recipe_check_members(const struct recipe *recipe, const char *name,
                                const json_t *dataset, struct diag *d)
{
    bool pictures = json_object_get(dataset, "pictures"), files = json_object_get(dataset, "files"),
         folder = json_object_get(dataset, "folder");
    size_t n = (size_t)files + folder + (json_object_get(dataset, "note") != NULL) +
               (files && json_object_get(dataset, "except"));

    if (pictures + files + folder != 1)
        return recipe_fault(recipe, name, d, "expected one of \"pictures\", \"files\", \"folder\"");
    if (!pictures && json_object_size(dataset) != n)
        return recipe_fault(recipe, name, d,
                            "expected nothing else with \"files\" or \"folder\"; with \"files\" "
                            "also \"except\"");
    return 0;
}

/* Are all parts of a name what a folder may be called? */
static bool recipe_is_path(const char *name)
{
    for (size_t len;; name += len + 1) {
        len = strcspn(name, "/");
        if (!len || len > NAME_MAX || (len == 1 && *name == '.'))
            return false;
        if (!name[len])
            return true;
    }
}

static int recipe_check_dataset(const struct recipe *recipe, const char *name, json_t *dataset,
                                struct diag *d)
{
    const char *key;
    json_t *value;

    if (!(recipe_is_path(name) || (!strcmp(name, ".") && json_object_get(dataset, "folder"))) ||
        pattern_fault(name) || strchr(name, '*'))
        return recipe_fault(recipe, name, d, "expected the name of a dataset, with words in { }");
    if (!json_is_object(dataset))
        return recipe_fault(recipe, name, d, "expected an object with \"pictures\"");
    json_object_foreach(dataset, key, value)
    {
        int r = -EINVAL;

        for (size_t i = 0; r == -EINVAL && i < ARRAY_LEN(members); i++)
            if (!strcmp(key, members[i].name))
                r = members[i].check(recipe, key, value, d);
        if (r == -EINVAL)
            return recipe_fault(recipe, key, d,
                                "expected pictures, except, with, list, table, boxes, celeba, "
                                "classes, files, folder or note");
        if (r < 0)
            return r;
    }
    return recipe_check_members(recipe, name, dataset, d);
}

int recipe_read(struct recipe *ret, const char *name, const char *text, size_t len, struct diag *d)
{
    const char *key;
    json_t *value, *datasets;
    int r;

    ret->text = text;
    ret->name = name;
    ret->len = len;
    r = json_read_unique(text, len, name, json_budget(len), &ret->json, d);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    datasets = json_object_get(ret->json, "datasets");
    json_object_foreach(ret->json, key, value)
    {
        if (!strcmp(key, "leave"))
            r = recipe_check_patterns(ret, key, value, d);
        else if (!strcmp(key, "note"))
            r = recipe_check_note(ret, key, value, d);
        else if (strcmp(key, "datasets") != 0)
            r = recipe_fault(ret, key, d, "expected datasets, leave or note");
        if (r < 0)
            return r;
    }
    if (!json_is_object(datasets) ||
        (!json_object_size(datasets) && !json_object_get(ret->json, "leave")))
        return diag_set(d, -EBADMSG, "%s: expected {\"datasets\": {NAME: ...}}", name);
    json_object_foreach(datasets, key, value)
    {
        r = recipe_check_dataset(ret, key, value, d);
        if (r < 0)
            return r;
    }
    return 0;
}

void recipe_release(struct recipe *recipe)
{
    json_free(&recipe->json);
    free(recipe->owned);
}
