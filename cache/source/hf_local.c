/* The Hugging Face Hub on this machine. Names and places are those of its library, huggingface_hub:
 *
 *   $HF_HOME/token, $HF_HOME/hub/datasets--OWNER--NAME/refs/REVISION   a commit, as text
 *                                                     /snapshots/COMMIT/PATH   links to ../../blobs
 *                                                     /trees/COMMIT.json       what all of it is */
#include "cache/source/hf_local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "base/text.h"
#include "cache/disk/folder.h"
#include "cache/disk/local_file.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/url.h"
#include "cache/source/hf_reply.h"

#define TOKEN_MOST 4096
#define TREE_MOST  (256u << 20)

static bool hf_local_is_set(const char *name)
{
    static const char *const words[] = {"1", "on", "yes", "true"};
    const char *value = environment(name);

    for (size_t i = 0; value && i < ARRAY_LEN(words); i++)
        if (!strcasecmp(value, words[i]))
            return true;
    return false;
}

bool hf_is_offline(void)
{
    return hf_local_is_set("HF_HUB_OFFLINE");
}

int hf_endpoint(char **ret, struct diag *d)
{
    const char *named = environment("HF_ENDPOINT");

    if (!named)
        named = "https://huggingface.co";
    if (!container_url_is_good(named)) /* plain HTTP shows the token to the network */
        return diag_set(d, -EINVAL,
                        "$HF_ENDPOINT: expected a URL with https:// (or http:// of this machine), "
                        "got another: a token that is sent there could be read on the way");
    return url_endpoint(named, "$HF_ENDPOINT", ret, d);
}

/* A path below $HF_HOME. */
static bool hf_local_home_of_hub(const char *name, char ret[static PATH_MAX])
{
    const char *home = environment("HF_HOME"), *cache = environment("XDG_CACHE_HOME");
    char below[64];

    if (home)
        return snprintf(ret, PATH_MAX, "%s%s", home, name) < PATH_MAX;
    if (cache)
        return snprintf(ret, PATH_MAX, "%s/huggingface%s", cache, name) < PATH_MAX;
    snprintf(below, sizeof(below), "/.cache/huggingface%s", name);
    return home_path(below, ret, PATH_MAX);
}

/* ---- the token ---- */

int hf_find_token(char **ret, char *ret_origin, size_t capacity, struct diag *d)
{
    static const char *const names[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    const char *named = environment("HF_TOKEN_PATH");
    AUTO_SECRET struct text text = {0};
    char path[PATH_MAX];
    struct stat st;
    int r = 0;

    if (hf_local_is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(names) && !text.len; i++) {
        snprintf(ret_origin, capacity, "token of $%s", names[i]);
        text_add(&text, "%s", environment(names[i]) ? environment(names[i]) : "");
    }
    if (!text.len && !text.failed) {
        if (named)
            snprintf(path, sizeof(path), "%s", named);
        else if (!hf_local_home_of_hub("/token", path))
            return 0;
        snprintf(ret_origin, capacity, "token of %s", path);
        text_release(&text);
        r = file_read_whole(path, TOKEN_MOST, &text, &st);
    }
    if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
        return 0;
    if (r < 0)
        return diag_set(d, r, "the token of the Hub: %s", strerror(-r));
    if (text.failed)
        return -ENOMEM;
    text_trim(text.data);
    *ret = *text.data ? TAKE_PTR(text.data) : NULL;
    return 0;
}

/* ---- what the library has downloaded ---- */

bool hf_cache_folder(const char *type, const char *id, char ret[static PATH_MAX])
{
    const char *hub = environment("HF_HUB_CACHE");
    char place[PATH_MAX], name[512] = "";
    size_t n = 0;

    if (!hub)
        hub = environment("HUGGINGFACE_HUB_CACHE");
    if (!hub && !hf_local_home_of_hub("/hub", place))
        return false;
    for (; *id && n + 3 < sizeof(name); id++) {
        name[n++] = *id == '/' ? '-' : *id;
        if (*id == '/')
            name[n++] = '-';
    }
    name[n] = '\0';
    return snprintf(ret, PATH_MAX, "%s/%s--%s", hub ? hub : place, type, name) < PATH_MAX;
}

bool hf_cache_of_path(const char *path, char ret_commit[static 41], char ret_blobs[static PATH_MAX])
{
    static const char snapshots[] = "/snapshots/";

    for (const char *at = path; (at = strstr(at, snapshots)); at++) {
        snprintf(ret_commit, 41, "%s", at + strlen(snapshots));
        if (hf_is_commit(ret_commit) && strchr("/", at[strlen(snapshots) + 40]))
            return snprintf(ret_blobs, PATH_MAX, "%.*s/blobs", (int)(at - path), path) < PATH_MAX;
    }
    return false;
}

const char *hf_cache_hash(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t len = name ? (size_t)(name - path) : 0;

    return len > strlen("/blobs") && !memcmp(name - strlen("/blobs"), "/blobs", strlen("/blobs")) &&
                   memmem(path, len, "s--", 3) && hf_is_hash(name + 1)
               ? name + 1
               : NULL;
}

bool hf_cache_commit(const char *folder, const char *revision, char ret_commit[static 65])
{
    AUTO_TEXT struct text text = {0};
    char path[PATH_MAX];
    struct stat st;

    if (hf_is_commit(revision)) {
        snprintf(ret_commit, HF_HASH_SIZE, "%s", revision);
        return true;
    }
    if (name_wrong(revision) ||
        snprintf(path, sizeof(path), "%s/refs/%s", folder, revision) >= PATH_MAX ||
        file_read_whole(path, HF_HASH_SIZE, &text, &st) < 0)
        return false;
    text_trim(text.data);
    if (!hf_is_commit(text.data))
        return false;
    snprintf(ret_commit, HF_HASH_SIZE, "%s", text.data);
    return true;
}

/* Counts the files of a list that are in a snapshot. */
struct hf_count {
    const char *snapshot, *path;
    size_t files, found;
};

static int hf_local_count_file(void *user, const struct hf_entry *entry, struct diag *d)
{
    struct hf_count *count = user;
    size_t len = strlen(count->path);
    char path[PATH_MAX];
    struct stat st;

    (void)d;
    if (len && (strncmp(entry->path, count->path, len) != 0 ||
                (entry->path[len] && entry->path[len] != '/')))
        return 0;
    if (name_wrong(entry->path))
        return 0;
    count->files++;
    count->found +=
        snprintf(path, sizeof(path), "%s/%s", count->snapshot, entry->path) < PATH_MAX &&
        stat(path, &st) == 0 && (uint64_t)st.st_size == entry->version.size;
    return 0;
}

int hf_cache_snapshot(const char *folder, const char *commit, const char *path,
                      char ret[static PATH_MAX], bool *ret_sure, struct diag *d)
{
    AUTO_TEXT struct text tree = {0};
    char list[PATH_MAX], snapshot[PATH_MAX];
    struct hf_count count = {.snapshot = snapshot, .path = path};
    struct stat st;
    int r;

    if (snprintf(snapshot, PATH_MAX, "%s/snapshots/%s", folder, commit) >= PATH_MAX ||
        snprintf(list, PATH_MAX, "%s/trees/%s.json", folder, commit) >= PATH_MAX ||
        snprintf(ret, PATH_MAX, "%s%s%s", snapshot, *path ? "/" : "", path) >= PATH_MAX)
        return diag_set(d, -ENAMETOOLONG, "%.200s: its path is too long", folder);
    if (stat(ret, &st) < 0)
        return diag_set(d, -ENOENT, "%s: is not in the cache of the Hub's library", ret);
    r = file_read_whole(list, TREE_MOST, &tree, &st);
    *ret_sure = r == 0;
    if (r < 0)
        return r == -ENOENT ? 0 : diag_set(d, r, "%s: %s", list, strerror(-r));
    r = hf_kept_tree_parse(&tree, list, hf_local_count_file, &count, d);
    if (r == 0 && count.found < count.files)
        return diag_set(d, -ENOENT, "%zu of %zu files are in the cache (%s)", count.found,
                        count.files, snapshot);
    return r;
}
