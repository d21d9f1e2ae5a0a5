/* What the remotes reached by HTTP share: their files are known once they are open, and come
 * through a stage. */
#ifndef EPOCHFS_CACHE_SOURCE_REMOTE_H
#define EPOCHFS_CACHE_SOURCE_REMOTE_H

#include "cache/http/http.h"
#include "cache/source/source.h"

#define REMOTE_TEXT_MOST (32u << 20) /* bytes of a SHA256SUMS, of a page of a listing */

/* ---- known.c ---- */

/* The URL of a path relative to SOURCE; the caller frees it. 0 or -ENOMEM. */
int remote_url(const struct source *source, const char *path, char **ret);

/* Ask for the text of that path ahead: see http_ahead_start(). */
struct http_ahead *remote_ask(const struct source *source, const char *path);

/* ---- remote_known.c: source->known ---- */

/* Add a line to the notes. */
void remote_note(struct source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a file to source->known, unless its name is hidden. path: relative to SOURCE, from a server:
 * a name that no local file can have is listed under another one, with an error. version may be
 * NULL. 0 or -errno. */
int remote_add(struct source *source, const char *path, const struct remote_version *version);

/* The same for such a name, or that of a folder. */
int remote_add_wrong(struct source *source, const char *path, const char *wrong);

/* Read a SHA256SUMS: set the sums of files in the sorted list; lists: add the files first, and
 * sort. *ret_files: usable lines. Other lines become notes. 0 or -errno. */
int remote_use_sums(struct source *source, const struct text *sums, bool lists, size_t *ret_files);

/* After known_sort(): ask for the versions of the files that have none; in a cache folder that a
 * group shares, of all files, with the rights of this user. Files without one afterwards have
 * failed. *ret_asked: it has asked for some. 0; -ENOMEM; -E2BIG with the reason in d. */
int remote_stat(struct source *source, bool *ret_asked, struct diag *d);

/* The same for the files in list; a failure becomes the file's error. 0 or -ENOMEM. */
int remote_stat_list(const struct source *source, struct source_list *list);

/* ---- remote.c ---- */

/* Make http and stage, replacing existing ones. signer: NULL: requests are not signed. */
int remote_connect(struct source *source, const struct source_options *options,
                   struct http_signer *signer, struct diag *d);

/* SOURCE is one file of that name; url NULL: below base. 0, or -errno with the reason in d. */
int remote_set_file(struct source *source, const char *name, const char *url,
                    const struct remote_version *version);

/* For the tables of functions of remotes. */
int remote_list_known(const struct source *source, const char *const *sides,
                      struct source_list *ret, struct diag *d);
int remote_open(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d);

/* Advice against -EPERM (401) and -EACCES (403) of a server; "": none. */
#define REMOTE_ADVICE_SIZE 400
const char *remote_advice(const struct source *source, int r, char ret[static REMOTE_ADVICE_SIZE]);

/* ---- remote_find.c ---- */

/* For a SOURCE that is one file and may name others next to it: `source->beside`. 0 or -ENOMEM. */
int beside_new(struct beside **ret);
void beside_free(struct beside *beside);

/* Find the file that a file in folder calls path: a path relative to that folder or one above it,
 * also above SOURCE, or a URL below SOURCE's. If SOURCE is one file, the files next to it and below
 * count as well (`source->beside`), and the call may block. 0, and the caller releases *ret;
 * -ENOENT; -EACCES: it lies outside SOURCE; or -errno; with the reason in d. */
int remote_find(const struct source *source, const char *folder, const char *path,
                struct source_entry *ret, struct diag *d);

#endif
