#include "base/kinds.h"

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

    return !dot || dot == base || strlen(dot) >= sizeof(((struct kind_count *)0)->ext) ? "" : dot;
}

bool kind_has(const struct kind_count *kind, const char *name)
{
    return !strcasecmp(kind->ext, extension(name));
}

void kinds_add(struct kinds *k, const char *name)
{
    const char *dot = extension(name);
    unsigned i = 0;

    while (i < k->n && !kind_has(&k->count[i], name))
        i++;
    if (i == KINDS_COUNTED) {
        k->others++;
        return;
    }
    if (i == k->n) {
        k->count[k->n++] = (struct kind_count){.first = base_of(name)};
        snprintf(k->count[i].ext, sizeof(k->count[i].ext), "%s", dot);
    }
    k->count[i].n++;
}

static void extension_show(const struct kind_count *kind, bool name, struct text *t)
{
    text_add(t, "%llu %s", (unsigned long long)kind->n,
             kind->ext[0] ? kind->ext : "without an extension");
    if (name && kind->n == 1)
        text_add(t, " (%s)", kind->first);
    else if (name)
        text_add(t, " (%s and %llu more)", kind->first, (unsigned long long)kind->n - 1);
}

void kinds_show(struct kinds *k, bool names, struct text *t)
{
    uint64_t others = k->others;

    for (unsigned i = 1; i < k->n; i++) { /* by insertion: equal ones stay in their order */
        struct kind_count moved = k->count[i];
        unsigned at = i;

        for (; at && k->count[at - 1].n < moved.n; at--)
            k->count[at] = k->count[at - 1];
        k->count[at] = moved;
    }
    for (unsigned i = 0; i < k->n; i++)
        if (i < KINDS_SHOWN) {
            text_add(t, i ? ", " : "");
            extension_show(&k->count[i], names, t);
        } else {
            others += k->count[i].n;
        }
    if (others)
        text_add(t, "%s%llu others", k->n ? ", " : "", (unsigned long long)others);
}
