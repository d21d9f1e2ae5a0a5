/* The part of the live texts that is about active plans: how far their readers are, and what was
 * pushed ahead of them.
 *
 * How many there are changes, so both texts have blanks behind them up to what the longest ones
 * take: their lengths are the same at every look. */
#ifndef EPOCHFS_FS_STATUS_PLANS_H
#define EPOCHFS_FS_STATUS_PLANS_H

#include "base/text.h"
#include "fs/active.h"

#define STATUS_PLANS_MOST 8 /* that are shown, the one read last first */

/* Bytes that the plans take in each text. */
struct status_plans_room {
    size_t json, metrics;
};

/* It follows from the names of the datasets. Not to be asked for at every look: there may be many.
 * json 0: no memory. */
struct status_plans_room status_plans_room(const struct catalog *catalog);

/* Add the members "plans" and "push" of status.json, without a comma at either end. */
void status_plans_json(struct actives *actives, const struct status_plans_room *room,
                       struct text *t);

/* The same as Prometheus text. */
void status_plans_metrics(struct actives *actives, const struct status_plans_room *room,
                          struct text *t);

#endif
