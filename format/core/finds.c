/* The report about a set that lacks an unread file. */
#include <errno.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/core/format.h"

/* Does it pass without anybody doing something? A server that fails may answer again. */
static bool passes(int error)
{
    return error == -EREMOTEIO || error == -ETIMEDOUT || error == -EAGAIN || error == -EINTR;
}

char *incomplete_reason(const char *name, int error, const char *why)
{
    AUTO_TEXT struct text t = {0};
    char *ret;

    text_add(&t, "%s: cannot be shown without a file that cannot be read: %s. %s", name, why,
             passes(error) ? "Mount again when it can be read"
                           : "Make it readable, or remove it from SOURCE, and mount again");
    return text_finish(&t, &ret, NULL) < 0 ? NULL : ret;
}

int finds_incomplete(struct finds *finds, const char *name, const struct unread_file *missing)
{
    AUTO_FREE char *reason = incomplete_reason(name, missing->error, missing->reason);

    return reason ? finds->error(finds, name, reason) : -ENOMEM;
}
