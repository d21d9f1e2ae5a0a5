/* A jump from stack to stack is what the checked longjmp() is against. */
#undef _FORTIFY_SOURCE

#include "support/schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/random.h"

#define THREADS_MOST 64
#define STACK_BYTES  (256 << 10)
#define CHOICES_MOST 1000000 /* of a run: more are a loop */
#define CHOICE_NS    1000    /* the time of what a thread does between two choices */
#define TIME_START   (1000 * INT64_C(1000000000))
#define TIME_MOST    (3600 * INT64_C(1000000000))
#define NEVER        INT64_MAX

enum state { FREE, READY, ON_MUTEX, ON_CONDITION, ON_TIME, ON_THREAD, ENDED };

/* The threads of a run; [0] is the one that began it. pthread_t is a place here, and 1. */
static struct thread {
    ucontext_t context; /* where it starts; */
    jmp_buf place;      /* where it goes on: a jump costs no system call, as swapcontext() does */
    bool has_started;
    void *stack; /* is used by later runs too */
    enum state state;
    const void *what; /* mutex, condition or thread that it waits for */
    int64_t until;    /* NEVER: no time limit */
    bool is_too_late; /* the time limit has ended its wait */
    void *(*main)(void *arg);
    void *arg, *result;
} threads[THREADS_MOST];

static unsigned n_threads, now_runs;
static uint64_t state, seed_now, choices, trace;
static unsigned early_now, stay, lazy; /* a thread that is chosen less often */
static int64_t now;
static const char *scenario_now = "";
static bool is_on;

_Noreturn void schedule_fail(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "%s, after %llu choices: ", scenario_now, (unsigned long long)choices);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nto see it again: %s 1 %llu\n", program_invocation_name,
            (unsigned long long)seed_now);
    _exit(1);
}

static void on_signal(int number)
{
    schedule_fail("signal %d", number);
}

uint64_t schedule_random(uint64_t n)
{
    return random_below(&state, n);
}

int64_t schedule_passed(void)
{
    return now - TIME_START;
}

uint64_t schedule_choices(void)
{
    return choices;
}

/* ---- which thread runs ---- */

static int *owner_of(const void *mutex)
{
    return &((pthread_mutex_t *)(uintptr_t)mutex)->__data.__owner;
}

static bool can_run(const struct thread *t)
{
    return t->state == READY || (t->state == ON_MUTEX && !*owner_of(t->what)) ||
           (t->state == ON_THREAD && ((const struct thread *)t->what)->state == ENDED);
}

static const char *describe(char *ret, size_t size)
{
    static const char *const words[] = {"free",   "ready",    "a mutex", "a condition",
                                        "a time", "a thread", "ended"};
    size_t len = 0;

    *ret = '\0';
    for (unsigned i = 0; i < n_threads && len < size; i++)
        len += (size_t)snprintf(ret + len, size - len, "%s%u: %s", i ? ", " : "", i,
                                words[threads[i].state]);
    return ret;
}

/* End the wait of the thread whose time limit is next. */
static bool time_goes_on(void)
{
    struct thread *next = NULL;

    for (struct thread *t = threads; t < threads + n_threads; t++)
        if ((t->state == ON_CONDITION || t->state == ON_TIME) && t->until < NEVER &&
            (!next || t->until < next->until))
            next = t;
    if (!next)
        return false;
    now = next->until > now ? next->until : now;
    if (now - TIME_START > TIME_MOST)
        schedule_fail("an hour has passed: a thread waits for ever, and looks now and then");
    next->state = READY;
    next->is_too_late = true;
    return true;
}

static void switch_to(unsigned next)
{
    unsigned before = now_runs;

    trace = (trace ^ next ^ (uint64_t)now) * UINT64_C(0x100000001b3);
    threads[next].state = READY;
    if (next == before)
        return;
    now_runs = next;
    if (_setjmp(threads[before].place))
        return;
    if (threads[next].has_started)
        _longjmp(threads[next].place, 1);
    threads[next].has_started = true;
    setcontext(&threads[next].context);
}

static void choose(void)
{
    unsigned which[THREADS_MOST], n = 0, next;
    char text[1000];

    if (++choices > CHOICES_MOST)
        schedule_fail("the threads go on without end: %s", describe(text, sizeof(text)));
    now += CHOICE_NS;
    for (struct thread *t = threads; t < threads + n_threads; t++)
        if ((t->state == ON_CONDITION || t->state == ON_TIME) && t->until <= now) {
            t->state = READY;
            t->is_too_late = true;
        }
    if (early_now && schedule_random(1000) < early_now)
        time_goes_on();
    do {
        for (unsigned i = 0; i < n_threads; i++)
            if (can_run(&threads[i]))
                which[n++] = i;
    } while (!n && time_goes_on());
    if (!n)
        schedule_fail("a deadlock: %s", describe(text, sizeof(text)));
    next = which[schedule_random(n)];
    for (unsigned i = 0; next == lazy && i < 4; i++)
        next = which[schedule_random(n)];
    switch_to(next);
}

/* A place at which another thread may go on. */
static void point(void)
{
    if (is_on && !(random_next(&state) >> 20 & stay))
        choose();
}

void schedule_pause(unsigned n)
{
    while (n--)
        choose();
}

static void wait_for(enum state how, const void *what, int64_t until)
{
    struct thread *t = &threads[now_runs];

    t->state = how;
    t->what = what;
    t->until = until;
    t->is_too_late = false;
    choose();
}

/* ---- what the code under test calls ---- */

#define WRAPPED(type, name, ...)                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(pthread_t, pthread_self, void)
{
    return now_runs + 1;
}

WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *m)
{
    int *owner = owner_of(m);

    point();
    if (*owner == (int)now_runs + 1)
        schedule_fail("thread %u takes a mutex that it has", now_runs);
    while (*owner)
        wait_for(ON_MUTEX, m, NEVER);
    *owner = (int)now_runs + 1;
    return 0;
}

WRAPPED(int, pthread_mutex_trylock, pthread_mutex_t *m)
{
    point();
    if (*owner_of(m))
        return EBUSY;
    *owner_of(m) = (int)now_runs + 1;
    return 0;
}

static void let_go(pthread_mutex_t *m)
{
    if (*owner_of(m) != (int)now_runs + 1)
        schedule_fail("thread %u drops a mutex that it does not have", now_runs);
    *owner_of(m) = 0;
}

WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
    let_go(m);
    point();
    return 0;
}

static int wait_on(pthread_cond_t *c, pthread_mutex_t *m, int64_t until)
{
    bool is_late;

    let_go(m);
    wait_for(ON_CONDITION, c, until);
    is_late = threads[now_runs].is_too_late;
    while (*owner_of(m))
        wait_for(ON_MUTEX, m, NEVER);
    *owner_of(m) = (int)now_runs + 1;
    return is_late ? ETIMEDOUT : 0;
}

WRAPPED(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m)
{
    return wait_on(c, m, NEVER);
}

WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m,
        const struct timespec *at)
{
    int64_t until;

    if (__builtin_mul_overflow((int64_t)at->tv_sec, INT64_C(1000000000), &until))
        until = NEVER - 1;
    return wait_on(c, m, until + (until < NEVER - 1 ? at->tv_nsec : 0));
}

/* Wake up to `most` threads, any of those that wait. */
static int wake(const pthread_cond_t *c, unsigned most)
{
    unsigned which[THREADS_MOST], n = 0;

    for (unsigned i = 0; i < n_threads; i++)
        if (threads[i].state == ON_CONDITION && threads[i].what == c)
            which[n++] = i;
    for (; n && most; most--) {
        unsigned i = most > n ? n - 1 : (unsigned)schedule_random(n);

        threads[which[i]].state = READY;
        which[i] = which[--n];
    }
    point();
    return 0;
}

WRAPPED(int, pthread_cond_signal, pthread_cond_t *c)
{
    return wake(c, 1);
}

WRAPPED(int, pthread_cond_broadcast, pthread_cond_t *c)
{
    return wake(c, THREADS_MOST);
}

static void run_thread(void)
{
    struct thread *t = &threads[now_runs];

    t->result = t->main(t->arg);
    wait_for(ENDED, NULL, NEVER);
}

WRAPPED(int, pthread_create, pthread_t *ret, const pthread_attr_t *attributes,
        void *(*main)(void *), void *arg)
{
    struct thread *t = &threads[n_threads];

    (void)attributes;
    if (n_threads == THREADS_MOST)
        return EAGAIN;
    if (!t->stack) {
        t->stack =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (t->stack == MAP_FAILED)
            schedule_fail("no memory for a stack");
    }
    getcontext(&t->context);
    t->context.uc_stack = (stack_t){.ss_sp = t->stack, .ss_size = STACK_BYTES};
    t->context.uc_link = NULL;
    makecontext(&t->context, run_thread, 0);
    t->state = READY;
    t->has_started = false;
    t->main = main;
    t->arg = arg;
    *ret = ++n_threads;
    point();
    return 0;
}

WRAPPED(int, pthread_join, pthread_t thread, void **ret)
{
    struct thread *t = &threads[thread - 1];

    if (t->state != ENDED)
        wait_for(ON_THREAD, t, NEVER);
    if (ret)
        *ret = t->result;
    return 0;
}

WRAPPED(int, clock_gettime, clockid_t id, struct timespec *ret)
{
    (void)id;
    *ret = (struct timespec){.tv_sec = now / 1000000000, .tv_nsec = now % 1000000000};
    return 0;
}

WRAPPED(int, nanosleep, const struct timespec *time, struct timespec *left)
{
    (void)left;
    wait_for(ON_TIME, NULL, now + time->tv_sec * INT64_C(1000000000) + time->tv_nsec);
    return 0;
}

WRAPPED(ssize_t, getrandom, void *buf, size_t len, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)buf)[i] = (uint8_t)(random_next(&state) >> 24);
    return (ssize_t)len;
}

/* Another thread may go on before and after an access to a file. */
#define ACCESS(type, name, parameters, arguments)                                                  \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        type found;                                                                                \
        int error;                                                                                 \
                                                                                                   \
        point();                                                                                   \
        found = __real_##name arguments;                                                           \
        error = errno;                                                                             \
        point();                                                                                   \
        errno = error;                                                                             \
        return found;                                                                              \
    }

ACCESS(ssize_t, pread64, (int fd, void *buf, size_t len, off_t off), (fd, buf, len, off))
ACCESS(ssize_t, pwrite64, (int fd, const void *buf, size_t len, off_t off), (fd, buf, len, off))
ACCESS(ssize_t, preadv64v2, (int fd, const struct iovec *to, int n, off_t off, int flags),
       (fd, to, n, off, flags))
ACCESS(int, fallocate64, (int fd, int mode, off_t off, off_t len), (fd, mode, off, len))

/* ---- runs ---- */

void schedule_begin(const char *scenario, uint64_t seed, unsigned early)
{
    scenario_now = scenario;
    seed_now = seed;
    state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < 8; i++)
        random_next(&state);
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
    n_threads = 1;
    now_runs = 0;
    threads[0].state = READY;
    threads[0].has_started = true;
    now = TIME_START;
    choices = trace = 0;
    early_now = early;
    stay = (1U << seed % 4) - 1; /* a thread goes on for 1, 2, 4 or 8 points, about */
    lazy = (unsigned)schedule_random(8);
    is_on = true;
}

uint64_t schedule_end(void)
{
    char text[1000];

    for (unsigned i = 1; i < n_threads; i++)
        if (threads[i].state != ENDED)
            schedule_fail("a thread was not joined: %s", describe(text, sizeof(text)));
    is_on = false;
    return trace;
}
