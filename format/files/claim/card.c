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
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json.h"
#include "base/yaml.h"
#include "format/files/claim/recipe_parts.h"

#define CARD          "README.md"
#define CARD_PATTERNS 4096       /* and configs, at most */
#define CARD_TESTS    (1u << 28) /* of a path with a file, at most */
#define CARD_NOTES    4096       /* bytes, or a few more */

/* Which datasets name a file. */
enum { NAMED_NOW = 1, NAMED_BEFORE = 2, NAMED_BY_FOLDER = 4 };

struct card {
    const struct search *s;
    json_t *datasets;
    uint8_t *named; /* [files] NAMED_... */
    size_t n_patterns, n_tests;
    struct text notes;
    bool failed;        /* memory ran out */
    bool is_refused;    /* all of it is ignored, and the notes say why */
    bool finds;         /* a file or a folder that it names exists */
    const char *config; /* that is read; NULL: there is one alone, or none */
    bool is_default;
    const char *shown; /* its name, for people */
};

static void card_note(struct card *card, const char *what, const char *why)
{
    if (!card->is_refused && card->notes.len < CARD_NOTES)
        text_add(&card->notes, "%s" CARD ": config '%.100s': '%.100s' is ignored: %s",
                 card->notes.len ? "\n" : "", card->shown, what, why);
}

/* All of the card is ignored. what: of it; or NULL. */
static void card_refuse(struct card *card, const char *what, const char *why)
{
    if (card->is_refused)
        return;
    card->is_refused = true;
    text_release(&card->notes);
    card->notes = (struct text){0};
    text_add(&card->notes, CARD ": %s%.100s%s%s; its configs are ignored", what ? "'" : "",
             what ? what : "", what ? "': " : "", why);
}

/* Count a pattern or a config. false: there are too many. */
static bool card_counts(struct card *card)
{
    if (++card->n_patterns > CARD_PATTERNS)
        card_refuse(card, NULL, "expected at most 4096 configs and paths, got more");
    return !card->is_refused;
}

/* Count paths that are compared with files, one by one. */
static void card_count_tests(struct card *card, size_t n)
{
    card->n_tests += n;
    if (card->n_tests > CARD_TESTS)
        card_refuse(card, NULL,
                    "expected fewer files that are named one by one, or paths below fewer files");
}

/* Is it one name of a folder? */
static bool card_is_name(const char *name)
{
    return *name && strlen(name) <= NAME_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !strpbrk(name, "/{}*");
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

static void card_append(struct card *card, json_t *list, const char *text)
{
    card->failed = card->failed || json_array_append_new(list, json_string(text)) < 0;
}

/* Add a path to n of them. */
static void card_add_file(struct card *card, char ***ret, size_t *n, const char *path)
{
    if (strpbrk(path, "{}*"))
        card_note(card, path, "it has {, } or *");
    else if (array_capacity(ret, *n, sizeof(**ret)) < 0 || !((*ret)[*n] = strdup(path)))
        card->failed = true;
    else
        ++*n;
}

/* Add files to a list, one by one. Takes over their paths. */
static void card_append_files(struct card *card, char **path, size_t n, json_t *ret)
{
    card_count_tests(card, n * card->s->m->n);
    if (n)
        qsort(path, n, sizeof(*path), texts_compare);
    for (size_t i = 0; i < n; i++) {
        card_append(card, ret, path[i]);
        free(path[i]);
    }
}

/* The files that a pattern names are of the dataset that is made. [ and ? are no patterns of
 * recipes: their files are added to the list one by one. */
static void card_name_files(struct card *card, const char *pattern, json_t *ret)
{
    const struct search *s = card->s;
    AUTO_FREE char **file = NULL;
    bool has_sets = strpbrk(pattern, "?["), any = false;
    size_t n = 0, i, end;

    recipe_pattern_range(s, 0, pattern, "*?[", &i, &end);
    card_count_tests(card, end - i);
    for (; i < end && !card->is_refused; i++) {
        char path[PATH_MAX];
        int r;

        if (members_path(s->m, i, path, sizeof(path)) < 0 || path_is_hidden(path))
            continue;
        r = pattern_match_sets(pattern, path);
        if (r < 0)
            card_refuse(card, pattern, "it can be read in too many ways");
        if (r > 0 && has_sets && !(card->named[i] & NAMED_NOW))
            card_add_file(card, &file, &n, path);
        card->named[i] |= r > 0 ? NAMED_NOW : 0;
        any = any || r > 0;
    }
    card->finds = card->finds || any;
    card_append_files(card, file, n, ret);
    if (!has_sets || !any) /* a recipe says that there is no file */
        card_append(card, ret, pattern);
}

static void card_add_pattern(struct card *card, const char *folder, const char *text, json_t *ret)
{
    AUTO_TEXT struct text t = {0};
    const char *fault;

    text += strncmp(text, "./", 2) ? 0 : 2;
    text_add(&t, "%s%s%s", *text == '/' ? "" : folder, *folder && *text != '/' ? "/" : "", text);
    card->failed = card->failed || t.failed;
    if (card->failed || !card_counts(card))
        return;
    fault = strpbrk(t.data, "{}") ? "it has { or }" : pattern_fault(t.data);
    if (fault)
        card_note(card, text, fault);
    else
        card_name_files(card, t.data, ret);
}

/* ---- splits ---- */

/* The files of a dataset: those below a folder, or with len 0 those that are named. No other one
 * has files of such a folder. */
static void card_take(struct card *card, const char *path, size_t len)
{
    const struct search *s = card->s;
    const uint32_t folder = len ? folder_of_path(s, path, len) : 0;
    const uint8_t others = len ? NAMED_BEFORE | NAMED_BY_FOLDER : NAMED_BY_FOLDER;

    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++) {
        if (!len && !(card->named[i] & NAMED_NOW))
            continue;
        if (card->named[i] & others)
            card_refuse(card, len ? path : members_folder_of(s->m, i),
                        "expected a folder of one dataset, got one of several");
        card->named[i] |= len ? NAMED_BY_FOLDER : NAMED_BEFORE;
    }
}

static bool card_is_medium(const char *name)
{
    return name_is_picture(name) || name_is_of(FILES_SOUNDS, name);
}

/* Are the files that are named pictures or sounds, and not what may lie next to these? */
static bool card_has_media(const struct card *card)
{
    const struct members *m = card->s->m;
    size_t media = 0, others = 0;

    for (size_t i = 0; i < m->n; i++) {
        const char *name = members_name(m, i);

        if (!(card->named[i] & NAMED_NOW))
            continue;
        if (card_is_medium(name))
            media++;
        else if (!name_is_table(name) && !name_is(NAME_NOTICE, name) &&
                 !name_is(NAME_NEUTRAL, name))
            others++;
    }
    return media && media >= others;
}

/* The folder that a pattern has all pictures and sounds of: its length. 0: it has only some. */
static size_t card_folder_len(const struct card *card, const char *pattern)
{
    const struct search *s = card->s;
    size_t n = strcspn(pattern, "*");
    const char *end = pattern + n;
    uint32_t folder;

    if (!n || pattern[n - 1] != '/')
        return 0;
    while (*end == '*' && end[strspn(end, "*")] == '/')
        end += strspn(end, "*") + 1;
    end += strspn(end, "*");
    if (*end && (*end != '.' || strpbrk(end, "/*")))
        return 0;
    folder = folder_of_path(s, pattern, n - 1);
    if (folder == NO_FOLDER)
        return 0;
    for (size_t i = s->info[folder].first; i < folder_end(s, folder); i++) {
        char path[PATH_MAX];

        if (!(card->named[i] & NAMED_NOW) && card_is_medium(members_name(s->m, i)) &&
            members_path(s->m, i, path, sizeof(path)) == 0 && !path_is_hidden(path))
            return 0;
    }
    return n - 1;
}

/* Samples of pictures or sounds, but not what else is named. */
static json_t *card_samples(struct card *card, json_t *patterns)
{
    const struct members *m = card->s->m;
    json_t *others = json_array(), *ret;
    AUTO_FREE char **file = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        char path[PATH_MAX];

        if ((card->named[i] & NAMED_NOW) && !card_is_medium(members_name(m, i)) &&
            members_path(m, i, path, sizeof(path)) == 0)
            card_add_file(card, &file, &n, path);
    }
    card_append_files(card, file, n, others);
    ret = json_pack("{s:O}", "pictures", patterns);
    if (n && ret && json_object_set(ret, "except", others) < 0)
        card->failed = true;
    json_decref(others);
    return ret;
}

static void card_add_split(struct card *card, const char *split, const char *folder,
                           const json_t *value)
{
    AUTO_JSON json_t *patterns = json_array();
    const char *pattern;
    size_t len = 0;
    bool has_media;

    card->failed = card->failed || !patterns;
    if (card_split_len(split) < strlen(split) || !*split || strlen(split) > NAME_MAX) {
        card_note(card, split, "expected a split of letters, digits, _ and .");
        return;
    }
    for (size_t i = 0; i < card->s->m->n; i++)
        card->named[i] &= (uint8_t)~NAMED_NOW;
    if (!recipe_pattern(value, 0))
        card_note(card, "path", "expected a path, or a list of paths");
    for (size_t i = 0; !card->is_refused && (pattern = recipe_pattern(value, i)); i++)
        card_add_pattern(card, folder, pattern, patterns);
    pattern = recipe_pattern(patterns, 0);
    if (!pattern || card->is_refused)
        return;
    has_media = card_has_media(card);
    if (has_media && !recipe_pattern(patterns, 1))
        len = card_folder_len(card, pattern);
    card_take(card, pattern, len);
    card_add(card, split,
             len         ? json_pack("{s:s%}", "folder", pattern, len)
             : has_media ? card_samples(card, patterns)
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
        AUTO_JSON json_t *value = NULL;
        AUTO_TEXT struct text pattern = {0};

        if (strcmp(members_folder_of(m, i), path.data) != 0 ||
            pattern_match_sets(number, name + n) <= 0 ||
            (any && split.len == n && !strncmp(split.data, name, n)))
            continue;
        any = true;
        split.len = 0;
        text_add(&split, "%.*s", (int)n, name);
        text_add(&pattern, "%s-*-of-*", split.data ? split.data : "");
        value = pattern.failed ? NULL : json_string(pattern.data);
        card_add_split(card, split.data ? split.data : "", path.data, value);
    }
    card->failed = card->failed || path.failed || split.failed;
    return any;
}

/* ---- configs ---- */

static void card_add_data_files(struct card *card, const char *folder, json_t *files)
{
    AUTO_JSON json_t *all = json_array();

    if (json_is_string(files))
        card->failed = card->failed || json_array_append(all, files) < 0;
    else if (!json_is_array(files))
        card_note(card, "data_files", "expected a path, or a list");
    for (size_t i = 0; i < json_array_size(files) && !card->is_refused; i++) {
        json_t *item = json_array_get(files, i);
        const char *split = json_string_value(json_object_get(item, "split"));

        if (json_is_string(item))
            card->failed = card->failed || json_array_append(all, item) < 0;
        else if (!split)
            card_note(card, "data_files", "expected a path, or split and path");
        else
            card_add_split(card, split, folder, json_object_get(item, "path"));
    }
    if (json_array_size(all))
        card_add_split(card, "train", folder, all);
    card->failed = card->failed || !all;
}

/* What data_dir says: a folder, or nothing, as YAML writes it. */
static char *card_folder(const char *text)
{
    static const char *const none[] = {"~", "null", "Null", "NULL", "."};
    size_t len;

    while (text && !strncmp(text, "./", 2))
        text += 2;
    len = text ? strlen(text) : 0;
    while (len && text[len - 1] == '/')
        len--;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (len == strlen(none[i]) && !memcmp(text, none[i], len))
            len = 0;
    return strndup(len ? text : "", len);
}

static void card_add_config(struct card *card, const json_t *config)
{
    json_t *files = json_object_get(config, "data_files"),
           *dir = json_object_get(config, "data_dir");
    AUTO_FREE char *folder = card_folder(json_string_value(dir));

    card->failed = card->failed || !folder;
    if (card->failed || !card_counts(card))
        return;
    if (dir && !json_is_string(dir) && !json_is_null(dir)) {
        card_note(card, "data_dir", "expected a folder");
    } else if (*folder && (strpbrk(folder, "{}*") || pattern_fault(folder) ||
                           folder_of_path(card->s, folder, strlen(folder)) == NO_FOLDER)) {
        card_note(card, folder, "there is no folder of that name");
    } else if (files) {
        card_add_data_files(card, folder, files);
    } else if (!card_add_shards(card, folder)) {
        if (!*folder && card->config)
            card_note(card, "config", "it names no files");
        card->finds = card->finds || *folder;
        if (!*folder)
            return;
        card_take(card, folder, strlen(folder));
        card_add(card, "", json_pack("{s:s}", "folder", folder));
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
    for (size_t i = 0; i < json_array_size(configs) && !card->failed && !card->is_refused; i++) {
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

/* The bytes of the YAML at the head, which is between two lines of three dashes; empty lines may
 * come first. 0: there is none; len: the second one is missing. */
static size_t card_head_len(const char *text, size_t len)
{
    bool has_begun = false;

    for (size_t at = 0, n; at < len; at += n + 1) {
        const char *line = text + at, *end = memchr(line, '\n', len - at);
        size_t used;
        bool is_rule;

        n = end ? (size_t)(end - line) : len - at;
        used = n && line[n - 1] == '\r' ? n - 1 : n;
        is_rule = used == 3 && !memcmp(line, "---", 3);
        if (has_begun ? is_rule : used && !is_rule)
            return has_begun ? at : 0;
        has_begun |= is_rule;
    }
    return len;
}

int card_recipe(struct search *s, const char *text, size_t len, char **ret)
{
    AUTO_JSON json_t *yaml = NULL, *recipe = NULL;
    AUTO_FREE uint8_t *named = calloc(s->m->n + 1, 1);
    struct card card = {.s = s, .datasets = json_object(), .named = named, .shown = ""};
    struct diag d = DIAG_INIT;
    size_t head_len = card_head_len(text, len);
    int r = head_len < len ? yaml_read(text, head_len, CARD, &yaml, &d) : 0;

    recipe = json_pack("{s:o}", "datasets", card.datasets);
    if (!recipe || !named)
        return -ENOMEM;
    if (r == -EBADMSG)
        text_add(&card.notes, "%s; its configs are ignored", d.text);
    else if (head_len >= RECIPE_BYTES)
        card_refuse(&card, NULL, "expected YAML of less than 1 MiB");
    else if (r == 0)
        card_read(&card, yaml);
    if (r == 0 && !card.finds && json_object_size(card.datasets))
        card_refuse(&card, NULL, "it names no file that exists");
    if (r == 0 && card.finds && !card.is_refused && !card_says_nothing(&card))
        card.failed = !(*ret = json_dumps(recipe, JSON_INDENT(2))) || card.failed;
    if (card.notes.failed ||
        (card.notes.len && text_finish(&card.notes, &s->claims->note, NULL) < 0))
        card.failed = true;
    text_release(&card.notes);
    return card.failed || r == -ENOMEM ? -ENOMEM : 0;
}
