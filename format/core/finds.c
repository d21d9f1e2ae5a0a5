/* The reports about a set that lacks files. */
#include <errno.h>

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/core/format.h"
#include "format/core/siblings.h"

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

/* Does a set have one of the first n names? */
static bool has_one_of(const struct siblings *siblings, size_t set, size_t n)
{
    const struct sibling_set *s = &siblings->set[set];

    for (size_t i = 0; i < s->n; i++)
        if (siblings->member[s->first + i].file < n)
            return true;
    return false;
}

int finds_siblings(const struct finds *finds, const char *const *name, size_t n,
                   struct siblings *ret)
{
    AUTO_FREE const char **all = calloc(n + finds->n_left_out + 1, sizeof(*all));

    if (!all)
        return -ENOMEM;
    memcpy(all, name, n * sizeof(*name));
    for (size_t i = 0; i < finds->n_left_out; i++)
        all[n + i] = finds->left_out[i].name;
    return siblings_find(all, n + finds->n_left_out, ret);
}

static bool exists(const void *ctx, const char *name)
{
    const struct finds *finds = ctx;

    return finds->names && folder_names_has(finds->names, name, strlen(name));
}

static const char *left_out_name(const struct left_out_file *file)
{
    return file->packed ? file->packed : file->name;
}

int finds_missing(const struct finds *finds, size_t from, const struct siblings *siblings, size_t n,
                  size_t set, const struct format_setup *setup, struct missing_parts *ret)
{
    size_t first = set == FINDS_ALL ? 0 : set, end = set == FINDS_ALL ? siblings->n : set + 1;
    int r = 0;

    for (size_t i = first; i < end && r == 0; i++) {
        const struct sibling_set *found = &siblings->set[i];

        if (!has_one_of(siblings, i, n))
            continue;
        for (size_t k = 0; k < found->n && r == 0; k++) {
            size_t file = siblings->member[found->first + k].file;
            const struct left_out_file *other = file < n ? NULL : &finds->left_out[file - n];

            if (other && other->reason && (set != FINDS_ALL || file - n < from))
                r = missing_parts_add(ret, left_out_name(other), other->reason);
        }
        if (r == 0 && !setup->is_list)
            r = sibling_set_missing(siblings, i, exists, finds, ret);
    }
    for (size_t i = from; i < finds->n_left_out && set == FINDS_ALL && r == 0; i++)
        if (finds->left_out[i].reason)
            r = missing_parts_add(ret, left_out_name(&finds->left_out[i]),
                                  finds->left_out[i].reason);
    return r;
}
