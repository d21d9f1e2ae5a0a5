/* The user's home folder, which holds the default cache folder and files of secrets. */
#ifndef EPOCHFS_CACHE_DISK_HOME_H
#define EPOCHFS_CACHE_DISK_HOME_H

#include <stdbool.h>
#include <stddef.h>

/* Write the path of a file in the home folder: name is "/.netrc" or the like, "" for the folder
 * itself. The folder is $HOME, else, where that is unset or empty, as in a service of systemd, the
 * one that the user database has; libcurl and the tools of AWS look in the same place. It need not
 * exist. false: the user has none, or the path does not fit; ret is then unchanged or cut off. May
 * block: the database may be on the network. */
bool home_path(const char *name, char *ret, size_t capacity);

#endif
