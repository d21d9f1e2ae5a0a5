/* Google Cloud Storage: gs://bucket/prefix, by its XML interface, which speaks the protocol of S3.
 *
 * Requests are signed with HMAC keys (GOOG1E...) from the places of S3's credentials, or have the
 * token of a service account (cache/http/credentials_places.c). Without either they are anonymous,
 * which suffices for public buckets. The endpoints of S3 in the environment and
 * in the profile are not those of this remote; only endpoint_url= counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/http/credentials_parse.h"
#include "cache/source/remote.h"
#include "cache/source/s3.h"

static int gs_make(struct source *source, const char *spec, const struct source_options *options,
                   struct diag *d)
{
    static const struct s3_dialect google = {
        .endpoint = "https://storage.googleapis.com",
        .region = "auto",
        .google = true,
        .payer = "x-goog-user-project", /* Google charges a project, as its own tools do */
        .payer_variable = "GOOGLE_CLOUD_PROJECT",
        .denied = "may not be listed (storage.objects.list is needed, and storage.objects.get)"};

    /* A token is shown to the server; a signature is not the key. */
    if (options->endpoint && !options->anonymous && !container_url_is_good(options->endpoint) &&
        (environment("CLOUDSDK_AUTH_ACCESS_TOKEN") || environment("GCE_METADATA_HOST")))
        return diag_set(d, -EINVAL,
                        "endpoint_url=%.200s: expected https, because the token of "
                        "$CLOUDSDK_AUTH_ACCESS_TOKEN or $GCE_METADATA_HOST goes there",
                        options->endpoint);
    return s3_make_as(source, spec, options, &google, d);
}

const struct remote remote_gs = {.scheme = "gs://",
                                 .help = "gs://BUCKET/PREFIX",
                                 .make = gs_make,
                                 .list_beside = s3_list_beside,
                                 .far = true,
                                 .etag_suffices = true,
                                 .accepts_gzip = true,
                                 .paths_decoded = true};
