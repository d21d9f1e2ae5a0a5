/* The report about a set that lacks an unread file. */
#include "base/scope.h"
#include "base/text.h"
#include "format/core/format.h"

int finds_incomplete(struct finds *finds, const char *name, const struct unread_file *missing)
{
    AUTO_FREE char *reason = NULL;
    AUTO_TEXT struct text t = {0};
    int r;

    text_add(&t,
             "%s: want all of its files, found one that cannot be read now: %s. Mount again when "
             "it can be read; without it other bytes would have the same names",
             name, missing->reason);
    r = text_finish(&t, &reason, NULL);
    return r < 0 ? r : finds->error(finds, name, reason);
}
