#include "format/files/claim/lookup.h"

#include <limits.h>
#include <string.h>

bool lookup_is_below(const char *path, size_t len)
{
    if (!len || *path == '/' || memchr(path, '\0', len) || memmem(path, len, "://", 3))
        return false;
    for (const char *p = path; p < path + len;) {
        const char *slash = memchr(p, '/', (size_t)(path + len - p));
        size_t n = (size_t)((slash ? slash : path + len) - p);

        if (n == 2 && !memcmp(p, "..", 2))
            return false;
        p += n + 1;
    }
    return true;
}

size_t lookup_path(const struct members *m, const char *folder, const char *path)
{
    char full[PATH_MAX];
    size_t len = strlen(folder), name = SIZE_MAX;

    if (len + strlen(path) + 2 > sizeof(full))
        return m->n;
    memcpy(full, folder, len);
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n && !(n == 1 && *path == '.')) {
            full[len] = '/';
            len += len > 0;
            name = len;
            memcpy(full + len, path, n);
            len += n;
        }
        path += n + (path[n] == '/');
    }
    full[len] = '\0';
    return name == SIZE_MAX ? m->n : members_lookup(m, full, name - (name > 0), full + name);
}

size_t lookup_end(const struct members *m, const char *const *folder, size_t n, const char *path)
{
    size_t found = m->n;

    for (; found == m->n && *path; path += strcspn(path, "/"), path += *path == '/')
        for (size_t i = 0; i < n && found == m->n; i++)
            found = lookup_path(m, folder[i], path);
    return found;
}

size_t manifest_find(const struct members *m, const char *root, const char *folder,
                     const char *source)
{
    size_t found = m->n;

    if (*source != '/' && !strstr(source, "://"))
        found = lookup_path(m, folder, source);
    return found < m->n ? found : lookup_end(m, &root, 1, source);
}
