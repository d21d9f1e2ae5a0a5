/* A remote as an example, which the unit tests add to the table of remotes: shelf://HOST/FOLDER is
 * a folder of a web server with a list of its files, FOLDER/shelf.json:
 *
 *   [{"path": "a/b", "size": 5, "etag": "\"1\""}, ...]
 *
 * A file without a size or an ETag is asked for them. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cache/http/url.h"
#include "cache/source/remote.h"

static int shelf_add(struct source *source, const json_t *file, struct diag *d)
{
    const char *path = json_string_value(json_object_get(file, "path"));
    const char *etag = json_string_value(json_object_get(file, "etag"));
    const json_t *size = json_object_get(file, "size");
    struct remote_version version = {.size = 0};
    const char *wrong;

    if (!path || (size && (!json_is_integer(size) || json_integer_value(size) < 0)) ||
        (etag && strlen(etag) >= sizeof(version.etag)))
        return diag_set(d, -EBADMSG, "%sshelf.json: expected files with path, size and etag",
                        source->root);
    wrong = name_wrong(path);
    if (wrong)
        return remote_add_wrong(source, path, wrong);
    if (name_hidden(path))
        return 0;
    if (!size || !etag)
        return remote_add(source, path, NULL);
    version.size = (uint64_t)json_integer_value(size);
    memcpy(version.etag, etag, strlen(etag) + 1);
    return remote_add(source, path, &version);
}

static int shelf_list(struct source *source, struct diag *d)
{
    AUTO_FREE char *url = NULL;
    AUTO_TEXT struct text text = {0};
    AUTO_JSON json_t *files = NULL;
    int r = remote_url(source, "shelf.json", &url);

    if (r == 0)
        r = http_get(source->http, &(struct http_call){.url = url, .most = REMOTE_TEXT_MOST}, &text,
                     d);
    if (r == 0)
        r = json_read(text.data ? text.data : "", text.len, "shelf.json", json_budget(text.len),
                      &files, d);
    if (r == 0 && !json_is_array(files))
        r = diag_set(d, -EBADMSG, "%sshelf.json: expected a list of files", source->root);
    for (size_t i = 0; r == 0 && i < json_array_size(files); i++)
        r = shelf_add(source, json_array_get(files, i), d);
    return r == 0 ? known_sort(&source->known) : r;
}

static int shelf_make(struct source *source, const char *spec, const struct source_options *options,
                      struct diag *d)
{
    AUTO_FREE char *http = NULL, *url = NULL;
    struct url_parts at;
    bool asked;
    int r = text_print(&http, "http://%s", spec);

    if (r == 0)
        r = url_clean(http, &url, &at, d);
    if (r == 0)
        r = text_print(&source->base, "%.*s%s", (int)at.query, url,
                       url[at.query - 1] == '/' ? "" : "/");
    if (r == 0)
        r = text_print(&source->root, "shelf://%s", source->base + at.host);
    if (r == 0)
        r = remote_connect(source, options, NULL, d);
    if (r == 0)
        r = shelf_list(source, d);
    return r == 0 ? remote_stat(source, &asked, d) : r;
}

const struct remote remote_shelf = {
    .scheme = "shelf://", .help = "shelf://HOST/FOLDER", .make = shelf_make, .far = true};
