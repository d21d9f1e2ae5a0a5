/* What an index is called in `.epochfs/`: a digest of its identity, with what all copies of its
 * files share in the place of each file's version. */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "cache/http/http.h"
#include "cache/source/joined.h"
#include "cache/source/shared_index.h"

#define SUM_BLOCK  4096
#define SUM_BLOCKS 4

/* A blob, by its identity. */
struct named {
    const char *identity; /* [len] owned, but that of a question */
    size_t len;
    const struct blob *blob;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = memcmp(x->identity, y->identity, min_u64(x->len, y->len));

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static void free_named(void *p)
{
    struct named *named = p;

    free((char *)(uintptr_t)named->identity);
    free(named);
}

int shared_name_add(struct shared_index *shared, const struct blob *blob, const char *identity)
{
    struct named *named = calloc(1, sizeof(*named));
    struct named **found;
    LOCK_SCOPE(&shared->lock);

    if (!named)
        return -ENOMEM;
    named->blob = blob;
    named->len = strlen(identity);
    named->identity = strdup(identity);
    found = named->identity ? tsearch(named, &shared->names, compare_named) : NULL;
    if (found && *found == named) {
        shared->names_most = max_u64(shared->names_most, named->len);
        return 0;
    }
    free_named(named);
    if (found)
        (*found)->blob = blob; /* the one before may be gone */
    return found ? 0 : -ENOMEM;
}

void shared_name_free(struct shared_index *shared)
{
    if (shared->names)
        tdestroy(shared->names, free_named);
    shared->names = NULL;
}

/* The blob whose identity text begins with, up to a space or the end, the longest of them; NULL:
 * there is none. */
static const struct blob *blob_at(struct shared_index *shared, const char *text, size_t *ret_len)
{
    const struct blob *found = NULL;
    LOCK_SCOPE(&shared->lock);

    for (size_t len = strcspn(text, " "); len <= shared->names_most;
         len += 1 + strcspn(text + len + 1, " ")) {
        const struct named like = {.identity = text, .len = len};
        struct named *const *named = tfind(&like, &shared->names, compare_named);

        if (named) {
            found = (*named)->blob;
            *ret_len = len;
        }
        if (!text[len])
            break;
    }
    return found;
}

/* ---- files ---- */

int shared_index_sum(const struct blob *blob, char ret[static DIGEST_TEXT_SIZE])
{
    uint8_t bytes[8 + SUM_BLOCKS * SUM_BLOCK];
    uint64_t start[SUM_BLOCKS], last = blob->size > SUM_BLOCK ? blob->size - SUM_BLOCK : 0;
    size_t len = (size_t)min_u64(blob->size, SUM_BLOCK), at = 8;

    if (joined_is(blob)) {
        AUTO_FREE char *identity = NULL;
        int r = joined_identity(joined_members(blob), "", &identity);

        return r < 0 ? r : digest_text_of(identity, strlen(identity), ret);
    }
    store_le64(bytes, blob->size);
    for (unsigned i = 0; i < SUM_BLOCKS; i++) {
        start[i] = i + 1 < SUM_BLOCKS ? last / (SUM_BLOCKS - 1) * i : last;
        blob_fetch(blob, start[i], len, NULL);
    }
    for (unsigned i = 0; i < SUM_BLOCKS && len; i++, at += len) {
        int r = blob_pread(READ_WAITS, blob, bytes + at, len, start[i]);

        if (r < 0)
            return r;
    }
    return blob_check(blob) < 0 ? -ESTALE : digest_text_of(bytes, at, ret);
}

int shared_index_version(bool far, const struct blob *blob, struct text *ret)
{
    struct remote_version version = {.size = blob->size, .mtime = blob->mtime};

    if (joined_is(blob))
        return 0;
    if (far && blob->etag) {
        snprintf(version.etag, sizeof(version.etag), "%s", blob->etag);
        text_add(ret, "etag:");
        http_encode(ret, blob->etag, false);
        if (joined_version_needs_time(&version))
            text_add(ret, ",time:%lld", (long long)blob->mtime.tv_sec);
    } else if (blob->mtime.tv_sec) {
        text_add(ret, "time:%lld.%09ld", (long long)blob->mtime.tv_sec, blob->mtime.tv_nsec);
    }
    return ret->failed ? -ENOMEM : 0;
}

bool shared_version_is_sure(bool far, const char *version)
{
    return far ? !strncmp(version, "etag:", 5) && strncmp(version, "etag:W", 6) != 0
               : !strncmp(version, "time:", 5);
}

int shared_index_file(const struct blob *blob, char **ret)
{
    const char *name = blob_name(blob);

    if (strchr(name, '\n'))
        return -ENOENT;
    return text_print(ret, "%s%s", *name ? name : ".", joined_is(blob) ? "/" : "");
}

/* ---- indexes ---- */

int shared_index_name(struct shared_index *shared, const char *type, const char *identity,
                      int (*sum_of)(void *ctx, const struct blob *blob,
                                    char ret[static DIGEST_TEXT_SIZE]),
                      void *ctx, char ret[static DIGEST_TEXT_SIZE])
{
    AUTO_TEXT struct text t = {0};
    size_t n = 0, len;

    text_add(&t, "%s", type);
    for (const char *at = identity; at; at = at[len] ? at + len + 1 : NULL) {
        const struct blob *blob = blob_at(shared, at, &len);
        AUTO_FREE char *name = NULL;
        char sum[DIGEST_TEXT_SIZE];
        int r;

        if (!blob) {
            len = strcspn(at, " ");
            text_add(&t, "\n%.*s", (int)len, at);
            continue;
        }
        r = shared_index_file(blob, &name);
        if (r == 0)
            r = sum_of(ctx, blob, sum);
        if (r < 0)
            return r;
        text_add(&t, "\n%llu %s %s", (unsigned long long)blob->size, sum, name);
        n++;
    }
    if (!n)
        return -ENOENT;
    return t.failed ? -ENOMEM : digest_text_of(t.data, t.len, ret);
}
