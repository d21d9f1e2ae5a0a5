#include "fs/mounts.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

int mounts_real_path(const char *path, char ret[static PATH_MAX])
{
    AUTO_FREE char *for_dir = strdup(path);
    AUTO_FREE char *for_base = strdup(path);
    char folder[PATH_MAX];
    const char *base;

    if (realpath(path, ret))
        return 0;
    if (errno != ENOTCONN || !for_dir || !for_base)
        return -errno;
    base = basename(for_base);
    if (!strcmp(base, ".") || !strcmp(base, "..") || !strcmp(base, "/"))
        return -ENOTCONN;
    if (!realpath(dirname(for_dir), folder))
        return -errno;
    if (snprintf(ret, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", base) >= PATH_MAX)
        return -ENAMETOOLONG;
    return 0;
}

/* "\040" in mountinfo is a blank. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

bool mounts_find(const char *path, struct mount_entry *ret)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (mounts && getline(&line, &room, mounts) > 0) {
        const char *type = strstr(line, " - ");
        struct mount_entry entry;
        char where[PATH_MAX];

        if (!type || sscanf(line, "%*s %*s %u:%u %*s %4095s", &entry.device_major,
                            &entry.device_minor, where) != 3)
            continue;
        unescape(where);
        if (strcmp(where, path) != 0)
            continue;
        found = !strncmp(type + 3, "fuse.epochfs ", 13); /* later mounts lie on top */
        if (found && ret)
            *ret = entry;
    }
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}
