/* The part of `epochfs plan` about the nodes of a job that are one cache: --nodes= and what goes
 * with it. */
#ifndef EPOCHFS_FS_CLI_PLAN_NODES_H
#define EPOCHFS_FS_CLI_PLAN_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "fs/plan/forecast.h"

struct plan_nodes {
    uint64_t nodes; /* 0: not given */
    uint64_t dead;
    uint64_t node_rate, origin_rate; /* bytes per second */
    uint64_t bytes;                  /* of data that is not looked at; 0: there is a SOURCE */
    bool each;                       /* of such data: each node reads all of it */
};

#define NODES_LEAST 2
#define NODES_MOST  1000000

/* The values of flags as they were given; NULL: not given. */
struct plan_nodes_text {
    const char *nodes, *dead, *node_rate, *origin_rate, *bytes;
};

/* A rate: bytes a second as value_size() takes them, or bits a second as in 10Gbit, 100Mbit. 0, or
 * -EINVAL with the reason in d. */
int plan_nodes_rate(const char *name, const char *value, uint64_t *ret, struct diag *d);

/* Parse the values and check that they go together. source: is there a SOURCE? 0, or -EINVAL with
 * the reason in d. */
int plan_nodes_parse(const struct plan_nodes_text *text, bool each, bool source,
                     struct plan_nodes *ret, struct diag *d);

/* A plan on nodes, as lines on stdout, and as a member of a JSON text. ranks: of the plan. 0, or
 * -EINVAL with the reason in d. */
int plan_nodes_print(const struct plan_nodes *nodes, const struct forecast_task *plan,
                     uint64_t ranks, struct diag *d);
int plan_nodes_json(const struct plan_nodes *nodes, const struct forecast_task *plan,
                    uint64_t ranks, struct text *t, struct diag *d);

/* Print a plan of data of which only the size is known. Exit code of the program. */
int plan_nodes_alone(const struct plan_nodes *nodes, uint64_t epochs, bool json);

#endif
