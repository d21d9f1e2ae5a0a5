/* Bytes as a listing that was kept in the cache folder, of somebody who means harm: magic and hash
 * are made right. Whatever comes out, names and folders are texts in the bytes, places never fall,
 * and what takes collections of it, or looks for files, stays inside. */
#include <limits.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "cache/source/listing.h"
#include "format/files/claim/claim.h"
#include "fuzz.h"

#define HEAD       16   /* magic and hash */
#define FILES_MOST 4096 /* that collections are taken of */

static void check_file(const struct members *m, size_t i)
{
    const char *folder = members_folder_of(m, i), *text = members_text(m, i);
    AUTO_TEXT struct text t = {0};

    FUZZ_CHECK(m->member[i].place <= members_end(m) && members_size(m, i) <= members_end(m));
    FUZZ_CHECK(!text || strlen(text) < m->names_len);
    members_locate(m, m->member[i].place, members_size(m, i), &t);
    FUZZ_CHECK(t.failed || t.len > strlen(folder) + strlen(members_name(m, i)));
    FUZZ_CHECK(members_lookup(m, folder, strlen(folder), members_name(m, i)) <= m->n);
    FUZZ_CHECK(!members_size(m, i) || members_find(m, m->member[i].place) < m->n);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    struct listing listing = {.kept = {bytes, len}};
    uint64_t magic = LISTING_MAGIC;

    if (len)
        memcpy(bytes, data, len);
    if (len >= HEAD) {
        memcpy(bytes, &magic, sizeof(magic));
        store_le64(bytes + sizeof(magic), XXH3_64bits(bytes + HEAD, len - HEAD));
    }
    if (listing_take_kept(&listing) < 0)
        return 0;
    for (uint32_t i = 0; i < listing.files.n_folders; i++)
        FUZZ_CHECK(strlen(members_folder(&listing.files, i)) < listing.files.names_len &&
                   (listing.folder[i].mode | 1));
    for (size_t i = 0; i < listing.files.n; i++)
        check_file(&listing.files, i);
    if (listing.files.n <= FILES_MOST)
        check_claims(&listing.files);
    return 0;
}
