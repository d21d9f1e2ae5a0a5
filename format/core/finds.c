/* The report about a set that lacks an unread file. */
#include <errno.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/core/format.h"

char *incomplete_reason(const char *name, const char *why)
{
    AUTO_TEXT struct text t = {0};
    char *ret;

    text_add(&t,
             "%s: want all of its files, found one that cannot be read now: %s. Mount again when "
             "it can be read; without it other bytes would have the same names",
             name, why);
    return text_finish(&t, &ret, NULL) < 0 ? NULL : ret;
}

int finds_incomplete(struct finds *finds, const char *name, const struct unread_file *missing)
{
    AUTO_FREE char *reason = incomplete_reason(name, missing->reason);

    return reason ? finds->error(finds, name, reason) : -ENOMEM;
}
