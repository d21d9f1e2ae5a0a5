/* Options of where SOURCE is and how it gets here, given with -o. */
#ifndef EPOCHFS_CACHE_SOURCE_OPTIONS_H
#define EPOCHFS_CACHE_SOURCE_OPTIONS_H

#include <stdbool.h>

#include "cache/stage/stage.h"

/* What remote files are known by, besides their size. */
enum source_version {
    VERSION_BOTH, /* ETag and time, as far as the remote has them */
    VERSION_ETAG, /* the ETag, otherwise the time */
    VERSION_TIME, /* the time, otherwise the ETag */
};

/* Texts are not owned; NULL: not given. */
struct source_options {
    const struct cache_folder *cache; /* copied */
    bool stages_local;                /* cache= was given: local files are staged as well */
    bool allow_outside;               /* links that leave a local SOURCE are followed */
    bool for_others;                  /* allow_other: permissions on the way to files count */
    struct stage_options stage;
    bool limits_all;   /* cache_size= was given: it counts without a stage as well */
    const char *files; /* names below an HTTP source, with ';' between them */
    const char
        *endpoint;      /* of S3: a URL; NULL: $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL, AWS's own */
    const char *region; /* of S3; NULL: $AWS_REGION, $AWS_DEFAULT_REGION, profile's, us-east-1 */
    const char *profile; /* of the shared files; NULL: $AWS_PROFILE, or default */
    bool anonymous;      /* S3 requests are not signed */
    bool requester_pays;
    bool virtual_host;      /* the bucket is in the host's name; false: in the path */
    const char *ca;         /* a file of certificates to trust as well */
    const char *via;        /* the URL of the front of a ring of caches; NULL: none */
    const char *via_secret; /* the file of its secret */
    bool indexes; /* `epochfs index`: `.epochfs/` is not used, and the list of files is kept
                     for it */
    enum source_version version;
    unsigned timeout_s; /* after which a connection that gives nothing has failed */
};

/* Set the defaults and the cache folder. */
void source_options_init(struct source_options *ret, const struct cache_folder *cache);

#endif
