#include "format/array/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/scope.h"
#include "format/core/split_name.h"

static bool array_pairs_is_joint(char c)
{
    return c == '_' || c == '-' || c == '.' || c == ' ';
}

const char *array_split(const char *name, const char **ret_rest, size_t *ret_len)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < SPLIT_NAMES; i++) {
        const char *split = split_names[i];
        size_t n = strlen(split);

        if (len <= n + 1)
            continue;
        if (array_pairs_is_joint(name[len - n - 1]) && !strcasecmp(name + len - n, split)) {
            *ret_rest = name;
            *ret_len = len - n - 1;
            return split;
        }
        if (array_pairs_is_joint(name[n]) && !strncasecmp(name, split, n)) {
            *ret_rest = name + n + 1;
            *ret_len = len - n - 1;
            return split;
        }
    }
    return NULL;
}

/* Is a word of the name, between others, one of a split? */
static bool mentions_split(const char *name)
{
    while (*name) {
        size_t len = 0;

        while (name[len] && !array_pairs_is_joint(name[len]))
            len++;
        if (is_split_name(name, len))
            return true;
        name += len + (name[len] != '\0');
    }
    return false;
}

static int group_add(struct array_group *group, size_t member)
{
    int r = array_capacity(&group->member, group->n, sizeof(*group->member));

    if (r == 0)
        group->member[group->n++] = member;
    return r;
}

static struct array_group *array_pairs_add_group(struct array_groups *groups, enum pair_rule rule,
                                                 const char *split)
{
    if (array_capacity(&groups->group, groups->n, sizeof(*groups->group)) < 0)
        return NULL;
    groups->group[groups->n] = (struct array_group){.rule = rule, .split = split};
    return &groups->group[groups->n++];
}

/* The group of the split; a new one if there is none. NULL: no memory. */
static struct array_group *group_of_split(struct array_groups *groups, const char *split)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->group[i].split == split)
            return &groups->group[i];
    return array_pairs_add_group(groups, PAIR_SPLIT, split);
}

static int by_samples(const void *a, const void *b, void *ctx)
{
    const struct arrays *arrays = ctx;
    size_t one = *(const size_t *)a, two = *(const size_t *)b;
    uint64_t n = arrays->array[one].samples, m = arrays->array[two].samples;

    if (n != m)
        return n < m ? -1 : 1;
    return one < two ? -1 : 1;
}

static int by_first_member(const void *a, const void *b)
{
    const struct array_group *one = a, *two = b;

    return *one->member < *two->member ? -1 : *one->member > *two->member;
}

/* Group the n arrays of member[], which it sorts, by their numbers of samples; groups are in the
 * order of their first members. */
static int group_by_samples(const struct arrays *arrays, size_t *member, size_t n,
                            struct array_groups *groups)
{
    size_t before = groups->n;
    struct array_group *g = NULL;

    qsort_r(member, n, sizeof(*member), by_samples, (void *)(uintptr_t)arrays);
    for (size_t i = 0; i < n; i++) {
        if (!i || arrays->array[member[i]].samples != arrays->array[member[i - 1]].samples)
            g = array_pairs_add_group(groups, PAIR_SAMPLES, NULL);
        if (!g || group_add(g, member[i]) < 0)
            return -ENOMEM;
    }
    if (n)
        qsort(groups->group + before, groups->n - before, sizeof(*g), by_first_member);
    return 0;
}

/* Split groups of one member, or of too many, into single arrays. */
static int split_up(struct array_groups *groups)
{
    struct array_groups alone = {0};
    int r = 0;

    for (size_t i = 0; i < groups->n && r == 0; i++) {
        struct array_group *g = &groups->group[i];
        bool stays = g->rule == PAIR_SPLIT || (g->n > 1 && g->n <= PAIRED_MAX);

        for (size_t k = 0; k < (stays ? 1 : g->n) && r == 0; k++) {
            r = array_capacity(&alone.group, alone.n, sizeof(*g));
            if (r < 0)
                break;
            alone.group[alone.n] = stays ? *g : (struct array_group){.rule = PAIR_ALONE};
            if (stays)
                g->member = NULL;
            else
                r = group_add(&alone.group[alone.n], g->member[k]);
            alone.n++;
        }
    }
    array_groups_release(groups);
    *groups = alone;
    return r;
}

/* Is the group a part of something by its names? */
static bool is_of_split(const struct arrays *arrays, const struct array_group *group)
{
    for (size_t i = 0; i < group->n; i++)
        if (mentions_split(arrays->array[group->member[i]].name))
            return true;
    return false;
}

/* The largest group of as many samples is the main one, unless it is of a split, or another is as
 * large; if there is one array at all, that is. */
static void find_main(const struct arrays *arrays, struct array_groups *groups)
{
    bool is_tied = false;
    struct array_group *best = NULL;

    for (size_t i = 0; i < groups->n; i++) {
        struct array_group *g = &groups->group[i];

        if (g->rule != PAIR_SAMPLES)
            continue;
        is_tied = best && (g->n == best->n || (is_tied && g->n < best->n));
        if (!best || g->n > best->n)
            best = g;
    }
    if (best && (is_tied || is_of_split(arrays, best)))
        return;
    if (!best && groups->n == 1 && groups->group->rule == PAIR_ALONE)
        best = groups->group;
    if (best)
        best->is_main = true;
}

int arrays_pair(const struct arrays *arrays, bool pair, struct array_groups *ret)
{
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};
    AUTO_FREE size_t *stem = calloc(arrays->n + 1, sizeof(*stem));
    size_t n = 0;
    int r = stem ? 0 : -ENOMEM;

    for (size_t i = 0; i < arrays->n && r == 0; i++) {
        const struct array *a = &arrays->array[i];
        const char *name, *split;
        struct array_group *g;
        size_t len;

        if (a->left_out || a->is_part)
            continue;
        split = pair ? array_split(a->name, &name, &len) : NULL;
        if (pair && !split) {
            stem[n++] = i;
            continue;
        }
        g = split ? group_of_split(&groups, split)
                  : array_pairs_add_group(&groups, PAIR_ALONE, NULL);
        r = g ? group_add(g, i) : -ENOMEM;
    }
    if (r == 0)
        r = group_by_samples(arrays, stem, n, &groups);
    if (r == 0)
        r = split_up(&groups);
    if (r < 0)
        return r;
    find_main(arrays, &groups);
    for (size_t i = 0; i < groups.n; i++)
        groups.group[i].is_off = !pair;
    *ret = groups;
    groups = (struct array_groups){0};
    return 0;
}

void array_groups_release(struct array_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++)
        free(groups->group[i].member);
    free(groups->group);
    *groups = (struct array_groups){0};
}

/* The name without the split, or as it is. */
static void plain_name(const struct arrays *arrays, const struct array_group *group, size_t member,
                       char ret[static ARRAY_NAME_MAX + 8])
{
    const char *name = arrays->array[group->member[member]].name, *stem = name;
    size_t len = strlen(name);

    if (group->rule == PAIR_SPLIT)
        array_split(name, &stem, &len);
    snprintf(ret, ARRAY_NAME_MAX + 8, "%.*s", (int)len, stem);
}

void array_field_name(const struct arrays *arrays, const struct array_group *group, size_t member,
                      char ret[static ARRAY_NAME_MAX + 8])
{
    char other[ARRAY_NAME_MAX + 8];
    unsigned same = 1;

    if (group->rule == PAIR_ALONE) {
        snprintf(ret, ARRAY_NAME_MAX + 8, "data");
        return;
    }
    plain_name(arrays, group, member, ret);
    same += !strcmp(ret, "index") || !strcmp(ret, "key");
    for (size_t i = 0; i < member; i++) { /* "x_train" and "train_x" */
        plain_name(arrays, group, i, other);
        same += !strcmp(ret, other);
    }
    if (same > 1)
        snprintf(ret + strlen(ret), 8, "~%u", same);
}

/* Are the two cut into files at different samples, or is a file missing of one? */
static bool parts_differ(const struct array *one, const struct array *other)
{
    if (!one->n_parts || !other->n_parts)
        return false;
    if (one->n_parts != other->n_parts)
        return true;
    for (size_t i = 0; i < one->n_parts; i++)
        if (one->part[i].samples != other->part[i].samples ||
            one->part[i].number != other->part[i].number)
            return true;
    return false;
}

/* Would an array that is omitted be in the group? */
static bool would_be_in(const struct arrays *arrays, const struct array_group *group,
                        const struct array *a)
{
    const char *stem, *split = array_split(a->name, &stem, &(size_t){0});

    if (!a->left_out || a->repeats)
        return false;
    if (group->rule == PAIR_SPLIT)
        return split == group->split;
    return !split && a->samples && a->samples == arrays->array[*group->member].samples;
}

const struct array *array_group_lacks(const struct arrays *arrays, const struct array_group *group)
{
    const struct array *half = NULL;

    for (size_t i = 0; i < arrays->n && !group->is_off; i++) {
        const struct array *a = &arrays->array[i];

        if (!would_be_in(arrays, group, a))
            continue;
        if (!a->is_beside)
            return a;
        half = a->samples && !half ? a : half;
    }
    return group->n == 1 ? half : NULL;
}

bool array_group_differs(const struct arrays *arrays, const struct array_group *group,
                         const struct array **ret_one, const struct array **ret_other)
{
    const struct array *one = &arrays->array[*group->member];

    for (size_t i = 1; i < group->n; i++) {
        const struct array *other = &arrays->array[group->member[i]];

        if (other->samples == one->samples && !parts_differ(one, other))
            continue;
        *ret_one = one;
        *ret_other = other;
        return true;
    }
    return false;
}
