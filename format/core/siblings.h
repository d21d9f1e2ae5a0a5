/* Siblings: files of one folder whose names differ by a number only, such as emb_0.npy and
 * emb_1.npy, or t-00000-of-00002 and t-00001-of-00002. They are parts of one set.
 *
 * For several numbers in a name the last one counts that another name differs by. In <n>-of-<N> it
 * is n, and N names the set: files of another N are of another set. Names that differ by a range,
 * such as emb-0-1000.npy and emb-1000-2000.npy, are those of siblings if ranges follow each other.
 * Folds are no parts: each is a dataset (fold1, fold2). A number has at most 18 digits. */
#ifndef EPOCHFS_FORMAT_CORE_SIBLINGS_H
#define EPOCHFS_FORMAT_CORE_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"
#include "format/core/notes.h"

struct sibling {
    size_t file;       /* its number among the names */
    size_t at, digits; /* where its own number is in the name */
    uint64_t number;
    uint64_t total; /* N of <n>-of-<N>; 0: the name has none */
    uint64_t end;   /* of a range <number>-<end>, whose digits and joint `digits` counts; 0: none */
};

struct sibling_set {
    size_t first, n; /* of member[], in the order of their numbers */
    uint64_t total;  /* as in struct sibling */
};

/* Starts as {0}. */
struct siblings {
    const char **name;       /* [names] owned, the names themselves are not */
    struct sibling *member;  /* owned */
    struct sibling_set *set; /* [n] in the order of their names; owned */
    size_t n;
    size_t *set_of; /* [names] the number of its set, from 1; 0: it has no sibling; owned */
};

/* Find the sets of n different names. A set has at least two members, or one of <n>-of-<N>. ret
 * uses the names. 0 or -ENOMEM. O(n log n). */
int siblings_find(const char *const *name, size_t n, struct siblings *ret);
void siblings_release(struct siblings *siblings);
#define AUTO_SIBLINGS AUTO(siblings_release)

/* Are two different names those of siblings? */
bool are_siblings(const char *a, const char *b);

/* The name of a set: what its members' names have in common, without "-of-<N>" and what joins the
 * number to the name. false: nothing is left, or size is too small. */
bool sibling_set_name(const struct siblings *siblings, size_t set, char *ret, size_t size);

/* Is there a set of the same name, but of another <N>? Then both are the whole, cut in two ways.
 * Returns its number, or `set` itself. */
size_t sibling_set_other(const struct siblings *siblings, size_t set);

/* Add the name that the set's member of that number would have. 0 or -ENOMEM. */
int sibling_set_lacks(const struct siblings *siblings, size_t set, uint64_t number,
                      const char *reason, struct missing_parts *ret);

/* Add the names of members that a set lacks: those up to <N>; without <N>, those between others,
 * if numbers begin with 0 or 1 and at least as many exist. exists(ctx, name): is there such a
 * file all the same? Then it is not added. NULL: there is none. 0 or -ENOMEM. */
int sibling_set_missing(const struct siblings *siblings, size_t set,
                        bool (*exists)(const void *ctx, const char *name), const void *ctx,
                        struct missing_parts *ret);

#endif
