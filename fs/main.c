/* epochfs: the command line. */
#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/scope.h"
#include "fs/catalog.h"
#include "fs/commands.h"
#include "fs/log.h"
#include "fs/options.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"mount", command_mount, "mount  [-f] [-o OPTIONS] SOURCE MOUNTPOINT"},
    {"umount", command_umount, "umount MOUNTPOINT"},
    {"info", command_info, "info   [--json] [--check] [-o OPTIONS] SOURCE"},
};

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
    struct cache_folder cache = {0};
    char unpacked[4096];
    int r = source_open(spec, &source, d);

    if (r < 0)
        return EXIT_SOURCE;
    raise_file_limit();
    if (cache_folder_init(&cache, options->cache) < 0)
        return EXIT_CACHE;
    if (options->cache && cache_folder_sub(&cache, "unpacked", unpacked, sizeof(unpacked), d) < 0) {
        cache_folder_release(&cache);
        return EXIT_CACHE;
    }
    r = catalog_open(source, &cache, &options->format, ret_catalog, d);
    cache_folder_release(&cache);
    if (r < 0) {
        diag_set(d, r, "%s: %s", spec, strerror(-r));
        return EXIT_SOURCE;
    }
    *ret_source = TAKE_PTR(source);
    return EXIT_DONE;
}

static void print_help(FILE *out)
{
    fputs("epochfs mounts machine-learning datasets as files: one per sample, one per batch, in\n"
          "a reproducible shuffled order that stands in the path.\n\n",
          out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "%s epochfs %s\n", i ? "      " : "usage:", commands[i].help);
    fputs("       epochfs --help | --version; epochfs COMMAND --help\n\n"
          "SOURCE is a folder or a file with IDX data (MNIST and its relatives), also packed with\n"
          "gzip. Read MOUNTPOINT/README.txt next.\n",
          out);
}

static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return fail(EXIT_USAGE, "'%s' is not a command; `epochfs --help` lists them", argv[1]);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');

    if (!strcmp(slash ? slash + 1 : argv[0], "mount.epochfs"))
        return command_mount_helper(argc, argv);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("epochfs %s\n", EPOCHFS_VERSION);
        return EXIT_DONE;
    }
    return run_command(argc, argv);
}
