/* Labels from columns of tables. Values that are names of class folders of another split have its
 * numbers; other texts are numbered in the order of bytes, over all datasets with a column of that
 * name, except those of tables that say something else of the same pictures; integers are labels as
 * they are. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/files/claim/annotations.h"
#include "format/files/claim/recipe.h"
#include "format/files/claim/words.h"

/* images_variant_train and images_family_train are two kinds, train and test one. */
static void labels_set_subject(struct label_column *label, const char *table)
{
    AUTO_FREE char *stem = strndup(table, name_stem_alone(table));
    struct name_piece split;
    size_t n = 0;

    if (!stem)
        return;
    words_differing(stem, "", label->subject, sizeof(label->subject));
    for (const char *p = label->subject; *p; p++)
        if (!isdigit((unsigned char)*p))
            label->subject[n++] = *p;
    label->subject[n] = '\0';
    if (words_have_split(stem, strlen(stem), &split))
        snprintf(label->split, sizeof(label->split), "%.*s", (int)split.len, split.at);
}

void annotating_add_label(struct annotating *a, size_t set, size_t view, const char *table,
                          const struct value_column *column, const uint32_t *row)
{
    const struct value_columns one = {.column = (struct value_column *)(uintptr_t)column, .n = 1};
    struct label_column *label;

    if (!search_capacity(a->s, &a->label, a->n_labels, sizeof(*a->label)))
        return;
    label = &a->label[a->n_labels++];
    *label = (struct label_column){.set = set, .view = view};
    labels_set_subject(label, table);
    if (value_columns_pick(&one, row, a->s->set[set].claim->view[view].n, &label->values) < 0)
        a->s->failed = true;
}

/* ---- values as texts ---- */

#define LABEL_NUMBER 24
struct label_text {
    const char *bytes;
    size_t len;
    char number[LABEL_NUMBER];
};

/* The whole number of a row. */
static int64_t labels_integer(const struct value_column *c, uint64_t row)
{
    const uint8_t *items;
    int64_t number;

    value_items(c, row, &items);
    memcpy(&number, items, sizeof(number));
    return number;
}

static void labels_text(const struct value_column *c, uint64_t row, struct label_text *ret)
{
    const uint8_t *items;

    ret->len = value_items(c, row, &items);
    ret->bytes = (const char *)items;
    if (c->form == VALUE_TEXT)
        return;
    ret->bytes = ret->number;
    ret->len =
        (size_t)snprintf(ret->number, sizeof(ret->number), "%" PRId64, labels_integer(c, row));
}

/* ---- names of classes ---- */

/* Are all values names of class folders of a set? */
static const struct files_claim *labels_find_classes(const struct annotating *a,
                                                     const struct value_column *c)
{
    for (size_t i = 0; i < a->s->n_sets && c->rows; i++) {
        const struct files_claim *claim = a->s->set[i].claim;
        uint64_t row = 0;
        struct label_text text;

        for (; claim->n_classes && row < c->rows; row++) {
            labels_text(c, row, &text);
            if (class_name_find(claim->class_name, claim->n_classes, text.bytes, text.len) ==
                claim->n_classes)
                break;
        }
        if (claim->n_classes && row == c->rows)
            return claim;
    }
    return NULL;
}

/* Are two kinds of tables about different things: is there a table of each for one split of a set?
 */
static bool labels_are_apart(const struct annotating *a, const char *subject, const char *other)
{
    for (size_t i = 0; strcmp(subject, other) != 0 && i < a->n_labels; i++)
        for (size_t k = 0; !strcmp(a->label[i].subject, subject) && k < a->n_labels; k++)
            if (!strcmp(a->label[k].subject, other) && a->label[i].set == a->label[k].set &&
                !strcasecmp(a->label[i].split, a->label[k].split))
                return true;
    return false;
}

/* Has the view of a label none before it? */
static bool labels_is_first(const struct annotating *a, size_t label)
{
    size_t i = 0;

    while (a->label[i].set != a->label[label].set || a->label[i].view != a->label[label].view)
        i++;
    return i == label;
}

/* The distinct texts of all columns of that name and subject, in the order of bytes. */
static int labels_collect_names(const struct annotating *a, const struct label_column *label,
                                char ***ret, size_t *ret_n)
{
    const char *column = label->values.column->name;
    AUTO_NUMBERED struct numbered names = {0};
    int r = 0;

    for (size_t i = 0; i < a->n_labels && r == 0; i++) {
        const struct value_column *c = a->label[i].values.column;

        if (strcmp(c->name, column) != 0 ||
            labels_are_apart(a, label->subject, a->label[i].subject) ||
            (&a->label[i] != label && !labels_is_first(a, i)))
            continue;
        for (uint64_t row = 0; row < c->rows && r == 0; row++) {
            struct label_text text;
            uint32_t number;

            labels_text(c, row, &text);
            r = numbered_add(&names, text.bytes, text.len, &number);
        }
    }
    if (r == 0)
        r = numbered_sort(&names);
    return r < 0 ? r : numbered_names(&names, true, ret, ret_n);
}

void view_add_classes(struct search *s, struct files_view *view, char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        search_add_text(s, &view->class_name, &view->n_classes, name[i], strlen(name[i]));
}

/* ---- labels ---- */

/* Is the name of a class several other names, with the separator between? */
static bool labels_is_several(const struct numbered *classes, const char *name, char separator)
{
    size_t parts = 0, n = 0;

    for (; *name; name += n) {
        name += strspn(name, (char[]){separator, ' ', '\0'});
        n = strcspn(name, (char[]){separator, '\0'});
        if (n && numbered_find(classes, name, n) == classes->n)
            return false;
        parts += n > 0;
    }
    return parts > 1;
}

/* The first class that is several others, such as "cat|dog"; NULL: none is. With a space between,
 * two are needed: "king crab" may also be a crab. */
static const char *labels_find_several(const struct numbered *classes)
{
    for (const char *separator = "|,; "; *separator; separator++) {
        const char *first = NULL;

        for (size_t i = 0; i < classes->n; i++) {
            const char *name = numbered_text(classes, i, NULL);

            if (!labels_is_several(classes, name, *separator))
                continue;
            if (first || *separator != ' ')
                return first ? first : name;
            first = name;
        }
    }
    return NULL;
}

/* The view of an earlier label whose texts are numbered with those of this one; NULL: none. */
static const struct files_view *labels_same(const struct annotating *a,
                                            const struct label_column *label)
{
    for (const struct label_column *l = label; l-- > a->label;) {
        const struct files_view *view = &a->s->set[l->set].claim->view[l->view];

        if (!strcmp(l->values.column->name, label->values.column->name) &&
            !strcmp(l->subject, label->subject) && l->values.column->form == VALUE_TEXT &&
            view->label && view->n_classes && l->is_numbered)
            return view;
    }
    return NULL;
}

static void view_drop_label(struct files_view *view)
{
    while (view->n_classes)
        free(view->class_name[--view->n_classes]);
    free(TAKE_PTR(view->label));
}

/* By the names of the classes of the view. Whole numbers are as they are if none of them is one:
 * with a recipe's classes, their places. has_texts: the classes are the texts of tables. */
static void labels_number(struct set *set, struct files_view *view, const struct value_column *c,
                          bool has_texts)
{
    AUTO_NUMBERED struct numbered list = {0};
    const char *several;
    bool are_names = c->form == VALUE_TEXT;
    struct label_text text;
    uint32_t number;

    for (size_t i = 0; i < view->n_classes; i++)
        if (numbered_add(&list, view->class_name[i], strlen(view->class_name[i]), &number) < 0)
            set->s->failed = true;
    several = has_texts ? labels_find_several(&list) : NULL;
    if (several) {
        text_add(
            &set->notes,
            "%s is no label: '%s' is several of its values; an epochfs.json with 'classes' can "
            "make it one\n",
            c->name, several);
        view_drop_label(view);
        return;
    }
    for (uint64_t row = 0; row < c->rows && !set->s->failed; row++) {
        labels_text(c, row, &text);
        view->label[row] = (int64_t)numbered_find(&list, text.bytes, text.len);
        are_names = are_names || (uint64_t)view->label[row] < list.n;
    }
    for (uint64_t row = 0; row < c->rows && !set->s->failed; row++) {
        if (!are_names)
            view->label[row] = labels_integer(c, row);
        if (!set->recipe || !list.n ||
            (view->label[row] >= 0 && (uint64_t)view->label[row] < list.n))
            continue;
        labels_text(c, row, &text);
        set_refuse(set, "%s, line %u: 'classes': expected all classes, but not '%.*s'",
                   set->recipe->name, recipe_line(set->recipe, "classes"),
                   (int)(text.len < 256 ? text.len : 256), text.bytes);
        return;
    }
}

static void labels_finish_one(struct annotating *a, const struct label_column *label)
{
    struct search *s = a->s;
    struct set *set = &s->set[label->set];
    struct files_view *view = &set->claim->view[label->view];
    const struct value_column *c = label->values.column, *hidden;
    const json_t *classes = json_object_get(set->dataset, "classes");
    const struct files_claim *folders;
    AUTO_NUMBERED struct numbered list = {0};
    bool has_hole = false;
    int r = 0;

    if (view->label && !set->refused)
        text_add(&set->notes,
                 "%s of a later table is a field and no label; label=FIELD can choose it\n",
                 c->name);
    if (view->label || set->refused)
        return;
    if (c->form == VALUE_NUMBERS && (c->dtype != DTYPE_I8 || c->is_list || c->width)) {
        text_add(&set->notes, "%s is no label: expected texts or whole numbers, got others\n",
                 c->name);
        return;
    }
    for (uint64_t row = 0; row < c->rows; row++)
        has_hole = has_hole || value_is_hole(c, row);
    if (has_hole) {
        text_add(&set->notes, "%s has no value for some samples, and so is no label\n", c->name);
        return;
    }
    view->label = calloc(c->rows + 1, sizeof(*view->label));
    s->failed = s->failed || !view->label;
    if (s->failed)
        return;
    folders = set->dataset ? NULL : labels_find_classes(a, c);
    if (classes) {
        r = recipe_classes(classes, &list);
        if (r == 0)
            r = numbered_names(&list, false, &view->class_name, &view->n_classes);
    } else if (folders) {
        view_add_classes(s, view, folders->class_name, folders->n_classes);
    } else if (c->form == VALUE_TEXT) {
        const struct files_view *same = labels_same(a, label);

        if (same)
            view_add_classes(s, view, same->class_name, same->n_classes);
        else
            r = labels_collect_names(a, label, &view->class_name, &view->n_classes);
        a->label[label - a->label].is_numbered = true;
    }
    s->failed = s->failed || r < 0;
    labels_number(set, view, c, c->form == VALUE_TEXT && !set->dataset && !folders);
    hidden = value_columns_find(&view->values, "label"); /* it is shown as the label */
    if (hidden && view->label && !set->refused)
        value_columns_remove(&view->values, (unsigned)(hidden - view->values.column));
}

void annotating_finish_labels(struct annotating *a)
{
    for (; a->n_finished < a->n_labels && !a->s->failed; a->n_finished++)
        labels_finish_one(a, &a->label[a->n_finished]);
}

/* The class that a sample has before any table: by its folder, or by a word of a recipe. Returns
 * its number; -1: it has none. */
static int64_t labels_class(const struct annotating *a, const struct set *set, size_t sample,
                            struct label_text *ret)
{
    const struct files_claim *claim = set->claim;
    const struct files_view *view = claim->view;
    const bool by_folder = claim->layout == LAYOUT_CLASSES;
    int64_t number = view->label ? view->label[sample] : -1;

    if (by_folder)
        number = (int64_t)claim_class_of(
            claim, members_folder_of(a->s->m, set->file[claim->first[sample]]));
    if (number < 0 || (uint64_t)number >= (by_folder ? claim->n_classes : view->n_classes))
        return -1;
    ret->bytes = (by_folder ? claim->class_name : view->class_name)[number];
    ret->len = strlen(ret->bytes);
    return number;
}

bool annotating_says_class(const struct annotating *a, size_t set, size_t view,
                           const struct value_column *c)
{
    const uint32_t *sample = a->s->set[set].claim->view[view].sample;
    const bool is_integer =
        c->form == VALUE_NUMBERS && c->dtype == DTYPE_I8 && !c->is_list && !c->width;

    for (uint64_t row = 0; row < c->rows; row++) {
        struct label_text class, text;
        int64_t number =
            labels_class(a, &a->s->set[set], sample ? sample[row] : (size_t)row, &class);

        if (number < 0 || value_is_hole(c, row) || (c->form != VALUE_TEXT && !is_integer))
            return false;
        labels_text(c, row, &text);
        if (is_integer ? labels_integer(c, row) != number
                       : text_compare(text.bytes, text.len, class.bytes, class.len) != 0)
            return false;
    }
    return true;
}

/* Is the value of a row the name of a class folder? */
static bool labels_is_class(const struct annotating *a, const struct value_column *c, uint64_t row)
{
    const uint8_t *text;
    size_t len = value_items(c, row, &text);

    for (size_t i = 0; i < a->s->n_sets && !value_is_hole(c, row); i++) {
        const struct files_claim *claim = a->s->set[i].claim;

        if (class_name_find(claim->class_name, claim->n_classes, (const char *)text, len) <
            claim->n_classes)
            return true;
    }
    return false;
}

const struct value_column *annotating_find_classes(const struct annotating *a,
                                                   const struct value_columns *columns)
{
    for (unsigned i = 0; i < columns->n; i++) {
        const struct value_column *c = &columns->column[i];
        uint64_t row = 0;

        while (c->form == VALUE_TEXT && row < c->rows && labels_is_class(a, c, row))
            row++;
        if (row && row == c->rows)
            return c;
    }
    return NULL;
}
