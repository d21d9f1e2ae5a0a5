/* What the commands share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/scope.h"
#include "fs/catalog.h"
#include "fs/commands.h"
#include "fs/options.h"

int fail(int code, const char *format, ...)
{
    va_list args;

    fputs("epochfs: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

/* Every source file keeps a descriptor open. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int open_catalog(const char *spec, const struct options *options, struct source **ret_source,
                 struct catalog *ret_catalog, struct diag *d)
{
    AUTO_SOURCE struct source *source = NULL;
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    struct source_options how;
    char unpacked[4096];
    int r;

    if (cache_folder_init(&cache, options->cache) < 0)
        return EXIT_CACHE;
    raise_file_limit();
    source_options_init(&how, &cache);
    how.stages_local = options->cache != NULL;
    r = source_open(spec, &how, &source, d);
    if (r < 0)
        return EXIT_SOURCE;
    if (options->cache && cache_folder_sub(&cache, "unpacked", unpacked, sizeof(unpacked), d) < 0)
        return EXIT_CACHE;
    r = catalog_open(source, options, ret_catalog, d);
    if (r < 0) {
        diag_set(d, r, "%s: %s", spec, strerror(-r));
        return EXIT_SOURCE;
    }
    *ret_source = TAKE_PTR(source);
    return EXIT_DONE;
}
