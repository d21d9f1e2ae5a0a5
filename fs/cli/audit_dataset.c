#include "fs/cli/audit_dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/cli/status_values.h"

int audit_read_text(const char *path, char *ret, size_t capacity)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, capacity - 1);

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

static bool has_dataset(const char *folder)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/dataset.json", folder) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

/* Find the datasets of a mount, one or two levels deep; names gets them with spaces between. */
static unsigned find_datasets(const char *folder, unsigned depth, char ret[static PATH_MAX],
                              struct text *names)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[PATH_MAX];

        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path))
            continue;
        if (has_dataset(path)) {
            n++;
            text_add(names, "%s%s", names->len ? " " : "", path);
            snprintf(ret, PATH_MAX, "%s", path);
        } else if (depth) {
            n += find_datasets(path, depth - 1, ret, names);
        }
    }
    if (dir)
        closedir(dir);
    return n;
}

int audit_dataset_find(const char *mountpoint, uint64_t batch, struct audit_dataset *ret)
{
    static char text[1 << 20];
    AUTO_JSON json_t *json = NULL;
    AUTO_TEXT struct text names = {0};
    char path[PATH_MAX + 32];
    struct stat st;
    unsigned n = 1;
    int r;

    if (stat(mountpoint, &st) < 0)
        return fail(EXIT_MOUNT, "%s: %s", mountpoint,
                    errno == ENOTCONN ? "its daemon has died; `epochfs umount` it"
                                      : strerror(errno));
    if (has_dataset(mountpoint))
        snprintf(ret->folder, sizeof(ret->folder), "%s", mountpoint);
    else
        n = find_datasets(mountpoint, 2, ret->folder, &names);
    if (n != 1)
        return fail(EXIT_USAGE, "%s: expected the folder of one dataset, got %u%s%s", mountpoint, n,
                    n ? ": " : "", n ? names.data : "");
    snprintf(path, sizeof(path), "%s/dataset.json", ret->folder);
    r = audit_read_text(path, text, sizeof(text));
    if (r == 0)
        json = status_parse(text);
    if (r == 0 && !status_value(json, "samples"))
        r = -EBADMSG;
    if (r < 0)
        return fail(EXIT_MOUNT, "%s: expected the description of a dataset: %s", path,
                    strerror(-r));
    if (!status_string(json, "label", ret->label, sizeof(ret->label)))
        snprintf(ret->label, sizeof(ret->label), "label");
    ret->samples = status_number(json, "samples");
    r = audit_mix_read(json, ret->folder, ret->samples, batch, ret->mix);
    return r < 0 ? fail(EXIT_MOUNT, "%s: the description of the mix: %s", path, strerror(-r)) : -1;
}
