/* The parameters of plans: one entry each, with all that is said of a parameter outside of the
 * arithmetic (fs/plan/schedule.c). fs/plan/plan.c parses, writes and checks plans by this table. */
#ifndef EPOCHFS_FS_PLAN_PARAMETERS_H
#define EPOCHFS_FS_PLAN_PARAMETERS_H

#include "fs/plan/plan.h"

struct plan_parameter {
    const char *word;
    const char *syntax;   /* of the value, as the help shows it */
    const char *expected; /* what the value must be, for messages */
    const char *help;     /* what it does: a line of README.txt of the mount */
    const char *alias;    /* another word for it; canonical names have `word`. NULL: none */
    const char *foreign;  /* what other programs call it, see value_names(); NULL: nothing */
    const char *needs;    /* the word of a parameter that must be given as well; NULL: none */
    bool is_required;
    bool makes_list; /* it says which samples there are, before they are ordered */
    bool in_sources; /* a source of a mix may have it, */
    bool not_in_mix; /* but a plan of a mix may not */
    /* Set the parameter in plan. False: value does not have the form. */
    bool (*parse)(struct plan *plan, const char *value, size_t len);
    /* Write the value as snprintf() does. 0: it has its default, so canonical names omit it.
     */
    int (*print)(const struct plan *plan, char *buf, size_t capacity);
    /* Does it contradict other parameters of the plan, in which it is? 0, or -EINVAL with the
     * reason in d. NULL: it goes with all. */
    int (*check)(const struct plan *plan, struct diag *d);
};

/* In canonical order, the required one first. */
extern const struct plan_parameter plan_parameters[];
extern const unsigned n_plan_parameters; /* at most 32 */

#endif
