/* The folders with pictures in one folder, and what they are to each other. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SIBLINGS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SIBLINGS_H

#include "format/files/claim/parts.h"

/* How many siblings are in a folder, how many of them have pictures themselves, how many of these
 * also deeper, and how many have a word for pictures in their names: those are no classes. */
struct siblings {
    uint32_t folder; /* that they are in */
    uint32_t first;
    size_t n, direct, both, named;
};

struct siblings siblings_of(const struct search *s, uint32_t folder);

/* Are two folders in one called by different splits? */
bool siblings_have_two_splits(const struct search *s, uint32_t folder);

/* Pictures are deeper only: do names recur in the folders? */
enum siblings_deeper { DEEPER_CLASSES, DEEPER_DATASETS, DEEPER_LETTERS, DEEPER_MIXED };
enum siblings_deeper siblings_judge_deeper(const struct search *s, const struct siblings *all);

/* Have two folders pictures with the same names, whatever else is in them? */
bool siblings_have_same_names(const struct search *s, uint32_t a, uint32_t b);

/* Are some folders datasets, or targets of other folders' pictures, and not classes? One is enough:
 * - Some have no pictures directly in them, and one has splits or classes in it, or a role's name.
 * - Two have the names of a pair. Their files belong together, or their pictures have equal names.
 * - There are two, and one name is the other with a separator and a number. */
bool siblings_have_roles(const struct search *s, const struct siblings *all);

#endif
