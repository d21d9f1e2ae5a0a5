/* Names that are no plans although a program may look for them. Status names the latest. */
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
    is_new = is_meant && status_refused(&s->engine.status, t.data);
    if (error == -ENOENT)
        log_line(is_new ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "no such name: %s", t.data);
    else
        log_line(is_new ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG, "%s", t.data);
    return is_meant;
}
