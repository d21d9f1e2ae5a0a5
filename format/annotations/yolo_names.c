/* Names of YOLO's classes: a name in each line of a text, or the key `names` of data.yaml, a list
 * or a map of numbers to names. What is something else is rejected: a name is never guessed. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "base/yaml.h"
#include "format/annotations/box_parts.h"

struct names {
    struct box_file file;
    struct box_classes *ret;
};

static int names_add(struct names *names, uint64_t number, struct box_cell name)
{
    struct box_classes *ret = names->ret;
    int r = box_name_check(&names->file, name);
    char *copy;

    if (r < 0)
        return r;
    if (ret->n == BOX_CLASSES_MAX)
        return box_bad(&names->file, "expected at most %d names of classes, got more",
                       BOX_CLASSES_MAX);
    if (array_capacity(&ret->item, ret->n, sizeof(*ret->item)) < 0)
        return -ENOMEM;
    copy = strndup((const char *)name.text, name.len);
    if (!copy)
        return -ENOMEM;
    ret->item[ret->n++] = (struct box_class){number, copy};
    return 0;
}

/* ---- a name in each line ---- */

static int names_of_lines(struct names *names)
{
    struct box_file *file = &names->file;
    int r = 0;

    while (r == 0 && file->at < file->end) {
        const uint8_t *end = memchr(file->at, '\n', (size_t)(file->end - file->at));
        struct box_cell name = {file->at, (size_t)((end ? end : file->end) - file->at)};

        file->at = end ? end + 1 : file->end;
        file->line++;
        name = box_trimmed(name);
        if (name.len)
            r = names_add(names, file->line - 1, name);
    }
    return r;
}

/* ---- YAML ---- */

static int names_add_text(struct names *names, uint64_t number, const json_t *name)
{
    if (!json_is_string(name))
        return box_bad(&names->file, "names: expected a list or a map of names, got another value");
    return names_add(
        names, number,
        (struct box_cell){(const uint8_t *)json_string_value(name), json_string_length(name)});
}

static int names_of_yaml(struct names *names)
{
    const struct box_file *file = &names->file;
    AUTO_JSON json_t *all = NULL;
    json_t *value, *name;
    const char *key;
    size_t i;
    int r = yaml_read(file->at, (size_t)(file->end - file->at), file->name, &all, file->d);

    value = json_object_get(all, "names");
    if (r == 0 && value && !json_is_null(value) && !json_is_array(value) && !json_is_object(value))
        r = names_add_text(names, 0, NULL);
    json_array_foreach(value, i, name)
    {
        r = r < 0 ? r : names_add_text(names, i, name);
    }
    json_object_foreach(value, key, name)
    {
        uint64_t number;
        size_t n = number_parse(key, strlen(key), INT32_MAX, &number);

        if (r == 0 && n && !key[n])
            r = names_add_text(names, number, name);
        else if (r == 0)
            r = box_bad(file, "names: expected the number of a class, 0 to %d", INT32_MAX);
    }
    return r;
}

static int names_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct box_class *)a)->number, y = ((const struct box_class *)b)->number;

    return x < y ? -1 : x > y;
}

int yolo_names(const void *bytes, size_t len, const char *name, struct box_classes *ret,
               struct diag *d)
{
    bool is_yaml = text_ends_with(name, ".yaml") || text_ends_with(name, ".yml");
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    struct names names = {.ret = &classes, .file = {.name = name, .d = d}};
    int r;

    if (len > BOX_FILE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a file of at most %u bytes, got %zu", name,
                        BOX_FILE_MAX, len);
    if (!len)
        return 0;
    names.file.at = (const uint8_t *)bytes + utf8_mark(bytes, len);
    names.file.end = (const uint8_t *)bytes + len;
    r = is_yaml ? names_of_yaml(&names) : names_of_lines(&names);
    if (r < 0)
        return r;
    if (classes.n)
        qsort(classes.item, classes.n, sizeof(*classes.item), names_compare);
    *ret = classes;
    classes = (struct box_classes){0};
    return 0;
}
