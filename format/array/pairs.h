/* Which arrays are one dataset, by their names and numbers of samples. The rules are in
 * docs/spec/tables.md. */
#ifndef EPOCHFS_FORMAT_ARRAY_PAIRS_H
#define EPOCHFS_FORMAT_ARRAY_PAIRS_H

#include "format/array/array.h"

#define PAIRED_MAX 60 /* arrays of a dataset: a folder of the mount has a file for each */

enum pair_rule {
    PAIR_ALONE,   /* one array, in the field `data` */
    PAIR_SPLIT,   /* their names begin or end with the same split */
    PAIR_SAMPLES, /* they have the same number of samples */
};

struct array_group {
    enum pair_rule rule;
    bool is_main;      /* called like the file, or `all` */
    bool is_off;       /* arrays are not to be paired */
    const char *split; /* of PAIR_SPLIT: "train" */
    size_t n;
    size_t *member; /* [n] numbers of arrays; owned */
};

struct array_groups {
    struct array_group *group; /* [n]; owned */
    size_t n;
};

/* The split that the name says, "train" of "x_train" and of "train_x", and what is left of the
 * name. NULL: none. */
const char *array_split(const char *name, const char **ret_rest, size_t *ret_len);

/* Group the arrays that are not omitted; pair: false: each is alone. Groups of a split come first;
 * members are in the order of the arrays. 0 or -ENOMEM. */
int arrays_pair(const struct arrays *arrays, bool pair, struct array_groups *ret);
void array_groups_release(struct array_groups *groups);
#define AUTO_ARRAY_GROUPS AUTO(array_groups_release)

/* The field that number `member` of the group is; NUL-terminated. */
void array_field_name(const struct arrays *arrays, const struct array_group *group, size_t member,
                      char ret[static ARRAY_NAME_MAX + 8]);

/* An array that is omitted, and without which the group is not what its file says: numbers of its
 * samples that cannot be read, or whatever else would be half of a pair. NULL: there is none. */
const struct array *array_group_lacks(const struct arrays *arrays, const struct array_group *group);

/* Members of the group that have different numbers of samples, or have them in different parts:
 * true, and the first such two. */
bool array_group_differs(const struct arrays *arrays, const struct array_group *group,
                         const struct array **ret_one, const struct array **ret_other);

#endif
