/* A set says which files its samples have; a pattern says it of all of them. Folders below the top
 * become {label}, a star, or words, and names become a star and their extension: so the patterns
 * are few, however many samples there are. What such patterns have besides is excepted. */
#include "format/files/claim/shape.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/boxes.h"
#include "format/files/claim/pattern.h"
#include "format/files/claim/recipe.h"

#define SHAPE_FOLDERS 10  /* below the top that have words, at most */
#define SHAPE_TEXTS   256 /* of a list, at most */

struct shape {
    struct search *s;
    const struct set *set;
    const char *word; /* what the folders of the top are: a word of patterns; NULL: none */
    bool has_words;   /* other folders have words, for files elsewhere are in folders like them */
    unsigned top;     /* folders on the way to the top */
    unsigned least, most;            /* folders between the top and pictures */
    const char *same[SHAPE_FOLDERS]; /* names of those that all pictures have; NULL */
    json_t *pictures, *except;       /* lists of patterns, */
    json_t *with;                    /* and of each field */
    const char *note;                /* what no pattern says, for people; NULL: nothing */
};

bool shape_add_distinct(struct search *s, json_t *list, struct text *t)
{
    AUTO_JSON json_t *text = search_json_text(s, t->data ? t->data : "");
    const size_t n = json_array_size(list);

    for (size_t i = n; i > 0; i--)
        if (json_equal(json_array_get(list, i - 1), text))
            return true;
    s->failed = s->failed || t->failed || (n < SHAPE_TEXTS && json_array_append(list, text) < 0);
    return n < SHAPE_TEXTS;
}

json_t *shape_one_or_list(json_t *list)
{
    return json_incref(json_array_size(list) == 1 ? json_array_get(list, 0) : list);
}

static void shape_add_text(struct shape *shape, json_t *list, struct text *t)
{
    if (!shape_add_distinct(shape->s, list, t))
        shape->note = "it has more patterns than are shown";
}

void shape_add_plain(struct text *t, const char *text)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = text_character(text, strlen(text));
        if (n && !strchr("*{}", *text) && !text_command(text, strlen(text)))
            text_add_bytes(t, text, n);
        else if (!t->len || t->data[t->len - 1] != '*')
            text_add(t, "*");
    }
}

/* ---- folders ---- */

/* How many folders are on the way to one, which is counted, without SOURCE. */
static unsigned shape_depth(const struct search *s, uint32_t folder)
{
    unsigned n = 0;

    for (; s->info[folder].above != NO_FOLDER; folder = s->info[folder].above)
        n++;
    return n;
}

/* Add the folders on the way to pictures from number `from` to before `to`, each with '/'. */
static void shape_add_folders(const struct shape *shape, uint32_t folder, unsigned from,
                              unsigned to, struct text *t)
{
    const unsigned part = shape_depth(shape->s, folder) - 1, below = part - shape->top;

    if (part + 1 <= from)
        return;
    shape_add_folders(shape, shape->s->info[folder].above, from, to, t);
    if (part >= to)
        return;
    if (part < shape->top || (below && below < SHAPE_FOLDERS && shape->same[below]))
        shape_add_plain(t, folder_name(shape->s, folder));
    else if (shape->word && !below)
        text_add(t, "{%s}", shape->word);
    else if (shape->has_words)
        text_add(t, "{_%u}", below + 1);
    else
        text_add(t, "*");
    text_add(t, "/");
}

/* ---- which pictures ---- */

static void shape_see_folder(struct shape *shape, uint32_t folder, bool is_first)
{
    const struct search *s = shape->s;
    unsigned n = shape_depth(s, folder) - shape->top;

    shape->least = is_first || n < shape->least ? n : shape->least;
    shape->most = is_first || n > shape->most ? n : shape->most;
    for (unsigned i = n; i < SHAPE_FOLDERS; i++)
        shape->same[i] = NULL;
    for (unsigned i = n; i > 0; i--, folder = s->info[folder].above) {
        const char *name = folder_name(s, folder), **same = &shape->same[i - 1];

        if (i <= SHAPE_FOLDERS && (is_first || (*same && strcmp(name, *same) != 0)))
            *same = is_first ? name : NULL;
    }
}

/* Folders that are the same everywhere are named, except the first one, where keys begin. */
static void shape_see_folders(struct shape *shape)
{
    uint32_t before = NO_FOLDER;

    shape->top = shape_depth(shape->s, shape->set->top);
    for (size_t i = 0; i < shape->set->claim->n_samples; i++) {
        uint32_t folder = shape->s->m->member[set_picture(shape->set, i)].folder;

        if (folder != before)
            shape_see_folder(shape, folder, before == NO_FOLDER);
        before = folder;
    }
    shape->same[0] = NULL;
}

static void shape_add_picture(struct shape *shape, size_t file)
{
    const uint32_t folder = shape->s->m->member[file].folder;
    const char *name = members_name(shape->s->m, file);
    const bool any_depth = !shape->has_words && shape->least != shape->most;
    AUTO_TEXT struct text t = {0};

    shape_add_folders(shape, folder, 0, any_depth ? shape->top + (shape->word != NULL) : UINT_MAX,
                      &t);
    text_add(&t, any_depth ? "**/*" : "*");
    shape_add_plain(&t, name + name_stem_alone(name));
    if (shape->most > SHAPE_FOLDERS && shape->has_words)
        shape->note = "its folders are too deep for patterns";
    shape_add_text(shape, shape->pictures, &t);
}

/* ---- what belongs to them ---- */

static void shape_add_field(struct shape *shape, const char *name, struct text *pattern)
{
    AUTO_JSON json_t *field = search_json_text(shape->s, name);
    const char *key = json_string_value(field);

    if (!json_object_get(shape->with, key))
        search_json_set(shape->s, shape->with, key, json_array());
    shape_add_text(shape, json_object_get(shape->with, key), pattern);
}

/* A file next to a picture, with its stem. */
static void shape_add_companion(struct shape *shape, size_t picture, size_t file)
{
    const char *main_name = members_name(shape->s->m, picture);
    const char *name = members_name(shape->s->m, file);
    size_t stem = name_stem_alone(main_name);
    AUTO_TEXT struct text t = {0};
    char ext[EXT_MOST + 1];

    if (strncmp(name, main_name, stem) != 0 || name[stem] != '.') {
        shape->note = "files next to a picture whose name has two dots are not in it";
        return;
    }
    text_add(&t, "{path}");
    shape_add_plain(&t, name + stem);
    if (name_ext(name, stem, ext)) /* otherwise it is not shown */
        shape_add_field(shape, ext, &t);
}

/* The pair that a file belongs to a picture by, and the folder that is its input. */
static const struct pair *shape_pair(const struct shape *shape, size_t picture, size_t file,
                                     uint32_t *ret_input)
{
    const struct search *s = shape->s;
    uint32_t folder = s->m->member[file].folder;

    for (*ret_input = s->m->member[picture].folder; *ret_input != NO_FOLDER;
         *ret_input = s->info[*ret_input].above)
        for (const struct pair *pair = s->info[*ret_input].pairs; pair; pair = pair->next)
            if (folder >= pair->target && folder < next_folder(s, pair->target))
                return pair;
    return NULL;
}

static const char *shape_field_name(const struct shape *shape, unsigned role)
{
    const char *name = shape->set->claim->role_name[role - 1], *dot = strrchr(name, '.');

    return shape->set->is_text[role - 1] && !pairs_have_long_names(shape->set) && dot ? dot + 1
                                                                                      : name;
}

static void shape_add_partner(struct shape *shape, size_t picture, size_t file, unsigned role)
{
    const struct search *s = shape->s;
    const char *name = members_name(s->m, file);
    size_t stem = name_stem_alone(members_name(s->m, picture));
    const uint32_t folder = s->m->member[picture].folder;
    AUTO_TEXT struct text t = {0};
    uint32_t input, above;
    const struct pair *pair = shape_pair(shape, picture, file, &input);

    if (!pair || shape->set->claim->keys.n) {
        shape->note = "files that belong to pictures are not in it";
        return;
    }
    above = input;
    while (pair->target < above || pair->target >= next_folder(s, above))
        above = s->info[above].above;
    shape_add_folders(shape, folder, 0, shape_depth(s, above), &t);
    shape_add_plain(&t, claim_path(s, pair->target) + strlen(claim_path(s, above)) +
                            (*claim_path(s, above) != '\0'));
    text_add(&t, "/");
    shape_add_folders(shape, folder, shape_depth(s, input), UINT_MAX, &t);
    text_add(&t, "{stem}");
    if (strlen(name) >= stem)
        shape_add_plain(&t, name + stem);
    shape_add_field(shape, shape_field_name(shape, role), &t);
}

static void shape_add_sample(struct shape *shape, size_t sample)
{
    const struct files_claim *claim = shape->set->claim;
    size_t picture = set_picture(shape->set, sample);

    shape_add_picture(shape, picture);
    for (size_t i = claim->first[sample]; i < claim->first[sample + 1]; i++) {
        size_t file = shape->set->file[i];
        unsigned role = claim->role ? claim->role[i] : 0;

        if (file != picture && role)
            shape_add_partner(shape, picture, file, role);
        else if (file != picture)
            shape_add_companion(shape, picture, file);
    }
}

/* ---- what the patterns have besides ---- */

static bool shape_matches(const struct shape *shape, const char *path)
{
    const char *pattern;

    for (size_t i = 0; (pattern = recipe_pattern(shape->pictures, i)); i++)
        if (pattern_match(pattern, path, &(struct pattern_words){.n = 0}) > 0)
            return true;
    return false;
}

/* Except the largest folder that has nothing of the set, or the file. */
static void shape_except(struct shape *shape, size_t file, const char *path, const uint8_t *has)
{
    uint32_t folder = shape->s->m->member[file].folder, above;
    AUTO_TEXT struct text t = {0};

    if (has[folder]) {
        shape_add_plain(&t, path);
    } else {
        while ((above = shape->s->info[folder].above) != NO_FOLDER && !has[above])
            folder = above;
        shape_add_plain(&t, claim_path(shape->s, folder));
        text_add(&t, "/**");
    }
    shape_add_text(shape, shape->except, &t);
}

static void shape_find_others(struct shape *shape)
{
    const struct search *s = shape->s;
    const struct set *set = shape->set;
    AUTO_FREE uint8_t *is_in = calloc(s->m->n + 1, 1);       /* files of the set, */
    AUTO_FREE uint8_t *has = calloc(s->m->n_folders + 1, 1); /* and folders that they are in */

    shape->s->failed = s->failed || !is_in || !has;
    for (size_t i = 0; i < set->n && !s->failed; i++) {
        is_in[set->file[i]] = 1;
        for (uint32_t f = s->m->member[set->file[i]].folder; f != NO_FOLDER && !has[f];
             f = s->info[f].above)
            has[f] = 1;
    }
    for (size_t i = s->info[set->top].first; i < folder_end(s, set->top) && !s->failed; i++) {
        char path[PATH_MAX];

        if (!is_in[i] && name_is_of(set->claim->media, members_name(s->m, i)) &&
            !is_skipped(members_name(s->m, i)) && members_path(s->m, i, path, sizeof(path)) == 0 &&
            !strstr(path, "/.") && shape_matches(shape, path))
            shape_except(shape, i, path, has);
    }
}

/* ---- all of it ---- */

/* Files with boxes are no other field if its name is that of these. */
static void shape_set_boxes(const struct shape *shape, const struct files_view *view, json_t *ret)
{
    const struct files_claim *claim = shape->set->claim;
    const char *name =
        claim->boxes_role ? shape_field_name(shape, claim->boxes_role) : claim->boxes_ext;
    json_t *patterns = json_object_get(shape->with, name);

    if (!view_reads_boxes(claim, view) || !patterns)
        return;
    search_json_set(shape->s, ret, "boxes",
                    json_pack("{s:o}", claim->boxes->name, shape_one_or_list(patterns)));
    if (!strcmp(name, claim->boxes->extension))
        json_object_del(shape->with, name);
}

void shape_make(struct search *s, const struct set *set, const struct files_view *view,
                const char *word, json_t *ret)
{
    AUTO_JSON json_t *pictures = json_array(), *except = json_array(), *with = json_object();
    struct shape shape = {.s = s, .set = set, .pictures = pictures, .except = except, .with = with};
    json_t *patterns;
    const char *name;

    s->failed = s->failed || !pictures || !except || !with;
    for (uint32_t i = 0; i < set->n && set->claim->role; i++)
        shape.has_words = shape.has_words || set->claim->role[i];
    shape_see_folders(&shape);
    shape.word = shape.least ? word : NULL;
    for (size_t i = 0; i < set->claim->n_samples && !s->failed; i++)
        shape_add_sample(&shape, i);
    shape_find_others(&shape);
    if (set->refused || shape.note || set->has_texts)
        search_json_set(s, ret, "note",
                        search_json_text(s, set->refused ? set->refused
                                            : shape.note ? shape.note
                                                         : "texts next to sounds are not in it"));
    search_json_set(s, ret, "pictures", shape_one_or_list(pictures));
    if (json_array_size(except))
        search_json_set(s, ret, "except", shape_one_or_list(except));
    search_json_set(s, ret, "with", json_incref(with));
    shape_set_boxes(&shape, view, ret);
    json_object_foreach(with, name, patterns)
    {
        search_json_set(s, with, name, shape_one_or_list(patterns));
    }
    if (!json_object_size(with))
        json_object_del(ret, "with");
}
