/* Threads of a process whose main thread alone takes signals. */
#ifndef EPOCHFS_BASE_THREAD_H
#define EPOCHFS_BASE_THREAD_H

#include <pthread.h>

/* Start a thread that gets no signals. 0 or -EAGAIN. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
