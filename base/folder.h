/* Folders of this machine, read name by name. */
#ifndef EPOCHFS_BASE_FOLDER_H
#define EPOCHFS_BASE_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

static inline void scope_closedir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}
#define AUTO_DIR AUTO(scope_closedir)

/* Open the folder `name`, relative to the open folder `at` (AT_FDCWD: name is a path), to read its
 * entries. A link is refused. The caller closes it; NULL with errno on errors. */
static inline DIR *folder_open(int at, const char *name)
{
    AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        fd = -1; /* its own now */
    return dir;
}

/* The next name, but not "." and ".."; NULL: there is none. */
static inline const char *folder_next(DIR *dir)
{
    const struct dirent *entry;

    do
        entry = readdir(dir);
    while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
    return entry ? entry->d_name : NULL;
}

#endif
