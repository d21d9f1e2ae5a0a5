/* Which URL a request asks: first its own, then those that redirects name.
 *
 * This file follows redirects, not libcurl: only so we know whether the next URL has the origin
 * (scheme, host, port) of the first. User info never stays in the URL that is asked. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/number.h"
#include "cache/http/active.h"

/* ---- where redirects led ---- */

/* Redirects to another server lead to storage that a hub has signed a URL for. Asking the hub for
 * each part of a file would cost a request more, and hubs count those. The URLs are secrets while
 * they live: they are in memory only, and in no message. A newer URL takes the place of an older
 * one, or of one that ends soon. */
#define KEPT_TARGETS 4096 /* about 6 MiB of URLs */
#define PLACES       8    /* that a URL may have: one alone would be that of other files as well */
#define USUAL_S      600
#define MARGIN_S     60
#define MOST_S       86400

struct kept_target {
    char *url, *target; /* NULL: none */
    int64_t until_s;    /* since 1970 */
};

struct kept_targets {
    struct kept_target at[KEPT_TARGETS];
};

struct kept_targets *kept_targets_new(void)
{
    return calloc(1, sizeof(struct kept_targets));
}

/* The place that has the URL; otherwise one that it may get, free or of a target that ends first.
 */
static struct kept_target *kept_target_place_of(struct kept_targets *kept, const char *url)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    struct kept_target *best = NULL;

    for (const char *c = url; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    for (unsigned i = 0; i < PLACES; i++) {
        struct kept_target *place = &kept->at[((hash ^ hash >> 32) + i) % KEPT_TARGETS];

        if (place->url && !strcmp(place->url, url))
            return place;
        if (!best || place->until_s < best->until_s)
            best = place;
    }
    return best;
}

static void kept_target_clear(struct kept_target *place)
{
    secret_free(&place->target);
    free(place->url);
    *place = (struct kept_target){0};
}

/* The number that a parameter of the query has; 0: none. */
static int64_t kept_target_number_in(const char *url, const char *name)
{
    size_t len = strlen(name);
    uint64_t value;

    for (const char *at = strchr(url, '?'); at; at = strchr(at, '&'))
        if (!strncmp(++at, name, len) && at[len] == '=' &&
            number_parse(at + len + 1, strlen(at + len + 1), INT64_MAX / 2, &value))
            return (int64_t)value;
    return 0;
}

/* X-Amz-Expires counts from when the URL was signed, which was just now. */
static int64_t kept_target_end_of(const char *target, int64_t now_s)
{
    int64_t at = kept_target_number_in(target, "Expires"),
            seconds = kept_target_number_in(target, "X-Amz-Expires");

    if (!at && seconds && seconds < MOST_S)
        at = now_s + seconds;
    if (!at)
        return now_s + USUAL_S;
    at -= MARGIN_S;
    return at < now_s + MOST_S ? at : now_s + MOST_S;
}

/* Where url led; NULL: not known, or no longer valid. Valid until the next call. */
static const char *kept_target_find(struct kept_targets *kept, const char *url, int64_t now_s)
{
    struct kept_target *place = kept_target_place_of(kept, url);

    if (!place->url || strcmp(place->url, url) != 0)
        return NULL;
    if (now_s >= place->until_s) {
        kept_target_clear(place);
        return NULL;
    }
    return place->target;
}

/* Keep it until the query of target says that it ends, less a minute; otherwise for 10 minutes.
 * Without memory it is not kept. */
static void kept_target_add(struct kept_targets *kept, const char *url, const char *target,
                            int64_t now_s)
{
    struct kept_target *place = kept_target_place_of(kept, url);

    kept_target_clear(place);
    *place = (struct kept_target){strdup(url), strdup(target), kept_target_end_of(target, now_s)};
    if (!place->url || !place->target)
        kept_target_clear(place);
}

void kept_target_drop(struct kept_targets *kept, const char *url)
{
    struct kept_target *place = kept_target_place_of(kept, url);

    if (place->url && !strcmp(place->url, url))
        kept_target_clear(place);
}

void kept_targets_free(struct kept_targets *kept)
{
    for (size_t i = 0; kept && i < KEPT_TARGETS; i++)
        kept_target_clear(&kept->at[i]);
    free(kept);
}

/* ---- which URL is asked ---- */

/* Get a part of a URL, decoded; NULL: none. The caller frees it with curl_free(). */
static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

/* Remove the user info from url, and ask the rest. */
static bool take_url(struct http_active *active, CURLU *url)
{
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(url, CURLUPART_OPTIONS, NULL, 0);
    curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    curl_free(active->url);
    active->url = url_part(url, CURLUPART_URL, 0);
    return active->url != NULL;
}

/* The origin of a URL, "https://host:443", in small letters; NULL: it is not one of HTTP, or no
 * memory. */
static char *origin_of(CURLU *url)
{
    char *scheme = url_part(url, CURLUPART_SCHEME, 0), *host = url_part(url, CURLUPART_HOST, 0),
         *port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT), *ret = NULL;

    if (scheme && host && port && !strncasecmp(scheme, "http", 4))
        text_print(&ret, "%s://%s:%s", scheme, host, port);
    for (char *c = ret; c && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return ret;
}

/* libcurl removes "." and ".." from paths that it signs, so it would ask for another object. */
static bool may_be_signed(CURLU *url, const char *text)
{
    CURLU *other = curl_url();
    char *path = url_part(url, CURLUPART_PATH, 0), *as_signed = NULL;
    bool same;

    if (other && curl_url_set(other, CURLUPART_URL, text, 0) == CURLUE_OK)
        as_signed = url_part(other, CURLUPART_PATH, 0);
    same = path && as_signed && !strcmp(path, as_signed);
    curl_free(path);
    curl_free(as_signed);
    curl_url_cleanup(other);
    return same;
}

/* NULL, or what is wrong. */
const char *http_target_first(struct http_active *active)
{
    CURLU *url = curl_url();
    const char *why = "out of memory";

    if (!url)
        return why;
    free(active->origin);
    active->origin = NULL;
    if (curl_url_set(url, CURLUPART_URL, active->request->url, CURLU_PATH_AS_IS) != CURLUE_OK ||
        !(active->origin = origin_of(url))) {
        why = "it is not an http or https URL";
    } else if (active->request->signature && !may_be_signed(url, active->request->url)) {
        why = "expected a path without . and .., which is signed; got one";
    } else {
        active->user = url_part(url, CURLUPART_USER, CURLU_URLDECODE);
        active->password = url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
        if (take_url(active, url))
            why = NULL;
    }
    curl_url_cleanup(url);
    return why;
}

/* Ask the URL that the redirect names. NULL, or why not. */
const char *http_target_next(struct http_active *active)
{
    CURLU *to = curl_url();
    AUTO_FREE char *origin = NULL;
    const char *why = "out of memory";
    bool from_here = to && curl_url_set(to, CURLUPART_URL, active->url, 0) == CURLUE_OK;

    if (from_here && (curl_url_set(to, CURLUPART_URL, active->request->reply.location,
                                   CURLU_URLENCODE) != CURLUE_OK ||
                      !(origin = origin_of(to))))
        why = "redirected to something that is not an http or https URL";
    else if (from_here && !strncmp(active->origin, "https:", 6) && strncmp(origin, "https:", 6))
        why = "redirected from https to http";
    else if (from_here && take_url(active, to))
        why = NULL;
    if (!why) {
        active->foreign = active->foreign || strcmp(active->origin, origin) != 0;
        free(active->origin);
        active->origin = TAKE_PTR(origin);
    }
    curl_url_cleanup(to);
    return why;
}

const char *http_target_kept(struct http_active *active)
{
    struct kept_targets *targets = active->http->loop->targets;
    struct http_reply *reply = &active->request->reply;
    const char *kept = targets ? kept_target_find(targets, active->request->url,
                                                  clock_wall(active->http->clock) / 1000000000)
                               : NULL;
    const char *why;

    if (!kept || strlen(kept) >= sizeof(reply->location))
        return NULL;
    memcpy(reply->location, kept, strlen(kept) + 1);
    why = http_target_next(active);
    active->kept = !why;
    return why;
}

bool http_target_settle(struct http_active *active, const char **ret_why)
{
    struct kept_targets *targets = active->http->loop->targets;
    const struct http_request *request = active->request;
    bool is_good = request->reply.complete && request->reply.status / 100 == 2;

    if (!targets || !active->foreign)
        return false;
    if (is_good && !active->kept)
        kept_target_add(targets, request->url, active->url,
                        clock_wall(active->http->clock) / 1000000000);
    if (is_good || !active->kept)
        return false;
    kept_target_drop(targets, request->url);
    active->kept = active->foreign = false;
    if (!request->reply.complete) /* the server is tried again later */
        return false;
    curl_free(active->user);
    if (active->password)
        explicit_bzero(active->password, strlen(active->password));
    curl_free(active->password);
    active->user = active->password = NULL;
    *ret_why = http_target_first(active);
    return true;
}

bool http_target_front(struct http_active *active)
{
    CURLU *url = curl_url();
    const char *port = strrchr(active->origin, ':');

    curl_free(active->front_url);
    active->front_url = NULL;
    /* The front is asked by http, whose default port is 80. */
    if (url && curl_url_set(url, CURLUPART_URL, active->url, CURLU_PATH_AS_IS) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_SCHEME, "http", 0) == CURLUE_OK &&
        (strncmp(active->origin, "https:", 6) != 0 || strcmp(port, ":443") != 0 ||
         curl_url_set(url, CURLUPART_PORT, NULL, 0) == CURLUE_OK))
        active->front_url = url_part(url, CURLUPART_URL, 0);
    curl_url_cleanup(url);
    return active->front_url != NULL;
}
