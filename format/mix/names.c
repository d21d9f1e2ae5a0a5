/* What the numbers of the sources mean: columns of `x` and classes of `label` have names in some
 * formats. Sources whose names differ are not mixed: a number would mean something else in each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/mix/parts.h"

#define LIST_SHOWN 120 /* bytes of a list of names in a message */

static bool has_column(const struct mix_set *set, const char *name)
{
    for (unsigned i = 0; i < set->n_columns; i++)
        if (!strcmp(set->column[i].field[0]->name, name))
            return true;
    return false;
}

static void mix_names_add_columns(const struct dataset *ds, struct text *t)
{
    if (ds->ops && ds->ops->columns)
        ds->ops->columns(ds, t);
}

static void add_classes(const struct dataset *ds, struct text *t)
{
    AUTO_TEXT struct text name = {0};

    for (int64_t i = 0; ds->ops && ds->ops->class_name && ds->ops->class_name(ds, i, &name); i++) {
        json_add_text(t, NULL, NULL, name.data);
        text_release(&name);
    }
}

/* A list of names, as a message shows it. */
static void add_shown(const struct text *list, struct text *t)
{
    size_t n = list->len;

    if (n > LIST_SHOWN)
        for (n = LIST_SHOWN; n && list->data[n] != ','; n--)
            ;
    text_add_bytes(t, list->data, n);
    text_add(t, n < list->len ? ", ..." : "");
}

/* Lists agree if the longer one begins with all of the shorter one. */
static bool agree(const struct text *a, const struct text *b)
{
    const struct text *less = a->len < b->len ? a : b, *more = less == a ? b : a;

    return !memcmp(less->data, more->data, less->len) &&
           (less->len == more->len || more->data[less->len] == ',');
}

/* What has names. */
struct named {
    const char *field, *what;
    void (*add)(const struct dataset *ds, struct text *t);
    const char *fix;
};

static int mix_names_differ(const struct mix_set *set, const struct named *named, unsigned a,
                            const struct text *x, unsigned b, const struct text *y, struct diag *d)
{
    AUTO_TEXT struct text first = {0}, second = {0};

    add_shown(x, &first);
    add_shown(y, &second);
    return diag_set(
        d, -EINVAL,
        "mix %s: its sources differ in the %s of '%s': expected %s as in %s, got %s in %s. %s",
        set->setup.name, named->what, named->field, first.data ? first.data : "",
        set->setup.shown[a], second.data ? second.data : "", set->setup.shown[b], named->fix);
}

static int mix_names_check_one(struct dataset *ds, const struct named *named, struct diag *d)
{
    const struct mix_set *set = mix_set_of(ds);
    AUTO_TEXT struct text longest = {0};
    unsigned from = 0, nameless = 0;
    int r = 0;

    for (unsigned i = 0; i < set->setup.n && r == 0; i++) {
        AUTO_TEXT struct text list = {0};

        named->add(set->setup.ds[i], &list);
        if (list.failed)
            return -ENOMEM;
        if (!list.len) {
            nameless = i + 1;
            continue;
        }
        if (longest.len && !agree(&longest, &list))
            r = mix_names_differ(set, named, from, &longest, i, &list, d);
        if (list.len <= longest.len)
            continue;
        text_release(&longest);
        longest = list;
        list = (struct text){0};
        from = i;
    }
    if (r == 0 && longest.len && nameless)
        notes_add(
            &ds->notes,
            "mix %s: %s has names of the %s of '%s', %s has none: its numbers are used as they are",
            set->setup.name, set->setup.shown[from], named->what, named->field,
            set->setup.shown[nameless - 1]);
    return r;
}

int mix_names_check(struct dataset *ds, struct diag *d)
{
    static const struct named names[] = {
        {"x", "columns", mix_names_add_columns, "Write the files with their columns in one order"},
        {"label", "classes", add_classes,
         "Give each source directories of the same classes, with at least one file each"},
    };
    int r = 0;

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names) && r == 0; i++)
        if (has_column(mix_set_of(ds), names[i].field))
            r = mix_names_check_one(ds, &names[i], d);
    return r;
}
