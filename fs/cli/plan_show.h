/* What `epochfs plan` finds out, and how it is shown. */
#ifndef EPOCHFS_FS_CLI_PLAN_SHOW_H
#define EPOCHFS_FS_CLI_PLAN_SHOW_H

#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/cli/plan_nodes.h"
#include "fs/cli/progress.h"
#include "fs/plan/forecast.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/order.h"
#include "fs/tree/tree.h"

struct plan_call {
    bool json;
    bool dry_run;   /* fetch nothing to measure the rate */
    uint64_t rate;  /* 0: not given */
    double compute; /* < 0: not given */
    uint64_t epochs;
    struct plan_nodes nodes;
    const char *source;
};

enum rate_from { RATE_UNKNOWN, RATE_GIVEN, RATE_OPTION, RATE_MEASURED };

/* What is the same for all plans. */
struct planning {
    const struct plan_call *call;
    const struct options *options;
    struct opened opened;
    char shown[PATH_MAX]; /* SOURCE */
    struct stage *stage;  /* NULL: it is read in place */
    /* For a stage: */
    uint64_t bytes, here; /* of the source */
    uint64_t used, limit; /* of the cache folder */
    uint64_t unused;      /* bytes in it that make place */
    uint64_t disk_free;
    uint64_t capacity; /* bytes that the cache can take more */
    uint64_t rate;     /* bytes per second; 0: RATE_UNKNOWN */
    enum rate_from rate_from;
    uint64_t measured; /* bytes */
    double measured_s;
};

/* One plan of one dataset. */
struct planned {
    const struct planning *all;
    const struct catalog_item *item;
    const struct plan *plan;
    char name[PLAN_NAME_SIZE];
    struct schedule schedule;
    struct forecast_task task;
    struct forecast f;
    struct length_fill fill; /* of epoch 0, of a plan by length */
};

/* The source and its cache, and each plan, as lines on stdout. is_default: no -o plan= was given.
 */
void plan_print_source(const struct planning *p);
void plan_print(const struct planned *x, bool is_default);

/* The same as members of the JSON text; that of a plan is not closed yet. */
void plan_json_cache(const struct planning *p, struct text *t);
void plan_json(struct text *t, const struct planned *x);

/* Parts of these texts; ", " precedes a member of JSON. NAN is "not known" and null. */
void plan_print_label(const char *label);
const char *plan_shown_time(double s, char ret[static HUMAN_SIZE]);
const char *plan_shown_bytes(double bytes, char ret[static HUMAN_SIZE]);
void plan_json_seconds(struct text *t, const char *name, double v);
void plan_json_bytes(struct text *t, const char *name, double v);

#endif
