/* Threads of a process whose main thread alone takes signals, and whose numbers are written as in
 * C.
 */
#ifndef EPOCHFS_BASE_THREAD_H
#define EPOCHFS_BASE_THREAD_H

#include <locale.h>
#include <pthread.h>

#include "base/scope.h"

/* Start a thread that gets no signals, in the locale of C. 0 or -EAGAIN. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* While the scope lasts, this thread has the locale of C. The host of the library may have set
 * another one, in which 0.5 is 0,5 and other bytes are letters. */
locale_t thread_take_c_locale(void);
void thread_give_locale_back(locale_t *before);
#define C_LOCALE_SCOPE()                                                                           \
    AUTO(thread_give_locale_back) locale_t locale_before = thread_take_c_locale()

#endif
