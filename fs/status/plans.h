/* The part of the live texts about active plans: how far their readers are, and what was pushed
 * ahead of them. */
#ifndef EPOCHFS_FS_STATUS_PLANS_H
#define EPOCHFS_FS_STATUS_PLANS_H

#include "base/text.h"
#include "fs/drive/active_plans.h"

#define STATUS_PLANS_MOST 8 /* plans shown at most, the most recently read first */

/* Add the members "plans" and "push" of status.json, without a comma at either end. */
void status_plans_json(struct active_plans *active_plans, struct text *t);

/* The same as Prometheus text. */
void status_plans_metrics(struct active_plans *active_plans, struct text *t);

#endif
