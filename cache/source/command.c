/* The output of a shell command as a source: one file, whose bytes the opener of the mount makes
 * (base/opener.h). Paths in it are relative to the folder where the program was started. */
#include <errno.h>
#include <string.h>

#include "base/opener.h"
#include "cache/source/source.h"
#include "cache/source/within.h"

#define WAIT_MS 100

static int command_make(struct source *source, const char *command,
                        const struct source_options *options, struct diag *d)
{
    (void)options;
    (void)d;
    source->command = strdup(command);
    source->root = strdup(".");
    source->only_file = strdup("output");
    if (!source->command || !source->root || !source->only_file ||
        known_add(&source->known, source->only_file, NULL) < 0)
        return -ENOMEM;
    return roots_add(&source->roots, source->root);
}

static int command_open(const struct source *source, const struct source_entry *entry,
                        struct blob **ret_blob, struct diag *d)
{
    struct opener_run *run = NULL;
    int r = -EAGAIN;

    (void)entry;
    if (!source->opener)
        return diag_set(d, -EOPNOTSUPP, "%s |: expected a file, got a command", source->command);
    while (r == -EAGAIN)
        r = opener_start(source->opener, source->command, &run, d);
    while (r == 0)
        r = opener_poll(source->opener, run, WAIT_MS, ret_blob, d);
    opener_stop(source->opener, run);
    return r < 0 ? r : 0;
}

const struct remote remote_command = {
    .scheme = "command:",
    .ordered = true,
    .make = command_make,
    .open = command_open,
};
