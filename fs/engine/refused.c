/* Files of batches whose samples cannot be one array. Status names the latest. */
#include <errno.h>

#include "base/read_context.h"
#include "fs/engine/engine.h"

void engine_refused_file(struct engine *e, const struct node *node, const struct diag *reason)
{
    AUTO_TEXT struct text t = {0};
    char path[NODE_PATH_SIZE], name[KEY_NAME_SIZE];

    node_folder_path(node, path, sizeof(path));
    node_name(node, name);
    text_add(&t, "%s/%s%s: %s", path, name, node->file->suffix, reason->text);
    if (!t.failed)
        status_refused(&e->status, t.data);
}

int engine_refused_in_list(struct read_context *rc, struct engine *e, const struct node *node,
                           bool may_end)
{
    struct diag d = DIAG_INIT;
    int r;

    if (node->type != NODE_BATCH || !file_kind_is_mixed(node->item->ds, node->file))
        return 0;
    /* Each walk may be short, and yet all of them together long. */
    if (may_end && read_cancelled(rc))
        return -EINTR;
    r = view_is_mixed(rc, e->open_files, node, &d);
    if (r > 0)
        engine_refused_file(e, node, &d);
    return r;
}
