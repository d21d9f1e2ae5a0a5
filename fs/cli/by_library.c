#include "fs/cli/by_library.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/life/privileges.h"

#define PIECE ((size_t)4 << 20)

int by_library_fail(const struct epochfs_error *error)
{
    return fail(error->code == ENOMEM ? EXIT_SYSTEM : EXIT_SOURCE, "%s", error->message);
}

struct epochfs *by_library_open(const char *source, const struct text *options, int *ret_code)
{
    struct epochfs_error error = {.size = sizeof(error)};
    struct epochfs *fs;

    privileges_hide_memory(); /* it may need credentials */
    fs = epochfs_open(source, options->data ? options->data : "", &error);
    if (fs)
        return fs;
    by_library_fail(&error);
    *ret_code = error.code == ENOMEM          ? EXIT_SYSTEM
                : error.code == EINVAL        ? EXIT_USAGE
                : is_cache_error(-error.code) ? EXIT_CACHE
                                              : EXIT_SOURCE;
    return NULL;
}

static int by_library_write(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

int by_library_copy(struct epochfs *fs, const char *path, int fd, struct epochfs_error *error)
{
    AUTO_FREE char *piece = malloc(PIECE);
    uint64_t off = 0;
    int64_t n;
    int r = piece ? 0 : -ENOMEM;

    error->code = 0;
    while (r == 0 && (n = epochfs_read(fs, path, off, piece, PIECE, error)) != 0) {
        if (n < 0)
            return -1;
        r = by_library_write(fd, piece, (size_t)n);
        off += (uint64_t)n;
    }
    return r;
}
