/* README.md of a repository of the Hugging Face Hub, its card: `configs` of the YAML at its head
 * says which files are which dataset, as the library `datasets` reads it (docs/hub,
 * datasets-manual-configuration). It becomes a recipe:
 *
 *     configs:                              {"datasets": {
 *     - config_name: en                       "en/train": {"files": ["en/train-*"]},
 *       data_files:                           "en/test": {"files": ["en/test.csv"]},
 *       - {split: train, path: en/train-*}
 *       - {split: test, path: en/test.csv}
 *     - config_name: photos                   "photos": {"folder": "photos"}}}
 *       data_dir: photos
 *
 * One config alone is not in the names. Files of pictures and sounds are what their folder is by
 * the rules of folders. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/yaml.h"
#include "format/files/claim/recipe_parts.h"

#define CARD "README.md"

struct card {
    const struct search *s;
    json_t *datasets;
    struct text notes;
    bool failed;        /* memory ran out */
    bool finds;         /* a file or a folder that it names exists */
    const char *config; /* that is read; NULL: there is one alone, or none */
    bool is_default;
    const char *shown; /* its name, for people */
};

static void card_note(struct card *card, const char *what, const char *why)
{
    text_add(&card->notes, "%s" CARD ": config '%s': '%s' is ignored: %s",
             card->notes.len ? "\n" : "", card->shown, what, why);
}

/* Is it one name of a folder? */
static bool card_is_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strpbrk(name, "/{}*");
}

/* A split: words with dots between them. */
static size_t card_split_len(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '_' || (n && text[n] == '.'))
        n++;
    return n;
}

/* Add a dataset; takes it over. NULL: no memory. */
static void card_add(struct card *card, const char *split, json_t *dataset)
{
    AUTO_TEXT struct text name = {0};
    AUTO_JSON json_t *owned = dataset;

    text_add(&name, "%s%s%s", card->config ? card->config : "", card->config && *split ? "/" : "",
             split);
    if (!name.len)
        text_add(&name, ".");
    card->failed = card->failed || !owned || name.failed;
    if (card->failed)
        return;
    if (json_object_get(card->datasets, name.data)) {
        card_note(card, split, "expected each split once");
        return;
    }
    if (card->config &&
        json_object_set_new(owned, "note",
                            json_sprintf("config %s of " CARD "%s", card->config,
                                         card->is_default ? ", the default one" : "")) < 0)
        card->failed = true;
    if (json_object_set(card->datasets, name.data, owned) < 0)
        card->failed = true;
}

/* ---- patterns ---- */

/* The n-th file or a later one that a pattern names; that of no file: it names none. Only files of
 * the folder that it begins with are looked at. */
static size_t card_next_file(const struct card *card, const char *pattern, size_t n)
{
    const struct search *s = card->s;
    bool has_sets = strpbrk(pattern, "?[");
    size_t len = strcspn(pattern, "*?[");
    uint32_t folder;

    while (len && pattern[len] != '/')
        len--;
    folder = folder_of_path(s, pattern, len);
    if (folder == NO_FOLDER)
        return s->m->n;
    for (n = n > s->info[folder].first ? n : s->info[folder].first;
         n < s->info[s->info[folder].end - 1].last; n++) {
        struct pattern_words words = {.n = 0};
        char path[PATH_MAX];

        if (members_path(s->m, n, path, sizeof(path)) < 0 || path_is_hidden(path))
            continue;
        if (has_sets ? fnmatch(pattern, path, FNM_PATHNAME) == 0
                     : pattern_match(pattern, path, &words) > 0)
            return n;
    }
    return s->m->n;
}

static void card_append(struct card *card, json_t *list, const char *text)
{
    card->failed = card->failed || json_array_append_new(list, json_string(text)) < 0;
}

/* Add a pattern to a list. [ and ? are no patterns of recipes: their files are named one by one. */
static void card_add_pattern(struct card *card, const char *folder, const char *text, json_t *ret)
{
    size_t n_files = card->s->m->n;
    AUTO_TEXT struct text t = {0};
    const char *fault;

    text += strncmp(text, "./", 2) ? 0 : 2;
    text_add(&t, "%s%s%s", *text == '/' ? "" : folder, *folder && *text != '/' ? "/" : "", text);
    card->failed = card->failed || t.failed;
    if (card->failed)
        return;
    fault = strpbrk(t.data, "{}") ? "it has { or }" : pattern_fault(t.data);
    if (fault) {
        card_note(card, text, fault);
        return;
    }
    if (!strpbrk(t.data, "?[")) {
        card_append(card, ret, t.data);
        return;
    }
    for (size_t i = 0; (i = card_next_file(card, t.data, i)) < n_files; i++) {
        char path[PATH_MAX];

        members_path(card->s->m, i, path, sizeof(path));
        if (!strpbrk(path, "{}*"))
            card_append(card, ret, path);
    }
}

/* A path, or a list of them, as patterns. */
static void card_add_patterns(struct card *card, const char *folder, const json_t *value,
                              json_t *ret)
{
    const char *path;

    if (!recipe_pattern(value, 0))
        card_note(card, "path", "expected a path, or a list of paths");
    for (size_t i = 0; (path = recipe_pattern(value, i)); i++)
        card_add_pattern(card, folder, path, ret);
}

/* ---- splits ---- */

/* The folder that a pattern has all files of; "": it has only some. */
static size_t card_folder_len(const char *pattern)
{
    size_t n = strcspn(pattern, "*");
    const char *end = pattern + n;

    if (!n || pattern[n - 1] != '/')
        return 0;
    end += strncmp(end, "**/", 3) ? 0 : 3;
    end += strspn(end, "*");
    return !*end || (*end == '.' && !strpbrk(end, "/*")) ? n - 1 : 0;
}

/* Files that are pictures or sounds: their folder is the dataset, or they are samples. */
static json_t *card_media(json_t *patterns)
{
    const char *pattern = recipe_pattern(patterns, 0);
    size_t len = recipe_pattern(patterns, 1) ? 0 : card_folder_len(pattern);

    return len ? json_pack("{s:s%}", "folder", pattern, len)
               : json_pack("{s:O}", "pictures", patterns);
}

static void card_add_split(struct card *card, const char *split, json_t *patterns)
{
    const struct members *m = card->s->m;
    const char *pattern, *name;
    size_t file = m->n;

    if (card_split_len(split) < strlen(split) || !*split) {
        card_note(card, split, "expected a split of letters, digits, _ and .");
        return;
    }
    for (size_t i = 0; file == m->n && (pattern = recipe_pattern(patterns, i)); i++)
        file = card_next_file(card, pattern, 0);
    if (!recipe_pattern(patterns, 0))
        return;
    card->finds = card->finds || file < m->n;
    name = file < m->n ? members_name(m, file) : "";
    card_add(card, split,
             name_is_picture(name) || name_is_of(FILES_SOUNDS, name)
                 ? card_media(patterns)
                 : json_pack("{s:O}", "files", patterns));
}

/* Files data/SPLIT-NNNNN-of-NNNNN of a folder; those of a split lie together. Are there some? */
static bool card_add_shards(struct card *card, const char *folder)
{
    static const char number[] = "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*";
    const struct members *m = card->s->m;
    AUTO_TEXT struct text path = {0}, split = {0};
    bool any = false;

    text_add(&path, "%s%sdata", folder, *folder ? "/" : "");
    for (size_t i = 0; i < m->n && !path.failed && !split.failed; i++) {
        const char *name = members_name(m, i);
        size_t n = card_split_len(name);

        if (strcmp(members_folder_of(m, i), path.data) != 0 || fnmatch(number, name + n, 0) != 0 ||
            (any && split.len == n && !strncmp(split.data, name, n)))
            continue;
        any = card->finds = true;
        split.len = 0;
        text_add(&split, "%.*s", (int)n, name);
        card_add(
            card, split.data ? split.data : "",
            json_pack("{s:[o]}", "files", json_sprintf("%s/%s-*-of-*", path.data, split.data)));
    }
    card->failed = card->failed || path.failed || split.failed;
    return any;
}

/* ---- configs ---- */

static void card_add_data_files(struct card *card, const char *folder, const json_t *files)
{
    AUTO_JSON json_t *all = json_array();

    if (json_is_string(files))
        card_add_patterns(card, folder, files, all);
    else if (!json_is_array(files))
        card_note(card, "data_files", "expected a path, or a list");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *item = json_array_get(files, i);
        const char *split = json_string_value(json_object_get(item, "split"));
        AUTO_JSON json_t *patterns = json_array();

        if (json_is_string(item)) {
            card_add_patterns(card, folder, item, all);
        } else if (!split) {
            card_note(card, "data_files", "expected a path, or split and path");
        } else {
            card_add_patterns(card, folder, json_object_get(item, "path"), patterns);
            card_add_split(card, split, patterns);
        }
    }
    if (json_array_size(all))
        card_add_split(card, "train", all);
    card->failed = card->failed || !all;
}

static void card_add_config(struct card *card, const json_t *config)
{
    const char *folder = json_string_value(json_object_get(config, "data_dir"));
    const json_t *files = json_object_get(config, "data_files");
    AUTO_FREE char *clean = NULL;

    folder = folder ? folder + (strncmp(folder, "./", 2) ? 0 : 2) : "";
    clean = strndup(folder, strlen(folder) - text_ends_with(folder, "/"));
    card->failed = card->failed || !clean;
    if (card->failed)
        return;
    if (*clean && (strpbrk(clean, "{}*") || pattern_fault(clean) ||
                   folder_of_path(card->s, clean, strlen(clean)) == NO_FOLDER)) {
        card_note(card, clean, "there is no folder of that name");
    } else if (files) {
        card_add_data_files(card, clean, files);
    } else if (!card_add_shards(card, clean)) {
        if (!*clean && card->config)
            card_note(card, "config", "it names no files");
        card->finds = card->finds || *clean;
        if (*clean)
            card_add(card, "", json_pack("{s:s}", "folder", clean));
    }
}

static bool card_says_yes(const json_t *value)
{
    const char *text = json_string_value(value);

    return text &&
           (!strcasecmp(text, "true") || !strcasecmp(text, "yes") || !strcasecmp(text, "on"));
}

static void card_add_configs(struct card *card, const json_t *configs)
{
    bool any_default = false;

    for (size_t i = 0; i < json_array_size(configs); i++)
        any_default =
            any_default || card_says_yes(json_object_get(json_array_get(configs, i), "default"));
    for (size_t i = 0; i < json_array_size(configs) && !card->failed; i++) {
        const json_t *config = json_array_get(configs, i);
        const char *name = json_string_value(json_object_get(config, "config_name"));

        card->shown = name ? name : "";
        if (!name || !card_is_name(name)) {
            card_note(card, "config_name", "expected a name without / and *");
            continue;
        }
        card->config = json_array_size(configs) > 1 ? name : NULL;
        card->is_default = any_default ? card_says_yes(json_object_get(config, "default"))
                                       : !strcmp(name, "default");
        card_add_config(card, config);
    }
}

/* Is it all as without a recipe: folders that are called like the splits? Then the rules see what
 * they have in common, such as classes. */
static bool card_says_nothing(const struct card *card)
{
    json_t *dataset;
    const char *name;

    json_object_foreach(card->datasets, name, dataset)
    {
        const char *folder = json_string_value(json_object_get(dataset, "folder"));

        if (!folder || strcmp(folder, name) != 0)
            return false;
    }
    return true;
}

static void card_read(struct card *card, const json_t *yaml)
{
    const json_t *configs = json_object_get(yaml, "configs");

    if (json_is_array(configs)) {
        card_add_configs(card, configs);
        return;
    }
    if (configs)
        card_note(card, "configs", "expected a list");
    if (json_object_get(yaml, "dataset_info"))
        card_add_shards(card, "");
}

/* The bytes of the YAML at the head, which is between two lines of three dashes. 0: there is none;
 * len: the second one is missing. */
static size_t card_head_len(const char *text, size_t len)
{
    for (size_t at = 0, n; at < len; at += n + 1) {
        const char *line = text + at, *end = memchr(line, '\n', len - at);
        bool is_rule;

        n = end ? (size_t)(end - line) : len - at;
        is_rule = n >= 3 && !memcmp(line, "---", 3) && (n == 3 || (n == 4 && line[3] == '\r'));
        if (at ? is_rule : !is_rule)
            return at;
    }
    return len;
}

int card_recipe(struct search *s, const char *text, size_t len, char **ret)
{
    AUTO_JSON json_t *yaml = NULL, *recipe = NULL;
    struct card card = {.s = s, .datasets = json_object(), .shown = ""};
    struct diag d = DIAG_INIT;
    size_t head_len = card_head_len(text, len);
    int r = head_len < len ? yaml_read(text, head_len, CARD, &yaml, &d) : 0;

    recipe = json_pack("{s:o}", "datasets", card.datasets);
    if (!recipe)
        return -ENOMEM;
    if (r == -EBADMSG)
        text_add(&card.notes, "%s; its configs are ignored", d.text);
    else if (head_len >= RECIPE_BYTES)
        text_add(&card.notes, CARD ": expected YAML of less than 1 MiB; its configs are ignored");
    else if (r == 0)
        card_read(&card, yaml);
    if (r == 0 && !card.finds && json_object_size(card.datasets))
        text_add(&card.notes, "%s" CARD " names no file that exists; its configs are ignored",
                 card.notes.len ? "\n" : "");
    if (r == 0 && card.finds && !card_says_nothing(&card))
        card.failed = !(*ret = json_dumps(recipe, JSON_INDENT(2))) || card.failed;
    if (card.notes.len && text_finish(&card.notes, &s->claims->note, NULL) < 0)
        card.failed = true;
    return card.failed || r == -ENOMEM ? -ENOMEM : 0;
}
