/* What the remotes that are reached by HTTP share: their files are known when they are opened, and
 * come through a stage. */
#ifndef EPOCHFS_CACHE_SOURCE_REMOTE_H
#define EPOCHFS_CACHE_SOURCE_REMOTE_H

#include "cache/http/http.h"
#include "cache/source/source.h"

#define REMOTE_TEXT_MOST (32u << 20) /* bytes of a SHA256SUMS, of a page of a listing */

/* ---- known.c: source->known ---- */

/* Add a line to the notes. */
void remote_note(struct source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The URL of a path relative to SOURCE; the caller frees it. 0 or -ENOMEM. */
int remote_url(const struct source *source, const char *path, char **ret);

/* Add a file to source->known: path: relative to SOURCE, a good name. url NULL: below base. version
 * and error may be NULL. 0 or -errno. */
int remote_add(struct source *source, const char *path, const char *url,
               const struct remote_version *version, const char *error);

/* The same for what has a name that no file here can have: it is shown under another, with the
 * error. */
int remote_add_wrong(struct source *source, const char *path, const char *wrong);

/* Sort the list; of files that were added twice one stays. */
void remote_sort(struct source *source);

/* Read a SHA256SUMS: set the sums of files that are in the sorted list; lists: add the files
 * first. *ret_files: lines that could be used. What could not becomes a note. 0 or -errno. */
int remote_use_sums(struct source *source, const struct text *sums, bool lists, size_t *ret_files);

/* Ask what is known of the files of list whose version is not; what cannot be had becomes their
 * error. 0 or -ENOMEM. */
int remote_stat(const struct source *source, struct source_list *list);

/* ---- remote.c ---- */

/* Make http and stage, anew if there are some. signer: NULL: requests are not signed. */
int remote_connect(struct source *source, const struct source_options *options,
                   struct http_signer *signer, struct diag *d);

/* SOURCE is one file of that name; url: see remote_add(). 0, or -errno with the reason in d. */
int remote_set_file(struct source *source, const char *name, const char *url,
                    const struct remote_version *version);

/* For the tables of remotes. */
int remote_list_known(const struct source *source, const char *const *sides,
                      struct source_list *ret, struct diag *d);
int remote_open(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d);

/* ---- remote_find.c ---- */

/* What a file in folder calls path, among the files of the source: a path relative to that folder
 * or one above it, above SOURCE, too, or a URL below SOURCE's. If SOURCE is one file, those beside
 * it and below count, too (cache/source/beside.h), and it may block. 0, and *ret lives as long as
 * source; -ENOENT; -EACCES: it lies outside of SOURCE; or -errno; with the reason in d. */
int remote_find(const struct source *source, const char *folder, const char *path,
                const struct source_entry **ret, struct diag *d);

#endif
