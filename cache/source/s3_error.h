/* What servers of S3 say of errors, in words that help. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_ERROR_H
#define EPOCHFS_CACHE_SOURCE_S3_ERROR_H

#include "base/diag.h"
#include "base/text.h"

#define S3_REGION_SIZE 64

struct credentials;

struct s3_asked {
    const char *shown, *endpoint; /* SOURCE for messages; NULL: AWS's own */
    const char *denied;           /* what AccessDenied means */
    struct credentials *credentials;
    bool requester_pays;
};

/* Say why a request has failed: r and why are of http_get(), answer is the error's body. Sets
 * ret_region if the server says that the bucket is in another region. Returns r or a better -errno,
 * with the reason in d. */
int s3_describe(const struct s3_asked *asked, int r, const struct text *answer,
                const struct diag *why, char ret_region[static S3_REGION_SIZE], struct diag *d);

#endif
