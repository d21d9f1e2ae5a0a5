#include "format/array/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

static const char *const splits[] = {"train", "test", "val", "valid"};

const char *array_split(const char *name, const char **ret_rest, size_t *ret_len)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(splits); i++) {
        size_t n = strlen(splits[i]);

        if (len <= n + 1)
            continue;
        if (name[len - n - 1] == '_' && !strcmp(name + len - n, splits[i])) {
            *ret_rest = name;
            *ret_len = len - n - 1;
            return splits[i];
        }
        if (name[n] == '_' && !strncmp(name, splits[i], n)) {
            *ret_rest = name + n + 1;
            *ret_len = len - n - 1;
            return splits[i];
        }
    }
    return NULL;
}

static int group_add(struct array_group *group, size_t member)
{
    int r = array_capacity(&group->member, group->n, sizeof(*group->member));

    if (r == 0)
        group->member[group->n++] = member;
    return r;
}

/* The group of that rule and split, or of as many samples; a new one if there is none. NULL: no
 * memory. */
static struct array_group *group_of(struct array_groups *groups, const struct arrays *arrays,
                                    enum pair_rule rule, const char *split, uint64_t samples)
{
    for (size_t i = 0; i < groups->n && rule != PAIR_ALONE; i++) {
        struct array_group *g = &groups->group[i];

        if (g->rule == rule &&
            (split ? g->split == split : arrays->array[*g->member].samples == samples))
            return g;
    }
    if (array_capacity(&groups->group, groups->n, sizeof(*groups->group)) < 0)
        return NULL;
    groups->group[groups->n] = (struct array_group){.rule = rule, .split = split};
    return &groups->group[groups->n++];
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

/* The largest group of as many samples is the main one; if there is one array at all, that is. */
static void find_main(struct array_groups *groups)
{
    struct array_group *best = NULL;

    for (size_t i = 0; i < groups->n; i++) {
        struct array_group *g = &groups->group[i];

        if (g->rule == PAIR_SAMPLES && (!best || g->n > best->n))
            best = g;
    }
    if (!best && groups->n == 1 && groups->group->rule == PAIR_ALONE)
        best = groups->group;
    if (best)
        best->is_main = true;
}

int arrays_pair(const struct arrays *arrays, bool pair, struct array_groups *ret)
{
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};
    int r = 0;

    for (unsigned round = 0; round < 2; round++)
        for (size_t i = 0; i < arrays->n && r == 0; i++) {
            const struct array *a = &arrays->array[i];
            const char *rest, *split = NULL;
            struct array_group *g;
            size_t len;

            if (a->left_out)
                continue;
            split = pair ? array_split(a->name, &rest, &len) : NULL;
            if (!split != (round == 1))
                continue;
            g = group_of(&groups, arrays,
                         split  ? PAIR_SPLIT
                         : pair ? PAIR_SAMPLES
                                : PAIR_ALONE,
                         split, a->samples);
            r = g ? group_add(g, i) : -ENOMEM;
        }
    if (r == 0)
        r = split_up(&groups);
    if (r < 0)
        return r;
    find_main(&groups);
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
    const char *name = arrays->array[group->member[member]].name, *rest = name;
    size_t len = strlen(name);

    if (group->rule == PAIR_SPLIT)
        array_split(name, &rest, &len);
    snprintf(ret, ARRAY_NAME_MAX + 8, "%.*s", (int)len, rest);
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

bool array_group_differs(const struct arrays *arrays, const struct array_group *group,
                         const struct array **ret_one, const struct array **ret_other)
{
    const struct array *one = &arrays->array[*group->member];

    for (size_t i = 1; i < group->n; i++) {
        const struct array *other = &arrays->array[group->member[i]];

        if (other->samples == one->samples)
            continue;
        *ret_one = one;
        *ret_other = other;
        return true;
    }
    return false;
}
