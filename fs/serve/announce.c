/* Reports of what becomes known while a mount runs. The kernel learns that a listing has grown;
 * staging learns that a dataset is ready and has the plans of the options. */
#include "fs/log/log.h"
#include "fs/serve/parts.h"

void serve_tell_changed(struct server *s, uint64_t ino)
{
    if (!ino)
        return;
    atomic_store_explicit(&s->changed, now_ns(), memory_order_relaxed);
    fuse_lowlevel_notify_inval_inode(s->session, ino, 0, 0);
}

void serve_note_plan(const struct plan_entry *plan)
{
    AUTO_TEXT struct text note = {0};
    char path[TREE_NAME_SIZE * 4];

    schedule_note(&plan->schedule, &note);
    item_path(plan->item, path, sizeof(path));
    if (note.len && !note.failed)
        log_warning("%s/batches/%s: %s", path, plan->name, note.data);
}

/* A job reads the mix, not also what it is made of. */
void serve_announce(struct server *s, const struct catalog_item *item)
{
    const struct plan_entry *plan;

    if (!item->ds || item->is_mixed || dataset_state(item->ds) != DATASET_READY)
        return;
    while ((plan = tree_unannounced(s->tree, item))) {
        active_plans_announce(s->active_plans, plan);
        serve_note_plan(plan);
    }
    if (s->needs && s->setup.options->n_plans)
        stage_needs_changed(s->setup.stage, false);
}
