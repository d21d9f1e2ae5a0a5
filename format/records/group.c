#include "format/records/group.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DIGITS_MAX 9
#define SHARDS_MAX 1000000 /* of a set; larger numbers are part of a name */

struct shard_name {
    size_t set_len; /* of the name of the set, without the suffix */
    unsigned number, total;
    const char *suffix;
};

/* The decimal number at p; returns its digits, 0: it is none. */
static unsigned digits(const char *p, unsigned *ret)
{
    unsigned n = 0;

    for (*ret = 0; n < DIGITS_MAX && isdigit((unsigned char)p[n]); n++)
        *ret = *ret * 10 + (unsigned)(p[n] - '0');
    return isdigit((unsigned char)p[n]) ? 0 : n;
}

/* By the last part of the name that says so. */
static bool read_name(const char *file, struct shard_name *ret)
{
    static const char of[] = "-of-";
    bool found = false;

    for (const char *p = strstr(file, of); p; p = strstr(p + 1, of)) {
        const char *start = p, *total = p + strlen(of);
        struct shard_name name;
        unsigned n = digits(total, &name.total);

        while (start > file && isdigit((unsigned char)start[-1]))
            start--;
        if (!n || digits(start, &name.number) != (size_t)(p - start) || start - file < 2 ||
            start[-1] != '-' || name.number >= name.total || name.total > SHARDS_MAX)
            continue;
        name.set_len = (size_t)(start - file) - 1;
        name.suffix = total + n;
        *ret = name;
        found = true;
    }
    return found;
}

static bool same_set(const char *a, const struct shard_name *x, const char *b)
{
    struct shard_name y;

    return read_name(b, &y) && x->total == y.total && x->set_len == y.set_len &&
           !memcmp(a, b, x->set_len) && !strcmp(x->suffix, y.suffix);
}

bool group_name(const char *file, char ret[static RECORD_GROUP_SIZE])
{
    struct shard_name name;
    int len;

    if (!read_name(file, &name))
        return false;
    len = snprintf(ret, RECORD_GROUP_SIZE, "%.*s%s", (int)name.set_len, file, name.suffix);
    return len > 0 && len < RECORD_GROUP_SIZE;
}

char *group_missing(const struct source_file *source, size_t n, size_t i)
{
    const char *first = source[i].name;
    struct shard_name name, other;
    AUTO_FREE bool *here = NULL;
    AUTO_TEXT struct text t = {0};
    unsigned missing, least = 0;

    /* Files come in the order of their names, so those of a set follow each other. */
    if (!read_name(first, &name) || (i && same_set(first, &name, source[i - 1].name)))
        return NULL;
    here = calloc(name.total, sizeof(*here));
    if (!here)
        return NULL;
    missing = name.total;
    for (; i < n && same_set(first, &name, source[i].name); i++) {
        read_name(source[i].name, &other);
        missing -= !here[other.number];
        here[other.number] = true;
    }
    while (least < name.total && here[least])
        least++;
    if (!missing)
        return NULL;
    text_add(&t, "%u of %u files of `%.*s%s` are not here, the first is number %u", missing,
             name.total, (int)name.set_len, first, name.suffix, least);
    return t.failed ? NULL : TAKE_PTR(t.data);
}
