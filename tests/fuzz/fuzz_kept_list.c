/* Bytes as a list of files that was kept in the cache folder, made by an attacker: magic and hash
 * are made right. Whatever comes out, names and folders are texts in the bytes, places never fall,
 * and what takes collections of it, or looks for files, stays inside. In the list of a remote,
 * names also stay below SOURCE, files are found where they are, and versions are texts that end. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"
#include "cache/http/url.h"
#include "cache/source/joined.h"
#include "cache/source/kept_list.h"
#include "cache/source/listing.h"
#include "cache/stage/transport.h"
#include "format/files/claim/claim.h"
#include "fuzz.h"

#define HEAD       16   /* magic and hash */
#define FILES_MOST 4096 /* that collections are taken of */

static void check_file(const struct members *m, size_t i, bool far)
{
    const char *folder = members_folder_of(m, i), *text = members_text(m, i);
    size_t found = members_lookup(m, folder, strlen(folder), members_name(m, i));
    AUTO_TEXT struct text t = {0};
    struct remote_version version;
    char path[4 * PATH_MAX];

    FUZZ_CHECK(m->member[i].place <= members_end(m) && members_size(m, i) <= members_end(m));
    FUZZ_CHECK(!text || strlen(text) < m->names_len);
    members_locate(m, m->member[i].place, members_size(m, i), &t);
    FUZZ_CHECK(t.failed || t.len > strlen(folder) + strlen(members_name(m, i)));
    FUZZ_CHECK(far ? found == i : found <= m->n);
    FUZZ_CHECK(!members_size(m, i) || members_find(m, m->member[i].place) < m->n);
    if (!far)
        return;
    if (members_path(m, i, path, sizeof(path)) == 0 && strlen(path) < PATH_MAX)
        FUZZ_CHECK(!name_wrong(path) && !name_hidden(path));
    if (joined_version_get(m, i, &version))
        FUZZ_CHECK(version.size == members_size(m, i) &&
                   memchr(version.etag, '\0', sizeof(version.etag)));
}

static void release(struct claims *claims)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct collection *c = &claims->collection[i];

        files_free_claim(c->impl);
        free(c->folder);
        free(c->name);
        free(c->root);
        free(c->file);
    }
    free(claims->collection);
    free(claims->unmet);
    free(claims->taken);
}

static void check_claims(const struct members *m)
{
    AUTO(release) struct claims claims = {.taken = calloc(m->n + 1, 1)};

    FUZZ_CHECK(claims.taken && files_claim_names(m, &claims) == 0);
    for (size_t i = 0; i < claims.n; i++) {
        const struct collection *c = &claims.collection[i];
        AUTO_MEMBERS struct members picked = {0};

        for (size_t k = 0; k < c->n; k++)
            FUZZ_CHECK(c->file[k] < m->n);
        if (members_pick(m, c->root, c->file, c->n, &picked) == 0)
            FUZZ_CHECK(picked.n == c->n);
    }
}

static void check_list(const struct known *list, bool far)
{
    for (size_t i = 0; i < list->n_pages; i++)
        FUZZ_CHECK(known_find_page(list, known_page_text(list, i)) == i);
    for (uint32_t i = 0; i < list->files.n_folders; i++)
        FUZZ_CHECK(strlen(members_folder(&list->files, i)) < list->files.names_len &&
                   (far || (list->folder[i].mode | 1)));
    for (size_t i = 0; i < list->files.n; i++)
        check_file(&list->files, i, far);
    if (list->files.n <= FILES_MOST)
        check_claims(&list->files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint64_t magic = KEPT_LIST_MAGIC;
    uint64_t hash = XXH3_64bits(data, len);

    for (int far = 0; far < 2; far++) {
        AUTO_KNOWN struct known list = {.bytes = {malloc(HEAD + len), HEAD + len}};

        FUZZ_CHECK(list.bytes.bytes);
        memcpy(list.bytes.bytes, &magic, 8);
        memcpy(list.bytes.bytes + 8, &hash, 8);
        memcpy(list.bytes.bytes + HEAD, data, len);
        if (kept_list_parse(&list, far) == 0)
            check_list(&list, far);
    }
    return 0;
}
