/* Where redirects led: a table in which a newer URL takes the place of an older one. */
#include "cache/http/kept_target.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define USUAL_S  600
#define MARGIN_S 60
#define MOST_S   86400

static struct kept_target *kept_target_place_of(struct kept_targets *kept, const char *url)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *url; url++)
        hash = (hash ^ (unsigned char)*url) * UINT64_C(1099511628211);
    return &kept->at[(hash ^ hash >> 32) % KEPT_TARGETS];
}

static void kept_target_clear(struct kept_target *place)
{
    if (place->target)
        explicit_bzero(place->target, strlen(place->target));
    free(place->target);
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

const char *kept_target_find(struct kept_targets *kept, const char *url, int64_t now_s)
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

void kept_target_add(struct kept_targets *kept, const char *url, const char *target, int64_t now_s)
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
