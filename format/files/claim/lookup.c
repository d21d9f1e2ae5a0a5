#include "format/files/claim/lookup.h"

#include <string.h>

#include "base/text.h"

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
    AUTO_TEXT struct text full = {0};
    size_t last = 0, start;

    text_add(&full, "%s", folder);
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n && !(n == 1 && *path == '.')) {
            text_add(&full, "%s%.*s", full.len ? "/" : "", (int)n, path);
            last = n;
        }
        path += n + (path[n] == '/');
    }
    if (full.failed || !last)
        return m->n;
    start = full.len - last;
    return members_lookup(m, full.data, start - (start > 0), full.data + start);
}

size_t manifest_find(const struct members *m, const char *root, const char *folder,
                     const char *source)
{
    size_t found = m->n;

    if (*source != '/' && !strstr(source, "://"))
        found = lookup_path(m, folder, source);
    for (const char *tail = source; found == m->n && *tail;) {
        found = lookup_path(m, root, tail);
        tail += strcspn(tail, "/");
        tail += *tail == '/';
    }
    return found;
}
