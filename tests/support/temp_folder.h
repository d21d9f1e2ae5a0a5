/* A temporary folder for a test: temp_setup() makes it and puts its path into *state,
 * temp_teardown() removes it with its content. Failures end the test. */
#ifndef EPOCHFS_TESTS_SUPPORT_TEMP_FOLDER_H
#define EPOCHFS_TESTS_SUPPORT_TEMP_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

int temp_setup(void **state);
int temp_teardown(void **state);

/* folder/name. */
void temp_path(const char *folder, const char *name, char ret[static PATH_MAX]);

/* Write a file, in place if it exists. */
void temp_write(const char *folder, const char *name, const void *bytes, size_t len);
void temp_folder(const char *folder, const char *name);

/* Make folder/name, and mount a file system in memory there, of a size such as "64k", for this
 * process alone; umount() ends it. False: not possible here. */
bool temp_mount(const char *folder, const char *name, const char *size, char ret[static PATH_MAX]);

/* Remove a folder with its content. */
void temp_remove(const char *folder);

#endif
