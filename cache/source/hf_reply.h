/* What the Hugging Face Hub says of a repository. Its answers are text from a stranger: they only
 * give names and numbers, and are fuzzed. */
#ifndef EPOCHFS_CACHE_SOURCE_HF_REPLY_H
#define EPOCHFS_CACHE_SOURCE_HF_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "cache/stage/transport.h"

#define HF_HASH_SIZE 65

/* One entry of a tree. */
struct hf_entry {
    const char *path; /* from the top of the repository; not checked */
    bool is_folder;
    struct remote_version version; /* of a file; etag: SHA-256 of a large one, git's SHA-1 of
                                      another one, in hex */
};

/* The commit of a revision, and the name that the repository has by now; the caller frees *ret_id,
 * NULL: it says none. shown: for messages. 0; -EBADMSG; -ENOMEM. */
int hf_revision_parse(const struct text *text, const char *shown,
                      char ret_commit[static HF_HASH_SIZE], char **ret_id, struct diag *d);

/* Call use() for each file and folder of a page of a tree; its result other than 0 ends the page.
 * *others: entries of other kinds are counted there. 0, the result, -EBADMSG, or -ENOMEM. */
int hf_tree_parse(const struct text *text, const char *shown,
                  int (*use)(void *user, const struct hf_entry *entry, struct diag *d), void *user,
                  size_t *others, struct diag *d);

/* The list of a commit in the local cache (trees/COMMIT.json): call use() for each of its files. As
 * hf_tree_parse(). */
int hf_kept_tree_parse(const struct text *text, const char *shown,
                       int (*use)(void *user, const struct hf_entry *entry, struct diag *d),
                       void *user, struct diag *d);

/* Is it a commit, 40 digits in hex; or a hash, those or 64? */
bool hf_is_commit(const char *text);
bool hf_is_hash(const char *text);

#endif
