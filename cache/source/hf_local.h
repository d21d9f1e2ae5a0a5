/* The Hugging Face Hub on this machine: settings of its library in the environment, the user's
 * token, and the files that the library has downloaded. Nothing here is written. */
#ifndef EPOCHFS_CACHE_SOURCE_HF_LOCAL_H
#define EPOCHFS_CACHE_SOURCE_HF_LOCAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* The URL of the Hub, without '/' at its end; the caller frees *ret. 0 or -errno with the reason in
 * d. */
int hf_endpoint(char **ret, struct diag *d);

/* May only files of this machine be used ($HF_HUB_OFFLINE)? */
bool hf_is_offline(void);

/* Find the user's token: see struct credentials_options. It is read when it is first needed, and
 * again once the Hub has refused it: another program may have renewed it. */
int hf_find_token(char **ret, char *ret_origin, size_t capacity, struct diag *d);

/* The folder of a repository in the library's cache; type: "datasets" or "models". It may be
 * missing. false: it has no place. */
bool hf_cache_folder(const char *type, const char *id, char ret[static PATH_MAX]);

/* Is the path of a snapshot, or in one: .../snapshots/COMMIT? Sets the commit and the folder of the
 * files that it links to. */
bool hf_cache_of_path(const char *path, char ret_commit[static 41],
                      char ret_blobs[static PATH_MAX]);

/* The hash of the bytes of a file with that real path, which is its name in the cache: a part of
 * path; NULL: it is no file there. */
const char *hf_cache_hash(const char *path);

/* The commit that a revision had when the library last asked. folder: of hf_cache_folder(). false:
 * not known. */
bool hf_cache_commit(const char *folder, const char *revision, char ret_commit[static 65]);

/* The path in its snapshot of the commit, "" for all of it, if it is complete. A list of files
 * for the snapshot says whether it is; without one *ret_sure is false. 0; -ENOENT: it is missing
 * or incomplete, or another -errno, with the reason in d. */
int hf_cache_snapshot(const char *folder, const char *commit, const char *path,
                      char ret[static PATH_MAX], bool *ret_sure, struct diag *d);

#endif
