#include "base/blob.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/read_context.h"

static int pread_within(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                        uint64_t off, struct diag *d)
{
    if (off > blob->size || len > blob->size - off)
        return -EINVAL;
    return len ? blob->ops->pread(rc, blob, buf, len, off, d) : 0;
}

int blob_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
               uint64_t off)
{
    return pread_within(rc, blob, buf, len, off, NULL);
}

static int blob_say_changed(const struct blob *blob, struct diag *d)
{
    return diag_set(d, -ESTALE,
                    "%s: the file was changed, replaced or removed while mounted; mount again to "
                    "read it as it is now",
                    blob_name(blob));
}

int blob_read(struct read_context *rc, const struct blob *blob, void *buf, size_t len, uint64_t off,
              struct diag *d)
{
    int r = pread_within(rc, blob, buf, len, off, d);

    if (r == -ESTALE)
        return blob_say_changed(blob, d);
    if (r == -EAGAIN) /* nothing has failed */
        return r;
    /* If the blob has set a reason, that one remains. */
    return r < 0 ? diag_set(d, r, "%s: %zu bytes at %llu: %s", blob_name(blob), len,
                            (unsigned long long)off, strerror(-r))
                 : 0;
}

int blob_used(struct read_context *rc, const struct blob *blob, struct diag *d)
{
    return rc && used_note(rc, blob) ? 0 : blob_verify(blob, d);
}

int blob_verify_used(struct read_context *rc, struct diag *d)
{
    const struct blob *used[USED_MAX];
    unsigned n = rc ? used_noted(rc, used) : 0;
    int r = 0;

    for (unsigned i = 0; i < n && r == 0; i++)
        r = blob_verify(used[i], d);
    return r;
}

static bool are_inside(const struct blob *blob, const struct blob_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!pieces[i].len || pieces[i].off > blob->size ||
            pieces[i].len > blob->size - pieces[i].off)
            return false;
    return true;
}

int blob_read_many(struct read_context *rc, const struct blob *blob,
                   const struct blob_piece *pieces, size_t n, struct diag *d)
{
    int all = 0;

    if (n > 1 && blob->ops->pread_many && are_inside(blob, pieces, n)) {
        int r = blob->ops->pread_many(rc, blob, pieces, n);

        if (r == 0 || r == -EAGAIN)
            return r;
    }
    for (size_t i = 0; i < n; i++)
        if (!missing_go_on(rc, blob_read(rc, blob, pieces[i].buf, pieces[i].len, pieces[i].off, d),
                           &all))
            break;
    return all;
}

int blob_verify(const struct blob *blob, struct diag *d)
{
    int r = blob_check(blob);

    return r == -ESTALE ? blob_say_changed(blob, d) : r;
}

int blob_bad(const struct blob *blob, struct diag *d, const char *format, ...)
{
    char text[sizeof(d->text)];
    va_list args;

    if (!d || d->set)
        return -EBADMSG;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return diag_set(d, -EBADMSG, "%s: %s", blob_name(blob), text);
}

int blob_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd, struct diag *d)
{
    int r = -EOPNOTSUPP;

    if (len && blob->ops->open_file && off < blob->size && len <= blob->size - off)
        r = blob->ops->open_file(blob, off, len, ret_fd, d);
    return r == -ESTALE ? blob_say_changed(blob, d) : r;
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
