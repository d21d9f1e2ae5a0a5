/* Pages of a listing of S3, asked for one by one or ahead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "cache/source/remote.h"
#include "cache/source/s3_walk_parts.h"

/* Add a parameter, which comes in the order that signing needs. */
static int s3_ask_add_parameter(struct text *url, const char *name, const char *value)
{
    AUTO_FREE char *encoded = NULL;
    int r = value ? http_encode(value, false, &encoded) : 0;

    if (r == 0 && value)
        text_add(url, "%c%s=%s", memchr(url->data, '?', url->len) ? '&' : '?', name, encoded);
    return r;
}

static int page_url(const struct s3_walk *walk, const struct s3_question *q, char **ret)
{
    AUTO_TEXT struct text url = {0};
    char most[16];
    int r = 0;

    snprintf(most, sizeof(most), "%u", q->most);
    const char *const parameters[][2] = {
        {"continuation-token", q->token},
        {"delimiter", q->delimiter},
        {"encoding-type", "url"},
        {"list-type", "2"},
        {"max-keys", q->most ? most : NULL},
        {"prefix", q->prefix},
        {"start-after", q->token ? NULL : q->after},
    };

    text_add(&url, "%s", walk->listing);
    for (size_t i = 0; i < ARRAY_LEN(parameters) && r == 0; i++)
        r = url.failed ? -ENOMEM : s3_ask_add_parameter(&url, parameters[i][0], parameters[i][1]);
    return r < 0 ? r : text_finish(&url, ret, NULL);
}

int s3_walk_ask(const struct s3_walk *walk, const struct s3_question *question,
                struct s3_asking *ret)
{
    int r;

    free(TAKE_PTR(ret->url));
    r = page_url(walk, question, &ret->url);
    if (r == 0)
        ret->ahead = http_ahead_start(
            walk->http, &(struct http_call){.url = ret->url, .most = REMOTE_TEXT_MOST});
    return r;
}

/* A page that failed is asked for again: its error has a body. */
int s3_walk_take(struct s3_walk *walk, struct s3_asking *asking, struct text *ret, struct diag *d)
{
    const struct http_call call = {.url = asking->url, .most = REMOTE_TEXT_MOST};
    struct http_ahead *ahead = TAKE_PTR(asking->ahead);
    struct diag why = DIAG_INIT;
    int r = ahead ? http_ahead_take(ahead, ret, NULL) : -EAGAIN;

    if (r == 0 || r == -ENOMEM)
        return r;
    text_release(ret);
    r = http_get(walk->http, &call, ret, &why);
    return r < 0 ? walk->failed(walk, r, ret, &why, d) : 0;
}

void s3_asking_release(struct s3_asking *asking)
{
    http_ahead_drop(asking->ahead);
    free(asking->url);
    *asking = (struct s3_asking){0};
}

int s3_walk_parse(const struct s3_walk *walk, const struct text *text, struct s3_page *ret,
                  struct diag *d)
{
    return s3_page_parse(text->data ? text->data : "", text->len, walk->shown, ret, d);
}

int s3_walk_text(struct s3_walk *walk, const struct s3_question *question, struct text *ret,
                 struct diag *d)
{
    AUTO(s3_asking_release) struct s3_asking asking = {0};
    int r = page_url(walk, question, &asking.url);

    return r < 0 ? r : s3_walk_take(walk, &asking, ret, d);
}

int s3_walk_get(struct s3_walk *walk, const struct s3_question *question, struct s3_page *ret,
                struct diag *d)
{
    AUTO_TEXT struct text text = {0};
    int r = s3_walk_text(walk, question, &text, d);

    return r < 0 ? r : s3_walk_parse(walk, &text, ret, d);
}
