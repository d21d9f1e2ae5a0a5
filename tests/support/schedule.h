/* Threads that run one at a time, in an order that a seed decides, by a clock of their own: a
 * choice takes a microsecond. The same seed gives the same run.
 *
 * The linker puts these functions in the place of pthread_*(), clock_gettime() and others
 * (tests/unit/CMakeLists.txt), so the code under test does not know. A thread is a
 * stack of its own in the one thread of the process. The next one is chosen at each lock, unlock,
 * wait, signal, start and end, and at each access to a file. If none can run, time goes on to the
 * next time limit; if there is none, they wait for one another: a deadlock, which ends the process
 * with the seed, as any failure does. */
#ifndef EPOCHFS_TESTS_SUPPORT_SCHEDULE_H
#define EPOCHFS_TESTS_SUPPORT_SCHEDULE_H

#include <stdint.h>

/* A run begins in the calling thread. early: of a thousand choices, so many let a time limit pass
 * although threads could run: they were slow. */
void schedule_begin(const char *scenario, uint64_t seed, unsigned early);

/* It ends: all other threads have been joined. Returns a hash of its choices. */
uint64_t schedule_end(void);

/* Let other threads run: up to n choices. */
void schedule_pause(unsigned n);

/* The nanoseconds that have passed in this run, and the choices. */
int64_t schedule_passed(void);
uint64_t schedule_choices(void);

/* A number of this run, below n. */
uint64_t schedule_random(uint64_t n);

/* Print what is wrong, and how the run is repeated, and end the process. */
_Noreturn void schedule_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
