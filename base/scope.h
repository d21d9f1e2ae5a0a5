/* Scope-bound cleanup: a variable marked AUTO_x releases what it owns when it goes out of scope.
 *
 *     AUTO_FREE char *name = strdup(s);
 *     ...
 *     *ret_name = TAKE_PTR(name);        ownership moves to the caller
 */
#ifndef EPOCHFS_BASE_SCOPE_H
#define EPOCHFS_BASE_SCOPE_H

#include <stdlib.h>
#include <unistd.h>

#define AUTO(release_fn) __attribute__((cleanup(release_fn)))

/* The value of pointer p; p becomes NULL and its cleanup does nothing. */
#define TAKE_PTR(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

/* The value of file descriptor fd; fd becomes -1. */
#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

static inline void scope_free(void *pp)
{
    free(*(void **)pp);
}

static inline void scope_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define AUTO_FREE  AUTO(scope_free)
#define AUTO_CLOSE AUTO(scope_close)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
