#include "base/blob.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/read_context.h"

static _Thread_local char explanation[sizeof(((struct diag *)0)->text)];

int blob_pread(const struct blob *blob, void *buf, size_t len, uint64_t off)
{
    if (off > blob->size || len > blob->size - off)
        return -EINVAL;
    return len ? blob->ops->pread(blob, buf, len, off) : 0;
}

static int say_changed(const struct blob *blob, struct diag *d)
{
    return diag_set(d, -ESTALE,
                    "%s: the file was changed, replaced or removed while mounted; mount again to "
                    "read it as it is now",
                    blob_name(blob));
}

void blob_explain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(explanation, sizeof(explanation), format, args);
    va_end(args);
}

int blob_read(const struct blob *blob, void *buf, size_t len, uint64_t off, struct diag *d)
{
    int r;

    explanation[0] = '\0';
    r = blob_pread(blob, buf, len, off);
    if (r == -ESTALE)
        return say_changed(blob, d);
    if (r == -EAGAIN) /* nothing has failed */
        return r;
    if (r < 0 && *explanation)
        return diag_set(d, r, "%s", explanation);
    return r < 0 ? diag_set(d, r, "%s: %zu bytes at %llu: %s", blob_name(blob), len,
                            (unsigned long long)off, strerror(-r))
                 : 0;
}

static bool are_inside(const struct blob *blob, const struct blob_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!pieces[i].len || pieces[i].off > blob->size ||
            pieces[i].len > blob->size - pieces[i].off)
            return false;
    return true;
}

int blob_read_many(const struct blob *blob, const struct blob_piece *pieces, size_t n,
                   struct diag *d)
{
    int all = 0;

    if (n > 1 && blob->ops->pread_many && are_inside(blob, pieces, n) &&
        blob->ops->pread_many(blob, pieces, n) == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!missing_go_on(blob_read(blob, pieces[i].buf, pieces[i].len, pieces[i].off, d), &all))
            break;
    return all;
}

int blob_verify(const struct blob *blob, struct diag *d)
{
    int r = blob_check(blob);

    return r == -ESTALE ? say_changed(blob, d) : r;
}

void blob_done(const struct blob *blob)
{
    if (blob->ops->done)
        blob->ops->done(blob);
}

bool blob_may_pass(int r)
{
    static const int for_good[] = {EBADMSG, EINVAL, ENODATA,      ENOENT, ENOTDIR, ELOOP,
                                   EXDEV,   EDOM,   ENAMETOOLONG, EFBIG,  E2BIG,   EOVERFLOW};

    for (size_t i = 0; i < sizeof(for_good) / sizeof(for_good[0]); i++)
        if (r == -for_good[i])
            return false;
    return r < 0;
}
