/* SOURCE: where the files of a mount are, and their blobs.
 *
 * remotes[] is the registry of the kinds of source; the scheme of SOURCE chooses. A local path is
 * the one kind without a scheme. Files of this machine are read in place, or through a stage if the
 * user wants that; all others come through a stage (cache/stage/stage.h).
 *
 * One thread makes a source. Then it is constant, except the lists that source_list() makes. */
#ifndef EPOCHFS_CACHE_SOURCE_SOURCE_H
#define EPOCHFS_CACHE_SOURCE_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access.h"
#include "base/blob.h"
#include "base/diag.h"
#include "base/text.h"
#include "cache/disk/folder.h"
#include "cache/source/entries.h"
#include "cache/source/known.h"
#include "cache/source/options.h"
#include "cache/source/within.h"

struct source;
struct opener;
struct http;
struct beside;
struct credentials;
struct shared_table;
struct transport;
struct unpack_watch;

/* The table of functions of a kind of source. For a far one, make() and scheme suffice: it connects
 * (remote_connect() of cache/source/remote.h), adds all files to source->known, and sorts them. */
struct remote {
    const char *scheme; /* "file://"; "": takes every SOURCE that no other kind takes */
    const char *help;   /* SOURCE of this kind, as the help shows it; NULL: it does not */

    /* Does this kind take SOURCE? NULL: it does if SOURCE begins with the scheme. */
    bool (*takes)(const char *spec);

    /* Set the fields of this kind in source, which is zeroed except remote and cache. The caller
     * frees source on failure. spec: SOURCE without the scheme. */
    int (*make)(struct source *source, const char *spec, const struct source_options *options,
                struct diag *d);
    bool ordered; /* list() returns the files in their final order; none of them can be joined */

    /* List every file below the source, in any order. sides: see source_list(). NULL: known files.
     */
    int (*list)(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d);
    /* NULL: through the stage, by its URL. */
    int (*open)(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d);

    /* See source_access(). NULL: everybody has access. */
    void (*access)(const struct source *source, const char *path, struct access *ret);

    /* For a source that is one file: add all files of its folder, and below, which may be many, to
     * `beside`, a source of its own that shares the rest with the first one. 1; 0: they cannot be
     * known; or -errno. NULL: as 0. */
    int (*list_beside)(struct source *beside);

    bool far;           /* SOURCE is not on this machine: source.known has all files, sorted */
    bool etag_suffices; /* its ETags alone say whether a file is the same */
    bool pinned;        /* the URL of a file names its version, and its SHA-1 or SHA-256 the ETag */
    bool accepts_gzip;  /* see struct http_options */
    bool paths_decoded; /* source.root has paths as they are, not percent-encoded as in URLs */
};

extern const struct remote *const remotes[]; /* [n_remotes], cache/source/remotes.c */
extern const unsigned n_remotes;

struct source {
    const struct remote *remote;
    struct cache_folder cache; /* a copy, with its quota; staged files go there */
    char *root;      /* a path or URL without its scheme's extras; of a local file: its folder; of a
                        list: all of it; of a remote: its URL; of a remote file: that of its folder;
                        both with "://" and a '/' at the end, without a query */
    char *only_file; /* SOURCE is this one file of root; NULL: it is a folder */
    struct texts roots;   /* the folders on this machine that its files lie in; none: a remote */
    struct within within; /* of these roots */

    char *revision, *commit; /* of a repository: what its files are; NULL: not known */

    char *command;               /* SOURCE is its output; NULL: another kind */
    const struct opener *opener; /* runs it; not owned, set once there is one */

    struct unpack_watch *watch; /* for source_blob(); not owned; NULL: none */
    struct notices notices;     /* what a user has to know of a source that is open */

    struct quota *quota;     /* owned; NULL: the stage has it, or there is no limit */
    struct stage *stage;     /* files are read through it; NULL: they are read in place */
    struct transport *joins; /* of stage (cache/source/joined_transport.h) */

    /* For remotes: */
    struct known known;
    atomic_bool forgotten; /* what is kept of it was removed */
    char *base;            /* prefix of the URLs of files; ends with '/' */
    char *named;           /* as SOURCE names it, if redirects led elsewhere; otherwise NULL */
    struct http *http;     /* belongs to stage */
    struct credentials *credentials; /* owned; NULL: requests are not signed */
    void *impl;                      /* owned: of its remote; NULL: none */
    struct beside *beside;           /* for one file that may name others; otherwise NULL */
    bool indexes;                    /* as in the options */
    bool etag_suffices;              /* files with an ETag are known by it alone */
    struct text whole;           /* with indexes: the list of files, for .epochfs/; may be empty */
    struct shared_table *shared; /* of .epochfs/, if it was read for its list; NULL: it was not */
    char *shared_list;           /* the SHA-256 of that list, if it is used; NULL: it is not */
    char *listing;               /* for S3: the URL of a page of the listing, without its query */
    struct text note;            /* what is odd, one line each, for the log */
};

/* Its known files, for those that collections take away: only the thread that opens datasets does.
 */
static inline struct known *known_of(const struct source *source)
{
    return (struct known *)(uintptr_t)&source->known;
}

/* Is each version to be asked of the remote with the rights of this user? In a cache folder that a
 * group shares others may have staged files that he may not read; a list does not show that. */
static inline bool source_asks_all(const struct source *source)
{
    return source->cache.group.is_shared;
}

/* Open a source. spec: as the user gave it. For a remote this reads the list of files, and blocks
 * until it exists. 0; -ENOENT and others with the reason in d. */
int source_open(const char *spec, const struct source_options *options, struct source **ret,
                struct diag *d);

/* All its blobs and openers must be freed before. Takes NULL. */
void source_free(struct source *source);

/* What was odd when the source was opened: lines for the log; "": nothing. Valid as long as
 * source. */
const char *source_note(const struct source *source);

/* Add what SOURCE may be besides paths, for messages and the help: each kind's help line, with
 * joint between them. */
void source_add_kinds(struct text *ret, const char *joint);

/* Where the credentials come from, as text without any secret; "": there are none. */
void source_credentials(const struct source *source, char *ret, size_t capacity);

/* See http_via_listen(). */
void source_listen_via(const struct source *source,
                       void (*changed)(bool answers, const char *text));

/* SOURCE as messages show it: absolute. The caller frees it; NULL: no memory. */
char *source_name(const struct source *source);

/* List all files, recursively. Unreadable ones are listed with their error. If SOURCE names files,
 * the list also has the files next to them whose name is one of theirs followed by one of sides,
 * suffixes ended by NULL; either may be packed. ret: {0}. */
int source_list(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d);

/* Begin to fetch the first len bytes of a file if they are not here, without waiting. Fetches all
 * of a file of at most `whole` bytes. */
void source_fetch_head(const struct source *source, const struct source_entry *entry,
                       const struct cache_folder *cache, uint64_t len, uint64_t whole);

/* Get the file that SOURCE is, if it is a remote file; the caller releases it. 0; -ENOENT: it is
 * not; -ENOMEM. */
int source_only(const struct source *source, struct source_entry *ret);

/* The same for the file that SOURCE is, before source_list(), if it is a remote file. */
void source_fetch_only(const struct source *source, const struct cache_folder *cache, uint64_t len,
                       uint64_t whole);

/* The bytes of a file as a blob, unpacked: .gz and .xz are recognised by content, and unpacked once
 * into the cache folder. The caller frees *ret_blob. */
int source_blob(const struct source *source, const struct source_entry *entry,
                struct cache_folder *cache, struct blob **ret_blob, struct diag *d);

/* The same bytes as they are stored. */
int source_blob_packed(const struct source *source, const struct source_entry *entry,
                       struct blob **ret_blob, struct diag *d);

static inline void source_scope_end(struct source **source)
{
    source_free(*source);
}
#define AUTO_SOURCE AUTO(source_scope_end)

/* Add the side files of the file called name in folder, a path; list_paths: with their paths. */
int local_add_sides(const char *folder, const char *name, const char *const *sides, bool list_paths,
                    struct source_list *ret);

/* With allow_other: who may read the file or list the folder at path, relative to SOURCE. If that
 * is unknown, as for a remote: everybody. */
void source_access(const struct source *source, const char *path, struct access *ret);

/* Open the file at path as a blob called name, to be read in place, or through stage if it is not
 * NULL. pool: its descriptor is one of these (cache/disk/local_blob.h); NULL: it stays open. 0, or
 * -errno with the reason in d. */
struct lazy_pool;
int local_blob_open(struct stage *stage, struct lazy_pool *pool, const struct within *within,
                    const char *path, const char *name, struct blob **ret, struct diag *d);

/* Give source a stage over the files of this machine if the options want one. 0, or -errno with the
 * reason in d. */
int local_stage_new(struct source *source, const struct source_options *options, struct diag *d);

/* A file of a source, which is `source`, is not the one that was listed: later mounts do not use
 * what is kept of it. Any thread. */
void source_forget(void *source);

/* How many files could not be read, or be looked up, because the remote has failed for the retry
 * limit, and nothing has come since then; with the reason of the first in d. UINT_MAX: any number.
 * 0: the remote works. */
unsigned source_silent(const struct source *source, struct diag *d);

#endif
