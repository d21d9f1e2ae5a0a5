#include "fs/engine/engine.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/processors.h"
#include "base/read_context.h"
#include "fs/tree/pages.h"

/* ---- making ---- */

/* A job reads the mix, or the dataset of all shards, not also what that is made of. */
static void engine_announce(struct engine *e, const struct catalog_item *item)
{
    const struct plan_entry *plan;

    if (!item->ds || item->is_part || dataset_state(item->ds) != DATASET_READY)
        return;
    while ((plan = tree_unannounced(e->tree, item))) {
        active_plans_announce(e->active_plans, plan);
        if (plan->schedule.cuts) /* for the preparing thread, which calls this or begins later */
            plan->schedule.cuts->ops->ask(plan->schedule.cuts, 0);
        engine_note_plan(e, plan);
    }
    if (e->setup.stage && e->setup.options->n_plans)
        stage_needs_changed(e->setup.stage, false);
}

/* Make the active plans, and the forecast that reports their needs to the stage. */
static int engine_make_active_plans(struct engine *e)
{
    const struct options *o = e->setup.options;
    const bool once = o->source.stage.keep == STAGE_ONCE;
    const struct active_plans_options options = {
        .ahead = o->ahead,
        .drops = once || o->reads_once,
        .processors = processors_count(),
        /* Used bytes are fetched again only for an epoch that is read, or was announced. */
        .last_epoch = once ? max_u64(o->epochs, 1) - 1 : UINT64_MAX,
        .clock = e->setup.clock,
    };
    int r = active_plans_new(&options, &e->active_plans);

    if (r == 0 && (e->setup.stage || o->ahead))
        r = needs_new(e->active_plans, e->setup.catalog, e->setup.clock, &e->needs);
    if (r < 0)
        return r;
    e->status.active_plans = e->active_plans;
    if (e->setup.stage)
        stage_set_needs(e->setup.stage, needs_for_stage(e->needs));
    for (size_t i = 0; i < e->setup.catalog->n; i++)
        engine_announce(e, &e->setup.catalog->item[i]);
    return 0;
}

static int engine_make_tree(struct engine *e, struct diag *d)
{
    const struct engine_setup *setup = &e->setup;
    const struct tree_options options = {
        .plan = setup->options->plan,
        .n_plans = setup->options->n_plans,
        .epochs = setup->options->epochs,
    };
    char *readme = page_readme(setup->catalog, setup->source, setup->mountpoint);
    int r = readme ? tree_new(setup->catalog, &options, readme, page_item, &e->tree) : -ENOMEM;

    if (r == 0)
        r = open_files_new(setup->mountpoint, &e->open_files);
    return r < 0 ? diag_set(d, r, "cannot make the tree: %s", strerror(-r)) : 0;
}

/* ---- what the preparing thread reports ---- */

static void engine_item_noted(void *ctx, enum log_level level, const char *text)
{
    struct engine *e = ctx;

    if (level == LOG_LEVEL_ERROR)
        status_read_error(&e->status, text);
    e->events->note(e->events->ctx, level, text);
}

static void engine_item_opened(void *ctx, const struct catalog_item *item)
{
    struct engine *e = ctx;

    if (e->setup.options->n_plans)
        engine_grown(e, tree_batches(e->tree, item));
    engine_grown(e, tree_grows(e->tree, item));
    engine_announce(e, item);
}

static void engine_item_answer(void *ctx, const struct catalog_item *item, int error,
                               const struct diag *reason)
{
    struct engine *e = ctx;

    e->events->answer(e->events->ctx, item, error, reason);
}

int engine_init(struct engine *e, const struct engine_setup *setup,
                const struct engine_events *events, struct diag *d)
{
    int r;

    e->setup = *setup;
    e->events = events;
    e->preparer_events = (struct preparer_events){.note = engine_item_noted,
                                                  .opened = engine_item_opened,
                                                  .answer = engine_item_answer,
                                                  .ctx = e};
    status_init(&e->status);
    e->status.catalog = setup->catalog;
    e->status.pictures = &setup->catalog->tools->counts;
    e->status.source = setup->source;
    e->status.mountpoint = setup->mountpoint;
    e->status.stage = setup->stage;
    e->status.clock = setup->clock;
    e->status.started = now_ns() / 1000000000;
    atomic_store(&e->changed, now_ns());
    r = engine_make_tree(e, d);
    if (r == 0)
        r = preparer_init(&e->preparer, setup->catalog, e->tree, &e->preparer_events);
    if (r == 0)
        r = engine_make_active_plans(e);
    return r;
}

void engine_release(struct engine *e)
{
    if (!e->setup.catalog)
        return;
    if (e->setup.stage) /* the stage is freed later, and asks until then */
        stage_set_needs(e->setup.stage, NULL);
    needs_free(e->needs);
    active_plans_free(e->active_plans);
    preparer_release(&e->preparer);
    open_files_free(e->open_files);
    tree_free(e->tree);
    status_release(&e->status);
}

/* ---- reports ---- */

void engine_grown(struct engine *e, uint64_t ino)
{
    if (!ino)
        return;
    atomic_store_explicit(&e->changed, now_ns(), memory_order_relaxed);
    e->events->grown(e->events->ctx, ino);
}

void engine_note_plan(struct engine *e, const struct plan_entry *plan)
{
    AUTO_TEXT struct text note = {0}, line = {0};
    char path[TREE_NAME_SIZE * 4];

    schedule_note(&plan->schedule, &note);
    if (!note.len || note.failed)
        return;
    item_path(plan->item, path, sizeof(path));
    text_add(&line, "%s/batches/%s: %s", path, plan->name, note.data);
    if (!line.failed)
        e->events->note(e->events->ctx, LOG_LEVEL_WARNING, line.data);
}

/* ---- reads ---- */

/* Count the batches of the epoch that is read, and, at its end, those of the next one. */
static void engine_count_batches(struct engine *e, const struct node *node)
{
    const struct batch_cuts *cuts = node->plan->schedule.cuts;
    uint64_t batches, next = node->epoch + node->plan->plan.seeded;
    bool is_counted = schedule_batches(&node->plan->schedule, node->epoch, &batches);

    if (is_counted && (next == node->epoch || node->number < batches - batches / 10))
        return;
    if (cuts->ops->ask(cuts, is_counted ? next : node->epoch))
        preparer_ask(&e->preparer, node->item);
}

bool engine_read_begins(struct engine *e, const struct node *node, uint64_t end)
{
    unsigned what;

    if (node->type != NODE_BATCH && node->type != NODE_SAMPLE)
        return false;
    if (node->type == NODE_BATCH && node->plan->schedule.cuts)
        engine_count_batches(e, node);
    what = active_plans_read(e->active_plans, node, end);
    if (what && e->setup.stage)
        stage_needs_changed(e->setup.stage, what & ACTIVE_JUMPED);
    return what;
}

/* Is it a file of the last batch or sample? */
static bool engine_is_last(const struct node *node)
{
    return node->number + 1 == node_units(node);
}

void engine_read_ends(struct engine *e, const struct node *node, uint64_t off, size_t n,
                      size_t asked)
{
    uint64_t size = n < asked ? off + n : UINT64_MAX;

    if ((node->type != NODE_BATCH && node->type != NODE_SAMPLE) ||
        (!e->needs && !engine_is_last(node)))
        return;
    if (n == asked && view_size_is_near(node) &&
        view_size(READ_WAITS, e->open_files, node, &size, NULL) < 0)
        return;
    if (active_plans_given(e->active_plans, node, off, n, size) && e->setup.stage &&
        e->setup.options->source.stage.keep == STAGE_ONCE)
        stage_needs_changed(e->setup.stage, false);
}
