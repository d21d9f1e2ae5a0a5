#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* base/mapped_file.h handles it; blocked, it ends the process */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r ? -EAGAIN : 0;
}
