/* Arrays in several files: the rows of the first file, then those of the second, and so on. */
#ifndef EPOCHFS_FORMAT_ARRAY_SHARDS_H
#define EPOCHFS_FORMAT_ARRAY_SHARDS_H

#include <limits.h>

#include "format/array/set.h"
#include "format/core/format.h"
#include "format/core/siblings.h"

/* Join the arrays of each set of siblings, whose name number i is that of array i, into the first
 * one, if they agree in type and shape. A remark says which rule was taken. Three or more that
 * differ in their rows only are probably a sample each: they are omitted, and reported to finds. 0
 * or -ENOMEM. */
int arrays_join_sets(struct arrays *arrays, const struct siblings *siblings, struct finds *finds);

/* Add what to do if an array that was joined with others of its shape is one sample. */
void arrays_add_doubt(const struct array *a, struct text *t);

/* Are two arrays of one type, with as many axes, two at least? For many such arrays each is
 * probably a sample. */
bool arrays_may_be_samples(const struct array *a, const struct array *b);

/* Has the group two arrays of one type and shape, of different files, whose names differ by numbers
 * only? They may be parts of one array, or folds, rather than fields of one sample. */
bool array_group_repeats(const struct arrays *arrays, const struct array_group *group,
                         const struct array **ret_one, const struct array **ret_other);

/* Report that the arrays from a to b, n of them, are probably a sample each. name: of what is not
 * shown. 0 or -ENOMEM. */
int arrays_refuse_samples(const struct array *a, const struct array *b, size_t n, const char *name,
                          struct finds *finds);

/* What is known of the n files of a folder, to say what a dataset lacks. */
struct array_sets {
    const struct finds *finds;
    const struct format_setup *setup;
    struct siblings siblings; /* of the files, and of those that cannot be used */
    size_t n;
    size_t left_out;   /* files that were reported before the folder was opened */
    size_t n_left_out; /* and those that siblings has */
};

/* Add what the dataset of a group lacks. 0 or -ENOMEM. */
int array_sets_missing(const struct arrays_source *source, const struct arrays *arrays,
                       const struct array_group *group, struct missing_parts *ret);

static inline void array_sets_release(struct array_sets *sets)
{
    siblings_release(&sets->siblings);
}

/* The name of a set of files of that suffix: "all" where only the suffix, or nothing, is left of
 * it. false: nothing is. */
bool array_set_name(const struct siblings *siblings, size_t set, const char *suffix,
                    char ret[static NAME_MAX + 1]);

/* Do n arrays agree in type, and in the shape of their rows? */
bool arrays_are_alike(struct array *const *a, size_t n);

/* Make a[0] the array of n arrays, one after another: number[i] is that of the file of a[i]. They
 * are parts from then on. 0; -EDOM: type or shape differ; or -ENOMEM. */
int array_join(struct array *const *a, const uint64_t *number, size_t n);

#endif
