/* Bytes as what servers answer when they are asked for a list: the first byte says which. Names
 * that come out stay in their folder, and texts end where they say. */
#include <string.h>

#include "cache/http/credentials_parse.h"
#include "cache/http/reply_fields.h"
#include "cache/http/url.h"
#include "cache/source/hf_reply.h"
#include "cache/source/index_page.h"
#include "cache/source/s3_list.h"
#include "cache/source/sha256sums.h"
#include "fuzz.h"

static void try_index(const char *text, size_t len)
{
    struct index_link link = {.elsewhere = 0};
    size_t at = 0, before = 0;

    index_page_is(text, len);
    while (index_page_next(text, len, "https://h/a/", &at, &link)) {
        FUZZ_CHECK(at > before && at <= len);
        fuzz_saw(&at, sizeof(at));
        fuzz_saw(link.name, strlen(link.name));
        before = at;
        FUZZ_CHECK(!name_wrong(link.name) && !name_hidden(link.name) && !strchr(link.name, '/'));
    }
}

static void try_sums(const char *text, size_t len)
{
    const char *why = NULL;
    size_t at = 0, before = 0;
    struct sum sum;
    int r;

    while ((r = sums_next(text, len, &at, &sum, &why)) != 0) {
        FUZZ_CHECK(at > before);
        before = at;
        fuzz_saw(&r, sizeof(r));
        if (r > 0)
            fuzz_saw(sum.path, strlen(sum.path));
        FUZZ_CHECK(r < 0 || (!name_wrong(sum.path) && !name_hidden(sum.path)));
    }
}

static void try_s3(const char *text, size_t len)
{
    struct diag d = DIAG_INIT;
    struct s3_page page;
    struct s3_error error;

    if (s3_page_parse(text, len, "s3", &page, &d) == 0) {
        for (size_t i = 0; i < page.n; i++) {
            FUZZ_CHECK(page.object[i].key && page.object[i].version.size <= INT64_MAX);
            fuzz_saw(page.object[i].key, strlen(page.object[i].key));
            fuzz_saw(&page.object[i].version.size, sizeof(page.object[i].version.size));
            FUZZ_CHECK(
                memchr(page.object[i].version.etag, '\0', sizeof(page.object[i].version.etag)));
        }
        s3_page_release(&page);
    } else {
        FUZZ_CHECK(d.set);
    }
    s3_error_parse(text, len, &error);
}

static void try_credentials(const char *text, size_t len)
{
    char *value = NULL;

    for (int in_config = 0; in_config < 2; in_config++) {
        FUZZ_CHECK(profile_get(text, len, "default", in_config, NULL, NULL) >= 0);
        FUZZ_CHECK(profile_get(text, len, "p", in_config, "aws_access_key_id", &value) >= 0);
        fuzz_saw(value, value ? strlen(value) : 0);
        secret_free(&value);
    }
    json_member(text, len, "Token", &value);
    secret_free(&value);
}

static int use_entry(void *user, const struct hf_entry *entry, struct diag *d)
{
    (void)user;
    (void)d;
    FUZZ_CHECK(entry->path && (entry->is_folder || (hf_is_hash(entry->version.etag) &&
                                                    entry->version.size <= INT64_MAX)));
    fuzz_saw(entry->path, strlen(entry->path));
    fuzz_saw(&entry->version.size, entry->is_folder ? 0 : sizeof(entry->version.size));
    return 0;
}

static void try_hub(const char *text, size_t len)
{
    const struct text reply = {.data = (char *)(uintptr_t)text, .len = len};
    char commit[HF_HASH_SIZE], *id = NULL, next[64];
    struct diag d = DIAG_INIT;
    size_t others = 0;

    if (hf_revision_parse(&reply, "hf", commit, &id, NULL) == 0)
        FUZZ_CHECK(hf_is_commit(commit));
    free(id);
    if (hf_tree_parse(&reply, "hf", use_entry, NULL, &others, &d) < 0)
        FUZZ_CHECK(d.set);
    hf_kept_tree_parse(&reply, "hf", use_entry, NULL, NULL);
    if (len < 512) {
        char line[513];

        memcpy(line, text, len);
        line[len] = '\0';
        FUZZ_CHECK(!http_link_next(line, next, sizeof(next)) ||
                   (*next && strlen(next) < sizeof(next)));
        FUZZ_CHECK(http_limit_parse(line) <= 600000);
        fuzz_saw(next, http_link_next(line, next, sizeof(next)) ? strlen(next) : 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const tries[])(const char *, size_t) = {try_index, try_sums, try_s3,
                                                          try_credentials, try_hub};
    char *copy = malloc(len ? len : 1); /* of that size, so that ASan sees a read behind it */

    FUZZ_CHECK(copy);
    if (len > 1) {
        memcpy(copy, data + 1, len - 1);
        tries[data[0] % 5](copy, len - 1);
    }
    free(copy);
    return 0;
}
