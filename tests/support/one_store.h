/* Stores of indexes for tests that open formats without a cache folder. */
#ifndef EPOCHFS_TESTS_SUPPORT_ONE_STORE_H
#define EPOCHFS_TESTS_SUPPORT_ONE_STORE_H

#include "base/index_store.h"

/* Has no index and keeps none. Any thread. */
extern const struct index_store no_store;

/* Has the indexes that were saved; one that is removed as damaged ends the program. One thread. */
extern const struct index_store one_store;
void one_store_drop(void); /* forget them */

#endif
