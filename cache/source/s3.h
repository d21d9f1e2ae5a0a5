/* What remotes that speak the protocol of S3 share with it. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_H
#define EPOCHFS_CACHE_SOURCE_S3_H

#include "cache/source/source.h"

/* Where a remote differs from AWS. */
struct s3_dialect {
    const char *endpoint; /* a URL, if endpoint_url= names none; NULL: as the environment or the
                             profile says, otherwise AWS's */
    const char *region;   /* if region= names none; NULL: as the environment says, us-east-1 */
    bool google;          /* see struct credentials_options; then the endpoint must keep secrets */
    const char *denied;   /* what AccessDenied for a listing means */
    /* The header with which the requester pays, and the variable that has its value; NULL: it is
     * "requester". */
    const char *payer, *payer_variable;
};

/* make() of such a remote. dialect must live as long as the call. */
int s3_make_as(struct source *source, const char *spec, const struct source_options *options,
               const struct s3_dialect *dialect, struct diag *d);

/* For its table of functions. */
int s3_list_beside(struct source *source);

#endif
