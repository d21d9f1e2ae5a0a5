/* What the files of credentials share; no other file includes it. credentials_places.c and
 * credentials_role.c look for secrets, with what credentials_read.c reads; credentials.c keeps what
 * they find. */
#ifndef EPOCHFS_CACHE_HTTP_CREDENTIALS_PARTS_H
#define EPOCHFS_CACHE_HTTP_CREDENTIALS_PARTS_H

#include <limits.h>

#include "base/lock.h"
#include "cache/disk/folder.h"
#include "cache/http/credentials.h"

#define SECOND      INT64_C(1000000000)
#define ANSWER_MOST (64u << 10) /* bytes of an answer of an endpoint */

struct loaded {
    struct http_secret secret; /* neither key_id nor token: there is none */
    int64_t expires;           /* by clock_wall(); INT64_MAX: never */
    bool was_asked;            /* an endpoint gave it, which is asked seldom */
    char origin[320];
};

struct credentials {
    struct http_signer signer; /* constant; its region changes only while no thread uses it */
    char *profile, *header;
    bool profile_is_named; /* with -o profile=, or in the environment */
    bool skip_environment, anonymous, google;
    int (*find_token)(char **ret, char *ret_origin, size_t capacity, struct diag *d);
    const struct clock *clock; /* constant */
    struct http *http;         /* NULL: no endpoints */
    struct lock lock;
    /* Guarded by lock: */
    struct loaded kept;
    int64_t not_before; /* no load before, while `kept` is valid */
};

/* ---- credentials_read.c ---- */

/* One of the two files: where it is, and its name in messages. */
struct shared_file {
    char path[PATH_MAX];
    char shown[256];
};
struct shared_file credentials_file(bool is_config);

/* See profile_get(). A missing file counts as empty. either: the config file counts first. */
int credentials_of_profile(const struct credentials *c, bool in_config, const char *key, char **ret,
                           struct diag *d);
int credentials_of_either(const struct credentials *c, const char *key, char **ret, struct diag *d);

void credentials_loaded_release(struct loaded *loaded);

/* Read a file that has one token, without white space at its end. what: for messages. 0 or -errno
 * with the reason in d; the caller releases *ret. */
int credentials_read_token(const char *path, const char *what, struct text *ret, struct diag *d);

/* When the secrets expire that were asked for; expires: as its answer says, NULL: never. false: it
 * is no time. */
bool credentials_set_expiry(struct loaded *loaded, const char *expires);

/* ---- credentials_role.c ---- */

/* The secrets of a role that the environment or the profile names with the file of a token. 1 and
 * *loaded; 0: none is named; or -errno with the reason in d. */
int credentials_load_role(const struct credentials *c, bool of_profile, struct loaded *loaded,
                          struct diag *d);

/* ---- credentials_places.c ---- */

/* Look in all places. 0 and *ret, which may say that there is no secret; or -errno. */
int credentials_load(const struct credentials *c, struct loaded *ret, struct diag *d);

#endif
