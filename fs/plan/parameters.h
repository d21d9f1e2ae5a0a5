/* The parameters of plans: one entry each. fs/plan/plan.c parses and writes names by this table,
 * and fs/tree writes the help of a mount from it. */
#ifndef EPOCHFS_FS_PLAN_PARAMETERS_H
#define EPOCHFS_FS_PLAN_PARAMETERS_H

#include "fs/plan/plan.h"

struct plan_parameter {
    const char *word;
    const char *syntax;   /* of the value, as the help shows it */
    const char *expected; /* what the value must be, for messages */
    const char *help;     /* what it does: a line of README.txt of the mount */
    const char *foreign;  /* what other programs call it, see value_names(); NULL: nothing */
    const char *needs;    /* the word of a parameter that must be given, too; NULL: none */
    bool is_required;
    /* Set the parameter in plan. False: value does not have the form. */
    bool (*parse)(struct plan *plan, const char *value, size_t len);
    /* Write the value as snprintf() does. 0: it has its default, so canonical names leave it out.
     */
    int (*print)(const struct plan *plan, char *buf, size_t capacity);
};

/* In canonical order, the required one first. */
extern const struct plan_parameter plan_parameters[];
extern const unsigned n_plan_parameters; /* at most 32 */

#endif
