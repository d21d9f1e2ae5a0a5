#include "format/array/shards.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/text.h"

/* Do two agree in the shape of their rows, and in their type, but perhaps not in its order of
 * bytes? */
static bool are_shown_alike(const struct array *a, const struct array *b)
{
    const struct npy_head *x = &a->head, *y = &b->head;

    return x->dtype == y->dtype && x->ndim == y->ndim && a->type_name == b->type_name &&
           !memcmp(x->dim + 1, y->dim + 1, (x->ndim - 1) * sizeof(*x->dim));
}

static bool array_shards_are_alike(const struct array *a, const struct array *b)
{
    return are_shown_alike(a, b) && a->head.big_endian == b->head.big_endian;
}

/* Are names the same except for their numbers? */
static bool differ_by_numbers(const char *a, const char *b)
{
    static const char digits[] = "0123456789";

    for (; *a && *b; a++, b++) {
        size_t m = strspn(a, digits), n = strspn(b, digits);

        if (!m != !n || (!m && *a != *b))
            return false;
        a += m ? m - 1 : 0;
        b += n ? n - 1 : 0;
    }
    return *a == *b;
}

bool array_group_repeats(const struct arrays *arrays, const struct array_group *group,
                         const struct array **ret_one, const struct array **ret_other)
{
    for (size_t i = 0; i < group->n; i++)
        for (size_t k = i + 1; k < group->n; k++) {
            const struct array *a = &arrays->array[group->member[i]];
            const struct array *b = &arrays->array[group->member[k]];

            if (!a->file || !b->file || !strcmp(a->file, b->file) || !are_shown_alike(a, b) ||
                !differ_by_numbers(a->name, b->name))
                continue;
            *ret_one = a;
            *ret_other = b;
            return true;
        }
    return false;
}

bool arrays_are_alike(struct array *const *a, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!array_shards_are_alike(a[0], a[i]))
            return false;
    return true;
}

int array_join(struct array *const *a, const uint64_t *number, size_t n)
{
    struct array_part *part;
    uint64_t samples = 0;

    for (size_t i = 0; i < n; i++)
        if (!array_shards_are_alike(a[0], a[i]) || !checked_add(samples, a[i]->samples, &samples) ||
            samples > INT64_MAX)
            return -EDOM;
    part = calloc(n, sizeof(*part));
    if (!part)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        part[i] = a[i]->here;
        part[i].samples = a[i]->samples;
        part[i].number = number[i];
        held_blob_take(part[i].held);
        a[i]->is_part = i > 0;
    }
    a[0]->part = part;
    a[0]->n_parts = n;
    a[0]->samples = samples;
    return 0;
}

/* "float32 (80, 51)" */
static void add_shape(const struct array *a, struct text *t)
{
    text_add(t, "%s (", dtype_info(a->head.dtype)->name);
    for (unsigned i = 0; i < a->head.ndim; i++)
        text_add(t, "%s%llu", i ? ", " : "", (unsigned long long)a->head.dim[i]);
    text_add(t, ")");
}

void arrays_add_doubt(const struct array *a, struct text *t)
{
    text_add(t, "; each is ");
    add_shape(a, t);
    text_add(t, ": if each is one sample, store them as members of a tar archive");
}

bool arrays_may_be_samples(const struct array *a, const struct array *b)
{
    return a->head.dtype == b->head.dtype && a->head.ndim == b->head.ndim && a->head.ndim > 1;
}

int arrays_refuse_samples(const struct array *a, const struct array *b, size_t n, const char *name,
                          struct finds *finds)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s: %zu arrays with as many axes, such as %s of ", name, n,
             a->file ? a->file : a->name);
    add_shape(a, &t);
    text_add(&t, " and %s of ", b->file ? b->file : b->name);
    add_shape(b, &t);
    text_add(
        &t,
        ", are probably one sample each, which epochfs does not read. Store them as members "
        "of a tar archive (tar --sort=name -cf data.tar FOLDER), where each is a sample, or use "
        "-o pair=off, which makes each array a dataset of its rows");
    return t.failed ? -ENOMEM : finds->error(finds, name, t.data);
}

/* The first array that the first one of n is not like, or the last. */
static size_t array_shards_other(struct array *const *a, size_t n)
{
    size_t other = 1;

    while (other + 1 < n && array_shards_are_alike(a[0], a[other]))
        other++;
    return other;
}

/* Shards of one array seldom have as many rows, all of them; samples of one size do. */
static bool array_shards_may_be_samples(struct array *const *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (!arrays_may_be_samples(a[0], a[i]) || a[i]->head.dim[0] != a[0]->head.dim[0])
            return false;
    }
    return true;
}

/* Say of which rule the array is, or of the n arrays, which could not be joined. */
static int array_shards_remark(struct array *const *a, size_t n, bool joined)
{
    AUTO_TEXT struct text t = {0};
    size_t other = array_shards_other(a, n);

    if (joined) {
        text_add(
            &t,
            "%s to %s are one array in %zu files, because their names differ by a number only; "
            "with -o pair=off each is a dataset",
            a[0]->file, a[n - 1]->file, n);
        if (array_shards_may_be_samples(a, n))
            arrays_add_doubt(a[0], &t);
        return text_finish(&t, &a[0]->remark, NULL);
    }
    text_add(&t, "%s and %s are not one array in several files: ", a[0]->file, a[other]->file);
    add_shape(a[0], &t);
    text_add(&t, " and ");
    add_shape(a[other], &t);
    if (t.failed)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        a[i]->remark = strdup(t.data);
        if (!a[i]->remark)
            return -ENOMEM;
    }
    return 0;
}

bool array_set_name(const struct siblings *siblings, size_t set, const char *suffix,
                    char ret[static NAME_MAX + 1])
{
    bool is_named = sibling_set_name(siblings, set, ret, NAME_MAX + 1);

    if (!is_named || !strcasecmp(ret, suffix + 1))
        snprintf(ret, NAME_MAX + 1, "all");
    ret[array_name_without(ret, strlen(ret), suffix)] = '\0';
    return is_named;
}

/* Report n arrays that differ in the order of bytes only. */
static int refuse_orders(struct array *const *a, size_t n, const char *name, struct finds *finds)
{
    const struct array *other = a[1];
    AUTO_TEXT struct text t = {0};
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        other = a[i]->head.big_endian != a[0]->head.big_endian ? a[i] : other;
        r = array_leave_out(a[i], "a file of its set has the other order of bytes");
    }
    text_add(&t,
             "%s: files of one array differ in their order of bytes: expected %s as in %s, got %s "
             "in %s. Convert one with numpy's astype('%s'), or use -o pair=off",
             name, a[0]->head.big_endian ? "big-endian" : "little-endian", a[0]->file,
             other->head.big_endian ? "big-endian" : "little-endian", other->file,
             a[0]->head.big_endian ? ">" : "<");
    return r < 0 || t.failed ? -ENOMEM : finds->error(finds, name, t.data);
}

/* Are the arrays, which cannot be joined, a sample each, or do they differ in the order of bytes?
 * 1: they were reported; 0 or -ENOMEM. */
static int array_shards_refuse(struct array *const *a, size_t n, const struct siblings *siblings,
                               size_t set, struct finds *finds)
{
    char name[NAME_MAX + 1];
    size_t other = array_shards_other(a, n);
    bool may_be_samples = n >= 3, one_type = true;
    int r = 0;

    for (size_t i = 1; i < n; i++) {
        may_be_samples = may_be_samples && arrays_may_be_samples(a[0], a[i]);
        one_type = one_type && are_shown_alike(a[0], a[i]);
    }
    if (!may_be_samples && !one_type)
        return 0;
    array_set_name(siblings, set, ".npy", name);
    if (one_type)
        return refuse_orders(a, n, name, finds) < 0 ? -ENOMEM : 1;
    for (size_t i = 0; i < n && r == 0; i++)
        r = array_leave_out(a[i], "it is probably one sample");
    if (r == 0)
        r = arrays_refuse_samples(a[0], a[other], n, name, finds);
    return r < 0 ? r : 1;
}

/* Call the array like its set; one without a name "all". */
static int rename_array(struct array *a, const struct siblings *siblings, size_t set)
{
    char name[NAME_MAX + 1];

    if (!array_set_name(siblings, set, ".npy", name))
        return 0;
    free(a->name);
    a->name = strdup(name);
    return a->name ? 0 : -ENOMEM;
}

static int array_shards_join_set(struct arrays *arrays, const struct siblings *siblings, size_t set,
                                 struct finds *finds)
{
    const struct sibling_set *s = &siblings->set[set];
    AUTO_FREE struct array **a = calloc(s->n, sizeof(struct array *));
    AUTO_FREE uint64_t *number = calloc(s->n, sizeof(*number));
    size_t n = 0;
    int r = 0;

    if (!a || !number)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const struct sibling *member = &siblings->member[s->first + i];

        if (member->file >= arrays->n || arrays->array[member->file].left_out)
            continue;
        arrays->array[member->file].set = set + 1;
        number[n] = member->number;
        a[n++] = &arrays->array[member->file];
    }
    if (n > 1)
        r = array_join(a, number, n);
    if (n < 2 || r == -ENOMEM)
        return r;
    if (r == 0) {
        r = rename_array(a[0], siblings, set);
        return r < 0 ? r : array_shards_remark(a, n, true);
    }
    r = array_shards_refuse(a, n, siblings, set, finds);
    return r < 0 ? r : r ? 0 : array_shards_remark(a, n, false);
}

/* The array in several files that one of that name is another split of: x_train of x_test. NULL:
 * there is none, or another array has the name. */
static const struct array *array_shards_of_split(const struct arrays *arrays, const char *name)
{
    const struct array *found = NULL;
    const char *stem, *other;
    size_t len, n;

    if (!array_split(name, &stem, &len))
        return NULL;
    for (size_t i = 0; i < arrays->n; i++) {
        const struct array *a = &arrays->array[i];

        if (!strcmp(a->name, name))
            return NULL;
        if (a->n_parts > 1 && array_split(a->name, &other, &n) && n == len &&
            !strncmp(stem, other, n))
            found = a;
    }
    return found;
}

/* A split of one file has a number where another one has several: x_test_0 is x_test. */
static int array_shards_name_alone(const struct arrays *arrays, struct array *a)
{
    size_t len = strlen(a->name), digits = 0;
    AUTO_FREE char *name = strdup(a->name);
    const struct array *other;

    if (!name)
        return -ENOMEM;
    while (digits < len && isdigit((unsigned char)name[len - 1 - digits]))
        digits++;
    if (a->set || !digits || digits + 1 >= len || !strchr("_-. ", name[len - 1 - digits]))
        return 0;
    name[len - 1 - digits] = '\0';
    other = array_shards_of_split(arrays, name);
    if (!other)
        return 0;
    free(a->name);
    a->name = TAKE_PTR(name);
    free(a->remark);
    return text_print(&a->remark,
                      "%s is %s, because files of %s have numbers; with -o pair=off it is %.*s",
                      a->file, a->name, other->name, (int)len, a->file);
}

int arrays_join_sets(struct arrays *arrays, const struct siblings *siblings, struct finds *finds)
{
    int r = 0;

    for (size_t i = 0; i < siblings->n && r == 0; i++)
        r = array_shards_join_set(arrays, siblings, i, finds);
    for (size_t i = 0; i < arrays->n && r == 0; i++)
        r = array_shards_name_alone(arrays, &arrays->array[i]);
    return r;
}

/* Is an array in that set? */
static bool is_in_set(const struct arrays *arrays, size_t set)
{
    for (size_t i = 0; i < arrays->n; i++)
        if (set && arrays->array[i].set == set)
            return true;
    return false;
}

/* Add those of the first n unusable files that are called .npy and whose names, or those of their
 * sets, say that split; NULL: none. */
static int add_unusable(const struct array_sets *sets, const struct arrays *arrays, size_t n,
                        const char *split, struct missing_parts *ret)
{
    const struct finds *finds = sets->finds;
    const struct siblings *siblings = &sets->siblings;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const struct left_out_file *file = &finds->left_out[i];
        size_t set = i < sets->n_left_out ? siblings->set_of[sets->n + i] : 0, len;
        char name[NAME_MAX + 1];
        const char *tail;

        if (!file->reason || is_in_set(arrays, set))
            continue;
        if (!set || !sibling_set_name(siblings, set - 1, name, sizeof(name)))
            snprintf(name, sizeof(name), "%s", file->name);
        len = array_name_without(name, strlen(name), ".npy");
        if (!name[len])
            continue;
        name[len] = '\0';
        if (array_split(name, &tail, &len) == split)
            r = missing_parts_add(ret, file->name, file->reason);
    }
    return r;
}

static const struct array_part *find_part(const struct array *a, uint64_t number)
{
    for (size_t i = 0; i < a->n_parts; i++)
        if (a->part[i].number == number)
            return &a->part[i];
    return NULL;
}

/* Are all files of a those of b, by their numbers and rows, up to the last of a? */
static bool goes_along(const struct array *a, const struct array *b)
{
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct array_part *part = find_part(b, a->part[i].number);

        if (!part || part->samples != a->part[i].samples)
            return false;
    }
    return true;
}

/* Files that an array alone lacks at its end, because another array goes on: y_2.npy, where X_0,
 * X_1, X_2, y_0 and y_1 are. */
static int add_end_missing(const struct array_sets *sets, const struct arrays *arrays,
                           const struct array *a, struct missing_parts *ret)
{
    int r = 0;

    for (size_t i = 0; i < arrays->n; i++) {
        const struct array *b = &arrays->array[i];

        if (b->is_part || b->left_out || b->n_parts <= a->n_parts || !goes_along(a, b))
            continue;
        for (size_t k = 0; k < b->n_parts && r == 0; k++)
            if (b->part[k].number > a->part[a->n_parts - 1].number)
                r = sibling_set_lacks(&sets->siblings, a->set - 1, b->part[k].number,
                                      "no such file", ret);
        return r;
    }
    return 0;
}

int array_sets_missing(const struct arrays_source *source, const struct arrays *arrays,
                       const struct array_group *group, struct missing_parts *ret)
{
    const struct array_sets *sets = source->sets;
    size_t last = 0;
    int r = 0;

    if (group->is_main && !source->stem) {
        r = finds_missing(sets->finds, sets->left_out, &sets->siblings, sets->n, FINDS_ALL,
                          sets->setup, ret);
        return r < 0 || group->is_off ? r : add_unusable(sets, arrays, sets->left_out, NULL, ret);
    }
    for (size_t i = 0; i < group->n && r == 0; i++) {
        size_t set = arrays->array[group->member[i]].set;

        if (set && set != last)
            r = finds_missing(sets->finds, sets->left_out, &sets->siblings, sets->n, set - 1,
                              sets->setup, ret);
        last = set;
    }
    if (r == 0 && group->n == 1 && !source->stem && arrays->array[*group->member].n_parts)
        r = add_end_missing(sets, arrays, &arrays->array[*group->member], ret);
    if (r == 0 && group->rule == PAIR_SPLIT && !source->stem)
        r = add_unusable(sets, arrays, sets->finds->n_left_out, group->split, ret);
    return r;
}
