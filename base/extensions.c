#include "base/extensions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The extension by which a file is counted, with its dot. */
static const char *extension(const char *name)
{
    const char *base = base_of(name), *dot = strrchr(base, '.');

    return !dot || dot == base || strlen(dot) >= sizeof(((struct extension_count *)0)->ext) ? ""
                                                                                            : dot;
}

bool extension_has(const struct extension_count *count, const char *name)
{
    return !strcasecmp(count->ext, extension(name));
}

void extensions_add(struct extensions *k, const char *name)
{
    const char *dot = extension(name);
    unsigned i = 0;

    while (i < k->n && !extension_has(&k->count[i], name))
        i++;
    if (i == EXTENSIONS_COUNTED) {
        k->others++;
        return;
    }
    if (i == k->n) {
        k->count[k->n++] = (struct extension_count){.first = base_of(name)};
        snprintf(k->count[i].ext, sizeof(k->count[i].ext), "%s", dot);
    }
    k->count[i].n++;
}

static void extension_show(const struct extension_count *count, bool name, struct text *t)
{
    text_add(t, "%llu %s", (unsigned long long)count->n,
             count->ext[0] ? count->ext : "without an extension");
    if (name && count->n == 1)
        text_add(t, " (%s)", count->first);
    else if (name)
        text_add(t, " (%s and %llu more)", count->first, (unsigned long long)count->n - 1);
}

void extensions_show(struct extensions *k, bool names, struct text *t)
{
    uint64_t others = k->others;

    for (unsigned i = 1; i < k->n; i++) { /* by insertion: equal ones stay in their order */
        struct extension_count moved = k->count[i];
        unsigned at = i;

        for (; at && k->count[at - 1].n < moved.n; at--)
            k->count[at] = k->count[at - 1];
        k->count[at] = moved;
    }
    for (unsigned i = 0; i < k->n; i++)
        if (i < EXTENSIONS_SHOWN) {
            text_add(t, i ? ", " : "");
            extension_show(&k->count[i], names, t);
        } else {
            others += k->count[i].n;
        }
    if (others)
        text_add(t, "%s%llu others", k->n ? ", " : "", (unsigned long long)others);
}
