/* The text of an index: "v1.1 <samples>" or "v1.2 <samples>", then for each sample a line of its
 * members: extension, offset of the content, size, and in 1.2 the name, which may have spaces. So
 * wherever two numbers follow each other that can be an offset and a size, they are. */
#include "format/tar/archive/hints.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/search.h"
#include "format/tar/archive/header.h"

#define INDEX_MOST (UINT64_C(256) << 20) /* bytes of an index */
#define NEAR       (UINT64_C(32) << 10)  /* bytes between members that are better read */
#define AHEAD      128                   /* headers that are asked for */
#define BEFORE     8192u /* bytes of headers that describe the next member, in front of its own */
#define MISSES     32

bool tar_hints_are_called(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && !strcmp(name + len - 4, ".idx");
}

bool tar_hints_are_in(const char *name, const void *head, size_t len)
{
    return tar_hints_are_called(name) && len > 5 &&
           (!memcmp(head, "v1.1 ", 5) || !memcmp(head, "v1.2 ", 5));
}

size_t tar_hints_stem(const char *shard)
{
    const char *dot = strrchr(shard, '.');

    return dot && dot > shard ? (size_t)(dot - shard) : strlen(shard);
}

bool tar_hints_are_of(const char *name, const char *shard)
{
    size_t len = strlen(name) - 4;

    return (len == tar_hints_stem(shard) || len == strlen(shard)) && !strncmp(name, shard, len);
}

/* The number that a word is; false: it is none. */
static bool tar_hints_read_number(const char *word, size_t len, uint64_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < len; i++)
        if (word[i] < '0' || word[i] > '9' || !checked_mul(v, 10, &v) ||
            !checked_add(v, (uint64_t)(word[i] - '0'), &v))
            return false;
    *ret = v;
    return len > 0;
}

static int tar_hints_parse(const char *text, size_t len, uint64_t size, struct tar_hints *ret)
{
    uint64_t before = 0, number = 0;
    const char *end = text + len;

    for (const char *word = text; word < end;) {
        bool is_number;
        size_t n = 0;

        while (word + n < end && !memchr(" \t\r\n", word[n], 4))
            n++;
        is_number = tar_hints_read_number(word, n, &number);
        if (is_number && before >= TAR_BLOCK && before % TAR_BLOCK == 0 && before < size &&
            number <= size - before) {
            if (array_capacity(&ret->at, ret->n, sizeof(*ret->at)) < 0)
                return -ENOMEM;
            ret->at[ret->n++] = before - TAR_BLOCK;
            number = 0; /* it was a size */
        }
        if (n)
            before = is_number ? number : 0;
        word += n + 1;
    }
    if (ret->n)
        qsort(ret->at, ret->n, sizeof(*ret->at), search_compare);
    return 0;
}

int tar_hints_read(const struct blob *index, uint64_t size, struct tar_hints *ret)
{
    AUTO_FREE char *text = NULL;
    int r;

    *ret = (struct tar_hints){0};
    if (index->size > INDEX_MOST)
        return 0;
    text = malloc((size_t)index->size + 1);
    if (!text)
        return -ENOMEM;
    if (blob_pread(READ_WAITS, index, text, (size_t)index->size, 0) < 0)
        return 0;
    r = tar_hints_parse(text, (size_t)index->size, size, ret);
    if (r < 0 || !ret->n || size / ret->n < NEAR)
        tar_hints_release(ret);
    return r;
}

void tar_hints_release(struct tar_hints *hints)
{
    free(hints->at);
    *hints = (struct tar_hints){0};
}

void tar_hints_follow(struct tar_hints *hints, const struct blob *shard, uint64_t at)
{
    while (hints->passed < hints->n && hints->at[hints->passed] <= at)
        hints->passed++;
    if ((hints->passed && hints->at[hints->passed - 1] == at) ||
        (hints->passed < hints->n && hints->at[hints->passed] - at <= BEFORE))
        hints->misses = 0;
    else if (++hints->misses > MISSES)
        tar_hints_release(hints);
    if (hints->asked < hints->passed)
        hints->asked = hints->passed;
    for (; hints->asked < hints->n && hints->asked < hints->passed + AHEAD; hints->asked++)
        blob_fetch(shard, hints->at[hints->asked], TAR_BLOCK, NULL);
}
