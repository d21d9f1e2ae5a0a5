/* What is missing although somebody may look for it: names that are no plans, and files of batches
 * whose samples cannot be one array. Status names the latest. */
#include "base/read_context.h"
#include "fs/serve/parts.h"

#include <errno.h>
#include <string.h>

#include "fs/log/log.h"

/* A user who mistypes a plan sees only ENOENT, so the reason is logged as a warning. Programs look
 * for many other names everywhere; those are no plans, and are logged for debugging. */
bool refused_name(struct server *s, const struct node *parent, const char *name, int error,
                  const struct diag *reason)
{
    AUTO_TEXT struct text t = {0};
    char path[TREE_NAME_SIZE * 4];
    bool is_new, is_meant = *name != '.' && (parent->type == NODE_PLAN || strchr(name, '='));

    item_path(parent->item, path, sizeof(path));
    text_add(&t, "%s/batches/%s%s%s: %s", path, parent->plan ? parent->plan->name : "",
             parent->plan ? "/" : "", name, reason->text);
    if (t.failed)
        return is_meant;
    is_new = is_meant && status_refused(&s->status, t.data);
    if (error == -ENOENT)
        log_line(is_new ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "no such name: %s", t.data);
    else
        log_line(is_new ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG, "%s", t.data);
    return is_meant;
}

void refused_file(struct server *s, const struct node *node, const struct diag *reason)
{
    AUTO_TEXT struct text t = {0};
    char path[NODE_PATH_SIZE], name[KEY_NAME_SIZE];

    node_folder_path(node, path, sizeof(path));
    node_name(node, name);
    text_add(&t, "%s/%s%s: %s", path, name, node->file->suffix, reason->text);
    if (!t.failed)
        status_refused(&s->status, t.data);
}

int refused_in_list(struct read_context *rc, struct server *s, const struct node *node,
                    bool may_end)
{
    struct diag d = DIAG_INIT;
    int r;

    if (node->type != NODE_BATCH || !file_kind_is_mixed(node->item->ds, node->file))
        return 0;
    /* Each walk may be short, and yet all of them together long. */
    if (may_end && read_cancelled(rc))
        return -EINTR;
    r = view_is_mixed(rc, s->open_files, node, &d);
    if (r > 0)
        refused_file(s, node, &d);
    return r;
}
