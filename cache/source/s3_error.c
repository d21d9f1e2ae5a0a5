/* What servers of S3 say of errors, in words that help. */
#include "cache/source/s3_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "cache/http/credentials.h"
#include "cache/source/s3_list.h"

/* Advice for common errors; %s: where the credentials come from. */
static const struct known_error {
    const char *code;
    int error;
    const char *text; /* NULL: that of the dialect */
} known_errors[] = {
    {"NoSuchBucket", -ENOENT, "expected a bucket of that name, got none"},
    {"AccessDenied", -EACCES, NULL},
    {"AllAccessDisabled", -EACCES, "access is disabled for this bucket"},
    {"InvalidAccessKeyId", -EACCES, "the server does not know the access key"},
    {"SignatureDoesNotMatch", -EACCES, "the secret key is not that of the access key"},
    {"ExpiredToken", -EACCES, "the credentials have expired"},
    {"InvalidToken", -EACCES, "the session token is not valid"},
    {"RequestTimeTooSkewed", -EACCES, "the clock of this machine is wrong"},
};

/* The region in an endpoint of AWS: bucket.s3.REGION.amazonaws.com, bucket.s3-REGION... */
static void region_of_endpoint(const char *endpoint, char *ret, size_t capacity)
{
    const char *domain = strstr(endpoint, ".amazonaws.com"), *start = domain;

    while (start && start > endpoint && start[-1] != '.' &&
           !(start - endpoint >= 3 && !memcmp(start - 3, "s3-", 3)))
        start--;
    if (start && domain > start)
        snprintf(ret, capacity, "%.*s", (int)(domain - start), start);
}

int s3_describe(const struct s3_asked *asked, int r, const struct text *answer,
                const struct diag *why, char ret_region[static S3_REGION_SIZE], struct diag *d)
{
    const char *region = credentials_region(asked->credentials);
    char origin[400], at[300];
    struct s3_error e = {.code = ""};

    credentials_origin(asked->credentials, origin, sizeof(origin));
    if (!answer->data || !s3_error_parse(answer->data, answer->len, &e))
        return diag_set(d, r, "%s: %s%s%s", asked->shown, diag_text(why, r),
                        r == -EACCES ? "; credentials: " : "", r == -EACCES ? origin : "");
    snprintf(at, sizeof(at), "%s", asked->endpoint ? asked->endpoint : "AWS");
    if (!*e.region && *e.endpoint)
        region_of_endpoint(e.endpoint, e.region, sizeof(e.region));
    if (*e.region && strcmp(e.region, region) != 0) {
        snprintf(ret_region, S3_REGION_SIZE, "%s", e.region);
        return diag_set(d, -EREMOTEIO, "%s: is in region %s, not %s; mount with -o region=%s",
                        asked->shown, e.region, region, e.region);
    }
    for (size_t i = 0; i < ARRAY_LEN(known_errors); i++) {
        const struct known_error *known = &known_errors[i];
        bool denied = known->error == -EACCES;

        if (!strcmp(known->code, e.code))
            return diag_set(d, known->error, "%s: %s (%s at %s, region %s%s%s)%s%.200s%s",
                            asked->shown, known->text ? known->text : asked->denied, e.code, at,
                            region, denied ? "; credentials: " : "", denied ? origin : "",
                            *e.message ? ": " : "", e.message,
                            !known->text && !asked->requester_pays
                                ? ". If the bucket's requesters pay for it: -o requester_pays"
                                : "");
    }
    return diag_set(d, r, "%s: %s says %s: %s", asked->shown, at, e.code, e.message);
}
