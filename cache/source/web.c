/* Web servers: http:// and https://.
 *
 * HTTP has no listings. The files below SOURCE are those that -o files= names; without it those of
 * a SHA256SUMS; without that those of the server's index pages, folder by folder. If there is none
 * of these, SOURCE is a file. A URL with a query is a file: so are presigned ones. Only the server
 * gets the query. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/url.h"
#include "cache/source/index_page.h"
#include "cache/source/remote.h"
#include "cache/source/shared_list.h"
#include "cache/source/web_kept.h"

#define DEPTH_MOST   16
#define ENTRIES_MOST 100000
#define INDEXED_MOST 4000000 /* entries, for `epochfs index`: it takes as long as it takes */
#define BESIDE_MOST  20000   /* entries, if SOURCE is one file */
#define BESIDE_PAGES 64
#define FOLDERS_MANY 16 /* from which a list is looked for that spares their pages */
#define PAGES_AHEAD  16 /* index pages asked for at once */

/* What helps where a server does not say which files there are. */
#define HELP_LISTING                                                                               \
    ". Run `find . -type f ! -name SHA256SUMS -exec sha256sum {} + > SHA256SUMS` in that folder, " \
    "or have the server show index pages (nginx: `autoindex on;`), or name the files with "        \
    "-o 'files=NAME;NAME'"

/* Read the files and sums of a SHA256SUMS. asked: its request, may be NULL. 1: there is one; 2: it
 * is long, and all is known of its files from the list next to the data; 0: there is none; or
 * -errno. */
static int read_sums(struct source *source, bool lists, struct http_ahead *asked, struct diag *d)
{
    AUTO_TEXT struct text sums = {0};
    struct diag why = DIAG_INIT;
    size_t n = 0;
    int r = http_ahead_take(asked ? asked : remote_ask(source, "SHA256SUMS"), &sums, NULL, &why);

    if (r == -ENOENT || r == -EACCES || r == -EFBIG)
        return 0;
    if (r < 0)
        return diag_set(d, r, "%s", diag_text(&why, r));
    r = sums.len ? remote_use_sums(source, &sums, lists, &n) : 0;
    if (r < 0 || !n)
        return r;
    if (lists)
        r = known_add_page(&source->known, WEB_SUMS, XXH3_64bits(sums.data, sums.len));
    if (r == 0 && lists && n >= SHARED_LIST_WORTH)
        r = web_kept_shared(source);
    if (r != 1)
        return r < 0 ? r : 1;
    r = remote_use_sums(source, &sums, false, &n);
    return r < 0 ? r : 2;
}

/* ---- index pages ---- */

struct crawl {
    struct source *source;
    struct texts folder; /* to look at, relative to SOURCE */
    size_t next;
    struct http_ahead *first;             /* the page of SOURCE; NULL: not asked for */
    struct http_ahead *page[PAGES_AHEAD]; /* of folders [next, asked), by their numbers */
    size_t asked;
    size_t entries, entries_most; /* links, of all pages */
    size_t pages_most;
    bool looked_for_list;
    size_t elsewhere; /* links that are ignored */
};

static void crawl_release(struct crawl *crawl)
{
    http_ahead_drop(&crawl->first);
    for (size_t i = 0; i < PAGES_AHEAD; i++)
        http_ahead_drop(&crawl->page[i]);
    texts_release(&crawl->folder);
}

/* How many folders below SOURCE is that path? */
static unsigned depth_of(const char *path)
{
    unsigned n = 1;

    for (; *path; path++)
        n += *path == '/';
    return n;
}

static int use_link(struct crawl *crawl, const char *folder, const struct index_link *link,
                    struct diag *d)
{
    char path[PATH_MAX];
    const char *wrong;

    if (++crawl->entries > crawl->entries_most)
        return diag_set(
            d, -E2BIG,
            "%s: expected at most %zu entries in index pages, got more; use a SHA256SUMS, "
            "-o files=, or `epochfs index` once",
            crawl->source->root, crawl->entries_most);
    if (path_below(folder, link->name, path) < 0)
        return 0;
    if (!link->is_folder)
        return remote_add(crawl->source, path, NULL);
    wrong = name_wrong(path);
    if (wrong)
        return remote_add_wrong(crawl->source, path, wrong);
    if (depth_of(path) >= DEPTH_MOST) {
        remote_note(crawl->source, "%s/: folders more than %d deep are ignored", path, DEPTH_MOST);
        return 0;
    }
    return texts_add(&crawl->folder, path);
}

/* The bytes of a URL up to its last '/', without its query. */
static size_t web_folder_len(const char *url)
{
    size_t len = strcspn(url, "?#");

    while (len && url[len - 1] != '/')
        len--;
    return len;
}

/* Take all links of a page. led: where redirects led to it; NULL: nowhere. *ret_links: how many. */
static int web_use_page(struct crawl *crawl, const char *folder, const char *led,
                        const struct text *page, size_t *ret_links, struct diag *d)
{
    AUTO_FREE char *whole = NULL;
    struct index_link link = {.elsewhere = 0}, last = {.is_folder = true};
    size_t at = 0, first = crawl->folder.n, links = 0;
    size_t len = led && !strchr(led, '?') ? web_folder_len(led) : 0;
    bool shows_times = true;
    /* Links are relative to where redirects led, or to the URL that was asked for. */
    int r = len ? text_print(&whole, "%.*s", (int)len, led)
                : web_folder_url(crawl->source, folder, &whole);

    while (r == 0 && index_page_next(page->data, page->len, whole, &at, &link)) {
        if (!strcmp(link.name, last.name)) { /* an icon and a text, one link each */
            last.has_time = last.has_time || link.has_time;
            continue;
        }
        shows_times = shows_times && (last.is_folder || last.has_time);
        links++;
        last = link;
        r = use_link(crawl, folder, &link, d);
    }
    crawl->elsewhere += link.elsewhere;
    texts_sort(&crawl->folder, first); /* the page may name one more than once */
    shows_times = shows_times && (last.is_folder || last.has_time);
    if (r == 0 && shows_times)
        r = known_add_page(&crawl->source->known, folder, XXH3_64bits(page->data, page->len));
    if (r == 0)
        *ret_links = links;
    return r;
}

/* SOURCE's page was redirected: its files are where it was found, unless that place has a query,
 * which is for the page alone. A user of ~/.netrc is for the server that SOURCE names, so files
 * remain there. What is cached is known by SOURCE's name: the next mount may be led elsewhere. */
static int web_move(struct source *source, const char *led)
{
    size_t host = (size_t)(strstr(source->base, "://") + 3 - source->base);
    size_t origin = host + strcspn(source->base + host, "/");
    size_t len = web_folder_len(led);

    if (!len || strchr(led, '?') ||
        (http_sends_user(source->http) && strncmp(led, source->base, origin + 1) != 0))
        return 0;
    if (source->named)
        free(source->base);
    else
        source->named = source->base;
    source->base = NULL;
    return text_print(&source->base, "%.*s", (int)len, led);
}

/* Fetch the page of SOURCE itself, which must exist: is it an index page? sure: it must certainly
 * be one. */
static int use_first(struct crawl *crawl, bool sure, struct diag *d)
{
    AUTO_TEXT struct text page = {0};
    AUTO_FREE char *led = NULL;
    size_t links = 0;
    int r = http_ahead_take(crawl->first ? TAKE_PTR(crawl->first) : remote_ask(crawl->source, ""),
                            &page, &led, d);
    bool is_index = r == 0 && page.len && index_page_is(page.data, page.len);

    if (r < 0)
        return r;
    if (!page.len || (sure && !is_index))
        return 0;
    r = web_use_page(crawl, "", led, &page, &links, d);
    if (r == 0 && is_index && !links && crawl->elsewhere)
        return diag_set(d, -ENODATA,
                        "%s: expected links into this folder, got an index page whose %zu links "
                        "lead elsewhere",
                        crawl->source->root, crawl->elsewhere);
    if (r == 0 && led && (links || is_index))
        r = web_move(crawl->source, led);
    return r < 0 ? r : links || is_index;
}

/* Ask for the pages of the folders that are next. */
static void web_ask_pages(struct crawl *crawl)
{
    size_t end = min_u64(min_u64(crawl->folder.n, crawl->pages_most), crawl->next + PAGES_AHEAD);

    for (; crawl->asked < end; crawl->asked++) {
        char *url = NULL;

        web_folder_url(crawl->source, crawl->folder.text[crawl->asked], &url);
        crawl->page[crawl->asked % PAGES_AHEAD] =
            http_ahead_start(crawl->source->http, url, REMOTE_TEXT_MOST, 0);
    }
}

/* The pages will take many requests, or the versions of their files: is there the list next to the
 * data? It is looked for once. 1, 0 or -ENOMEM. */
static int use_list(struct crawl *crawl)
{
    if (crawl->looked_for_list ||
        (crawl->folder.n < FOLDERS_MANY && crawl->entries < SHARED_LIST_WORTH))
        return 0;
    crawl->looked_for_list = true;
    return web_kept_shared(crawl->source);
}

/* Read all index pages. 1: done; 2: the list next to the data has all; 0: there are none; or
 * -errno.
 */
static int crawl_all(struct crawl *crawl, bool sure, struct diag *d)
{
    struct known *known = &crawl->source->known;
    int r = use_first(crawl, sure, d), list;

    if (r <= 0)
        return r;
    list = use_list(crawl);
    if (list)
        return list < 0 ? list : 2;
    for (; crawl->next < crawl->folder.n && r >= 0; crawl->next++) {
        AUTO_TEXT struct text page = {0};
        AUTO_FREE char *led = NULL;
        struct diag why = DIAG_INIT;
        const char *folder = crawl->folder.text[crawl->next];
        struct http_ahead **asked = &crawl->page[crawl->next % PAGES_AHEAD];
        size_t links;

        if (crawl->next >= crawl->pages_most)
            return -E2BIG;
        web_ask_pages(crawl);
        r = http_ahead_take(TAKE_PTR(*asked), &page, &led, &why);
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            r = known_add_failed(known, folder, diag_text(&why, r), r);
        else if (page.len)
            r = web_use_page(crawl, folder, led, &page, &links, d);
        if (r >= 0)
            r = known_add_folder(known, folder, strlen(folder));
        list = r < 0 ? 0 : use_list(crawl);
        if (list)
            return list < 0 ? list : 2;
    }
    return r < 0 ? r : 1;
}

static int read_index(struct source *source, bool sure, struct http_ahead *first, struct diag *d)
{
    AUTO(crawl_release)
    struct crawl crawl = {.source = source,
                          .first = first,
                          .entries_most = source->indexes ? INDEXED_MOST : ENTRIES_MOST,
                          .pages_most = SIZE_MAX};
    int r = crawl_all(&crawl, sure, d);

    if (r > 0 && crawl.elsewhere)
        remote_note(source, "%zu links of index pages lead elsewhere, and are ignored",
                    crawl.elsewhere);
    return r;
}

static int http_list_beside(struct source *source)
{
    AUTO(crawl_release)
    struct crawl crawl = {
        .source = source, .entries_most = BESIDE_MOST, .pages_most = BESIDE_PAGES};
    int r = read_sums(source, true, NULL, NULL);

    return r ? r : crawl_all(&crawl, true, NULL);
}

/* ---- what SOURCE is ---- */

/* Try SOURCE as a folder. 1: it is one, and its files are known now; 0: it is not; or -errno.
 * Requests the index page ahead, while it looks for SHA256SUMS. */
static int open_folder(struct source *source, bool sure, struct diag *d)
{
    AUTO(http_ahead_drop) struct http_ahead *page = remote_ask(source, "");
    int r = read_sums(source, true, NULL, d);

    if (r == 0)
        r = read_index(source, sure, TAKE_PTR(page), d);
    if (r <= 0 || r == 2)
        return r == 2 ? 1 : r;
    r = known_sort(&source->known);
    if (r == 0)
        r = web_kept_use(source);
    return r < 0 ? r : 1;
}

static int open_named(struct source *source, const char *files, struct diag *d)
{
    AUTO_FREE char *copy = strdup(files);
    char *at = copy, *name;
    int r = copy ? 0 : -ENOMEM;

    while (r == 0 && (name = strsep(&at, ";"))) {
        const char *wrong = *name ? name_wrong(name) : NULL;

        if (wrong)
            return diag_set(d, -EINVAL,
                            "files=%.300s: expected names of files below SOURCE, got %s", name,
                            wrong);
        r = *name ? known_add(&source->known, name, NULL) : 0;
    }
    if (r == 0)
        r = known_sort(&source->known);
    if (r < 0)
        return r;
    r = read_sums(source, false, NULL, NULL); /* it may be missing */
    return r == -ENOMEM ? r : 0;
}

/* The URL is one file with a known version. */
static int web_open_file(struct source *source, const char *url, const struct url_parts *at,
                         const struct remote_version *version, struct diag *d)
{
    AUTO_FREE char *name = NULL;
    const char *slash = memrchr(url, '/', at->query);
    size_t len = (size_t)(url + at->query - slash - 1);

    free(source->root);
    free(source->base);
    source->root = strndup(url, (size_t)(slash + 1 - url));
    source->base = strndup(url, (size_t)(slash + 1 - url));
    name = malloc(len + 1);
    if (!source->root || !source->base || !name)
        return -ENOMEM;
    if (!len || !url_decode(slash + 1, len, name) || name_wrong(name) || strchr(name, '/'))
        return diag_set(d, -EINVAL,
                        "%.*s: expected the URL of a file, or of a folder with '/' at its "
                        "end",
                        (int)at->query, url);
    return remote_set_file(source, name, url, version);
}

/* The folder's page cannot be fetched: say what helps where a server shows none. why: the request's
 * error. */
static int no_listing(const struct source *source, int r, const struct diag *why, struct diag *d)
{
    char users[REMOTE_ADVICE_SIZE];

    remote_advice(source, r, users);
    if (r != 0 && r != -ENOENT && r != -EACCES)
        return diag_set(d, r, "%s%s", diag_text(why, r), users);
    return diag_set(d, r ? r : -ENODATA,
                    "%s: its files are not known: it has neither SHA256SUMS nor an index "
                    "page%s%s%s" HELP_LISTING "%s",
                    source->root, r ? " (" : "", r ? diag_text(why, r) : "", r ? ")" : "", users);
}

/* Open a URL that may name a file or a folder. */
static int open_unknown(struct source *source, char *url, const struct url_parts *at,
                        struct diag *d)
{
    AUTO(http_ahead_drop) struct http_ahead *sums = NULL;
    struct http_file file = {.url = url};
    char users[REMOTE_ADVICE_SIZE];
    int r;

    if (!url[at->query]) {
        char *of_sums;

        text_print(&of_sums, "%.*sSHA256SUMS", (int)(strrchr(url, '/') + 1 - url), url);
        sums = http_ahead_start(source->http, of_sums, REMOTE_TEXT_MOST, 0);
    }
    http_stat(source->http, 1, &file);
    /* A page that the server makes has neither ETag nor time. */
    if (!url[at->query] && (file.error < 0 || !remote_version_is_known(&file.version))) {
        r = open_folder(source, true, NULL);
        if (r > 0 || r == -ENOMEM)
            return r;
        known_release(&source->known);
    }
    if (file.error < 0)
        return diag_set(d, file.error, "%s%s%s", diag_text(&file.why, file.error),
                        !url[at->query] && (file.error == -EACCES || file.error == -ENOENT)
                            ? ". If it is a folder, it has neither SHA256SUMS nor an index "
                              "page" HELP_LISTING
                            : "",
                        remote_advice(source, file.error, users));
    r = web_open_file(source, url, at, &file.version, d);
    if (r == 0 && !url[at->query])
        r = read_sums(source, false, TAKE_PTR(sums), NULL);
    return r == -ENOMEM || r == -EINVAL ? r : 0;
}

static int web_open_any(struct source *source, char *url, const struct url_parts *at,
                        const char *files, struct diag *d)
{
    struct diag why = DIAG_INIT;
    int r;

    if (files && url[at->query])
        return diag_set(d, -EINVAL,
                        "%s: the URL of a folder cannot have a query with files=", source->root);
    if (files)
        return open_named(source, files, d);
    if (url[at->query - 1] != '/' || url[at->query])
        return open_unknown(source, url, at, d);
    r = open_folder(source, false, &why);
    return r > 0 || r == -ENOMEM ? r : no_listing(source, r, &why, d);
}

static int http_make(struct source *source, const char *spec_rest,
                     const struct source_options *options, struct diag *d)
{
    AUTO_FREE char *spec = NULL, *url = NULL;
    struct url_parts at;
    bool asked;
    int r;

    if (text_print(&spec, "%s%s", source->remote->scheme, spec_rest) < 0)
        return -ENOMEM;
    r = url_clean(spec, &url, &at, d);
    if (r < 0)
        return r;
    r = text_print(&source->base, "%.*s%s", (int)at.query, url,
                   url[at.query - 1] == '/' ? "" : "/");
    if (r == 0)
        r = text_print(&source->root, "%s", source->base);
    if (r == 0)
        r = remote_connect(source, options, NULL, d);
    if (r == 0)
        r = web_open_any(source, url, &at, options->files, d);
    if (r >= 0)
        r = remote_stat(source, &asked, d);
    return r == 0 ? web_kept_save(source, asked, now_ns()) : r;
}

#define WEB_REMOTE(prefix)                                                                         \
    {                                                                                              \
        .scheme = prefix, .help = prefix, .make = http_make, .list_beside = http_list_beside,      \
        .far = true                                                                                \
    }

const struct remote remote_http = WEB_REMOTE("http://");
const struct remote remote_https = WEB_REMOTE("https://");
