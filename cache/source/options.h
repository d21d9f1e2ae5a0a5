/* What the user says of where SOURCE is and how it gets here, with -o. */
#ifndef EPOCHFS_CACHE_SOURCE_OPTIONS_H
#define EPOCHFS_CACHE_SOURCE_OPTIONS_H

#include <stdbool.h>

#include "cache/stage/stage.h"

/* Texts are not owned; NULL: not given. */
struct source_options {
    const struct cache_folder *cache; /* is copied */
    bool stages_local;                /* cache= was given: local files are staged, too */
    bool allow_outside;               /* links that leave a local SOURCE are followed */
    bool for_others;                  /* allow_other: permissions on the way to files count */
    struct stage_options stage;
    bool limits_all;   /* cache_size= was given: it counts without a stage, too */
    const char *files; /* names below an HTTP source, with ';' between them */
    const char
        *endpoint;      /* of S3: a URL; else $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL, AWS's own */
    const char *region; /* of S3: else $AWS_REGION, $AWS_DEFAULT_REGION, the profile's, us-east-1 */
    const char *profile; /* of the shared files: else $AWS_PROFILE, default */
    bool anonymous;      /* S3 requests are not signed */
    bool virtual_host;   /* the bucket stands in the host's name; else in the path */
    const char *ca;      /* a file of certificates to trust, too */
    unsigned timeout_s;  /* of a connection that gives nothing */
};

/* As when nothing is given, but for the cache folder. */
void source_options_init(struct source_options *ret, const struct cache_folder *cache);

#endif
