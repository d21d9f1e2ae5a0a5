#include "cache/disk/home.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"

#define ENTRY_FIRST ((size_t)1 << 10)
#define ENTRY_MOST  ((size_t)1 << 20) /* longer than any entry of a user */

static bool fits(const char *folder, const char *name, char *ret, size_t capacity)
{
    int n = snprintf(ret, capacity, "%s%s", folder, name);

    return n >= 0 && (size_t)n < capacity;
}

bool home_path(const char *name, char *ret, size_t capacity)
{
    const char *home = getenv("HOME");

    if (home && *home)
        return fits(home, name, ret, capacity);
    for (size_t size = ENTRY_FIRST; size <= ENTRY_MOST; size *= 4) {
        AUTO_FREE char *text = malloc(size);
        struct passwd entry, *found = NULL;
        int r = text ? getpwuid_r(geteuid(), &entry, text, size, &found) : ENOMEM;

        if (r != ERANGE)
            return r == 0 && found && *found->pw_dir && fits(found->pw_dir, name, ret, capacity);
    }
    return false;
}
