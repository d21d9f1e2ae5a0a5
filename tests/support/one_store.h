/* Stores of indexes for tests that open formats without a cache folder. */
#ifndef EPOCHFS_TESTS_SUPPORT_ONE_STORE_H
#define EPOCHFS_TESTS_SUPPORT_ONE_STORE_H

#include "base/index_store.h"
#include "base/made_store.h"

/* Has no index and keeps none. Any thread. */
extern const struct index_store no_store;

/* Has the indexes that were saved; one that is removed as damaged ends the program. Any thread. */
extern const struct index_store one_store;
void one_store_drop(void); /* forget them */

/* Change a bit of each, with its checksum, as another program may; they may be removed from now on.
 */
void one_store_change(uint64_t hash);

/* Keeps made arrays in memory until their file is closed. One thread. */
extern struct made_store memory_made;

#endif
