/* What the Hugging Face Hub says of a repository: JSON, of which few members count. */
#include "cache/source/hf_reply.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cache/http/url.h"

static bool hf_reply_is_hex(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

bool hf_is_commit(const char *text)
{
    return hf_reply_is_hex(text, 40);
}

bool hf_is_hash(const char *text)
{
    return hf_reply_is_hex(text, 40) || hf_reply_is_hex(text, 64);
}

static int hf_reply_read_reply(const struct text *text, const char *shown, json_t **ret,
                               struct diag *d)
{
    return json_read_nul(text->data ? text->data : "", text->len, shown, json_budget(text->len),
                         ret, d);
}

int hf_revision_parse(const struct text *text, const char *shown,
                      char ret_commit[static HF_HASH_SIZE], char **ret_id, struct diag *d)
{
    AUTO_JSON json_t *reply = NULL;
    const char *commit, *id;
    int r = hf_reply_read_reply(text, shown, &reply, d);

    if (r < 0)
        return r;
    commit = json_string_value(json_object_get(reply, "sha"));
    id = json_string_value(json_object_get(reply, "id"));
    if (!commit || !hf_is_commit(commit))
        return diag_set(d, -EBADMSG, "%s: expected a commit in the Hub's reply, got none", shown);
    memcpy(ret_commit, commit, strlen(commit) + 1);
    return text_copy(id, ret_id);
}

/* Read size and hash of a file. false: they are not what they should be. */
static bool hf_reply_read_version(const json_t *size, const json_t *hash, struct hf_entry *ret)
{
    const char *text = json_string_value(hash);

    if (!json_is_integer(size) || json_integer_value(size) < 0 || !text || !hf_is_hash(text))
        return false;
    ret->version.size = (uint64_t)json_integer_value(size);
    memcpy(ret->version.etag, text, strlen(text) + 1);
    return true;
}

static int hf_reply_use_entry(const json_t *value, const char *shown,
                              int (*use)(void *user, const struct hf_entry *entry, struct diag *d),
                              void *user, size_t *others, struct diag *d)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    const json_t *lfs = json_object_get(value, "lfs"), *from = json_is_object(lfs) ? lfs : value;
    const json_t *path = json_object_get(value, "path");
    struct hf_entry entry = {.path = json_string_value(path)};

    if (!type || !entry.path)
        return diag_set(d, -EBADMSG, "%s: expected entries with type and path, got another", shown);
    entry.is_folder = !strcmp(type, "directory");
    if ((!entry.is_folder && strcmp(type, "file") != 0) || name_wrong(entry.path) ||
        strlen(entry.path) != json_string_length(path)) {
        ++*others;
        return 0;
    }
    if (!entry.is_folder &&
        !hf_reply_read_version(json_object_get(from, "size"), json_object_get(from, "oid"), &entry))
        return diag_set(d, -EBADMSG, "%s: %.200s: expected a size and a hash, got something else",
                        shown, entry.path);
    return use(user, &entry, d);
}

int hf_tree_parse(const struct text *text, const char *shown,
                  int (*use)(void *user, const struct hf_entry *entry, struct diag *d), void *user,
                  size_t *others, struct diag *d)
{
    AUTO_JSON json_t *reply = NULL;
    int r = hf_reply_read_reply(text, shown, &reply, d);

    if (r == 0 && !json_is_array(reply))
        return diag_set(d, -EBADMSG, "%s: expected a list of files, got other JSON", shown);
    for (size_t i = 0; r == 0 && i < json_array_size(reply); i++)
        r = hf_reply_use_entry(json_array_get(reply, i), shown, use, user, others, d);
    return r;
}

int hf_kept_tree_parse(const struct text *text, const char *shown,
                       int (*use)(void *user, const struct hf_entry *entry, struct diag *d),
                       void *user, struct diag *d)
{
    AUTO_JSON json_t *reply = NULL;
    json_t *files, *value;
    const char *path;
    int r = hf_reply_read_reply(text, shown, &reply, d);

    if (r < 0)
        return r;
    files = json_object_get(reply, "files");
    if (!json_is_object(files))
        return diag_set(d, -EBADMSG, "%s: expected files, got none", shown);
    json_object_foreach(files, path, value)
    {
        struct hf_entry entry = {.path = path};
        const json_t *size = json_object_get(value, "lfs_size"),
                     *hash = json_object_get(value, "lfs_sha256");

        if (!json_is_integer(size))
            size = json_object_get(value, "size");
        if (!json_is_string(hash))
            hash = json_object_get(value, "blob_id");
        if (!hf_reply_read_version(size, hash, &entry))
            return diag_set(d, -EBADMSG,
                            "%s: %.200s: expected a size and a hash, got something else", shown,
                            path);
        r = use(user, &entry, d);
        if (r != 0)
            return r;
    }
    return 0;
}
