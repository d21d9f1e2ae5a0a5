/* The sets of a recipe: which files are samples of which dataset, and what belongs to them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/annotations/boxes.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/recipe_parts.h"

/* The words of a picture: those of its pattern, stem and path. */
static int recipe_words(const struct recipe_making *t, const struct recipe_hit *hit,
                        char path[static PATH_MAX], struct pattern_words *ret)
{
    const char *base;
    int r;

    *ret = (struct pattern_words){.n = 0};
    if (!recipe_path(t->s, t->recipe, hit->file, path))
        return -ENAMETOOLONG;
    r = pattern_match(hit->pattern, path, ret);
    if (r <= 0)
        return r < 0 ? r : -EINVAL;
    base = path_base(path);
    return pattern_set(ret, "stem", 4, base, name_stem_alone(base)) &&
                   pattern_set(ret, "path", 4, path, (size_t)(base - path) + name_stem_alone(base))
               ? 0
               : -E2BIG;
}

/* ---- what belongs to them ---- */

/* The file of a field of a picture: SIZE_MAX: there is none. Only patterns count that have the most
 * words of those whose words are known. 0, -EBADMSG or -ENOMEM. */
static int recipe_find_with(const struct recipe_making *t, const json_t *with,
                            const struct pattern_words *words, size_t *ret)
{
    const char *pattern, *second = NULL;
    int most = -1;

    *ret = SIZE_MAX;
    for (size_t i = 0; (pattern = recipe_pattern(with, i)); i++) {
        AUTO_TEXT struct text path = {0};
        int n = pattern_fill(pattern, words, &path);
        size_t found;

        if (strchr(pattern, '*'))
            return recipe_refuse_pattern(t, pattern, "a file of a picture is named without *");
        if (n < 0 || n < most)
            continue;
        if (path.failed)
            return -ENOMEM;
        if (n > most) {
            *ret = SIZE_MAX;
            second = NULL;
        }
        most = n;
        found = lookup_path(t->s->m, claim_path(t->s, t->recipe->folder), path.data);
        if (found == t->s->m->n)
            continue;
        second = *ret != SIZE_MAX && *ret != found ? pattern : second;
        *ret = found;
    }
    if (most < 0 && !recipe_pattern(with, 1))
        return recipe_refuse_pattern(t, recipe_pattern(with, 0),
                                     "it has a word that pictures do not have");
    return second ? recipe_refuse_pattern(t, second, "a picture has two files of that field") : 0;
}

/* Add a field; NULL: the dataset has none of that name. */
static void recipe_add_field(struct recipe_making *t, const char *name, const json_t *patterns,
                             const struct box_format *boxes)
{
    if (patterns && search_capacity(t->s, &t->field, t->n_fields, sizeof(*t->field)))
        t->field[t->n_fields++] = (struct recipe_field){name, patterns, boxes};
}

/* Find the files of all fields of all pictures: what belongs to a picture is no picture. */
static int recipe_find_partners(struct recipe_making *t)
{
    json_t *boxes = json_object_get(t->dataset, "boxes"), *patterns;
    const char *name;

    json_object_foreach(json_object_get(t->dataset, "with"), name, patterns)
    {
        recipe_add_field(t, name, patterns, NULL);
    }
    for (const struct box_format *const *f = box_formats; *f; f++)
        recipe_add_field(t, (*f)->extension, json_object_get(boxes, (*f)->name), *f);
    t->partner = calloc(t->n * t->n_fields + 1, sizeof(*t->partner));
    for (size_t k = 0; k < t->n_fields && t->partner && !t->s->failed; k++) {
        bool any = false;

        for (size_t i = 0; i < t->n; i++) {
            struct pattern_words words;
            char path[PATH_MAX];
            size_t file = SIZE_MAX;
            int r = recipe_words(t, &t->hit[i], path, &words);

            if (r == 0)
                r = recipe_find_with(t, t->field[k].patterns, &words, &file);
            if (r < 0)
                return r;
            t->hit[i].partners = i * t->n_fields;
            if (file == SIZE_MAX || file == t->hit[i].file)
                continue;
            any = true;
            t->partner[t->hit[i].partners + k] = (uint32_t)file + 1;
            t->s->flags[file] |= FILE_WITH_ANOTHER;
        }
        if (!any)
            return recipe_refuse_pattern(t, recipe_pattern(t->field[k].patterns, 0),
                                         "no file matches");
    }
    return t->partner && !t->s->failed ? 0 : -ENOMEM;
}

/* Add what belongs to the picture of a sample. Its file of boxes may be that of another field. */
static void recipe_add_partners(const struct recipe_making *t, struct set *set,
                                const struct recipe_hit *hit)
{
    struct files_claim *claim = set->claim;
    const uint32_t first = claim->first[claim->n_samples - 1];

    for (size_t k = 0; k < t->n_fields; k++) {
        const struct recipe_field *field = &t->field[k];
        const uint32_t file = t->partner[hit->partners + k] - 1;
        size_t i = field->boxes ? first : set->n;

        if (file == UINT32_MAX)
            continue;
        while (i < set->n && set->file[i] != file)
            i++;
        if (i == set->n)
            set_add_file(set, file, field->name);
        if (field->boxes && i < set->n) {
            claim->boxes = field->boxes;
            claim->boxes_role = claim->role ? claim->role[i] : 0;
        }
    }
}

/* ---- sets ---- */

/* By group, then by folder and stem, as a folder of pictures has them. */
static int recipe_compare(const void *a, const void *b, void *making)
{
    const struct recipe_hit *x = a, *y = b;
    const struct recipe_making *t = making;
    const struct members *m = t->s->m;
    int order;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->label != y->label && x->label != UINT32_MAX && y->label != UINT32_MAX)
        return strcmp(numbered_text(&t->labels, x->label, NULL),
                      numbered_text(&t->labels, y->label, NULL));
    order = strcmp(members_folder_of(m, x->file), members_folder_of(m, y->file));
    if (!order && x->label != UINT32_MAX) /* a class is in the order of names, not of stems */
        order = strcmp(members_name(m, x->file), members_name(m, y->file));
    if (!order) {
        const char *first = members_name(m, x->file), *second = members_name(m, y->file);

        order = text_compare(first, name_stem_alone(first), second, name_stem_alone(second));
    }
    return order ? order : (x->file > y->file) - (x->file < y->file);
}

/* Labels of a recipe are numbered together, by the name of the column. */
static int recipe_add_label(const struct recipe_making *t, struct set *set, uint32_t label)
{
    struct value_column *c = set->label.column;
    AUTO_FREE char *name = NULL;
    size_t len;
    const char *text = numbered_text(&t->labels, label, &len);

    if (text_print(&name, "{label} of %s/", claim_path(t->s, t->recipe->folder)) < 0)
        return -ENOMEM;
    if (!c)
        value_columns_add(&set->label, name, VALUE_TEXT, DTYPE_U1, true, 0, &c);
    return value_column_set(c, set->claim->n_samples - 1, text, len);
}

static int recipe_add_sample(struct recipe_making *t, struct set *set, const struct recipe_hit *hit)
{
    struct files_view *view = set->claim->view;
    struct pattern_words words;
    char path[PATH_MAX];
    bool bare = !strchr(members_name(t->s->m, hit->file), '.');
    int r = recipe_words(t, hit, path, &words);

    for (size_t k = 0; k < t->n_fields; k++)
        bare = bare && strcmp(t->field[k].name, "txt") != 0;
    set_begin_sample(set);
    set_add_file(set, hit->file, bare ? "txt" : NULL);
    if (t->s->failed)
        return -ENOMEM;
    recipe_add_partners(t, set, hit);
    view->n = set->claim->n_samples;
    if (r == 0)
        r = recipe_add_words(t->name, &view->values, view->n - 1, &words);
    if (r == 0 && view->n > 1 && (hit->label != UINT32_MAX) != (set->label.n > 0))
        return recipe_refuse_pattern(t, hit->pattern,
                                     "expected {label} in all patterns of pictures, or in none");
    if (r == 0 && hit->label != UINT32_MAX)
        r = recipe_add_label(t, set, hit->label);
    return t->s->failed ? -ENOMEM : r;
}

/* The folders of a pattern before those that differ from sample to sample, each with '/': keys do
 * not have them. */
static void recipe_same_folders(const struct recipe_making *t, const char *pattern,
                                const struct pattern_words *words, struct text *ret)
{
    struct pattern_words known = {.n = 0};

    for (unsigned i = 0; i < words->n; i++)
        if (recipe_name_has_word(t->name, &words->word[i]))
            known.word[known.n++] = words->word[i];
    for (const char *end; (end = strchr(pattern, '/')); pattern = end + 1) {
        AUTO_FREE char *name = strndup(pattern, (size_t)(end + 1 - pattern));

        if (!name || pattern_fill(name, &known, ret) < 0)
            return;
    }
}

/* The folder that the keys of a set are below: that of all of its patterns. */
static int recipe_set_top(const struct recipe_making *t, const struct recipe_hit *hit,
                          struct files_claim *claim)
{
    const json_t *pictures = json_object_get(t->dataset, "pictures");
    const char *above = claim_path(t->s, t->recipe->folder), *pattern;
    AUTO_TEXT struct text top = {0}, full = {0};
    struct pattern_words words;
    char path[PATH_MAX];
    int r = recipe_words(t, hit, path, &words);

    for (size_t i = 0; r == 0 && (pattern = recipe_pattern(pictures, i)); i++) {
        struct text *folders = i ? &full : &top;
        size_t same = 0;

        folders->len = 0;
        recipe_same_folders(t, pattern, &words, folders);
        if (folders->failed)
            return -ENOMEM;
        while (i && same < full.len && same < top.len && full.data[same] == top.data[same])
            same++;
        while (same && top.data[same - 1] != '/')
            same--;
        top.len = i ? same : top.len;
    }
    if (r < 0)
        return r;
    full.len = 0;
    text_add(&full, "%s%s%.*s", above, *above && top.len ? "/" : "", (int)(top.len - (top.len > 0)),
             top.data ? top.data : "");
    free(claim->top);
    claim->top = NULL;
    return text_finish(&full, &claim->top, NULL);
}

/* Samples [from, to) of the hits are one set. */
static int recipe_make_set(struct recipe_making *t, size_t from, size_t to)
{
    struct set *set = set_begin(t->s, t->recipe->folder, LAYOUT_FLAT, t->recipe->folder,
                                "a recipe, epochfs.json");
    int r = set ? recipe_set_top(t, &t->hit[from], set->claim) : -ENOMEM;

    if (r < 0)
        return r;
    set->called = strdup(numbered_text(&t->groups, t->hit[from].group, NULL));
    set->recipe = t->recipe;
    set->dataset = t->dataset;
    set->pattern = t->name;
    for (size_t i = from; i < to && r == 0; i++)
        if (!(t->s->flags[t->hit[i].file] & FILE_WITH_ANOTHER))
            r = recipe_add_sample(t, set, &t->hit[i]);
    if (r == 0)
        r = value_columns_end(&set->claim->view->values, set->claim->view->n);
    if (r == 0) /* words that are numbers */
        r = value_columns_find_integers(&set->claim->view->values, name_is_number);
    set_end(set);
    return set->called ? r : -ENOMEM;
}

/* Are hits samples? Not those that belong to other pictures. */
static bool recipe_has_samples(const struct recipe_making *t, size_t from, size_t to)
{
    while (from < to && t->s->flags[t->hit[from].file] & FILE_WITH_ANOTHER)
        from++;
    return from < to;
}

/* Make a dataset of the hits of each group. One without samples is none: {split}/1.png is also the
 * pattern of trainannot/1.png, which belongs to train/1.png. */
static int recipe_make_groups(struct recipe_making *t, bool files)
{
    int r = 0;

    if (t->n && !files && !recipe_has_samples(t, 0, t->n))
        return recipe_refuse_pattern(t, t->hit->pattern, "its files all belong to other pictures");
    if (t->n)
        qsort_r(t->hit, t->n, sizeof(*t->hit), files ? recipe_compare_files : recipe_compare, t);
    for (size_t from = 0, to; from < t->n && r == 0; from = to) {
        for (to = from + 1; to < t->n && t->hit[to].group == t->hit[from].group;)
            to++;
        if (files || recipe_has_samples(t, from, to))
            r = files ? recipe_make_files(t, from, to) : recipe_make_set(t, from, to);
    }
    return r;
}

static int recipe_make_dataset(struct search *s, const struct recipe *recipe, const char *name,
                               json_t *dataset, struct diag *d)
{
    struct diag missing = DIAG_INIT;
    struct recipe_making t = {.s = s,
                              .recipe = recipe,
                              .name = name,
                              .dataset = dataset,
                              .d = recipe->is_card ? &missing : d};
    const bool files = json_object_get(dataset, "files");
    size_t first = s->n_sets;
    int r = 0;

    if (json_object_get(dataset, "folder"))
        return 0;
    if (files && !s->claims->takes_groups)
        r = recipe_refuse_pattern(&t, name, "an archive has no datasets of \"files\"");
    if (r == 0)
        r = recipe_find_files(&t);
    if (r == 0 && !files)
        r = recipe_find_partners(&t);
    if (r == 0)
        r = recipe_make_groups(&t, files);
    if (r == -EBADMSG && recipe->is_card) {
        sets_drop(s, first);
        r = recipe_add_missing(&t, &missing);
    }
    for (size_t i = 0; t.partner && i < t.n * t.n_fields; i++)
        if (t.partner[i])
            s->flags[t.partner[i] - 1] &= (uint8_t)~FILE_WITH_ANOTHER;
    numbered_release(&t.labels);
    numbered_release(&t.groups);
    free(t.field);
    free(t.partner);
    free(t.hit);
    return r;
}

/* ---- a recipe ---- */

int recipe_make_sets(struct search *s, const struct recipe *recipe, struct diag *d)
{
    json_t *datasets = json_object_get(recipe->json, "datasets"), *dataset;
    const char *name;
    int r = 0;

    json_object_foreach(datasets, name, dataset)
    {
        if (r == 0)
            r = recipe_make_dataset(s, recipe, name, dataset, d);
    }
    return r;
}
