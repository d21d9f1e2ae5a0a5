#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct start {
    void *(*run)(void *arg);
    void *arg;
};

locale_t thread_take_c_locale(void)
{
    return uselocale(
        newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* a constant: nothing is to be freed */
}

void thread_give_locale_back(locale_t *before)
{
    uselocale(*before);
}

static void *thread_main(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    thread_take_c_locale();
    return start.run(start.arg);
}

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    struct start *start = malloc(sizeof(*start));
    sigset_t all, before;
    int r;

    if (!start)
        return -EAGAIN;
    *start = (struct start){run, arg};
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* base/mapped_file.h handles it; blocked, it ends the process */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        free(start);
    return r ? -EAGAIN : 0;
}
