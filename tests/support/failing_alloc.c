#include "support/failing_alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since failing_alloc_begin(): */
static _Atomic(unsigned long) count, fail_at; /* fail_at 0: none */
static _Atomic(long) live;
static _Atomic(size_t) largest;

void failing_alloc_begin(unsigned long n)
{
    count = 0;
    live = 0;
    largest = 0;
    fail_at = n;
}

bool failing_alloc_end(void)
{
    bool was_reached = fail_at && count >= fail_at;

    fail_at = 0;
    return was_reached;
}

unsigned long failing_alloc_at(void)
{
    return fail_at;
}

long failing_alloc_live(void)
{
    return live;
}

size_t failing_alloc_largest(void)
{
    return largest;
}

static bool fails(void)
{
    return ++count == fail_at;
}

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

static size_t seen(size_t n)
{
    largest = n > largest ? n : largest;
    return n;
}

#define FAULTY(type, name, parameters, arguments)                                                  \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails() ? NULL : counted(__real_##name arguments);                                  \
    }

FAULTY(void *, malloc, (size_t n), (seen(n)))
FAULTY(void *, calloc, (size_t n, size_t each), (n, each))
FAULTY(char *, strdup, (const char *s), (s))
FAULTY(char *, strndup, (const char *s, size_t n), (s, n))

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
    if (fails())
        return NULL;
    return p ? __real_realloc(p, n) : counted(__real_realloc(p, n));
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    live -= p != NULL;
    __real_free(p);
}

static int faulty_asprintf(char **ret, const char *format, va_list args)
{
    int n;

    *ret = (char *)16; /* an undefined value, which must not be freed */
    if (fails())
        return -1;
    n = vasprintf(ret, format, args);
    live += n >= 0;
    return n;
}

int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = faulty_asprintf(ret, format, args);
    va_end(args);
    return n;
}

/* What a release build calls instead (_FORTIFY_SOURCE). */
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
    va_list args;
    int n;

    (void)flag;
    va_start(args, format);
    n = faulty_asprintf(ret, format, args);
    va_end(args);
    return n;
}
