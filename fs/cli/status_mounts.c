#include "fs/cli/status_mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/life/mounts.h"

#define ASK_MS 1000 /* for a mount's answer */

struct listing {
    bool json;
    unsigned n;
    struct text text;
};

static const char *status_mounts_state_of(const char *path, const struct mount_entry *mount)
{
    int r = mounts_ask(path, mount, ASK_MS);

    return r == -ENOTCONN ? "dead" : r == -ETIMEDOUT ? "does not answer" : "answers";
}

static void status_mounts_add_row(struct text *t, const char *state, const char *path,
                                  const char *source)
{
    AUTO_TEXT struct text row = {0};

    text_add(&row, "%-16s %-30s %s", state, path, source);
    if (!row.failed) {
        text_plain(row.data, "");
        text_add(t, "%s\n", row.data);
    }
}

static void status_mounts_add_mount(void *ctx, const struct mount_entry *mount, const char *path,
                                    const char *type, const char *source)
{
    struct listing *l = ctx;
    struct mount_entry top;
    const char *state;

    if (!mounts_is_fuse(type) || (geteuid() != 0 && mount->owner != geteuid()) ||
        !mounts_find(path, &top) || top.device_minor != mount->device_minor)
        return; /* of another user, or covered by another mount */
    state = status_mounts_state_of(path, mount);
    if (!l->json) {
        if (!l->n)
            status_mounts_add_row(&l->text, "STATE", "MOUNTPOINT", "SOURCE");
        status_mounts_add_row(&l->text, state, path, source);
    } else {
        text_add(&l->text, "%s\n  {", l->n ? "," : "");
        json_add_text(&l->text, NULL, "mountpoint", path);
        json_add_text(&l->text, NULL, "source", source);
        text_add(&l->text, ", \"state\": \"%s\", \"user\": %u}", state, (unsigned)mount->owner);
    }
    l->n++;
}

int status_mounts(bool json)
{
    struct listing l = {.json = json};
    int code = EXIT_DONE;

    mounts_each(status_mounts_add_mount, &l);
    if (l.text.failed)
        code = fail(EXIT_SYSTEM, "status: %s", strerror(ENOMEM));
    else if (json)
        printf("[%s%s]\n", l.n ? l.text.data : "", l.n ? "\n" : "");
    else
        fputs(l.n ? l.text.data : "no epochfs of this user is mounted\n", stdout);
    text_release(&l.text);
    return code;
}
