/* The kernel shows the memory in which it put the arguments at program start: one after another,
 * each with a NUL. We write them there again, without secrets, and fill the rest with NULs; the
 * kernel takes anything else at the end for a name that the process has given itself. */
#include "fs/cli/arguments.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

#define HIDDEN "..."

/* How much of an argument may be shown: up to the first '?' after a "://". */
static size_t shown_len(const char *argument)
{
    const char *scheme = strstr(argument, "://"), *query = scheme ? strchr(scheme, '?') : NULL;

    return query ? (size_t)(query + 1 - argument) : strlen(argument);
}

/* How many bytes from argv[0] on the arguments fill without a gap. */
static size_t area_of(int argc, char *const *argv)
{
    size_t len = 0;

    for (int i = 0; i < argc && argv[i] == argv[0] + len; i++)
        len += strlen(argv[i]) + 1;
    return len;
}

/* Write what may be shown of an argument to `at`, at most capacity bytes. Returns its bytes. */
static size_t arguments_show(const char *argument, char *at, size_t capacity)
{
    size_t shown = shown_len(argument), n = 0;

    if (shown < capacity)
        memcpy(at, argument, n = shown);
    if (argument[shown] && n + strlen(HIDDEN) < capacity) {
        memcpy(at + n, HIDDEN, strlen(HIDDEN));
        n += strlen(HIDDEN);
    }
    return n + 1;
}

int arguments_hide(int argc, char **argv)
{
    size_t capacity = area_of(argc, argv), used = 0;
    static char **copy; /* kept until the process ends */
    char *area = argv[0];
    int copied = 0;

    copy = calloc((size_t)argc + 1, sizeof(*copy));
    while (copy && copied < argc && (copy[copied] = strdup(argv[copied])))
        copied++;
    if (!copy || copied < argc) {
        while (copied > 0)
            free(copy[--copied]);
        free(copy);
        copy = NULL;
        return -ENOMEM;
    }
    for (int i = 0; i < argc; i++) { /* an argument outside that memory is wiped where it is */
        size_t shown = shown_len(argv[i]);

        explicit_bzero(argv[i] + shown, strlen(argv[i] + shown));
        argv[i] = copy[i];
    }
    if (capacity)
        explicit_bzero(area, capacity);
    for (int i = 0; i < argc && used < capacity; i++)
        used += arguments_show(argv[i], area + used, capacity - used);
    return 0;
}
