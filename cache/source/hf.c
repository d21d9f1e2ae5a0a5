/* The Hugging Face Hub: hf://datasets/OWNER/NAME[@REVISION][/PATH], and models without "datasets/".
 *
 * One request turns the revision into a commit, and all later requests name that commit: a URL
 * names one version of a file, so nothing changes under a mount, and files are known by their size.
 * The tree of the commit, 1,000 entries a page, has sizes and hashes, so no file needs a request of
 * its endpoint_len. Large files are redirected to other servers, which do not get the token
 * (cache/http/target.c).
 *
 * What the Hub's library has downloaded is read in place: a file whose hash names one of its blobs;
 * the whole snapshot if the Hub may not be asked, or does not answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "cache/disk/sha256.h"
#include "cache/http/credentials.h"
#include "cache/http/reply.h"
#include "cache/http/url.h"
#include "cache/source/hf_local.h"
#include "cache/source/hf_reply.h"
#include "cache/source/joined.h"
#include "cache/source/remote.h"

#define FILES_MOST 4000000
#define PAGES_MOST 10000
#define PAGE_MOST  (8u << 20)
#define HUB        "https://huggingface.co"

extern const struct remote remote_local;

/* SOURCE while it is being opened. */
struct hf {
    struct source *source;
    const struct source_options *options;
    char *folder; /* source->impl: of the repository in the library's cache; "": it has none */
    bool is_model;
    char *id, *revision, *path; /* path: "" or without '/' at its ends */
    char *endpoint;
    char commit[HF_HASH_SIZE];
    char shown[512];
    size_t others;  /* entries that are no files */
    uint64_t *page; /* [n_pages] hashes of their URLs */
    size_t n_pages;
    bool found; /* for one file: it is in the list */
};

static void hf_clear(struct hf *hf)
{
    free(hf->id);
    free(hf->revision);
    free(hf->path);
    free(hf->endpoint);
    free(hf->page);
}

/* ---- SOURCE's text ---- */

/* How many bytes of text are a revision: up to '/', but refs/pr/N and refs/convert/X are one. */
static size_t hf_revision_len(const char *text)
{
    static const char *const longer[] = {"refs/pr/", "refs/convert/"};
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(longer); i++)
        if (!strncmp(text, longer[i], strlen(longer[i])))
            len = strlen(longer[i]);
    return len + strcspn(text + len, "/");
}

static bool hf_is_id(const char *id)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/";

    return *id && strspn(id, good) == strlen(id) && !name_wrong(id) && !name_hidden(id);
}

/* Set id, revision and path of "OWNER/NAME@REVISION/PATH"; old datasets have no owner. */
static int hf_split_rest(struct hf *hf, const char *spec)
{
    size_t owner = strcspn(spec, "/@"), len = owner;
    AUTO_FREE char *revision = NULL;

    if (spec[owner] == '/')
        len += 1 + strcspn(spec + owner + 1, "/@");
    hf->id = strndup(spec, spec[len - 1] == '/' ? len - 1 : len);
    spec += len;
    len = *spec == '@' ? hf_revision_len(++spec) : 0;
    revision = len ? strndup(spec, len) : strdup("main");
    spec += len;
    spec += strspn(spec, "/");
    for (len = strlen(spec); len && spec[len - 1] == '/';)
        len--;
    hf->path = strndup(spec, len);
    hf->revision = revision ? malloc(strlen(revision) + 1) : NULL;
    if (!hf->id || !hf->path || !hf->revision)
        return -ENOMEM;
    return url_decode(revision, strlen(revision), hf->revision) ? 0 : -EINVAL;
}

static int hf_split(struct hf *hf, const char *spec, struct diag *d)
{
    static const char *const not_files[] = {"spaces/", "buckets/"};
    const char *scheme = hf->source->remote->scheme;
    size_t at = strlen(scheme);
    int r = 0;

    memcpy(hf->shown, scheme, at);
    name_show(spec, hf->shown + at, sizeof(hf->shown) - at);
    for (size_t i = 0; i < ARRAY_LEN(not_files); i++)
        if (!strncmp(spec, not_files[i], strlen(not_files[i])))
            return diag_set(d, -EINVAL, "%s: expected a dataset or a model, got %s", hf->shown,
                            not_files[i]);
    hf->is_model = strncmp(spec, "datasets/", 9) != 0;
    if (!hf->is_model)
        spec += 9;
    r = *spec ? hf_split_rest(hf, spec) : -EINVAL;
    if (r == -ENOMEM)
        return r;
    if (r < 0 || !hf_is_id(hf->id) || (*hf->path && name_wrong(hf->path)) || !*hf->revision ||
        name_wrong(hf->revision))
        return diag_set(
            d, -EINVAL,
            "%s: expected hf://datasets/OWNER/NAME[@REVISION][/PATH], got something else",
            hf->shown);
    return 0;
}

/* ---- requests ---- */

static const char *hf_kind_of(const struct hf *hf)
{
    return hf->is_model ? "models" : "datasets";
}

/* The Hub has refused: say why, in words that help. */
static int hf_describe(const struct hf *hf, int r, const struct http_reply *heard,
                       const struct diag *why, struct diag *d)
{
    const char *said = heard->said;
    char origin[400];
    bool token;

    credentials_origin(hf->source->credentials, origin, sizeof(origin));
    token = !strncmp(origin, "token", 5);
    if (!strcmp(heard->said_code, "GatedRepo"))
        return diag_set(d, -EACCES, "%s: is gated: accept its terms at %s/%s%s, then %s (%s) %s",
                        hf->shown, hf->endpoint, hf->is_model ? "" : "datasets/", hf->id,
                        token ? "mount it with the token of that account" : "set HF_TOKEN", origin,
                        said);
    if (!strcmp(heard->said_code, "RevisionNotFound"))
        return diag_set(d, -ENOENT, "%s: has no revision '%s'", hf->shown, hf->revision);
    if (!strcmp(heard->said_code, "EntryNotFound"))
        return diag_set(d, -ENOENT, "%s: has no file or folder '%s'", hf->shown, hf->path);
    if (!strcmp(heard->said_code, "RepoNotFound") || heard->status == 401)
        return diag_set(
            d, -ENOENT,
            token ? "%s: is missing, or private and the %s may not read it"
                  : "%s: is missing, or private: %s (HF_TOKEN, ~/.cache/huggingface/token)",
            hf->shown, origin);
    if (heard->status == 404)
        return diag_set(d, r, "%s: %s; is %s a Hub?", hf->shown, diag_text(why, r), hf->endpoint);
    return diag_set(d, r, "%s: %s%s%s%s", hf->shown, diag_text(why, r), *said ? ": " : "", said,
                    heard->status == 429 && !token ? ". With a token (HF_TOKEN) it allows more"
                                                   : "");
}

/* Get a reply of the API. */
static int hf_get(struct hf *hf, const char *url, struct text *ret, struct http_reply *ret_heard,
                  struct diag *d)
{
    const struct http_call call = {.url = url, .most = PAGE_MOST, .heard = ret_heard};
    struct diag why = DIAG_INIT;
    int r;

    *ret_heard = (struct http_reply){.status = 0};
    r = http_get(hf->source->http, &call, ret, &why);
    return r < 0 ? hf_describe(hf, r, ret_heard, &why, d) : 0;
}

/* Ask which commit the revision is. */
static int hf_find_commit(struct hf *hf, struct diag *d)
{
    AUTO_FREE char *id = NULL;
    AUTO_TEXT struct text url = {0}, reply = {0};
    struct http_reply heard;
    int r;

    text_add(&url, "%s/api/%s/%s/revision/", hf->endpoint, hf_kind_of(hf), hf->id);
    http_encode(&url, hf->revision, false);
    r = url.failed ? -ENOMEM : hf_get(hf, url.data, &reply, &heard, d);
    if (r == 0)
        r = hf_revision_parse(&reply, hf->shown, hf->commit, &id, d);
    if (r < 0 || !id || !strcmp(id, hf->id) || !hf_is_id(id))
        return r;
    remote_note(hf->source, "%s: is %s by now", hf->shown, id);
    free(hf->id);
    hf->id = TAKE_PTR(id);
    return 0;
}

/* The URL of the next page, which must be the Hub's. *ret NULL: there is none. */
static int hf_next_page(struct hf *hf, const char *next, char **ret, struct diag *d)
{
    const char *const places[] = {hf->endpoint, HUB}; /* a mirror copies the Hub's links */
    const char *host = strstr(hf->endpoint, "://") + 3;

    *ret = NULL;
    if (!*next)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        size_t len = strlen(places[i]);

        if (!strncmp(next, places[i], len) && next[len] == '/')
            return text_print(ret, "%s%s", hf->endpoint, next + len);
    }
    if (*next == '/' && next[1] != '/')
        return text_print(ret, "%.*s%s", (int)(host - hf->endpoint) + (int)strcspn(host, "/"),
                          hf->endpoint, next);
    return diag_set(d, -EBADMSG, "%s: expected the next page of its list at %s, got another server",
                    hf->shown, hf->endpoint);
}

/* Note that a page is asked for. -ELOOP: it was before. */
static int hf_note_page(struct hf *hf, const char *url, struct diag *d)
{
    uint64_t hash = XXH3_64bits(url, strlen(url));

    for (size_t i = 0; i < hf->n_pages; i++)
        if (hf->page[i] == hash)
            return diag_set(d, -ELOOP, "%s: its list comes back to a page that was read",
                            hf->shown);
    if (hf->n_pages >= PAGES_MOST)
        return diag_set(d, -E2BIG, "%s: expected at most %d pages of a list, got more", hf->shown,
                        PAGES_MOST);
    if (array_capacity(&hf->page, hf->n_pages, sizeof(*hf->page)) < 0)
        return -ENOMEM;
    hf->page[hf->n_pages++] = hash;
    return 0;
}

/* Call use() for all entries below a folder. */
static int hf_list_tree(struct hf *hf, const char *folder, bool recursive,
                        int (*use)(void *user, const struct hf_entry *entry, struct diag *d),
                        struct diag *d)
{
    AUTO_TEXT struct text first = {0};
    AUTO_FREE char *url = NULL;
    int r;

    text_add(&first, "%s/api/%s/%s/tree/%s%s", hf->endpoint, hf_kind_of(hf), hf->id, hf->commit,
             *folder ? "/" : "");
    http_encode(&first, folder, true);
    text_add(&first, "?recursive=%s&expand=false", recursive ? "true" : "false");
    r = text_finish(&first, &url, NULL);
    while (r == 0 && url) {
        AUTO_TEXT struct text page = {0};
        struct http_reply heard;
        char *next = NULL;

        r = hf_note_page(hf, url, d);
        if (r == 0)
            r = hf_get(hf, url, &page, &heard, d);
        if (r == 0)
            r = hf_tree_parse(&page, hf->shown, use, hf, &hf->others, d);
        if (r == 0)
            r = hf_next_page(hf, heard.next, &next, d);
        free(url);
        url = next;
    }
    return r;
}

/* ---- the files ---- */

/* Files that describe a repository, and are no data; README.md says which files are. */
static bool hf_is_about(const char *path)
{
    static const char *const names[] = {"config.json", "dataset_info.json", "dataset_infos.json",
                                        "dataset_dict.json"};
    const char *name = path_name(path);
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return (len > 3 && !strcmp(name + len - 3, ".py")) || !strncmp(path, "__", 2) ||
           strstr(path, "/__");
}

/* The path below SOURCE; NULL: it is elsewhere. */
static const char *hf_below(const struct hf *hf, const char *path)
{
    size_t len = strlen(hf->path);

    if (!len)
        return path;
    return !strncmp(path, hf->path, len) && path[len] == '/' ? path + len + 1 : NULL;
}

static int hf_use_file(void *user, const struct hf_entry *entry, struct diag *d)
{
    struct hf *hf = user;
    struct source *source = hf->source;
    const char *path = hf_below(hf, entry->path);
    int r;

    if (entry->is_folder)
        return 0;
    if (!path) {
        hf->others++;
        return 0;
    }
    if (name_hidden(path) || hf_is_about(path))
        return 0;
    r = remote_add(source, path, &entry->version);
    if (r == -E2BIG || source->known.files.n > FILES_MOST)
        return diag_set(d, -E2BIG, "%s: too many files, or too large, for one mount", hf->shown);
    return r;
}

/* SOURCE is perhaps a file. */
static int hf_use_only(void *user, const struct hf_entry *entry, struct diag *d)
{
    struct hf *hf = user;

    (void)d;
    if (entry->is_folder || hf->found || strcmp(entry->path, hf->path) != 0)
        return 0;
    hf->found = true;
    return remote_set_file(hf->source, path_name(hf->path), NULL, &entry->version);
}

/* The SHA-256 that are versions prove the bytes of files. */
static int hf_set_sums(struct known *known)
{
    for (size_t i = 0; i < known->files.n; i++) {
        struct remote_version version;
        uint8_t sum[32];

        if (joined_version_get(&known->files, i, &version) && strlen(version.etag) == 64 &&
            hex_parse(version.etag, sizeof(sum), sum) && known_set_sha256(known, i, sum) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Set root and base to the folder of len bytes of the path. */
static int hf_set_place(struct hf *hf, size_t len)
{
    struct source *source = hf->source;
    AUTO_TEXT struct text base = {0};
    AUTO_FREE char *folder = NULL;
    const char *prefix = hf->is_model ? "" : "datasets/";
    bool named = strcmp(hf->revision, "main") != 0;

    if (text_print(&folder, "%.*s%s", (int)len, hf->path, len ? "/" : "") < 0)
        return -ENOMEM;
    free(source->base);
    free(source->root);
    source->base = NULL;
    text_add(&base, "%s/%s%s/resolve/%s/", hf->endpoint, prefix, hf->id, hf->commit);
    http_encode(&base, folder, true);
    text_finish(&base, &source->base, NULL);
    text_print(&source->root, "%s%s%s%s%s/%s", source->remote->scheme, prefix, hf->id,
               named ? "@" : "", named ? hf->revision : "", folder);
    return source->base && source->root ? 0 : -ENOMEM;
}

/* List SOURCE as a folder, otherwise as a file of the folder above. */
static int hf_list_files(struct hf *hf, struct diag *d)
{
    size_t above = path_folder_len(hf->path);
    AUTO_FREE char *folder = strndup(hf->path, above);
    struct diag why = DIAG_INIT;
    int r = hf_list_tree(hf, hf->path, true, hf_use_file, &why);

    if (r == 0 || r != -ENOENT || !*hf->path)
        return r == 0 ? hf_set_place(hf, strlen(hf->path))
                      : diag_set(d, r, "%s", diag_text(&why, r));
    r = folder ? hf_set_place(hf, above) : -ENOMEM;
    if (r == 0)
        r = hf_list_tree(hf, folder, false, hf_use_only, d);
    if (r == 0 && !hf->found)
        return diag_set(d, -ENOENT, "%s: has no file or folder '%s'", hf->shown, hf->path);
    return r;
}

static int hf_set_commit(const struct hf *hf)
{
    hf->source->revision = strdup(hf->revision);
    hf->source->commit = strdup(hf->commit);
    return hf->source->revision && hf->source->commit ? 0 : -ENOMEM;
}

static int hf_open_hub(struct hf *hf, struct diag *d)
{
    struct source *source = hf->source;
    int r = hf_list_files(hf, d);

    if (r == 0)
        r = known_sort(&source->known);
    if (r == 0)
        r = hf_set_sums(&source->known);
    if (r == 0 && hf->others)
        remote_note(source,
                    "%zu entries of its list are ignored: they are no files, or have names that "
                    "files cannot have",
                    hf->others);
    if (r == 0)
        r = hf_set_commit(hf);
    if (r == 0)
        remote_note(source, "revision %s is commit %s", hf->revision, hf->commit);
    return r;
}

/* Serve the snapshot of the library's cache, as a local SOURCE. */
static int hf_open_snapshot(struct hf *hf, struct diag *d)
{
    struct source *source = hf->source;
    char path[PATH_MAX];
    bool sure;
    int r;

    if (!*hf->folder || !hf_cache_commit(hf->folder, hf->revision, hf->commit))
        return diag_set(d, -ENOENT, "%s: is not in the cache of the Hub's library (%s)", hf->shown,
                        hf->folder);
    r = hf_cache_snapshot(hf->folder, hf->commit, hf->path, path, &sure, d);
    if (r == 0)
        r = hf_set_commit(hf);
    if (r < 0)
        return r;
    remote_note(source, "revision %s is commit %s, read in %s%s", hf->revision, hf->commit, path,
                sure ? "" : "; whether all of its files are there is not known");
    stage_free(source->stage);
    source->stage = NULL;
    source->joins = NULL;
    source->http = NULL;
    credentials_free(source->credentials);
    source->credentials = NULL;
    source->remote = &remote_local;
    return remote_local.make(source, path, hf->options, d);
}

/* Files of the library's cache count as inside. */
static int hf_add_blobs(struct hf *hf)
{
    char path[PATH_MAX];
    struct stat st;

    if (!hf_cache_folder(hf_kind_of(hf), hf->id, hf->folder) ||
        snprintf(path, sizeof(path), "%s/blobs", hf->folder) >= PATH_MAX || stat(path, &st) < 0)
        return 0;
    return roots_add(&hf->source->roots, path);
}

static int hf_make(struct source *source, const char *spec, const struct source_options *options,
                   struct diag *d)
{
    AUTO(hf_clear) struct hf hf = {.source = source, .options = options};
    struct diag why = DIAG_INIT;
    int r = hf_split(&hf, spec, d);

    if (r < 0)
        return r;
    source->impl = hf.folder = calloc(1, PATH_MAX);
    r = hf.folder ? credentials_new(&(struct credentials_options){.find_token = hf_find_token},
                                    &source->credentials, d)
                  : -ENOMEM;
    if (r == 0)
        r = hf_endpoint(&hf.endpoint, d);
    if (r == 0)
        r = hf_add_blobs(&hf);
    if (r == 0 && hf_is_offline())
        return hf_open_snapshot(&hf, d);
    if (r == 0)
        r = remote_connect(source, options, credentials_signer(source->credentials), d);
    if (r < 0)
        return r;
    r = hf_find_commit(&hf, &why);
    /* The Hub does not answer: what is known of the revision may do. */
    if (r == -EREMOTEIO && http_is_silent(source->http, NULL) && hf_open_snapshot(&hf, NULL) == 0) {
        remote_note(source, "%s", diag_text(&why, r));
        return 0;
    }
    if (r == 0)
        r = hf_open_hub(&hf, &why);
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

/* A file whose hash names a blob of the library's cache is read there. */
static int hf_open(const struct source *source, const struct source_entry *entry,
                   struct blob **ret_blob, struct diag *d)
{
    const char *folder = source->impl;
    char path[PATH_MAX];
    struct stat st;

    if (*folder && hf_is_hash(entry->version->etag) &&
        snprintf(path, sizeof(path), "%s/blobs/%s", folder, entry->version->etag) < PATH_MAX &&
        stat(path, &st) == 0 && (uint64_t)st.st_size == entry->version->size &&
        local_blob_open(NULL, NULL, &source->within, path, entry->name, ret_blob, NULL) == 0)
        return 0;
    return remote_open(source, entry, ret_blob, d);
}

const struct remote remote_hf = {.scheme = "hf://",
                                 .help = "hf://datasets/OWNER/NAME",
                                 .make = hf_make,
                                 .open = hf_open,
                                 .far = true,
                                 .etag_suffices = true,
                                 .pinned = true,
                                 .paths_decoded = true};
