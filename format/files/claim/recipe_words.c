/* Words of the paths of a recipe's pictures as fields: texts, or whole numbers if all of them are.
 * Behind them: places in the text of a recipe, and paths below its folder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/files/claim/recipe_parts.h"

bool recipe_name_has_word(const char *name, const struct pattern_word *word)
{
    for (const char *p = name; (p = strchr(p, '{')); p++)
        if (!strncmp(p + 1, word->name, word->name_len) && p[1 + word->name_len] == '}')
            return true;
    return false;
}

static bool recipe_is_field(const char *dataset, const struct pattern_word *word)
{
    static const char *const others[] = {"label", "stem", "path"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (word->name_len == strlen(others[i]) && !memcmp(word->name, others[i], word->name_len))
            return false;
    return *word->name != '_' && !recipe_name_has_word(dataset, word);
}

int recipe_add_words(const char *dataset, struct value_columns *ret, uint64_t row,
                     const struct pattern_words *words)
{
    int r = 0;

    for (unsigned i = 0; i < words->n && r == 0; i++) {
        const struct pattern_word *word = &words->word[i];
        AUTO_FREE char *name = strndup(word->name, word->name_len);
        struct value_column *c;

        if (!name)
            return -ENOMEM;
        if (!recipe_is_field(dataset, word))
            continue;
        c = value_columns_find(ret, name);
        if (!c)
            r = value_columns_add(ret, name, VALUE_TEXT, DTYPE_U1, true, 0, &c);
        if (r == 0)
            r = value_column_set(c, row, word->text, word->len);
    }
    return r;
}

unsigned recipe_line(const struct recipe *recipe, const char *text)
{
    AUTO_TEXT struct text quoted = {0};
    const char *found;
    unsigned line = 1;

    text_add_json(&quoted, text);
    found = quoted.failed ? NULL : memmem(recipe->text, recipe->len, quoted.data, quoted.len);
    for (const char *p = recipe->text; found && p < found; p++)
        line += *p == '\n';
    return line;
}

bool recipe_path(const struct search *s, const struct recipe *recipe, size_t file,
                 char ret[static PATH_MAX])
{
    size_t above = strlen(claim_path(s, recipe->folder));

    if (members_path(s->m, file, ret, PATH_MAX) < 0)
        return false;
    above += above > 0;
    memmove(ret, ret + above, strlen(ret + above) + 1);
    return true;
}

/* ---- labels: words of paths ---- */

int recipe_classes(const json_t *classes, struct numbered *ret)
{
    size_t n = json_array_size(classes);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const json_t *name = json_array_get(classes, i);
        uint32_t number;

        r = numbered_add(ret, json_string_value(name), json_string_length(name), &number);
        if (r == 0 && number < i)
            return -EEXIST;
    }
    return r;
}
